/* SPDX-License-Identifier: MIT */
/*
 * A trace and its machine code: which IR instruction, and so which exit and line, each piece
 * of the code belongs to, and which of its calls go through the FFI.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/unit/made_up_trace.h"
#include "unwind/trace/trace_code.h"
#include "unwind/trace/trace_ffi.h"

enum { EXITS = 8, CALLS = 64 };

static int number(const void *context, uint64_t target)
{
	(void)context;
	return target - MADE_UP_MCODE > TRACE_CODE_BYTES_MAX ? (int)(target % EXITS) : -1;
}

/* Places of the trace's block and what is there; a place that lies outside ends them. */
static void put_parts(struct made_up_trace *made_up, struct fuzz_input *input)
{
	for (;;) {
		uint64_t place = fuzz_take(input, 2), word = fuzz_take(input, 8);

		if (place > sizeof(made_up->bytes) - sizeof(word))
			return;
		trace_put(made_up, (int32_t)place, word, sizeof(word));
		if (!fuzz_left(input))
			return;
	}
}

/* At each address of short code, at some of long code, and behind it. */
static void ask_about_calls(const struct made_up_trace *made_up, const uint8_t *code)
{
	const struct trace *trace = &made_up->trace;
	const uint64_t end = trace->mcode + trace->szmcode, step = 1 + trace->szmcode / CALLS;

	for (uint64_t pc = trace->mcode; pc <= end + step; pc += step) {
		bool is_by_ffi = trace_calls_by_ffi(trace, &made_up->layout, code, pc);

		fuzz_check(!is_by_ffi || pc - trace->mcode - 1 < trace->szmcode, "a call lies in the code");
		fuzz_check(!trace_calls_by_ffi(trace, &made_up->layout, NULL, pc), "no code has no calls");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct made_up_trace made_up; /* too large for a stack */
	const struct trace_exits exits = { .number = number };
	struct fuzz_input input = fuzz_input(data, size);
	struct trace_code code = { .count = 0 };
	uint8_t *machine_code;

	made_up_trace_begin(&made_up, fuzz_take(&input, 1) % 2);
	made_up.layout.bytecode = fuzz_take(&input, 1) % 2 ? BYTECODE_V21 : BYTECODE_V20;
	put_parts(&made_up, &input);
	made_up.trace.szmcode = (uint32_t)fuzz_left(&input);
	/* On its own, so that the sanitizer sees what lies behind it. */
	machine_code = malloc(made_up.trace.szmcode + !made_up.trace.szmcode);
	fuzz_check(machine_code != NULL, "there is memory");
	memcpy(machine_code, input.at, made_up.trace.szmcode);
	if (trace_code_align(&code, &made_up.trace, &made_up.layout, machine_code, &exits))
		for (size_t i = 0; i < code.count; i++)
			fuzz_check(code.pieces[i].offset < made_up.trace.szmcode, "pieces lie in the code");
	trace_code_clear(&code);
	ask_about_calls(&made_up, machine_code);
	free(machine_code);
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "unwind/vm/vm_flow.h"

#include <stdlib.h>

#include "unwind/machine/machine_decoder.h"

enum { CODE_MAX = 256 << 10 };

static void add_instruction(struct vm_flow *flow, const struct machine_decoder *decoder)
{
	const cs_insn *insn = decoder->insn;
	uint64_t target;

	if (machine_decoder_ends(decoder))
		flow->ends[flow->end_count++] = insn->address + insn->size;
	if (machine_decoder_jumps(decoder) && machine_decoder_target(decoder, &target))
		flow->jumps[flow->jump_count++] = (struct vm_jump){ .from = insn->address, .to = target };
}

static void decode(struct vm_flow *flow, const uint8_t *code, size_t length, uint64_t address)
{
	const size_t step = machine_decoder_step();
	struct machine_decoder decoder;

	if (!machine_decoder_open(&decoder))
		return;
	while (length >= step) {
		if (machine_decoder_next(&decoder, &code, &length, &address)) {
			add_instruction(flow, &decoder);
			continue;
		}
		code += step;
		length -= step;
		address += step;
	}
	machine_decoder_close(&decoder);
}

bool vm_flow_read(struct memory *memory, const struct vm_code *vm, struct vm_flow *ret_flow)
{
	size_t length = vm->end - vm->begin;
	uint8_t *code;

	*ret_flow = (struct vm_flow){ 0 };
	if (length > CODE_MAX)
		return false;
	code = malloc(length);
	ret_flow->jumps = calloc(length, sizeof(*ret_flow->jumps));
	ret_flow->ends = calloc(length, sizeof(*ret_flow->ends));
	if (code && ret_flow->jumps && ret_flow->ends &&
	    memory_read(memory, vm->begin, code, length) == MEMORY_OK)
		decode(ret_flow, code, length, vm->begin);
	free(code);
	return ret_flow->end_count > 0;
}

void vm_flow_clear(struct vm_flow *flow)
{
	free(flow->jumps);
	free(flow->ends);
}

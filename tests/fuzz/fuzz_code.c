/* SPDX-License-Identifier: MIT */
/*
 * Machine code of LuaJIT's interpreter, of nginx and lua-nginx-module, and code without
 * unwind tables.
 */
#include <string.h>

#include "luajit-layouts/module/vm_code_arm64.h"
#include "luajit-layouts/module/vm_code_x86_64.h"
#include "tests/fuzz/fuzz.h"
#include "unwind/elf/machine.h"
#include "unwind/lua/request.h"
#include "unwind/members/member_loads.h"
#include "unwind/native/code_rules.h"
#include "unwind/native/frame_depth.h"
#ifdef LJSPY_READS_X86_64
#include "unwind/elf/register_part_x86_64.h"
#include "unwind/machine/evex_x86_64.h"
#endif

enum { ADDRESS = 0x400000, FRAMES_MAX = 8, FRAME_BYTES_MAX = 1 << 30, INSTRUCTIONS_MAX = 1 << 16 };

#ifdef LJSPY_READS_X86_64
enum { FRAME_POINTER = 6 };
#else
enum { FRAME_POINTER = 29 };
#endif

/* The bytes at ADDRESS, and nothing else. */
struct code {
	struct memory memory; /* must be first */
	const uint8_t *data;
	size_t size;
};

static void read_code(struct memory *memory, struct memory_range *ranges, size_t count)
{
	const struct code *code = (const struct code *)memory;

	for (size_t i = 0; i < count; i++) {
		uint64_t offset = ranges[i].address - ADDRESS;

		ranges[i].status = MEMORY_UNMAPPED;
		if (offset > code->size || ranges[i].length > code->size - offset)
			continue;
		memcpy(ranges[i].copy, code->data + offset, ranges[i].length);
		ranges[i].status = MEMORY_OK;
	}
}

/* An AVX-512 instruction anywhere in the code. */
static void read_vectors(const uint8_t *data, size_t size)
{
#ifdef LJSPY_READS_X86_64
	for (size_t at = 0; at < size; at++) {
		struct evex evex;

		if (!evex_decode(data + at, size - at, &evex))
			continue;
		fuzz_check(evex.size > 0 && evex.size <= size - at, "an instruction is within the code");
		fuzz_check(evex.written >= EVEX_NO_REGISTER && evex.written < REGISTER_COUNT &&
				   evex.base >= EVEX_NO_REGISTER && evex.base < REGISTER_COUNT,
			   "its registers are there");
	}
#else
	(void)data;
	(void)size;
#endif
}

/* Twice: the second time with no more instructions than the first has taken. */
static void find_depth(struct image *image, size_t size, uint64_t pc)
{
	const struct frame_question question = { ADDRESS, ADDRESS + size, pc, FRAME_POINTER };
	struct frame_depth depth, again;
	unsigned int left = INSTRUCTIONS_MAX;
	enum frame_depth_status status = frame_depth_find(image, &question, &left, &depth);

	left = INSTRUCTIONS_MAX - left;
	fuzz_check(frame_depth_find(image, &question, &left, &again) == status, "an answer stays");
	if (status != FRAME_DEPTH_FOUND)
		return;
	fuzz_check(depth.sp == again.sp && depth.pointer == again.pointer, "a depth stays");
	fuzz_check(depth.sp >= -FRAME_BYTES_MAX && depth.sp <= FRAME_BYTES_MAX, "a frame has a bound");
}

/* Frames anywhere in the code; the second time as they were told before. */
static void read_frames(const uint8_t *data, size_t size)
{
	struct code code = { .memory = { .read_ranges = read_code }, .data = data, .size = size };
	struct image *image = image_new(&code.memory);
	struct code_rules *rules = image ? code_rules_new(image) : NULL;

	fuzz_check(rules != NULL, "there is memory");
	for (size_t i = 0; i < 2 * (size_t)FRAMES_MAX; i++) {
		uint64_t pc = ADDRESS + i % FRAMES_MAX * size / FRAMES_MAX;
		struct frame_rules found;

		if (code_rules_find(rules, &code.memory, pc, &found))
			fuzz_check(frame_rules_valid(&found), "rules are within their bounds");
		code_rules_follows_call(rules, &code.memory, pc);
		find_depth(image, size, pc);
	}
	code_rules_free(rules);
	image_free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vm_code_evidence evidence;
	struct request_code request;
	struct member_loads loads;
	int32_t connection, main;

	vm_code_x86_64_read(data, size, ADDRESS, &evidence);
	vm_code_arm64_read(data, size, ADDRESS, &evidence);
	member_loads_read(data, size, ADDRESS, &loads);
	fuzz_check(loads.count <= MEMBER_LOADS_MAX, "loads have a bound");
	request_code_read(data, size, ADDRESS, &request);
	read_vectors(data, size);
	read_frames(data, size);
	request_code_read_main(data, size, ADDRESS, &connection, &main);
	return 0;
}

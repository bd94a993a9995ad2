/* SPDX-License-Identifier: MIT */
/*
 * Machine code of LuaJIT's interpreter, of nginx and lua-nginx-module, and code without
 * unwind tables.
 */
#include <string.h>

#include "luajit-layouts/module/vm_code_arm64.h"
#include "luajit-layouts/module/vm_code_x86_64.h"
#include "tests/fuzz/fuzz.h"
#include "unwind/lua/request.h"
#include "unwind/members/member_loads.h"
#include "unwind/native/code_rules.h"
#include "unwind/native/frame_depth.h"

enum { ADDRESS = 0x400000, FRAMES_MAX = 8, FRAME_BYTES_MAX = 1 << 30, FRAME_POINTER = 6 };

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

/* Frames anywhere in the code; the second time as they were told before. */
static void read_frames(const uint8_t *data, size_t size)
{
	struct code code = { .memory = { .read_ranges = read_code }, .data = data, .size = size };
	struct image *image = image_new(&code.memory);
	struct code_rules *rules = image ? code_rules_new(image) : NULL;

	struct frame_depths *depths = image ? frame_depths_new(image) : NULL;

	fuzz_check(rules != NULL && depths != NULL, "there is memory");
	for (size_t i = 0; i < 2 * (size_t)FRAMES_MAX; i++) {
		uint64_t pc = ADDRESS + i % FRAMES_MAX * size / FRAMES_MAX;
		struct frame_rules found;
		struct frame_depth depth;

		if (code_rules_find(rules, &code.memory, pc, &found))
			fuzz_check(frame_rules_valid(&found), "rules are within their bounds");
		code_rules_follows_call(rules, &code.memory, pc);
		if (frame_depth_find(depths, ADDRESS, ADDRESS + size, pc, FRAME_POINTER, &depth))
			fuzz_check(depth.sp >= -FRAME_BYTES_MAX && depth.sp <= FRAME_BYTES_MAX,
				   "a frame has a bound");
	}
	frame_depths_free(depths);
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
	read_frames(data, size);
	request_code_read_main(data, size, ADDRESS, &connection, &main);
	return 0;
}

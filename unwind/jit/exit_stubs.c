/* SPDX-License-Identifier: MIT */
#include "unwind/jit/exit_stubs.h"

#include "unwind/lua/luajit.h"
#include "unwind/trace/trace_block.h"

enum {
	/* Groups of 32, 4 bytes apart (lj_target_x86.h, EXITSTUBS_PER_GROUP). */
	EXITS_PER_GROUP = 32,
	GROUP_STUB_SIZE = 4,
	GROUP_TAIL = 16,
	/* A trace's own. */
	WORD = 4,
	FILLERS_MAX = 4, /* nop */
	HEAD_MAX = 4,    /* str lr, [sp]; bl; or ldr and blr; movz w0, the trace's number */
	NOP = (int)0xd503201f,
	STORE_LR = (int)0xf90003fe,
	LOAD = 0xf, /* the upper four bits of ldr */
};

int exit_group_number(const uint64_t groups[static EXIT_GROUPS], uint64_t pc)
{
	for (int group = 0; group < EXIT_GROUPS; group++) {
		uint64_t offset = pc - groups[group];

		if (groups[group] && offset < EXITS_PER_GROUP * GROUP_STUB_SIZE)
			return group * EXITS_PER_GROUP + (int)(offset / GROUP_STUB_SIZE);
	}
	return -1;
}

bool exit_group_contains(const uint64_t groups[static EXIT_GROUPS], uint64_t pc)
{
	for (int group = 0; group < EXIT_GROUPS; group++)
		if (groups[group] && pc - groups[group] < EXITS_PER_GROUP * GROUP_STUB_SIZE + GROUP_TAIL)
			return true;
	return false;
}

/* A side trace has one more, for its check of the stack's size. */
size_t exit_stubs_size_max(const struct trace *trace, const struct layout *layout)
{
	return (FILLERS_MAX + HEAD_MAX + trace_snapshot_count(trace, layout) + 1) * WORD;
}

int exit_stub_number(const struct trace *trace, const uint8_t *stubs, size_t length, uint64_t pc)
{
	uint64_t begin = trace->mcode + trace->szmcode, offset = pc - begin;
	size_t at = 0;

	while (at + WORD <= length && load_bytes(stubs + at, 0, WORD) == (uint32_t)NOP)
		at += WORD;
	if (at + 2 * WORD > length || load_bytes(stubs + at, 0, WORD) != (uint32_t)STORE_LR)
		return -1;
	at += (load_bytes(stubs + at + WORD, 0, WORD) >> 28 == LOAD ? HEAD_MAX : HEAD_MAX - 1) * WORD;
	return offset >= at && offset < length ? (int)((offset - at) / WORD) : -1;
}

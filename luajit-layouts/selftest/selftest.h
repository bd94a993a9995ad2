/* SPDX-License-Identifier: MIT */
/*
 * selftest: does a layout fit the objects of a live state?
 *
 * LuaJIT lays out some objects so that their fields determine one another: a
 * prototype's constants start where its bytecode ends, a trace's snapshots
 * where its IR ends. Such relations hold to the byte under the right layout
 * and under no other. So they confirm a layout, or choose one of several.
 *
 * The target's Lua thread must be stopped or asleep meanwhile. A thread stopped
 * at a random instruction is, one time in a hundred, in the middle of a change
 * to some object, which then fails. Only a failure that repeats after the
 * target has run on means a wrong layout. A run takes some milliseconds.
 */
#ifndef LJSPY_SELFTEST_H
#define LJSPY_SELFTEST_H

#include <stdint.h>

#include "luajit-layouts/inquiry.h"
#include "luajit-layouts/vm.h"
#include "memory/memory.h"

enum selftest_verdict {
	SELFTEST_PASSED,
	SELFTEST_FAILED,
	SELFTEST_UNTESTED, /* the state holds nothing to test on, e.g. no trace yet */
};

/* The tests; each can run by itself. */
enum selftest {
	SELFTEST_STATE,   /* global_State, GG_State, lua_State, C frames */
	SELFTEST_STRINGS, /* GCstr, and gcroot by the names of metamethods */
	SELFTEST_OBJECTS, /* prototypes, functions, upvalues, tables, userdata */
	SELFTEST_JIT,     /* jit_State */
	SELFTEST_TRACES,  /* GCtrace and SnapShot */
	SELFTEST_COUNT
};

/*
 * Run one test on the state at g with the offsets in vm->layout. evidence, if
 * not NULL, receives in words how much was checked or what is wrong.
 */
enum selftest_verdict selftest_run(struct memory *memory, const struct vm_code *vm, uint64_t g,
				   enum selftest test, recognise_evidence *evidence, void *context);

#endif

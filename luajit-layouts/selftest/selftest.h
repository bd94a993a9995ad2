/* SPDX-License-Identifier: MIT */
/*
 * selftest: does a layout fit the objects of a live state?
 *
 * LuaJIT lays out some objects so that their fields determine one another: a
 * prototype's constants start where its bytecode ends, a trace's snapshots
 * where its IR ends. Such relations hold to the byte under the right layout
 * and under no other, so they confirm a layout, or tell which of several it is.
 *
 * The target must not run meanwhile: its Lua thread stopped, or asleep. Even
 * then, stopped at a random instruction, one time in a hundred some object is
 * in the middle of a change and fails; only a failure that repeats after the
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
	SELFTEST_UNTESTED,	/* the state holds nothing to test on, e.g. no trace yet */
};

/* What is tested, each by itself. */
enum selftest {
	SELFTEST_STATE,		/* global_State, GG_State, lua_State, C frames */
	SELFTEST_STRINGS,	/* GCstr, and gcroot by the names of metamethods */
	SELFTEST_OBJECTS,	/* prototypes, functions, upvalues, tables, userdata */
	SELFTEST_JIT,		/* jit_State */
	SELFTEST_TRACES,	/* GCtrace and SnapShot */
	SELFTEST_COUNT
};

/*
 * Run one test by the offsets in vm->layout. evidence, if not NULL, is told
 * how much was checked or what is wrong, in words.
 */
enum selftest_verdict selftest_run(struct memory *memory, const struct vm_code *vm, uint64_t g,
				   enum selftest test, recognise_evidence *evidence, void *context);

/* All of them: failed if one failed, passed if none failed and one passed. */
enum selftest_verdict selftest_run_all(struct memory *memory, const struct vm_code *vm, uint64_t g,
				       recognise_evidence *evidence, void *context);

#endif

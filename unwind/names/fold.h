/* SPDX-License-Identifier: MIT */
/*
 * fold: which frames of a stack a Lua developer wants to see.
 *
 * Every Lua function, builtin and C function is shown. Of the native code:
 *
 * - What a builtin or C function runs is its own affair and hidden: the
 *   function is a leaf, or stands right above the Lua function it calls.
 * - What LuaJIT itself runs for a Lua function (collecting garbage, interning
 *   strings, compiling) is one [vm] leaf, whatever it calls in turn.
 * - What a Lua function calls through the FFI is shown with all it calls,
 *   straight above the Lua function, interpreted or compiled: the builtin by
 *   which the interpreter gets there is hidden.
 * - What lies outside of all Lua is shown (an event loop, the program's main),
 *   but for the C library's start-up code and LuaJIT's own functions on the
 *   way into Lua: all of the luajit program, lua_pcall and the like elsewhere.
 *   Of a program that LuaJIT is linked into statically and that is stripped,
 *   functions without a name count as LuaJIT's own between Lua frames only.
 */
#ifndef LJSPY_FOLD_H
#define LJSPY_FOLD_H

#include <stddef.h>
#include <stdint.h>

enum fold_kind {
	FOLD_KEPT,		/* shown in any case */
	FOLD_LEFT_OUT,		/* hidden in any case */
	FOLD_LUA,
	FOLD_BUILTIN,
	FOLD_C_FUNCTION,
	FOLD_OWN_FUNCTION,	/* a C function in LuaJIT's own module that is no builtin */
	FOLD_VM,		/* LuaJIT's interpreter */
	FOLD_FFI_CALL,		/* lj_vm_ffi_call */
	FOLD_LUAJIT,		/* C functions of LuaJIT's own */
	FOLD_NAMELESS,		/* of LuaJIT or of the program that it is linked into */
	FOLD_LIBC,		/* of the C library */
	FOLD_NATIVE,		/* any other native code */
};

enum fold_shown { FOLD_HIDDEN, FOLD_SHOWN, FOLD_AS_VM };

/* Leaf first. Frames as FOLD_AS_VM are together one [vm] frame. */
void fold(const uint8_t *kinds, size_t count, uint8_t *ret_shown);

#endif

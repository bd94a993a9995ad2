/* SPDX-License-Identifier: MIT */
/*
 * frame: one line of a stack as the user sees it.
 *
 * Functions are interned: while the function table lives, equal functions have
 * the same pointer. Stacks are compared and merged by pointer.
 */
#ifndef LJSPY_FRAME_H
#define LJSPY_FRAME_H

#include <stdbool.h>
#include <stdint.h>

enum frame_kind {
	FRAME_LUA,        /* a Lua function, interpreted or compiled */
	FRAME_BUILTIN,    /* a function of LuaJIT's own library, by its Lua name */
	FRAME_C_FUNCTION, /* a lua_CFunction of the program or a module */
	FRAME_NATIVE,     /* any other native code */
	FRAME_VM,         /* LuaJIT's own handlers and routines */
	FRAME_TRACE,      /* the trace being executed */
	FRAME_LOST,       /* an unknown part of the stack; the name is the reason */
	FRAME_VM_WORK,    /* LuaJIT's own routines; the name is what they do for the frame below */
	FRAME_ALLOCATED,  /* what the frame below has allocated: "table"; only a leaf */
	FRAME_KIND_COUNT
};

/* How certain the position in the function is. */
enum frame_certainty {
	CERTAINTY_EXACT,    /* function and line */
	CERTAINTY_NEAREST,  /* compiled code: the line is the nearest known position */
	CERTAINTY_FUNCTION, /* the function only; line is 0 */
	CERTAINTY_COUNT
};

/* The name of what a file or string consists of, outside its functions. */
#define MAIN_CHUNK "main chunk"

/*
 * A function of the target. Strings may hold any byte but NUL: they are UTF-8
 * only if the target's names are. Each output format escapes them.
 */
struct function {
	enum frame_kind kind;
	uint32_t firstline; /* line of definition; 0 for a main chunk or if unknown */
	const char *name;   /* "heavy", "string.gsub", "sqrt", MAIN_CHUNK, the reason of a lost frame */
	const char *file;   /* "test.lua", "=content_by_lua(nginx.conf:24)"; NULL if none */
	const char *module; /* "libm.so.6" for native code; NULL if none */
	uint32_t root; /* how many bytes of file are the target's package root, with its "@": "@/srv/app/" of
				"@/srv/app/kong/acl.lua"; 0 if unknown. It does not identify a function. */
};

struct frame {
	const struct function *function;
	uint32_t line; /* the current line; 0 if unknown */
	enum frame_certainty certainty;
	bool compiled; /* a Lua function that runs as machine code of a trace */
};

#endif

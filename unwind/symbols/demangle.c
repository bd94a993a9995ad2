/* SPDX-License-Identifier: MIT */
#include "unwind/symbols/demangle.h"

#include <setjmp.h>
#include <string.h>

#if __has_include(<libiberty/demangle.h>)
#include <libiberty/demangle.h>
#else
#include <demangle.h>
#endif

enum { MANGLED_MAX = 4096 };

struct output {
	char *text;
	size_t length, size;
	jmp_buf full;
};

/* Takes a piece of the name. The library holds no memory while it prints, so longjmp() leaks none. */
static void take(const char *piece, size_t length, void *opaque)
{
	struct output *output = opaque;
	size_t room = output->size - 1 - output->length;
	size_t part = length < room ? length : room;

	if (length == 0) /* piece may be NULL then */
		return;
	memcpy(output->text + output->length, piece, part);
	output->length += part;
	output->text[output->length] = '\0';
	if (part < length)
		longjmp(output->full, 1);
}

bool demangle(const char *mangled, char *ret_name, size_t size)
{
	struct output output = { .text = ret_name, .size = size };

	/* _Z: C++, and Rust before 2018's scheme; _R: Rust. */
	if (mangled[0] != '_' || (mangled[1] != 'Z' && mangled[1] != 'R') ||
	    strnlen(mangled, MANGLED_MAX) == MANGLED_MAX)
		return false;
	if (setjmp(output.full))
		return true;
	if (rust_demangle_callback(mangled, DMGL_NO_OPTS, take, &output))
		return true;
	output.length = 0;
	return cplus_demangle_v3_callback(mangled, DMGL_ANSI, take, &output) && output.length;
}

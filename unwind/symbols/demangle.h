/* SPDX-License-Identifier: MIT */
/*
 * demangle: C++ and Rust symbols as they were written, without parameters.
 *
 * libiberty rather than libstdc++: it knows Rust too, adds no shared library
 * and can be stopped: a name of a few bytes may expand to gigabytes.
 */
#ifndef LJSPY_DEMANGLE_H
#define LJSPY_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/* False, with nothing written, if the name is not mangled; cut short to fit size. */
bool demangle(const char *mangled, char *ret_name, size_t size);

#endif

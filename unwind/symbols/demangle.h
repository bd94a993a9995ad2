/* SPDX-License-Identifier: MIT */
/*
 * demangle: turns C++ and Rust symbols into names as in the source, without
 * parameters.
 *
 * It uses libiberty, not libstdc++: libiberty knows Rust, too, adds no shared
 * library and can be stopped. A name of a few bytes may expand to gigabytes.
 */
#ifndef LJSPY_DEMANGLE_H
#define LJSPY_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/* Truncates the name to fit size bytes. False if mangled is no mangled name; do not use ret_name then. */
bool demangle(const char *mangled, char *ret_name, size_t size);

#endif

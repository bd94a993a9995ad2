/* SPDX-License-Identifier: MIT */
/*
 * variables: nginx's tables of variables, such as $uri and $status.
 *
 * A table is an array of ngx_http_variable_t (src/http/ngx_http_variables.h: name, set_handler,
 * get_handler, data, flags, index) in the program's data. An entry without a name ends it. It is
 * found by the names in it, so the program needs no symbols.
 */
#ifndef LJSPY_VARIABLES_H
#define LJSPY_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/module/elf_image.h"
#include "memory/memory.h"

enum { VARIABLES_MAX = 128, VARIABLE_NAME_BYTES = 32 };

struct variable {
	char name[VARIABLE_NAME_BYTES];
	uint64_t get; /* address of the function that returns its value */
	uint64_t data;
};

struct variables {
	struct variable table[VARIABLES_MAX];
	size_t count;
};

/* Find the table that begins with one name and has another. False if there is none. */
bool variables_find(struct memory *memory, const struct elf_image *image, const char *first,
		    const char *other, struct variables *ret_variables);

/* The variable of that name, or NULL. */
const struct variable *variables_named(const struct variables *variables, const char *name);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * listing_source: what a listing is made from, and how its constants read.
 *
 * Everything is read from one copy: the snapshot holds each string that a listing shows, and
 * objects each prototype. Texts are as in LuaJIT's own listings (jit/dump.lua, jit/bc.lua) and
 * hold any byte but NUL: escape them.
 */
#ifndef LJSPY_LISTING_SOURCE_H
#define LJSPY_LISTING_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "luajit-layouts/layout.h"
#include "memory/memory.h"
#include "memory/snapshot.h"
#include "unwind/listing/ir_names.h"
#include "unwind/lua/builtins.h"
#include "unwind/lua/lua_objects.h"

enum {
	LISTING_STRING_MAX = 40,    /* bytes shown of a string */
	LISTING_NAME_MAX = 256,     /* bytes copied of a string, which may be a name to look for */
	LISTING_STRINGS_MAX = 8192, /* of one listing */
	LISTING_PLACE_SIZE = 320,
};

struct listing_source {
	struct memory *memory;
	const struct layout *layout;
	struct lua_objects *objects;
	const struct builtins *builtins;
	enum ir_numbering numbering;
};

/*
 * While the target is held: copy these strings, as far as a listing shows them. Others than strings are left
 * out.
 */
void listing_capture_strings(struct snapshot *snapshot, const struct layout *layout, const uint64_t *strings,
			     size_t count);

/* The same for cdata, of which numbers are shown. */
void listing_capture_cdata(struct snapshot *snapshot, const struct layout *layout, const uint64_t *cdata,
			   size_t count);

/* Is it this string? False also if it was not captured. */
bool listing_is_string(const struct listing_source *source, uint64_t string, const char *text);

/* A string in quotes, cut after so many characters as jit.dump cuts it. False if it was not captured. */
bool listing_write_string(const struct listing_source *source, uint64_t string, unsigned cut, FILE *out);

/* "file.lua:12", as LuaJIT names a function or line; at most LISTING_PLACE_SIZE bytes. */
void listing_place(const struct proto *proto, uint32_t line, char ret_place[static LISTING_PLACE_SIZE]);

/* A function: where it is defined, the builtin's name, or the address of its C code. */
void listing_write_function(const struct listing_source *source, uint64_t function, FILE *out);

/* A cdata: "12LL" or "12ULL", or its address. */
void listing_write_cdata(const struct listing_source *source, uint64_t cdata, FILE *out);

/* A number as with "%+.14g" or "%.14g" of string.format. */
void listing_write_number(double number, bool with_sign, FILE *out);

/* An address as with "%p" of string.format. */
void listing_write_pointer(uint64_t address, FILE *out);

/* Writes into memory: the text, which the caller frees; NULL when memory is short. */
struct listing_text {
	FILE *out;
	char *text;
	size_t length;
};

bool listing_text_begin(struct listing_text *text);
char *listing_text_end(struct listing_text *text);

#endif

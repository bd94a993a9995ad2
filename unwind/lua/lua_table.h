/* SPDX-License-Identifier: MIT */
/*
 * lua_table: the pairs of a Lua table that have a string as key.
 *
 * The target may change the table meanwhile: every pointer is checked, and what does not
 * look like a table has no pairs.
 */
#ifndef LJSPY_LUA_TABLE_H
#define LJSPY_LUA_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "luajit-layouts/layout.h"
#include "memory/memory.h"

enum { LUA_TABLE_KEY_SIZE = 48 }; /* pairs with a longer key, or an empty one, are left out */

/* A string's text. False if it is empty, holds a NUL or is as long as LUA_TABLE_KEY_SIZE. */
bool lua_table_text(struct memory *memory, const struct layout *layout, uint64_t string,
		    char ret_text[static LUA_TABLE_KEY_SIZE]);

/* value is the pair's tagged value (unwind/lua/luajit.h). */
typedef void lua_table_visit(void *context, const char *key, uint64_t value);

void lua_table_each(struct memory *memory, const struct layout *layout, uint64_t table,
		    lua_table_visit *visit, void *context);

/* The table in the pair with this key; false if there is none. */
bool lua_table_find_table(struct memory *memory, const struct layout *layout, uint64_t table, const char *key,
			  uint64_t *ret_table);

/*
 * The value of the pair with this key, in a table of at most some hundred pairs. False if there is none, or
 * it is nil. LuaJIT has each string once: *known is the key's address if it was found before, else 0; it is
 * brought up to date, and spares reads while the string stays.
 */
bool lua_table_find(struct memory *memory, const struct layout *layout, uint64_t table, const char *key,
		    uint64_t *known, uint64_t *ret_value);

/* The table that is the element with this index, in such a table. It may be in the hash part. */
bool lua_table_element(struct memory *memory, const struct layout *layout, uint64_t table, uint32_t index,
		       uint64_t *ret_table);

/* The registry of the global_State at g; false if it cannot be read. */
bool lua_table_registry(struct memory *memory, const struct layout *layout, uint64_t g, uint64_t *ret_table);

#endif

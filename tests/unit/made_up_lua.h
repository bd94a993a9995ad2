/* SPDX-License-Identifier: MIT */
/*
 * made_up_lua: strings, tables and threads of a LuaJIT in made_up_words.
 */
#ifndef LJSPY_MADE_UP_LUA_H
#define LJSPY_MADE_UP_LUA_H

#include <stdint.h>
#include <string.h>

#include "tests/unit/made_up_words.h"
#include "unwind/lua/luajit.h"

/* Each field has a word for itself, so that references of both widths fit. */
#define MADE_UP_LAYOUT \
	.GChead_nextgc = 0, .GChead_marked = WORD, .GChead_gct = WORD + 1, .GCstr_len = 2 * WORD, \
	.GCstr_size = 3 * WORD, .GCtab_array = 2 * WORD, .GCtab_asize = 3 * WORD, .GCtab_node = 4 * WORD, \
	.GCtab_hmask = 5 * WORD, .GCtab_size = 6 * WORD, .Node_val = 0, .Node_key = WORD, \
	.Node_next = 2 * WORD, .Node_size = 3 * WORD, .L_glref = 2 * WORD, .L_base = 3 * WORD, \
	.L_env = 4 * WORD, .g_registrytv = WORD

enum { NODE_WORDS = 3 };

static const struct layout made_up_gc64 = { .gc64 = true, MADE_UP_LAYOUT, .L_exdata = -1, .L_exdata2 = -1 };

static inline uint64_t tagged(const struct layout *layout, int32_t tag, uint64_t object)
{
	return (layout->gc64 ? (uint64_t)(int64_t)tag << 47 : (uint64_t)(uint32_t)tag << 32) | object;
}

/* The start of an object at a word. */
static inline void put_head(struct made_up *made_up, size_t word, uint8_t gct)
{
	made_up->words[word + 1] = (uint64_t)gct << 8;
}

/* A string at a word; returns its value. */
static inline uint64_t put_string(struct made_up *made_up, const struct layout *layout, size_t word,
				  const char *text)
{
	put_head(made_up, word, GCT_STRING);
	made_up->words[word + 2] = strlen(text);
	memcpy(&made_up->words[word + 3], text, strlen(text) + 1);
	return tagged(layout, TAG_STR, at(word));
}

/* A table at a word, whose parts have so many elements and nodes of nil at others; returns its value. */
static inline uint64_t put_table(struct made_up *made_up, const struct layout *layout, size_t word,
				 size_t array, uint32_t elements, size_t node, uint32_t nodes)
{
	put_head(made_up, word, GCT_TABLE);
	made_up->words[word + 2] = at(array);
	made_up->words[word + 3] = elements;
	made_up->words[word + 4] = at(node);
	made_up->words[word + 5] = nodes - 1;
	for (size_t i = 0; i < elements; i++)
		made_up->words[array + i] = UINT64_MAX;
	for (size_t i = 0; i < nodes; i++)
		made_up->words[node + i * NODE_WORDS] = made_up->words[node + i * NODE_WORDS + 1] =
			UINT64_MAX;
	return tagged(layout, TAG_TAB, at(word));
}

static inline void put_node(struct made_up *made_up, size_t node, uint64_t key, uint64_t value)
{
	made_up->words[node] = value;
	made_up->words[node + 1] = key;
}

#endif

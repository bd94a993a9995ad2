/* SPDX-License-Identifier: MIT */
#include "src/survey/puc_lua.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "src/linux/proc/live_memory.h"
#include "src/linux/proc/maps.h"

enum {
	PIECE = 64 << 10,     /* bytes read at a time */
	OVERLAP = 32,         /* bytes of a piece that are read again with the next one */
	BYTES_MAX = 64 << 20, /* read in all */
};

static bool find_ident(const char *bytes, size_t length, char ret_version[static PUC_LUA_VERSION_MAX])
{
	static const char *const idents[] = { "$Lua: Lua ", "$LuaVersion: Lua " };

	for (size_t i = 0; i < sizeof(idents) / sizeof(idents[0]); i++) {
		const char *ident = memmem(bytes, length, idents[i], strlen(idents[i]));
		const char *version = ident ? ident + strlen(idents[i]) : NULL;

		if (!version || (size_t)(bytes + length - version) < sizeof("5.1"))
			continue;
		if (!isdigit((unsigned char)version[0]) || version[1] != '.' ||
		    !isdigit((unsigned char)version[2]))
			continue;
		snprintf(ret_version, PUC_LUA_VERSION_MAX, "%.3s", version);
		return true;
	}
	return false;
}

/* Is it part of a loaded program or library, and cannot be written to, as constants? */
static bool contains_constants(const struct maps *maps, const struct mapping *mapping)
{
	if (!(mapping->access & MAPPING_READ) || mapping->access & MAPPING_WRITE)
		return false;
	for (size_t i = 0; i < maps_file_count(maps); i++) {
		const struct mapped_file *file = maps_file_at(maps, i);

		if (file->executable && mapping->begin >= file->begin && mapping->end <= file->end)
			return true;
	}
	return false;
}

static bool search_mapping(struct memory *memory, const struct mapping *mapping, size_t *left,
			   char ret_version[static PUC_LUA_VERSION_MAX])
{
	char piece[PIECE];

	for (uint64_t at = mapping->begin; at < mapping->end && *left >= PIECE; at += PIECE - OVERLAP) {
		size_t length = mapping->end - at < PIECE ? mapping->end - at : PIECE;

		*left -= length;
		if (memory_read(memory, at, piece, length) == MEMORY_OK &&
		    find_ident(piece, length, ret_version))
			return true;
	}
	return false;
}

bool puc_lua_find(pid_t pid, char ret_version[static PUC_LUA_VERSION_MAX])
{
	struct live_memory *live = live_memory_new(pid);
	struct maps *maps = maps_new(pid);
	size_t left = BYTES_MAX;
	bool changed, found = false;

	if (live && maps && maps_refresh(maps, &changed) == 0)
		for (size_t i = 0; i < maps_count(maps) && !found; i++)
			if (contains_constants(maps, maps_at(maps, i)))
				found = search_mapping(live_memory_memory(live), maps_at(maps, i), &left,
						       ret_version);
	maps_free(maps);
	live_memory_free(live);
	return found;
}

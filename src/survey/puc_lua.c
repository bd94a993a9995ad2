/* SPDX-License-Identifier: MIT */
#include "src/survey/puc_lua.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "src/linux/files/file_backed.h"
#include "src/linux/files/file_image.h"
#include "src/linux/proc/live_memory.h"
#include "src/linux/proc/maps.h"

enum {
	PIECE = 64 << 10,           /* bytes read at a time */
	OVERLAP = 32,               /* bytes of a piece that are read again with the next one */
	BYTES_MAX = 64 << 20,       /* read in all */
	MEMORY_BYTES_MAX = 8 << 20, /* of these, where the files cannot be read */
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

/* Is it part of the loaded program or library, and cannot be written to, as constants? */
static bool contains_constants(const struct mapping *mapping, const struct mapped_file *file)
{
	return mapping->access & MAPPING_READ && !(mapping->access & MAPPING_WRITE) &&
	       mapping->begin >= file->begin && mapping->end <= file->end;
}

/* What is searched in one mapped file, and how much may yet be read. */
struct search {
	struct memory *memory, *file; /* file: NULL, or the file as far as it is what is mapped */
	size_t left, left_of_memory;
};

/* To read it in the memory would bring it there. */
static bool read_piece(struct search *search, uint64_t at, char *piece, size_t length)
{
	search->left -= length;
	if (search->file && memory_read(search->file, at, piece, length) == MEMORY_OK)
		return true;
	if (search->left_of_memory < length)
		return false;
	search->left_of_memory -= length;
	return memory_read(search->memory, at, piece, length) == MEMORY_OK;
}

static bool search_mapping(struct search *search, const struct mapping *mapping,
			   char ret_version[static PUC_LUA_VERSION_MAX])
{
	char piece[PIECE];

	for (uint64_t at = mapping->begin; at < mapping->end && search->left >= PIECE;
	     at += PIECE - OVERLAP) {
		const size_t length = mapping->end - at < PIECE ? mapping->end - at : PIECE;

		if (read_piece(search, at, piece, length) && find_ident(piece, length, ret_version))
			return true;
	}
	return false;
}

static bool search_mappings(struct search *search, const struct maps *maps, const struct mapped_file *file,
			    char ret_version[static PUC_LUA_VERSION_MAX])
{
	for (size_t i = 0; i < maps_count(maps); i++)
		if (contains_constants(maps_at(maps, i), file) &&
		    search_mapping(search, maps_at(maps, i), ret_version))
			return true;
	return false;
}

/* The file is opened where the process has it. */
static struct file_image *open_image(struct errands *errands, pid_t pid, const struct mapped_file *file)
{
	char path[PATH_MAX];
	const int length = snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, file->path);

	return length < (int)sizeof(path) && !file->deleted ? file_image_open(errands, path, file->base)
							    : NULL;
}

static bool search_file(struct search *search, struct errands *errands, pid_t pid, const struct maps *maps,
			const struct mapped_file *file, char ret_version[static PUC_LUA_VERSION_MAX])
{
	struct file_image *image = open_image(errands, pid, file);
	struct file_backed *backed = image ? file_backed_new(file_image_memory(image), search->memory, maps,
							     pid, file->base)
					   : NULL;
	bool found;

	search->file = backed ? file_backed_memory(backed) : NULL;
	found = search_mappings(search, maps, file, ret_version);
	file_backed_free(backed);
	file_image_close(image);
	return found;
}

bool puc_lua_find(pid_t pid, struct errands *errands, char ret_version[static PUC_LUA_VERSION_MAX])
{
	struct live_memory *live = live_memory_new(pid);
	struct maps *maps = maps_new(pid);
	struct search search = { .left = BYTES_MAX, .left_of_memory = MEMORY_BYTES_MAX };
	bool changed, found = false;

	if (live && maps && maps_refresh(maps, &changed) == 0) {
		search.memory = live_memory_memory(live);
		for (size_t i = 0; i < maps_file_count(maps) && !found; i++)
			if (maps_file_at(maps, i)->executable)
				found = search_file(&search, errands, pid, maps, maps_file_at(maps, i),
						    ret_version);
	}
	maps_free(maps);
	live_memory_free(live);
	return found;
}

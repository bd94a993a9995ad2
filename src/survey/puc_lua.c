/* SPDX-License-Identifier: MIT */
#include "src/survey/puc_lua.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "luajit-layouts/module/elf_headers.h"
#include "src/linux/files/file_backed.h"
#include "src/linux/files/file_image.h"
#include "src/linux/files/file_place.h"
#include "src/linux/proc/live_memory.h"
#include "src/linux/proc/maps.h"

enum {
	PIECE = 64 << 10,           /* bytes read at a time */
	OVERLAP = 32,               /* bytes of a piece that are read again with the next one */
	BYTES_MAX = 64 << 20,       /* read in all */
	MEMORY_BYTES_MAX = 8 << 20, /* of these, where the files cannot be read, or do not tell */
};

static bool is_version(const char *text, size_t length)
{
	return length >= sizeof("5.1") && isdigit((unsigned char)text[0]) && text[1] == '.' &&
	       isdigit((unsigned char)text[2]);
}

/* The ident may stand there without a version, too: in a program that searches for it. */
static bool find_version(const char *bytes, size_t length, const char *ident,
			 char ret_version[static PUC_LUA_VERSION_MAX])
{
	const char *const end = bytes + length;

	while ((bytes = memmem(bytes, (size_t)(end - bytes), ident, strlen(ident)))) {
		bytes += strlen(ident);
		if (!is_version(bytes, (size_t)(end - bytes)))
			continue;
		snprintf(ret_version, PUC_LUA_VERSION_MAX, "%.3s", bytes);
		return true;
	}
	return false;
}

static bool find_ident(const char *bytes, size_t length, char ret_version[static PUC_LUA_VERSION_MAX])
{
	static const char *const idents[] = { "$Lua: Lua ", "$LuaVersion: Lua " };

	for (size_t i = 0; i < sizeof(idents) / sizeof(idents[0]); i++)
		if (find_version(bytes, length, idents[i], ret_version))
			return true;
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
	struct file_owner owner;
	struct memory *file; /* as far as it is what is mapped; or NULL */
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
	return memory_read(search->owner.memory, at, piece, length) == MEMORY_OK;
}

static bool search_range(struct search *search, uint64_t begin, uint64_t end,
			 char ret_version[static PUC_LUA_VERSION_MAX])
{
	char piece[PIECE];

	for (uint64_t at = begin; at < end && search->left >= PIECE; at += PIECE - OVERLAP) {
		const size_t length = end - at < PIECE ? end - at : PIECE;

		if (read_piece(search, at, piece, length) && find_ident(piece, length, ret_version))
			return true;
	}
	return false;
}

/* What is mapped beside the segments, to whole pages, is no part of what is loaded. */
static bool search_mapping(struct search *search, const struct mapping *mapping,
			   const struct elf_headers *headers, uint64_t bias,
			   char ret_version[static PUC_LUA_VERSION_MAX])
{
	for (size_t i = 0; i < headers->elf.e_phnum; i++) {
		const Elf64_Phdr *segment = &headers->segments[i];
		const uint64_t begin = bias + segment->p_vaddr, end = begin + segment->p_filesz;

		if (segment->p_type == PT_LOAD &&
		    search_range(search, begin > mapping->begin ? begin : mapping->begin,
				 end < mapping->end ? end : mapping->end, ret_version))
			return true;
	}
	return false;
}

static bool search_mappings(struct search *search, const struct mapped_file *file,
			    char ret_version[static PUC_LUA_VERSION_MAX])
{
	const struct maps *maps = search->owner.maps;
	struct elf_headers headers;
	uint64_t bias;
	bool found = false;

	if (!elf_headers_read(search->owner.memory, file->base, &headers) ||
	    !elf_headers_bias(&headers, file->base, &bias))
		return false;
	for (size_t i = 0; i < maps_count(maps) && !found; i++)
		found = contains_constants(maps_at(maps, i), file) &&
			search_mapping(search, maps_at(maps, i), &headers, bias, ret_version);
	return found;
}

static struct file_image *open_image(const struct file_owner *owner, const struct mapped_file *file)
{
	struct file_image *image = NULL;
	struct file_place place;

	if (!file_place_find(owner, file, &place))
		return NULL;
	if (place.path)
		image = file_image_open(owner->errands, place.path, file->base);
	file_place_clear(&place);
	return image;
}

static bool search_file(struct search *search, const struct mapped_file *file,
			char ret_version[static PUC_LUA_VERSION_MAX])
{
	const struct file_owner *owner = &search->owner;
	struct file_image *image = open_image(owner, file);
	struct file_backed *backed = image ? file_backed_new(file_image_memory(image), owner->memory,
							     owner->maps, owner->pid, file->base)
					   : NULL;
	bool found;

	search->file = backed ? file_backed_memory(backed) : NULL;
	found = search_mappings(search, file, ret_version);
	file_backed_free(backed);
	file_image_close(image);
	return found;
}

bool puc_lua_find(pid_t pid, struct errands *errands, char ret_version[static PUC_LUA_VERSION_MAX])
{
	struct live_memory *live = live_memory_new(pid);
	struct maps *maps = maps_new(pid);
	struct search search = {
		.owner = { .pid = pid, .maps = maps, .errands = errands },
		.left = BYTES_MAX,
		.left_of_memory = MEMORY_BYTES_MAX,
	};
	bool changed, found = false;

	if (live && maps && maps_refresh(maps, &changed) == 0) {
		search.owner.memory = live_memory_memory(live);
		if (errands)
			live_memory_beware(live, maps, errands);
		for (size_t i = 0; i < maps_file_count(maps) && !found; i++)
			if (maps_file_at(maps, i)->executable)
				found = search_file(&search, maps_file_at(maps, i), ret_version);
	}
	live_memory_free(live);
	maps_free(maps);
	return found;
}

/* SPDX-License-Identifier: MIT */
#include "unwind/lua/package_path.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "memory/page_cache.h"
#include "unwind/lua/lua_table.h"
#include "unwind/lua/luajit.h"

/* package is package.loaded.package, and package.loaded is registry._LOADED (lib_package.c). */
static void find_package(struct memory *live, const struct layout *layout, uint64_t g,
			 struct package_path *path)
{
	/* There may be many modules: their names are small objects close together. */
	struct page_cache *cache = page_cache_new(live);
	struct memory *memory = cache ? page_cache_memory(cache) : live;
	uint64_t registry, loaded;

	if (lua_table_registry(memory, layout, g, &registry) &&
	    lua_table_find_table(memory, layout, registry, "_LOADED", &loaded))
		lua_table_find_table(memory, layout, loaded, "package", &path->table);
	page_cache_free(cache);
}

struct reading {
	struct memory *memory;
	const struct layout *layout;
	char *text; /* NULL: not found */
};

static void visit(void *context, const char *key, uint64_t value)
{
	struct reading *reading = context;
	const struct layout *layout = reading->layout;
	uint64_t string = tvalue_object(layout->gc64, value);
	uint32_t length;
	char *text;

	if (reading->text || strcmp(key, "path") != 0 || tvalue_tag(layout->gc64, value) != TAG_STR ||
	    !memory_u32(reading->memory, string + (uint64_t)layout->GCstr_len, &length))
		return;
	if (length > PACKAGE_PATH_MAX)
		length = PACKAGE_PATH_MAX;
	text = calloc(1, (size_t)length + 1);
	if (text &&
	    memory_read(reading->memory, string + (uint64_t)layout->GCstr_size, text, length) == MEMORY_OK)
		reading->text = text;
	else
		free(text);
}

void package_path_read(struct memory *memory, const struct layout *layout, uint64_t g,
		       struct package_path *path)
{
	struct reading reading = { .memory = memory, .layout = layout };

	if (!path->table)
		find_package(memory, layout, g, path);
	if (path->table)
		lua_table_each(memory, layout, path->table, visit, &reading);
	if (!reading.text) {
		path->table = 0;
		return;
	}
	free(path->text);
	path->text = reading.text;
}

void package_path_clear(struct package_path *path)
{
	free(path->text);
	*path = (struct package_path){ 0 };
}

/* The length of the root of one template, which ends at end. */
static size_t root_of(const char *template, const char *end)
{
	const char *at = memchr(template, '?', (size_t)(end - template));

	while (at && at > template && at[-1] != '/')
		at--;
	return at ? (size_t)(at - template) : 0;
}

size_t package_path_root(const char *templates, const char *file)
{
	size_t longest = 0;

	while (*templates) {
		const char *end = strchrnul(templates, ';');
		size_t length = root_of(templates, end);

		if (length > 1 && length > longest && strncmp(templates, file, length) == 0 && file[length])
			longest = length;
		templates = *end ? end + 1 : end;
	}
	return longest;
}

static bool has_root(const char *list, const char *root, size_t length)
{
	for (const char *end; (end = strchr(list, ';')); list = end + 1)
		if ((size_t)(end - list) == length && memcmp(list, root, length) == 0)
			return true;
	return false;
}

/* Nothing if the list has it, or has no room for it. */
static void add_root(const char *root, size_t length, char *list, size_t size)
{
	size_t used = strlen(list);

	if (length > 1 && !has_root(list, root, length) && used + length + 2 <= size) {
		memcpy(list + used, root, length);
		memcpy(list + used + length, ";", 2);
	}
}

void package_path_add_roots(const char *templates, char *list, size_t size)
{
	while (*templates) {
		const char *end = strchrnul(templates, ';');

		add_root(templates, root_of(templates, end), list, size);
		templates = *end ? end + 1 : end;
	}
}

void package_path_join_roots(const char *others, char *list, size_t size)
{
	for (const char *end; (end = strchr(others, ';')); others = end + 1)
		add_root(others, (size_t)(end - others), list, size);
}

/* SPDX-License-Identifier: MIT */
#include "src/inspect/core_maps.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Write the path as the kernel does. */
static void write_path(FILE *out, const char *path)
{
	for (; *path; path++) {
		if (*path == '\n')
			fputs("\\012", out);
		else
			putc(*path, out);
	}
}

/* An inode for the path, never 0 (FNV-1a). Two paths may share one: paths are compared as well. */
static uint32_t number_of(const char *path)
{
	uint32_t hash = 2166136261u;

	for (; *path; path++)
		hash = (hash ^ (unsigned char)*path) * 16777619u;
	return hash | 1;
}

static void write_mapping(FILE *out, const struct core_file *core, const struct core_mapping *mapping)
{
	fprintf(out, "%" PRIx64 "-%" PRIx64 " %c%c%cp %" PRIx64 " 00:00 %" PRIu32 " ", mapping->begin,
		mapping->end, mapping->flags & PF_R ? 'r' : '-', mapping->flags & PF_W ? 'w' : '-',
		mapping->flags & PF_X ? 'x' : '-', mapping->offset,
		mapping->path ? number_of(mapping->path) : 0);
	if (mapping->path)
		write_path(out, mapping->path);
	else if (mapping->begin == core_file_vdso(core))
		fputs("[vdso]", out);
	putc('\n', out);
}

int core_maps_load(const struct core_file *core, struct maps *maps)
{
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	int error = -ENOMEM;

	if (!out)
		return -ENOMEM;
	for (size_t i = 0; i < core_file_mapping_count(core); i++)
		write_mapping(out, core, core_file_mapping(core, i));
	if (fclose(out) == 0)
		error = maps_parse(maps, text, length);
	free(text);
	return error;
}

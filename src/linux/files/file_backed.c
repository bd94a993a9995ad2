/* SPDX-License-Identifier: MIT */
#include "src/linux/files/file_backed.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "luajit-layouts/module/elf_headers.h"
#include "src/linux/proc/process.h"
#include "src/linux/proc/resident.h"

struct file_backed {
	struct memory memory; /* must be first */
	struct memory *image;
	const struct maps *maps;
	dev_t device;
	uint64_t inode;
	int pagemap;
};

/* Are all pages from begin on of this mapping, as far as end, those of the file? */
static bool mapping_is_backed(const struct mapping *mapping, dev_t device, uint64_t inode, int pagemap,
			      uint64_t begin, uint64_t end)
{
	uint64_t own_begin, own_end;

	return mapping && mapping->inode == inode && mapping->device == device &&
	       !resident_next_private(pagemap, &begin, mapping->end < end ? mapping->end : end, &own_begin,
				      &own_end);
}

static bool is_backed(const struct file_backed *backed, const struct memory_range *range)
{
	const uint64_t page = memory_page_size(), end = range->address + range->length;
	const uint64_t last = end + (page - end % page) % page;
	uint64_t at = range->address - range->address % page;

	if (end < range->address || last < end)
		return false;
	while (at < last) {
		const struct mapping *mapping = maps_find(backed->maps, at);

		if (!mapping_is_backed(mapping, backed->device, backed->inode, backed->pagemap, at, last))
			return false;
		at = mapping->end;
	}
	return true;
}

static void read_ranges(struct memory *memory, struct memory_range *ranges, size_t count)
{
	const struct file_backed *backed = (const struct file_backed *)memory;

	for (size_t i = 0; i < count; i++) {
		if (is_backed(backed, &ranges[i]))
			memory_read_ranges(backed->image, &ranges[i], 1);
		else
			ranges[i].status = MEMORY_NOT_CAPTURED;
	}
}

/* The file may have been replaced since it was mapped. */
static bool begins_alike(struct memory *image, struct memory *live, uint64_t base)
{
	struct elf_headers headers, mapped;

	return elf_headers_read(image, base, &headers) && elf_headers_read(live, base, &mapped) &&
	       memcmp(&headers, &mapped, sizeof(headers)) == 0;
}

struct file_backed *file_backed_new(struct memory *image, struct memory *live, const struct maps *maps,
				    pid_t pid, uint64_t base)
{
	const struct mapping *first = maps_find(maps, base);
	struct file_backed *backed;

	if (!first || first->begin != base || first->offset != 0 || first->inode == 0 ||
	    !begins_alike(image, live, base))
		return NULL;
	backed = malloc(sizeof(*backed));
	if (!backed)
		return NULL;
	*backed = (struct file_backed){
		.memory = { .read_ranges = read_ranges },
		.image = image,
		.maps = maps,
		.device = first->device,
		.inode = first->inode,
		.pagemap = resident_open(process_thread_with_memory(pid)),
	};
	if (backed->pagemap >= 0)
		return backed;
	file_backed_free(backed);
	return NULL;
}

void file_backed_free(struct file_backed *backed)
{
	if (!backed)
		return;
	if (backed->pagemap >= 0)
		close(backed->pagemap);
	free(backed);
}

struct memory *file_backed_memory(struct file_backed *backed)
{
	return &backed->memory;
}

bool file_backed_is_all_code(const struct maps *maps, int pagemap, const struct mapped_file *file)
{
	if (pagemap < 0)
		return false;
	for (size_t i = maps_index(maps, file->begin); i < maps_count(maps); i++) {
		const struct mapping *mapping = maps_at(maps, i);

		if (mapping->begin >= file->end)
			break;
		if (mapping->access & MAPPING_EXECUTE &&
		    !mapping_is_backed(mapping, file->device, file->inode, pagemap, mapping->begin,
				       mapping->end))
			return false;
	}
	return true;
}

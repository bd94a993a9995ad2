/* SPDX-License-Identifier: MIT */
#include "unwind/nginx/variables.h"

#include <string.h>

enum {
	DATA_BYTES_MAX = 16 << 20, /* of the program's data; nginx has 100 KiB */
	PIECE_WORDS = 1024,
};

/* ngx_http_variable_t */
struct entry {
	uint64_t length, name, set, get, data, flags, index;
};

static bool has_name(struct memory *memory, uint64_t address, const char *name)
{
	char found[VARIABLE_NAME_BYTES];
	size_t length = strlen(name);

	return memory_read(memory, address, found, length) == MEMORY_OK && memcmp(found, name, length) == 0;
}

static bool is_code(const struct elf_image *image, uint64_t address)
{
	const struct elf_segment *segment = elf_image_segment(image, address);

	return segment && (segment->flags & PF_X);
}

static bool read_entry(struct memory *memory, const struct elf_image *image, uint64_t address,
		       struct variable *ret_variable)
{
	struct entry entry;

	if (memory_read(memory, address, &entry, sizeof(entry)) != MEMORY_OK || entry.length == 0 ||
	    entry.length >= VARIABLE_NAME_BYTES || (entry.set != 0 && !is_code(image, entry.set)) ||
	    (entry.get != 0 && !is_code(image, entry.get)))
		return false;
	*ret_variable = (struct variable){ .get = entry.get, .data = entry.data };
	return memory_read(memory, entry.name, ret_variable->name, (size_t)entry.length) == MEMORY_OK;
}

static bool read_table(struct memory *memory, const struct elf_image *image, uint64_t address,
		       const char *other, struct variables *ret_variables)
{
	size_t count = 0;

	while (count < VARIABLES_MAX && read_entry(memory, image, address + count * sizeof(struct entry),
						   &ret_variables->table[count]))
		count++;
	ret_variables->count = count;
	return variables_named(ret_variables, other) != NULL;
}

static bool search_piece(struct memory *memory, const struct elf_image *image, uint64_t address, size_t words,
			 const char *const names[2], struct variables *ret_variables)
{
	uint64_t piece[PIECE_WORDS + 1];

	if (memory_read(memory, address, piece, words * sizeof(piece[0])) != MEMORY_OK)
		return false;
	for (size_t i = 0; i + 1 < words; i++)
		if (piece[i] == strlen(names[0]) && elf_image_segment(image, piece[i + 1]) &&
		    has_name(memory, piece[i + 1], names[0]) &&
		    read_table(memory, image, address + i * sizeof(piece[0]), names[1], ret_variables))
			return true;
	return false;
}

static bool search_segment(struct memory *memory, const struct elf_image *image,
			   const struct elf_segment *segment, const char *const names[2],
			   struct variables *ret_variables)
{
	uint64_t begin = (segment->begin + 7) & ~(uint64_t)(sizeof(uint64_t) - 1);
	uint64_t end = segment->end;

	if (end - segment->begin > DATA_BYTES_MAX)
		end = segment->begin + DATA_BYTES_MAX;
	for (; begin + 2 * sizeof(uint64_t) <= end; begin += PIECE_WORDS * sizeof(uint64_t)) {
		uint64_t words = (end - begin) / sizeof(uint64_t);

		/* Pieces overlap by a word: a name's length and address are two. */
		if (search_piece(memory, image, begin, words > PIECE_WORDS ? PIECE_WORDS + 1 : (size_t)words,
				 names, ret_variables))
			return true;
	}
	return false;
}

bool variables_find(struct memory *memory, const struct elf_image *image, const char *first,
		    const char *other, struct variables *ret_variables)
{
	const char *const names[] = { first, other };

	for (size_t i = 0; i < image->segment_count; i++)
		if ((image->segments[i].flags & PF_W) &&
		    search_segment(memory, image, &image->segments[i], names, ret_variables))
			return true;
	return false;
}

const struct variable *variables_named(const struct variables *variables, const char *name)
{
	for (size_t i = 0; i < variables->count; i++)
		if (strcmp(variables->table[i].name, name) == 0)
			return &variables->table[i];
	return NULL;
}

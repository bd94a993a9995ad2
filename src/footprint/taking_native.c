/* SPDX-License-Identifier: MIT */
/* What is not LuaJIT's: malloc(), stacks, data of files. */
#include "src/footprint/taking.h"

#include <elf.h>
#include <string.h>

#include "luajit-layouts/module/elf_headers.h"
#include "memory/memory.h"
#include "src/footprint/pieces/glibc_heap.h"
#include "src/footprint/pieces/thread_stack.h"

/*---- malloc() ----*/

static const struct {
	const char *part; /* of a file's name */
	const char *name;
} libraries[] = {
	/* These replace malloc() of the C library. */
	{ "libjemalloc", "jemalloc" }, { "libtcmalloc", "tcmalloc" }, { "libmimalloc", "mimalloc" },
	{ "ld-musl", "musl" },         { "libc.musl", "musl" },       { "libc.so.6", "glibc" },
	{ "libc-2.", "glibc" },
};

static bool has_file(const struct maps *maps, const char *part)
{
	for (size_t i = 0; i < maps_file_count(maps); i++) {
		const char *path = maps_file_at(maps, i)->path, *slash = strrchr(path, '/');

		if (strncmp(slash ? slash + 1 : path, part, strlen(part)) == 0)
			return true;
	}
	return false;
}

static int claim_arena(struct taking *taking, const struct heap_piece *piece)
{
	struct footprint_malloc *malloc = &taking->report->malloc;

	if (piece->is_told) {
		malloc->arena_bytes += piece->end - piece->begin;
		malloc->free_bytes += piece->free;
	} else {
		malloc->pieces_untold++;
	}
	return taking_claim(taking, piece, FOOTPRINT_MALLOC, FOOTPRINT_MALLOC_FREE, NULL, 0);
}

/* [heap] may be several mappings, one behind the other. */
static int claim_main_arena(struct taking *taking)
{
	const struct maps *maps = taking->smaps.maps;
	const struct mapping *heap = maps_find_path(maps, "[heap]");
	struct heap_piece piece;
	uint64_t end;

	if (!heap)
		return 0;
	end = heap->end;
	for (const struct mapping *next = heap + 1; next < maps_at(maps, 0) + maps_count(maps) &&
						    next->begin == end && strcmp(next->path, heap->path) == 0;
	     next++)
		end = next->end;
	taking->report->malloc.arenas++;
	glibc_heap_main(&taking->window, heap->begin, end, &piece);
	return claim_arena(taking, &piece);
}

static int claim_other_arenas(struct taking *taking, const struct mapping *mapping)
{
	uint64_t base = (mapping->begin + GLIBC_HEAP_ALIGNMENT - 1) & ~(uint64_t)(GLIBC_HEAP_ALIGNMENT - 1);
	int error = 0;

	for (; base < mapping->end && !error; base += GLIBC_HEAP_ALIGNMENT) {
		struct heap_piece piece;
		bool is_first;

		if (!glibc_heap_other(&taking->window, base, mapping->end, &piece, &is_first))
			continue;
		taking->report->malloc.arenas += is_first;
		error = claim_arena(taking, &piece);
	}
	return error;
}

int taking_malloc(struct taking *taking)
{
	const struct maps *maps = taking->smaps.maps;
	int error = claim_main_arena(taking);

	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]) && !taking->report->malloc.name; i++)
		if (has_file(maps, libraries[i].part))
			taking->report->malloc.name = libraries[i].name;
	for (size_t i = 0; i < maps_count(maps) && !error; i++)
		if (taking_is_plain(maps_at(maps, i)))
			error = claim_other_arenas(taking, maps_at(maps, i));
	return error;
}

/*---- Stacks ----*/

/* Threads' stacks are behind a guard, a mapping without any access. */
static bool has_guard(const struct maps *maps, size_t index)
{
	return index > 0 && maps_at(maps, index - 1)->end == maps_at(maps, index)->begin &&
	       maps_at(maps, index - 1)->access == 0;
}

int taking_stacks(struct taking *taking)
{
	const struct maps *maps = taking->smaps.maps;
	int error = 0;

	for (size_t i = 0; i < maps_count(maps) && !error; i++) {
		const struct mapping *mapping = maps_at(maps, i);
		struct heap_piece piece = { 0 };

		if (!taking_is_plain(mapping) || !has_guard(maps, i) ||
		    !thread_stack_find(&taking->window, maps_at(maps, i - 1)->begin, mapping->begin,
				       mapping->end, &piece.begin, &piece.end))
			continue;
		piece.begin = piece.begin > mapping->begin ? piece.begin : mapping->begin;
		error = taking_claim(taking, &piece, FOOTPRINT_STACK, FOOTPRINT_STACK, "of other threads", 0);
	}
	return error;
}

/*---- Data of files ----*/

/* Where the data of a file ends that is mapped at base, by its program headers; 0 if unknown. */
static uint64_t data_end(const struct window *window, uint64_t base)
{
	const uint64_t page = memory_page_size();
	Elf64_Phdr headers[ELF_HEADERS_MAX];
	uint64_t first = UINT64_MAX, last = 0;
	Elf64_Ehdr head;

	if (!window_peek(window, base, &head, sizeof(head)) || !elf_headers_fit(&head) ||
	    !window_peek(window, base + head.e_phoff, headers, head.e_phnum * sizeof(headers[0])))
		return 0;
	for (size_t i = 0; i < head.e_phnum; i++) {
		uint64_t end = headers[i].p_vaddr + headers[i].p_memsz;

		if (headers[i].p_type != PT_LOAD || end < headers[i].p_vaddr)
			continue;
		first = headers[i].p_vaddr < first ? headers[i].p_vaddr : first;
		last = end > last ? end : last;
	}
	if (first >= last)
		return 0;
	first -= first % page;
	return base + (last - first + page - 1) / page * page;
}

/* What a program declares without a value (.bss) is anonymous memory behind its file. */
int taking_data(struct taking *taking)
{
	const struct maps *maps = taking->smaps.maps;
	int error = 0;

	for (size_t i = 0; i < maps_file_count(maps) && !error; i++) {
		const struct mapped_file *file = maps_file_at(maps, i);
		const struct mapping *behind = maps_find(maps, file->end);
		struct heap_piece piece = { .begin = file->end };

		if (!file->executable || !behind || behind->begin != file->end || !taking_is_plain(behind))
			continue;
		piece.end = data_end(&taking->window, file->base);
		piece.end = piece.end < behind->end ? piece.end : behind->end;
		if (piece.end > piece.begin)
			error = taking_claim(taking, &piece, FOOTPRINT_DATA, FOOTPRINT_DATA, file->path, 0);
	}
	return error;
}

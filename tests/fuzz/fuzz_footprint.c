/* SPDX-License-Identifier: MIT */
/*
 * What allocators, nginx and the C library keep in their memory, in memory that may
 * be anything; and smaps files.
 *
 *	input = reader:u8, then for smaps the text, else (place:u16 is_address:u8 value:u32)...
 *
 * Each entry sets a word of otherwise empty memory. A place counts words; addresses
 * begin where the memory begins.
 */
#include <stdlib.h>
#include <string.h>

#include "src/footprint/pieces/glibc_heap.h"
#include "src/footprint/pieces/lj_alloc.h"
#include "src/footprint/pieces/nginx_pool.h"
#include "src/footprint/pieces/slab_zone.h"
#include "src/footprint/pieces/thread_stack.h"
#include "src/footprint/pieces/zone_names.h"
#include "src/linux/pages/smaps.h"
#include "tests/fuzz/fuzz.h"

enum {
	IMAGE_BYTES = 1 << 16,
	BASE = GLIBC_HEAP_ALIGNMENT,
	END = BASE + IMAGE_BYTES,
};

enum reader { SMAPS, LJ_ALLOC, GLIBC, SLAB, STACK, NGINX, READERS };

struct image {
	struct memory memory;
	uint8_t bytes[IMAGE_BYTES];
};

static void read_image(struct memory *memory, struct memory_range *ranges, size_t count)
{
	const struct image *image = (const struct image *)memory;

	for (size_t i = 0; i < count; i++) {
		uint64_t offset = ranges[i].address - BASE;
		bool there = offset <= IMAGE_BYTES && ranges[i].length <= IMAGE_BYTES - offset;

		if (there)
			memcpy(ranges[i].copy, image->bytes + offset, ranges[i].length);
		ranges[i].status = there ? MEMORY_OK : MEMORY_UNMAPPED;
	}
}

static void fill(struct image *image, struct fuzz_input *input)
{
	*image = (struct image){ .memory = { .read_ranges = read_image } };
	while (fuzz_left(input)) {
		uint64_t place = fuzz_take(input, 2) * 8 % IMAGE_BYTES;
		bool is_address = fuzz_take(input, 1) & 1;
		uint64_t value = fuzz_take(input, 4) + (is_address ? BASE : 0);

		memcpy(image->bytes + place, &value, sizeof(value));
	}
}

static void check_piece(const struct heap_piece *piece, uint64_t begin, uint64_t end)
{
	uint64_t here = piece->free_here.exclusive + piece->free_here.shared;

	fuzz_check(piece->begin >= begin && piece->begin < piece->end && piece->end <= end,
		   "a piece is where it was looked for");
	fuzz_check(piece->free <= piece->end - piece->begin && here <= piece->free,
		   "no more is free than there is");
	fuzz_check(piece->is_told || piece->free == 0, "nothing is known of a piece that is not told");
}

static void read_lj_alloc(struct window *window)
{
	struct lj_alloc alloc;
	uint64_t words[2], end;

	if (lj_alloc_read(window, BASE + 16, &alloc) == LJ_ALLOC_OK) {
		for (size_t i = 0; i < alloc.count; i++)
			check_piece(&alloc.segments[i], 0, UINT64_MAX);
		lj_alloc_clear(&alloc);
	}
	if (window_peek(window, BASE, words, sizeof(words)) &&
	    lj_alloc_large(window, BASE, words[0], words[1], END, &end))
		fuzz_check(end > BASE && end <= END, "a large block is where it was looked for");
}

static void read_glibc(struct window *window)
{
	struct heap_piece piece;
	uint64_t words[2], end;
	bool is_first;

	glibc_heap_main(window, BASE, END, &piece);
	check_piece(&piece, BASE, END);
	if (glibc_heap_other(window, BASE, END, &piece, &is_first))
		check_piece(&piece, BASE, END);
	if (window_peek(window, BASE, words, sizeof(words)) &&
	    glibc_heap_large(BASE, words[0], words[1], END, &end))
		fuzz_check(end > BASE && end <= END, "a large block is where it was looked for");
}

static void read_slab(struct window *window)
{
	struct slab_zone zone;

	if (!slab_zone_read(window, BASE, END, &zone))
		return;
	fuzz_check(zone.size == IMAGE_BYTES && zone.usable <= zone.size && zone.free <= zone.usable,
		   "no more is free than there is");
	fuzz_check(strlen(zone.name) < sizeof(zone.name) && strlen(zone.kind) < sizeof(zone.kind),
		   "names end");
}

static void read_stack(struct window *window)
{
	uint64_t begin, end;

	if (thread_stack_find(window, BASE, BASE, END, &begin, &end))
		fuzz_check(begin >= BASE && begin < end && end <= END, "a stack is where it was looked for");
}

static void read_nginx(struct window *window)
{
	char name[SLAB_ZONE_TEXT_MAX];
	struct nginx_pool pool;

	if (nginx_pool_read(window, BASE, &pool))
		fuzz_check(pool.unused <= pool.bytes, "no more is unused than there is");
	if (zone_names_find(window, BASE, BASE + 0x1000, BASE + 0x3000, name))
		fuzz_check(strlen(name) < sizeof(name), "names end");
}

static void read_smaps(const uint8_t *text, size_t length)
{
	struct smaps smaps;

	if (smaps_parse((const char *)text, length, &smaps))
		return;
	for (size_t i = 0; i < maps_count(smaps.maps); i++)
		fuzz_check(smaps.figures[i].rss % 1024 == 0, "figures are of KiB");
	fuzz_check(smaps_are_equal(&smaps, &smaps), "a file is as it is");
	smaps_clear(&smaps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const readers[READERS])(struct window *) = {
		[LJ_ALLOC] = read_lj_alloc, [GLIBC] = read_glibc, [SLAB] = read_slab,
		[STACK] = read_stack,       [NGINX] = read_nginx,
	};
	static struct image image;
	struct fuzz_input input = fuzz_input(data, size);
	enum reader reader = fuzz_take(&input, 1) % READERS;
	struct page_runs runs = { .count = 0 };
	struct window window;

	if (reader == SMAPS) {
		read_smaps(input.at, fuzz_left(&input));
		return 0;
	}
	fill(&image, &input);
	if (page_runs_add(&runs, BASE, END, true) == 0 && window_open(&image.memory, &runs, &window) == 0) {
		readers[reader](&window);
		window_close(&window);
	}
	page_runs_clear(&runs);
	return 0;
}

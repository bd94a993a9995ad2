/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/image.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "luajit-layouts/layout_text.h"

enum { PATH_BYTES_MAX = 4096, LINE_BYTES_MAX = 1024 };

/*---- As memory ----*/

/* The segment that begins last at or before an address, or NULL. */
static struct segment *segment_before(const struct memory_image *image, uint64_t address)
{
	size_t low = 0, high = image->segment_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (image->segments[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &image->segments[low - 1] : NULL;
}

static const uint8_t *find(const struct memory_image *image, uint64_t address, size_t length)
{
	const struct segment *segment = segment_before(image, address);

	if (address >= IMAGE_FREE && address - IMAGE_FREE <= IMAGE_FREE_BYTES &&
	    length <= IMAGE_FREE_BYTES - (address - IMAGE_FREE))
		return image->free_bytes + (address - IMAGE_FREE);
	if (!segment || address - segment->address > segment->length ||
	    length > segment->length - (address - segment->address))
		return NULL;
	return segment->bytes + (address - segment->address);
}

static void read_ranges(struct memory *memory, struct memory_range *ranges, size_t count)
{
	const struct memory_image *image = (const struct memory_image *)memory;

	for (size_t i = 0; i < count; i++) {
		const uint8_t *bytes = find(image, ranges[i].address, ranges[i].length);

		if (bytes)
			memcpy(ranges[i].copy, bytes, ranges[i].length);
		ranges[i].status = bytes || ranges[i].length == 0 ? MEMORY_OK : MEMORY_UNMAPPED;
	}
}

/*---- Loading ----*/

static bool load_registers(const char *text, struct registers *registers)
{
	uint64_t *const places[] = {
		&registers->rax, &registers->rbx, &registers->rcx,   &registers->rdx,         &registers->rsi,
		&registers->rdi, &registers->rbp, &registers->sp,    &registers->r8,          &registers->r9,
		&registers->r10, &registers->r11, &registers->r12,   &registers->r13,         &registers->r14,
		&registers->r15, &registers->pc,  &registers->flags, &registers->call_number,
	};
	char *end;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++, text = end) {
		*places[i] = strtoull(text, &end, 16);
		if (end == text)
			return false;
	}
	return true;
}

static bool load_layout(FILE *file, size_t length, struct layout *layout)
{
	char *text = malloc(length + 1);
	const char *reason;
	FILE *lines;
	bool whole;

	fuzz_check(text && fread(text, 1, length, file) == length, "an image has a layout");
	lines = fmemopen(text, length, "r");
	whole = lines && layout_text_read(lines, layout, &reason) == 0;
	fclose(lines);
	free(text);
	return whole;
}

static bool load_range(struct memory_image *image, FILE *file, uint64_t address, size_t length)
{
	struct segment *segment = &image->segments[image->segment_count];

	if (image->segment_count == SEGMENTS_MAX || length > IMAGE_BYTES_MAX - image->byte_count)
		return false;
	segment->address = address;
	segment->length = length;
	segment->bytes = image->bytes + image->byte_count;
	if (fread(segment->bytes, 1, length, file) != length)
		return false;
	image->segment_count++;
	image->byte_count += length;
	image->word_count += length / sizeof(uint64_t);
	return true;
}

static bool load_line(struct memory_image *image, FILE *file, const char *line)
{
	struct vm_code *vm = &image->vm;
	struct module *module = &image->modules[image->module_count];
	uint64_t address;
	size_t length;

	if (sscanf(line, "range %" SCNx64 " %zu", &address, &length) == 2)
		return load_range(image, file, address, length);
	if (sscanf(line, "layout %zu", &length) == 1)
		return load_layout(file, length, &vm->layout);
	if (image->module_count < MODULES_MAX && sscanf(line, "module %" SCNx64 " %" SCNx64 " %" SCNx64,
							&module->begin, &module->end, &module->base) == 3)
		return ++image->module_count;
	if (strncmp(line, "registers ", 10) == 0)
		return load_registers(line + 10, &image->sound_registers);
	return sscanf(line, "g %" SCNx64, &image->g) == 1 ||
	       sscanf(line, "vm %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64, &vm->begin, &vm->end,
		      &vm->ffi_call, &vm->ffi_call_end) == 4;
}

static char *unpack(const char *path, size_t *ret_length)
{
	char *packed = malloc(IMAGE_BYTES_MAX), *bytes = malloc(IMAGE_BYTES_MAX);
	FILE *file = fopen(path, "r");
	size_t length;

	fuzz_check(packed && bytes && file, path);
	length = fread(packed, 1, IMAGE_BYTES_MAX, file);
	fclose(file);
	length = ZSTD_decompress(bytes, IMAGE_BYTES_MAX, packed, length);
	fuzz_check(!ZSTD_isError(length), path);
	free(packed);
	*ret_length = length;
	return bytes;
}

static struct memory_image *load(const char *path)
{
	struct memory_image *image = calloc(1, sizeof(*image));
	char line[LINE_BYTES_MAX], *unpacked;
	size_t length;
	FILE *file;

	unpacked = unpack(path, &length);
	file = fmemopen(unpacked, length, "r");
	fuzz_check(image && file, path);
	image->memory.read_ranges = read_ranges;
	image->segments = calloc(SEGMENTS_MAX, sizeof(*image->segments));
	image->bytes = malloc(IMAGE_BYTES_MAX);
	fuzz_check(image->segments && image->bytes, path);
	while (fgets(line, sizeof(line), file))
		fuzz_check(load_line(image, file, line), path);
	fclose(file);
	free(unpacked);
	image->sound = malloc(image->byte_count + 1);
	fuzz_check(image->sound && image->word_count, path);
	memcpy(image->sound, image->bytes, image->byte_count);
	return image;
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static size_t load_all(const char *folder, struct memory_image *images[static IMAGES_MAX])
{
	char *paths[IMAGES_MAX];
	struct dirent *entry;
	size_t count = 0;
	DIR *directory = opendir(folder);

	fuzz_check(directory != NULL, folder);
	while (count < IMAGES_MAX && (entry = readdir(directory)))
		if (entry->d_name[0] != '.' && asprintf(&paths[count], "%s/%s", folder, entry->d_name) > 0)
			count++;
	closedir(directory);
	fuzz_check(count > 0, folder);
	qsort(paths, count, sizeof(paths[0]), compare_paths);
	for (size_t i = 0; i < count; i++) {
		images[i] = load(paths[i]);
		free(paths[i]);
	}
	return count;
}

/*---- Spoiling ----*/

/* Bits of an operation. */
enum {
	OP_VALUE = 7,     /* what is written, see value_of() */
	OP_HALF = 8,      /* four bytes, */
	OP_HIGH = 16,     /* ... the upper ones */
	OP_REGISTER = 32, /* to a register, in place of memory */
};

/* The word of this number, counted through all segments; *ret_address is where it lies. */
static uint8_t *word_at(const struct memory_image *image, uint64_t place, uint64_t *ret_address)
{
	size_t number = place % image->word_count;

	for (size_t i = 0; i < image->segment_count; i++) {
		const struct segment *segment = &image->segments[i];
		size_t words = segment->length / sizeof(uint64_t);

		if (number < words) {
			*ret_address = segment->address + number * sizeof(uint64_t);
			return segment->bytes + number * sizeof(uint64_t);
		}
		number -= words;
	}
	abort();
}

static uint64_t value_of(const struct memory_image *image, unsigned int op, uint64_t old,
			 struct fuzz_input *input)
{
	uint64_t address, word;

	switch (op & OP_VALUE) {
	case 0: return fuzz_take(input, 8);
	case 1: /* what another word holds */
		memcpy(&word, word_at(image, fuzz_take(input, 3), &address), sizeof(word));
		return word;
	case 2: /* where another word lies */ word_at(image, fuzz_take(input, 3), &address); return address;
	case 3: return old + (uint64_t)(int64_t)(int16_t)fuzz_take(input, 2);
	case 4: return old ^ fuzz_take(input, 1) << 8 * (fuzz_take(input, 1) % 8);
	case 5: /* the same with another tag, or another address with the same tag */
		return (old & ~(UINT64_C(0x1ffff) << 47)) | fuzz_take(input, 3) << 47;
	case 6: return IMAGE_FREE + fuzz_take(input, 2);
	default: return UINT64_C(1) << fuzz_take(input, 1) % 64;
	}
}

static void change(struct memory_image *image, struct fuzz_input *input)
{
	unsigned int op = (unsigned int)fuzz_take(input, 1);
	uint64_t place = fuzz_take(input, 3), address, value, *held;
	uint8_t *word;

	if (op & OP_REGISTER) {
		held = registers_locate(&image->registers, (int)(place % REGISTER_NUMBERS));
		*held = value_of(image, op, *held, input);
		return;
	}
	word = word_at(image, place, &address);
	memcpy(&value, word, sizeof(value));
	value = value_of(image, op, value, input);
	if (op & OP_HALF)
		memcpy(word + (op & OP_HIGH ? 4 : 0), &value, 4);
	else
		memcpy(word, &value, sizeof(value));
}

static void spoil(struct memory_image *image, struct fuzz_input *input)
{
	memcpy(image->bytes, image->sound, image->byte_count);
	image->registers = image->sound_registers;
	for (uint64_t count = fuzz_take(input, 1); count > 0 && fuzz_left(input); count--)
		change(image, input);
	memset(image->free_bytes, 0, sizeof(image->free_bytes));
	for (size_t at = 0, left = fuzz_left(input); left && at < IMAGE_FREE_BYTES; at += left)
		memcpy(image->free_bytes + at, input->at,
		       left < IMAGE_FREE_BYTES - at ? left : IMAGE_FREE_BYTES - at);
}

struct memory_image *memory_image_choose(const char *folder, struct fuzz_input *input, uint8_t flags,
					 uint8_t *ret_flags)
{
	static struct memory_image *images[IMAGES_MAX];
	static size_t count;
	struct memory_image *image;
	uint8_t choice;

	if (count == 0)
		count = load_all(folder, images);
	choice = (uint8_t)fuzz_take(input, 1);
	*ret_flags = choice & flags;
	image = images[(choice & ~flags) % count];
	spoil(image, input);
	return image;
}

/* SPDX-License-Identifier: MIT */
#include "unwind/elf/image.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "luajit-layouts/module/elf_headers.h"
#include "luajit-layouts/module/elf_image.h"
#include "memory/page_cache.h"

/* Of .eh_frame_hdr's table: the offsets of a function's code and of its FDE, from the header. */
enum { UNWIND_PAIR_BYTES = 8 };

struct image {
	struct memory *live;
	struct page_cache *text;
	char root[IMAGE_ROOT_SIZE];
	struct module *modules;
	size_t module_count;
};

/*---- Modules ----*/

static int compare_modules(const void *a, const void *b)
{
	const struct module *left = a, *right = b;

	return (left->begin > right->begin) - (left->begin < right->begin);
}

static void free_modules(struct image *image)
{
	for (size_t i = 0; i < image->module_count; i++) {
		free(image->modules[i].path);
		free(image->modules[i].file);
	}
	free(image->modules);
	image->modules = NULL;
	image->module_count = 0;
}

/* The loadable segments of an ELF file come by ascending address (ELF, "Program Loading"). */
static void find_holes(struct memory *text, struct module *module)
{
	struct elf_image elf;

	module->hole_count = 0;
	if (elf_image_open(text, module->base, &elf) != ELF_IMAGE_OK)
		return;
	for (size_t i = 1; i < elf.segment_count && module->hole_count < MODULE_HOLES_MAX; i++) {
		const struct module_hole hole = { elf.segments[i - 1].end, elf.segments[i].begin };

		if (hole.begin < hole.end)
			module->holes[module->hole_count++] = hole;
	}
}

static bool is_hole(const struct module *module, uint64_t address)
{
	for (unsigned int i = 0; i < module->hole_count; i++)
		if (address >= module->holes[i].begin && address < module->holes[i].end)
			return true;
	return false;
}

void image_set_modules(struct image *image, struct module *modules, size_t count)
{
	free_modules(image);
	page_cache_forget(image->text);
	if (count)
		qsort(modules, count, sizeof(*modules), compare_modules);
	image->modules = modules;
	image->module_count = count;
	for (size_t i = 0; i < count; i++)
		find_holes(image_text(image), &modules[i]);
}

void image_set_root(struct image *image, const char *root)
{
	if (strlen(root) < sizeof(image->root))
		memcpy(image->root, root, strlen(root) + 1);
}

const char *image_root(const struct image *image)
{
	return image->root;
}

struct module *image_find(const struct image *image, uint64_t address)
{
	size_t low = 0, high = image->module_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (address < image->modules[middle].begin)
			high = middle;
		else if (address >= image->modules[middle].end)
			low = middle + 1;
		else
			return is_hole(&image->modules[middle], address) ? NULL : &image->modules[middle];
	}
	return NULL;
}

enum code_kind image_classify(const struct image *image, uint64_t pc, const struct module **ret_module)
{
	const struct module *module = image_find(image, pc);

	if (ret_module)
		*ret_module = module;
	if (!module || module->made)
		return CODE_UNKNOWN;
	if (module->vm && pc >= module->vm->begin && pc < module->vm->end)
		return CODE_VM;
	if (module->vm && pc >= module->vm->ffi_call && pc < module->vm->ffi_call_end)
		return CODE_VM_FFI_CALL;
	return CODE_NATIVE;
}

bool image_is_made(const struct image *image, uint64_t pc)
{
	return image_classify(image, pc, NULL) == CODE_UNKNOWN;
}

bool image_has_unknown_vm(const struct image *image)
{
	for (size_t i = 0; i < image->module_count; i++)
		if (image->modules[i].unknown_vm)
			return true;
	return false;
}

bool image_in_unknown_vm(const struct image *image, uint64_t pc)
{
	const struct module *module = image_find(image, pc);
	const struct vm_code *vm = module ? module->unknown_vm : NULL;

	return vm && pc >= vm->begin && pc < vm->end;
}

size_t image_module_count(const struct image *image)
{
	return image->module_count;
}

struct module *image_module(const struct image *image, size_t index)
{
	return &image->modules[index];
}

struct memory *image_text(struct image *image)
{
	return page_cache_memory(image->text);
}

struct memory *image_live(const struct image *image)
{
	return image->live;
}

/*---- Unwind tables ----*/

/*
 * .eh_frame_hdr: version, encodings of three fields, then the fields. Linkers
 * write only one form: a 32-bit self-relative pointer, a 32-bit count and a
 * table of pairs of 32-bit offsets from the header.
 */
static bool read_unwind_header(struct memory *text, uint64_t address, const struct module *module,
			       struct unwind_table *table)
{
	enum { VERSION = 1, PCREL_SDATA4 = 0x1b, UDATA4 = 0x03, DATAREL_SDATA4 = 0x3b };
	enum { COUNT_OFFSET = 8, TABLE_OFFSET = 12 };
	uint8_t encoding[4];
	uint32_t count;

	if (memory_read(text, address, encoding, sizeof(encoding)) != MEMORY_OK ||
	    !memory_u32(text, address + COUNT_OFFSET, &count))
		return false;
	if (encoding[0] != VERSION || encoding[1] != PCREL_SDATA4 || encoding[2] != UDATA4 ||
	    encoding[3] != DATAREL_SDATA4)
		return false;
	if (count == 0 || count > (module->end - address) / UNWIND_PAIR_BYTES)
		return false;
	table->header = address;
	table->entries = address + TABLE_OFFSET;
	table->entry_count = count;
	return true;
}

static bool find_unwind_table(struct memory *text, struct module *module)
{
	struct elf_headers headers;
	uint64_t bias;

	if (!elf_headers_read(text, module->base, &headers) ||
	    !elf_headers_bias(&headers, module->base, &bias))
		return false;
	for (size_t i = 0; i < headers.elf.e_phnum; i++) {
		uint64_t address = bias + headers.segments[i].p_vaddr;

		if (headers.segments[i].p_type == PT_GNU_EH_FRAME && address >= module->begin &&
		    address < module->end)
			return read_unwind_header(text, address, module, &module->unwind_table);
	}
	return false;
}

/* Read the module's .eh_frame_hdr, once; false if it has none. */
static bool read_unwind_table(struct image *image, struct module *module)
{
	if (!module->unwind_table.is_searched) {
		module->unwind_table.is_searched = true;
		module->unwind_table.found = find_unwind_table(image_text(image), module);
	}
	return module->unwind_table.found;
}

bool image_unwind_entry(struct image *image, struct module *module, uint64_t address, uint64_t *ret_entry,
			uint64_t *ret_begin)
{
	uint64_t low = 0, high, entry = 0, begin = 0;

	if (!read_unwind_table(image, module))
		return false;
	high = module->unwind_table.entry_count;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		uint64_t at = module->unwind_table.entries + middle * UNWIND_PAIR_BYTES;
		uint32_t offset;

		if (!memory_u32(image_text(image), at, &offset))
			return false;
		if (module->unwind_table.header + (uint64_t)(int32_t)offset <= address) {
			begin = module->unwind_table.header + (uint64_t)(int32_t)offset;
			entry = at;
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	if (begin == 0)
		return false;
	*ret_entry = entry;
	*ret_begin = begin;
	return true;
}

bool image_function(struct image *image, uint64_t address, uint64_t *ret_begin, uint64_t *ret_end)
{
	struct module *module = image_find(image, address);
	uint64_t entry, begin, end, last;
	uint32_t offset;

	if (!module || !image_unwind_entry(image, module, address, &entry, &begin))
		return false;
	last = module->unwind_table.entries + (module->unwind_table.entry_count - 1) * UNWIND_PAIR_BYTES;
	if (entry >= last || !memory_u32(image_text(image), entry + UNWIND_PAIR_BYTES, &offset))
		return false;
	end = module->unwind_table.header + (uint64_t)(int32_t)offset;
	if (end <= address)
		return false;
	*ret_begin = begin;
	*ret_end = end;
	return true;
}

/*---- Life ----*/

struct image *image_new(struct memory *live)
{
	struct image *image = calloc(1, sizeof(*image));

	if (!image)
		return NULL;
	image->live = live;
	image->text = page_cache_new(live);
	if (!image->text) {
		free(image);
		return NULL;
	}
	return image;
}

void image_free(struct image *image)
{
	if (!image)
		return;
	free_modules(image);
	page_cache_free(image->text);
	free(image);
}

/* SPDX-License-Identifier: MIT */
/*
 * ELF files, as a target maps them: headers, exported symbols, unwind tables,
 * PLTs, and the machine code of lua-nginx-module.
 *
 *	input = address:u16 file
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "luajit-layouts/module/elf_image.h"
#include "luajit-layouts/recognise/recognise.h"
#include "memory/snapshot.h"
#include "tests/fuzz/fuzz.h"
#include "unwind/elf/dynamic_symbol.h"
#include "unwind/elf/elf_file.h"
#include "unwind/elf/image.h"
#include "unwind/elf/plt.h"
#include "unwind/lua/request.h"
#include "unwind/native/native.h"
#include "unwind/symbols/symbol_server.h"

enum { BASE = FUZZ_BASE, STEPS_MAX = 64, FILE_BYTES_MAX = 1 << 16 };

/* No process is to be started for what libunwind is not given. */
struct symbol_server *__wrap_symbol_server_start(symbol_server_meanwhile *meanwhile, void *context);
struct symbol_server *__wrap_symbol_server_start(symbol_server_meanwhile *meanwhile, void *context)
{
	(void)meanwhile;
	(void)context;
	return NULL;
}

static void unwind(struct image *image, struct memory *memory, uint64_t pc)
{
	struct symbols *symbols = symbols_new(image, memory, NULL);
	struct native_unwinder *native = native_unwinder_new(image, symbols);
	struct registers leaf = { .pc = pc, .sp = BASE + pc % 4096 / 8 * 8 };

	fuzz_check(symbols && native, "there is memory");
	/* The frame pointer is one of these. */
	for (int number = 0; number < REGISTER_NUMBERS; number++)
		if (registers_are_kept(number))
			*registers_locate(&leaf, number) = BASE + 256;
	native_begin(native, memory, &leaf);
	for (int i = 0; i < STEPS_MAX && native_step(native) == NATIVE_FRAME; i++)
		;
	native_unwinder_free(native);
	symbols_free(symbols);
}

/*
 * Does the file claim much to be mapped? Then it would be made as large, which is slow and teaches nothing.
 */
static bool is_large(const struct fuzz_memory *mapped)
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;

	if (mapped->size < sizeof(header))
		return false;
	memcpy(&header, mapped->bytes, sizeof(header));
	for (uint64_t i = 0; i < header.e_phnum; i++) {
		uint64_t at = header.e_phoff + i * sizeof(segment);

		if (at > mapped->size || sizeof(segment) > mapped->size - at)
			break;
		memcpy(&segment, mapped->bytes + at, sizeof(segment));
		if (segment.p_offset > FILE_BYTES_MAX || segment.p_filesz > FILE_BYTES_MAX)
			return true;
	}
	return false;
}

static void read_file(const struct module *module, struct memory *memory, uint64_t pc)
{
	int fd = elf_file_descriptor(module, memory, NULL);
	struct plt_entry entry;
	Elf *elf;

	if (fd < 0)
		return;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf)
		plt_find(elf, pc - BASE, &entry);
	elf_end(elf);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = fuzz_input(data, size);
	uint64_t pc = BASE + fuzz_take(&input, 2), address, pair, begin;
	struct fuzz_memory mapped = fuzz_memory(&input);
	struct module *modules = calloc(1, sizeof(*modules)), *module;
	struct image *image = image_new(&mapped.memory);
	struct request_layout request;
	struct elf_image elf;
	struct vm_code vm;

	fuzz_check(modules && image, "there is memory");
	*modules = (struct module){
		.begin = BASE, .end = BASE + (1 << 20), .base = BASE, .path = strdup("x")
	};
	image_set_modules(image, modules, 1);
	module = image_module(image, 0);
	elf_image_open(&mapped.memory, BASE, &elf);
	dynamic_symbol_find(&mapped.memory, BASE, "ngx_http_lua_ffi_get_phase", &address);
	request_layout_find(&mapped.memory, EM_X86_64, BASE, &request);
	request_layout_find(&mapped.memory, EM_AARCH64, BASE, &request);
	recognise_vm(&mapped.memory, EM_X86_64, BASE, NULL, NULL, &vm);
	recognise_vm(&mapped.memory, EM_AARCH64, BASE, NULL, NULL, &vm);
	image_unwind_entry(image, module, pc, &pair, &begin);
	unwind(image, &mapped.memory, pc);
	if (!is_large(&mapped))
		read_file(module, &mapped.memory, pc);
	image_free(image);
	return 0;
}

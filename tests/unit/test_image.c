/* SPDX-License-Identifier: MIT */
/* Which module holds an address. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/made_up_memory.h"
#include "unwind/elf/image.h"

enum {
	MODULE = MADE_UP_AT,
	MODULE_END = MODULE + 0x50000,
	CODE_END = MODULE + 0x8100, /* not at a page's end */
	DATA = MODULE + 0x1f000,
	MORE = MODULE + 0x40000,
};

static struct image *image;

/* An ELF file of three segments, mapped from MODULE on. */
static void put_headers(unsigned int magic)
{
	const Elf64_Ehdr elf = { .e_ident = { (uint8_t)magic, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB,
					      EV_CURRENT },
				 .e_machine = EM_X86_64,
				 .e_phoff = sizeof(elf),
				 .e_phentsize = sizeof(Elf64_Phdr),
				 .e_phnum = 4 };
	const Elf64_Phdr segments[] = {
		{ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_memsz = CODE_END - MODULE },
		{ .p_type = PT_NOTE, .p_offset = 0x40, .p_vaddr = 0x40, .p_memsz = 0x20 },
		{ .p_type = PT_LOAD, .p_offset = 0x8000, .p_vaddr = DATA - MODULE, .p_memsz = 0x1000 },
		{ .p_type = PT_LOAD, .p_offset = 0x9000, .p_vaddr = MORE - MODULE, .p_memsz = 0x100 },
	};

	put_bytes(MODULE, &elf, sizeof(elf));
	put_bytes(MODULE + sizeof(elf), segments, sizeof(segments));
}

static void set_modules(void)
{
	struct module *modules = calloc(1, sizeof(*modules));

	assert_non_null(modules);
	*modules = (struct module){ .begin = MODULE, .end = MODULE_END, .base = MODULE };
	image_set_modules(image, modules, 1);
}

static int begin(void **state)
{
	(void)state;
	image = image_new(made_up_memory_begin());
	return image ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	image_free(image);
	return 0;
}

static bool is_native(uint64_t pc)
{
	const struct module *module;
	const enum code_kind kind = image_classify(image, pc, &module);

	assert_int_equal(kind == CODE_NATIVE, module != NULL);
	assert_ptr_equal(image_find(image, pc), module);
	assert_int_equal(image_is_made(image, pc), !module);
	return module;
}

static void what_lies_between_segments_is_not_the_modules(void **state)
{
	(void)state;
	put_headers(ELFMAG0);
	set_modules();
	assert_false(is_native(MODULE - 1));
	assert_true(is_native(MODULE));
	assert_true(is_native(CODE_END - 1));
	assert_false(is_native(CODE_END));
	assert_false(is_native(DATA - 1));
	assert_true(is_native(DATA));
	assert_true(is_native(DATA + 0xfff));
	assert_false(is_native(DATA + 0x1000));
	assert_true(is_native(MORE));
	assert_true(is_native(MODULE_END - 1));
	assert_false(is_native(MODULE_END));
}

static void without_headers_all_is_the_modules(void **state)
{
	(void)state;
	put_headers('?');
	set_modules();
	assert_true(is_native(CODE_END));
	assert_true(is_native(DATA - 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_lies_between_segments_is_not_the_modules, begin, end),
		cmocka_unit_test_setup_teardown(without_headers_all_is_the_modules, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

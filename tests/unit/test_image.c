/* SPDX-License-Identifier: MIT */
/* Which module holds an address, what is there, and where its unwind table has an entry. */
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

/*---- VMs ----*/

static void add_modules(size_t count)
{
	struct module *modules = calloc(count, sizeof(*modules));

	assert_non_null(modules);
	/* By descending addresses, with a gap of a page behind each. */
	for (size_t i = 0; i < count; i++) {
		modules[i].begin = modules[i].base = MODULE + (count - 1 - i) * 0x2000;
		modules[i].end = modules[i].begin + 0x1000;
	}
	image_set_modules(image, modules, count);
}

static void modules_are_found_in_any_order(void **state)
{
	enum { COUNT = 9 };

	(void)state;
	assert_null(image_find(image, MODULE));
	for (size_t count = 1; count <= COUNT; count++) {
		add_modules(count);
		assert_int_equal(image_module_count(image), count);
		for (size_t i = 0; i < count; i++) {
			struct module *module = image_module(image, i);

			assert_int_equal(module->begin, MODULE + i * 0x2000);
			assert_null(image_find(image, module->begin - 1));
			assert_ptr_equal(image_find(image, module->begin), module);
			assert_ptr_equal(image_find(image, module->end - 1), module);
			assert_null(image_find(image, module->end));
		}
	}
	image_set_modules(image, NULL, 0);
	assert_int_equal(image_module_count(image), 0);
	assert_null(image_find(image, MODULE));
}

/* [begin, end) is of this kind, and its surroundings are native code. */
static void assert_kind(uint64_t begin, uint64_t end, enum code_kind kind)
{
	const struct module *module;

	assert_int_equal(image_classify(image, begin - 1, &module), CODE_NATIVE);
	assert_int_equal(image_classify(image, begin, &module), kind);
	assert_ptr_equal(module, image_find(image, begin));
	assert_int_equal(image_classify(image, end - 1, NULL), kind);
	assert_int_equal(image_classify(image, end, NULL), CODE_NATIVE);
}

static void a_modules_vm_is_not_native_code(void **state)
{
	const struct vm_code vm = { .begin = MODULE + 0x2100,
				    .end = MODULE + 0x2200,
				    .ffi_call = MODULE + 0x2300,
				    .ffi_call_end = MODULE + 0x2310 };

	(void)state;
	add_modules(3);
	assert_false(image_has_unknown_vm(image));
	image_module(image, 1)->vm = &vm;
	assert_kind(vm.begin, vm.end, CODE_VM);
	assert_kind(vm.ffi_call, vm.ffi_call_end, CODE_VM_FFI_CALL);
	assert_false(image_has_unknown_vm(image));
	assert_false(image_in_unknown_vm(image, vm.begin));
	/* What was made at run time is no code of a file's. */
	image_module(image, 1)->made = true;
	assert_int_equal(image_classify(image, vm.begin, NULL), CODE_UNKNOWN);
	assert_true(image_is_made(image, vm.begin));
	assert_false(image_is_made(image, MODULE));
}

static void a_vm_may_be_of_unknown_layout(void **state)
{
	const struct vm_code vm = { .begin = MODULE + 0x4100, .end = MODULE + 0x4200 };

	(void)state;
	add_modules(3);
	image_module(image, 2)->unknown_vm = &vm;
	assert_true(image_has_unknown_vm(image));
	assert_false(image_in_unknown_vm(image, vm.begin - 1));
	assert_true(image_in_unknown_vm(image, vm.begin));
	assert_true(image_in_unknown_vm(image, vm.end - 1));
	assert_false(image_in_unknown_vm(image, vm.end));
	assert_false(image_in_unknown_vm(image, MODULE));
	assert_false(image_in_unknown_vm(image, MODULE - 1));
	assert_int_equal(image_classify(image, vm.begin, NULL), CODE_NATIVE);
	image_module(image, 2)->unknown_vm = NULL;
	image_module(image, 0)->unknown_vm = &vm;
	assert_true(image_has_unknown_vm(image));
}

static void a_root_is_kept_if_it_fits(void **state)
{
	char root[IMAGE_ROOT_SIZE + 1];

	(void)state;
	assert_string_equal(image_root(image), "");
	image_set_root(image, "/proc/1/root");
	assert_string_equal(image_root(image), "/proc/1/root");
	memset(root, 'x', sizeof(root));
	root[IMAGE_ROOT_SIZE] = '\0';
	image_set_root(image, root);
	assert_string_equal(image_root(image), "/proc/1/root");
	root[IMAGE_ROOT_SIZE - 1] = '\0';
	image_set_root(image, root);
	assert_string_equal(image_root(image), root);
	assert_ptr_equal(image_live(image), &made_up_memory.memory);
}

static void text_is_read_once_for_a_set_of_modules(void **state)
{
	uint32_t word;

	(void)state;
	put(MODULE, 1, 4);
	set_modules();
	assert_true(memory_u32(image_text(image), MODULE, &word));
	put(MODULE, 2, 4);
	assert_true(memory_u32(image_text(image), MODULE, &word));
	assert_int_equal(word, 1);
	set_modules();
	assert_true(memory_u32(image_text(image), MODULE, &word));
	assert_int_equal(word, 2);
}

static void a_few_holes_are_kept(void **state)
{
	enum { SEGMENTS = MODULE_HOLES_MAX + 2, STRIDE = 0x1000 };
	Elf64_Phdr segments[SEGMENTS] = { 0 };

	(void)state;
	put_headers(ELFMAG0);
	put(MODULE + offsetof(Elf64_Ehdr, e_phnum), SEGMENTS, 2);
	for (size_t i = 0; i < SEGMENTS; i++)
		segments[i] = (Elf64_Phdr){
			.p_type = PT_LOAD, .p_offset = i, .p_vaddr = i * STRIDE, .p_memsz = STRIDE / 2
		};
	put_bytes(MODULE + sizeof(Elf64_Ehdr), segments, sizeof(segments));
	set_modules();
	assert_int_equal(image_module(image, 0)->hole_count, MODULE_HOLES_MAX);
	for (size_t i = 0; i < MODULE_HOLES_MAX; i++)
		assert_false(is_native(MODULE + i * STRIDE + STRIDE / 2));
	assert_true(is_native(MODULE + MODULE_HOLES_MAX * STRIDE + STRIDE / 2));
	/* The next set of modules has its own. */
	set_modules();
	assert_int_equal(image_module(image, 0)->hole_count, MODULE_HOLES_MAX);
}

/*---- Unwind tables ----*/

enum {
	HEADER = MODULE + 0x1000, /* .eh_frame_hdr */
	COUNT_AT = HEADER + 8,
	ENTRIES = HEADER + 12,
	ENTRY_BYTES = 8,
	CODE = MODULE + 0x400, /* of the first entry, below the header; each is of 0x100 bytes */
	CODE_BYTES = 0x100,
	ENTRY_COUNT = 5,
};

static struct module *set_module_to(uint64_t end)
{
	set_modules();
	image_module(image, 0)->end = end;
	return image_module(image, 0);
}

/* A module with a table of five functions, one behind the other. */
static void put_table(void)
{
	const Elf64_Phdr segment = { .p_type = PT_GNU_EH_FRAME, .p_vaddr = HEADER - MODULE };

	put_headers(ELFMAG0);
	put_bytes(MODULE + sizeof(Elf64_Ehdr) + sizeof(segment), &segment, sizeof(segment));
	put(HEADER, 0x3b031b01, 4);
	put(COUNT_AT, ENTRY_COUNT, 4);
	for (uint64_t i = 0; i < ENTRY_COUNT; i++)
		put(ENTRIES + i * ENTRY_BYTES, CODE + i * CODE_BYTES - HEADER, 4);
}

static bool has_table(uint64_t end)
{
	uint64_t entry = 1, begin = 1;
	bool found;

	found = image_unwind_entry(image, set_module_to(end), CODE, &entry, &begin);
	assert_int_equal(entry, found ? ENTRIES : 1);
	assert_int_equal(begin, found ? CODE : 1);
	return found;
}

static void an_entry_holds_what_is_behind_its_beginning(void **state)
{
	struct module *module;
	uint64_t entry = 1, begin = 1;

	(void)state;
	put_table();
	module = set_module_to(MODULE_END);
	assert_false(image_unwind_entry(image, module, CODE - 1, &entry, &begin));
	assert_int_equal(entry, 1);
	for (uint64_t i = 0; i < ENTRY_COUNT; i++) {
		for (uint64_t offset = 0; offset < CODE_BYTES; offset += CODE_BYTES - 1) {
			assert_true(image_unwind_entry(image, module, CODE + i * CODE_BYTES + offset, &entry,
						       &begin));
			assert_int_equal(entry, ENTRIES + i * ENTRY_BYTES);
			assert_int_equal(begin, CODE + i * CODE_BYTES);
		}
	}
	assert_true(image_unwind_entry(image, module, UINT64_MAX, &entry, &begin));
	assert_int_equal(begin, CODE + (ENTRY_COUNT - 1) * CODE_BYTES);
	assert_int_equal(module->unwind_table.header, HEADER);
}

/* Linkers write only one form. */
static void another_form_is_no_table(void **state)
{
	(void)state;
	put_table();
	assert_true(has_table(MODULE_END));
	for (size_t i = 0; i < 4; i++) {
		const uint8_t right = made_up_memory.bytes[HEADER - MADE_UP_AT + i];

		put(HEADER + i, right + 1U, 1);
		assert_false(has_table(MODULE_END));
		put(HEADER + i, right, 1);
	}
	assert_true(has_table(MODULE_END));
}

static void a_table_is_within_its_module(void **state)
{
	(void)state;
	put_table();
	/* As many entries as the rest of the module could hold, and one more. */
	assert_true(has_table(HEADER + ENTRY_COUNT * ENTRY_BYTES));
	assert_false(has_table(HEADER + ENTRY_COUNT * ENTRY_BYTES - 1));
	assert_false(has_table(HEADER));
	put(COUNT_AT, 0, 4);
	assert_false(has_table(MODULE_END));
	put(COUNT_AT, UINT32_MAX, 4);
	assert_false(has_table(MODULE_END));
	/* One that lies before the module, or just behind it. */
	put(COUNT_AT, ENTRY_COUNT, 4);
	set_modules();
	image_module(image, 0)->begin = HEADER + 1;
	assert_false(
		image_unwind_entry(image, image_module(image, 0), CODE, &(uint64_t){ 0 }, &(uint64_t){ 0 }));
	set_modules();
	image_module(image, 0)->begin = HEADER;
	assert_true(
		image_unwind_entry(image, image_module(image, 0), CODE, &(uint64_t){ 0 }, &(uint64_t){ 0 }));
}

static void a_function_ends_where_the_next_begins(void **state)
{
	uint64_t begin = 1, end = 1;

	(void)state;
	put_table();
	set_module_to(MODULE_END);
	assert_false(image_function(image, CODE - 1, &begin, &end));
	for (uint64_t i = 0; i + 1 < ENTRY_COUNT; i++) {
		assert_true(image_function(image, CODE + (i + 1) * CODE_BYTES - 1, &begin, &end));
		assert_int_equal(begin, CODE + i * CODE_BYTES);
		assert_int_equal(end, CODE + (i + 1) * CODE_BYTES);
	}
	/* The table does not tell where the last one ends. */
	begin = end = 1;
	assert_false(image_function(image, CODE + (ENTRY_COUNT - 1) * CODE_BYTES, &begin, &end));
	assert_false(image_function(image, MODULE - 1, &begin, &end));
	assert_int_equal(begin, 1);
	assert_int_equal(end, 1);
}

static void a_header_is_needed_to_find_the_table(void **state)
{
	const uint64_t phnum = MODULE + offsetof(Elf64_Ehdr, e_phnum), segments = MODULE + sizeof(Elf64_Ehdr);
	static const struct {
		size_t at;
		uint8_t wrong;
	} faults[] = { { EI_MAG0, '?' },
		       { EI_CLASS, ELFCLASS32 },
		       { offsetof(Elf64_Ehdr, e_phentsize), 1 },
		       { offsetof(Elf64_Ehdr, e_phoff) + 7, 1 },
		       { offsetof(Elf64_Ehdr, e_phnum), 65 },
		       { offsetof(Elf64_Ehdr, e_phnum), 1 } };

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		put_table();
		assert_true(has_table(MODULE_END));
		put(MODULE + faults[i].at, faults[i].wrong, 1);
		assert_false(has_table(MODULE_END));
	}
	put_table();
	put(phnum, 64, 2);
	assert_true(has_table(MODULE_END));
	/* Without a segment that maps the file's beginning, nobody knows where the others are. */
	put(segments + offsetof(Elf64_Phdr, p_offset), 0x1000, 8);
	assert_false(has_table(MODULE_END));
	put_table();
	put(segments, PT_NULL, 4);
	assert_false(has_table(MODULE_END));
}

static void segments_say_where_they_are_to_be_mapped(void **state)
{
	enum { WANTED = 0x400000 };
	const uint64_t segments = MODULE + sizeof(Elf64_Ehdr);

	(void)state;
	put_table();
	put(segments + offsetof(Elf64_Phdr, p_vaddr), WANTED, 8);
	assert_false(has_table(MODULE_END));
	put(segments + sizeof(Elf64_Phdr) + offsetof(Elf64_Phdr, p_vaddr), WANTED + HEADER - MODULE, 8);
	assert_true(has_table(MODULE_END));
}

static void a_table_that_cannot_be_read_has_no_entries(void **state)
{
	enum { END = MADE_UP_AT + MADE_UP_BYTES };
	const uint64_t place = MODULE + sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr) +
			       offsetof(Elf64_Phdr, p_vaddr);
	uint64_t entry, begin;

	(void)state;
	put_table();
	/* Not all of it is mapped. */
	put(place, END - 16 - MODULE, 8);
	put(END - 16, 0x3b031b01, 4);
	put(END - 8, 1000, 4);
	assert_false(image_unwind_entry(image, set_module_to(MODULE_END), CODE, &entry, &begin));
	put(place, END - 8 - MODULE, 8);
	put(END - 8, 0x3b031b01, 4);
	assert_false(image_unwind_entry(image, set_module_to(MODULE_END), CODE, &entry, &begin));
	put(place, END - MODULE, 8);
	assert_false(image_unwind_entry(image, set_module_to(MODULE_END), CODE, &entry, &begin));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_lies_between_segments_is_not_the_modules, begin, end),
		cmocka_unit_test_setup_teardown(without_headers_all_is_the_modules, begin, end),
		cmocka_unit_test_setup_teardown(modules_are_found_in_any_order, begin, end),
		cmocka_unit_test_setup_teardown(a_modules_vm_is_not_native_code, begin, end),
		cmocka_unit_test_setup_teardown(a_vm_may_be_of_unknown_layout, begin, end),
		cmocka_unit_test_setup_teardown(a_root_is_kept_if_it_fits, begin, end),
		cmocka_unit_test_setup_teardown(text_is_read_once_for_a_set_of_modules, begin, end),
		cmocka_unit_test_setup_teardown(a_few_holes_are_kept, begin, end),
		cmocka_unit_test_setup_teardown(an_entry_holds_what_is_behind_its_beginning, begin, end),
		cmocka_unit_test_setup_teardown(a_function_ends_where_the_next_begins, begin, end),
		cmocka_unit_test_setup_teardown(another_form_is_no_table, begin, end),
		cmocka_unit_test_setup_teardown(a_table_is_within_its_module, begin, end),
		cmocka_unit_test_setup_teardown(a_header_is_needed_to_find_the_table, begin, end),
		cmocka_unit_test_setup_teardown(segments_say_where_they_are_to_be_mapped, begin, end),
		cmocka_unit_test_setup_teardown(a_table_that_cannot_be_read_has_no_entries, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

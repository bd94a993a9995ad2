/* SPDX-License-Identifier: MIT */
/*
 * The interpreter is found by its instructions where it was by its unwind
 * entry, in builds of both machines; and what only x86-64 code tells is not
 * read from another machine's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/range_bytes.h"
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "luajit-layouts/module/vm_code_arm64.h"
#include "luajit-layouts/module/vm_find.h"
#include "luajit-layouts/recognise/recognise.h"
#include "unwind/lua/request.h"

enum { BASE = 0x10000000, BYTES_MAX = 4 << 20 };

static const char *const suites[] = { "bullseye", "bookworm", "trixie", "sid" };

/* A file as the loader maps it, apart from relocations. */
struct mapped {
	struct memory memory;
	uint8_t bytes[BYTES_MAX];
	uint16_t machine;
};

static void read_mapped(struct memory *memory, struct memory_range *ranges, size_t count)
{
	const struct mapped *mapped = (const struct mapped *)memory;

	range_bytes(ranges, count, BASE, mapped->bytes, BYTES_MAX);
}

static Elf64_Phdr *program_headers(struct mapped *mapped, size_t *ret_count)
{
	const Elf64_Ehdr *header = (const void *)mapped->bytes;

	*ret_count = header->e_phnum;
	return (void *)(mapped->bytes + header->e_phoff);
}

static bool map(struct mapped *mapped, const char *path)
{
	FILE *file = fopen(path, "rb");
	Elf64_Phdr *headers;
	size_t count;

	memset(mapped, 0, sizeof(*mapped));
	mapped->memory.read_ranges = read_mapped;
	if (file == NULL)
		return false;
	/* The first segment holds the headers, and begins where the file does. */
	assert_true(fread(mapped->bytes, 1, 4096, file) == 4096);
	headers = program_headers(mapped, &count);
	mapped->machine = ((const Elf64_Ehdr *)(const void *)mapped->bytes)->e_machine;
	for (size_t i = 0; i < count; i++) {
		if (headers[i].p_type != PT_LOAD)
			continue;
		assert_true(headers[i].p_vaddr + headers[i].p_memsz <= BYTES_MAX);
		assert_int_equal(fseek(file, (long)headers[i].p_offset, SEEK_SET), 0);
		assert_int_equal(fread(mapped->bytes + headers[i].p_vaddr, 1, headers[i].p_filesz, file),
				 headers[i].p_filesz);
	}
	fclose(file);
	return true;
}

static void hide_unwind_entries(struct mapped *mapped)
{
	size_t count;
	Elf64_Phdr *headers = program_headers(mapped, &count);

	for (size_t i = 0; i < count; i++)
		if (headers[i].p_type == PT_GNU_EH_FRAME)
			headers[i].p_type = PT_NULL;
}

static bool is_found_either_way(struct mapped *mapped, const char *package, const char *suite)
{
	struct vm_code by_entry, by_instructions;
	char path[256];

	snprintf(path, sizeof(path), "build/packages/%s/%s/usr/bin/luajit", suite, package);
	if (!map(mapped, path))
		return false;
	assert_int_equal(recognise_vm(&mapped->memory, mapped->machine, BASE, NULL, NULL, &by_entry),
			 RECOGNISE_OK);
	hide_unwind_entries(mapped);
	assert_int_equal(recognise_vm(&mapped->memory, mapped->machine, BASE, NULL, NULL, &by_instructions),
			 RECOGNISE_OK);
	assert_int_equal(by_instructions.begin, by_entry.begin);
	assert_int_equal(by_instructions.end, by_entry.end);
	assert_int_equal(by_instructions.ffi_call, by_entry.ffi_call);
	assert_int_equal(by_instructions.ffi_call_end, by_entry.ffi_call_end);
	assert_null(layout_conflict(&by_instructions.layout, &by_entry.layout));
	return true;
}

static void the_vm_is_found_without_its_unwind_entry(void **state)
{
	struct mapped *mapped = malloc(sizeof(*mapped));
	unsigned tried = 0;

	(void)state;
	assert_non_null(mapped);
	for (size_t i = 0; i < sizeof(suites) / sizeof(suites[0]); i++) {
		tried += is_found_either_way(mapped, "luajit", suites[i]);
		tried += is_found_either_way(mapped, "luajit-arm64", suites[i]);
	}
	free(mapped);
	if (tried == 0) {
		print_message("skipped: no LuaJIT under build/packages\n");
		skip();
	}
}

/* In builds for control-flow checks each handler begins with endbr64, the first one, too. */
static void a_target_of_branches_before_the_first_handler_is_the_vms(void **state)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	struct mapped *mapped = malloc(sizeof(*mapped));
	unsigned tried = 0;

	(void)state;
	assert_non_null(mapped);
	for (size_t i = 0; i < sizeof(suites) / sizeof(suites[0]); i++) {
		struct vm_code without, with;
		char path[256];

		snprintf(path, sizeof(path), "build/packages/%s/luajit/usr/bin/luajit", suites[i]);
		if (!map(mapped, path) || mapped->machine != EM_X86_64)
			continue;
		hide_unwind_entries(mapped);
		assert_int_equal(recognise_vm(&mapped->memory, EM_X86_64, BASE, NULL, NULL, &without),
				 RECOGNISE_OK);
		memcpy(mapped->bytes + (without.begin - BASE) - sizeof(endbr64), endbr64, sizeof(endbr64));
		assert_int_equal(recognise_vm(&mapped->memory, EM_X86_64, BASE, NULL, NULL, &with),
				 RECOGNISE_OK);
		assert_int_equal(with.begin, without.begin - sizeof(endbr64));
		assert_int_equal(with.end, without.end);
		tried++;
	}
	free(mapped);
	if (tried == 0) {
		print_message("skipped: no LuaJIT under build/packages\n");
		skip();
	}
}

/* The field that tells releases of 2015 to 2020 apart. */
static void assert_shows_gcroot(const struct mapped *mapped, const struct vm_code *vm)
{
	struct vm_code_evidence evidence;

	assert_int_equal(vm_code_arm64_read(mapped->bytes + (vm->begin - BASE), vm->end - vm->begin,
					    vm->begin, &evidence),
			 VM_CODE_OK);
	assert_int_equal(evidence.offsets.g_gcroot, vm->layout.g_gcroot);
}

/* Of the rows for arm64, the one of its release fits the code, down to the C frame. */
static void an_arm64_build_has_the_layout_of_its_release(void **state)
{
	static const struct {
		const char *suite, *name;
		int32_t cframe_L;
	} releases[] = {
		{ "bullseye", "20200930-debian-arm64", 176 },
		{ "bookworm", "20200930-luajit-gc64", 16 },
		{ "trixie", "20200930-luajit-gc64", 16 },
		{ "sid", "20200930-luajit-gc64", 16 },
	};
	struct mapped *mapped = malloc(sizeof(*mapped));
	unsigned tried = 0;

	(void)state;
	assert_non_null(mapped);
	for (size_t i = 0; i < sizeof(releases) / sizeof(releases[0]); i++) {
		struct vm_code vm;
		char path[256];

		snprintf(path, sizeof(path), "build/packages/%s/luajit-arm64/usr/bin/luajit",
			 releases[i].suite);
		if (!map(mapped, path))
			continue;
		assert_int_equal(recognise_vm(&mapped->memory, EM_AARCH64, BASE, NULL, NULL, &vm),
				 RECOGNISE_OK);
		assert_string_equal(vm.layout.name, releases[i].name);
		assert_int_equal(vm.layout.CFRAME_L, releases[i].cframe_L);
		assert_shows_gcroot(mapped, &vm);
		tried++;
	}
	free(mapped);
	if (tried == 0) {
		print_message("skipped: no LuaJIT for arm64 under build/packages\n");
		skip();
	}
}

static void refuse_to_be_read(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	(void)ranges;
	(void)count;
	fail_msg("nothing is to be read");
}

static void requests_are_not_looked_for_in_code_of_another_machine(void **state)
{
	struct memory memory = { .read_ranges = refuse_to_be_read };
	struct request_layout layout;

	(void)state;
	assert_false(request_layout_find(&memory, EM_AARCH64, BASE, &layout));
}

static uint64_t bytes_read;

static void read_vast(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	for (size_t i = 0; i < count; i++) {
		memset(ranges[i].copy, 0, ranges[i].length);
		ranges[i].status = MEMORY_OK;
		bytes_read += ranges[i].length;
	}
}

/* Large segments may lie on each other. */
static void so_much_code_is_searched_and_no_more(void **state)
{
	enum { SEGMENT_BYTES = 256 << 20, CODE_BYTES = 1 << 30 };
	struct memory memory = { .read_ranges = read_vast };
	struct elf_image image = { .machine = EM_X86_64, .segment_count = 5 };
	struct vm_extent extent;

	(void)state;
	for (size_t i = 0; i < image.segment_count; i++)
		image.segments[i] = (struct elf_segment){ .end = SEGMENT_BYTES, .flags = PF_R | PF_X };
	bytes_read = 0;
	assert_int_equal(vm_find_by_dispatch(&memory, &image, &extent), VM_FIND_UNREADABLE);
	assert_in_range(bytes_read, CODE_BYTES, CODE_BYTES + CODE_BYTES / 1024);
	image.segment_count = 4;
	assert_int_equal(vm_find_by_dispatch(&memory, &image, &extent), VM_FIND_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_vm_is_found_without_its_unwind_entry),
		cmocka_unit_test(a_target_of_branches_before_the_first_handler_is_the_vms),
		cmocka_unit_test(an_arm64_build_has_the_layout_of_its_release),
		cmocka_unit_test(so_much_code_is_searched_and_no_more),
		cmocka_unit_test(requests_are_not_looked_for_in_code_of_another_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

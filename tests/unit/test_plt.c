/* SPDX-License-Identifier: MIT */
/* Entries of this program's own procedure linkage table: each leads to the function that it imports. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <gelf.h>

#include "unwind/elf/plt.h"

static Elf *elf;
static int file;

static int begin(void **state)
{
	(void)state;
	elf_version(EV_CURRENT);
	file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	elf = elf_begin(file, ELF_C_READ, NULL);
	return elf ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	elf_end(elf);
	close(file);
	return 0;
}

/* The section of that name. */
static bool find_section(const char *wanted, GElf_Shdr *ret_header)
{
	Elf_Scn *section = NULL;
	size_t names;

	assert_int_equal(elf_getshdrstrndx(elf, &names), 0);
	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, ret_header) &&
		    strcmp(elf_strptr(elf, names, ret_header->sh_name), wanted) == 0)
			return true;
	return false;
}

/* How many entries of a section have this name? Adds how many addresses of these entries have it. */
static size_t count_named(const char *section, const char *name, size_t *addresses)
{
	GElf_Shdr header;
	size_t count = 0;

	if (!find_section(section, &header))
		return 0;
	if (header.sh_entsize == 0) /* by lld */
		header.sh_entsize = 16;
	for (uint64_t begin = header.sh_addr; begin < header.sh_addr + header.sh_size;
	     begin += header.sh_entsize) {
		struct plt_entry entry;

		if (!plt_find(elf, begin, &entry) || !entry.name || strcmp(entry.name, name) != 0)
			continue;
		count++;
		for (uint64_t address = begin; address < begin + header.sh_entsize; address++)
			*addresses += plt_find(elf, address, &entry) && entry.name &&
				      strcmp(entry.name, name) == 0;
	}
	return count;
}

static void entries_have_the_names_of_imports(void **state)
{
	static const char *const imported[] = { "elf_begin", "gelf_getshdr", "elf_strptr" };
	GElf_Shdr header;

	(void)state;
	if (!find_section(".plt", &header) && !find_section(".plt.sec", &header))
		skip();
	for (size_t i = 0; i < sizeof(imported) / sizeof(imported[0]); i++) {
		size_t addresses = 0;
		size_t begins = count_named(".plt", imported[i], &addresses) +
				count_named(".plt.sec", imported[i], &addresses) +
				count_named(".plt.got", imported[i], &addresses);

		assert_int_equal(begins, 1);
		assert_in_range(addresses, 2, 16);
	}
}

static void what_is_no_entry_has_no_name(void **state)
{
	GElf_Shdr text, plt;
	struct plt_entry entry = { .name = "as before" };

	(void)state;
	assert_true(find_section(".text", &text));
	for (uint64_t address = text.sh_addr; address < text.sh_addr + 256; address++)
		assert_false(plt_find(elf, address, &entry));
	assert_false(plt_find(elf, 0, &entry));
	assert_false(plt_find(elf, UINT64_MAX, &entry));
	/* The first entry of .plt leads to the loader. */
	if (find_section(".plt", &plt) && plt.sh_size > 32)
		assert_false(plt_find(elf, plt.sh_addr, &entry));
	assert_string_equal(entry.name, "as before");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_have_the_names_of_imports),
		cmocka_unit_test(what_is_no_entry_has_no_name),
	};

	return cmocka_run_group_tests(tests, begin, end);
}

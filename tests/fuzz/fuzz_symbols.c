/* SPDX-License-Identifier: MIT */
/*
 * Symbols and debug info of a file. In ljspy libdw reads them in a process of
 * its own, since it has faults that are not ours to mend: what it does to that
 * process is no finding, and here it is not asked for more than symbol tables.
 *
 *	input = address:u16 file
 */
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "unwind/symbols/symbol_file.h"

enum { BASE = 0x400000, EXTENT = 1 << 20 };

/* What libdw and libelf forget to free of a file that is broken. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libelf\nleak:libdw\n";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = fuzz_input(data, size);
	uint64_t address = BASE + fuzz_take(&input, 2);
	struct symbol symbols[SYMBOL_INLINES_MAX];
	const struct symbol_source source = {
		.fd = fuzz_file(input.at, fuzz_left(&input)),
		.base = BASE,
		.end = BASE + EXTENT,
		.root = "/nonexistent",
		.path = "/nonexistent",
		.plain = true,
	};
	struct symbol_file *file = symbol_file_open(&source);

	if (!file)
		return 0;
	for (int i = 0; i < 4; i++) {
		size_t count = symbol_file_find(file, address + (uint64_t)i * 64, symbols);

		fuzz_check(count <= SYMBOL_INLINES_MAX, "no more symbols than there is room for");
	}
	symbol_file_covers(file, address);
	symbol_file_close(file);
	return 0;
}

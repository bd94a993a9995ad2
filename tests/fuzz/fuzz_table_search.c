/* SPDX-License-Identifier: MIT */
/*
 * The search for an unwind table in a file that does not tell where it is.
 *
 *	input = file
 */
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "unwind/symbols/table_entry.h"
#include "unwind/symbols/table_search.h"

/* Is it a table: entries one behind the other, the first one a CIE, up to an end mark? */
static bool is_table(const struct unwind_entries *entries)
{
	enum { WORD = 4 };
	size_t at = 0;

	while (entries->length - at > WORD) {
		struct table_reader reader = { .at = entries->bytes + at,
					       .end = entries->bytes + entries->length - WORD };
		const uint32_t length = table_u32(&reader), to_cie = table_u32(&reader);

		if (reader.failed || length < WORD || length > entries->length - WORD - at - WORD ||
		    (at == 0 && to_cie != 0))
			return false;
		at += WORD + length;
	}
	return entries->length - at == WORD && entries->bytes[at] == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const int fd = fuzz_file(data, size);
	struct unwind_entries entries;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && table_search(elf, &entries))
		fuzz_check(is_table(&entries), "what is found is a table");
	elf_end(elf);
	close(fd);
	return 0;
}

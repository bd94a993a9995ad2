/* SPDX-License-Identifier: MIT */
/*
 * Debug info, read for the layout of LuaJIT's structures.
 */
#include <stdio.h>
#include <unistd.h>

#include "luajit-layouts/module/dwarf_layout.h"
#include "tests/fuzz/fuzz.h"

/* What libdw and libelf forget to free of a file that is broken. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libelf\nleak:libdw\n";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct layout layout;
	char path[32];
	int fd = fuzz_file(data, size);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (dwarf_layout_read(path, &layout) == DWARF_LAYOUT_OK) {
		layout_missing(&layout);
		layout_unusable(&layout);
	}
	close(fd);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Layout files: what is read reads the same once it is written.
 */
#include <stdlib.h>
#include <string.h>

#include "luajit-layouts/layout_text.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct layout layout, again;
	const char *reason = NULL;
	FILE *file = fuzz_stream(data, size), *out;
	unsigned int line = layout_text_read(file, &layout, &reason);
	size_t length = 0;
	char *text = NULL;

	fclose(file);
	if (line) {
		fuzz_check(reason != NULL, "a bad line has a reason");
		return 0;
	}
	layout_unusable(&layout);
	layout_missing(&layout);
	out = open_memstream(&text, &length);
	fuzz_check(out != NULL, "memory can be written to");
	layout_text_write(&layout, out);
	fclose(out);
	file = fuzz_stream((const uint8_t *)text, length);
	fuzz_check(layout_text_read(file, &again, &reason) == 0, "what is written can be read");
	fuzz_check(layout_conflict(&layout, &again) == NULL && strcmp(layout.name, again.name) == 0,
		   "it is the same");
	fclose(file);
	free(text);
	return 0;
}

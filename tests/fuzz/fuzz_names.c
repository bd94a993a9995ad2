/* SPDX-License-Identifier: MIT */
/*
 * Names of a target: demangled, cut, sorted into modules and escaped.
 */
#include <stdlib.h>
#include <string.h>

#include "output/labels/escape.h"
#include "output/labels/frame_label.h"
#include "output/labels/module_path.h"
#include "unwind/lua/package_path.h"
#include "tests/fuzz/fuzz.h"
#include "unwind/lua/request.h"
#include "unwind/symbols/demangle.h"

static void check_escaped(const char *text, size_t size)
{
	char *escaped = malloc(size);

	fuzz_check(escaped != NULL, "there is memory");
	for (int style = ESCAPE_PLAIN; style <= ESCAPE_FOLDED; style++) {
		size_t length = escape_text((enum escape_style)style, text, escaped, size);

		fuzz_check(length < size && escaped[length] == '\0' && strlen(escaped) == length,
			   "an escaped text fits");
		fuzz_check(fuzz_is_clean(escaped, length) && !strpbrk(escaped, "\n\t"),
			   "an escaped text is clean");
		fuzz_check(style != ESCAPE_XML || !strpbrk(escaped, "<>\"'"), "no markup is left");
		fuzz_check(style != ESCAPE_FOLDED || !strchr(escaped, ';'), "no frame ends early");
	}
	free(escaped);
}

static void check_label(const char *name, const char *file, uint8_t bits)
{
	const struct function function = {
		.kind = (enum frame_kind)(bits % FRAME_KIND_COUNT),
		.firstline = bits >> 4,
		.name = name,
		.file = bits & 8 ? file : NULL,
		.module = bits & 4 ? file : NULL,
	};
	char label[FRAME_LABEL_SIZE];
	size_t name_length, length = frame_label_parts(&function, bits >> 5, bits & 1, label, &name_length);

	fuzz_check(length == strlen(label) && name_length <= length, "a label has its length");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = fuzz_input(data, size);
	uint8_t bits = (uint8_t)fuzz_take(&input, 1);
	char module[MODULE_PATH_SIZE], name[256];
	size_t length = fuzz_left(&input), half = length / 2;
	char *text = strndup((const char *)input.at, length),
	     *second = strndup((const char *)input.at + half, half);

	fuzz_check(text && second, "there is memory");
	if (demangle(text, name, sizeof(name)))
		check_escaped(name, sizeof(name));
	fuzz_check(module_path(&(struct function){ .file = text }, module) == strlen(module),
		   "a module has its length");
	fuzz_check(package_path_root(text, second) <= strlen(second), "a root is part of its file");
	request_phase_of_chunk(text);
	check_label(text, second, bits);
	check_escaped(text, ESCAPE_SIZE_MIN + bits);
	free(text);
	free(second);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * kept_text: compares what is written for people and programs with a kept example, which has been read.
 *
 * The examples are in tests/unit/kept/. With LJSPY_KEEP=1 a test writes them anew: read the difference.
 */
#ifndef LJSPY_KEPT_TEXT_H
#define LJSPY_KEPT_TEXT_H

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

struct kept_text {
	FILE *out; /* where the text is to be written */
	char *text;
	size_t length;
};

static inline void kept_text_begin(struct kept_text *kept)
{
	*kept = (struct kept_text){ 0 };
	kept->out = open_memstream(&kept->text, &kept->length);
	assert_non_null(kept->out);
}

/* Add a document in lines, its keys in their order; takes it over. */
static inline void kept_text_json(struct kept_text *kept, json_t *document)
{
	assert_non_null(document);
	assert_int_equal(json_dumpf(document, kept->out, JSON_INDENT(1) | JSON_REAL_PRECISION(6)), 0);
	putc('\n', kept->out);
	json_decref(document);
}

static inline char *kept_text_read(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t length = 0;

	if (!file)
		return NULL;
	if (getdelim(&text, &length, '\0', file) < 0)
		text = strdup("");
	fclose(file);
	return text;
}

/* Compare with the example of this name, and free all. */
static inline void kept_text_check(struct kept_text *kept, const char *name)
{
	char path[256], *example;

	assert_int_equal(fclose(kept->out), 0);
	snprintf(path, sizeof(path), "tests/unit/kept/%s", name);
	if (getenv("LJSPY_KEEP")) {
		FILE *file = fopen(path, "w");

		assert_non_null(file);
		fputs(kept->text, file);
		fclose(file);
	}
	example = kept_text_read(path);
	assert_non_null(example);
	assert_string_equal(kept->text, example);
	free(example);
	free(kept->text);
}

/* Addresses are others each time. */
static inline void print_without_addresses(FILE *out, const char *text)
{
	while (*text) {
		if (strncmp(text, "0x", 2) == 0 && isxdigit((unsigned char)text[2])) {
			fputs("0x*", out);
			text += 2 + strspn(text + 2, "0123456789abcdef");
		} else {
			putc(*text++, out);
		}
	}
}

#endif

/* SPDX-License-Identifier: MIT */
#include "output/labels/label_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/labels/escape.h"
#include "output/labels/frame_label.h"
#include "output/labels/module_path.h"

static struct label_key make_key(const struct label_table *table, const struct function *function,
				 uint32_t line)
{
	return (struct label_key){ .function = function, .line = table->by_line ? line : 0 };
}

/* How many bytes of a place, which is escaped, are the package root. */
static size_t root_in_place(const struct function *function, const char *place)
{
	char root[LABEL_TEXT_SIZE], escaped[LABEL_TEXT_SIZE];
	size_t length, escaped_length;
	const char *file;

	if (!function->file)
		return 0;
	file = module_path_file(function, &length);
	if (length >= sizeof(root))
		return 0;
	memcpy(root, file, length);
	root[length] = '\0';
	escaped_length = escape_text(ESCAPE_PLAIN, root, escaped, sizeof(escaped));
	/* The beginning of a long path is cut off. */
	return strncmp(place, escaped, escaped_length) == 0 ? escaped_length : 0;
}

/* Set a label's text and the parts of it. 0 or -ENOMEM. */
static int set_text(struct label *label, const struct label_table *table)
{
	const struct label_key *key = &label->key;
	char raw[FRAME_LABEL_SIZE] = "all", name[LABEL_TEXT_SIZE], place[LABEL_TEXT_SIZE] = "";
	size_t name_length = strlen(raw), length = name_length;

	if (key->function)
		length = frame_label_parts(key->function, (uint32_t)key->line, table->by_line, raw,
					   &name_length);
	if (name_length < length)
		escape_text(ESCAPE_PLAIN, raw + name_length + 1, place, sizeof(place));
	raw[name_length] = '\0';
	label->name_length = escape_text(ESCAPE_PLAIN, raw, name, sizeof(name));
	label->place = label->name_length;
	if (name_length < length)
		label->place += 1 + root_in_place(key->function, place);
	return asprintf(&label->text, "%s%s%s", name, name_length < length ? " " : "", place) < 0 ? -ENOMEM
												  : 0;
}

const struct label *label_table_find(const struct label_table *table, const struct function *function,
				     uint32_t line)
{
	struct label_key key = make_key(table, function, line);
	struct label *label;

	HASH_FIND(hh, table->labels, &key, sizeof(key), label);
	return label;
}

int label_table_add(struct label_table *table, const struct function *function, uint32_t line)
{
	struct label *label;

	if (label_table_find(table, function, line))
		return 0;
	label = calloc(1, sizeof(*label));
	if (!label)
		return -ENOMEM;
	label->key = make_key(table, function, line);
	if (set_text(label, table) < 0) {
		free(label);
		return -ENOMEM;
	}
	HASH_ADD(hh, table->labels, key, sizeof(label->key), label);
	if (hash_added(&label->hh))
		return 0;
	free(label->text);
	free(label);
	return -ENOMEM;
}

static int compare(const struct label *a, const struct label *b)
{
	return strcmp(a->text, b->text);
}

void label_table_sort(struct label_table *table)
{
	uint32_t rank = 0;

	HASH_SORT(table->labels, compare);
	for (struct label *label = table->labels; label; label = label->hh.next)
		label->rank = rank++;
}

void label_table_clear(struct label_table *table)
{
	struct label *label, *next;

	HASH_ITER(hh, table->labels, label, next) {
		HASH_DEL(table->labels, label);
		free(label->text);
		free(label);
	}
}

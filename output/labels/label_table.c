/* SPDX-License-Identifier: MIT */
#include "output/labels/label_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/labels/escape.h"
#include "output/labels/frame_label.h"

static struct label_key make_key(const struct label_table *table, const struct function *function,
				 uint32_t line)
{
	return (struct label_key){ .function = function, .line = table->by_line ? line : 0 };
}

static char *make_text(const struct label_table *table, const struct label_key *key)
{
	char label[FRAME_LABEL_SIZE] = "all";
	char text[LABEL_TEXT_SIZE];

	if (key->function)
		frame_label(key->function, (uint32_t)key->line, table->by_line, label);
	escape_text(ESCAPE_PLAIN, label, text, sizeof(text));
	return strdup(text);
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
	label->text = make_text(table, &label->key);
	if (label->text) {
		HASH_ADD(hh, table->labels, key, sizeof(label->key), label);
		if (hash_added(&label->hh))
			return 0;
	}
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

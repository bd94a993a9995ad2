/* SPDX-License-Identifier: MIT */
#include "output/formats/folded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/labels/escape.h"
#include "output/labels/frame_label.h"

/* An escaped label may be several times as long; longer texts are cut at this size. */
enum { FRAME_TEXT_SIZE = 2 * FRAME_LABEL_SIZE };

/* The current stack: the texts of its frames, joined by semicolons. No text contains one. */
struct path {
	char *text;
	size_t length;
	size_t size;
	uint32_t depth;
};

static const char *annotation(const struct profile_node *node)
{
	return node->function->kind == FRAME_LUA && node->compiled ? "_[j]" : "";
}

/*
 * Join a number at the end of a name to it with "_": readers would take it for the weight of a first profile.
 */
static void join_last_number(char *text, size_t length)
{
	size_t end = length;

	while (end > 0 && strchr("0123456789.", text[end - 1]))
		end--;
	if (end > 0 && end < length && text[end - 1] == ' ')
		text[end - 1] = '_';
}

static void path_pop(struct path *path)
{
	char *separator = path->text ? memrchr(path->text, ';', path->length) : NULL;

	path->length = separator ? (size_t)(separator - path->text) : 0;
	path->depth--;
}

static int path_push(struct path *path, const struct profile_node *node, bool by_line, bool annotate)
{
	char label[FRAME_LABEL_SIZE];
	char text[FRAME_TEXT_SIZE];
	size_t length;

	frame_label(node->function, node->line, by_line, label);
	length = escape_text(ESCAPE_FOLDED, label, text, sizeof(text) - sizeof("_[j]"));
	join_last_number(text, length);
	if (annotate)
		length = (size_t)(stpcpy(text + length, annotation(node)) - text);

	if (!path->text || path->length + length + 2 > path->size) {
		size_t size = 2 * path->size + sizeof(text);
		char *bigger = realloc(path->text, size);

		if (!bigger)
			return -ENOMEM;
		path->text = bigger;
		path->size = size;
	}
	if (path->depth > 0)
		path->text[path->length++] = ';';
	memcpy(path->text + path->length, text, length);
	path->length += length;
	path->depth++;
	return 0;
}

/* A weight in whole parts, with the rest of earlier calls included; *rest keeps the new rest. */
static uint64_t rounded(uint64_t weight, uint64_t part, uint64_t *rest)
{
	uint64_t sum = weight + *rest;

	*rest = sum % part;
	return sum / part;
}

int folded_write(FILE *out, const struct profile *profile, const struct folded_options *options)
{
	bool by_line = profile_options(profile)->by_line;
	const struct profile_node *node = profile_root(profile);
	const struct profile_node *before = options->baseline ? profile_root(options->baseline) : NULL;
	const uint64_t part = weight_is_time(profile_options(profile)->weight) ? 1000 : 1;
	struct path path = { 0 };
	uint64_t rest = part / 2, rest_before = rest; /* half a part rounds the sum, 0 would cut it */
	int result = 0;

	while ((node = profile_node_next(node))) {
		uint64_t weight, weight_before = 0;

		while (path.depth >= node->depth)
			path_pop(&path);
		result = path_push(&path, node, by_line, options->annotate);
		if (result < 0)
			break;
		before = before ? profile_node_next(before) : NULL;
		if (before && before->own_ns)
			weight_before = rounded(before->own_ns, part, &rest_before);
		weight = node->own_ns ? rounded(node->own_ns, part, &rest) : 0;
		if (weight == 0 && weight_before == 0)
			continue;
		fprintf(out, "%.*s", (int)path.length, path.text);
		if (before)
			fprintf(out, " %llu", (unsigned long long)weight_before);
		fprintf(out, " %llu\n", (unsigned long long)weight);
	}
	free(path.text);
	return result < 0 ? result : ferror(out) ? -EIO : 0;
}

/* SPDX-License-Identifier: MIT */
#include "src/linux/pages/smaps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory/array.h"
#include "src/linux/proc/proc_file.h"

enum { ROOM_AT_FIRST = 1 << 16, KIBIBYTE = 1024 };

static const struct {
	const char *name;
	size_t place;
} fields[] = {
	{ "Rss:", offsetof(struct smaps_figures, rss) },
	{ "Pss:", offsetof(struct smaps_figures, pss) },
	{ "Shared_Clean:", offsetof(struct smaps_figures, shared) },
	{ "Shared_Dirty:", offsetof(struct smaps_figures, shared) },
	{ "Swap:", offsetof(struct smaps_figures, swap) },
	{ "Shared_Hugetlb:", offsetof(struct smaps_figures, hugetlb) },
	{ "Private_Hugetlb:", offsetof(struct smaps_figures, hugetlb) },
};

enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

static uint64_t *figure_in(struct smaps_figures *figures, size_t field)
{
	return (uint64_t *)(void *)((char *)figures + fields[field].place);
}

/* "Rss:                  20 kB" */
static void take_figure(const char *line, size_t length, struct smaps_figures *figures)
{
	for (size_t i = 0; i < FIELDS; i++) {
		size_t at = strlen(fields[i].name);
		uint64_t kib = 0;

		if (length <= at || memcmp(line, fields[i].name, at) != 0)
			continue;
		while (at < length && line[at] == ' ')
			at++;
		for (; at < length && line[at] >= '0' && line[at] <= '9' && kib < UINT64_MAX >> 16; at++)
			kib = kib * 10 + (uint64_t)(line[at] - '0');
		*figure_in(figures, i) += kib * KIBIBYTE;
	}
}

/* Lines about a mapping begin with its address, lines with its figures with a capital letter. */
static bool is_header(char first)
{
	return (first >= '0' && first <= '9') || (first >= 'a' && first <= 'f');
}

/* The figures of the mapping whose header this is; NULL if maps left it out. */
static struct smaps_figures *figures_of(const struct smaps *smaps, const char *line)
{
	const struct mapping *mapping = maps_find(smaps->maps, strtoull(line, NULL, 16));

	return mapping ? &smaps->figures[mapping - maps_at(smaps->maps, 0)] : NULL;
}

static void take_figures(struct smaps *smaps, const char *text, const char *end)
{
	struct smaps_figures *figures = NULL;

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));

		if (!newline)
			return;
		if (is_header(*text))
			figures = figures_of(smaps, text);
		else if (figures)
			take_figure(text, (size_t)(newline - text), figures);
		text = newline + 1;
	}
}

static void add_up(struct smaps *smaps)
{
	for (size_t i = 0; i < maps_count(smaps->maps); i++) {
		smaps->total.rss += smaps->figures[i].rss;
		smaps->total.pss += smaps->figures[i].pss;
		smaps->total.shared += smaps->figures[i].shared;
		smaps->total.swap += smaps->figures[i].swap;
		smaps->total.hugetlb += smaps->figures[i].hugetlb;
	}
}

int smaps_parse(const char *text, size_t length, struct smaps *ret_smaps)
{
	struct smaps smaps = { .maps = maps_new(0) };

	if (smaps.maps && maps_parse(smaps.maps, text, length) == 0)
		smaps.figures = calloc(maps_count(smaps.maps) + 1, sizeof(*smaps.figures));
	if (!smaps.figures) {
		smaps_clear(&smaps);
		return -ENOMEM;
	}
	take_figures(&smaps, text, text + length);
	add_up(&smaps);
	*ret_smaps = smaps;
	return 0;
}

/* The whole file, to be freed. Its length or a negative errno. */
static ssize_t read_text(int fd, char **ret_text)
{
	char *text = NULL;
	size_t length = 0, room = 0;
	ssize_t n;

	do {
		char *moved = array_grow(text, &room, length + ROOM_AT_FIRST, 1);

		if (!moved || room > MAPS_BYTES_MAX) {
			free(moved ? moved : text);
			return -ENOMEM;
		}
		text = moved;
		n = proc_file_fill(fd, text + length, room - length);
		if (n > 0)
			length += (size_t)n;
	} while (n > 0);
	if (n < 0 || length == 0) {
		free(text);
		return n < 0 ? n : -ESRCH;
	}
	*ret_text = text;
	return (ssize_t)length;
}

int smaps_read(pid_t tid, struct smaps *ret_smaps)
{
	int fd = proc_file_open(tid, "smaps"), error;
	char *text = NULL;
	ssize_t length;

	if (fd < 0)
		return fd;
	length = read_text(fd, &text);
	close(fd);
	if (length < 0)
		return (int)length;
	error = smaps_parse(text, (size_t)length, ret_smaps);
	free(text);
	return error;
}

void smaps_clear(struct smaps *smaps)
{
	maps_free(smaps->maps);
	free(smaps->figures);
	*smaps = (struct smaps){ .maps = NULL };
}

bool smaps_are_equal(const struct smaps *left, const struct smaps *right)
{
	if (maps_count(left->maps) != maps_count(right->maps))
		return false;
	for (size_t i = 0; i < maps_count(left->maps); i++) {
		const struct mapping *a = maps_at(left->maps, i), *b = maps_at(right->maps, i);

		if (a->begin != b->begin || a->end != b->end || a->access != b->access ||
		    left->figures[i].rss != right->figures[i].rss)
			return false;
	}
	return true;
}

/* SPDX-License-Identifier: MIT */
/* The rows of functions. */
#include <errno.h>
#include <stdlib.h>

#include "memory/hash.h"
#include "output/labels/frame_label.h"
#include "src/top/gather.h"

struct function_key {
	const struct function *function;
	uint64_t line; /* as wide as the pointer: the key is hashed as bytes and must have no padding */
};

struct function_entry {
	struct function_key key;
	uint64_t own_ns, total_ns, own_late_ns, total_late_ns, compiled_ns;
	uint64_t seen_in; /* number of the last sample that contains it */
	bool passes;
	UT_hash_handle hh;
};

static bool passes(const struct filter *filter, const struct function *function, uint32_t line, bool by_line)
{
	char label[FRAME_LABEL_SIZE];

	if (!*filter->text)
		return true;
	frame_label(function, line, by_line, label);
	return filter_passes(filter, label);
}

static struct function_entry *entry_of(struct function_entry **entries, const struct rows_options *options,
				       const struct frame *frame)
{
	struct function_key key = {
		.function = frame->function,
		.line = options->by_line ? frame->line : 0,
	};
	struct function_entry *entry;

	HASH_FIND(hh, *entries, &key, sizeof(key), entry);
	if (entry)
		return entry;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->key = key;
	entry->passes = passes(options->filter, key.function, (uint32_t)key.line, options->by_line);
	HASH_ADD(hh, *entries, key, sizeof(entry->key), entry);
	if (!hash_added(&entry->hh)) {
		free(entry);
		return NULL;
	}
	return entry;
}

void function_rows_free(struct function_entry **entries)
{
	HASH_FREE_ALL(*entries);
}

int function_rows_gather(struct function_entry **entries, const struct rows_options *options,
			 const struct sample *sample, uint64_t number)
{
	uint64_t late_ns = sample->time_ns >= options->middle_ns ? sample->cpu_ns : 0;

	for (size_t i = 0; i < sample->frame_count; i++) {
		struct function_entry *entry = entry_of(entries, options, &sample->frames[i]);

		if (!entry)
			return -ENOMEM;
		if (i == 0) {
			entry->own_ns += sample->cpu_ns;
			entry->own_late_ns += late_ns;
		}
		if (entry->seen_in == number)
			continue;
		entry->seen_in = number;
		entry->total_ns += sample->cpu_ns;
		entry->total_late_ns += late_ns;
		if (sample->frames[i].compiled)
			entry->compiled_ns += sample->cpu_ns;
	}
	return 0;
}

int function_rows_finish(struct function_entry *entries, struct rows *rows)
{
	for (struct function_entry *entry = entries; entry; entry = entry->hh.next) {
		struct row *row;

		if (!entry->passes)
			continue;
		row = rows_append(rows);
		if (!row)
			return -ENOMEM;
		row->function = entry->key.function;
		row->line = (uint32_t)entry->key.line;
		row->own_ns = entry->own_ns;
		row->total_ns = entry->total_ns;
		row->own_late_ns = entry->own_late_ns;
		row->total_late_ns = entry->total_late_ns;
		row->compiled = entry->compiled_ns > entry->total_ns / 2;
	}
	return 0;
}

int function_rows_any_passes(struct function_entry **entries, const struct rows_options *options,
			     const struct sample *sample)
{
	if (!*options->filter->text)
		return 1;
	for (size_t i = 0; i < sample->frame_count; i++) {
		const struct function_entry *entry = entry_of(entries, options, &sample->frames[i]);

		if (!entry)
			return -ENOMEM;
		if (entry->passes)
			return 1;
	}
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* The rows of threads. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "memory/hash.h"
#include "src/top/gather.h"

/* A process, or one of its threads. */
struct thread_key {
	pid_t pid;
	pid_t tid; /* 0: the process as a whole */
};

struct thread_entry {
	struct thread_key key;
	struct row row;
	UT_hash_handle hh;
};

static struct thread_entry *entry_of(struct thread_entry **entries, pid_t pid, pid_t tid)
{
	struct thread_key key = { .pid = pid, .tid = tid };
	struct thread_entry *entry;

	HASH_FIND(hh, *entries, &key, sizeof(key), entry);
	if (entry)
		return entry;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->key = key;
	entry->row.pid = pid;
	entry->row.tid = tid;
	HASH_ADD(hh, *entries, key, sizeof(entry->key), entry);
	if (!hash_added(&entry->hh)) {
		free(entry);
		return NULL;
	}
	return entry;
}

void thread_rows_free(struct thread_entry **entries)
{
	HASH_FREE_ALL(*entries);
}

static void keep_name(struct row *row, const char *name)
{
	if (name)
		snprintf(row->name, sizeof(row->name), "%s", name);
}

static void add_sample(struct row *row, const struct rows_options *options, const struct sample *sample)
{
	row->own_ns += sample->cpu_ns;
	row->total_ns += sample->cpu_ns;
	if (sample->time_ns < options->middle_ns)
		return;
	row->own_late_ns += sample->cpu_ns;
	row->total_late_ns += sample->cpu_ns;
}

int thread_rows_gather(struct thread_entry **entries, const struct rows_options *options,
		       const struct sample *sample)
{
	struct thread_entry *process = entry_of(entries, sample->pid, 0), *thread;

	if (!process)
		return -ENOMEM;
	add_sample(&process->row, options, sample);
	keep_name(&process->row, sample->process_name);
	/* The thread that used this CPU time is unknown. */
	if (sample->tid == 0)
		return 0;
	thread = entry_of(entries, sample->pid, sample->tid);
	if (!thread)
		return -ENOMEM;
	add_sample(&thread->row, options, sample);
	keep_name(&thread->row, sample->thread_name);
	return 0;
}

void thread_rows_count(const struct thread_entry *entries, struct totals *totals)
{
	for (const struct thread_entry *entry = entries; entry; entry = entry->hh.next) {
		if (entry->key.tid)
			totals->thread_count++;
		else
			totals->process_count++;
	}
}

static bool passes(const struct row *row, const struct filter *filter)
{
	char text[ROW_NAME_SIZE + 32];

	snprintf(text, sizeof(text), "%d %s", row->tid ? row->tid : row->pid, row->name);
	return filter_passes(filter, text);
}

/* Pick the rows of all processes, or of the threads of one. */
static int pick(const struct thread_entry *entries, pid_t of, enum rows_sort sort, struct rows *picked)
{
	picked->count = 0;
	for (const struct thread_entry *entry = entries; entry; entry = entry->hh.next) {
		struct row *row;

		if (of ? entry->key.pid != of || !entry->key.tid : entry->key.tid)
			continue;
		row = rows_append(picked);
		if (!row)
			return -ENOMEM;
		*row = entry->row;
	}
	rows_sort(picked->rows, picked->count, sort);
	return 0;
}

static int show(const struct row *row, const struct rows_options *options, struct rows *rows)
{
	struct row *shown;

	if (!passes(row, options->filter))
		return 0;
	shown = rows_append(rows);
	if (!shown)
		return -ENOMEM;
	*shown = *row;
	return 0;
}

/* Sorts processes, and the threads that follow each. */
int thread_rows_finish(const struct thread_entry *entries, const struct rows_options *options,
		       struct rows *rows)
{
	struct rows processes = { 0 }, threads = { 0 };
	int error = pick(entries, 0, options->sort, &processes);

	for (size_t i = 0; i < processes.count && !error; i++) {
		error = show(&processes.rows[i], options, rows);
		if (!error)
			error = pick(entries, processes.rows[i].pid, options->sort, &threads);
		for (size_t j = 0; j < threads.count && !error; j++)
			error = show(&threads.rows[j], options, rows);
	}
	rows_clear(&processes);
	rows_clear(&threads);
	return error;
}

/* SPDX-License-Identifier: MIT */
#include "output/recording/recording_reader_parts.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static bool is_text(const char *text, size_t length, const char *expected)
{
	return length == strlen(expected) && memcmp(text, expected, length) == 0;
}

/* A name that is no clock leaves it as it is. */
static void read_clock(const char *text, size_t length, enum weight_kind *clock)
{
	enum weight_kind kind;

	if (weight_by_name(text, length, &kind) && weight_is_clock(kind))
		*clock = kind;
}

/* The number; 0 if the text is empty, no number or one of more than 64 bits. */
static uint64_t decimal(const char *text, size_t length)
{
	uint64_t value = 0;

	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
			return 0;
	}
	return value;
}

/* A copy of a text of that length that lives as long as the reader. READ_ON on success. */
static int keep_text(struct recording_reader *reader, const char *text, size_t length, const char **ret_text)
{
	char copy[RECORDING_TEXT_MAX + 1];

	if (!recording_memory_is_left(reader))
		return READ_DAMAGED;
	memcpy(copy, text, length);
	copy[length] = '\0';
	*ret_text = recording_keep_name(reader, copy);
	return *ret_text ? READ_ON : -ENOMEM;
}

/* Later labels of a process replace earlier ones. */
static int set_labels(struct recording_reader *reader, pid_t pid, const char *text, size_t length)
{
	struct process_labels *labels;
	const char *kept = NULL;
	int result = keep_text(reader, text, length, &kept);

	if (result != READ_ON)
		return result;
	HASH_FIND_INT(reader->labels, &pid, labels);
	if (!labels) {
		if (HASH_COUNT(reader->labels) == RECORDING_THREADS_MAX)
			return READ_DAMAGED;
		labels = calloc(1, sizeof(*labels));
		if (!labels)
			return -ENOMEM;
		labels->pid = pid;
		HASH_ADD_INT(reader->labels, pid, labels);
		if (!hash_added(&labels->hh)) {
			free(labels);
			return -ENOMEM;
		}
	}
	labels->text = kept;
	return READ_ON;
}

/* If it is one of those that are plain numbers. */
static void set_number(struct recording_reader *reader, const char *name, size_t name_length,
		       const char *text, size_t length)
{
	struct session *session = &reader->session;
	struct figures *figures = &reader->figures;
	struct {
		const char *name;
		uint64_t *number;
	} numbers[] = {
		{ "start_unix_ns", &session->start_unix_ns },
		{ "start_ns", &session->start_ns },
		{ "home_start_ticks", &session->home.start_ticks },
		{ "home_began_unix_ns", &session->home.began_unix_ns },
		{ "duration_ns", &figures->duration_ns },
		{ "missed_ticks", &figures->missed_ticks },
		{ "dropped", &figures->dropped },
		{ "away_ns", &figures->away_ns },
		{ "undisturbed", &figures->undisturbed },
		{ "skid", &figures->skid },
		{ "self_cpu_ns", &figures->self_cpu_ns },
		{ "target_cpu_ns", &figures->target_cpu_ns },
		{ "alloc_estimated", &figures->alloc_estimated },
		{ "alloc_least", &figures->alloc_least },
		{ "alloc_all", &figures->alloc_all },
		{ "alloc_large", &figures->alloc_large },
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (is_text(name, name_length, numbers[i].name))
			*numbers[i].number = decimal(text, length);
	reader->has_large |= is_text(name, name_length, "alloc_large");
}

static int set_property(struct recording_reader *reader, const char *name, size_t name_length,
			const char *text, size_t length)
{
	const size_t prefix = sizeof(RECORDING_LABELS_PREFIX) - 1;
	struct session *session = &reader->session;
	struct figures *figures = &reader->figures;
	struct {
		const char *name;
		const char **text;
	} texts[] = {
		{ "target", &session->target },       { "command_line", &session->command_line },
		{ "cause", &session->cause },         { "layout", &session->layout },
		{ "roots", &session->roots },         { "home_boot", &session->home.boot },
		{ "home_root", &session->home.root }, { "home_directory", &session->home.directory },
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (is_text(name, name_length, texts[i].name))
			return keep_text(reader, text, length, texts[i].text);
	if (name_length > prefix && is_text(name, prefix, RECORDING_LABELS_PREFIX)) {
		uint64_t pid = decimal(name + prefix, name_length - prefix);

		return pid && pid <= INT_MAX ? set_labels(reader, (pid_t)pid, text, length) : READ_ON;
	}
	set_number(reader, name, name_length, text, length);
	if (is_text(name, name_length, "is_part"))
		figures->is_part = decimal(text, length) > 0;
	if (is_text(name, name_length, "is_unfinished"))
		figures->is_unfinished = decimal(text, length) > 0;
	if (is_text(name, name_length, "pid") && decimal(text, length) <= INT_MAX)
		session->pid = (pid_t)decimal(text, length);
	if (is_text(name, name_length, "home_pid") && decimal(text, length) <= INT_MAX)
		session->home.pid = (pid_t)decimal(text, length);
	if (is_text(name, name_length, "clock"))
		read_clock(text, length, &session->clock);
	if (is_text(name, name_length, "rate_asked_uhz"))
		figures->rate_asked_hz = (double)decimal(text, length) / 1e6;
	return READ_ON;
}

int recording_read_property(struct recording_reader *reader)
{
	const char *name, *text;
	size_t name_length, length;

	if (!record_take_text(reader->block, RECORDING_TEXT_MAX, &name, &name_length) ||
	    !record_take_text(reader->block, RECORDING_TEXT_MAX, &text, &length))
		return READ_DAMAGED;
	return reader->opening ? set_property(reader, name, name_length, text, length) : READ_ON;
}

/* SPDX-License-Identifier: MIT */
/*
 * The command line, which scripts may make of what others say: commands,
 * numbers, times, states and patterns, and the names of files.
 *
 *	input = words, each with a NUL behind it
 *
 * Of two intervals in a pattern the C library makes more memory than there is,
 * so not more than one is tried. Layout files are another target's.
 */
#include <string.h>
#include <stdlib.h>

#include "src/inspect/given_layout.h"
#include "src/options/option_values.h"
#include "src/options/options.h"
#include "tests/fuzz/fuzz.h"

enum { WORDS_MAX = 32 };

bool __wrap_given_layout_read(const char *path, struct given_layout *ret_layout);

bool __wrap_given_layout_read(const char *path, struct given_layout *ret_layout)
{
	memset(ret_layout, 0, sizeof(*ret_layout));
	return *path != '\0';
}

/* What is written to a stream of the C library until end_listening(). */
struct listener {
	FILE *stream, *former;
	char *text;
	size_t length;
};

static void listen_to(FILE **stream, struct listener *listener)
{
	listener->former = *stream;
	listener->stream = open_memstream(&listener->text, &listener->length);
	fuzz_check(listener->stream != NULL, "there is memory");
	*stream = listener->stream;
}

static void end_listening(FILE **stream, struct listener *listener)
{
	*stream = listener->former;
	fclose(listener->stream);
	fuzz_check(fuzz_is_clean(listener->text, listener->length), "what is told is clean");
	free(listener->text);
}

static void check_matches(const regex_t *pattern)
{
	static const char *const labels[] = { "", "heavy test.lua:5", "[lost: stack too deep]" };

	for (size_t i = 0; pattern && i < sizeof(labels) / sizeof(labels[0]); i++)
		regexec(pattern, labels[i], 0, NULL, 0);
}

static void check_options(const struct options *options, const char *word)
{
	/* A format of heaps only has no name of its own for the output. */
	char *output = options->format
			       ? options_default_output(word, options->pid_count ? options->pids[0] : 0,
							options->format)
			       : strdup("heap");

	fuzz_check(options->command < COMMAND_COUNT && (options->format || options->heap_format),
		   "a command and a format are known");
	fuzz_check(options->rate_hz > 0 && options->rate_hz <= OPTIONS_RATE_MAX, "a rate is in bounds");
	for (size_t i = 0; i < options->pid_count; i++)
		fuzz_check(options->pids[i] > 0, "an id is positive");
	for (size_t i = 0; i < options->filter.tid_count; i++)
		fuzz_check(options->tids[i] > 0, "an id is positive");
	check_matches(options->include);
	check_matches(options->exclude);
	fuzz_check(output && !strchr(output, '/') && fuzz_is_clean(output, strlen(output)),
		   "a name for the output is harmless");
	free(output);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *words[WORDS_MAX + 2] = { (char[]){ "ljspy" } };
	char *text = malloc(size + 1), *at = text;
	const char *interval;
	struct listener out, err;
	enum exit_status status;
	struct options options;
	int count = 1;
	bool go_on;

	fuzz_check(text != NULL, "there is memory");
	memcpy(text, data, size);
	text[size] = '\0';
	interval = memchr(text, '{', size);
	if (interval && memchr(interval + 1, '{', size - (size_t)(interval + 1 - text))) {
		free(text);
		return 0;
	}
	for (; at < text + size && count <= WORDS_MAX; at += strlen(at) + 1)
		words[count++] = at;
	listen_to(&stdout, &out);
	listen_to(&stderr, &err);
	go_on = options_parse(count, words, &options, &status);
	end_listening(&stdout, &out);
	end_listening(&stderr, &err);
	if (go_on)
		check_options(&options, words[count - 1]);
	else
		fuzz_check(status == EXIT_ALL_GOOD || status == EXIT_USAGE, "the user was told");
	options_clear(&options);
	free(text);
	return 0;
}

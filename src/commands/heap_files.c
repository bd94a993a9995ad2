/* SPDX-License-Identifier: MIT */
#include "src/commands/heap_files.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output/heap/heap_builder.h"
#include "output/heap/heap_file.h"
#include "src/rendering/heap_output.h"
#include "src/program/message.h"

/* A graph that takes more is not read: a small file can claim a large one. */
static const size_t MEMORY_MAX = (size_t)64 << 30;

bool heap_files_are_given(const struct options *options)
{
	const char *path = options->recordings[0];
	struct stat status;
	FILE *in;
	bool is_one;

	/* A look into a pipe would take the beginning from whoever reads it next. */
	if (stat(path, &status) || !S_ISREG(status.st_mode))
		return false;
	in = fopen(path, "re");
	is_one = in && heap_file_is_one(in);

	if (in)
		fclose(in);
	return is_one;
}

static void explain(const char *path, int error)
{
	if (error == -EILSEQ)
		message_error("%s is not a heap.", path);
	else if (error == -EPROTONOSUPPORT)
		message_error("%s was written by a newer ljspy, and this one cannot read it.", path);
	else if (error == -EBADMSG)
		message_error("%s is damaged, more than one file, or its writer has not finished.", path);
	else
		message_error_errno(error == -EIO && errno ? errno : -error, "%s", path);
}

static int read_heaps(struct heap_output *output, FILE *in)
{
	struct heap_file_reader *reader;
	int result = heap_file_reader_new(in, MEMORY_MAX, &reader);

	if (result)
		return result;
	for (;;) {
		struct heap_graph graph;
		struct heap_account account;

		result = heap_file_reader_next(reader, &graph, &account);
		if (result <= 0)
			break;
		result = heap_output_add(output, &graph, &account);
		heap_file_account_clear(&account);
		if (result)
			break;
	}
	heap_file_reader_free(reader);
	return result;
}

static bool read_file(struct heap_output *output, const char *path)
{
	FILE *in = fopen(path, "re");
	int error = in ? heap_output_begin_moment(output, path) : -errno;

	if (!error)
		error = read_heaps(output, in);
	if (error)
		explain(path, error);
	if (in)
		fclose(in);
	return error == 0;
}

static bool check_options(const struct options *options)
{
	if (!options_check_kind(options, true))
		return false;
	if (!options->heap_format) {
		message_error("The format %s is for profiles: %s is a heap.", options->format->name,
			      options->recordings[0]);
		return false;
	}
	if (options->command != COMMAND_DIFF && options->recordings[1] && !heap_output_check_series(options))
		return false;
	if (options->command == COMMAND_DIFF && !options->recordings[1]) {
		message_error(
			"%s is a heap, which has no slow requests: a heap to compare it with is missing.",
			options->recordings[0]);
		return false;
	}
	if (options->command == COMMAND_DIFF && !options->heap_format->compare) {
		options_explain_no_comparison(options->heap_format->name);
		return false;
	}
	return true;
}

static bool write_output(struct heap_output *output)
{
	if (output->options->command == COMMAND_DIFF)
		return heap_output_compare(output);
	return output->moment_count > 1 ? heap_output_write_series(output) : heap_output_write(output);
}

enum exit_status heap_files_run(const struct invocation *invocation)
{
	const struct options *options = invocation->options;
	struct heap_output output = { .options = options, .command_line = invocation->command_line };
	bool good = true, is_partial;

	if (!check_options(options))
		return EXIT_USAGE;
	/* An interrupt leaves nothing to clean up: let it end ljspy. */
	pthread_sigmask(SIG_SETMASK, &invocation->inherited_mask, NULL);
	for (size_t i = 0; options->recordings[i] && good; i++)
		good = read_file(&output, options->recordings[i]);
	good = good && write_output(&output);
	is_partial = output.is_partial;
	heap_output_clear(&output);
	return !good ? EXIT_NOTHING_DONE : is_partial ? EXIT_WITH_ERRORS : EXIT_ALL_GOOD;
}

/* SPDX-License-Identifier: MIT */
/*
 * recordings: the samples of several files, filtered as the options say, as one source.
 */
#ifndef LJSPY_RECORDINGS_H
#define LJSPY_RECORDINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "output/recording/sample_source.h"
#include "output/sample/figures.h"
#include "output/sample/functions.h"
#include "output/sample/session.h"
#include "output/views/view.h"
#include "src/commands/commands.h"
#include "src/options/options.h"

struct recordings {
	struct sample_source *source;
	struct session session; /* of all files together; they share its clock */
	struct time_span span;  /* the time that was chosen: from its beginning to its end, in any file */
	struct figures figures; /* of the samples in the source */
	bool damaged;           /* a file is damaged; the user has been told */
	struct recording_input *inputs;
	size_t count;
	struct sum *sum;
};

/*
 * Open files ("-" is standard input) and filter their samples. Interns functions in the
 * table, which must outlive the recordings. paths are borrowed. False after telling the
 * user what failed.
 */
bool recordings_open(char *const *paths, size_t count, const struct options *options,
		     struct functions *functions, struct recordings *ret_recordings);
void recordings_close(struct recordings *recordings);

/*
 * False, after telling the user, if the output is one of the files that are read, in another format than
 * theirs, or without samples: a recording cannot be made again.
 */
bool recordings_are_kept(const struct options *options, bool has_samples);

/* A command that reads recordings; functions is the table for their functions. */
typedef enum exit_status recordings_command(struct options *options, struct functions *functions);

/* Run the command with a new table, with the inherited signal mask. Returns its exit status. */
enum exit_status recordings_run(const struct invocation *invocation, recordings_command *command);

#endif

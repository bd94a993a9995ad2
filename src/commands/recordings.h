/* SPDX-License-Identifier: MIT */
/*
 * recordings: files of samples, as the options want them, in one source.
 */
#ifndef LJSPY_RECORDINGS_H
#define LJSPY_RECORDINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "output/recording/sample_source.h"
#include "output/sample/figures.h"
#include "output/sample/functions.h"
#include "output/sample/session.h"
#include "src/commands/commands.h"
#include "src/options/options.h"

struct recordings {
	struct sample_source *source;
	struct session session;		/* of all together; its clock is that of all */
	struct figures figures;		/* of the samples in the source */
	bool damaged;			/* some are, which the user has been told */
	struct recording_input *inputs;
	size_t count;
	struct sum *sum;
};

/*
 * Open files, "-" being standard input, and filter their samples. Functions
 * are interned in the table, which must outlive the recordings. False if the
 * user had to be told that it cannot be done.
 */
bool recordings_open(char *const *paths, size_t count, const struct options *options,
		     struct functions *functions, struct recordings *ret_recordings);
void recordings_close(struct recordings *recordings);

/* A command that reads recordings, with a table for their functions. */
typedef enum exit_status recordings_command(struct options *options, struct functions *functions);

enum exit_status recordings_run(const struct invocation *invocation, recordings_command *command);

#endif

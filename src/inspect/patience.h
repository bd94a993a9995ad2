/* SPDX-License-Identifier: MIT */
/*
 * patience: waiting for files while threads are seized.
 *
 * Symbols, debug files, and memory that is mapped from files are read by others, who may
 * have to wait for a disk (memory/errand.h, unwind/symbol_server.h). Who traces
 * passes signals on meanwhile; while he holds somebody, he does without.
 */
#ifndef LJSPY_PATIENCE_H
#define LJSPY_PATIENCE_H

#include <stdbool.h>

#include "src/inspect/known_files.h"
#include "src/linux/threads/tracer.h"

struct patience {
	struct tracer *tracer;
	bool (*may_go_on)(void *context);	/* false: do not wait any longer. NULL: wait for as long as is usual */
	void *context;
};

/* Until patience_end(); all must outlive that, which the tracer's thread is to call, too. */
void patience_begin(struct patience *patience, const struct known_files *files);
void patience_end(const struct known_files *files);

#endif

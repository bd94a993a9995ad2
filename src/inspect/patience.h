/* SPDX-License-Identifier: MIT */
/*
 * patience: wait for files while threads are seized.
 *
 * Other threads and processes read symbols, debug files, and memory that is mapped
 * from files; they may have to wait for a disk (memory/errand.h,
 * unwind/symbols/symbol_server.h). The tracer passes signals on meanwhile. While it
 * holds a thread it does not wait, and does without the data.
 */
#ifndef LJSPY_PATIENCE_H
#define LJSPY_PATIENCE_H

#include <stdbool.h>

#include "src/inspect/known_files.h"
#include "src/linux/tracer/tracer.h"

struct patience {
	struct tracer *tracer;
	bool (*may_go_on)(void *context); /* false: stop waiting. NULL: wait for as long as is usual */
	void *context;
};

/* What the tracer does while a helper reads. The patience must outlive what waits so. */
struct errands_waiter patience_waiter(struct patience *patience);

/* Lasts until patience_end(), which the tracer's thread must call, too; all arguments must outlive that. */
void patience_begin(struct patience *patience, const struct known_files *files);
void patience_end(const struct known_files *files);

#endif

/* SPDX-License-Identifier: MIT */
#include "src/survey/confirm_layout.h"

#include <time.h>

#include "src/survey/traced_process.h"

/* A hold may also catch the VM in the middle of a change. */
enum { TRIES = 20, BETWEEN_TRIES_NS = 5 * 1000 * 1000 };

int confirm_while_it_runs(struct lua_process *process)
{
	const struct timespec pause = { .tv_nsec = BETWEEN_TRIES_NS };
	int error = lua_process_refresh(process, true);

	for (unsigned i = 1; i < TRIES && !error && lua_process_needs_confirming(process); i++) {
		nanosleep(&pause, NULL);
		error = lua_process_refresh(process, true);
	}
	return error;
}

static void confirm(void *context)
{
	lua_process_confirm(context);
}

void confirm_while_held(struct lua_process *process, struct hold *hold)
{
	for (unsigned i = 0; i < TRIES && lua_process_needs_confirming(process); i++)
		if (!hold_while(hold, confirm, NULL, process))
			return;
}

void confirm_process(struct lua_process *process, pid_t pid, bool (*may_go_on)(void *context), void *context)
{
	struct traced_process traced = { .patience = { .may_go_on = may_go_on, .context = context } };

	if (!lua_process_needs_confirming(process))
		return;
	traced.patience.tracer = tracer_new();
	if (traced.patience.tracer && traced_process_begin(&traced, pid, lua_process_files(process)) == 0)
		confirm_while_held(process, traced.hold);
	traced_process_end(&traced);
	tracer_free(traced.patience.tracer);
}

/* SPDX-License-Identifier: MIT */
#include "src/nginx/request_survey.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/linux/clocks/clock.h"
#include "src/nginx/lua_wait.h"
#include "src/nginx/quiet_read.h"
#include "src/nginx/worker_load.h"
#include "unwind/nginx/connections.h"

enum { NS_PER_MS = 1000 * 1000 };

/*---- Requests ----*/

struct survey {
	struct lua_process *process;
	struct memory *memory;
	struct connections connections;
	const struct request_members *members;
	struct request_report *report;
	int error;
};

/* Without room for it, it is counted: the walk goes on, as the process's load has all of its connections. */
static bool add_row(struct survey *survey, const struct nginx_request *request)
{
	struct request_report *report = survey->report;
	struct request_row *row;

	if (report->count >= REQUEST_ROWS_MAX) {
		report->more_requests++;
		report->more_main_requests += request->main == request->address;
		return true;
	}
	row = request_report_add(report);
	if (!row) {
		survey->error = -ENOMEM;
		return false;
	}
	row->request = *request;
	nginx_request_details(survey->memory, survey->members, request, &row->details);
	return true;
}

/* 0 or -ENOMEM. */
static int note_pool(struct survey *survey, const struct connection_in_use *connection)
{
	struct cosocket_pool pool;
	bool is_idle;

	for (size_t i = 0; connection->data && i < lua_process_global_count(survey->process); i++) {
		const struct global_state *global = lua_process_global(survey->process, i);

		if (cosocket_pool_of(survey->memory, &global->vm->layout, global->g, connection, &pool,
				     &is_idle))
			return request_report_add_pooled(survey->report, &pool, is_idle,
							 lua_process_wants_details(survey->process));
	}
	return 0;
}

/* A connection holds the request that it serves now, which may be a subrequest. */
static bool take_request(void *context, const struct connection_in_use *connection)
{
	struct survey *survey = context;
	uint64_t address = connection->data;
	struct nginx_request served, main;

	if (!worker_load_count(&survey->report->load, survey->memory, survey->members, connection)) {
		survey->error = -ENOMEM;
		return false;
	}
	if (address == 0)
		return true;
	if (!lua_process_read_request(survey->process, address, &served)) {
		survey->error = note_pool(survey, connection);
		return !survey->error;
	}
	/* A connection to an upstream has the request as its data, too, but is not the request's. */
	if (served.connection != connection->address)
		return true;
	if (served.main != address && lua_process_read_request(survey->process, served.main, &main) &&
	    !add_row(survey, &main))
		return false;
	return add_row(survey, &served);
}

/* Drop the requests that have ended meanwhile. */
static void drop_ended(struct survey *survey)
{
	struct request_report *report = survey->report;
	size_t kept = 0;

	for (size_t i = 0; i < report->count; i++) {
		struct nginx_request now;

		if (nginx_request_read(survey->memory, survey->members, report->rows[i].request.address,
				       &now) &&
		    nginx_requests_are_same(&now, &report->rows[i].request))
			report->rows[kept++] = report->rows[i];
		else
			free(report->rows[i].coroutines);
	}
	report->count = kept;
}

/*---- Their Lua ----*/

/* *waits becomes true if it waits for something outside of the request. */
static int keep_coroutine(struct survey *survey, size_t index, struct request_row *row, bool *waits)
{
	struct request_coroutine *kept = &row->coroutines[row->coroutine_count];
	const struct frame *frames = NULL;
	size_t count = 0;
	struct lua_wait wait;
	int error = 0;

	kept->state = lua_process_coroutine_state(survey->process, index);
	lua_wait_read(survey->process, lua_process_coroutine_address(survey->process, index), &wait);
	if (kept->state == COROUTINE_SUSPENDED || kept->state == COROUTINE_NOT_STARTED)
		error = lua_process_unwind_coroutine(survey->process, index, &frames, &count);
	if (error || kept->state == COROUTINE_DEAD)
		return error;
	kept->frame_count = count < REQUEST_FRAMES_MAX ? count : REQUEST_FRAMES_MAX;
	if (kept->frame_count)
		memcpy(kept->frames, frames, kept->frame_count * sizeof(frames[0]));
	if (kept->state == COROUTINE_SUSPENDED) {
		*waits |= lua_wait_end(&wait, kept->frames, kept->frame_count) == LUA_WAIT_ENDS_OUTSIDE;
		kept->wait_tells_more = lua_wait_name(survey->process, &wait, kept->frames, kept->frame_count,
						      kept->wait);
	}
	row->coroutine_count++;
	return 0;
}

static int add_coroutines(struct survey *survey, struct request_row *row)
{
	size_t count;
	bool waits = false;
	int error = 0;

	if (!lua_process_capture_request(survey->process, row->request.address, &row->phase,
					 &row->more_coroutines))
		return 0;
	count = lua_process_coroutine_count(survey->process);
	if (count > REQUEST_COROUTINES_MAX) {
		row->more_coroutines += count - REQUEST_COROUTINES_MAX;
		count = REQUEST_COROUTINES_MAX;
	}
	row->coroutines = calloc(count, sizeof(row->coroutines[0]));
	if (!row->coroutines)
		return -ENOMEM;
	for (size_t i = 0; i < count && !error; i++)
		error = keep_coroutine(survey, i, row, &waits);
	/* Lua ends before nginx asks an upstream: if Lua waits, the name could not be resolved. */
	if (waits && row->details.upstream.state == NGINX_UPSTREAM_RESOLVING)
		row->details.upstream = (struct nginx_upstream){ .state = NGINX_UPSTREAM_NONE };
	return error;
}

static int read_once(void *context)
{
	struct survey *survey = context;

	request_report_clear_rows(survey->report);
	worker_load_begin(&survey->report->load, &survey->connections, survey->members);
	survey->error = 0;
	if (!connections_walk(survey->memory, &survey->connections, take_request, survey))
		return -ENOMEM;
	for (size_t i = 0; i < survey->report->count && !survey->error && !survey->report->without_lua; i++)
		survey->error = add_coroutines(survey, &survey->report->rows[i]);
	return survey->error;
}

static void set_ages(struct request_report *report)
{
	uint64_t now_ms = clock_now_ns(CLOCK_REALTIME) / NS_PER_MS;

	for (size_t i = 0; i < report->count; i++) {
		struct request_row *row = &report->rows[i];

		row->age_ms = now_ms > row->request.start_ms ? now_ms - row->request.start_ms : 0;
	}
}

int request_survey_take(struct lua_process *process, struct request_report *report)
{
	struct survey survey = {
		.process = process,
		.memory = lua_process_memory(process),
		.members = lua_process_request_members(process),
		.report = report,
	};
	int error;

	if (!lua_process_connections(process, &survey.connections))
		return -ENOTSUP;
	error = quiet_read(report->pid, read_once, &survey, &report->asleep);
	if (!error && !report->asleep)
		drop_ended(&survey);
	set_ages(report);
	request_report_sort(report);
	return error;
}

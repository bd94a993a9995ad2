/* SPDX-License-Identifier: MIT */
#include "src/nginx/timer_survey.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "src/linux/clocks/clock.h"
#include "src/linux/proc/maps.h"
#include "src/nginx/quiet_read.h"
#include "unwind/nginx/connections.h"
#include "unwind/nginx/timers.h"

enum { NOTE_WORDS = 16 /* ngx_http_lua_timer_ctx_t, to its coroutine */, NS_PER_MS = 1000 * 1000 };

struct survey {
	struct lua_process *process;
	struct memory *memory;
	const struct request_members *members;
	struct connections connections;
	struct timer_report *report;
	struct timers timers;
	uint64_t offset;  /* of a timer in its event; 0 if unknown */
	uint64_t now_ms;  /* as due times */
	size_t note_word; /* which word of a note of ngx.timer is its coroutine; NOTE_WORDS: not known yet */
};

/* All VMs of a process have the same. */
static const struct layout *layout_of(const struct survey *survey)
{
	return lua_process_global_count(survey->process) ? &lua_process_global(survey->process, 0)->vm->layout
							 : NULL;
}

/*---- Lua ----*/

static int keep_frames(struct survey *survey, struct timer_row *row)
{
	const struct frame *frames;
	size_t count;
	int error = lua_process_unwind_coroutine(survey->process, 0, &frames, &count);

	if (error)
		return error;
	row->frame_count = count < TIMER_FRAMES_MAX ? count : TIMER_FRAMES_MAX;
	if (row->frame_count)
		memcpy(row->frames, frames, row->frame_count * sizeof(frames[0]));
	return 0;
}

static bool capture(struct survey *survey, uint64_t thread, enum coroutine_state state)
{
	for (size_t i = 0; i < lua_process_global_count(survey->process); i++) {
		lua_process_capture_coroutines(survey->process, i, &thread, 1);
		if (lua_process_coroutine_count(survey->process) == 1 &&
		    lua_process_coroutine_state(survey->process, 0) == state)
			return true;
	}
	return false;
}

/* ngx.timer notes a coroutine that has not started, with the handler as its function. */
static int read_lua_timer(struct survey *survey, uint64_t note, struct timer_row *row)
{
	size_t first = survey->note_word < NOTE_WORDS ? survey->note_word : 0;
	size_t end = survey->note_word < NOTE_WORDS ? first + 1 : NOTE_WORDS;
	uint64_t words[NOTE_WORDS];

	if (memory_read(survey->memory, note, words, end * sizeof(words[0])) != MEMORY_OK)
		return 0;
	for (size_t i = first; i < end; i++)
		if (words[i] != 0 && words[i] % sizeof(words[0]) == 0 &&
		    capture(survey, words[i], COROUTINE_NOT_STARTED)) {
			survey->note_word = i;
			return keep_frames(survey, row);
		}
	return 0;
}

static int read_coroutine(struct survey *survey, uint64_t thread, struct timer_row *row)
{
	struct nginx_request request;
	struct light_thread light_thread;
	int error;

	if (!capture(survey, thread, COROUTINE_SUSPENDED))
		return 0;
	error = keep_frames(survey, row);
	if (!error && lua_process_light_thread(survey->process, thread, &light_thread) &&
	    lua_process_read_request(survey->process, light_thread.request, &request))
		nginx_request_route(&request, row->route);
	return error;
}

/*---- nginx's own ----*/

static void read_connection(struct survey *survey, uint64_t connection, struct timer_row *row)
{
	struct nginx_details details;
	struct nginx_request request;
	uint64_t data;

	row->kind = TIMER_ROW_CONNECTION;
	if (!memory_u64(survey->memory, connection, &data) ||
	    !lua_process_read_request(survey->process, data, &request))
		return;
	nginx_request_route(&request, row->route);
	if (request.connection == connection) {
		row->kind = TIMER_ROW_CLIENT;
		return;
	}
	row->kind = TIMER_ROW_UPSTREAM;
	nginx_request_details(survey->memory, survey->members, &request, &details);
	memcpy(row->peer, details.upstream.peer, sizeof(row->peer));
}

/* The file with the code that nginx calls then. */
static void name_module(struct survey *survey, const struct timer *timer, struct timer_row *row)
{
	uint64_t words[TIMER_WORDS_MAX];
	size_t count = timer_event_words(survey->memory, timer, survey->offset, words);

	for (size_t i = 1; i < count; i++) {
		const struct mapping *mapping = maps_find(lua_process_maps(survey->process), words[i]);
		const char *slash;

		if (!mapping || !(mapping->access & MAPPING_EXECUTE) || mapping->inode == 0)
			continue;
		slash = strrchr(mapping->path, '/');
		snprintf(row->module, sizeof(row->module), "%s", slash ? slash + 1 : mapping->path);
		return;
	}
}

static int add_timer(struct survey *survey, const struct timer *timer)
{
	const struct timer_event event = timer_event_read(survey->memory, timer, survey->offset,
							  &survey->connections, layout_of(survey));
	struct timer_row row = { .first_ms = (int64_t)(timer->due_ms - survey->now_ms) };
	int error = 0;

	row.last_ms = row.first_ms;
	switch (event.kind) {
	case TIMER_LUA:
		row.kind = TIMER_ROW_LUA;
		error = read_lua_timer(survey, event.subject, &row);
		break;
	case TIMER_COROUTINE:
		row.kind = TIMER_ROW_COROUTINE;
		error = read_coroutine(survey, event.subject, &row);
		break;
	case TIMER_CONNECTION: read_connection(survey, event.subject, &row); break;
	case TIMER_OTHER:
		row.kind = TIMER_ROW_OTHER;
		name_module(survey, timer, &row);
		break;
	case TIMER_UNKNOWN: row.kind = TIMER_ROW_UNKNOWN; break;
	}
	return error ? error : timer_report_add(survey->report, &row);
}

/*---- All ----*/

/* nginx's clock stands still while it waits. */
static bool read_clock(struct survey *survey)
{
	uint64_t turn_ns = lua_process_loop_clock(survey->process);

	if (turn_ns == 0 || !memory_u64(survey->memory, survey->members->loop_ms, &survey->now_ms))
		return false;
	survey->now_ms += (clock_now_ns(CLOCK_MONOTONIC) - turn_ns) / NS_PER_MS;
	return true;
}

static int read_once(void *context)
{
	struct survey *survey = context;
	int error;

	timers_clear(&survey->timers);
	timer_report_clear_rows(survey->report);
	survey->offset = 0;
	error = timers_read(survey->memory, survey->members->timers, TIMERS_ALL, &survey->timers);
	/* It may change because the worker runs: quiet_read() reads it again. */
	survey->report->is_torn = error == -EAGAIN;
	if (survey->report->is_torn)
		return 0;
	if (!error && !read_clock(survey))
		error = lua_process_loop_clock_is_apart(survey->process) ? -EXDEV : -ENOTSUP;
	if (!error)
		survey->offset = timers_offset(survey->memory, &survey->timers, &survey->connections,
					       layout_of(survey));
	for (size_t i = 0; !error && i < survey->timers.count; i++)
		error = add_timer(survey, &survey->timers.timers[i]);
	survey->report->is_cut = survey->timers.is_cut;
	return error;
}

int timer_survey_take(struct lua_process *process, struct timer_report *report)
{
	struct survey survey = {
		.process = process,
		.memory = lua_process_memory(process),
		.members = lua_process_request_members(process),
		.report = report,
		.note_word = NOTE_WORDS,
	};
	int error;

	if (!survey.members->known || survey.members->timers == 0 || survey.members->loop_ms == 0 ||
	    !lua_process_connections(process, &survey.connections))
		return -ENOTSUP;
	error = quiet_read(report->pid, read_once, &survey, &report->asleep);
	timers_clear(&survey.timers);
	return error;
}

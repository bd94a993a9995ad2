/* SPDX-License-Identifier: MIT */
#include "output/nginx_reports/request_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "output/labels/escape.h"
#include "output/labels/frame_label.h"
#include "output/labels/json_values.h"
#include "output/reports/dump_report.h"
#include "unwind/nginx/route.h"

enum { CELL_BYTES = 128, MS_PER_SECOND = 1000 };

static const char *const upstream_names[] = {
	[NGINX_UPSTREAM_NONE] = "none",
	[NGINX_UPSTREAM_RESOLVING] = "resolving",
	[NGINX_UPSTREAM_CONNECTING] = "connecting",
	[NGINX_UPSTREAM_WAITING] = "waiting",
	[NGINX_UPSTREAM_READING] = "reading",
	[NGINX_UPSTREAM_DONE] = "done",
};

static const char *const upstream_texts[] = {
	[NGINX_UPSTREAM_NONE] = "",
	[NGINX_UPSTREAM_RESOLVING] = "its name is being resolved by DNS",
	[NGINX_UPSTREAM_CONNECTING] = "connects",
	[NGINX_UPSTREAM_WAITING] = "connected, waits for the first byte",
	[NGINX_UPSTREAM_READING] = "reads the answer",
	[NGINX_UPSTREAM_DONE] = "has answered",
};

static void clear_row(struct request_row *row)
{
	free(row->coroutines);
}

static void clear_load(struct worker_load *load)
{
	free(load->fds);
	free(load->queues);
}

void request_report_clear_rows(struct request_report *report)
{
	for (size_t i = 0; i < report->count; i++)
		clear_row(&report->rows[i]);
	report->count = 0;
	report->more_requests = report->more_main_requests = 0;
	report->pool_count = 0;
}

struct request_report *request_report_new(pid_t pid, const char *name, bool exact_paths)
{
	struct request_report *report = calloc(1, sizeof(*report));

	if (!report)
		return NULL;
	report->pid = pid;
	report->exact_paths = exact_paths;
	report->name = strdup(name);
	if (report->name)
		return report;
	free(report);
	return NULL;
}

void request_report_free(struct request_report *report)
{
	if (!report)
		return;
	request_report_clear_rows(report);
	clear_load(&report->load);
	free(report->rows);
	free(report->pools);
	free(report->name);
	free(report);
}

struct request_row *request_report_add(struct request_report *report)
{
	struct request_row *rows = array_grow(report->rows, &report->room, report->count + 1,
					      sizeof(report->rows[0]));

	if (!rows)
		return NULL;
	report->rows = rows;
	memset(&rows[report->count], 0, sizeof(rows[0]));
	return &rows[report->count++];
}

/* An address, with a port. */
static bool is_address(const struct cosocket_pool *pool)
{
	return pool->is_peer &&
	       (pool->name[0] == '[' || strspn(pool->name, "0123456789.:") == strlen(pool->name));
}

int request_report_add_pooled(struct request_report *report, const struct cosocket_pool *pool, bool is_idle,
			      bool shows_names)
{
	struct pool_row *row = NULL, *pools;

	for (size_t i = 0; i < report->pool_count && !row; i++)
		if (report->pools[i].pool.address == pool->address)
			row = &report->pools[i];
	if (!row) {
		pools = array_grow(report->pools, &report->pool_room, report->pool_count + 1, sizeof(*pools));
		if (!pools)
			return -ENOMEM;
		report->pools = pools;
		row = &pools[report->pool_count++];
		*row = (struct pool_row){ .pool = *pool, .shows_name = shows_names || is_address(pool) };
	}
	row->idle += is_idle;
	row->used += !is_idle;
	return 0;
}

static int compare_rows(const void *a, const void *b)
{
	const struct request_row *x = a, *y = b;

	if (x->request.start_ms != y->request.start_ms)
		return x->request.start_ms < y->request.start_ms ? -1 : 1;
	if (x->request.number != y->request.number)
		return x->request.number < y->request.number ? -1 : 1;
	/* A subrequest follows its main request. */
	return (x->request.main != x->request.address) - (y->request.main != y->request.address);
}

void request_report_sort(struct request_report *report)
{
	if (report->count)
		qsort(report->rows, report->count, sizeof(report->rows[0]), compare_rows);
}

static bool is_subrequest(const struct nginx_request *request)
{
	return request->main != request->address;
}

static void path_of(const struct request_report *report, const struct request_row *row,
		    char ret_path[static NGINX_URI_BYTES])
{
	_Static_assert((int)ROUTE_BYTES <= (int)NGINX_URI_BYTES, "a route fits");
	if (report->exact_paths)
		memcpy(ret_path, row->request.uri, NGINX_URI_BYTES);
	else
		nginx_request_route(&row->request, ret_path);
}

/*---- Text ----*/

/* A text of the target, escaped and cut; "-" if it is empty. */
static const char *cell(const char *text, char ret_cell[static CELL_BYTES])
{
	if (*text == '\0')
		return "-";
	escape_text(ESCAPE_PLAIN, text, ret_cell, CELL_BYTES);
	return ret_cell;
}

static void print_frame(FILE *out, const struct frame *frame)
{
	char label[FRAME_LABEL_SIZE];

	frame_label(frame->function, frame->line, true, label);
	escape_write(ESCAPE_PLAIN, label, out);
}

/* The innermost frame, and the frames up to the first of Lua. */
static void print_coroutine(FILE *out, const struct request_coroutine *coroutine)
{
	char wait[REQUEST_WAIT_BYTES];

	fprintf(out, "          %s", dump_state_text(coroutine->state));
	if (coroutine->wait_tells_more) {
		escape_text(ESCAPE_PLAIN, coroutine->wait, wait, sizeof(wait));
		fprintf(out, " (%s)", wait);
	}
	for (size_t i = 0; i < coroutine->frame_count; i++) {
		fputs(i ? " < " : ": ", out);
		print_frame(out, &coroutine->frames[i]);
		if (coroutine->frames[i].function->kind == FRAME_LUA)
			break;
	}
	putc('\n', out);
}

static void print_upstream(FILE *out, const struct nginx_upstream *upstream)
{
	char peer[CELL_BYTES];

	if (upstream->state == NGINX_UPSTREAM_NONE)
		return;
	fprintf(out, "          upstream %s: %s", cell(upstream->peer, peer),
		upstream_texts[upstream->state]);
	if (upstream->status)
		fprintf(out, " (%u)", upstream->status);
	if (upstream->tries > 1)
		fprintf(out, ", peer %" PRIu64 " that was asked", upstream->tries);
	putc('\n', out);
}

static void print_row(FILE *out, const struct request_report *report, const struct request_row *row)
{
	const struct nginx_request *request = &row->request;
	char method[CELL_BYTES], host[CELL_BYTES], path[NGINX_URI_BYTES], client[CELL_BYTES],
		text[CELL_BYTES];

	path_of(report, row, path);
	fprintf(out, "%5" PRIu64 ".%03u s  %-13s  %s %s%s ", row->age_ms / MS_PER_SECOND,
		(unsigned int)(row->age_ms % MS_PER_SECOND), row->phase ? row->phase : "-",
		cell(request->method, method), is_subrequest(request) ? "subrequest " : "",
		cell(request->host, host));
	escape_write(ESCAPE_PLAIN, path, out);
	if (report->exact_paths && row->details.args[0])
		fprintf(out, "?%s", cell(row->details.args, text));
	if (request->status)
		fprintf(out, "  status %u", request->status);
	fprintf(out,
		"\n          request %" PRIu64 ".%" PRIu64 " of %s, %" PRIu64 " bytes in, %" PRIu64 " out\n",
		request->number, request->ordinal, cell(row->details.client, client), row->details.received,
		row->details.sent);
	print_upstream(out, &row->details.upstream);
	for (size_t i = 0; i < row->coroutine_count; i++)
		print_coroutine(out, &row->coroutines[i]);
	if (row->more_coroutines)
		fprintf(out, "          and %zu more coroutines\n", row->more_coroutines);
}

static void print_pools(FILE *out, const struct request_report *report)
{
	char name[CELL_BYTES];

	if (report->pool_count)
		fputs("      used        idle        size  cosocket pool\n", out);
	for (size_t i = 0; i < report->pool_count; i++) {
		const struct pool_row *row = &report->pools[i];

		fprintf(out, "%10" PRIu64 "  %10" PRIu64, row->used, row->idle);
		if (row->pool.size)
			fprintf(out, "  %10" PRIu64, row->pool.size);
		else
			fprintf(out, "  %10s", "-");
		fprintf(out, "  %s\n", row->shows_name ? cell(row->pool.name, name) : "-");
	}
}

void request_report_print(FILE *out, const struct request_report *report)
{
	char name[CELL_BYTES];

	fprintf(out, "Process %d \"%s\": %zu request%s%s\n", (int)report->pid,
		cell(report->name ? report->name : "", name), report->count, report->count == 1 ? "" : "s",
		report->asleep ? "" : "; it ran while it was read");
	for (size_t i = 0; i < report->count; i++)
		print_row(out, report, &report->rows[i]);
	if (report->more_requests)
		fprintf(out, "(%s%zu more %s not listed; older ones may be among them)\n",
			report->asleep ? "" : "up to ", report->more_requests,
			report->more_requests == 1 ? "request is" : "requests are");
	print_pools(out, report);
}

/*---- JSON ----*/

static json_t *text_or_null(const char *text)
{
	return json_value_text(*text ? text : NULL);
}

static json_t *upstream_json(const struct nginx_upstream *upstream)
{
	if (upstream->state == NGINX_UPSTREAM_NONE)
		return json_null();
	return json_pack("{s:s, s:o, s:o, s:I}", "state", upstream_names[upstream->state], "peer",
			 text_or_null(upstream->peer), "status", json_value_number(upstream->status), "tries",
			 (json_int_t)upstream->tries);
}

static json_t *coroutine_json(const struct request_coroutine *coroutine)
{
	json_t *frames = json_array();
	char label[FRAME_LABEL_SIZE];

	for (size_t i = 0; frames && i < coroutine->frame_count; i++) {
		frame_label(coroutine->frames[i].function, coroutine->frames[i].line, true, label);
		frames = json_value_append(frames, json_value_text(label));
	}
	return frames ? json_pack("{s:s, s:o, s:o}", "state", dump_state_text(coroutine->state), "wait",
				  text_or_null(coroutine->wait), "frames", frames)
		      : NULL;
}

static json_t *coroutines_json(const struct request_row *row)
{
	json_t *coroutines = json_array();

	for (size_t i = 0; coroutines && i < row->coroutine_count; i++)
		coroutines = json_value_append(coroutines, coroutine_json(&row->coroutines[i]));
	return coroutines;
}

static json_t *row_json(const struct request_report *report, const struct request_row *row)
{
	const struct nginx_request *request = &row->request;
	char route[ROUTE_BYTES];
	json_t *object;

	nginx_request_route(request, route);
	object = json_pack("{s:I, s:I, s:I, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:o, s:o, s:I}",
			   "age_ms", (json_int_t)row->age_ms, "connection", (json_int_t)request->number,
			   "number", (json_int_t)request->ordinal, "subrequest", is_subrequest(request),
			   "phase", json_value_text(row->phase), "method", text_or_null(request->method),
			   "host", text_or_null(request->host), "route", text_or_null(route), "status",
			   json_value_number(request->status), "client", text_or_null(row->details.client),
			   "received", (json_int_t)row->details.received, "sent",
			   (json_int_t)row->details.sent, "upstream", upstream_json(&row->details.upstream),
			   "lua", coroutines_json(row), "more_coroutines", (json_int_t)row->more_coroutines);
	if (report->exact_paths) {
		object = json_value_set(object, "uri", text_or_null(request->uri));
		object = json_value_set(object, "query", text_or_null(row->details.args));
	}
	return object;
}

static json_t *pool_json(const struct pool_row *row)
{
	return json_pack("{s:o, s:I, s:I, s:o}", "name", text_or_null(row->shows_name ? row->pool.name : ""),
			 "used", (json_int_t)row->used, "idle", (json_int_t)row->idle, "size",
			 row->pool.size ? json_integer((json_int_t)row->pool.size) : json_null());
}

json_t *request_report_json(const struct request_report *report)
{
	json_t *rows = json_array(), *pools = json_array();

	for (size_t i = 0; rows && i < report->count; i++)
		rows = json_value_append(rows, row_json(report, &report->rows[i]));
	for (size_t i = 0; pools && i < report->pool_count; i++)
		pools = json_value_append(pools, pool_json(&report->pools[i]));
	if (!rows || !pools) {
		json_decref(rows);
		json_decref(pools);
		return NULL;
	}
	return json_pack("{s:i, s:o, s:b, s:o, s:I, s:o}", "pid", (int)report->pid, "name",
			 json_value_text(report->name), "asleep", report->asleep, "requests", rows,
			 "more_requests", (json_int_t)report->more_requests, "pools", pools);
}

/* SPDX-License-Identifier: MIT */
/* Requests, timers, zones and workers of made-up nginx processes, as people and programs read them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/nginx_reports/request_report.h"
#include "output/nginx_reports/timer_report.h"
#include "output/nginx_reports/worker_report.h"
#include "output/nginx_reports/zone_report.h"
#include "tests/unit/kept_text.h"

static const struct function receive = { .kind = FRAME_BUILTIN, .name = "tcp.receive" };
static const struct function handle = {
	.kind = FRAME_LUA, .name = "handle", .file = "@handler.lua", .firstline = 5
};
static const struct function outer = {
	.kind = FRAME_LUA, .name = "outer", .file = "@handler.lua", .firstline = 50
};

/*---- Requests ----*/

static struct request_row *add_request(struct request_report *report, uint64_t number, uint64_t start_ms,
				       bool is_subrequest)
{
	struct request_row *row = request_report_add(report);

	assert_non_null(row);
	row->request.address = 0x1000 * (number + 1) + is_subrequest;
	row->request.main = 0x1000 * (number + 1);
	row->request.number = number;
	row->request.ordinal = 2;
	row->request.start_ms = start_ms;
	row->age_ms = 100000 - start_ms;
	snprintf(row->request.method, sizeof(row->request.method), "GET");
	snprintf(row->request.host, sizeof(row->request.host), "example.com");
	snprintf(row->request.uri, sizeof(row->request.uri), "/users/4711/\x1b[31m");
	return row;
}

static void add_coroutine(struct request_row *row, enum coroutine_state state, const char *wait,
			  bool wait_tells_more)
{
	struct request_coroutine *coroutines = realloc(
		row->coroutines,
		(row->coroutine_count + 1) * sizeof(*coroutines)); /* freed with the report */
	struct request_coroutine *added = &coroutines[row->coroutine_count];

	assert_non_null(coroutines);
	*added = (struct request_coroutine){ .state = state,
					     .frame_count = 3,
					     .wait_tells_more = wait_tells_more };
	added->frames[0].function = &receive;
	added->frames[1] = (struct frame){ .function = &handle, .line = 8 };
	added->frames[2] = (struct frame){ .function = &outer, .line = 60 };
	snprintf(added->wait, sizeof(added->wait), "%s", wait);
	row->coroutines = coroutines;
	row->coroutine_count++;
}

static struct request_report *made_up_requests(bool exact_paths)
{
	struct request_report *report = request_report_new(42, "nginx", exact_paths);
	struct request_row *row;

	assert_non_null(report);
	add_request(report, 7, 99000, true);
	row = add_request(report, 7, 99000, false);
	row->phase = "content";
	row->details = (struct nginx_details){
		.client = "10.0.0.1",
		.args = "token=\n1",
		.received = 120,
		.sent = 3000,
		.upstream = { NGINX_UPSTREAM_WAITING, "127.0.0.1:81", 0, 2 },
	};
	add_coroutine(row, COROUTINE_SUSPENDED, "socket receive: 127.0.0.1:6379", true);
	add_coroutine(row, COROUTINE_ACTIVE, "sleep", false);
	row->more_coroutines = 3;
	row = add_request(report, 9, 98500, false);
	row->request.status = 200;
	row->details.upstream = (struct nginx_upstream){ NGINX_UPSTREAM_READING, "127.0.0.1:82", 502, 1 };
	row = add_request(report, 8, 98500, false);
	snprintf(row->request.matched, sizeof(row->request.matched), "route users");
	row->details.upstream = (struct nginx_upstream){ .state = NGINX_UPSTREAM_RESOLVING };
	/* A request of which nothing is known but its place. */
	row = add_request(report, 3, 99999, false);
	row->request.method[0] = row->request.host[0] = row->request.uri[0] = '\0';
	row->request.ordinal = 0;
	report->more_requests = 2;
	report->more_main_requests = 1;
	request_report_sort(report);
	return report;
}

static void requests_are_shown_the_oldest_first(void **state)
{
	struct kept_text kept;
	struct request_report *report = made_up_requests(false);

	(void)state;
	assert_int_equal(report->rows[0].request.number, 8);
	assert_int_equal(report->rows[1].request.number, 9);
	assert_int_equal(report->rows[2].request.number, 7);
	assert_int_equal(report->rows[3].request.main, report->rows[2].request.address);
	assert_int_equal(report->rows[4].request.number, 3);
	kept_text_begin(&kept);
	request_report_print(kept.out, report);
	kept_text_json(&kept, request_report_json(report));
	request_report_clear_rows(report);
	report->asleep = true;
	request_report_print(kept.out, report);
	request_report_add(report);
	report->more_requests = 1;
	request_report_print(kept.out, report);
	request_report_free(report);
	kept_text_check(&kept, "requests.txt");
}

static void paths_and_query_strings_are_shown_only_if_asked_for(void **state)
{
	struct kept_text kept;
	struct request_report *report = made_up_requests(true);

	(void)state;
	kept_text_begin(&kept);
	request_report_print(kept.out, report);
	kept_text_json(&kept, request_report_json(report));
	request_report_free(report);
	kept_text_check(&kept, "requests-exact.txt");
}

/*---- Timers ----*/

static struct timer_row timer(enum timer_row_kind kind, int64_t due_ms)
{
	struct timer_row row = { .kind = kind, .first_ms = due_ms, .last_ms = due_ms };

	if (kind == TIMER_ROW_LUA || kind == TIMER_ROW_COROUTINE) {
		row.frame_count = 3;
		row.frames[0].function = &receive;
		row.frames[1] = (struct frame){ .function = &handle, .line = 8 };
		row.frames[2] = (struct frame){ .function = &outer, .line = 60 };
	}
	return row;
}

static void add_timer(struct timer_report *report, struct timer_row row)
{
	assert_int_equal(timer_report_add(report, &row), 0);
}

static struct timer_report *made_up_timers(void)
{
	struct timer_report *report = timer_report_new(42, "nginx: worker");
	struct timer_row row;

	assert_non_null(report);
	add_timer(report, timer(TIMER_ROW_LUA, 2000));
	add_timer(report, timer(TIMER_ROW_LUA, -1010));
	add_timer(report, timer(TIMER_ROW_LUA, 1500));
	row = timer(TIMER_ROW_LUA, 10);
	row.frames[1].line = 9;
	add_timer(report, row);
	row = timer(TIMER_ROW_LUA, 10);
	row.frames[1].function = &outer;
	add_timer(report, row);
	add_timer(report, timer(TIMER_ROW_COROUTINE, 5));
	row = timer(TIMER_ROW_CLIENT, 60000);
	snprintf(row.route, sizeof(row.route), "/users/*");
	add_timer(report, row);
	snprintf(row.route, sizeof(row.route), "/b");
	add_timer(report, row);
	row = timer(TIMER_ROW_UPSTREAM, 60001);
	snprintf(row.peer, sizeof(row.peer), "127.0.0.1:\n81");
	add_timer(report, row);
	add_timer(report, row);
	row.peer[0] = 'x';
	add_timer(report, row);
	row = timer(TIMER_ROW_OTHER, 999);
	snprintf(row.module, sizeof(row.module), "ngx_http_lua.so");
	add_timer(report, row);
	row.module[0] = 'N';
	add_timer(report, row);
	add_timer(report, timer(TIMER_ROW_CONNECTION, 1));
	add_timer(report, timer(TIMER_ROW_UNKNOWN, 1));
	return report;
}

static void timers_alike_are_one_row(void **state)
{
	struct timer_report *report = made_up_timers();
	struct kept_text kept;

	(void)state;
	assert_int_equal(report->count, 15);
	assert_int_equal(report->rows[0].count, 3);
	assert_int_equal(report->rows[0].first_ms, -1010);
	assert_int_equal(report->rows[0].last_ms, 2000);
	kept_text_begin(&kept);
	timer_report_print(kept.out, report);
	kept_text_json(&kept, timer_report_json(report));
	timer_report_clear_rows(report);
	assert_int_equal(report->count, 0);
	report->asleep = report->is_cut = true;
	add_timer(report, timer(TIMER_ROW_OTHER, 0));
	timer_report_print(kept.out, report);
	report->is_torn = true;
	timer_report_print(kept.out, report);
	kept_text_json(&kept, timer_report_json(report));
	timer_report_free(report);
	kept_text_check(&kept, "timers.txt");
}

static void timers_of_too_many_places_are_counted(void **state)
{
	struct timer_report *report = timer_report_new(42, "nginx");
	struct timer_row row = timer(TIMER_ROW_OTHER, 1);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	for (int i = 0; i < TIMER_ROWS_MAX + 5; i++) {
		snprintf(row.peer, sizeof(row.peer), "%d", i);
		add_timer(report, row);
	}
	add_timer(report, row);
	assert_int_equal(report->row_count, TIMER_ROWS_MAX);
	assert_int_equal(report->left_out, 6);
	assert_int_equal(report->count, TIMER_ROWS_MAX + 6);
	timer_report_print(out, report);
	fclose(out);
	assert_non_null(strstr(text, "\n     6  more, in other places\n"));
	free(text);
	timer_report_free(report);
}

/*---- Zones ----*/

static void zones_say_what_is_free_and_who_locks_them(void **state)
{
	struct zone_report *report = zone_report_new(42, "nginx: worker");
	struct zone_row dogs = { .name = "dogs",
				 .kind = "ngx_http_lua_module",
				 .size = 1 << 20,
				 .usable = 1000 << 10,
				 .free = 800 << 10,
				 .knows_free = true,
				 .is_dict = true,
				 .knows_keys = true,
				 .is_exact = true,
				 .keys = 12,
				 .expired = 3,
				 .lock = { .is_known = true } };
	struct zone_row cats = dogs, limits = dogs, unknown = { .size = 4096 };
	struct kept_text kept;

	(void)state;
	snprintf(cats.name, sizeof(cats.name), "cats\n");
	cats.is_exact = false;
	cats.lock = (struct zone_lock){ true, 77, ZONE_HOLDER_DEAD, 0, "" };
	snprintf(limits.name, sizeof(limits.name), "limits");
	snprintf(limits.kind, sizeof(limits.kind), "ngx_http_limit_req_module");
	limits.is_dict = false;
	limits.lock = (struct zone_lock){ true, 7, ZONE_HOLDER_ALIVE, 4007, "nginx" };
	unknown.is_dict = true;
	unknown.lock = (struct zone_lock){ true, 9, ZONE_HOLDER_UNKNOWN, 9, "" };
	assert_int_equal(zone_report_add(report, &dogs), 0);
	kept_text_begin(&kept);
	zone_report_print(kept.out, report);
	assert_int_equal(zone_report_add(report, &cats), 0);
	assert_int_equal(zone_report_add(report, &limits), 0);
	assert_int_equal(zone_report_add(report, &unknown), 0);
	unknown.lock.is_known = false;
	assert_int_equal(zone_report_add(report, &unknown), 0);
	zone_report_print(kept.out, report);
	kept_text_json(&kept, zone_report_json(report));
	for (size_t i = report->count; i < ZONE_ROWS_MAX; i++)
		assert_int_equal(zone_report_add(report, &dogs), 0);
	assert_false(report->is_cut);
	assert_int_equal(zone_report_add(report, &dogs), 0);
	assert_true(report->is_cut);
	assert_int_equal(report->count, ZONE_ROWS_MAX);
	report->count = 1;
	zone_report_print(kept.out, report);
	zone_report_free(report);
	kept_text_check(&kept, "zones.txt");
}

/*---- Workers ----*/

static struct request_report *worker(pid_t pid, uint64_t clients, double cpu)
{
	struct request_report *report = request_report_new(pid, "nginx", false);

	assert_non_null(report);
	report->load = (struct worker_load){
		.limit = 1024,
		.clients = clients,
		.others = 3,
		.knows_clients = true,
		.knows_queues = true,
		.cpu_ns = 1234567890,
		.cpu_at = 1,
		.knows_cpu = true,
		.cpu = cpu,
	};
	return report;
}

static void add_queue(struct request_report *report, uint64_t inode, uint32_t waiting, bool has_limit,
		      uint32_t limit)
{
	struct worker_load *load = &report->load;
	struct accept_queue *queues = realloc(load->queues, (load->queue_count + 1) * sizeof(*queues));

	assert_non_null(queues);
	load->queues = queues;
	queues[load->queue_count] = (struct accept_queue){
		.inode = inode, .waiting = waiting, .has_limit = has_limit, .limit = limit
	};
	snprintf(queues[load->queue_count++].address, sizeof(queues[0].address), "unix:/s\n%llu",
		 (unsigned long long)inode);
}

static void write_workers(struct kept_text *kept, const void *const reports[], size_t count)
{
	json_t *document = json_object();

	worker_report_print(kept->out, reports, count);
	assert_true(worker_report_json(document, reports, count));
	kept_text_json(kept, document);
}

static void workers_are_compared_with_their_mean(void **state)
{
	struct request_report *reports[] = { worker(101, 10, 0.25), worker(102, 30, 0.05), worker(103, 2, 0),
					     worker(104, 500, 9) };
	const void *const all[] = { reports[0], reports[1], reports[2], reports[3] };
	struct kept_text kept;

	(void)state;
	add_request(reports[0], 1, 5, false);
	add_request(reports[0], 1, 5, true);
	reports[1]->more_requests = 9;
	reports[1]->more_main_requests = 7;
	add_queue(reports[0], 5, 0, true, 511);
	add_queue(reports[1], 5, 0, true, 511);
	add_queue(reports[2], 6, 129, true, 128);
	add_queue(reports[2], 7, 128, true, 128);
	kept_text_begin(&kept);
	/* The fourth does not take new connections. */
	write_workers(&kept, all, 4);
	write_workers(&kept, all + 2, 1);
	reports[2]->load.knows_clients = reports[2]->load.knows_cpu = reports[2]->load.knows_queues = false;
	reports[2]->load.cpu_at = 0;
	reports[2]->load.queues[1].has_limit = false;
	write_workers(&kept, all + 1, 2);
	reports[1]->load.queue_count = reports[2]->load.queue_count = 0;
	reports[1]->load.knows_queues = false;
	write_workers(&kept, all + 1, 2);
	for (size_t i = 0; i < 4; i++)
		request_report_free(reports[i]);
	kept_text_check(&kept, "workers.txt");
}

static void workers_without_connections_have_no_mean(void **state)
{
	struct request_report *reports[] = { worker(101, 0, 0), worker(102, 0, 0) };
	const void *const all[] = { reports[0], reports[1] };
	json_t *document = json_object();

	(void)state;
	for (size_t i = 0; i < 2; i++)
		add_queue(reports[i], 5, 0, true, 511);
	assert_true(worker_report_json(document, all, 2));
	assert_true(json_is_null(json_object_get(json_object_get(document, "imbalance"), "connections")));
	assert_true(json_is_null(json_object_get(json_object_get(document, "imbalance"), "cpu")));
	json_decref(document);
	for (size_t i = 0; i < 2; i++)
		request_report_free(reports[i]);
}

/* One that takes no new connections has no part in it. */
static void two_workers_are_enough_for_a_mean(void **state)
{
	struct request_report *reports[] = { worker(101, 10, 0.1), worker(102, 30, 0.3) };
	const void *const all[] = { reports[0], reports[1] };

	(void)state;
	add_queue(reports[0], 5, 0, true, 511);
	for (int accepting = 1; accepting <= 2; accepting++) {
		json_t *document = json_object(), *imbalance;
		char *text = NULL;
		size_t size;
		FILE *out = open_memstream(&text, &size);

		if (accepting == 2)
			add_queue(reports[1], 5, 0, true, 511);
		worker_report_print(out, all, 2);
		fclose(out);
		assert_int_equal(strstr(text, "Worker 102 has 30 of 40 connections of clients, "
					      "1.5 times the mean\n") != NULL,
				 accepting == 2);
		assert_int_equal(strstr(text, "Worker 102 uses 30 of 40 % CPU, 1.5 times the mean\n") != NULL,
				 accepting == 2);
		assert_true(worker_report_json(document, all, 2));
		imbalance = json_object_get(json_object_get(document, "imbalance"), "connections");
		assert_int_equal(json_integer_value(json_object_get(imbalance, "pid")),
				 accepting == 2 ? 102 : 0);
		json_decref(document);
		free(text);
	}
	for (size_t i = 0; i < 2; i++)
		request_report_free(reports[i]);
}

/*---- Pools of cosockets ----*/

/* A program may have named a pool by a password. */
static void names_of_pools_are_shown_if_they_are_addresses_or_asked_for(void **state)
{
	static const struct {
		const char *name;
		bool is_peer, is_address;
	} known[] = {
		{ "127.0.0.1:6379", true, true }, { "[::1]:6379", true, true },
		{ "redis:6379", true, false },    { "127.0.0.1:6379", false, false },
		{ "[secret]:1", false, false },   { "1.2.3.4:5x", true, false },
	};

	(void)state;
	for (int asked = 0; asked < 2; asked++) {
		struct request_report *report = request_report_new(42, "nginx", false);
		json_t *json;

		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
			struct cosocket_pool pool = { .address = i + 1,
						      .is_peer = known[i].is_peer,
						      .size = 30 * i };

			snprintf(pool.name, sizeof(pool.name), "%s", known[i].name);
			assert_int_equal(request_report_add_pooled(report, &pool, true, asked), 0);
		}
		json = request_report_json(report);
		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
			const json_t *pool = json_array_get(json_object_get(json, "pools"), i);
			const json_t *name = json_object_get(pool, "name");

			assert_int_equal(json_is_string(name), asked || known[i].is_address);
			if (json_is_string(name))
				assert_string_equal(json_string_value(name), known[i].name);
			assert_int_equal(json_is_null(json_object_get(pool, "size")), i == 0);
		}
		json_decref(json);
		request_report_free(report);
	}
}

static void connections_of_a_pool_are_used_or_idle(void **state)
{
	struct request_report *report = request_report_new(42, "nginx", false);
	struct cosocket_pool pools[] = {
		{ .address = 1, .is_peer = true, .name = "127.0.0.1:1" },
		{ .address = 2, .is_peer = true, .name = "127.0.0.1:1", .size = 7 }
	};
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	(void)state;
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(request_report_add_pooled(report, &pools[i % 2], i >= 3, false), 0);
	assert_int_equal(report->pool_count, 2);
	assert_int_equal(report->pools[0].used, 2);
	assert_int_equal(report->pools[0].idle, 1);
	assert_int_equal(report->pools[1].used, 1);
	assert_int_equal(report->pools[1].idle, 1);
	request_report_print(out, report);
	fclose(out);
	assert_non_null(strstr(text, "\n      used        idle        size  cosocket pool\n"
				     "         2           1           -  127.0.0.1:1\n"
				     "         1           1           7  127.0.0.1:1\n"));
	free(text);
	request_report_clear_rows(report);
	assert_int_equal(report->pool_count, 0);
	request_report_free(report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_are_shown_the_oldest_first),
		cmocka_unit_test(paths_and_query_strings_are_shown_only_if_asked_for),
		cmocka_unit_test(timers_alike_are_one_row),
		cmocka_unit_test(timers_of_too_many_places_are_counted),
		cmocka_unit_test(zones_say_what_is_free_and_who_locks_them),
		cmocka_unit_test(workers_are_compared_with_their_mean),
		cmocka_unit_test(workers_without_connections_have_no_mean),
		cmocka_unit_test(two_workers_are_enough_for_a_mean),
		cmocka_unit_test(names_of_pools_are_shown_if_they_are_addresses_or_asked_for),
		cmocka_unit_test(connections_of_a_pool_are_used_or_idle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

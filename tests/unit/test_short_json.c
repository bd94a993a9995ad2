/* SPDX-License-Identifier: MIT */
/* Reports as JSON when memory is short: at whichever allocation, there is all of a document or none. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "output/findings/findings_report.h"
#include "output/formats/format.h"
#include "output/heap_reports/heap_json.h"
#include "output/labels/json_values.h"
#include "output/listing/listing_report.h"
#include "output/nginx_reports/request_report.h"
#include "output/nginx_reports/timer_report.h"
#include "output/nginx_reports/worker_report.h"
#include "output/nginx_reports/zone_report.h"
#include "output/reports/dump_report.h"
#include "output/reports/footprint_report.h"
#include "output/reports/trace_report.h"
#include "output/reports/turn_report.h"
#include "src/push/endpoint.h"
#include "src/targets/launched.h"
#include "tests/unit/made_up_heap.h"
#include "tests/unit/made_up_source.h"

enum { ALLOCATIONS_MAX = 2000, MS = 1000 * 1000 };

static const struct function handle = {
	.kind = FRAME_LUA, .name = "handle", .file = "@handler.lua", .firstline = 5
};

/*---- JSON's memory ----*/

static size_t before_failure = SIZE_MAX, blocks;
static bool has_failed;

static void *allocate(size_t size)
{
	const bool fails = before_failure != SIZE_MAX && before_failure-- == 0;
	void *block = fails ? NULL : malloc(size);

	has_failed |= fails;
	blocks += block != NULL;
	return block;
}

static void release(void *block)
{
	blocks -= block != NULL;
	free(block);
}

static int count_blocks(void **state)
{
	(void)state;
	json_set_alloc_funcs(allocate, release);
	return 0;
}

static int count_no_blocks(void **state)
{
	(void)state;
	json_set_alloc_funcs(malloc, free);
	return 0;
}

typedef json_t *make_json(const void *report);

/* Each allocation fails once, until there are no more. Nothing of what was made until then stays. */
static void assert_all_or_none(make_json *make, const void *report)
{
	json_t *whole = make(report);
	size_t count = 0;

	assert_non_null(whole);
	for (has_failed = true; has_failed && count < ALLOCATIONS_MAX; count++) {
		size_t before = blocks;
		json_t *json;

		has_failed = false;
		before_failure = count;
		json = make(report);
		before_failure = SIZE_MAX;
		assert_true(json ? json_equal(json, whole) : has_failed);
		json_decref(json);
		assert_int_equal(blocks, before);
	}
	assert_in_range(count, 10, ALLOCATIONS_MAX - 1);
	json_decref(whole);
	assert_int_equal(blocks, 0);
}

/*---- Reports ----*/

static json_t *dump_json(const void *report)
{
	return dump_process_json(report);
}

static void a_dump(void **state)
{
	struct dump_process *process = dump_process_new(42, "luajit");
	struct dump_vm *vm = dump_process_add_vm(process, 0x4000, "/usr/bin/luajit");
	const struct dump_thread thread = { .tid = 42, .state = "running", .phase = "content" };
	struct frame frame = { .function = &handle, .line = 8 };
	struct variables *variables = calloc(1, sizeof(*variables));
	struct dump_stack stack = { .frames = &frame, .variables = variables, .count = 1 };

	(void)state;
	assert_non_null(variables);
	variables->list = calloc(1, sizeof(*variables->list));
	assert_non_null(variables->list);
	variables->list[0] = (struct variable){ .name = strdup("n"), .type = "number", .text = strdup("1") };
	variables->count = 1;
	assert_int_equal(dump_process_add_thread(process, &thread, &stack), 0);
	stack.variables = NULL;
	assert_int_equal(dump_vm_add(vm, COROUTINE_SUSPENDED, NULL, &stack), 0);
	dump_process_sort(process);
	assert_all_or_none(dump_json, process);
	dump_process_free(process);
}

static json_t *traces_json(const void *report)
{
	return trace_process_json(report);
}

static void traces(void **state)
{
	struct trace_process *process = trace_process_new(42, "luajit");
	struct trace_vm *vm = trace_process_add_vm(process, 0x4000, "/usr/bin/luajit");
	const struct trace_row row = { .trace = { .number = 1, .mcode = 0x7000 }, .start = &handle };
	const struct exit_row taken = { .trace = 1, .number = 1, .taken = 10, .function = &handle };
	const struct interpreted_row interpreted = {
		.function = &handle, .line = 8, .cause = NOT_COMPILED_BLACKLISTED, .reason = "NYI: bytecode"
	};

	(void)state;
	assert_int_equal(trace_vm_add(vm, &row), 0);
	assert_int_equal(trace_vm_add_exit(vm, &taken), 0);
	assert_int_equal(trace_vm_add_interpreted(vm, &interpreted), 0);
	assert_all_or_none(traces_json, process);
	trace_process_free(process);
}

static json_t *memory_json(const void *report)
{
	return footprint_json(report);
}

static void memory(void **state)
{
	struct footprint *footprint = footprint_new(42, "nginx");
	static char module[] = "luajit", zone[] = "dogs", kind[] = "ngx_http_lua_module";
	const struct footprint_vm vm = { .g = 0x4000, .module = module };
	size_t index;

	(void)state;
	assert_int_equal(footprint_row(footprint, FOOTPRINT_FILE, "libc.so.6", 0, &index), 0);
	assert_int_equal(footprint_add_vm(footprint, &vm), 0);
	assert_int_equal(
		footprint_add_zone(footprint, &(struct footprint_zone){ .name = zone, .kind = kind }), 0);
	footprint->pool.is_known = true;
	assert_all_or_none(memory_json, footprint);
	footprint_free(footprint);
}

static json_t *listing_json(const void *report)
{
	return listing_process_json(report);
}

static void a_listing(void **state)
{
	struct listing_process *process = listing_process_new(42, "luajit");
	struct listing_part *part = listing_process_add(process, 0x4000, "/usr/bin/luajit");

	(void)state;
	process->has_samples = true;
	assert_non_null(listing_add(&part->listing, LISTING_CODE, strdup("ret")));
	assert_all_or_none(listing_json, process);
	listing_process_free(process);
}

static json_t *requests_json(const void *report)
{
	return request_report_json(report);
}

static json_t *workers_json(const void *report)
{
	const void *const reports[] = { report, report };
	json_t *document = json_object();

	if (worker_report_json(document, reports, 2))
		return document;
	json_decref(document);
	return NULL;
}

static void requests_and_their_workers(void **state)
{
	struct request_report *report = request_report_new(42, "nginx", true);
	struct request_row *row = request_report_add(report);
	const struct cosocket_pool pool = { .address = 1, .size = 30 };

	(void)state;
	row->coroutines = calloc(1, sizeof(*row->coroutines));
	assert_non_null(row->coroutines);
	row->coroutines[0].frame_count = 1;
	row->coroutines[0].frames[0].function = &handle;
	row->coroutine_count = 1;
	row->details.upstream.state = NGINX_UPSTREAM_WAITING;
	assert_int_equal(request_report_add_pooled(report, &pool, true, true), 0);
	assert_all_or_none(requests_json, report);
	report->load = (struct worker_load){ .clients = 3, .knows_clients = true, .knows_queues = true };
	report->load.queues = calloc(1, sizeof(*report->load.queues));
	assert_non_null(report->load.queues);
	report->load.queue_count = 1;
	assert_all_or_none(workers_json, report);
	request_report_free(report);
}

static json_t *timers_json(const void *report)
{
	return timer_report_json(report);
}

static void timers(void **state)
{
	struct timer_report *report = timer_report_new(42, "nginx");
	struct timer_row row = { .kind = TIMER_ROW_LUA, .frame_count = 1 };

	(void)state;
	row.frames[0].function = &handle;
	assert_int_equal(timer_report_add(report, &row), 0);
	assert_all_or_none(timers_json, report);
	timer_report_free(report);
}

static json_t *zones_json(const void *report)
{
	return zone_report_json(report);
}

static void zones(void **state)
{
	struct zone_report *report = zone_report_new(42, "nginx");
	const struct zone_row row = { .name = "dogs",
				      .is_dict = true,
				      .knows_keys = true,
				      .lock = { true, 77, ZONE_HOLDER_DEAD, 0, "" } };

	(void)state;
	assert_int_equal(zone_report_add(report, &row), 0);
	assert_all_or_none(zones_json, report);
	zone_report_free(report);
}

static json_t *turns_json(const void *report)
{
	return turn_report_json(report);
}

static void turns(void **state)
{
	struct turn_report *report = turn_report_new(20 * MS);
	const struct turn turn = { .begin_ns = 1, .end_ns = 1 + 30 * MS, .number = 1 };
	const struct frame frame = { .function = &handle, .line = 8 };
	const struct sample sample = { .wall_ns = 30 * MS, .frames = &frame, .frame_count = 1 };

	(void)state;
	assert_int_equal(turn_report_add(report, &turn, &sample), 0);
	turn_report_close(report, &turn, true);
	assert_all_or_none(turns_json, report);
	turn_report_free(report);
}

static json_t *findings(const void *report)
{
	struct findings findings;
	struct unseen unseen = { 0 };

	assert_int_equal(findings_judge(report, &findings), 0);
	unseen_add(&unseen, "All is made up");
	return findings_json(report, &findings, &unseen);
}

static void some_findings(void **state)
{
	struct evidence *evidence = evidence_new(42, "nginx");
	const struct function gsub = { .kind = FRAME_BUILTIN, .name = "string.gsub" };
	const struct frame frames[] = { { .function = &gsub }, { .function = &handle, .line = 8 } };
	const struct sample sample = {
		.vm_state = VM_STATE_C, .cpu_ns = 10 * MS, .frames = frames, .frame_count = 2
	};

	(void)state;
	evidence->duration_ns = 10000 * (uint64_t)MS;
	for (int i = 0; i < 500; i++)
		assert_int_equal(evidence_add(evidence, &sample), 0);
	assert_all_or_none(findings, evidence);
	evidence_free(evidence);
}

/*---- Documents ----*/

typedef int write_json(FILE *out, const void *report);

/* A document as it was written; NULL if its writer tells that memory is short. */
static json_t *written(write_json *write, const void *report)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	json_t *json = NULL;
	int error;

	assert_non_null(out);
	error = write(out, report);
	fclose(out);
	before_failure = SIZE_MAX; /* for the writer only: jansson does not read well without memory */
	if (error)
		assert_int_equal(error, -ENOMEM);
	else
		json = json_loadb(text, length, 0, NULL);
	free(text);
	return json;
}

static int write_profile(FILE *out, const void *report)
{
	static const struct function native = { .kind = FRAME_NATIVE, .name = "read", .module = "libc.so.6" };
	static const struct frame frames[] = { { .function = &native }, { .function = &handle, .line = 8 } };
	static const struct sample sample = {
		.cpu_ns = 10 * MS, .frames = frames, .frame_count = 2, .process_name = "luajit"
	};
	struct made_up_source source = made_up_source(&sample, 1);
	const struct format *format = report;

	return format->write(out, &source.source, &(struct session){ .target = "luajit" },
			     &(struct figures){ .samples = 1 }, &(struct view){ 0 });
}

static json_t *profile_json(const void *report)
{
	return written(write_profile, report);
}

static void profiles_of_each_format(void **state)
{
	(void)state;
	assert_all_or_none(profile_json, format_by_name("json"));
	assert_all_or_none(profile_json, format_by_name("speedscope"));
	assert_all_or_none(profile_json, format_by_name("firefox"));
}

/* With what record --stats adds: how its command ended. */
static int write_figures(FILE *out, const void *report)
{
	json_t *members = json_value_set(json_object(), "command", launched_json(report));
	int error = members ? figures_write_json(out, &(struct figures){ .samples = 1 }, members) : -ENOMEM;

	json_decref(members);
	return error;
}

static json_t *all_figures_json(const void *report)
{
	return written(write_figures, report);
}

static void figures_of_a_command(void **state)
{
	const struct sampler_result ended = { .exit_known = true, .exit_status = 1 << 8 },
				    killed = { .exit_known = true, .exit_status = 9 };

	(void)state;
	assert_all_or_none(all_figures_json, &ended);
	assert_all_or_none(all_figures_json, &killed);
}

static json_t *request_json(const void *report)
{
	struct endpoint endpoint = { .protocol = ENDPOINT_PUSH };
	struct endpoint_request request;
	json_t *json;

	if (endpoint_request(&endpoint, report, &request))
		return NULL;
	before_failure = SIZE_MAX;
	json = json_loadb(request.body, request.length, 0, NULL);
	endpoint_request_clear(&request);
	blocks--; /* the body, which is freed as any other text */
	return json;
}

static void a_profile_to_push(void **state)
{
	const struct push_profile profile = {
		.kind = "process_cpu",
		.labels = { .labels = { { "service_name", "shop" } }, .count = 1 },
	};

	(void)state;
	assert_all_or_none(request_json, &profile);
}

static int write_heap(FILE *out, const void *report)
{
	const struct heap_side side = { .subjects = report, .count = 1 };

	return heap_json_write(out, &side, &(struct heap_view){ 0 });
}

static json_t *heap_json(const void *report)
{
	return written(write_heap, report);
}

/* A random one has groups of each kind. */
static void a_heap(void **state)
{
	struct heap_graph graph = made_up_random_heap(1, 100, 300);
	struct heap_account account = made_up_account(&graph);
	struct heap_subject subject;

	(void)state;
	assert_int_equal(heap_subject_make(&graph, &account, true, &subject), 0);
	assert_non_null(subject.summary.cdata);
	assert_non_null(subject.summary.coroutines);
	assert_all_or_none(heap_json, &subject);
	heap_subject_clear(&subject);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_dump),
		cmocka_unit_test(traces),
		cmocka_unit_test(memory),
		cmocka_unit_test(a_listing),
		cmocka_unit_test(requests_and_their_workers),
		cmocka_unit_test(timers),
		cmocka_unit_test(zones),
		cmocka_unit_test(turns),
		cmocka_unit_test(some_findings),
		cmocka_unit_test(profiles_of_each_format),
		cmocka_unit_test(figures_of_a_command),
		cmocka_unit_test(a_profile_to_push),
		cmocka_unit_test(a_heap),
	};

	return cmocka_run_group_tests(tests, count_blocks, count_no_blocks);
}

/* SPDX-License-Identifier: MIT */
/* ljspy requests, timers and shdict: what each shows of nginx's workers, and of which it cannot. */
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

#include "src/inspect/lua_process.h"
#include "src/linux/proc/process.h"
#include "src/nginx/request_survey.h"
#include "src/nginx/timer_survey.h"
#include "src/nginx/worker_load.h"
#include "src/nginx/zone_survey.h"
#include "src/survey/confirm_layout.h"
#include "src/targets/choose.h"
#include "tests/unit/full_output.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/run_command.h"

enum { PROCESSES = 3 };

struct made_up {
	bool is_gone;
	int take_error, load_error;
	unsigned int opened, load_begins, loads;
};

static struct options options;

static int look_at(struct made_up *of, const struct known_files *files, const struct namer_options *namer)
{
	(void)of, (void)namer;
	assert_non_null(files);
	return 0;
}

#include "tests/unit/checked_all.h"
#include "tests/unit/looked_at.h"

INSTEAD_OF(process_read);
int __wrap_process_read(pid_t pid, struct process *ret_process)
{
	*ret_process = (struct process){ .pid = pid, .name = "nginx" };
	return made_up(pid)->is_gone ? -ESRCH : 0;
}

INSTEAD_OF(process_thread_with_memory);
pid_t __wrap_process_thread_with_memory(pid_t pid)
{
	return pid;
}

INSTEAD_OF(confirm_while_it_runs);
int __wrap_confirm_while_it_runs(struct lua_process *process)
{
	(void)process;
	return 0;
}

/*---- Surveys ----*/

/* A request of each process, and its connection. */
INSTEAD_OF(request_survey_take);
int __wrap_request_survey_take(struct lua_process *process, struct request_report *report)
{
	const struct made_up *of = (const struct made_up *)process;
	struct request_row *row;

	assert_int_equal(report->exact_paths, options.exact_paths);
	assert_int_equal(of->load_begins, 1);
	if (of->take_error)
		return of->take_error;
	row = request_report_add(report);
	assert_non_null(row);
	row->age_ms = 7000;
	report->load.clients = 1;
	report->load.knows_clients = true;
	return 0;
}

INSTEAD_OF(worker_load_open);
void __wrap_worker_load_open(pid_t pid, struct worker_load *load)
{
	assert_int_equal(load->cpu_at, 0);
	made_up(pid)->load_begins++;
}

INSTEAD_OF(worker_load_measure);
int __wrap_worker_load_measure(pid_t pid, struct worker_load *load)
{
	made_up(pid)->loads++;
	load->knows_cpu = true;
	load->cpu = 0.5;
	return made_up(pid)->load_error;
}

INSTEAD_OF(timer_survey_take);
int __wrap_timer_survey_take(struct lua_process *process, struct timer_report *report)
{
	const struct timer_row timer = { .count = 1, .first_ms = 7000, .last_ms = 7000 };
	const int error = ((const struct made_up *)process)->take_error;

	return error ? error : timer_report_add(report, &timer);
}

INSTEAD_OF(zone_survey_take);
int __wrap_zone_survey_take(struct lua_process *process, struct zone_report *report)
{
	const struct zone_row zone = { .name = "locks", .size = 1 << 20 };
	const int error = ((const struct made_up *)process)->take_error;

	return error ? error : zone_report_add(report, &zone);
}

/*---- The user ----*/

static const struct kind {
	enum command command;
	enum exit_status (*run)(const struct invocation *invocation);
	const char *what;
	const char *rows; /* in the document */
	const char *text; /* of a row */
} kinds[] = {
	{ COMMAND_REQUESTS, command_requests, "connections", "requests", "7.000 s" },
	{ COMMAND_TIMERS, command_timers, "timers", "timers", "7.000 s" },
	{ COMMAND_SHDICT, command_shdict, "shared zones", "zones", "locks" },
};

enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

static void begin_with(const struct kind *kind)
{
	static pid_t pids[PROCESSES];

	looked_at_begin(NULL);
	output_is_full = false;
	for (size_t i = 0; i < PROCESSES; i++)
		pids[i] = FIRST + (pid_t)i;
	options = (struct options){ .command = kind->command, .pids = pids, .pid_count = PROCESSES };
}

static enum exit_status look(const struct kind *kind)
{
	enum exit_status status;

	for (size_t i = 0; i < PROCESSES; i++)
		world[i].loads = world[i].load_begins = 0;
	status = run_command(kind->run, &options);
	assert_no_look_is_open();
	return status;
}

static size_t times_shown(const char *what)
{
	size_t count = 0;

	for (const char *at = shown; (at = strstr(at, what)) != NULL; at++)
		count++;
	return count;
}

static void each_shows_all_processes(void **state)
{
	(void)state;
	for (const struct kind *kind = kinds; kind < kinds + KINDS; kind++) {
		begin_with(kind);
		assert_int_equal(look(kind), EXIT_ALL_GOOD);
		assert_string_equal(told, "");
		assert_int_equal(times_shown(kind->text), PROCESSES);
		assert_non_null(strstr(shown, "100"));
		assert_non_null(strstr(shown, "102"));
	}
}

static void each_has_a_document(void **state)
{
	json_t *document, *processes, *process;

	(void)state;
	for (const struct kind *kind = kinds; kind < kinds + KINDS; kind++) {
		begin_with(kind);
		options.json = true;
		assert_int_equal(look(kind), EXIT_ALL_GOOD);
		document = json_loads(shown, 0, NULL);
		processes = json_object_get(document, "processes");
		assert_int_equal(json_array_size(processes), PROCESSES);
		process = json_array_get(processes, 2);
		assert_int_equal(json_integer_value(json_object_get(process, "pid")), 102);
		assert_string_equal(json_string_value(json_object_get(process, "name")), "nginx");
		assert_int_equal(json_array_size(json_object_get(process, kind->rows)), 1);
		/* Only requests show how the work is shared out. */
		assert_int_equal(json_array_size(json_object_get(document, "workers")),
				 kind->command == COMMAND_REQUESTS ? PROCESSES : 0);
		json_decref(document);
	}
}

static void each_leaves_out_what_it_cannot_read(void **state)
{
	char without[128];

	(void)state;
	for (const struct kind *kind = kinds; kind < kinds + KINDS; kind++) {
		begin_with(kind);
		world[0].take_error = -ENOTSUP;
		world[1].is_gone = true;
		assert_int_equal(look(kind), EXIT_WITH_ERRORS);
		snprintf(without, sizeof(without), "Process 100 has no %s of nginx", kind->what);
		assert_int_equal(told_times(without), 1);
		assert_int_equal(told_times("101: error 3\n"), 1);
		assert_int_equal(times_shown(kind->text), 1);
		assert_null(strstr(shown, "100"));
		world[2].take_error = -ENOTSUP;
		assert_int_equal(look(kind), EXIT_NOTHING_DONE);
		assert_string_equal(shown, "");
		options.json = true;
		assert_int_equal(look(kind), EXIT_NOTHING_DONE);
		assert_string_equal(shown, "");
	}
}

static void output_that_is_closed_is_an_error(void **state)
{
	(void)state;
	for (const struct kind *kind = kinds; kind < kinds + KINDS; kind++) {
		begin_with(kind);
		output_is_full = true;
		assert_int_equal(look(kind), EXIT_WITH_ERRORS);
	}
}

static void requests_have_the_load_of_their_worker(void **state)
{
	json_t *document, *workers;

	(void)state;
	begin_with(&kinds[0]);
	options.json = options.exact_paths = true;
	world[1].take_error = -ENOTSUP;
	world[2].load_error = -ENOMEM;
	assert_int_equal(look(&kinds[0]), EXIT_WITH_ERRORS);
	/* What has no requests to show is not waited for. */
	assert_int_equal(world[0].loads, 1);
	assert_int_equal(world[1].loads, 0);
	assert_int_equal(world[2].loads, 1);
	assert_int_equal(told_times("reading requests: Cannot allocate memory"), 1);
	document = json_loads(shown, 0, NULL);
	workers = json_object_get(document, "workers");
	assert_int_equal(json_array_size(workers), 1);
	assert_int_equal(json_number_value(json_object_get(json_array_get(workers, 0), "cpu_percent")), 50);
	json_decref(document);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_shows_all_processes),
		cmocka_unit_test(each_has_a_document),
		cmocka_unit_test(each_leaves_out_what_it_cannot_read),
		cmocka_unit_test(output_that_is_closed_is_an_error),
		cmocka_unit_test(requests_have_the_load_of_their_worker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

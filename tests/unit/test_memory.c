/* SPDX-License-Identifier: MIT */
/* ljspy memory: which processes it shows, as text and for programs, and how it ends. */
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

#include "src/footprint/footprint.h"
#include "src/inspect/lua_process.h"
#include "src/linux/pages/smaps.h"
#include "src/linux/proc/process.h"
#include "src/survey/confirm_layout.h"
#include "src/targets/choose.h"
#include "src/targets/command_apart.h"
#include "tests/unit/full_output.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/ran_apart.h"
#include "tests/unit/run_command.h"

enum { PROCESSES = 3, PAGE = 4096, THREAD = 1000 };

struct made_up {
	bool is_gone, is_unconfirmed;
	int smaps_error, open_error, layout_error, take_error;
	unsigned int opened;
};

static struct {
	unsigned int smaps; /* that were read, and not cleared */
} seen;

static struct options options;

static int look_at(struct made_up *of, const struct known_files *files, const struct namer_options *namer)
{
	assert_non_null(files);
	assert_int_equal(namer->native, NATIVE_FOLD);
	return of->open_error;
}

#include "tests/unit/checked_all.h"
#include "tests/unit/looked_at.h"

INSTEAD_OF(process_read);
int __wrap_process_read(pid_t pid, struct process *ret_process)
{
	*ret_process = (struct process){ .pid = pid, .name = "worker" };
	return made_up(pid)->is_gone ? -ESRCH : 0;
}

INSTEAD_OF(process_thread_with_memory);
pid_t __wrap_process_thread_with_memory(pid_t pid)
{
	return pid + THREAD;
}

INSTEAD_OF(smaps_read);
int __wrap_smaps_read(pid_t tid, struct smaps *ret_smaps)
{
	const int error = made_up(tid - THREAD)->smaps_error;

	if (error)
		return error;
	seen.smaps++;
	*ret_smaps = (struct smaps){ .total.rss = PAGE };
	return 0;
}

INSTEAD_OF(smaps_clear);
void __wrap_smaps_clear(struct smaps *smaps)
{
	seen.smaps -= smaps->total.rss == PAGE;
}

INSTEAD_OF(confirm_while_it_runs);
int __wrap_confirm_while_it_runs(struct lua_process *process)
{
	return ((struct made_up *)process)->layout_error;
}

INSTEAD_OF(footprint_take);
int __wrap_footprint_take(struct lua_process *process, const struct smaps *before, struct footprint *report)
{
	const struct made_up *of = (const struct made_up *)process;
	size_t row;

	/* ljspy's own reading is not in it. */
	assert_int_equal(before->total.rss, PAGE);
	assert_string_equal(report->name, "worker");
	if (of->take_error)
		return of->take_error;
	report->unconfirmed = of->is_unconfirmed;
	report->rss = report->pss = (uint64_t)report->pid * PAGE;
	assert_int_equal(footprint_row(report, FOOTPRINT_STACK, NULL, 0, &row), 0);
	report->rows[row].rss = report->rows[row].pss = report->rows[row].size = report->rss;
	report->rows[row].count = 1;
	return 0;
}

/*---- The user ----*/

static int begin(void **state)
{
	static pid_t pids[PROCESSES];

	(void)state;
	memset(&seen, 0, sizeof(seen));
	output_is_full = false;
	looked_at_begin(NULL);
	memset(&checked, 0, sizeof(checked));
	for (size_t i = 0; i < PROCESSES; i++)
		pids[i] = FIRST + (pid_t)i;
	options = (struct options){ .command = COMMAND_MEMORY, .pids = pids, .pid_count = PROCESSES };
	return 0;
}

static int end(void **state)
{
	(void)state;
	assert_no_look_is_open();
	assert_int_equal(seen.smaps, 0);
	return 0;
}

static enum exit_status look(void)
{
	return run_command(command_memory, &options);
}

static size_t times_shown(const char *what)
{
	size_t count = 0;

	for (const char *at = shown; (at = strstr(at, what)) != NULL; at++)
		count++;
	return count;
}

static void all_processes_are_shown_and_their_sum(void **state)
{
	static char layout;

	(void)state;
	options.layout = (struct given_layout *)&layout;
	layout_wanted = options.layout;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	assert_int_equal(layouts_given, PROCESSES);
	assert_string_equal(told, "");
	assert_int_equal(times_shown("worker"), PROCESSES);
	assert_non_null(strstr(shown, "Process 100 worker"));
	assert_non_null(strstr(shown, "Process 102 worker"));
	assert_int_equal(times_shown("3 processes"), 1);
	/* One has no sum. */
	options.pid_count = 1;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	assert_int_equal(times_shown("worker"), 1);
	assert_null(strstr(shown, "processes"));
	assert_null(strstr(shown, "\n\n\n"));
}

static void the_document_has_all_processes(void **state)
{
	json_t *document, *processes;

	(void)state;
	options.json = true;
	world[1].is_gone = true;
	assert_int_equal(look(), EXIT_WITH_ERRORS);
	assert_string_equal(told, "101: error 3\n");
	document = json_loads(shown, 0, NULL);
	assert_int_equal(json_integer_value(json_object_get(document, "version")), 1);
	processes = json_object_get(document, "processes");
	assert_int_equal(json_array_size(processes), 2);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(processes, 1), "pid")), 102);
	json_decref(document);
}

static void one_of_several_that_fails_is_left_out(void **state)
{
	static const struct made_up kinds[] = {
		{ .is_gone = true },        { .smaps_error = -ESRCH }, { .open_error = -ESRCH },
		{ .layout_error = -ESRCH }, { .take_error = -ESRCH },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		begin(state);
		world[0] = kinds[i];
		assert_int_equal(look(), EXIT_WITH_ERRORS);
		assert_string_equal(told, "100: error 3\n");
		assert_null(strstr(shown, "Process 100 worker"));
		assert_non_null(strstr(shown, "Process 101 worker"));
		assert_non_null(strstr(shown, "Process 102 worker"));
		assert_non_null(strstr(shown, "2 processes"));
		end(state);
	}
	options.pid_count = 1;
	assert_int_equal(look(), EXIT_NOTHING_DONE);
	assert_string_equal(told, "100: error 3\n");
	assert_string_equal(shown, "");
	options.json = true;
	assert_int_equal(look(), EXIT_NOTHING_DONE);
	assert_string_equal(shown, "");
}

static void what_is_not_confirmed_is_shown_with_an_error(void **state)
{
	(void)state;
	world[2].is_unconfirmed = true;
	assert_int_equal(look(), EXIT_WITH_ERRORS);
	assert_int_equal(times_shown("worker"), PROCESSES);
}

static void what_may_not_be_looked_at_is_not_read(void **state)
{
	(void)state;
	checked.may_not = true;
	assert_int_equal(look(), EXIT_NOTHING_DONE);
	checked.may_not = false;
	checked.misfit = true;
	assert_int_equal(look(), EXIT_NOTHING_DONE);
	assert_string_equal(shown, "");
	assert_int_equal(layouts_given, 0);
}

static void what_cannot_be_written_is_an_error(void **state)
{
	(void)state;
	output_is_full = true;
	assert_int_equal(look(), EXIT_WITH_ERRORS);
	assert_string_equal(told, "It is full.\n");
	/* Another error does not hide that. */
	world[0].is_gone = true;
	assert_int_equal(look(), EXIT_WITH_ERRORS);
	assert_string_equal(told, "100: error 3\nIt is full.\n");
	world[1].is_gone = world[2].is_gone = true;
	assert_int_equal(look(), EXIT_NOTHING_DONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_processes_are_shown_and_their_sum, begin, end),
		cmocka_unit_test_setup_teardown(the_document_has_all_processes, begin, end),
		cmocka_unit_test_setup_teardown(one_of_several_that_fails_is_left_out, begin, end),
		cmocka_unit_test_setup_teardown(what_is_not_confirmed_is_shown_with_an_error, begin, end),
		cmocka_unit_test_setup_teardown(what_may_not_be_looked_at_is_not_read, begin, end),
		cmocka_unit_test_setup_teardown(what_cannot_be_written_is_an_error, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

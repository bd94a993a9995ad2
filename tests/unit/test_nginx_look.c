/* SPDX-License-Identifier: MIT */
/* Commands that show what is in nginx's workers: which workers they show, how often, and how they end. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <jansson.h>

#include "src/inspect/lua_process.h"
#include "src/linux/proc/follow.h"
#include "src/linux/proc/process.h"
#include "src/program/terminal.h"
#include "src/survey/confirm_layout.h"
#include "src/targets/choose.h"
#include "src/targets/nginx_look.h"
#include "tests/unit/followed.h"
#include "tests/unit/full_output.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/shown.h"
#include "tests/unit/told.h"

enum { PROCESSES = 4, LOOKS_MAX = 10 };

struct made_up {
	bool is_gone;
	int open_error, layout_error, take_error;
	unsigned int opens, opened, takes, reports;
};

static struct {
	bool rewrites;      /* the terminal */
	unsigned int looks; /* that the user has before ending ljspy */
	unsigned int waits;
	/* Before each look from the second one on. */
	void (*change)(unsigned int look);
} seen;

static struct options options;

static int look_at(struct made_up *of, const struct known_files *files, const struct namer_options *namer)
{
	assert_non_null(files);
	assert_int_equal(namer->details, options.details);
	of->opens++;
	return of->open_error;
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
	return made_up(pid)->is_gone ? 0 : pid;
}

INSTEAD_OF(confirm_while_it_runs);
int __wrap_confirm_while_it_runs(struct lua_process *process)
{
	return ((struct made_up *)process)->layout_error;
}

INSTEAD_OF(terminal_can_rewrite);
bool __wrap_terminal_can_rewrite(int fd)
{
	(void)fd;
	return seen.rewrites;
}

/* A second passes, or the user ends ljspy. */
INSTEAD_OF(sigtimedwait);
int __wrap_sigtimedwait(const sigset_t *signals, siginfo_t *info, const struct timespec *time)
{
	assert_null(info);
	assert_int_equal(time->tv_sec, 1);
	assert_int_equal(time->tv_nsec, 0);
	assert_true(sigismember(signals, SIGINT) && sigismember(signals, SIGTERM) &&
		    sigismember(signals, SIGHUP));
	if (++seen.waits >= seen.looks)
		return SIGINT;
	if (seen.change)
		seen.change(seen.waits);
	return -1;
}

/*---- A kind of report ----*/

static void *new_report(pid_t pid, const char *name, const struct options *of)
{
	assert_string_equal(name, "nginx");
	assert_ptr_equal(of, &options);
	made_up(pid)->reports++;
	return made_up(pid);
}

static int take_report(struct lua_process *process, void *report)
{
	struct made_up *of = report;

	assert_ptr_equal(process, of);
	of->takes++;
	return of->take_error;
}

static void print_report(FILE *out, const void *report)
{
	fprintf(out, "[%d]", (int)((const struct made_up *)report - world) + FIRST);
}

static json_t *report_json(const void *report)
{
	return json_integer((const struct made_up *)report - world + FIRST);
}

static void free_report(void *report)
{
	((struct made_up *)report)->reports--;
}

static void print_together(FILE *out, const void *const reports[], size_t count)
{
	(void)reports;
	fprintf(out, "(%zu)", count);
}

static bool add_together(json_t *document, const void *const reports[], size_t count)
{
	(void)reports;
	return json_object_set_new(document, "together", json_integer((json_int_t)count)) == 0;
}

static struct nginx_look kind = { .doing = "reading things",
				  .what = "things",
				  .new = new_report,
				  .take = take_report,
				  .print = print_report,
				  .json = report_json,
				  .free = free_report };

/*---- A look ----*/

static int begin(void **state)
{
	static pid_t pids[PROCESSES];

	(void)state;
	memset(&seen, 0, sizeof(seen));
	output_is_full = false;
	followed_begin();
	looked_at_begin(NULL);
	memset(&checked, 0, sizeof(checked));
	for (size_t i = 0; i < PROCESSES; i++)
		pids[i] = FIRST + (pid_t)i;
	options = (struct options){ .pids = pids, .pid_count = 2 };
	kind.print_together = NULL;
	kind.json_together = NULL;
	return 0;
}

static int end(void **state)
{
	(void)state;
	assert_no_look_is_open();
	assert_int_equal(followed.made, 0);
	for (size_t i = 0; i < PROCESSES; i++)
		assert_int_equal(world[i].reports, 0);
	return 0;
}

static enum exit_status look(void)
{
	const struct invocation invocation = { .options = &options };
	enum exit_status status;

	shown_begin();
	told_begin();
	status = nginx_look(&invocation, &kind);
	told_end();
	shown_end();
	return status;
}

static void all_processes_are_shown_once(void **state)
{
	static char layout;

	(void)state;
	options.layout = (struct given_layout *)&layout;
	layout_wanted = options.layout;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	assert_int_equal(layouts_given, 2);
	assert_string_equal(shown, "[100][101]");
	assert_string_equal(told, "");
	assert_int_equal(seen.waits, 0);
	assert_int_equal(followed.adds, 0);
	kind.print_together = print_together;
	output_is_full = true;
	assert_int_equal(look(), EXIT_WITH_ERRORS);
	assert_string_equal(shown, "[100][101](2)");
	/* Another error does not hide that. */
	world[0].is_gone = true;
	assert_int_equal(look(), EXIT_WITH_ERRORS);
	assert_string_equal(told, "100: error 3\nIt is full.\n");
}

static void the_document_has_all_processes(void **state)
{
	json_t *document;

	(void)state;
	options.json = true;
	for (int together = 0; together < 2; together++) {
		kind.json_together = together ? add_together : NULL;
		assert_int_equal(look(), EXIT_ALL_GOOD);
		document = json_loads(shown, 0, NULL);
		assert_int_equal(json_integer_value(json_object_get(document, "version")), 1);
		assert_int_equal(json_array_size(json_object_get(document, "processes")), 2);
		assert_int_equal(
			json_integer_value(json_array_get(json_object_get(document, "processes"), 1)), 101);
		assert_int_equal(json_integer_value(json_object_get(document, "together")), 2 * together);
		json_decref(document);
	}
}

static void nothing_is_shown_of_what_may_not_be_looked_at(void **state)
{
	(void)state;
	checked.may_not = true;
	assert_int_equal(look(), EXIT_NOTHING_DONE);
	checked.may_not = false;
	checked.misfit = true;
	assert_int_equal(look(), EXIT_NOTHING_DONE);
	assert_string_equal(shown, "");
	assert_int_equal(world[0].opens, 0);
}

static void a_process_that_cannot_be_read_is_told_beside_the_others(void **state)
{
	static const struct {
		int error;
		const char *told;
	} cases[] = {
		{ -ENOTSUP,
		  "ljspy: Process 100 has no things of nginx that ljspy can read. The master of an nginx "
		  "may have none: take a worker, or --tree.\n" },
		{ -EXDEV,
		  "ljspy: Process 100 is in another time namespace, and how far its clock is ahead of that "
		  "of ljspy is not known: when its things are due cannot be told.\n" },
		{ -ENOMEM, "ljspy: reading things: Cannot allocate memory\n" },
		{ -EPERM, "100: error 1\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int *const errors[] = { &world[0].open_error, &world[0].layout_error, &world[0].take_error };

		for (size_t j = 0; j < sizeof(errors) / sizeof(errors[0]); j++) {
			*errors[j] = cases[i].error;
			assert_int_equal(look(), EXIT_WITH_ERRORS);
			assert_string_equal(told, cases[i].told);
			assert_string_equal(shown, "[101]");
			*errors[j] = 0;
		}
	}
	world[0].is_gone = true;
	assert_int_equal(look(), EXIT_WITH_ERRORS);
	assert_string_equal(told, "100: error 3\n");
}

/* A tree has a master, which has none of a worker's things. */
static void a_tree_may_have_others_than_workers(void **state)
{
	(void)state;
	options.subprocesses = true;
	world[0].take_error = -ENOTSUP;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	assert_string_equal(shown, "[101]");
	assert_string_equal(told, "");
	world[1].open_error = -ENOTSUP;
	assert_int_equal(look(), EXIT_NOTHING_DONE);
	assert_string_equal(told,
			    "ljspy: None of these processes has things of nginx that ljspy can read.\n");
	/* What is told already is not told again. */
	world[1].open_error = -EPERM;
	assert_int_equal(look(), EXIT_NOTHING_DONE);
	assert_string_equal(told, "101: error 1\n");
}

/*---- Again and again ----*/

static void a_watch_looks_each_second(void **state)
{
	(void)state;
	options.watch = true;
	seen.looks = 3;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	assert_string_equal(shown, "[100][101][100][101][100][101]");
	assert_int_equal(world[0].opens, 1);
	assert_int_equal(followed.adds, 0); /* the user has named them all */
	seen.waits = 0;
	seen.rewrites = true;
	seen.looks = 1;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	assert_string_equal(shown, "\033[H\033[J[100][101]");
	options.watch = false;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	assert_string_equal(shown, "[100][101]");
	options.watch = options.json = true;
	seen.waits = 0;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	assert_null(strstr(shown, "\033"));
}

static void first_ends(unsigned int look_number)
{
	world[0].is_gone = look_number >= 1;
	world[1].is_gone = look_number >= 2;
}

static void a_watch_of_named_processes_ends_with_the_last(void **state)
{
	(void)state;
	options.watch = true;
	seen.looks = LOOKS_MAX;
	seen.change = first_ends;
	assert_int_equal(look(), EXIT_WITH_ERRORS);
	assert_string_equal(shown, "[100][101][101]");
	assert_string_equal(told, "100: error 3\n101: error 3\n");
}

static void a_worker_comes(unsigned int look_number)
{
	first_ends(look_number);
	if (look_number == 3)
		followed.finds = FIRST + 2;
}

static void a_watch_by_name_takes_those_that_come_later(void **state)
{
	(void)state;
	options.watch = true;
	options.name = "nginx";
	seen.looks = 5;
	seen.change = a_worker_comes;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	assert_non_null(followed.options.pattern);
	assert_false(followed.options.descendants);
	assert_int_equal(followed.adds, 2);
	/* While there is none, the last picture stays. */
	assert_string_equal(shown, "[100][101][101][102][102]");
	assert_string_equal(told, "");
	assert_int_equal(world[2].opens, 1);
}

static void a_watch_of_a_tree_ends_with_its_processes(void **state)
{
	(void)state;
	options.watch = options.subprocesses = true;
	options.pid_count = 2;
	seen.looks = LOOKS_MAX;
	seen.change = first_ends;
	assert_int_equal(look(), EXIT_WITH_ERRORS);
	assert_true(followed.options.descendants);
	assert_string_equal(shown, "[100][101][101]");
	assert_string_equal(told, "ljspy: The last of these processes has ended.\n");
}

static void a_process_comes(unsigned int look_number)
{
	if (look_number == 1)
		followed.finds = FIRST + 2;
	if (look_number == 4)
		world[2].open_error = 0;
}

/* It has nothing of nginx yet when it has just begun. */
static void a_process_that_has_just_begun_is_tried_again(void **state)
{
	(void)state;
	options.watch = options.subprocesses = true;
	options.pid_count = 1;
	seen.looks = 6;
	seen.change = a_process_comes;
	world[2].open_error = -ENOTSUP;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	assert_string_equal(shown, "[100][100][100][100][100][102][100][102]");
	assert_int_equal(world[2].opens, 4);
	assert_string_equal(told, "");
}

static void a_stranger_comes(unsigned int look_number)
{
	if (look_number == 1)
		followed.finds = FIRST + 3;
}

static void a_process_that_is_no_worker_is_tried_five_times(void **state)
{
	(void)state;
	options.watch = options.subprocesses = true;
	options.pid_count = 1;
	seen.looks = LOOKS_MAX;
	seen.change = a_stranger_comes;
	world[3].open_error = -EPERM;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	assert_int_equal(world[3].opens, 5);
	assert_string_equal(told, "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(all_processes_are_shown_once),
		TEST(the_document_has_all_processes),
		TEST(nothing_is_shown_of_what_may_not_be_looked_at),
		TEST(a_process_that_cannot_be_read_is_told_beside_the_others),
		TEST(a_tree_may_have_others_than_workers),
		TEST(a_watch_looks_each_second),
		TEST(a_watch_of_named_processes_ends_with_the_last),
		TEST(a_watch_by_name_takes_those_that_come_later),
		TEST(a_watch_of_a_tree_ends_with_its_processes),
		TEST(a_process_that_has_just_begun_is_tried_again),
		TEST(a_process_that_is_no_worker_is_tried_five_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* What a command that runs apart says and shows arrives whole, once; the user knows of what comes again. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/targets/command_apart.h"
#include "tests/unit/bounded_files.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/shown.h"
#include "tests/unit/told.h"

/* No process has such a number. */
enum { FIRST_PID = 5000000, PIPE_BYTES = 4096, LINES = 20000, LINE_BYTES = 10 };

static size_t runs;         /* of the engine */
static bool tells_early;    /* messages are copied before that */
static int slow_pipe[2];    /* standard error, where it is a pipe that makes nobody wait */
static char *slow_received; /* what its reader had */

static void *read_slowly(void *context)
{
	size_t length = 0;
	ssize_t part;

	(void)context;
	while ((part = read(slow_pipe[0], slow_received + length, PIPE_BYTES / 2)) > 0)
		length += (size_t)part;
	slow_received[length] = '\0';
	return NULL;
}

/* What becomes of the engines. */
static struct {
	enum apart_end end;
	int error;
	size_t blocked_count; /* so many of the first ones end so */
	pid_t blocked_pid;
	enum exit_status status;
	bool is_interrupted, shows;
} engines;

static pid_t pids[] = { FIRST_PID, FIRST_PID + 1, FIRST_PID + 2 };
static struct options asked;

INSTEAD_OF(apart_interrupted_by);
int __wrap_apart_interrupted_by(const struct apart *apart, bool *ret_by_process)
{
	(void)apart, (void)ret_by_process;
	return engines.is_interrupted ? SIGINT : 0;
}

INSTEAD_OF(apart_results);
bool __wrap_apart_results(const struct apart *apart, void *ret_results)
{
	(void)apart;
	*(enum exit_status *)ret_results = engines.status;
	return true;
}

INSTEAD_OF(apart_run);
int __wrap_apart_run(const struct apart_options *options, struct apart_outcome *ret_outcome)
{
	const bool blocks = runs++ < engines.blocked_count;

	if (engines.shows)
		assert_true(dprintf(options->standard_output, "shown\n") > 0);
	for (unsigned int i = 0; i < (slow_received ? LINES : 1); i++)
		assert_int_equal(dprintf(options->standard_error, "line %04u\n", i % 10000), LINE_BYTES);
	if (!blocks || tells_early || engines.is_interrupted)
		options->update(NULL, options->context);
	*ret_outcome = (struct apart_outcome){ .end = blocks ? APART_BLOCKED : engines.end,
					       .blocked_pid = blocks ? engines.blocked_pid : 0 };
	return engines.error;
}

static int begin(void **state)
{
	(void)state;
	memset(&engines, 0, sizeof(engines));
	tells_early = false;
	return 0;
}

static enum exit_status no_command(struct apart *apart, const struct invocation *invocation)
{
	(void)apart, (void)invocation;
	return EXIT_ALL_GOOD;
}

static enum exit_status run(size_t pid_count)
{
	const struct invocation invocation = { .options = &asked };

	runs = 0;
	for (size_t i = 0; i < 3; i++)
		pids[i] = FIRST_PID + (pid_t)i;
	asked = (struct options){ .command = COMMAND_HEAP, .pids = pids, .pid_count = pid_count };
	return command_run_apart(no_command, &invocation, true);
}

static void a_user_knows_why_messages_come_again(void **state)
{
	(void)state;
	engines.blocked_count = 1;
	engines.blocked_pid = FIRST_PID;
	for (int early = 0; early < 2; early++) {
		tells_early = early;
		told_begin();
		assert_int_equal(run(2), EXIT_WITH_ERRORS);
		told_end();
		assert_int_equal(runs, 2);
		assert_int_equal(told_times("line 0000\n"), 1 + early);
		assert_int_equal(told_times("begins anew without it"), early);
	}
}

static void messages_for_a_slow_reader_arrive_whole_and_once(void **state)
{
	const int saved = dup(STDERR_FILENO);
	enum exit_status status;
	pthread_t reader;

	(void)state;
	slow_received = malloc(4 * LINES * LINE_BYTES);
	assert_non_null(slow_received);
	assert_int_equal(pipe2(slow_pipe, O_CLOEXEC), 0);
	assert_true(fcntl(slow_pipe[1], F_SETPIPE_SZ, PIPE_BYTES) >= 0);
	assert_int_equal(fcntl(slow_pipe[1], F_SETFL, O_NONBLOCK), 0);
	dup2(slow_pipe[1], STDERR_FILENO);
	close(slow_pipe[1]);
	assert_int_equal(pthread_create(&reader, NULL, read_slowly, NULL), 0);
	status = run(2);
	dup2(saved, STDERR_FILENO); /* the reader's end of file */
	close(saved);
	pthread_join(reader, NULL);
	close(slow_pipe[0]);
	assert_int_equal(status, EXIT_ALL_GOOD);
	assert_int_equal(strlen(slow_received), LINES * LINE_BYTES);
	for (unsigned int i = 0; i < LINES; i++) {
		char line[LINE_BYTES + 1];

		snprintf(line, sizeof(line), "line %04u\n", i % 10000);
		assert_memory_equal(slow_received + (size_t)i * LINE_BYTES, line, LINE_BYTES);
	}
	free(slow_received);
	slow_received = NULL;
}

/*---- Engines that end otherwise ----*/

static enum exit_status run_and_tell(size_t pid_count)
{
	enum exit_status status;

	shown_begin();
	told_begin();
	status = run(pid_count);
	told_end();
	shown_end();
	return status;
}

static void a_process_that_blocks_is_left_out_until_one_is_left(void **state)
{
	(void)state;
	engines.shows = true;
	engines.blocked_count = 1;
	engines.blocked_pid = FIRST_PID + 1;
	assert_int_equal(run_and_tell(3), EXIT_WITH_ERRORS);
	assert_string_equal(shown, "shown\n"); /* what the first engine wrote is a part at best */
	assert_int_equal(asked.pid_count, 2);
	assert_int_equal(pids[0], FIRST_PID);
	assert_int_equal(pids[1], FIRST_PID + 2);
	engines.status = EXIT_USAGE;
	assert_int_equal(run_and_tell(3), EXIT_USAGE);
	/* The only one, one that was not named, and one that nobody knows. */
	engines.blocked_pid = FIRST_PID;
	assert_int_equal(run_and_tell(1), EXIT_NOTHING_DONE);
	assert_int_equal(runs, 1);
	assert_string_equal(shown, "");
	assert_int_equal(told_times("line"), 0);
	engines.blocked_pid = FIRST_PID + 7;
	assert_int_equal(run_and_tell(3), EXIT_NOTHING_DONE);
	engines.blocked_pid = 0;
	assert_int_equal(run_and_tell(3), EXIT_NOTHING_DONE);
	assert_int_equal(told_times("kept ljspy waiting"), 1);
	assert_int_equal(runs, 1);
}

static void who_interrupts_a_command_does_not_want_it_again(void **state)
{
	(void)state;
	engines.blocked_count = 1;
	engines.blocked_pid = FIRST_PID;
	engines.is_interrupted = true;
	assert_int_equal(run_and_tell(3), EXIT_NOTHING_DONE);
	assert_int_equal(runs, 1);
}

static void an_engine_that_cannot_run_is_told(void **state)
{
	(void)state;
	engines.end = APART_KILLED;
	assert_int_equal(run_and_tell(1), EXIT_NOTHING_DONE);
	assert_string_equal(
		told, "line 0000\nljspy: The process of ljspy's that looked at the target was killed.\n");
	engines.error = -ECHILD;
	assert_int_equal(run_and_tell(1), EXIT_NOTHING_DONE);
	assert_int_equal(told_times("starting to look: No child processes"), 1);
	engines.end = APART_UNWATCHED;
	assert_int_equal(run_and_tell(1), EXIT_NOTHING_DONE);
	assert_int_equal(told_times("cannot wait for each other: waitpid() fails: No child processes"), 1);
}

/* Runs with a limit for files, and everything goes into a pipe, which has none; it is then in shown. */
static enum exit_status run_with_limit(rlim_t bytes)
{
	const int saved[] = { dup(STDOUT_FILENO), dup(STDERR_FILENO) };
	enum exit_status status;
	ssize_t length;
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	fflush(stdout);
	dup2(ends[1], STDOUT_FILENO);
	dup2(ends[1], STDERR_FILENO);
	close(ends[1]);
	bound_files(bytes);
	status = run(1);
	unbound_files();
	dup2(saved[0], STDOUT_FILENO);
	dup2(saved[1], STDERR_FILENO);
	close(saved[0]);
	close(saved[1]);
	length = read(ends[0], shown, sizeof(shown) - 1);
	shown[length > 0 ? length : 0] = '\0';
	close(ends[0]);
	return status;
}

/* Files in memory have the user's limit for files, too. */
static void an_answer_that_is_cut_is_told(void **state)
{
	(void)state;
	engines.shows = true;
	assert_int_equal(run_with_limit(LINE_BYTES + 1), EXIT_ALL_GOOD);
	assert_string_equal(shown, "line 0000\nshown\n");
	assert_int_equal(run_with_limit(LINE_BYTES), EXIT_WITH_ERRORS);
	assert_non_null(strstr(shown, "Not all is shown: no file may have more than 10 bytes."));
	engines.status = EXIT_USAGE;
	assert_int_equal(run_with_limit(LINE_BYTES), EXIT_USAGE);
}

static enum exit_status run_with_full_output(enum exit_status status)
{
	const int full = open("/dev/full", O_WRONLY | O_CLOEXEC), saved = dup(STDOUT_FILENO);

	if (full < 0)
		skip();
	engines.shows = true;
	engines.status = status;
	fflush(stdout);
	dup2(full, STDOUT_FILENO);
	close(full);
	told_begin();
	status = run(1);
	told_end();
	dup2(saved, STDOUT_FILENO);
	close(saved);
	return status;
}

/* Whatever else the user is told. */
static void an_answer_that_finds_no_room_is_told(void **state)
{
	(void)state;
	assert_int_equal(run_with_full_output(EXIT_ALL_GOOD), EXIT_WITH_ERRORS);
	assert_int_equal(told_times("standard output: No space left on device"), 1);
	assert_int_equal(run_with_full_output(EXIT_WITH_ERRORS), EXIT_WITH_ERRORS);
	assert_int_equal(told_times("standard output: No space left on device"), 1);
	assert_int_equal(run_with_full_output(EXIT_NOTHING_DONE), EXIT_NOTHING_DONE);
}

/*---- Attempts ----*/

static unsigned int readings, absences;
static bool may_come_back;

INSTEAD_OF(apart_wish);
enum apart_wish __wrap_apart_wish(const struct apart *apart)
{
	(void)apart;
	return readings <= absences ? APART_LET_GO : APART_GO_ON;
}

INSTEAD_OF(apart_stay_away);
bool __wrap_apart_stay_away(struct apart *apart)
{
	(void)apart;
	return may_come_back;
}

static void *read_once(void *context)
{
	readings++;
	if (!command_try_may_go_on(context))
		assert_false(command_try_may_go_on(context));
	return NULL;
}

static void what_was_given_up_is_begun_anew(void **state)
{
	struct command_try try = { .apart = NULL };

	(void)state;
	readings = absences = 0;
	assert_int_equal(command_try_run(&try, read_once, &try), 0);
	assert_int_equal(readings, 1);
	assert_false(try.given_up);
	readings = 0;
	absences = 2;
	may_come_back = true;
	assert_int_equal(command_try_run(&try, read_once, &try), 0);
	assert_int_equal(readings, 3);
	assert_false(try.given_up);
	/* Not where it is to end. */
	readings = 0;
	may_come_back = false;
	assert_int_equal(command_try_run(&try, read_once, &try), 0);
	assert_int_equal(readings, 1);
	assert_true(try.given_up);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, begin)
	const struct CMUnitTest tests[] = {
		TEST(a_user_knows_why_messages_come_again),
		TEST(messages_for_a_slow_reader_arrive_whole_and_once),
		TEST(a_process_that_blocks_is_left_out_until_one_is_left),
		TEST(who_interrupts_a_command_does_not_want_it_again),
		TEST(an_engine_that_cannot_run_is_told),
		cmocka_unit_test_setup_teardown(an_answer_that_is_cut_is_told, begin, unbound_files_after),
		TEST(an_answer_that_finds_no_room_is_told),
		TEST(what_was_given_up_is_begun_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The messages of a command that runs apart arrive whole and once, and the user knows of those that come again. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/targets/command_apart.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/told.h"

/* No process has such a number. */
enum { FIRST_PID = 5000000, PIPE_BYTES = 4096, LINES = 20000, LINE_BYTES = 10 };

static size_t runs;         /* of the engine */
static bool is_blocked;     /* the first of them ends so */
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

INSTEAD_OF(apart_interrupted_by);
int __wrap_apart_interrupted_by(const struct apart *apart, bool *ret_by_process)
{
	(void)apart, (void)ret_by_process;
	return 0;
}

INSTEAD_OF(apart_results);
bool __wrap_apart_results(const struct apart *apart, void *ret_results)
{
	(void)apart;
	*(enum exit_status *)ret_results = EXIT_ALL_GOOD;
	return true;
}

INSTEAD_OF(apart_run);
int __wrap_apart_run(const struct apart_options *options, struct apart_outcome *ret_outcome)
{
	const bool blocks = runs++ == 0 && is_blocked;

	for (unsigned int i = 0; i < (slow_received ? LINES : 1); i++)
		assert_int_equal(dprintf(options->standard_error, "line %04u\n", i % 10000), LINE_BYTES);
	if (!blocks || tells_early)
		options->update(NULL, options->context);
	*ret_outcome = (struct apart_outcome){ .end = blocks ? APART_BLOCKED : APART_CONCLUDED,
					       .blocked_pid = blocks ? FIRST_PID : 0 };
	return 0;
}

static enum exit_status no_command(struct apart *apart, const struct invocation *invocation)
{
	(void)apart, (void)invocation;
	return EXIT_ALL_GOOD;
}

static enum exit_status run(void)
{
	pid_t pids[] = { FIRST_PID, FIRST_PID + 1 };
	struct options options = { .command = COMMAND_HEAP, .pids = pids, .pid_count = 2 };
	const struct invocation invocation = { .options = &options };

	runs = 0;
	return command_run_apart(no_command, &invocation, true);
}

static void a_user_knows_why_messages_come_again(void **state)
{
	(void)state;
	is_blocked = true;
	for (int early = 0; early < 2; early++) {
		tells_early = early;
		told_begin();
		assert_int_equal(run(), EXIT_WITH_ERRORS);
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
	is_blocked = false;
	slow_received = malloc(4 * LINES * LINE_BYTES);
	assert_non_null(slow_received);
	assert_int_equal(pipe2(slow_pipe, O_CLOEXEC), 0);
	assert_true(fcntl(slow_pipe[1], F_SETPIPE_SZ, PIPE_BYTES) >= 0);
	assert_int_equal(fcntl(slow_pipe[1], F_SETFL, O_NONBLOCK), 0);
	dup2(slow_pipe[1], STDERR_FILENO);
	close(slow_pipe[1]);
	assert_int_equal(pthread_create(&reader, NULL, read_slowly, NULL), 0);
	status = run();
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_user_knows_why_messages_come_again),
		cmocka_unit_test(messages_for_a_slow_reader_arrive_whole_and_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

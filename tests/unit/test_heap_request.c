/* SPDX-License-Identifier: MIT */
/* The command that `ljspy serve` reads heaps with: of which processes, and with what they need. */
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "src/linux/proc/process.h"
#include "src/serve/heap_request.h"
#include "tests/unit/instead_of.h"

enum { FIRST = 100, PIDS = 3, CHILD = 200 };

static uint64_t started[PIDS]; /* when each process started, in ticks; 0: it is none */
static char command[256];      /* what was spawned; "" if nothing was */
static int exit_status;

INSTEAD_OF(process_start);
uint64_t __wrap_process_start(pid_t pid)
{
	return started[pid - FIRST];
}

INSTEAD_OF(posix_spawn);
int __wrap_posix_spawn(pid_t *ret_pid, const char *path, const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attributes, char *const argv[], char *const environment[])
{
	(void)path;
	(void)actions;
	(void)attributes;
	(void)environment;
	for (size_t i = 0; argv[i]; i++)
		snprintf(command + strlen(command), sizeof(command) - strlen(command), "%s%s", i ? " " : "",
			 argv[i]);
	*ret_pid = CHILD;
	return 0;
}

INSTEAD_OF(waitpid);
pid_t __wrap_waitpid(pid_t pid, int *ret_status, int flags)
{
	(void)flags;
	assert_int_equal(pid, CHILD);
	*ret_status = exit_status << 8;
	return CHILD;
}

static enum hub_answer run(const struct options *options, const struct wanted *wanted)
{
	const struct hub_request request = { .mode = HUB_HEAP };

	*command = '\0';
	return heap_request_run(NULL, options, wanted, &request, "text", stdout);
}

static void test_command(void **state)
{
	pid_t pids[PIDS] = { FIRST, FIRST + 1, FIRST + 2 };
	struct given_layout layout;
	struct options options = { .pids = pids, .pid_count = PIDS };
	struct wanted *wanted;

	(void)state;
	for (size_t i = 0; i < PIDS; i++)
		started[i] = 1000 + i;
	wanted = wanted_new(pids, PIDS);
	assert_non_null(wanted);
	assert_int_equal(run(&options, wanted), HUB_DONE);
	assert_string_equal(command, "ljspy heap --pid 100,101,102 -f text -o -");

	started[0] = 0;    /* has ended */
	started[2] = 5000; /* so has this one; another process has its id */
	assert_int_equal(run(&options, wanted), HUB_DONE);
	assert_string_equal(command, "ljspy heap --pid 101 -f text -o -");

	options.subprocesses = options.allow_attach = true;
	options.layout = &layout;
	options.layout_text = "some-release";
	assert_int_equal(run(&options, wanted), HUB_DONE);
	assert_string_equal(command,
			    "ljspy heap --tree 101 --allow-attach --layout some-release -f text -o -");

	started[1] = 0;
	assert_int_equal(run(&options, wanted), HUB_FAILED);
	assert_string_equal(command, "");

	options = (struct options){ .pids = pids, .pid_count = PIDS, .name = "nginx" };
	assert_int_equal(run(&options, wanted), HUB_DONE);
	assert_string_equal(command, "ljspy heap --name nginx -f text -o -");
	wanted_free(wanted);
}

static void test_outcome(void **state)
{
	pid_t pids[] = { FIRST };
	const struct options options = { .pids = pids, .pid_count = 1 };
	struct wanted *wanted;

	(void)state;
	started[0] = 1000;
	wanted = wanted_new(pids, 1);
	assert_non_null(wanted);
	exit_status = EXIT_WITH_ERRORS; /* of several, one could be read */
	assert_int_equal(run(&options, wanted), HUB_DONE);
	exit_status = EXIT_NOTHING_DONE;
	assert_int_equal(run(&options, wanted), HUB_FAILED);
	wanted_free(wanted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_command),
		cmocka_unit_test(test_outcome),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

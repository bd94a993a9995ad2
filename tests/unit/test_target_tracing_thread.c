/* SPDX-License-Identifier: MIT */
/* A thread that traces has let go of its targets once it has been waited for. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ptrace.h>

#include <cmocka.h>

#include "src/linux/tracer/tracing_thread.h"
#include "tests/unit/target_process.h"

enum { ROUNDS = 20, FILES = 500 };

struct seizing {
	pid_t pid;
	int error;
};

/* It has files of its own to close at its end, so that the end takes a while. */
static void *seize(void *context)
{
	struct seizing *seizing = context;

	seizing->error = ptrace(PTRACE_SEIZE, seizing->pid, NULL, NULL) ? errno : 0;
	if (unshare(CLONE_FILES) == 0)
		for (int i = 0; i < FILES; i++)
			open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	return NULL;
}

static void the_next_one_can_seize_them_at_once(void **state)
{
	struct seizing seizing = { .pid = target_process_sleeper("sleeper", 0, true) };

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		assert_int_equal(tracing_thread_run(seize, &seizing), 0);
		assert_int_equal(seizing.error, 0);
	}
	target_process_end_sleeper(seizing.pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_next_one_can_seize_them_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

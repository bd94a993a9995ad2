/* SPDX-License-Identifier: MIT */
/* What keeps a process from running: as made-up files of /proc and of cgroups tell it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "src/linux/threads/halt.h"
#include "src/linux/proc/proc_text.h"
#include "src/linux/proc/process.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(process_read_status);
INSTEAD_OF(proc_text_read);
INSTEAD_OF(fopen);

static struct process process;
static const char *cgroups, *path, *text;

int __wrap_process_read_status(pid_t pid, struct process *ret_process)
{
	(void)pid;
	if (!process.state)
		return -ESRCH;
	*ret_process = process;
	return 0;
}

ssize_t __wrap_proc_text_read(pid_t pid, const char *name, char *ret_text, size_t room)
{
	(void)pid;
	assert_string_equal(name, "cgroup");
	return cgroups ? snprintf(ret_text, room, "%s", cgroups) : -EACCES;
}

FILE *__wrap_fopen(const char *wanted, const char *mode)
{
	if (strncmp(wanted, "/sys/", 5) != 0)
		return __real_fopen(wanted, mode);
	return path && strcmp(wanted, path) == 0 ? fmemopen((void *)(uintptr_t)text, strlen(text), "r")
						 : NULL;
}

static enum process_halt halt_in(char letter, pid_t tracer_pid)
{
	process = (struct process){ .pid = 12, .state = letter, .tracer_pid = tracer_pid };
	return process_halt(12);
}

static void a_signal_and_a_tracer_stop_a_process(void **state)
{
	(void)state;
	cgroups = NULL;
	assert_int_equal(halt_in('R', 0), HALT_NONE);
	assert_int_equal(halt_in('S', 0), HALT_NONE);
	assert_int_equal(halt_in('T', 0), HALT_SIGNAL);
	assert_int_equal(halt_in('t', 7), HALT_TRACER);
	assert_int_equal(halt_in('t', 0), HALT_SIGNAL);
	assert_int_equal(halt_in('\0', 0), HALT_NONE);
}

static void a_cgroup_may_be_frozen(void **state)
{
	static const struct {
		const char *cgroups, *path, *text;
		enum process_halt halt;
	} cases[] = {
		{ "0::/a/b\n", "/sys/fs/cgroup/a/b/cgroup.events", "populated 1\nfrozen 1\n", HALT_FREEZER },
		{ "0::/a/b\n", "/sys/fs/cgroup/a/b/cgroup.events", "populated 1\nfrozen 0\n", HALT_NONE },
		{ "0::/a\n", "/sys/fs/cgroup/a/b/cgroup.events", "populated 1\nfrozen 1\n", HALT_NONE },
		{ "9:name=systemd:/\n0::/a\n", "/sys/fs/cgroup/unified/a/cgroup.events", "frozen 1\n",
		  HALT_FREEZER },
		{ "6:freezer:/a:b\n5:devices:/\n", "/sys/fs/cgroup/freezer/a:b/freezer.state", "FROZEN\n",
		  HALT_FREEZER },
		{ "6:freezer:/a\n", "/sys/fs/cgroup/freezer/a/freezer.state", "THAWED\n", HALT_NONE },
		{ "0\n\n:\n", "/sys/fs/cgroup/cgroup.events", "frozen 1\n", HALT_NONE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cgroups = cases[i].cgroups;
		path = cases[i].path;
		text = cases[i].text;
		assert_int_equal(halt_in('S', 0), cases[i].halt);
		assert_int_equal(halt_in('D', 0), cases[i].halt);
		assert_int_equal(halt_in('R', 0), HALT_NONE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signal_and_a_tracer_stop_a_process),
		cmocka_unit_test(a_cgroup_may_be_frozen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

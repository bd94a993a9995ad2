/* SPDX-License-Identifier: MIT */
/* Which of many processes run LuaJIT, which could not be looked at, and how much CPU time they use. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/inspect/lua_process.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/clocks/cpu_clock.h"
#include "src/linux/proc/permission.h"
#include "src/survey/survey.h"
#include "tests/unit/instead_of.h"

enum { PROCESSES = 6 };

struct made_up {
	const char *name;
	int open_error, refresh_error, lacks;
	const struct vm_code *vm; /* NULL: its layout is unknown */
	bool is_others;           /* only a child of ljspy that has become its user may look */
	int identity_error;
	uint64_t cpu_ns, used_ns; /* at first, and in the time of a measurement */
	int clock_error;
	unsigned int opened;
};

static bool is_their_user;  /* in a child */
static bool has_lost_ljspy; /* a child, as ljspy has ended by then */
static bool has_slept;
static uint64_t slept_ns;
static struct survey survey;

static const struct vm_code new_vm = { .layout = { .bytecode = BYTECODE_V21,
						   .gc64 = true,
						   .has_jit = true } },
			    old_vm = { .layout = { .bytecode = BYTECODE_V20 } };

static bool ends_with_ljspy(void)
{
	int signal_number = 0;

	return prctl(PR_GET_PDEATHSIG, &signal_number) == 0 && signal_number == SIGKILL;
}

static int look_at(struct made_up *of, const struct known_files *files, const struct namer_options *namer)
{
	(void)namer;
	if (!files || of->is_others != is_their_user || is_their_user != ends_with_ljspy())
		return -EINVAL;
	return of->open_error;
}

#include "tests/unit/looked_at.h"

INSTEAD_OF(permission_would_take_identity);
bool __wrap_permission_would_take_identity(const struct process *process)
{
	return made_up(process->pid)->is_others;
}

INSTEAD_OF(permission_take_target_identity);
int __wrap_permission_take_target_identity(const struct process *process)
{
	is_their_user = true;
	prctl(PR_SET_PDEATHSIG, 0); /* as the kernel does for another user */
	return made_up(process->pid)->identity_error;
}

INSTEAD_OF(getppid);
pid_t __wrap_getppid(void)
{
	return has_lost_ljspy ? 1 : __real_getppid();
}

INSTEAD_OF(lua_process_refresh);
int __wrap_lua_process_refresh(struct lua_process *process, bool thorough)
{
	(void)thorough;
	return ((struct made_up *)process)->refresh_error;
}

INSTEAD_OF(lua_process_lacks_luajit);
int __wrap_lua_process_lacks_luajit(const struct lua_process *process)
{
	return ((const struct made_up *)process)->lacks;
}

INSTEAD_OF(lua_process_module);
struct lua_module __wrap_lua_process_module(const struct lua_process *process, size_t index)
{
	return (struct lua_module){ .vm = index ? NULL : ((const struct made_up *)process)->vm };
}

/*---- Clocks ----*/

INSTEAD_OF(cpu_clock_open);
int __wrap_cpu_clock_open(pid_t pid, struct cpu_clock *ret_clock)
{
	*ret_clock = (struct cpu_clock){ .id = pid };
	return 0;
}

INSTEAD_OF(cpu_clock_now);
int __wrap_cpu_clock_now(const struct cpu_clock *clock, uint64_t *ret_ns)
{
	const struct made_up *of = made_up(clock->id);

	*ret_ns = of->cpu_ns + (has_slept ? of->used_ns : 0);
	return has_slept ? of->clock_error : 0;
}

INSTEAD_OF(nanosleep);
int __wrap_nanosleep(const struct timespec *time, struct timespec *ret_rest)
{
	(void)ret_rest;
	assert_int_equal(time->tv_sec, 0);
	assert_int_equal(time->tv_nsec, 200 * 1000 * 1000);
	has_slept = true;
	return 0;
}

INSTEAD_OF(clock_gettime);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	const uint64_t now_ns = UINT64_C(5000000000) + (has_slept ? slept_ns : 0);

	(void)clock;
	*ret_time = (struct timespec){ .tv_sec = (time_t)(now_ns / NS_PER_SECOND),
				       .tv_nsec = (long)(now_ns % NS_PER_SECOND) };
	return 0;
}

/*---- A survey ----*/

static int begin(void **state)
{
	(void)state;
	looked_at_begin(NULL);
	for (size_t i = 0; i < PROCESSES; i++)
		world[i] = (struct made_up){ .name = "app", .lacks = -ENOEXEC };
	is_their_user = has_lost_ljspy = has_slept = false;
	slept_ns = NS_PER_SECOND / 5;
	survey = (struct survey){ 0 };
	return 0;
}

static int end(void **state)
{
	(void)state;
	survey_clear(&survey);
	assert_no_look_is_open();
	return 0;
}

static void take(void)
{
	struct process_list list = { .processes = calloc(PROCESSES, sizeof(struct process)),
				     .count = PROCESSES };

	assert_non_null(list.processes);
	for (size_t i = 0; i < PROCESSES; i++) {
		list.processes[i].pid = FIRST + (pid_t)i;
		snprintf(list.processes[i].name, sizeof(list.processes[i].name), "%s", world[i].name);
		list.processes[i].command = strdup("app");
	}
	survey_clear(&survey);
	assert_int_equal(survey_take(&list, &survey), 0);
	assert_null(list.processes);
	assert_int_equal(list.count, 0);
}

static void those_that_run_luajit_are_kept(void **state)
{
	(void)state;
	world[1].lacks = world[3].lacks = world[5].lacks = 0;
	world[1].vm = &new_vm;
	world[3].vm = &old_vm;
	take();
	assert_int_equal(survey.list.count, 3);
	assert_int_equal(survey.list.processes[0].pid, FIRST + 1);
	assert_string_equal(survey.findings[0].vm, "LuaJIT 2.1 GC64");
	assert_int_equal(survey.list.processes[1].pid, FIRST + 3);
	assert_string_equal(survey.findings[1].vm, "LuaJIT 2.0, no JIT");
	assert_int_equal(survey.list.processes[2].pid, FIRST + 5);
	assert_string_equal(survey.findings[2].vm, "");
	assert_true(survey.findings[0].runs_luajit);
	assert_int_equal(survey.refused_count, 0);
	assert_int_equal(survey.refused_pid, 0);
}

static void a_process_that_could_not_be_looked_at_is_told(void **state)
{
	(void)state;
	world[0].open_error = -ESRCH;
	world[1].open_error = -EACCES;
	world[2].refresh_error = -EPERM;
	world[2].name = "nginx: worker";
	world[3].open_error = -EACCES;
	world[3].name = "luajit";
	world[4].lacks = -ENODATA; /* nobody knows, as it could not be read now */
	take();
	assert_int_equal(survey.list.count, 0);
	assert_int_equal(survey.refused_count, 3);
	/* The first one that is likely to run LuaJIT. */
	assert_int_equal(survey.refused_pid, FIRST + 2);
	assert_int_equal(survey.refused_error, EPERM);
}

static void names_that_suggest_luajit(void **state)
{
	static const char *const names[] = { "luajit", "nginx", "openresty", "kong", "apisix", "nvim" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		begin(state);
		world[4].open_error = -EACCES;
		world[4].name = names[i];
		take();
		assert_int_equal(survey.refused_pid, FIRST + 4);
		end(state);
	}
}

/* As root without a capability. */
static void a_process_of_another_user_is_looked_at_as_that_user(void **state)
{
	(void)state;
	world[1].is_others = world[2].is_others = world[3].is_others = true;
	world[1].lacks = world[2].lacks = 0;
	world[1].vm = &new_vm;
	world[2].identity_error = -EPERM;
	world[3].open_error = -EIO;
	world[5].lacks = 0;
	take();
	assert_int_equal(survey.list.count, 2);
	assert_int_equal(survey.list.processes[0].pid, FIRST + 1);
	assert_string_equal(survey.findings[0].vm, "LuaJIT 2.1 GC64");
	assert_int_equal(survey.list.processes[1].pid, FIRST + 5);
	assert_int_equal(survey.refused_count, 2);
	assert_false(is_their_user); /* ljspy itself stays who it is */
}

/* Nobody waits for what it would find. */
static void a_child_that_ljspy_has_left_looks_at_nothing(void **state)
{
	(void)state;
	world[1].is_others = true;
	world[1].lacks = 0;
	world[1].name = "luajit";
	has_lost_ljspy = true;
	take();
	assert_int_equal(survey.list.count, 0);
	assert_int_equal(survey.refused_pid, FIRST + 1);
}

static void cpu_use_is_of_the_time_that_has_passed(void **state)
{
	double cpu[PROCESSES];

	(void)state;
	for (size_t i = 0; i < PROCESSES; i++)
		world[i] = (struct made_up){ .name = "app", .cpu_ns = 7 * (uint64_t)NS_PER_SECOND };
	world[1].used_ns = NS_PER_SECOND / 10;
	world[2].used_ns = NS_PER_SECOND / 5;
	world[3].used_ns = NS_PER_SECOND / 5;
	world[3].clock_error = -ESRCH; /* it has ended */
	take();
	survey_measure(&survey, cpu);
	assert_int_equal((int)(cpu[0] + 0.5), 0);
	assert_int_equal((int)(cpu[1] + 0.5), 50);
	assert_int_equal((int)(cpu[2] + 0.5), 100);
	assert_int_equal((int)(cpu[3] + 0.5), 0);
	/* ljspy got no CPU for a while. */
	has_slept = false;
	slept_ns = NS_PER_SECOND;
	survey_measure(&survey, cpu);
	assert_int_equal((int)(cpu[2] + 0.5), 20);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(those_that_run_luajit_are_kept),
		TEST(a_process_that_could_not_be_looked_at_is_told),
		TEST(names_that_suggest_luajit),
		TEST(a_process_of_another_user_is_looked_at_as_that_user),
		TEST(a_child_that_ljspy_has_left_looks_at_nothing),
		TEST(cpu_use_is_of_the_time_that_has_passed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

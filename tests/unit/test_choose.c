/* SPDX-License-Identifier: MIT */
/* Which processes a command looks at, and what the user is told where it cannot. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "src/inspect/lua_process.h"
#include "src/linux/proc/user_name.h"
#include "src/survey/puc_lua.h"
#include "src/survey/survey.h"
#include "src/targets/choose.h"
#include "src/targets/halted.h"
#include "tests/unit/followed.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/told.h"
#include "tests/unit/told_reason.h"

enum { PROCESSES = 6, USER = 1000, OTHER_USER = 2000 };

struct made_up {
	bool is_gone, is_thread, runs_luajit;
	bool is_stuck;  /* whoever reads its arguments waits */
	int reads_busy; /* so often it is in the middle of an execve() */
	char state;
	bool is_kernels, is_32bit;
	uid_t user;
	pid_t parent, tracer, own;
	const char *vm;
	int look_error; /* why a look at its layout fails */
	bool is_misfit, lacks_layout;
	unsigned int opened;
};

/* What ljspy may do, and does. */
static struct {
	int identity_error;
	uid_t taken;       /* whose identity it has taken on; 0: nobody's */
	uint64_t waits_ns; /* for files, in all */
	bool launch_refused;
	int refusal; /* nothing can be looked at at all */
	int find_error;
	pid_t refused; /* a process that a survey could not look at */
	size_t refused_count;
	const char *asked_name; /* what processes were looked for by */
	unsigned int naps, surveys;
} seen;

static struct options options;

static int look_at(struct made_up *of, const struct known_files *files, const struct namer_options *namer)
{
	(void)files, (void)namer;
	return of->look_error;
}

#include "tests/unit/looked_at.h"

static void fill(pid_t pid, struct process *ret_process)
{
	const struct made_up *of = made_up(pid);

	*ret_process = (struct process){ .pid = pid,
					 .own_pid = of->own ? of->own : pid,
					 .parent_pid = of->parent,
					 .tracer_pid = of->tracer,
					 .uid = of->user,
					 .euid = of->user,
					 .gid = of->user,
					 .state = of->state,
					 .kernel_thread = of->is_kernels,
					 .is_32bit = of->is_32bit,
					 .start_ticks = (uint64_t)pid * 10 };
	snprintf(ret_process->name, sizeof(ret_process->name), "lua%d", (int)pid);
	ret_process->command = strdup(ret_process->name);
	assert_non_null(ret_process->command);
	ret_process->command_length = strlen(ret_process->name) + 1;
}

INSTEAD_OF(process_read_outside);
int __wrap_process_read_outside(pid_t pid, struct process *ret_process)
{
	struct made_up *of = made_up(pid);

	if (of->is_gone)
		return -ESRCH;
	if (of->reads_busy) {
		of->reads_busy--;
		return -EBUSY;
	}
	fill(pid, ret_process);
	return 0;
}

static void fill_unread(pid_t pid, struct process_list *list)
{
	struct process *unread = &list->unread[list->unread_count++];

	fill(pid, unread);
	free(unread->command);
	unread->command = NULL;
	unread->command_length = 0;
}

INSTEAD_OF(process_list_read);
int __wrap_process_list_read(struct process_look *looks, size_t count, const regex_t *pattern,
			     struct process_list *ret_list)
{
	struct process_list list = { .processes = calloc(count + 1, sizeof(*list.processes)),
				     .unread = calloc(count + 1, sizeof(*list.unread)) };

	assert_null(pattern);
	assert_non_null(list.processes);
	assert_non_null(list.unread);
	for (size_t i = 0; i < count; i++)
		if (made_up(looks[i].pid)->is_stuck)
			fill_unread(looks[i].pid, &list);
		else if (__wrap_process_read_outside(looks[i].pid, &list.processes[list.count]) == 0)
			list.count++;
	*ret_list = list;
	return 0;
}

INSTEAD_OF(nanosleep);
int __wrap_nanosleep(const struct timespec *time, struct timespec *ret_rest)
{
	(void)time, (void)ret_rest;
	seen.naps++;
	return 0;
}

INSTEAD_OF(process_if_thread);
pid_t __wrap_process_if_thread(pid_t id)
{
	return made_up(id)->is_thread ? FIRST : 0;
}

INSTEAD_OF(process_find);
int __wrap_process_find(const char *pattern, struct process_list *ret_list, char **ret_message)
{
	seen.asked_name = pattern;
	if (seen.find_error == -EINVAL && pattern[0] == '(')
		*ret_message = strdup("no )");
	if (seen.find_error)
		return seen.find_error;
	*ret_list = (struct process_list){ .processes = calloc(PROCESSES, sizeof(struct process)) };
	assert_non_null(ret_list->processes);
	ret_list->unread = calloc(PROCESSES, sizeof(struct process));
	assert_non_null(ret_list->unread);
	for (pid_t pid = FIRST; pid < FIRST + PROCESSES; pid++) {
		if (made_up(pid)->is_stuck) {
			fill_unread(pid, ret_list);
		} else if (!made_up(pid)->is_gone) {
			fill(pid, &ret_list->processes[ret_list->count++]);
		}
	}
	return 0;
}

/*---- Descendants ----*/

static bool is_followed(pid_t pid)
{
	for (size_t i = 0; i < followed.count; i++)
		if (followed.pids[i] == pid)
			return true;
	return false;
}

static void find_descendants(follow_found *found, void *context)
{
	for (pid_t pid = FIRST; pid < FIRST + PROCESSES; pid++) {
		if (!followed.options.descendants || !is_followed(made_up(pid)->parent) || is_followed(pid))
			continue;
		followed_note(pid);
		found(context, pid);
	}
}

/*---- What may be looked at, and what is there ----*/

INSTEAD_OF(permission_diagnose_launch);
bool __wrap_permission_diagnose_launch(const char *command, int error, struct permission_verdict *ret_verdict)
{
	(void)error;
	if (!seen.launch_refused)
		return false;
	*ret_verdict = (struct permission_verdict){ .remedy = "Do that." };
	snprintf(ret_verdict->sentence, sizeof(ret_verdict->sentence), "%s cannot be.", command);
	return true;
}

INSTEAD_OF(permission_diagnose_error);
bool __wrap_permission_diagnose_error(int error, struct permission_verdict *ret_verdict)
{
	*ret_verdict = (struct permission_verdict){ .sentence = "Nothing can be seen.",
						    .remedy = "Do that." };
	return seen.refusal && error == seen.refusal - 1;
}

INSTEAD_OF(permission_take_target_identity);
int __wrap_permission_take_target_identity(const struct process *process)
{
	if (!seen.identity_error)
		seen.taken = process->uid;
	return seen.identity_error;
}

INSTEAD_OF(errands_allow);
void __wrap_errands_allow(struct errands *errands, uint64_t *left_ns)
{
	seen.waits_ns = *left_ns;
	__real_errands_allow(errands, left_ns);
}

INSTEAD_OF(puc_lua_find);
bool __wrap_puc_lua_find(pid_t pid, struct errands *errands, char ret_version[static PUC_LUA_VERSION_MAX])
{
	/* A slow disk may not keep ljspy. */
	assert_non_null(errands);
	assert_in_range(seen.waits_ns, 1, 1000 * 1000 * 1000);
	snprintf(ret_version, PUC_LUA_VERSION_MAX, "5.4");
	return pid == FIRST + 5;
}

INSTEAD_OF(survey_take);
int __wrap_survey_take(struct process_list *list, struct survey *ret_survey)
{
	struct survey survey = { .list.processes = calloc(list->count + 1, sizeof(struct process)),
				 .findings = calloc(list->count + 1, sizeof(struct finding)),
				 .refused_count = seen.refused_count,
				 .refused_pid = seen.refused,
				 .refused_error = EPERM };

	seen.surveys++;
	assert_true(survey.list.processes && survey.findings);
	for (size_t i = 0; i < list->count; i++) {
		const struct made_up *of = made_up(list->processes[i].pid);

		if (!of->runs_luajit)
			continue;
		snprintf(survey.findings[survey.list.count].vm, SURVEY_VM_MAX, "%s", of->vm ? of->vm : "");
		fill(list->processes[i].pid, &survey.list.processes[survey.list.count++]);
	}
	process_list_clear(list);
	*list = (struct process_list){ 0 };
	*ret_survey = survey;
	return 0;
}

INSTEAD_OF(survey_measure);
void __wrap_survey_measure(const struct survey *survey, double *cpu)
{
	for (size_t i = 0; i < survey->list.count; i++)
		cpu[i] = 10 * (double)(i + 1);
}

INSTEAD_OF(user_name);
void __wrap_user_name(uid_t user, char *ret_name)
{
	sprintf(ret_name, "u%u", user);
}

/*---- Layouts ----*/

INSTEAD_OF(lua_process_refresh);
int __wrap_lua_process_refresh(struct lua_process *process, bool thorough)
{
	assert_non_null(process);
	assert_true(thorough);
	return 0;
}

INSTEAD_OF(lua_process_needs_confirming);
bool __wrap_lua_process_needs_confirming(const struct lua_process *process)
{
	return ((const struct made_up *)process)->is_misfit;
}

INSTEAD_OF(lua_process_module_count);
size_t __wrap_lua_process_module_count(const struct lua_process *process)
{
	(void)process;
	return 2;
}

INSTEAD_OF(lua_process_module);
struct lua_module __wrap_lua_process_module(const struct lua_process *process, size_t index)
{
	static const struct vm_code vm;
	const bool lacks = ((const struct made_up *)process)->lacks_layout && index == 1;

	return (struct lua_module){ .vm = lacks ? NULL : &vm, .verdict = index ? "no field" : "no state" };
}

/*---- The user ----*/

static int begin(void **state)
{
	(void)state;
	memset(&seen, 0, sizeof(seen));
	followed_begin();
	followed.search = find_descendants;
	looked_at_begin(NULL);
	seen.identity_error = -EALREADY;
	told_reason = PERMISSION_UNKNOWN;
	for (size_t i = 0; i < PROCESSES; i++)
		world[i] = (struct made_up){ .state = 'S', .user = USER };
	options = (struct options){ .command = COMMAND_DUMP };
	told[0] = '\0';
	return 0;
}

static int end(void **state)
{
	(void)state;
	free(options.pids);
	assert_no_look_is_open();
	assert_int_equal(followed.made, 0);
	return 0;
}

static void name_pids(size_t count, const pid_t *named)
{
	free(options.pids);
	options.pids = calloc(count, sizeof(*named));
	assert_non_null(options.pids);
	memcpy(options.pids, named, count * sizeof(*named));
	options.pid_count = count;
}

#define NAME(...) name_pids(sizeof((pid_t[]){ __VA_ARGS__ }) / sizeof(pid_t), (pid_t[]){ __VA_ARGS__ })

static enum exit_status choose(void)
{
	enum exit_status status;

	told_begin();
	status = choose_processes(&options);
	told_end();
	return status;
}

#define ASSERT_CHOSEN(...) \
	assert_chosen(sizeof((pid_t[]){ __VA_ARGS__ }) / sizeof(pid_t), (pid_t[]){ __VA_ARGS__ })

static void assert_chosen(size_t count, const pid_t *expected)
{
	assert_int_equal(options.pid_count, count);
	assert_memory_equal(options.pids, expected, count * sizeof(*expected));
}

/*---- Without a name ----*/

static void the_only_process_is_taken(void **state)
{
	(void)state;
	world[2].runs_luajit = true;
	assert_int_equal(choose(), EXIT_ALL_GOOD);
	ASSERT_CHOSEN(FIRST + 2);
	assert_string_equal(seen.asked_name, "");
	assert_string_equal(told, "");
}

static void several_are_offered(void **state)
{
	(void)state;
	world[1].runs_luajit = world[3].runs_luajit = world[4].runs_luajit = true;
	world[3].parent = FIRST + 1;
	world[3].own = 7;
	world[1].vm = "LuaJIT 2.1 GC64";
	assert_int_equal(choose(), EXIT_USAGE);
	assert_int_equal(options.pid_count, 0);
	assert_non_null(strstr(told, "several processes that run LuaJIT"));
	assert_non_null(strstr(told, "  -p 101      u1000        10 % CPU  LuaJIT 2.1 GC64   lua101\n"));
	assert_non_null(strstr(told,
			       "  -p 103      u1000        20 % CPU  LuaJIT, unknown   lua103 (7 in its "
			       "container)\n"));
	assert_non_null(strstr(told, "--tree 101  is process 101 and all its workers"));
	world[3].parent = 1;
	choose();
	assert_null(strstr(told, "--tree"));
}

static void no_process_at_all(void **state)
{
	(void)state;
	assert_int_equal(choose(), EXIT_NOTHING_DONE);
	assert_non_null(strstr(told, "No process that runs LuaJIT can be seen."));
	assert_non_null(strstr(told, "Name one with -p PID"));
	seen.refused_count = 3;
	assert_int_equal(choose(), EXIT_NOTHING_DONE);
	assert_non_null(strstr(told, "3 processes may not be looked at"));
	assert_null(strstr(told, "Name one"));
	seen.refused = FIRST + 1;
	assert_int_equal(choose(), EXIT_NOTHING_DONE);
	assert_string_equal(told, "ljspy: 101: error 1.\n");
	seen.find_error = -EACCES;
	assert_int_equal(choose(), EXIT_NOTHING_DONE);
	assert_non_null(strstr(told, "looking for processes in /proc"));
}

/*---- By name ----*/

static void all_of_a_name_are_taken(void **state)
{
	(void)state;
	options.name = "lua";
	world[1].runs_luajit = world[4].runs_luajit = true;
	assert_int_equal(choose(), EXIT_ALL_GOOD);
	ASSERT_CHOSEN(FIRST + 1, FIRST + 4);
	assert_string_equal(seen.asked_name, "lua");
}

static void a_name_that_finds_none(void **state)
{
	(void)state;
	options.name = "(lua";
	assert_int_equal(choose(), EXIT_NOTHING_DONE);
	assert_non_null(strstr(told, "No process that runs LuaJIT matches \"(lua\"."));
	assert_non_null(strstr(told, "extended regular expression"));
	seen.find_error = -EINVAL;
	assert_int_equal(choose(), EXIT_USAGE);
	assert_string_equal(told, "ljspy: The pattern \"(lua\" is not right: no )\n");
	/* Who waits for processes goes on without one. */
	seen.find_error = 0;
	options.command = COMMAND_SERVE;
	assert_int_equal(choose(), EXIT_ALL_GOOD);
	assert_string_equal(told, "");
	assert_int_equal(options.pid_count, 0);
}

static void commands_that_need_no_lua_take_all(void **state)
{
	static const enum command commands[] = { COMMAND_MEMORY, COMMAND_REQUESTS, COMMAND_TIMERS,
						 COMMAND_SHDICT };

	(void)state;
	options.name = "lua";
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		options.command = commands[i];
		assert_int_equal(choose(), EXIT_ALL_GOOD);
		assert_int_equal(options.pid_count, PROCESSES);
		free(options.pids);
		options.pids = NULL;
		options.pid_count = 0;
	}
	assert_int_equal(seen.surveys, 0);
	/* But not all processes that there are. */
	options.name = NULL;
	world[2].runs_luajit = true;
	assert_int_equal(choose(), EXIT_ALL_GOOD);
	ASSERT_CHOSEN(FIRST + 2);
	options.pid_count = 0;
	for (size_t i = 0; i < PROCESSES; i++)
		world[i].is_gone = true;
	options.name = "lua";
	assert_int_equal(choose(), EXIT_NOTHING_DONE);
}

/* The name is known of each, and what else may match is not. */
static void those_that_cannot_be_read_are_told_and_left_out(void **state)
{
	(void)state;
	options.name = "^lua101$";
	world[1].is_stuck = world[2].is_stuck = world[3].is_stuck = true;
	world[0].runs_luajit = true;
	assert_int_equal(choose(), EXIT_WITH_ERRORS);
	ASSERT_CHOSEN(FIRST);
	assert_non_null(strstr(told, "101"));
	assert_non_null(strstr(told, "Whether process 102 matches \"^lua101$\" is not known"));
	assert_non_null(strstr(told, "So it is with 2 processes."));
	/* None of them is known to be wanted. */
	options.pid_count = 0;
	options.name = "nobody";
	assert_int_equal(choose(), EXIT_ALL_GOOD);
	assert_non_null(strstr(told, "So it is with 3 processes."));
	options.pid_count = 0;
	options.name = NULL;
	assert_int_equal(choose(), EXIT_ALL_GOOD);
	assert_non_null(strstr(told, "Whether process 101 runs LuaJIT is not known"));
}

/*---- By pid ----*/

static void a_process_that_is_named_is_taken_as_it_is(void **state)
{
	(void)state;
	NAME(FIRST + 1);
	world[1].is_gone = true; /* the command tells */
	assert_int_equal(choose(), EXIT_ALL_GOOD);
	ASSERT_CHOSEN(FIRST + 1);
	assert_string_equal(told, "");
	assert_int_equal(seen.surveys, 0);
}

static void of_several_those_that_are_gone_are_left_out(void **state)
{
	(void)state;
	NAME(FIRST, FIRST + 1, FIRST + 2, FIRST + 3, FIRST + 4);
	world[0].is_gone = world[2].is_kernels = world[3].is_32bit = true;
	world[4].state = 'Z';
	world[1].reads_busy = 100;
	assert_int_equal(choose(), EXIT_WITH_ERRORS);
	ASSERT_CHOSEN(FIRST + 1);
	assert_int_equal(seen.naps, 100);
	assert_string_equal(told, "ljspy: 100: error 3.\nljspy: 102: error 3.\nljspy: 103: error 3.\n"
				  "ljspy: 104: error 3.\n");
	/* It does not leave its execve(). */
	NAME(FIRST + 1, FIRST);
	world[1].reads_busy = 101;
	assert_int_equal(choose(), EXIT_NOTHING_DONE);
	assert_string_equal(told, "ljspy: 101: error 16.\nljspy: 100: error 3.\n");
	NAME(FIRST + 1, FIRST + 5);
	assert_int_equal(choose(), EXIT_ALL_GOOD);
	ASSERT_CHOSEN(FIRST + 1, FIRST + 5);
}

static void a_thread_is_no_process(void **state)
{
	(void)state;
	world[1].is_thread = true;
	NAME(FIRST + 1);
	assert_int_equal(choose(), EXIT_NOTHING_DONE);
	assert_string_equal(told, "ljspy: 101: error 3.\n");
	NAME(FIRST + 1, FIRST + 2);
	assert_int_equal(choose(), EXIT_WITH_ERRORS);
	ASSERT_CHOSEN(FIRST + 2);
}

/* It gives the file its name. */
static void the_first_process_of_a_profile_is_one_that_is_in_it(void **state)
{
	static const enum command commands[] = { COMMAND_RECORD, COMMAND_TOP, COMMAND_SERVE, COMMAND_CHECK,
						 COMMAND_TRACES };

	(void)state;
	world[2].runs_luajit = world[3].runs_luajit = world[4].runs_luajit = true;
	world[2].tracer = 9;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		options.command = commands[i];
		NAME(FIRST + 1, FIRST + 2, FIRST + 3, FIRST + 4);
		assert_int_equal(choose(), EXIT_ALL_GOOD);
		ASSERT_CHOSEN(FIRST + 3, FIRST + 1, FIRST + 2, FIRST + 4);
	}
	/* A tracer does not matter to who stops nothing. */
	options.no_stop = true;
	NAME(FIRST + 1, FIRST + 2, FIRST + 3);
	assert_int_equal(choose(), EXIT_ALL_GOOD);
	ASSERT_CHOSEN(FIRST + 2, FIRST + 1, FIRST + 3);
	/* None is in it, as far as can be seen. */
	NAME(FIRST + 1, FIRST + 5);
	assert_int_equal(choose(), EXIT_ALL_GOOD);
	ASSERT_CHOSEN(FIRST + 1, FIRST + 5);
	/* Other commands take them one by one. */
	options.command = COMMAND_DUMP;
	NAME(FIRST + 1, FIRST + 2);
	assert_int_equal(choose(), EXIT_ALL_GOOD);
	ASSERT_CHOSEN(FIRST + 1, FIRST + 2);
}

/*---- Trees ----*/

static void descendants_are_found_where_the_command_does_not_follow(void **state)
{
	(void)state;
	options.subprocesses = true;
	world[1].parent = world[2].parent = FIRST;
	world[3].parent = FIRST + 2;
	world[1].runs_luajit = world[3].runs_luajit = world[4].runs_luajit = true;
	NAME(FIRST);
	assert_int_equal(choose(), EXIT_ALL_GOOD);
	ASSERT_CHOSEN(FIRST + 1, FIRST + 3);
	options.command = COMMAND_RECORD; /* it follows them */
	NAME(FIRST);
	assert_int_equal(choose(), EXIT_ALL_GOOD);
	ASSERT_CHOSEN(FIRST);
	options.command = COMMAND_DUMP;
	options.subprocesses = false;
	assert_int_equal(choose(), EXIT_ALL_GOOD);
	ASSERT_CHOSEN(FIRST);
}

static void each_command_that_looks_once_finds_descendants(void **state)
{
	static const enum command commands[] = { COMMAND_DUMP, COMMAND_TRACES, COMMAND_HEAP, COMMAND_CHECK,
						 COMMAND_INFO };

	(void)state;
	options.subprocesses = true;
	world[1].parent = FIRST;
	world[1].runs_luajit = true;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		options.command = commands[i];
		NAME(FIRST);
		assert_int_equal(choose(), EXIT_ALL_GOOD);
		ASSERT_CHOSEN(FIRST + 1);
	}
	options.command = COMMAND_MEMORY;
	NAME(FIRST);
	assert_int_equal(choose(), EXIT_ALL_GOOD);
	ASSERT_CHOSEN(FIRST, FIRST + 1);
}

static void members_that_cannot_be_read_are_told_and_left_out(void **state)
{
	(void)state;
	options.subprocesses = true;
	world[1].parent = world[2].parent = FIRST;
	world[1].is_stuck = world[1].runs_luajit = world[2].runs_luajit = true;
	NAME(FIRST);
	assert_int_equal(choose(), EXIT_WITH_ERRORS);
	ASSERT_CHOSEN(FIRST + 2);
	assert_string_equal(told, "ljspy: 101: error 110.\n");
	NAME(FIRST + 1);
	assert_int_equal(choose(), EXIT_NOTHING_DONE);
	assert_string_equal(told, "ljspy: 101: error 110.\n");
}

static void a_tree_without_luajit(void **state)
{
	(void)state;
	options.subprocesses = true;
	NAME(FIRST + 3);
	assert_int_equal(choose(), EXIT_NOTHING_DONE);
	assert_string_equal(told,
			    "ljspy: Neither process 103 nor any of its descendants runs LuaJIT, as far as "
			    "can be seen.\n");
	world[3].is_gone = true;
	assert_int_equal(choose(), EXIT_NOTHING_DONE);
	assert_string_equal(told, "ljspy: 103: error 3.\n");
	/* One that is gone is told beside others that are there. */
	world[2].runs_luajit = true;
	NAME(FIRST + 3, FIRST + 2);
	assert_int_equal(choose(), EXIT_WITH_ERRORS);
	ASSERT_CHOSEN(FIRST + 2);
}

static void who_needs_no_process_chooses_none(void **state)
{
	(void)state;
	options.core = "core";
	seen.refusal = 1;
	assert_int_equal(choose(), EXIT_ALL_GOOD);
	options.core = NULL;
	options.dwarf = "file";
	assert_int_equal(choose(), EXIT_ALL_GOOD);
	options.name = "lua"; /* the file is for these */
	assert_int_equal(choose(), EXIT_NOTHING_DONE);
	assert_string_equal(told, "ljspy: Nothing can be seen.\nljspy: Do that.\n");
	options.dwarf = options.name = NULL;
	options.recordings = (char *[]){ NULL };
	assert_int_equal(choose(), EXIT_ALL_GOOD);
	options.recordings = NULL;
	options.launch = (char *[]){ NULL };
	assert_int_equal(choose(), EXIT_NOTHING_DONE);
	seen.refusal = 0;
	assert_int_equal(choose(), EXIT_ALL_GOOD);
	assert_null(seen.asked_name);
}

/*---- Users ----*/

static bool check_all(void)
{
	bool good;

	told_begin();
	good = choose_check_all(&options);
	told_end();
	return good;
}

static void the_user_taken_on_is_that_of_most(void **state)
{
	(void)state;
	seen.identity_error = 0;
	world[0].user = 0;
	world[2].user = OTHER_USER;
	NAME(FIRST, FIRST + 1);
	assert_true(check_all());
	assert_int_equal(seen.taken, USER); /* a tie: not root's */
	NAME(FIRST + 1, FIRST);
	assert_true(check_all());
	assert_int_equal(seen.taken, USER);
	NAME(FIRST + 2, FIRST + 1);
	assert_true(check_all());
	assert_int_equal(seen.taken, OTHER_USER); /* a tie: the first one's */
	NAME(FIRST + 2, FIRST + 1, FIRST + 3);
	assert_true(check_all());
	assert_int_equal(seen.taken, USER);
	/* A master and its workers. */
	options.subprocesses = true;
	world[1].parent = world[2].parent = world[3].parent = FIRST;
	world[3].user = OTHER_USER;
	NAME(FIRST);
	assert_true(check_all());
	assert_int_equal(seen.taken, OTHER_USER);
}

static bool check_presence(void)
{
	bool good;

	told_begin();
	good = choose_check_presence(&options);
	told_end();
	return good;
}

static void some_process_is_to_be_there(void **state)
{
	(void)state;
	seen.taken = 0;
	world[1].is_gone = true;
	NAME(FIRST);
	assert_true(check_presence());
	NAME(FIRST + 1, FIRST);
	assert_true(check_presence());
	assert_string_equal(told, "");
	assert_int_equal(seen.taken, 0);
	NAME(FIRST + 1);
	assert_false(check_presence());
	assert_string_not_equal(told, "");
	world[1].is_gone = false;
	world[1].state = 'Z';
	assert_false(check_presence());
	world[1].is_gone = true;
	options.subprocesses = true;
	assert_false(check_presence());
	assert_string_not_equal(told, "");
	/* One that begins another program all the time may have descendants. */
	world[1].is_gone = false;
	world[1].state = 'S';
	world[1].reads_busy = INT_MAX;
	assert_true(check_presence());
	assert_string_equal(told, "");
	options.subprocesses = false;
	assert_false(check_presence());
}

static void a_user_that_cannot_be_taken_on_is_told(void **state)
{
	(void)state;
	NAME(FIRST, FIRST + 1);
	assert_true(check_all());
	assert_string_equal(told, "");
	seen.identity_error = -EPERM;
	assert_false(check_all());
	assert_string_equal(told, "ljspy: 100: error 1.\n");
	NAME(FIRST + 1);
	assert_false(check_all());
	assert_string_equal(told, "ljspy: 101: error 1.\n");
	world[1].is_gone = world[2].is_gone = true;
	assert_false(check_all());
	assert_string_equal(told, "ljspy: 101: error 3.\n");
	NAME(FIRST + 1, FIRST + 2);
	assert_false(check_all());
	assert_string_equal(told, "ljspy: 101: error 3.\n");
}

static void a_process_that_can_be_looked_at_has_its_start(void **state)
{
	uint64_t start = 0;

	(void)state;
	assert_int_equal(choose_can_look(FIRST + 1, &start), 0);
	assert_int_equal(start, (FIRST + 1) * 10);
	world[1].state = 'Z';
	assert_int_equal(choose_can_look(FIRST + 1, &start), -ESRCH);
	seen.identity_error = -EPERM;
	assert_int_equal(choose_can_look(FIRST, &start), -EPERM);
}

/*---- Layouts ----*/

static bool check_layouts(void)
{
	bool fits;

	told_begin();
	fits = choose_check_layouts(&options);
	told_end();
	return fits;
}

static void a_layout_has_to_fit(void **state)
{
	static char layout;

	(void)state;
	NAME(FIRST + 1);
	world[1].is_misfit = true;
	assert_true(check_layouts());
	assert_string_equal(told, "");
	assert_int_equal(layouts_given, 0);
	options.layout = (struct given_layout *)&layout;
	layout_wanted = options.layout;
	assert_false(check_layouts());
	assert_int_equal(layouts_given, 1);
	assert_string_equal(told,
			    "ljspy: The layout given does not fit the LuaJIT of process 101: no state.\n");
	world[1] = (struct made_up){ .state = 'S', .lacks_layout = true };
	assert_false(check_layouts());
	assert_string_equal(told,
			    "ljspy: The layout given does not fit the LuaJIT of process 101: no field.\n");
	world[1].lacks_layout = false;
	assert_true(check_layouts());
	assert_string_equal(told, "");
	world[1].look_error = -EPERM;
	assert_false(check_layouts());
	assert_string_equal(told, "ljspy: 101: error 1.\n");
	/* Of several, the command tells which ones cannot be read. */
	NAME(FIRST + 1, FIRST + 2);
	assert_true(check_layouts());
	assert_string_equal(told, "");
	world[2].is_misfit = true;
	assert_false(check_layouts());
	assert_int_equal(told_times("does not fit the LuaJIT of process 102"), 1);
}

/*---- Why not ----*/

static bool explain_failure(const struct sampler_result *result, const char *command)
{
	bool is_explained;

	told_begin();
	is_explained = choose_explain_failure(result, command);
	told_end();
	return is_explained;
}

static void sampling_that_could_not_begin_is_explained(void **state)
{
	struct sampler_result result = { .end = SAMPLER_FAILED, .pid = FIRST + 1, .error = -EPERM };

	(void)state;
	assert_true(explain_failure(&result, NULL));
	assert_string_equal(told, "ljspy: 101: error 1.\n");
	assert_true(explain_failure(&result, "./run"));
	assert_string_equal(told, "ljspy: ./run: Operation not permitted\n");
	seen.launch_refused = true;
	assert_true(explain_failure(&result, "./run"));
	assert_string_equal(told, "ljspy: ./run cannot be.\nljspy: Do that.\n");
	seen.launch_refused = false;
	result.error = -ENOENT;
	assert_true(explain_failure(&result, "./run"));
	assert_string_equal(told, "ljspy: ./run: No such file or directory\n");
	result.pid = 0;
	assert_true(explain_failure(&result, NULL));
	assert_string_equal(told, "ljspy: starting to take samples: No such file or directory\n");
	result.error = -ENOSYS;
	assert_true(explain_failure(&result, NULL));
	assert_non_null(strstr(told, "No timer can be had: timer_create() is refused"));
	result.error = -EPERM;
	assert_true(explain_failure(&result, NULL));
	assert_non_null(strstr(told, "No timer, thread or process can be had"));
	seen.refusal = 1 + EPERM;
	assert_true(explain_failure(&result, NULL));
	assert_string_equal(told, "ljspy: Nothing can be seen.\nljspy: Do that.\n");
	result.end = SAMPLER_DURATION_OVER;
	assert_false(explain_failure(&result, NULL));
	assert_string_equal(told, "");
}

/* What was seen by then is nothing: for no command it is a result. */
static void a_signal_before_the_beginning_is_explained(void **state)
{
	struct sampler_result result = { .end = SAMPLER_INTERRUPTED };

	(void)state;
	assert_true(explain_failure(&result, NULL));
	assert_string_equal(told, "ljspy: There is no sample: sampling was to end before it had begun.\n"
				  "ljspy: ljspy was still searching for LuaJIT.\n");
	assert_true(choose_ended_before_beginning(&result));
	result.begin_ns = 1;
	assert_false(explain_failure(&result, NULL));
	assert_string_equal(told, "");
	result = (struct sampler_result){ .end = SAMPLER_DURATION_OVER };
	assert_false(choose_ended_before_beginning(&result));
}

static void a_process_without_luajit_may_run_another_lua(void **state)
{
	struct sampler_result result = { .end = SAMPLER_NO_LUAJIT, .pid = FIRST + 1 };

	(void)state;
	assert_true(explain_failure(&result, NULL));
	assert_non_null(strstr(told, "Process 101 does not run LuaJIT, as far as can be seen"));
	assert_non_null(strstr(told, "`ljspy info -p 101`"));
	result.pid = FIRST + 5;
	assert_true(explain_failure(&result, NULL));
	assert_string_equal(told,
			    "ljspy: Process 105 does not run LuaJIT: it runs PUC Lua 5.4, which ljspy does "
			    "not know.\n");
	told_begin();
	choose_explain_look(FIRST + 5, ENOEXEC);
	choose_explain_look(FIRST + 5, ESRCH);
	told_end();
	assert_int_equal(told_times("runs PUC Lua 5.4"), 1);
	assert_int_equal(told_times("105: error 3."), 1);
}

/* It may be a wrapper, as sudo and timeout are: what it has started is what the user means. */
static void of_a_process_without_luajit_a_descendant_that_runs_it_is_offered(void **state)
{
	(void)state;
	world[3].parent = FIRST + 1;
	world[3].runs_luajit = true;
	told_begin();
	choose_explain_no_luajit(FIRST + 1);
	told_end();
	assert_non_null(strstr(told, "Process 101 does not run LuaJIT"));
	assert_non_null(strstr(
		told, "ljspy: Its descendant 103 (lua103) does: name that one in its place, with -p 103\n"));
	assert_null(strstr(told, "`ljspy info"));
	world[4].parent = FIRST + 3;
	world[4].runs_luajit = true;
	told_begin();
	choose_explain_no_luajit(FIRST + 1);
	told_end();
	assert_non_null(strstr(told, "ljspy: 2 of its descendants do: --tree 101\n"));
	/* It may have begun to run LuaJIT meanwhile, but it is no descendant of its own. */
	world[1].runs_luajit = true;
	world[3].runs_luajit = false;
	told_begin();
	choose_explain_no_luajit(FIRST + 1);
	told_end();
	assert_non_null(strstr(told, "ljspy: Its descendant 104 (lua104) does: "));
}

static void an_engine_that_has_ended_is_explained_once(void **state)
{
	struct sampler_result result = { .end = SAMPLER_KILLED };
	bool is_told;

	(void)state;
	assert_true(explain_failure(&result, NULL));
	assert_string_equal(told, "ljspy: The process of ljspy's that takes samples was killed.\n");
	result.error = -ECHILD;
	assert_true(explain_failure(&result, NULL));
	assert_non_null(strstr(told, "cannot wait for each other: waitpid() fails: No child"));
	result.error = -ENOMEM;
	assert_true(explain_failure(&result, NULL));
	assert_string_equal(told,
			    "ljspy: The samples that were taken cannot be read: Cannot allocate memory\n");
	result.end = SAMPLER_BLOCKED;
	result.error = 0;
	assert_true(explain_failure(&result, NULL));
	assert_non_null(strstr(told, "The kernel has kept ljspy waiting"));
	assert_null(strstr(told, "goes on without"));
	result.pid = FIRST + 1;
	result.unreadable_count = UNREADABLE_MAX;
	assert_true(explain_failure(&result, NULL));
	assert_non_null(strstr(told, "101: error 110."));
	assert_non_null(strstr(told, "ljspy goes on without 16 such processes at most."));
	sampler_note(&result.refused, FIRST, ETIMEDOUT);
	sampler_note(&result.refused, FIRST + 1, ETIMEDOUT);
	assert_true(explain_failure(&result, NULL));
	assert_null(strstr(told, "101: error"));
	assert_non_null(strstr(told, "No other process is left"));
	/* Where there are samples, it ended early. */
	result.figures.samples = 1;
	assert_false(explain_failure(&result, NULL));
	assert_string_equal(told, "");
	told_begin();
	is_told = choose_explain_early_end(&result);
	result.end = SAMPLER_KILLED;
	is_told &= choose_explain_early_end(&result);
	result.error = -ECHILD;
	is_told &= choose_explain_early_end(&result);
	result.error = -ENOMEM;
	is_told &= choose_explain_early_end(&result);
	result.end = SAMPLER_DURATION_OVER;
	is_told &= !choose_explain_early_end(&result);
	told_end();
	assert_true(is_told);
	assert_int_equal(told_times("No other process is left"), 1);
	assert_int_equal(told_times("was killed; there are no samples after that."), 1);
	assert_int_equal(told_times("waitpid() fails (No child processes); there are no samples after that."),
			 1);
	assert_int_equal(told_times("be read (Cannot allocate memory); there are no samples after that."), 1);
}

static void only_the_first_eight_notes_are_told(void **state)
{
	struct sampler_noted noted = { 0 };

	(void)state;
	for (pid_t i = 0; i < NOTES_TOLD_MAX + 1; i++)
		sampler_note(&noted, FIRST + i, EPERM);
	assert_true(choose_has_told(&noted, FIRST));
	assert_true(choose_has_told(&noted, FIRST + NOTES_TOLD_MAX - 1));
	assert_false(choose_has_told(&noted, FIRST + NOTES_TOLD_MAX));
	assert_false(choose_has_told(&noted, 1));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(the_only_process_is_taken),
		TEST(several_are_offered),
		TEST(no_process_at_all),
		TEST(all_of_a_name_are_taken),
		TEST(a_name_that_finds_none),
		TEST(commands_that_need_no_lua_take_all),
		TEST(those_that_cannot_be_read_are_told_and_left_out),
		TEST(a_process_that_is_named_is_taken_as_it_is),
		TEST(of_several_those_that_are_gone_are_left_out),
		TEST(a_thread_is_no_process),
		TEST(the_first_process_of_a_profile_is_one_that_is_in_it),
		TEST(descendants_are_found_where_the_command_does_not_follow),
		TEST(each_command_that_looks_once_finds_descendants),
		TEST(members_that_cannot_be_read_are_told_and_left_out),
		TEST(a_tree_without_luajit),
		TEST(who_needs_no_process_chooses_none),
		TEST(the_user_taken_on_is_that_of_most),
		TEST(some_process_is_to_be_there),
		TEST(a_user_that_cannot_be_taken_on_is_told),
		TEST(a_process_that_can_be_looked_at_has_its_start),
		TEST(a_layout_has_to_fit),
		TEST(sampling_that_could_not_begin_is_explained),
		TEST(a_signal_before_the_beginning_is_explained),
		TEST(a_process_without_luajit_may_run_another_lua),
		TEST(of_a_process_without_luajit_a_descendant_that_runs_it_is_offered),
		TEST(an_engine_that_has_ended_is_explained_once),
		TEST(only_the_first_eight_notes_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

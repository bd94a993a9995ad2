/* SPDX-License-Identifier: MIT */
/* ljspy dump: how often it tries to read a thread, what it tells of those that it cannot, and how it ends. */
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
#include "src/linux/threads/may_stop.h"
#include "src/linux/threads/threads.h"
#include "src/linux/tracer/tracer.h"
#include "src/survey/asleep.h"
#include "src/survey/core_stacks.h"
#include "src/survey/dump_stacks.h"
#include "src/survey/traced_process.h"
#include "src/targets/choose.h"
#include "src/targets/command_apart.h"
#include "src/targets/core_look.h"
#include "tests/unit/full_output.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/run_command.h"

enum { PROCESSES = 2, THREAD_ID = 500, TRIES = 10, WAITS = 1000 };

struct made_up {
	bool may_not, misfits, is_gone, has_no_luajit, lacks_coroutines;
	int open_error, trace_error, refresh_error;
	unsigned int opened;
};

/* The thread of each process. */
static struct {
	struct tracee tracee;
	struct thread thread;
	enum may_stop nature;
	unsigned int waits_first; /* so often it may not be stopped before that */
	int stop_error, registers_error;
	enum asleep_verdict asleep;
	enum thread_state sleep_state;
	unsigned int whole_at;  /* which try finds all of its stack; 0: none */
	uint64_t runs_on_after; /* so many looks it has run on since it was stopped */
} one;

static struct {
	bool has_no_tracer, allows_attach, wants_values;
	unsigned int give_up_after; /* rests */
	unsigned int tries, stops, resumes, rests, run_looks, traced, holds;
	unsigned int core_reads, other_core_reads, cores;
	bool core_is_other, core_has_vm, core_is_whole;
	int core_error;
} seen;

static struct options options;

static int look_at(struct made_up *of, const struct known_files *files, const struct namer_options *namer)
{
	assert_non_null(files);
	assert_int_equal(namer->errors, options.details || options.locals ? ERRORS_VALUES : ERRORS_CAUGHT);
	return of->open_error;
}

#include "tests/unit/looked_at.h"

#include "tests/unit/checked_each.h"

/*---- The command ----*/

INSTEAD_OF(command_run_apart);
enum exit_status __wrap_command_run_apart(command_in_engine *command, const struct invocation *invocation,
					  bool can_be_concluded)
{
	assert_false(can_be_concluded);
	assert_null(invocation->options->core);
	return command(NULL, invocation);
}

INSTEAD_OF(command_try_run);
int __wrap_command_try_run(struct command_try *try, void *(*read)(void *context), void *context)
{
	(void)try;
	assert_null(read(context));
	return 0;
}

INSTEAD_OF(command_try_may_go_on);
bool __wrap_command_try_may_go_on(void *try)
{
	struct command_try *of = try;

	of->given_up |= seen.give_up_after && seen.rests >= seen.give_up_after;
	return !of->given_up;
}

INSTEAD_OF(choose_explain_look);
void __wrap_choose_explain_look(pid_t pid, int error)
{
	fprintf(stderr, "%d: error %d\n", (int)pid, error);
}

INSTEAD_OF(choose_explain_error);
void __wrap_choose_explain_error(int error, const char *doing)
{
	fprintf(stderr, "%s: error %d\n", doing, error);
}

/*---- A process ----*/

INSTEAD_OF(process_read);
int __wrap_process_read(pid_t pid, struct process *ret_process)
{
	*ret_process = (struct process){ .pid = pid, .name = "worker" };
	return made_up(pid)->is_gone ? -ESRCH : 0;
}

INSTEAD_OF(traced_process_begin);
int __wrap_traced_process_begin(struct traced_process *traced, pid_t pid, const struct known_files *files)
{
	assert_non_null(files);
	assert_non_null(traced->patience.tracer);
	seen.traced++;
	return made_up(pid)->trace_error;
}

INSTEAD_OF(traced_process_end);
void __wrap_traced_process_end(struct traced_process *traced)
{
	(void)traced;
}

INSTEAD_OF(lua_process_refresh);
int __wrap_lua_process_refresh(struct lua_process *process, bool thorough)
{
	assert_true(thorough);
	return ((struct made_up *)process)->refresh_error;
}

INSTEAD_OF(lua_process_lacks_luajit);
int __wrap_lua_process_lacks_luajit(const struct lua_process *process)
{
	return ((const struct made_up *)process)->has_no_luajit ? -ENOEXEC : 0;
}

INSTEAD_OF(lua_process_want_values);
int __wrap_lua_process_want_values(struct lua_process *process)
{
	(void)process;
	seen.wants_values = true;
	return 0;
}

INSTEAD_OF(lua_process_confirm);
void __wrap_lua_process_confirm(struct lua_process *process)
{
	assert_non_null(process);
}

INSTEAD_OF(lua_process_capture);
void __wrap_lua_process_capture(struct lua_process *process, const struct registers *registers,
				struct capture_hints *hints)
{
	(void)process, (void)registers;
	assert_true(hints->deep);
	assert_int_equal(seen.stops, seen.resumes + 1);
}

INSTEAD_OF(dump_coroutines);
int __wrap_dump_coroutines(struct lua_process *process, struct hold *hold, struct dump_process *report)
{
	struct dump_vm *vm = dump_process_add_vm(report, 0x7000, "/lib/lua.so");

	(void)hold;
	assert_non_null(vm);
	vm->complete = !((const struct made_up *)process)->lacks_coroutines;
	return 0;
}

/*---- Its thread ----*/

INSTEAD_OF(tracer_new);
struct tracer *__wrap_tracer_new(void)
{
	errno = EAGAIN;
	return seen.has_no_tracer ? NULL : (struct tracer *)&one;
}

INSTEAD_OF(tracer_free);
void __wrap_tracer_free(struct tracer *tracer)
{
	assert_ptr_equal(tracer, &one);
	assert_int_equal(seen.stops, seen.resumes);
}

INSTEAD_OF(tracer_allow_attach);
void __wrap_tracer_allow_attach(struct tracer *tracer)
{
	(void)tracer;
	seen.allows_attach = true;
}

INSTEAD_OF(tracer_turn);
struct own_turn *__wrap_tracer_turn(struct tracer *tracer)
{
	return (struct own_turn *)tracer;
}

INSTEAD_OF(own_turn_is_used_up);
bool __wrap_own_turn_is_used_up(const struct own_turn *turn)
{
	(void)turn;
	return false;
}

INSTEAD_OF(own_turn_wait);
int __wrap_own_turn_wait(struct own_turn *turn, const sigset_t *signals, siginfo_t *ret_info,
			 const struct timespec *time)
{
	(void)turn, (void)signals, (void)ret_info;
	assert_int_equal(time->tv_sec, 0);
	seen.rests++;
	return -EAGAIN;
}

INSTEAD_OF(tracer_poll);
bool __wrap_tracer_poll(struct tracer *tracer)
{
	(void)tracer;
	return false;
}

INSTEAD_OF(tracer_stop);
int __wrap_tracer_stop(struct tracer *tracer, struct tracee *tracee, uint64_t timeout_ns)
{
	(void)tracer;
	assert_ptr_equal(tracee, &one.tracee);
	assert_true(timeout_ns);
	seen.tries++;
	seen.stops += !one.stop_error;
	return one.stop_error;
}

INSTEAD_OF(tracer_registers);
int __wrap_tracer_registers(struct tracee *tracee, struct registers *ret_registers)
{
	(void)tracee;
	*ret_registers = (struct registers){ 0 };
	return one.registers_error;
}

INSTEAD_OF(tracer_resume);
void __wrap_tracer_resume(struct tracer *tracer, struct tracee *tracee)
{
	(void)tracer, (void)tracee;
	seen.resumes++;
}

INSTEAD_OF(threads_count);
size_t __wrap_threads_count(const struct threads *threads)
{
	(void)threads;
	return 1;
}

INSTEAD_OF(threads_at);
struct thread *__wrap_threads_at(const struct threads *threads, size_t index)
{
	(void)threads;
	assert_int_equal(index, 0);
	return &one.thread;
}

INSTEAD_OF(thread_may_stop);
enum may_stop __wrap_thread_may_stop(struct threads *threads, struct thread *thread, struct own_turn *turn)
{
	(void)threads, (void)thread, (void)turn;
	if (!one.waits_first)
		return one.nature;
	one.waits_first--;
	return MAY_NOT_CALLS;
}

INSTEAD_OF(thread_note_stop);
void __wrap_thread_note_stop(struct thread *thread, const struct registers *registers)
{
	(void)thread, (void)registers;
}

INSTEAD_OF(thread_note_resumed);
void __wrap_thread_note_resumed(struct thread *thread, const struct registers *registers)
{
	(void)thread, (void)registers;
}

/* Held, it has had a CPU once; it gets the next after so many looks. */
INSTEAD_OF(thread_count_runs);
int __wrap_thread_count_runs(const struct threads *threads, struct thread *thread, uint64_t *ret_runs)
{
	(void)threads, (void)thread;
	if (seen.stops > seen.resumes)
		seen.run_looks = 0;
	else
		seen.run_looks++;
	*ret_runs = seen.run_looks > one.runs_on_after ? 2 : 1;
	return 0;
}

INSTEAD_OF(asleep_capture);
enum asleep_verdict __wrap_asleep_capture(struct lua_process *process, struct threads *threads,
					  struct thread *thread, struct capture_hints *hints,
					  enum thread_state *ret_state, struct thread_call *ret_call)
{
	(void)process, (void)threads, (void)thread, (void)ret_call;
	assert_true(hints->deep);
	seen.tries++;
	*ret_state = one.sleep_state;
	return one.asleep;
}

INSTEAD_OF(dump_thread);
int __wrap_dump_thread(struct lua_process *process, const struct dump_thread *thread, bool only_whole,
		       struct dump_process *report, bool *ret_whole)
{
	const struct dump_stack none = { .count = 0 };

	(void)process;
	*ret_whole = one.whole_at && seen.tries >= one.whole_at;
	return *ret_whole || !only_whole ? dump_process_add_thread(report, thread, &none) : 0;
}

/*---- A core file ----*/

INSTEAD_OF(core_open);
int __wrap_core_open(const char *path, struct core_file **ret_core, bool *ret_is_other,
		     const char **ret_problem)
{
	assert_string_equal(path, "core.1");
	*ret_problem = "is no core file";
	if (seen.core_error)
		return seen.core_error;
	seen.cores++;
	*ret_core = (struct core_file *)&seen;
	*ret_is_other = seen.core_is_other;
	return 0;
}

INSTEAD_OF(core_file_close);
void __wrap_core_file_close(struct core_file *core)
{
	seen.cores -= core != NULL;
}

static int read_core(struct dump_process **ret_report)
{
	static struct function lost = { .kind = FRAME_LOST, .name = "gone" };
	struct frame frame = { .function = &lost };
	const struct dump_stack stack = { .frames = &frame, .count = 1 }, none = { .count = 0 };
	const struct dump_thread thread = { .tid = THREAD_ID, .state = "unknown" };
	struct dump_process *report = dump_process_new(1, "dead");

	assert_non_null(report);
	if (seen.core_has_vm)
		dump_process_add_vm(report, 0x7000, "/lib/lua.so")->complete = true;
	assert_int_equal(dump_process_add_thread(report, &thread, seen.core_is_whole ? &none : &stack), 0);
	*ret_report = report;
	return 0;
}

INSTEAD_OF(core_stacks_read);
int __wrap_core_stacks_read(struct core_file *core, const struct core_stacks_options *of,
			    struct functions *functions, struct dump_process **ret_report)
{
	assert_non_null(core);
	assert_non_null(functions);
	assert_int_equal(of->wants_values, options.locals);
	seen.core_reads++;
	return read_core(ret_report);
}

INSTEAD_OF(core_stacks_read_other);
int __wrap_core_stacks_read_other(struct core_file *core, const struct core_stacks_options *of,
				  struct functions *functions, struct dump_process **ret_report)
{
	(void)core, (void)of, (void)functions;
	seen.other_core_reads++;
	return read_core(ret_report);
}

/*---- The user ----*/

static int begin(void **state)
{
	static pid_t pids[PROCESSES];

	(void)state;
	memset(&seen, 0, sizeof(seen));
	output_is_full = false;
	memset(&one, 0, sizeof(one));
	looked_at_begin(NULL);
	one.thread.tid = THREAD_ID;
	one.thread.tracee = &one.tracee;
	one.nature = MAY_STOP;
	one.asleep = ASLEEP_HOLDS;
	one.sleep_state = THREAD_BLOCKED;
	one.whole_at = 1;
	seen.core_has_vm = seen.core_is_whole = true;
	for (size_t i = 0; i < PROCESSES; i++)
		pids[i] = FIRST + (pid_t)i;
	options = (struct options){ .command = COMMAND_DUMP, .pids = pids, .pid_count = 1 };
	return 0;
}

static int end(void **state)
{
	(void)state;
	assert_no_look_is_open();
	assert_int_equal(seen.cores, 0);
	return 0;
}

static enum exit_status look(void)
{
	seen.tries = seen.stops = seen.resumes = seen.rests = 0;
	return run_command(command_dump, &options);
}

static void threads_are_read_as_they_are(void **state)
{
	(void)state;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	assert_string_equal(told, "");
	ASSERT_SHOWN("Process 100");
	ASSERT_SHOWN("running");
	assert_int_equal(seen.stops, 1);
	one.nature = MAY_STOP_WAITING;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	ASSERT_SHOWN("running");
	one.nature = MAY_NOT_SLEEPS;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	ASSERT_SHOWN("asleep");
	assert_int_equal(seen.stops, 0);
	one.sleep_state = THREAD_UNINTERRUPTIBLE;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	ASSERT_SHOWN("uninterruptible");
	/* Whom SIGSTOP has stopped may be held whatever it does, and is not found elsewhere later. */
	one.nature = MAY_NOT_CALLS;
	one.tracee.state = TRACEE_JOB_STOPPED;
	one.whole_at = 0;
	assert_int_equal(look(), EXIT_WITH_ERRORS);
	ASSERT_SHOWN("stopped");
	assert_int_equal(seen.stops, 1);
	assert_string_equal(told, "ljspy: warning: Part of the stack of thread 500 could not be read.\n");
}

static void a_stack_that_is_not_whole_is_read_again(void **state)
{
	(void)state;
	one.whole_at = 4;
	one.runs_on_after = 3;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	assert_int_equal(seen.stops, 4);
	/* Until it has run on, it would be found there again. */
	assert_int_equal(seen.rests, 3 * (1 + 3));
	one.whole_at = TRIES + 1;
	assert_int_equal(look(), EXIT_WITH_ERRORS);
	assert_int_equal(seen.stops, TRIES);
	ASSERT_SHOWN("running");
	ASSERT_TOLD("Part of the stack of thread 500");
}

static void a_thread_that_may_not_be_stopped_is_waited_for(void **state)
{
	(void)state;
	one.waits_first = WAITS - 1;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	assert_int_equal(seen.rests, WAITS - 1);
	one.waits_first = WAITS;
	assert_int_equal(look(), EXIT_WITH_ERRORS);
	assert_int_equal(seen.stops, 0);
	ASSERT_SHOWN("thread ran while being read");
	ASSERT_TOLD("Part of the stack of thread 500");
	/* Nor forever for one that does not run on. */
	one.waits_first = 0;
	one.whole_at = 0;
	one.runs_on_after = UINT64_MAX;
	assert_int_equal(look(), EXIT_WITH_ERRORS);
	assert_int_equal(seen.stops, 1);
	assert_in_range(seen.rests, WAITS, WAITS + 1);
}

static void a_thread_that_cannot_be_read_is_lost(void **state)
{
	static const enum asleep_verdict verdicts[] = { ASLEEP_TORN, ASLEEP_RUNS, ASLEEP_UNKNOWN };

	(void)state;
	one.stop_error = -ETIMEDOUT;
	assert_int_equal(look(), EXIT_WITH_ERRORS);
	assert_int_equal(seen.tries, TRIES);
	ASSERT_SHOWN("thread ran while being read");
	one.stop_error = 0;
	one.registers_error = -ESRCH;
	assert_int_equal(look(), EXIT_WITH_ERRORS);
	assert_int_equal(seen.stops, TRIES);
	assert_int_equal(seen.resumes, TRIES);
	one.nature = MAY_NOT_SLEEPS;
	for (size_t i = 0; i < sizeof(verdicts) / sizeof(*verdicts); i++) {
		one.asleep = verdicts[i];
		assert_int_equal(look(), EXIT_WITH_ERRORS);
		assert_int_equal(seen.tries, TRIES);
		ASSERT_SHOWN("thread ran while being read");
	}
}

static void an_attempt_that_is_given_up_says_nothing(void **state)
{
	(void)state;
	one.waits_first = WAITS;
	seen.give_up_after = 5;
	world[0].lacks_coroutines = true;
	look();
	assert_int_equal(seen.rests, 5);
	assert_string_equal(told, "");
}

static void coroutines_that_are_missing_are_told(void **state)
{
	(void)state;
	world[0].lacks_coroutines = true;
	assert_int_equal(look(), EXIT_WITH_ERRORS);
	ASSERT_TOLD("Not all coroutines of process 100 could be read.");
	ASSERT_SHOWN("Process 100");
}

static void one_of_several_that_fails_is_left_out(void **state)
{
	static const struct made_up others[] = {
		{ .may_not = true },       { .misfits = true },       { .is_gone = true },
		{ .open_error = -ESRCH },  { .trace_error = -ESRCH }, { .refresh_error = -ESRCH },
		{ .has_no_luajit = true },
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		begin(state);
		options.pid_count = PROCESSES;
		world[0] = others[i];
		assert_int_equal(look(), EXIT_WITH_ERRORS);
		assert_null(strstr(shown, "Process 100"));
		ASSERT_SHOWN("Process 101");
		assert_int_equal(told_times("100: error "), i >= 2);
		world[1] = others[i];
		assert_int_equal(look(), EXIT_NOTHING_DONE);
		assert_string_equal(shown, "");
		end(state);
	}
	begin(state);
	seen.has_no_tracer = true;
	assert_int_equal(look(), EXIT_NOTHING_DONE);
	assert_string_equal(told, "dumping stacks: error 11\n");
	assert_int_equal(seen.traced, 0);
}

static void the_document_has_all_processes(void **state)
{
	json_t *document, *processes;

	(void)state;
	options.json = options.locals = options.allow_attach = true;
	options.pid_count = PROCESSES;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	assert_true(seen.wants_values && seen.allows_attach);
	document = json_loads(shown, 0, NULL);
	assert_int_equal(json_integer_value(json_object_get(document, "version")), 1);
	processes = json_object_get(document, "processes");
	assert_int_equal(json_array_size(processes), PROCESSES);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(processes, 1), "pid")), 101);
	json_decref(document);
}

static void output_that_is_full_is_an_error(void **state)
{
	(void)state;
	output_is_full = true;
	assert_int_equal(look(), EXIT_WITH_ERRORS);
	assert_string_equal(told, "It is full.\n");
	one.whole_at = 0;
	assert_int_equal(look(), EXIT_WITH_ERRORS);
	ASSERT_TOLD("It is full.\n");
	assert_false(seen.wants_values || seen.allows_attach);
}

static void a_core_file_is_read_by_its_machine(void **state)
{
	(void)state;
	options.core = "core.1";
	options.pid_count = 0;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	assert_string_equal(told, "");
	ASSERT_SHOWN("Process 1 ");
	assert_int_equal(seen.core_reads, 1);
	seen.core_is_other = true;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	assert_int_equal(seen.core_reads, 1);
	assert_int_equal(seen.other_core_reads, 1);
	seen.core_is_whole = false;
	assert_int_equal(look(), EXIT_WITH_ERRORS);
	ASSERT_TOLD("Part of the stack of thread 500");
	seen.core_is_whole = true;
	seen.core_has_vm = false;
	assert_int_equal(look(), EXIT_WITH_ERRORS);
	ASSERT_TOLD(core_unknown_layout);
	ASSERT_SHOWN("Process 1 ");
	seen.core_error = -EBADMSG;
	assert_int_equal(look(), EXIT_NOTHING_DONE);
	assert_string_equal(told, "ljspy: core.1 is no core file.\n");
	seen.core_error = -ENOENT;
	assert_int_equal(look(), EXIT_NOTHING_DONE);
	assert_string_equal(told, "ljspy: core.1: No such file or directory\n");
	/* With nothing to tell there is no document either. */
	options.json = true;
	assert_int_equal(look(), EXIT_NOTHING_DONE);
	assert_string_equal(shown, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(threads_are_read_as_they_are, begin, end),
		cmocka_unit_test_setup_teardown(a_stack_that_is_not_whole_is_read_again, begin, end),
		cmocka_unit_test_setup_teardown(a_thread_that_may_not_be_stopped_is_waited_for, begin, end),
		cmocka_unit_test_setup_teardown(a_thread_that_cannot_be_read_is_lost, begin, end),
		cmocka_unit_test_setup_teardown(an_attempt_that_is_given_up_says_nothing, begin, end),
		cmocka_unit_test_setup_teardown(coroutines_that_are_missing_are_told, begin, end),
		cmocka_unit_test_setup_teardown(one_of_several_that_fails_is_left_out, begin, end),
		cmocka_unit_test_setup_teardown(the_document_has_all_processes, begin, end),
		cmocka_unit_test_setup_teardown(output_that_is_full_is_an_error, begin, end),
		cmocka_unit_test_setup_teardown(a_core_file_is_read_by_its_machine, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* ljspy check: what it looks at, in which order, what it says that it could not see, and how it ends. */
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

#include "src/heap/process_heaps.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/threads/halt.h"
#include "src/linux/tracer/tracer.h"
#include "src/sampler/sampler_apart.h"
#include "src/survey/trace_survey.h"
#include "src/survey/traced_lua.h"
#include "src/targets/choose.h"
#include "src/targets/command_apart.h"
#include "tests/unit/full_output.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_heap.h"
#include "tests/unit/run_command.h"
#include "tests/unit/told_reason.h"

enum { PROCESSES = 2, LOOKS = 3, FIRST = 5000000, SAMPLES = 200, SAMPLE_NS = 10000000, VMS_MAX = 3 };
enum { STEADY = 2000, LEAKS = 20000 }; /* entries of a cache */

static struct options options;
static pid_t pids[PROCESSES];

#include "tests/unit/checked_all.h"

static struct made_up {
	bool is_gone;
	unsigned int samples;
	int look_errors[LOOKS], trace_error;
	uint32_t entries[LOOKS]; /* of the cache in its heap */
	size_t vms;
	int errors[VMS_MAX]; /* of its heaps */
	uint64_t too_long_ns;
	bool is_partly_found[LOOKS];                   /* its heap */
	enum process_halt halts[2];                    /* before, and in the end */
	unsigned int looks, heaps, traces, halt_looks; /* counted */
} world[PROCESSES];

static struct {
	struct sampler_result result;
	bool has_no_tracer, is_given_up, allows_attach, goes_away, concludes;
	unsigned int goes_on_for; /* so many questions; 0: always */
	int run_error;
	unsigned int fails_run; /* which one has that error, or is given up, from 1 on */
} scene;

static struct {
	unsigned int runs, questions, tracers, samplings, waits;
	uint64_t now_ns, waited_ns;
	bool was_sampled_in_between;
	struct sampler_options sampler;
	bool ran_apart;
} seen;

static struct made_up *made_up(pid_t pid)
{
	assert_in_range(pid, FIRST, FIRST + PROCESSES - 1);
	return &world[pid - FIRST];
}

/*---- Instead of an engine ----*/

INSTEAD_OF(command_run_apart);
enum exit_status __wrap_command_run_apart(command_in_engine *command, const struct invocation *invocation,
					  bool can_be_concluded)
{
	assert_true(can_be_concluded);
	seen.ran_apart = true;
	return command(NULL, invocation);
}

INSTEAD_OF(command_try_run);
int __wrap_command_try_run(struct command_try *try, void *(*read)(void *context), void *context)
{
	const bool fails = ++seen.runs == scene.fails_run;

	if (fails && scene.run_error)
		return scene.run_error;
	try->given_up = fails && scene.is_given_up;
	assert_null(read(context));
	return 0;
}

INSTEAD_OF(command_try_may_go_on);
bool __wrap_command_try_may_go_on(void *try)
{
	const struct command_try *of = try;

	return !of->given_up && (!scene.goes_on_for || ++seen.questions <= scene.goes_on_for);
}

INSTEAD_OF(apart_wish);
enum apart_wish __wrap_apart_wish(const struct apart *apart)
{
	assert_null(apart);
	return scene.concludes ? APART_CONCLUDE : APART_GO_ON;
}

INSTEAD_OF(tracer_new);
struct tracer *__wrap_tracer_new(void)
{
	errno = EMFILE;
	if (scene.has_no_tracer)
		return NULL;
	seen.tracers++;
	return (struct tracer *)&seen;
}

INSTEAD_OF(tracer_free);
void __wrap_tracer_free(struct tracer *tracer)
{
	assert_ptr_equal(tracer, &seen);
	seen.tracers--;
}

INSTEAD_OF(tracer_allow_attach);
void __wrap_tracer_allow_attach(struct tracer *tracer)
{
	assert_ptr_equal(tracer, &seen);
	scene.allows_attach = true;
}

/*---- Time ----*/

INSTEAD_OF(clock_gettime);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	if (clock != CLOCK_MONOTONIC)
		return __real_clock_gettime(clock, ret_time);
	*ret_time = (struct timespec){ .tv_sec = (time_t)(seen.now_ns / NS_PER_SECOND),
				       .tv_nsec = (long)(seen.now_ns % NS_PER_SECOND) };
	return 0;
}

/* Each signal comes early once. */
INSTEAD_OF(sigtimedwait);
int __wrap_sigtimedwait(const sigset_t *signals, siginfo_t *ret_signal, const struct timespec *left)
{
	uint64_t left_ns = (uint64_t)left->tv_sec * NS_PER_SECOND + (uint64_t)left->tv_nsec;

	(void)ret_signal;
	assert_true(sigismember(signals, SIGHUP) && sigismember(signals, SIGCHLD));
	assert_int_equal(seen.tracers, 0); /* nobody is held meanwhile */
	if (!seen.waits++)
		left_ns /= 2;
	seen.now_ns += left_ns;
	seen.waited_ns += left_ns;
	errno = EAGAIN;
	return -1;
}

/*---- Processes ----*/

INSTEAD_OF(process_read);
int __wrap_process_read(pid_t pid, struct process *ret_process)
{
	if (made_up(pid)->is_gone)
		return -ESRCH;
	*ret_process = (struct process){ .pid = pid, .name = "worker" };
	return 0;
}

INSTEAD_OF(process_halt);
enum process_halt __wrap_process_halt(pid_t pid)
{
	struct made_up *of = made_up(pid);

	return of->halts[of->halt_looks++ ? 1 : 0];
}

INSTEAD_OF(traced_lua_look);
int __wrap_traced_lua_look(const struct traced_lua *traced, pid_t pid)
{
	struct made_up *of = made_up(pid);
	const unsigned int look = of->looks++;

	assert_int_equal(seen.tracers, 1);
	seen.now_ns += NS_PER_SECOND;
	assert_in_range(look, 0, LOOKS - 1);
	return of->look_errors[look]
		       ? of->look_errors[look]
		       : traced->look(traced->context, (struct lua_process *)of, NULL, "worker");
}

INSTEAD_OF(lua_process_global_count);
size_t __wrap_lua_process_global_count(const struct lua_process *process)
{
	return ((const struct made_up *)process)->vms;
}

INSTEAD_OF(trace_survey_report);
int __wrap_trace_survey_report(struct trace_survey *survey, struct lua_process *process, struct hold *hold,
			       struct trace_process *report)
{
	struct made_up *of = (struct made_up *)process;

	assert_non_null(survey);
	assert_null(hold);
	assert_int_equal(report->pid, FIRST + (of - world));
	seen.was_sampled_in_between = seen.samplings == 1;
	of->traces++;
	return of->trace_error;
}

INSTEAD_OF(process_heaps_read);
int __wrap_process_heaps_read(struct lua_process *process, struct hold *hold, pid_t pid, const char *name,
			      const struct heap_capture_options *capture, struct process_heaps *heaps)
{
	struct made_up *of = made_up(pid);
	const unsigned int look = of->looks - 1;

	assert_ptr_equal(process, of);
	(void)hold, (void)name;
	assert_int_equal(capture->max_pause_ns, 0);
	of->heaps++;
	heaps->at = calloc(VMS_MAX, sizeof(*heaps->at));
	assert_non_null(heaps->at);
	heaps->count = of->vms;
	for (size_t i = 0; i < heaps->count; i++) {
		struct vm_heap *heap = &heaps->at[i];

		heap->error = of->errors[i];
		heap->too_long_ns = of->too_long_ns;
		heap->graph = heap->error ? made_up_root_alone() : made_up_leak(of->entries[look], 2, 2);
		heap->account = made_up_account(&heap->graph);
		heap->account.process = strdup("worker");
		heap->account.module = NULL;
		heap->account.pid = pid;
		heap->account.vm = (unsigned int)i + 1;
		heap->account.gc_total = heap->account.sum;
		heap->account.uncertain = (struct heap_uncertain){ 0 };
		if (of->is_partly_found[look])
			heap->account.gc_total *= 2;
		if (heap->error)
			heap->account.method = HEAP_MISSING;
	}
	return heaps->count && process_heaps_missing(heaps) == heaps->count ? heaps->at[0].error : 0;
}

INSTEAD_OF(sampler_run_in_engine);
void __wrap_sampler_run_in_engine(struct apart *apart, const struct sampler_options *sampler,
				  const struct sampler_breaks *breaks, struct sampler_result *ret_result)
{
	static const struct function function = { .kind = FRAME_LUA,
						  .name = "work",
						  .file = "@/made/up.lua" };
	static const struct frame frame = { .function = &function, .line = 3 };

	assert_null(apart);
	assert_non_null(breaks->stay_away);
	assert_int_equal(seen.tracers, 0);
	seen.samplings++;
	seen.sampler = *sampler;
	for (size_t i = 0; i < PROCESSES; i++)
		for (unsigned int j = 0; j < world[i].samples; j++)
			sampler->take(sampler->context, &(struct sample){
								.time_ns = 1 + (uint64_t)j * SAMPLE_NS,
								.pid = FIRST + (pid_t)i,
								.tid = FIRST + (pid_t)i,
								.thread_state = THREAD_RUNNING,
								.vm_state = VM_STATE_INTERPRETED,
								.cpu_ns = SAMPLE_NS,
								.wall_ns = SAMPLE_NS,
								.frames = &frame,
								.frame_count = 1,
							});
	/* Of a process that nobody asked about. */
	sampler->take(sampler->context, &(struct sample){ .pid = FIRST + PROCESSES });
	*ret_result = scene.result;
}

/*---- The user ----*/

static int begin(void **state)
{
	(void)state;
	memset(&scene, 0, sizeof(scene));
	memset(&checked, 0, sizeof(checked));
	output_is_full = false;
	told_reason = PERMISSION_UNKNOWN;
	for (size_t i = 0; i < PROCESSES; i++) {
		pids[i] = FIRST + (pid_t)i;
		world[i] = (struct made_up){ .samples = SAMPLES,
					     .entries = { STEADY, STEADY, STEADY },
					     .vms = 1 };
	}
	options = (struct options){
		.command = COMMAND_CHECK, .pids = pids, .pid_count = 1, .rate_hz = 99, .blocked_ns = 20000000
	};
	scene.result = (struct sampler_result){ .end = SAMPLER_DURATION_OVER,
						.begin_ns = 1,
						.has_attached = true,
						.saw_luajit = true,
						.figures = { .samples = SAMPLES,
							     .duration_ns = SAMPLES * (uint64_t)SAMPLE_NS } };
	return 0;
}

static enum exit_status check(void)
{
	enum exit_status status;

	memset(&seen, 0, sizeof(seen));
	seen.now_ns = 100 * UINT64_C(1000000000);
	for (size_t i = 0; i < PROCESSES; i++)
		world[i].looks = world[i].heaps = world[i].traces = world[i].halt_looks = 0;
	status = run_command(command_check, &options);
	assert_int_equal(seen.tracers, 0);
	return status;
}

static void assert_nothing_done(const char *words)
{
	assert_int_equal(check(), EXIT_NOTHING_DONE);
	assert_string_equal(shown, "");
	ASSERT_TOLD(words);
}

static void assert_hidden(const char *words)
{
	assert_null(strstr(shown, words));
}

static void a_process_is_looked_at_before_and_after_its_samples(void **state)
{
	(void)state;
	assert_int_equal(check(), EXIT_ALL_GOOD);
	assert_string_equal(told, "");
	assert_true(seen.ran_apart && seen.was_sampled_in_between);
	assert_int_equal(world[0].looks, 2);
	assert_int_equal(world[0].heaps, 2);
	assert_int_equal(world[0].traces, 1);
	assert_int_equal(world[1].looks, 0);
	assert_int_equal(seen.waited_ns, 0);
	ASSERT_SHOWN("5000000");
	ASSERT_SHOWN("worker");
	assert_hidden("5000001");
	assert_hidden("could not be looked at");
	assert_hidden("rowth of the heap");
	assert_false(scene.allows_attach);
	assert_int_equal(seen.sampler.duration_ns, 10 * UINT64_C(1000000000));
	assert_int_equal(seen.sampler.rate_hz, 99);
	assert_true(seen.sampler.wall_clock && seen.sampler.turns && seen.sampler.functions);
	options.duration_ns = 7;
	options.allow_attach = true;
	assert_int_equal(check(), EXIT_ALL_GOOD);
	assert_int_equal(seen.sampler.duration_ns, 7);
	assert_true(scene.allows_attach);
}

/* How many processes the document has; the first one is this one. */
static size_t count_in_json(pid_t pid)
{
	json_t *document = json_loads(shown, 0, NULL), *processes = json_object_get(document, "processes");
	size_t count = json_array_size(processes);

	assert_non_null(document);
	assert_int_equal(json_integer_value(json_object_get(document, "version")), 1);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(processes, 0), "pid")), pid);
	json_decref(document);
	return count;
}

static void all_processes_are_shown(void **state)
{
	(void)state;
	options.pid_count = PROCESSES;
	assert_int_equal(check(), EXIT_ALL_GOOD);
	ASSERT_SHOWN("5000000");
	ASSERT_SHOWN("\n\nworker (pid 5000001)");
	assert_int_not_equal(*shown, '\n');
	options.json = true;
	assert_int_equal(check(), EXIT_ALL_GOOD);
	assert_int_equal(count_in_json(FIRST), PROCESSES);
}

/*---- Growth ----*/

static void what_seems_to_grow_is_looked_at_once_more(void **state)
{
	static const uint32_t leaking[LOOKS] = { LEAKS, 2 * LEAKS, 3 * LEAKS };

	(void)state;
	options.pid_count = PROCESSES;
	memcpy(world[1].entries, leaking, sizeof(leaking));
	assert_int_equal(check(), EXIT_ALL_GOOD);
	assert_int_equal(world[1].heaps, LOOKS);
	assert_int_equal(world[1].traces, 1);
	assert_int_equal(world[0].heaps, LOOKS);
	assert_int_equal(seen.waited_ns, 2500000000); /* a quarter of the ten seconds */
	assert_int_equal(seen.waits, 2);
	ASSERT_SHOWN("the heap has");
	/* A short one has some time, too. */
	options.duration_ns = 1000000000;
	assert_int_equal(check(), EXIT_ALL_GOOD);
	assert_int_equal(seen.waited_ns, 500000000);
	/* Who grew once only does not grow. */
	world[1].entries[2] = 2 * LEAKS;
	assert_int_equal(check(), EXIT_ALL_GOOD);
	assert_int_equal(world[1].heaps, LOOKS);
	assert_hidden("the heap has");
	/* The user need not wait. */
	scene.concludes = true;
	world[1].entries[2] = 3 * LEAKS;
	assert_int_equal(check(), EXIT_ALL_GOOD);
	assert_int_equal(seen.waited_ns, 0);
	assert_int_equal(world[1].heaps, LOOKS);
}

static void one_look_tells_nothing_of_growth(void **state)
{
	(void)state;
	world[0].look_errors[0] = -EBUSY;
	assert_int_equal(check(), EXIT_ALL_GOOD);
	assert_int_equal(world[0].heaps, 1);
	ASSERT_SHOWN("there was one look at it only");
}

/*---- What is not seen ----*/

static void heaps_that_are_missing_are_told_with_the_reason(void **state)
{
	(void)state;
	world[0].vms = VMS_MAX;
	world[0].errors[1] = -EFBIG;
	world[0].too_long_ns = 123000000;
	assert_int_equal(check(), EXIT_ALL_GOOD);
	ASSERT_SHOWN("the heap of 1 of 3 VMs: to copy it would hold the process for some 123 ms");
	world[0].errors[1] = -EBUSY;
	world[0].errors[2] = -EIO;
	assert_int_equal(check(), EXIT_ALL_GOOD);
	ASSERT_SHOWN("the heap of 2 of 3 VMs: again and again, a thread woke");
	world[0].errors[0] = world[0].errors[1] = -EIO;
	assert_int_equal(check(), EXIT_ALL_GOOD);
	ASSERT_SHOWN("the heap: it could not be read");
	assert_hidden("of 3 VMs");
}

static void a_heap_of_which_a_part_is_not_found_is_not_compared(void **state)
{
	(void)state;
	world[0].is_partly_found[0] = world[0].is_partly_found[1] = true;
	world[0].entries[1] = 3 * LEAKS;
	assert_int_equal(check(), EXIT_ALL_GOOD);
	assert_int_equal(world[0].heaps, 2);
	ASSERT_SHOWN("the heap: not all of it was found");
	assert_hidden("the heap has");
	assert_hidden("one look at it only");
	world[0].is_partly_found[1] = false;
	assert_int_equal(check(), EXIT_ALL_GOOD);
	ASSERT_SHOWN("there was one look at it only");
}

static void a_process_that_cannot_run_is_told(void **state)
{
	(void)state;
	world[0].samples = 0;
	world[0].halts[0] = world[0].halts[1] = HALT_SIGNAL;
	sampler_note(&scene.result.halted, FIRST, HALT_SIGNAL);
	assert_int_equal(check(), EXIT_ALL_GOOD);
	ASSERT_SHOWN("it was stopped, as by SIGSTOP or Ctrl-Z (kill -CONT 5000000)");
	assert_int_equal(world[0].halt_looks, 1);
	scene.result.halted.at[0].why = world[0].halts[0] = HALT_FREEZER;
	assert_int_equal(check(), EXIT_ALL_GOOD);
	ASSERT_SHOWN("its cgroup was frozen");
	/* Not from the beginning on. */
	world[0].halts[0] = HALT_NONE;
	assert_int_equal(check(), EXIT_ALL_GOOD);
	assert_hidden("frozen");
	/* It ran meanwhile. */
	world[0].halts[0] = HALT_FREEZER;
	world[0].samples = SAMPLES;
	assert_int_equal(check(), EXIT_ALL_GOOD);
	assert_hidden("frozen");
	/* One that the result has no place for is asked about. */
	world[0].samples = 0;
	scene.result.halted = (struct sampler_noted){ .more = 1 };
	world[0].halts[0] = world[0].halts[1] = HALT_SIGNAL;
	assert_int_equal(check(), EXIT_ALL_GOOD);
	ASSERT_SHOWN("it was stopped");
	scene.result.halted.more = 0;
	assert_int_equal(check(), EXIT_ALL_GOOD);
	assert_hidden("it was stopped");
}

static void time_in_which_ljspy_was_stopped_is_told(void **state)
{
	(void)state;
	scene.result.figures.away_ns = 1500000000;
	assert_int_equal(check(), EXIT_ALL_GOOD);
	ASSERT_SHOWN("1.5 s in which ljspy itself was stopped");
}

/*---- Errors ----*/

static void a_process_that_cannot_be_looked_at_in_the_end_is_an_error(void **state)
{
	(void)state;
	options.pid_count = PROCESSES;
	world[0].look_errors[1] = -EPERM;
	assert_int_equal(check(), EXIT_WITH_ERRORS);
	ASSERT_TOLD("5000000: error 1");
	ASSERT_SHOWN("compiled code: the process could not be looked at afterwards");
	ASSERT_SHOWN("5000001");
	/* Nothing is known of one without samples. */
	world[0].samples = 0;
	assert_int_equal(check(), EXIT_WITH_ERRORS);
	assert_hidden("5000000");
	ASSERT_SHOWN("5000001");
	options.json = true;
	assert_int_equal(check(), EXIT_WITH_ERRORS);
	assert_int_equal(count_in_json(FIRST + 1), 1);
	options.pid_count = 1;
	assert_nothing_done("5000000: error 1");
}

static void a_process_that_is_gone_is_left_out(void **state)
{
	(void)state;
	options.pid_count = PROCESSES;
	world[0].is_gone = true;
	assert_int_equal(check(), EXIT_WITH_ERRORS);
	ASSERT_TOLD("5000000: error 3");
	assert_hidden("5000000");
	ASSERT_SHOWN("5000001");
	assert_int_equal(world[0].looks, 0);
	world[1].is_gone = true;
	assert_nothing_done("5000001: error 3");
	assert_int_equal(seen.samplings, 0);
}

static void without_samples_nothing_is_shown(void **state)
{
	(void)state;
	scene.result = (struct sampler_result){ .end = SAMPLER_FAILED, .error = -EPERM, .pid = FIRST };
	assert_nothing_done("5000000: error 1");
	assert_int_equal(world[0].looks, 1);
	checked.may_not = true;
	assert_nothing_done("");
	checked.may_not = false;
	checked.misfit = true;
	assert_nothing_done("");
	assert_int_equal(world[0].looks + seen.samplings, 0);
}

static void what_ljspy_lacks_is_told(void **state)
{
	(void)state;
	scene.has_no_tracer = true;
	assert_int_equal(check(), EXIT_WITH_ERRORS);
	ASSERT_TOLD("files open");
	ASSERT_SHOWN("compiled code: the process could not be looked at afterwards");
	scene.has_no_tracer = false;
	scene.run_error = -EAGAIN;
	scene.fails_run = 1;
	assert_nothing_done("No timer, thread or process can be had");
	assert_int_equal(seen.samplings, 0);
	scene.fails_run = 2;
	assert_nothing_done("No timer, thread or process can be had");
	assert_int_equal(seen.samplings, 1);
}

static void short_memory_is_told(void **state)
{
	(void)state;
	world[0].look_errors[0] = -ENOMEM;
	assert_int_equal(check(), EXIT_WITH_ERRORS);
	ASSERT_TOLD("checking: Cannot allocate memory");
	begin(state);
	world[0].trace_error = -ENOMEM;
	assert_int_equal(check(), EXIT_WITH_ERRORS);
	ASSERT_TOLD("checking: Cannot allocate memory");
}

static void a_look_that_is_given_up_leaves_nothing_behind(void **state)
{
	(void)state;
	/* The second look ends before it has a heap. */
	scene.is_given_up = true;
	scene.fails_run = 2;
	assert_int_equal(check(), EXIT_WITH_ERRORS);
	assert_int_equal(world[0].looks, 1);
	ASSERT_SHOWN("there was one look at it only");
	/* Or after it: then that heap does not count. */
	begin(state);
	scene.goes_on_for = 5;
	check();
	assert_int_equal(world[0].heaps, 2);
	ASSERT_SHOWN("there was one look at it only");
}

static void an_answer_that_finds_no_room_is_an_error(void **state)
{
	(void)state;
	output_is_full = true;
	assert_int_equal(check(), EXIT_WITH_ERRORS);
	ASSERT_TOLD("It is full.");
	scene.result = (struct sampler_result){ .end = SAMPLER_FAILED, .error = -EPERM, .pid = FIRST };
	assert_int_equal(check(), EXIT_NOTHING_DONE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, begin)
	const struct CMUnitTest tests[] = {
		TEST(a_process_is_looked_at_before_and_after_its_samples),
		TEST(all_processes_are_shown),
		TEST(what_seems_to_grow_is_looked_at_once_more),
		TEST(one_look_tells_nothing_of_growth),
		TEST(heaps_that_are_missing_are_told_with_the_reason),
		TEST(a_heap_of_which_a_part_is_not_found_is_not_compared),
		TEST(a_process_that_cannot_run_is_told),
		TEST(time_in_which_ljspy_was_stopped_is_told),
		TEST(a_process_that_cannot_be_looked_at_in_the_end_is_an_error),
		TEST(a_process_that_is_gone_is_left_out),
		TEST(without_samples_nothing_is_shown),
		TEST(what_ljspy_lacks_is_told),
		TEST(short_memory_is_told),
		TEST(a_look_that_is_given_up_leaves_nothing_behind),
		TEST(an_answer_that_finds_no_room_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

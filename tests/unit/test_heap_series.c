/* SPDX-License-Identifier: MIT */
/* ljspy heap --every goes on while a process is there, keeps its times, and counts what it could not read. */
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
#include <unistd.h>

#include <cmocka.h>

#include "output/heap/heap_builder.h"
#include "output/heap_reports/heap_report.h"
#include "src/commands/commands.h"
#include "src/heap/process_heaps.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/proc/permission.h"
#include "src/linux/proc/process.h"
#include "src/rendering/heap_output.h"
#include "src/survey/traced_lua.h"
#include "src/targets/choose.h"
#include "src/targets/command_apart.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_heap.h"
#include "tests/unit/told.h"

/* No process has such a number: the kernel gives none above four millions. */
enum { PROCESSES = 2, STATES = 2, LOOKS = 12, FIRST_PID = 5000000, TEXT_SIZE = 1 << 16 };

static const uint64_t begin_ns = 1000 * (uint64_t)NS_PER_SECOND, every_ns = NS_PER_SECOND;

/* What a look at a process finds. */
struct look {
	int check;                     /* error of choose_can_look() */
	int error;                     /* of the look itself */
	int states[STATES];            /* error of each */
	enum permission_reason reason; /* for an error */
	size_t lacks;                  /* so many of them are not there */
	uint64_t takes_ns;
	bool is_gone;   /* after the look */
	uint64_t start; /* of another process with its number, if it is not 0 */
};

static struct look looks[PROCESSES][LOOKS];
static size_t looked[PROCESSES];
static uint64_t times_ns[LOOKS]; /* of the looks at the first process */
static uint64_t now_ns, interrupt_ns;
static size_t published, diagnosed;
static size_t moments, moments_fit; /* begun; for how many there is memory */

static struct look *current(pid_t pid)
{
	const size_t process = (size_t)(pid - FIRST_PID);

	assert_in_range(process, 0, PROCESSES - 1);
	assert_in_range(looked[process], 0, LOOKS);
	return &looks[process][looked[process] ? looked[process] - 1 : 0];
}

/*---- What is made up ----*/

INSTEAD_OF(command_run_apart);
enum exit_status __wrap_command_run_apart(command_in_engine *command, const struct invocation *invocation,
					  bool can_be_concluded)
{
	assert_int_equal(can_be_concluded, invocation->options->every_ns != 0);
	return command(NULL, invocation);
}

INSTEAD_OF(apart_wish);
enum apart_wish __wrap_apart_wish(const struct apart *apart)
{
	(void)apart;
	return now_ns >= interrupt_ns ? APART_CONCLUDE : APART_GO_ON;
}

INSTEAD_OF(apart_publish);
void __wrap_apart_publish(struct apart *apart, const void *results)
{
	(void)apart;
	(void)results;
	published++;
}

INSTEAD_OF(heap_output_begin_moment);
int __wrap_heap_output_begin_moment(struct heap_output *output, const char *name)
{
	return moments++ < moments_fit ? __real_heap_output_begin_moment(output, name) : -ENOMEM;
}

INSTEAD_OF(permission_diagnose);
void __wrap_permission_diagnose(pid_t pid, int error, struct permission_verdict *ret_verdict)
{
	__real_permission_diagnose(pid, error, ret_verdict);
	diagnosed++;
	if (current(pid)->reason)
		ret_verdict->reason = current(pid)->reason;
}

INSTEAD_OF(clock_gettime);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_now)
{
	(void)clock;
	*ret_now = (struct timespec){ .tv_sec = (time_t)(now_ns / NS_PER_SECOND),
				      .tv_nsec = (long)(now_ns % NS_PER_SECOND) };
	return 0;
}

INSTEAD_OF(sigtimedwait);
int __wrap_sigtimedwait(const sigset_t *signals, siginfo_t *ret_info, const struct timespec *timeout)
{
	(void)signals;
	(void)ret_info;
	now_ns += (uint64_t)timeout->tv_sec * NS_PER_SECOND + (uint64_t)timeout->tv_nsec;
	return -1;
}

INSTEAD_OF(choose_can_look);
int __wrap_choose_can_look(pid_t pid, uint64_t *ret_start)
{
	const size_t process = (size_t)(pid - FIRST_PID);

	assert_in_range(looked[process], 0, LOOKS - 1);
	if (process == 0)
		times_ns[looked[process]] = now_ns - begin_ns;
	looked[process]++;
	*ret_start = 1 + current(pid)->start;
	return current(pid)->check;
}

INSTEAD_OF(process_thread_with_memory);
pid_t __wrap_process_thread_with_memory(pid_t pid)
{
	return current(pid)->is_gone ? 0 : pid;
}

INSTEAD_OF(traced_lua_look);
int __wrap_traced_lua_look(const struct traced_lua *traced, pid_t pid)
{
	now_ns += current(pid)->takes_ns;
	return current(pid)->error ? current(pid)->error
				   : traced->look(traced->context, NULL, NULL, "worker");
}

INSTEAD_OF(process_heaps_read);
int __wrap_process_heaps_read(struct lua_process *process, struct hold *hold, pid_t pid, const char *name,
			      const struct heap_capture_options *options, struct process_heaps *heaps)
{
	const struct look *look = current(pid);

	(void)process;
	(void)hold;
	(void)options;
	process_heaps_clear(heaps);
	heaps->at = calloc(STATES, sizeof(*heaps->at));
	assert_non_null(heaps->at);
	heaps->count = STATES - look->lacks;
	for (size_t i = 0; i < heaps->count; i++) {
		struct vm_heap *heap = &heaps->at[i];
		const uint32_t entries = 1000 * (uint32_t)(looked[pid - FIRST_PID] + i);

		heap->error = look->states[i];
		heap->graph = heap->error ? made_up_root_alone() : made_up_leak(entries, 2, 2);
		heap->account = made_up_account(&heap->graph);
		heap->account.process = strdup(name);
		heap->account.module = NULL;
		heap->account.pid = pid;
		heap->account.vm = (unsigned int)i + 1;
		heap->account.g = 0x1000 * (i + 1);
		heap->account.gc_total = heap->account.sum;
		heap->account.uncertain = (struct heap_uncertain){ 0 };
		if (heap->error)
			heap->account.method = HEAP_MISSING;
	}
	return heaps->count && process_heaps_missing(heaps) == heaps->count ? heaps->at[0].error : 0;
}

/*---- What is checked ----*/

static char text[TEXT_SIZE];

static int begin(void **state)
{
	(void)state;
	memset(looks, 0, sizeof(looks));
	memset(looked, 0, sizeof(looked));
	memset(times_ns, 0, sizeof(times_ns));
	now_ns = begin_ns;
	interrupt_ns = UINT64_MAX;
	published = diagnosed = moments = 0;
	moments_fit = SIZE_MAX;
	return 0;
}

static void read_back(FILE *file, char ret_text[static TEXT_SIZE])
{
	size_t length;

	rewind(file);
	length = fread(ret_text, 1, TEXT_SIZE - 1, file);
	ret_text[length] = '\0';
}

/* Run the series, and keep its text and its messages. */
static enum exit_status run(size_t processes, uint64_t for_ns)
{
	char path[] = "/tmp/ljspy-heap-series-XXXXXX";
	pid_t pids[PROCESSES] = { FIRST_PID, FIRST_PID + 1 };
	struct options options = {
		.command = COMMAND_HEAP,
		.pids = pids,
		.pid_count = processes,
		.heap_format = heap_format_by_name("text"),
		.output = path,
		.every_ns = every_ns,
		.for_ns = for_ns,
	};
	const struct invocation invocation = { .options = &options };
	const int file = mkstemp(path);
	enum exit_status status;
	FILE *output;

	assert_true(file >= 0);
	told_begin();
	status = command_heap(&invocation);
	told_end();
	output = fopen(path, "r"); /* another file: it was put in its place */
	assert_non_null(output);
	read_back(output, text);
	fclose(output);
	close(file);
	unlink(path);
	return status;
}

static size_t occurrences(const char *in, const char *of)
{
	size_t count = 0;

	while ((in = strstr(in, of)) != NULL) {
		count++;
		in++;
	}
	return count;
}

static void set_states(struct look *look, int error)
{
	for (size_t i = 0; i < STATES; i++)
		look->states[i] = error;
}

static void a_series_has_a_look_at_each_time(void **state)
{
	(void)state;
	assert_int_equal(run(1, 4 * every_ns), EXIT_ALL_GOOD);
	assert_int_equal(looked[0], 5);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(times_ns[i], i * every_ns);
	assert_int_equal(occurrences(text, " UTC "), 5);
	assert_null(strstr(text, "could not be read"));
}

/* What was read is shown, and that it is not all. */
static void a_series_ends_where_memory_is_short(void **state)
{
	for (size_t fit = 0; fit < 4; fit++) {
		begin(state);
		moments_fit = fit;
		assert_int_equal(run(1, 4 * every_ns), fit < 2 ? EXIT_NOTHING_DONE : EXIT_WITH_ERRORS);
		assert_int_equal(looked[0], fit);
		assert_int_equal(moments, fit + 1);
		assert_int_equal(occurrences(text, " UTC "), fit < 2 ? 0 : fit);
		assert_int_equal(occurrences(told, "reading a heap: Cannot allocate memory"), 1);
	}
}

/* Tries that take longer than the interval do not follow each other at once, and the series ends in time. */
static void looks_that_take_long_leave_times_out(void **state)
{
	(void)state;
	for (size_t i = 1; i < LOOKS; i++)
		looks[0][i].takes_ns = 3 * every_ns + every_ns / 2;
	assert_int_equal(run(1, 8 * every_ns), EXIT_ALL_GOOD);
	assert_int_equal(looked[0], 3);
	assert_int_equal(times_ns[1], every_ns);
	assert_int_equal(times_ns[2], 5 * every_ns);
	assert_true(now_ns - begin_ns <= 9 * every_ns);
}

/* Whatever went wrong at one moment, told once; what follows is told as well. */
static void a_series_goes_on_while_the_process_is_there(void **state)
{
	(void)state;
	set_states(&looks[0][1], -EBUSY);
	set_states(&looks[0][2], -EBUSY);
	looks[0][3].error = -EPERM;
	looks[0][4].error = -ENOEXEC;
	looks[0][5].lacks = STATES;
	looks[0][6].check = -EBUSY;
	looks[0][7].check = -EBUSY;
	assert_int_equal(run(1, 9 * every_ns), EXIT_WITH_ERRORS);
	assert_int_equal(looked[0], 10);
	assert_non_null(strstr(text, "\n7 moments could not be read.\n"));
	assert_non_null(strstr(text, "Grew in every interval"));
	assert_int_equal(told_times("could not be copied in one moment"), 1);
	assert_non_null(strstr(told, "The series goes on with the next look."));
	assert_null(strstr(told, "Try again at another time"));
	assert_int_equal(told_times("No Lua state is known in process 5000000"), 1);
	assert_int_equal(told_times("There is no process 5000000"), 2); /* of the look, and of the check */
	assert_int_equal(told_times("does not run LuaJIT"), 1);
}

static void a_reason_that_changes_back_is_told_again(void **state)
{
	(void)state;
	set_states(&looks[0][1], -EBUSY);
	set_states(&looks[0][2], -EIO);
	set_states(&looks[0][3], -EBUSY);
	assert_int_equal(run(1, 4 * every_ns), EXIT_WITH_ERRORS);
	assert_int_equal(told_times("could not be copied in one moment"), 2);
	assert_int_equal(told_times("may have been closed"), 1);
	assert_non_null(strstr(text, "\n3 moments could not be read.\n"));
}

static void a_series_ends_with_its_process(void **state)
{
	(void)state;
	looks[0][2].error = -EIO;
	looks[0][2].is_gone = true;
	assert_int_equal(run(1, 0), EXIT_WITH_ERRORS);
	assert_int_equal(looked[0], 3);
	assert_non_null(strstr(told, "Process 5000000 ended while its heap was read."));
	assert_null(strstr(text, "could not be read"));
	begin(state);
	looks[0][2].check = -ESRCH;
	assert_int_equal(run(1, 0), EXIT_WITH_ERRORS);
	assert_int_equal(looked[0], 3);
	begin(state);
	looks[0][2].start = 7;
	assert_int_equal(run(1, 0), EXIT_WITH_ERRORS);
	assert_int_equal(looked[0], 3);
}

static void one_that_is_gone_leaves_the_others(void **state)
{
	(void)state;
	looks[0][1].check = -ESRCH;
	assert_int_equal(run(2, 3 * every_ns), EXIT_WITH_ERRORS);
	assert_int_equal(looked[0], 2);
	assert_int_equal(looked[1], 4);
}

static void a_busy_first_look_does_not_end_the_series(void **state)
{
	(void)state;
	set_states(&looks[0][0], -EBUSY);
	assert_int_equal(run(1, 3 * every_ns), EXIT_WITH_ERRORS);
	assert_int_equal(looked[0], 4);
	assert_non_null(strstr(text, "\n1 moment could not be read.\n"));
}

/* Another tracer ends, and so does an execve(). */
static void what_may_pass_at_the_first_look_does_not_end_the_series(void **state)
{
	static const struct look first[] = {
		{ .error = -EALREADY, .reason = PERMISSION_OTHER_TRACER },
		{ .check = -EBUSY, .reason = PERMISSION_IN_EXEC },
		{ .error = -ENODATA, .reason = PERMISSION_UNREADABLE },
		{ .error = -EMFILE, .reason = PERMISSION_TOO_FEW_FILES },
	};

	for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++) {
		begin(state);
		looks[0][0] = looks[0][1] = first[i];
		assert_int_equal(run(1, 3 * every_ns), EXIT_WITH_ERRORS);
		assert_int_equal(looked[0], 4);
		assert_int_equal(published, 4);
		assert_int_equal(told_times("The series goes on with the next look."), 1);
		assert_non_null(strstr(text, "\n2 moments could not be read.\n"));
		assert_non_null(strstr(text, "Grew in every interval"));
	}
}

/* That there was a reason which might pass is no reason to wait for Lua. */
static void what_has_passed_does_not_keep_a_series_without_lua(void **state)
{
	(void)state;
	looks[0][0] = (struct look){ .error = -EALREADY, .reason = PERMISSION_OTHER_TRACER };
	looks[0][1] = (struct look){ .error = -ENOEXEC };
	assert_int_equal(run(1, 3 * every_ns), EXIT_NOTHING_DONE);
	assert_int_equal(looked[0], 2);
	assert_int_equal(told_times("The series goes on with the next look."), 1);
	begin(state);
	looks[0][0] = (struct look){ .check = -EBUSY, .reason = PERMISSION_IN_EXEC };
	looks[0][1].lacks = STATES;
	assert_int_equal(run(1, 3 * every_ns), EXIT_NOTHING_DONE);
	assert_int_equal(looked[0], 2);
}

/* A cause may pass while it is told. */
static void a_cause_is_found_once(void **state)
{
	(void)state;
	looks[0][0] = (struct look){ .error = -EALREADY, .reason = PERMISSION_OTHER_TRACER };
	assert_int_equal(run(1, 3 * every_ns), EXIT_WITH_ERRORS);
	assert_int_equal(diagnosed, 1);
}

static void a_right_that_is_missing_ends_the_series_at_once(void **state)
{
	looks[0][0] = (struct look){ .error = -EPERM, .reason = PERMISSION_YAMA };
	assert_int_equal(run(1, 3 * every_ns), EXIT_NOTHING_DONE);
	assert_int_equal(looked[0], 1);
	begin(state);
	looks[0][0] = (struct look){ .error = -ENOEXEC };
	assert_int_equal(run(1, 3 * every_ns), EXIT_NOTHING_DONE);
	assert_int_equal(looked[0], 1);
}

/* Nobody knows that there will ever be a heap. */
static void a_process_without_lua_ends_the_series_at_once(void **state)
{
	(void)state;
	looks[0][0].lacks = STATES;
	assert_int_equal(run(1, 3 * every_ns), EXIT_NOTHING_DONE);
	assert_int_equal(looked[0], 1);
	assert_non_null(strstr(told, "No look at the heap succeeded"));
}

static void too_few_looks_are_told_as_what_they_are(void **state)
{
	(void)state;
	interrupt_ns = begin_ns + every_ns / 2;
	assert_int_equal(run(1, 0), EXIT_NOTHING_DONE);
	assert_non_null(strstr(told, "There was only one look at the heap"));
	begin(state);
	for (size_t i = 0; i < LOOKS; i++)
		set_states(&looks[0][i], -EBUSY);
	assert_int_equal(run(1, 3 * every_ns), EXIT_NOTHING_DONE);
	assert_int_equal(looked[0], 4);
	assert_non_null(strstr(told, "No look at the heap succeeded"));
	set_states(&looks[0][2], 0);
	now_ns = begin_ns;
	looked[0] = 0;
	assert_int_equal(run(1, 3 * every_ns), EXIT_NOTHING_DONE);
	assert_non_null(strstr(told, "Only one of 4 looks at the heap succeeded"));
}

/* A process none of whose states can be read has them all the same. */
static void a_process_that_is_never_read_leaves_the_others_a_comparison(void **state)
{
	(void)state;
	for (size_t i = 0; i < LOOKS; i++)
		set_states(&looks[1][i], -EBUSY);
	assert_int_equal(run(2, 3 * every_ns), EXIT_WITH_ERRORS);
	assert_non_null(strstr(
		text,
		"worker (pid 5000001), VM 1 is left out of the comparison: not read at 4 of 4 moments.\n"));
	assert_non_null(strstr(text, "worker (pid 5000001), VM 2 is left out"));
	assert_non_null(strstr(text, "Grew in every interval"));
	assert_null(strstr(text, "no suspects"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_series_has_a_look_at_each_time, begin),
		cmocka_unit_test_setup(a_series_ends_where_memory_is_short, begin),
		cmocka_unit_test_setup(looks_that_take_long_leave_times_out, begin),
		cmocka_unit_test_setup(a_series_goes_on_while_the_process_is_there, begin),
		cmocka_unit_test_setup(a_reason_that_changes_back_is_told_again, begin),
		cmocka_unit_test_setup(a_series_ends_with_its_process, begin),
		cmocka_unit_test_setup(one_that_is_gone_leaves_the_others, begin),
		cmocka_unit_test_setup(a_busy_first_look_does_not_end_the_series, begin),
		cmocka_unit_test_setup(what_may_pass_at_the_first_look_does_not_end_the_series, begin),
		cmocka_unit_test_setup(what_has_passed_does_not_keep_a_series_without_lua, begin),
		cmocka_unit_test_setup(a_cause_is_found_once, begin),
		cmocka_unit_test_setup(a_right_that_is_missing_ends_the_series_at_once, begin),
		cmocka_unit_test_setup(a_process_without_lua_ends_the_series_at_once, begin),
		cmocka_unit_test_setup(too_few_looks_are_told_as_what_they_are, begin),
		cmocka_unit_test_setup(a_process_that_is_never_read_leaves_the_others_a_comparison, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

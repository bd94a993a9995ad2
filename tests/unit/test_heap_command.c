/* SPDX-License-Identifier: MIT */
/* ljspy heap of one moment: what it tells of heaps that it cannot read, and how it ends. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "output/heap/heap_builder.h"
#include "output/heap_reports/heap_report.h"
#include "src/heap/process_heaps.h"
#include "src/inspect/lua_process.h"
#include "src/linux/proc/process.h"
#include "src/linux/tracer/tracer.h"
#include "src/rendering/heap_output.h"
#include "src/survey/traced_lua.h"
#include "src/targets/choose.h"
#include "src/targets/command_apart.h"
#include "src/targets/core_look.h"
#include "tests/unit/full_output.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_heap.h"
#include "tests/unit/ran_apart.h"
#include "tests/unit/run_command.h"
#include "tests/unit/told_reason.h"

enum { PROCESSES = 2, STATES = 2, FIRST = 5000000, CORE_PID = 77 };

static struct made_up {
	int check_error, look_error;
	bool misfits, is_gone;
	size_t state_count;
	int states[STATES]; /* error of each */
	unsigned int looks;
} world[PROCESSES], core; /* core.look_error is why it cannot be opened */

static struct {
	bool has_no_tracer, is_given_up, allows_attach, lacks_memory;
	int run_error;
	struct heap_capture_options capture;
} seen;

static struct options options;

static struct made_up *made_up(pid_t pid)
{
	if (pid == CORE_PID)
		return &core;
	assert_in_range(pid, FIRST, FIRST + PROCESSES - 1);
	return &world[pid - FIRST];
}

INSTEAD_OF(command_try_run);
int __wrap_command_try_run(struct command_try *try, void *(*read)(void *context), void *context)
{
	if (seen.run_error)
		return seen.run_error;
	assert_null(read(context));
	try->given_up = seen.is_given_up;
	return 0;
}

INSTEAD_OF(tracer_new);
struct tracer *__wrap_tracer_new(void)
{
	errno = EAGAIN;
	return seen.has_no_tracer ? NULL : (struct tracer *)&seen;
}

INSTEAD_OF(tracer_free);
void __wrap_tracer_free(struct tracer *tracer)
{
	assert_non_null(tracer);
}

INSTEAD_OF(tracer_allow_attach);
void __wrap_tracer_allow_attach(struct tracer *tracer)
{
	(void)tracer;
	seen.allows_attach = true;
}

INSTEAD_OF(choose_can_look);
int __wrap_choose_can_look(pid_t pid, uint64_t *ret_start)
{
	*ret_start = 1;
	return made_up(pid)->check_error;
}

INSTEAD_OF(choose_check_layout);
bool __wrap_choose_check_layout(pid_t pid, const struct given_layout *layout)
{
	assert_null(layout);
	return !made_up(pid)->misfits;
}

INSTEAD_OF(process_thread_with_memory);
pid_t __wrap_process_thread_with_memory(pid_t pid)
{
	return made_up(pid)->is_gone ? 0 : pid;
}

INSTEAD_OF(traced_lua_look);
int __wrap_traced_lua_look(const struct traced_lua *traced, pid_t pid)
{
	made_up(pid)->looks++;
	return made_up(pid)->look_error ? made_up(pid)->look_error
					: traced->look(traced->context, NULL, NULL, "worker");
}

INSTEAD_OF(process_heaps_read);
int __wrap_process_heaps_read(struct lua_process *process, struct hold *hold, pid_t pid, const char *name,
			      const struct heap_capture_options *capture, struct process_heaps *heaps)
{
	const struct made_up *of = made_up(pid);

	(void)process, (void)hold;
	seen.capture = *capture;
	process_heaps_clear(heaps);
	heaps->at = calloc(STATES, sizeof(*heaps->at));
	assert_non_null(heaps->at);
	heaps->count = of->state_count;
	for (size_t i = 0; i < heaps->count; i++) {
		struct vm_heap *heap = &heaps->at[i];

		heap->error = of->states[i];
		heap->graph = heap->error ? made_up_root_alone() : made_up_leak(1000, 2, 2);
		heap->account = made_up_account(&heap->graph);
		heap->account.process = strdup(name);
		heap->account.module = NULL;
		heap->account.pid = pid;
		heap->account.vm = (unsigned int)i + 1;
		heap->account.gc_total = heap->account.sum;
		heap->account.uncertain = (struct heap_uncertain){ 0 };
		if (heap->error)
			heap->account.method = HEAP_MISSING;
	}
	return heaps->count && process_heaps_missing(heaps) == heaps->count ? heaps->at[0].error : 0;
}

INSTEAD_OF(heap_output_begin_moment);
int __wrap_heap_output_begin_moment(struct heap_output *output, const char *name)
{
	return seen.lacks_memory ? -ENOMEM : __real_heap_output_begin_moment(output, name);
}

INSTEAD_OF(core_look_at);
bool __wrap_core_look_at(const struct core_look *look, const char *path)
{
	assert_string_equal(path, "core.77");
	if (core.look_error)
		return false;
	return look->look(look->context, (struct lua_process *)&core, (const struct core_file *)&core) == 0;
}

INSTEAD_OF(lua_process_global_count);
size_t __wrap_lua_process_global_count(const struct lua_process *process)
{
	assert_ptr_equal(process, &core);
	return core.state_count;
}

INSTEAD_OF(core_file_pid);
pid_t __wrap_core_file_pid(const struct core_file *file)
{
	assert_ptr_equal(file, &core);
	return CORE_PID;
}

INSTEAD_OF(core_file_name);
const char *__wrap_core_file_name(const struct core_file *file)
{
	assert_ptr_equal(file, &core);
	return "dead";
}

/*---- The user ----*/

static int begin(void **state)
{
	static pid_t pids[PROCESSES] = { FIRST, FIRST + 1 };

	(void)state;
	memset(&seen, 0, sizeof(seen));
	output_is_full = false;
	ran_apart = false;
	told_reason = PERMISSION_UNKNOWN;
	world[0] = world[1] = core = (struct made_up){ .state_count = STATES };
	options = (struct options){ .command = COMMAND_HEAP,
				    .pids = pids,
				    .pid_count = 1,
				    .heap_format = heap_format_by_name("text"),
				    .output = "-" };
	return 0;
}

static enum exit_status look(void)
{
	return run_command(command_heap, &options);
}

static void assert_nothing_done(const char *words)
{
	assert_int_equal(look(), EXIT_NOTHING_DONE);
	assert_string_equal(shown, "");
	ASSERT_TOLD(words);
}

static void all_heaps_are_shown(void **state)
{
	(void)state;
	options.pid_count = PROCESSES;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	assert_string_equal(told, "");
	ASSERT_SHOWN("5000000");
	ASSERT_SHOWN("5000001");
	assert_true(ran_apart);
	assert_false(seen.allows_attach || seen.capture.read.strings);
	options.allow_attach = options.strings = true;
	options.max_pause_ns = 7;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	assert_true(seen.allows_attach && seen.capture.read.strings);
	assert_int_equal(seen.capture.max_pause_ns, 7);
}

static void heaps_that_are_missing_are_an_error(void **state)
{
	(void)state;
	world[0].states[1] = -EBUSY;
	assert_int_equal(look(), EXIT_WITH_ERRORS);
	ASSERT_SHOWN("5000000");
	ASSERT_TOLD("Try again at another time");
	ASSERT_TOLD("Of 2 Lua states of process 5000000, 1 is missing.");
	world[0].states[0] = -EBUSY;
	assert_nothing_done("could not be copied in one moment");
	world[0].state_count = 0;
	assert_nothing_done("No Lua state is known in process 5000000");
	world[0].look_error = -EPERM;
	assert_nothing_done("5000000: error 1.");
	world[0].is_gone = true;
	assert_nothing_done("Process 5000000 ended while its heap was read.");
	world[0].check_error = -ESRCH;
	world[0].looks = 0;
	assert_nothing_done("5000000: error 3.");
	assert_int_equal(world[0].looks, 0);
}

static void one_of_several_that_fails_is_left_out(void **state)
{
	static const struct made_up others[] = {
		{ .check_error = -ESRCH, .state_count = STATES },
		{ .look_error = -EPERM, .state_count = STATES },
		{ .misfits = true, .state_count = STATES },
		{ .state_count = 0 },
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		begin(state);
		options.pid_count = PROCESSES;
		world[0] = others[i];
		assert_int_equal(look(), EXIT_WITH_ERRORS);
		assert_null(strstr(shown, "5000000"));
		ASSERT_SHOWN("5000001");
		assert_int_equal(world[1].looks, 1);
	}
	assert_true(others[2].misfits);
	begin(state);
	world[0].misfits = true;
	assert_nothing_done("");
	assert_int_equal(world[0].looks, 0);
}

static void what_ljspy_lacks_is_told(void **state)
{
	(void)state;
	seen.has_no_tracer = true;
	assert_nothing_done("ljspy: ");
	assert_int_equal(world[0].looks, 0);
	seen.has_no_tracer = false;
	seen.run_error = -EMFILE;
	assert_nothing_done("files open at a time");
}

/* Who has ended ljspy is told no reason. */
static void an_attempt_that_is_given_up_says_nothing(void **state)
{
	(void)state;
	seen.is_given_up = true;
	world[0].look_error = -EINTR;
	assert_int_equal(look(), EXIT_NOTHING_DONE);
	assert_string_equal(told, "");
	assert_string_equal(shown, "");
}

static void a_core_file_needs_no_engine(void **state)
{
	(void)state;
	options.core = "core.77";
	options.pid_count = 0;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	assert_false(ran_apart);
	assert_string_equal(told, "");
	ASSERT_SHOWN("dead");
	core.states[1] = -EIO;
	assert_int_equal(look(), EXIT_WITH_ERRORS);
	ASSERT_TOLD("Of 2 Lua states of core.77, 1 is missing.");
	ASSERT_SHOWN("dead");
	core.state_count = 0;
	assert_nothing_done(core_unknown_layout);
	core.look_error = -EBADMSG;
	assert_nothing_done("");
}

static void output_that_cannot_be_written_is_an_error(void **state)
{
	(void)state;
	output_is_full = true;
	assert_int_equal(look(), EXIT_WITH_ERRORS);
	assert_string_equal(told, "It is full.\n");
	world[0].states[1] = -EBUSY;
	assert_int_equal(look(), EXIT_WITH_ERRORS);
	ASSERT_TOLD("It is full.\n");
	output_is_full = false;
	options.output = "/nowhere/at/all";
	assert_nothing_done("/nowhere/at/all");
}

static void without_memory_nothing_is_read(void **state)
{
	(void)state;
	seen.lacks_memory = true;
	assert_nothing_done("reading a heap: Cannot allocate memory");
	assert_int_equal(world[0].looks, 0);
}

static void a_series_needs_a_format_that_shows_it(void **state)
{
	(void)state;
	options.every_ns = 1;
	options.heap_format = heap_format_by_name("folded");
	assert_non_null(options.heap_format);
	assert_int_equal(look(), EXIT_USAGE);
	ASSERT_TOLD("The format folded shows one heap, not what grew over several.");
	assert_false(ran_apart);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(all_heaps_are_shown, begin),
		cmocka_unit_test_setup(heaps_that_are_missing_are_an_error, begin),
		cmocka_unit_test_setup(one_of_several_that_fails_is_left_out, begin),
		cmocka_unit_test_setup(what_ljspy_lacks_is_told, begin),
		cmocka_unit_test_setup(an_attempt_that_is_given_up_says_nothing, begin),
		cmocka_unit_test_setup(a_core_file_needs_no_engine, begin),
		cmocka_unit_test_setup(output_that_cannot_be_written_is_an_error, begin),
		cmocka_unit_test_setup(without_memory_nothing_is_read, begin),
		cmocka_unit_test_setup(a_series_needs_a_format_that_shows_it, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

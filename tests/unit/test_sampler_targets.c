/* SPDX-License-Identifier: MIT */
/*
 * Processes of a machine of which everything is known: which the sampler finds, looks into, and for how long.
 */
#include <errno.h>
#include <regex.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/sampled_machine.h"

static const uint64_t second = NS_PER_SECOND;
static char *const command[] = { (char[]){ "luajit" }, NULL };

/* The test goes on with a machine of its own. */
static struct made_up_process *begin_again(void **state)
{
	forget(state);
	make_up(state);
	return add(1, bursts);
}

/* A process that ljspy finds from the beginning on, without LuaJIT. */
static struct made_up_process *add_found(void)
{
	struct made_up_process *process = add(1, bursts);

	options.subprocesses = true;
	process->followed = true;
	process->luajit_ns = UINT64_MAX;
	return process;
}

/*---- Those that may run LuaJIT ----*/

/* It takes a while, in which ljspy must be as urgent as others at most. */
static void a_look_has_ended_before_a_process_is_looked_into(void **state)
{
	(void)state;
	add(1, bursts);
	add_found();
	machine.wants_refresh = true;
	run();
	assert_true(machine.refreshes > 20);
	assert_int_equal(machine.hurried, 0);
}

/* Meanwhile its files are closed: they are wanted elsewhere. */
static void a_found_process_that_there_are_no_files_for_is_tried_again_soon(void **state)
{
	static struct vm_code vm;
	const uint64_t begin_ns = 3 * second;
	struct made_up_process *found;

	(void)state;
	add(1, bursts);
	found = add_found();
	found->begin_ns = found->threads[0].begin_ns = begin_ns;
	found->luajit_ns = 0;
	found->vm = &vm;
	machine.few_files_begin_ns = begin_ns;
	machine.few_files_end_ns = begin_ns + 100 * MS;
	run();
	assert_in_range(sum_of(found, 0)->first_ns, machine.few_files_end_ns, begin_ns + 500 * MS);
	assert_in_range(machine.opens, 1 + 3, 1 + 5);
	assert_int_equal(machine.closes, machine.opens);
}

static void a_found_process_in_an_execve_is_tried_again_soon(void **state)
{
	static struct vm_code vm;
	const uint64_t begin_ns = 3 * second;

	for (int ends = 0; ends < 2; ends++) {
		struct made_up_process *found;

		begin_again(state);
		found = add_found();
		found->begin_ns = found->threads[0].begin_ns = found->busy_begin_ns = begin_ns;
		found->luajit_ns = 0;
		found->vm = &vm;
		found->busy_end_ns = begin_ns + 200 * MS;
		if (ends)
			found->end_ns = found->busy_end_ns;
		run();
		/* It may have been anything: one that ends then is not told as one that was left out. */
		assert_int_equal(result.left_out, 0);
		if (!ends)
			assert_in_range(sum_of(found, 0)->first_ns, found->busy_end_ns, begin_ns + 300 * MS);
	}
}

static void a_process_whose_threads_cannot_be_seized_for_a_while_has_not_ended(void **state)
{
	struct made_up_process *process = add(1, bursts);

	(void)state;
	process->busy_begin_ns = STARTED_AT_NS + second;
	process->busy_end_ns = process->busy_begin_ns + second;
	run();
	assert_int_equal(result.end, SAMPLER_DURATION_OVER);
	assert_true(sum_of(process, 0)->samples > 300);
}

/* Looking into it takes a while, and threads are not known before. */
static void a_program_that_begins_while_ljspy_looks_into_another_is_looked_into(void **state)
{
	for (int is_found = 0; is_found < 2; is_found++) {
		struct made_up_process *process = begin_again(state);
		unsigned long others = 0;

		if (is_found) {
			process = add_found();
			process->begin_ns = process->threads[0].begin_ns = STARTED_AT_NS + second;
			process->luajit_ns = 0;
			others = 1;
		}
		process->exec_ns = process->begin_ns + STARTED_AT_NS + 20 * MS;
		machine.open_takes_ns = 50 * MS;
		machine.tells_programs = true;
		run();
		assert_int_equal(machine.opens, others + 2);
		assert_true(sum_of(process, 0)->samples > 100);
	}
}

static void each_program_has_the_layout_that_was_given(void **state)
{
	static const struct given_layout layout;
	struct made_up_process *process = add(1, bursts);

	options.layout = &layout;
	run();
	assert_int_equal(machine.opens, 1);
	assert_ptr_equal(machine.layout, &layout);
	process = begin_again(state);
	process->exec_ns = 3 * second;
	options.layout = &layout;
	run();
	assert_int_equal(machine.opens, 2);
	assert_ptr_equal(machine.layout, &layout);
}

static void a_process_without_luajit_is_looked_into_less_and_less_often(void **state)
{
	unsigned long without;

	add(1, bursts);
	options.subprocesses = true;
	run();
	without = machine.refreshes;
	assert_in_range(without, 1, 20);
	begin_again(state);
	add_found();
	run();
	/* After 20 ms, 40 ms and so on, up to some more than a second. */
	assert_in_range(machine.refreshes - without, 12, 15);
	begin_again(state);
	add_found();
	options.duration_ns = 300 * MS;
	run();
	assert_in_range(machine.refreshes, 1 + 4 + 1, 1 + 5 + 5);
}

/* It cannot have loaded anything. */
static void a_process_without_luajit_that_has_not_run_is_not_looked_into_again(void **state)
{
	const struct made_up_thread asleep = { .wait_ns = 100 * second, .run_ns = MS };
	unsigned long without;
	struct made_up_process *idle;

	add(1, bursts);
	options.subprocesses = true;
	run();
	without = machine.refreshes;
	begin_again(state);
	idle = add_found();
	idle->threads[0] = asleep;
	run();
	assert_int_equal(machine.refreshes, without + 1);
	/* What tells whether it has LuaJIT may yet be read. */
	begin_again(state);
	idle = add_found();
	idle->threads[0] = asleep;
	idle->is_unread = true;
	run();
	assert_in_range(machine.refreshes - without, 12, 15);
	/* Once it has run, it may have LuaJIT. */
	begin_again(state);
	idle = add_found();
	idle->threads[0] = (struct made_up_thread){ .wait_ns = 5 * second, .run_ns = 10 * second };
	idle->luajit_ns = 5 * second;
	run();
	assert_true(sum_of(idle, 0)->samples > 300);
}

static void a_found_process_keeps_no_recording_from_its_end(void **state)
{
	struct made_up_process *first = add(1, bursts), *found = add_found();

	first->end_ns = 3 * second;
	run();
	assert_int_equal(result.end, SAMPLER_TARGETS_ENDED);
	assert_near(machine.now_ns, 3 * second, 50 * MS);
	/* Unless it has just begun: it may be LuaJIT that is being started. */
	first = begin_again(state);
	found = add_found();
	first->end_ns = 3 * second;
	found->begin_ns = found->threads[0].begin_ns = 3 * second - 20 * MS;
	found->luajit_ns = 3 * second + 100 * MS;
	run();
	assert_int_equal(result.end, SAMPLER_DURATION_OVER);
	assert_true(sum_of(found, 0)->samples > 200);
	/* It is waited for only a moment. */
	first = begin_again(state);
	found = add_found();
	first->end_ns = 3 * second;
	found->begin_ns = found->threads[0].begin_ns = 3 * second - 20 * MS;
	run();
	assert_int_equal(result.end, SAMPLER_TARGETS_ENDED);
	assert_in_range(machine.now_ns, 3 * second + 500 * MS, 3 * second + 1500 * MS);
}

static void a_process_that_was_asked_for_is_waited_for(void **state)
{
	struct made_up_process *first = add(1, bursts), *second_one = add_found();
	const pid_t both[] = { first->pid, second_one->pid };

	(void)state;
	second_one->followed = false;
	first->end_ns = 3 * second;
	options.pids = both;
	options.pid_count = 2;
	sampler_run(&options, &result);
	assert_int_equal(result.end, SAMPLER_DURATION_OVER);
	assert_true(sum_of(first, 0)->samples > 100);
}

static void a_pattern_may_be_awaited(void **state)
{
	struct made_up_process *later;
	regex_t pattern;

	(void)state;
	assert_int_equal(regcomp(&pattern, "nginx", REG_EXTENDED | REG_NOSUB), 0);
	later = add_found();
	options.subprocesses = false;
	options.pattern = &pattern;
	options.awaits = true;
	later->begin_ns = later->threads[0].begin_ns = 2 * second;
	later->end_ns = 4 * second;
	later->luajit_ns = 0;
	sampler_run(&options, &result);
	assert_int_equal(result.end, SAMPLER_DURATION_OVER);
	assert_int_equal(machine.now_ns, STARTED_AT_NS + options.duration_ns);
	assert_true(sum_of(later, 0)->samples > 50);
	assert_ptr_equal(machine.followed.pattern, &pattern);
	assert_false(machine.followed.descendants);
	assert_false(machine.followed.orphans);
	regfree(&pattern);
}

static void those_are_followed_that_were_asked_for(void **state)
{
	static const pid_t own[] = { 5, 6 };
	struct made_up_process *first = add(1, bursts), *other = add(1, bursts);
	const pid_t both[] = { first->pid, other->pid };

	options.subprocesses = true;
	options.pids = both;
	options.pid_count = 2;
	options.own_pids = own;
	options.own_pid_count = 2;
	options.duration_ns = second;
	sampler_run(&options, &result);
	assert_int_equal(result.error, 0);
	assert_true(machine.followed.descendants);
	assert_false(machine.followed.orphans);
	assert_ptr_equal(machine.followed.own_pids, own);
	assert_int_equal(machine.followed.own_pid_count, 2);
	assert_int_equal(machine.follow_count, 2);
	assert_int_equal(machine.follows[0], first->pid);
	assert_int_equal(machine.follows[1], other->pid);
	/* A command's orphans become ljspy's children. */
	first = begin_again(state);
	options.launch = command;
	options.subprocesses = true;
	options.duration_ns = second;
	sampler_run(&options, &result);
	assert_true(machine.followed.orphans);
	assert_int_equal(machine.follow_count, 1);
	assert_int_equal(machine.follows[0], first->pid);
	/* Nor is there a recording without those that are to be followed. */
	first = begin_again(state);
	machine.follow_error = -ENOMEM;
	options.subprocesses = true;
	options.pids = &first->pid;
	options.pid_count = 1;
	sampler_run(&options, &result);
	assert_int_equal(result.end, SAMPLER_FAILED);
	assert_int_equal(result.error, -ENOMEM);
	assert_int_equal(machine.opens, 0);
}

/*---- When accounts begin ----*/

/* A command's time counts from its start on, however long it takes to look into it. */
static void time_to_get_to_know_a_process_is_no_time_of_a_recording(void **state)
{
	struct made_up_process *process = add(1, bursts);

	machine.open_takes_ns = 2 * second;
	run();
	assert_near(sum_of(process, 0)->cpu_ns + of_no_thread.cpu_ns,
		    made_up_cpu_ns(process, machine.now_ns) -
			    made_up_cpu_ns(process, STARTED_AT_NS + 2 * second),
		    TOLERANCE_NS);
	assert_int_equal(result.figures.duration_ns, options.duration_ns);

	process = begin_again(state);
	machine.open_takes_ns = 2 * second;
	options.launch = command;
	sampler_run(&options, &result);
	assert_near(sum_of(process, 0)->cpu_ns + of_no_thread.cpu_ns,
		    made_up_cpu_ns(process, machine.now_ns) - made_up_cpu_ns(process, STARTED_AT_NS),
		    TOLERANCE_NS);
}

/* By the wall clock, time without a stack has a wall-clock weight, too. */
static void time_before_ljspy_found_a_process_is_lost(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct made_up_process *found;

		begin_again(state);
		found = add_found();
		found->begin_ns = found->threads[0].begin_ns = 2 * second;
		found->luajit_ns = 2 * second + 100 * MS;
		options.wall_clock = i;
		run();
		assert_int_equal(result.figures.lost[LOST_NOT_ATTACHED], 1);
		assert_true(of_no_thread.cpu_ns > 20 * MS);
		assert_int_equal(of_no_thread.wall_ns, i ? of_no_thread.cpu_ns : 0);
		/*
		 * Of one that was there from the beginning on, so is what it used since it was last searched.
		 */
		begin_again(state);
		found = add_found();
		found->luajit_ns = 2 * second + 100 * MS;
		options.wall_clock = i;
		run();
		assert_int_equal(result.figures.lost[LOST_NOT_ATTACHED], 1);
		assert_in_range(of_no_thread.cpu_ns, 1, 350 * MS);
		assert_true(sum_of(found, 0)->samples > 100);
	}
}

/*
 * Under another name, say: what it used before is no part of the recording, though ljspy meets it only now.
 */
static void time_before_the_recording_is_not_lost(void **state)
{
	const uint64_t hour = 3600 * second;

	for (int is_launched = 0; is_launched < 2; is_launched++) {
		struct made_up_process *found;

		begin_again(state);
		machine.now_ns += hour;
		found = add_found();
		found->begin_ns = machine.now_ns - second;
		found->threads[0].begin_ns = 0;
		found->luajit_ns = 0;
		found->hides_until_ns = machine.now_ns + 2 * second;
		/* What a command has started is part of the recording from its start on. */
		options.launch = is_launched ? command : NULL;
		options.subprocesses = true;
		if (is_launched) {
			sampler_run(&options, &result);
			assert_near(of_no_thread.cpu_ns, hour / 4, second);
		} else {
			run();
			assert_int_equal(result.figures.lost[LOST_NOT_ATTACHED], 0);
			assert_true(of_no_thread.cpu_ns < second);
		}
		assert_true(sum_of(found, 0)->samples > 300);
	}
}

/* Nobody knows what ran in it until then. */
static void time_in_which_a_process_could_not_be_read_is_lost(void **state)
{
	struct made_up_process *found;

	begin_again(state);
	found = add_found();
	found->is_unread = true;
	found->luajit_ns = 2100 * MS;
	run();
	assert_int_equal(result.figures.lost[LOST_NOT_ATTACHED], 1);
	assert_near(of_no_thread.cpu_ns + sum_of(found, 0)->cpu_ns,
		    made_up_cpu_ns(found, machine.now_ns) - made_up_cpu_ns(found, STARTED_AT_NS), RESERVE_NS);
	assert_int_equal(result.unsearched, 0);
}

static struct made_up_process *reused;

/* The same program begins anew under this id, at 3 s. */
static void reuse(const struct sample *sample)
{
	(void)sample;
	if (reused->begin_ns || machine.now_ns < 3 * second)
		return;
	reused->begin_ns = reused->threads[0].begin_ns = machine.now_ns;
	reused->luajit_ns = machine.now_ns + 300 * MS;
}

static void another_process_with_the_id_of_a_candidate_has_its_own_time(void **state)
{
	begin_again(state);
	reused = add_found();
	each_sample = reuse;
	run();
	assert_int_equal(machine.opens, 3);
	assert_true(sum_of(reused, 0)->samples > 100);
	assert_near(of_no_thread.cpu_ns + sum_of(reused, 0)->cpu_ns, made_up_cpu_ns(reused, machine.now_ns),
		    RESERVE_NS);
}

/*
 * The clock that tells what it used before goes with it. Without an alarm on that clock, nothing else tells
 * its end.
 */
static void a_candidate_that_ends_while_ljspy_attaches_has_no_time(void **state)
{
	struct made_up_process *found;

	begin_again(state);
	found = add_found();
	found->luajit_ns = 2 * second;
	found->ends_when_attached = true;
	options.wall_clock = true;
	run();
	assert_true(result.figures.target_cpu_ns < 10 * second);
	assert_int_equal(result.figures.lost[LOST_NOT_ATTACHED], 0);
}

static void searching_others_loses_no_time_of_a_process(void **state)
{
	struct made_up_process *first = begin_again(state), *none = add_found(), *last = add_found();
	uint64_t begin_ns, used_ns;

	/* Getting to know the first one is no time of the recording. */
	machine.open_takes_ns = second;
	begin_ns = STARTED_AT_NS + second;
	none->luajit_ns = UINT64_MAX;
	last->luajit_ns = 0;
	run();
	assert_int_equal(machine.opens, 3);
	assert_int_equal(sum_of(none, 0)->samples, 0);
	assert_true(sum_of(last, 0)->samples > 300);
	assert_int_equal(result.figures.lost[LOST_NOT_ATTACHED], 1);
	used_ns = made_up_cpu_ns(first, machine.now_ns) - made_up_cpu_ns(first, begin_ns) +
		  made_up_cpu_ns(last, machine.now_ns) - made_up_cpu_ns(last, begin_ns);
	assert_near(result.figures.target_cpu_ns, used_ns, 2 * TOLERANCE_NS);
	assert_near(sum_of(first, 0)->cpu_ns + sum_of(last, 0)->cpu_ns + of_no_thread.cpu_ns, used_ns,
		    2 * TOLERANCE_NS);
	/* What has no sample for so long is counted as missed, too. */
	assert_true(result.figures.missed_ticks > 0);
}

static void those_that_no_search_got_to_are_told(void **state)
{
	begin_again(state);
	add_found();
	add_found();
	machine.open_takes_ns = 2 * second;
	options.duration_ns = second;
	run();
	assert_int_equal(machine.opens, 2);
	assert_int_equal(result.unsearched, 2);
	/* So are those that came later. */
	begin_again(state);
	for (int i = 0; i < 3; i++) {
		struct made_up_process *found = add_found();

		found->begin_ns = found->threads[0].begin_ns = 400 * MS;
		found->luajit_ns = 0;
	}
	machine.open_takes_ns = 300 * MS;
	options.duration_ns = second;
	run();
	assert_int_equal(machine.opens, 1 + 2);
	assert_int_equal(result.unsearched, 2);
}

/* It may have run LuaJIT. */
static void one_that_ended_before_its_search_is_told(void **state)
{
	for (int is_brief = 0; is_brief < 2; is_brief++) {
		begin_again(state);
		for (int i = 0; i < 2; i++) {
			struct made_up_process *found = add_found();

			found->begin_ns = found->threads[0].begin_ns = second;
			found->end_ns = i == 0 ? 0 : second + (is_brief ? 60 : 500) * MS;
		}
		machine.open_takes_ns = is_brief ? 40 * MS : second;
		run();
		assert_int_equal(result.unsearched, !is_brief);
	}
}

/* It has no part in the recording, but by the wall clock. */
static void one_that_has_not_run_need_not_be_searched(void **state)
{
	for (int wall_clock = 0; wall_clock < 2; wall_clock++) {
		begin_again(state);
		for (int i = 0; i < 2; i++)
			add_found()->threads[0] = (struct made_up_thread){ .wait_ns = 100 * second,
									   .run_ns = MS };
		machine.open_takes_ns = 2 * second;
		options.duration_ns = second;
		options.wall_clock = wall_clock;
		run();
		assert_int_equal(result.unsearched, wall_clock ? 2 : 0);
	}
}

/* However long it would take. */
static void a_search_ends_with_the_recording(void **state)
{
	for (int is_interrupted = 0; is_interrupted < 2; is_interrupted++) {
		begin_again(state);
		add_found()->begin_ns = 100 * MS;
		machine.open_takes_ns = 5 * second;
		options.duration_ns = (is_interrupted ? 100 : 1) * second;
		machine.signal = is_interrupted ? SIGINT : 0;
		machine.signal_ns = STARTED_AT_NS + 6 * second;
		run();
		assert_int_equal(machine.opens, 2);
		assert_int_equal(result.end, is_interrupted ? SAMPLER_INTERRUPTED : SAMPLER_DURATION_OVER);
		assert_near(machine.now_ns, STARTED_AT_NS + 6 * second, 50 * MS);
		assert_int_equal(result.unsearched, 1);
	}
}

/* No other is begun, and nothing is told of what was not searched. */
static void a_signal_ends_searches_before_the_beginning(void **state)
{
	static const pid_t pids[] = { FIRST_PID, FIRST_PID + 1, FIRST_PID + 2 };

	for (size_t count = 1; count <= 3; count += 2) {
		begin_again(state)->luajit_ns = UINT64_MAX;
		for (size_t i = 1; i < count; i++)
			add(1, bursts)->luajit_ns = UINT64_MAX;
		machine.open_takes_ns = 5 * second;
		machine.signal = SIGINT;
		machine.signal_ns = STARTED_AT_NS + second;
		options.pids = pids;
		options.pid_count = count;
		sampler_run(&options, &result);
		assert_int_equal(machine.opens, 1);
		assert_near(machine.now_ns, STARTED_AT_NS + second, 50 * MS);
		assert_int_equal(result.figures.samples, 0);
		assert_int_equal(result.begin_ns, 0);
		assert_int_equal(result.end, SAMPLER_INTERRUPTED);
	}
}

/* Before there is something to look at, a slow file may take its time. */
static void slow_files_hold_up_no_looks(void **state)
{
	begin_again(state);
	add_found()->begin_ns = 2 * second;
	run();
	assert_int_equal(machine.patient_refreshes, 1);
	assert_true(machine.refreshes > 2);
	assert_int_equal(machine.files_may_take_ns, UINT64_MAX);
}

static void begin_command_without_luajit(void **state)
{
	begin_again(state)->luajit_ns = UINT64_MAX;
	options.launch = command;
	machine.has_new_modules = true;
}

/* What the search for LuaJIT has used is not there for another Lua's. */
static void there_is_one_time_for_slow_files(void **state)
{
	begin_command_without_luajit(state);
	machine.refresh_uses_ns = 300 * MS;
	run();
	assert_int_equal(machine.other_lua_may_ns, 200 * MS);
	assert_int_equal(machine.files_may_take_ns, UINT64_MAX);
}

static void a_signal_ends_a_look_for_another_lua(void **state)
{
	begin_command_without_luajit(state);
	machine.other_lua_takes_ns = 5 * second;
	machine.signal = SIGINT;
	machine.signal_ns = STARTED_AT_NS + second;
	sampler_run(&options, &result);
	assert_near(machine.now_ns, STARTED_AT_NS + second, 50 * MS);
	assert_int_equal(result.end, SAMPLER_INTERRUPTED);
}

/* The oldest candidate gets its turn, though others come all the time. */
static void newer_ones_do_not_come_first(void **state)
{
	struct made_up_process *old;

	begin_again(state);
	old = add_found();
	old->luajit_ns = 1100 * MS;
	for (int i = 0; i < 2; i++) {
		struct made_up_process *found = add_found();

		found->begin_ns = found->threads[0].begin_ns = (i ? 1500 : 1000) * MS;
	}
	machine.open_takes_ns = 300 * MS;
	run();
	assert_int_equal(machine.opens, 4);
	/* It waited with the second one for the search of the first, but for longer. */
	assert_int_equal(result.figures.lost[LOST_NOT_ATTACHED], 1);
	assert_in_range(of_no_thread.first_ns, 1600 * MS, 1750 * MS);
}

static uint64_t longest_gap_ns, last_sample_ns;

static void note_gap(const struct sample *sample)
{
	if (sample->pid != FIRST_PID)
		return;
	if (last_sample_ns && machine.now_ns - last_sample_ns > longest_gap_ns)
		longest_gap_ns = machine.now_ns - last_sample_ns;
	last_sample_ns = machine.now_ns;
}

/* Not all that were found at once, one after the other. */
static void looks_come_between_searches(void **state)
{
	begin_again(state)->threads[0] = (struct made_up_thread){ .run_ns = second };
	for (int i = 0; i < MADE_UP_PROCESSES - 1; i++) {
		struct made_up_process *found = add_found();

		found->begin_ns = found->threads[0].begin_ns = 2 * second;
	}
	machine.open_takes_ns = 200 * MS;
	longest_gap_ns = last_sample_ns = 0;
	each_sample = note_gap;
	run();
	assert_int_equal(machine.opens, MADE_UP_PROCESSES);
	assert_in_range(longest_gap_ns, 200 * MS, 300 * MS);
}

/*---- New programs and modules ----*/

/* The kernel reports nothing of threads that ljspy leaves alone. */
static void without_stops_another_program_is_told_by_its_file(void **state)
{
	struct made_up_process *process = add(1, bursts);

	process->exec_ns = process->exec_luajit_ns = 3 * second;
	options.no_stop = machine.tells_programs = true;
	run();
	assert_int_equal(machine.opens, 2);
	assert_true(sum_of(process, 0)->samples > 300);
	process = begin_again(state);
	options.no_stop = machine.tells_programs = true;
	run();
	assert_int_equal(machine.opens, 1);
}

/* It is another thread from then on, which has used more until then than the first one. */
static void a_thread_that_calls_execve_has_its_time_once(void **state)
{
	for (int wall_clock = 0; wall_clock < 2; wall_clock++) {
		struct made_up_process *process = begin_again(state);
		struct made_up_thread *other = &process->threads[1];
		uint64_t begin_ns, first_ns, later_ns;

		options.wall_clock = wall_clock;
		process->thread_count = 2;
		*other = (struct made_up_thread){ .run_ns = 9 * MS, .sleep_ns = MS };
		process->exec_ns = process->exec_luajit_ns = process->threads[0].end_ns = 3 * second;
		process->exec_by = 1;
		begin_ns = run();
		first_ns = made_up_times(&process->threads[0], 3 * second).cpu_ns -
			   made_up_times(&process->threads[0], begin_ns).cpu_ns;
		later_ns = made_up_times(other, machine.now_ns).cpu_ns -
			   made_up_times(other, 3 * second).cpu_ns;
		assert_near(sum_of(process, 0)->cpu_ns, first_ns + later_ns, RESERVE_NS);
		assert_near(sum_of(process, 0)->cpu_ns + sum_of(process, 1)->cpu_ns + of_no_thread.cpu_ns,
			    made_up_cpu_ns(process, machine.now_ns) - made_up_cpu_ns(process, begin_ns),
			    2 * TOLERANCE_NS);
	}
}

static void a_found_process_may_run_luajit_later(void **state)
{
	struct made_up_process *found;

	add(1, bursts);
	found = add_found();
	found->exec_ns = found->exec_luajit_ns = 3 * second;
	machine.tells_programs = true;
	run();
	assert_int_equal(machine.opens, 3);
	assert_true(sum_of(found, 0)->samples > 100);
	assert_true(sum_of(found, 0)->first_ns > 3 * second);
	/* What is known of a program holds until there is another one. */
	begin_again(state);
	add_found();
	machine.tells_programs = true;
	run();
	assert_int_equal(machine.opens, 2);
}

static unsigned long refreshes_of(void **state, bool wants_refresh, bool has_new_modules)
{
	static struct vm_code vm;

	begin_again(state)->vm = &vm;
	machine.wants_refresh = wants_refresh;
	machine.has_new_modules = has_new_modules;
	run();
	assert_true(result.figures.samples > 300);
	/* To look into it takes a while, so what else may take one is done before. */
	assert_true(machine.times_taken >= machine.refreshes);
	return machine.refreshes;
}

static void unknown_code_has_a_process_looked_into_soon(void **state)
{
	/* Once a second, when nothing is to be found. */
	assert_in_range(refreshes_of(state, false, false), 9, 12);
	/* Less and less soon, if it stays unknown. */
	assert_in_range(refreshes_of(state, true, false), 13, 20);
	/* Soon each time, if there are new modules each time. */
	assert_in_range(refreshes_of(state, true, true), 150, 500);
}

enum { QUIET_FROM_S = 3, QUIET_UNTIL_S = 6 };

static unsigned long refreshes_when_quiet_ended, refreshes_a_second_later;

static void meet_unknown_code_but_for_a_while(const struct sample *sample)
{
	const uint64_t now = machine.now_ns;

	(void)sample;
	machine.wants_refresh = now < QUIET_FROM_S * second || now >= QUIET_UNTIL_S * second;
	if (now < QUIET_UNTIL_S * second)
		refreshes_when_quiet_ended = machine.refreshes;
	if (now < (QUIET_UNTIL_S + 1) * second)
		refreshes_a_second_later = machine.refreshes;
}

static void unknown_code_has_haste_again_after_a_quiet_while(void **state)
{
	static struct vm_code vm;

	(void)state;
	add(1, bursts)->vm = &vm;
	each_sample = meet_unknown_code_but_for_a_while;
	run();
	/* After 20 ms, 40 ms and so on. */
	assert_in_range(refreshes_a_second_later - refreshes_when_quiet_ended, 4, 7);
}

/*---- Clocks ----*/

static void the_clock_of_many_threads_is_kept_again_after_a_rest(void **state)
{
	struct made_up_process *process = add(
		MADE_UP_THREADS, (struct made_up_thread){ .run_ns = 2 * second, .sleep_ns = 10 * second });

	(void)state;
	options.duration_ns = 60 * second;
	run();
	assert_true(sum_of(process, 0)->samples > 10);
	assert_true(machine.alarms > 0);
	/* The kernel adds up all threads' times at some looks only. */
	assert_true(machine.sums < machine.waits / 2);
	/* The alarm that has it kept is set once, until there is one for a rest. */
	assert_in_range(machine.timers, 2, 1 + 3 * 5);
}

/* However long ago the look before was. */
static void a_thread_that_began_just_before_the_end_has_a_last_look(void **state)
{
	struct made_up_process *process = add(2, bursts);

	(void)state;
	options.rate_hz = 1;
	options.duration_ns = 5 * second;
	process->threads[1] = (struct made_up_thread){ .begin_ns = STARTED_AT_NS + 5 * second - 300 * MS,
						       .run_ns = second };
	run();
	assert_near(sum_of(process, 1)->cpu_ns, 300 * MS, MS);
}

/*---- Commands ----*/

static void a_command_that_ended_meanwhile_leaves_its_children(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct made_up_process *first = begin_again(state), *found = add_found();

		found->luajit_ns = 0;
		first->end_ns = 1;
		options.launch = command;
		options.launched_pid = first->pid;
		/* Its end is told once: maybe an earlier run was told. */
		machine.exit_known = i;
		machine.exit_status = 2 << 8;
		sampler_run(&options, &result);
		assert_int_equal(result.end, SAMPLER_DURATION_OVER);
		assert_int_equal(result.error, 0);
		assert_true(result.launched);
		assert_int_equal(result.pid, first->pid);
		assert_int_equal(result.exit_known, i);
		if (i)
			assert_int_equal(result.exit_status, 2 << 8);
		assert_true(sum_of(found, 0)->samples > 300);
		/* Without them there is nothing to sample. */
		first = begin_again(state);
		first->end_ns = 1;
		machine.exit_known = i;
		options.launch = command;
		options.launched_pid = first->pid;
		sampler_run(&options, &result);
		assert_int_equal(result.end, SAMPLER_FAILED);
		assert_int_equal(result.error, -ESRCH);
	}
}

static void the_end_of_another_process_is_not_the_commands(void **state)
{
	struct made_up_process *first = begin_again(state), *found = add_found();

	found->luajit_ns = 0;
	found->end_ns = second;
	options.launch = command;
	options.launched_pid = first->pid;
	machine.exit_known = machine.all_ends_known = true;
	machine.exit_status = 3 << 8;
	sampler_run(&options, &result);
	assert_int_equal(result.end, SAMPLER_DURATION_OVER);
	assert_true(sum_of(found, 0)->samples > 30);
	assert_false(result.exit_known);
}

/* Its memory is gone when it is read: that is no refusal. */
static void a_process_that_ends_during_its_search_is_not_left_out(void **state)
{
	static const int refusals[] = { 0, -EIO };

	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		struct made_up_process *first = begin_again(state), *found = add_found(),
				       *other = add_found();

		first->luajit_ns = UINT64_MAX;
		other->luajit_ns = 0;
		options.launch = command;
		first->is_unread = found->is_unread = true;
		first->refusal = found->refusal = refusals[i];
		first->ends_when_searched = found->ends_when_searched = true;
		sampler_run(&options, &result);
		assert_true(first->end_ns && found->end_ns);
		assert_int_equal(result.end, SAMPLER_DURATION_OVER);
		assert_int_equal(result.left_out, 0);
	}
}

static void orphans_of_a_command_are_reaped(void **state)
{
	struct made_up_process *orphan;

	add(1, bursts);
	orphan = add_found();
	orphan->end_ns = 2 * second;
	options.launch = command;
	sampler_run(&options, &result);
	assert_int_equal(machine.reaps, 1);
	/* Others are those of another process. */
	begin_again(state);
	orphan = add_found();
	orphan->end_ns = 2 * second;
	run();
	assert_int_equal(machine.reaps, 0);
	assert_int_equal(result.left_out, 0);
}

/*---- Several ----*/

/* Of two processes, the one may have started the other. */
static void a_process_that_was_asked_for_is_not_found_again(void **state)
{
	struct made_up_process *first = add(1, bursts), *other = add(1, bursts);
	const pid_t both[] = { first->pid, other->pid };

	(void)state;
	first->followed = other->followed = true;
	options.subprocesses = true;
	options.pids = both;
	options.pid_count = 2;
	sampler_run(&options, &result);
	assert_int_equal(result.error, 0);
	assert_int_equal(machine.opens, 2);
	assert_near(result.figures.target_cpu_ns,
		    made_up_cpu_ns(first, machine.now_ns) - made_up_cpu_ns(first, STARTED_AT_NS) +
			    made_up_cpu_ns(other, machine.now_ns) - made_up_cpu_ns(other, STARTED_AT_NS),
		    2 * period_ns);
}

static void of_those_left_out_the_first_is_named(void **state)
{
	struct made_up_process *others[2];

	(void)state;
	add(1, bursts);
	for (size_t i = 0; i < 2; i++) {
		others[i] = add_found();
		others[i]->luajit_ns = 0;
		others[i]->refusal = i ? -EACCES : -EPERM;
	}
	/* Whether it ends meanwhile or not. */
	others[0]->end_ns = 5 * second;
	run();
	assert_int_equal(result.left_out, 2);
	assert_int_equal(result.left_out_pid, others[0]->pid);
	assert_int_equal(result.left_out_error, -EPERM);
}

static void places_of_targets_that_ended_are_taken_again(void **state)
{
	struct made_up_process *first = add(1, bursts), *second_one = add(1, bursts), *later = add_found();
	const pid_t both[] = { first->pid, second_one->pid };

	(void)state;
	first->end_ns = 2 * second;
	later->begin_ns = later->threads[0].begin_ns = 3 * second;
	later->luajit_ns = 0;
	options.pids = both;
	options.pid_count = 2;
	sampler_run(&options, &result);
	assert_int_equal(result.end, SAMPLER_DURATION_OVER);
	assert_true(sum_of(first, 0)->samples > 50);
	assert_true(sum_of(second_one, 0)->samples > 300);
	assert_true(sum_of(later, 0)->samples > 200);
	assert_near(result.figures.target_cpu_ns,
		    made_up_cpu_ns(first, 2 * second) - made_up_cpu_ns(first, STARTED_AT_NS) +
			    made_up_cpu_ns(second_one, machine.now_ns) -
			    made_up_cpu_ns(second_one, STARTED_AT_NS) + made_up_cpu_ns(later, machine.now_ns),
		    3 * period_ns);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_up, forget)
	const struct CMUnitTest tests[] = {
		TEST(a_found_process_that_there_are_no_files_for_is_tried_again_soon),
		TEST(a_found_process_in_an_execve_is_tried_again_soon),
		TEST(a_process_whose_threads_cannot_be_seized_for_a_while_has_not_ended),
		TEST(a_program_that_begins_while_ljspy_looks_into_another_is_looked_into),
		TEST(a_look_has_ended_before_a_process_is_looked_into),
		TEST(each_program_has_the_layout_that_was_given),
		TEST(a_process_without_luajit_is_looked_into_less_and_less_often),
		TEST(a_process_without_luajit_that_has_not_run_is_not_looked_into_again),
		TEST(a_found_process_keeps_no_recording_from_its_end),
		TEST(a_process_that_was_asked_for_is_waited_for),
		TEST(a_pattern_may_be_awaited),
		TEST(those_are_followed_that_were_asked_for),
		TEST(time_to_get_to_know_a_process_is_no_time_of_a_recording),
		TEST(time_before_ljspy_found_a_process_is_lost),
		TEST(time_before_the_recording_is_not_lost),
		TEST(time_in_which_a_process_could_not_be_read_is_lost),
		TEST(another_process_with_the_id_of_a_candidate_has_its_own_time),
		TEST(a_candidate_that_ends_while_ljspy_attaches_has_no_time),
		TEST(searching_others_loses_no_time_of_a_process),
		TEST(those_that_no_search_got_to_are_told),
		TEST(one_that_ended_before_its_search_is_told),
		TEST(one_that_has_not_run_need_not_be_searched),
		TEST(a_search_ends_with_the_recording),
		TEST(newer_ones_do_not_come_first),
		TEST(a_signal_ends_searches_before_the_beginning),
		TEST(slow_files_hold_up_no_looks),
		TEST(there_is_one_time_for_slow_files),
		TEST(a_signal_ends_a_look_for_another_lua),
		TEST(looks_come_between_searches),
		TEST(without_stops_another_program_is_told_by_its_file),
		TEST(a_thread_that_calls_execve_has_its_time_once),
		TEST(a_found_process_may_run_luajit_later),
		TEST(unknown_code_has_a_process_looked_into_soon),
		TEST(unknown_code_has_haste_again_after_a_quiet_while),
		TEST(the_clock_of_many_threads_is_kept_again_after_a_rest),
		TEST(a_thread_that_began_just_before_the_end_has_a_last_look),
		TEST(a_command_that_ended_meanwhile_leaves_its_children),
		TEST(the_end_of_another_process_is_not_the_commands),
		TEST(a_process_that_ends_during_its_search_is_not_left_out),
		TEST(orphans_of_a_command_are_reaped),
		TEST(a_process_that_was_asked_for_is_not_found_again),
		TEST(of_those_left_out_the_first_is_named),
		TEST(places_of_targets_that_ended_are_taken_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

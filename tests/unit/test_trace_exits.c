/* SPDX-License-Identifier: MIT */
/*
 * Exits of traces of real programs, as they lay in a process (test_kept_traces.c), with counts that are made
 * up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/kept_process.h"
#include "unwind/compiled/trace_copy.h"
#include "unwind/compiled/trace_exits.h"
#include "unwind/lua/luajit.h"
#include "unwind/trace/trace_block.h"

static const char *const builds[] = { "traces-gc64.process", "traces-gc32.process" };

enum {
	BUILDS = sizeof(builds) / sizeof(builds[0]),
	LOOP = 0, /* a trace of a loop: its place in the list */
	TRACES_MIN = 20,
	EXITS_MIN = 100,
	SIDE_MADE = 255, /* LuaJIT's SNAPCOUNT_DONE */
	IR_BYTES = 8,
	IR_TYPE = 4,
	IR_TYPE_MASK = 0x1f,
	IR_OPCODE = 5,
};

static struct kept_process *kept;
static struct vm_code vm;
static struct trace_summary list[TRACE_LIST_BATCH];
static size_t count;
static struct trace_exit exits[TRACE_EXITS_MAX];

static void begin(const char *build)
{
	struct global_state global = { .vm = &vm };
	uint32_t next = 1;

	kept = kept_process_load(build);
	vm.layout = kept->layout;
	global.g = kept->g;
	assert_true(trace_list_read(&kept->memory, &global, &next, list, &count));
	assert_in_range(count, TRACES_MIN, TRACE_LIST_BATCH);
}

static void end(void)
{
	kept_process_free(kept);
}

/* An exit was taken so often, as LuaJIT counts it. */
static void put_count(const struct trace_summary *trace, uint32_t exit, uint8_t taken)
{
	uint64_t snapshots = 0;

	assert_int_equal(memory_read(&kept->memory, trace->address + (uint64_t)vm.layout.GCtrace_snap,
				     &snapshots, layout_ref_size(&vm.layout)),
			 MEMORY_OK);
	kept_process_put(kept,
			 snapshots + exit * (uint64_t)vm.layout.SnapShot_size +
				 (uint64_t)vm.layout.SnapShot_count,
			 taken, 1);
}

static size_t read_exits(const struct trace_summary *trace)
{
	size_t found = SIZE_MAX;

	assert_true(trace_exits_read(&kept->memory, &vm.layout, trace, exits, &found));
	assert_in_range(found, 0, trace->snapshots);
	return found;
}

static void exits_are_told_with_how_often_they_were_taken(void **state)
{
	(void)state;
	for (size_t i = 0; i < BUILDS; i++) {
		begin(builds[i]);
		assert_in_range(list[LOOP].snapshots, 5, TRACE_EXITS_MAX);
		for (uint32_t exit = 0; exit < list[LOOP].snapshots; exit++)
			put_count(&list[LOOP], exit, 0);
		assert_int_equal(read_exits(&list[LOOP]), 0);
		put_count(&list[LOOP], 0, 1);
		put_count(&list[LOOP], 2, SIDE_MADE - 1);
		put_count(&list[LOOP], 3, SIDE_MADE);
		put_count(&list[LOOP], list[LOOP].snapshots - 1, 7);
		assert_int_equal(read_exits(&list[LOOP]), 4);
		assert_int_equal(exits[0].number, 0);
		assert_int_equal(exits[0].taken, 1);
		assert_false(exits[0].has_side);
		assert_int_equal(exits[1].number, 2);
		assert_int_equal(exits[1].taken, SIDE_MADE - 1);
		assert_false(exits[1].has_side);
		assert_int_equal(exits[2].number, 3);
		assert_int_equal(exits[2].taken, 0);
		assert_true(exits[2].has_side);
		assert_int_equal(exits[3].number, list[LOOP].snapshots - 1);
		assert_int_equal(exits[3].taken, 7);
		end();
	}
}

static uint64_t word_of(uint64_t address, int32_t offset, size_t size)
{
	uint64_t value = 0;

	assert_int_equal(memory_read(&kept->memory, address + (uint64_t)offset, &value, size), MEMORY_OK);
	return value;
}

/* The bytecode at which the frames of an exit go on, innermost first; 0: unknown. */
static uint64_t goes_on_at(const struct trace_summary *summary, uint32_t exit)
{
	struct trace_frame frames[TRACE_FRAMES_MAX];
	struct trace trace;
	size_t found;

	assert_true(trace_copy_read(&kept->memory, &vm.layout, summary, &trace));
	found = trace_exit_frames(&trace, &vm.layout, exit, frames, TRACE_FRAMES_MAX);
	trace_copy_clear(&trace);
	return found ? frames[0].pc : 0;
}

static void check_place(const struct trace_summary *trace, const struct trace_exit *exit)
{
	const uint64_t begin_of = exit->proto + (uint64_t)vm.layout.GCproto_size;
	uint32_t sizebc = 0;

	assert_int_equal(exit->pc, goes_on_at(trace, exit->number));
	if (!exit->proto)
		return;
	assert_true(memory_u32(&kept->memory, exit->proto + (uint64_t)vm.layout.GCproto_sizebc, &sizebc));
	assert_in_range(exit->pc, begin_of, begin_of + (uint64_t)(sizebc - 1) * BYTECODE_SIZE);
}

/* Also in one that is inlined, whose prototype the trace knows by a constant. */
static void an_exit_goes_on_in_a_function_of_its_trace(void **state)
{
	(void)state;
	for (size_t i = 0; i < BUILDS; i++) {
		size_t all = 0, at_start = 0, in_others = 0;

		begin(builds[i]);
		for (size_t trace = 0; trace < count; trace++) {
			size_t found;

			for (uint32_t exit = 0; exit < list[trace].snapshots; exit++)
				put_count(&list[trace], exit, 1);
			found = read_exits(&list[trace]);
			assert_int_equal(found, list[trace].snapshots);
			for (size_t exit = 0; exit < found; exit++) {
				check_place(&list[trace], &exits[exit]);
				at_start += exits[exit].proto == list[trace].startpt;
				in_others += exits[exit].proto && exits[exit].proto != list[trace].startpt;
			}
			all += found;
		}
		assert_true(all >= EXITS_MIN);
		assert_true(at_start > all / 2);
		assert_true(in_others > 10);
		assert_true(at_start + in_others > all - all / 10);
		end();
	}
}

/* A function that is made anew each time is known by its prototype (LuaJIT: rec_call_specialize()). */
static void know_prototypes_only(const struct trace_summary *summary)
{
	const unsigned ref = layout_ref_size(&vm.layout);
	const uint32_t nk = (uint32_t)word_of(summary->address, vm.layout.GCtrace_nk, 4);
	const uint64_t ir = word_of(summary->address, vm.layout.GCtrace_ir, 8);

	for (uint64_t at = ir + nk * (uint64_t)IR_BYTES; at < ir + TRACE_REF_BIAS * (uint64_t)IR_BYTES;
	     at += IR_BYTES) {
		const uint64_t value = ref == 8 ? at + IR_BYTES : at;

		if (word_of(at, IR_OPCODE, 1) != (uint64_t)vm.layout.IR_KGC ||
		    (word_of(at, IR_TYPE, 1) & IR_TYPE_MASK) != IRT_FUNC)
			continue;
		kept_process_put(kept, at + IR_TYPE, IRT_PROTO, 1);
		kept_process_put(kept, value,
				 word_of(word_of(value, 0, ref), vm.layout.GCfunc_pc, ref) -
					 (uint64_t)vm.layout.GCproto_size,
				 ref);
	}
}

static void an_exit_goes_on_in_a_function_of_a_known_prototype(void **state)
{
	(void)state;
	for (size_t i = 0; i < BUILDS; i++) {
		size_t in_others = 0;

		begin(builds[i]);
		for (size_t trace = 0; trace < count; trace++) {
			struct trace_exit before[TRACE_EXITS_MAX];
			size_t found;

			for (uint32_t exit = 0; exit < list[trace].snapshots; exit++)
				put_count(&list[trace], exit, 1);
			found = read_exits(&list[trace]);
			memcpy(before, exits, sizeof(before));
			know_prototypes_only(&list[trace]);
			assert_int_equal(read_exits(&list[trace]), found);
			for (size_t exit = 0; exit < found; exit++) {
				assert_int_equal(exits[exit].proto, before[exit].proto);
				in_others += exits[exit].proto && exits[exit].proto != list[trace].startpt;
			}
		}
		assert_true(in_others > 10);
		end();
	}
}

static void an_exit_outside_of_the_known_functions_is_in_none(void **state)
{
	(void)state;
	begin(builds[0]);
	for (uint32_t exit = 0; exit < list[LOOP].snapshots; exit++)
		put_count(&list[LOOP], exit, 1);
	assert_int_equal(read_exits(&list[LOOP]), list[LOOP].snapshots);
	assert_int_equal(exits[0].proto, list[LOOP].startpt);
	/* The function has less bytecode than it had, or more than there can be. */
	kept_process_put(kept, list[LOOP].startpt + (uint64_t)vm.layout.GCproto_sizebc,
			 (exits[0].pc - list[LOOP].startpt - (uint64_t)vm.layout.GCproto_size) /
				 BYTECODE_SIZE,
			 sizeof(uint32_t));
	read_exits(&list[LOOP]);
	assert_int_equal(exits[0].proto, 0);
	assert_int_not_equal(exits[0].pc, 0);
	kept_process_put(kept, list[LOOP].startpt + (uint64_t)vm.layout.GCproto_sizebc, 1 << 24,
			 sizeof(uint32_t));
	read_exits(&list[LOOP]);
	assert_int_equal(exits[0].proto, list[LOOP].startpt);
	kept_process_put(kept, list[LOOP].startpt + (uint64_t)vm.layout.GCproto_sizebc, (1 << 24) + 1,
			 sizeof(uint32_t));
	read_exits(&list[LOOP]);
	assert_int_equal(exits[0].proto, 0);
	end();
}

static void another_trace_in_its_place_is_not_read(void **state)
{
	struct trace_summary other;
	size_t found = 77;

	(void)state;
	begin(builds[0]);
	other = list[LOOP];
	other.mcode++;
	assert_false(trace_exits_read(&kept->memory, &vm.layout, &other, exits, &found));
	other = list[LOOP];
	other.address = 8;
	assert_false(trace_exits_read(&kept->memory, &vm.layout, &other, exits, &found));
	assert_int_equal(found, 77);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exits_are_told_with_how_often_they_were_taken),
		cmocka_unit_test(an_exit_goes_on_in_a_function_of_its_trace),
		cmocka_unit_test(an_exit_goes_on_in_a_function_of_a_known_prototype),
		cmocka_unit_test(an_exit_outside_of_the_known_functions_is_in_none),
		cmocka_unit_test(another_trace_in_its_place_is_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* What a report says of traces that are not there in the end, and of a state that is closed meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "luajit-layouts/recognise/recognise.h"
#include "luajit-layouts/vm.h"
#include "output/sample/functions.h"
#include "src/survey/trace_survey.h"
#include "tests/unit/instead_of.h"
#include "unwind/compiled/not_compiled.h"
#include "unwind/compiled/trace_exits.h"
#include "unwind/compiled/trace_list.h"
#include "unwind/jit/traces.h"
#include "unwind/lua/lua_objects.h"
#include "unwind/lua/object_walk.h"

enum { PID = 10, G = 0x10000, OTHER_G = 0x20000, CPU_NS = 1000, STRHASH = 8 };

static uint64_t seed;

/* The seed of strings' hashes, and nothing else. */
static void read_seed(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	for (size_t i = 0; i < count; i++) {
		ranges[i].status = MEMORY_UNMAPPED;
		if (ranges[i].address != 0x30000 + STRHASH + 24 || ranges[i].length != sizeof(seed))
			continue;
		memcpy(ranges[i].copy, &seed, sizeof(seed));
		ranges[i].status = MEMORY_OK;
	}
}

/* A state in memory that cannot be read: these functions tell what is there. */
static struct memory memory = { .read_ranges = read_seed };
#include "tests/unit/one_global.h"
#include "tests/unit/one_state.h"

static size_t globals;      /* that are known in the end */
static unsigned open_holds; /* in so many holds it is there, then closed */
static uint64_t seed_change;
static uint32_t last_trace; /* 0: there are always more */
static bool can_hold;
static size_t at_once; /* traces that are read */
static unsigned holds;

INSTEAD_OF(lua_process_global_count);
size_t __wrap_lua_process_global_count(const struct lua_process *process)
{
	(void)process;
	return globals;
}

INSTEAD_OF(lua_process_global_path);
const char *__wrap_lua_process_global_path(const struct lua_process *process, size_t index)
{
	(void)process, (void)index;
	return "libluajit";
}

/* What is read in a hold that fails is worth nothing. */
INSTEAD_OF(hold_while);
bool __wrap_hold_while(struct hold *hold, void (*read)(void *context), void (*undo)(void *context),
		       void *context)
{
	(void)hold;
	read(context);
	holds++;
	registry += registry_change;
	seed += seed_change;
	if (!can_hold && undo)
		undo(context);
	return can_hold;
}

INSTEAD_OF(recognise_is_state);
bool __wrap_recognise_is_state(struct memory *of, const struct vm_code *code, uint64_t g)
{
	assert_ptr_equal(of, &memory);
	assert_ptr_equal(code, &vm);
	assert_int_equal(g, global.g);
	return open_holds && open_holds--;
}

/* The second trace is a side trace of the first. */
INSTEAD_OF(trace_list_read);
bool __wrap_trace_list_read(struct memory *live, const struct global_state *of, uint32_t *next,
			    struct trace_summary ret_traces[static TRACE_LIST_BATCH], size_t *ret_count)
{
	(void)live, (void)of;
	*ret_count = 0;
	do {
		const uint32_t number = ++*next;
		struct trace_summary *trace = &ret_traces[(*ret_count)++];

		*trace = (struct trace_summary){ .number = number, .snapshots = 8 };
		if (number == 2) {
			trace->kind = TRACE_SIDE;
			trace->parent = 1;
		}
		if (number == last_trace)
			*next = 0;
	} while (*next && *ret_count < at_once);
	return true;
}

/* The first trace has two exits with side traces, and the third one another one. */
INSTEAD_OF(trace_exits_read);
bool __wrap_trace_exits_read(struct memory *live, const struct layout *layout,
			     const struct trace_summary *trace,
			     struct trace_exit ret_exits[static TRACE_EXITS_MAX], size_t *ret_count)
{
	(void)live, (void)layout;
	*ret_count = trace->number == 1 ? 2 : trace->number == 3 ? 1 : 0;
	for (uint32_t i = 0; i < *ret_count; i++)
		ret_exits[i] = (struct trace_exit){ .number = i, .has_side = true };
	return true;
}

INSTEAD_OF(trace_list_limits);
bool __wrap_trace_list_limits(struct memory *live, const struct global_state *of,
			      struct trace_limits *ret_limits)
{
	(void)live, (void)of;
	ret_limits->mcode_max = 1;
	return true;
}

/* So many functions, some of them in one slice. Each has a place that is not compiled. */
enum { PROTO = 0x40000, PROTO_SIZE = 0x100, PROTOS_MAX = 8 };
static size_t protos, in_slice, walked, slice_begin;

INSTEAD_OF(object_walk_begin_slice);
void __wrap_object_walk_begin_slice(struct object_walk *walk)
{
	(void)walk;
	slice_begin = walked;
}

INSTEAD_OF(object_walk_undo_slice);
void __wrap_object_walk_undo_slice(struct object_walk *walk)
{
	(void)walk;
	walked = slice_begin;
}

INSTEAD_OF(object_walk_next);
enum object_walk_step __wrap_object_walk_next(struct object_walk *walk, uint64_t *ret_object)
{
	(void)walk;
	if (walked == protos)
		return OBJECT_WALK_END;
	if (walked - slice_begin == in_slice)
		return OBJECT_WALK_PAUSE;
	*ret_object = PROTO + walked++ * PROTO_SIZE;
	return OBJECT_WALK_FOUND;
}

/* Every fourth one is compiled everywhere. */
INSTEAD_OF(not_compiled_glance);
void __wrap_not_compiled_glance(struct memory *live, const struct layout *layout,
				const struct trace_aborts *aborts, const uint64_t *addresses, size_t count,
				enum not_compiled_glance *ret_glances)
{
	(void)live, (void)layout, (void)aborts;
	for (size_t i = 0; i < count; i++)
		ret_glances[i] = (addresses[i] - PROTO) / PROTO_SIZE % 4 == 3 ? NOT_COMPILED_NOWHERE
									      : NOT_COMPILED_SOMEWHERE;
}

INSTEAD_OF(lua_objects_capture_protos);
void __wrap_lua_objects_capture_protos(struct lua_objects *objects, struct snapshot *snapshot,
				       const struct layout *layout, const uint64_t *addresses, size_t count)
{
	(void)objects, (void)snapshot, (void)layout, (void)addresses, (void)count;
}

INSTEAD_OF(lua_objects_proto);
const struct proto *__wrap_lua_objects_proto(const struct lua_objects *objects, uint64_t address)
{
	static char chunkname[] = "@app.lua";
	static const uint8_t bytes[PROTO_SIZE];
	static struct proto found[PROTOS_MAX];
	const uint64_t index = (address - PROTO) / PROTO_SIZE;

	(void)objects;
	if (index >= PROTOS_MAX)
		return NULL;
	found[index] = (struct proto){ .address = address,
				       .chunkname = chunkname,
				       .bytes = bytes,
				       .size = sizeof(bytes),
				       .firstline = 10 * (uint32_t)(index + 1),
				       .numline = 5 };
	return &found[index];
}

INSTEAD_OF(not_compiled_find);
size_t __wrap_not_compiled_find(const struct layout *layout, const struct proto *proto,
				const struct trace_aborts *aborts, enum not_compiled_glance glance,
				struct not_compiled ret_places[static NOT_COMPILED_MAX])
{
	(void)layout, (void)aborts;
	assert_int_equal(glance, NOT_COMPILED_SOMEWHERE);
	ret_places[0] = (struct not_compiled){ .cause = NOT_COMPILED_ABORTED, .times = proto->firstline };
	return 1;
}

static struct functions *functions;
static struct trace_survey *survey;
static struct trace_process *report;

/* One state is known in the end. */
static int begin(void **state)
{
	(void)state;
	globals = 0;
	can_hold = true;
	registry_change = seed_change = 0;
	vm.layout.g_strhash = 0;
	last_trace = 0;
	at_once = 1;
	protos = in_slice = walked = 0;
	functions = functions_new();
	survey = functions ? trace_survey_new(functions) : NULL;
	report = trace_process_new(PID, "luajit");
	return survey && report && trace_process_add_vm(report, G, "libluajit") ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	trace_process_free(report);
	trace_survey_free(survey);
	functions_free(functions);
	return 0;
}

static void add(uint32_t number, uint64_t g)
{
	const struct trace trace = { .number = number, .address = 0x1000 * number };
	const struct sample sample = { .pid = PID, .trace = &trace, .trace_g = g, .cpu_ns = CPU_NS };

	assert_int_equal(trace_survey_add(survey, &sample), 0);
}

static void a_trace_is_gone_only_from_a_state_that_is_known(void **state)
{
	(void)state;
	add(1, G);
	add(2, OTHER_G);
	add(2, OTHER_G);
	add(3, 0);
	assert_int_equal(trace_survey_report(survey, NULL, NULL, report), 0);
	assert_int_equal(report->gone_ns, CPU_NS);
	assert_int_equal(report->gone_count, 1);
	assert_int_equal(report->unlisted_ns, 3 * CPU_NS);
}

static void any_sample_of_a_trace_may_tell_its_state(void **state)
{
	(void)state;
	add(1, 0);
	add(1, G);
	add(1, 0);
	assert_int_equal(trace_survey_report(survey, NULL, NULL, report), 0);
	assert_int_equal(report->gone_ns, 3 * CPU_NS);
	assert_int_equal(report->gone_count, 1);
	assert_int_equal(report->unlisted_ns, 0);
}

static const struct trace_vm *report_of_closed(unsigned in_holds)
{
	globals = 1;
	open_holds = in_holds;
	holds = 0;
	assert_int_equal(trace_survey_report(survey, NULL, NULL, report), 0);
	return &report->vms[report->vm_count - 1];
}

static void of_a_closed_state_only_what_was_read_before_is_told(void **state)
{
	const struct trace_vm *closed = report_of_closed(0);

	(void)state;
	assert_true(closed->closed && !closed->complete);
	assert_int_equal(closed->row_count, 0);
	assert_int_equal(closed->limits.mcode_max, 0);
	/* A hold for traces, and one for their exits. */
	closed = report_of_closed(4);
	assert_true(closed->closed && !closed->complete);
	assert_int_equal(closed->row_count, 2);
	assert_int_equal(closed->limits.mcode_max, 1);
}

static void a_process_is_not_held_for_a_state_that_is_known_to_be_closed(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		assert_true(report_of_closed(i)->closed);
		assert_int_equal(holds, i + 1);
	}
	/*
	 * Two for the traces; a third one finds it closed where the code that is not compiled is looked for.
	 */
	last_trace = 1;
	assert_true(report_of_closed(2)->closed);
	assert_int_equal(holds, 3);
}

static void the_exits_of_what_was_read_have_their_side_traces(void **state)
{
	const struct trace_vm *closed = report_of_closed(4);

	(void)state;
	assert_true(closed->traces_left);
	assert_int_equal(closed->exit_count, 2);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(closed->exits[i].side, closed->exits[i].number == 0 ? 2 : 0);
	/* It is closed when all traces have been read. */
	last_trace = 2;
	closed = report_of_closed(4);
	assert_true(closed->closed && !closed->traces_left);
	assert_int_equal(closed->row_count, 2);
}

static void exits_are_those_of_all_traces_that_are_read_at_once(void **state)
{
	static const uint32_t traces[] = { 1, 1, 3 };
	const struct trace_vm *closed;

	(void)state;
	at_once = last_trace = 4;
	closed = report_of_closed(4);
	assert_int_equal(closed->row_count, 4);
	assert_int_equal(closed->exit_count, 3);
	for (size_t i = 0; i < closed->exit_count; i++)
		assert_int_equal(closed->exits[i].trace, traces[i]);
}

static void code_that_is_not_compiled_is_told_of_all_functions(void **state)
{
	const struct trace_vm *read;

	(void)state;
	last_trace = 1;
	for (in_slice = 1; in_slice <= PROTOS_MAX; in_slice++) {
		protos = PROTOS_MAX;
		walked = 0;
		read = report_of_closed(100);
		assert_false(read->closed);
		assert_int_equal(read->interpreted_count, 6);
		for (size_t i = 0; i < read->interpreted_count; i++) {
			const struct interpreted_row *row = &read->interpreted[i];

			assert_int_equal(row->function->firstline, row->times);
			assert_int_equal(row->cause, NOT_COMPILED_ABORTED);
			assert_int_not_equal(row->proto, PROTO + 3 * PROTO_SIZE);
			assert_int_not_equal(row->proto, PROTO + 7 * PROTO_SIZE);
		}
	}
}

static void another_state_at_the_same_address_is_not_taken_for_the_one_before(void **state)
{
	(void)state;
	registry_change = 1;
	assert_true(report_of_closed(100)->closed);
	assert_int_equal(holds, 2);
	registry_change = 0;
	seed_change = 1;
	vm.layout.g_strhash = STRHASH;
	assert_true(report_of_closed(100)->closed);
	assert_int_equal(holds, 2);
	/* A layout without that seed has something else there. */
	vm.layout.g_strhash = 0;
	assert_true(report_of_closed(5)->closed);
	assert_int_equal(holds, 6);
}

static void a_trace_is_not_called_gone_if_not_all_were_read(void **state)
{
	(void)state;
	can_hold = false;
	add(1, global.g);
	report_of_closed(0);
	assert_int_equal(report->gone_count, 0);
	assert_int_equal(report->unlisted_ns, CPU_NS);
}

static void what_no_hold_has_seen_is_not_called_closed(void **state)
{
	const struct trace_vm *unread;

	(void)state;
	can_hold = false;
	for (unsigned i = 0; i < 2; i++) {
		unread = report_of_closed(i);
		assert_true(!unread->closed && !unread->complete);
		assert_int_equal(unread->limits.mcode_max, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_trace_is_gone_only_from_a_state_that_is_known, begin, end),
		cmocka_unit_test_setup_teardown(any_sample_of_a_trace_may_tell_its_state, begin, end),
		cmocka_unit_test_setup_teardown(of_a_closed_state_only_what_was_read_before_is_told, begin,
						end),
		cmocka_unit_test_setup_teardown(a_process_is_not_held_for_a_state_that_is_known_to_be_closed,
						begin, end),
		cmocka_unit_test_setup_teardown(the_exits_of_what_was_read_have_their_side_traces, begin,
						end),
		cmocka_unit_test_setup_teardown(exits_are_those_of_all_traces_that_are_read_at_once, begin,
						end),
		cmocka_unit_test_setup_teardown(code_that_is_not_compiled_is_told_of_all_functions, begin,
						end),
		cmocka_unit_test_setup_teardown(
			another_state_at_the_same_address_is_not_taken_for_the_one_before, begin, end),
		cmocka_unit_test_setup_teardown(a_trace_is_not_called_gone_if_not_all_were_read, begin, end),
		cmocka_unit_test_setup_teardown(what_no_hold_has_seen_is_not_called_closed, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

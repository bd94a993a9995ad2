/* SPDX-License-Identifier: MIT */
/* Of several layouts of traces, none is chosen while more than one may be right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "luajit-layouts/recognise/recognise.h"
#include "luajit-layouts/selftest/selftest.h"
#include "luajit-layouts/tables.h"
#include "tests/unit/instead_of.h"

/* Which rows of the table of traces the state's traces fit, by a bit each; none are there: no bit. */
static unsigned int fitting;
static bool has_traces, all_fit;

static bool fits(const struct layout *layout)
{
	for (size_t i = 0; i < layout_row_count(LAYOUT_GROUP_TRACE); i++) {
		struct layout_row row;

		layout_row_get(LAYOUT_GROUP_TRACE, i, &row);
		row.offsets.GCtrace_size = layout->GCtrace_size;
		if ((fitting >> i & 1) && layout_conflict(&row.offsets, layout) == NULL)
			return true;
	}
	return false;
}

INSTEAD_OF(selftest_run);
enum selftest_verdict __wrap_selftest_run(struct memory *memory, const struct vm_code *vm, uint64_t g,
					  enum selftest test, recognise_evidence *evidence, void *context)
{
	(void)memory;
	(void)g;
	(void)evidence;
	(void)context;
	if (test != SELFTEST_TRACES)
		return SELFTEST_PASSED;
	if (!has_traces)
		return SELFTEST_UNTESTED;
	return all_fit || fits(&vm->layout) ? SELFTEST_PASSED : SELFTEST_FAILED;
}

/* Every pointer leads to the main thread. */
static uint64_t main_thread;

static void read_ranges(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	for (size_t i = 0; i < count; i++) {
		memset(ranges[i].copy, 0, ranges[i].length);
		memcpy(ranges[i].copy, &main_thread, ranges[i].length < 8 ? ranges[i].length : 8);
		ranges[i].status = MEMORY_OK;
	}
}

/* The first two rows that serve x86-64 with GC64 and differ. */
static void choose_rows(size_t *ret_first, size_t *ret_second)
{
	struct layout_row first, row;
	size_t found = 0;

	for (size_t i = 0; i < layout_row_count(LAYOUT_GROUP_TRACE) && found < 2; i++) {
		layout_row_get(LAYOUT_GROUP_TRACE, i, &row);
		if (!(row.modes & LAYOUT_MODE(LAYOUT_X64_GC64)))
			continue;
		row.offsets.GCtrace_size = LAYOUT_UNKNOWN;
		if (found == 0) {
			*ret_first = i;
			first = row;
			found++;
		} else if (layout_conflict(&first.offsets, &row.offsets)) {
			*ret_second = i;
			found++;
		}
	}
	assert_int_equal(found, 2);
}

/* known: what the code has shown of traces; NULL: nothing. */
static enum recognise_status confirm_known(struct vm_code *ret_vm, const struct layout *known)
{
	struct memory memory = { .read_ranges = read_ranges };
	const uint64_t g = 0x10000;

	main_thread = g - 96;
	*ret_vm = (struct vm_code){ .traces_open = true };
	memset(&ret_vm->layout, 0xff, sizeof(ret_vm->layout));
	for (size_t i = 0; i < layout_field_count; i++)
		*layout_offset_in(&ret_vm->layout, &layout_fields[i]) = LAYOUT_UNKNOWN;
	ret_vm->layout.gc64 = true;
	ret_vm->layout.g_mainthref = 0;
	ret_vm->layout.IR_KGC = 28;
	if (known)
		layout_fill(&ret_vm->layout, known);
	return recognise_confirm(&memory, ret_vm, g, NULL, NULL);
}

static enum recognise_status confirm(struct vm_code *ret_vm)
{
	return confirm_known(ret_vm, NULL);
}

static void the_only_layout_that_fits_is_taken(void **state)
{
	struct layout_row row;
	struct vm_code vm;
	size_t first, second;

	(void)state;
	choose_rows(&first, &second);
	has_traces = true;
	for (int i = 0; i < 2; i++) {
		fitting = 1u << (i ? second : first);
		assert_int_equal(confirm(&vm), RECOGNISE_OK);
		assert_false(vm.traces_open);
		layout_row_get(LAYOUT_GROUP_TRACE, i ? second : first, &row);
		assert_int_equal(vm.layout.SnapShot_size, row.offsets.SnapShot_size);
	}
}

static void of_several_that_fit_none_is_taken(void **state)
{
	struct vm_code vm;
	size_t first, second;

	(void)state;
	choose_rows(&first, &second);
	has_traces = true;
	fitting = 1u << first | 1u << second;
	assert_int_equal(confirm(&vm), RECOGNISE_OK);
	assert_true(vm.traces_open);
	assert_int_equal(vm.layout.SnapShot_size, LAYOUT_UNKNOWN);
}

/* Those of others are not even tried. */
static void a_layout_is_one_of_the_mode(void **state)
{
	struct layout_row row;
	struct vm_code vm;

	(void)state;
	has_traces = true;
	fitting = 0;
	for (size_t i = 0; i < layout_row_count(LAYOUT_GROUP_TRACE); i++) {
		layout_row_get(LAYOUT_GROUP_TRACE, i, &row);
		if (!(row.modes & LAYOUT_MODE(LAYOUT_X64_GC64)))
			fitting |= 1u << i;
	}
	assert_int_not_equal(fitting, 0);
	assert_int_equal(confirm(&vm), RECOGNISE_UNKNOWN_LAYOUT);
}

/* Nor are those that the code contradicts. */
static void a_layout_is_one_that_the_code_does_not_contradict(void **state)
{
	struct layout_row row;
	struct vm_code vm;
	size_t first, second;

	(void)state;
	choose_rows(&first, &second);
	has_traces = all_fit = true;
	for (int i = 0; i < 2; i++) {
		layout_row_get(LAYOUT_GROUP_TRACE, i ? second : first, &row);
		row.offsets.SnapShot_count = LAYOUT_UNKNOWN;
		assert_int_equal(confirm_known(&vm, &row.offsets), RECOGNISE_OK);
		assert_false(vm.traces_open);
		layout_row_get(LAYOUT_GROUP_TRACE, i ? second : first, &row);
		assert_int_equal(vm.layout.SnapShot_count, row.offsets.SnapShot_count);
	}
	all_fit = false;
}

static void without_traces_it_stays_open(void **state)
{
	struct vm_code vm;

	(void)state;
	has_traces = false;
	assert_int_equal(confirm(&vm), RECOGNISE_OK);
	assert_true(vm.traces_open);
}

static void if_none_fits_the_layout_is_unknown(void **state)
{
	struct vm_code vm;

	(void)state;
	has_traces = true;
	fitting = 0;
	assert_int_equal(confirm(&vm), RECOGNISE_UNKNOWN_LAYOUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_only_layout_that_fits_is_taken),
		cmocka_unit_test(of_several_that_fit_none_is_taken),
		cmocka_unit_test(a_layout_is_one_of_the_mode),
		cmocka_unit_test(a_layout_is_one_that_the_code_does_not_contradict),
		cmocka_unit_test(without_traces_it_stays_open),
		cmocka_unit_test(if_none_fits_the_layout_is_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

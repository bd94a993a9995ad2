/* SPDX-License-Identifier: MIT */
/* Why heaps of a process could not be read, told once. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "src/targets/choose.h"
#include "src/targets/heap_unread.h"
#include "tests/unit/told.h"
#include "tests/unit/told_no_luajit.h"
#include "tests/unit/told_reason.h"

enum { PID = 71, HEAPS_MAX = 3 };

static struct vm_heap of_vms[HEAPS_MAX];
static struct process_heaps heaps;

static int begin(void **state)
{
	(void)state;
	memset(of_vms, 0, sizeof(of_vms));
	for (unsigned int i = 0; i < HEAPS_MAX; i++)
		of_vms[i].account.vm = i + 1;
	heaps = (struct process_heaps){ .at = of_vms };
	told_reason = PERMISSION_UNKNOWN;
	return 0;
}

static void miss(size_t index, int error)
{
	of_vms[index].error = error;
	of_vms[index].account.method = HEAP_MISSING;
	heaps.count = HEAPS_MAX;
}

static void tell(struct heap_unread *before, const struct heap_unread *why, bool goes_on)
{
	told_begin();
	heap_unread_tell(before, why, &heaps, PID, goes_on);
	told_end();
}

static struct heap_unread tell_why(int error, bool goes_on)
{
	struct heap_unread before = { 0 }, why = heap_unread_why(&heaps, PID, error);

	tell(&before, &why, goes_on);
	return why;
}

static void all_that_is_missing_is_told_with_its_reason(void **state)
{
	struct heap_unread why;

	(void)state;
	miss(0, -EFBIG);
	of_vms[0].too_long_ns = 400 * UINT64_C(1000000);
	why = tell_why(0, false);
	assert_int_equal(why.reason, HEAP_UNREAD_STATES);
	assert_true(why.too_large && !why.busy && !why.closed);
	assert_string_equal(
		told, "ljspy: Of 3 Lua states of process 71, 1 is missing.\n"
		      "ljspy: Process 71 does not sleep, and copying its heap would hold it for some 400 "
		      "ms.\n"
		      "ljspy: Allow that with --max-pause 600ms, or read a core file with --core.\n");
	miss(1, -EBUSY);
	why = tell_why(0, false);
	assert_true(why.too_large && why.busy && !why.closed);
	assert_int_equal(told_times("Of 3 Lua states of process 71, 2 are missing."), 1);
	assert_int_equal(told_times("could not be copied in one moment"), 1);
	assert_int_equal(told_times("with shorter holds, as by --max-pause 5ms"), 1);
	assert_int_equal(told_times("Try again at another time"), 1);
	miss(2, -EIO);
	why = tell_why(0, true);
	assert_true(why.too_large && why.busy && why.closed);
	/* None is there: the number is of no use. */
	assert_int_equal(told_times("Lua states of"), 0);
	assert_int_equal(told_times("VM 3 of process 71 could not be read"), 1);
	assert_int_equal(told_times("Try again"), 0);
	assert_int_equal(told_times("The series goes on"), 1);
	assert_true(heap_unread_may_pass(&why));
}

static void a_process_without_a_state_is_told(void **state)
{
	struct heap_unread why = tell_why(0, false);

	(void)state;
	assert_int_equal(why.reason, HEAP_UNREAD_NO_STATE);
	assert_int_equal(told_times("No Lua state is known in process 71"), 1);
	assert_int_equal(told_times("`ljspy info -p 71`"), 1);
	assert_int_equal(told_times("series"), 0);
	assert_false(heap_unread_may_pass(&why));
	tell_why(0, true);
	assert_int_equal(told_times("The series goes on with the next look."), 1);
	/* All are there. */
	heaps.count = HEAPS_MAX;
	why = tell_why(0, false);
	assert_int_equal(why.reason, HEAP_UNREAD_NOT);
	assert_string_equal(told, "");
}

static void a_look_that_fails_is_told(void **state)
{
	struct heap_unread why = tell_why(-ENOEXEC, false);

	(void)state;
	assert_string_equal(told, "71 runs no LuaJIT.\n");
	assert_false(heap_unread_may_pass(&why));
	why = tell_why(-EPERM, false);
	assert_string_equal(told, "ljspy: 71: error 1.\n");
	assert_false(heap_unread_may_pass(&why));
	told_reason = PERMISSION_YAMA;
	why = heap_unread_look(PID, -EPERM);
	assert_false(heap_unread_may_pass(&why));
}

static void some_reasons_may_pass(void **state)
{
	static const enum permission_reason reasons[] = {
		PERMISSION_TOO_LITTLE_MEMORY, PERMISSION_OTHER_TRACER,  PERMISSION_IN_EXEC,
		PERMISSION_UNREADABLE,        PERMISSION_TOO_FEW_FILES, PERMISSION_TOO_FEW_PROCESSES,
	};
	struct heap_unread why;

	(void)state;
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		told_reason = reasons[i];
		why = heap_unread_look(PID, -EPERM);
		assert_true(heap_unread_may_pass(&why));
	}
	why = (struct heap_unread){ .reason = HEAP_UNREAD_OWN, .error = -EMFILE };
	assert_true(heap_unread_may_pass(&why));
}

/* In a series, what is as it was is not told again. */
static void the_same_reason_is_told_once(void **state)
{
	struct heap_unread before = { 0 }, why = heap_unread_why(&heaps, PID, -EPERM);

	(void)state;
	tell(&before, &why, true);
	assert_int_equal(told_times("71: error 1."), 1);
	tell(&before, &why, true);
	assert_string_equal(told, "");
	why = heap_unread_look(PID, -EACCES);
	tell(&before, &why, true);
	assert_int_equal(told_times("71: error 13."), 1);
	told_reason = PERMISSION_YAMA;
	why = heap_unread_look(PID, -EACCES);
	tell(&before, &why, true);
	assert_int_equal(told_times("71: error 13."), 1);
	miss(0, -EBUSY);
	for (int i = 0; i < 3; i++) {
		static const int errors[] = { -EBUSY, -EIO, -EFBIG };

		miss((size_t)i, errors[i]);
		why = heap_unread_why(&heaps, PID, 0);
		tell(&before, &why, true);
		assert_string_not_equal(told, "");
		tell(&before, &why, true);
		assert_string_equal(told, "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(all_that_is_missing_is_told_with_its_reason, begin),
		cmocka_unit_test_setup(a_process_without_a_state_is_told, begin),
		cmocka_unit_test_setup(a_look_that_fails_is_told, begin),
		cmocka_unit_test_setup(some_reasons_may_pass, begin),
		cmocka_unit_test_setup(the_same_reason_is_told_once, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

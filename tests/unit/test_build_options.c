/* SPDX-License-Identifier: MIT */
/*
 * Options that a LuaJIT was built with move fields of the compiler's state, those that the code does not
 * show, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "luajit-layouts/recognise/recognise.h"
#include "luajit-layouts/release.h"
#include "tests/unit/shown_code.h"

static char options[128]; /* the verdict on them, if there is one */

static void note_verdict(void *context, const char *probe, const char *verdict)
{
	(void)context;
	if (strcmp(probe, "build options") == 0)
		snprintf(options, sizeof(options), "%s", verdict);
}

/* The fields before J->penalty, and those behind it. */
#define FRONT(DO) DO(L) DO(pc) DO(fn) DO(pt) DO(state) DO(trace) DO(sizetrace) DO(exitstubgroup)
#define TAIL(DO) DO(startpc) DO(parent) DO(exitno) DO(mcarea) DO(szmcarea)

static void move(struct layout *layout, int32_t all, int32_t tail)
{
#define MOVE_ALL(field) layout->J_##field += all;
#define MOVE_TAIL(field) layout->J_##field += all + tail;
	FRONT(MOVE_ALL)
	TAIL(MOVE_TAIL)
	layout->GCtrace_size += all;
}

/* Snapshots have had places in the code since then. */
static bool is_since_2021(const char *release)
{
	struct layout layout;

	assert_true(release_layout(release, &layout));
	return layout.SnapShot_mcofs != LAYOUT_ABSENT;
}

/* Is the build of this release with these options recognised as one? */
static bool is_recognised(const char *release, bool gc64, const char *name, int32_t all, int32_t tail)
{
	struct layout layout;
	struct vm_code vm;

	assert_true(release_layout(release, &layout));
	if (layout.gc64 != gc64)
		return false;
	move(&layout, all, tail);
	show_code(&layout);
	options[0] = '\0';
	if (recognise_vm(&shown_memory, EM_X86_64, 0, note_verdict, NULL, &vm) != RECOGNISE_OK ||
	    strcmp(options, name) != 0)
		return false;
#define SAME(field) assert_int_equal(vm.layout.J_##field, layout.J_##field);
	FRONT(SAME)
	TAIL(SAME)
	if (vm.layout.GCtrace_size >= 0)
		assert_int_equal(vm.layout.GCtrace_size, layout.GCtrace_size);
	return true;
}

/*
 * With GC64, LUAJIT_ENABLE_TABLE_BUMP moves the last fields by 200 bytes or 192. In releases before 2021, the
 * latter shows the same as the former does in the next release: which of them it is is left to real builds.
 */
static void fields_that_are_not_shown_move_with_those_that_are(void **state)
{
	static const struct {
		const char *name;
		bool gc64;
		int32_t all, tail;
		bool is_ambiguous;
	} builds[] = {
		{ "", true, 0, 0, false },
		{ "", false, 0, 0, false },
		{ "LUAJIT_USE_GDBJIT", true, 8, 0, false },
		{ "LUAJIT_USE_GDBJIT", false, 8, 0, false },
		{ "LUAJIT_ENABLE_TABLE_BUMP", true, 0, 200, false },
		{ "LUAJIT_ENABLE_TABLE_BUMP", true, 0, 192, true },
		{ "LUAJIT_ENABLE_TABLE_BUMP", false, 0, 96, false },
		{ "LUAJIT_USE_GDBJIT, LUAJIT_ENABLE_TABLE_BUMP", true, 8, 200, false },
		{ "LUAJIT_USE_GDBJIT, LUAJIT_ENABLE_TABLE_BUMP", true, 8, 192, true },
		{ "LUAJIT_USE_GDBJIT, LUAJIT_ENABLE_TABLE_BUMP", false, 8, 96, false },
	};
	const char *release;

	(void)state;
	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		size_t recognised = 0;

		for (size_t j = 0; (release = release_name(j)) != NULL; j++)
			if (!builds[i].is_ambiguous || is_since_2021(release))
				recognised += is_recognised(release, builds[i].gc64, builds[i].name,
							    builds[i].all, builds[i].tail);
		if (recognised == 0)
			fail_msg("no release with \"%s\" is recognised", builds[i].name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_that_are_not_shown_move_with_those_that_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The tables are complete and consistent in themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "luajit-layouts/relations.h"
#include "luajit-layouts/release.h"
#include "luajit-layouts/tables.h"

typedef void row_check(enum layout_group group, const struct layout_row *row);

static void for_each_row(row_check *check)
{
	struct layout_row row;

	for (enum layout_group group = 0; group < LAYOUT_GROUP_COUNT; group++) {
		assert_true(layout_row_count(group) > 0);
		for (size_t i = 0; i < layout_row_count(group); i++) {
			layout_row_get(group, i, &row);
			check(group, &row);
		}
	}
}

static void check_identity(enum layout_group group, const struct layout_row *row)
{
	struct layout_row other;
	unsigned same = 0;

	assert_true(row->name != NULL && row->name[0] != '\0' && strlen(row->name) < LAYOUT_NAME_MAX);
	assert_true(row->from != NULL && row->from[0] != '\0');
	assert_true(row->modes != 0 && row->modes < LAYOUT_MODE(LAYOUT_MODE_COUNT));
	for (size_t i = 0; i < layout_row_count(group); i++) {
		layout_row_get(group, i, &other);
		same += strcmp(other.name, row->name) == 0;
	}
	assert_int_equal(same, 1);
}

static void every_row_has_a_name_of_its_own_and_an_origin(void **state)
{
	(void)state;
	for_each_row(check_identity);
}

/* GCfunc and its two kinds are one structure, and udtype is where ffid is. */
static void check_offsets(enum layout_group group, const struct layout_row *row)
{
	(void)group;
	for (size_t i = 0; i < layout_field_count; i++) {
		const struct layout_field *field = &layout_fields[i];
		int32_t offset = layout_offset(&row->offsets, field);

		if (offset < 0 || strcmp(field->field, "size") == 0)
			continue;
		for (size_t j = 0; j < i; j++) {
			const struct layout_field *other = &layout_fields[j];

			if (strcmp(field->structure, other->structure) == 0 &&
			    strcmp(other->field, "size") != 0 &&
			    layout_offset(&row->offsets, other) == offset)
				fail_msg("%s: %s and %s are both at %d", row->name, field->name, other->name,
					 offset);
		}
	}
}

static void no_two_fields_of_a_structure_share_an_offset(void **state)
{
	(void)state;
	for_each_row(check_offsets);
}

/* Two rows for one mode differ in some field, or recognition could not choose. */
static void check_difference(enum layout_group group, const struct layout_row *row)
{
	struct layout_row other;

	for (size_t i = 0; i < layout_row_count(group); i++) {
		layout_row_get(group, i, &other);
		if (strcmp(other.name, row->name) == 0 || (other.modes & row->modes) == 0 ||
		    other.mcofs != row->mcofs || other.bytecode != row->bytecode)
			continue;
		if (layout_conflict(&row->offsets, &other.offsets) == NULL)
			fail_msg("%s and %s are the same", row->name, other.name);
	}
}

static void no_two_rows_of_a_mode_are_the_same(void **state)
{
	(void)state;
	for_each_row(check_difference);
}

static void check_relations(enum layout_group group, const struct layout_row *row)
{
	const unsigned narrow = LAYOUT_MODE(LAYOUT_I386) | LAYOUT_MODE(LAYOUT_X64_GC32);
	struct layout offsets = row->offsets;
	const char *moved;

	offsets.gc64 = (row->modes & narrow) == 0;
	offsets.vmstates = row->vmstates;
	assert_true(offsets.gc64 || (row->modes & ~narrow) == 0);
	moved = relations_broken(&offsets, row->modes == LAYOUT_MODE(LAYOUT_I386) ? 4 : 8);
	if (moved != NULL)
		fail_msg("%s: %s is not where it is in the others", row->name, moved);
	if (group == LAYOUT_GROUP_TRACE)
		assert_int_equal(row->mcofs, offsets.SnapShot_mcofs != LAYOUT_ABSENT);
	if (group == LAYOUT_GROUP_GLOBAL)
		assert_int_equal(offsets.g_strnum, offsets.g_strmask + 4);
}

static void fields_that_go_together_do(void **state)
{
	(void)state;
	for_each_row(check_relations);
}

static void every_release_is_complete(void **state)
{
	const char *name;
	size_t count = 0;

	(void)state;
	for (; (name = release_name(count)) != NULL; count++) {
		struct layout layout;

		assert_true(release_layout(name, &layout));
		assert_string_equal(layout.name, name);
		assert_null(layout_missing(&layout));
	}
	assert_true(count > 0);
}

static void an_unknown_release_has_no_layout(void **state)
{
	struct layout layout = { .g_vmstate = 1 };

	(void)state;
	assert_false(release_layout("2.2", &layout));
	assert_int_equal(layout.g_vmstate, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_has_a_name_of_its_own_and_an_origin),
		cmocka_unit_test(no_two_fields_of_a_structure_share_an_offset),
		cmocka_unit_test(no_two_rows_of_a_mode_are_the_same),
		cmocka_unit_test(fields_that_go_together_do),
		cmocka_unit_test(every_release_is_complete),
		cmocka_unit_test(an_unknown_release_has_no_layout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

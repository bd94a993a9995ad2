/* SPDX-License-Identifier: MIT */
/* Fields that have always kept their distance: a layout with another one is found out, field by field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "luajit-layouts/relations.h"

enum { FAR = 64 /* a base's offset that leaves room before it */ };

/* How far a field is behind its base: with references of 64 bits, and of 32 bits. */
static const struct relation {
	const char *name;
	size_t field, base;
	int32_t gc64, gc32;
} relations[] = {
#define RELATION_ACROSS(structure, field, base, gc64, gc32) \
	{ \
#structure "." #field, offsetof(struct layout, structure##_##field), \
			offsetof(struct layout, base), gc64, gc32 \
	}
#define RELATION(structure, field, base, gc64, gc32) \
	RELATION_ACROSS(structure, field, structure##_##base, gc64, gc32)
	RELATION(GChead, marked, gct, -1, -1),
	RELATION(GCfuncC, upvalue, f, 8, 8),
	RELATION(GCproto, trace, flags, 1, 1),
	RELATION(GCudata, size, metatable, 16, 8),
	RELATION_ACROSS(GCtab, colo, GChead_gct, 2, 2),
	RELATION(GCupval, size, v, 16, 8),
	RELATION(L, exdata2, exdata, 8, 8),
	RELATION(g, gc_state, gc_total, 17, 9),
	RELATION(g, gc_root, gc_total, 24, 16),
	RELATION(GCtrace, nchild, traceno, -4, -4),
	RELATION(GCtrace, spadjust, traceno, -2, -2),
	RELATION(GCtrace, link, traceno, 2, 2),
	RELATION(GCtrace, root, traceno, 4, 4),
	RELATION(GCtrace, nextroot, traceno, 6, 6),
	RELATION(GCtrace, nextside, traceno, 8, 8),
	RELATION(GCtrace, topslot, linktype, -1, -1),
	RELATION(SnapShot, topslot, nslots, 1, 1),
	RELATION(SnapShot, count, nent, 1, 1),
	RELATION(J, pc, L, 8, 8),
	RELATION(J, fn, L, 16, 16),
	RELATION(J, pt, L, 24, 24),
	RELATION(J, sizetrace, trace, 12, 12),
	RELATION(J, startpc, parent, -8, -8),
	RELATION(J, exitno, parent, 4, 4),
	RELATION(J, szmcarea, mcarea, 24, 24),
#undef RELATION
#undef RELATION_ACROSS
};

static void set(struct layout *layout, size_t field, int32_t offset)
{
	*(int32_t *)(void *)((char *)layout + field) = offset;
}

/* Nothing is known of a layout but these two fields. */
static const char *broken(const struct relation *relation, bool gc64, int32_t base, int32_t field)
{
	struct layout layout;

	layout_clear(&layout);
	layout.gc64 = gc64;
	set(&layout, relation->base, base);
	set(&layout, relation->field, field);
	return relations_broken(&layout, 8);
}

static void a_field_at_another_distance_is_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * sizeof(relations) / sizeof(relations[0]); i++) {
		const struct relation *relation = &relations[i / 2];
		const int32_t distance = i % 2 ? relation->gc64 : relation->gc32;
		/* Also at the start of a structure. */
		const int32_t base = distance < 0 ? -distance : 0;

		assert_null(broken(relation, i % 2, FAR, FAR + distance));
		assert_null(broken(relation, i % 2, base, base + distance));
		assert_string_equal(broken(relation, i % 2, FAR, FAR + distance + 1), relation->name);
		assert_string_equal(broken(relation, i % 2, FAR, FAR + distance - 1), relation->name);
		assert_string_equal(broken(relation, i % 2, base, base + distance + 1), relation->name);
		assert_string_equal(broken(relation, i % 2, base + 1, base + distance), relation->name);
		assert_string_equal(broken(relation, i % 2, FAR, 0), relation->name);
	}
}

static void what_is_absent_or_unknown_breaks_nothing(void **state)
{
	static const int32_t nothing[] = { LAYOUT_ABSENT, LAYOUT_UNKNOWN };

	(void)state;
	for (size_t i = 0; i < sizeof(relations) / sizeof(relations[0]); i++)
		for (size_t j = 0; j < 2; j++) {
			assert_null(broken(&relations[i], true, FAR, nothing[j]));
			assert_null(broken(&relations[i], true, nothing[j], FAR));
		}
}

static const char *broken_jit_base(bool gc64, enum layout_vmstates vmstates, int32_t cur_L, int32_t jit_base)
{
	struct layout layout;

	layout_clear(&layout);
	layout.gc64 = gc64;
	layout.vmstates = vmstates;
	layout.g_cur_L = cur_L;
	layout.g_jit_base = jit_base;
	return relations_broken(&layout, 8);
}

/* Tarantool may have a reference between them. */
static void jit_base_is_right_behind_the_current_thread(void **state)
{
	(void)state;
	for (int gc64 = 0; gc64 <= 1; gc64++) {
		const int32_t ref = gc64 ? 8 : 4;

		assert_null(broken_jit_base(gc64, VMSTATES_LUAJIT, FAR, FAR + ref));
		assert_null(broken_jit_base(gc64, VMSTATES_LUAJIT, 0, ref));
		assert_string_equal(broken_jit_base(gc64, VMSTATES_LUAJIT, FAR, FAR + 2 * ref), "g.jit_base");
		assert_string_equal(broken_jit_base(gc64, VMSTATES_LUAJIT, 0, 2 * ref), "g.jit_base");
		assert_string_equal(broken_jit_base(gc64, VMSTATES_LUAJIT, FAR, FAR), "g.jit_base");
		assert_string_equal(broken_jit_base(gc64, VMSTATES_LUAJIT, ref, 0), "g.jit_base");
		assert_null(broken_jit_base(gc64, VMSTATES_TARANTOOL, FAR, FAR + ref));
		assert_null(broken_jit_base(gc64, VMSTATES_TARANTOOL, FAR, FAR + 2 * ref));
		assert_string_equal(broken_jit_base(gc64, VMSTATES_TARANTOOL, FAR, FAR + 3 * ref),
				    "g.jit_base");
		assert_null(broken_jit_base(gc64, VMSTATES_LUAJIT, FAR, LAYOUT_ABSENT));
		assert_null(broken_jit_base(gc64, VMSTATES_LUAJIT, LAYOUT_ABSENT, FAR));
	}
}

static const char *broken_state(int32_t L, int32_t J_state, unsigned pointer_bytes)
{
	struct layout layout;

	layout_clear(&layout);
	layout.J_L = L;
	layout.J_state = J_state;
	return relations_broken(&layout, pointer_bytes);
}

static void the_compilers_state_has_one_of_two_distances_with_wide_pointers(void **state)
{
	(void)state;
	assert_null(broken_state(0, 92, 8));
	assert_null(broken_state(FAR, FAR + 92, 8));
	assert_null(broken_state(FAR, FAR + 108, 8));
	assert_string_equal(broken_state(FAR, FAR + 100, 8), "J.state");
	assert_string_equal(broken_state(0, 0, 8), "J.state");
	assert_string_equal(broken_state(0, 100, 8), "J.state");
	assert_string_equal(broken_state(92, 0, 8), "J.state");
	assert_null(broken_state(FAR, LAYOUT_ABSENT, 8));
	assert_null(broken_state(LAYOUT_UNKNOWN, FAR, 8));
	assert_null(broken_state(FAR, FAR + 100, 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_field_at_another_distance_is_named),
		cmocka_unit_test(what_is_absent_or_unknown_breaks_nothing),
		cmocka_unit_test(jit_base_is_right_behind_the_current_thread),
		cmocka_unit_test(the_compilers_state_has_one_of_two_distances_with_wide_pointers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

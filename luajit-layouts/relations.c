/* SPDX-License-Identifier: MIT */
#include "luajit-layouts/relations.h"

#include <stdbool.h>
#include <stddef.h>

/* field lies this many bytes, references (GCRef) and pointers behind base. */
static const struct relation {
	const char *name;
	size_t field, base;
	int bytes, references, pointers;
} relations[] = {
#define RELATION_ACROSS(structure, field, base, bytes, references, pointers) \
	{ \
#structure "." #field, offsetof(struct layout, structure##_##field), \
			offsetof(struct layout, base), bytes, references, pointers \
	}
#define RELATION(structure, field, base, bytes, references, pointers) \
	RELATION_ACROSS(structure, field, structure##_##base, bytes, references, pointers)
	RELATION(GChead, marked, gct, -1, 0, 0), RELATION(GCfuncC, upvalue, f, 0, 0, 1),
	RELATION(GCproto, trace, flags, 1, 0, 0), RELATION(GCudata, size, metatable, 0, 2, 0),
	RELATION_ACROSS(GCtab, colo, GChead_gct, 2, 0, 0), /* GCtab.nomm */
	RELATION(GCupval, size, v, 0, 2, 0), RELATION(L, exdata2, exdata, 0, 0, 1),
	/* gc.total, gc.threshold, the byte gc.currentwhite, gc.state, the word gc.sweepstr, gc.root. */
	RELATION(g, gc_state, gc_total, 1, 2, 0), RELATION(g, gc_root, gc_total, 8, 2, 0),
	RELATION(GCtrace, nchild, traceno, -4, 0, 0), RELATION(GCtrace, spadjust, traceno, -2, 0, 0),
	RELATION(GCtrace, link, traceno, 2, 0, 0), RELATION(GCtrace, root, traceno, 4, 0, 0),
	RELATION(GCtrace, nextroot, traceno, 6, 0, 0), RELATION(GCtrace, nextside, traceno, 8, 0, 0),
	RELATION(GCtrace, topslot, linktype, -1, 0, 0), RELATION(SnapShot, topslot, nslots, 1, 0, 0),
	RELATION(SnapShot, count, nent, 1, 0, 0), RELATION(J, pc, L, 0, 0, 1), RELATION(J, fn, L, 0, 0, 2),
	RELATION(J, pt, L, 0, 0, 3), RELATION(J, sizetrace, trace, 4, 0, 1), /* J.freetrace */
	RELATION(J, startpc, parent, 0, 0, -1), RELATION(J, exitno, parent, 4, 0, 0),
	RELATION(J, szmcarea, mcarea, 0, 0, 3), /* J.mctop, J.mcbot */
#undef RELATION
#undef RELATION_ACROSS
};

static int32_t offset_at(const struct layout *layout, size_t field)
{
	return *(const int32_t *)(const void *)((const char *)layout + field);
}

/* J.state - J.L with 64-bit pointers: 92 in LuaJIT 2.0 and in 2.1 up to beta2, 108 since. */
static bool is_state_distance(int32_t distance)
{
	return distance == 92 || distance == 108;
}

/* g.jit_base is behind g.cur_L; between them, Tarantool has g.mem_L since December 2020 (0dcae51e). */
static bool is_jit_base_distance(const struct layout *layout)
{
	int32_t distance = layout->g_jit_base - layout->g_cur_L, ref = (int32_t)layout_ref_size(layout);

	return distance == ref || (distance == 2 * ref && layout->vmstates == VMSTATES_TARANTOOL);
}

const char *relations_broken(const struct layout *layout, unsigned pointer_bytes)
{
	for (size_t i = 0; i < sizeof(relations) / sizeof(relations[0]); i++) {
		const struct relation *relation = &relations[i];
		int32_t field = offset_at(layout, relation->field), base = offset_at(layout, relation->base);

		if (field >= 0 && base >= 0 &&
		    field != base + relation->bytes + relation->references * (int)layout_ref_size(layout) +
				     relation->pointers * (int)pointer_bytes)
			return relation->name;
	}
	if (layout->g_jit_base >= 0 && layout->g_cur_L >= 0 && !is_jit_base_distance(layout))
		return "g.jit_base";
	return pointer_bytes == 8 && layout->J_state >= 0 && layout->J_L >= 0 &&
			       !is_state_distance(layout->J_state - layout->J_L)
		       ? "J.state"
		       : NULL;
}

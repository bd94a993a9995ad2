/* SPDX-License-Identifier: MIT */
#include "luajit-layouts/layout.h"

const struct layout_field layout_fields[] = {
#define FIELD(structure, field) \
	{ #structure, #field, #structure "." #field, offsetof(struct layout, structure##_##field) },
	LAYOUT_FIELDS(FIELD)
#undef FIELD
};

const size_t layout_field_count = sizeof(layout_fields) / sizeof(layout_fields[0]);

void layout_clear(struct layout *layout)
{
	*layout = (struct layout){ .gc64 = false };
#define CLEAR(structure, field) layout->structure##_##field = LAYOUT_UNKNOWN;
	LAYOUT_FIELDS(CLEAR)
#undef CLEAR
}

void layout_without_jit(struct layout *layout)
{
#define ABSENT(structure, field) layout->structure##_##field = LAYOUT_ABSENT;
	LAYOUT_TRACE_FIELDS(ABSENT)
	LAYOUT_JIT_FIELDS(ABSENT)
#undef ABSENT
	layout->GG_J = LAYOUT_ABSENT;
}

const char *layout_conflict(const struct layout *left, const struct layout *right)
{
#define COMPARE(structure, field) \
	if (left->structure##_##field != LAYOUT_UNKNOWN && right->structure##_##field != LAYOUT_UNKNOWN && \
	    left->structure##_##field != right->structure##_##field) \
		return #structure "." #field;
	LAYOUT_FIELDS(COMPARE)
#undef COMPARE
	return NULL;
}

const char *layout_missing(const struct layout *layout)
{
#define MISSING(structure, field) \
	if (layout->structure##_##field == LAYOUT_UNKNOWN) \
		return #structure "." #field;
	LAYOUT_FIELDS(MISSING)
#undef MISSING
	return NULL;
}

/* Allow these fields to be absent: code tests for them before it uses them. */
static void excuse_absent(struct layout *layout)
{
	int32_t *const optional[] = {
		&layout->L_exdata, &layout->L_exdata2,  &layout->g_cur_L,   &layout->g_jit_base,
		&layout->g_jit_L,  &layout->g_tmpbuf_L, &layout->g_vmthref, &layout->SnapShot_mcofs,
	};

	for (size_t i = 0; i < sizeof(optional) / sizeof(optional[0]); i++)
		if (*optional[i] == LAYOUT_ABSENT)
			*optional[i] = 0;
	if (layout->has_jit)
		return;
#define EXCUSE(structure, field) layout->structure##_##field = 0;
	LAYOUT_TRACE_FIELDS(EXCUSE)
	LAYOUT_JIT_FIELDS(EXCUSE)
#undef EXCUSE
	layout->GG_J = 0;
}

const char *layout_unusable(const struct layout *layout)
{
	struct layout copy = *layout;

	excuse_absent(&copy);
#define CHECK(structure, field) \
	if (copy.structure##_##field < 0) \
		return #structure "." #field;
	LAYOUT_FIELDS(CHECK)
#undef CHECK
	if (copy.GCtrace_size > LAYOUT_TRACE_HEADER_MAX)
		return "GCtrace.size";
	if (copy.J_sizetrace < copy.J_trace)
		return "J.sizetrace";
#define HELD(structure, field) \
	if (copy.structure##_##field > LAYOUT_OBJECT_MAX) \
		return #structure "." #field;
	LAYOUT_OBJECT_FIELDS(HELD)
	LAYOUT_CFRAME_FIELDS(HELD)
#undef HELD
#define IN_TRACE(structure, field) \
	if (copy.structure##_##field > LAYOUT_TRACE_HEADER_MAX) \
		return #structure "." #field;
	LAYOUT_TRACE_FIELDS(IN_TRACE)
#undef IN_TRACE
	return NULL;
}

void layout_fill(struct layout *layout, const struct layout *from)
{
#define FILL(structure, field) \
	if (layout->structure##_##field == LAYOUT_UNKNOWN) \
		layout->structure##_##field = from->structure##_##field;
	LAYOUT_FIELDS(FILL)
#undef FILL
}

void layout_keep_common(struct layout *layout, const struct layout *other)
{
#define KEEP(structure, field) \
	if (layout->structure##_##field != other->structure##_##field) \
		layout->structure##_##field = LAYOUT_UNKNOWN;
	LAYOUT_FIELDS(KEEP)
#undef KEEP
}

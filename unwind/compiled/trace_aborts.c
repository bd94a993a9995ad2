/* SPDX-License-Identifier: MIT */
#include "unwind/compiled/trace_aborts.h"

#include "unwind/lua/luajit.h"

/*
 * The penalty slots follow exitstubgroup[16] in all layouts; penaltyslot follows them
 * (lj_jit.h, struct jit_State). A slot has a GC reference, a penalty and a reason.
 */
enum {
	EXIT_STUB_GROUPS_SIZE = 16 * 8,
	PENALTY_SIZE = 2,
	REASON_SIZE = 2,
	GC64_SLOT_SIZE = 16,
	GC32_SLOT_SIZE = 8,
	SLOTS_MAX = TRACE_ABORTS_MAX * GC64_SLOT_SIZE + 4,
	PENALTY_MIN = 36 * 2,
};

enum versions { OF_V20 = 1, OF_V21 = 2, OF_ALL = OF_V20 | OF_V21 };

static const struct error {
	const char *text;
	enum versions versions;
} errors[] = {
#define TRACE_ERROR(text, versions) { text, versions },
#include "unwind/compiled/trace_errors.inc"
#undef TRACE_ERROR
};

/*
 * Whose numbers this build uses. The builds of 2.1 before trace stitching came to stay
 * (August 2015) have others. They lack the parameter minstitch, and param[], which ends in
 * front of exitstubgroup, is then 14 numbers long and needs no padding.
 */
static bool find_versions(struct memory *live, const struct layout *layout, uint64_t groups,
			  enum versions *ret_versions)
{
	uint32_t padding;

	if (layout->bytecode == BYTECODE_V20) {
		*ret_versions = OF_V20;
		return true;
	}
	*ret_versions = OF_V21;
	return memory_u32(live, groups - sizeof(padding), &padding) && padding == 0;
}

/* The penalty is 72 at first, and doubles each time, plus less than 16. */
static unsigned count_aborts(uint64_t penalty)
{
	unsigned times = 1;

	for (; penalty >= 2 * PENALTY_MIN; penalty /= 2)
		times++;
	return times;
}

/* NULL if no reason has this number. */
static const char *find_reason(enum versions versions, unsigned number)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		if ((errors[i].versions & versions) && number-- == 0)
			return errors[i].text;
	return NULL;
}

bool trace_aborts_read(struct memory *live, const struct global_state *global,
		       struct trace_aborts *ret_aborts)
{
	const struct layout *layout = &global->vm->layout;
	uint64_t groups = global->g + (uint64_t)layout->GG_J + (uint64_t)layout->J_exitstubgroup;
	unsigned ref = layout_ref_size(layout);
	size_t size = layout->gc64 ? GC64_SLOT_SIZE : GC32_SLOT_SIZE;
	uint8_t slots[SLOTS_MAX];
	enum versions versions;
	bool has_reasons = find_versions(live, layout, groups, &versions);

	ret_aborts->count = 0;
	if (memory_read(live, groups + EXIT_STUB_GROUPS_SIZE, slots, TRACE_ABORTS_MAX * size + 4) !=
		    MEMORY_OK ||
	    load_bytes(slots, (int32_t)(TRACE_ABORTS_MAX * size), 4) >= TRACE_ABORTS_MAX)
		return false;
	for (size_t i = 0; i < TRACE_ABORTS_MAX; i++) {
		const uint8_t *slot = slots + i * size;
		uint64_t pc = load_bytes(slot, 0, ref);
		uint64_t penalty = load_bytes(slot, (int32_t)ref, PENALTY_SIZE);
		unsigned number = (unsigned)load_bytes(slot, (int32_t)ref + PENALTY_SIZE, REASON_SIZE);

		if (pc == 0)
			continue;
		if (penalty < PENALTY_MIN)
			return false;
		ret_aborts->at[ret_aborts->count++] = (struct trace_abort){
			.pc = pc,
			.times = count_aborts(penalty),
			.reason = has_reasons ? find_reason(versions, number) : NULL,
		};
	}
	return true;
}

const struct trace_abort *trace_aborts_find(const struct trace_aborts *aborts, uint64_t pc)
{
	for (size_t i = 0; i < aborts->count; i++)
		if (aborts->at[i].pc == pc)
			return &aborts->at[i];
	return NULL;
}

/* SPDX-License-Identifier: MIT */
#include "unwind/compiled/not_compiled.h"

#include "luajit-layouts/bytecode.h"
#include "unwind/lua/luajit.h"

enum {
	BATCH = 256,
	/* GCproto.flags */
	PROTO_NOJIT = 0x08,
	PROTO_ILOOP = 0x10,
};

/* Has the prototype's code a bytecode whose recording was aborted? */
static bool has_abort(const struct trace_aborts *aborts, const struct layout *layout, uint64_t proto,
		      uint32_t sizebc)
{
	uint64_t begin = proto + (uint64_t)layout->GCproto_size;

	for (size_t i = 0; i < aborts->count; i++)
		if (aborts->at[i].pc >= begin && aborts->at[i].pc - begin < (uint64_t)sizebc * BYTECODE_SIZE)
			return true;
	return false;
}

static void glance_at(struct memory *live, const struct layout *layout, const struct trace_aborts *aborts,
		      const uint64_t *protos, size_t count, enum not_compiled_glance *ret_glances)
{
	struct memory_range ranges[2 * BATCH];
	uint8_t flags[BATCH];
	uint32_t sizes[BATCH];

	for (size_t i = 0; i < count; i++) {
		ranges[2 * i] = (struct memory_range){ .address = protos[i] + (uint64_t)layout->GCproto_flags,
						       .copy = &flags[i],
						       .length = sizeof(flags[i]) };
		ranges[2 * i + 1] = (struct memory_range){ .address = protos[i] +
								      (uint64_t)layout->GCproto_sizebc,
							   .copy = &sizes[i],
							   .length = sizeof(sizes[i]) };
	}
	memory_read_ranges(live, ranges, 2 * count);
	for (size_t i = 0; i < count; i++) {
		ret_glances[i] = NOT_COMPILED_NOWHERE;
		if (ranges[2 * i].status != MEMORY_OK || ranges[2 * i + 1].status != MEMORY_OK)
			continue;
		if (flags[i] & PROTO_NOJIT)
			ret_glances[i] = NOT_COMPILED_EVERYWHERE;
		else if ((flags[i] & PROTO_ILOOP) || has_abort(aborts, layout, protos[i], sizes[i]))
			ret_glances[i] = NOT_COMPILED_SOMEWHERE;
	}
}

void not_compiled_glance(struct memory *live, const struct layout *layout, const struct trace_aborts *aborts,
			 const uint64_t *protos, size_t count, enum not_compiled_glance *ret_glances)
{
	for (size_t done = 0; done < count; done += BATCH)
		glance_at(live, layout, aborts, protos + done, count - done < BATCH ? count - done : BATCH,
			  ret_glances + done);
}

/* Is the instruction at the place's pc one that LuaJIT does not record from? Then set is_loop and cause. */
static bool judge(enum bytecode_op op, bool aborted, struct not_compiled *place)
{
	switch ((int)op) {
	case BC_IFUNCF:
	case BC_IFUNCV: place->cause = NOT_COMPILED_BLACKLISTED; return true;
	case BC_IFORL:
	case BC_IITERL:
	case BC_ILOOP:
		place->is_loop = true;
		place->cause = NOT_COMPILED_BLACKLISTED;
		return true;
	case BC_FUNCF:
	case BC_FUNCV: place->cause = NOT_COMPILED_ABORTED; return aborted;
	case BC_FORL:
	case BC_ITERL:
	case BC_ITERN:
	case BC_LOOP:
		place->is_loop = true;
		place->cause = NOT_COMPILED_ABORTED;
		return aborted;
	case BC_ITERC: /* was BC_ITERN */
		place->is_loop = true;
		place->cause = NOT_COMPILED_BLACKLISTED;
		return aborted;
	default: return false;
	}
}

size_t not_compiled_find(const struct layout *layout, const struct proto *proto,
			 const struct trace_aborts *aborts, enum not_compiled_glance glance,
			 struct not_compiled ret_places[static NOT_COMPILED_MAX])
{
	size_t count = 0;

	if (glance == NOT_COMPILED_EVERYWHERE) {
		ret_places[0] = (struct not_compiled){ .pc = proto->bc, .cause = NOT_COMPILED_OFF };
		return 1;
	}
	for (uint32_t i = 0; i < proto->sizebc && count < NOT_COMPILED_MAX; i++) {
		struct not_compiled place = { .pc = proto->bc + (uint64_t)i * BYTECODE_SIZE };
		const struct trace_abort *abort = trace_aborts_find(aborts, place.pc);
		uint32_t instruction;

		if (!proto_instruction(proto, place.pc, &instruction))
			break;
		if (!judge(bytecode_op(layout, (uint8_t)instruction), abort != NULL, &place))
			continue;
		place.reason = abort ? abort->reason : NULL;
		place.times = abort ? abort->times : 0;
		ret_places[count++] = place;
	}
	return count;
}

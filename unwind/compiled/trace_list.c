/* SPDX-License-Identifier: MIT */
#include "unwind/compiled/trace_list.h"

#include <string.h>

#include "luajit-layouts/bytecode.h"
#include "unwind/trace/trace_block.h"
#include "unwind/jit/traces.h"
#include "unwind/lua/luajit.h"

enum {
	HEADER_MAX = LAYOUT_TRACE_HEADER_MAX + 8,
	KIBIBYTE_SHIFT = 10,
};

static bool is_call(const struct layout *layout, uint32_t instruction)
{
	switch ((int)bytecode_op(layout, (uint8_t)instruction)) {
	case BC_CALL:
	case BC_CALLM:
	case BC_ITERC: return true;
	default: return false;
	}
}

/* False if it is not a compiled trace with that number. */
static bool load_summary(const struct layout *layout, const uint8_t *header, uint64_t address,
			 uint32_t number, struct trace_summary *ret_summary)
{
	unsigned ref = layout_ref_size(layout);
	unsigned link = (unsigned)header[layout->GCtrace_linktype];
	uint32_t startins = (uint32_t)load_bytes(header, layout->GCtrace_startins, 4);
	uint64_t nins = load_bytes(header, layout->GCtrace_nins, 4);

	if (load_bytes(header, layout->GChead_gct, 1) != GCT_TRACE ||
	    load_bytes(header, layout->GCtrace_traceno, 2) != number ||
	    load_bytes(header, layout->GCtrace_szmcode, 4) == 0 || nins <= TRACE_REF_BASE)
		return false;
	*ret_summary = (struct trace_summary){
		.number = number,
		.address = address,
		.mcode = load_bytes(header, layout->GCtrace_mcode, 8),
		.szmcode = (uint32_t)load_bytes(header, layout->GCtrace_szmcode, 4),
		.root = (uint32_t)load_bytes(header, layout->GCtrace_root, 2),
		.linktype = link < TRACE_LINK_COUNT ? (enum trace_linktype)link : TRACE_LINK_NONE,
		.link = (uint32_t)load_bytes(header, layout->GCtrace_link, 2),
		.snapshots = (uint32_t)load_bytes(header, layout->GCtrace_nsnap, 2),
		.instructions = (uint32_t)(nins - TRACE_REF_BASE - 1),
		.startpt = load_bytes(header, layout->GCtrace_startpt, ref),
		.startpc = load_bytes(header, layout->GCtrace_startpc, ref),
	};
	if (ret_summary->root)
		ret_summary->kind = TRACE_SIDE;
	else if (is_call(layout, startins))
		ret_summary->kind = TRACE_STITCHED;
	return true;
}

static size_t read_headers(struct memory *live, const struct layout *layout, const uint64_t *addresses,
			   uint32_t first, size_t count, struct trace_summary *ret_traces)
{
	struct memory_range ranges[TRACE_LIST_BATCH];
	uint8_t headers[TRACE_LIST_BATCH][HEADER_MAX];
	struct {
		uint16_t op1, op2, rest[2];
	} base[TRACE_LIST_BATCH];
	size_t found = 0;

	for (size_t i = 0; i < count; i++)
		ranges[i] = (struct memory_range){ .address = addresses[i],
						   .copy = headers[i],
						   .length = addresses[i] ? (size_t)layout->GCtrace_size
									  : 0 };
	memory_read_ranges(live, ranges, count);
	for (size_t i = 0; i < count; i++) {
		if (addresses[i] == 0 || ranges[i].status != MEMORY_OK ||
		    !load_summary(layout, headers[i], addresses[i], first + (uint32_t)i, &ret_traces[found]))
			continue;
		ranges[found] = (struct memory_range){ .address = load_bytes(headers[i], layout->GCtrace_ir,
									     8) +
								  TRACE_REF_BASE * TRACE_IR_SIZE,
						       .copy = &base[found],
						       .length = TRACE_IR_SIZE };
		found++;
	}
	memory_read_ranges(live, ranges, found);
	for (size_t i = 0; i < found; i++) {
		if (ret_traces[i].kind != TRACE_SIDE || ranges[i].status != MEMORY_OK)
			continue;
		ret_traces[i].parent = base[i].op1;
		ret_traces[i].exitno = base[i].op2;
	}
	return found;
}

bool trace_list_read(struct memory *live, const struct global_state *global, uint32_t *next,
		     struct trace_summary ret_traces[static TRACE_LIST_BATCH], size_t *ret_count)
{
	const struct layout *layout = &global->vm->layout;
	uint64_t J = global->g + (uint64_t)layout->GG_J, array = 0;
	uint8_t bytes[TRACE_LIST_BATCH * sizeof(uint64_t)];
	uint64_t addresses[TRACE_LIST_BATCH];
	unsigned ref = layout_ref_size(layout);
	uint32_t sizetrace, first = *next ? *next : 1;
	size_t count;

	if (!memory_u32(live, J + (uint64_t)layout->J_sizetrace, &sizetrace) ||
	    memory_read(live, J + (uint64_t)layout->J_trace, &array, ref) != MEMORY_OK ||
	    sizetrace > TRACES_MAX)
		return false;
	*next = 0;
	*ret_count = 0;
	if (first >= sizetrace)
		return true;
	count = sizetrace - first < TRACE_LIST_BATCH ? sizetrace - first : TRACE_LIST_BATCH;
	if (memory_read(live, array + (uint64_t)first * ref, bytes, count * ref) != MEMORY_OK)
		return false;
	for (size_t i = 0; i < count; i++)
		addresses[i] = load_bytes(bytes, (int32_t)(i * ref), ref);
	*ret_count = read_headers(live, layout, addresses, first, count, ret_traces);
	if (first + count < sizetrace)
		*next = first + (uint32_t)count;
	return true;
}

/* Of param[], from its end (lj_jit.h, JIT_PARAMDEF). */
enum { PARAM_MAXMCODE = 1, PARAM_SIZEMCODE = 2, PARAM_HOTEXIT = 8, PARAMS_READ = 9 };

bool trace_list_limits(struct memory *live, const struct global_state *global,
		       struct trace_limits *ret_limits)
{
	const struct layout *layout = &global->vm->layout;
	uint64_t J = global->g + (uint64_t)layout->GG_J, allocated;
	uint32_t params[PARAMS_READ];
	const uint32_t *end;

	/*
	 * szallmcarea follows szmcarea. param[] precedes exitstubgroup, with zero padding
	 * if needed.
	 */
	if (!memory_u64(live, J + (uint64_t)layout->J_szmcarea + sizeof(uint64_t), &allocated) ||
	    memory_read(live, J + (uint64_t)layout->J_exitstubgroup - sizeof(params), params,
			sizeof(params)) != MEMORY_OK)
		return false;
	end = params + PARAMS_READ - (params[PARAMS_READ - 1] == 0);
	*ret_limits = (struct trace_limits){
		.mcode_allocated = allocated,
		.mcode_max = (uint64_t)end[-PARAM_MAXMCODE] << KIBIBYTE_SHIFT,
		.mcode_area = (uint64_t)end[-PARAM_SIZEMCODE] << KIBIBYTE_SHIFT,
		.hotexit = end[-PARAM_HOTEXIT],
	};
	return true;
}

/* SPDX-License-Identifier: MIT */
#include "unwind/compiled/trace_copy.h"

#include <stdint.h>
#include <stdlib.h>

#include "unwind/jit/traces.h"
#include "unwind/lua/luajit.h"

static bool is_still(const struct layout *layout, const uint8_t *header, const struct trace_summary *summary)
{
	return load_bytes(header, layout->GChead_gct, 1) == GCT_TRACE &&
	       load_bytes(header, layout->GCtrace_traceno, 2) == summary->number &&
	       load_bytes(header, layout->GCtrace_mcode, 8) == summary->mcode &&
	       load_bytes(header, layout->GCtrace_szmcode, 4) == summary->szmcode;
}

bool trace_copy_read(struct memory *live, const struct layout *layout, const struct trace_summary *summary,
		     struct trace *ret_trace)
{
	uint8_t header[LAYOUT_TRACE_HEADER_MAX + 8];
	uint8_t *bytes;
	size_t size;

	if (memory_read(live, summary->address, header, (size_t)layout->GCtrace_size) != MEMORY_OK ||
	    !is_still(layout, header, summary))
		return false;
	size = trace_block_size(layout, summary->address, header);
	bytes = size ? malloc(size) : NULL;
	if (!bytes)
		return false;
	if (memory_read(live, summary->address, bytes, size) != MEMORY_OK ||
	    !is_still(layout, bytes, summary)) {
		free(bytes);
		return false;
	}
	*ret_trace = trace_of_header(layout, summary->address, bytes);
	ret_trace->bytes = bytes;
	ret_trace->size = size;
	return true;
}

void trace_copy_clear(struct trace *trace)
{
	free((void *)(uintptr_t)trace->bytes);
	trace->bytes = NULL;
}

/* SPDX-License-Identifier: MIT */
/*
 * arm64 code is not aligned with the IR yet: frames in a trace are lost, with their reason,
 * down to the function that it began in.
 */
#include "unwind/jit/trace_code.h"

bool trace_code_align(struct trace_code *code, const struct trace *trace, const struct layout *layout,
		      const uint8_t *bytes, const struct trace_exits *exits)
{
	(void)trace;
	(void)layout;
	(void)bytes;
	(void)exits;
	*code = (struct trace_code){ .pieces = NULL };
	return false;
}

void trace_code_clear(struct trace_code *code)
{
	*code = (struct trace_code){ .pieces = NULL };
}

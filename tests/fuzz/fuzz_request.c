/* SPDX-License-Identifier: MIT */
/*
 * What lua-nginx-module knows of a request, in memory that may be anything by now.
 *
 *	input = request:u16 L:u16 context of the coroutine:u16 memory
 */
#include "tests/fuzz/fuzz.h"
#include "unwind/lua/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct request_layout layout = {
		.known = true,
		.r_connection = 8,
		.r_ctx = 16,
		.r_main = 24,
		.has_connection = true,
		.ctx_index = 1,
		.ctx_context = 72,
		.context_size = sizeof(uint16_t),
	};
	static struct request_coroutines coroutines;
	struct fuzz_input input = fuzz_input(data, size);
	uint64_t request = FUZZ_BASE + fuzz_take(&input, 2), L = FUZZ_BASE + fuzz_take(&input, 2);
	uint64_t coctx = FUZZ_BASE + fuzz_take(&input, 2), parent, parent_coctx;
	struct fuzz_memory mapped = fuzz_memory(&input);
	struct memory_range ranges[REQUEST_RANGES];
	struct request_context context;

	request_coroutines_begin(&coroutines);
	if (request_context(&mapped.memory, &layout, request, ranges, &context))
		request_has_coroutine(&mapped.memory, &layout, &context, L, coctx, &coroutines);
	request_parent(&mapped.memory, L, coctx, &parent, &parent_coctx);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Messages of the engine's, which parses what a hostile target has: several in a row,
 * as functions that one defines are those of the next.
 *
 *	input = (length:u16 message)*
 */
#include <string.h>

#include "src/apart/sample_message.h"
#include "tests/fuzz/fuzz.h"

static void check(const struct sample *sample)
{
	size_t length = 0;

	fuzz_check(sample->thread_state < THREAD_STATE_COUNT && sample->vm_state < VM_STATE_COUNT,
		   "states are known ones");
	for (size_t i = 0; i < sample->frame_count; i++) {
		const struct frame *frame = &sample->frames[i];

		fuzz_check(frame->function && frame->function->kind < FRAME_KIND_COUNT &&
				   frame->certainty < CERTAINTY_COUNT,
			   "frames are known ones");
		length += frame->function->name ? strlen(frame->function->name) : 0;
	}
	length += sample->process_name ? strlen(sample->process_name) : 0;
	length += sample->wait && sample->wait->name ? strlen(sample->wait->name) : 0;
	fuzz_check(length < SIZE_MAX, "texts end");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = fuzz_input(data, size);
	struct functions *functions = functions_new();
	struct sample_reader *reader = sample_reader_new(functions);
	struct sample sample;

	while (fuzz_left(&input) > 0) {
		size_t length = fuzz_take(&input, 2);

		if (length > fuzz_left(&input))
			length = fuzz_left(&input);
		if (sample_reader_read(reader, input.at, length, &sample))
			break;
		check(&sample);
		input.at += length;
	}
	sample_reader_free(reader);
	functions_free(functions);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Values, objects and C types that may all be lies, copied and written as text.
 *
 *	input = choice:u8 memory
 *
 * The choice is the width of references. The memory begins with a thread's slots;
 * the rest, where a global_State is, too, is whatever they lead to.
 */
#include <string.h>

#include "memory/snapshot.h"
#include "tests/fuzz/fuzz.h"
#include "unwind/lua/value_capture.h"
#include "unwind/values/value_text.h"

enum { SLOTS = 16, SLOT_BYTES = 8, GLOBAL = FUZZ_BASE + SLOTS * SLOT_BYTES };

static bool name_function(void *context, uint64_t function, char ret_name[static VALUE_FUNCTION_SIZE])
{
	(void)context;
	(void)function;
	memset(ret_name, 'f', VALUE_FUNCTION_SIZE - 1);
	ret_name[VALUE_FUNCTION_SIZE - 1] = '\0';
	return true;
}

static void read_values(struct snapshot *snapshot, struct memory *live, const struct layout *layout)
{
	const struct value_reader reader = {
		.memory = snapshot_memory(snapshot),
		.live = live,
		.layout = layout,
		.g = GLOBAL,
		.name_function = name_function,
	};
	struct value_capture *values = value_capture_new();
	uint64_t slots[SLOTS];

	fuzz_check(values != NULL, "there is memory");
	if (memory_read(reader.memory, FUZZ_BASE, slots, sizeof(slots)) == MEMORY_OK) {
		value_capture_begin(values, snapshot, layout);
		for (int i = 0; i < SLOTS; i++)
			value_capture_add(values, slots[i]);
		value_capture_copy(values);
		snapshot_seal(snapshot);
		for (int i = 0; i < SLOTS; i++) {
			char text[VALUE_TEXT_SIZE];
			const char *type = value_text(&reader, slots[i], text);

			fuzz_check(memchr(text, '\0', sizeof(text)) != NULL, "a text has an end");
			fuzz_check(type ? *text != '\0' : *text == '\0', "a known value has a text");
		}
	}
	value_capture_free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = fuzz_input(data, size);
	enum layout_mode mode = fuzz_take(&input, 1) & 1 ? LAYOUT_X64_GC32 : LAYOUT_X64_GC64;
	struct fuzz_memory memory = fuzz_memory(&input);
	struct snapshot *snapshot = snapshot_new(&memory.memory);

	fuzz_check(snapshot != NULL, "there is memory");
	read_values(snapshot, &memory.memory, fuzz_layout(mode));
	snapshot_free(snapshot);
	return 0;
}

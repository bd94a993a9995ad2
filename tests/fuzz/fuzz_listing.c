/* SPDX-License-Identifier: MIT */
/*
 * A trace, a prototype and what they lead to, which may all be lies, listed.
 *
 *	input = choice:u8 memory
 *
 * The choice is the layout, and whether the memory is the IR and snapshots of a trace, the bytecode
 * of a prototype, both behind a sound header, machine code, or a global_State with whatever its
 * jit_State leads to.
 */
#include <stdlib.h>
#include <string.h>

#include "luajit-layouts/release.h"
#include "tests/fuzz/fuzz.h"
#include "unwind/trace/trace_block.h"
#include "unwind/listing/bytecode_text.h"
#include "unwind/listing/ir_text.h"
#include "unwind/listing/machine_text.h"
#include "unwind/listing/proto_listing.h"
#include "unwind/listing/trace_listing.h"
#include "unwind/lua/luajit.h"

enum { LAYOUTS = 3, WHAT = 4, REFS = 512, SNAPSHOTS = 64, STRINGS = 64, HEADER = 256, STRING_ROOM = 64 };

static void check_lines(const struct listing *listing)
{
	for (size_t i = 0; i < listing->count; i++) {
		const struct listing_line *line = &listing->lines[i];

		fuzz_check(line->text != NULL, "a line has a text");
		fuzz_check(memchr(line->place, '\0', sizeof(line->place)) != NULL, "a place has an end");
	}
}

static void discard(struct listing_text *text)
{
	free(listing_text_end(text));
}

static void put(uint8_t *bytes, int32_t offset, uint64_t value, size_t size)
{
	memcpy(bytes + offset, &value, size);
}

/* A memory with a sound header, to be filled in, before the input's. */
static struct fuzz_memory with_header(const struct fuzz_memory *memory)
{
	struct fuzz_memory made = *memory;
	uint8_t *bytes = calloc(1, HEADER + memory->size + STRING_ROOM);

	fuzz_check(bytes != NULL, "there is memory");
	if (memory->size)
		memcpy(bytes + HEADER, memory->bytes, memory->size);
	made.bytes = bytes;
	made.size = HEADER + memory->size + STRING_ROOM;
	return made;
}

/* The input is the IR of a GCtrace, its snapshots and whatever they lead to. */
static void list_ir(const struct listing_source *source, const struct fuzz_memory *memory)
{
	const struct layout *layout = source->layout;
	struct fuzz_memory made = with_header(memory);
	uint8_t *bytes = (uint8_t *)(uintptr_t)made.bytes;
	const uint64_t half = memory->size / TRACE_IR_SIZE / 2;
	const struct trace trace = {
		.address = FUZZ_BASE, .number = 1, .mcode = FUZZ_BASE, .bytes = bytes, .size = made.size
	};
	struct listing_source made_source = *source;
	const struct ir_text ir = { &made_source, &trace, machine_text_register };
	struct listing_text text;

	put(bytes, layout->GCtrace_nins, TRACE_REF_BIAS + half, 4);
	put(bytes, layout->GCtrace_nk, TRACE_REF_BIAS - half, 4);
	put(bytes, layout->GCtrace_ir, FUZZ_BASE + HEADER - (TRACE_REF_BIAS - half) * TRACE_IR_SIZE, 8);
	put(bytes, layout->GCtrace_nsnap, SNAPSHOTS, 2);
	put(bytes, layout->GCtrace_snap, FUZZ_BASE + HEADER, 8);
	put(bytes, layout->GCtrace_snapmap, FUZZ_BASE + HEADER, 8);
	made_source.memory = &made.memory;
	fuzz_check(listing_text_begin(&text), "there is memory");
	for (uint32_t ref = TRACE_REF_BASE; ref < TRACE_REF_BASE + REFS; ref++)
		ir_text_instruction(&ir, ref, text.out);
	for (uint32_t number = 0; number <= SNAPSHOTS; number++)
		ir_text_snapshot(&ir, number, text.out);
	discard(&text);
	free(bytes);
}

static void make_proto(const struct layout *layout, uint8_t *bytes, size_t size)
{
	const unsigned ref = layout_ref_size(layout);
	const int32_t string = (int32_t)(size - STRING_ROOM);
	const uint64_t sizebc = (size - STRING_ROOM - (size_t)layout->GCproto_size) / BYTECODE_SIZE / 2;

	put(bytes, layout->GChead_gct, GCT_PROTO, 1);
	put(bytes, layout->GCproto_sizebc, sizebc, 4);
	put(bytes, layout->GCproto_sizept, size, 4);
	put(bytes, layout->GCproto_k,
	    (FUZZ_BASE + (uint64_t)layout->GCproto_size + sizebc * 6) & ~UINT64_C(7), ref);
	put(bytes, layout->GCproto_firstline, 10, 4);
	put(bytes, layout->GCproto_numline, 10, 4);
	put(bytes, layout->GCproto_chunkname, FUZZ_BASE + (uint64_t)string, ref);
	put(bytes, string + layout->GChead_gct, GCT_STRING, 1);
	put(bytes, string + layout->GCstr_len, 6, 4);
	memcpy(bytes + string + layout->GCstr_size, "@a.lua", 7);
}

/* The input is the bytecode of a GCproto, its constants and whatever they lead to. */
static void list_proto(const struct listing_source *source, const struct fuzz_memory *memory)
{
	struct fuzz_memory made = with_header(memory);
	struct snapshot *snapshot = snapshot_new(&made.memory);
	struct listing_source made_source = *source;
	const uint64_t address = FUZZ_BASE;
	struct listing listing = { 0 };
	const struct proto *proto;

	fuzz_check(snapshot != NULL, "there is memory");
	make_proto(source->layout, (uint8_t *)(uintptr_t)made.bytes, made.size);
	made_source.memory = snapshot_memory(snapshot);
	lua_objects_capture_protos(source->objects, snapshot, source->layout, &address, 1);
	proto = lua_objects_proto(source->objects, address);
	if (proto) {
		uint64_t strings[STRINGS], children[STRINGS];
		const struct proto_wanted wanted = proto_wanted("a.lua:12");
		size_t count = bytecode_text_constants(source->layout, proto, BYTECODE_STRINGS, strings,
						       STRINGS);

		listing_capture_strings(snapshot, source->layout, strings, count);
		snapshot_seal(snapshot);
		proto_match_place(proto, &wanted);
		proto_children_named(&made_source, proto, "name", children, STRINGS);
		fuzz_check(proto_listing_add(&made_source, proto, NULL, &listing) == 0, "there is memory");
		check_lines(&listing);
		listing_clear(&listing);
	}
	snapshot_free(snapshot);
	free((void *)(uintptr_t)made.bytes);
}

/* The memory has a global_State, and everything else. */
static void list_trace(const struct layout *layout, struct fuzz_memory *memory)
{
	const struct vm_code vm = { .layout = *layout };
	const struct global_state global = { .g = FUZZ_BASE, .vm = &vm };
	struct trace_listing *reading = trace_listing_new(&memory->memory, &global, 1);
	struct listing listing;

	fuzz_check(reading != NULL, "there is memory");
	trace_listing_read(reading);
	fuzz_check(trace_listing_make(reading, NULL, &listing) == 0, "there is memory");
	check_lines(&listing);
	listing_clear(&listing);
	trace_listing_free(reading);
}

static void disassemble(const struct fuzz_memory *memory)
{
	struct machine_instruction_text text;
	struct machine_decoder decoder;

	fuzz_check(machine_decoder_open(&decoder), "capstone works");
	for (size_t at = 0; at < memory->size; at += text.length) {
		machine_text_next(&decoder, memory->bytes + at, memory->size - at, FUZZ_BASE + at, &text);
		fuzz_check(text.length > 0 && text.length <= memory->size - at,
			   "an instruction has a length");
	}
	machine_decoder_close(&decoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[LAYOUTS] = { "debian-bookworm-luajit", "debian-bullseye-luajit",
						    "debian-bookworm-luajit2" };
	static struct builtins builtins;
	struct fuzz_input input = fuzz_input(data, size);
	unsigned choice = (unsigned)fuzz_take(&input, 1);
	struct fuzz_memory memory = fuzz_memory(&input);
	struct listing_source source = {
		.memory = &memory.memory,
		.objects = lua_objects_new(),
		.builtins = &builtins,
		.numbering = (enum ir_numbering)(choice / WHAT / LAYOUTS % NUMBERING_COUNT),
	};
	struct layout layout;

	fuzz_check(release_layout(names[choice / WHAT % LAYOUTS], &layout), "the layout is known");
	fuzz_check(source.objects != NULL, "there is memory");
	source.layout = &layout;
	lua_objects_begin(source.objects, true);
	switch (choice % WHAT) {
	case 0: list_ir(&source, &memory); break;
	case 1: list_proto(&source, &memory); break;
	case 2: list_trace(&layout, &memory); break;
	default: disassemble(&memory); break;
	}
	lua_objects_free(source.objects);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * made_up_states: a process with states of LuaJIT, their threads and functions, and C frames on a native
 * stack.
 *
 * All of it lies in one piece of memory, whose pages a test can unmap. Nothing runs: a test writes what a
 * thread left there when it was held.
 */
#ifndef LJSPY_MADE_UP_STATES_H
#define LJSPY_MADE_UP_STATES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "memory/memory.h"
#include "tests/unit/range_bytes.h"
#include "unwind/capture/capture.h"
#include "unwind/lua/luajit.h"

/* Where the memory begins. Addresses do not fit in 32 bits; a test without GC64 has lower ones. */
#ifndef STATES_AT
#define STATES_AT UINT64_C(0x7f0000400000)
#endif

enum {
	STATES_BYTES = 0x100000,
	STATES_PAGE = 4096,
	STATES_PAGES = STATES_BYTES / STATES_PAGE,

	MODULE_AT = STATES_AT, /* the VM's code, then native code */
	VM_AT = MODULE_AT + 0x1000,
	VM_END = MODULE_AT + 0x2000,
	NATIVE_CODE = VM_END + 0x100,
	MODULE_END = MODULE_AT + 0x4000,

	G_AT = STATES_AT + 0x10000, /* state i: G_AT + i * G_BYTES, and likewise for all that follows */
	G_BYTES = 0x1000,
	THREADS_AT = STATES_AT + 0x40000,
	THREAD_BYTES = 0x80,
	SLOTS_AT = STATES_AT + 0x50000,
	SLOTS = 128,
	STACKS = 128, /* a thread beyond has the stack of one of the first */
	FUNCTIONS_AT = STATES_AT + 0x70000,
	FUNCTION_BYTES = 0x40,
	PROTOS_AT = STATES_AT + 0x78000,
	PROTO_BYTES = 0x100,
	INSTRUCTIONS = 16,
	CHUNKNAME_AT = STATES_AT + 0x80000,
	FREE_AT = STATES_AT + 0x90000, /* for a test's own objects */
	C_STACK_AT = STATES_AT + 0xa0000,
	C_STACK_END = STATES_AT + STATES_BYTES,

	DISPATCH_AT = 0x400, /* from the state */
};

static struct made_up_states {
	struct memory memory; /* first: what is read */
	uint8_t bytes[STATES_BYTES];
	bool is_unmapped[STATES_PAGES];
	struct vm_code vm;
	struct image *image;
	struct lua_image *lua;
	struct capture_process process;
	struct capture capture;
	struct capture_hints hints;
	struct registers registers;
} states;

static void states_read(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	range_bytes(ranges, count, STATES_AT, states.bytes, STATES_BYTES);
	for (size_t i = 0; i < count; i++)
		for (size_t page = 0; page < STATES_PAGES && ranges[i].length; page++) {
			const uint64_t at = STATES_AT + page * STATES_PAGE;

			if (states.is_unmapped[page] && at < ranges[i].address + ranges[i].length &&
			    ranges[i].address < at + STATES_PAGE)
				ranges[i].status = MEMORY_UNMAPPED;
		}
}

static inline void put(uint64_t address, uint64_t value, size_t size)
{
	memcpy(states.bytes + (address - STATES_AT), &value, size);
}

static inline void put_word(uint64_t address, uint64_t word)
{
	put(address, word, sizeof(word));
}

/* Nothing is mapped in this page any more. */
static inline void unmap(uint64_t page)
{
	states.is_unmapped[(page - STATES_AT) / STATES_PAGE] = true;
}

/*---- Addresses ----*/

static inline uint64_t g_at(size_t i)
{
	return G_AT + i * G_BYTES;
}

static inline uint64_t thread_at(size_t i)
{
	return THREADS_AT + i * THREAD_BYTES;
}

/* The first slot of a thread. */
static inline uint64_t slots_at(size_t i)
{
	return SLOTS_AT + i % STACKS * SLOTS * SLOT_SIZE;
}

static inline uint64_t function_at(size_t i)
{
	return FUNCTIONS_AT + i * FUNCTION_BYTES;
}

static inline uint64_t proto_at(size_t i)
{
	return PROTOS_AT + i * PROTO_BYTES;
}

static inline uint64_t tagged(int32_t tag, uint64_t object)
{
	return states.vm.layout.gc64 ? (uint64_t)(int64_t)tag << 47 | object
				     : (uint64_t)(uint32_t)tag << 32 | object;
}

/* An instruction of a prototype. */
static inline uint64_t bytecode_at(size_t proto, size_t instruction)
{
	return proto_at(proto) + (uint64_t)states.vm.layout.GCproto_size + instruction * BYTECODE_SIZE;
}

/*---- Objects ----*/

/* A state that runs the thread at an address. */
static inline void put_g(size_t i, uint64_t cur_L)
{
	const struct layout *layout = &states.vm.layout;

	put(g_at(i) + (uint64_t)layout->g_vmstate, (uint32_t)~1, sizeof(uint32_t));
	if (layout->g_cur_L != LAYOUT_ABSENT)
		put(g_at(i) + (uint64_t)layout->g_cur_L, cur_L, layout_ref_size(layout));
}

/* A thread of a state with an empty stack, whose innermost C frame this is. */
static inline uint64_t put_thread(size_t i, size_t g, uint64_t cframe)
{
	const struct layout *layout = &states.vm.layout;
	const uint64_t at = thread_at(i), slots = slots_at(i);
	const unsigned ref = layout_ref_size(layout);
	const uint64_t bottom = slots + frame_slots(layout->gc64) * SLOT_SIZE;

	put(at + (uint64_t)layout->GChead_gct, GCT_THREAD, 1);
	put(at + (uint64_t)layout->L_glref, g_at(g), ref);
	put(at + (uint64_t)layout->L_base, bottom, ref);
	put(at + (uint64_t)layout->L_top, bottom, ref);
	put(at + (uint64_t)layout->L_maxstack, slots + SLOTS * SLOT_SIZE, ref);
	put(at + (uint64_t)layout->L_stack, slots, ref);
	put_word(at + (uint64_t)layout->L_cframe, cframe);
	put(at + (uint64_t)layout->L_stacksize, SLOTS, 4);
	put_word(slots, tagged(TAG_THREAD, at));
	return at;
}

static inline void put_slot(size_t thread, size_t slot, uint64_t value)
{
	put_word(slots_at(thread) + slot * SLOT_SIZE, value);
}

/* A Lua function with a prototype of its own. */
static inline uint64_t put_function(size_t i)
{
	const struct layout *layout = &states.vm.layout;
	const unsigned ref = layout_ref_size(layout);
	const uint64_t at = function_at(i), proto = proto_at(i);

	put(at + (uint64_t)layout->GChead_gct, GCT_FUNCTION, 1);
	put(at + (uint64_t)layout->GCfunc_ffid, FF_LUA, 1);
	put(at + (uint64_t)layout->GCfunc_pc, bytecode_at(i, 0), ref);
	put(proto + (uint64_t)layout->GChead_gct, GCT_PROTO, 1);
	put(proto + (uint64_t)layout->GCproto_sizebc, INSTRUCTIONS, 4);
	put(proto + (uint64_t)layout->GCproto_sizept,
	    (uint64_t)layout->GCproto_size + INSTRUCTIONS * BYTECODE_SIZE, 4);
	put(proto + (uint64_t)layout->GCproto_chunkname, CHUNKNAME_AT, ref);
	put(CHUNKNAME_AT + (uint64_t)layout->GChead_gct, GCT_STRING, 1);
	put(proto + (uint64_t)layout->GCproto_firstline, i + 1, 4);
	put(proto + (uint64_t)layout->GCproto_numline, INSTRUCTIONS, 4);
	return at;
}

/* A function written in C. */
static inline uint64_t put_c_function(size_t i)
{
	const struct layout *layout = &states.vm.layout;
	const uint64_t at = function_at(i);

	put(at + (uint64_t)layout->GChead_gct, GCT_FUNCTION, 1);
	put(at + (uint64_t)layout->GCfunc_ffid, FF_C, 1);
	put_word(at + (uint64_t)layout->GCfuncC_f, NATIVE_CODE);
	return at;
}

/* A frame of a function on a thread's stack, whose base is this slot. */
static inline void put_frame(size_t thread, size_t base_slot, uint64_t function, uint64_t link)
{
	const uint64_t base = slots_at(thread) + base_slot * SLOT_SIZE;

	if (states.vm.layout.gc64) {
		put_word(base - 2 * SLOT_SIZE, tagged(TAG_FUNC, function));
		put_word(base - SLOT_SIZE, link);
	} else {
		put_word(base - SLOT_SIZE, link << 32 | function);
	}
}

/* A frame that a Lua function has called with this instruction. */
static inline void put_called_frame(size_t thread, size_t base_slot, uint64_t function, size_t caller,
				    size_t caller_base_slot, size_t instruction)
{
	const uint32_t a = (uint32_t)(base_slot - caller_base_slot - frame_slots(states.vm.layout.gc64));

	put(bytecode_at(caller, instruction), a << 8, 4);
	put_frame(thread, base_slot, function, bytecode_at(caller, instruction + 1));
}

/* Where the thread works: the slots of its base and its top. */
static inline void put_base(size_t thread, size_t base_slot, size_t top_slot)
{
	const struct layout *layout = &states.vm.layout;
	const unsigned ref = layout_ref_size(layout);

	put(thread_at(thread) + (uint64_t)layout->L_base, slots_at(thread) + base_slot * SLOT_SIZE, ref);
	put(thread_at(thread) + (uint64_t)layout->L_top, slots_at(thread) + top_slot * SLOT_SIZE, ref);
}

/* A C frame of a thread, linked to the next one outwards. */
static inline void put_cframe(uint64_t cframe, uint64_t thread, uint64_t previous, uint64_t return_address)
{
	const struct layout *layout = &states.vm.layout;

	put(cframe + (uint64_t)layout->CFRAME_NRES, 0, 4);
	put(cframe + (uint64_t)layout->CFRAME_L, thread, layout_ref_size(layout));
	put(cframe + (uint64_t)layout->CFRAME_PC, 0, layout_ref_size(layout));
	put_word(cframe + (uint64_t)layout->CFRAME_PREV, previous);
	put_word(cframe + (uint64_t)layout->CFRAME_size - sizeof(uint64_t), return_address);
}

/*---- The process ----*/

/*
 * As LuaJIT 2.1 has them on x86-64 with GC64, but for the end of lua_State and what is in the state itself.
 */
static inline void states_layout(struct layout *layout)
{
	for (size_t i = 0; i < layout_field_count; i++)
		*layout_offset_in(layout, &layout_fields[i]) = LAYOUT_ABSENT;
	layout->gc64 = true;
	layout->bytecode = BYTECODE_V21;
	layout->GChead_nextgc = 0;
	layout->GChead_marked = 8;
	layout->GChead_gct = 9;
	layout->L_size = THREAD_BYTES;
	layout->L_glref = 0x10;
	layout->L_base = 0x18;
	layout->L_top = 0x20;
	layout->L_maxstack = 0x28;
	layout->L_stack = 0x30;
	layout->L_cframe = 0x38;
	layout->L_status = 0x40;
	layout->L_stacksize = 0x48;
	layout->g_gc_total = 0x10;
	layout->g_gc_state = 0x19;
	layout->g_gc_root = 0x20;
	layout->g_strmask = 0x60;
	layout->g_strnum = 0x64;
	layout->g_hookmask = 0x68;
	layout->g_vmstate = 0x70;
	layout->g_cur_L = 0x78;
	layout->g_jit_base = 0x80;
	layout->g_mainthref = 0x88;
	layout->GG_J = 0x100;
	layout->GG_dispatch = DISPATCH_AT;
	layout->J_pc = 0x10;
	layout->J_state = 0x18;
	layout->J_trace = 0x20;
	layout->J_sizetrace = 0x28;
	layout->J_parent = 0x30;
	layout->J_exitno = 0x34;
	layout->CFRAME_NRES = 8;
	layout->CFRAME_L = 16;
	layout->CFRAME_PC = 24;
	layout->CFRAME_PREV = 32;
	layout->CFRAME_size = 80;
	layout->GCfunc_ffid = 10;
	layout->GCfunc_nupvalues = 11;
	layout->GCfunc_pc = 0x20;
	layout->GCfuncC_f = 0x28;
	layout->GCfuncC_upvalue = 0x30;
	layout->GCfuncL_uvptr = 0x28;
	layout->GCproto_numparams = 0x0a;
	layout->GCproto_framesize = 0x0b;
	layout->GCproto_sizebc = 0x0c;
	layout->GCproto_k = 0x20;
	layout->GCproto_sizept = 0x38;
	layout->GCproto_flags = 0x3d;
	layout->GCproto_trace = 0x3e;
	layout->GCproto_chunkname = 0x40;
	layout->GCproto_firstline = 0x48;
	layout->GCproto_numline = 0x4c;
	layout->GCproto_size = 0x68;
	layout->GCstr_len = 0x14;
	layout->GCstr_size = 0x18;
}

/* The only module of the process, which has the VM. */
static inline void states_set_module(void)
{
	struct module *modules = calloc(1, sizeof(*modules));

	if (!modules)
		abort();
	*modules = (struct module){
		.begin = MODULE_AT, .end = MODULE_END, .base = MODULE_AT, .vm = &states.vm
	};
	image_set_modules(states.image, modules, 1);
}

/* A process with one module, which has a VM, and one state, which is known and runs nothing. */
static inline int states_begin(void **state)
{
	(void)state;
	memset(&states, 0, sizeof(states));
	states.memory.read_ranges = states_read;
	states.vm = (struct vm_code){ .begin = VM_AT, .end = VM_END, .confirmed = true };
	states_layout(&states.vm.layout);
	states.image = image_new(&states.memory);
	if (!states.image)
		return -1;
	states_set_module();
	states.lua = lua_image_new(states.image);
	if (!states.lua)
		return -1;
	lua_image_add(states.lua, g_at(0), &states.vm);
	put_g(0, 0);
	states.process = (struct capture_process){
		.lua = states.lua,
		.objects = lua_objects_new(),
		.snapshot = snapshot_new(&states.memory),
		.live = &states.memory,
	};
	states.registers = (struct registers){ .pc = NATIVE_CODE, .sp = C_STACK_AT + 0x180 };
	return states.process.objects && states.process.snapshot ? 0 : -1;
}

static inline int states_end(void **state)
{
	(void)state;
	snapshot_free(states.process.snapshot);
	lua_objects_free(states.process.objects);
	lua_image_free(states.lua);
	image_free(states.image);
	return 0;
}

/* Hold the thread that has these registers, and copy what belongs to it. */
static inline void states_capture(void)
{
	snapshot_clear(states.process.snapshot);
	capture_thread(&states.capture, &states.process, &states.registers, &states.hints);
}

/* Is all of this in the copy? */
static inline bool is_copied(uint64_t address, size_t length)
{
	return snapshot_view(states.process.snapshot, address, length);
}

#endif

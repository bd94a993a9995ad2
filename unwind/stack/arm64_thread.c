/* SPDX-License-Identifier: MIT */
/* Registers, C frames and Lua threads in an arm64 core file. */
#include "unwind/stack/arm64_thread.h"

#include <string.h>

#include "luajit-layouts/vmstate.h"
#include "unwind/lua/luajit.h"
#include "unwind/vm/vm_frame.h"

/* struct elf_prstatus of arm64 (linux/elfcore.h, asm/user.h). */
enum {
	PRSTATUS_PID = 32,
	PRSTATUS_REGISTERS = 112, /* x0 to x30, sp, pc, pstate */
	PRSTATUS_SIZE = 392,
};

/* The VM's registers (vm_arm64.dasc). */
enum {
	X_BASE = 19,
	X_PC = 21,
	X_GL = 22,
	X_L = 23,
};

bool arm64_registers_read(const uint8_t *note, size_t size, pid_t *ret_tid,
			  struct arm64_registers *ret_registers)
{
	int32_t tid;

	_Static_assert(sizeof(*ret_registers) == 33 * sizeof(uint64_t), "as in the note");
	if (size < PRSTATUS_SIZE)
		return false;
	memcpy(&tid, note + PRSTATUS_PID, sizeof(tid));
	memcpy(ret_registers, note + PRSTATUS_REGISTERS, sizeof(*ret_registers));
	*ret_tid = tid;
	return true;
}

static bool read_word(struct memory *memory, uint64_t address, uint64_t *ret_value)
{
	return memory_read(memory, address, ret_value, sizeof(*ret_value)) == MEMORY_OK;
}

/* A field of g or of a lua_State; arm64 has only 64-bit ones. 0 if it cannot be read. */
static uint64_t field(struct memory *memory, uint64_t object, int32_t offset)
{
	uint64_t value;

	return offset >= 0 && read_word(memory, object + (uint64_t)offset, &value) ? value : 0;
}

/* The innermost C frame of a Lua thread; 0 if native code does not run it. */
static uint64_t cframe_of(struct memory *memory, const struct layout *layout, uint64_t L)
{
	return L ? field(memory, L, layout->L_cframe) & ~(uint64_t)CFRAME_FLAGS : 0;
}

/* The innermost global_State on this stack: the SAVE_L of its thread's C frame leads back to the thread. */
static struct global_state *find_global(struct memory *memory, const struct lua_image *lua, uint64_t sp,
					uint64_t stack_end, uint64_t *ret_L)
{
	struct global_state *found = NULL;
	uint64_t lowest = stack_end, saved;

	for (size_t i = 0; i < lua_image_count(lua); i++) {
		struct global_state *global = lua_image_global(lua, i);
		const struct layout *layout = &global->vm->layout;
		uint64_t L = field(memory, global->g, layout->g_cur_L);
		uint64_t cframe = cframe_of(memory, layout, L);

		if (cframe < sp || cframe >= lowest || !vm_frame_thread(layout, memory, cframe, &saved) ||
		    saved != L)
			continue;
		found = global;
		lowest = cframe;
		*ret_L = L;
	}
	return found;
}

/* Does a C function run that Lua called? The VM stored L->base before the call (BC_FUNCC). */
static bool runs_c_function(struct memory *memory, const struct global_state *global)
{
	int32_t vmstate;

	return memory_read(memory, global->g + (uint64_t)global->vm->layout.g_vmstate, &vmstate,
			   sizeof(vmstate)) == MEMORY_OK &&
	       vmstate_of(&global->vm->layout, vmstate) == VMST_C;
}

/* The resumer of L, or 0. coroutine.resume calls vm_resume, so its C frame lies right above L's outermost. */
static uint64_t find_parent(struct memory *memory, const struct layout *layout, uint64_t L)
{
	uint64_t cframe = cframe_of(memory, layout, L), previous = cframe, parent;

	for (unsigned i = 0; i < CFRAMES_MAX && previous; i++) {
		cframe = previous;
		if (!vm_frame_previous(layout, memory, cframe, &previous) ||
		    (previous != 0 && previous <= cframe))
			return 0;
	}
	cframe += (uint64_t)layout->CFRAME_size;
	if (previous || !vm_frame_thread(layout, memory, cframe, &parent) || parent == 0 ||
	    cframe_of(memory, layout, parent) != cframe)
		return 0;
	return parent;
}

static void find_threads(struct memory *memory, struct arm64_thread *thread, uint64_t L)
{
	const struct layout *layout = &thread->global->vm->layout;

	while (L && thread->thread_count < CAPTURE_THREADS_MAX) {
		thread->threads[thread->thread_count++] = L;
		L = find_parent(memory, layout, L);
	}
}

void arm64_thread_find(struct memory *memory, const struct lua_image *lua,
		       const struct arm64_registers *registers, uint64_t stack_end,
		       struct arm64_thread *ret_thread)
{
	struct arm64_thread thread = { .thread_count = 0 };
	const struct module *module;
	enum code_kind code = image_classify(lua_image_code(lua), registers->pc, &module);
	uint64_t L = 0, jit_base;

	if (code == CODE_VM) {
		thread.global = lua_image_find(lua, registers->x[X_GL]);
		L = registers->x[X_L];
		thread.top = (struct merge_top){
			.kind = MERGE_TOP_REGISTERS,
			.registers = { .base = registers->x[X_BASE], .pc = registers->x[X_PC] },
		};
	}
	if (!thread.global) {
		thread.global = find_global(memory, lua, registers->sp, stack_end, &L);
		thread.top = (struct merge_top){ .kind = MERGE_TOP_UNKNOWN };
		if (code != CODE_UNKNOWN)
			thread.top.native_pc = registers->pc;
	}
	*ret_thread = thread;
	if (!thread.global)
		return;
	jit_base = field(memory, thread.global->g, thread.global->vm->layout.g_jit_base);
	if (thread.top.kind == MERGE_TOP_UNKNOWN && jit_base) {
		thread.top.kind = MERGE_TOP_TRACE;
		thread.top.registers.base = jit_base;
	} else if (thread.top.kind == MERGE_TOP_UNKNOWN && runs_c_function(memory, thread.global)) {
		thread.top.kind = MERGE_TOP_STORED;
	}
	find_threads(memory, &thread, L);
	*ret_thread = thread;
}

/* SPDX-License-Identifier: MIT */
#include "output/labels/names.h"

const char *thread_state_name(enum thread_state state)
{
	static const char *const names[THREAD_STATE_COUNT] = {
		[THREAD_RUNNING] = "running",
		[THREAD_RUNNABLE] = "runnable",
		[THREAD_BLOCKED] = "blocked",
		[THREAD_IDLE] = "idle",
		[THREAD_UNINTERRUPTIBLE] = "uninterruptible",
		[THREAD_PARKED] = "parked",
	};

	return names[state];
}

const char *vm_state_name(enum vm_state state)
{
	static const char *const names[VM_STATE_COUNT] = {
		[VM_STATE_NONE] = "none",
		[VM_STATE_INTERPRETED] = "interpreted",
		[VM_STATE_COMPILED] = "compiled",
		[VM_STATE_C] = "c",
		[VM_STATE_GC] = "gc",
		[VM_STATE_RECORDING] = "recording",
		[VM_STATE_OPTIMISING] = "optimising",
		[VM_STATE_ASSEMBLING] = "assembling",
		[VM_STATE_EXIT] = "exit",
		[VM_STATE_UNKNOWN] = "unknown",
	};

	return names[state];
}

const char *gc_phase_name(enum gc_phase phase)
{
	static const char *const names[GC_PHASE_COUNT] = {
		[GC_PHASE_MARK] = "mark",
		[GC_PHASE_ATOMIC] = "atomic",
		[GC_PHASE_SWEEP_STRINGS] = "sweep strings",
		[GC_PHASE_SWEEP] = "sweep",
		[GC_PHASE_FINALIZE] = "finalize",
		[GC_PHASE_UNKNOWN] = "unknown",
	};

	return names[phase];
}

const char *frame_kind_name(enum frame_kind kind)
{
	static const char *const names[FRAME_KIND_COUNT] = {
		[FRAME_LUA] = "lua",       [FRAME_BUILTIN] = "builtin", [FRAME_C_FUNCTION] = "c_function",
		[FRAME_NATIVE] = "native", [FRAME_VM] = "vm",           [FRAME_TRACE] = "trace",
		[FRAME_LOST] = "lost",     [FRAME_VM_WORK] = "vm",      [FRAME_ALLOCATED] = "allocated",
	};

	return names[kind];
}

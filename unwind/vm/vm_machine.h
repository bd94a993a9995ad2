/* SPDX-License-Identifier: MIT */
/*
 * vm_machine: run the VM's code on a copy of its thread.
 *
 * Registers and memory come from the capture; stores are kept apart. Values that
 * depend on uncaptured memory or on floating point are unknown. Besides the VM's
 * code, the machine runs the end of a trace, and stubs. It stops when the code
 * leaves the VM, when it cannot follow the code, and before the dispatch of the
 * next bytecode instruction. Each architecture has its own .c file, and a header with
 * the numbers of the VM's registers.
 */
#ifndef LJSPY_VM_MACHINE_H
#define LJSPY_VM_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/elf/image.h"
#include "unwind/elf/machine.h"
#include "unwind/elf/registers.h"
#include "unwind/jit/traces.h"
#include "unwind/lua/lua_objects.h"
#include "unwind/native/vm_decoder.h"

#ifdef LJSPY_READS_X86_64
#include "unwind/vm/vm_machine_x86_64.h"
#endif
#ifdef LJSPY_READS_ARM64
#include "unwind/vm/vm_machine_arm64.h"
#endif

enum {
	VM_MACHINE_STORES_MAX = 512,
};

/* Unknown if it depends on uncaptured memory or on floating point. The machine can often go on without it. */
struct vm_value {
	uint64_t bits;
	bool known;
};

/* A store that the code made. The captured memory does not change. */
struct vm_store {
	uint64_t address;
	unsigned int size;
	unsigned int step; /* the step that stored it */
	struct vm_value value;
};

struct vm_flags {
	bool zero, sign, carry, overflow, known;
};

struct vm_machine {
	/* The code to run and the data to read. */
	struct vm_decoder *decoder;
	const struct vm_code *vm;
	struct memory *text, *memory;
	struct lua_objects *objects;
	const struct traces *traces; /* NULL without a JIT compiler */
	const struct trace *trace;   /* the trace it began in, or NULL */
	uint64_t vmstate;            /* address of g->vmstate; 0 if unknown */
	/* The current state. */
	const struct vm_instruction *instruction; /* the last or current one */
	uint64_t pc;
	struct vm_value registers[VM_REGISTERS];
	struct vm_flags flags;
	bool holds_handler; /* the register by which the VM dispatches holds what it has loaded for that */
	bool guessed;       /* a branch depended on an unknown value */
	unsigned int steps;
	unsigned int pc_set_at; /* the last step that set PC by a mov, not by going on or by a branch */
	/* the step that last left a trace: it set g->vmstate to VMST_INTERP; and BASE then */
	unsigned int interpreted_at;
	struct vm_value interpreted_base;
	size_t store_count;
	struct vm_store stores[VM_MACHINE_STORES_MAX]; /* last: see vm_machine_copy() */
};

enum vm_progress {
	VM_PROGRESS_ON,
	VM_PROGRESS_STUCK,    /* the code cannot be followed */
	VM_PROGRESS_DISPATCH, /* about to jump to the next bytecode instruction's handler */
	VM_PROGRESS_CALL_OUT, /* pc is past the call */
	VM_PROGRESS_RETURNED, /* pc is the caller's */
	VM_PROGRESS_LINKED,   /* pc is where another trace begins */
	VM_PROGRESS_JUMP_OUT, /* about to jump from the VM to elsewhere, as BC_JLOOP does to a trace */
};

/* Zero the machine, without any stores. The caller then sets the code and data, and loads the registers. */
void vm_machine_clear(struct vm_machine *machine);

void vm_machine_load_registers(struct vm_machine *machine, const struct registers *registers);

/*
 * A function that the code called has returned this: the other registers that it need not keep are
 * unknown now, by the platform's calling convention.
 */
void vm_machine_take_result(struct vm_machine *machine, uint64_t result);

/* What a function returns that returns now. */
struct vm_value vm_machine_result(const struct vm_machine *machine);

/* Unknown registers are marked in ret_registers->unknown. */
void vm_machine_save_registers(const struct vm_machine *machine, struct registers *ret_registers);

/* Copy a machine, but not the unused room for stores, which is many kilobytes. */
void vm_machine_copy(struct vm_machine *copy, const struct vm_machine *machine);

/* Load size bytes: the machine's own last store, or else captured memory or a prototype. */
struct vm_value vm_machine_load(struct vm_machine *machine, struct vm_value address, unsigned int size);

/* Ignore a store to an unknown address: frames are stored through BASE. False if there is no room. */
bool vm_machine_store(struct vm_machine *machine, struct vm_value address, unsigned int size,
		      struct vm_value value);

/* The size low bytes of a value. */
uint64_t vm_machine_mask(unsigned int size);

/* Is the address in the VM's own code? */
bool vm_machine_in_vm(const struct vm_machine *machine, uint64_t pc);

/*
 * Run one instruction; or run until the progress is not VM_PROGRESS_ON.
 * vm_machine_run() returns VM_PROGRESS_STUCK after too many steps.
 */
enum vm_progress vm_machine_step(struct vm_machine *machine);
enum vm_progress vm_machine_run(struct vm_machine *machine);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * vm_machine_x86_64: runs code of the VM on a copy of the thread that runs it.
 *
 * Registers and memory are those of the capture; what the code stores is kept
 * apart. What it computes from what is not captured is not known, and neither
 * is anything of floating point. Besides the VM's code it runs that of a trace's
 * end and of stubs. It stops where the code leaves the VM, where it can be followed
 * no further, and where the next bytecode instruction would be dispatched.
 */
#ifndef LJSPY_VM_MACHINE_X86_64_H
#define LJSPY_VM_MACHINE_X86_64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/elf/image.h"
#include "unwind/elf/registers.h"
#include "unwind/jit/traces.h"
#include "unwind/lua/lua_objects.h"
#include "unwind/native/vm_decoder_x86_64.h"

enum {
	VM_MACHINE_STORES_MAX = 512,
};

/* What is not captured, or depends on floating point, is not known; much may be computed without it. */
struct vm_value {
	uint64_t bits;
	bool known;
};

/* What was stored is kept apart: memory stays as it is. */
struct vm_store {
	uint64_t address;
	unsigned int size;
	unsigned int step;	/* that stored it */
	struct vm_value value;
};

struct vm_flags {
	bool zero, sign, carry, overflow, known;
};

struct vm_machine {
	/* What it runs, and reads. */
	struct vm_decoder *decoder;
	const struct vm_code *vm;
	struct memory *text, *memory;
	struct lua_objects *objects;
	const struct traces *traces;	/* NULL without a JIT compiler */
	const struct trace *trace;	/* the one it began in; NULL if it did not */
	uint64_t vmstate;		/* address of g->vmstate; 0 if unknown */
	/* Where it stands. */
	const struct vm_instruction *instruction;	/* the last one run, or under way */
	uint64_t pc;
	struct vm_value registers[REGISTER_COUNT];
	struct vm_flags flags;
	bool guessed;		/* a branch depended on what is not known */
	unsigned int steps;
	unsigned int pc_set_at;	/* the step at which PC was set last, other than by going on or a branch */
	unsigned int interpreted_at;	/* the step at which g->vmstate became the interpreter's, and BASE then */
	struct vm_value interpreted_base;
	size_t store_count;
	struct vm_store stores[VM_MACHINE_STORES_MAX];	/* last: see vm_machine_copy() */
};

enum vm_progress {
	VM_PROGRESS_ON,
	VM_PROGRESS_STUCK,
	VM_PROGRESS_DISPATCH,	/* about to jump to the next bytecode instruction's handler */
	VM_PROGRESS_CALL_OUT,	/* pc is past the call */
	VM_PROGRESS_RETURNED,	/* pc is the caller's */
	VM_PROGRESS_LINKED,	/* pc is where another trace begins */
};

/* Nothing is known of it, and nothing stored: what it runs and reads is to be set, then its registers. */
void vm_machine_clear(struct vm_machine *machine);

void vm_machine_load_registers(struct vm_machine *machine, const struct registers *registers);

/* Those that are not known are marked. */
void vm_machine_save_registers(const struct vm_machine *machine, struct registers *ret_registers);

/* Without the stores that it does not have: they are many kilobytes. */
void vm_machine_copy(struct vm_machine *copy, const struct vm_machine *machine);

/* What it would read: its own last store, or else what was captured. */
struct vm_value vm_machine_load(struct vm_machine *machine, struct vm_value address, unsigned int size);

/* Is the address in the VM's own code? */
bool vm_machine_in_vm(const struct vm_machine *machine, uint64_t pc);

/* One instruction; on to where it does not go on, or VM_PROGRESS_STUCK. */
enum vm_progress vm_machine_step(struct vm_machine *machine);
enum vm_progress vm_machine_run(struct vm_machine *machine);

#endif

/* SPDX-License-Identifier: MIT */
#include "unwind/vm/vm_machine.h"

#include <stddef.h>
#include <string.h>

#include "luajit-layouts/vmstate.h"
#include "unwind/lua/luajit.h"
#include "unwind/vm/vm_machine_parts.h"

enum {
	STEPS_MAX = 4096,
	WORD = 8,
};

/*---- Memory ----*/

uint64_t vm_machine_mask(unsigned int size)
{
	return size >= 8 ? UINT64_MAX : ((uint64_t)1 << (size * 8)) - 1;
}

struct vm_value vm_machine_load(struct vm_machine *machine, struct vm_value address, unsigned int size)
{
	struct vm_value value = { 0 };
	const struct proto *proto;

	if (!address.known || size > WORD)
		return value;
	for (size_t i = machine->store_count; i-- > 0;) {
		const struct vm_store *store = &machine->stores[i];

		if (store->address >= address.bits + size || address.bits >= store->address + store->size)
			continue;
		if (address.bits < store->address || address.bits + size > store->address + store->size)
			return value;
		value = store->value;
		value.bits = value.bits >> (address.bits - store->address) * 8 & vm_machine_mask(size);
		return value;
	}
	value.known = memory_read(machine->memory, address.bits, &value.bits, size) == MEMORY_OK;
	if (!value.known) {
		proto = lua_objects_proto_of_pc(machine->objects, address.bits & ~(uint64_t)3);
		value.known = proto && proto_load(proto, address.bits, &value.bits, size);
	}
	if (!value.known)
		value.bits = 0;
	return value;
}

/* Is the word at this address, which the machine has just stored, zero? */
static bool has_just_cleared(const struct vm_machine *machine, uint64_t address)
{
	const struct vm_store *last = machine->store_count ? &machine->stores[machine->store_count - 1]
							   : NULL;

	return last && last->address == address && last->value.known && last->value.bits == 0;
}

/*
 * Does the code leave a trace where it stores VMST_INTERP (vm_exit_interp)? LuaJIT's stores it there alone
 * while BASE stays. Tarantool's stores it in many places, but there right behind the zero in g->jit_base.
 */
static bool leaves_trace(struct vm_machine *machine)
{
	const struct layout *layout = &machine->vm->layout;
	uint64_t jit_base = machine->vmstate - (uint64_t)layout->g_vmstate + (uint64_t)layout->g_jit_base;
	struct vm_value before;

	if (layout->vmstates == VMSTATES_LUAJIT || has_just_cleared(machine, jit_base))
		return true;
	if (machine->store_count)
		return false;
	before = vm_machine_load(machine, (struct vm_value){ machine->vmstate, true }, sizeof(int32_t));
	return before.known && vmstate_of(layout, (int32_t)before.bits) == VMST_EXIT;
}

bool vm_machine_store(struct vm_machine *machine, struct vm_value address, unsigned int size,
		      struct vm_value value)
{
	if (!address.known)
		return true;
	if (address.bits == machine->vmstate && (int32_t)value.bits == VMST_INTERP && leaves_trace(machine)) {
		machine->interpreted_at = machine->steps;
		machine->interpreted_base = machine->registers[VM_BASE];
	}
	if (machine->store_count == VM_MACHINE_STORES_MAX)
		return false;
	if (size > WORD) {
		value = (struct vm_value){ 0 };
		size = WORD;
	}
	value.bits &= vm_machine_mask(size);
	machine->stores[machine->store_count++] = (struct vm_store){ address.bits, size, machine->steps,
								     value };
	return true;
}

/*---- Code ----*/

bool vm_machine_in_vm(const struct vm_machine *machine, uint64_t pc)
{
	return pc >= machine->vm->begin && pc < machine->vm->end;
}

/* Fetch code outside the VM: of the trace it began in, or of captured stubs. Return the number of bytes. */
static size_t fetch_generated(const struct vm_machine *machine, uint64_t pc,
			      uint8_t bytes[static VM_INSTRUCTION_BYTES_MAX])
{
	const struct trace *trace = machine->trace;
	const uint8_t *code = trace ? traces_code(machine->traces, trace) : NULL;
	size_t length = VM_INSTRUCTION_BYTES_MAX;

	if (code && pc - trace->mcode < trace->szmcode) {
		size_t left = trace->szmcode - (size_t)(pc - trace->mcode);

		length = left < length ? left : length;
		memcpy(bytes, code + (pc - trace->mcode), length);
		return length;
	}
	while (length && memory_read(machine->memory, pc, bytes, length) != MEMORY_OK)
		length--;
	return length;
}

enum vm_progress vm_machine_step(struct vm_machine *machine)
{
	uint8_t bytes[VM_INSTRUCTION_BYTES_MAX];
	size_t length = sizeof(bytes);

	if (!vm_machine_in_vm(machine, machine->pc))
		length = fetch_generated(machine, machine->pc, bytes);
	else if (memory_read(machine->text, machine->pc, bytes, length) != MEMORY_OK)
		return VM_PROGRESS_STUCK;
	machine->instruction = vm_decoder_decode(machine->decoder, machine->pc, bytes, length);
	if (!machine->instruction)
		return VM_PROGRESS_STUCK;
	machine->pc += vm_instruction_size(machine->instruction);
	machine->steps++;
	return vm_machine_run_instruction(machine);
}

enum vm_progress vm_machine_run(struct vm_machine *machine)
{
	enum vm_progress progress = VM_PROGRESS_ON;

	while (progress == VM_PROGRESS_ON && machine->steps < STEPS_MAX)
		progress = vm_machine_step(machine);
	return progress == VM_PROGRESS_ON ? VM_PROGRESS_STUCK : progress;
}

/*---- Before and after ----*/

void vm_machine_clear(struct vm_machine *machine)
{
	memset(machine, 0, offsetof(struct vm_machine, stores));
}

void vm_machine_copy(struct vm_machine *copy, const struct vm_machine *machine)
{
	memcpy(copy, machine,
	       offsetof(struct vm_machine, stores) + machine->store_count * sizeof(machine->stores[0]));
}

/* SPDX-License-Identifier: MIT */
/*
 * The code of LuaJIT's VM on its way: run by the machine on registers and a stack from the
 * input, and asked what it says of its frame.
 */
#include "tests/fuzz/fuzz.h"
#include "unwind/vm/vm_frame.h"
#include "unwind/vm/vm_machine.h"

enum { REGISTER_BYTES = 2 }; /* of the input: addresses in its memory, and a little beyond */

static struct registers take_registers(struct fuzz_input *input)
{
	struct registers registers = { .unknown = (unsigned int)fuzz_take(input, 2) };

	for (int number = 0; number < REGISTER_NUMBERS; number++) {
		uint64_t *place = registers_locate(&registers, number);
		uint64_t value = fuzz_take(input, REGISTER_BYTES);

		if (place)
			*place = FUZZ_BASE + value;
	}
	return registers;
}

static void run(struct vm_decoder *decoder, struct lua_objects *objects, const struct vm_code *vm,
		struct memory *memory, const struct registers *registers)
{
	static struct vm_machine machine; /* too large for a stack */
	struct registers after;

	vm_machine_clear(&machine);
	machine.decoder = decoder;
	machine.objects = objects;
	machine.vm = vm;
	machine.text = machine.memory = memory;
	machine.vmstate = FUZZ_BASE;
	vm_machine_load_registers(&machine, registers);
	if (vm_machine_run(&machine) == VM_PROGRESS_CALL_OUT) {
		vm_machine_take_result(&machine, FUZZ_BASE);
		vm_machine_run(&machine);
	}
	fuzz_check(machine.store_count <= VM_MACHINE_STORES_MAX, "stores have a bound");
	vm_machine_save_registers(&machine, &after);
}

static void ask_about_frames(const struct vm_code *vm, struct memory *memory,
			     const struct registers *registers)
{
	const struct layout *layout = &vm->layout;
	uint64_t cframes[VM_FRAME_CANDIDATES_MAX], thread;
	size_t count = vm_frame_candidates(layout, registers, cframes);
	struct registers caller;
	int32_t results;

	fuzz_check(count <= VM_FRAME_CANDIDATES_MAX, "candidates have a bound");
	for (size_t i = 0; i < count; i++) {
		vm_frame_thread(layout, memory, cframes[i], &thread);
		vm_frame_pc(layout, memory, cframes[i], &thread);
		vm_frame_previous(layout, memory, cframes[i], &thread);
		vm_frame_nresults(layout, memory, cframes[i], &results);
		vm_frame_caller(layout, memory, cframes[i], registers, i % 2, &caller);
		vm_frame_called(layout, memory, cframes[i], registers->sp, registers->sp + 64, &thread);
	}
}

static void ask_about_code(const struct vm_code *vm, struct memory *memory, const struct registers *registers)
{
	const struct layout *layout = &vm->layout;
	uint64_t pc = registers->pc;
	struct registers found;

	vm_is_entering_or_leaving(layout, memory, memory, registers, &found);
	vm_is_entering_or_leaving_ffi_call(vm, memory, memory, registers, &found);
	vm_find_ffi_caller(vm, memory, memory, registers, &found);
	vm_is_about_to_land(memory, registers, &found);
	vm_is_linking(memory, vm, pc);
	vm_calls_to_link(memory, vm, pc);
	vm_is_store_pending(layout, memory, pc);
	vm_is_before_next(layout, memory, pc);
	vm_call_stores_base(layout, memory, vm, pc);
	vm_call_moves_base(layout, memory, vm, pc);
	vm_is_called(memory, vm, pc);
	vm_is_exiting(layout, memory, pc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct vm_decoder *decoder;
	static struct lua_objects *objects;
	struct fuzz_input input = fuzz_input(data, size);
	struct vm_code vm = { .begin = FUZZ_BASE };
	struct registers registers;
	struct fuzz_memory mapped;

	vm.layout = *fuzz_layout(fuzz_take(&input, 1) % 2 ? LAYOUT_X64_GC32 : LAYOUT_X64_GC64);
	registers = take_registers(&input);
	mapped = fuzz_memory(&input);
	/* A half is the VM, and lj_vm_ffi_call is the next quarter; the rest is data, and the stack. */
	vm.end = vm.ffi_call = FUZZ_BASE + mapped.size / 2;
	vm.ffi_call_end = vm.ffi_call + mapped.size / 4;
	registers.pc = vm.begin + (registers.pc - FUZZ_BASE) % (mapped.size / 4 * 3 + 1);
	decoder = decoder ? decoder : vm_decoder_new();
	objects = objects ? objects : lua_objects_new();
	fuzz_check(decoder && objects, "there is memory");
	run(decoder, objects, &vm, &mapped.memory, &registers);
	ask_about_frames(&vm, &mapped.memory, &registers);
	ask_about_code(&vm, &mapped.memory, &registers);
	return 0;
}

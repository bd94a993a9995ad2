/* SPDX-License-Identifier: MIT */
/* Run the VM's code on, to where the innermost frame is consistent. */
#include "unwind/stack/vm_finish.h"

#include "unwind/capture/cframes.h"
#include "unwind/jit/traces.h"
#include "unwind/lua/luajit.h"
#include "unwind/vm/vm_frame.h"
#include "unwind/vm/vm_machine.h"

/* The step of the last store into [begin, end); 0 if there is none. */
static unsigned int stored_at(const struct vm_machine *machine, uint64_t begin, uint64_t end)
{
	for (size_t i = machine->store_count; i-- > 0;)
		if (machine->stores[i].address < end &&
		    machine->stores[i].address + machine->stores[i].size > begin)
			return machine->stores[i].step;
	return 0;
}

/* The function at BASE, or NULL. */
static const struct function_object *function_at_base(struct vm_machine *machine)
{
	bool gc64 = machine->vm->layout.gc64;
	struct vm_value address = machine->registers[VM_BASE], value;

	/* Without GC64, separate stores write the function and the frame link, the halves of a slot. */
	address.bits -= frame_slots(gc64) * SLOT_SIZE;
	value = vm_machine_load(machine, address, gc64 ? SLOT_SIZE : SLOT_SIZE / 2);
	if (!value.known || (gc64 && tvalue_tag(true, value.bits) != TAG_FUNC))
		return NULL;
	return lua_objects_function(machine->objects, gc64 ? tvalue_object(true, value.bits) : value.bits);
}

/* Does PC belong to this function, the one at BASE? For a builtin, PC says nothing. */
static bool has_position(const struct vm_machine *machine, const struct function_object *function)
{
	const struct vm_value *pc = &machine->registers[VM_PC];

	if (!function)
		return false;
	return !function->proto ||
	       (pc->known && (pc->bits == function->proto->bc ||
			      proto_contains_pc(function->proto, pc->bits - BYTECODE_SIZE)));
}

/* Does the frame link below BASE lead anywhere? A builtin's results may lie over it. */
static bool has_link(struct vm_machine *machine)
{
	bool gc64 = machine->vm->layout.gc64;
	struct vm_value address = machine->registers[VM_BASE], link;

	address.bits -= gc64 ? SLOT_SIZE : SLOT_SIZE / 2;
	link = vm_machine_load(machine, address, gc64 ? SLOT_SIZE : SLOT_SIZE / 2);
	if (!link.known)
		return false;
	if ((link.bits & FRAME_LUA_MASK) == 0)
		return lua_objects_proto_of_pc(machine->objects, link.bits - BYTECODE_SIZE) != NULL;
	return link.bits < LUA_STACK_BYTES_MAX;
}

/* Does the next dispatch follow a call, not a return: higher on the Lua stack, or on another thread's? */
static bool calls_on(const struct vm_machine *now, const struct vm_machine *then)
{
	uint64_t sp = now->registers[VM_SP].bits, then_sp = then->registers[VM_SP].bits;

	return then_sp < sp ||
	       (then_sp == sp && then->registers[VM_BASE].bits > now->registers[VM_BASE].bits);
}

/*
 * Does BASE stay that of one function from now to the next dispatch, with PC in
 * it? A Lua function's frame then stays as it is. A running builtin has yet to
 * put its result where its function is, or calls the function that comes next.
 */
static bool is_in_one_piece(struct vm_machine *now, const struct vm_machine *then)
{
	const struct function_object *function = function_at_base(now);
	uint64_t base = now->registers[VM_BASE].bits;
	uint64_t frame = base - frame_slots(now->vm->layout.gc64) * SLOT_SIZE;

	if (!has_position(now, function))
		return false;
	if (!function->proto)
		return has_link(now) && (stored_at(then, frame, frame + 1) > now->steps ||
					 (calls_on(now, then) && stored_at(then, frame, base) <= now->steps));
	return then->registers[VM_BASE].bits == base && then->pc_set_at <= now->steps &&
	       stored_at(then, frame, base) <= now->steps;
}

/* Is a return under way that does not lead to a Lua function? PC then holds the frame's type and size. */
static bool returns_elsewhere(struct vm_machine *machine)
{
	return (machine->registers[VM_PC].bits & FRAME_LUA_MASK) != 0 &&
	       !(has_position(machine, function_at_base(machine)) && has_link(machine));
}

/* Run on to where the innermost frame is consistent, at the latest to the next dispatch. False if stuck. */
static bool run_to_frame(struct vm_machine *machine, const struct vm_machine *then)
{
	while (machine->steps < then->steps && !is_in_one_piece(machine, then))
		if (vm_machine_step(machine) == VM_PROGRESS_STUCK)
			return false;
	return true;
}

static void keep_stores(const struct vm_machine *machine, struct capture *capture)
{
	for (size_t i = 0; i < machine->store_count; i++)
		snapshot_overlay(capture->snapshot, machine->stores[i].address,
				 &machine->stores[i].value.bits, machine->stores[i].size);
	capture_reload(capture);
}

/* The run ends here: its registers are those of the frame, and the capture holds what it stored. */
static void take_over(const struct vm_machine *machine, struct capture *capture,
		      struct registers *ret_registers)
{
	vm_machine_save_registers(machine, ret_registers);
	keep_stores(machine, capture);
}

static bool stores_unknown(const struct vm_machine *machine)
{
	for (size_t i = 0; i < machine->store_count; i++)
		if (!machine->stores[i].value.known)
			return true;
	return false;
}

/*
 * The way from a trace to the interpreter ends with the store of g->vmstate
 * (vm_exit_interp). PC is then that of the next instruction, so BASE stays.
 */
static bool leaves_trace(const struct vm_machine *now, const struct vm_machine *then)
{
	return !vm_machine_in_vm(now, now->pc) ||
	       (then->interpreted_at > now->steps &&
		then->interpreted_base.bits == then->registers[VM_BASE].bits);
}

/*
 * Is this about to go on in the resumer of a coroutine, in whose C frame it began? Then run to where it has
 * left that frame: what comes then may not be to follow, as where the resumer goes on in a trace.
 */
static bool run_to_resumer(struct vm_machine *machine, const struct vm_machine *then,
			   const struct capture *capture)
{
	const uint64_t begin = machine->registers[VM_SP].bits;

	while (machine->steps < then->steps && vm_machine_step(machine) != VM_PROGRESS_STUCK &&
	       !machine->guessed) {
		const struct vm_value sp = machine->registers[VM_SP];
		const struct lua_thread *thread;

		if (!sp.known || sp.bits <= begin || !vm_machine_in_vm(machine, machine->pc))
			continue;
		thread = cframe_thread(capture, machine->memory, &machine->vm->layout, sp.bits);
		if (thread && thread->cframe == sp.bits)
			return true;
	}
	return false;
}

/*
 * Has this resumed a coroutine whose frames were not copied? It goes on in the C frame of the dispatch to
 * come, and that is such a thread's.
 */
static bool has_resumed(const struct vm_machine *machine, struct vm_machine *then,
			const struct capture *capture)
{
	const struct layout *layout = &then->vm->layout;
	struct vm_value address = then->registers[VM_SP], thread;

	if (machine->registers[VM_SP].bits > address.bits)
		return false;
	address.bits += (uint64_t)layout->CFRAME_L;
	thread = vm_machine_load(then, address, layout_ref_size(layout));
	return thread.known && !capture_find_thread(capture, thread.bits);
}

/*
 * Has a return ended in a Lua function that goes on in a trace (cont_stitch)? The machine does not follow the
 * jump there, but all up to it is certain, and BASE and PC are that function's.
 */
static bool enters_trace(struct vm_machine *then, enum vm_progress progress)
{
	const struct function_object *function = function_at_base(then);

	return progress == VM_PROGRESS_JUMP_OUT && !then->guessed && function && function->proto &&
	       has_position(then, function) && has_link(then);
}

/*
 * A routine that a trace has called (lj_vm_next), and that depends on something unknown: whatever that is, it
 * returns to the trace, and it has no frame of its own.
 */
static bool returns_to_trace(const struct vm_machine *machine, const struct vm_machine *then,
			     enum vm_progress progress, const struct registers *registers,
			     struct registers *ret_caller)
{
	struct registers caller;

	if (progress != VM_PROGRESS_RETURNED || !machine->traces ||
	    !traces_find(machine->traces, then->pc - 1) ||
	    !registers_returned(registers, machine->memory, &caller) || caller.pc != then->pc)
		return false;
	*ret_caller = caller;
	return true;
}

/* The run ended at then, where it could not be followed, or depended on something unknown. */
static enum vm_finished finish_unknown(struct vm_machine *machine, struct vm_machine *then,
				       enum vm_progress progress, struct capture *capture,
				       struct registers *ret_registers)
{
	enum vm_finished unknown;

	if (!vm_machine_in_vm(machine, machine->pc))
		return VM_FINISHD_STAYS;
	if (returns_to_trace(machine, then, progress, ret_registers, ret_registers))
		return VM_FINISHD_RETURNED;
	unknown = returns_elsewhere(machine) ? VM_FINISHD_UNKNOWN : VM_FINISHD_STAYS;
	if (unknown == VM_FINISHD_UNKNOWN && enters_trace(then, progress)) {
		take_over(then, capture, ret_registers);
		return VM_FINISHD_DISPATCHES;
	}
	if (!run_to_resumer(machine, then, capture))
		return unknown;
	take_over(machine, capture, ret_registers);
	return VM_FINISHD_RETURNED;
}

static enum vm_finished finish(struct vm_machine *machine, struct capture *capture,
			       struct registers *ret_registers)
{
	struct vm_machine then;
	enum vm_progress progress;

	vm_machine_copy(&then, machine);
	progress = vm_machine_run(&then);
	if (progress == VM_PROGRESS_STUCK || progress == VM_PROGRESS_JUMP_OUT || then.guessed)
		return finish_unknown(machine, &then, progress, capture, ret_registers);
	/* A trace stores frame links from vector registers, too. Until then, rely on its snapshot. */
	if (machine->trace && stores_unknown(&then))
		return VM_FINISHD_STAYS;
	/* A trace leaves all consistent only where it leads to. */
	if (progress == VM_PROGRESS_LINKED ||
	    (progress == VM_PROGRESS_DISPATCH && leaves_trace(machine, &then))) {
		if (progress == VM_PROGRESS_DISPATCH &&
		    (!then.registers[VM_BASE].known || !then.registers[VM_PC].known))
			return VM_FINISHD_STAYS;
		take_over(&then, capture, ret_registers);
		return VM_FINISHD_DISPATCHES;
	}
	if (progress == VM_PROGRESS_DISPATCH) {
		if (!then.registers[VM_BASE].known || !then.registers[VM_PC].known ||
		    !run_to_frame(machine, &then) || machine->steps == 0 ||
		    has_resumed(machine, &then, capture))
			return VM_FINISHD_STAYS;
		take_over(machine, capture, ret_registers);
		return VM_FINISHD_DISPATCHES;
	}
	take_over(&then, capture, ret_registers);
	return progress == VM_PROGRESS_CALL_OUT ? VM_FINISHD_CALLS : VM_FINISHD_RETURNED;
}

/* The global_State whose code runs, by the trace or by DISPATCH; NULL if unknown. */
static const struct global_view *find_view(const struct capture *capture, const struct registers *registers,
					   const struct vm_code *vm)
{
	uint64_t g = vm_global_of_registers(&vm->layout, registers);

	for (size_t i = 0; i < capture->global_count; i++) {
		const struct global_view *view = &capture->globals[i];

		if (view->global->vm != vm)
			continue;
		if (view->global->g == g || capture->global_count == 1 ||
		    (view->global->traces && traces_find(view->global->traces, registers->pc)))
			return view;
	}
	return NULL;
}

enum vm_finished vm_finish(struct capture *capture, const struct vm_code *vm, struct memory *text,
			   struct lua_objects *objects, struct vm_decoder *decoder,
			   struct registers *registers)
{
	const struct global_view *view = find_view(capture, registers, vm);
	struct vm_machine machine;

	vm_machine_clear(&machine);
	machine.decoder = decoder;
	machine.vm = vm;
	machine.text = text;
	machine.memory = snapshot_memory(capture->snapshot);
	machine.objects = objects;
	if (view) {
		machine.traces = view->global->traces;
		machine.vmstate = view->global->g + (uint64_t)vm->layout.g_vmstate;
	}
	if (machine.traces)
		machine.trace = traces_find(machine.traces, registers->pc);
	vm_machine_load_registers(&machine, registers);
	return finish(&machine, capture, registers);
}

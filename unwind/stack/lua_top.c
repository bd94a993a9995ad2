/* SPDX-License-Identifier: MIT */
/* The rules by which to find the innermost Lua frame. */
#include "unwind/stack/lua_top.h"

#include "luajit-layouts/bytecode.h"
#include "unwind/jit/traces.h"
#include "unwind/lua/luajit.h"
#include "unwind/vm/vm_frame.h"

/* Begin a walk at base and get the activation there; false if there is none. */
static bool begin_walk(const struct lua_running *running, uint64_t base, struct lua_walk *walk,
		       struct lua_activation *ret_activation)
{
	*walk = (struct lua_walk){ .thread = running->thread, .objects = running->objects, .base = base };
	return lua_thread_contains_base(running->thread, base) && lua_walk_activation(walk, ret_activation);
}

/* The instruction that runs; pc is the interpreter's PC, which is past it. False if proto lacks it. */
static bool find_instruction(const struct lua_thread *thread, const struct proto *proto, uint64_t pc,
			     uint64_t *ret_pc)
{
	const struct trace *trace;

	pc &= ~(uint64_t)1; /* vm_hotcall marks it */
	if (pc == proto->bc) {
		*ret_pc = pc;
		return true;
	}
	if (proto_contains_pc(proto, pc - BYTECODE_SIZE)) {
		*ret_pc = pc - BYTECODE_SIZE;
		return true;
	}
	/* Until August 2023 LuaJIT ran a return that had become a trace's start from the trace's copy. */
	trace = thread->global->traces ? traces_find_startins(thread->global->traces, thread->layout, pc)
				       : NULL;
	if (trace && proto_contains_pc(proto, trace->startpc)) {
		*ret_pc = trace->startpc;
		return true;
	}
	return false;
}

/*
 * PC behind the BC_UCLO that has jumped to pc, and now closes upvalues. If several jump there, which one runs
 * is not known: then PC as it is once the next instruction is fetched.
 */
static uint64_t behind_jump(const struct lua_running *running, uint64_t pc)
{
	const struct proto *proto = lua_objects_proto_of_pc(running->objects, pc);
	uint64_t found = 0;
	uint32_t instruction;

	for (uint32_t i = 0; proto && i < proto->sizebc; i++) {
		uint64_t next = proto->bc + (i + 1) * (uint64_t)BYTECODE_SIZE;

		if (!proto_instruction(proto, next - BYTECODE_SIZE, &instruction) ||
		    bytecode_op(running->thread->layout, (uint8_t)instruction) != BC_UCLO ||
		    next + (uint64_t)(int64_t)bytecode_j(instruction) * BYTECODE_SIZE != pc)
			continue;
		if (found)
			return pc + BYTECODE_SIZE;
		found = next;
	}
	return found ? found : pc + BYTECODE_SIZE;
}

/* The caller rule of lua_walk_find_caller(): by pc, or the link that was there instead. */
static bool find_caller(const struct lua_running *running, uint64_t base, uint64_t pc,
			struct lua_walk *ret_walk)
{
	return lua_walk_find_caller(running->thread, running->objects, base, pc, ret_walk);
}

/* The callee's result lies over the builtin that called it and is almost done: find the builtin's caller. */
static bool find_caller_by_link(const struct lua_running *running, uint64_t base, struct lua_walk *ret_walk)
{
	uint64_t link;

	return lua_thread_contains_base(running->thread, base) &&
	       lua_thread_link(running->thread, base, &link) && find_caller(running, base, link, ret_walk);
}

/* Does the frame's link lead anywhere? */
static bool is_linked(const struct lua_walk *walk)
{
	struct lua_walk below = *walk;

	return lua_walk_step(&below) != LUA_STEP_BROKEN;
}

/* By L->base; the position is pc if it belongs to that function, else the one saved last. */
static bool top_as_stored(const struct lua_running *running, uint64_t pc, struct lua_walk *ret_walk)
{
	const struct lua_thread *thread = running->thread;
	struct lua_activation activation;
	struct lua_walk walk;
	uint64_t saved;

	if (!begin_walk(running, thread->base, &walk, &activation))
		return find_caller_by_link(running, thread->base, ret_walk) ||
		       find_caller(running, thread->base, pc, ret_walk);
	/* A builtin's fallback wrote a result over its own link, which the VM keeps in PC. */
	if (!is_linked(&walk) && find_caller(running, thread->base, pc, ret_walk))
		return true;
	if (activation.function && activation.function->proto) {
		const struct proto *proto = activation.function->proto;

		/* The VM calls hooks and the recorder before it saves their instruction's position. */
		if (!find_instruction(thread, proto, pc, &walk.pc) &&
		    (!vm_frame_pc(thread->layout, running->stack, running->cframe, &saved) ||
		     !find_instruction(thread, proto, saved, &walk.pc)))
			/* lj_ccallback_enter() saves it last. */
			walk.pc = lua_walk_is_callback(&walk) ? proto->bc : 0;
	}
	*ret_walk = walk;
	return true;
}

bool lua_top_as_stored(const struct lua_running *running, struct lua_walk *ret_walk)
{
	return top_as_stored(running, 0, ret_walk);
}

bool lua_top_by_registers(const struct lua_running *running, const struct vm_registers *vm,
			  struct lua_walk *ret_walk)
{
	const struct lua_thread *thread = running->thread;
	struct lua_activation activation;
	struct lua_walk walk;

	if (begin_walk(running, vm->base, &walk, &activation)) {
		const struct proto *proto = activation.function ? activation.function->proto : NULL;

		/*
		 * Without GC64, getmetatable() writes a result over its own link, which the VM keeps in PC.
		 */
		if (!proto && !is_linked(&walk) && find_caller(running, vm->base, vm->pc, ret_walk))
			return true;
		if (!proto || find_instruction(thread, proto, vm->pc, &walk.pc)) {
			*ret_walk = walk;
			return true;
		}
	}
	if (find_caller(running, vm->base, vm->pc, ret_walk))
		return true;
	/* On a return to C, vm_return keeps the previous base in PC. */
	if (begin_walk(running, vm->pc, &walk, &activation)) {
		walk.is_below_c = true;
		*ret_walk = walk;
		return true;
	}
	/* Back from a call that did not store L->base: BASE is about to be restored. */
	if (begin_walk(running, vm->kept_base, &walk, &activation) && activation.function) {
		if (activation.function->proto)
			find_instruction(thread, activation.function->proto, vm->pc, &walk.pc);
		*ret_walk = walk;
		return true;
	}
	return top_as_stored(running, vm->pc, ret_walk);
}

bool lua_top_in_vm(const struct lua_running *running, struct image *image, const struct registers *registers,
		   struct lua_walk *ret_walk)
{
	const struct layout *layout = running->thread->layout;
	struct vm_registers vm = vm_registers(registers);

	if (vm_jumps_before_call(image_text(image), registers->pc))
		vm.pc = behind_jump(running, vm.pc);
	else if (vm_is_before_next(layout, image_text(image), registers->pc))
		vm.pc += BYTECODE_SIZE;
	if (vm_is_store_pending(layout, image_text(image), registers->pc))
		return find_caller(running, vm.base, vm.pc, ret_walk);
	return lua_top_by_registers(running, &vm, ret_walk);
}

bool lua_top_below_native(const struct lua_running *running, struct image *image,
			  const struct registers *frame, struct lua_walk *ret_walk)
{
	const struct lua_thread *thread = running->thread;
	struct vm_registers vm = vm_registers(frame);
	struct memory *text = image_text(image);
	struct lua_activation activation;
	const struct module *module;
	struct lua_walk walk;

	if (image_classify(image, frame->pc - 1, &module) != CODE_VM)
		return false;
	if (!vm_registers_are_known(frame)) {
		if (!vm_call_stores_base(thread->layout, text, module->vm, frame->pc))
			return false;
		return top_as_stored(running, 0, ret_walk);
	}
	if (vm_jumps_before_call(text, frame->pc))
		vm.pc = behind_jump(running, vm.pc);
	/*
	 * A call that stores L->base has L in this register or the first argument's; others keep BASE in it.
	 */
	if (vm.kept_base != thread->address && lua_thread_contains_base(thread, vm.kept_base) &&
	    !vm_call_moves_base(thread->layout, text, module->vm, frame->pc)) {
		if (!begin_walk(running, vm.kept_base, &walk, &activation) || !is_linked(&walk)) {
			/*
			 * next() has lj_tab_next() write over its own function and link, which the VM keeps
			 * in PC.
			 */
			if (find_caller_by_link(running, vm.kept_base, ret_walk) ||
			    find_caller(running, vm.kept_base, vm.pc, ret_walk))
				return true;
		} else if (activation.function &&
			   (!activation.function->proto ||
			    find_instruction(thread, activation.function->proto, vm.pc, &walk.pc))) {
			*ret_walk = walk;
			return true;
		}
	}
	return top_as_stored(running, vm.pc, ret_walk);
}

bool lua_top_leaving_trace(const struct lua_running *running, const struct registers *registers,
			   struct lua_walk *ret_walk)
{
	struct vm_registers vm = vm_registers(registers);
	struct lua_activation activation;
	struct lua_walk walk;

	if (!begin_walk(running, vm.base, &walk, &activation) || !activation.function ||
	    !activation.function->proto || !proto_contains_pc(activation.function->proto, vm.pc))
		return false;
	walk.pc = vm.pc;
	*ret_walk = walk;
	return true;
}

void lua_top_resume(struct lua_walk *walk, struct memory *stack, uint64_t cframe)
{
	struct lua_activation activation;
	uint64_t saved;

	if (walk->pc == 0 && lua_walk_activation(walk, &activation) && activation.function &&
	    activation.function->proto && vm_frame_pc(walk->thread->layout, stack, cframe, &saved))
		find_instruction(walk->thread, activation.function->proto, saved, &walk->pc);
}

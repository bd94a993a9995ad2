/* SPDX-License-Identifier: MIT */
/* Stacks of a process: copied, and unwound from the copy. */
#include "src/inspect/lua_process_parts.h"

#include <errno.h>

#include "src/linux/tracer/thread_registers.h"
#include "unwind/allocation/collector_look.h"
#include "unwind/lua/lua_names.h"
#include "unwind/stack/merge_lua.h"
#include "unwind/stack/merge_state.h"

enum { CAPTURES_MAX = 3 }; /* per sample: one state within another may lead to the next */

static struct capture_process capture_process(const struct lua_process *process)
{
	return (struct capture_process){
		.places = process->places,
		.live = process->memory,
		.lua = process->lua,
		.objects = process->objects,
		.snapshot = process->snapshot,
		.values = process->values,
		.only_near_values = !process->wants_variables && process->options.errors != ERRORS_VALUES,
	};
}

bool lua_process_wants_rehearsal(const struct capture_hints *hints)
{
	return hints->sp != 0 && hints->reads > 1;
}

void lua_process_rehearse(struct lua_process *process, struct capture_hints *hints)
{
	const struct capture_process shared = capture_process(process);

	snapshot_clear(process->snapshot);
	capture_rehearse(&process->capture, &shared, hints);
}

/*
 * The kernel maps the first thread's stack. C libraries put thread-local storage at the end of any other's.
 */
static uint64_t find_own_stack(const struct lua_process *process, const struct registers *registers,
			       pid_t tid)
{
	uint64_t address;

	if (process->core || tid == 0 || tid == process->pid)
		return tid == process->pid ? lua_process_first_stack(process) : 0;
	address = own_stack_address(tid);
	return address ? address : registers->thread_pointer;
}

/* The thread's own stack if it runs on another one; else empty. */
static struct memory_range own_stack(const struct lua_process *process, const struct registers *registers,
				     struct capture_hints *hints)
{
	const struct mapping *own;
	uint64_t end;

	if (!hints->on_own_stack)
		hints->on_own_stack = find_own_stack(process, registers, hints->tid);
	own = hints->on_own_stack ? maps_find(process->maps, hints->on_own_stack) : NULL;
	if (!own)
		return (struct memory_range){ 0 };
	/* What the mapping has beyond the end of a stack that the kernel did not map may be another stack. */
	end = hints->tid == process->pid ? own->end : hints->on_own_stack;
	if (registers->sp >= own->begin && registers->sp < end)
		return (struct memory_range){ 0 };
	return (struct memory_range){ .address = own->begin, .length = (size_t)(end - own->begin) };
}

void lua_process_capture(struct lua_process *process, const struct registers *registers,
			 struct capture_hints *hints)
{
	const struct capture_process shared = capture_process(process);

	hints->own_stack = own_stack(process, registers, hints);
	for (unsigned i = 0; i < CAPTURES_MAX; i++) {
		snapshot_clear(process->snapshot);
		capture_thread(&process->capture, &shared, registers, hints);
		if (process->core || !process_take_up_running(process))
			break;
	}
	process_capture_details(process, hints);
}

/*
 * The stack of the only thread. A state that it runs may have its frames on another stack, if no other one
 * runs.
 */
static struct native_stack only_stack(const struct lua_process *process)
{
	const struct mapping *mapping = maps_find_path(process->maps, "[stack]");
	struct native_stack stack = { .range = { .address = 0, .length = SIZE_MAX } };

	if (mapping)
		stack.sure = (struct memory_range){ .address = mapping->begin,
						    .length = mapping->end - mapping->begin };
	return stack;
}

enum capture_verdict lua_process_capture_running(struct lua_process *process, const struct stack_place *place,
						 bool lacks_native, struct capture_hints *hints)
{
	const struct mapping *mapping = place->address ? maps_find(process->maps, place->address) : NULL;
	const struct capture_process shared = capture_process(process);
	struct native_stack stack = only_stack(process);
	enum capture_verdict verdict;

	/* The thread may be newer than the last refresh. */
	process->wants_refresh = place->address && !mapping;
	if (process->wants_refresh)
		return CAPTURE_NO_LUA;
	if (mapping && !stack_states_bound(mapping, place, &stack))
		return CAPTURE_UNSURE;
	hints->own_stack = (struct memory_range){ 0 };
	process_forget_details(process);
	do {
		snapshot_clear(process->snapshot);
		verdict = capture_running(&process->capture, &shared, process->memory, &stack, hints);
	} while (verdict == CAPTURE_NO_LUA &&
		 process_take_up_on_stack(process, mapping ? &stack.range : &stack.sure));
	process->lacks_native = lacks_native;
	process->wants_search |= verdict == CAPTURE_NO_LUA;
	return verdict;
}

uint64_t lua_process_first_stack(const struct lua_process *process)
{
	const struct mapping *mapping = maps_find_path(process->maps, "[stack]");

	return mapping ? mapping->begin : 0;
}

void lua_process_forget_functions(struct lua_process *process)
{
	namer_forget_names(process->namer);
}

void lua_process_add_roots(const struct lua_process *process, char *list, size_t size)
{
	namer_add_roots(process->namer, list, size);
}

static int name_stack(struct lua_process *process, bool runs, const struct frame **ret_frames,
		      size_t *ret_count)
{
	int error = namer_name(process->namer, &process->stack, ret_frames, ret_count);

	return error ? error : process_add_details(process, runs, ret_frames, ret_count);
}

static void settle_requests(struct lua_process *process)
{
	struct capture *capture = &process->capture;

	if (capture->has_request_context && capture->request.address)
		stack_requests_note(process->places, capture->request.address);
	stack_requests_settle(process->memory, lua_process_request_members(process), process->places,
			      &capture->on_stack);
}

int lua_process_unwind(struct lua_process *process, const struct frame **ret_frames, size_t *ret_count,
		       enum vm_state *ret_state)
{
	int error;

	error = process->capture.running ? merge_running(&process->capture, process->objects,
							 process->lacks_native, &process->stack)
					 : merge_stacks(&process->capture, process->image, process->objects,
							process->native, process->decoder, &process->stack);
	if (process->places)
		settle_requests(process);
	if (error)
		return error;
	if (!process->capture.running) {
		process_weigh_stack(process);
		process_note_unknown(process);
	}
	*ret_state = process->stack.vm_state;
	return name_stack(process, true, ret_frames, ret_count);
}

const struct merged_stack *lua_process_stack(const struct lua_process *process)
{
	return &process->stack;
}

bool lua_process_note_unwound(const struct lua_process *process, struct capture_hints *hints)
{
	capture_note_frames_end(&process->capture, process->stack.native_end, hints);
	return capture_note_passing(&process->capture, process->stack.passes_copy, hints);
}

/* Find the requests that the coroutines work for while nothing runs; none for those that have ended. */
static void capture_requests(struct lua_process *process)
{
	const struct request_layout *layout = lua_image_request_layout(process->lua);
	struct memory_range ranges[REQUEST_RANGES];
	struct request_coroutines coroutines;

	request_coroutines_begin(&coroutines);
	for (size_t i = 0; layout->known && i < process->capture.thread_count; i++) {
		struct lua_thread *thread = &process->capture.threads[i];
		struct request_context context;

		capture_note_request(process->memory, layout, thread);
		thread->has_request_context = true;
		thread->request_context = 0;
		if (request_context(process->memory, layout, thread->exdata, ranges, &context) &&
		    request_has_coroutine(process->memory, layout, &context, thread->address, thread->exdata2,
					  &coroutines))
			thread->request_context = context.phase;
	}
}

void lua_process_capture_coroutines(struct lua_process *process, size_t global, const uint64_t *addresses,
				    size_t count)
{
	const struct capture_process shared = capture_process(process);

	process_forget_details(process);
	snapshot_clear(process->snapshot);
	capture_coroutines(&process->capture, &shared, lua_image_global(process->lua, global), addresses,
			   count);
	capture_requests(process);
}

size_t lua_process_coroutine_count(const struct lua_process *process)
{
	return process->capture.thread_count;
}

uint64_t lua_process_coroutine_address(const struct lua_process *process, size_t index)
{
	return process->capture.threads[index].address;
}

/*
 * Has native code left the coroutine's C stack for the one that runs? A coroutine that has resumed another
 * shares a stack with it. Whatever is on the first thread's stack is in that thread's frames.
 */
static bool is_parked(const struct lua_process *process, const struct lua_thread *thread, uint64_t cur_L)
{
	const struct mapping *own = maps_find(process->maps, thread->cframe), *running;
	uint64_t cframe = 0;

	if (!own || own->begin == lua_process_first_stack(process) ||
	    memory_read(process->memory, cur_L + (uint64_t)thread->layout->L_cframe, &cframe,
			sizeof(cframe)) != MEMORY_OK)
		return false;
	running = maps_find(process->maps, cframe);
	return running && running != own;
}

enum coroutine_state lua_process_coroutine_state(const struct lua_process *process, size_t index)
{
	const struct capture *capture = &process->capture;
	const struct lua_thread *thread = &capture->threads[index];
	const uint64_t cur_L = capture->global_count ? capture->globals[0].cur_L : 0;
	enum coroutine_state state = lua_thread_state(thread, cur_L);

	return state == COROUTINE_NORMAL && is_parked(process, thread, cur_L) ? COROUTINE_PARKED : state;
}

int lua_process_unwind_coroutine(struct lua_process *process, size_t index, const struct frame **ret_frames,
				 size_t *ret_count)
{
	const struct lua_thread *thread = &process->capture.threads[index];
	int error = merge_coroutine(&process->capture, index, process->objects, &process->stack);

	process->capture.has_request_context = thread->has_request_context;
	process->capture.request_context = thread->request_context;
	return error ? error : name_stack(process, false, ret_frames, ret_count);
}

/* The frame of the trace that runs; NULL if none does. */
static const struct merged_frame *running_trace(const struct merged_stack *stack)
{
	/*
	 * Only native code may lie above the trace: above Lua frames, the trace does not run but has called.
	 */
	for (size_t i = 0; i < stack->count; i++) {
		if (stack->frames[i].kind == MERGED_TRACE)
			return &stack->frames[i];
		if (stack->frames[i].kind != MERGED_NATIVE && stack->frames[i].kind != MERGED_VM)
			return NULL;
	}
	return NULL;
}

const struct trace *lua_process_trace(const struct lua_process *process)
{
	const struct merged_frame *frame = running_trace(&process->stack);

	return frame ? frame->trace : NULL;
}

uint64_t lua_process_trace_g(const struct lua_process *process)
{
	const struct merged_frame *frame = running_trace(&process->stack);

	return frame && frame->global ? frame->global->g : 0;
}

uint64_t lua_process_code_pc(const struct lua_process *process)
{
	const struct merged_stack *stack = &process->stack;
	const struct merged_frame *trace = running_trace(stack);

	if (trace)
		return trace->is_return_address ? trace->pc - 1 : trace->pc;
	for (size_t i = 0; i < stack->count; i++)
		if (stack->frames[i].kind == MERGED_LUA)
			return stack->frames[i].compiled ? 0 : stack->frames[i].pc;
	return 0;
}

uint64_t lua_process_proto(const struct lua_process *process)
{
	const struct merged_stack *stack = &process->stack;

	/* LuaJIT's own functions in Lua are builtins. */
	for (size_t i = 0; i < stack->count; i++)
		if (stack->frames[i].kind == MERGED_LUA && !lua_is_builtin(stack->frames[i].proto))
			return stack->frames[i].proto->address;
	return 0;
}

struct sample_gc lua_process_gc(const struct lua_process *process, uint64_t now_ns, uint64_t cpu_ns)
{
	const struct global_view *view = merge_innermost_view(&process->capture);
	struct sample_gc gc = merge_gc(&process->capture, process->stack.vm_state);

	if (view && process->stack.vm_state != VM_STATE_NONE)
		collector_look_add(snapshot_memory(process->capture.snapshot), view->global, now_ns, cpu_ns,
				   &gc);
	return gc;
}

const char *lua_process_phase(const struct lua_process *process)
{
	const struct merged_stack *stack = &process->stack;

	if (process->capture.has_request_context)
		return request_phase(process->capture.request_context);
	/* Without it, the name of the innermost chunk tells, if it is in the configuration. */
	for (size_t i = 0; i < stack->count; i++)
		if (stack->frames[i].kind == MERGED_LUA && lua_is_main_chunk(stack->frames[i].proto))
			return request_phase_of_chunk(stack->frames[i].proto->chunkname);
	return NULL;
}

int lua_process_want_values(struct lua_process *process)
{
	if (!process->values)
		process->values = value_capture_new();
	process->wants_variables = process->values != NULL;
	return process->values ? 0 : -ENOMEM;
}

bool lua_process_wants_values(const struct lua_process *process)
{
	return process->wants_variables;
}

int lua_process_variables(struct lua_process *process, size_t frame, struct variables *variables)
{
	const struct value_source source = {
		.capture = &process->capture,
		.live = process->memory,
		.namer = process->namer,
	};
	size_t index = namer_merged_index(process->namer, frame);

	if (!process->wants_variables || index == NAMER_NO_FRAME)
		return 0;
	return frame_values(&source, &process->stack, index, variables);
}

const struct function *lua_process_function(struct lua_process *process, size_t global,
					    const struct function_object *function)
{
	return namer_function(process->namer, lua_image_global(process->lua, global), function);
}

bool lua_process_allocation(struct lua_process *process, struct allocation *ret_allocation)
{
	const struct allocation_source source = {
		.capture = &process->capture,
		.image = process->image,
		.objects = process->objects,
		.native = process->native,
		.decoder = process->decoder,
	};

	return !process->capture.running && allocation_in_flight(&source, ret_allocation);
}

struct memory *lua_process_copy(const struct lua_process *process)
{
	return snapshot_memory(process->capture.snapshot);
}

bool lua_process_in_native(const struct lua_process *process)
{
	const struct module *module;

	return image_classify(process->image, process->capture.registers.pc, &module) == CODE_NATIVE;
}

size_t lua_process_captured_count(const struct lua_process *process)
{
	return process->capture.global_count;
}

const struct global_state *lua_process_captured(const struct lua_process *process, size_t index)
{
	return process->capture.globals[index].global;
}

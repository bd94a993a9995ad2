/* SPDX-License-Identifier: MIT */
/* Which Lua threads run on a native stack, by their C frames on it. */
#include "unwind/capture/capture_parts.h"

#include "unwind/capture/cframe_search.h"
#include "unwind/lua/luajit.h"
#include "unwind/vm/vm_frame.h"

enum {
	OUTSIDE_BYTES = 8 << 10,       /* of native stack to copy outside of all Lua: event loops are deep */
	FAR_OUTSIDE_BYTES = 128 << 10, /* the same if that was too little: libuv's has an array of 12 KiB */
	FAR_TRIES = 8,                 /* of 256 walks for which that is too little as well */
	SEEK_BYTES = 64 << 10,         /* to search for Lua's frames: PCRE's JIT works on 32 KiB */
};

/*
 * Add the thread if it runs on this native stack: its innermost C frame lies there.
 * Main threads and coroutines that do not run have none. Returns the captured
 * thread; NULL if it is none of these.
 */
static const struct lua_thread *add_thread(struct capture *capture, struct capture_hints *hints,
					   struct global_state *global, uint64_t address)
{
	const struct layout *layout = &global->vm->layout;
	const struct lua_thread *known = capture_find_thread(capture, address);
	struct lua_thread thread;
	uint8_t bytes[LUA_STATE_BYTES_MAX];

	if (known)
		return known;
	if (address < PAGE_SIZE || !may_be_object(layout->gc64, address) ||
	    capture->thread_count == CAPTURE_THREADS_MAX)
		return NULL;
	if (memory_read(snapshot_memory(capture->snapshot), address, bytes, (size_t)layout->L_size) !=
		    MEMORY_OK ||
	    !lua_thread_load(&thread, global, address, bytes))
		return NULL;
	/* A thread with no C frame may be in the first or last instructions of a call from C. */
	if (thread.cframe && !capture_reach_stack(capture, hints, thread.cframe, (size_t)layout->CFRAME_size))
		return NULL;
	capture->threads[capture->thread_count] = thread;
	return &capture->threads[capture->thread_count++];
}

/*
 * Add the thread whose innermost C frame is the next one further up the native
 * stack. The frame's SAVE_L points to the thread, and L->cframe to the frame.
 */
static const struct lua_thread *find_thread_above(struct capture *capture, struct capture_hints *hints,
						  struct global_state *global, uint64_t above)
{
	struct cframe_search search = cframe_search(capture->snapshot, lua_image_code(capture->lua),
						    &global->vm->layout, above,
						    capture_stack_end(capture, above));
	uint64_t cframe, address;

	while (cframe_search_next(&search, &cframe, &address)) {
		const struct lua_thread *thread = add_thread(capture, hints, global, address);

		if (thread && thread->cframe == cframe)
			return thread;
		cframe_search_until(&search, capture_stack_end(capture, above));
	}
	return NULL;
}

/* Follow a thread's C frames outwards, and those of its resumers; move outermost to where they end. */
static void follow_cframes(struct capture *capture, struct capture_hints *hints,
			   const struct lua_thread *thread, uint64_t *outermost)
{
	const struct layout *layout = &thread->global->vm->layout;
	uint64_t cframe = thread->cframe;

	for (unsigned i = 0; i < CFRAMES_MAX && cframe; i++) {
		uint64_t end = cframe + (uint64_t)layout->CFRAME_size;
		uint64_t previous, return_address, resumer;

		capture_reach_stack(capture, hints, cframe, (size_t)layout->CFRAME_size);
		if (end > *outermost && !capture_on_own_stack(capture, cframe))
			*outermost = end;
		if (!capture_stack_word(capture, cframe + (uint64_t)layout->CFRAME_PREV, &previous))
			return;
		previous &= ~(uint64_t)CFRAME_FLAGS;
		if (previous) {
			if (!capture_leads_outwards(capture, cframe, previous))
				return;
			cframe = previous;
			continue;
		}
		if (!capture_stack_word(capture, end - sizeof(uint64_t), &return_address))
			return;
		if (image_classify(lua_image_code(capture->lua), return_address, NULL) == CODE_VM) {
			if (!vm_frame_thread(layout, snapshot_memory(capture->snapshot), end, &resumer))
				return;
			thread = add_thread(capture, hints, thread->global, resumer);
			cframe = end;
		} else {
			/*
			 * C resumed it, or called the main thread: another thread's frame may lie further up.
			 */
			thread = find_thread_above(capture, hints, thread->global, end);
			cframe = thread ? thread->cframe : 0;
		}
		if (!thread)
			return;
	}
}

/*
 * coroutine.resume and similar builtins pass the coroutine in CARG1, and keep the one
 * that has just left in PC while they take its results.
 */
static void add_switching_threads(struct capture *capture, struct capture_hints *hints,
				  const struct vm_code *vm)
{
	const struct vm_registers registers = vm_registers(&capture->registers);

	for (size_t u = 0; u < capture->global_count; u++) {
		struct global_state *global = capture->globals[u].global;

		if (global->vm != vm)
			continue;
		add_thread(capture, hints, global, registers.pc);
		add_thread(capture, hints, global, registers.argument);
	}
}

/*
 * Is this the frame of a thread that is already copied, and does its L->cframe
 * agree? Then no other candidate is the frame, and none is worth reading.
 */
static bool add_frame_owner(struct capture *capture, struct capture_hints *hints, const struct vm_code *vm,
			    uint64_t cframe)
{
	uint64_t address;

	if (!vm_frame_thread(&vm->layout, snapshot_memory(capture->snapshot), cframe, &address) ||
	    !snapshot_view(capture->snapshot, address, (size_t)vm->layout.L_size))
		return false;
	for (size_t u = 0; u < capture->global_count; u++) {
		const struct lua_thread *thread;

		if (capture->globals[u].global->vm != vm)
			continue;
		thread = add_thread(capture, hints, capture->globals[u].global, address);
		if (thread && thread->cframe == cframe)
			return true;
	}
	return false;
}

/* Where the interpreter itself runs: add the threads that may own its C frame. */
static void add_interpreted_threads(struct capture *capture, struct capture_hints *hints,
				    const struct vm_code *vm)
{
	uint64_t candidates[VM_FRAME_CANDIDATES_MAX];
	size_t count = vm_frame_candidates(&vm->layout, &capture->registers, candidates);

	for (size_t i = 0; i < VM_FRAME_CANDIDATES_WHOLE; i++)
		if (add_frame_owner(capture, hints, vm, candidates[i]))
			return;
	/* If a coroutine is about to end or yield, its resumer's frame is the next one. */
	for (size_t i = 0; i < 2 * count; i++) {
		uint64_t cframe = i < count ? candidates[i]
					    : candidates[i - count] + (uint64_t)vm->layout.CFRAME_size;
		uint64_t address;

		if (!vm_frame_thread(&vm->layout, snapshot_memory(capture->snapshot), cframe, &address))
			continue;
		for (size_t u = 0; u < capture->global_count; u++)
			if (capture->globals[u].global->vm == vm)
				add_thread(capture, hints, capture->globals[u].global, address);
	}
}

static uint64_t main_thread(const struct capture *capture, const struct global_state *global)
{
	const struct layout *layout = &global->vm->layout;
	uint64_t address = 0;

	if (memory_read(snapshot_memory(capture->snapshot), global->g + (uint64_t)layout->g_mainthref,
			&address, layout_ref_size(layout)) != MEMORY_OK)
		return 0;
	return address;
}

/* The innermost C frame of a thread; 0 if there is none. */
static uint64_t thread_cframe(const struct capture *capture, const struct global_state *global,
			      uint64_t thread)
{
	uint64_t cframe = 0;

	if (!thread || !memory_u64(snapshot_memory(capture->snapshot),
				   thread + (uint64_t)global->vm->layout.L_cframe, &cframe))
		return 0;
	return cframe & ~(uint64_t)CFRAME_FLAGS;
}

/* How far to copy the native stack to find Lua's frames if the first copy has none. */
static uint64_t seek_end(const struct capture *capture, const struct capture_hints *hints,
			 const struct global_state *global)
{
	uint64_t cframe = thread_cframe(capture, global, main_thread(capture, global));

	return cframe > capture->stack_begin && cframe < capture_stack_limit(capture, hints)
		       ? cframe + PAGE_SIZE
		       : capture->stack_begin + SEEK_BYTES;
}

/*
 * The global_State does not say which of its threads runs, but its frames on the native
 * stack do. If native code has put much on top of them, extend the copy first.
 */
static void find_running_thread(struct capture *capture, struct capture_hints *hints,
				struct global_state *global)
{
	if (find_thread_above(capture, hints, global, capture->stack_begin))
		return;
	capture_extend_stack(capture, hints, seek_end(capture, hints, global));
	find_thread_above(capture, hints, global, capture->stack_begin);
}

/* The innermost of a thread's C frames on this stack; 0 if none is there. */
static uint64_t cframe_on(const struct capture *capture, const struct memory_range *stack,
			  const struct global_state *global, uint64_t thread)
{
	uint64_t cframe = thread_cframe(capture, global, thread);

	for (unsigned i = 0; i < CFRAMES_MAX && cframe; i++) {
		if (cframe - stack->address < stack->length)
			return cframe;
		if (!vm_frame_previous(&global->vm->layout, snapshot_memory(capture->snapshot), cframe,
				       &cframe))
			return 0;
	}
	return 0;
}

/* The innermost C frame on the thread's own stack, of each global_State's current and main thread. */
static uint64_t innermost_on_own_stack(const struct capture *capture, const struct memory_range *own)
{
	uint64_t innermost = UINT64_MAX;

	for (size_t u = 0; u < capture->global_count; u++) {
		const struct global_view *view = &capture->globals[u];
		const uint64_t threads[] = { view->cur_L, main_thread(capture, view->global) };

		for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++) {
			uint64_t cframe = cframe_on(capture, own, view->global, threads[i]);

			if (cframe && cframe < innermost)
				innermost = cframe;
		}
	}
	return innermost;
}

/* Copy it from the native code on top of the innermost C frame to what is outside of all Lua. */
static void reach_own_stack(struct capture *capture, const struct memory_range *own)
{
	uint64_t innermost = innermost_on_own_stack(capture, own);

	if (innermost != UINT64_MAX)
		capture_own_stack(capture, own, innermost - CAPTURE_STACK_BYTES, innermost + SEEK_BYTES);
}

/* How much of the native stack to copy if Lua has so much of it. */
static size_t copy_bytes(size_t lua_bytes, bool reaches_far)
{
	const size_t bytes = lua_bytes + (reaches_far ? FAR_OUTSIDE_BYTES : OUTSIDE_BYTES);

	return bytes < CAPTURE_STACK_BYTES ? CAPTURE_STACK_BYTES : bytes;
}

void capture_threads(struct capture *capture, struct capture_hints *hints)
{
	uint64_t outermost = capture->stack_begin;
	const struct module *module;

	if (hints->own_stack.length)
		reach_own_stack(capture, &hints->own_stack);
	if (image_classify(lua_image_code(capture->lua), capture->registers.pc, &module) == CODE_VM) {
		add_interpreted_threads(capture, hints, module->vm);
		add_switching_threads(capture, hints, module->vm);
	}
	for (size_t u = 0; u < capture->global_count; u++) {
		const struct global_view *view = &capture->globals[u];

		if (view->cur_L)
			add_thread(capture, hints, view->global, view->cur_L);
		else if (view->global->vm->layout.g_cur_L == LAYOUT_ABSENT)
			find_running_thread(capture, hints, view->global);
	}
	for (size_t u = 0; u < capture->global_count && capture->own_end; u++)
		find_thread_above(capture, hints, capture->globals[u].global, capture->own_begin);
	/* The list grows during the loop; each thread is followed once. */
	for (size_t i = 0; i < capture->thread_count; i++) {
		const struct lua_thread *thread = &capture->threads[i];

		if (thread->cframe)
			follow_cframes(capture, hints, thread, &outermost);
		else if (thread->status > LUA_YIELD) /* an error has just ended it: see merge_vm.c */
			find_thread_above(capture, hints, thread->global, capture->stack_begin);
	}
	/* Copy what lies outside of all Lua, too; the next time with the first copy. */
	hints->stack_bytes = copy_bytes((size_t)(outermost - capture->stack_begin), hints->reaches_far);
	capture_extend_stack(capture, hints,
			     hints->deep ? capture_stack_limit(capture, hints)
					 : capture->stack_begin + hints->stack_bytes);
}

/* Has the larger copy shown more than the usual one would have? */
static bool has_helped(const struct capture *capture, const struct capture_hints *hints)
{
	const size_t lua_bytes = hints->stack_bytes - FAR_OUTSIDE_BYTES;

	return hints->reaches_far && hints->frames_end > capture->stack_begin + copy_bytes(lua_bytes, false);
}

bool capture_note_passing(const struct capture *capture, bool passes_copy, struct capture_hints *hints)
{
	const bool reached_far = hints->reaches_far;

	if (!passes_copy) {
		if (has_helped(capture, hints))
			hints->passings = 0;
		return false;
	}
	hints->passings++;
	hints->reaches_far = hints->passings > 0 && hints->passings <= FAR_TRIES;
	return hints->reaches_far && !reached_far;
}

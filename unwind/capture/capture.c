#include "unwind/capture/capture.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/capture/lua_moved.h"
#include "unwind/jit/traces.h"
#include "unwind/lua/luajit.h"
#include "unwind/vm/vm_frame.h"

enum {
	PAGE_SIZE = 4096,
	STACK_PAGES_MAX = CAPTURE_STACK_BYTES_MAX / PAGE_SIZE + 2,
	OUTSIDE_BYTES = 8 << 10,	/* of native stack outside of all Lua: event loops are deep */
	SEEK_BYTES = 64 << 10,	/* in which Lua's frames are sought: PCRE's JIT works on 32 KiB */
	RED_ZONE = 128,		/* below the stack pointer (System V ABI 3.2.2) */
	FUNCTIONS_BATCH = 4096,
	CONSTANTS_MAX = 1024,
	/* Of code made at run time: before and after the page that runs. */
	CODE_PAGES_BEFORE = 4,
	CODE_PAGES_AFTER = 8,
	CODE_PAGES_MAX = CODE_PAGES_BEFORE + 1 + CODE_PAGES_AFTER,
	/* A trace's own part of the stack: spadjust is a multiple of 16 in 16 bits, mostly under 100. */
	TRACE_FRAME_BYTES_MAX = 4096,
};

/*---- Native stack and universes ----*/

/* One range for each page, so that a copy past the stack's end is cut short, not refused. */
static size_t stack_ranges(struct memory_range *ranges, size_t max, uint64_t begin, uint64_t end)
{
	size_t count = 0;

	while (begin < end && count < max) {
		uint64_t next = (begin / PAGE_SIZE + 1) * PAGE_SIZE;

		if (next > end)
			next = end;
		ranges[count++] = (struct memory_range){ .address = begin,
							 .length = (size_t)(next - begin) };
		begin = next;
	}
	return count;
}

/* The pages from where the copy of the stack ends up to end. */
static size_t stack_ranges_of(const struct capture *capture, const struct capture_hints *hints,
			      uint64_t end, struct memory_range *ranges)
{
	if (hints->stack_end && end > hints->stack_end)
		end = hints->stack_end;
	if (end > capture->stack_begin + CAPTURE_STACK_BYTES_MAX)
		end = capture->stack_begin + CAPTURE_STACK_BYTES_MAX;
	return stack_ranges(ranges, STACK_PAGES_MAX, capture->stack_end, end);
}

/* The copy reaches as far as its pages could be read. */
static void note_stack(struct capture *capture, struct capture_hints *hints,
		       const struct memory_range *ranges, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (ranges[i].status != MEMORY_OK) {
			hints->stack_end = ranges[i].address;
			return;
		}
		capture->stack_end = ranges[i].address + ranges[i].length;
	}
}

static void extend_stack(struct capture *capture, struct capture_hints *hints, uint64_t end)
{
	struct memory_range ranges[STACK_PAGES_MAX];
	size_t count = stack_ranges_of(capture, hints, end, ranges);

	if (count == 0)
		return;
	snapshot_capture(capture->snapshot, ranges, count);
	note_stack(capture, hints, ranges, count);
}

static bool load_view(struct memory *memory, struct lua_universe *universe,
		      struct universe_view *ret_view)
{
	const struct layout *layout = &universe->vm->layout;
	struct universe_view view = { .universe = universe };
	uint32_t vmstate;
	unsigned ref = layout_ref_size(layout);

	if (!memory_u32(memory, universe->g + (uint64_t)layout->g_vmstate, &vmstate))
		return false;
	view.vmstate = (int32_t)vmstate;
	if (layout->g_cur_L != LAYOUT_ABSENT)
		memory_read(memory, universe->g + (uint64_t)layout->g_cur_L, &view.cur_L, ref);
	if (layout->g_jit_base != LAYOUT_ABSENT)
		memory_read(memory, universe->g + (uint64_t)layout->g_jit_base, &view.jit_base, ref);
	/* Before there was cur_L, it was jit_L that said whether and for whom a trace runs. */
	if (layout->g_jit_L != LAYOUT_ABSENT) {
		memory_read(memory, universe->g + (uint64_t)layout->g_jit_L, &view.cur_L, ref);
		if (view.cur_L == 0 && view.vmstate != VMST_EXIT)
			view.jit_base = 0;
	}
	*ret_view = view;
	return true;
}

static void view_universe(struct capture *capture, struct lua_universe *universe)
{
	struct universe_view view;

	if (capture->universe_count < CAPTURE_UNIVERSES_MAX &&
	    load_view(snapshot_memory(capture->snapshot), universe, &view))
		capture->universes[capture->universe_count++] = view;
}

/* The part of a global_State that holds vmstate, cur_L and jit_base. */
static struct memory_range universe_range(const struct lua_universe *universe)
{
	const struct layout *layout = &universe->vm->layout;
	int32_t begin = layout->g_vmstate, end = layout->g_jit_base;

	if (end < begin) {
		begin = layout->g_jit_base == LAYOUT_ABSENT ? begin : layout->g_jit_base;
		end = layout->g_vmstate;
	}
	if (layout->g_cur_L > end)
		end = layout->g_cur_L;
	return (struct memory_range){ .address = universe->g + (uint64_t)begin,
				      .length = (size_t)(end - begin) + sizeof(uint64_t) };
}

static bool is_wanted(const struct capture *capture, const struct lua_universe *universe,
		      const struct capture_hints *hints)
{
	if (lua_image_count(capture->lua) <= CAPTURE_UNIVERSES_MAX)
		return true;
	return universe->g == hints->g ||
	       universe->g == vm_universe_of_registers(&universe->vm->layout, &capture->registers);
}

/* Which state a lua_State belongs to. */
static struct lua_universe *universe_of_thread(const struct capture *capture,
					       const struct layout *layout, uint64_t thread)
{
	uint64_t g = 0;

	if (memory_read(snapshot_memory(capture->snapshot), thread + (uint64_t)layout->L_glref, &g,
			layout_ref_size(layout)) != MEMORY_OK)
		return NULL;
	return lua_image_find(capture->lua, g);
}

/* The states whose C frames lie on the copied stack, where there are more than are read anyway. */
static void view_universes_on_stack(struct capture *capture,
				    const struct vm_code *vm)
{
	uint64_t last = 0;

	for (uint64_t cframe = vm_frame_from(capture->registers.rsp); cframe < capture->stack_end;
	     cframe += VM_FRAME_ALIGNMENT) {
		struct lua_universe *universe;
		uint64_t thread;

		if (!vm_frame_is_plausible(lua_image_code(capture->lua), &vm->layout, snapshot_memory(capture->snapshot),
					   cframe, &thread) || thread == last)
			continue;
		last = thread;
		universe = universe_of_thread(capture, &vm->layout, thread);
		if (universe && !capture_find_universe(capture, universe))
			view_universe(capture, universe);
	}
}

static void view_other_universes(struct capture *capture)
{
	const struct image *image = lua_image_code(capture->lua);

	if (lua_image_count(capture->lua) <= CAPTURE_UNIVERSES_MAX)
		return;
	for (size_t i = 0; i < image_module_count(image); i++) {
		const struct vm_code *vm = image_module(image, i)->vm;

		if (vm)
			view_universes_on_stack(capture, vm);
	}
}

/* The array of traces and its size (jit_State.trace, sizetrace). */
static struct memory_range traces_range(const struct lua_universe *universe)
{
	const struct layout *layout = &universe->vm->layout;

	if (!universe->traces)
		return (struct memory_range){ 0 };
	return (struct memory_range){
		.address = universe->g + (uint64_t)(layout->GG_J + layout->J_trace),
		.length = (size_t)(layout->J_sizetrace - layout->J_trace) + sizeof(uint32_t),
	};
}

/*
 * In one go: native stack, global fields of the universes, and the Lua thread
 * and stack that were in use last time and most likely still are.
 */
static void capture_first(struct capture *capture, struct capture_hints *hints)
{
	enum { RANGES_MAX = STACK_PAGES_MAX + 2 * CAPTURE_UNIVERSES_MAX + 2 + REQUEST_RANGES };
	size_t stack_bytes = hints->stack_bytes ? hints->stack_bytes : CAPTURE_STACK_BYTES;
	struct memory_range ranges[RANGES_MAX];
	struct lua_universe *universes[CAPTURE_UNIVERSES_MAX];
	size_t universe_count = 0, stack_count, count;

	stack_count = count = stack_ranges_of(capture, hints, capture->stack_begin + stack_bytes,
					      ranges);
	for (size_t i = 0; i < lua_image_count(capture->lua) &&
			   universe_count < CAPTURE_UNIVERSES_MAX; i++) {
		struct lua_universe *universe = lua_image_universe(capture->lua, i);

		if (!is_wanted(capture, universe, hints))
			continue;
		universes[universe_count++] = universe;
		ranges[count++] = universe_range(universe);
		ranges[count++] = traces_range(universe);
	}
	ranges[count++] = hints->lua_thread;
	ranges[count++] = hints->lua_stack;
	for (size_t i = 0; i < REQUEST_RANGES; i++)
		ranges[count++] = hints->request[i];
	snapshot_capture_first(capture->snapshot, ranges, count, &hints->guesses);
	note_stack(capture, hints, ranges, stack_count);
	for (size_t i = 0; i < universe_count; i++)
		if (ranges[stack_count + 2 * i].status == MEMORY_OK)
			view_universe(capture, universes[i]);
}

/*---- Lua threads ----*/

const struct lua_thread *capture_find_thread(const struct capture *capture, uint64_t address)
{
	for (size_t i = 0; i < capture->thread_count; i++)
		if (capture->threads[i].address == address)
			return &capture->threads[i];
	return NULL;
}

const struct universe_view *capture_find_universe(const struct capture *capture,
						  const struct lua_universe *universe)
{
	for (size_t i = 0; i < capture->universe_count; i++)
		if (capture->universes[i].universe == universe)
			return &capture->universes[i];
	return NULL;
}

static bool in_stack(const struct capture *capture, uint64_t address, size_t length)
{
	return address >= capture->stack_begin && address < capture->stack_end &&
	       length <= capture->stack_end - address;
}

static bool stack_word(const struct capture *capture, uint64_t address, uint64_t *ret_word)
{
	return in_stack(capture, address, sizeof(*ret_word)) &&
	       memory_u64(snapshot_memory(capture->snapshot), address, ret_word);
}

/*
 * Add the thread if it is one that runs on this native stack: its innermost
 * C frame lies there. Main threads and coroutines that do not run have none.
 */
static const struct lua_thread *add_thread(struct capture *capture, struct capture_hints *hints,
					   struct lua_universe *universe, uint64_t address)
{
	const struct layout *layout = &universe->vm->layout;
	const struct lua_thread *known = capture_find_thread(capture, address);
	struct lua_thread thread;
	uint8_t bytes[LUA_STATE_BYTES_MAX];

	if (known)
		return known;
	if (address < PAGE_SIZE || !may_be_object(layout->gc64, address) ||
	    capture->thread_count == CAPTURE_THREADS_MAX)
		return NULL;
	if (memory_read(snapshot_memory(capture->snapshot), address, bytes,
			(size_t)layout->L_size) != MEMORY_OK ||
	    !lua_thread_load(&thread, universe, address, bytes))
		return NULL;
	/* With no C frame it may be in the first or last instructions of a call from C. */
	if (thread.cframe) {
		if (thread.cframe < capture->stack_begin)
			return NULL;
		if (thread.cframe >= capture->stack_end)
			extend_stack(capture, hints, thread.cframe + PAGE_SIZE);
		if (!in_stack(capture, thread.cframe, (size_t)layout->CFRAME_size))
			return NULL;
	}
	capture->threads[capture->thread_count] = thread;
	return &capture->threads[capture->thread_count++];
}

struct page_view {
	uint64_t address;
	size_t length;
	const uint8_t *bytes;	/* NULL if it is not in one piece */
};

/*
 * May the word of the copied stack be a thread's address? Most are not, and to look at
 * the copy in place tells it at a tenth of the cost. *page is what was looked at last.
 */
static bool may_be_thread(const struct capture *capture, const struct layout *layout, uint64_t address,
			  struct page_view *page)
{
	uint64_t begin = address & ~(uint64_t)(PAGE_SIZE - 1), word;

	if (address - page->address >= page->length) {
		if (begin < capture->stack_begin)
			begin = capture->stack_begin;
		page->address = begin;
		page->length = PAGE_SIZE - begin % PAGE_SIZE;
		page->bytes = snapshot_view(capture->snapshot, begin, page->length);
	}
	if (!page->bytes)
		return true;
	word = load_bytes(page->bytes, (int32_t)(address - page->address), layout_ref_size(layout));
	return word >= PAGE_SIZE && may_be_object(layout->gc64, word);
}

/*
 * The thread whose innermost C frame is the next one further up the native
 * stack. The frame holds the thread in its SAVE_L, and the thread the frame.
 */
static const struct lua_thread *find_thread_above(struct capture *capture,
						  struct capture_hints *hints,
						  struct lua_universe *universe, uint64_t above)
{
	const struct layout *layout = &universe->vm->layout;
	struct page_view page = { 0 };

	for (uint64_t cframe = vm_frame_from(above);
	     in_stack(capture, cframe, (size_t)layout->CFRAME_size); cframe += VM_FRAME_ALIGNMENT) {
		const struct lua_thread *thread;
		uint64_t address;

		if (!may_be_thread(capture, layout, cframe + (uint64_t)layout->CFRAME_L, &page) ||
		    !vm_frame_is_plausible(lua_image_code(capture->lua), layout, snapshot_memory(capture->snapshot),
					   cframe, &address))
			continue;
		thread = add_thread(capture, hints, universe, address);
		if (thread && thread->cframe == cframe)
			return thread;
		page.length = 0;	/* what is read may move the copy */
	}
	return NULL;
}

/* Follow a thread's C frames outwards, and those of the threads that resumed it: how far they reach. */
static void follow_cframes(struct capture *capture,
			   struct capture_hints *hints, const struct lua_thread *thread,
			   uint64_t *outermost)
{
	const struct layout *layout = &thread->universe->vm->layout;
	uint64_t cframe = thread->cframe;

	for (unsigned i = 0; i < CFRAMES_MAX && cframe; i++) {
		uint64_t end = cframe + (uint64_t)layout->CFRAME_size;
		uint64_t previous, return_address, resumer;

		if (end > capture->stack_end)
			extend_stack(capture, hints, end + PAGE_SIZE);
		if (end > *outermost)
			*outermost = end;
		if (!stack_word(capture, cframe + (uint64_t)layout->CFRAME_PREV, &previous))
			return;
		previous &= ~(uint64_t)CFRAME_FLAGS;
		if (previous) {
			if (previous <= cframe)
				return;
			cframe = previous;
			continue;
		}
		if (!stack_word(capture, end - sizeof(uint64_t), &return_address))
			return;
		if (image_classify(lua_image_code(capture->lua), return_address, NULL) == CODE_VM) {
			if (!vm_frame_thread(layout, snapshot_memory(capture->snapshot), end, &resumer))
				return;
			thread = add_thread(capture, hints, thread->universe, resumer);
			cframe = end;
		} else {
			/* C resumed it, or called the main thread: another thread's frame may come further up. */
			thread = find_thread_above(capture, hints, thread->universe, end);
			cframe = thread ? thread->cframe : 0;
		}
		if (!thread)
			return;
	}
}

/*
 * coroutine.resume and its like hand the coroutine over in CARG1, and keep the one
 * that has just left in PC while they take its results.
 */
static void add_switching_threads(struct capture *capture, struct capture_hints *hints,
				  const struct vm_code *vm)
{
	const struct vm_registers registers = vm_registers(&capture->registers);

	for (size_t u = 0; u < capture->universe_count; u++) {
		struct lua_universe *universe = capture->universes[u].universe;

		if (universe->vm != vm)
			continue;
		add_thread(capture, hints, universe, registers.pc);
		add_thread(capture, hints, universe, registers.argument);
	}
}

/*
 * Is this the frame of a thread that was copied already and says so, too? Then
 * no other frame is, and what others would hold is not worth reading.
 */
static bool add_frame_owner(struct capture *capture, struct capture_hints *hints,
			    const struct vm_code *vm, uint64_t cframe)
{
	uint64_t address;

	if (!vm_frame_thread(&vm->layout, snapshot_memory(capture->snapshot), cframe, &address) ||
	    !snapshot_view(capture->snapshot, address, (size_t)vm->layout.L_size))
		return false;
	for (size_t u = 0; u < capture->universe_count; u++) {
		const struct lua_thread *thread;

		if (capture->universes[u].universe->vm != vm)
			continue;
		thread = add_thread(capture, hints, capture->universes[u].universe, address);
		if (thread && thread->cframe == cframe)
			return true;
	}
	return false;
}

/* The threads that the interpreter's C frame may be of, where it runs itself. */
static void add_interpreted_threads(struct capture *capture, struct capture_hints *hints,
				    const struct vm_code *vm)
{
	uint64_t candidates[VM_FRAME_CANDIDATES_MAX];
	size_t count = vm_frame_candidates(&vm->layout, &capture->registers, candidates);

	for (size_t i = 0; i < VM_FRAME_CANDIDATES_WHOLE; i++)
		if (add_frame_owner(capture, hints, vm, candidates[i]))
			return;
	/* A coroutine that is about to end or yield: its resumer's frame is the next one. */
	for (size_t i = 0; i < 2 * count; i++) {
		uint64_t cframe = i < count ? candidates[i]
					    : candidates[i - count] + (uint64_t)vm->layout.CFRAME_size;
		uint64_t address;

		if (!vm_frame_thread(&vm->layout, snapshot_memory(capture->snapshot), cframe, &address))
			continue;
		for (size_t u = 0; u < capture->universe_count; u++)
			if (capture->universes[u].universe->vm == vm)
				add_thread(capture, hints, capture->universes[u].universe, address);
	}
}

static uint64_t main_thread(const struct capture *capture, const struct lua_universe *universe)
{
	const struct layout *layout = &universe->vm->layout;
	uint64_t address = 0;

	if (memory_read(snapshot_memory(capture->snapshot),
			universe->g + (uint64_t)layout->g_mainthref, &address,
			layout_ref_size(layout)) != MEMORY_OK)
		return 0;
	return address;
}

/* How far the native stack is copied to find Lua's frames where the first copy has none. */
static uint64_t seek_end(const struct capture *capture, const struct lua_universe *universe)
{
	uint64_t thread = main_thread(capture, universe), cframe = 0;

	if (thread && memory_u64(snapshot_memory(capture->snapshot),
				 thread + (uint64_t)universe->vm->layout.L_cframe, &cframe))
		cframe &= ~(uint64_t)CFRAME_FLAGS;
	return cframe > capture->stack_begin &&
	       cframe - capture->stack_begin < CAPTURE_STACK_BYTES_MAX
		? cframe + PAGE_SIZE : capture->stack_begin + SEEK_BYTES;
}

/*
 * Where the universe does not say which of its threads runs, its frames on the native
 * stack do. They are out of reach if native code has put much on top of them.
 */
static void find_running_thread(struct capture *capture,
				struct capture_hints *hints, struct lua_universe *universe)
{
	if (find_thread_above(capture, hints, universe, capture->stack_begin))
		return;
	extend_stack(capture, hints, seek_end(capture, universe));
	find_thread_above(capture, hints, universe, capture->stack_begin);
}

static void capture_threads(struct capture *capture,
			    struct capture_hints *hints)
{
	uint64_t outermost = capture->stack_begin;
	const struct module *module;

	if (image_classify(lua_image_code(capture->lua), capture->registers.rip, &module) == CODE_VM) {
		add_interpreted_threads(capture, hints, module->vm);
		add_switching_threads(capture, hints, module->vm);
	}
	for (size_t u = 0; u < capture->universe_count; u++) {
		const struct universe_view *view = &capture->universes[u];

		if (view->cur_L)
			add_thread(capture, hints, view->universe, view->cur_L);
		else if (view->universe->vm->layout.g_cur_L == LAYOUT_ABSENT)
			find_running_thread(capture, hints, view->universe);
	}
	/* The list grows while it is followed, and each thread is followed once. */
	for (size_t i = 0; i < capture->thread_count; i++) {
		const struct lua_thread *thread = &capture->threads[i];

		if (thread->cframe)
			follow_cframes(capture, hints, thread, &outermost);
		else if (thread->status > LUA_YIELD)	/* ended by an error just now: see merge.c */
			find_thread_above(capture, hints, thread->universe,
					  capture->stack_begin);
	}
	/* What lies outside of all Lua, too; the next time with the first copy. */
	hints->stack_bytes = (size_t)(outermost - capture->stack_begin) + OUTSIDE_BYTES;
	if (hints->stack_bytes < CAPTURE_STACK_BYTES)
		hints->stack_bytes = CAPTURE_STACK_BYTES;
	extend_stack(capture, hints, capture->stack_begin + hints->stack_bytes);
}

/* The request that the innermost Lua thread works for. */
static void capture_request(struct capture *capture,
			    struct capture_hints *hints)
{
	const struct request_layout *layout = lua_image_request_layout(capture->lua);
	const struct lua_thread *innermost = NULL;
	struct request_context context;

	capture->request_context = 0;
	capture->has_request_context = false;
	for (size_t i = 0; i < capture->thread_count; i++) {
		const struct lua_thread *thread = &capture->threads[i];

		if (thread->cframe && (!innermost || thread->cframe < innermost->cframe))
			innermost = thread;
	}
	if (!innermost || !layout->known || innermost->layout->L_exdata < 0)
		return;
	capture->has_request_context = true;
	if (request_context(snapshot_memory(capture->snapshot), layout, innermost->exdata, hints->request,
			    &context))
		capture->request_context = context.phase;
}

/* The captured thread at the address, added if it is not there yet; NULL if there is none. */
static struct lua_thread *take_parked(struct capture *capture, struct lua_universe *universe,
				      uint64_t address)
{
	uint8_t bytes[LUA_STATE_BYTES_MAX];

	for (size_t i = 0; i < capture->thread_count; i++)
		if (capture->threads[i].address == address)
			return &capture->threads[i];
	if (address == 0 || address % SLOT_SIZE || capture->thread_count == CAPTURE_THREADS_MAX ||
	    memory_read(snapshot_memory(capture->snapshot), address, bytes,
			(size_t)universe->vm->layout.L_size) != MEMORY_OK ||
	    !lua_thread_load(&capture->threads[capture->thread_count], universe, address, bytes))
		return NULL;
	return &capture->threads[capture->thread_count++];
}

/* Find the parent of a thread, if it is of the same request and has yielded; NULL if there is none. */
static struct lua_thread *link_parent(struct capture *capture, struct lua_thread *thread)
{
	struct lua_thread *parent;
	uint64_t address, coctx;

	if (thread->parent || !request_parent(snapshot_memory(capture->snapshot), thread->address,
					      thread->exdata2, &address, &coctx))
		return NULL;
	parent = take_parked(capture, thread->universe, address);
	if (!parent || parent->exdata2 != coctx || parent->exdata != thread->exdata ||
	    parent->cframe != 0 || parent->status != LUA_YIELD)
		return NULL;
	thread->parent = address;
	return parent;
}

/* Coroutines that nginx runs have no caller on the C stack but parents that wait for them or beside them. */
static void capture_parents(struct capture *capture)
{
	size_t count = capture->thread_count;

	if (!lua_image_request_layout(capture->lua)->known)
		return;
	for (size_t i = 0; i < count; i++) {
		struct lua_thread *thread = &capture->threads[i];

		while (thread && thread->exdata2)
			thread = link_parent(capture, thread);
	}
}

/*---- Lua stacks and what is on them ----*/

static struct memory_range lua_stack_range(const struct lua_thread *thread)
{
	return (struct memory_range){ .address = thread->stack,
				      .length = (size_t)(thread->stack_end - thread->stack) };
}

static void capture_lua_stacks(struct capture *capture)
{
	struct memory_range ranges[CAPTURE_THREADS_MAX];
	size_t count = 0;

	for (size_t i = 0; i < capture->thread_count; i++) {
		struct memory_range range = lua_stack_range(&capture->threads[i]);

		if (!snapshot_view(capture->snapshot, range.address, range.length))
			ranges[count++] = range;
	}
	if (count)
		snapshot_capture(capture->snapshot, ranges, count);
}

/* The object in a slot if that may be a function's; else 0. */
static uint64_t function_in_slot(const struct layout *layout, uint64_t value)
{
	bool is_function = tvalue_tag(layout->gc64, value) == TAG_FUNC;

	/* Without GC64 a frame slot has no tag: its low half may be any object's address. */
	if (!is_function && (layout->gc64 || (value & UINT32_MAX) % SLOT_SIZE))
		return 0;
	return tvalue_object(layout->gc64, value);
}

/*
 * Every function that a slot holds, live or stale: a superset of the
 * functions that have frames, wherever the top turns out to be.
 */
static void capture_stack_functions(struct capture *capture, struct lua_objects *objects,
				    struct lua_thread *thread)
{
	const struct layout *layout = thread->layout;
	uint64_t functions[FUNCTIONS_BATCH], last = 0;
	size_t count = 0;

	lua_thread_view(thread, capture->snapshot);
	if (!thread->slots)
		return;
	for (uint64_t at = thread->stack; at < thread->stack_end; at += SLOT_SIZE) {
		uint64_t object = function_in_slot(layout, load_bytes(
			thread->slots, (int32_t)(at - thread->stack), SLOT_SIZE));

		if (object == 0 || object == last)
			continue;
		last = object;
		functions[count++] = object;
		if (count == FUNCTIONS_BATCH) {
			lua_objects_capture(objects, capture->snapshot, layout, functions, count);
			lua_thread_view(thread, capture->snapshot);
			count = 0;
		}
	}
	lua_objects_capture(objects, capture->snapshot, layout, functions, count);
}

static void capture_trace_constants(struct capture *capture, struct lua_objects *objects,
				    const struct universe_view *view, const struct trace *trace)
{
	const struct layout *layout = &view->universe->vm->layout;
	uint64_t constants[CONSTANTS_MAX + 1];
	size_t count = trace_constants(trace, layout, TRACE_FUNCTIONS, constants, CONSTANTS_MAX);
	const uint64_t *protos;
	size_t proto_count = 0;

	lua_objects_capture(objects, capture->snapshot, layout, constants, count);
	/* What they call by an upvalue that never changes, the trace does not check. */
	if (!traces_protos(view->universe->traces, trace, &protos, &proto_count))
		lua_objects_capture_upvalues(objects, capture->snapshot, layout, constants, count);
	count = trace_constants(trace, layout, TRACE_PROTOS, constants, CONSTANTS_MAX);
	constants[count++] = trace->startpt;
	for (size_t i = 0; i < proto_count && count < CONSTANTS_MAX + 1; i++)
		if (!lua_objects_proto(objects, protos[i]))
			constants[count++] = protos[i];
	lua_objects_capture_protos(objects, capture->snapshot, layout, constants, count);
}

/*
 * The trace that called the native code at hand is one that a return address
 * between the stack pointer and the thread's C frame leads to.
 */
static void capture_calling_trace(struct capture *capture, struct lua_objects *objects,
				  const struct universe_view *view)
{
	const struct lua_thread *thread = capture_find_thread(capture, view->cur_L);
	const struct layout *layout = &view->universe->vm->layout;
	uint64_t word;

	if (!thread)
		return;
	for (uint64_t at = thread->cframe - sizeof(word);
	     at >= capture->registers.rsp && thread->cframe - at < TRACE_FRAME_BYTES_MAX;
	     at -= sizeof(word)) {
		const struct registers caller = { .rsp = at + sizeof(word) };
		const struct trace *trace;

		if (!stack_word(capture, at, &word))
			return;
		trace = traces_capture_pc(view->universe->traces, capture->snapshot, layout,
					  word - 1);
		/* Among a trace's spilled values there may be an older call's return address. */
		if (trace && vm_trace_cframe(&caller, trace->spadjust) == thread->cframe)
			capture_trace_constants(capture, objects, view, trace);
	}
}

/* From the exit of a trace the recorder may be started, and all that follows from it. */
static bool may_be_exiting(int32_t vmstate)
{
	return vmstate == VMST_EXIT || vmstate == VMST_GC || vmstate == VMST_RECORD ||
	       vmstate == VMST_OPT || vmstate == VMST_ASM;
}

static void capture_traces(struct capture *capture,
			   struct lua_objects *objects, const struct universe_view *view)
{
	const struct layout *layout = &view->universe->vm->layout;
	uint64_t J = view->universe->g + (uint64_t)layout->GG_J, J_trace = 0;
	/* The trace that runs, and the one that an exit restores from (J->parent). */
	uint32_t executing[] = { view->vmstate > 0 ? (uint32_t)view->vmstate : 0, 0, 0 };
	size_t count = sizeof(executing) / sizeof(executing[0]);
	uint32_t sizetrace, exitno, state;
	struct memory *memory = snapshot_memory(capture->snapshot);
	const struct trace *trace;
	enum code_kind code = image_classify(lua_image_code(capture->lua), capture->registers.rip, NULL);

	/* Until the layout of traces is settled there is no telling what they say. */
	if (!view->universe->traces || view->universe->vm->traces_open)
		return;
	if (!executing[0] && view->jit_base == 0 && !may_be_exiting(view->vmstate) &&
	    code != CODE_UNKNOWN)
		return;
	if (memory_read(memory, J + (uint64_t)layout->J_trace, &J_trace,
			layout_ref_size(layout)) != MEMORY_OK ||
	    !memory_u32(memory, J + (uint64_t)layout->J_sizetrace, &sizetrace))
		return;
	/* Also what is to be changed in the copy, when an exit under way is run on. */
	memory_u32(memory, J + (uint64_t)layout->J_parent, &executing[1]);
	memory_u32(memory, J + (uint64_t)layout->J_exitno, &exitno);
	memory_u32(memory, J + (uint64_t)layout->J_state, &state);
	if (code == CODE_VM)
		executing[2] = vm_exit_trace(&capture->registers);
	traces_capture(view->universe->traces, capture->snapshot, layout, J, J_trace, sizetrace,
		       executing, count);
	trace = traces_capture_pc(view->universe->traces, capture->snapshot, layout,
				  capture->registers.rip);
	if (trace) {
		capture_trace_constants(capture, objects, view, trace);
		trace = traces_capture_link(view->universe->traces, capture->snapshot, layout, trace);
		if (trace)
			capture_trace_constants(capture, objects, view, trace);
	} else {
		capture_calling_trace(capture, objects, view);
	}
	for (size_t i = 0; i < count; i++) {
		trace = traces_by_number(view->universe->traces, executing[i]);
		if (trace)
			capture_trace_constants(capture, objects, view, trace);
	}
}

/*
 * Code that is in no module: what LuaJIT generates besides traces, the stubs of
 * exits and of FFI callbacks, which jump to the VM, the latter by the first word
 * of their page; and what others make at run time, which is unwound by what it
 * does (code_rules.h).
 */
static void capture_made_code(struct capture *capture)
{
	uint64_t page = capture->registers.rip & ~(uint64_t)(PAGE_SIZE - 1);
	struct memory_range ranges[CODE_PAGES_MAX];

	if (image_classify(lua_image_code(capture->lua), capture->registers.rip, NULL) != CODE_UNKNOWN)
		return;
	for (size_t i = 0; i < capture->universe_count; i++) {
		const struct traces *traces = capture->universes[i].universe->traces;

		if (traces && traces_find(traces, capture->registers.rip))
			return;
	}
	for (uint64_t i = 0; i < CODE_PAGES_MAX; i++)
		ranges[i] = (struct memory_range){
			.address = page + (i - CODE_PAGES_BEFORE) * PAGE_SIZE, .length = PAGE_SIZE };
	snapshot_capture(capture->snapshot, ranges, CODE_PAGES_MAX);
}

/* All that changes while the thread runs. */
static void capture_stacks(struct capture *capture, const struct lua_image *lua,
			   struct snapshot *snapshot, const struct registers *registers,
			   struct capture_hints *hints)
{
	capture->lua = lua;
	capture->registers = *registers;
	capture->snapshot = snapshot;
	capture->stack_begin = registers->rsp - RED_ZONE;
	capture->stack_end = capture->stack_begin;
	capture->universe_count = 0;
	capture->thread_count = 0;
	capture->running = NULL;

	capture_first(capture, hints);
	view_other_universes(capture);
	capture_threads(capture, hints);
	capture_request(capture, hints);
	capture_parents(capture);
	capture_lua_stacks(capture);
	lua_moved_capture(capture);
}

static void capture_functions(struct capture *capture, struct lua_objects *objects)
{
	for (size_t i = 0; i < capture->thread_count; i++)
		capture_stack_functions(capture, objects, &capture->threads[i]);
}

/*
 * What was read is most likely to be read the next time, too. Where no Lua ran,
 * the next time is when some does again.
 */
static void note_hints(const struct capture *capture, bool is_trial,
		       struct capture_hints *hints)
{
	const struct lua_thread *thread = &capture->threads[0];

	if (capture->thread_count == 0)
		return;
	snapshot_note_guesses(capture->snapshot, capture->stack_begin, capture->stack_end,
			      is_trial, &hints->guesses);
	if (!is_trial)
		hints->reads = snapshot_read_count(capture->snapshot);
	hints->g = thread->universe->g;
	hints->lua_thread = (struct memory_range){ .address = thread->address,
						   .length = (size_t)thread->layout->L_size };
	hints->lua_stack = lua_stack_range(thread);
}

static void finish(struct capture *capture, struct capture_hints *hints)
{
	snapshot_seal(capture->snapshot);
	note_hints(capture, false, hints);
	hints->sp = capture->registers.rsp;
	for (size_t i = 0; i < capture->thread_count; i++)
		lua_thread_view(&capture->threads[i], capture->snapshot);
}

/*
 * Only the stack pointer is needed, to tell which Lua threads run here, and the
 * lowest one it may be in the page is as good. What is found out of the native
 * stack is not kept: it may be another one by now.
 */
void capture_rehearse(struct capture *capture, const struct lua_image *lua,
		      struct lua_objects *objects, struct snapshot *snapshot,
		      struct capture_hints *hints)
{
	struct registers registers = { .rsp = hints->sp };
	struct capture_hints found = *hints;

	if (hints->sp % PAGE_SIZE > RED_ZONE)
		registers.rsp -= hints->sp % PAGE_SIZE - RED_ZONE;
	lua_objects_begin(objects, false);
	capture_stacks(capture, lua, snapshot, &registers, &found);
	capture_functions(capture, objects);
	note_hints(capture, true, &found);
	found.stack_end = hints->stack_end;
	found.stack_bytes = hints->stack_bytes;
	*hints = found;
}

void capture_thread(struct capture *capture, const struct lua_image *lua,
		    struct lua_objects *objects, struct snapshot *snapshot,
		    const struct registers *registers, struct capture_hints *hints)
{
	lua_objects_begin(objects, true);
	capture_stacks(capture, lua, snapshot, registers, hints);
	capture_functions(capture, objects);
	for (size_t i = 0; i < capture->universe_count; i++)
		capture_traces(capture, objects, &capture->universes[i]);
	capture_made_code(capture);
	finish(capture, hints);
}

/*---- Without a stop ----*/

/* A universe and its running thread as they are this instant. */
static bool load_running(struct memory *live, struct lua_universe *universe,
			 struct universe_view *ret_view, struct lua_thread *ret_thread)
{
	uint8_t bytes[LUA_STATE_BYTES_MAX];

	return load_view(live, universe, ret_view) && ret_view->cur_L % SLOT_SIZE == 0 &&
	       ret_view->cur_L != 0 &&
	       memory_read(live, ret_view->cur_L, bytes,
			   (size_t)universe->vm->layout.L_size) == MEMORY_OK &&
	       lua_thread_load(ret_thread, universe, ret_view->cur_L, bytes);
}

static bool is_same(const struct universe_view *view, const struct lua_thread *thread,
		    const struct universe_view *later_view, const struct lua_thread *later)
{
	return view->vmstate == later_view->vmstate && view->cur_L == later_view->cur_L &&
	       view->jit_base == later_view->jit_base && thread->base == later->base &&
	       thread->cframe == later->cframe && thread->stack == later->stack &&
	       thread->status == later->status;
}

/* The universe whose innermost C frame lies on the native stack, and where; NULL if there is none. */
static struct lua_universe *find_running(const struct lua_image *lua, struct memory *live,
					 const struct memory_range *native_stack,
					 uint64_t *ret_cframe)
{
	for (size_t i = 0; i < lua_image_count(lua) && i < CAPTURE_UNIVERSES_MAX; i++) {
		struct universe_view view;
		struct lua_thread thread;

		if (!load_running(live, lua_image_universe(lua, i), &view, &thread) ||
		    thread.cframe == 0 || thread.cframe < native_stack->address ||
		    thread.cframe - native_stack->address >= native_stack->length)
			continue;
		*ret_cframe = thread.cframe;
		return view.universe;
	}
	return NULL;
}

enum capture_verdict capture_running(struct capture *capture, const struct lua_image *lua,
				     struct lua_objects *objects, struct snapshot *snapshot,
				     struct memory *live, const struct memory_range *native_stack,
				     struct capture_hints *hints)
{
	struct registers registers = { .unknown = REGISTERS_ALL_BUT_PC_AND_SP };
	struct lua_universe *universe = find_running(lua, live, native_stack, &registers.rsp);
	const struct lua_thread *thread = NULL;
	struct universe_view later_view;
	struct lua_thread later;

	if (!universe)
		return CAPTURE_NO_LUA;
	/* As if the interpreter ran: then its C frame is where the stack ends. */
	registers.rip = universe->vm->begin;
	lua_objects_begin(objects, true);
	capture_stacks(capture, lua, snapshot, &registers, hints);
	capture->running = capture_find_universe(capture, universe);
	if (capture->running)
		thread = capture_find_thread(capture, capture->running->cur_L);
	if (!thread || !load_running(live, universe, &later_view, &later) ||
	    !is_same(capture->running, thread, &later_view, &later)) {
		snapshot_seal(snapshot);
		return CAPTURE_TORN;
	}
	capture_functions(capture, objects);
	finish(capture, hints);
	return CAPTURE_HOLDS;
}

/*---- Coroutines ----*/

struct function_list {
	uint64_t *addresses;	/* owned */
	size_t count, size;
};

static bool add_function(struct function_list *list, uint64_t function)
{
	size_t size = list->size ? list->size * 2 : 1024;
	uint64_t *larger;

	if (list->count == list->size) {
		larger = realloc(list->addresses, size * sizeof(*larger));
		if (!larger)
			return false;
		list->addresses = larger;
		list->size = size;
	}
	list->addresses[list->count++] = function;
	return true;
}

/* The functions on a thread's stack up to where it is in use; what is above will not run on. */
static void list_functions(struct capture *capture, struct lua_thread *thread,
			   struct function_list *list)
{
	uint64_t end = thread->top < thread->stack_end ? thread->top : thread->stack_end;

	lua_thread_view(thread, capture->snapshot);
	for (uint64_t at = thread->stack; thread->slots && at < end; at += SLOT_SIZE) {
		uint64_t object = function_in_slot(thread->layout, load_bytes(
			thread->slots, (int32_t)(at - thread->stack), SLOT_SIZE));

		if (object && !add_function(list, object))
			return;
	}
}

static void add_coroutines(struct capture *capture, struct lua_universe *universe,
			   const uint64_t *addresses, size_t count)
{
	struct memory_range ranges[CAPTURE_THREADS_MAX];

	for (size_t i = 0; i < count; i++)
		ranges[i] = (struct memory_range){
			.address = addresses[i], .length = (size_t)universe->vm->layout.L_size };
	snapshot_capture(capture->snapshot, ranges, count);
	for (size_t i = 0; i < count; i++)
		if (ranges[i].status == MEMORY_OK &&
		    lua_thread_load(&capture->threads[capture->thread_count], universe,
				    addresses[i], ranges[i].copy))
			capture->thread_count++;
}

void capture_coroutines(struct capture *capture, struct lua_objects *objects,
			struct snapshot *snapshot, struct lua_universe *universe,
			const uint64_t *addresses, size_t count)
{
	struct function_list functions = { 0 };

	capture->snapshot = snapshot;
	capture->stack_begin = capture->stack_end = 0;
	capture->universe_count = 0;
	capture->thread_count = 0;
	capture->running = NULL;
	lua_objects_begin(objects, true);
	view_universe(capture, universe);
	add_coroutines(capture, universe, addresses,
		       count < CAPTURE_THREADS_MAX ? count : CAPTURE_THREADS_MAX);
	capture_lua_stacks(capture);
	/* All of them in one go: the copies move while more is copied. */
	for (size_t i = 0; i < capture->thread_count; i++)
		list_functions(capture, &capture->threads[i], &functions);
	lua_objects_capture(objects, snapshot, &universe->vm->layout, functions.addresses,
			    functions.count);
	free(functions.addresses);
	snapshot_seal(snapshot);
	for (size_t i = 0; i < capture->thread_count; i++)
		lua_thread_view(&capture->threads[i], snapshot);
}

void capture_reload(struct capture *capture)
{
	for (size_t i = 0; i < capture->universe_count; i++)
		load_view(snapshot_memory(capture->snapshot), capture->universes[i].universe,
			  &capture->universes[i]);
	for (size_t i = 0; i < capture->thread_count; i++) {
		struct lua_thread *thread = &capture->threads[i];
		const uint8_t *bytes = snapshot_view(capture->snapshot, thread->address,
						     (size_t)thread->layout->L_size);
		uint64_t parent = thread->parent;

		if (bytes && lua_thread_load(thread, thread->universe, thread->address, bytes)) {
			lua_thread_view(thread, capture->snapshot);
			thread->parent = parent;
		}
	}
}

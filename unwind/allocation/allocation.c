/* SPDX-License-Identifier: MIT */
#include "unwind/allocation/allocation.h"

#include "luajit-layouts/field.h"
#include "unwind/allocation/allocated.h"
#include "unwind/lua/luajit.h"
#include "unwind/vm/vm_machine.h"

enum {
	FRAMES_MAX = 12,       /* of the allocator; lj_alloc.c has 3, a malloc() somewhat more */
	STEPS_TO_TOTAL = 64,   /* from the return of allocf to the store of gc.total; 3 to 20 were seen */
	STEPS_TO_RETURN = 512, /* to where the interpreter or a trace goes on */
	STEPS_IN_TRACE = 24,   /* to where a trace has written the header of a cdata; 4 to 10 were seen */
	NEW_MEMORY = 1 << 12,  /* its address in the run: the kernel maps nothing there (vm.mmap_min_addr) */
	BEFORE_OBJECT_MAX =
		512, /* in front of a cdata of variable length or alignment (lj_cdata.c: lj_cdata_newv) */
	CHUNK_HEADER = 16, /* in front of what LuaJIT's allocator has just got from the kernel (lj_alloc.c) */
};

/* The copy of the thread, and the text and constants of modules, as one memory. */
struct copy_and_text {
	struct memory memory; /* first */
	struct memory *copy;
	struct image *image;
};

static void read_copy_or_text(struct memory *memory, struct memory_range *ranges, size_t count)
{
	struct copy_and_text *both = (struct copy_and_text *)memory;

	memory_read_ranges(both->copy, ranges, count);
	for (size_t i = 0; i < count; i++)
		if (ranges[i].status != MEMORY_OK && image_find(both->image, ranges[i].address))
			memory_read_ranges(image_text(both->image), &ranges[i], 1);
}

/* One run of the code after a call of g->allocf. */
struct run {
	const struct allocation_source *source;
	const struct vm_code *vm;
	struct vm_code module; /* the VM's, but with all of its module's code */
	struct copy_and_text memory;
	uint64_t object;           /* in that memory */
	struct vm_value returned;  /* by the allocator, if the run began within it */
	struct vm_machine machine; /* last: it is large */
};

/*---- What the code has stored ----*/

static struct vm_value stored(struct run *run, int32_t offset, unsigned int size)
{
	return vm_machine_load(&run->machine, (struct vm_value){ run->object + (uint64_t)offset, true },
			       size);
}

static bool stores_at(const struct run *run, uint64_t address)
{
	for (size_t i = 0; i < run->machine.store_count; i++)
		if (run->machine.stores[i].address == address)
			return true;
	return false;
}

/* Is the new memory stored in that field of an object, whose other field the code stores with it? */
static bool is_part(const struct run *run, uint64_t address, int32_t field, int32_t with)
{
	return stores_at(run, address - (uint64_t)field + (uint64_t)with);
}

/*
 * The new memory, or where it begins behind its header if the thread was in the kernel's call for it. An
 * allocator that frees the old part has the new one already, and returns its address (lj_alloc.c:
 * lj_alloc_realloc).
 */
static bool is_new(const struct run *run, const struct vm_value *value)
{
	return value->known && (value->bits == NEW_MEMORY || value->bits == NEW_MEMORY + CHUNK_HEADER ||
				(run->returned.known && value->bits == run->returned.bits));
}

/*
 * Is there the header of a chunk for so many bytes, in use (lj_alloc.c: CINUSE_BIT)? Three bits of a size are
 * flags.
 */
static bool is_chunk(struct run *run, uint64_t bytes)
{
	const struct vm_value head = vm_machine_load(&run->machine, (struct vm_value){ NEW_MEMORY + 8, true },
						     8);

	return head.known && (head.bits & 2) && head.bits >= bytes;
}

/* Memory that is no object: by the field that refers to it. */
static void tell_part(const struct run *run, struct allocation *allocation)
{
	const struct layout *layout = &run->vm->layout;

	allocation->kind = ALLOCATION_OTHER;
	for (size_t i = 0; i < run->machine.store_count && allocation->kind == ALLOCATION_OTHER; i++) {
		const struct vm_store *store = &run->machine.stores[i];

		if (!is_new(run, &store->value) || store->size < layout_ref_size(layout) ||
		    capture_has_copied(run->source->capture, store->address))
			continue;
		if (store->address == allocation->global->g + (uint64_t)layout->g_strhash) {
			allocation->kind = ALLOCATION_STRING_TABLE;
		} else if (is_part(run, store->address, layout->L_stack, layout->L_maxstack)) {
			allocation->kind = ALLOCATION_STACK;
		} else if (is_part(run, store->address, layout->GCtab_array, layout->GCtab_asize)) {
			allocation->kind = ALLOCATION_ARRAY;
			allocation->table = store->address - (uint64_t)layout->GCtab_array;
		} else if (is_part(run, store->address, layout->GCtab_node, layout->GCtab_hmask)) {
			allocation->kind = ALLOCATION_HASH;
			allocation->table = store->address - (uint64_t)layout->GCtab_node;
		}
	}
}

bool allocation_without_old_part(struct allocation *allocation, const struct allocation_counters *held)
{
	const uint64_t node = (uint64_t)allocation->global->vm->layout.Node_size;
	const bool is_newest = allocation->table && allocation->table == held->root;
	uint64_t old = is_newest ? held->newest_nodes : allocation->bytes / node / 2;

	if (allocation->kind == ALLOCATION_HASH && old * node < allocation->bytes)
		allocation->bytes -= old * node;
	allocation->is_first_part = is_newest &&
				    (allocation->kind == ALLOCATION_HASH ? old == 0
									 : held->newest_slots == 0);
	return allocation->is_first_part;
}

/* Is an object in the new memory at the front of the list? Sets run->object. */
static bool find_listed(struct run *run, const struct global_state *global)
{
	const uint64_t root = global->g + (uint64_t)run->vm->layout.g_gc_root;

	for (size_t i = 0; i < run->machine.store_count; i++) {
		const struct vm_store *store = &run->machine.stores[i];

		if (store->address != root || !store->value.known ||
		    store->value.bits - NEW_MEMORY >= BEFORE_OBJECT_MAX)
			continue;
		run->object = store->value.bits;
		return true;
	}
	return false;
}

static bool tell_object(struct run *run, struct allocation *allocation)
{
	static const enum allocation_kind kinds[] = {
		[GCT_STRING] = ALLOCATION_STRING,     [GCT_UPVALUE] = ALLOCATION_UPVALUE,
		[GCT_THREAD] = ALLOCATION_THREAD,     [GCT_PROTO] = ALLOCATION_PROTO,
		[GCT_FUNCTION] = ALLOCATION_FUNCTION, [GCT_TRACE] = ALLOCATION_TRACE,
		[GCT_CDATA] = ALLOCATION_CDATA,       [GCT_TABLE] = ALLOCATION_TABLE,
		[GCT_USERDATA] = ALLOCATION_USERDATA,
	};
	const struct layout *layout = &run->vm->layout;
	struct vm_value gct = stored(run, layout->GChead_gct, 1), ffid, pc;

	if (!gct.known || gct.bits < GCT_STRING || gct.bits > GCT_USERDATA)
		return false;
	allocation->kind = kinds[gct.bits];
	if (allocation->kind == ALLOCATION_CDATA)
		allocation->ctype = (uint32_t)stored(run, layout->GChead_gct + 1, sizeof(uint16_t)).bits;
	if (allocation->kind != ALLOCATION_FUNCTION)
		return true;
	ffid = stored(run, layout->GCfunc_ffid, 1);
	pc = stored(run, layout->GCfunc_pc, layout_ref_size(layout));
	if (ffid.known && ffid.bits == FF_LUA && pc.known && pc.bits > (uint64_t)layout->GCproto_size)
		allocation->prototype = pc.bits - (uint64_t)layout->GCproto_size;
	return true;
}

/*---- The run ----*/

/* The global_State whose gc.total the store changes, by how much; NULL if it is none. */
static const struct global_state *changes_total(const struct run *run, const struct vm_store *store,
						int64_t *ret_growth)
{
	const struct capture *capture = run->source->capture;

	for (size_t i = 0; i < capture->global_count; i++) {
		const struct global_view *view = &capture->globals[i];

		if (view->global->vm != run->vm ||
		    store->address != view->global->g + (uint64_t)run->vm->layout.g_gc_total)
			continue;
		if (!store->value.known || store->size < 4)
			return NULL;
		*ret_growth = store->size == 4 ? (int32_t)(uint32_t)(store->value.bits - view->gc_total)
					       : (int64_t)(store->value.bits - view->gc_total);
		return view->global;
	}
	return NULL;
}

/* Run to the store of gc.total. NULL if there is none. */
static const struct global_state *run_to_total(struct run *run, int64_t *ret_growth)
{
	struct vm_machine *machine = &run->machine;
	size_t seen = 0;

	while (machine->steps < STEPS_TO_TOTAL) {
		if (vm_machine_step(machine) != VM_PROGRESS_ON || machine->guessed)
			return NULL;
		for (; seen < machine->store_count; seen++) {
			const struct global_state *global = changes_total(run, &machine->stores[seen],
									  ret_growth);

			if (!global)
				continue;
			/* Whoever adds to it returns the new memory, too, and has it where it got it. */
			run->returned = vm_machine_result(machine);
			return global;
		}
	}
	return NULL;
}

static bool is_in_interpreter(const struct run *run)
{
	return run->machine.pc >= run->vm->begin && run->machine.pc < run->vm->end;
}

/* Run to where the interpreter or a trace goes on, or as far as the code can be followed. */
static void run_to_return(struct run *run)
{
	while (run->machine.steps < STEPS_TO_RETURN && !run->machine.guessed && !is_in_interpreter(run) &&
	       vm_machine_step(&run->machine) == VM_PROGRESS_ON)
		continue;
}

/*
 * A trace writes the header of a cdata itself, after it has called lj_mem_newgco() (lj_asm_x86.h: asm_cnew):
 * run it that far.
 */
static void run_in_trace(struct run *run, const struct global_state *global)
{
	struct vm_machine *machine = &run->machine;
	const uint32_t end = machine->steps + STEPS_IN_TRACE;

	machine->traces = global->traces;
	machine->trace = global->traces ? traces_find(global->traces, machine->pc) : NULL;
	if (!machine->trace)
		return;
	while (machine->steps < end && !stored(run, run->vm->layout.GChead_gct, 1).known &&
	       vm_machine_step(machine) == VM_PROGRESS_ON)
		continue;
}

/* The code after the call adds to gc.total what allocf was asked for. */
static bool run_from(struct run *run, const struct registers *registers, struct allocation *ret_allocation)
{
	struct allocation allocation = { 0 };
	int64_t growth;

	vm_machine_clear(&run->machine);
	run->machine.decoder = run->source->decoder;
	run->machine.vm = &run->module;
	run->machine.text = image_text(run->source->image);
	run->machine.memory = &run->memory.memory;
	run->machine.objects = run->source->objects;
	vm_machine_load_registers(&run->machine, registers);
	vm_machine_take_result(&run->machine, NEW_MEMORY);
	allocation.global = run_to_total(run, &growth);
	if (!allocation.global || growth <= 0)
		return false;
	allocation.bytes = (uint64_t)growth;
	run_to_return(run);
	if (!find_listed(run, allocation.global)) {
		run->object = NEW_MEMORY + (is_chunk(run, allocation.bytes) ? CHUNK_HEADER : 0);
	} else if (!stored(run, run->vm->layout.GChead_gct, 1).known) {
		run_in_trace(run, allocation.global);
		allocation.kind = ALLOCATION_CDATA;
	}
	if (!tell_object(run, &allocation) && allocation.kind != ALLOCATION_CDATA)
		tell_part(run, &allocation);
	*ret_allocation = allocation;
	return true;
}

bool allocation_in_flight(const struct allocation_source *source, struct allocation *ret_allocation)
{
	struct memory *copy = snapshot_memory(source->capture->snapshot);
	struct run run;

	run.source = source;
	run.memory = (struct copy_and_text){
		.memory = { .read_ranges = read_copy_or_text },
		.copy = copy,
		.image = source->image,
	};
	native_begin(source->native, copy, &source->capture->registers);
	for (int i = 0; i < FRAMES_MAX; i++) {
		const struct native_frame *frame = native_current(source->native);

		if (frame->code != CODE_NATIVE)
			return false;
		if (frame->is_return_address && frame->module->vm) {
			run.vm = frame->module->vm;
			run.module = *run.vm;
			run.module.begin = frame->module->begin;
			run.module.end = frame->module->end;
			if (run_from(&run, &frame->registers, ret_allocation))
				return true;
		}
		if (native_step(source->native) != NATIVE_FRAME)
			return false;
	}
	return false;
}

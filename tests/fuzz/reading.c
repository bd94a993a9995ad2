/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/reading.h"

#include <stdlib.h>
#include <string.h>

#include "luajit-layouts/field.h"
#include "output/labels/frame_label.h"
#include "output/sample/functions.h"
#include "unwind/allocation/allocated.h"
#include "unwind/allocation/allocation.h"
#include "unwind/allocation/allocation_text.h"
#include "unwind/allocation/collector_look.h"
#include "unwind/capture/capture.h"
#include "unwind/capture/unknown_states.h"
#include "unwind/elf/elf_file.h"
#include "unwind/compiled/not_compiled.h"
#include "unwind/compiled/trace_aborts.h"
#include "unwind/compiled/trace_exits.h"
#include "unwind/compiled/trace_list.h"
#include "unwind/lua/builtins.h"
#include "unwind/lua/package_path.h"
#include "unwind/lua/lua_objects.h"
#include "unwind/lua/object_walk.h"
#include "unwind/names/namer.h"
#include "unwind/native/native.h"
#include "unwind/stack/merge.h"
#include "unwind/stack/merge_lua.h"
#include "unwind/details/compiled_pattern.h"
#include "unwind/details/details.h"
#include "unwind/symbols/symbol_server.h"
#include "unwind/values/frame_values.h"
#include "unwind/values/live_ctypes.h"
#include "unwind/values/value_text.h"
#include "unwind/vm/vm_names.h"

enum {
	COROUTINES_MAX = 16,
	FRAMES_WITH_VALUES = 64,
	OBJECTS_WALKED_MAX = 64,   /* slices, each of many objects */
	STATES_SEARCHED = 1 << 15, /* bytes around the state there is */
	STATES_MAX = 8,
	OWN_STACK_BYTES = 1 << 20,
};

/*
 * The linker has some functions lead here (see GNUmakefile): for the walk there
 * are neither ELF files nor a process to read their symbols, and names of the
 * VM's code, which take long, are apart.
 */
struct symbol_server *__wrap_symbol_server_start(symbol_server_meanwhile *meanwhile, void *context);
int __wrap_elf_file_descriptor(const struct module *module, struct memory *live, struct errands *errands);
bool __wrap_vm_names_collect(struct memory *memory, const struct vm_code *vm, uint64_t g,
			     const struct builtins *builtins, struct vm_names *ret_names);
bool __real_vm_names_collect(struct memory *memory, const struct vm_code *vm, uint64_t g,
			     const struct builtins *builtins, struct vm_names *ret_names);

bool __wrap_vm_names_collect(struct memory *memory, const struct vm_code *vm, uint64_t g,
			     const struct builtins *builtins, struct vm_names *ret_names)
{
	(void)memory;
	(void)vm;
	(void)g;
	(void)builtins;
	*ret_names = (struct vm_names){ .count = 0 };
	return true;
}

struct symbol_server *__wrap_symbol_server_start(symbol_server_meanwhile *meanwhile, void *context)
{
	(void)meanwhile;
	(void)context;
	return NULL;
}

int __wrap_elf_file_descriptor(const struct module *module, struct memory *live, struct errands *errands)
{
	(void)module;
	(void)live;
	(void)errands;
	return -1;
}

/* All that it takes to read stacks. */
struct reader {
	struct image *image;
	struct lua_image *lua;
	struct lua_objects *objects;
	struct snapshot *snapshot;
	struct symbols *symbols;
	struct native_unwinder *native;
	struct vm_decoder *decoder;
	struct functions *functions;
	struct namer *namer, *folding;
	struct capture *capture;
	struct value_capture *values;
	struct memory *memory;
	struct merged_stack stack;
};

static void set_modules(struct image *image, const struct memory_image *from)
{
	struct module *modules = calloc(MODULES_MAX, sizeof(*modules));

	fuzz_check(modules != NULL, "there is memory");
	for (size_t i = 0; i < from->module_count; i++) {
		modules[i] = from->modules[i];
		modules[i].path = strdup("module");
		if (from->vm.begin >= modules[i].begin && from->vm.begin < modules[i].end)
			modules[i].vm = &from->vm;
	}
	image_set_modules(image, modules, from->module_count);
}

/* Without any state. */
static void open_reader(struct reader *reader, const struct memory_image *image, struct memory *memory)
{
	static const struct namer_options options = { .native = NATIVE_NONE, .traces = true },
					  folding = { .native = NATIVE_FOLD };

	*reader = (struct reader){
		.image = image_new(memory),
		.objects = lua_objects_new(),
		.snapshot = snapshot_new(memory),
		.functions = functions_new(),
		.capture = calloc(1, sizeof(*reader->capture)),
		.values = value_capture_new(),
		.memory = memory,
	};
	fuzz_check(reader->image && reader->objects && reader->snapshot && reader->functions &&
			   reader->capture && reader->values,
		   "there is memory");
	set_modules(reader->image, image);
	reader->lua = lua_image_new(reader->image);
	reader->symbols = symbols_new(reader->image, memory, NULL);
	fuzz_check(reader->lua && reader->symbols, "there is memory");
	reader->native = native_unwinder_new(reader->image, reader->symbols);
	reader->namer = namer_new(reader->lua, memory, reader->symbols, reader->functions, &options);
	reader->folding = namer_new(reader->lua, memory, reader->symbols, reader->functions, &folding);
	reader->decoder = vm_decoder_new();
	fuzz_check(reader->native && reader->decoder && reader->namer && reader->folding, "there is memory");
}

static void close_reader(struct reader *reader)
{
	merged_stack_clear(&reader->stack);
	namer_free(reader->namer);
	namer_free(reader->folding);
	vm_decoder_free(reader->decoder);
	native_unwinder_free(reader->native);
	symbols_free(reader->symbols);
	functions_free(reader->functions);
	free(reader->capture);
	value_capture_free(reader->values);
	snapshot_free(reader->snapshot);
	lua_objects_free(reader->objects);
	lua_image_free(reader->lua);
	image_free(reader->image);
}

static void read_values(struct reader *reader, size_t index)
{
	const struct value_source source = { .capture = reader->capture,
					     .live = reader->memory,
					     .namer = reader->namer };
	struct variables variables = { 0 };

	frame_values(&source, &reader->stack, index, &variables);
	for (size_t i = 0; i < variables.count; i++)
		fuzz_check(strlen(variables.list[i].text) < VALUE_TEXT_SIZE, "a value's text fits");
	variables_clear(&variables);
}

static bool describe_process(void *context, uint64_t pid, char ret_text[static DETAIL_PROCESS_BYTES])
{
	(void)context;
	(void)pid;
	ret_text[0] = '\0';
	return true;
}

/* What C functions work on; in compiled code as if each frame called ngx.re.find(). */
static void read_details(struct reader *reader)
{
	static const struct zones no_zones = { .count = 0 };
	const struct detail_source source = {
		.capture = reader->capture,
		.stack = &reader->stack,
		.namer = reader->namer,
		.live = reader->memory,
		.zones = &no_zones,
		.describe_process = describe_process,
	};
	struct detail details[DETAILS_MAX];
	const struct frame *frames;
	size_t count = details_find(&source, details), frame_count;

	for (size_t i = 0; i < count; i++)
		fuzz_check(strlen(details[i].text) < DETAIL_TEXT_BYTES &&
				   details[i].merged_index < reader->stack.count,
			   "a detail fits");
	count = details_find_errors(&source, true, details);
	for (size_t i = 0; i < count; i++)
		namer_insert(reader->namer, details[i].merged_index, details[i].text, &frames, &frame_count);
	for (size_t i = 0; i < reader->stack.count && i < FRAMES_WITH_VALUES; i++) {
		uint64_t address;
		uint32_t length;

		if (reader->stack.frames[i].kind == MERGED_LUA && reader->stack.frames[i].compiled)
			compiled_pattern_find(reader->memory, &reader->stack.frames[i], &address, &length);
	}
}

static bool name_by(struct namer *namer, const struct reader *reader)
{
	const struct frame *frames;
	size_t count;

	if (namer_name(namer, &reader->stack, &frames, &count))
		return false;
	for (size_t i = 0; i < count; i++) {
		char label[FRAME_LABEL_SIZE];

		fuzz_check(frame_label(frames[i].function, frames[i].line, true, label) < sizeof(label),
			   "a label fits");
	}
	return true;
}

static void name(struct reader *reader)
{
	name_by(reader->folding, reader);
	if (!name_by(reader->namer, reader))
		return;
	for (size_t i = 0; i < reader->stack.count && i < FRAMES_WITH_VALUES; i++)
		read_values(reader, i);
	read_details(reader);
}

static struct capture_process capture_process(const struct reader *reader)
{
	return (struct capture_process){
		.lua = reader->lua,
		.objects = reader->objects,
		.snapshot = reader->snapshot,
		.values = reader->values,
	};
}

/* What the thread allocates, and what its VMs have allocated. */
static void read_allocations(struct reader *reader)
{
	static struct listed_object objects[LISTED_OBJECTS_MAX];
	const struct allocation_source source = {
		.capture = reader->capture,
		.image = reader->image,
		.objects = reader->objects,
		.native = reader->native,
		.decoder = reader->decoder,
	};
	struct memory *live = image_live(reader->image);
	struct allocation_counters film[ALLOCATION_FILM_LOOKS], held = { 0 };
	struct sample_gc gc = { .phase = GC_PHASE_MARK };
	struct allocation allocation;
	char text[ALLOCATION_TEXT_SIZE], ctype[CTYPE_TEXT_SIZE] = "";
	size_t count;

	for (size_t i = 0; i < reader->capture->global_count; i++) {
		const struct global_state *global = reader->capture->globals[i].global;

		if (!allocation_counters_read(live, global, &held))
			continue;
		allocation_counters_read_newest(live, global, &held);
		collector_look_add(live, reader->capture->globals[i].global, i, i, &gc);
		live_ctypes_text(live, &global->vm->layout, global->g, held.strings, ctype);
		if (allocation_film_read(live, global, film) &&
		    allocated_objects(live, global, held.root, 0, objects, &count))
			fuzz_check(count <= LISTED_OBJECTS_MAX, "a list has an end");
		count = 0;
		if (allocated_userdata(live, global, allocated_newest_userdata(live, live, global), 0,
				       objects, &count))
			fuzz_check(count <= LISTED_OBJECTS_MAX, "a list of userdata has an end");
	}
	if (allocation_in_flight(&source, &allocation)) {
		allocation_text(live, &allocation, &held, ctype, text);
		fuzz_check(allocation.bytes > 0, "what is allocated has a size");
	}
}

static void read_once(struct reader *reader, const struct registers *registers, struct capture_hints *hints)
{
	const struct capture_process process = capture_process(reader);

	snapshot_clear(reader->snapshot);
	capture_thread(reader->capture, &process, registers, hints);
	if (merge_stacks(reader->capture, reader->image, reader->objects, reader->native, reader->decoder,
			 &reader->stack) == 0)
		name(reader);
	read_allocations(reader);
}

static void read_thread(struct reader *reader, const struct registers *registers)
{
	struct capture_hints hints = { 0 };

	/* Twice: what was kept of the first look may be wrong by the second. */
	for (int i = 0; i < 2; i++)
		read_once(reader, registers, &hints);
}

static void read_coroutines(struct reader *reader, struct memory *memory)
{
	struct global_state *global = lua_image_global(reader->lua, 0);
	const struct capture_process process = capture_process(reader);
	struct object_walk *walk = object_walk_new(memory, global, GCT_THREAD);
	uint64_t addresses[COROUTINES_MAX];
	enum object_walk_step step = OBJECT_WALK_PAUSE;
	size_t count = 0;

	fuzz_check(walk != NULL, "there is memory");
	for (int i = 0; i < OBJECTS_WALKED_MAX && count < COROUTINES_MAX &&
			(step == OBJECT_WALK_PAUSE || step == OBJECT_WALK_FOUND);
	     i++) {
		if (step == OBJECT_WALK_PAUSE)
			object_walk_begin_slice(walk);
		step = object_walk_next(walk, &addresses[count]);
		count += step == OBJECT_WALK_FOUND;
	}
	object_walk_free(walk);
	snapshot_clear(reader->snapshot);
	capture_coroutines(reader->capture, &process, global, addresses, count);
	for (size_t i = 0; i < reader->capture->thread_count; i++)
		if (merge_coroutine(reader->capture, i, reader->objects, &reader->stack) == 0)
			name(reader);
}

static void find_not_compiled(const struct layout *layout, const struct proto *proto,
			      const struct trace_aborts *aborts, enum not_compiled_glance glance)
{
	struct not_compiled places[NOT_COMPILED_MAX];
	size_t count = not_compiled_find(layout, proto, aborts, glance, places);

	fuzz_check(count <= NOT_COMPILED_MAX, "no more places are found than there is room for");
	for (size_t i = 0; i < count; i++)
		fuzz_check(proto_contains_pc(proto, places[i].pc), "a place is in its prototype");
}

static void read_traces(struct reader *reader, struct memory *memory)
{
	const struct global_state *global = lua_image_global(reader->lua, 0);
	static struct trace_summary traces[TRACE_LIST_BATCH];
	uint32_t next = 1;
	static struct trace_exit exits[TRACE_EXITS_MAX];
	struct trace_limits limits;
	size_t exit_count;
	struct trace_aborts aborts;
	enum not_compiled_glance glance;
	size_t count;

	trace_list_limits(memory, global, &limits);
	if (!trace_list_read(memory, global, &next, traces, &count))
		return;
	fuzz_check(count <= TRACE_LIST_BATCH, "no more traces are found than there is room for");
	if (trace_aborts_read(memory, global, &aborts))
		fuzz_check(aborts.count <= TRACE_ABORTS_MAX, "no more aborts are found than there are slots");
	for (size_t i = 0; i < count; i++) {
		const struct proto *proto = lua_objects_proto(reader->objects, traces[i].startpt);

		if (trace_exits_read(memory, &global->vm->layout, &traces[i], exits, &exit_count))
			fuzz_check(exit_count <= TRACE_EXITS_MAX,
				   "no more exits are found than there is room for");

		not_compiled_glance(memory, &global->vm->layout, &aborts, &traces[i].startpt, 1, &glance);
		if (proto)
			find_not_compiled(&global->vm->layout, proto, &aborts, glance);
	}
}

void reading_walk(const struct memory_image *image, struct memory *memory, bool coroutines)
{
	struct reader reader;

	open_reader(&reader, image, memory);
	lua_image_add(reader.lua, image->g, &image->vm);
	read_thread(&reader, &image->registers);
	if (coroutines) {
		read_coroutines(&reader, memory);
		if (image->vm.layout.has_jit)
			read_traces(&reader, memory);
	}
	close_reader(&reader);
}

static void take_up(struct reader *reader, struct memory *memory, const struct state_clue *clues,
		    size_t count)
{
	fuzz_check(count <= STATE_CLUES_MAX, "no more clues are found than there is room for");
	for (size_t i = 0; i < count; i++) {
		fuzz_check(!lua_image_find(reader->lua, clues[i].g), "a clue leads to what is not known");
		if (recognise_is_state(memory, clues[i].vm, clues[i].g))
			lua_image_add(reader->lua, clues[i].g, clues[i].vm);
	}
}

void reading_unknown(const struct memory_image *image, struct memory *memory)
{
	struct capture_hints hints = { 0 };
	struct state_clue clues[STATE_CLUES_MAX];
	struct memory_range stack;
	struct reader reader;
	bool complete;

	open_reader(&reader, image, memory);
	read_once(&reader, &image->registers, &hints);
	stack = (struct memory_range){ .address = reader.capture->stack_begin,
				       .length = (size_t)(reader.capture->stack_end -
							  reader.capture->stack_begin) };
	unknown_states_may_compile(reader.capture, reader.image);
	take_up(&reader, memory, clues,
		unknown_states_linked(reader.snapshot, reader.lua, memory, &stack, clues, 0));
	while (lua_image_count(reader.lua) > 0)
		lua_image_forget(reader.lua, lua_image_global(reader.lua, 0)->g);
	take_up(&reader, memory, clues, unknown_states_in_registers(reader.capture, reader.image, clues));
	take_up(&reader, memory, clues,
		unknown_states_on_stack(reader.capture, reader.image, memory, clues, &complete));
	read_once(&reader, &image->registers, &hints);
	close_reader(&reader);
}

void reading_switched(const struct memory_image *image, struct memory *memory)
{
	struct registers registers = image->registers;
	struct capture_hints hints = {
		.own_stack = { .address = registers.sp & ~(uint64_t)(OWN_STACK_BYTES - 1),
			       .length = OWN_STACK_BYTES },
	};
	struct reader reader;

	registers.sp = IMAGE_FREE + IMAGE_FREE_BYTES / 2;
	open_reader(&reader, image, memory);
	lua_image_add(reader.lua, image->g, &image->vm);
	read_once(&reader, &registers, &hints);
	close_reader(&reader);
}

static void name_code(struct memory *memory, const struct vm_code *vm, uint64_t g)
{
	static struct builtins builtins;
	struct package_path path = { 0 };
	struct vm_names names;

	package_path_read(memory, &vm->layout, g, &path);
	package_path_clear(&path);
	builtins_collect(memory, &vm->layout, g, &builtins);
	__real_vm_names_collect(memory, vm, g, &builtins, &names);
	vm_names_find(&names, vm->begin);
	vm_names_clear(&names);
	builtins_clear(&builtins);
}

void reading_recognise(const struct memory_image *image, struct memory *memory)
{
	uint64_t states[STATES_MAX], around = image->g & ~(uint64_t)(STATES_SEARCHED - 1);
	const struct module *module = image->modules;
	struct vm_code vm;
	size_t count;

	while (image->vm.begin >= module->end)
		module++;
	if (recognise_vm(memory, EM_X86_64, module->base, NULL, NULL, &vm) != RECOGNISE_OK)
		return;
	count = recognise_states(memory, &vm, around, around + STATES_SEARCHED, states, STATES_MAX);
	fuzz_check(count <= STATES_MAX, "no more states are found than there is room for");
	if (count && recognise_confirm(memory, &vm, states[0], NULL, NULL) == RECOGNISE_OK)
		name_code(memory, &vm, states[0]);
}

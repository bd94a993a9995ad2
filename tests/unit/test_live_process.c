/* SPDX-License-Identifier: MIT */
/* What is read of LuaJIT processes that wait for input, at a place that their programs choose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "luajit-layouts/bytecode.h"
#include "luajit-layouts/field.h"
#include "output/labels/frame_label.h"
#include "src/inspect/lua_process.h"
#include "src/inspect/lua_process_parts.h"
#include "src/linux/proc/maps.h"
#include "src/linux/proc/resident.h"
#include "tests/unit/heap_walk.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/kept_text.h"
#include "tests/unit/live_process.h"
#include "unwind/compiled/not_compiled.h"
#include "unwind/compiled/trace_copy.h"
#include "unwind/compiled/trace_exits.h"
#include "unwind/compiled/trace_list.h"
#include "unwind/heap/heap_copy.h"
#include "unwind/heap/heap_read.h"
#include "unwind/trace/trace_block.h"
#include "unwind/listing/trace_listing.h"
#include "unwind/vm/vm_names.h"

/*---- Variables ----*/

static void print_variables(struct kept_text *kept, struct live *live)
{
	const struct frame *frames;
	size_t count;

	assert_int_equal(lua_process_want_values(live->process), 0);
	count = live_unwind(live, &frames);
	assert_true(count > 2);
	for (size_t i = 0; i < count; i++) {
		struct variables variables = { 0 };
		char label[FRAME_LABEL_SIZE];

		frame_label(frames[i].function, frames[i].line, true, label);
		fprintf(kept->out, "%s%s\n", label, frames[i].compiled ? " [compiled]" : "");
		assert_int_equal(lua_process_variables(live->process, i, &variables), 0);
		for (size_t j = 0; j < variables.count; j++) {
			const struct variable *variable = &variables.list[j];

			fprintf(kept->out, "    %s %u %s: %s%s ", variable_kind_name(variable->kind),
				variable->index, variable->name ? variable->name : "-",
				variable->type ? variable->type : "unknown",
				variable->of_snapshot ? " of a snapshot" : "");
			print_without_addresses(kept->out, variable->text);
			putc('\n', kept->out);
		}
		variables_clear(&variables);
	}
}

static const char interpreted[] =
	"ffi = require('ffi')\n"
	"ffi.cdef('struct point { int x; };')\n"
	"local up, flags, count = { 1, 2, name = 'x' }, { [true] = {} }, 0\n"
	"local function inner(a, b, ...)\n"
	"  local text, number, long = 'te\\0xt\"', 0.5, ('y'):rep(100)\n"
	"  do local gone = 1 end\n"
	"  local yes, none, func, lib, co = true, nil, print, string.gsub, coroutine.create(print)\n"
	"  local point, big, pointer = ffi.new('struct point'), -5LL, ffi.new('char[3]')\n"
	"  for i = 3, 4 do\n"
	"    for key, value in pairs({ k = 'v' }) do\n"
	"      io.write('ready') io.flush()\n"
	"      local line = io.read('*l')\n"
	"      count = count + #line\n"
	"    end\n"
	"  end\n"
	"  return up, flags, count, a, b, text, number, long, yes, none, func, lib, co, point, big, pointer\n"
	"end\n"
	"local function outer(first)\n"
	"  local result = inner(first, nil, 'v1', 2, {})\n"
	"  return result\n"
	"end\n"
	"local function many(...)\n"
	"  local all = select('#', ...)\n"
	"  outer('one')\n"
	"  return all\n"
	"end\n"
	"many(unpack({ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,\n"
	"  21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35 }))\n";

static void variables_of_the_interpreter_are_known(void **state)
{
	struct kept_text kept;
	struct live live;

	(void)state;
	live_begin(&live, interpreted, 0, 1);
	kept_text_begin(&kept);
	print_variables(&kept, &live);
	live_end(&live);
	kept_text_check(&kept, "variables-interpreted.txt");
}

/* The trace reads its own input. */
static const char compiled[] = "ffi = require('ffi')\n"
			       "ffi.cdef('long read(int, void *, unsigned long);')\n"
			       "local C, buffer, flag = ffi.C, ffi.new('char[1]'), true\n"
			       "local function add(total, one)\n"
			       "  local sum = total + one\n"
			       "  C.read(0, buffer, 1)\n"
			       "  return sum\n"
			       "end\n"
			       "local function wait(limit, word)\n"
			       "  local total, label, changed = 0, 'label', 1\n"
			       "  for i = 1, limit do\n"
			       "    local constant = 'constant'\n"
			       "    total = add(total, i)\n"
			       "    changed = flag and constant or nil\n"
			       "  end\n"
			       "  return total, label, changed, word\n"
			       "end\n"
			       "io.write('ready') io.flush()\n"
			       "wait(1000000, 'word')\n";

static void variables_of_traces_are_known_if_nothing_assigns_them(void **state)
{
	struct kept_text kept;
	struct live live;

	(void)state;
	live_begin(&live, compiled, 200, 1);
	kept_text_begin(&kept);
	print_variables(&kept, &live);
	live_end(&live);
	kept_text_check(&kept, "variables-compiled.txt");
}

/*---- Traces ----*/

static const char traces[] = "jit.opt.start('hotloop=20', 'hotexit=10')\n"
			     "local function run(n, odd)\n"
			     "  local sum = 0\n"
			     "  for i = 1, n do\n"
			     "    if i == odd then sum = sum - 1 end\n"
			     "    sum = sum + i\n"
			     "  end\n"
			     "  return sum\n"
			     "end\n"
			     "local function often(n)\n"
			     "  local sum, names = 0, { 1.5 }\n"
			     "  for i = 1, n do\n"
			     "    if i % 2 == 0 then sum = sum + names[1] else sum = sum - i end\n"
			     "  end\n"
			     "  return sum\n"
			     "end\n"
			     "local function never(n)\n"
			     "  for i = 1, n do local f = function() return i end end\n"
			     "end\n"
			     "jit.off(function() end)\n"
			     "run(200, 0)\n"
			     "for k = 1, 5 do run(200, 100) end\n"
			     "often(300)\n"
			     "for k = 1, 2 do never(1000) end\n"
			     "io.write('ready') io.flush()\n"
			     "io.read('*l')\n";

static void print_exits(FILE *out, struct live *live, const struct trace_summary *trace)
{
	static struct trace_exit exits[TRACE_EXITS_MAX];
	struct trace_summary other = *trace;
	size_t count = 0;

	assert_true(trace_exits_read(lua_process_memory(live->process), &live->global->vm->layout, trace,
				     exits, &count));
	for (size_t i = 0; i < count; i++)
		fprintf(out, "    exit %u: taken %u, side %d, bytecode %lld\n", exits[i].number,
			exits[i].taken, exits[i].has_side,
			exits[i].proto ? (long long)(exits[i].pc - trace->startpc) / 4 : -1000);
	/* Another trace in its place is not read. */
	other.number++;
	assert_false(trace_exits_read(lua_process_memory(live->process), &live->global->vm->layout, &other,
				      exits, &count));
}

static void print_copy(FILE *out, struct live *live, const struct trace_summary *summary)
{
	const struct layout *layout = &live->global->vm->layout;
	struct trace_summary other = *summary;
	struct trace_instruction instruction;
	struct trace trace;

	assert_true(trace_copy_read(lua_process_memory(live->process), layout, summary, &trace));
	assert_int_equal(trace.number, summary->number);
	assert_int_equal(trace.mcode, summary->mcode);
	assert_int_equal(trace.szmcode, summary->szmcode);
	assert_int_equal(trace.startpc, summary->startpc);
	assert_int_equal(trace_snapshot_count(&trace, layout), summary->snapshots);
	fputs("    IR", out);
	for (uint32_t ref = 0x8001; trace_instruction(&trace, layout, ref, &instruction); ref++)
		fprintf(out, " %d", (int)instruction.op);
	putc('\n', out);
	trace_copy_clear(&trace);
	other.szmcode++;
	other.number++;
	assert_false(trace_copy_read(lua_process_memory(live->process), layout, &other, &trace));
}

static void print_listing(FILE *out, struct live *live, uint32_t number)
{
	struct trace_listing *reading = trace_listing_new(lua_process_memory(live->process), live->global,
							  number);
	struct listing listing = { 0 };
	size_t code = 0;

	assert_non_null(reading);
	trace_listing_read(reading);
	assert_non_null(trace_listing_trace(reading));
	assert_int_equal(trace_listing_make(reading, NULL, &listing), 0);
	for (size_t i = 0; i < listing.count; i++) {
		const struct listing_line *line = &listing.lines[i];

		code += line->kind == LISTING_CODE;
		if (line->kind == LISTING_CODE)
			continue;
		fprintf(out, "    %d %s | ", (int)line->kind, line->place);
		if (line->kind == LISTING_HEAD)
			fprintf(out, "head\n");
		else
			print_without_addresses(out, line->text);
		putc('\n', out);
	}
	assert_true(code > 10);
	listing_clear(&listing);
	trace_listing_free(reading);
}

static void traces_their_exits_and_code_are_listed(void **state)
{
	struct trace_summary list[TRACE_LIST_BATCH];
	struct trace_limits limits;
	struct trace_aborts aborts;
	struct kept_text kept;
	struct live live;
	uint32_t next = 1;
	size_t count = 0;

	(void)state;
	live_begin(&live, traces, 0, 1);
	kept_text_begin(&kept);
	assert_true(trace_list_limits(lua_process_memory(live.process), live.global, &limits));
	assert_int_equal(limits.hotexit, 10);
	assert_true(limits.mcode_allocated && limits.mcode_allocated <= limits.mcode_max);
	assert_true(trace_list_read(lua_process_memory(live.process), live.global, &next, list, &count));
	assert_int_equal(next, 0);
	for (size_t i = 0; i < count; i++) {
		fprintf(kept.out,
			"trace %u: kind %d, root %u, parent %u, exit %u, link %d to %u, %u snapshots, %u instructions\n",
			list[i].number, (int)list[i].kind, list[i].root, list[i].parent, list[i].exitno,
			(int)list[i].linktype, list[i].link, list[i].snapshots, list[i].instructions);
		print_exits(kept.out, &live, &list[i]);
		print_copy(kept.out, &live, &list[i]);
		print_listing(kept.out, &live, list[i].number);
	}
	assert_true(trace_aborts_read(lua_process_memory(live.process), live.global, &aborts));
	for (size_t i = 0; i < aborts.count; i++)
		fprintf(kept.out, "aborted %u times: %s\n", aborts.at[i].times,
			aborts.at[i].reason ? aborts.at[i].reason : "?");
	live_end(&live);
	kept_text_check(&kept, "live-traces.txt");
}

/*---- The interpreter ----*/

/* Each handler of the dispatch table has the name of its bytecode, up to where another one begins. */
static void handlers_have_the_names_of_their_bytecodes(void **state)
{
	const struct builtins none = { 0 };
	struct vm_names names = { .count = 0 };
	const struct layout *layout;
	unsigned named = 0, ended = 0;
	struct live live;

	(void)state;
	live_begin(&live, "jit.off() io.write('ready') io.flush() io.read('*l')", 0, 1);
	layout = &live.global->vm->layout;
	assert_true(vm_names_collect(lua_process_memory(live.process), live.global->vm, live.global->g, &none,
				     &names));
	for (size_t i = 0; i < names.count; i++) {
		assert_true(names.at[i].begin < names.at[i].end);
		assert_true(i == 0 || names.at[i - 1].end <= names.at[i].begin);
	}
	for (unsigned op = 0; op < 128 && bytecode_name(layout, (uint8_t)op); op++) {
		char wanted[VM_NAME_SIZE];
		const char *name;
		uint64_t handler;

		assert_true(memory_u64(lua_process_memory(live.process),
				       live.global->g + (uint64_t)layout->GG_dispatch + op * 8, &handler));
		name = vm_names_find(&names, handler);
		snprintf(wanted, sizeof(wanted), "lj_BC_%s", bytecode_name(layout, (uint8_t)op));
		/* Several bytecodes may have one handler. */
		named += name && strcmp(name, wanted) == 0;
		assert_true(name == NULL || strncmp(name, "lj_", 3) == 0);
		for (size_t i = 0; i < names.count; i++)
			if (names.at[i].begin == handler) {
				assert_ptr_equal(vm_names_find(&names, names.at[i].end - 1),
						 names.at[i].name);
				ended += vm_names_find(&names, names.at[i].end) != names.at[i].name;
			}
	}
	assert_true(named > 80);
	assert_true(ended >= named);
	assert_null(vm_names_find(&names, live.global->vm->begin - 1));
	assert_null(vm_names_find(&names, UINT64_MAX));
	vm_names_clear(&names);
	live_end(&live);
}

/*---- The heap ----*/

static const char heap[] =
	"collectgarbage('stop')\n"
	"ffi = require('ffi')\n"
	"ffi.cdef('struct point { double x, y; };')\n"
	"local captured = { 'captured' }\n"
	"local weak = setmetatable({ captured }, { __mode = 'v', __index = string })\n"
	"local keys = setmetatable({ [captured] = 1 }, { __mode = 'k' })\n"
	"local parked = coroutine.create(function(argument)\n"
	"  local inside = { argument }\n"
	"  coroutine.yield(inside)\n"
	"  return inside\n"
	"end)\n"
	"coroutine.resume(parked, 'argument')\n"
	"made_up = {\n"
	"  'first', { 'second' }, text = 'text', [true] = false, [1.5] = {}, [captured] = 'by table',\n"
	"  weak = weak, keys = keys, parked = parked,\n"
	"  closure = function() return captured, weak end,\n"
	"  point = ffi.gc(ffi.new('struct point'), function() end), long = 5LL, array = ffi.new('char[?]', 1000),\n"
	"  proxy = newproxy(true), file = io.stdout, builtin = string.gsub,\n"
	"}\n"
	"made_up.self = made_up\n"
	"for i = 1, 100 do made_up.text = made_up.text end\n"
	"io.write('ready') io.flush()\n"
	"io.read('*l')\n";

static void set_regions(struct heap_copy *copy, const struct maps *maps)
{
	struct heap_range *ranges = calloc(maps_count(maps), sizeof(*ranges));
	size_t count = 0;

	assert_non_null(ranges);
	for (size_t i = 0; i < maps_count(maps); i++) {
		const struct mapping *mapping = maps_at(maps, i);

		if ((mapping->access & MAPPING_WRITE) && (mapping->access & MAPPING_READ))
			ranges[count++] = (struct heap_range){ mapping->begin, mapping->end, false };
	}
	assert_int_equal(heap_copy_set_regions(copy, ranges, count), 0);
	free(ranges);
}

static void a_heap_is_what_its_program_made(void **state)
{
	struct heap_account account = { 0 }, measured = { 0 };
	struct heap_graph graph;
	struct heap_copy *copy;
	struct kept_text kept;
	struct live live;

	(void)state;
	live_begin(&live, heap, 0, 1);
	copy = heap_copy_new(lua_process_memory(live.process));
	set_regions(copy, lua_process_maps(live.process));
	assert_int_equal(heap_measure(copy, live.global->vm, live.global->g, &measured), 0);
	assert_int_equal(heap_read(copy, live.global->vm, live.global->g,
				   &(struct heap_read_options){ .strings = true }, &graph, &account),
			 0);
	assert_true(account.gc_total > 10000);
	assert_int_equal(account.gc_total, account.sum);
	assert_int_equal(measured.gc_total, account.gc_total);
	assert_true(account.pause.known && account.pause.value == 200);
	assert_true(account.stepmul.known && account.stepmul.value == 200);
	assert_string_equal(account.gc_state, "pause");
	assert_true(account.dead_known);
	assert_int_equal(account.uncertain.dangling, 0);
	assert_int_equal(account.uncertain.broken_chains, 0);
	assert_int_equal(account.uncertain.unread_objects, 0);
	assert_int_equal(account.uncertain.unknown_objects, 0);
	assert_int_equal(account.uncertain.unsized_objects, 0);
	kept_text_begin(&kept);
	heap_walk_print(kept.out, &graph, "made_up");
	free(graph.nodes);
	free(graph.edges);
	free(graph.texts);
	heap_copy_free(copy);
	live_end(&live);
	kept_text_check(&kept, "live-heap.txt");
}

/*---- Allocations ----*/

enum { STEPS = 40000, STEPS_A_LOOK = 7 };

static const char allocating[] = "jit.off() collectgarbage('stop')\n"
				 "local kept, text = {}, 'text'\n"
				 "io.write('ready') io.flush() io.read('*l')\n"
				 "for i = 1, 1e9 do\n"
				 "  local t = {}\n"
				 "  kept[#kept + 1], t.field = function() return t end, i\n"
				 "  text = text .. i\n"
				 "  kept[text] = coroutine.create(print)\n"
				 "  newproxy()\n"
				 "end\n";

/* Each allocation that is under way is told with the bytes by which gc.total grows then. */
static void allocations_under_way_are_told(void **state)
{
	uint64_t total, told_total = 0, told_bytes = 0;
	unsigned int kinds[ALLOCATION_KINDS] = { 0 }, judged = 0;
	struct live live;

	(void)state;
	live_begin(&live, allocating, 0, 1);
	target_write_line(&live.target);
	for (int i = 0; i < STEPS; i++) {
		const struct frame *frames;
		struct allocation allocation;

		assert_int_equal(target_step(&live.target), 0);
		assert_true(memory_u64(lua_process_memory(live.process),
				       live.global->g + (uint64_t)live.global->vm->layout.g_gc_total,
				       &total));
		if (told_bytes && total != told_total) {
			assert_int_equal(total - told_total, told_bytes);
			told_bytes = 0;
			judged++;
		}
		if (i % STEPS_A_LOOK)
			continue;
		live_unwind(&live, &frames);
		if (!lua_process_allocation(live.process, &allocation))
			continue;
		assert_ptr_equal(allocation.global, live.global);
		assert_in_range(allocation.kind, 0, ALLOCATION_KINDS - 1);
		if (allocation.kind == ALLOCATION_ARRAY || allocation.kind == ALLOCATION_HASH) {
			uint8_t gct = 0;

			assert_true(field_gct(lua_process_memory(live.process), &live.global->vm->layout,
					      allocation.table, &gct));
			assert_int_equal(gct, GCT_TABLE);
		}
		if (!told_bytes)
			kinds[allocation.kind]++;
		else
			assert_int_equal(allocation.bytes, told_bytes);
		told_total = total;
		told_bytes = allocation.bytes;
	}
	assert_in_range(judged, 20, STEPS);
	assert_in_range(kinds[ALLOCATION_TABLE], 1, STEPS);
	assert_in_range(kinds[ALLOCATION_FUNCTION], 1, STEPS);
	assert_in_range(kinds[ALLOCATION_UPVALUE], 1, STEPS);
	assert_in_range(kinds[ALLOCATION_STRING], 1, STEPS);
	assert_in_range(kinds[ALLOCATION_THREAD], 1, STEPS);
	assert_in_range(kinds[ALLOCATION_STACK], 1, STEPS);
	assert_in_range(kinds[ALLOCATION_USERDATA], 1, STEPS);
	assert_in_range(kinds[ALLOCATION_HASH], 1, STEPS);
	live_end(&live);
}

/*---- Files ----*/

static size_t files_found(const struct lua_process *process, size_t *ret_late)
{
	size_t found = 0;

	*ret_late = 0;
	for (size_t i = 0; i < image_module_count(process->image); i++) {
		const struct module *module = image_module(process->image, i);

		assert_int_equal(module->file != NULL, module->changed_ns != 0);
		found += module->file != NULL;
		*ret_late += module->file_is_late;
	}
	return found;
}

/* That they take too long in one look is not for good. */
static void files_that_are_late_are_found_at_the_next_look(void **state)
{
	const struct namer_options options = { .native = NATIVE_NONE };
	struct known_files *files = known_files_new();
	struct lua_process *process;
	struct live live;
	uint64_t left_ns = 0;
	size_t late, still_late;

	(void)state;
	live_begin(&live, "io.write('ready') io.flush() io.read('*l')", 0, 1);
	assert_non_null(files);
	assert_int_equal(lua_process_open(live.target.pid, live.functions, files, &options, &process), 0);
	errands_allow(known_files_errands(files), &left_ns);
	assert_int_equal(lua_process_refresh(process, false), 0);
	assert_int_equal(files_found(process, &late), 0);
	assert_true(late > 2);
	errands_allow(known_files_errands(files), NULL);
	assert_int_equal(lua_process_refresh(process, false), 0);
	assert_int_equal(files_found(process, &still_late), late);
	assert_int_equal(still_late, 0);
	lua_process_close(process);
	known_files_free(files);
	live_end(&live);
}

static unsigned int pagemaps; /* so often one was opened */

INSTEAD_OF(resident_open);
int __wrap_resident_open(pid_t pid)
{
	pagemaps++;
	return __real_resident_open(pid);
}

/* That its files are known to have no LuaJIT, another process has told. */
static void whether_code_is_of_its_file_is_asked_at_one_opening(void **state)
{
	const struct namer_options options = { .native = NATIVE_NONE };
	struct known_files *files = known_files_new();
	struct lua_process *process;
	struct live live;

	(void)state;
	live_begin(&live, "io.write('ready') io.flush() io.read('*l')", 0, 1);
	assert_non_null(files);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(lua_process_open(live.target.pid, live.functions, files, &options, &process),
				 0);
		pagemaps = 0;
		assert_int_equal(lua_process_refresh(process, false), 0);
		lua_process_close(process);
	}
	assert_in_range(pagemaps, 1, 2); /* the search for states has its own */
	known_files_free(files);
	live_end(&live);
}

static unsigned int searches; /* for unpacked programs */

INSTEAD_OF(unpacked_find);
size_t __wrap_unpacked_find(const struct maps *maps, struct memory *memory,
			    struct mapped_file ret_files[static UNPACKED_MAX], size_t *ret_more)
{
	searches++;
	return __real_unpacked_find(maps, memory, ret_files, ret_more);
}

/* Each search reads the beginning of many mappings. */
static void unpacked_programs_are_searched_for_once_where_modules_change(void **state)
{
	static const char program[] = "io.write('ready') io.flush() io.read('*l') "
				      "assert(package.loadlib('libresolv.so.2', '*')) io.read('*l')";
	struct live live;
	size_t modules;

	(void)state;
	live_begin(&live, program, 0, 1);
	modules = image_module_count(live.process->image);
	assert_int_equal(write(live.target.input, "\n", 1), 1);
	assert_int_equal(target_run(&live.target, 0), 0);
	for (int i = 0; i < LIVE_LOOKS_MAX && image_module_count(live.process->image) == modules; i++) {
		usleep(LIVE_LOOK_US);
		searches = 0;
		assert_int_equal(lua_process_refresh(live.process, false), 0);
	}
	assert_true(image_module_count(live.process->image) > modules);
	assert_int_equal(searches, 1);
	live_end(&live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_that_are_late_are_found_at_the_next_look),
		cmocka_unit_test(whether_code_is_of_its_file_is_asked_at_one_opening),
		cmocka_unit_test(unpacked_programs_are_searched_for_once_where_modules_change),
		cmocka_unit_test(variables_of_the_interpreter_are_known),
		cmocka_unit_test(variables_of_traces_are_known_if_nothing_assigns_them),
		cmocka_unit_test(traces_their_exits_and_code_are_listed),
		cmocka_unit_test(handlers_have_the_names_of_their_bytecodes),
		cmocka_unit_test(a_heap_is_what_its_program_made),
		cmocka_unit_test(allocations_under_way_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

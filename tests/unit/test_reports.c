/* SPDX-License-Identifier: MIT */
/* Dumps, traces, memory and requests' lives of made-up processes, as people and programs read them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/listing/listing_report.h"
#include "output/reports/dump_report.h"
#include "output/reports/footprint_report.h"
#include "output/reports/request_life.h"
#include "output/reports/trace_report.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/kept_text.h"
#include "tests/unit/made_up_source.h"

INSTEAD_OF(strdup);

#define MS UINT64_C(1000000)

static const struct function yield = { .kind = FRAME_BUILTIN, .name = "coroutine.yield" };
static const struct function handle = {
	.kind = FRAME_LUA, .name = "handle", .file = "@handler.lua", .firstline = 5
};
static const struct function outer = {
	.kind = FRAME_LUA, .name = "out\ner", .file = "@handler.lua", .firstline = 50
};
static const struct function native = { .kind = FRAME_NATIVE, .name = "main", .module = "luajit" };

/*---- Dumps ----*/

static void set_variable(struct variables *variables, struct variable variable, const char *text)
{
	struct variable *list = realloc(variables->list, (variables->count + 1) * sizeof(*list));

	assert_non_null(list);
	variable.name = variable.name ? strdup(variable.name) : NULL;
	variable.text = strdup(text);
	list[variables->count++] = variable;
	variables->list = list;
}

/* Of two frames: the first has some of each kind. */
static struct variables *made_up_variables(void)
{
	static char name[] = "na\nme";
	struct variables *variables = calloc(2, sizeof(*variables));

	assert_non_null(variables);
	set_variable(&variables[0],
		     (struct variable){ .kind = VARIABLE_ARGUMENT, .name = name, .type = "string" },
		     "\"te\txt\"");
	set_variable(&variables[0],
		     (struct variable){
			     .kind = VARIABLE_LOCAL, .index = 1, .type = "number", .of_snapshot = true },
		     "0.5");
	set_variable(&variables[0], (struct variable){ .kind = VARIABLE_SLOT, .index = 7 }, "being assigned");
	set_variable(&variables[0], (struct variable){ .kind = VARIABLE_VARARG, .index = 1, .type = "nil" },
		     "nil");
	set_variable(&variables[0],
		     (struct variable){ .kind = VARIABLE_UPVALUE, .name = name, .type = "table" },
		     "table: 0x1");
	return variables;
}

static void add_coroutines(struct dump_vm *vm, int count, enum coroutine_state state, const char *phase,
			   struct frame *frames, size_t frame_count)
{
	struct dump_stack stack = { .frames = frames, .count = frame_count };

	for (int i = 0; i < count; i++)
		assert_int_equal(dump_vm_add(vm, state, phase, &stack), 0);
}

static void coroutines_alike_are_one_group(void **state)
{
	struct dump_process *process = dump_process_new(42, "luajit");
	struct dump_vm *vm = dump_process_add_vm(process, 0x4000, "/usr/bin/luajit");
	struct frame frames[] = {
		{ .function = &yield },
		{ .function = &handle, .line = 8, .compiled = true, .certainty = CERTAINTY_NEAREST }
	};
	struct frame others[] = { { .function = &yield }, { .function = &handle, .line = 9 } };
	struct dump_stack one;
	struct kept_text kept;

	(void)state;
	add_coroutines(vm, 2, COROUTINE_SUSPENDED, NULL, others, 2);
	add_coroutines(vm, 3, COROUTINE_SUSPENDED, NULL, frames, 2);
	add_coroutines(vm, 2, COROUTINE_SUSPENDED, "content", frames, 2);
	add_coroutines(vm, 2, COROUTINE_NOT_STARTED, NULL, frames + 1, 1);
	add_coroutines(vm, 1, COROUTINE_SUSPENDED, NULL, frames, 1);
	add_coroutines(vm, 4, COROUTINE_DEAD, NULL, NULL, 0);
	add_coroutines(vm, 1, COROUTINE_RUNNING, NULL, NULL, 0);
	add_coroutines(vm, 1, COROUTINE_NORMAL, NULL, NULL, 0);
	add_coroutines(vm, 1, COROUTINE_ACTIVE, NULL, NULL, 0);
	/* With variables, each is a group of its own. */
	for (int i = 0; i < 2; i++) {
		one = (struct dump_stack){ .frames = frames, .variables = made_up_variables(), .count = 2 };
		assert_int_equal(dump_vm_add(vm, COROUTINE_SUSPENDED, NULL, &one), 0);
	}
	vm->complete = true;
	dump_process_sort(process);
	assert_int_equal(vm->group_count, 11);
	assert_int_equal(vm->counts[COROUTINE_SUSPENDED], 10);
	kept_text_begin(&kept);
	dump_process_print(kept.out, process);
	kept_text_json(&kept, dump_process_json(process));
	dump_process_free(process);
	kept_text_check(&kept, "dump-coroutines.txt");
}

static void threads_come_with_what_they_do(void **state)
{
	struct dump_process *process = dump_process_new(42, "luajit\n");
	struct frame frames[] = { { .function = &native },
				  { .function = &outer, .certainty = CERTAINTY_FUNCTION } };
	struct dump_stack stack = { .frames = frames, .variables = made_up_variables(), .count = 2 };
	struct dump_thread thread = { .tid = 42, .state = "running", .phase = "content" };
	static char name[] = "wor\nker";
	struct kept_text kept;
	struct dump_vm *vm;

	(void)state;
	assert_int_equal(dump_process_add_thread(process, &thread, &stack), 0);
	thread = (struct dump_thread){ .tid = 43, .state = "asleep", .name = name };
	stack.variables = NULL;
	assert_int_equal(dump_process_add_thread(process, &thread, &stack), 0);
	frames[0].function = NULL; /* copied */
	vm = dump_process_add_vm(process, 0x4000, "/usr/bin/lua\njit");
	vm->counts[COROUTINE_SUSPENDED] = 1;
	process->holds = 1;
	process->longest_hold_ns = 1001;
	dump_process_sort(process);
	kept_text_begin(&kept);
	dump_process_print(kept.out, process);
	process->holds = 2;
	process->longest_hold_ns = 1000;
	process->variables_cut = true;
	process->variable_count = 5;
	dump_process_print(kept.out, process);
	kept_text_json(&kept, dump_process_json(process));
	dump_process_free(process);
	process = dump_process_new(7, NULL);
	dump_process_print(kept.out, process);
	dump_process_free(process);
	kept_text_check(&kept, "dump-threads.txt");
}

/*---- Traces ----*/

static void add_trace(struct trace_vm *vm, struct trace_summary trace, const struct function *start,
		      uint32_t line, uint64_t cpu_ns)
{
	const struct trace_row row = { trace, start, line, cpu_ns / MS, cpu_ns };

	assert_int_equal(trace_vm_add(vm, &row), 0);
}

static void add_exit(struct trace_vm *vm, uint32_t trace, uint32_t number, uint32_t taken, bool has_side)
{
	const struct exit_row row = { .trace = trace,
				      .number = number,
				      .taken = taken,
				      .has_side = has_side,
				      .function = number % 2 ? &handle : NULL,
				      .line = 8 };

	assert_int_equal(trace_vm_add_exit(vm, &row), 0);
}

enum { PROTO = 0x5000 };

static void add_interpreted(struct trace_vm *vm, struct interpreted_row row)
{
	assert_int_equal(trace_vm_add_interpreted(vm, &row), 0);
}

static struct trace_process *made_up_traces(void)
{
	struct trace_process *process = trace_process_new(42, "luajit\n");
	struct trace_vm *vm = trace_process_add_vm(process, 0x4000, "/usr/bin/luajit");

	process->duration_ns = 2000 * MS;
	process->samples = 100;
	process->cpu_ns = 1000 * MS;
	process->state_ns[VM_STATE_COMPILED] = 750 * MS;
	process->state_ns[VM_STATE_GC] = 250 * MS;
	process->gone_ns = 30 * MS;
	process->unlisted_ns = 50 * MS;
	process->gone_count = 2;
	vm->has_jit = vm->complete = true;
	vm->limits = (struct trace_limits){ 128 << 10, 512 << 10, 64 << 10, 56 };
	add_trace(vm,
		  (struct trace_summary){ .number = 1,
					  .mcode = 0x7000,
					  .szmcode = 1000,
					  .linktype = TRACE_LINK_LOOP,
					  .link = 1,
					  .snapshots = 4,
					  .instructions = 30 },
		  &handle, 8, 100 * MS);
	add_trace(vm,
		  (struct trace_summary){ .number = 2,
					  .szmcode = 500,
					  .kind = TRACE_SIDE,
					  .root = 1,
					  .parent = 1,
					  .exitno = 3,
					  .linktype = TRACE_LINK_ROOT,
					  .link = 1,
					  .snapshots = 2 },
		  &handle, 9, 300 * MS);
	add_trace(vm,
		  (struct trace_summary){ .number = 4,
					  .szmcode = 60,
					  .linktype = TRACE_LINK_STITCH,
					  .link = 5,
					  .snapshots = 3 },
		  NULL, 0, 100 * MS);
	add_trace(vm,
		  (struct trace_summary){ .number = 5,
					  .szmcode = 70,
					  .kind = TRACE_STITCHED,
					  .linktype = TRACE_LINK_INTERP,
					  .snapshots = 1 },
		  &outer, 0, 0);
	add_trace(vm,
		  (struct trace_summary){ .number = 6,
					  .szmcode = 1,
					  .kind = TRACE_STITCHED,
					  .linktype = TRACE_LINK_STITCH,
					  .link = 6,
					  .snapshots = 5 },
		  &outer, 51, 0);
	add_exit(vm, 1, 1, 10, false);
	add_exit(vm, 1, 2, 60, false);
	add_exit(vm, 1, 3, 0, true);
	add_exit(vm, 2, 0, 5, true);
	add_exit(vm, 2, 1, 0, true); /* the link at the end of the trace: no exit */
	add_exit(vm, 4, 1, 56, false);
	add_exit(vm, 4, 2, 55, false);
	add_exit(vm, 6, 3, 55, false);
	add_interpreted(vm, (struct interpreted_row){ &handle, 8, true, NOT_COMPILED_BLACKLISTED,
						      "NYI: bytecode", 11, 10 * MS, PROTO });
	/* The same again; and in another prototype, without time: shown once. */
	add_interpreted(vm, (struct interpreted_row){ &handle, 8, true, NOT_COMPILED_BLACKLISTED, "other", 1,
						      0, PROTO });
	add_interpreted(vm, (struct interpreted_row){ &handle, 8, true, NOT_COMPILED_BLACKLISTED, "other", 1,
						      0, PROTO + 1 });
	add_interpreted(vm, (struct interpreted_row){ &handle, 8, false, NOT_COMPILED_BLACKLISTED, NULL, 0, 0,
						      PROTO });
	add_interpreted(vm, (struct interpreted_row){ &handle, 9, true, NOT_COMPILED_ABORTED, "leaving loop",
						      3, 0, PROTO });
	add_interpreted(
		vm, (struct interpreted_row){ &outer, 9, true, NOT_COMPILED_OFF, NULL, 0, 40 * MS, PROTO });
	add_interpreted(
		vm, (struct interpreted_row){ &outer, 3, true, NOT_COMPILED_OFF, NULL, 0, 40 * MS, PROTO });
	return process;
}

static void traces_are_shown_the_heaviest_first(void **state)
{
	struct trace_process *process = made_up_traces();
	struct trace_vm *vm = &process->vms[0];
	struct kept_text kept;

	(void)state;
	trace_vm_find_parents(vm);
	assert_int_equal(vm->rows[3].trace.parent, 4);
	assert_int_equal(vm->rows[4].trace.parent, 0);
	assert_int_equal(vm->exit_count, 7);
	assert_int_equal(vm->exits[2].side, 2);
	assert_int_equal(vm->exits[2].side_ns, 300 * MS);
	assert_int_equal(vm->exits[0].trace_ns, 100 * MS);
	assert_int_equal(vm->interpreted_count, 5);
	trace_process_sort(process);
	assert_int_equal(vm->rows[0].trace.number, 2);
	kept_text_begin(&kept);
	trace_process_print(kept.out, process);
	kept_text_json(&kept, trace_process_json(process));
	vm->complete = false;
	vm->limits.mcode_allocated = 449 << 10;
	assert_true(trace_vm_is_full(vm));
	trace_process_print(kept.out, process);
	vm->limits.mcode_allocated = 448 << 10;
	assert_false(trace_vm_is_full(vm));
	vm->closed = vm->traces_left = true;
	trace_process_print(kept.out, process);
	kept_text_json(&kept, trace_process_json(process));
	vm->limits = (struct trace_limits){ 0 };
	trace_process_print(kept.out, process);
	vm->has_jit = false;
	process->gone_ns = process->unlisted_ns = process->cpu_ns = 0;
	trace_process_print(kept.out, process);
	trace_process_free(process);
	kept_text_check(&kept, "traces.txt");
}

static void functions_that_read_the_same_have_their_own_time(void **state)
{
	struct trace_process *process = trace_process_new(42, NULL);
	struct trace_vm *vm = trace_process_add_vm(process, 0x4000, "/usr/bin/luajit");
	struct interpreted_row row = { .function = &handle, .line = 8, .cause = NOT_COMPILED_ABORTED };

	(void)state;
	row.proto = PROTO;
	add_interpreted(vm, row);
	row.proto = PROTO + 1;
	row.cpu_ns = 10 * MS;
	add_interpreted(vm, row);
	assert_int_equal(vm->interpreted_count, 1); /* only this one has time */
	assert_int_equal(vm->interpreted[0].proto, PROTO + 1);
	row.proto = PROTO + 2;
	row.cpu_ns = 30 * MS;
	add_interpreted(vm, row);
	add_interpreted(vm, row);
	assert_int_equal(vm->interpreted_count, 2);
	trace_process_sort(process);
	assert_int_equal(vm->interpreted[0].proto, PROTO + 2);
	trace_process_free(process);
}

static void few_exits_are_shown(void **state)
{
	struct trace_process *process = trace_process_new(42, NULL);
	struct trace_vm *vm = trace_process_add_vm(process, 0x4000, "/usr/bin/luajit");
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	vm->has_jit = vm->complete = true;
	for (uint32_t i = 0; i < 45; i++)
		add_exit(vm, 1, i, i, i >= 22);
	trace_process_sort(process);
	trace_process_print(out, process);
	fclose(out);
	assert_non_null(strstr(text, "\n  2 more without a side trace\n  3 more with a side trace\n"));
	assert_non_null(strstr(text, "21 of 0"));
	assert_null(strstr(text, "  1 of 0"));
	free(text);
	trace_process_free(process);
}

static void exits_alike_come_by_their_numbers(void **state)
{
	struct trace_process *process = trace_process_new(42, NULL);
	struct trace_vm *vm = trace_process_add_vm(process, 0x4000, "/usr/bin/luajit");

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		add_exit(vm, 4 - i / 2, 7 - i, 5, false);
	trace_process_sort(process);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(vm->exits[i].trace, 3 + i / 2);
		assert_int_equal(vm->exits[i].number, 4 + i);
	}
	trace_process_free(process);
}

static void each_vm_of_a_process_has_its_traces(void **state)
{
	struct trace_process *process = trace_process_new(42, NULL);
	const json_t *vms, *rows;
	char *text = NULL, *first, *second;
	json_t *document;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	for (uint64_t i = 1; i <= 2; i++) {
		struct trace_vm *vm = trace_process_add_vm(process, 0x1000 * i, "/usr/bin/luajit");

		vm->has_jit = vm->complete = true;
		add_trace(vm, (struct trace_summary){ .number = (uint32_t)i }, &handle, 5, 0);
		/* The one with time comes first. */
		add_trace(vm, (struct trace_summary){ .number = (uint32_t)i + 2 }, &handle, 5, 10 * MS);
	}
	trace_process_sort(process);
	document = trace_process_json(process);
	vms = json_object_get(document, "vms");
	assert_int_equal(json_array_size(vms), 2);
	for (size_t i = 0; i < 2; i++) {
		rows = json_object_get(json_array_get(vms, i), "traces");
		assert_int_equal(json_array_size(rows), 2);
		for (size_t j = 0; j < 2; j++)
			assert_int_equal(
				json_integer_value(json_object_get(json_array_get(rows, j), "number")),
				j == 0 ? i + 3 : i + 1);
	}
	json_decref(document);
	trace_process_print(out, process);
	fclose(out);
	first = strstr(text, "\nVM 0x1000 in /usr/bin/luajit: 2 traces");
	second = strstr(text, "\nVM 0x2000 in /usr/bin/luajit: 2 traces");
	assert_non_null(first);
	assert_non_null(second);
	assert_true(first < second);
	free(text);
	trace_process_free(process);
}

/*---- Listings ----*/

static struct listing_line *add_line(struct listing_part *part, enum listing_kind kind, const char *text,
				     uint64_t address, uint64_t cpu_ns)
{
	struct listing_line *line = listing_add(&part->listing, kind, strdup(text));

	assert_non_null(line);
	line->address = address;
	line->cpu_ns = cpu_ns;
	line->samples = cpu_ns / MS;
	return line;
}

static void listings_have_the_time_of_their_lines(void **state)
{
	struct listing_process *process = listing_process_new(42, "lua\njit");
	struct listing_part *part = listing_process_add(process, 0x4000, "/usr/bin/luajit");
	struct listing_line *line;
	struct kept_text kept;

	(void)state;
	process->has_samples = process->complete = true;
	process->duration_ns = 2000 * MS;
	process->cpu_ns = 1000 * MS;
	process->samples = 1000;
	part->trace = 7;
	part->listing.samples = 500;
	part->listing.cpu_ns = 500 * MS;
	add_line(part, LISTING_HEAD, "---- TRACE 7 IR", 0, 0);
	line = add_line(part, LISTING_IR, "0001 rax   >  int SLOAD  #6    CRI", 0, 0);
	snprintf(line->place, sizeof(line->place), "fi\nle.lua:12");
	line->ref = 1;
	add_line(part, LISTING_SNAPSHOT, "....   SNAP   #0   [ ]", 0, 0);
	line = add_line(part, LISTING_CODE, "mov eax, \x1b", 0x7000, 300 * MS);
	line->ref = 1;
	add_line(part, LISTING_CODE, "ret", 0x7004, 4 * MS);
	add_line(part, LISTING_NOTE, "not all is known", 0, 0);
	part = listing_process_add(process, 0x5000, "/usr/bin/luajit");
	add_line(part, LISTING_BYTECODE, "0001 RET0", 0x9000, 0);
	kept_text_begin(&kept);
	listing_process_print(kept.out, process);
	kept_text_json(&kept, listing_process_json(process));
	process->has_samples = process->complete = false;
	process->left_off = 3;
	process->parts[1].listing.cut = true;
	listing_process_print(kept.out, process);
	kept_text_json(&kept, listing_process_json(process));
	process->count = 0;
	listing_process_print(kept.out, process);
	process->count = 2;
	listing_process_free(process);
	kept_text_check(&kept, "listing.txt");
}

/*---- Memory ----*/

static void add_row(struct footprint *footprint, enum footprint_kind kind, const char *name, uint64_t g,
		    uint64_t kib, size_t count)
{
	struct footprint_row *row;
	size_t index;

	assert_int_equal(footprint_row(footprint, kind, name, g, &index), 0);
	row = &footprint->rows[index];
	row->rss += kib << 10;
	row->pss += kib << 9;
	row->size += kib << 11;
	row->count += count;
}

static void write_footprint(struct kept_text *kept, const struct footprint *footprint)
{
	footprint_print(kept->out, footprint);
	kept_text_json(kept, footprint_json(footprint));
}

static void memory_has_a_row_for_each_kind_name_and_vm(void **state)
{
	static const struct {
		enum footprint_kind kind;
		const char *name;
		uint64_t g;
	} known[] = {
		{ FOOTPRINT_SHARED, NULL, 0 },        { FOOTPRINT_SHARED, "zone", 0 },
		{ FOOTPRINT_SHARED, "other", 0 },     { FOOTPRINT_CODE, "zone", 0 },
		{ FOOTPRINT_LUA_HEAP, NULL, 0x4000 }, { FOOTPRINT_LUA_HEAP, NULL, 0x5000 },
	};
	struct footprint *footprint = footprint_new(42, "luajit");
	size_t index;

	(void)state;
	assert_non_null(footprint);
	for (size_t times = 0; times < 2; times++)
		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
			assert_int_equal(
				footprint_row(footprint, known[i].kind, known[i].name, known[i].g, &index),
				0);
			assert_int_equal(index, i);
		}
	assert_int_equal(footprint->row_count, sizeof(known) / sizeof(known[0]));
	footprint_free(footprint);
}

/* Kernels that do not tell shares still tell what is resident. */
static void memory_without_a_share_has_its_row(void **state)
{
	static const struct footprint_row known[] = { { .rss = 4096 }, { .pss = 4096 }, { .size = 4096 } };

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct footprint *footprint = footprint_new(42, NULL);
		size_t index;

		assert_int_equal(footprint_row(footprint, FOOTPRINT_DATA, NULL, 0, &index), 0);
		footprint->rows[index].rss = known[i].rss;
		footprint->rows[index].pss = known[i].pss;
		footprint->rows[index].size = known[i].size;
		footprint_sort(footprint);
		assert_int_equal(footprint->row_count, known[i].size ? 0 : 1);
		footprint_free(footprint);
	}
}

static void memory_is_told_apart(void **state)
{
	static char name[] = "do\ngs", kind[] = "ngx_http_lua_module", module[] = "/usr/bin/luajit";
	struct footprint *footprint = footprint_new(42, "ngi\nnx"), *other = footprint_new(43, NULL);
	struct footprint_vm vm = { .g = 0x4000,
				   .module = module,
				   .knows_total = true,
				   .gc_total = 5000,
				   .segment_count = 1,
				   .segment_bytes = 128 << 10,
				   .free_bytes = 3 << 10,
				   .mcode_bytes = 64 << 10 };
	struct footprint_zone zone = { .name = name,
				       .kind = kind,
				       .size = 1 << 20,
				       .usable = 1000 << 10,
				       .free = 250 << 10,
				       .knows_free = true };
	struct footprint *both[] = { footprint, other };
	struct kept_text kept;

	(void)state;
	add_row(footprint, FOOTPRINT_STACK, "[sta\nck]", 0, 16, 1);
	add_row(footprint, FOOTPRINT_CODE, "/usr/bin/nginx", 0, 100, 1);
	add_row(footprint, FOOTPRINT_CODE, "/lib/libc.so", 0, 300, 2);
	add_row(footprint, FOOTPRINT_CODE, "/lib/libc.so", 0, 20, 1);
	add_row(footprint, FOOTPRINT_LUA_HEAP, NULL, 0x4000, 64, 1);
	add_row(footprint, FOOTPRINT_LUA_HEAP, NULL, 0x5000, 36, 1);
	add_row(footprint, FOOTPRINT_SHARED, NULL, 0, 0, 0);
	add_row(other, FOOTPRINT_CODE, "/usr/bin/nginx", 0, 100, 1);
	footprint->rss = 536 << 10;
	footprint->pss = 268 << 10;
	other->rss = other->pss = 100 << 10;
	assert_int_equal(footprint_add_vm(footprint, &vm), 0);
	vm.g = 0x5000;
	vm.segment_count = 2;
	vm.segments_untold = 1;
	vm.large_count = 1;
	vm.large_bytes = 2048;
	vm.knows_total = false;
	assert_int_equal(footprint_add_vm(footprint, &vm), 0);
	vm.large_count = 2;
	for (int allocator = FOOTPRINT_LJ_ALLOC_OTHERS; allocator < FOOTPRINT_ALLOCATOR_COUNT; allocator++) {
		vm.allocator = (enum footprint_allocator)allocator;
		assert_int_equal(footprint_add_vm(footprint, &vm), 0);
	}
	assert_int_equal(footprint_add_zone(footprint, &zone), 0);
	zone = (struct footprint_zone){ .size = 4096 };
	assert_int_equal(footprint_add_zone(footprint, &zone), 0);
	footprint->malloc = (struct footprint_malloc){ "glibc", 2, 0, 132 << 10, 7 << 10 };
	footprint->pool = (struct footprint_pool){ true, true, 16 << 10, 1 << 10, 1 };
	footprint_sort(footprint);
	assert_int_equal(footprint->row_count, 5);
	kept_text_begin(&kept);
	write_footprint(&kept, footprint);
	footprint->swap = 1 << 10;
	footprint->hugetlb = 2 << 20;
	footprint->looked = 4 << 10;
	footprint->changed = footprint->unconfirmed = true;
	footprint->malloc = (struct footprint_malloc){ NULL, 1, 2, 0, 0 };
	footprint->pool = (struct footprint_pool){ true, false, 1, 1, 2 };
	write_footprint(&kept, footprint);
	footprint->malloc = (struct footprint_malloc){ "jemalloc", 0, 1, 0, 0 };
	footprint->pool = (struct footprint_pool){ false, true, 1, 1, 2 };
	write_footprint(&kept, footprint);
	write_footprint(&kept, other);
	footprint_print_sum(kept.out, both, 2);
	footprint_reset(footprint);
	write_footprint(&kept, footprint);
	footprint_free(footprint);
	footprint_free(other);
	kept_text_check(&kept, "memory.txt");
}

/*---- Requests' lives ----*/

enum { PERIOD_MS = 10, BEGIN_MS = 100000 };

static const struct frame frames[] = { { .function = &yield },
				       { .function = &handle, .line = 8 },
				       { .function = &outer, .line = 60 } };
static const struct function sleeps = { .kind = FRAME_NATIVE, .name = "upstream read: 10.0.0.1:\n80" };

/* At a time after the request's beginning, which is 50 ms after the recording's. */
static struct sample look(uint64_t at_ms, uint64_t weight_ms)
{
	return (struct sample){
		.time_ns = (BEGIN_MS + 50 + at_ms) * MS,
		.pid = 42,
		.tid = 42,
		.phase = "content",
		.request = { .route = "/users/*",
			     .method = "GET",
			     .host = "example.com",
			     .connection = 7,
			     .number = 2,
			     .age_ns = at_ms * MS },
		.thread_state = THREAD_RUNNING,
		.wall_ns = weight_ms * MS,
		.cpu_ns = weight_ms * MS / 2,
		.frames = frames,
		.frame_count = 3,
	};
}

static void write_life(struct kept_text *kept, const struct sample *samples, size_t count,
		       uint64_t duration_ms)
{
	const struct session session = { .start_ns = BEGIN_MS * MS,
					 .duration_ns = duration_ms * MS,
					 .clock = WEIGHT_WALL_TIME };
	const struct figures figures = { .rate_asked_hz = 1000 / PERIOD_MS };
	struct made_up_source source = made_up_source(samples, count);
	struct request_life life = { .connection = 7, .number = 2 };

	assert_int_equal(request_life_read(&source.source, &session, &figures, &life), 0);
	assert_int_equal(request_life_print(kept->out, &life, &session), 0);
	assert_int_equal(request_life_write_json(kept->out, &life, &session), 0);
	request_life_clear(&life);
}

static void a_life_is_steps_from_the_beginning_on(void **state)
{
	struct sample samples[] = { look(10, 10), look(10, 10), look(20, 10),  look(31, 10),  look(40, 500),
				    look(80, 20), look(90, 10), look(100, 10), look(100, 10), look(110, 10) };
	enum { COUNT = sizeof(samples) / sizeof(samples[0]) };
	struct kept_text kept;

	(void)state;
	samples[1].request.number = 3; /* another one */
	samples[2].request.is_subrequest = true;
	samples[2].request.route = "/sub";
	samples[2].request.status = 500;
	samples[4].phase = "log";
	samples[5].wait = &sleeps;
	samples[5].thread_state = THREAD_BLOCKED;
	samples[6].thread_state = THREAD_RUNNABLE;
	samples[7].thread_state = samples[8].thread_state = THREAD_PARKED;
	samples[7].wait = samples[8].wait = &sleeps;
	samples[9].request.status = 404;
	samples[9].frame_count = 0;
	kept_text_begin(&kept);
	write_life(&kept, samples, COUNT, 1000);
	write_life(&kept, samples, COUNT, 161);
	/* Begun before the recording, seen once. */
	samples[0].request.age_ns = 70 * MS;
	samples[0].request.host = NULL;
	write_life(&kept, samples, 1, 1000);
	kept_text_check(&kept, "request-life.txt");
}

/* What a request waits for in nginx is a frame of its own on top of what waits. */
static const struct function waits = { .kind = FRAME_NATIVE,
				       .name = "upstream connect: 10.0.0.1:80",
				       .module = "nginx" };
static const struct frame waiting[] = { { .function = &waits },
					{ .function = &yield },
					{ .function = &handle, .line = 9 } };

static struct request_life life_of(const struct sample *samples, size_t count, enum weight_kind clock)
{
	const struct session session = { .start_ns = BEGIN_MS * MS,
					 .duration_ns = 1000 * MS,
					 .clock = clock };
	const struct figures figures = { .rate_asked_hz = 1000 / PERIOD_MS };
	struct made_up_source source = made_up_source(samples, count);
	struct request_life life = { .connection = 7, .number = 2 };

	assert_int_equal(request_life_read(&source.source, &session, &figures, &life), 0);
	return life;
}

static void a_step_has_its_innermost_frame_and_the_first_of_lua(void **state)
{
	struct sample samples[] = { look(10, 10), look(20, 10), look(30, 10) };
	struct request_life life;

	(void)state;
	samples[0].frames = waiting + 2;
	samples[0].frame_count = 1;
	/* What lies behind the frames of a sample is none of it. */
	samples[1].frames = waiting;
	samples[1].frame_count = 1;
	samples[2].frames = waiting + 1;
	samples[2].frame_count = 2;
	life = life_of(samples, 3, WEIGHT_WALL_TIME);
	assert_int_equal(life.count, 3);
	assert_string_equal(life.steps[0].frames, "handle handler.lua:9");
	assert_string_equal(life.steps[1].frames, "upstream connect: 10.0.0.1:80 [nginx]");
	assert_string_equal(life.steps[2].frames, "coroutine.yield [builtin] < handle handler.lua:9");
	request_life_clear(&life);
}

static void of_two_processes_the_first_one_counts(void **state)
{
	struct sample samples[] = { look(10, 10), look(20, 10) };
	const struct session session = { .start_ns = BEGIN_MS * MS, .duration_ns = 1000 * MS };
	struct made_up_source source = made_up_source(samples, 2);
	struct request_life life = { .connection = 7, .number = 2 };

	(void)state;
	samples[1].pid = 43;
	assert_int_equal(request_life_read(&source.source, &session, &(struct figures){ 0 }, &life), 0);
	assert_true(life.is_ambiguous);
	assert_int_equal(life.pid, 42);
	assert_int_equal(life.samples, 1);
	assert_int_equal(life.last_ns, 10 * MS);
	assert_int_equal(life.begin_ns, (BEGIN_MS + 50) * MS);
	assert_false(life.recording_ends);
	request_life_clear(&life);
}

static void light_threads_that_wait_share_the_time_of_a_look(void **state)
{
	struct sample samples[] = { look(10, 10), look(30, 12), look(30, 8), look(40, 10) };
	struct request_life life;

	(void)state;
	for (size_t i = 1; i < 3; i++) {
		samples[i].thread_state = THREAD_PARKED;
		samples[i].frames = waiting;
	}
	samples[2].frame_count = 1;
	life = life_of(samples, 4, WEIGHT_WALL_TIME);
	assert_int_equal(life.samples, 4);
	assert_int_equal(life.count, 4);
	for (size_t i = 1; i < 3; i++) {
		assert_int_equal(life.steps[i].start_ns, 10 * MS);
		assert_int_equal(life.steps[i].end_ns, 30 * MS);
		assert_string_equal(life.steps[i].what, waits.name);
	}
	assert_string_equal(life.steps[1].frames, "coroutine.yield [builtin] < handle handler.lua:9");
	assert_string_equal(life.steps[2].frames, "");
	request_life_clear(&life);
	/* Coroutines that wait elsewhere have all of it each; so one of them is as long as all. */
	for (size_t i = 1; i < 3; i++)
		samples[i].frames = frames;
	life = life_of(samples, 4, WEIGHT_WALL_TIME);
	assert_int_equal(life.steps[1].looks, 0);
	assert_int_equal(life.steps[2].start_ns, 18 * MS);
	request_life_clear(&life);
	assert_null(life.steps);
}

static void a_look_stands_for_two_periods_at_most(void **state)
{
	const struct sample samples[] = { look(10, 10), look(50, 400), look(70, 22) };
	struct request_life life = life_of(samples, 3, WEIGHT_CPU_TIME);

	(void)state;
	/* Half of each weight is CPU time; ticks may be half a period late. */
	assert_int_equal(life.count, 5);
	assert_int_equal(life.steps[0].start_ns, 0);
	assert_int_equal(life.steps[1].looks, 0);
	assert_int_equal(life.steps[1].end_ns, 30 * MS);
	assert_int_equal(life.steps[2].end_ns, 50 * MS);
	assert_int_equal(life.steps[3].looks, 0);
	assert_int_equal(life.steps[3].end_ns, 59 * MS);
	request_life_clear(&life);
}

static void assert_head(uint64_t age_ms, uint64_t duration_ms, const char *begin, const char *end)
{
	struct sample sample = look(10, 10);
	struct kept_text text;

	kept_text_begin(&text);
	sample.request.age_ns = age_ms * MS;
	write_life(&text, &sample, 1, duration_ms);
	fclose(text.out);
	assert_non_null(strstr(text.text, begin));
	assert_non_null(strstr(text.text, end));
	free(text.text);
}

/* The sample is 60 ms after the recording's beginning. */
static void a_life_begins_and_ends_before_or_after_its_recording(void **state)
{
	static const char *const over = "\nno later sample of the recording has it.\n",
				 *const open =
					 "\nthe recording ends there, and the request may have gone on.\n";

	(void)state;
	assert_head(59, 1000, "It began 0.001 s after the recording's beginning.", over);
	assert_head(60, 1000, "It began 0.000 s after the recording's beginning.", over);
	assert_head(61, 1000, "It began 0.001 s before the recording.", over);
	/* A look may be two periods late. */
	assert_head(10, 80, "It began", open);
	assert_head(10, 81, "It began", over);
}

static void a_request_that_no_sample_has_is_none(void **state)
{
	struct sample samples[] = { look(10, 10), look(20, 10), look(30, 10) };
	struct request_life life;

	(void)state;
	samples[0].request.connection = 8;
	samples[1].request.number = 3;
	samples[2].request.route = NULL;
	life = life_of(samples, 3, WEIGHT_WALL_TIME);
	assert_int_equal(life.pid, 0);
	assert_int_equal(life.samples, 0);
	assert_int_equal(life.count, 0);
	request_life_clear(&life);
}

static void names_in_a_life_are_escaped(void **state)
{
	struct sample samples[] = { look(10, 10) };
	struct request_life life;
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	(void)state;
	samples[0].phase = "con\x1b[31mtent\n";
	life = life_of(samples, 1, WEIGHT_WALL_TIME);
	assert_int_equal(request_life_print(out, &life, &(struct session){ 0 }), 0);
	fclose(out);
	assert_non_null(strstr(text, "  con\\x1b[31mtent\\n  "));
	assert_null(strchr(text, '\x1b'));
	free(text);
	request_life_clear(&life);
}

static void a_long_life_is_cut_and_says_so(void **state)
{
	enum { LOOKS = REQUEST_LIFE_STEPS_MAX + 1 };
	struct sample *samples = calloc(LOOKS, sizeof(*samples));

	(void)state;
	assert_non_null(samples);
	for (size_t i = 0; i < LOOKS; i++) {
		samples[i] = look(10 * (i + 1), 10);
		samples[i].phase = i % 2 ? "content" : "log";
	}
	for (size_t count = LOOKS - 1; count <= LOOKS; count++) {
		struct request_life life = life_of(samples, count, WEIGHT_WALL_TIME);
		char *text = NULL;
		size_t length;
		FILE *out = open_memstream(&text, &length);

		assert_int_equal(life.count, REQUEST_LIFE_STEPS_MAX);
		assert_int_equal(life.samples, count);
		assert_int_equal(life.is_cut, count == LOOKS);
		assert_int_equal(request_life_print(out, &life, &(struct session){ 0 }), 0);
		fclose(out);
		assert_int_equal(strstr(text, "\nThere is more, which is left out.\n") != NULL,
				 count == LOOKS);
		free(text);
		request_life_clear(&life);
	}
	free(samples);
}

static void free_space_is_told_if_all_arenas_could_be_followed(void **state)
{
	(void)state;
	for (size_t arenas = 0; arenas < 3; arenas++)
		for (size_t untold = 0; untold < 2; untold++) {
			struct footprint *footprint = footprint_new(42, NULL);
			json_t *json, *bytes;

			footprint->malloc = (struct footprint_malloc){ "glibc", arenas, untold, 5000, 700 };
			json = footprint_json(footprint);
			bytes = json_object_get(json_object_get(json, "malloc"), "free_bytes");
			assert_int_equal(json_integer_value(bytes), arenas && !untold ? 700 : 0);
			assert_int_equal(json_is_null(bytes), !arenas || untold);
			json_decref(json);
			footprint_free(footprint);
		}
}

/*---- Memory that is short ----*/

static bool is_short;
static size_t copies_before_failure = SIZE_MAX;

char *__wrap_strdup(const char *text)
{
	bool fails = is_short || (copies_before_failure != SIZE_MAX && copies_before_failure-- == 0);

	return fails ? NULL : __real_strdup(text);
}

static void a_report_without_memory_for_its_name_is_none(void **state)
{
	struct listing_process *listing;
	struct trace_process *traces;
	struct dump_process *dump;

	(void)state;
	is_short = true;
	assert_null(listing_process_new(42, "luajit"));
	assert_null(trace_process_new(42, "luajit"));
	assert_null(dump_process_new(42, "luajit"));
	assert_null(footprint_new(42, "luajit"));
	listing = listing_process_new(42, NULL);
	traces = trace_process_new(42, NULL);
	dump = dump_process_new(42, NULL);
	assert_non_null(listing);
	assert_non_null(traces);
	assert_non_null(dump);
	assert_null(listing_process_add(listing, 0x4000, "luajit"));
	assert_null(trace_process_add_vm(traces, 0x4000, "luajit"));
	assert_null(dump_process_add_vm(dump, 0x4000, "luajit"));
	is_short = false;
	assert_int_equal(listing->count, 0);
	assert_int_equal(traces->vm_count, 0);
	assert_int_equal(dump->vm_count, 0);
	listing_process_free(listing);
	trace_process_free(traces);
	dump_process_free(dump);
}

/* As is right after it could not be made. */
static void a_report_that_is_none_may_be_freed(void **state)
{
	(void)state;
	listing_process_free(NULL);
	trace_process_free(NULL);
	dump_process_free(NULL);
	footprint_free(NULL);
}

static void a_life_without_memory_for_its_texts_is_none(void **state)
{
	const struct sample samples[] = { look(10, 10), look(20, 10) };
	const struct session session = { .start_ns = BEGIN_MS * MS, .clock = WEIGHT_WALL_TIME };
	size_t count = 0;
	bool failed;

	(void)state;
	do {
		struct made_up_source source = made_up_source(samples, 2);
		struct request_life life = { .connection = 7, .number = 2 };
		int error;

		copies_before_failure = count++;
		error = request_life_read(&source.source, &session, &(struct figures){ 0 }, &life);
		failed = copies_before_failure == SIZE_MAX;
		copies_before_failure = SIZE_MAX;
		assert_int_equal(error, failed ? -ENOMEM : 0);
		request_life_clear(&life);
	} while (failed);
	/* Method, host and route once; phase and state of each sample. */
	assert_int_equal(count, 3 + 2 * 2 + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(coroutines_alike_are_one_group),
		cmocka_unit_test(threads_come_with_what_they_do),
		cmocka_unit_test(traces_are_shown_the_heaviest_first),
		cmocka_unit_test(functions_that_read_the_same_have_their_own_time),
		cmocka_unit_test(few_exits_are_shown),
		cmocka_unit_test(exits_alike_come_by_their_numbers),
		cmocka_unit_test(each_vm_of_a_process_has_its_traces),
		cmocka_unit_test(listings_have_the_time_of_their_lines),
		cmocka_unit_test(memory_has_a_row_for_each_kind_name_and_vm),
		cmocka_unit_test(memory_without_a_share_has_its_row),
		cmocka_unit_test(memory_is_told_apart),
		cmocka_unit_test(a_life_is_steps_from_the_beginning_on),
		cmocka_unit_test(a_step_has_its_innermost_frame_and_the_first_of_lua),
		cmocka_unit_test(of_two_processes_the_first_one_counts),
		cmocka_unit_test(light_threads_that_wait_share_the_time_of_a_look),
		cmocka_unit_test(a_look_stands_for_two_periods_at_most),
		cmocka_unit_test(a_life_begins_and_ends_before_or_after_its_recording),
		cmocka_unit_test(a_request_that_no_sample_has_is_none),
		cmocka_unit_test(names_in_a_life_are_escaped),
		cmocka_unit_test(a_long_life_is_cut_and_says_so),
		cmocka_unit_test(free_space_is_told_if_all_arenas_could_be_followed),
		cmocka_unit_test(a_report_without_memory_for_its_name_is_none),
		cmocka_unit_test(a_report_that_is_none_may_be_freed),
		cmocka_unit_test(a_life_without_memory_for_its_texts_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

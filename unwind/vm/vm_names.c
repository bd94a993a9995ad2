/* SPDX-License-Identifier: MIT */
#include "unwind/vm/vm_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "luajit-layouts/bytecode.h"
#include "unwind/vm/vm_flow.h"

enum {
	OPS_MAX = 256,
	DISPATCH_MAX = 2 * OPS_MAX, /* the dispatch table and the static one after it */
};

/*---- Where control goes ----*/

/* Does code in [begin, before) jump to this address? */
static bool is_reached(const struct vm_flow *flow, uint64_t begin, uint64_t before, uint64_t address)
{
	for (size_t i = 0; i < flow->jump_count; i++)
		if (flow->jumps[i].to == address && flow->jumps[i].from >= begin &&
		    flow->jumps[i].from < before)
			return true;
	return false;
}

/*
 * The end of the code that certainly belongs to one function: the next function,
 * the first address that other code jumps to, or the first end of a run after
 * which none of its own jumps continues.
 */
static uint64_t certain_end(const struct vm_flow *flow, uint64_t begin, uint64_t next)
{
	uint64_t end = next;

	for (size_t i = 0; i < flow->jump_count; i++) {
		const struct vm_jump *jump = &flow->jumps[i];

		if (jump->to > begin && jump->to < end && (jump->from < begin || jump->from >= next))
			end = jump->to;
	}
	for (size_t i = 0; i < flow->end_count && flow->ends[i] < end; i++)
		if (flow->ends[i] > begin && !is_reached(flow, begin, flow->ends[i], flow->ends[i]))
			end = flow->ends[i];
	return end;
}

/*---- The dispatch table ----*/

struct table {
	uint64_t at[DISPATCH_MAX]; /* 0 where it does not point into the VM */
	size_t op_count;           /* opcodes; assembler functions follow */
	size_t static_begin;       /* index of the table that no hook changes; 0 if not found */
};

static bool read_table(struct memory *memory, const struct vm_code *vm, uint64_t g, struct table *ret_table)
{
	size_t count = 0;

	while (count < OPS_MAX && bytecode_name(&vm->layout, (uint8_t)count))
		count++;
	memset(ret_table, 0, sizeof(*ret_table));
	ret_table->op_count = count;
	if (memory_read(memory, g + (uint64_t)vm->layout.GG_dispatch, ret_table->at, sizeof(ret_table->at)) !=
	    MEMORY_OK)
		return false;
	for (size_t i = 0; i < DISPATCH_MAX; i++) {
		if (ret_table->at[i] < vm->begin || ret_table->at[i] >= vm->end)
			ret_table->at[i] = 0;
		/* The VM's code begins with the handler of opcode 0. */
		if (i >= count && ret_table->at[i] == vm->begin && !ret_table->static_begin)
			ret_table->static_begin = i;
	}
	return ret_table->static_begin != 0;
}

/* An opcode's handler: in the static table below BC_FUNCF, in the dispatch table from there on. */
static uint64_t handler(const struct table *table, const struct layout *layout, size_t op)
{
	int funcf = bytecode_number(layout, BC_FUNCF);

	return table->at[(int)op < funcf ? table->static_begin + op : op];
}

static void add(struct vm_names *names, uint64_t begin, uint64_t end, const char *prefix, const char *name)
{
	struct vm_name *added = &names->at[names->count++];

	added->begin = begin;
	added->end = end;
	snprintf(added->name, sizeof(added->name), "%s%s", prefix, name);
	for (char *dot = added->name; (dot = strchr(dot, '.'));)
		*dot = '_';
}

/*
 * Handlers lie in the order of their opcodes (build_backend in vm_x64.dasc).
 * The entry of a hooked or disabled opcode points elsewhere: to the same address
 * as another entry, or out of order. Skip those.
 */
static void add_handlers(const struct table *table, const struct layout *layout, struct vm_names *names)
{
	for (size_t op = 0; op + 1 < table->op_count; op++) {
		uint64_t begin = handler(table, layout, op);
		uint64_t end = handler(table, layout, op + 1);
		uint64_t after = op + 2 < table->op_count ? handler(table, layout, op + 2) : UINT64_MAX;

		if (begin && begin < end && end < after &&
		    (op == 0 || handler(table, layout, op - 1) <= begin))
			add(names, begin, end, "lj_BC_", bytecode_name(layout, (uint8_t)op));
	}
}

/* Do calls lead to lj_vm_callhook? */
static bool is_hooked(const struct table *table, const struct layout *layout)
{
	int funcc = bytecode_number(layout, BC_FUNCC);

	return table->at[funcc] == table->at[funcc + 1];
}

static int compare_addresses(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

static void add_functions(const struct table *table, const struct vm_code *vm,
			  const struct builtins *builtins, const struct vm_flow *flow, struct vm_names *names)
{
	uint64_t begins[OPS_MAX + 1];
	size_t count = 0;

	for (size_t op = table->op_count; op < table->static_begin && count < OPS_MAX; op++)
		if (table->at[op])
			begins[count++] = table->at[op];
	begins[count++] = vm->end;
	qsort(begins, count, sizeof(*begins), compare_addresses);

	for (size_t i = 0; i < BUILTIN_COUNT; i++) {
		const struct builtin *builtin = &builtins->at[i];
		uint64_t begin = builtin->op < table->static_begin ? table->at[builtin->op] : 0;
		const uint64_t *next;

		if (builtin->op < table->op_count || !begin)
			continue;
		next = bsearch(&begin, begins, count, sizeof(*begins), compare_addresses);
		if (next && next + 1 < begins + count)
			add(names, begin, certain_end(flow, begin, next[1]), "lj_ff_", builtin->name);
	}
}

/*---- Names ----*/

static int compare_names(const void *a, const void *b)
{
	return compare_addresses(&((const struct vm_name *)a)->begin, &((const struct vm_name *)b)->begin);
}

bool vm_names_collect(struct memory *memory, const struct vm_code *vm, uint64_t g,
		      const struct builtins *builtins, struct vm_names *ret_names)
{
	struct table table;
	struct vm_flow flow;

	ret_names->count = 0;
	ret_names->at = calloc(OPS_MAX + BUILTIN_COUNT, sizeof(*ret_names->at));
	if (!ret_names->at || !read_table(memory, vm, g, &table))
		return false;
	add_handlers(&table, &vm->layout, ret_names);
	if (vm_flow_read(memory, vm, &flow))
		add_functions(&table, vm, builtins, &flow, ret_names);
	vm_flow_clear(&flow);
	qsort(ret_names->at, ret_names->count, sizeof(*ret_names->at), compare_names);
	return !is_hooked(&table, &vm->layout);
}

bool vm_names_complete(struct memory *memory, const struct vm_code *vm, uint64_t g,
		       const struct builtins *builtins, struct vm_names *names)
{
	struct table table;

	if (!read_table(memory, vm, g, &table) || is_hooked(&table, &vm->layout))
		return false;
	vm_names_clear(names);
	return vm_names_collect(memory, vm, g, builtins, names);
}

void vm_names_clear(struct vm_names *names)
{
	free(names->at);
	*names = (struct vm_names){ 0 };
}

const char *vm_names_find(const struct vm_names *names, uint64_t pc)
{
	size_t low = 0, high = names->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (pc < names->at[middle].begin)
			high = middle;
		else if (pc >= names->at[middle].end)
			low = middle + 1;
		else
			return names->at[middle].name;
	}
	return NULL;
}

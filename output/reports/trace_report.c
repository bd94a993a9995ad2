/* SPDX-License-Identifier: MIT */
#include "output/reports/trace_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "output/sample/text_copy.h"

struct trace_process *trace_process_new(pid_t pid, const char *name)
{
	struct trace_process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->pid = pid;
	if (!text_copy(name, &process->name)) {
		free(process);
		return NULL;
	}
	return process;
}

void trace_process_free(struct trace_process *process)
{
	if (!process)
		return;
	for (size_t i = 0; i < process->vm_count; i++) {
		free(process->vms[i].module);
		free(process->vms[i].rows);
		free(process->vms[i].exits);
		free(process->vms[i].interpreted);
	}
	free(process->vms);
	free(process->name);
	free(process);
}

struct trace_vm *trace_process_add_vm(struct trace_process *process, uint64_t g, const char *module)
{
	struct trace_vm *vm;
	struct trace_vm *vms = array_grow(process->vms, &process->vm_size, process->vm_count + 1,
					  sizeof(*vms));

	if (!vms)
		return NULL;
	process->vms = vms;
	vm = &process->vms[process->vm_count];
	*vm = (struct trace_vm){ .g = g, .module = strdup(module) };
	if (!vm->module)
		return NULL;
	process->vm_count++;
	return vm;
}

int trace_vm_add(struct trace_vm *vm, const struct trace_row *row)
{
	struct trace_row *rows = array_grow(vm->rows, &vm->row_size, vm->row_count + 1, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	vm->rows = rows;
	vm->rows[vm->row_count++] = *row;
	return 0;
}

int trace_vm_add_exit(struct trace_vm *vm, const struct exit_row *row)
{
	struct exit_row *exits = array_grow(vm->exits, &vm->exit_size, vm->exit_count + 1, sizeof(*exits));

	if (!exits)
		return -ENOMEM;
	vm->exits = exits;
	vm->exits[vm->exit_count++] = *row;
	return 0;
}

bool trace_vm_is_full(const struct trace_vm *vm)
{
	return vm->limits.mcode_max > 0 &&
	       vm->limits.mcode_allocated + vm->limits.mcode_area > vm->limits.mcode_max;
}

/* Places in several prototypes read the same where code was loaded again, has no lines, or is on one line. */
static bool is_same_place(const struct interpreted_row *left, const struct interpreted_row *right)
{
	return left->function == right->function && left->line == right->line &&
	       left->is_loop == right->is_loop && left->cause == right->cause;
}

int trace_vm_add_interpreted(struct trace_vm *vm, const struct interpreted_row *row)
{
	struct interpreted_row *rows;

	for (size_t i = 0; i < vm->interpreted_count; i++) {
		if (!is_same_place(&vm->interpreted[i], row))
			continue;
		if (vm->interpreted[i].proto == row->proto || row->cpu_ns == 0)
			return 0;
		if (vm->interpreted[i].cpu_ns == 0) {
			vm->interpreted[i] = *row;
			return 0;
		}
	}
	rows = array_grow(vm->interpreted, &vm->interpreted_size, vm->interpreted_count + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	vm->interpreted = rows;
	vm->interpreted[vm->interpreted_count++] = *row;
	return 0;
}

/* The row of a trace; NULL if there is none. Rows are in ascending order of numbers. */
static struct trace_row *find_row(const struct trace_vm *vm, uint32_t number)
{
	size_t low = 0, high = vm->row_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (vm->rows[middle].trace.number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low < vm->row_count && vm->rows[low].trace.number == number ? &vm->rows[low] : NULL;
}

/* The row of an exit; NULL if there is none. */
static struct exit_row *find_exit(const struct trace_vm *vm, uint32_t trace, uint32_t number)
{
	size_t low = 0, high = vm->exit_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct exit_row *at = &vm->exits[middle];

		if (at->trace < trace || (at->trace == trace && at->number < number))
			low = middle + 1;
		else
			high = middle;
	}
	if (low < vm->exit_count && vm->exits[low].trace == trace && vm->exits[low].number == number)
		return &vm->exits[low];
	return NULL;
}

static void find_sides(struct trace_vm *vm)
{
	for (size_t i = 0; i < vm->exit_count; i++) {
		const struct trace_row *row = find_row(vm, vm->exits[i].trace);

		vm->exits[i].trace_ns = row ? row->cpu_ns : 0;
	}
	for (size_t i = 0; i < vm->row_count; i++) {
		const struct trace_row *row = &vm->rows[i];
		struct exit_row *exit = row->trace.kind == TRACE_SIDE
						? find_exit(vm, row->trace.parent, row->trace.exitno)
						: NULL;

		if (!exit || !exit->has_side)
			continue;
		exit->side = row->trace.number;
		exit->side_ns = row->cpu_ns;
	}
}

/* The last snapshot of a trace that links to another one is marked as done, but is no exit. */
static void drop_links(struct trace_vm *vm)
{
	size_t kept = 0;

	for (size_t i = 0; i < vm->exit_count; i++) {
		const struct exit_row *exit = &vm->exits[i];
		const struct trace_row *row = find_row(vm, exit->trace);

		if (!exit->has_side || exit->side || !row || exit->number + 1 != row->trace.snapshots)
			vm->exits[kept++] = *exit;
	}
	vm->exit_count = kept;
}

void trace_vm_find_parents(struct trace_vm *vm)
{
	for (size_t i = 0; i < vm->row_count; i++) {
		const struct trace_summary *trace = &vm->rows[i].trace;
		struct trace_row *next = trace->linktype == TRACE_LINK_STITCH ? find_row(vm, trace->link)
									      : NULL;

		/* A trace that links to itself no longer gets a stitched trace (lj_trace.c, trace_abort). */
		if (next && next->trace.kind == TRACE_STITCHED && trace->link != trace->number)
			next->trace.parent = trace->number;
	}
	find_sides(vm);
	drop_links(vm);
}

bool trace_vm_may_have_side(const struct trace_vm *vm, const struct exit_row *row)
{
	return vm->traces_left && row->has_side && !row->side;
}

static int compare_rows(const void *a, const void *b)
{
	const struct trace_row *left = a, *right = b;

	if (left->cpu_ns != right->cpu_ns)
		return left->cpu_ns > right->cpu_ns ? -1 : 1;
	return left->trace.number < right->trace.number ? -1 : left->trace.number > right->trace.number;
}

static int compare_interpreted(const void *a, const void *b)
{
	const struct interpreted_row *left = a, *right = b;

	if (left->cpu_ns != right->cpu_ns)
		return left->cpu_ns > right->cpu_ns ? -1 : 1;
	return left->line < right->line ? -1 : left->line > right->line;
}

static int order(uint64_t left, uint64_t right)
{
	return left > right ? -1 : left < right;
}

/* First those without a side trace, of which each costs a way back to the interpreter. */
static int compare_exits(const void *a, const void *b)
{
	const struct exit_row *left = a, *right = b;
	int by_side = (int)left->has_side - (int)right->has_side;
	int by_time = order(left->has_side ? left->side_ns : left->trace_ns,
			    right->has_side ? right->side_ns : right->trace_ns);
	int by_taken = order(left->taken, right->taken);
	int by_number = order(right->trace, left->trace);

	return by_side     ? by_side
	       : by_time   ? by_time
	       : by_taken  ? by_taken
	       : by_number ? by_number
			   : order(right->number, left->number);
}

void trace_process_sort(struct trace_process *process)
{
	for (size_t i = 0; i < process->vm_count; i++) {
		struct trace_vm *vm = &process->vms[i];

		if (vm->row_count)
			qsort(vm->rows, vm->row_count, sizeof(*vm->rows), compare_rows);
		if (vm->exit_count)
			qsort(vm->exits, vm->exit_count, sizeof(*vm->exits), compare_exits);
		if (vm->interpreted_count)
			qsort(vm->interpreted, vm->interpreted_count, sizeof(*vm->interpreted),
			      compare_interpreted);
	}
}

const char *trace_kind_name(enum trace_kind kind)
{
	static const char *const names[TRACE_KIND_COUNT] = {
		[TRACE_ROOT] = "root",
		[TRACE_SIDE] = "side",
		[TRACE_STITCHED] = "stitch",
	};

	return names[kind];
}

const char *trace_linktype_name(enum trace_linktype linktype)
{
	static const char *const names[TRACE_LINK_COUNT] = {
		[TRACE_LINK_NONE] = "none",          [TRACE_LINK_ROOT] = "root",
		[TRACE_LINK_LOOP] = "loop",          [TRACE_LINK_TAILREC] = "tail-recursion",
		[TRACE_LINK_UPREC] = "up-recursion", [TRACE_LINK_DOWNREC] = "down-recursion",
		[TRACE_LINK_INTERP] = "interpreter", [TRACE_LINK_RETURN] = "return",
		[TRACE_LINK_STITCH] = "stitch",
	};

	return names[linktype];
}

const char *not_compiled_cause_name(enum not_compiled_cause cause)
{
	switch (cause) {
	case NOT_COMPILED_BLACKLISTED: return "blacklisted";
	case NOT_COMPILED_ABORTED: return "aborted";
	case NOT_COMPILED_OFF: break;
	}
	return "off";
}

double trace_process_share(const struct trace_process *process, uint64_t ns)
{
	return process->cpu_ns ? (double)ns / (double)process->cpu_ns : 0;
}

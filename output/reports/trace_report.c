/* SPDX-License-Identifier: MIT */
#include "output/reports/trace_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"

struct trace_process *trace_process_new(pid_t pid, const char *name)
{
	struct trace_process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->pid = pid;
	process->name = name ? strdup(name) : NULL;
	return process;
}

void trace_process_free(struct trace_process *process)
{
	if (!process)
		return;
	for (size_t i = 0; i < process->vm_count; i++) {
		free(process->vms[i].module);
		free(process->vms[i].rows);
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

static bool is_same_place(const struct interpreted_row *left, const struct interpreted_row *right)
{
	return left->function == right->function && left->line == right->line &&
	       left->is_loop == right->is_loop && left->cause == right->cause;
}

int trace_vm_add_interpreted(struct trace_vm *vm, const struct interpreted_row *row)
{
	struct interpreted_row *rows;

	for (size_t i = 0; i < vm->interpreted_count; i++)
		if (is_same_place(&vm->interpreted[i], row))
			return 0;
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

void trace_process_sort(struct trace_process *process)
{
	for (size_t i = 0; i < process->vm_count; i++) {
		struct trace_vm *vm = &process->vms[i];

		if (vm->row_count)
			qsort(vm->rows, vm->row_count, sizeof(*vm->rows), compare_rows);
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

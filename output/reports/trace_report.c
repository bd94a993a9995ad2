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
		free(process->vms[i].given_up);
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

int trace_vm_add_given_up(struct trace_vm *vm, const struct given_up *given_up)
{
	struct given_up *all;

	for (size_t i = 0; i < vm->given_up_count; i++)
		if (vm->given_up[i].function == given_up->function &&
		    vm->given_up[i].line == given_up->line && vm->given_up[i].is_loop == given_up->is_loop)
			return 0;
	all = array_grow(vm->given_up, &vm->given_up_size, vm->given_up_count + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	vm->given_up = all;
	vm->given_up[vm->given_up_count++] = *given_up;
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

void trace_process_sort(struct trace_process *process)
{
	for (size_t i = 0; i < process->vm_count; i++)
		if (process->vms[i].row_count)
			qsort(process->vms[i].rows, process->vms[i].row_count, sizeof(struct trace_row),
			      compare_rows);
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

double trace_process_share(const struct trace_process *process, uint64_t ns)
{
	return process->cpu_ns ? (double)ns / (double)process->cpu_ns : 0;
}

/* SPDX-License-Identifier: MIT */
/* A dump as text, equal stacks in one group. */
#include "output/reports/dump_report.h"

#include <inttypes.h>

#include "output/labels/escape.h"
#include "output/labels/frame_label.h"

static void print_variable(FILE *out, const struct variable *variable)
{
	fprintf(out, "        %s ", variable_kind_name(variable->kind));
	if (variable->name)
		escape_write(ESCAPE_PLAIN, variable->name, out);
	else
		fprintf(out, "%" PRIu32, variable->index);
	fputs(variable->type ? " = " : " (", out);
	escape_write(ESCAPE_PLAIN, variable->text, out);
	fputs(!variable->type         ? ")\n"
	      : variable->of_snapshot ? " (at the trace's last snapshot)\n"
				      : "\n",
	      out);
}

static void print_variables(FILE *out, const struct variables *variables)
{
	for (size_t i = 0; i < variables->count; i++)
		print_variable(out, &variables->list[i]);
}

static void print_stack(FILE *out, const struct dump_stack *stack)
{
	char label[FRAME_LABEL_SIZE];

	for (size_t i = 0; i < stack->count; i++) {
		frame_label(stack->frames[i].function, stack->frames[i].line, true, label);
		fputs("    ", out);
		escape_write(ESCAPE_PLAIN, label, out);
		putc('\n', out);
		if (stack->variables)
			print_variables(out, &stack->variables[i]);
	}
}

static void print_name(FILE *out, const char *name)
{
	if (!name)
		return;
	fputs(" \"", out);
	escape_write(ESCAPE_PLAIN, name, out);
	putc('"', out);
}

static void print_thread(FILE *out, const struct dump_thread *thread)
{
	fprintf(out, "Thread %d", (int)thread->tid);
	print_name(out, thread->name);
	fprintf(out, thread->phase ? " (%s, %s)\n" : " (%s)\n", thread->state, thread->phase);
	print_stack(out, &thread->stack);
}

static uint64_t total_of(const struct dump_vm *vm)
{
	uint64_t total = 0;

	for (size_t i = 0; i < COROUTINE_STATE_COUNT; i++)
		total += vm->counts[i];
	return total;
}

static void print_counts(FILE *out, const struct dump_vm *vm)
{
	const char *separator = ": ";

	for (size_t i = 0; i < COROUTINE_STATE_COUNT; i++) {
		if (!vm->counts[i])
			continue;
		fprintf(out, "%s%" PRIu64 " %s", separator, vm->counts[i],
			dump_state_text((enum coroutine_state)i));
		separator = ", ";
	}
}

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static void print_vm(FILE *out, const struct dump_vm *vm)
{
	uint64_t total = total_of(vm);

	fprintf(out, "VM 0x%" PRIx64 " in ", vm->g);
	escape_write(ESCAPE_PLAIN, vm->module, out);
	fprintf(out, ": %" PRIu64 " coroutine%s", total, plural(total));
	print_counts(out, vm);
	putc('\n', out);
	if (!vm->complete)
		fputs("    There may be more: they changed faster than they could be read.\n", out);
	for (size_t i = 0; i < vm->group_count; i++) {
		const struct dump_group *group = vm->groups[i];

		/* The stacks of the threads that run these coroutines show them. */
		if (coroutine_is_at_work(group->state))
			continue;
		fprintf(out,
			group->phase ? "%" PRIu64 " coroutine%s (%s, %s)\n"
				     : "%" PRIu64 " coroutine%s (%s)\n",
			group->count, plural(group->count), dump_state_text(group->state), group->phase);
		print_stack(out, &group->stack);
	}
}

void dump_process_print(FILE *out, const struct dump_process *process)
{
	fprintf(out, "Process %d", (int)process->pid);
	print_name(out, process->name);
	putc('\n', out);
	for (size_t i = 0; i < process->thread_count; i++)
		print_thread(out, &process->threads[i]);
	for (size_t i = 0; i < process->vm_count; i++)
		print_vm(out, &process->vms[i]);
	if (process->variables_cut)
		fputs("There are too many variables: frames further out are shown without theirs.\n", out);
	if (process->holds)
		fprintf(out,
			"Threads were held %" PRIu64 " time%s for coroutines, for %" PRIu64 " us at most.\n",
			process->holds, plural(process->holds), (process->longest_hold_ns + 999) / 1000);
}

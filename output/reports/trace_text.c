/* SPDX-License-Identifier: MIT */
/* The traces of processes as text. */
#include <inttypes.h>

#include "output/labels/escape.h"
#include "output/labels/frame_label.h"
#include "output/labels/names.h"
#include "output/reports/trace_report.h"

enum { KIND_SIZE = 40, CAUSE_SIZE = 96, KIBIBYTE = 1024, EXITS_SHOWN = 20 /* of each kind */ };

static void print_escaped(FILE *out, const char *text)
{
	escape_write(ESCAPE_PLAIN, text, out);
}

static void print_place(FILE *out, const struct function *function, uint32_t line, bool by_line)
{
	char label[FRAME_LABEL_SIZE];

	if (!function) {
		fputs("?\n", out);
		return;
	}
	frame_label(function, line, by_line, label);
	print_escaped(out, label);
	putc('\n', out);
}

/* "side of 7, exit 3" */
static void spell_kind(const struct trace_summary *trace, char ret_text[static KIND_SIZE])
{
	if (trace->kind == TRACE_SIDE)
		snprintf(ret_text, KIND_SIZE, "side of %" PRIu32 ", exit %" PRIu32, trace->parent,
			 trace->exitno);
	else if (trace->kind == TRACE_STITCHED && trace->parent)
		snprintf(ret_text, KIND_SIZE, "stitch after %" PRIu32, trace->parent);
	else
		snprintf(ret_text, KIND_SIZE, "%s", trace_kind_name(trace->kind));
}

/* "loop", or with the number of another trace, "root 7" */
static void spell_link(const struct trace_summary *trace, char ret_text[static KIND_SIZE])
{
	bool leads_elsewhere = trace->link && trace->link != trace->number;

	if (leads_elsewhere)
		snprintf(ret_text, KIND_SIZE, "%s %" PRIu32, trace_linktype_name(trace->linktype),
			 trace->link);
	else
		snprintf(ret_text, KIND_SIZE, "%s", trace_linktype_name(trace->linktype));
}

static void print_row(FILE *out, const struct trace_process *process, const struct trace_row *row)
{
	char kind[KIND_SIZE], link[KIND_SIZE];

	spell_kind(&row->trace, kind);
	spell_link(&row->trace, link);
	fprintf(out, "  %6.2f  %5" PRIu32 "  %-21s  %-17s  %9" PRIu32 "  %12" PRIu32 "  %7" PRIu32 "  ",
		100 * trace_process_share(process, row->cpu_ns), row->trace.number, kind, link,
		row->trace.snapshots, row->trace.instructions, row->trace.szmcode);
	print_place(out, row->start, row->line, true);
}

static void print_size(FILE *out, const struct trace_vm *vm)
{
	uint64_t used = 0;

	for (size_t i = 0; i < vm->row_count; i++)
		used += vm->rows[i].trace.szmcode;
	fprintf(out, "%zu traces, %.1f KiB of machine code", vm->row_count, (double)used / KIBIBYTE);
	if (vm->limits.mcode_max)
		fprintf(out, "; %.0f KiB allocated, at most %.0f KiB",
			(double)vm->limits.mcode_allocated / KIBIBYTE,
			(double)vm->limits.mcode_max / KIBIBYTE);
	if (trace_vm_is_full(vm))
		fputs(": no more areas, so what does not fit will flush all traces", out);
	putc('\n', out);
}

/* "never again: NYI: bytecode" */
static void spell_cause(const struct interpreted_row *row, char ret_text[static CAUSE_SIZE])
{
	const char *reason = row->reason ? row->reason : "reason no longer known";

	switch (row->cause) {
	case NOT_COMPILED_BLACKLISTED: snprintf(ret_text, CAUSE_SIZE, "never again: %s", reason); break;
	case NOT_COMPILED_ABORTED:
		snprintf(ret_text, CAUSE_SIZE, "later again, after %u of 11: %s", row->times, reason);
		break;
	case NOT_COMPILED_OFF: snprintf(ret_text, CAUSE_SIZE, "jit.off()"); break;
	}
}

static void print_interpreted(FILE *out, const struct trace_process *process, const struct trace_vm *vm)
{
	if (vm->interpreted_count)
		fputs("\n  Not compiled, with the reason of the last attempt:\n"
		      "   time %  what      tried                                                   start\n",
		      out);
	for (size_t i = 0; i < vm->interpreted_count; i++) {
		const struct interpreted_row *row = &vm->interpreted[i];
		char cause[CAUSE_SIZE];

		spell_cause(row, cause);
		fprintf(out, "  %6.2f  %-8s  %-54s  ", 100 * trace_process_share(process, row->cpu_ns),
			row->is_loop ? "loop" : "function", cause);
		print_place(out, row->function, row->line, row->is_loop);
	}
}

/* "9 of 10", "12: 3 attempts failed" */
static void spell_taken(const struct trace_vm *vm, const struct exit_row *row,
			char ret_text[static KIND_SIZE])
{
	const uint32_t hotexit = vm->limits.hotexit;

	if (row->has_side)
		snprintf(ret_text, KIND_SIZE, "often");
	else if (hotexit && row->taken >= hotexit)
		snprintf(ret_text, KIND_SIZE, "%" PRIu32 ": %" PRIu32 " attempts failed", row->taken,
			 row->taken - hotexit + 1);
	else
		snprintf(ret_text, KIND_SIZE, "%" PRIu32 " of %" PRIu32, row->taken, hotexit);
}

static void print_exit(FILE *out, const struct trace_process *process, const struct trace_vm *vm,
		       const struct exit_row *row)
{
	char taken[KIND_SIZE], side[KIND_SIZE] = "-", time[KIND_SIZE] = "?";

	spell_taken(vm, row, taken);
	if (row->has_side && row->side)
		snprintf(side, sizeof(side), "%" PRIu32, row->side);
	else if (row->has_side)
		snprintf(side, sizeof(side), trace_vm_may_have_side(vm, row) ? "?" : "gone");
	if (!trace_vm_may_have_side(vm, row))
		snprintf(time, sizeof(time), "%.2f",
			 100 * trace_process_share(process, row->has_side ? row->side_ns : row->trace_ns));
	fprintf(out, "  %6s  %5" PRIu32 "  %4" PRIu32 "  %-22s  %10s  ", time, row->trace, row->number, taken,
		side);
	print_place(out, row->function, row->line, true);
}

/* Those without a side trace come first. */
static void print_exits(FILE *out, const struct trace_process *process, const struct trace_vm *vm)
{
	size_t shown[2] = { 0 };

	if (vm->exit_count)
		fputs("\n  Exits that were taken. Without a side trace each goes back to the interpreter; time is\n"
		      "  that of the side trace, or else of the trace:\n"
		      "   time %  trace  exit  taken                   side trace  to\n",
		      out);
	for (size_t i = 0; i < vm->exit_count; i++)
		if (shown[vm->exits[i].has_side]++ < EXITS_SHOWN)
			print_exit(out, process, vm, &vm->exits[i]);
	for (int has_side = 0; has_side < 2; has_side++)
		if (shown[has_side] > EXITS_SHOWN)
			fprintf(out, "  %zu more %s a side trace\n", shown[has_side] - EXITS_SHOWN,
				has_side ? "with" : "without");
}

static void print_vm(FILE *out, const struct trace_process *process, const struct trace_vm *vm)
{
	fprintf(out, "\nVM 0x%" PRIx64 " in ", vm->g);
	print_escaped(out, vm->module);
	if (!vm->has_jit) {
		fputs(" has no JIT compiler.\n", out);
		return;
	}
	if (vm->closed && vm->limits.mcode_max == 0) {
		fputs(": the program closed this Lua state before it could be read.\n", out);
		return;
	}
	fputs(": ", out);
	print_size(out, vm);
	if (vm->row_count)
		fputs("   time %  trace  kind                   link               "
		      "snapshots  instructions    bytes  start\n",
		      out);
	for (size_t i = 0; i < vm->row_count; i++)
		print_row(out, process, &vm->rows[i]);
	print_exits(out, process, vm);
	print_interpreted(out, process, vm);
	if (vm->closed)
		fputs("  The program closed this Lua state before all of it was read.\n", out);
	else if (!vm->complete)
		fputs("  Not all could be read.\n", out);
}

void trace_process_print(FILE *out, const struct trace_process *process)
{
	const char *separator = "  ";

	fprintf(out, "Process %d", (int)process->pid);
	if (process->name) {
		putc(' ', out);
		print_escaped(out, process->name);
	}
	fprintf(out, ": %" PRIu64 " samples, %.1f s of CPU time in %.1f s\n", process->samples,
		(double)process->cpu_ns / 1e9, (double)process->duration_ns / 1e9);
	for (int state = 0; process->cpu_ns && state < VM_STATE_COUNT; state++) {
		if (process->state_ns[state] == 0)
			continue;
		fprintf(out, "%s%s %.2f %%", separator, vm_state_name((enum vm_state)state),
			100 * trace_process_share(process, process->state_ns[state]));
		separator = ", ";
	}
	if (process->cpu_ns)
		putc('\n', out);
	if (process->gone_ns)
		fprintf(out,
			"  %.2f %% in %zu traces that are not there any more: flushed, made anew, or of a state that was closed\n",
			100 * trace_process_share(process, process->gone_ns), process->gone_count);
	if (process->unlisted_ns && process->vm_count)
		fprintf(out,
			"  %.2f %% in traces of Lua states that are not known in the end, closed, or read in part: they cannot be listed\n",
			100 * trace_process_share(process, process->unlisted_ns));
	if (process->vm_count == 0)
		fputs("  No Lua state is known in it, so its traces cannot be listed.\n", out);
	for (size_t i = 0; i < process->vm_count; i++)
		print_vm(out, process, &process->vms[i]);
}

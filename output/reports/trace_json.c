/* SPDX-License-Identifier: MIT */
/* The traces of processes as JSON. */
#include "output/labels/frame_label.h"
#include "output/labels/json_values.h"
#include "output/labels/names.h"
#include "output/reports/trace_report.h"

/*
 * Add a place to object under a name and return it; null if function is NULL. On failure, free object and
 * return NULL.
 */
static json_t *with_place(json_t *object, const char *name, const struct function *function, uint32_t line)
{
	json_t *place = function ? json_pack("{s:o, s:o, s:o, s:o}", "name", json_value_text(function->name),
					     "file",
					     json_value_text(function->file ? frame_label_file(function->file)
									    : NULL),
					     "firstline", json_value_number(function->firstline), "line",
					     json_value_number(line))
				 : json_null();

	return json_value_set(object, name, place);
}

static json_t *row_json(const struct trace_process *process, const struct trace_row *row)
{
	const struct trace_summary *trace = &row->trace;
	bool is_side = trace->kind == TRACE_SIDE;
	json_t *object = json_pack(
		"{s:i, s:f, s:I, s:s, s:o, s:o, s:o, s:s, s:o, s:i, s:i, s:i, s:o}", "number",
		(int)trace->number, "share", trace_process_share(process, row->cpu_ns), "samples",
		(json_int_t)row->samples, "kind", trace_kind_name(trace->kind), "root",
		json_value_number(trace->root), "parent", json_value_number(trace->parent), "exit",
		is_side ? json_integer(trace->exitno) : json_null(), "linktype",
		trace_linktype_name(trace->linktype), "link", json_value_number(trace->link), "snapshots",
		(int)trace->snapshots, "instructions", (int)trace->instructions, "mcode_bytes",
		(int)trace->szmcode, "mcode", json_value_address(trace->mcode));

	return with_place(object, "start", row->start, row->line);
}

static json_t *rows_json(const struct trace_process *process, const struct trace_vm *vm)
{
	json_t *rows = json_array();

	for (size_t i = 0; rows && i < vm->row_count; i++)
		rows = json_value_append(rows, row_json(process, &vm->rows[i]));
	return rows;
}

static json_t *interpreted_row_json(const struct trace_process *process, const struct interpreted_row *row)
{
	json_t *object = json_pack("{s:s, s:s, s:o, s:o, s:f}", "what", row->is_loop ? "loop" : "function",
				   "cause", not_compiled_cause_name(row->cause), "reason",
				   json_value_text(row->reason), "times", json_value_number(row->times),
				   "share", trace_process_share(process, row->cpu_ns));

	return with_place(object, "start", row->function, row->line);
}

/* All rows, or only those of code that is never tried again. */
static json_t *interpreted_json(const struct trace_process *process, const struct trace_vm *vm,
				bool blacklisted_only)
{
	json_t *rows = json_array();

	for (size_t i = 0; rows && i < vm->interpreted_count; i++)
		if (!blacklisted_only || vm->interpreted[i].cause == NOT_COMPILED_BLACKLISTED)
			rows = json_value_append(rows, interpreted_row_json(process, &vm->interpreted[i]));
	return rows;
}

static json_t *exit_json(const struct trace_process *process, const struct trace_vm *vm,
			 const struct exit_row *row)
{
	json_t *object = json_pack(
		"{s:i, s:i, s:o, s:b, s:o, s:o, s:f}", "trace", (int)row->trace, "exit", (int)row->number,
		"taken", row->has_side ? json_null() : json_integer(row->taken), "has_side",
		(int)row->has_side, "side", json_value_number(row->side), "side_share",
		trace_vm_may_have_side(vm, row) ? json_null()
						: json_real(trace_process_share(process, row->side_ns)),
		"trace_share", trace_process_share(process, row->trace_ns));

	return with_place(object, "to", row->function, row->line);
}

static json_t *exits_json(const struct trace_process *process, const struct trace_vm *vm)
{
	json_t *rows = json_array();

	for (size_t i = 0; rows && i < vm->exit_count; i++)
		rows = json_value_append(rows, exit_json(process, vm, &vm->exits[i]));
	return rows;
}

static json_t *mcode_json(const struct trace_vm *vm)
{
	uint64_t used = 0;

	for (size_t i = 0; i < vm->row_count; i++)
		used += vm->rows[i].trace.szmcode;
	return json_pack("{s:I, s:o, s:o, s:b}", "used", (json_int_t)used, "allocated",
			 json_value_number(vm->limits.mcode_allocated), "maximum",
			 json_value_number(vm->limits.mcode_max), "full", (int)trace_vm_is_full(vm));
}

static json_t *vms_json(const struct trace_process *process)
{
	json_t *vms = json_array();

	for (size_t i = 0; vms && i < process->vm_count; i++) {
		const struct trace_vm *vm = &process->vms[i];

		vms = json_value_append(
			vms,
			json_pack("{s:o, s:o, s:b, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "g",
				  json_value_address(vm->g), "file", json_value_text(vm->module), "jit",
				  (int)vm->has_jit, "complete", (int)vm->complete, "closed", (int)vm->closed,
				  "mcode_bytes", mcode_json(vm), "traces", rows_json(process, vm), "hotexit",
				  json_value_number(vm->limits.hotexit), "exits", exits_json(process, vm),
				  "not_compiled", interpreted_json(process, vm, false), "blacklisted",
				  interpreted_json(process, vm, true)));
	}
	return vms;
}

static json_t *states_json(const struct trace_process *process)
{
	json_t *states = json_object();

	for (int state = 0; state < VM_STATE_COUNT; state++)
		states = json_value_set(states, vm_state_name((enum vm_state)state),
					json_real(trace_process_share(process, process->state_ns[state])));
	return states;
}

json_t *trace_process_json(const struct trace_process *process)
{
	return json_pack("{s:i, s:o, s:f, s:f, s:I, s:o, s:f, s:I, s:f, s:o}", "pid", (int)process->pid,
			 "name", json_value_text(process->name), "duration_ms",
			 (double)process->duration_ns / 1e6, "cpu_ms", (double)process->cpu_ns / 1e6,
			 "samples", (json_int_t)process->samples, "states", states_json(process), "gone",
			 trace_process_share(process, process->gone_ns), "gone_traces",
			 (json_int_t)process->gone_count, "unlisted",
			 trace_process_share(process, process->unlisted_ns), "vms", vms_json(process));
}

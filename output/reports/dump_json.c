/* SPDX-License-Identifier: MIT */
/* A dump as JSON. */
#include "output/reports/dump_report.h"

#include "output/labels/frame_label.h"
#include "output/labels/json_values.h"
#include "output/labels/names.h"

static const char *certainty_text(enum frame_certainty certainty)
{
	static const char *const texts[CERTAINTY_COUNT] = {
		[CERTAINTY_EXACT] = "exact",
		[CERTAINTY_NEAREST] = "nearest",
		[CERTAINTY_FUNCTION] = "function",
	};

	return texts[certainty];
}

static json_t *variable_json(const struct variable *variable)
{
	const char *certainty = variable->of_snapshot ? "snapshot" : "exact";

	return json_pack("{s:s, s:o, s:i, s:o, s:o, s:o, s:o}", "kind", variable_kind_name(variable->kind),
			 "name", json_value_text(variable->name), "index", (int)variable->index, "type",
			 json_value_text(variable->type), "value",
			 json_value_text(variable->type ? variable->text : NULL), "certainty",
			 json_value_text(variable->type ? certainty : NULL), "unknown",
			 json_value_text(variable->type ? NULL : variable->text));
}

static json_t *variables_json(const struct variables *variables)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < variables->count; i++)
		list = json_value_append(list, variable_json(&variables->list[i]));
	return list;
}

static json_t *frame_json(const struct frame *frame)
{
	const struct function *function = frame->function;
	char label[FRAME_LABEL_SIZE];

	frame_label(function, frame->line, true, label);
	return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:s, s:b}", "label", json_value_text(label),
			 "kind", frame_kind_name(function->kind), "name", json_value_text(function->name),
			 "file", json_value_text(function->file ? frame_label_file(function->file) : NULL),
			 "line", json_value_number(frame->line), "firstline",
			 json_value_number(function->firstline), "module", json_value_text(function->module),
			 "certainty", certainty_text(frame->certainty), "compiled", (int)frame->compiled);
}

static json_t *stack_json(const struct dump_stack *stack)
{
	json_t *frames = json_array();

	for (size_t i = 0; frames && i < stack->count; i++) {
		json_t *frame = frame_json(&stack->frames[i]);

		if (stack->variables)
			frame = json_value_set(frame, "variables", variables_json(&stack->variables[i]));
		frames = json_value_append(frames, frame);
	}
	return frames;
}

static json_t *threads_json(const struct dump_process *process)
{
	json_t *threads = json_array();

	for (size_t i = 0; threads && i < process->thread_count; i++) {
		const struct dump_thread *thread = &process->threads[i];

		threads = json_value_append(threads,
					    json_pack("{s:i, s:o, s:s, s:o, s:o}", "tid", (int)thread->tid,
						      "name", json_value_text(thread->name), "state",
						      thread->state, "phase", json_value_text(thread->phase),
						      "frames", stack_json(&thread->stack)));
	}
	return threads;
}

static json_t *groups_json(const struct dump_vm *vm)
{
	json_t *groups = json_array();

	for (size_t i = 0; groups && i < vm->group_count; i++) {
		const struct dump_group *group = vm->groups[i];

		groups = json_value_append(groups, json_pack("{s:I, s:s, s:o, s:o}", "count",
							     (json_int_t)group->count, "state",
							     dump_state_text(group->state), "phase",
							     json_value_text(group->phase), "frames",
							     stack_json(&group->stack)));
	}
	return groups;
}

static json_t *counts_json(const struct dump_vm *vm)
{
	json_t *counts = json_object();

	for (size_t i = 0; i < COROUTINE_STATE_COUNT; i++)
		counts = json_value_set(counts, dump_state_text((enum coroutine_state)i),
					json_integer((json_int_t)vm->counts[i]));
	return counts;
}

static json_t *vms_json(const struct dump_process *process)
{
	json_t *vms = json_array();

	for (size_t i = 0; vms && i < process->vm_count; i++) {
		const struct dump_vm *vm = &process->vms[i];

		vms = json_value_append(
			vms, json_pack("{s:o, s:o, s:b, s:o, s:o}", "g", json_value_address(vm->g), "file",
				       json_value_text(vm->module), "complete", (int)vm->complete,
				       "coroutines", counts_json(vm), "groups", groups_json(vm)));
	}
	return vms;
}

json_t *dump_process_json(const struct dump_process *process)
{
	return json_pack("{s:i, s:o, s:o, s:o, s:b, s:{s:I, s:f}}", "pid", (int)process->pid, "name",
			 json_value_text(process->name), "threads", threads_json(process), "vms",
			 vms_json(process), "variables_cut", (int)process->variables_cut, "held", "times",
			 (json_int_t)process->holds, "longest_us", (double)process->longest_hold_ns / 1000);
}

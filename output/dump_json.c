#include "output/dump_report.h"

#include <inttypes.h>

#include "output/escape.h"
#include "output/frame_label.h"
#include "output/names.h"

enum { TEXT_MAX = 8192 };	/* of one name or path; longer ones are cut */

/* Text of the target, as valid UTF-8 without control characters; null for NULL. */
static json_t *text_json(const char *text)
{
	char escaped[TEXT_MAX];

	if (!text)
		return json_null();
	escape_text(ESCAPE_PLAIN, text, escaped, sizeof(escaped));
	return json_string(escaped);
}

static const char *certainty_text(enum frame_certainty certainty)
{
	static const char *const texts[CERTAINTY_COUNT] = {
		[CERTAINTY_EXACT] = "exact",
		[CERTAINTY_NEAREST] = "nearest",
		[CERTAINTY_FUNCTION] = "function",
	};

	return texts[certainty];
}

/* 0 stands for what is not known. */
static json_t *number_json(uint64_t number)
{
	return number ? json_integer((json_int_t)number) : json_null();
}

static json_t *frame_json(const struct frame *frame)
{
	const struct function *function = frame->function;
	char label[FRAME_LABEL_SIZE];

	frame_label(function, frame->line, true, label);
	return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:s, s:b}",
			 "label", text_json(label), "kind", frame_kind_name(function->kind),
			 "name", text_json(function->name),
			 "file", text_json(function->file ? frame_label_file(function->file) : NULL),
			 "line", number_json(frame->line),
			 "firstline", number_json(function->firstline),
			 "module", text_json(function->module),
			 "certainty", certainty_text(frame->certainty),
			 "compiled", (int)frame->compiled);
}

/* Add to an array; both are given up if either is missing. */
static json_t *append(json_t *array, json_t *value)
{
	if (array && json_array_append_new(array, value) == 0)
		return array;
	json_decref(array);
	return NULL;
}

static json_t *stack_json(const struct dump_stack *stack)
{
	json_t *frames = json_array();

	for (size_t i = 0; frames && i < stack->count; i++)
		frames = append(frames, frame_json(&stack->frames[i]));
	return frames;
}

static json_t *threads_json(const struct dump_process *process)
{
	json_t *threads = json_array();

	for (size_t i = 0; threads && i < process->thread_count; i++) {
		const struct dump_thread *thread = &process->threads[i];

		threads = append(threads, json_pack("{s:i, s:o, s:s, s:o, s:o}", "tid", (int)thread->tid,
						    "name", text_json(thread->name),
						    "state", thread->state,
						    "phase", text_json(thread->phase),
						    "frames", stack_json(&thread->stack)));
	}
	return threads;
}

static json_t *groups_json(const struct dump_vm *vm)
{
	json_t *groups = json_array();

	for (size_t i = 0; groups && i < vm->group_count; i++) {
		const struct dump_group *group = vm->groups[i];

		groups = append(groups, json_pack("{s:I, s:s, s:o}", "count", (json_int_t)group->count,
						  "state", dump_state_text(group->state),
						  "frames", stack_json(&group->stack)));
	}
	return groups;
}

static json_t *counts_json(const struct dump_vm *vm)
{
	json_t *counts = json_object();

	for (size_t i = 0; i < COROUTINE_STATE_COUNT; i++)
		json_object_set_new(counts, dump_state_text((enum coroutine_state)i),
				    json_integer((json_int_t)vm->counts[i]));
	return counts;
}

static json_t *vms_json(const struct dump_process *process)
{
	json_t *vms = json_array();

	for (size_t i = 0; vms && i < process->vm_count; i++) {
		const struct dump_vm *vm = &process->vms[i];
		char g[2 + 16 + 1];

		/* A number of JSON does not hold every address. */
		snprintf(g, sizeof(g), "0x%" PRIx64, vm->g);
		vms = append(vms, json_pack("{s:s, s:o, s:b, s:o, s:o}", "g", g,
					    "file", text_json(vm->module),
					    "complete", (int)vm->complete,
					    "coroutines", counts_json(vm),
					    "groups", groups_json(vm)));
	}
	return vms;
}

json_t *dump_process_json(const struct dump_process *process)
{
	return json_pack("{s:i, s:o, s:o, s:o, s:{s:I, s:f}}", "pid", (int)process->pid,
			 "name", text_json(process->name),
			 "threads", threads_json(process), "vms", vms_json(process),
			 "held", "times", (json_int_t)process->holds,
			 "longest_us", (double)process->longest_hold_ns / 1000);
}

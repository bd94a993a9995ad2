/* SPDX-License-Identifier: MIT */
#include "output/findings/findings_report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "output/labels/escape.h"
#include "output/labels/frame_label.h"
#include "output/labels/frame_text.h"
#include "output/labels/json_values.h"
#include "output/labels/names.h"

enum { PATH_TEXT_SIZE = 400, NAME_TEXT_SIZE = 128, TEXT_COLUMNS = 100 };

/* From this share on, lost samples are worth telling. */
static const double lost_told = 0.05;

/*---- What could not be looked at ----*/

void unseen_add(struct unseen *unseen, const char *format, ...)
{
	char text[FINDING_TEXT_SIZE];
	va_list arguments;
	size_t what;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	what = strcspn(text, ":");
	for (size_t i = 0; i < unseen->count; i++)
		if (strcspn(unseen->at[i], ":") == what && strncmp(unseen->at[i], text, what) == 0)
			return;
	if (unseen->count < FINDINGS_UNSEEN_MAX)
		snprintf(unseen->at[unseen->count++], FINDING_TEXT_SIZE, "%s", text);
}

static void add_of_traces(struct unseen *unseen, const struct trace_process *traces)
{
	bool complete = true, has_jit = false;

	for (size_t i = 0; i < traces->vm_count; i++) {
		complete &= traces->vms[i].complete;
		has_jit |= traces->vms[i].has_jit;
	}
	if (traces->vm_count == 0)
		unseen_add(unseen, "compiled code: no Lua state is known");
	else if (!has_jit)
		unseen_add(unseen, "compiled code: this LuaJIT has no compiler");
	else if (!complete)
		unseen_add(unseen, "a part of the traces, or of what is not compiled: it could not be read");
}

/* Source files whose lines may be others than those of the program. */
static size_t count_doubtful(const struct evidence *evidence)
{
	size_t count = 0;

	for (size_t i = 0; i < evidence->file_count; i++)
		count += evidence->files[i].text.lines && *evidence->files[i].text.note;
	return count;
}

void unseen_add_of(struct unseen *unseen, const struct evidence *evidence)
{
	const size_t doubtful = count_doubtful(evidence);

	if (!evidence_is_busy(evidence))
		unseen_add(unseen, "CPU time: the process used too little (%.1f ms) to have any to save",
			   (double)evidence->cpu_ns / 1e6);
	else if (!evidence_is_enough(evidence))
		unseen_add(
			unseen,
			"CPU time: too few samples of it (they tell as much as %.0f equal ones); use a longer -d, or a "
			"higher -r",
			evidence_weight(evidence));
	if (evidence_is_busy(evidence) && evidence_share(evidence, evidence->lost_ns) >= lost_told)
		unseen_add(unseen, "%.0f %% of the CPU time: a part of its stacks is unknown",
			   100 * evidence_share(evidence, evidence->lost_ns));
	if (!evidence->has_loop)
		unseen_add(unseen, "turns of an event loop: none was seen");
	if (doubtful)
		unseen_add(
			unseen,
			"the lines of %zu source file%s: changed since the program began, or of another machine",
			doubtful, doubtful == 1 ? "" : "s");
	if (evidence->traces)
		add_of_traces(unseen, evidence->traces);
}

/*---- Text ----*/

static const enum vm_state shown_states[] = { VM_STATE_INTERPRETED, VM_STATE_COMPILED, VM_STATE_C,
					      VM_STATE_GC, VM_STATE_NONE };

static void print_head(FILE *out, const struct evidence *evidence)
{
	const char *separator = ": ";

	if (evidence->name) {
		escape_write(ESCAPE_PLAIN, evidence->name, out);
		fputc(' ', out);
	}
	fprintf(out, "(pid %d)  %.1f s, %" PRIu64 " samples, %.1f %% of a CPU", (int)evidence->pid,
		(double)evidence->duration_ns / 1e9, evidence->samples,
		evidence->duration_ns ? 100.0 * (double)evidence->cpu_ns / (double)evidence->duration_ns
				      : 0.0);
	for (size_t i = 0; i < sizeof(shown_states) / sizeof(shown_states[0]); i++) {
		const double share = evidence_share(evidence, evidence->state_ns[shown_states[i]]);

		if (share < 0.005)
			continue;
		fprintf(out, "%s%.0f %% %s", separator, 100 * share,
			shown_states[i] == VM_STATE_NONE ? "outside of Lua" : vm_state_name(shown_states[i]));
		separator = ", ";
	}
	if (evidence->heap.last_bytes)
		fprintf(out, "; Lua heap %.1f MB", (double)evidence->heap.last_bytes / 1e6);
	fputc('\n', out);
}

/* Words on lines that begin alike, the first one after a title. */
static void print_wrapped(FILE *out, const char *title, const char *text)
{
	static const char indent[] = "   ";
	size_t column = (size_t)fprintf(out, "%s%s", indent, title);
	bool begins = true;

	while (*text) {
		const size_t length = strcspn(text, " ");

		if (!begins && column + 1 + length > TEXT_COLUMNS) {
			fprintf(out, "\n%s", indent);
			column = strlen(indent);
			begins = true;
		}
		fprintf(out, "%s%.*s", begins ? "" : " ", (int)length, text);
		column += length + !begins;
		begins = false;
		text += length;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

static void print_item(FILE *out, const struct finding *finding, const struct finding_item *item)
{
	char where[FRAME_TEXT_SIZE], callee[FRAME_TEXT_SIZE], path[PATH_TEXT_SIZE];

	if (finding->cost == COST_HEAP)
		fprintf(out, "   %9.2f MB  ", (double)item->amount / 1e6);
	else
		fprintf(out, "   %7.1f %%  ",
			finding->amount
				? 100 * finding->share * (double)item->amount / (double)finding->amount
				: 0.0);
	if (item->path) {
		escape_text(ESCAPE_PLAIN, item->path, path, sizeof(path));
		fputs(path, out);
	} else if (item->function) {
		fputs(frame_text(item->function, item->line, true, where), out);
	} else {
		fputs("outside of Lua", out);
	}
	if (item->callee)
		fprintf(out, ": %s", frame_text(item->callee, 0, false, callee));
	if (*item->words)
		fprintf(out, "  (%s)", item->words);
	fputc('\n', out);
}

static void print_finding(FILE *out, size_t number, const struct finding *finding)
{
	const struct finding_rule *rule = &finding_rules[finding->kind];

	fprintf(out, "\n%zu. %s: %.1f %% of %s\n", number, rule->title, 100 * finding->share,
		finding_cost_title(finding->cost));
	if (*finding->words)
		print_wrapped(out, "", finding->words);
	for (size_t i = 0; i < finding->item_count; i++)
		print_item(out, finding, &finding->items[i]);
	print_wrapped(out, "What people do: ", rule->advice);
	fprintf(out, "   Read on: %s\n", rule->page);
}

void findings_print(FILE *out, const struct evidence *evidence, const struct findings *findings,
		    const struct unseen *unseen)
{
	print_head(out, evidence);
	for (size_t i = 0; i < findings->count; i++)
		print_finding(out, i + 1, &findings->at[i]);
	if (findings->count == 0)
		fputs("\nNothing stands out.\n", out);
	if (unseen->count)
		fputs("\nNot looked at:\n", out);
	for (size_t i = 0; i < unseen->count; i++)
		fprintf(out, "   %s\n", unseen->at[i]);
}

/*---- JSON ----*/

static json_t *function_json(const struct function *function)
{
	char label[FRAME_TEXT_SIZE];

	return json_value_text(function ? frame_text(function, 0, false, label) : NULL);
}

static const char *amount_name(const struct finding *finding)
{
	return finding->cost == COST_HEAP ? "bytes" : "ms";
}

static json_t *amount_json(const struct finding *finding, uint64_t amount)
{
	return finding->cost == COST_HEAP ? json_integer((json_int_t)amount)
					  : json_real((double)amount / 1e6);
}

static json_t *item_json(const struct finding *finding, const struct finding_item *item)
{
	const struct function *function = item->function;

	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", amount_name(finding),
		amount_json(finding, item->amount), "function", function_json(function), "file",
		json_value_text(function && function->file ? frame_label_file(function->file) : NULL), "line",
		json_value_number(item->line), "callee", function_json(item->callee), "path",
		json_value_text(item->path), "words", json_value_text(*item->words ? item->words : NULL));
}

static json_t *finding_json(const struct finding *finding)
{
	const struct finding_rule *rule = &finding_rules[finding->kind];
	json_t *items = json_array();

	for (size_t i = 0; items && i < finding->item_count; i++)
		items = json_value_append(items, item_json(finding, &finding->items[i]));
	return json_pack("{s:s, s:s, s:s, s:f, s:o, s:o, s:o, s:s, s:s}", "kind", rule->name, "title",
			 rule->title, "of", finding_cost_name(finding->cost), "share", finding->share,
			 amount_name(finding), amount_json(finding, finding->amount), "words",
			 json_value_text(*finding->words ? finding->words : NULL), "evidence", items,
			 "advice", rule->advice, "page", rule->page);
}

json_t *findings_json(const struct evidence *evidence, const struct findings *findings,
		      const struct unseen *unseen)
{
	json_t *rows = json_array(), *words = json_array(), *states = json_object();

	for (size_t i = 0; rows && i < findings->count; i++)
		rows = json_value_append(rows, finding_json(&findings->at[i]));
	for (size_t i = 0; words && i < unseen->count; i++)
		words = json_value_append(words, json_value_text(unseen->at[i]));
	for (int state = 0; state < VM_STATE_COUNT; state++)
		states = json_value_set(states, vm_state_name((enum vm_state)state),
					json_real(evidence_share(evidence, evidence->state_ns[state])));
	return json_pack("{s:i, s:o, s:f, s:f, s:I, s:o, s:o, s:o, s:o}", "pid", (int)evidence->pid, "name",
			 json_value_text(evidence->name), "duration_ms", (double)evidence->duration_ns / 1e6,
			 "cpu_ms", (double)evidence->cpu_ns / 1e6, "samples", (json_int_t)evidence->samples,
			 "states", states, "heap_bytes", json_value_number(evidence->heap.last_bytes),
			 "findings", rows, "not_looked_at", words);
}

/* SPDX-License-Identifier: MIT */
#include "src/targets/sampled.h"

#include <stdio.h>
#include <string.h>

#include "src/program/message.h"
#include "src/targets/choose.h"
#include "src/targets/halted.h"

void sampled_tell_refused(const struct sampler_noted *refused)
{
	struct permission_verdict verdict, last = { .sentence = "" };

	for (size_t i = 0; i < refused->count && i < NOTES_TOLD_MAX; i++) {
		const struct sampler_note *refusal = &refused->at[i];

		if (!refusal->why) {
			choose_explain_no_luajit(refusal->pid);
			continue;
		}
		permission_diagnose(refusal->pid, -refusal->why, &verdict);
		/* Some reasons concern no process in particular. */
		if (strcmp(verdict.sentence, last.sentence) != 0)
			choose_tell(&verdict);
		last = verdict;
	}
	if (refused->count)
		message_warn("%zu of the processes cannot be sampled, or not yet.",
			     refused->count + refused->more);
}

void sampled_tell_left_out(const struct sampler_result *result, const struct permission_verdict *left_out)
{
	const int pid = result->left_out_pid;
	const bool is_new = !choose_has_told(&result->refused, pid);

	if (is_new && result->left_out_error)
		choose_tell(left_out);
	else if (is_new)
		choose_explain_no_luajit(pid);
	if (result->left_out == 1)
		message_warn("Process %d was left out.", pid);
	else
		message_warn("%zu processes were left out, process %d among them.", result->left_out, pid);
}

void sampled_tell_unsearched(const struct sampler_result *result)
{
	const int pid = result->unsearched_pid;

	if (result->unsearched == 1)
		message_note(
			"Whether process %d has run LuaJIT is not known: it could not be searched in time.",
			pid);
	else if (result->unsearched)
		message_note("Whether %zu processes have run LuaJIT, process %d among them, is not known: "
			     "they could not be searched in time.",
			     result->unsearched, pid);
}

static int print_figures(FILE *out, const void *figures)
{
	figures_print(out, figures);
	return 0;
}

void sampled_tell_figures(const struct figures *figures)
{
	message_print(print_figures, figures);
}

/* A process that was left out may well run on: it is not said to have ended. */
static void tell_early_end(const struct sampler_result *result, bool are_several)
{
	const char *why = are_several ? "with the last of its targets" : "with its target";

	if (result->left_out)
		why = "as no target was left to sample";
	message_note("The recording ended early, %s.", why);
}

bool sampled_explain(const struct options *options, const struct sampler_result *result,
		     const struct permission_verdict *left_out)
{
	bool is_missing = choose_explain_early_end(result);

	if (result->unknown_pid) {
		message_warn(
			"LuaJIT in process %d is laid out in a way that is not known, so its Lua is not shown: %s.",
			result->unknown_pid, result->unknown_reason);
		is_missing = true;
	}
	if (result->left_out) {
		sampled_tell_left_out(result, left_out);
		is_missing = true;
	}
	sampled_tell_unsearched(result);
	halted_tell(result, message_warn,
		    options->pid_count > 1 || options->subprocesses || options->name
			    ? "Not all ran to the end"
			    : "It did not run to the end");
	if (result->end == SAMPLER_TARGETS_ENDED && !options->launch)
		tell_early_end(result, options->pid_count > 1 || options->subprocesses);
	return is_missing;
}

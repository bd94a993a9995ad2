/* SPDX-License-Identifier: MIT */
#include "src/targets/sampled.h"

#include <stdio.h>
#include <stdlib.h>

#include "src/program/message.h"
#include "src/targets/choose.h"
#include "src/targets/halted.h"

void sampled_tell_left_out(const struct sampler_result *result, const struct permission_verdict *left_out)
{
	if (result->left_out_error)
		choose_tell(left_out);
	else
		choose_explain_no_luajit(result->left_out_pid);
	if (result->left_out == 1)
		message_warn("This process was left out.");
	else
		message_warn("%zu processes were left out, this one among them.", result->left_out);
}

void sampled_tell_figures(const struct figures *figures)
{
	char *text = NULL;
	size_t size;
	FILE *memory = open_memstream(&text, &size);

	if (!memory)
		return;
	figures_print(memory, figures);
	if (fclose(memory) == 0)
		message_lines(text);
	free(text);
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
	halted_tell(result, message_warn,
		    options->pid_count > 1 || options->subprocesses || options->name
			    ? "Not all ran to the end"
			    : "It did not run to the end");
	if (result->end == SAMPLER_TARGETS_ENDED && !options->launch)
		message_note("The recording ended early, with %s.",
			     options->pid_count > 1 || options->subprocesses ? "the last of its targets"
									     : "its target");
	return is_missing;
}

/* SPDX-License-Identifier: MIT */
#include "src/targets/nothing_seen.h"

#include "src/options/option_values.h"
#include "src/program/message.h"
#include "src/targets/choose.h"
#include "src/targets/halted.h"
#include "src/targets/sampled.h"

/*
 * By then ljspy has searched new processes for LuaJIT: see INSPECT_AGAIN_NS in src/sampler/sampler_targets.c.
 */
static const uint64_t sure_ns = 100 * 1000 * 1000;

static double milliseconds(uint64_t ns)
{
	return (double)ns / 1e6;
}

static void explain_command(const struct options *options, const struct sampler_result *result)
{
	const char *command = options->launch[0];

	if (*result->other_lua) {
		message_error("%s runs PUC Lua %s, which ljspy does not know.", command, result->other_lua);
		return;
	}
	if (result->end == SAMPLER_TARGETS_ENDED && result->figures.duration_ns < sure_ns) {
		message_error("%s ended after %.1f ms, too soon to see whether it runs LuaJIT.", command,
			      milliseconds(result->figures.duration_ns));
		message_note("What is to be profiled has to run for a tenth of a second at least.");
		return;
	}
	message_error("%s did not run LuaJIT.", command);
	if (!options->subprocesses)
		message_note("If a program does that it starts, add --subprocesses.");
}

static void explain_no_sample(const struct options *options, const struct sampler_result *result)
{
	const struct figures *figures = &result->figures;
	const double cpu_ms = milliseconds(figures->target_cpu_ns), ms = milliseconds(figures->duration_ns);
	const bool is_idle = !weights[options->clock].is_elapsed && cpu_ms * options->rate_hz < 1000;

	if (result->end == SAMPLER_TARGETS_ENDED) {
		/* What it used before ljspy was attached is unknown. */
		if (figures->target_cpu_ns)
			message_error(
				"There is no sample: the target ended after %.1f ms, of which it used a CPU for %.1f.",
				ms, cpu_ms);
		else
			message_error("There is no sample: the target ended after %.1f ms.", ms);
		message_note("Let it run for longer, or take samples more often: -r %d", OPTIONS_RATE_MAX);
	} else if (is_idle && cpu_ms * OPTIONS_RATE_DEFAULT >= 1000) {
		message_error("There is no sample: in %.1f ms the target used a CPU for %.1f.", ms, cpu_ms);
		message_note("Let it run for longer, or take samples more often: -r %d",
			     OPTIONS_RATE_DEFAULT);
	} else if (is_idle && result->halted.count) {
		halted_tell(result, message_error, "There is no sample");
	} else if (is_idle && result->wants_cpu) {
		message_error(
			"There is no sample: in %.1f ms the target used a CPU for %.1f, and it had work in the end.",
			ms, cpu_ms);
		message_note("It may have waited for a CPU, as on a full machine: let it run for longer.");
	} else if (is_idle) {
		message_error("There is no sample: in %.1f ms the target used a CPU for %.1f.", ms, cpu_ms);
		message_note("What an idle program waits for is shown by --off-cpu, and by `ljspy dump`.");
	} else {
		message_error("There is no sample: none could be taken in %.1f ms.", ms);
	}
}

bool nothing_seen_explain(const struct options *options, const struct sampler_result *result,
			  const struct permission_verdict *left_out)
{
	if (options->launch && !result->saw_luajit) {
		if (result->left_out)
			sampled_tell_left_out(result, left_out);
		else
			explain_command(options, result);
		sampled_tell_unsearched(result);
		return true;
	}
	/*
	 * That no turn of an event loop is long, or no coroutine is parked, or no request in flight, or
	 * nothing allocated, is a valid result.
	 */
	if (result->figures.samples || options->blocked_ns || options->coroutines || options->requests ||
	    options->alloc)
		return false;
	if (result->has_attached || !result->left_out)
		explain_no_sample(options, result);
	if (result->left_out)
		sampled_tell_left_out(result, left_out);
	sampled_tell_unsearched(result);
	return true;
}

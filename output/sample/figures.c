/* SPDX-License-Identifier: MIT */
#include "output/sample/figures.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "output/sample/amount_text.h"
#include "output/sample/functions.h"

static const char *const certainty_names[CERTAINTY_COUNT] = {
	[CERTAINTY_EXACT] = "exact",
	[CERTAINTY_NEAREST] = "nearest",
	[CERTAINTY_FUNCTION] = "function",
};

static const struct {
	const char *name;
	unsigned per_mille;
} percentiles[] = {
	{ "p50", 500 },
	{ "p90", 900 },
	{ "p99", 990 },
};

enum { PERCENTILE_COUNT = sizeof(percentiles) / sizeof(percentiles[0]) };

/* Of all samples; fewer have no effect that chance does not have, too. */
static const double skid_percent_min = 1;

/* So many points more of the CPU time than of the samples may be chance. */
static const double lost_points_more = 0.5;

/* Less than this of all bytes may be divided as roughly as those of large allocations are. */
static const double large_percent_min = 1;

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

void figures_push(struct figures_stack *stack, const struct function *function,
		  enum frame_certainty certainty)
{
	/* What was allocated has no position. */
	if (function->kind == FRAME_ALLOCATED)
		return;
	if (function->kind != FRAME_LOST) {
		stack->frames[certainty]++;
		return;
	}
	for (unsigned reason = 0; reason < LOST_COUNT; reason++)
		if (lost_function((enum lost_reason)reason) == function)
			stack->lost = reason + 1;
}

void figures_add_stack(struct figures *figures, const struct figures_stack *stack, uint64_t cpu_ns)
{
	figures->samples++;
	figures->sampled_cpu_ns += cpu_ns;
	for (int i = 0; i < CERTAINTY_COUNT; i++)
		figures->frames[i] += stack->frames[i];
	if (!stack->lost)
		return;
	figures->lost[stack->lost - 1]++;
	figures->lost_cpu_ns += cpu_ns;
}

void figures_add_sample(struct figures *figures, const struct sample *sample)
{
	struct figures_stack stack = { 0 };

	for (size_t i = sample->frame_count; i-- > 0;)
		figures_push(&stack, sample->frames[i].function, sample->frames[i].certainty);
	figures_add_stack(figures, &stack, sample->cpu_ns);
}

void figures_set_rate(struct figures *figures, uint64_t clocked_ns)
{
	figures->rate_reached_hz = clocked_ns ? (double)figures->samples * 1e9 / (double)clocked_ns : 0;
}

void figures_take_samples(struct figures *figures, const struct figures *counted)
{
	figures->samples = counted->samples;
	figures->sampled_cpu_ns = counted->sampled_cpu_ns;
	figures->lost_cpu_ns = counted->lost_cpu_ns;
	memcpy(figures->lost, counted->lost, sizeof(figures->lost));
	memcpy(figures->frames, counted->frames, sizeof(figures->frames));
}

void figures_add(struct figures *sum, const struct figures *figures)
{
	sum->samples += figures->samples;
	sum->sampled_cpu_ns += figures->sampled_cpu_ns;
	sum->lost_cpu_ns += figures->lost_cpu_ns;
	for (int reason = 0; reason < LOST_COUNT; reason++)
		sum->lost[reason] += figures->lost[reason];
	sum->missed_ticks += figures->missed_ticks;
	sum->dropped += figures->dropped;
	sum->away_ns += figures->away_ns;
	sum->skid += figures->skid;
	sum->undisturbed += figures->undisturbed;
	histogram_merge(&sum->pause_ns, &figures->pause_ns);
	sum->duration_ns += figures->duration_ns;
	sum->self_cpu_ns += figures->self_cpu_ns;
	sum->target_cpu_ns += figures->target_cpu_ns;
	sum->alloc_estimated += figures->alloc_estimated;
	sum->alloc_least += figures->alloc_least;
	sum->alloc_all += figures->alloc_all;
	sum->alloc_large += figures->alloc_large;
	sum->alloc_large_unknown |= figures->alloc_large_unknown;
	sum->is_part |= figures->is_part;
	sum->is_unfinished |= figures->is_unfinished;
	sum->target_cpu_unknown |= figures->target_cpu_unknown;
	sum->lost_cpu_unknown |= figures->lost_cpu_unknown;
	if (figures->rate_asked_hz > sum->rate_asked_hz)
		sum->rate_asked_hz = figures->rate_asked_hz;
	for (int i = 0; i < CERTAINTY_COUNT; i++)
		sum->frames[i] += figures->frames[i];
}

void figures_count_since(struct figures *figures, const struct figures *now, const struct figures *before)
{
	figures->missed_ticks = now->missed_ticks - before->missed_ticks;
	figures->dropped = now->dropped - before->dropped;
	figures->away_ns = now->away_ns - before->away_ns;
	figures->undisturbed = now->undisturbed - before->undisturbed;
	figures->skid = now->skid - before->skid;
	figures->alloc_estimated = now->alloc_estimated - before->alloc_estimated;
	figures->alloc_least = now->alloc_least - before->alloc_least;
	figures->alloc_all = now->alloc_all - before->alloc_all;
	figures->alloc_large = now->alloc_large - before->alloc_large;
	figures->self_cpu_ns = now->self_cpu_ns > before->self_cpu_ns ? now->self_cpu_ns - before->self_cpu_ns
								      : 0;
	figures->pause_ns = now->pause_ns;
	histogram_subtract(&figures->pause_ns, &before->pause_ns);
}

uint64_t figures_lost(const struct figures *figures)
{
	uint64_t lost = 0;

	for (int reason = 0; reason < LOST_COUNT; reason++)
		lost += figures->lost[reason];
	return lost;
}

const char *figures_lost_share(const struct figures *figures, char ret_text[static FIGURES_LOST_SIZE])
{
	const double of_samples = percent(figures_lost(figures), figures->samples);
	const double of_time = percent(figures->lost_cpu_ns, figures->sampled_cpu_ns);

	if (of_time >= of_samples + lost_points_more)
		snprintf(ret_text, FIGURES_LOST_SIZE, "%.2f %%, but %.2f %% of the CPU time", of_samples,
			 of_time);
	else
		snprintf(ret_text, FIGURES_LOST_SIZE, "%.2f %%", of_samples);
	return ret_text;
}

/* Without the end of a recording, samples of some clocks do not tell how long the target was sampled. */
static bool knows_rate(const struct figures *figures)
{
	return figures->rate_reached_hz > 0 || figures->samples == 0;
}

void figures_rate(const struct figures *figures, char ret_text[static FIGURES_RATE_SIZE])
{
	const bool is_known = knows_rate(figures);

	if (figures->rate_asked_hz == 0 && !is_known)
		snprintf(ret_text, FIGURES_RATE_SIZE, "rate unknown");
	else if (figures->rate_asked_hz == 0)
		snprintf(ret_text, FIGURES_RATE_SIZE, "%.1f Hz reached", figures->rate_reached_hz);
	else if (is_known)
		snprintf(ret_text, FIGURES_RATE_SIZE, "%.1f Hz reached of %g asked", figures->rate_reached_hz,
			 figures->rate_asked_hz);
	else
		snprintf(ret_text, FIGURES_RATE_SIZE, "%g Hz asked", figures->rate_asked_hz);
}

/* Of what did not happen there is no word. */
static void print_apart(FILE *out, const struct figures *figures)
{
	const char *before = "apart    ";

	if (figures->dropped) {
		fprintf(out,
			"%s%" PRIu64
			" samples dropped, as writing was slower or failed, or they were too large",
			before, figures->dropped);
		before = "; ";
	}
	if (figures->away_ns)
		fprintf(out, "%saway for %.1f s, as ljspy was stopped or memory of a target kept it waiting",
			before, (double)figures->away_ns / 1e9);
	if (figures->dropped || figures->away_ns)
		fputc('\n', out);
}

static void print_samples(FILE *out, const struct figures *figures)
{
	uint64_t lost = figures_lost(figures);
	const char *before = ": ";
	char rate[FIGURES_RATE_SIZE], share[FIGURES_LOST_SIZE];

	figures_rate(figures, rate);
	fprintf(out, "samples  %" PRIu64 " in %.1f s, %s", figures->samples,
		(double)figures->duration_ns / 1e9, rate);
	if (figures->is_unfinished)
		fprintf(out, "; the recording has no end\n");
	else
		fprintf(out, ", %" PRIu64 " ticks missed\n", figures->missed_ticks);
	fprintf(out, "lost     %" PRIu64 " (%s)", lost, figures_lost_share(figures, share));
	for (int reason = 0; reason < LOST_COUNT; reason++) {
		if (figures->lost[reason] == 0)
			continue;
		fprintf(out, "%s%s %" PRIu64, before, lost_reason_text((enum lost_reason)reason),
			figures->lost[reason]);
		before = ", ";
	}
	fputc('\n', out);
	print_apart(out, figures);
}

static void print_frames(FILE *out, const struct figures *figures)
{
	uint64_t frames = 0;

	for (int i = 0; i < CERTAINTY_COUNT; i++)
		frames += figures->frames[i];
	if (frames == 0)
		return;
	fprintf(out, "lines    %.1f %% exact, %.1f %% nearest known, %.1f %% function only\n",
		percent(figures->frames[CERTAINTY_EXACT], frames),
		percent(figures->frames[CERTAINTY_NEAREST], frames),
		percent(figures->frames[CERTAINTY_FUNCTION], frames));
}

/* Which samples have bytes of one sort is not recorded. */
static const char *of_whole(const struct figures *figures)
{
	return figures->is_part ? "of all that was recorded, " : "";
}

const char *figures_uncertain_bytes(const struct figures *figures, char ret_text[static FIGURES_BYTES_SIZE])
{
	const char *whole = of_whole(figures);
	char amount[AMOUNT_SIZE];
	size_t length = 0;

	/* Of allocations, only the end tells it. */
	if (figures->is_unfinished && figures->target_cpu_unknown) {
		snprintf(ret_text, FIGURES_BYTES_SIZE,
			 "how certain the bytes are is not known: the recording has no end");
		return ret_text;
	}
	if (figures->alloc_estimated > 0)
		length += (size_t)snprintf(ret_text, FIGURES_BYTES_SIZE, "%s%s are estimated", whole,
					   amount_bytes(figures->alloc_estimated, amount));
	if (figures->alloc_least > 0)
		length += (size_t)snprintf(ret_text + length, FIGURES_BYTES_SIZE - length,
					   "%s%s may be any more", length > 0 ? ", " : whole,
					   amount_bytes(figures->alloc_least, amount));
	if (length > 0)
		snprintf(ret_text + length, FIGURES_BYTES_SIZE - length,
			 ": looks came too rarely or too late to count them");
	return length > 0 ? ret_text : NULL;
}

const char *figures_large_bytes(const struct figures *figures, char ret_text[static FIGURES_BYTES_SIZE])
{
	char amount[AMOUNT_SIZE];

	if (figures->alloc_large_unknown || figures->alloc_large == 0 ||
	    percent(figures->alloc_large, figures->alloc_all) < large_percent_min)
		return NULL;
	snprintf(
		ret_text, FIGURES_BYTES_SIZE,
		"%sabout %s (estimated) are in allocations of 64 KiB and more: who has how many of these is rough, "
		"tables that grow may have too many",
		of_whole(figures), amount_bytes(figures->alloc_large, amount));
	return ret_text;
}

/* Which samples they are is not recorded: of a part of all samples there is no share. */
static void print_skid(FILE *out, const struct figures *figures)
{
	const double share = percent(figures->skid, figures->samples);
	char part[32] = " of all that was recorded";

	if (!figures->is_part)
		snprintf(part, sizeof(part), " (%.2f %%)", share);
	if (figures->is_part ? figures->skid > 0 : share >= skid_percent_min)
		fprintf(out,
			"skid     %" PRIu64
			" samples%s at the end of a system call, by late stops from another CPU: "
			"calls may have too much of the time\n",
			figures->skid, part);
}

void figures_print(FILE *out, const struct figures *figures)
{
	char bytes[FIGURES_BYTES_SIZE];

	print_samples(out, figures);
	if (figures_uncertain_bytes(figures, bytes))
		fprintf(out, "bytes    %s\n", bytes);
	if (figures_large_bytes(figures, bytes))
		fprintf(out, "bytes    %s\n", bytes);
	if (figures->undisturbed > 0)
		fprintf(out,
			"calls    %" PRIu64
			" samples without a stop, which might have changed a system call\n",
			figures->undisturbed);
	print_skid(out, figures);
	if (figures->pause_ns.count > 0) {
		fprintf(out, "pause   ");
		for (int i = 0; i < PERCENTILE_COUNT; i++)
			fprintf(out, " %s %.1f us,", percentiles[i].name,
				(double)histogram_percentile(&figures->pause_ns, percentiles[i].per_mille) /
					1e3);
		fprintf(out, " max %.1f us\n", (double)figures->pause_ns.max / 1e3);
	}
	print_frames(out, figures);
	if (figures->is_unfinished)
		return;
	fprintf(out, "cpu      ljspy %.0f ms", (double)figures->self_cpu_ns / 1e6);
	if (!figures->target_cpu_unknown)
		fprintf(out, ", target %.0f ms (%.2f %%)", (double)figures->target_cpu_ns / 1e6,
			percent(figures->self_cpu_ns, figures->target_cpu_ns));
	fputc('\n', out);
}

/* Set a member. On failure, free the object and set it to NULL; later calls then do nothing. */
static void set(json_t **object, const char *name, json_t *value)
{
	if (!*object) {
		json_decref(value);
		return;
	}
	if (json_object_set_new(*object, name, value) < 0) {
		json_decref(*object);
		*object = NULL;
	}
}

static json_t *count_json(uint64_t count)
{
	return json_integer((json_int_t)count);
}

/* Convert nanoseconds to a unit of unit_ns nanoseconds. */
static json_t *time_json(uint64_t ns, double unit_ns)
{
	return json_real((double)ns / unit_ns);
}

/* What only the end of a recording tells. */
static json_t *of_end(const struct figures *figures, json_t *value)
{
	if (!figures->is_unfinished)
		return value;
	json_decref(value);
	return json_null();
}

static json_t *lost_json(const struct figures *figures)
{
	json_t *object = json_object();

	for (int reason = 0; reason < LOST_COUNT; reason++)
		set(&object, lost_reason_text((enum lost_reason)reason), count_json(figures->lost[reason]));
	return object;
}

static json_t *pause_json(const struct figures *figures)
{
	const struct histogram *pause_ns = &figures->pause_ns;
	json_t *object = json_object();

	for (int i = 0; i < PERCENTILE_COUNT; i++)
		set(&object, percentiles[i].name,
		    of_end(figures,
			   time_json(histogram_percentile(pause_ns, percentiles[i].per_mille), 1e3)));
	set(&object, "max", of_end(figures, time_json(pause_ns->max, 1e3)));
	return object;
}

static json_t *frames_json(const struct figures *figures)
{
	json_t *object = json_object();

	for (int i = 0; i < CERTAINTY_COUNT; i++)
		set(&object, certainty_names[i], count_json(figures->frames[i]));
	return object;
}

static json_t *allocated_json(const struct figures *figures)
{
	json_t *object = json_object();

	set(&object, "estimated", of_end(figures, count_json(figures->alloc_estimated)));
	set(&object, "least", of_end(figures, count_json(figures->alloc_least)));
	set(&object, "large",
	    figures->alloc_large_unknown ? json_null() : of_end(figures, count_json(figures->alloc_large)));
	return object;
}

static json_t *rate_json(const struct figures *figures)
{
	json_t *object = json_object();

	set(&object, "asked", of_end(figures, json_real(figures->rate_asked_hz)));
	set(&object, "reached", knows_rate(figures) ? json_real(figures->rate_reached_hz) : json_null());
	return object;
}

json_t *figures_json(const struct figures *figures)
{
	json_t *object = json_object();

	set(&object, "samples", count_json(figures->samples));
	set(&object, "lost", lost_json(figures));
	set(&object, "lost_cpu_ms",
	    figures->lost_cpu_unknown ? json_null() : time_json(figures->lost_cpu_ns, 1e6));
	set(&object, "missed_ticks", of_end(figures, count_json(figures->missed_ticks)));
	set(&object, "dropped", of_end(figures, count_json(figures->dropped)));
	set(&object, "away_ms", of_end(figures, time_json(figures->away_ns, 1e6)));
	set(&object, "undisturbed", of_end(figures, count_json(figures->undisturbed)));
	set(&object, "skid", of_end(figures, count_json(figures->skid)));
	set(&object, "pause_us", pause_json(figures));
	set(&object, "duration_ms", time_json(figures->duration_ns, 1e6));
	set(&object, "self_cpu_ms", of_end(figures, time_json(figures->self_cpu_ns, 1e6)));
	set(&object, "target_cpu_ms",
	    figures->target_cpu_unknown ? json_null() : time_json(figures->target_cpu_ns, 1e6));
	set(&object, "alloc_bytes", allocated_json(figures));
	set(&object, "rate_hz", rate_json(figures));
	set(&object, "frames", frames_json(figures));
	return object;
}

int figures_write_json(FILE *out, const struct figures *figures, json_t *members)
{
	json_t *object = figures_json(figures);
	int result;

	if (!object || (members && json_object_update(object, members))) {
		json_decref(object);
		return -ENOMEM;
	}
	/* 15 digits keep nanoseconds over days and do not print 0.1 as 0.10000000000000001. */
	result = json_dumpf(object, out, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
	json_decref(object);
	if (result == 0 && fputc('\n', out) == EOF)
		result = -1;
	/* json_dumpf() fails without memory, too. */
	if (result < 0)
		return ferror(out) ? -EIO : -ENOMEM;
	return 0;
}

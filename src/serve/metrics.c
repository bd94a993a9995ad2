/* SPDX-License-Identifier: MIT */
#include "src/serve/metrics.h"

#include <errno.h>
#include <inttypes.h>

#include "output/labels/names.h"
#include "src/linux/proc/process.h"
#include "src/program/output_file.h"

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

static void head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void one(FILE *out, const char *name, const char *type, const char *help, double value)
{
	head(out, name, type, help);
	fprintf(out, "%s %.17g\n", name, value);
}

/* The value of a label: a backslash, a quote and a new line are escaped, other odd bytes replaced. */
static void write_label(FILE *out, const char *text)
{
	for (; *text; text++)
		if (*text == '\\' || *text == '"')
			fprintf(out, "\\%c", *text);
		else if (*text == '\n')
			fputs("\\n", out);
		else
			fputc(*text < ' ' || *text > '~' ? '?' : *text, out);
}

static void write_states(FILE *out, const struct hub_totals *totals)
{
	uint64_t all_ns = 0;

	head(out, "ljspy_cpu_seconds_total", "counter", "CPU time of the targets by the state of LuaJIT.");
	for (int state = 0; state < VM_STATE_COUNT; state++) {
		all_ns += totals->cpu_ns[state];
		fprintf(out, "ljspy_cpu_seconds_total{state=\"%s\"} %.9f\n",
			vm_state_name((enum vm_state)state), seconds(totals->cpu_ns[state]));
	}
	one(out, "ljspy_gc_cpu_ratio", "gauge", "Share of the garbage collector in the CPU time so far.",
	    all_ns ? (double)totals->cpu_ns[VM_STATE_GC] / (double)all_ns : 0);
}

static void write_heaps(FILE *out, const struct hub_totals *totals)
{
	head(out, "ljspy_lua_heap_bytes", "gauge", "Size of a Lua heap when it was last sampled.");
	for (size_t i = 0; i < totals->process_count; i++) {
		const struct hub_process *process = &totals->processes[i];

		/* A heap that is gone would count in each sum. */
		if (process_thread_with_memory(process->pid) == 0)
			continue;
		fprintf(out, "ljspy_lua_heap_bytes{pid=\"%d\",process=\"", (int)process->pid);
		write_label(out, process->name);
		fprintf(out, "\"} %" PRIu64 "\n", process->heap_bytes);
	}
}

static void write_turns(FILE *out, const struct hub_totals *totals)
{
	uint64_t count = 0;

	if (!totals->has_turns)
		return;
	head(out, "ljspy_turn_seconds", "histogram", "Length of the turns of event loops that were seen.");
	for (size_t i = 0; i < HUB_TURN_BUCKETS; i++) {
		count += totals->turns[i];
		fprintf(out, "ljspy_turn_seconds_bucket{le=\"%g\"} %" PRIu64 "\n",
			hub_turn_bounds_ms[i] / 1e3, count);
	}
	count += totals->turns[HUB_TURN_BUCKETS];
	fprintf(out, "ljspy_turn_seconds_bucket{le=\"+Inf\"} %" PRIu64 "\n", count);
	fprintf(out, "ljspy_turn_seconds_sum %.9f\nljspy_turn_seconds_count %" PRIu64 "\n",
		seconds(totals->turn_ns), count);
}

static void write_samples(FILE *out, const struct figures *figures)
{
	head(out, "ljspy_samples_lost_total", "counter", "Samples with an unknown part, by its reason.");
	for (int reason = 0; reason < LOST_COUNT; reason++)
		fprintf(out, "ljspy_samples_lost_total{reason=\"%s\"} %" PRIu64 "\n",
			lost_reason_text((enum lost_reason)reason), figures->lost[reason]);
	one(out, "ljspy_samples_total", "counter", "Samples, with those that have an unknown part.",
	    (double)figures->samples);
	one(out, "ljspy_samples_missed_total", "counter", "Samples that were due and not taken.",
	    (double)figures->missed_ticks);
	one(out, "ljspy_samples_dropped_total", "counter", "Samples taken, but lost on the way.",
	    (double)figures->dropped);
}

static void write_holds(FILE *out, const struct histogram *holds)
{
	static const unsigned int per_mille[] = { 500, 900, 990 };

	head(out, "ljspy_hold_seconds", "summary",
	     "How long threads were held, for a sample or to deliver a signal.");
	for (size_t i = 0; i < sizeof(per_mille) / sizeof(per_mille[0]); i++)
		fprintf(out, "ljspy_hold_seconds{quantile=\"%g\"} %.9f\n", per_mille[i] / 1e3,
			seconds(histogram_percentile(holds, per_mille[i])));
	fprintf(out, "ljspy_hold_seconds_sum %.9f\nljspy_hold_seconds_count %" PRIu64 "\n",
		seconds(holds->sum), holds->count);
	one(out, "ljspy_hold_seconds_max", "gauge", "The longest hold so far.", seconds(holds->max));
}

int metrics_write(FILE *out, const struct hub_totals *totals)
{
	errno = 0;
	one(out, "ljspy_up", "gauge", "1 while ljspy takes samples.", totals->running ? 1 : 0);
	write_states(out, totals);
	write_heaps(out, totals);
	write_turns(out, totals);
	write_samples(out, &totals->figures);
	write_holds(out, &totals->figures.pause_ns);
	one(out, "ljspy_own_cpu_seconds_total", "counter", "CPU time of ljspy itself.",
	    seconds(totals->figures.self_cpu_ns));
	one(out, "ljspy_away_seconds_total", "counter",
	    "Time without sampling because ljspy was stopped or memory of a target kept it waiting.",
	    seconds(totals->figures.away_ns));
	one(out, "ljspy_runs_total", "counter", "How often sampling began, in this or another mode.",
	    (double)totals->runs);
	one(out, "ljspy_captures_total", "counter", "Captures that clients asked for.",
	    (double)totals->captures);
	one(out, "ljspy_captures_refused_total", "counter", "Captures refused because there were too many.",
	    (double)totals->refused);
	one(out, "ljspy_captures_abandoned_total", "counter", "Captures whose client went away.",
	    (double)totals->abandoned);
	return ferror(out) ? output_file_error(-EIO) : 0;
}

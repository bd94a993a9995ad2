/* SPDX-License-Identifier: MIT */
#include "output/flamegraph/flamegraph_header.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "output/labels/escape.h"
#include "output/labels/session_title.h"

/* Longer than a line shows, and short enough to leave room for the rest of the line. */
enum { COMMAND_MAX = 1024 };

__attribute__((format(printf, 2, 3))) static void add_line(struct flamegraph_header *header,
							   const char *format, ...)
{
	char raw[FLAMEGRAPH_HEADER_LINE_SIZE];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(raw, sizeof(raw), format, arguments);
	va_end(arguments);
	escape_text(ESCAPE_PLAIN, raw, header->lines[header->count++], FLAMEGRAPH_HEADER_LINE_SIZE);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

/* "2026-11-22 19:40:00 UTC, "; empty if the time is unknown. */
static void write_date(const struct session *session, char *ret_date, size_t size)
{
	time_t start = (time_t)(session->start_unix_ns / 1000000000);
	struct tm utc;

	ret_date[0] = '\0';
	if (session->start_unix_ns > 0 && gmtime_r(&start, &utc))
		strftime(ret_date, size, "%Y-%m-%d %H:%M:%S UTC, ", &utc);
}

static void add_objects(struct flamegraph_header *header, const struct session *session,
			const struct figures *figures)
{
	char date[64];

	write_date(session, date, sizeof(date));
	add_line(header, "%s%" PRIu64 " objects", date, figures->samples);
}

static void add_samples(struct flamegraph_header *header, const struct session *session,
			const struct figures *figures)
{
	char date[64];
	char rate[FIGURES_RATE_SIZE] = "";

	write_date(session, date, sizeof(date));
	if (figures->rate_asked_hz > 0)
		figures_rate(figures, rate);
	add_line(header, "%s%.1f s, %" PRIu64 " samples%s%s", date, (double)session->duration_ns / 1e9,
		 figures->samples, *rate ? ", " : "", rate);
}

static void add_lost(struct flamegraph_header *header, const struct figures *figures)
{
	uint64_t lost = figures_lost(figures);
	char reasons[FLAMEGRAPH_HEADER_LINE_SIZE - 256] = "";
	char missed[64] = "the recording has no end, ", dropped[64] = "", share[FIGURES_LOST_SIZE];
	size_t length = 0;

	if (!figures->is_unfinished)
		snprintf(missed, sizeof(missed), "%" PRIu64 " ticks missed, ", figures->missed_ticks);
	if (figures->dropped)
		snprintf(dropped, sizeof(dropped), "%" PRIu64 " samples not recorded, ", figures->dropped);
	for (int i = 0; i < LOST_COUNT && length < sizeof(reasons); i++) {
		if (figures->lost[i] > 0)
			length += (size_t)snprintf(reasons + length, sizeof(reasons) - length,
						   "%s %s %" PRIu64, length ? "," : ":",
						   lost_reason_text((enum lost_reason)i), figures->lost[i]);
	}
	add_line(header, "%s%s%" PRIu64 " samples lost (%s)%s", missed, dropped, lost,
		 figures_lost_share(figures, share), reasons);
}

/* Add the cost of sampling for the target, and the certainty of positions. */
static void add_cost(struct flamegraph_header *header, const struct figures *figures)
{
	const struct histogram *pause_ns = &figures->pause_ns;
	char pause[128];
	char lines[128] = "";
	uint64_t frames = 0;

	snprintf(pause, sizeof(pause), figures->is_unfinished ? "pauses unknown" : "never paused");
	if (pause_ns->count > 0)
		snprintf(pause, sizeof(pause), "paused p50 %.1f \u00b5s, p99 %.1f \u00b5s, max %.1f \u00b5s",
			 (double)histogram_percentile(pause_ns, 500) / 1e3,
			 (double)histogram_percentile(pause_ns, 990) / 1e3, (double)pause_ns->max / 1e3);
	for (int i = 0; i < CERTAINTY_COUNT; i++)
		frames += figures->frames[i];
	if (frames > 0)
		snprintf(lines, sizeof(lines),
			 "; lines %.1f %% exact, %.1f %% nearest known, %.1f %% unknown",
			 percent(figures->frames[CERTAINTY_EXACT], frames),
			 percent(figures->frames[CERTAINTY_NEAREST], frames),
			 percent(figures->frames[CERTAINTY_FUNCTION], frames));
	add_line(header, "%s%s", pause, lines);
}

void flamegraph_header_fill(struct flamegraph_header *header, const struct session *session,
			    const struct figures *figures)
{
	const bool is_heap = !weight_is_sampled(session->clock);
	char title[SESSION_TITLE_SIZE], bytes[FIGURES_BYTES_SIZE];

	header->count = 0;
	session_title(session, title);
	add_line(header, "%s", title);
	if (is_heap)
		add_objects(header, session, figures);
	else
		add_samples(header, session, figures);
	if (session->cause)
		add_line(header, "Recorded because of %.*s", COMMAND_MAX, session->cause);
	if (session->command_line)
		add_line(header, "$ %.*s", COMMAND_MAX, session->command_line);
	if (is_heap)
		return;
	add_lost(header, figures);
	if (figures_uncertain_bytes(figures, bytes))
		add_line(header, "%s", bytes);
	if (figures_large_bytes(figures, bytes))
		add_line(header, "%s", bytes);
	add_cost(header, figures);
}

void flamegraph_header_add_uncertain(struct flamegraph_header *header, const char *text, bool baseline)
{
	if (text && *text)
		add_line(header, "%s%s", baseline ? "Before: " : "", text);
}

void flamegraph_header_add_baseline(struct flamegraph_header *header, const struct session *session,
				    const char *name, uint64_t samples)
{
	add_line(header, "Compared with %.*s, %" PRIu64 " %s", COMMAND_MAX,
		 name ? name : "an earlier recording", samples,
		 weight_is_sampled(session->clock) ? "samples" : "objects");
}

void flamegraph_header_add_left_out(struct flamegraph_header *header, size_t frames, double part)
{
	add_line(header, "%zu frames of less than %.4f %% each are left out: [left out] stands for them",
		 frames, 100.0 * part);
}

/* SPDX-License-Identifier: MIT */
#include "output/labels/session_title.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "output/labels/escape.h"
#include "output/sample/amount_text.h"

/* Longer than a line shows, and short enough to leave room for the rest of the title. */
enum { COMMAND_MAX = 1024 };

/* A command line without the directory of its program. */
static const char *without_directory(const char *command)
{
	const char *program = command;

	for (const char *at = command; *command == '/' && *at && *at != ' '; at++)
		if (*at == '/')
			program = at + 1;
	return program;
}

void session_title(const struct session *session, char ret_title[static SESSION_TITLE_SIZE])
{
	const char *target = session->target ? without_directory(session->target) : "LuaJIT";
	int length = snprintf(ret_title, SESSION_TITLE_SIZE, "%s of %.*s", weights[session->clock].title,
			      COMMAND_MAX, target);

	if (session->pid > 0 && length > 0)
		snprintf(ret_title + length, SESSION_TITLE_SIZE - (size_t)length, " (pid %ld)",
			 (long)session->pid);
}

void session_title_write_head(FILE *out, const struct session *session, const struct figures *figures,
			      uint64_t samples, uint64_t all)
{
	time_t start = (time_t)(session->start_unix_ns / 1000000000);
	uint64_t lost = figures_lost(figures);
	char date[64] = "", amount[AMOUNT_SIZE], share[FIGURES_LOST_SIZE];
	struct tm utc;

	fprintf(out, "%s of ", weights[session->clock].title);
	escape_write(ESCAPE_PLAIN, session->target ? session->target : "LuaJIT", out);
	if (session->pid > 0)
		fprintf(out, " (pid %ld)", (long)session->pid);
	if (session->start_unix_ns > 0 && gmtime_r(&start, &utc))
		strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S UTC, ", &utc);
	fprintf(out, "\n%s%.1f s, %" PRIu64 " samples of %s, %" PRIu64 " with a lost part", date,
		(double)session->duration_ns / 1e9, samples, amount_alone(session->clock, all, amount), lost);
	if (lost > 0)
		fprintf(out, " (%s)", figures_lost_share(figures, share));
	if (figures->dropped)
		fprintf(out, "; %" PRIu64 " more are not recorded", figures->dropped);
	fputc('\n', out);
	if (session->cause) {
		fputs("recorded because of ", out);
		escape_write(ESCAPE_PLAIN, session->cause, out);
		fputc('\n', out);
	}
}

/* SPDX-License-Identifier: MIT */
/* ljspy timers: what nginx's workers wait for the time of. */
#include "src/commands/commands.h"

#include "src/nginx/timer_survey.h"
#include "src/targets/nginx_look.h"

static void *new_report(pid_t pid, const char *name, const struct options *options)
{
	(void)options;
	return timer_report_new(pid, name);
}

static int take(struct lua_process *process, void *report)
{
	return timer_survey_take(process, report);
}

static void print(FILE *out, const void *report)
{
	timer_report_print(out, report);
}

static json_t *json(const void *report)
{
	return timer_report_json(report);
}

static void free_report(void *report)
{
	timer_report_free(report);
}

enum exit_status command_timers(const struct invocation *invocation)
{
	static const struct nginx_look timers = {
		.doing = "reading timers",
		.what = "timers",
		.new = new_report,
		.take = take,
		.print = print,
		.json = json,
		.free = free_report,
	};

	return nginx_look(invocation, &timers);
}

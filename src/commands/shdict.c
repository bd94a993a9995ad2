/* SPDX-License-Identifier: MIT */
/* ljspy shdict: the memory that nginx's processes share. */
#include "src/commands/commands.h"

#include "src/nginx/zone_survey.h"
#include "src/targets/nginx_look.h"

static void *new_report(pid_t pid, const char *name, const struct options *options)
{
	(void)options;
	return zone_report_new(pid, name);
}

static int take(struct lua_process *process, void *report)
{
	return zone_survey_take(process, report);
}

static void print(FILE *out, const void *report)
{
	zone_report_print(out, report);
}

static json_t *json(const void *report)
{
	return zone_report_json(report);
}

static void free_report(void *report)
{
	zone_report_free(report);
}

enum exit_status command_shdict(const struct invocation *invocation)
{
	static const struct nginx_look zones = {
		.doing = "reading shared zones",
		.what = "shared zones",
		.new = new_report,
		.take = take,
		.print = print,
		.json = json,
		.free = free_report,
	};

	return nginx_look(invocation, &zones);
}

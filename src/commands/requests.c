/* SPDX-License-Identifier: MIT */
/* ljspy requests: the requests in flight in nginx. */
#include "src/commands/commands.h"

#include "src/nginx/request_survey.h"
#include "src/targets/nginx_look.h"

static void *new_report(pid_t pid, const char *name, const struct options *options)
{
	return request_report_new(pid, name, options->exact_paths);
}

static int take(struct lua_process *process, void *report)
{
	return request_survey_take(process, report);
}

static void print(FILE *out, const void *report)
{
	request_report_print(out, report);
}

static json_t *json(const void *report)
{
	return request_report_json(report);
}

static void free_report(void *report)
{
	request_report_free(report);
}

enum exit_status command_requests(const struct invocation *invocation)
{
	static const struct nginx_look requests = {
		"reading requests", "connections", new_report, take, print, json, free_report,
	};

	return nginx_look(invocation, &requests);
}

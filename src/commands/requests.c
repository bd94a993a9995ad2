/* SPDX-License-Identifier: MIT */
/* ljspy requests: the requests in flight in nginx. */
#include "src/commands/commands.h"

#include "output/nginx_reports/worker_report.h"
#include "src/nginx/request_survey.h"
#include "src/nginx/worker_load.h"
#include "src/targets/nginx_look.h"

static void *new_report(pid_t pid, const char *name, const struct options *options)
{
	struct request_report *report = request_report_new(pid, name, options->exact_paths);

	/* The look at its CPU time begins here, so that it costs little time of its own. */
	if (report)
		worker_load_open(pid, &report->load);
	return report;
}

static int take(struct lua_process *process, void *report)
{
	struct request_report *requests = report;
	int error = request_survey_take(process, requests);

	return error ? error : worker_load_measure(requests->pid, &requests->load);
}

static void print(FILE *out, const void *report)
{
	request_report_print(out, report);
}

static json_t *json(const void *report)
{
	return request_report_json(report);
}

static void print_together(FILE *out, const void *const reports[], size_t count)
{
	worker_report_print(out, reports, count);
}

static bool json_together(json_t *document, const void *const reports[], size_t count)
{
	return worker_report_json(document, reports, count);
}

static void free_report(void *report)
{
	request_report_free(report);
}

enum exit_status command_requests(const struct invocation *invocation)
{
	static const struct nginx_look requests = {
		.doing = "reading requests",
		.what = "connections",
		.new = new_report,
		.take = take,
		.print = print,
		.json = json,
		.free = free_report,
		.print_together = print_together,
		.json_together = json_together,
	};

	return nginx_look(invocation, &requests);
}

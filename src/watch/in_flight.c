/* SPDX-License-Identifier: MIT */
#include "src/watch/in_flight.h"

#include <errno.h>
#include <stdlib.h>

#include "output/nginx_reports/request_report.h"
#include "output/sample/functions.h"
#include "src/inspect/known_files.h"
#include "src/inspect/lua_process.h"
#include "src/nginx/request_survey.h"

static const uint64_t ms_ns = 1000 * 1000;

struct in_flight {
	const struct given_layout *layout;
	struct functions *functions;
	struct known_files *files;
};

struct in_flight_worker {
	struct lua_process *process;
	struct request_report *report;
};

struct in_flight *in_flight_new(const struct given_layout *layout)
{
	struct in_flight *in_flight = calloc(1, sizeof(*in_flight));

	if (!in_flight)
		return NULL;
	in_flight->layout = layout;
	in_flight->functions = functions_new();
	in_flight->files = known_files_new();
	if (in_flight->functions && in_flight->files)
		return in_flight;
	in_flight_free(in_flight);
	return NULL;
}

void in_flight_free(struct in_flight *in_flight)
{
	if (!in_flight)
		return;
	known_files_free(in_flight->files);
	functions_free(in_flight->functions);
	free(in_flight);
}

int in_flight_open(struct in_flight *in_flight, pid_t pid, struct in_flight_worker **ret_worker)
{
	const struct namer_options namer = { .native = NATIVE_FOLD };
	struct in_flight_worker *worker = calloc(1, sizeof(*worker));
	uint64_t age_ns;
	int error;

	if (!worker)
		return -ENOMEM;
	worker->report = request_report_new(pid, "", false);
	if (!worker->report) {
		free(worker);
		return -ENOMEM;
	}
	worker->report->without_lua = true;
	error = lua_process_open(pid, in_flight->functions, in_flight->files, &namer, &worker->process);
	if (error) {
		request_report_free(worker->report);
		free(worker);
		return error;
	}
	lua_process_give_layout(worker->process, in_flight->layout);
	error = lua_process_refresh(worker->process, true);
	if (!error)
		error = in_flight_oldest(worker, &age_ns);
	if (error) {
		in_flight_close(worker);
		return error;
	}
	*ret_worker = worker;
	return 0;
}

void in_flight_close(struct in_flight_worker *worker)
{
	if (!worker)
		return;
	lua_process_close(worker->process);
	request_report_free(worker->report);
	free(worker);
}

int in_flight_oldest(struct in_flight_worker *worker, uint64_t *ret_age_ns)
{
	const struct request_report *report = worker->report;
	int error = request_survey_take(worker->process, worker->report);

	if (!error)
		*ret_age_ns = report->count ? report->rows[0].age_ms * ms_ns : 0;
	return error;
}

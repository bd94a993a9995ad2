/* SPDX-License-Identifier: MIT */
#include "output/nginx_reports/worker_report.h"

#include <inttypes.h>
#include <math.h>

#include "output/labels/escape.h"
#include "output/labels/json_values.h"
#include "output/nginx_reports/request_report.h"

enum { NS_PER_MS = 1000 * 1000, PERCENT = 100, CELL_BYTES = 32, ADDRESS_BYTES = 4 * ACCEPT_ADDRESS_SIZE };

static const struct worker_load *load_of(const void *report)
{
	return &((const struct request_report *)report)->load;
}

/* Without subrequests */
static size_t requests_of(const void *context)
{
	const struct request_report *report = context;
	size_t count = report->more_main_requests;

	for (size_t i = 0; i < report->count; i++)
		count += report->rows[i].request.main == report->rows[i].request.address;
	return count;
}

/* Does it take new connections? True, too, if that is unknown. */
static bool may_accept(const struct worker_load *load)
{
	return load->queue_count > 0 || !load->knows_queues;
}

/*---- Imbalance ----*/

/* What one worker has; false if it is unknown. */
typedef bool amount_of(const struct worker_load *load, double *ret_amount);

static bool connections_of(const struct worker_load *load, double *ret_amount)
{
	*ret_amount = (double)load->clients;
	return load->knows_clients;
}

static bool cpu_of(const struct worker_load *load, double *ret_amount)
{
	*ret_amount = load->cpu * PERCENT;
	return load->knows_cpu;
}

struct imbalance {
	const struct request_report *busiest;
	double most, total;
	double times; /* the mean */
};

/* Of the workers that take new connections. False if these are less than two, or have nothing. */
static bool imbalance_of(const void *const reports[], size_t count, amount_of *of,
			 struct imbalance *ret_imbalance)
{
	struct imbalance imbalance = { .busiest = NULL };
	size_t workers = 0;
	double amount;

	for (size_t i = 0; i < count; i++) {
		if (!may_accept(load_of(reports[i])) || !of(load_of(reports[i]), &amount))
			continue;
		workers++;
		imbalance.total += amount;
		if (!imbalance.busiest || amount > imbalance.most) {
			imbalance.busiest = reports[i];
			imbalance.most = amount;
		}
	}
	if (workers < 2 || imbalance.total <= 0)
		return false;
	imbalance.times = imbalance.most * (double)workers / imbalance.total;
	*ret_imbalance = imbalance;
	return true;
}

/*---- Queues ----*/

static bool has_queue(const struct worker_load *load, uint64_t inode)
{
	for (size_t i = 0; i < load->queue_count; i++)
		if (load->queues[i].inode == inode)
			return true;
	return false;
}

/* Is it shown with an earlier worker that shares it? */
static bool is_shown(const void *const reports[], size_t index, uint64_t inode)
{
	for (size_t i = 0; i < index; i++)
		if (has_queue(load_of(reports[i]), inode))
			return true;
	return false;
}

static bool all_known(const void *const reports[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!load_of(reports[i])->knows_queues)
			return false;
	return true;
}

/*---- Text ----*/

static void print_worker(FILE *out, const struct request_report *report)
{
	const struct worker_load *load = &report->load;
	char clients[CELL_BYTES] = "-", cpu[CELL_BYTES] = "-", used[CELL_BYTES] = "-";

	if (load->knows_clients)
		snprintf(clients, sizeof(clients), "%" PRIu64, load->clients);
	if (load->knows_cpu)
		snprintf(cpu, sizeof(cpu), "%.1f %%", load->cpu * PERCENT);
	if (load->cpu_at)
		snprintf(used, sizeof(used), "%.2f s", (double)load->cpu_ns / (1000.0 * NS_PER_MS));
	fprintf(out, "%10d %12s %7" PRIu64 " %7" PRIu64 " %9zu %9s %12s%s\n", (int)report->pid, clients,
		load->others, load->limit, requests_of(report), cpu, used,
		may_accept(load) ? "" : "  takes no new connections");
}

static void print_imbalance(FILE *out, const void *const reports[], size_t count)
{
	struct imbalance imbalance;

	if (imbalance_of(reports, count, connections_of, &imbalance))
		fprintf(out, "Worker %d has %.0f of %.0f connections of clients, %.1f times the mean\n",
			(int)imbalance.busiest->pid, imbalance.most, imbalance.total, imbalance.times);
	if (imbalance_of(reports, count, cpu_of, &imbalance))
		fprintf(out, "Worker %d uses %.0f of %.0f %% CPU, %.1f times the mean\n",
			(int)imbalance.busiest->pid, imbalance.most, imbalance.total, imbalance.times);
}

static void print_queue(FILE *out, const void *const reports[], size_t count, size_t index,
			const struct accept_queue *queue)
{
	char limit[CELL_BYTES] = "-", address[ADDRESS_BYTES];
	size_t workers = 0;

	for (size_t i = index; i < count; i++)
		workers += has_queue(load_of(reports[i]), queue->inode);
	if (queue->has_limit)
		snprintf(limit, sizeof(limit), "%" PRIu32, queue->limit);
	escape_text(ESCAPE_PLAIN, queue->address, address, sizeof(address));
	fprintf(out, "%10" PRIu32 " %12s  %s  ", queue->waiting, limit, address);
	if (workers == 1)
		fprintf(out, "worker %d", (int)((const struct request_report *)reports[index])->pid);
	else
		fprintf(out, "%zu workers", workers);
	if (queue->has_limit && queue->waiting > queue->limit)
		fputs("  full: new connections wait or fail", out);
	putc('\n', out);
}

static void print_queues(FILE *out, const void *const reports[], size_t count)
{
	bool has_begun = false;

	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < load_of(reports[i])->queue_count; j++) {
			const struct accept_queue *queue = &load_of(reports[i])->queues[j];

			if (is_shown(reports, i, queue->inode))
				continue;
			if (!has_begun)
				fprintf(out, "%10s %12s  Accept queue\n", "waiting", "limit");
			has_begun = true;
			print_queue(out, reports, count, i, queue);
		}
	if (!all_known(reports, count))
		fputs("Limits, and the queues of Unix sockets, are unknown: the kernel tells them only of ljspy's own "
		      "network namespace.\n",
		      out);
}

void worker_report_print(FILE *out, const void *const reports[], size_t count)
{
	if (count > 1) {
		fprintf(out, "%10s %12s %7s %7s %9s %9s %12s\n", "Worker", "connections", "others", "limit",
			"requests", "CPU now", "CPU time");
		for (size_t i = 0; i < count; i++)
			print_worker(out, reports[i]);
		print_imbalance(out, reports, count);
	}
	print_queues(out, reports, count);
}

/*---- JSON ----*/

/* With one decimal: more of it is noise. */
static json_t *tenths(double number)
{
	return json_real(round(number * 10) / 10);
}

static json_t *accepts_json(const struct worker_load *load)
{
	if (load->queue_count == 0 && !load->knows_queues)
		return json_null();
	return json_boolean(load->queue_count > 0);
}

static json_t *worker_json(const struct request_report *report)
{
	const struct worker_load *load = &report->load;

	return json_pack("{s:i, s:o, s:o, s:I, s:I, s:I, s:o, s:o}", "pid", (int)report->pid, "accepts",
			 accepts_json(load), "connections",
			 load->knows_clients ? json_integer((json_int_t)load->clients) : json_null(),
			 "others", (json_int_t)load->others, "connections_limit", (json_int_t)load->limit,
			 "requests", (json_int_t)requests_of(report), "cpu_percent",
			 load->knows_cpu ? tenths(load->cpu * PERCENT) : json_null(), "cpu_ms",
			 load->cpu_at ? json_integer((json_int_t)(load->cpu_ns / NS_PER_MS)) : json_null());
}

static json_t *imbalance_json(const void *const reports[], size_t count, amount_of *of)
{
	struct imbalance imbalance;

	if (!imbalance_of(reports, count, of, &imbalance))
		return json_null();
	return json_pack("{s:i, s:o, s:o, s:o}", "pid", (int)imbalance.busiest->pid, "amount",
			 tenths(imbalance.most), "total", tenths(imbalance.total), "times_the_mean",
			 tenths(imbalance.times));
}

static json_t *queue_json(const void *const reports[], size_t count, const struct accept_queue *queue)
{
	json_t *pids = json_array();

	for (size_t i = 0; i < count && pids; i++)
		if (has_queue(load_of(reports[i]), queue->inode))
			pids = json_value_append(
				pids, json_integer(((const struct request_report *)reports[i])->pid));
	return pids ? json_pack("{s:o, s:I, s:o, s:o}", "address", json_value_text(queue->address), "waiting",
				(json_int_t)queue->waiting, "limit",
				queue->has_limit ? json_integer(queue->limit) : json_null(), "pids", pids)
		    : NULL;
}

static json_t *queues_json(const void *const reports[], size_t count)
{
	json_t *queues = json_array();

	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < load_of(reports[i])->queue_count && queues; j++)
			if (!is_shown(reports, i, load_of(reports[i])->queues[j].inode))
				queues = json_value_append(
					queues, queue_json(reports, count, &load_of(reports[i])->queues[j]));
	return queues;
}

bool worker_report_json(json_t *document, const void *const reports[], size_t count)
{
	json_t *workers = json_array();

	for (size_t i = 0; i < count && workers; i++)
		workers = json_value_append(workers, worker_json(reports[i]));
	return json_object_set_new(document, "workers", workers) == 0 &&
	       json_object_set_new(document, "imbalance",
				   json_pack("{s:o, s:o}", "connections",
					     imbalance_json(reports, count, connections_of), "cpu",
					     imbalance_json(reports, count, cpu_of))) == 0 &&
	       json_object_set_new(document, "accept_queues", queues_json(reports, count)) == 0 &&
	       json_object_set_new(document, "accept_queues_complete",
				   json_boolean(all_known(reports, count))) == 0;
}

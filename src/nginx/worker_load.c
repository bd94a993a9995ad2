/* SPDX-License-Identifier: MIT */
#include "src/nginx/worker_load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "memory/array.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/clocks/cpu_clock.h"
#include "src/linux/sockets/accept_queue.h"

enum {
	LOOK_NS = 100 * 1000 * 1000, /* at least, of CPU time */
	CLOSE_NS = LOOK_NS / 1000,   /* the CPU time is of a moment that is known so well */
	READS_MAX = 20,              /* of the CPU time, until it is */
	FDS_MAX = 4096,              /* that may listen */
	PATH_SIZE = 64,
};

/*---- Connections ----*/

void worker_load_begin(struct worker_load *load, const struct connections *connections,
		       const struct request_members *members)
{
	load->limit = connections->count;
	load->knows_clients = members->addr_text != MEMBER_UNKNOWN;
	load->clients = load->others = 0;
	load->fd_count = 0;
}

static bool keep_fd(struct worker_load *load, int32_t fd)
{
	int32_t *fds;

	if (load->fd_count == FDS_MAX)
		return true;
	fds = array_grow(load->fds, &load->fd_room, load->fd_count + 1, sizeof(fds[0]));
	if (!fds)
		return false;
	load->fds = fds;
	fds[load->fd_count++] = fd;
	return true;
}

/* nginx writes the address of the client of each connection that it accepts. */
static bool has_client(struct memory *memory, const struct request_members *members, uint64_t connection)
{
	uint64_t length;

	return members->addr_text != MEMBER_UNKNOWN &&
	       memory_u64(memory, connection + (uint64_t)members->addr_text, &length) && length > 0;
}

bool worker_load_count(struct worker_load *load, struct memory *memory, const struct request_members *members,
		       const struct connection_in_use *connection)
{
	if (connection->fd < 0)
		return true;
	if (connection->data == 0)
		return keep_fd(load, connection->fd);
	if (has_client(memory, members, connection->address))
		load->clients++;
	else
		load->others++;
	return true;
}

/*---- Queues ----*/

/* The inode of a socket; 0 if it is none, or gone. */
static uint64_t inode_of(pid_t pid, int32_t fd)
{
	char path[PATH_SIZE], target[PATH_SIZE];
	uint64_t inode;
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/fd/%" PRId32, (int)pid, fd);
	length = readlink(path, target, sizeof(target) - 1);
	target[length > 0 ? length : 0] = '\0';
	return sscanf(target, "socket:[%" SCNu64, &inode) == 1 ? inode : 0;
}

static int find_queues(pid_t pid, struct worker_load *load)
{
	struct accept_queues all;
	int error = accept_queues_read(pid, &all);

	if (error)
		return error;
	free(load->queues);
	load->queue_count = 0;
	load->queues = calloc(load->fd_count + 1, sizeof(load->queues[0]));
	for (size_t i = 0; i < load->fd_count && load->queues; i++) {
		const struct accept_queue *queue = accept_queues_find(&all, inode_of(pid, load->fds[i]));

		if (queue)
			load->queues[load->queue_count++] = *queue;
	}
	load->knows_queues = all.is_complete && load->fd_count < FDS_MAX;
	accept_queues_clear(&all);
	return load->queues ? 0 : -ENOMEM;
}

/*---- CPU time ----*/

/*
 * ljspy may lose its CPU in between: of several reads, keep the one whose time is known best. False if it has
 * ended.
 */
static bool read_clock(const struct cpu_clock *clock, uint64_t *ret_cpu_ns, uint64_t *ret_at)
{
	uint64_t best_ns = UINT64_MAX;

	for (int i = 0; i < READS_MAX && best_ns > CLOSE_NS; i++) {
		const uint64_t before = clock_now_ns(CLOCK_MONOTONIC);
		uint64_t cpu_ns, took_ns;

		if (cpu_clock_now(clock, &cpu_ns))
			return false;
		took_ns = clock_now_ns(CLOCK_MONOTONIC) - before;
		if (took_ns >= best_ns)
			continue;
		best_ns = took_ns;
		*ret_cpu_ns = cpu_ns;
		*ret_at = before + took_ns / 2;
	}
	return true;
}

/* False if the process has ended. */
static bool read_cpu(pid_t pid, struct worker_load *load)
{
	struct cpu_clock clock;
	bool is_read;

	if (cpu_clock_open(pid, &clock))
		return false;
	is_read = read_clock(&clock, &load->cpu_ns, &load->cpu_at);
	if (!is_read)
		load->cpu_at = 0;
	cpu_clock_close(&clock);
	return is_read;
}

void worker_load_open(pid_t pid, struct worker_load *load)
{
	read_cpu(pid, load);
}

static void measure_cpu(pid_t pid, struct worker_load *load)
{
	uint64_t earlier_ns = load->cpu_ns, earlier_at = load->cpu_at;
	uint64_t passed_ns = clock_now_ns(CLOCK_MONOTONIC) - earlier_at;
	const struct timespec rest = { .tv_nsec = passed_ns < LOOK_NS ? (long)(LOOK_NS - passed_ns) : 0 };

	load->knows_cpu = false;
	if (earlier_at && rest.tv_nsec)
		nanosleep(&rest, NULL);
	if (!read_cpu(pid, load) || !earlier_at || load->cpu_ns < earlier_ns || load->cpu_at <= earlier_at)
		return;
	load->knows_cpu = true;
	load->cpu = (double)(load->cpu_ns - earlier_ns) / (double)(load->cpu_at - earlier_at);
}

int worker_load_measure(pid_t pid, struct worker_load *load)
{
	measure_cpu(pid, load);
	return find_queues(pid, load);
}

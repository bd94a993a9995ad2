/* SPDX-License-Identifier: MIT */
#include "src/linux/sockets/accept_queue.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "memory/array.h"
#include "src/linux/sockets/socket_table.h"

enum {
	ANSWER_BYTES = 32 << 10, /* of one datagram of the kernel; it writes at most that much */
	ANSWERS_MAX = 1000,
	LINK_SIZE = 64,
	PATH_SIZE = 64,
};

/* What one reading fills. */
struct reading {
	struct accept_queues *queues;
	int error;
};

/* A new one, all zero. NULL, and is_complete false, if there is no room. */
static struct accept_queue *add(struct reading *reading)
{
	struct accept_queues *queues = reading->queues;
	struct accept_queue *list;

	if (queues->count == ACCEPT_QUEUES_MAX) {
		queues->is_complete = false;
		return NULL;
	}
	list = array_grow(queues->list, &queues->room, queues->count + 1, sizeof(*list));
	if (!list) {
		reading->error = -ENOMEM;
		return NULL;
	}
	queues->list = list;
	memset(&list[queues->count], 0, sizeof(list[0]));
	return &list[queues->count++];
}

/*---- /proc ----*/

static bool take_row(void *context, const struct socket_row *row)
{
	_Static_assert((int)SOCKET_END_SIZE <= (int)ACCEPT_ADDRESS_SIZE, "an address fits");
	struct accept_queue *queue;

	if (!row->listens)
		return true;
	queue = add(context);
	if (!queue)
		return false;
	queue->inode = row->inode;
	queue->waiting = row->waiting;
	socket_end_print(&row->local, queue->address);
	return true;
}

int accept_queues_read_tables(pid_t pid, struct accept_queues *ret_queues)
{
	struct reading reading = { ret_queues, 0 };

	*ret_queues = (struct accept_queues){ .is_complete = false };
	socket_table_walk(pid, "net/tcp", take_row, &reading);
	socket_table_walk(pid, "net/tcp6", take_row, &reading);
	if (reading.error)
		accept_queues_clear(ret_queues);
	return reading.error;
}

/*---- sock_diag ----*/

/* NLMSG_DATA() takes away const. */
static const void *data_of(const struct nlmsghdr *header)
{
	return (const char *)header + NLMSG_HDRLEN;
}

static void take_inet(struct reading *reading, const struct nlmsghdr *header)
{
	struct inet_diag_msg message;
	struct socket_end local = { .port = 0 };
	struct accept_queue *queue;

	if (header->nlmsg_len < NLMSG_LENGTH(sizeof(message)))
		return;
	memcpy(&message, data_of(header), sizeof(message));
	queue = add(reading);
	if (!queue)
		return;
	local.family = message.idiag_family == AF_INET6 ? AF_INET6 : AF_INET;
	local.port = ntohs(message.id.idiag_sport);
	memcpy(local.words, message.id.idiag_src, sizeof(local.words));
	socket_end_print(&local, queue->address);
	queue->inode = message.idiag_inode;
	queue->waiting = message.idiag_rqueue;
	queue->has_limit = true;
	queue->limit = message.idiag_wqueue;
}

/* A path, or a name in the abstract namespace, which begins with a NUL and may have more. */
static void name_unix(const char *name, size_t length, char ret_address[static ACCEPT_ADDRESS_SIZE])
{
	static const char family[] = "unix:";
	size_t at = strlen(family);
	bool is_abstract = length > 0 && name[0] == '\0';

	memcpy(ret_address, family, sizeof(family));
	for (size_t i = 0; i < length && at + 1 < ACCEPT_ADDRESS_SIZE; i++) {
		if (name[i] == '\0' && !is_abstract)
			break;
		ret_address[at] = name[i];
		if (name[i] == '\0')
			ret_address[at] = '@';
		at++;
	}
	ret_address[at] = '\0';
}

static void take_unix(struct reading *reading, const struct nlmsghdr *header)
{
	struct unix_diag_msg message;
	struct accept_queue *queue;
	size_t at = NLMSG_SPACE(sizeof(message));

	if (header->nlmsg_len < NLMSG_LENGTH(sizeof(message)))
		return;
	memcpy(&message, data_of(header), sizeof(message));
	queue = add(reading);
	if (!queue)
		return;
	queue->inode = message.udiag_ino;
	name_unix(NULL, 0, queue->address);
	while (at + sizeof(struct rtattr) <= header->nlmsg_len) {
		const uint8_t *bytes = (const uint8_t *)header + at;
		struct rtattr attribute;
		struct unix_diag_rqlen lengths;

		memcpy(&attribute, bytes, sizeof(attribute));
		if (attribute.rta_len < sizeof(attribute) || attribute.rta_len > header->nlmsg_len - at)
			break;
		if (attribute.rta_type == UNIX_DIAG_NAME) {
			name_unix((const char *)bytes + sizeof(attribute),
				  attribute.rta_len - sizeof(attribute), queue->address);
		} else if (attribute.rta_type == UNIX_DIAG_RQLEN &&
			   attribute.rta_len >= sizeof(attribute) + sizeof(lengths)) {
			memcpy(&lengths, bytes + sizeof(attribute), sizeof(lengths));
			queue->waiting = lengths.udiag_rqueue;
			queue->has_limit = true;
			queue->limit = lengths.udiag_wqueue;
		}
		at += RTA_ALIGN(attribute.rta_len);
	}
}

/* Take the messages of a datagram. False when the last one was there, or an error. */
static bool take_answer(struct reading *reading, const uint8_t *answer, size_t length, bool *ret_done)
{
	for (size_t at = 0; at + sizeof(struct nlmsghdr) <= length;) {
		const struct nlmsghdr *header = (const struct nlmsghdr *)(const void *)(answer + at);

		if (header->nlmsg_len < sizeof(*header) || header->nlmsg_len > length - at)
			return false;
		*ret_done = header->nlmsg_type == NLMSG_DONE;
		if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY)
			return false;
		/* Both messages begin with the family. */
		if (*(const uint8_t *)data_of(header) == AF_UNIX)
			take_unix(reading, header);
		else
			take_inet(reading, header);
		at += NLMSG_ALIGN(header->nlmsg_len);
	}
	return true;
}

/* Ask for all that listen. False if the kernel has not answered to the end. */
static bool ask(struct reading *reading, int fd, const void *request, size_t length)
{
	static _Alignas(struct nlmsghdr) uint8_t answer[ANSWER_BYTES];
	bool done = false, goes_on = true;

	if (send(fd, request, length, 0) != (ssize_t)length)
		return false;
	for (int i = 0; i < ANSWERS_MAX && goes_on; i++) {
		ssize_t got = recv(fd, answer, sizeof(answer), 0);

		goes_on = got > 0 && take_answer(reading, answer, (size_t)got, &done);
	}
	return done;
}

/* Of a request for all that match. */
static struct nlmsghdr dump_header(size_t length)
{
	return (struct nlmsghdr){
		.nlmsg_len = (uint32_t)length,
		.nlmsg_type = SOCK_DIAG_BY_FAMILY,
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
	};
}

static bool ask_inet(struct reading *reading, int fd, uint8_t family)
{
	const struct {
		struct nlmsghdr header;
		struct inet_diag_req_v2 request;
	} message = {
		.header = dump_header(sizeof(message)),
		.request = { .sdiag_family = family,
			     .sdiag_protocol = IPPROTO_TCP,
			     .idiag_states = 1U << SOCKET_STATE_LISTEN },
	};

	return ask(reading, fd, &message, sizeof(message));
}

static bool ask_unix(struct reading *reading, int fd)
{
	const struct {
		struct nlmsghdr header;
		struct unix_diag_req request;
	} message = {
		.header = dump_header(sizeof(message)),
		.request = { .sdiag_family = AF_UNIX,
			     .udiag_states = 1U << SOCKET_STATE_LISTEN,
			     .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_RQLEN },
	};

	return ask(reading, fd, &message, sizeof(message));
}

/* False if the kernel refuses, or does not know TCP's sockets. */
static bool ask_kernel(struct reading *reading)
{
	const struct timeval patience = { .tv_sec = 1 };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	bool answered;

	if (fd < 0)
		return false;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	answered = ask_inet(reading, fd, AF_INET) && ask_inet(reading, fd, AF_INET6);
	reading->queues->is_complete &= answered && ask_unix(reading, fd);
	close(fd);
	return answered;
}

static bool read_network(const char *path, char ret_text[static LINK_SIZE])
{
	ssize_t length = readlink(path, ret_text, LINK_SIZE - 1);

	ret_text[length > 0 ? length : 0] = '\0';
	return length > 0;
}

static bool shares_network(pid_t pid)
{
	char path[PATH_SIZE], own[LINK_SIZE], other[LINK_SIZE];

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	return read_network("/proc/self/ns/net", own) && read_network(path, other) && strcmp(own, other) == 0;
}

int accept_queues_read(pid_t pid, struct accept_queues *ret_queues)
{
	struct reading reading = { ret_queues, 0 };

	*ret_queues = (struct accept_queues){ .is_complete = true };
	if (!shares_network(pid))
		return accept_queues_read_tables(pid, ret_queues);
	if (ask_kernel(&reading) && !reading.error)
		return 0;
	accept_queues_clear(ret_queues);
	return reading.error ? reading.error : accept_queues_read_tables(pid, ret_queues);
}

const struct accept_queue *accept_queues_find(const struct accept_queues *queues, uint64_t inode)
{
	for (size_t i = 0; i < queues->count; i++)
		if (queues->list[i].inode == inode)
			return &queues->list[i];
	return NULL;
}

void accept_queues_clear(struct accept_queues *queues)
{
	free(queues->list);
	*queues = (struct accept_queues){ .is_complete = false };
}

/* SPDX-License-Identifier: MIT */
/*
 * The queues of sockets of this process, which listens and connects to itself; and what is taken of the
 * answers of a made-up kernel, which has more sockets than a test opens, or answers with something else.
 */
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/sockets/accept_queue.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/open_files.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
INSTEAD_OF(reallocarray);
#define FAILING_REALLOCARRAY
#include "tests/unit/failing_allocation.h"

enum { LIMIT = 5, CLIENTS = 3 };

/* A socket that listens, and its clients, which it does not accept. */
struct listener {
	int fd, clients[CLIENTS];
	uint64_t inode;
	unsigned int port;
};

static struct listener listens(const struct sockaddr *address, socklen_t length)
{
	struct listener listener = { .fd = socket(address->sa_family, SOCK_STREAM, 0) };
	struct sockaddr_storage bound;
	struct stat status;

	assert_int_equal(bind(listener.fd, address, length), 0);
	assert_int_equal(listen(listener.fd, LIMIT), 0);
	length = sizeof(bound);
	assert_int_equal(getsockname(listener.fd, (struct sockaddr *)&bound, &length), 0);
	for (size_t i = 0; i < CLIENTS; i++) {
		listener.clients[i] = socket(address->sa_family, SOCK_STREAM, 0);
		assert_int_equal(connect(listener.clients[i], (struct sockaddr *)&bound, length), 0);
	}
	assert_int_equal(fstat(listener.fd, &status), 0);
	listener.inode = status.st_ino;
	/* The port is at the same place in both families. */
	listener.port = ntohs(((struct sockaddr_in *)&bound)->sin_port);
	return listener;
}

static void end(const struct listener *listener)
{
	for (size_t i = 0; i < CLIENTS; i++)
		close(listener->clients[i]);
	close(listener->fd);
}

static void check(const struct accept_queues *queues, const struct listener *listener, const char *address)
{
	const struct accept_queue *queue = accept_queues_find(queues, listener->inode);

	assert_non_null(queue);
	assert_string_equal(queue->address, address);
	assert_int_equal(queue->waiting, CLIENTS);
	assert_int_equal(queue->has_limit, queues->is_complete);
	if (queue->has_limit)
		assert_int_equal(queue->limit, LIMIT);
}

static void check_internet(const struct sockaddr *address, socklen_t length, const char *host)
{
	struct listener listener = listens(address, length);
	struct accept_queues queues;
	char text[ACCEPT_ADDRESS_SIZE];

	snprintf(text, sizeof(text), "%s:%u", host, listener.port);
	assert_int_equal(accept_queues_read(getpid(), &queues), 0);
	check(&queues, &listener, text);
	accept_queues_clear(&queues);
	assert_int_equal(accept_queues_read_tables(getpid(), &queues), 0);
	assert_false(queues.is_complete);
	check(&queues, &listener, text);
	close(accept(listener.fd, NULL, NULL));
	accept_queues_clear(&queues);
	assert_int_equal(accept_queues_read(getpid(), &queues), 0);
	assert_int_equal(accept_queues_find(&queues, listener.inode)->waiting, CLIENTS - 1);
	assert_null(accept_queues_find(&queues, 0));
	accept_queues_clear(&queues);
	end(&listener);
}

static void ipv4(void **state)
{
	const struct sockaddr_in address = { .sin_family = AF_INET,
					     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	(void)state;
	check_internet((const struct sockaddr *)&address, sizeof(address), "127.0.0.1");
}

static void ipv6(void **state)
{
	const struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	bool is_there = fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;

	(void)state;
	close(fd);
	if (!is_there)
		skip();
	check_internet((const struct sockaddr *)&address, sizeof(address), "[::1]");
}

/* Its name may have NULs, and be as long as there is room. */
static void abstract_name(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char text[ACCEPT_ADDRESS_SIZE] = "unix:";
	struct accept_queues queues;
	struct listener listener;

	(void)state;
	memset(address.sun_path, 'n', sizeof(address.sun_path));
	address.sun_path[0] = '\0';
	snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "ljspy%d", (int)getpid());
	for (size_t i = 0; i < sizeof(address.sun_path); i++)
		if (address.sun_path[i])
			text[strlen("unix:") + i] = address.sun_path[i];
		else
			text[strlen("unix:") + i] = '@';
	listener = listens((const struct sockaddr *)&address, sizeof(address));
	assert_int_equal(accept_queues_read(getpid(), &queues), 0);
	assert_true(queues.is_complete);
	check(&queues, &listener, text);
	accept_queues_clear(&queues);
	end(&listener);
}

/* What lies behind its name in the kernel's message is none of it. */
static void short_abstract_name(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char text[ACCEPT_ADDRESS_SIZE];
	struct accept_queues queues;
	struct listener listener;

	(void)state;
	snprintf(text, sizeof(text), "unix:@ljspy%d", (int)getpid());
	snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "ljspy%d", (int)getpid());
	listener = listens((const struct sockaddr *)&address,
			   (socklen_t)(sizeof(address.sun_family) + strlen(text) - strlen("unix:")));
	assert_int_equal(accept_queues_read(getpid(), &queues), 0);
	check(&queues, &listener, text);
	accept_queues_clear(&queues);
	end(&listener);
}

static void path(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char text[ACCEPT_ADDRESS_SIZE];
	struct accept_queues queues;
	struct listener listener;

	(void)state;
	snprintf(text, sizeof(text), "unix:/tmp/test_accept_queue.%d", (int)getpid());
	snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/test_accept_queue.%d", (int)getpid());
	unlink(address.sun_path);
	listener = listens((const struct sockaddr *)&address, sizeof(address));
	unlink(address.sun_path);
	assert_int_equal(accept_queues_read(getpid(), &queues), 0);
	check(&queues, &listener, text);
	accept_queues_clear(&queues);
	end(&listener);
}

/* One that is bound to no name. */
static void name_by_the_kernel(void **state)
{
	const struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	const struct accept_queue *queue;
	struct accept_queues queues;
	struct stat status;

	(void)state;
	/* The kernel picks one: a NUL and five digits. */
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address.sun_family)), 0);
	assert_int_equal(listen(fd, 0), 0);
	assert_int_equal(fstat(fd, &status), 0);
	assert_int_equal(accept_queues_read(getpid(), &queues), 0);
	queue = accept_queues_find(&queues, status.st_ino);
	assert_non_null(queue);
	assert_int_equal(strspn(queue->address, "unix:@0123456789abcdef"), strlen("unix:@00000"));
	assert_int_equal(strlen(queue->address), strlen("unix:@00000"));
	assert_int_equal(queue->waiting, 0);
	assert_true(queue->has_limit);
	assert_int_equal(queue->limit, 0);
	accept_queues_clear(&queues);
	close(fd);
}

/*---- A made-up kernel ----*/

enum {
	DATAGRAM_BYTES = 16 << 10, /* at most 32 KiB, as the kernel's */
	DATAGRAMS_MAX = 64,
	TCP4 = 0x7fffff00, /* inodes */
	TCP6 = 0x7fffff40,
	LOCAL = 0x7fffff80,
	PORT = 8080,
	WAITING = 7,
	BACKLOG = 511,
};

/* What it answers with, one after another; each request is answered up to the first that ends an answer. */
static struct {
	bool answers; /* else the machine's kernel does */
	struct {
		_Alignas(struct nlmsghdr) uint8_t bytes[DATAGRAM_BYTES];
		size_t length;
	} datagrams[DATAGRAMS_MAX];
	size_t count, taken, requests;
	size_t refused; /* which request it does not take, from 1 on */
	bool has_no_sockets, repeats;
	const char *network;     /* of the process asked about; else ljspy's own */
	struct timeval patience; /* for an answer */
} kernel;

INSTEAD_OF(readlink);
ssize_t __wrap_readlink(const char *path, char *text, size_t room)
{
	if (!kernel.network || strcmp(path, "/proc/self/ns/net") == 0)
		return __real_readlink(path, text, room);
	assert_true(strlen(kernel.network) <= room);
	memcpy(text, kernel.network, strlen(kernel.network));
	return (ssize_t)strlen(kernel.network);
}

INSTEAD_OF(setsockopt);
int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t length)
{
	if (level == SOL_SOCKET && option == SO_RCVTIMEO) {
		assert_int_equal(length, sizeof(kernel.patience));
		memcpy(&kernel.patience, value, sizeof(kernel.patience));
	}
	return __real_setsockopt(fd, level, option, value, length);
}

INSTEAD_OF(socket);
int __wrap_socket(int domain, int type, int protocol)
{
	if (kernel.answers && kernel.has_no_sockets) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	return __real_socket(domain, type, protocol);
}

INSTEAD_OF(send);
ssize_t __wrap_send(int fd, const void *bytes, size_t length, int flags)
{
	if (!kernel.answers)
		return __real_send(fd, bytes, length, flags);
	return ++kernel.requests == kernel.refused ? -1 : (ssize_t)length;
}

INSTEAD_OF(recv);
ssize_t __wrap_recv(int fd, void *bytes, size_t room, int flags)
{
	size_t length;

	if (!kernel.answers)
		return __real_recv(fd, bytes, room, flags);
	if (kernel.taken == kernel.count && !kernel.repeats) {
		errno = EAGAIN;
		return -1;
	}
	length = kernel.datagrams[kernel.taken % kernel.count].length;
	assert_true(length <= room);
	memcpy(bytes, kernel.datagrams[kernel.taken++ % kernel.count].bytes, length);
	return (ssize_t)length;
}

static int with_made_up_kernel(void **state)
{
	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	kernel.answers = true;
	return 0;
}

static int with_own_kernel(void **state)
{
	(void)state;
	kernel.answers = false;
	return 0;
}

static void begin_datagram(void)
{
	assert_true(kernel.count < DATAGRAMS_MAX);
	kernel.count++;
}

/* A message at the end of the last datagram; returns its header. */
static struct nlmsghdr *add_message(uint16_t type, const void *data, size_t length)
{
	uint8_t *bytes = kernel.datagrams[kernel.count - 1].bytes;
	size_t *end = &kernel.datagrams[kernel.count - 1].length;
	struct nlmsghdr *header = (struct nlmsghdr *)(void *)(bytes + *end);

	assert_true(*end + NLMSG_SPACE(length) <= DATAGRAM_BYTES);
	*header = (struct nlmsghdr){ .nlmsg_len = (uint32_t)NLMSG_LENGTH(length), .nlmsg_type = type };
	memcpy(NLMSG_DATA(header), data, length);
	*end += NLMSG_SPACE(length);
	return header;
}

static struct nlmsghdr *add_tcp(uint8_t family, uint32_t inode)
{
	struct inet_diag_msg message = { .idiag_family = family,
					 .idiag_rqueue = WAITING,
					 .idiag_wqueue = BACKLOG,
					 .idiag_inode = inode,
					 .id.idiag_sport = htons(PORT) };

	message.id.idiag_src[family == AF_INET6 ? 3 : 0] = htonl(family == AF_INET6 ? 1 : INADDR_LOOPBACK);
	return add_message(SOCK_DIAG_BY_FAMILY, &message, sizeof(message));
}

/* A message with these attributes, which begin after it. */
static struct nlmsghdr *add_unix(uint32_t inode, const void *attributes, size_t length)
{
	const struct unix_diag_msg message = { .udiag_family = AF_UNIX, .udiag_ino = inode };
	uint8_t bytes[512] = { 0 };

	assert_true(NLMSG_ALIGN(sizeof(message)) + length <= sizeof(bytes));
	memcpy(bytes, &message, sizeof(message));
	memcpy(bytes + NLMSG_ALIGN(sizeof(message)), attributes, length);
	return add_message(SOCK_DIAG_BY_FAMILY, bytes, NLMSG_ALIGN(sizeof(message)) + length);
}

/* The attributes of a message, in their order. */
struct attributes {
	_Alignas(struct rtattr) uint8_t bytes[256];
	size_t length;
};

static struct rtattr *add_attribute(struct attributes *attributes, unsigned short type, const void *data,
				    size_t length)
{
	struct rtattr *attribute = (struct rtattr *)(void *)(attributes->bytes + attributes->length);

	assert_true(attributes->length + RTA_SPACE(length) <= sizeof(attributes->bytes));
	*attribute = (struct rtattr){ .rta_len = (unsigned short)RTA_LENGTH(length), .rta_type = type };
	memcpy(RTA_DATA(attribute), data, length);
	attributes->length += RTA_SPACE(length);
	return attribute;
}

static const struct unix_diag_rqlen lengths = { .udiag_rqueue = WAITING, .udiag_wqueue = BACKLOG };

/* Its name, whose length is no multiple of four, and then its lengths. */
static struct attributes name_and_lengths(void)
{
	struct attributes attributes = { .length = 0 };

	add_attribute(&attributes, UNIX_DIAG_NAME, "/run/x", strlen("/run/x"));
	add_attribute(&attributes, UNIX_DIAG_RQLEN, &lengths, sizeof(lengths));
	return attributes;
}

/* It needs to say nothing else. */
static void add_done(void)
{
	begin_datagram();
	add_message(NLMSG_DONE, "", 0);
}

/* Whole answers without a socket. */
static void add_empty_answers(size_t count)
{
	for (size_t i = 0; i < count; i++)
		add_done();
}

static struct accept_queues taken;

static void take(void)
{
	assert_int_equal(accept_queues_read(getpid(), &taken), 0);
}

/* This inode's, which waits and has a limit as the made-up kernel has it. */
static void assert_taken(uint64_t inode, const char *address)
{
	const struct accept_queue *queue = accept_queues_find(&taken, inode);

	assert_non_null(queue);
	assert_string_equal(queue->address, address);
	assert_int_equal(queue->waiting, WAITING);
	assert_true(queue->has_limit);
	assert_int_equal(queue->limit, BACKLOG);
}

static void answers_may_take_several_datagrams_with_several_sockets(void **state)
{
	const struct attributes attributes = name_and_lengths();

	(void)state;
	begin_datagram();
	add_tcp(AF_INET, TCP4);
	add_tcp(AF_INET, TCP4 + 10);
	begin_datagram();
	add_tcp(AF_INET, TCP4 + 20);
	add_done();
	begin_datagram();
	add_tcp(AF_INET6, TCP6);
	add_done();
	begin_datagram();
	add_unix(LOCAL, attributes.bytes, attributes.length);
	add_unix(LOCAL + 10, attributes.bytes, attributes.length);
	add_done();
	take();
	assert_true(taken.is_complete);
	assert_int_equal(taken.count, 6);
	assert_taken(TCP4, "127.0.0.1:8080");
	assert_taken(TCP4 + 10, "127.0.0.1:8080");
	assert_taken(TCP4 + 20, "127.0.0.1:8080");
	assert_taken(TCP6, "[::1]:8080");
	assert_taken(LOCAL, "unix:/run/x");
	assert_taken(LOCAL + 10, "unix:/run/x");
	assert_int_equal(kernel.requests, 3);
	assert_int_equal(kernel.taken, kernel.count);
	accept_queues_clear(&taken);
}

static void a_message_that_is_too_short_is_left_out(void **state)
{
	const struct attributes attributes = name_and_lengths();
	struct nlmsghdr *header;

	(void)state;
	begin_datagram();
	header = add_tcp(AF_INET, TCP4);
	header->nlmsg_len--;
	add_tcp(AF_INET, TCP4 + 1);
	add_done();
	add_empty_answers(1);
	begin_datagram();
	header = add_unix(LOCAL, "", 0);
	header->nlmsg_len--;
	add_unix(LOCAL + 1, attributes.bytes, attributes.length);
	add_done();
	take();
	assert_int_equal(taken.count, 2);
	assert_taken(TCP4 + 1, "127.0.0.1:8080");
	assert_taken(LOCAL + 1, "unix:/run/x");
	accept_queues_clear(&taken);
}

/* A Unix socket of which the kernel tells less than was asked for. */
static void a_unix_socket_may_have_neither_name_nor_lengths(void **state)
{
	struct attributes attributes = { .length = 0 };
	const struct accept_queue *queue;

	(void)state;
	add_empty_answers(2);
	begin_datagram();
	add_unix(LOCAL, "", 0);
	/* The lengths lack a byte. */
	add_attribute(&attributes, UNIX_DIAG_RQLEN, &lengths, sizeof(lengths) - 1);
	add_attribute(&attributes, UNIX_DIAG_NAME, "/run/y", strlen("/run/y"));
	add_unix(LOCAL + 1, attributes.bytes, attributes.length);
	add_done();
	take();
	assert_int_equal(taken.count, 2);
	queue = accept_queues_find(&taken, LOCAL);
	assert_string_equal(queue->address, "unix:");
	assert_false(queue->has_limit);
	assert_int_equal(queue->waiting, 0);
	queue = accept_queues_find(&taken, LOCAL + 1);
	assert_string_equal(queue->address, "unix:/run/y");
	assert_false(queue->has_limit);
	accept_queues_clear(&taken);
}

static void attributes_that_nobody_asked_for_are_passed_over(void **state)
{
	const uint32_t peer = 5;
	struct attributes attributes = { .length = 0 };

	(void)state;
	add_attribute(&attributes, UNIX_DIAG_PEER, &peer, sizeof(peer));
	add_attribute(&attributes, UNIX_DIAG_NAME, "/run/x", strlen("/run/x"));
	/* The type alone says what it is, not its length. */
	add_attribute(&attributes, UNIX_DIAG_VFS, (uint32_t[]){ 1, 2 }, 2 * sizeof(uint32_t));
	add_attribute(&attributes, UNIX_DIAG_SHUTDOWN, "", 0);
	add_attribute(&attributes, UNIX_DIAG_RQLEN, &lengths, sizeof(lengths));
	add_empty_answers(2);
	begin_datagram();
	add_unix(LOCAL, attributes.bytes, attributes.length);
	add_done();
	take();
	assert_taken(LOCAL, "unix:/run/x");
	accept_queues_clear(&taken);
}

/* Each attribute says where the next one is. */
static void attributes_end_with_one_that_cannot_be_as_long_as_it_says(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		struct attributes attributes = { .length = 0 };
		struct rtattr *last;

		with_made_up_kernel(state);
		add_attribute(&attributes, UNIX_DIAG_NAME, "/run/x", strlen("/run/x"));
		last = add_attribute(&attributes, UNIX_DIAG_NAME, "/bad", strlen("/bad"));
		/* Less than its own head, or more than is left. */
		last->rta_len = (unsigned short)(i == 0 ? sizeof(*last) - 1 : last->rta_len + 1U);
		add_empty_answers(2);
		begin_datagram();
		add_unix(LOCAL, attributes.bytes, attributes.length);
		add_done();
		take();
		assert_int_equal(taken.count, 1);
		assert_string_equal(taken.list[0].address, "unix:/run/x");
		accept_queues_clear(&taken);
	}
}

/* One at the end of a message is taken whole, though no padding follows it. */
static void a_name_may_end_with_its_message(void **state)
{
	struct attributes attributes = { .length = 0 };
	struct nlmsghdr *header;

	(void)state;
	add_attribute(&attributes, UNIX_DIAG_NAME, "/run/x", strlen("/run/x"));
	add_empty_answers(2);
	begin_datagram();
	header = add_unix(LOCAL, attributes.bytes, attributes.length);
	header->nlmsg_len -= 2;
	add_done();
	take();
	assert_true(taken.is_complete);
	assert_string_equal(taken.list[0].address, "unix:/run/x");
	accept_queues_clear(&taken);
}

/* Longer than the name of any address: what has room is told. */
static void a_name_is_cut_where_an_address_ends(void **state)
{
	struct attributes attributes = { .length = 0 };
	char name[ACCEPT_ADDRESS_SIZE + 8], address[ACCEPT_ADDRESS_SIZE] = "unix:";

	(void)state;
	memset(name, 'n', sizeof(name));
	memset(address + strlen(address), 'n', sizeof(address) - strlen(address) - 1);
	add_attribute(&attributes, UNIX_DIAG_NAME, name, sizeof(name));
	add_empty_answers(2);
	begin_datagram();
	add_unix(LOCAL, attributes.bytes, attributes.length);
	add_done();
	take();
	assert_string_equal(taken.list[0].address, address);
	accept_queues_clear(&taken);
}

static void no_file_stays_open(void **state)
{
	const unsigned int files = open_files_count();

	(void)state;
	kernel.refused = 1;
	take();
	accept_queues_clear(&taken);
	add_empty_answers(3);
	take();
	assert_true(taken.is_complete);
	accept_queues_clear(&taken);
	assert_false(taken.is_complete);
	assert_int_equal(open_files_count(), files);
}

/* A message that is cut off, has no room for its header, or tells of an error. */
static void without_the_end_of_an_answer_the_tables_are_read(void **state)
{
	static const struct {
		uint16_t type;
		int length; /* another than that of the message */
	} ends[] = { { NLMSG_ERROR, 0 }, { SOCK_DIAG_BY_FAMILY, -1 }, { SOCK_DIAG_BY_FAMILY, 1 } };

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct nlmsghdr *header;

		with_made_up_kernel(state);
		begin_datagram();
		add_tcp(AF_INET, TCP4);
		header = add_tcp(AF_INET, TCP4 + 1);
		header->nlmsg_type = ends[i].type;
		if (ends[i].length > 0)
			header->nlmsg_len++; /* more than the datagram has */
		else if (ends[i].length < 0)
			header->nlmsg_len = sizeof(*header) - 1;
		add_empty_answers(3); /* of what is not asked any more */
		take();
		assert_false(taken.is_complete);
		assert_null(accept_queues_find(&taken, TCP4));
		assert_int_equal(kernel.requests, 1);
		assert_int_equal(kernel.taken, 1);
		accept_queues_clear(&taken);
	}
}

static void where_the_kernel_takes_no_request_the_tables_are_read(void **state)
{
	(void)state;
	kernel.has_no_sockets = true;
	add_empty_answers(3);
	take();
	assert_false(taken.is_complete);
	assert_int_equal(kernel.requests, 0);
	accept_queues_clear(&taken);
	for (size_t request = 1; request <= 2; request++) {
		with_made_up_kernel(state);
		kernel.refused = request;
		begin_datagram();
		add_tcp(AF_INET, TCP4);
		add_empty_answers(3);
		take();
		assert_false(taken.is_complete);
		assert_null(accept_queues_find(&taken, TCP4));
		assert_int_equal(kernel.requests, request);
		accept_queues_clear(&taken);
	}
}

/* A kernel may know TCP's sockets only. */
static void without_unix_sockets_the_others_are_taken(void **state)
{
	(void)state;
	kernel.refused = 3;
	begin_datagram();
	add_tcp(AF_INET, TCP4);
	add_empty_answers(2);
	take();
	assert_int_equal(kernel.requests, 3);
	assert_false(taken.is_complete);
	assert_int_equal(taken.count, 1);
	assert_taken(TCP4, "127.0.0.1:8080");
	accept_queues_clear(&taken);
}

static void a_kernel_that_answers_for_ever_is_left(void **state)
{
	(void)state;
	kernel.repeats = true;
	begin_datagram();
	add_message(SOCK_DIAG_BY_FAMILY, "", 1); /* too short to be a socket's */
	take();
	assert_false(taken.is_complete);
	assert_int_equal(kernel.requests, 1);
	accept_queues_clear(&taken);
}

/* The kernel has a second, or else ljspy would wait for ever. */
static void an_answer_is_not_awaited_for_ever(void **state)
{
	(void)state;
	add_empty_answers(3);
	take();
	assert_true(taken.is_complete);
	assert_true(kernel.patience.tv_sec > 0);
	accept_queues_clear(&taken);
}

static void add_many(size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (i % 100 == 0)
			begin_datagram();
		add_tcp(AF_INET, (uint32_t)(i + 1));
	}
	add_empty_answers(3);
}

static void sockets_beyond_their_bound_are_left_out(void **state)
{
	(void)state;
	add_many(ACCEPT_QUEUES_MAX);
	take();
	assert_true(taken.is_complete);
	assert_int_equal(taken.count, ACCEPT_QUEUES_MAX);
	assert_taken(ACCEPT_QUEUES_MAX, "127.0.0.1:8080");
	accept_queues_clear(&taken);
	with_made_up_kernel(state);
	add_many(ACCEPT_QUEUES_MAX + 1);
	take();
	assert_false(taken.is_complete);
	assert_int_equal(taken.count, ACCEPT_QUEUES_MAX);
	assert_null(accept_queues_find(&taken, ACCEPT_QUEUES_MAX + 1));
	accept_queues_clear(&taken);
}

static void sockets_of_another_network_are_not_asked_for(void **state)
{
	(void)state;
	kernel.network = "net:[1]";
	add_empty_answers(3);
	take();
	assert_false(taken.is_complete);
	assert_int_equal(kernel.requests, 0);
	accept_queues_clear(&taken);
	with_made_up_kernel(state);
	begin_datagram();
	add_tcp(AF_INET, TCP4);
	add_empty_answers(3);
	/* No process has that number, so its network is not known. */
	assert_int_equal(accept_queues_read(INT32_MAX, &taken), 0);
	assert_false(taken.is_complete);
	assert_int_equal(taken.count, 0);
	assert_int_equal(kernel.requests, 0);
	accept_queues_clear(&taken);
}

static void where_memory_is_short_there_are_no_queues(void **state)
{
	(void)state;
	begin_datagram();
	add_tcp(AF_INET, TCP4);
	add_empty_answers(3);
	allocation_fails_after(0);
	assert_int_equal(accept_queues_read(getpid(), &taken), -ENOMEM);
	assert_true(allocation_failed());
	assert_null(taken.list);
	assert_int_equal(taken.count, 0);
	assert_false(taken.is_complete);
}

int main(void)
{
#define MADE_UP(name) cmocka_unit_test_setup_teardown(name, with_made_up_kernel, with_own_kernel)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipv4),
		cmocka_unit_test(ipv6),
		cmocka_unit_test(abstract_name),
		cmocka_unit_test(short_abstract_name),
		cmocka_unit_test(path),
		cmocka_unit_test(name_by_the_kernel),
		MADE_UP(answers_may_take_several_datagrams_with_several_sockets),
		MADE_UP(a_message_that_is_too_short_is_left_out),
		MADE_UP(a_unix_socket_may_have_neither_name_nor_lengths),
		MADE_UP(attributes_that_nobody_asked_for_are_passed_over),
		MADE_UP(attributes_end_with_one_that_cannot_be_as_long_as_it_says),
		MADE_UP(a_name_may_end_with_its_message),
		MADE_UP(a_name_is_cut_where_an_address_ends),
		MADE_UP(no_file_stays_open),
		MADE_UP(without_the_end_of_an_answer_the_tables_are_read),
		MADE_UP(where_the_kernel_takes_no_request_the_tables_are_read),
		MADE_UP(without_unix_sockets_the_others_are_taken),
		MADE_UP(a_kernel_that_answers_for_ever_is_left),
		MADE_UP(an_answer_is_not_awaited_for_ever),
		MADE_UP(sockets_beyond_their_bound_are_left_out),
		MADE_UP(sockets_of_another_network_are_not_asked_for),
		MADE_UP(where_memory_is_short_there_are_no_queues),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

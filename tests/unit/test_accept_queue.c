/* SPDX-License-Identifier: MIT */
/* The queues of sockets of this process, which listens and connects to itself. */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/sockets/accept_queue.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipv4),          cmocka_unit_test(ipv6),
		cmocka_unit_test(abstract_name), cmocka_unit_test(short_abstract_name),
		cmocka_unit_test(path),          cmocka_unit_test(name_by_the_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

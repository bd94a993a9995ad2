/* SPDX-License-Identifier: MIT */
#include "src/serve/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 16, HOST_SIZE = 64, PORT_DIGITS = 5, PORT_MAX = 65535 };

static bool read_port(const char *text, in_port_t *ret_port)
{
	unsigned long port;

	if (!*text || strlen(text) > PORT_DIGITS || text[strspn(text, "0123456789")])
		return false;
	port = strtoul(text, NULL, 10);
	*ret_port = htons((in_port_t)port);
	return port <= PORT_MAX;
}

static bool read_unix(const char *path, struct address *address)
{
	struct sockaddr_un *un = (struct sockaddr_un *)&address->storage;

	if (!*path || strlen(path) >= sizeof(un->sun_path))
		return false;
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, path, strlen(path) + 1);
	address->length = sizeof(*un);
	address->is_local = true;
	return true;
}

static bool read_v4(const char *host, in_port_t port, struct address *address)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&address->storage;

	in->sin_family = AF_INET;
	in->sin_port = port;
	address->length = sizeof(*in);
	if (!*host || strcmp(host, "localhost") == 0)
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else if (inet_pton(AF_INET, host, &in->sin_addr) != 1)
		return false;
	address->is_local = ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return true;
}

static bool read_v6(const char *host, in_port_t port, struct address *address)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&address->storage;
	char bare[HOST_SIZE];

	in6->sin6_family = AF_INET6;
	in6->sin6_port = port;
	address->length = sizeof(*in6);
	snprintf(bare, sizeof(bare), "%.*s", (int)strlen(host) - 2, host + 1);
	if (inet_pton(AF_INET6, bare, &in6->sin6_addr) != 1)
		return false;
	address->is_local = IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
	return true;
}

bool address_read(const char *text, struct address *ret_address)
{
	struct address address = { .is_local = false };
	const char *colon = strrchr(text, ':');
	char host[HOST_SIZE];
	in_port_t port;
	bool good;

	if (strncmp(text, "unix:", strlen("unix:")) == 0)
		good = read_unix(text + strlen("unix:"), &address);
	else if (*text == '/' || *text == '.')
		good = read_unix(text, &address);
	else if (!colon || (size_t)(colon - text) >= sizeof(host) || !read_port(colon + 1, &port))
		return false;
	else {
		snprintf(host, sizeof(host), "%.*s", (int)(colon - text), text);
		good = *host == '[' && host[strlen(host) - 1] == ']' ? read_v6(host, port, &address)
								     : read_v4(host, port, &address);
	}
	if (good)
		*ret_address = address;
	return good;
}

/*
 * Does nobody listen there? Only a refusal says so: who listens may have as many clients waiting as it lets
 * wait, or let only others in.
 */
static bool is_unused(const struct address *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	bool unused = fd >= 0 &&
		      connect(fd, (const struct sockaddr *)&address->storage, address->length) < 0 &&
		      errno == ECONNREFUSED;

	if (fd >= 0)
		close(fd);
	return unused;
}

static void remove_unused(const struct address *address)
{
	const struct sockaddr_un *un = (const struct sockaddr_un *)&address->storage;
	struct stat status;

	if (stat(un->sun_path, &status) == 0 && S_ISSOCK(status.st_mode) && is_unused(address))
		unlink(un->sun_path);
}

bool address_is_taken_by_file(const struct address *address)
{
	const struct sockaddr_un *un = (const struct sockaddr_un *)&address->storage;
	struct stat status;

	return address->storage.ss_family == AF_UNIX && lstat(un->sun_path, &status) == 0 &&
	       !S_ISSOCK(status.st_mode);
}

void address_forget(const struct address *address)
{
	const struct sockaddr_un *un = (const struct sockaddr_un *)&address->storage;

	if (address->storage.ss_family == AF_UNIX)
		unlink(un->sun_path);
}

/* 0 or a negative errno. */
static int bind_to(int fd, const struct address *address)
{
	const bool is_unix = address->storage.ss_family == AF_UNIX;
	const int on = 1;
	mode_t mask;
	int result;

	if (is_unix)
		remove_unused(address);
	else
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	mask = umask(0177);
	result = bind(fd, (const struct sockaddr *)&address->storage, address->length);
	umask(mask);
	if (result)
		return -errno;
	if (listen(fd, BACKLOG)) {
		result = -errno;
		address_forget(address);
	}
	return result;
}

static void write_text(int fd, const struct address *address, char text[static ADDRESS_TEXT_SIZE])
{
	const struct sockaddr_un *un = (const struct sockaddr_un *)&address->storage;
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);
	char host[HOST_SIZE] = "";

	if (address->storage.ss_family == AF_UNIX) {
		snprintf(text, ADDRESS_TEXT_SIZE, "unix:%s", un->sun_path);
		return;
	}
	getsockname(fd, (struct sockaddr *)&bound, &length);
	if (bound.ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&bound;

		inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
		snprintf(text, ADDRESS_TEXT_SIZE, "http://[%s]:%d", host, ntohs(in6->sin6_port));
	} else {
		const struct sockaddr_in *in = (const struct sockaddr_in *)&bound;

		inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		snprintf(text, ADDRESS_TEXT_SIZE, "http://%s:%d", host, ntohs(in->sin_port));
	}
}

int address_listen(const struct address *address, char ret_text[static ADDRESS_TEXT_SIZE])
{
	int fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), error;

	if (fd < 0)
		return -errno;
	error = bind_to(fd, address);
	if (error) {
		close(fd);
		return error;
	}
	write_text(fd, address, ret_text);
	return fd;
}

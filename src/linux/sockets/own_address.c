/* SPDX-License-Identifier: MIT */
#include "src/linux/sockets/own_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

enum { HOST_SIZE = INET6_ADDRSTRLEN };

static bool is_own_v6(const char *host)
{
	struct in6_addr address;

	return inet_pton(AF_INET6, host, &address) == 1 && IN6_IS_ADDR_LOOPBACK(&address);
}

static bool is_own_v4(const char *host)
{
	struct in_addr address;

	return inet_pton(AF_INET, host, &address) == 1 && ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET;
}

/*
 * Is there nothing but a port, before a path or the end? Anything else after a colon is a password; the host
 * follows it.
 */
static bool ends_with_port(const char *end)
{
	if (*end == ':')
		end += 1 + strspn(end + 1, "0123456789");
	return *end == '/' || *end == '\0';
}

bool own_address(const char *host)
{
	const bool is_v6 = *host == '[';
	const char *begin = host + is_v6;
	const size_t length = strcspn(begin, is_v6 ? "]" : ":/");
	char bare[HOST_SIZE];

	if (length >= sizeof(bare) || (is_v6 && begin[length] != ']') ||
	    !ends_with_port(begin + length + is_v6))
		return false;
	memcpy(bare, begin, length);
	bare[length] = '\0';
	return is_v6 ? is_own_v6(bare) : strcasecmp(bare, "localhost") == 0 || is_own_v4(bare);
}

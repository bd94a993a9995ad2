/* SPDX-License-Identifier: MIT */
/* Which hosts of URLs and HTTP headers are this machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/linux/sockets/own_address.h"

static void loopback_is_this_machine(void **state)
{
	static const char *const hosts[] = {
		"localhost", "localhost:6060", "LocalHost/path", "127.0.0.1",     "127.0.0.1:80/",
		"127.1.2.3", "[::1]",          "[::1]:80",       "[0:0::0:1]/ab", "[::0.0.0.1]",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		assert_true(own_address(hosts[i]));
}

static void all_others_are_not(void **state)
{
	static const char *const hosts[] = {
		"",
		":",
		":80",
		"/",
		"[",
		"[]",
		"[]:80",
		"[::1",
		"[::1]x",
		"::1",
		"[::2]",
		"[127.0.0.1]",
		"localhost.example",
		"localhos",
		"localhost ",
		"x.localhost",
		"127.0.0.1.example",
		"127.0.0",
		"127.1",
		"128.0.0.1",
		"10.0.0.1:127",
		"0.0.0.0",
		"127.0.0.1@example:80",
		"localhost:1@example",
		"localhost:secret@example/",
		"[::1]:1@example",
		"localhost:80x",
		"[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0001]",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		assert_false(own_address(hosts[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loopback_is_this_machine),
		cmocka_unit_test(all_others_are_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

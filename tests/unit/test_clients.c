/* SPDX-License-Identifier: MIT */
/* Who goes when one more client comes than the server has places for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/socket.h>

#include "src/serve/clients.h"
#include "tests/unit/instead_of.h"

enum { FIRST_FD = 100, PLACES = CLIENTS_MAX + CLIENTS_LEAVING_MAX };

static struct clients clients;
static struct client *added[PLACES];
static int shut; /* whose connection was shut last; 0: nobody's */
static unsigned int shuts;

INSTEAD_OF(shutdown);
int __wrap_shutdown(int fd, int how)
{
	assert_int_equal(how, SHUT_RDWR);
	shut = fd;
	shuts++;
	return 0;
}

static int begin(void **state)
{
	(void)state;
	clients_begin(&clients);
	shut = 0;
	shuts = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	clients_end(&clients);
	return 0;
}

/* So many come, each with a descriptor of its own. */
static void add(int count)
{
	for (int i = 0; i < count; i++) {
		assert_true(clients_admit(&clients));
		added[i] = clients_add(&clients, FIRST_FD + i);
		assert_non_null(added[i]);
		assert_int_equal(added[i]->fd, FIRST_FD + i);
	}
	assert_int_equal(shuts, 0);
}

static void assert_goes(int index)
{
	assert_true(clients_admit(&clients));
	assert_int_equal(shut, FIRST_FD + index);
	/* Another one takes its place, so that there are as many as before. */
	assert_non_null(clients_add(&clients, FIRST_FD + PLACES + index));
}

static void nobody_goes_while_there_is_room(void **state)
{
	(void)state;
	add(CLIENTS_MAX);
	clients_remove(&clients, added[3]);
	assert_true(clients_admit(&clients));
	assert_int_equal(shuts, 0);
}

static void who_has_not_asked_for_the_longest_goes_first(void **state)
{
	(void)state;
	add(CLIENTS_MAX);
	clients_note(&clients, added[0], CLIENT_ASKS);
	clients_note(&clients, added[1], CLIENT_READS);
	clients_note(&clients, added[2], CLIENT_SILENT); /* it has begun anew */
	assert_goes(3);
	assert_goes(4);
}

static void where_all_have_asked_the_answer_that_is_ready_for_the_longest_goes(void **state)
{
	(void)state;
	add(CLIENTS_MAX);
	for (int i = 0; i < CLIENTS_MAX; i++)
		clients_note(&clients, added[i], CLIENT_ASKS);
	assert_false(clients_admit(&clients));
	assert_int_equal(shuts, 0);
	clients_note(&clients, added[5], CLIENT_READS);
	clients_note(&clients, added[2], CLIENT_READS);
	assert_goes(5);
	/* The one that has come is silent, and goes before those that read. */
	assert_true(clients_admit(&clients));
	assert_int_equal(shut, FIRST_FD + PLACES + 5);
}

/* Their connections are shut, but their threads have not noticed yet. */
static void those_that_leave_keep_a_place_for_a_while(void **state)
{
	(void)state;
	add(CLIENTS_MAX);
	for (int i = 0; i < CLIENTS_LEAVING_MAX; i++)
		assert_goes(i);
	assert_int_equal(shuts, CLIENTS_LEAVING_MAX);
	assert_true(clients_admit(&clients));
	assert_null(clients_add(&clients, FIRST_FD + 3 * PLACES));
	clients_remove(&clients, added[0]);
	assert_non_null(clients_add(&clients, FIRST_FD + 3 * PLACES));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(nobody_goes_while_there_is_room),
		TEST(who_has_not_asked_for_the_longest_goes_first),
		TEST(where_all_have_asked_the_answer_that_is_ready_for_the_longest_goes),
		TEST(those_that_leave_keep_a_place_for_a_while),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

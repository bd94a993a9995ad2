/* SPDX-License-Identifier: MIT */
/* The kernel's tables of sockets: which of their rows are taken, and how an end of a socket reads. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/proc/proc_file.h"
#include "src/linux/sockets/socket_table.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/open_files.h"

INSTEAD_OF(proc_file_open);

enum { PID = 4711, LINES_READ = 20000 };

#define HEAD \
	"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
#define END " 00:00000000 00000000  1000        0 "

static FILE *table; /* what the kernel has; NULL: nothing */

int __wrap_proc_file_open(pid_t pid, const char *name)
{
	assert_int_equal(pid, PID);
	assert_string_equal(name, "net/tcp");
	if (!table)
		return -ENOENT;
	fflush(table);
	rewind(table);
	return dup(fileno(table));
}

static int make_table(void **state)
{
	(void)state;
	table = fdopen(memfd_create("table", MFD_CLOEXEC), "w+");
	return table ? 0 : -1;
}

static int drop_table(void **state)
{
	(void)state;
	if (table)
		fclose(table);
	table = NULL;
	return 0;
}

/* The rows that were taken; as many as are wanted. */
struct taken {
	struct socket_row rows[4];
	size_t count, wanted;
};

static bool take(void *context, const struct socket_row *row)
{
	struct taken *taken = context;

	taken->rows[taken->count++ % 4] = *row;
	return taken->count != taken->wanted;
}

static void assert_end(const struct socket_end *end, int family, const char *text)
{
	char printed[SOCKET_END_SIZE];

	socket_end_print(end, printed);
	assert_int_equal(end->family, family);
	assert_string_equal(printed, text);
}

static void a_row_has_both_ends_what_waits_and_the_inode(void **state)
{
	struct taken taken = { 0 };
	unsigned int open_before;

	(void)state;
	fputs(HEAD, table);
	fprintf(table, "   0: %08X:1F90 00000000:0000 0A 00000000:00000003" END "12345 1\n",
		htonl(INADDR_LOOPBACK));
	fprintf(table,
		"   1: 0000000000000000FFFF0000%08X:0050 000000000000000000000000%08X:D431 01 "
		"00000007:00000000" END "18446744073709551615 1\n",
		htonl(INADDR_LOOPBACK), htonl(1));
	open_before = open_files_count();
	socket_table_walk(PID, "net/tcp", take, &taken);
	assert_int_equal(open_files_count(), open_before);
	assert_int_equal(taken.count, 2);
	assert_end(&taken.rows[0].local, AF_INET, "127.0.0.1:8080");
	assert_end(&taken.rows[0].remote, AF_INET, "0.0.0.0:0");
	assert_true(taken.rows[0].listens);
	assert_int_equal(taken.rows[0].waiting, 3);
	assert_int_equal(taken.rows[0].inode, 12345);
	/* An address of IPv4 may be in one of IPv6. */
	assert_end(&taken.rows[1].local, AF_INET6, "127.0.0.1:80");
	assert_end(&taken.rows[1].remote, AF_INET6, "[::1]:54321");
	assert_false(taken.rows[1].listens);
	assert_int_equal(taken.rows[1].waiting, 0);
	assert_true(taken.rows[1].inode == UINT64_MAX);
}

static void what_is_no_row_is_passed_over(void **state)
{
	static const char *const others[] = {
		"   0: 0100007:1F90 00000000:0000 0A 00000000:00000003" END "1 1\n",
		"   0: 0100007F:1F90 000000001:0000 0A 00000000:00000003" END "1 1\n",
		"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000003\n",
		"   0: x100007F:1F90 00000000:0000 0A 00000000:00000003" END "1 1\n",
		"\n",
	};
	struct taken taken = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		fputs(others[i], table);
	fputs("   0: 0100007F:1F90 00000000:0000 0A 00000000:00000003" END "7 1\n", table);
	socket_table_walk(PID, "net/tcp", take, &taken);
	assert_int_equal(taken.count, 1);
	assert_int_equal(taken.rows[0].inode, 7);
}

static void it_ends_when_enough_is_taken(void **state)
{
	struct taken taken = { .wanted = 2 };

	(void)state;
	for (unsigned int i = 1; i <= 3; i++)
		fprintf(table, "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000003" END "%u 1\n", i);
	socket_table_walk(PID, "net/tcp", take, &taken);
	assert_int_equal(taken.count, 2);
	assert_int_equal(taken.rows[1].inode, 2);
}

/* Descriptor 0 is one as any other where a program begins without. */
static void a_table_may_be_open_as_the_standard_input(void **state)
{
	struct taken taken = { 0 };
	const int input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	(void)state;
	fputs("   0: 0100007F:1F90 00000000:0000 0A 00000000:00000003" END "7 1\n", table);
	close(STDIN_FILENO);
	socket_table_walk(PID, "net/tcp", take, &taken);
	if (input >= 0) {
		assert_int_equal(dup2(input, STDIN_FILENO), STDIN_FILENO);
		close(input);
	}
	assert_int_equal(taken.count, 1);
	assert_int_equal(taken.rows[0].inode, 7);
}

/* A table may have as many rows as the machine has sockets. */
static void only_so_many_lines_are_read(void **state)
{
	struct taken taken = { 0 };

	(void)state;
	fputs(HEAD, table);
	for (unsigned int i = 1; i < LINES_READ + 10; i++)
		fprintf(table, "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000003" END "%u 1\n", i);
	socket_table_walk(PID, "net/tcp", take, &taken);
	assert_int_equal(taken.count, LINES_READ - 1);
	assert_int_equal(taken.rows[(taken.count - 1) % 4].inode, LINES_READ - 1);
}

static void a_table_that_is_not_there_has_no_rows(void **state)
{
	struct taken taken = { 0 };

	drop_table(state);
	socket_table_walk(PID, "net/tcp", take, &taken);
	assert_int_equal(taken.count, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_table, drop_table)
	const struct CMUnitTest tests[] = {
		TEST(a_row_has_both_ends_what_waits_and_the_inode),
		TEST(what_is_no_row_is_passed_over),
		TEST(it_ends_when_enough_is_taken),
		TEST(a_table_may_be_open_as_the_standard_input),
		TEST(only_so_many_lines_are_read),
		TEST(a_table_that_is_not_there_has_no_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

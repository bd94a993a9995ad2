/* SPDX-License-Identifier: MIT */
/* What reaches the user's terminal. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/program/message.h"

static char said[16384];
static FILE *file;
static int saved;

static void listen(void)
{
	file = tmpfile();
	saved = dup(STDERR_FILENO);
	dup2(fileno(file), STDERR_FILENO);
}

static const char *heard(void)
{
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(file);
	said[fread(said, 1, sizeof(said) - 1, file)] = '\0';
	fclose(file);
	return said;
}

static void messages_are_lines_with_a_prefix(void **state)
{
	(void)state;
	listen();
	message_error("Process %d is gone.", 7);
	message_error_errno(ENOENT, "%s", "x.svg");
	message_warn("Memory ran short.");
	message_note("Wrote %s", "x.svg");
	assert_string_equal(heard(), "ljspy: Process 7 is gone.\n"
				     "ljspy: x.svg: No such file or directory\n"
				     "ljspy: warning: Memory ran short.\n"
				     "ljspy: Wrote x.svg\n");
}

static void a_reader_that_leaves_is_no_fault(void **state)
{
	(void)state;
	listen();
	message_error_stdout(EPIPE);
	assert_string_equal(heard(), "");
	listen();
	message_error_stdout(ENOSPC);
	assert_string_equal(heard(), "ljspy: standard output: No space left on device\n");
}

static void what_this_ljspy_is_built_without_is_named(void **state)
{
	(void)state;
	listen();
	message_error_left_out("`serve`");
	assert_string_equal(heard(),
			    "ljspy: This ljspy, which needs nothing installed, is built without `serve`.\n"
			    "ljspy: The one that `make` builds has it.\n");
}

static void nothing_untrusted_reaches_the_terminal(void **state)
{
	(void)state;
	listen();
	message_error("Process 1 (%s) has ended.", "\x1b]0;owned\a\n\xff\xc2\x9b"
						   "31m");
	heard();
	for (const char *at = said; at[1]; at++)
		assert_true((unsigned char)*at >= ' ' && (unsigned char)*at < 0x7f);
	assert_string_equal(said + strlen(said) - 1, "\n");
}

static void long_text_is_cut(void **state)
{
	static char name[100000];

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	listen();
	message_error_errno(ENOENT, "%s", name);
	assert_true(strlen(heard()) < 10000);
	assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
}

static void who_must_not_wait_says_nothing_to_a_reader_that_stalls(void **state)
{
	static const char filling[4096];
	char lines[2 * sizeof(filling)] = "";
	size_t fills = 0;
	ssize_t length;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	while (write(ends[1], filling, sizeof(filling)) > 0)
		fills++;
	fcntl(ends[1], F_SETFL, 0);
	saved = dup(STDERR_FILENO);
	dup2(ends[1], STDERR_FILENO);
	assert_false(message_must_not_wait(true));
	message_warn("Left out."); /* would never return */
	assert_true(fills > 0 && message_would_wait());
	assert_int_equal(read(ends[0], said, sizeof(filling)), sizeof(filling));
	memset(lines, 'x', sizeof(lines) - 1);
	message_lines(lines); /* there is room for half of them */
	assert_true(message_would_wait());
	while (fills-- > 0)
		assert_int_equal(read(ends[0], said, sizeof(filling)), sizeof(filling));
	message_warn("Taken.");
	assert_true(message_must_not_wait(false));
	message_warn("Taken, too.");
	dup2(saved, STDERR_FILENO);
	close(saved);
	length = read(ends[0], said, sizeof(said) - 1);
	assert_true(length > 0);
	said[length] = '\0';
	assert_string_equal(said, "ljspy: warning: Taken.\nljspy: warning: Taken, too.\n");
	close(ends[0]);
	close(ends[1]);
}

/* In the end it has room for a part of a piece, which it does not take without waiting. */
static void a_terminal_that_nobody_reads_is_not_waited_for(void **state)
{
	static char lines[256 << 10];
	const int reader = posix_openpt(O_RDWR | O_NOCTTY), saved_error = dup(STDERR_FILENO);
	int terminal;

	(void)state;
	assert_true(reader >= 0 && saved_error >= 0);
	assert_int_equal(grantpt(reader), 0);
	assert_int_equal(unlockpt(reader), 0);
	terminal = open(ptsname(reader), O_RDWR | O_NOCTTY);
	assert_true(terminal >= 0);
	dup2(terminal, STDERR_FILENO);
	close(terminal);
	memset(lines, 'x', sizeof(lines) - 1);
	for (size_t i = 100; i < sizeof(lines) - 1; i += 100)
		lines[i] = '\n';
	message_must_not_wait(true);
	alarm(60);
	message_lines(lines);
	alarm(0);
	message_must_not_wait(false);
	assert_true(read(reader, lines, sizeof(lines)) > 0);
	dup2(saved_error, STDERR_FILENO);
	close(saved_error);
	close(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_are_lines_with_a_prefix),
		cmocka_unit_test(a_reader_that_leaves_is_no_fault),
		cmocka_unit_test(what_this_ljspy_is_built_without_is_named),
		cmocka_unit_test(nothing_untrusted_reaches_the_terminal),
		cmocka_unit_test(long_text_is_cut),
		cmocka_unit_test(who_must_not_wait_says_nothing_to_a_reader_that_stalls),
		cmocka_unit_test(a_terminal_that_nobody_reads_is_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

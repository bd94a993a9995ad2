/* SPDX-License-Identifier: MIT */
/* Where the source files of a session are looked for, and what is said of those that may have changed. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/files/home.h"
#include "src/linux/files/root_file.h"
#include "src/linux/proc/process.h"
#include "src/rendering/sources.h"
#include "tests/unit/instead_of.h"

enum { PID = 10, START = 1000, BEGAN_NS = 1000000000, TICK_NS = 10000000 };

static struct {
	const char *boot;   /* of this machine */
	uint64_t start;     /* of the process now; 0: it is gone */
	unsigned int reads; /* of its start, before it ends; 0: it does not */
	char state;
	bool may_use_root;
	char root[PATH_MAX], path[PATH_MAX]; /* what was read; "" if nothing was */
	int error;
	uint64_t changed_ns;
} seen;

static struct session session;
static struct source_text text;

INSTEAD_OF(home_boot);
void __wrap_home_boot(char ret_boot[static HOME_BOOT_SIZE])
{
	snprintf(ret_boot, HOME_BOOT_SIZE, "%s", seen.boot);
}

INSTEAD_OF(process_read);
int __wrap_process_read(pid_t pid, struct process *ret_process)
{
	assert_int_equal(pid, PID);
	if (!seen.start)
		return -ESRCH;
	*ret_process = (struct process){ .pid = pid, .start_ticks = seen.start, .state = seen.state };
	if (seen.reads && --seen.reads == 0)
		seen.start = 0;
	return 0;
}

INSTEAD_OF(access);
int __wrap_access(const char *path, int mode)
{
	(void)path, (void)mode;
	return seen.may_use_root ? 0 : -1;
}

INSTEAD_OF(root_file_read);
int __wrap_root_file_read(struct errands *errands, const struct root_file_wanted *wanted,
			  struct root_file *ret_file)
{
	assert_non_null(errands);
	snprintf(seen.root, sizeof(seen.root), "%s", wanted->root);
	snprintf(seen.path, sizeof(seen.path), "%s", wanted->path);
	if (seen.error)
		return seen.error;
	*ret_file = (struct root_file){ .bytes = strdup("line\n"),
					.length = 5,
					.changed_unix_ns = seen.changed_ns };
	return 0;
}

static int begin(void **state)
{
	(void)state;
	memset(&seen, 0, sizeof(seen));
	seen.boot = "this";
	seen.start = START;
	seen.state = 'S';
	seen.may_use_root = true;
	session = (struct session){ .start_unix_ns = 2 * (uint64_t)BEGAN_NS,
				    .home = { .pid = PID,
					      .start_ticks = START,
					      .began_unix_ns = BEGAN_NS,
					      .boot = "this",
					      .root = "/jail",
					      .directory = "/srv" } };
	return 0;
}

/* Read this file; what is noted of it is in text. */
static void read_source(const char *file)
{
	struct source_reader *reader = sources_new(&session);

	assert_non_null(reader);
	source_text_clear(&text);
	seen.root[0] = seen.path[0] = '\0';
	assert_int_equal(reader->read(reader, file, &text), 0);
	sources_free(reader);
}

static void assert_read(const char *root, const char *path, const char *note)
{
	assert_string_equal(seen.root, root);
	assert_string_equal(seen.path, path);
	assert_string_equal(text.note, note);
}

static void while_the_process_lives_its_own_root_tells(void **state)
{
	(void)state;
	read_source("@lib/a.lua");
	assert_read("/proc/10/root", "/srv/lib/a.lua", "");
	assert_non_null(text.lines);
	read_source("@/a.lua");
	assert_read("/proc/10/root", "/a.lua", "");
	/* Somebody else's. */
	seen.may_use_root = false;
	read_source("@/a.lua");
	assert_read("/jail", "/a.lua", "");
}

static void later_the_root_of_the_session_tells(void **state)
{
	(void)state;
	seen.start = START + 1; /* another one has its pid */
	read_source("@/a.lua");
	assert_read("/jail", "/a.lua", "");
	seen.start = START;
	seen.state = 'Z';
	read_source("@/a.lua");
	assert_read("/jail", "/a.lua", "");
	session.home.pid = 0;
	read_source("@/a.lua");
	assert_read("/jail", "/a.lua", "");
	session.home.root = NULL;
	read_source("@/a.lua");
	assert_read("", "", "the process has ended, and with it the file system that it had");
}

static void on_another_machine_its_own_root_tells_with_a_warning(void **state)
{
	static const char words[] = "read on another machine than the target ran on, or after a restart";

	(void)state;
	session.home.boot = "other";
	read_source("@/a.lua");
	assert_read("/", "/a.lua", words);
	/* It is not known which one it was, or is. */
	session.home.boot = NULL;
	read_source("@/a.lua");
	assert_read("/", "/a.lua", words);
	session.home.boot = "";
	seen.boot = "";
	read_source("@/a.lua");
	assert_read("/", "/a.lua", words);
	seen.changed_ns = BEGAN_NS + TICK_NS + 1;
	read_source("@/a.lua");
	assert_non_null(strstr(text.note, "after a restart; changed after the process began"));
}

static void a_file_that_has_changed_since_is_doubted(void **state)
{
	(void)state;
	/* When the process began is known to a tick. */
	seen.changed_ns = BEGAN_NS + TICK_NS;
	read_source("@/a.lua");
	assert_string_equal(text.note, "");
	seen.changed_ns++;
	read_source("@/a.lua");
	assert_string_equal(text.note, "changed after the process began: lines may have moved");
	session.home.began_unix_ns = 0;
	read_source("@/a.lua");
	assert_string_equal(text.note, "");
	seen.changed_ns = session.start_unix_ns + 1;
	read_source("@/a.lua");
	assert_string_equal(text.note, "changed after the recording began: lines may have moved");
}

static void what_cannot_be_read_says_why(void **state)
{
	(void)state;
	read_source("local a = 1");
	assert_read("", "", "the program gave this source as a text, not as a file");
	session.home.directory = NULL;
	read_source("@a.lua");
	assert_read("", "", "it is not known which directory this name is relative to");
	seen.error = -ENOENT;
	read_source("@/a.lua");
	assert_string_equal(text.note, "there is no such file");
	seen.error = -EACCES;
	read_source("@/a.lua");
	assert_string_equal(text.note, "not readable by everybody, or not by you");
	assert_null(text.lines);
}

/* Another one may have its pid, and its root. */
static void a_process_that_ends_meanwhile_tells_nothing(void **state)
{
	(void)state;
	seen.reads = 1;
	read_source("@/a.lua");
	assert_read("/proc/10/root", "/a.lua", "the process ended while its files were read");
	assert_null(text.lines);
}

static int end(void **state)
{
	(void)state;
	source_text_clear(&text);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(while_the_process_lives_its_own_root_tells),
		TEST(later_the_root_of_the_session_tells),
		TEST(on_another_machine_its_own_root_tells_with_a_warning),
		TEST(a_file_that_has_changed_since_is_doubted),
		TEST(what_cannot_be_read_says_why),
		TEST(a_process_that_ends_meanwhile_tells_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Noticing processes that come to belong to those that are followed. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/proc/follow.h"
#include "src/linux/proc/process.h"
#include "tests/unit/target_process.h"

enum { FOUND_MAX = 16, TRIES = 500 };

struct found {
	pid_t pids[FOUND_MAX];
	size_t count;
};

static void note(void *context, pid_t pid)
{
	struct found *found = context;

	assert_true(found->count < FOUND_MAX);
	found->pids[found->count++] = pid;
}

/* Look as often as it takes to find so many. */
static void search_until(struct follow *follow, struct found *found, size_t count)
{
	for (int i = 0; i < TRIES && found->count < count; i++) {
		assert_int_equal(follow_search(follow, monotonic_ns(), note, found), 0);
		sleep_ms(10);
	}
	assert_int_equal(found->count, count);
}

/* A child that calls itself so and starts a child for each line it reads, if depth allows. */
static pid_t start(const char *name, int depth, int *ret_command)
{
	int command[2];
	pid_t pid;

	assert_int_equal(pipe(command), 0);
	pid = fork();
	if (pid == 0) {
		char letter;

		prctl(PR_SET_NAME, name);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(command[1]);
		while (read(command[0], &letter, 1) == 1)
			for (int i = 0; i < depth && fork() == 0; i++)
				;
		pause();
		_exit(0);
	}
	close(command[0]);
	*ret_command = command[1];
	return pid;
}

static void tell(int command)
{
	assert_int_equal(write(command, "!", 1), 1);
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void end_found(const struct found *found)
{
	for (size_t i = 0; i < found->count; i++)
		kill(found->pids[i], SIGKILL);
}

static void descendants_are_found_parents_first(void **state)
{
	struct follow *follow = follow_new(&(struct follow_options){ .descendants = true });
	struct found found = { .count = 0 };
	int command;
	pid_t root = start("root", 3, &command);

	(void)state;
	assert_int_equal(follow_add(follow, root), 0);
	search_until(follow, &found, 0);
	tell(command);
	search_until(follow, &found, 3);
	assert_int_equal(process_parent(found.pids[0]), root);
	assert_int_equal(process_parent(found.pids[1]), found.pids[0]);
	assert_int_equal(process_parent(found.pids[2]), found.pids[1]);
	end_found(&found);
	end(root);
	close(command);
	follow_free(follow);
}

static void descendants_that_are_there_already_are_found_at_once(void **state)
{
	struct follow *follow = follow_new(&(struct follow_options){ .descendants = true });
	struct follow *late = follow_new(&(struct follow_options){ .descendants = true });
	struct found found = { .count = 0 }, again = { .count = 0 };
	int command;
	pid_t root = start("root", 2, &command);

	(void)state;
	follow_add(follow, root);
	tell(command);
	search_until(follow, &found, 2);
	follow_add(late, root);
	assert_int_equal(follow_search(late, monotonic_ns(), note, &again), 0);
	assert_int_equal(again.count, 2);
	end_found(&found);
	end(root);
	close(command);
	follow_free(follow);
	follow_free(late);
}

static void a_process_that_comes_to_match_is_found_but_not_its_children(void **state)
{
	regex_t pattern;
	struct follow *follow;
	struct found found = { .count = 0 };
	int command, other_command;
	pid_t other = start("another", 0, &other_command), match;

	(void)state;
	assert_int_equal(process_pattern("^sought$", &pattern, NULL), 0);
	follow = follow_new(&(struct follow_options){ .pattern = &pattern });
	assert_int_equal(follow_search(follow, monotonic_ns(), note, &found), 0);
	assert_int_equal(found.count, 0);
	match = start("sought", 0, &command);
	search_until(follow, &found, 1);
	assert_int_equal(found.pids[0], match);
	end(match);
	end(other);
	close(command);
	close(other_command);
	follow_free(follow);
	regfree(&pattern);
}

static void a_process_is_told_of_once(void **state)
{
	struct follow *follow = follow_new(&(struct follow_options){ .descendants = true });
	struct found found = { .count = 0 };
	int command;
	pid_t root = start("root", 1, &command);

	(void)state;
	follow_add(follow, root);
	tell(command);
	search_until(follow, &found, 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(follow_search(follow, follow_due(follow), note, &found), 0);
	assert_int_equal(found.count, 1);
	end_found(&found);
	end(root);
	close(command);
	follow_free(follow);
}

static void orphans_that_were_inherited_are_found(void **state)
{
	struct follow *follow;
	struct found found = { .count = 0 };
	int command;
	pid_t root;

	(void)state;
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	follow = follow_new(&(struct follow_options){ .descendants = true, .orphans = true });
	root = start("root", 1, &command);
	follow_add(follow, root);
	tell(command);
	for (int i = 0; i < TRIES && !found.count; i++) {
		struct found ignored = { .count = 0 };
		struct follow *watch = follow_new(&(struct follow_options){ .descendants = true });

		/* Not before there is one. */
		follow_add(watch, root);
		follow_search(watch, monotonic_ns(), note, &ignored);
		follow_free(watch);
		if (ignored.count == 0) {
			sleep_ms(10);
			continue;
		}
		end(root);
		search_until(follow, &found, 1);
		assert_int_equal(process_parent(found.pids[0]), getpid());
	}
	end(found.pids[0]);
	close(command);
	follow_free(follow);
	prctl(PR_SET_CHILD_SUBREAPER, 0);
}

static void the_next_search_is_some_time_off(void **state)
{
	struct follow *follow = follow_new(&(struct follow_options){ .descendants = true });
	struct found found = { .count = 0 };
	uint64_t now = monotonic_ns();

	(void)state;
	assert_true(follow_due(follow) <= now);
	follow_search(follow, now, note, &found);
	assert_true(follow_due(follow) > now);
	follow_free(follow);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descendants_are_found_parents_first),
		cmocka_unit_test(descendants_that_are_there_already_are_found_at_once),
		cmocka_unit_test(a_process_that_comes_to_match_is_found_but_not_its_children),
		cmocka_unit_test(a_process_is_told_of_once),
		cmocka_unit_test(orphans_that_were_inherited_are_found),
		cmocka_unit_test(the_next_search_is_some_time_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * Noticing processes that come to belong to those that are followed: real ones, and those of a made-up /proc.
 */
#include <dirent.h>
#include <errno.h>
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
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/clocks/clock.h"
#include "src/linux/proc/follow.h"
#include "src/linux/proc/process.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/open_files.h"
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

/*---- A made-up /proc ----*/

enum { MS = 1000 * 1000, FIRST = 100, PROCESSES_MAX = 8 };

static const uint64_t second = NS_PER_SECOND;

/* The processes that exist; all else is that of this machine while is_on is false. */
static struct {
	bool is_on;
	struct made_up {
		pid_t pid, parent;
		const char *name;
		bool kernel_thread;
	} processes[PROCESSES_MAX];
	size_t count, listed;
	long newest; /* -1: it cannot be read */
	int error;   /* of listings */
	unsigned int listings, reads, open_listings;
	uint64_t cpu_ns, cost_ns; /* of ljspy, which each look at the clock adds to */
	struct dirent entry;
} proc;

static const struct made_up *made_up_process(pid_t pid)
{
	for (size_t i = 0; i < proc.count; i++)
		if (proc.processes[i].pid == pid)
			return &proc.processes[i];
	return NULL;
}

INSTEAD_OF(opendir);
DIR *__wrap_opendir(const char *path)
{
	if (!proc.is_on)
		return __real_opendir(path);
	assert_string_equal(path, "/proc");
	proc.listings++;
	proc.listed = 0;
	errno = proc.error;
	proc.open_listings += !proc.error;
	return proc.error ? NULL : (DIR *)&proc;
}

INSTEAD_OF(readdir);
struct dirent *__wrap_readdir(DIR *directory)
{
	static const char *const others[] = { ".", "..", "0", "self", "loadavg" };
	const size_t count = sizeof(others) / sizeof(others[0]);

	if (directory != (DIR *)&proc)
		return __real_readdir(directory);
	if (proc.listed == count + proc.count)
		return NULL;
	if (proc.listed < count)
		strcpy(proc.entry.d_name, others[proc.listed]);
	else
		snprintf(proc.entry.d_name, sizeof(proc.entry.d_name), "%d",
			 (int)proc.processes[proc.listed - count].pid);
	proc.listed++;
	return &proc.entry;
}

INSTEAD_OF(closedir);
int __wrap_closedir(DIR *directory)
{
	if (directory != (DIR *)&proc)
		return __real_closedir(directory);
	proc.open_listings--;
	return 0;
}

INSTEAD_OF(pread);
ssize_t __wrap_pread(int fd, void *bytes, size_t size, off_t offset)
{
	if (!proc.is_on)
		return __real_pread(fd, bytes, size, offset);
	memset(bytes, '7', size);
	return proc.newest < 0 ? -1 : snprintf(bytes, size, "0.01 0.20 0.30 1/123 %ld\n", proc.newest);
}

INSTEAD_OF(process_parent);
pid_t __wrap_process_parent(pid_t pid)
{
	const struct made_up *process = made_up_process(pid);

	if (!proc.is_on)
		return __real_process_parent(pid);
	proc.reads++;
	return process ? process->parent : 0;
}

static void look_at(struct process_look *look)
{
	const struct made_up *process = made_up_process(look->pid);

	proc.reads++;
	look->error = process ? 0 : -ESRCH;
	if (!process)
		return;
	look->process = (struct process){ .pid = look->pid,
					  .parent_pid = process->parent,
					  .kernel_thread = process->kernel_thread };
	snprintf(look->process.name, sizeof(look->process.name), "%s", process->name);
}

INSTEAD_OF(process_look_at);
size_t __wrap_process_look_at(struct errands **errands, struct process_look *looks, size_t count)
{
	if (!proc.is_on)
		return __real_process_look_at(errands, looks, count);
	for (size_t i = 0; i < count; i++)
		look_at(&looks[i]);
	return count;
}

/* The pattern is any but NULL, and means "wanted". */
INSTEAD_OF(process_matches);
bool __wrap_process_matches(const struct process *process, const regex_t *pattern)
{
	return proc.is_on ? strcmp(process->name, "wanted") == 0 : __real_process_matches(process, pattern);
}

INSTEAD_OF(clock_gettime);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	if (!proc.is_on || clock != CLOCK_THREAD_CPUTIME_ID)
		return __real_clock_gettime(clock, ret_time);
	proc.cpu_ns += proc.cost_ns;
	*ret_time = (struct timespec){ .tv_sec = (time_t)(proc.cpu_ns / second),
				       .tv_nsec = (long)(proc.cpu_ns % second) };
	return 0;
}

static struct found told;
static uint64_t now_ns;

static int make_up(void **state)
{
	(void)state;
	memset(&proc, 0, sizeof(proc));
	proc.is_on = true;
	proc.newest = 1000;
	told.count = 0;
	now_ns = 70 * second;
	return 0;
}

static int real(void **state)
{
	(void)state;
	proc.is_on = false;
	return (int)proc.open_listings;
}

static struct made_up *begin(pid_t pid, pid_t parent, const char *name)
{
	struct made_up *process = &proc.processes[proc.count++];

	*process = (struct made_up){ .pid = pid, .parent = parent, .name = name };
	return process;
}

/* Search once; nothing but this is found, or nothing for 0. */
static void assert_finds(struct follow *follow, pid_t pid)
{
	told.count = 0;
	assert_int_equal(follow_search(follow, now_ns, note, &told), 0);
	assert_int_equal(told.count, pid != 0);
	assert_int_equal(told.count ? told.pids[0] : 0, pid);
}

static struct follow *follow_first(const struct follow_options *options)
{
	struct follow *follow = follow_new(options);

	assert_non_null(follow);
	begin(FIRST, 1, "first");
	assert_int_equal(follow_add(follow, FIRST), 0);
	assert_finds(follow, 0);
	return follow;
}

static void processes_are_listed_when_one_has_started_or_a_second_is_over(void **state)
{
	const unsigned int files = open_files_count();
	struct follow *follow = follow_first(&(struct follow_options){ .descendants = true });

	(void)state;
	assert_int_equal(proc.listings, 1);
	now_ns += 20 * MS;
	assert_finds(follow, 0);
	assert_int_equal(proc.listings, 1);
	proc.newest++;
	assert_finds(follow, 0);
	assert_int_equal(proc.listings, 2);
	assert_finds(follow, 0);
	assert_int_equal(proc.listings, 2);
	now_ns += second - 20 * MS - 1;
	assert_finds(follow, 0);
	assert_int_equal(proc.listings, 2);
	now_ns++;
	assert_finds(follow, 0);
	assert_int_equal(proc.listings, 3);
	/* What cannot be listed is listed the next time. */
	proc.newest++;
	proc.error = EMFILE;
	assert_int_equal(follow_search(follow, now_ns, note, &told), -EMFILE);
	proc.error = 0;
	begin(FIRST + 1, FIRST, "child");
	assert_finds(follow, FIRST + 1);
	assert_int_equal(proc.listings, 5);
	/* So is all, where the newest is not known. */
	proc.newest = -1;
	for (unsigned int i = 1; i <= 3; i++) {
		assert_finds(follow, 0);
		assert_int_equal(proc.listings, 5 + i);
	}
	follow_free(follow);
	assert_int_equal(open_files_count(), files);
}

static void a_new_process_may_get_another_parent_for_a_second(void **state)
{
	struct follow *follow;
	struct made_up *old, *young;

	(void)state;
	old = begin(FIRST + 1, 1, "old");
	follow = follow_first(&(struct follow_options){ .descendants = true });
	young = begin(FIRST + 2, 1, "young");
	proc.newest++;
	now_ns += 100 * MS;
	assert_finds(follow, 0);
	old->parent = FIRST; /* which nobody looks at any more */
	now_ns += second - 1;
	young->parent = FIRST;
	assert_finds(follow, FIRST + 2);
	follow_free(follow);
	/* Afterwards its parent is believed. */
	make_up(state);
	follow = follow_first(&(struct follow_options){ .descendants = true });
	young = begin(FIRST + 2, 1, "young");
	proc.newest++;
	assert_finds(follow, 0);
	young->parent = FIRST;
	now_ns += second;
	assert_finds(follow, 0);
	proc.reads = 0;
	now_ns += 20 * MS;
	assert_finds(follow, 0);
	assert_int_equal(proc.reads, 0);
	follow_free(follow);
}

static void an_id_that_is_given_again_is_another_process(void **state)
{
	struct follow *follow = follow_first(&(struct follow_options){ .descendants = true });

	(void)state;
	for (int i = 0; i < 3; i++) {
		begin(FIRST + 1, FIRST, "child");
		proc.newest++;
		assert_finds(follow, FIRST + 1);
		assert_finds(follow, 0);
		proc.count--;
		proc.newest++;
		assert_finds(follow, 0);
	}
	begin(FIRST + 1, 1, "child");
	proc.newest++;
	assert_finds(follow, 0);
	follow_free(follow);
}

static void parents_are_told_before_children_in_whatever_order_they_are_listed(void **state)
{
	struct follow *follow = follow_new(&(struct follow_options){ .descendants = true });

	(void)state;
	begin(FIRST + 3, FIRST + 2, "grandchild");
	begin(FIRST + 2, FIRST + 1, "child");
	begin(FIRST + 1, FIRST, "parent");
	begin(FIRST + 4, FIRST + 5, "of another one");
	begin(FIRST, 1, "first");
	begin(FIRST + 5, 1, "another");
	assert_int_equal(follow_add(follow, FIRST), 0);
	assert_int_equal(follow_search(follow, now_ns, note, &told), 0);
	assert_int_equal(told.count, 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(told.pids[i], FIRST + 1 + (pid_t)i);
	follow_free(follow);
}

static void ljspy_does_not_follow_itself(void **state)
{
	static const pid_t own[] = { FIRST + 1, FIRST + 2 };
	struct follow *follow = follow_new(&(struct follow_options){
		.pattern = (const regex_t *)own, .own_pids = own, .own_pid_count = 2 });

	(void)state;
	begin(getpid(), 1, "wanted");
	begin(FIRST + 1, 1, "wanted");
	begin(FIRST + 2, 1, "wanted");
	begin(FIRST + 3, 1, "wanted");
	begin(FIRST + 4, FIRST + 3, "child");
	assert_finds(follow, FIRST + 3);
	follow_free(follow);
}

static void a_process_may_come_to_match_within_a_second(void **state)
{
	static const regex_t pattern;
	struct made_up *other, *thread;
	struct follow *follow;

	(void)state;
	other = begin(FIRST + 1, 1, "other");
	thread = begin(FIRST + 2, 1, "wanted");
	thread->kernel_thread = true;
	follow = follow_first(&(struct follow_options){ .pattern = &pattern });
	other->name = "wanted";
	now_ns += 100 * MS;
	proc.newest++;
	assert_finds(follow, 0);
	now_ns += second;
	proc.reads = 0;
	assert_finds(follow, FIRST + 1);
	/* Neither threads of the kernel nor those that are followed are looked at again. */
	assert_int_equal(proc.reads, 1);
	now_ns += second;
	assert_finds(follow, 0);
	assert_int_equal(proc.reads, 1);
	follow_free(follow);
}

static void only_orphans_of_ljspy_are_followed_and_only_if_wanted(void **state)
{
	(void)state;
	for (int orphans = 0; orphans < 2; orphans++) {
		struct follow *follow;

		make_up(state);
		begin(FIRST + 1, getpid(), "orphan");
		begin(FIRST + 2, 1, "of init");
		follow = follow_new(&(struct follow_options){ .orphans = orphans });
		assert_finds(follow, orphans ? FIRST + 1 : 0);
		follow_free(follow);
	}
}

/* At most a hundredth of a CPU. */
static void a_search_that_costs_more_has_the_next_one_later(void **state)
{
	struct follow *follow = follow_first(&(struct follow_options){ .descendants = true });

	(void)state;
	assert_int_equal(follow_due(follow), now_ns + 20 * MS);
	proc.newest++;
	proc.cost_ns = MS / 5;
	assert_finds(follow, 0);
	assert_int_equal(follow_due(follow), now_ns + 20 * MS);
	proc.cost_ns = MS / 2;
	assert_finds(follow, 0);
	assert_int_equal(follow_due(follow), now_ns + 50 * MS);
	/* So has the next listing. */
	now_ns += second;
	proc.cost_ns = 30 * MS;
	proc.listings = 0;
	assert_finds(follow, 0);
	assert_int_equal(proc.listings, 1);
	assert_int_equal(follow_due(follow), now_ns + 3 * second);
	now_ns += 3 * second - 1;
	assert_finds(follow, 0);
	assert_int_equal(proc.listings, 1);
	now_ns++;
	assert_finds(follow, 0);
	assert_int_equal(proc.listings, 2);
	follow_free(follow);
	follow_free(NULL);
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
		cmocka_unit_test_setup_teardown(processes_are_listed_when_one_has_started_or_a_second_is_over,
						make_up, real),
		cmocka_unit_test_setup_teardown(a_new_process_may_get_another_parent_for_a_second, make_up,
						real),
		cmocka_unit_test_setup_teardown(an_id_that_is_given_again_is_another_process, make_up, real),
		cmocka_unit_test_setup_teardown(
			parents_are_told_before_children_in_whatever_order_they_are_listed, make_up, real),
		cmocka_unit_test_setup_teardown(ljspy_does_not_follow_itself, make_up, real),
		cmocka_unit_test_setup_teardown(a_process_may_come_to_match_within_a_second, make_up, real),
		cmocka_unit_test_setup_teardown(only_orphans_of_ljspy_are_followed_and_only_if_wanted,
						make_up, real),
		cmocka_unit_test_setup_teardown(a_search_that_costs_more_has_the_next_one_later, make_up,
						real),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* When processes are looked for, which are read again, and which are told of. Of a /proc that is made up. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/proc/follow.h"
#include "src/linux/proc/process.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_listing.h"
#include "tests/unit/open_files.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
#include "tests/unit/failing_allocation.h"

INSTEAD_OF(pread);
INSTEAD_OF(clock_gettime);
INSTEAD_OF(process_is_in_exec);
INSTEAD_OF(process_parent);
INSTEAD_OF(process_look_at);
INSTEAD_OF(process_reader_waits);

static const uint64_t MS = 1000000, SECOND = 1000000000;
enum { PROCESSES_MAX = 12, READER = 77 };
enum { ROOT = 3000010, CHILD = 3000009, GRANDCHILD = 3000008, OTHER = 3000020, MORE = 3000021 };

/*---- /proc ----*/

static struct made_up_listing *listing;
static struct {
	struct made_up_process {
		pid_t pid, parent;
		const char *name;
		bool kernel_thread, in_exec;
		bool is_stuck; /* whoever reads it waits */
		unsigned int reads;
	} processes[PROCESSES_MAX];
	size_t count;
	const char *newest; /* /proc/loadavg; NULL: cannot be read */
	uint64_t cost_ns;   /* of each listing */
	uint64_t look_ns;   /* that each look takes of a CPU */
	uint64_t serves_ns; /* what the caller takes of a CPU during looks */
	uint64_t served_ns; /* in all */
	bool reader_waits;
} proc;

ssize_t __wrap_pread(int fd, void *bytes, size_t size, off_t offset)
{
	(void)fd;
	assert_int_equal(offset, 0);
	if (!proc.newest)
		return -1;
	assert_in_range(strlen(proc.newest), 0, size);
	memcpy(bytes, proc.newest, strlen(proc.newest));
	return (ssize_t)strlen(proc.newest);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	const uint64_t used_ns = listing->openings * proc.cost_ns + proc.served_ns;

	if (clock != CLOCK_THREAD_CPUTIME_ID)
		return __real_clock_gettime(clock, ret_time);
	*ret_time = (struct timespec){ (time_t)(used_ns / SECOND), (long)(used_ns % SECOND) };
	return 0;
}

/* One that is listed. */
static struct made_up_process *of(pid_t pid)
{
	size_t i = 0;

	while (i < proc.count && proc.processes[i].pid != pid)
		i++;
	assert_in_range(i, 0, PROCESSES_MAX - 1);
	return &proc.processes[i];
}

bool __wrap_process_is_in_exec(pid_t pid)
{
	return of(pid)->in_exec;
}

pid_t __wrap_process_parent(pid_t pid)
{
	of(pid)->reads++;
	return of(pid)->parent;
}

static void look_at(struct process_look *look)
{
	struct made_up_process *process = of(look->pid);

	look->error = process->in_exec ? -EBUSY : 0;
	look->cpu_ns = proc.look_ns;
	if (look->error)
		return;
	process->reads++;
	look->process = (struct process){ .pid = look->pid,
					  .parent_pid = process->parent,
					  .kernel_thread = process->kernel_thread };
	strcpy(look->process.name, process->name);
}

size_t __wrap_process_look_at(struct errands **errands, struct process_look *looks, size_t count)
{
	assert_non_null(*errands);
	proc.served_ns += proc.serves_ns;
	for (size_t i = 0; i < count; i++) {
		if (of(looks[i].pid)->is_stuck) {
			of(looks[i].pid)->reads++;
			looks[i].error = -ETIMEDOUT;
			looks[i].reader = READER;
			proc.reader_waits = true;
			return i;
		}
		look_at(&looks[i]);
	}
	return count;
}

bool __wrap_process_reader_waits(pid_t reader)
{
	assert_int_equal(reader, READER);
	return proc.reader_waits;
}

/*---- What a test does ----*/

static struct follow *follow;
static regex_t pattern;
static pid_t found[PROCESSES_MAX];
static size_t found_count;
static const uint64_t begin_ns = UINT64_C(1000000000000);

static void add(pid_t pid, pid_t parent)
{
	assert_in_range(proc.count, 0, PROCESSES_MAX - 1);
	made_up_listing_add(listing, pid);
	proc.processes[proc.count++] = (struct made_up_process){ .pid = pid, .parent = parent, .name = "" };
}

static void take_away(pid_t pid)
{
	made_up_listing_take_away(listing, pid);
	*of(pid) = proc.processes[--proc.count];
}

static void note(void *context, pid_t pid)
{
	assert_ptr_equal(context, &found);
	assert_in_range(found_count, 0, PROCESSES_MAX - 1);
	found[found_count++] = pid;
}

static int search(uint64_t now_ns)
{
	found_count = 0;
	return follow_search(follow, now_ns, note, &found);
}

/* The search finds these, which end with 0, and no others, in this order. */
static void assert_found(uint64_t now_ns, const pid_t *expected)
{
	assert_int_equal(search(now_ns), 0);
	for (size_t i = 0; i < found_count; i++)
		assert_int_equal(found[i], expected[i]);
	assert_int_equal(expected[found_count], 0);
}

static const pid_t none[] = { 0 }, child[] = { CHILD, 0 }, other[] = { OTHER, 0 };

/* No process has started since the last listing, or some have. */
static void none_has_started(void)
{
	proc.newest = "0.00 0.01 0.05 1/123 3000021\n";
}

static void some_have_started(void)
{
	proc.newest = strcmp(proc.newest, "0.00 0.01 0.05 1/123 22\n") == 0 ? "9.99 0.01 0.05 2/123 23\n"
									    : "0.00 0.01 0.05 1/123 22\n";
}

static void begin_with(const struct follow_options *options)
{
	follow_free(follow);
	follow = follow_new(options);
	assert_non_null(follow);
}

static int begin(void **state)
{
	(void)state;
	memset(&proc, 0, sizeof(proc));
	made_up_listings_begin();
	listing = made_up_listing_put("/proc");
	none_has_started();
	assert_int_equal(process_pattern("sought", &pattern, NULL), 0);
	add(ROOT, 1);
	follow = NULL;
	begin_with(&(struct follow_options){ .descendants = true });
	assert_int_equal(follow_add(follow, ROOT), 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	follow_free(follow);
	regfree(&pattern);
	return 0;
}

/*---- When ----*/

static void a_search_costs_a_hundredth_of_a_processor_at_most(void **state)
{
	(void)state;
	assert_int_equal(follow_due(follow), 0);
	assert_found(begin_ns, none);
	assert_int_equal(follow_due(follow), begin_ns + 20 * MS);
	some_have_started();
	proc.cost_ns = MS;
	assert_found(begin_ns + SECOND / 2, none);
	assert_int_equal(follow_due(follow), begin_ns + SECOND / 2 + 100 * MS);
	/* One that need not list costs little. */
	assert_found(begin_ns + 3 * SECOND / 4, none);
	assert_int_equal(follow_due(follow), begin_ns + 3 * SECOND / 4 + 20 * MS);
}

/* Else a caller that takes many samples meanwhile would find new processes late. */
static void what_the_caller_serves_during_a_search_is_no_cost_of_it(void **state)
{
	(void)state;
	begin_with(&(struct follow_options){ .pattern = &pattern });
	add(OTHER, 1);
	of(OTHER)->is_stuck = true;
	proc.serves_ns = 50 * MS;
	assert_found(begin_ns, none);
	assert_int_equal(proc.served_ns, 50 * MS);
	assert_int_equal(follow_due(follow), begin_ns + 20 * MS);
	of(OTHER)->is_stuck = proc.reader_waits = false;
	proc.look_ns = MS;
	assert_found(begin_ns + SECOND, none);
	assert_int_equal(proc.served_ns, 100 * MS);
	assert_int_equal(follow_due(follow), begin_ns + SECOND + proc.count * 100 * MS);
}

static void all_are_listed_when_one_has_started_and_each_second(void **state)
{
	(void)state;
	assert_found(begin_ns, none);
	assert_int_equal(listing->openings, 1);
	assert_found(begin_ns + SECOND - 1, none);
	assert_int_equal(listing->openings, 1);
	assert_found(begin_ns + SECOND, none);
	assert_int_equal(listing->openings, 2);
	some_have_started();
	assert_found(begin_ns + SECOND + 1, none);
	assert_int_equal(listing->openings, 3);
	/* That one was no reason to be late with the next. */
	assert_found(begin_ns + 2 * SECOND - 1, none);
	assert_int_equal(listing->openings, 3);
	proc.cost_ns = 15 * MS;
	assert_found(begin_ns + 2 * SECOND, none);
	assert_int_equal(listing->openings, 4);
	/* One that takes long is made less often. */
	assert_found(begin_ns + 2 * SECOND + 1500 * MS - 1, none);
	assert_int_equal(listing->openings, 4);
	assert_found(begin_ns + 2 * SECOND + 1500 * MS, none);
	assert_int_equal(listing->openings, 5);
}

static void where_the_newest_is_not_told_each_search_lists_all(void **state)
{
	(void)state;
	proc.newest = NULL;
	for (unsigned int i = 1; i <= 3; i++) {
		assert_found(begin_ns + i, none);
		assert_int_equal(listing->openings, i);
	}
	proc.newest = "";
	assert_found(begin_ns + 4, none);
	proc.newest = "7";
	assert_found(begin_ns + 5, none);
	assert_int_equal(listing->openings, 5);
}

static void what_one_search_could_not_see_the_next_one_finds(void **state)
{
	(void)state;
	add(CHILD, ROOT);
	listing->error = EMFILE;
	assert_int_equal(search(begin_ns), -EMFILE);
	assert_int_equal(found_count, 0);
	assert_int_equal(follow_due(follow), begin_ns + 20 * MS);
	listing->error = 0;
	assert_found(begin_ns + 20 * MS, child);
	/* Whom a listing that broke off lacks is not forgotten, and not found again. */
	listing->reading_error = ENOMEM;
	listing->count--;
	some_have_started();
	assert_int_equal(search(begin_ns + 30 * MS), -ENOMEM);
	assert_int_equal(found_count, 0);
	listing->reading_error = 0;
	listing->count++;
	assert_found(begin_ns + 35 * MS, none);
	add(GRANDCHILD, CHILD);
	some_have_started();
	allocation_fails_after(0);
	assert_int_equal(search(begin_ns + 40 * MS), -ENOMEM);
	assert_true(allocation_failed());
	assert_int_equal(found_count, 0);
	assert_found(begin_ns + 60 * MS, (const pid_t[]){ GRANDCHILD, 0 });
}

static void memory_may_be_short(void **state)
{
	const struct follow_options options = { .descendants = true };

	(void)state;
	allocation_fails_after(0);
	assert_null(follow_new(&options));
	assert_true(allocation_failed());
	begin_with(&options);
	for (size_t count = 0;; count++) {
		int error;

		allocation_fails_after(count);
		error = follow_add(follow, ROOT);
		if (!allocation_failed()) {
			assert_int_equal(error, 0);
			assert_in_range(count, 1, 10);
			break;
		}
		assert_int_equal(error, -ENOMEM);
	}
	/* One that is known already needs none. */
	allocation_fails_after(0);
	assert_int_equal(follow_add(follow, ROOT), 0);
	assert_false(allocation_failed());
}

/*---- Which ----*/

static void descendants_are_told_parents_first_and_once(void **state)
{
	(void)state;
	add(GRANDCHILD, CHILD);
	add(CHILD, ROOT);
	add(OTHER, 1);
	add(MORE, OTHER);
	assert_found(begin_ns, (const pid_t[]){ CHILD, GRANDCHILD, 0 });
	some_have_started();
	assert_found(begin_ns + 20 * MS, none);
	assert_found(begin_ns + 2 * SECOND, none);
}

static void descendants_are_followed_though_their_parents_end(void **state)
{
	(void)state;
	add(CHILD, ROOT);
	assert_found(begin_ns, child);
	take_away(ROOT);
	of(CHILD)->parent = 1;
	add(GRANDCHILD, CHILD);
	some_have_started();
	assert_found(begin_ns + 20 * MS, (const pid_t[]){ GRANDCHILD, 0 });
}

static void without_a_wish_children_are_nobodys(void **state)
{
	(void)state;
	begin_with(&(struct follow_options){ .orphans = true });
	follow_add(follow, ROOT);
	add(CHILD, ROOT);
	add(OTHER, getpid());
	assert_found(begin_ns, other);
	begin_with(&(struct follow_options){ .descendants = true });
	follow_add(follow, ROOT);
	assert_found(begin_ns, child);
}

static void ljspys_own_processes_are_left_out(void **state)
{
	static const pid_t own[] = { CHILD, GRANDCHILD };

	(void)state;
	begin_with(&(struct follow_options){ .descendants = true, .own_pids = own, .own_pid_count = 2 });
	follow_add(follow, ROOT);
	add(CHILD, ROOT);
	add(GRANDCHILD, ROOT);
	add(getpid(), ROOT);
	add(OTHER, ROOT);
	assert_found(begin_ns, other);
}

/* Its number may be another's later. */
static void one_that_has_ended_is_forgotten(void **state)
{
	(void)state;
	add(CHILD, ROOT);
	add(OTHER, 1);
	assert_found(begin_ns, child);
	take_away(CHILD);
	take_away(OTHER);
	some_have_started();
	assert_found(begin_ns + 20 * MS, none);
	add(CHILD, ROOT);
	add(OTHER, 1);
	add(MORE, OTHER);
	some_have_started();
	assert_found(begin_ns + 40 * MS, child);
}

/* It may get another parent, while it is young. */
static void a_new_process_is_read_again_for_a_second(void **state)
{
	(void)state;
	add(OTHER, 1);
	assert_found(begin_ns, none);
	add(MORE, 1);
	some_have_started();
	assert_found(begin_ns + 100 * MS, none);
	assert_found(begin_ns + 200 * MS, none);
	assert_int_equal(of(MORE)->reads, 2);
	assert_int_equal(listing->openings, 2);
	assert_found(begin_ns + 1100 * MS - 1, none);
	assert_int_equal(of(MORE)->reads, 3);
	assert_found(begin_ns + 1100 * MS, none);
	assert_found(begin_ns + 1200 * MS, none);
	assert_found(begin_ns + 3 * SECOND, none);
	assert_int_equal(of(MORE)->reads, 3);
	/* What was there already is not young. */
	assert_int_equal(of(OTHER)->reads, 1);
	add(CHILD, 1);
	some_have_started();
	assert_found(begin_ns + 4 * SECOND, none);
	of(CHILD)->parent = ROOT;
	assert_found(begin_ns + 4 * SECOND + 20 * MS, child);
	/* What is followed is not read any more. */
	assert_int_equal(of(CHILD)->reads, 2);
	assert_found(begin_ns + 4 * SECOND + 40 * MS, none);
	assert_int_equal(of(CHILD)->reads, 2);
}

/* A program may change its name late. */
static void what_may_come_to_match_is_read_again_each_second(void **state)
{
	(void)state;
	begin_with(&(struct follow_options){ .pattern = &pattern });
	add(OTHER, 1);
	add(MORE, 1);
	of(MORE)->kernel_thread = true;
	of(MORE)->name = "sought";
	assert_found(begin_ns, none);
	of(OTHER)->name = "is sought";
	some_have_started();
	assert_found(begin_ns + SECOND - 1, none);
	assert_int_equal(of(OTHER)->reads, 1);
	assert_found(begin_ns + SECOND, other);
	assert_int_equal(of(OTHER)->reads, 2);
	/* Threads of the kernel keep their names, and are not followed. */
	assert_int_equal(of(MORE)->reads, 1);
	/* A young one at once. */
	add(CHILD, ROOT);
	some_have_started();
	assert_found(begin_ns + SECOND + 20 * MS, none);
	of(CHILD)->name = "sought";
	assert_found(begin_ns + SECOND + 40 * MS, child);
}

/* Who reads it waits. */
static void in_the_middle_of_an_execve_nothing_is_read(void **state)
{
	(void)state;
	assert_found(begin_ns, none);
	add(CHILD, ROOT);
	of(CHILD)->in_exec = true;
	some_have_started();
	assert_found(begin_ns + 20 * MS, none);
	assert_found(begin_ns + 10 * SECOND, none);
	assert_int_equal(of(CHILD)->reads, 0);
	of(CHILD)->in_exec = false;
	assert_found(begin_ns + 20 * SECOND, child);
	assert_int_equal(of(CHILD)->reads, 1);
}

/* It is not read again for as long as that would wait as well. */
static void one_that_keeps_its_reader_waiting_is_passed_over(void **state)
{
	pid_t pid = 0;

	(void)state;
	begin_with(&(struct follow_options){ .pattern = &pattern });
	add(CHILD, 1);
	of(CHILD)->is_stuck = true;
	add(OTHER, 1);
	of(OTHER)->name = "sought";
	add(MORE, 1);
	of(MORE)->name = "sought";
	assert_int_equal(search(begin_ns), 0);
	assert_int_equal(follow_unread(follow, &pid), 1);
	assert_int_equal(pid, CHILD);
	/* Those behind it have their turn next. */
	for (unsigned int i = 1; i <= 3; i++)
		search(begin_ns + i * SECOND);
	assert_int_equal(of(CHILD)->reads, 1);
	assert_int_equal(of(OTHER)->reads, 1);
	assert_int_equal(of(MORE)->reads, 1);
	of(CHILD)->is_stuck = proc.reader_waits = false;
	of(CHILD)->name = "sought";
	assert_found(begin_ns + 4 * SECOND, child);
	assert_int_equal(follow_unread(follow, &pid), 0);
}

static void one_that_ends_unread_is_counted(void **state)
{
	pid_t pid;

	(void)state;
	begin_with(&(struct follow_options){ .pattern = &pattern });
	add(CHILD, 1);
	of(CHILD)->is_stuck = true;
	assert_found(begin_ns, none);
	assert_int_equal(follow_unread(follow, &pid), 1);
	take_away(CHILD);
	assert_found(begin_ns + SECOND, none);
	assert_int_equal(follow_unread(follow, &pid), 1);
}

static void a_match_may_have_descendants(void **state)
{
	(void)state;
	begin_with(&(struct follow_options){ .pattern = &pattern, .descendants = true });
	add(CHILD, OTHER);
	add(OTHER, 1);
	of(OTHER)->name = "sought";
	assert_found(begin_ns, (const pid_t[]){ OTHER, CHILD, 0 });
}

/* /proc/loadavg is kept open. */
static void its_file_is_closed_in_the_end(void **state)
{
	const unsigned int with = open_files_count();

	(void)state;
	follow_free(follow);
	follow = NULL;
	assert_int_equal(open_files_count(), with - 1);
	follow_free(follow);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_the_caller_serves_during_a_search_is_no_cost_of_it,
						begin, end),
		cmocka_unit_test_setup_teardown(a_search_costs_a_hundredth_of_a_processor_at_most, begin,
						end),
		cmocka_unit_test_setup_teardown(all_are_listed_when_one_has_started_and_each_second, begin,
						end),
		cmocka_unit_test_setup_teardown(where_the_newest_is_not_told_each_search_lists_all, begin,
						end),
		cmocka_unit_test_setup_teardown(what_one_search_could_not_see_the_next_one_finds, begin, end),
		cmocka_unit_test_setup_teardown(memory_may_be_short, begin, end),
		cmocka_unit_test_setup_teardown(descendants_are_told_parents_first_and_once, begin, end),
		cmocka_unit_test_setup_teardown(descendants_are_followed_though_their_parents_end, begin,
						end),
		cmocka_unit_test_setup_teardown(without_a_wish_children_are_nobodys, begin, end),
		cmocka_unit_test_setup_teardown(ljspys_own_processes_are_left_out, begin, end),
		cmocka_unit_test_setup_teardown(one_that_has_ended_is_forgotten, begin, end),
		cmocka_unit_test_setup_teardown(a_new_process_is_read_again_for_a_second, begin, end),
		cmocka_unit_test_setup_teardown(what_may_come_to_match_is_read_again_each_second, begin, end),
		cmocka_unit_test_setup_teardown(in_the_middle_of_an_execve_nothing_is_read, begin, end),
		cmocka_unit_test_setup_teardown(one_that_keeps_its_reader_waiting_is_passed_over, begin, end),
		cmocka_unit_test_setup_teardown(one_that_ends_unread_is_counted, begin, end),
		cmocka_unit_test_setup_teardown(a_match_may_have_descendants, begin, end),
		cmocka_unit_test_setup_teardown(its_file_is_closed_in_the_end, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

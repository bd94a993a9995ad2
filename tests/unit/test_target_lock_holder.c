/* SPDX-License-Identifier: MIT */
/* Whether who holds a mutex waits for events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/linux/proc/live_memory.h"
#include "src/linux/proc/process.h"
#include "src/linux/threads/lock_holder.h"
#include "src/linux/threads/wait.h"
#include "tests/unit/target_process.h"

struct waiting {
	struct target_process target;
	struct tracer *tracer;
	struct threads *threads;
	struct live_memory *live;
	pid_t pid; /* of the process whose first thread waits */
	uint64_t lock;
	bool is_shared;
};

enum { TRIES = 60000 }; /* a millisecond each: only for what never comes */

/* The process in the namespace that the target has made. */
static pid_t find_child(pid_t pid)
{
	struct process_list list;
	pid_t child = 0;

	assert_int_equal(process_find(".", &list, NULL), 0);
	for (size_t i = 0; i < list.count; i++)
		if (list.processes[i].parent_pid == pid)
			child = list.processes[i].pid;
	process_list_clear(&list);
	return child;
}

/* It is on its way there. */
static bool waits_for_lock(struct waiting *waiting)
{
	struct thread_call call = { .known = false };
	struct wait wait;

	for (int tries = 0; tries < TRIES; tries++, sleep_ms(1)) {
		if (!thread_call_read(waiting->pid, &call) || call.number != SYS_futex)
			continue;
		wait_read(live_memory_memory(waiting->live), &call, &wait);
		waiting->is_shared = wait.is_shared;
		return wait.lock == waiting->lock;
	}
	return false;
}

/* Its first thread waits for the lock. False if the kernel does not let it have a namespace. */
static bool begin(struct waiting *waiting, const char *holder, const char *lock)
{
	const char *const arguments[] = { holder, lock, NULL };
	char line[64];

	*waiting = (struct waiting){ .target = target_process_start("in_turn", arguments) };
	target_process_line(&waiting->target, line, sizeof(line));
	waiting->lock = strtoull(line, NULL, 16);
	waiting->pid = strcmp(lock, "inner") == 0 ? find_child(waiting->target.pid) : waiting->target.pid;
	waiting->tracer = tracer_new();
	waiting->threads = threads_new(waiting->tracer, waiting->pid);
	waiting->live = live_memory_new(waiting->pid);
	if (waiting->lock == 0)
		return false;
	assert_int_equal(threads_refresh(waiting->threads, monotonic_ns(), 0), 0);
	assert_true(waits_for_lock(waiting));
	return true;
}

static void end(struct waiting *waiting)
{
	live_memory_free(waiting->live);
	threads_free(waiting->threads);
	tracer_free(waiting->tracer);
	target_process_end(&waiting->target);
}

static bool awaits_events(const struct waiting *waiting, struct memory *memory, uint64_t lock, bool is_shared)
{
	struct lock_holder holder;

	return lock_holder_find(waiting->threads, waiting->pid, memory, lock, is_shared, &holder) &&
	       lock_holder_awaits_events(waiting->threads, memory, &holder);
}

static bool is_for_turn(const struct waiting *waiting)
{
	return awaits_events(waiting, live_memory_memory(waiting->live), waiting->lock, waiting->is_shared);
}

/* Its holder may still be on its way there. */
static bool becomes_for_turn(const struct waiting *waiting)
{
	for (int tries = 0; tries < TRIES; tries++, sleep_ms(1))
		if (is_for_turn(waiting))
			return true;
	return false;
}

static void a_holder_that_waits_for_events_is_found(void **state)
{
	static const struct {
		const char *holder, *lock;
	} cases[] = {
		{ "events", "own" },    { "poll", "own" },      { "select", "own" },
		{ "events", "robust" }, { "events", "shared" }, { "events", "inner" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct waiting waiting;

		if (begin(&waiting, cases[i].holder, cases[i].lock))
			assert_true(becomes_for_turn(&waiting));
		end(&waiting);
	}
}

static void a_holder_that_does_something_else_has_work(void **state)
{
	static const char *const holders[] = { "sleeps", "works" };

	(void)state;
	for (size_t i = 0; i < sizeof(holders) / sizeof(holders[0]); i++) {
		struct waiting waiting;

		assert_true(begin(&waiting, holders[i], "own"));
		for (int tries = 0; tries < 20; tries++) {
			assert_false(is_for_turn(&waiting));
			sleep_ms(1);
		}
		end(&waiting);
	}
}

/*---- Memory that is no such mutex ----*/

static uint32_t words[5];

static void read_words(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	for (size_t i = 0; i < count; i++) {
		ranges[i].status = ranges[i].address ? MEMORY_OK : MEMORY_UNMAPPED;
		if (ranges[i].address)
			memcpy(ranges[i].copy, words, ranges[i].length);
	}
}

static uint32_t read_owner(const struct waiting *waiting)
{
	uint32_t owner;

	assert_int_equal(
		memory_read(live_memory_memory(waiting->live), waiting->lock + 8, &owner, sizeof(owner)),
		MEMORY_OK);
	return owner;
}

static void what_says_no_owner_is_not_known(void **state)
{
	struct memory memory = { .read_ranges = read_words };
	struct waiting waiting;
	uint32_t owner;

	assert_true(begin(&waiting, "events", "own"));
	assert_true(becomes_for_turn(&waiting));
	owner = read_owner(&waiting);
	const struct {
		uint32_t words[5];
		uint64_t lock;
		bool is_known;
	} cases[] = {
		{ { 2, 0, owner, 1 }, 8, true },
		{ { 2, 3, owner, 2, 1 }, 8, true }, /* recursive */
		{ { owner | FUTEX_WAITERS, 1, owner, 1, 0x10 }, 8, true },
		{ { 2, 0, owner, 1 }, 0, false },                       /* unreadable */
		{ { 2, 0, 0, 1 }, 8, false },                           /* nobody */
		{ { 0, 0, owner, 1 }, 8, false },                       /* free */
		{ { 0x80000010, 0, owner, 1 }, 8, false },              /* musl's */
		{ { 2, 0, owner, 0 }, 8, false },                       /* no user: a lock of malloc() */
		{ { 2, 0, 1, 0 }, 8, false },                           /* the same, as it mostly is */
		{ { 2, 0, owner, 1, 0x400 }, 8, false },                /* no kind of glibc's */
		{ { owner | FUTEX_WAITERS, 1, owner, 1 }, 8, false },   /* the lock word of another kind */
		{ { 2, 0, owner, 1, 0x20 }, 8, false },                 /* the same */
		{ { owner | FUTEX_WAITERS, 1, 0, 1, 0x10 }, 8, false }, /* nobody */
		{ { 2, 0, owner | FUTEX_WAITERS, 1 }, 8, false },       /* no id */
		{ { 2, 0, (uint32_t)waiting.pid, 1 }, 8, false },       /* itself, which waits for a lock */
		{ { 2, 0, (uint32_t)getpid(), 1 }, 8, false },          /* this test, which runs */
		{ { 2, 0, FUTEX_TID_MASK, 1 }, 8, false },              /* nobody's id */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memcpy(words, cases[i].words, sizeof(words));
		assert_int_equal(awaits_events(&waiting, &memory, cases[i].lock, true), cases[i].is_known);
	}
	end(&waiting);
}

/* Its id is no more than a number there, unless the lock is shared. */
static void an_owner_elsewhere_is_of_shared_locks_only(void **state)
{
	struct memory memory = { .read_ranges = read_words };
	struct waiting waiting, other;

	(void)state;
	assert_true(begin(&waiting, "works", "own"));
	assert_true(begin(&other, "events", "own"));
	assert_true(becomes_for_turn(&other));
	assert_false(waiting.is_shared);
	memcpy(words, (const uint32_t[5]){ 2, 0, read_owner(&other), 1 }, sizeof(words));
	assert_true(awaits_events(&waiting, &memory, 8, true));
	assert_false(awaits_events(&waiting, &memory, 8, false));
	end(&other);
	end(&waiting);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_holder_that_waits_for_events_is_found),
		cmocka_unit_test(a_holder_that_does_something_else_has_work),
		cmocka_unit_test(what_says_no_owner_is_not_known),
		cmocka_unit_test(an_owner_elsewhere_is_of_shared_locks_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

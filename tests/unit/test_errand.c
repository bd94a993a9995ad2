/* SPDX-License-Identifier: MIT */
/* What may never come back is left to itself, and who waits looks after others meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory/errand.h"
#include "memory/slow_file.h"
#include "tests/unit/instead_of.h"

enum { MS = 1000 * 1000, PATIENCE_MS = 10 * 1000 };

INSTEAD_OF(free);
INSTEAD_OF(pthread_create);
INSTEAD_OF(sem_post);

static struct {
	pthread_t thread;
	bool may_wait, goes_on;
	int in_time; /* the caller lets the errand end, by a byte to here, just before it gives up; 0: not */
	atomic_uint meanwhile, asked; /* how often */
} caller;
static atomic_bool helper_is_done;
static unsigned helper_waits;    /* for a CPU, to say that it is done, until the caller had so much to do */
static unsigned caller_waits_ms; /* the same, to wait for it */
static bool no_threads;
static void *_Atomic errands_to_free; /* NULL once they are freed */

int __wrap_sem_post(sem_t *semaphore)
{
	int result;

	if (pthread_equal(pthread_self(), caller.thread)) {
		result = __real_sem_post(semaphore);
		usleep(caller_waits_ms * 1000);
		return result;
	}
	helper_is_done = true;
	for (int i = 0; i < PATIENCE_MS && caller.meanwhile < helper_waits; i++)
		usleep(1000);
	return __real_sem_post(semaphore);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
			  void *context)
{
	return no_threads ? EAGAIN : __real_pthread_create(thread, attributes, run, context);
}

void __wrap_free(void *block)
{
	void *expected = block;

	if (block)
		atomic_compare_exchange_strong(&errands_to_free, &expected, NULL);
	__real_free(block);
}

static bool may_wait(void *context)
{
	(void)context;
	caller.asked++;
	return caller.may_wait;
}

static bool meanwhile(void *context)
{
	(void)context;
	caller.meanwhile++;
	if (caller.in_time) {
		assert_int_equal(write(caller.in_time, "t", 1), 1);
		while (!helper_is_done)
			usleep(1000);
	}
	return caller.goes_on;
}

/* Reads a byte of a pipe that nobody may ever write to. */
struct arguments {
	int from, to, undone;
	char byte;
};

static void work(void *context)
{
	struct arguments *arguments = context;

	if (read(arguments->from, &arguments->byte, 1) != 1)
		arguments->byte = 'x';
}

static void undo(void *context)
{
	const struct arguments *arguments = context;

	assert_int_equal(write(arguments->undone, &arguments->byte, 1), 1);
}

static struct errands *begin(struct arguments *ret_arguments)
{
	const struct errands_waiter waiter = { .may_wait = may_wait, .meanwhile = meanwhile };
	struct errands *errands = errands_new();
	int pipes[2][2];

	assert_non_null(errands);
	errands_wait_as(errands, &waiter);
	assert_int_equal(pipe(pipes[0]) + pipe(pipes[1]), 0);
	*ret_arguments = (struct arguments){ .from = pipes[0][0], .to = pipes[0][1], .undone = pipes[1][1] };
	ret_arguments->byte = (char)pipes[1][0]; /* kept for end() */
	caller = (__typeof__(caller)){ .thread = pthread_self(), .may_wait = true, .goes_on = true };
	helper_is_done = false;
	helper_waits = caller_waits_ms = 0;
	return errands;
}

/* Nothing uses them any more. */
static void end(struct errands *errands)
{
	errands_to_free = errands;
	errands_free(errands);
	assert_null(errands_to_free);
}

static void an_errand_brings_back_what_it_found(void **state)
{
	struct arguments arguments;
	struct errands *errands = begin(&arguments);

	(void)state;
	assert_int_equal(write(arguments.to, "a", 1), 1);
	assert_true(errands_run(errands, work, undo, &arguments, sizeof(arguments)));
	assert_int_equal(arguments.byte, 'a');
	end(errands);
}

/* What was not read would be taken for what is not there. */
static void who_has_no_memory_for_a_helper_does_it_himself(void **state)
{
	struct arguments arguments;
	struct errands *errands = begin(&arguments);

	(void)state;
	assert_int_equal(write(arguments.to, "ab", 2), 2);
	no_threads = true;
	assert_true(errands_run(errands, work, undo, &arguments, sizeof(arguments)));
	assert_int_equal(arguments.byte, 'a');
	caller.may_wait = false;
	assert_false(errands_run(errands, work, undo, &arguments, sizeof(arguments)));
	assert_int_equal(arguments.byte, 'a');
	no_threads = false;
	end(errands);
}

/* Which signals a thread blocks. */
static void look_at_signals(void *context)
{
	sigset_t *blocked = context;

	pthread_sigmask(SIG_BLOCK, NULL, blocked);
}

/* Handlers of ljspy's run in the threads that wait for them, not in a helper. */
static void signals_are_left_to_who_waits(void **state)
{
	static const int some[] = { SIGINT, SIGTERM, SIGCHLD, SIGALRM, SIGUSR1, SIGPIPE };
	struct arguments arguments;
	struct errands *errands = begin(&arguments);
	sigset_t of_helper, of_caller;

	(void)state;
	sigemptyset(&of_helper);
	assert_true(errands_run(errands, look_at_signals, NULL, &of_helper, sizeof(of_helper)));
	look_at_signals(&of_caller);
	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		assert_true(sigismember(&of_helper, some[i]));
		assert_false(sigismember(&of_caller, some[i]));
	}
	end(errands);
}

static void who_holds_somebody_does_without(void **state)
{
	struct arguments arguments;
	struct errands *errands = begin(&arguments);

	(void)state;
	caller.may_wait = false;
	assert_int_equal(write(arguments.to, "a", 1), 1);
	assert_false(errands_run(errands, work, undo, &arguments, sizeof(arguments)));
	end(errands);
}

static void who_works_for_long_serves_others_between(void **state)
{
	struct arguments arguments;
	struct errands *errands = begin(&arguments);

	(void)state;
	assert_true(errands_pause(errands));
	assert_int_equal(caller.meanwhile, 1);
	/* Not while somebody is held. */
	caller.may_wait = false;
	caller.goes_on = false;
	assert_true(errands_pause(errands));
	assert_int_equal(caller.meanwhile, 1);
	/* Who wants no more of it says so. */
	caller.may_wait = true;
	assert_false(errands_pause(errands));
	assert_int_equal(caller.meanwhile, 2);
	errands_wait_as(errands, NULL);
	assert_true(errands_pause(errands));
	assert_true(errands_pause(NULL));
	assert_int_equal(caller.meanwhile, 2);
	end(errands);
}

static void what_does_not_come_back_is_left(void **state)
{
	struct arguments arguments;
	struct errands *errands = begin(&arguments);
	int undone = (unsigned char)arguments.byte;
	char byte;

	(void)state;
	assert_false(errands_run(errands, work, undo, &arguments, sizeof(arguments)));
	assert_in_range(caller.meanwhile, 2, 10000);
	caller.goes_on = false;
	assert_false(errands_run(errands, work, undo, &arguments, sizeof(arguments)));
	/* Two are out: for a third there is nobody, until one is back. So nobody is waited for. */
	caller.meanwhile = 0;
	assert_false(errands_run(errands, work, undo, &arguments, sizeof(arguments)));
	assert_int_equal(caller.meanwhile, 0);
	assert_int_equal(write(arguments.to, "abc", 3), 3);
	for (int i = 0; i < 2; i++)
		assert_int_equal(read(undone, &byte, 1), 1);
	caller.goes_on = true;
	while (!errands_run(errands, work, undo, &arguments, sizeof(arguments)))
		usleep(1000);
	assert_int_equal(arguments.byte, 'c');
	errands_free(errands);
}

/* Many errands, none of which takes too long by itself, may not take too long together. */
static void they_take_no_longer_than_they_are_allowed(void **state)
{
	struct arguments arguments;
	struct errands *errands = begin(&arguments);
	uint64_t left_ns = 5 * MS;
	unsigned int done = 0;

	(void)state;
	caller.in_time = arguments.to; /* each takes a millisecond at least */
	errands_allow(errands, &left_ns);
	while (errands_run(errands, work, undo, &arguments, sizeof(arguments))) {
		assert_in_range(done, 0, 100);
		done++;
		helper_is_done = false;
	}
	assert_true(done >= 1);
	assert_int_equal(left_ns, 0);
	caller.meanwhile = 0;
	assert_false(errands_run(errands, work, undo, &arguments, sizeof(arguments)));
	assert_int_equal(caller.meanwhile, 0); /* nobody waits for what is not begun */
	left_ns = UINT64_MAX;
	assert_true(errands_run(errands, work, undo, &arguments, sizeof(arguments)));
	assert_true(left_ns == UINT64_MAX);
	end(errands);
}

/* It is left long before the time of a single one is over, and uses up what two have together. */
static void one_that_does_not_come_back_uses_up_what_they_are_allowed(void **state)
{
	struct arguments arguments, of_other;
	struct errands *errands = begin(&arguments), *other = begin(&of_other);
	const int undone = (unsigned char)arguments.byte;
	uint64_t left_ns = 5 * MS;
	char byte;

	(void)state;
	errands_allow(errands, &left_ns);
	errands_allow(other, &left_ns);
	assert_false(errands_run(errands, work, undo, &arguments, sizeof(arguments)));
	assert_in_range(caller.meanwhile, 1, 4);
	assert_int_equal(left_ns, 0);
	caller.meanwhile = 0;
	assert_int_equal(write(of_other.to, "a", 1), 1);
	assert_false(errands_run(other, work, undo, &of_other, sizeof(of_other)));
	assert_int_equal(caller.meanwhile, 0);
	errands_allow(other, NULL);
	assert_true(errands_run(other, work, undo, &of_other, sizeof(of_other)));
	assert_int_equal(write(arguments.to, "a", 1), 1);
	assert_int_equal(read(undone, &byte, 1), 1);
	errands_free(errands);
	end(other);
}

/* One that is done just when the caller gives up has been done all the same. */
static void an_errand_that_is_done_in_time_counts(void **state)
{
	struct arguments arguments;
	struct errands *errands = begin(&arguments);

	(void)state;
	caller.in_time = arguments.to;
	caller.goes_on = false;
	assert_true(errands_run(errands, work, undo, &arguments, sizeof(arguments)));
	assert_int_equal(arguments.byte, 't');
	assert_int_equal(caller.meanwhile, 1);
	/* Its helper is there for the next one. */
	caller.in_time = 0;
	assert_int_equal(write(arguments.to, "a", 1), 1);
	caller.goes_on = true;
	assert_true(errands_run(errands, work, undo, &arguments, sizeof(arguments)));
	assert_int_equal(arguments.byte, 'a');
	end(errands);
}

/* A helper may have to wait for a CPU before it can say so. */
static void who_gives_up_on_one_that_is_done_serves_others_until_it_says_so(void **state)
{
	struct arguments arguments;
	struct errands *errands = begin(&arguments);

	(void)state;
	caller.in_time = arguments.to;
	caller.goes_on = false;
	helper_waits = 4;
	assert_true(errands_run(errands, work, undo, &arguments, sizeof(arguments)));
	assert_int_equal(arguments.byte, 't');
	assert_true(caller.meanwhile >= helper_waits);
	end(errands);
}

static void who_holds_somebody_waits_for_no_helper_that_is_done(void **state)
{
	struct arguments arguments;
	struct errands *errands = begin(&arguments);
	const int undone = (unsigned char)arguments.byte;
	char byte;

	(void)state;
	caller.may_wait = false;
	caller_waits_ms = 100;
	errands_finish(errands, undo, &arguments, sizeof(arguments));
	assert_int_equal(read(undone, &byte, 1), 1);
	assert_false(helper_is_done);
	assert_int_equal(caller.meanwhile, 0);
	errands_free(errands);
}

static void one_that_comes_back_later_frees_what_is_left(void **state)
{
	struct arguments arguments;
	struct errands *errands = begin(&arguments);
	int undone = (unsigned char)arguments.byte;
	char byte;

	(void)state;
	caller.goes_on = false;
	assert_false(errands_run(errands, work, undo, &arguments, sizeof(arguments)));
	/* Its helper still needs them. */
	errands_to_free = errands;
	errands_free(errands);
	assert_non_null(errands_to_free);
	assert_int_equal(write(arguments.to, "a", 1), 1);
	assert_int_equal(read(undone, &byte, 1), 1);
	assert_int_equal(byte, 'a');
	while (errands_to_free)
		usleep(1000);
}

static unsigned int count_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned int count = 0;

	assert_non_null(maps);
	for (int c; (c = getc(maps)) != EOF;)
		count += c == '\n';
	fclose(maps);
	return count;
}

/* Each helper has a stack, which goes with it. */
static void helpers_that_are_left_go_in_the_end(void **state)
{
	enum { HELPERS = 40 };
	struct arguments arguments;
	struct errands *errands = begin(&arguments);
	unsigned int before = 0;
	int undone = (unsigned char)arguments.byte;
	char byte;

	(void)state;
	caller.goes_on = false;
	for (unsigned int i = 0; i < 2 * HELPERS; i++) {
		/* Until one that was left before is back, there may be nobody. */
		for (caller.meanwhile = 0; caller.meanwhile == 0; usleep(100))
			assert_false(errands_run(errands, work, undo, &arguments, sizeof(arguments)));
		assert_int_equal(write(arguments.to, "a", 1), 1);
		assert_int_equal(read(undone, &byte, 1), 1);
		if (i == HELPERS)
			before = count_mappings();
	}
	assert_in_range(count_mappings(), 1, before + HELPERS / 2);
	errands_free(errands);
}

/* Nothing of that waits: there is no helper, and nobody to ask. */
static void who_has_no_errands_works_himself(void **state)
{
	struct arguments arguments;
	struct errands *errands = begin(&arguments);

	(void)state;
	caller.may_wait = false;
	assert_int_equal(write(arguments.to, "ab", 2), 2);
	assert_true(errands_run(NULL, work, undo, &arguments, sizeof(arguments)));
	assert_int_equal(arguments.byte, 'a');
	/* At first, and again, one always waits. */
	assert_false(errands_may_wait(errands));
	errands_wait_as(errands, NULL);
	assert_true(errands_may_wait(errands));
	assert_true(errands_run(errands, work, undo, &arguments, sizeof(arguments)));
	assert_int_equal(arguments.byte, 'b');
	assert_int_equal(caller.meanwhile, 0);
	errands_free(NULL);
	end(errands);
}

static void a_child_works(struct errands *errands, struct arguments arguments)
{
	pid_t child = fork();
	int own[2], status;

	if (child == 0) {
		bool done = pipe(own) == 0 && write(own[1], "c", 1) == 1;

		alarm(60);
		caller.goes_on = true;
		arguments.from = own[0];
		done = done && errands_run(errands, work, undo, &arguments, sizeof(arguments));
		errands_free(errands);
		_exit(done && arguments.byte == 'c' ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* The child of a fork() has errands of its own, whatever its parent's do. */
static void a_child_has_a_helper_of_its_own(void **state)
{
	struct arguments arguments;
	struct errands *errands = begin(&arguments);

	(void)state;
	assert_int_equal(write(arguments.to, "a", 1), 1);
	assert_true(errands_run(errands, work, undo, &arguments, sizeof(arguments)));
	a_child_works(errands, arguments);
	caller.goes_on = false;
	for (int i = 0; i < 2; i++)
		assert_false(errands_run(errands, work, undo, &arguments, sizeof(arguments)));
	a_child_works(errands, arguments);
	assert_int_equal(write(arguments.to, "ab", 2), 2);
	errands_free(errands);
}

static void files_are_read_by_it(void **state)
{
	struct arguments arguments;
	struct errands *errands = begin(&arguments);
	struct stat status;
	char bytes[4];
	int fd = slow_open(errands, "/proc/self/exe");

	(void)state;
	assert_true(fd >= 0);
	assert_true(slow_fstat(errands, fd, &status) && S_ISREG(status.st_mode));
	assert_true(slow_pread(errands, fd, bytes, sizeof(bytes), 0));
	assert_memory_equal(bytes, "\177ELF", 4);
	slow_close(errands, fd);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_true(slow_stat(errands, "/", &status) && S_ISDIR(status.st_mode));
	assert_false(slow_stat(errands, "/nowhere", &status));
	caller.may_wait = false;
	assert_false(slow_stat(errands, "/", &status));
	end(errands);
}

/* Where others want the CPUs, each errand waits for its turn, and who awaits it for another one. */
static void the_beginning_of_a_file_takes_one_errand(void **state)
{
	struct arguments arguments;
	struct errands *errands = begin(&arguments);
	char path[PATH_MAX + 1], bytes[SLOW_HEAD_MAX + 1] = "as ever";

	(void)state;
	caller.asked = 0;
	assert_false(slow_head(errands, "/nowhere", bytes, 4));
	assert_int_equal(errno, ENOENT);
	assert_false(slow_head(errands, "/", bytes, 4));
	assert_int_equal(errno, EISDIR);
	assert_false(slow_head(errands, "/dev/null", bytes, 4));
	assert_int_equal(errno, EIO);
	assert_int_equal(caller.asked, 3);
	assert_false(slow_head(errands, "/proc/self/exe", bytes, SLOW_HEAD_MAX + 1));
	memset(path, '/', sizeof(path));
	path[PATH_MAX] = '\0';
	assert_false(slow_head(errands, path, bytes, 4));
	caller.may_wait = false;
	assert_false(slow_head(errands, "/proc/self/exe", bytes, 4));
	assert_int_equal(errno, ETIMEDOUT);
	assert_string_equal(bytes, "as ever");
	caller.may_wait = true;
	caller.asked = 0;
	assert_true(slow_head(errands, "/proc/self/exe", bytes, 4));
	assert_int_equal(caller.asked, 1);
	assert_memory_equal(bytes, "\177ELFver", 8);
	end(errands);
}

/* Those that close a file without being awaited may be under way for a moment more. */
static int open_some_file(struct errands *errands)
{
	int fd;

	while ((fd = slow_open(errands, "/proc/self/exe")) < 0)
		usleep(1000);
	caller.meanwhile = 0;
	return fd;
}

static void await_closed(int fd)
{
	while (fcntl(fd, F_GETFD) >= 0)
		usleep(1000);
}

/* Without time, too: nobody else would. */
static void a_file_is_closed_in_any_case(void **state)
{
	struct arguments arguments;
	struct errands *errands = begin(&arguments);
	uint64_t left_ns = UINT64_MAX;
	int fd = open_some_file(errands);

	(void)state;
	errands_allow(errands, &left_ns);
	left_ns = 0;
	slow_close(errands, fd);
	await_closed(fd);
	assert_int_equal(caller.meanwhile, 0);
	left_ns = UINT64_MAX;
	fd = open_some_file(errands);
	caller.may_wait = false;
	slow_close(errands, fd);
	await_closed(fd);
	assert_int_equal(caller.meanwhile, 0);
	/* Also where as many as may be are under way, and do not come back. */
	caller.may_wait = true;
	fd = open_some_file(errands);
	caller.goes_on = false;
	for (int i = 0; i < 2; i++)
		assert_false(errands_run(errands, work, undo, &arguments, sizeof(arguments)));
	slow_close(errands, fd);
	await_closed(fd);
	assert_int_equal(write(arguments.to, "ab", 2), 2);
	errands_free(errands);
}

/* A program that was started without a standard input opens its first file as number 0. */
static void a_file_may_have_the_number_of_standard_input(void **state)
{
	struct arguments arguments;
	struct errands *errands = begin(&arguments);
	int input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), fd;

	(void)state;
	assert_true(input > STDERR_FILENO);
	close(STDIN_FILENO);
	assert_int_equal(slow_open(errands, "/nowhere"), -1);
	fd = slow_open(errands, "/proc/self/exe");
	assert_int_equal(fd, STDIN_FILENO);
	slow_close(errands, fd);
	assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), -1);
	assert_int_equal(dup2(input, STDIN_FILENO), STDIN_FILENO);
	close(input);
	end(errands);
}

static void what_a_file_lacks_is_told(void **state)
{
	struct arguments arguments;
	struct errands *errands = begin(&arguments);
	struct stat status;
	char path[PATH_MAX + 1], bytes[8] = "as ever";
	int fd = slow_open(errands, "/proc/self/exe");

	(void)state;
	assert_true(slow_fstat(errands, fd, &status));
	assert_true(slow_pread(errands, fd, bytes, 1, (uint64_t)status.st_size - 1));
	strcpy(bytes, "as ever");
	assert_false(slow_pread(errands, fd, bytes, 2, (uint64_t)status.st_size - 1));
	assert_false(slow_pread(errands, fd, bytes, SLOW_READ_MAX + 1, 0));
	assert_string_equal(bytes, "as ever");
	slow_close(errands, fd);
	assert_false(slow_fstat(errands, fd, &status));
	assert_int_equal(errno, EBADF);
	assert_int_equal(slow_open(errands, "/nowhere"), -1);
	assert_int_equal(errno, ENOENT);
	/* A path of one byte less is only unknown. */
	memset(path, '/', sizeof(path));
	for (size_t length = PATH_MAX - 1; length <= PATH_MAX; length++) {
		path[length - 1] = 'x';
		path[length] = '\0';
		assert_int_equal(slow_open(errands, path), -1);
		assert_int_equal(errno, length < PATH_MAX ? ENOENT : ENAMETOOLONG);
		assert_false(slow_stat(errands, path, &status));
		assert_int_equal(errno, length < PATH_MAX ? ENOENT : ENAMETOOLONG);
		path[length - 1] = path[length] = '/';
	}
	end(errands);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_errand_brings_back_what_it_found),
		cmocka_unit_test(who_has_no_memory_for_a_helper_does_it_himself),
		cmocka_unit_test(signals_are_left_to_who_waits),
		cmocka_unit_test(who_holds_somebody_does_without),
		cmocka_unit_test(who_works_for_long_serves_others_between),
		cmocka_unit_test(what_does_not_come_back_is_left),
		cmocka_unit_test(they_take_no_longer_than_they_are_allowed),
		cmocka_unit_test(one_that_does_not_come_back_uses_up_what_they_are_allowed),
		cmocka_unit_test(an_errand_that_is_done_in_time_counts),
		cmocka_unit_test(who_gives_up_on_one_that_is_done_serves_others_until_it_says_so),
		cmocka_unit_test(who_holds_somebody_waits_for_no_helper_that_is_done),
		cmocka_unit_test(one_that_comes_back_later_frees_what_is_left),
		cmocka_unit_test(helpers_that_are_left_go_in_the_end),
		cmocka_unit_test(who_has_no_errands_works_himself),
		cmocka_unit_test(a_child_has_a_helper_of_its_own),
		cmocka_unit_test(files_are_read_by_it),
		cmocka_unit_test(the_beginning_of_a_file_takes_one_errand),
		cmocka_unit_test(a_file_is_closed_in_any_case),
		cmocka_unit_test(a_file_may_have_the_number_of_standard_input),
		cmocka_unit_test(what_a_file_lacks_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* What may never come back is left to itself, and who waits looks after others meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <unistd.h>

#include "memory/errand.h"
#include "memory/slow_file.h"

static struct {
	bool may_wait, goes_on;
	unsigned meanwhile;
} caller;

static bool may_wait(void *context)
{
	(void)context;
	return caller.may_wait;
}

static bool meanwhile(void *context)
{
	(void)context;
	caller.meanwhile++;
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
	caller.may_wait = caller.goes_on = true;
	caller.meanwhile = 0;
	return errands;
}

static void an_errand_brings_back_what_it_found(void **state)
{
	struct arguments arguments;
	struct errands *errands = begin(&arguments);

	(void)state;
	assert_int_equal(write(arguments.to, "a", 1), 1);
	assert_true(errands_run(errands, work, undo, &arguments, sizeof(arguments)));
	assert_int_equal(arguments.byte, 'a');
	errands_free(errands);
}

static void who_holds_somebody_does_without(void **state)
{
	struct arguments arguments;
	struct errands *errands = begin(&arguments);

	(void)state;
	caller.may_wait = false;
	assert_int_equal(write(arguments.to, "a", 1), 1);
	assert_false(errands_run(errands, work, undo, &arguments, sizeof(arguments)));
	errands_free(errands);
}

static void what_does_not_come_back_is_left(void **state)
{
	struct arguments arguments;
	struct errands *errands = begin(&arguments);
	int undone = arguments.byte;
	char byte;

	(void)state;
	assert_false(errands_run(errands, work, undo, &arguments, sizeof(arguments)));
	assert_in_range(caller.meanwhile, 2, 10000);
	caller.goes_on = false;
	assert_false(errands_run(errands, work, undo, &arguments, sizeof(arguments)));
	/* Two are out: for a third there is nobody, until one is back. */
	assert_int_equal(write(arguments.to, "abc", 3), 3);
	for (int i = 0; i < 2; i++)
		assert_int_equal(read(undone, &byte, 1), 1);
	caller.goes_on = true;
	while (!errands_run(errands, work, undo, &arguments, sizeof(arguments)))
		usleep(1000);
	assert_int_equal(arguments.byte, 'c');
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
	assert_false(slow_stat(errands, "/nowhere", &status));
	caller.may_wait = false;
	assert_false(slow_stat(errands, "/", &status));
	errands_free(errands);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_errand_brings_back_what_it_found),
		cmocka_unit_test(who_holds_somebody_does_without),
		cmocka_unit_test(what_does_not_come_back_is_left),
		cmocka_unit_test(files_are_read_by_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * bounded_files: no file gets larger than so many bytes, as on a full disk. What fits is written, and the
 * rest fails with EFBIG. A test that bounds files has unbound_files() in its teardown: an assertion that
 * fails meanwhile does not leave the bound to other tests.
 */
#ifndef LJSPY_BOUNDED_FILES_H
#define LJSPY_BOUNDED_FILES_H

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>

static struct {
	bool are_bounded;
	struct rlimit limit; /* the others are from before */
	void (*handler)(int);
} bounded_files;

/* Until unbound_files(). */
static inline void bound_files(rlim_t bytes)
{
	struct rlimit limit;

	assert_false(bounded_files.are_bounded);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &bounded_files.limit), 0);
	bounded_files.handler = signal(SIGXFSZ, SIG_IGN); /* as ljspy does */
	assert_true(bounded_files.handler != SIG_ERR);
	limit = bounded_files.limit;
	limit.rlim_cur = bytes;
	bounded_files.are_bounded = true;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Let them have the size that they might have before, if they are bounded. */
static inline void unbound_files(void)
{
	if (!bounded_files.are_bounded)
		return;
	bounded_files.are_bounded = false;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &bounded_files.limit), 0);
	signal(SIGXFSZ, bounded_files.handler);
}

/* For cmocka: a teardown. */
static inline int unbound_files_after(void **state)
{
	(void)state;
	unbound_files();
	return 0;
}

#endif

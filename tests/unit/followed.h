/* SPDX-License-Identifier: MIT */
/* followed: a search for new processes that finds those that the test says. */
#ifndef LJSPY_FOLLOWED_H
#define LJSPY_FOLLOWED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "src/linux/proc/follow.h"
#include "tests/unit/instead_of.h"

enum { FOLLOWED_MAX = 8 };

static struct {
	struct follow_options options;
	unsigned int adds, searches;
	unsigned int made;                                  /* and not freed */
	int error;                                          /* of an add */
	pid_t finds;                                        /* once; 0: none */
	void (*search)(follow_found *found, void *context); /* NULL: it finds no others */
	uint64_t due_ns;
	pid_t pids[FOLLOWED_MAX]; /* what is followed */
	size_t count;
} followed;

static void followed_begin(void)
{
	memset(&followed, 0, sizeof(followed));
}

static void followed_note(pid_t pid)
{
	assert_in_range(followed.count, 0, FOLLOWED_MAX - 1);
	followed.pids[followed.count++] = pid;
}

INSTEAD_OF(follow_new);
struct follow *__wrap_follow_new(const struct follow_options *options)
{
	followed.made++;
	followed.count = 0;
	followed.options = *options;
	return (struct follow *)&followed;
}

INSTEAD_OF(follow_free);
void __wrap_follow_free(struct follow *follow)
{
	followed.made -= follow != NULL;
}

INSTEAD_OF(follow_add);
int __wrap_follow_add(struct follow *follow, pid_t pid)
{
	(void)follow;
	followed.adds++;
	if (!followed.error)
		followed_note(pid);
	return followed.error;
}

INSTEAD_OF(follow_due);
uint64_t __wrap_follow_due(const struct follow *follow)
{
	(void)follow;
	return followed.due_ns;
}

INSTEAD_OF(follow_search);
int __wrap_follow_search(struct follow *follow, uint64_t now_ns, follow_found *found, void *context)
{
	(void)follow, (void)now_ns;
	followed.searches++;
	if (followed.finds)
		found(context, followed.finds);
	followed.finds = 0;
	if (followed.search)
		followed.search(found, context);
	return 0;
}

#endif

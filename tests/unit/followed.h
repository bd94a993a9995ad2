/* SPDX-License-Identifier: MIT */
/* followed: a search for new processes that finds the one that the test says, once. */
#ifndef LJSPY_FOLLOWED_H
#define LJSPY_FOLLOWED_H

#include <stdint.h>
#include <string.h>

#include "src/linux/proc/follow.h"
#include "tests/unit/instead_of.h"

static struct {
	struct follow_options options;
	unsigned int adds, searches;
	unsigned int made; /* and not freed */
	int error;         /* of an add */
	pid_t finds;       /* 0: none */
	uint64_t due_ns;
} followed;

static void followed_begin(void)
{
	memset(&followed, 0, sizeof(followed));
}

INSTEAD_OF(follow_new);
struct follow *__wrap_follow_new(const struct follow_options *options)
{
	followed.made++;
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
	(void)follow, (void)pid;
	followed.adds++;
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
	return 0;
}

#endif

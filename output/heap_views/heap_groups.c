/* SPDX-License-Identifier: MIT */
#include "output/heap_views/heap_groups.h"

#include <stdlib.h>
#include <string.h>

struct heap_group *heap_groups_get(struct heap_group **groups, const char *name)
{
	size_t length = strlen(name);
	struct heap_group *group;

	HASH_FIND(hh, *groups, name, length, group);
	if (group)
		return group;
	group = calloc(1, sizeof(*group) + length + 1);
	if (!group)
		return NULL;
	memcpy(group->name, name, length);
	HASH_ADD_KEYPTR(hh, *groups, group->name, length, group);
	if (!hash_added(&group->hh)) {
		free(group);
		return NULL;
	}
	group->number = HASH_COUNT(*groups);
	return group;
}

static int compare(const struct heap_group *left, const struct heap_group *right)
{
	if (left->retained != right->retained)
		return left->retained > right->retained ? -1 : 1;
	if (left->sum.bytes != right->sum.bytes)
		return left->sum.bytes > right->sum.bytes ? -1 : 1;
	return strcmp(left->name, right->name);
}

void heap_groups_sort(struct heap_group **groups)
{
	HASH_SORT(*groups, compare);
}

void heap_groups_clear(struct heap_group **groups)
{
	HASH_FREE_ALL(*groups);
}

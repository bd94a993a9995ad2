/* SPDX-License-Identifier: MIT */
#include "output/heap_reports/heap_compared.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "memory/hash.h"
#include "output/heap_reports/heap_amounts.h"
#include "output/heap_reports/heap_uncertain.h"

struct vm_key {
	uint64_t pid, g;
};

struct heap_absent_vm {
	struct vm_key key;
	const struct heap_account *account; /* borrowed */
	size_t missing;                     /* at so many moments */
	size_t rank;                        /* so many are left out before it */
	UT_hash_handle hh;
};

/*---- VMs that are missing ----*/

static const struct heap_account *account_of(const struct heap_subject *subject)
{
	return &subject->summary.account;
}

static struct vm_key key_of(const struct heap_account *account)
{
	return (struct vm_key){ .pid = (uint64_t)account->pid, .g = account->g };
}

static struct heap_absent_vm *find(const struct heap_compared *compared, const struct heap_account *account)
{
	const struct vm_key key = key_of(account);
	struct heap_absent_vm *vm;

	HASH_FIND(hh, compared->vms, &key, sizeof(key), vm);
	return vm;
}

/* 0 or -ENOMEM. */
static int add_missing(struct heap_compared *compared, const struct heap_account *account)
{
	struct heap_absent_vm *vm = find(compared, account);

	if (!vm) {
		vm = calloc(1, sizeof(*vm));
		if (!vm)
			return -ENOMEM;
		vm->key = key_of(account);
		vm->account = account;
		HASH_ADD(hh, compared->vms, key, sizeof(vm->key), vm);
		if (!hash_added(&vm->hh)) {
			free(vm);
			return -ENOMEM;
		}
	}
	vm->missing++;
	return 0;
}

static int by_missing(const struct heap_absent_vm *a, const struct heap_absent_vm *b)
{
	return a->missing != b->missing ? (a->missing > b->missing ? -1 : 1) : 0;
}

static int find_missing(struct heap_compared *compared, const struct heap_side *sides, size_t count)
{
	size_t rank = 0;
	int error = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < sides[i].count && !error; k++)
			if (heap_account_is_missing(account_of(&sides[i].subjects[k])))
				error = add_missing(compared, account_of(&sides[i].subjects[k]));
	HASH_SORT(compared->vms, by_missing);
	for (struct heap_absent_vm *vm = compared->vms; vm; vm = vm->hh.next)
		vm->rank = rank++;
	return error;
}

/*---- Moments ----*/

/* A moment has all of what is compared, and something, if from `least` to `most` VMs are left out. */
struct reach {
	size_t least, most;
};

static struct reach reach_of(const struct heap_compared *compared, const struct heap_side *side,
			     size_t most_processes)
{
	struct reach reach = { .least = heap_side_processes(side) < most_processes ? SIZE_MAX : 0 };

	for (size_t i = 0; i < side->count; i++) {
		const struct heap_account *account = account_of(&side->subjects[i]);
		const struct heap_absent_vm *vm = find(compared, account);
		const size_t rank = vm ? vm->rank : SIZE_MAX - 1;

		if (!heap_account_is_whole(account))
			reach.least = rank + 1 > reach.least ? rank + 1 : reach.least;
		else
			reach.most = rank > reach.most ? rank : reach.most;
	}
	return reach;
}

static bool is_compared(const struct reach *reach, size_t left_out)
{
	return reach->least <= left_out && left_out <= reach->most;
}

static size_t count_whole(const struct reach *reaches, size_t count, size_t left_out)
{
	size_t whole = 0;

	for (size_t i = 0; i < count; i++)
		whole += is_compared(&reaches[i], left_out);
	return whole;
}

static void choose(struct heap_compared *compared, const struct heap_side *sides, size_t count,
		   const struct reach *reaches)
{
	const size_t absent = HASH_COUNT(compared->vms);
	size_t left_out = 0;

	while (left_out <= absent && count_whole(reaches, count, left_out) < 2)
		left_out++;
	compared->left_out = left_out <= absent ? left_out : 0;
	for (size_t i = 0; i < count; i++)
		if (is_compared(&reaches[i], compared->left_out))
			compared->sides[compared->count++] = sides[i];
}

int heap_compared_find(const struct heap_side *sides, size_t count, struct heap_compared *ret_compared)
{
	struct reach *reaches = calloc(count + 1, sizeof(*reaches));
	size_t most_processes = heap_sides_most_processes(sides, count);
	int error = 0;

	*ret_compared = (struct heap_compared){ .sides = calloc(count + 1, sizeof(*sides)) };
	if (!reaches || !ret_compared->sides)
		error = -ENOMEM;
	if (!error)
		error = find_missing(ret_compared, sides, count);
	for (size_t i = 0; i < count && !error; i++)
		reaches[i] = reach_of(ret_compared, &sides[i], most_processes);
	if (!error)
		choose(ret_compared, sides, count, reaches);
	free(reaches);
	return error;
}

bool heap_compared_has(const struct heap_compared *compared, const struct heap_subject *subject)
{
	const struct heap_absent_vm *vm = compared->left_out ? find(compared, account_of(subject)) : NULL;

	return !vm || vm->rank >= compared->left_out;
}

void heap_compared_write(FILE *out, const struct heap_compared *compared, size_t moments, size_t rows)
{
	const struct heap_absent_vm *vm = compared->vms;

	for (size_t i = 0; i < compared->left_out && i < rows; i++, vm = vm->hh.next) {
		struct heap_account of = *vm->account;

		of.module = NULL;
		heap_place_write(out, &of);
		fprintf(out, " is left out of the comparison: not read at %zu of %zu moments.\n", vm->missing,
			moments);
	}
	if (compared->left_out > rows)
		fprintf(out, "So it is with %zu more.\n", compared->left_out - rows);
}

void heap_compared_clear(struct heap_compared *compared)
{
	struct heap_absent_vm *vm, *next;

	HASH_ITER(hh, compared->vms, vm, next) {
		HASH_DEL(compared->vms, vm);
		free(vm);
	}
	free(compared->sides);
	*compared = (struct heap_compared){ 0 };
}

/* SPDX-License-Identifier: MIT */
#include "output/reports/dump_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "memory/hash.h"

/* The key of a group. It has no padding, because it is compared as bytes. */
struct dump_key {
	uint64_t state;
	const char *phase;
	struct {
		const struct function *function;
		uint64_t line;
	} frames[];
};

struct dump_index {
	struct dump_group group; /* first: a group and its entry are one address */
	size_t order;            /* of appearance */
	struct dump_key *key;
	UT_hash_handle hh;
};

struct dump_process *dump_process_new(pid_t pid, const char *name)
{
	struct dump_process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->pid = pid;
	process->name = name ? strdup(name) : NULL;
	if (name && !process->name) {
		free(process);
		return NULL;
	}
	return process;
}

static void free_index(struct dump_index *entry)
{
	free(entry->group.stack.frames);
	free(entry->key);
	free(entry);
}

static void clear_vm(struct dump_vm *vm)
{
	struct dump_index *entry, *next;

	HASH_ITER(hh, vm->index, entry, next) {
		HASH_DEL(vm->index, entry);
		free_index(entry);
	}
	free(vm->groups);
	free(vm->module);
}

void dump_process_free(struct dump_process *process)
{
	if (!process)
		return;
	for (size_t i = 0; i < process->thread_count; i++) {
		free(process->threads[i].name);
		free(process->threads[i].stack.frames);
	}
	for (size_t i = 0; i < process->vm_count; i++)
		clear_vm(&process->vms[i]);
	free(process->threads);
	free(process->vms);
	free(process->name);
	free(process);
}

static bool copy_stack(const struct frame *frames, size_t count, struct dump_stack *ret_stack)
{
	struct frame *copy = calloc(count ? count : 1, sizeof(*copy));

	if (!copy)
		return false;
	if (count)
		memcpy(copy, frames, count * sizeof(*copy));
	*ret_stack = (struct dump_stack){ .frames = copy, .count = count };
	return true;
}

int dump_process_add_thread(struct dump_process *process, const struct dump_thread *thread,
			    const struct frame *frames, size_t count)
{
	struct dump_thread copy = *thread;
	struct dump_thread *threads = array_grow(process->threads, &process->thread_size,
						 process->thread_count + 1, sizeof(*threads));

	if (!threads)
		return -ENOMEM;
	process->threads = threads;
	copy.name = thread->name ? strdup(thread->name) : NULL;
	if ((thread->name && !copy.name) || !copy_stack(frames, count, &copy.stack)) {
		free(copy.name);
		return -ENOMEM;
	}
	process->threads[process->thread_count++] = copy;
	return 0;
}

struct dump_vm *dump_process_add_vm(struct dump_process *process, uint64_t g, const char *module)
{
	struct dump_vm vm = { .g = g };
	struct dump_vm *vms = array_grow(process->vms, &process->vm_size, process->vm_count + 1,
					 sizeof(*vms));

	if (!vms)
		return NULL;
	process->vms = vms;
	vm.module = strdup(module);
	if (!vm.module)
		return NULL;
	process->vms[process->vm_count] = vm;
	return &process->vms[process->vm_count++];
}

/*---- Groups ----*/

static size_t key_size(size_t count)
{
	return sizeof(struct dump_key) + count * sizeof(((struct dump_key *)NULL)->frames[0]);
}

static struct dump_key *key_of(enum coroutine_state state, const char *phase, const struct frame *frames,
			       size_t count)
{
	struct dump_key *key = calloc(1, key_size(count));

	if (!key)
		return NULL;
	key->state = state;
	key->phase = phase;
	for (size_t i = 0; i < count; i++) {
		key->frames[i].function = frames[i].function;
		key->frames[i].line = frames[i].line;
	}
	return key;
}

static struct dump_index *add_group(struct dump_vm *vm, struct dump_key *key, const struct frame *frames,
				    size_t count)
{
	struct dump_index *entry = calloc(1, sizeof(*entry));

	if (!entry || !copy_stack(frames, count, &entry->group.stack)) {
		free(entry);
		return NULL;
	}
	entry->order = HASH_COUNT(vm->index);
	HASH_ADD_KEYPTR(hh, vm->index, key, key_size(count), entry);
	if (!hash_added(&entry->hh)) {
		free_index(entry);
		return NULL;
	}
	entry->key = key;
	return entry;
}

int dump_vm_add(struct dump_vm *vm, enum coroutine_state state, const char *phase, const struct frame *frames,
		size_t count)
{
	struct dump_key *key = key_of(state, phase, frames, count);
	struct dump_index *entry;

	if (!key)
		return -ENOMEM;
	HASH_FIND(hh, vm->index, key, key_size(count), entry);
	if (entry) {
		free(key);
	} else {
		entry = add_group(vm, key, frames, count);
		if (!entry) {
			free(key);
			return -ENOMEM;
		}
	}
	entry->group.state = state;
	entry->group.phase = phase;
	entry->group.count++;
	vm->counts[state]++;
	return 0;
}

static int compare_groups(const void *a, const void *b)
{
	const struct dump_index *left = *(const struct dump_index *const *)a;
	const struct dump_index *right = *(const struct dump_index *const *)b;

	if (left->group.count != right->group.count)
		return left->group.count > right->group.count ? -1 : 1;
	if (left->group.state != right->group.state)
		return left->group.state < right->group.state ? -1 : 1;
	return (left->order > right->order) - (left->order < right->order);
}

static void sort_groups(struct dump_vm *vm)
{
	struct dump_index *entry, *next;
	size_t count = HASH_COUNT(vm->index);

	free(vm->groups);
	vm->group_count = 0;
	vm->groups = calloc(count ? count : 1, sizeof(struct dump_group *));
	if (!vm->groups)
		return;
	HASH_ITER(hh, vm->index, entry, next) {
		vm->groups[vm->group_count++] = &entry->group;
	}
	qsort(vm->groups, vm->group_count, sizeof(struct dump_group *), compare_groups);
}

void dump_process_sort(struct dump_process *process)
{
	for (size_t i = 0; i < process->vm_count; i++)
		sort_groups(&process->vms[i]);
}

const char *dump_state_text(enum coroutine_state state)
{
	static const char *const texts[COROUTINE_STATE_COUNT] = {
		[COROUTINE_SUSPENDED] = "suspended",      [COROUTINE_NOT_STARTED] = "not started",
		[COROUTINE_RUNNING] = "running",          [COROUTINE_NORMAL] = "normal",
		[COROUTINE_ACTIVE] = "running or normal", [COROUTINE_DEAD] = "dead",
	};

	return texts[state];
}

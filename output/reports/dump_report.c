/* SPDX-License-Identifier: MIT */
#include "output/reports/dump_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "memory/hash.h"
#include "output/sample/text_copy.h"

/* The key of a group. It has no padding, because it is compared as bytes. */
struct dump_key {
	uint64_t state;
	const char *phase;
	uint64_t serial; /* with variables: unlike any other's; else 0 */
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
	if (!text_copy(name, &process->name)) {
		free(process);
		return NULL;
	}
	return process;
}

void dump_stack_free_variables(struct dump_stack *stack)
{
	for (size_t i = 0; stack->variables && i < stack->count; i++)
		variables_clear(&stack->variables[i]);
	free(stack->variables);
	stack->variables = NULL;
}

static void clear_stack(struct dump_stack *stack)
{
	dump_stack_free_variables(stack);
	free(stack->frames);
	stack->frames = NULL;
}

static void free_index(struct dump_index *entry)
{
	clear_stack(&entry->group.stack);
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
		clear_stack(&process->threads[i].stack);
	}
	for (size_t i = 0; i < process->vm_count; i++)
		clear_vm(&process->vms[i]);
	free(process->threads);
	free(process->vms);
	free(process->name);
	free(process);
}

/*
 * Copy the frames and take over the variables. When memory is short, return false; the variables are freed.
 */
static bool take_stack(const struct dump_stack *stack, struct dump_stack *ret_stack)
{
	struct dump_stack copy = *stack;

	copy.frames = calloc(copy.count ? copy.count : 1, sizeof(*copy.frames));
	if (!copy.frames) {
		dump_stack_free_variables(&copy);
		return false;
	}
	if (copy.count)
		memcpy(copy.frames, stack->frames, copy.count * sizeof(*copy.frames));
	*ret_stack = copy;
	return true;
}

int dump_process_add_thread(struct dump_process *process, const struct dump_thread *thread,
			    const struct dump_stack *stack)
{
	struct dump_thread copy = *thread;
	struct dump_thread *threads = array_grow(process->threads, &process->thread_size,
						 process->thread_count + 1, sizeof(*threads));

	if (threads)
		process->threads = threads;
	if (!take_stack(stack, &copy.stack))
		return -ENOMEM;
	copy.name = thread->name ? strdup(thread->name) : NULL;
	if (!threads || (thread->name && !copy.name)) {
		clear_stack(&copy.stack);
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

static struct dump_key *key_of(enum coroutine_state state, const char *phase, const struct dump_stack *stack)
{
	struct dump_key *key = calloc(1, key_size(stack->count));

	if (!key)
		return NULL;
	key->state = state;
	key->phase = phase;
	for (size_t i = 0; i < stack->count; i++) {
		key->frames[i].function = stack->frames[i].function;
		key->frames[i].line = stack->frames[i].line;
	}
	return key;
}

/* Takes over the stack's variables and, if it succeeds, the key. */
static struct dump_index *add_group(struct dump_vm *vm, struct dump_key *key, const struct dump_stack *stack)
{
	struct dump_index *entry = calloc(1, sizeof(*entry));
	struct dump_stack taken;

	if (!take_stack(stack, &taken)) {
		free(entry);
		return NULL;
	}
	if (!entry) {
		clear_stack(&taken);
		return NULL;
	}
	entry->group.stack = taken;
	entry->order = HASH_COUNT(vm->index);
	HASH_ADD_KEYPTR(hh, vm->index, key, key_size(taken.count), entry);
	if (!hash_added(&entry->hh)) {
		free_index(entry);
		return NULL;
	}
	entry->key = key;
	return entry;
}

static struct dump_index *find_group(const struct dump_vm *vm, struct dump_key *key, size_t count)
{
	struct dump_index *entry;

	HASH_FIND(hh, vm->index, key, key_size(count), entry);
	return entry;
}

int dump_vm_add(struct dump_vm *vm, enum coroutine_state state, const char *phase,
		const struct dump_stack *stack)
{
	struct dump_key *key = key_of(state, phase, stack);
	struct dump_index *entry = NULL;

	if (!key) {
		struct dump_stack lost = *stack;

		dump_stack_free_variables(&lost);
		return -ENOMEM;
	}
	if (stack->variables)
		key->serial = HASH_COUNT(vm->index) + 1;
	else
		entry = find_group(vm, key, stack->count);
	if (entry) {
		free(key);
	} else {
		entry = add_group(vm, key, stack);
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
		[COROUTINE_SUSPENDED] = "suspended",
		[COROUTINE_NOT_STARTED] = "not started",
		[COROUTINE_RUNNING] = "running",
		[COROUTINE_NORMAL] = "normal",
		[COROUTINE_ACTIVE] = "running or normal",
		[COROUTINE_PARKED] = "on another C stack",
		[COROUTINE_DEAD] = "dead",
	};

	return texts[state];
}

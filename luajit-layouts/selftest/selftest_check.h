/* SPDX-License-Identifier: MIT */
/*
 * selftest_check: what the self-tests share. Private to selftest*.c.
 */
#ifndef LJSPY_SELFTEST_CHECK_H
#define LJSPY_SELFTEST_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "luajit-layouts/field.h"
#include "luajit-layouts/vm.h"
#include "memory/memory.h"

struct check {
	struct memory *memory;
	const struct vm_code *vm;
	const struct layout *layout; /* &vm->layout */
	uint64_t g;
	unsigned checked;  /* objects found to be sound */
	char failure[160]; /* what is wrong; empty if nothing is */
};

enum {
	TVALUE_BYTES = 8,
	INSTRUCTION_BYTES = 4,
	STACK_SLOTS_MAX = 1 << 20, /* far above LJ_STACK_MAX */
};

/* Record the first failure. Returns false, so that a check can return it. */
__attribute__((format(printf, 2, 3))) bool check_fail(struct check *check, const char *format, ...);

/* Read a field of size bytes (0: a reference) or fail the check. */
bool check_read(struct check *check, uint64_t object, int32_t offset, unsigned size, const char *name,
		uint64_t *ret);
#define CHECK_FIELD(check, object, field, size, ret) \
	check_read(check, object, (check)->layout->field, size, #field, ret)

/* Is object of this type? Fails the check if not. */
bool check_type(struct check *check, uint64_t object, uint8_t gct, const char *name);

/* As check_type(), but object may be 0. */
bool check_type_or_null(struct check *check, uint64_t object, uint8_t gct, const char *name);

/* The type and address of the object that a tagged slot holds. False if it holds none. */
bool check_tagged(struct check *check, uint64_t slot, uint8_t *ret_gct, uint64_t *ret_object);

/* Does the GCstr hold exactly this text? */
bool check_string_is(struct check *check, uint64_t string, const char *text);

/*
 * Write the first living objects of one type on the list of all objects
 * (gc.root), at most max, within a bounded number of steps. Returns their
 * number; fails the check if the list is broken.
 */
unsigned check_collect(struct check *check, uint8_t gct, uint64_t *ret_objects, unsigned max);

/* The tests. Each returns false on failure, and counts the sound objects. */
bool selftest_state(struct check *check);
bool selftest_strings(struct check *check);
bool selftest_objects(struct check *check);
bool selftest_jit(struct check *check);
bool selftest_traces(struct check *check);

/* Check one thread, its stack and its C frames; false on failure. */
bool check_thread(struct check *check, uint64_t L);

#endif

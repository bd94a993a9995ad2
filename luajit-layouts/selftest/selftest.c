/* SPDX-License-Identifier: MIT */
#include "luajit-layouts/selftest/selftest.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "luajit-layouts/selftest/selftest_check.h"

/* Bounds: a test takes milliseconds, however large the heap or hostile the target. */
enum { OBJECT_STEPS_MAX = 4000, TEXT_MAX = 64, HEADER_MAX = 16, GC_WHITES = 3 };

/* ---- shared by the tests -------------------------------------------------- */

bool check_fail(struct check *check, const char *format, ...)
{
	va_list arguments;

	if (check->failure[0] == '\0') {
		va_start(arguments, format);
		vsnprintf(check->failure, sizeof(check->failure), format, arguments);
		va_end(arguments);
	}
	return false;
}

bool check_read(struct check *check, uint64_t object, int32_t offset, unsigned size, const char *name,
		uint64_t *ret)
{
	if (offset < 0)
		return check_fail(check, "%s is not known", name);
	if (size == 0)
		size = layout_ref_size(check->layout);
	if (!field_read(check->memory, object + (uint64_t)offset, size, ret))
		return check_fail(check, "%s cannot be read", name);
	return true;
}

bool check_type(struct check *check, uint64_t object, uint8_t gct, const char *name)
{
	uint8_t found;

	if (object % 4 != 0 || !field_gct(check->memory, check->layout, object, &found))
		return check_fail(check, "%s leads nowhere", name);
	if (found != gct)
		return check_fail(check, "%s leads to an object of type %u, not %u", name, found, gct);
	return true;
}

bool check_type_or_null(struct check *check, uint64_t object, uint8_t gct, const char *name)
{
	return object == 0 || check_type(check, object, gct, name);
}

/*
 * In GC64, a slot holds a 17-bit tag above a 47-bit pointer, otherwise a 32-bit
 * tag above a 32-bit pointer (lj_obj.h, "Tagged values"). The tags of objects
 * run from ~4 to ~12.
 */
bool check_tagged(struct check *check, uint64_t slot, uint8_t *ret_gct, uint64_t *ret_object)
{
	unsigned shift = check->layout->gc64 ? 47 : 32;
	uint64_t value, type;

	if (!field_read(check->memory, slot, TVALUE_BYTES, &value))
		return false;
	type = ~(uint64_t)((int64_t)value >> shift);
	if (type < GCT_STRING || type > GCT_USERDATA)
		return false;
	*ret_gct = (uint8_t)type;
	*ret_object = value & ((UINT64_C(1) << shift) - 1);
	return true;
}

bool check_string_is(struct check *check, uint64_t string, const char *text)
{
	char held[TEXT_MAX];
	size_t length = strlen(text);
	uint64_t len;

	return length < sizeof(held) && check_type(check, string, GCT_STRING, text) &&
	       CHECK_FIELD(check, string, GCstr_len, 4, &len) && len == length &&
	       memory_read(check->memory, string + (uint64_t)check->layout->GCstr_size, held, length + 1) ==
		       MEMORY_OK &&
	       memcmp(held, text, length + 1) == 0;
}

struct header {
	uint64_t next;
	uint8_t gct, marked;
};

static bool is_in_header(int32_t offset, unsigned size)
{
	return offset >= 0 && (unsigned)offset + size <= HEADER_MAX;
}

/* Read an object's header at once. False if it is none; ret->next is 0 if it cannot be read. */
static bool read_header(struct check *check, uint64_t object, struct header *ret)
{
	const struct layout *layout = check->layout;
	uint8_t header[HEADER_MAX];

	ret->next = 0;
	if (!is_in_header(layout->GChead_marked, 1) || !is_in_header(layout->GChead_gct, 1) ||
	    !is_in_header(layout->GChead_nextgc, layout_ref_size(layout)) ||
	    memory_read(check->memory, object, header, sizeof(header)) != MEMORY_OK)
		return false;
	memcpy(&ret->next, header + layout->GChead_nextgc, layout_ref_size(layout));
	ret->gct = header[layout->GChead_gct];
	ret->marked = header[layout->GChead_marked];
	return ret->gct >= GCT_STRING && ret->gct <= GCT_USERDATA;
}

/*
 * The colour of dead objects: the white that is not current (lj_gc.h, isdead()).
 * The objects that a dead one refers to may be gone already.
 */
static bool read_dead_white(struct check *check, uint8_t *ret)
{
	uint64_t currentwhite;

	if (!check_read(check, check->g, check->layout->g_gc_state - 1, 1, "gc.currentwhite", &currentwhite))
		return false;
	*ret = (uint8_t)~currentwhite & GC_WHITES;
	return true;
}

unsigned check_collect(struct check *check, uint8_t gct, uint64_t *ret_objects, unsigned max)
{
	struct header header;
	unsigned count = 0;
	uint64_t object;
	uint8_t dead;

	if (!CHECK_FIELD(check, check->g, g_gc_root, 0, &object) || !read_dead_white(check, &dead))
		return 0;
	for (unsigned step = 0; object != 0 && count < max && step < OBJECT_STEPS_MAX; step++) {
		if (!read_header(check, object, &header) && step > 0) {
			check_fail(check, "the list of objects leads to something else after %u", step);
			return count;
		}
		/* The newest object may not be complete yet. */
		if (step > 0 && header.gct == gct && (header.marked & dead) == 0)
			ret_objects[count++] = object;
		object = header.next;
	}
	return count;
}

/* ---- the tests ------------------------------------------------------------- */

static const struct {
	const char *name;
	bool (*run)(struct check *check);
	bool needs_jit;
} tests[SELFTEST_COUNT] = {
	[SELFTEST_STATE] = { "state", selftest_state, false },
	[SELFTEST_STRINGS] = { "strings", selftest_strings, false },
	[SELFTEST_OBJECTS] = { "objects", selftest_objects, false },
	[SELFTEST_JIT] = { "JIT state", selftest_jit, true },
	[SELFTEST_TRACES] = { "traces", selftest_traces, true },
};

enum selftest_verdict selftest_run(struct memory *memory, const struct vm_code *vm, uint64_t g,
				   enum selftest test, recognise_evidence *evidence, void *context)
{
	struct check check = { .memory = memory, .vm = vm, .layout = &vm->layout, .g = g };
	enum selftest_verdict verdict = SELFTEST_UNTESTED;
	char words[sizeof(check.failure)];

	if (vm->layout.has_jit || !tests[test].needs_jit) {
		if (!tests[test].run(&check) || check.failure[0] != '\0')
			verdict = SELFTEST_FAILED;
		else if (check.checked > 0)
			verdict = SELFTEST_PASSED;
	}
	if (verdict == SELFTEST_FAILED)
		snprintf(words, sizeof(words), "%s", check.failure);
	else if (verdict == SELFTEST_PASSED)
		snprintf(words, sizeof(words), "%u sound", check.checked);
	else
		snprintf(words, sizeof(words), "none yet");
	if (evidence != NULL)
		evidence(context, tests[test].name, words);
	return verdict;
}

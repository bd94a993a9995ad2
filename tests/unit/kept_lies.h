/* SPDX-License-Identifier: MIT */
/*
 * kept_lies: what self-tests say of a kept state (kept_state.h) in which one field has another value.
 */
#ifndef LJSPY_KEPT_LIES_H
#define LJSPY_KEPT_LIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "luajit-layouts/selftest/selftest.h"
#include "tests/unit/kept_state.h"

enum { REASON_SIZE = 256 };

static char kept_reason[REASON_SIZE];

/* A field of the newest object of a type, its size (0: a reference), and what is added to it or put there. */
struct lie {
	const char *reason; /* a part of what is said */
	size_t field;
	int64_t more;
	unsigned size;
	uint8_t of;  /* a type, or OF_G and the like */
	bool is_set; /* instead of adding to what is there */
};

#define LIE(reason, of, field, size, more) \
	{ \
		reason, offsetof(struct layout, field), more, size, of, false \
	}
#define SET(reason, of, field, size, value) \
	{ \
		reason, offsetof(struct layout, field), value, size, of, true \
	}

static inline void kept_take_reason(void *context, const char *probe, const char *verdict)
{
	(void)context;
	(void)probe;
	snprintf(kept_reason, sizeof(kept_reason), "%s", verdict);
}

static inline enum selftest_verdict kept_verdict(enum selftest test)
{
	kept_reason[0] = '\0';
	return selftest_run(&kept_state.memory, &kept_vm, kept_state.g, test, kept_take_reason, NULL);
}

static inline void kept_expect(enum selftest test, enum selftest_verdict verdict, const char *reason)
{
	const enum selftest_verdict found = kept_verdict(test);

	if (found != verdict || !strstr(kept_reason, reason))
		fail_msg("not \"%s\", but verdict %d: %s", reason, (int)found, kept_reason);
}

static inline void kept_tell(const struct lie *lie)
{
	const uint64_t at = kept_newest[lie->of] +
			    (uint64_t) * (const int32_t *)(const void *)((const char *)&kept_vm.layout +
									 lie->field);
	const unsigned size = lie->size ? lie->size : layout_ref_size(&kept_vm.layout);

	kept_pages_put(&kept_state, at, (lie->is_set ? 0 : kept_number(at, size)) + (uint64_t)lie->more,
		       size);
}

/* Each of these, one after the other, in each kept state: it fails for its reason, or passes. */
static inline void kept_try(enum selftest test, enum selftest_verdict verdict, const struct lie *lies,
			    size_t count)
{
	for (size_t i = 0; i < KEPT_STATES * count; i++) {
		const struct lie *lie = &lies[i % count];
		enum selftest_verdict found;

		kept_state_begin(kept_states[i / count]);
		kept_tell(lie);
		found = kept_verdict(test);
		if (found != verdict || (found == SELFTEST_FAILED && !strstr(kept_reason, lie->reason)))
			fail_msg("%s: \"%s\" %+lld: %s", kept_states[i / count], lie->reason,
				 (long long)lie->more, kept_reason);
		kept_state_end();
	}
}

/* A field of a build, by its name. */
struct field_name {
	size_t field;
	const char *name;
};
#define FIELD(name) \
	{ \
		offsetof(struct layout, name), #name \
	}

/* Without the offset of one of these, a state fails for that. */
static inline void kept_try_unknown(enum selftest test, const struct field_name *fields, size_t count)
{
	char reason[REASON_SIZE];

	for (size_t i = 0; i < KEPT_STATES * count; i++) {
		const struct field_name *field = &fields[i % count];

		kept_state_begin(kept_states[i / count]);
		*(int32_t *)(void *)((char *)&kept_vm.layout + field->field) = LAYOUT_UNKNOWN;
		snprintf(reason, sizeof(reason), "%s is not known", field->name);
		kept_expect(test, SELFTEST_FAILED, reason);
		kept_state_end();
	}
}

/* Without a lie, all kept states pass. */
static inline void kept_passes(enum selftest test)
{
	for (size_t i = 0; i < KEPT_STATES; i++) {
		kept_state_begin(kept_states[i]);
		kept_expect(test, SELFTEST_PASSED, "");
		kept_state_end();
	}
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * made_up_hold: a target that holds still when the test says so, and the samples that the sampler makes of
 * it.
 *
 * Time passes only as a test lets it pass. Texts of samples are valid only while they are taken, so what
 * is kept of a sample is a copy.
 */
#ifndef LJSPY_MADE_UP_HOLD_H
#define LJSPY_MADE_UP_HOLD_H

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "src/linux/clocks/clock.h"
#include "src/linux/threads/hold.h"
#include "src/sampler/sampler_state.h"
#include "tests/unit/instead_of.h"

enum {
	HELD_SAMPLES = 256,
	HELD_TEXT = 64,
	HELD_FRAMES = 3,
	HELD_PID = 50,
	HELD_PERIOD_NS = 10 * 1000 * 1000,
};

struct held_sample {
	struct sample sample;
	char route[HELD_TEXT], phase[HELD_TEXT];
	struct frame frames[HELD_FRAMES]; /* the first ones */
	char leaf[HELD_TEXT];
};

/* The hold, and what becomes of it. */
struct hold {
	struct registers registers; /* of the first thread */
	bool has_stopped;
	bool can_hold;         /* else hold_while() gives up */
	bool later_cannot;     /* nor can any but the first */
	unsigned int made;     /* holds that were not freed */
	unsigned int holds;    /* calls of hold_while(), unless it can never hold */
	bool (*go_on)(void *); /* what it asks */
	uint64_t count, longest_ns, total_ns;
	uint64_t late_ns;      /* so much later hold_while() can hold it, or gives up */
	enum hold_start start; /* how it found it at first */
	bool takes_waiting;    /* as asked */
	bool has_waiting;
	bool has_no_memory;
};

static struct hold held;
static uint64_t held_now_ns, held_day_ns; /* CLOCK_MONOTONIC, CLOCK_REALTIME */
static struct held_sample held_samples[HELD_SAMPLES];
static size_t held_count;
static struct sampler_options held_options;
static struct sampler_result held_result;
static struct sampler held_sampler;
static struct target held_target;

INSTEAD_OF(clock_gettime);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	const uint64_t now = clock == CLOCK_REALTIME ? held_day_ns : held_now_ns;

	*ret_time = (struct timespec){ .tv_sec = (time_t)(now / NS_PER_SECOND),
				       .tv_nsec = (long)(now % NS_PER_SECOND) };
	return 0;
}

INSTEAD_OF(hold_new);
struct hold *__wrap_hold_new(struct tracer *tracer, struct threads *threads)
{
	(void)tracer;
	(void)threads;
	held.made += !held.has_no_memory;
	return held.has_no_memory ? NULL : &held;
}

INSTEAD_OF(hold_free);
void __wrap_hold_free(struct hold *hold)
{
	held.made -= hold != NULL;
}

INSTEAD_OF(hold_go_on_while);
void __wrap_hold_go_on_while(struct hold *hold, bool (*may_go_on)(void *context), void *context)
{
	(void)context;
	hold->go_on = may_go_on;
}

INSTEAD_OF(hold_while);
bool __wrap_hold_while(struct hold *hold, void (*read)(void *context), void (*undo)(void *context),
		       void *context)
{
	(void)undo;
	held_now_ns += hold->late_ns;
	if (!hold->can_hold || (hold->holds++ && hold->later_cannot))
		return false;
	read(context);
	return true;
}

INSTEAD_OF(hold_take_waiting);
void __wrap_hold_take_waiting(struct hold *hold)
{
	hold->takes_waiting = true;
}

INSTEAD_OF(hold_start);
enum hold_start __wrap_hold_start(const struct hold *hold)
{
	return hold->start;
}

INSTEAD_OF(hold_has_waiting);
bool __wrap_hold_has_waiting(const struct hold *hold)
{
	return hold->has_waiting;
}

INSTEAD_OF(hold_registers);
const struct registers *__wrap_hold_registers(const struct hold *hold, pid_t tid)
{
	return hold->has_stopped && tid == HELD_PID ? &hold->registers : NULL;
}

INSTEAD_OF(hold_count);
uint64_t __wrap_hold_count(const struct hold *hold)
{
	return hold->count;
}

INSTEAD_OF(hold_total_ns);
uint64_t __wrap_hold_total_ns(const struct hold *hold)
{
	return hold->total_ns;
}

INSTEAD_OF(hold_longest_ns);
uint64_t __wrap_hold_longest_ns(const struct hold *hold)
{
	return hold->longest_ns;
}

static inline bool held_may_go_on(void *context)
{
	(void)context;
	return true;
}

static inline void held_take(void *context, const struct sample *sample)
{
	struct held_sample *kept = &held_samples[held_count++];

	(void)context;
	assert_in_range(held_count, 1, HELD_SAMPLES);
	*kept = (struct held_sample){ .sample = *sample };
	snprintf(kept->route, sizeof(kept->route), "%s", sample->request.route ? sample->request.route : "");
	snprintf(kept->phase, sizeof(kept->phase), "%s", sample->phase ? sample->phase : "");
	for (size_t i = 0; i < sample->frame_count && i < HELD_FRAMES; i++)
		kept->frames[i] = sample->frames[i];
	if (sample->frame_count)
		snprintf(kept->leaf, sizeof(kept->leaf), "%s", sample->frames[0].function->name);
}

/* A sampler of one target, by the wall clock. */
static inline void held_begin(void)
{
	held = (struct hold){ .can_hold = true };
	held_now_ns = UINT64_C(100) * NS_PER_SECOND;
	held_day_ns = UINT64_C(1700000000) * NS_PER_SECOND;
	held_count = 0;
	held_options = (struct sampler_options){ .functions = functions_new(),
						 .take = held_take,
						 .wall_clock = true };
	held_result = (struct sampler_result){ 0 };
	held_sampler = (struct sampler){ .options = &held_options,
					 .result = &held_result,
					 .period_ns = HELD_PERIOD_NS,
					 .patience = { .may_go_on = held_may_go_on } };
	held_target = (struct target){ .pid = HELD_PID, .name = "worker" };
	assert_non_null(held_options.functions);
}

/* A look's pause is that of a hold that stopped a thread. */
static inline void held_assert_pause(void (*look)(void))
{
	held.longest_ns = 1234;
	look();
	assert_int_equal(histogram_percentile(&held_result.figures.pause_ns, 1000), 0);
	held.count = 2;
	look();
	assert_in_range(histogram_percentile(&held_result.figures.pause_ns, 1000), 1200, 1300);
}

static inline void held_end(void)
{
	assert_int_equal(held.made, 0);
	functions_free(held_options.functions);
}

#endif

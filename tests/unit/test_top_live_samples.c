/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/top/live_samples.h"

static const struct function heavy = { .kind = FRAME_LUA, .name = "heavy", .file = "test.lua" };

static void take(struct live_samples *live, uint64_t time_ns, size_t frame_count)
{
	struct frame *frames = calloc(frame_count, sizeof(*frames));
	char name[] = "worker", process[] = "nginx: worker process", phase[] = "content";
	struct sample sample = {
		.time_ns = time_ns,
		.pid = 1,
		.tid = 2,
		.cpu_ns = 3,
		.process_name = process,
		.thread_name = name,
		.phase = phase,
		.request = { .route = name, .host = process },
		.frames = frames,
		.frame_count = frame_count,
	};

	assert_non_null(frames);
	for (size_t i = 0; i < frame_count; i++)
		frames[i].function = &heavy;
	live_samples_take(live, &sample);
	/* What was taken must not need this any more. */
	memset(name, 'x', sizeof(name) - 1);
	memset(process, 'x', sizeof(process) - 1);
	memset(phase, 'x', sizeof(phase) - 1);
	memset(frames, 0, frame_count * sizeof(*frames));
	free(frames);
}

static size_t count(struct live_samples *live)
{
	struct sample_source *source = live_samples_source(live);
	struct sample sample;
	size_t result = 0;

	assert_int_equal(source->rewind(source), 0);
	while (source->next(source, &sample) == 1) {
		assert_ptr_equal(sample.frames[sample.frame_count - 1].function, &heavy);
		assert_string_equal(sample.thread_name, "worker");
		assert_string_equal(sample.process_name, "nginx: worker process");
		assert_string_equal(sample.phase, "content");
		assert_null(sample.request.route);
		assert_null(sample.request.host);
		result++;
	}
	return result;
}

static void samples_show_when_they_are_collected(void **state)
{
	struct live_samples *live = live_samples_new();

	(void)state;
	assert_non_null(live);
	take(live, 10, 2);
	assert_int_equal(count(live), 0);
	live_samples_collect(live, 0, NULL, NULL);
	assert_int_equal(count(live), 1);
	take(live, 20, 1);
	live_samples_collect(live, 0, NULL, NULL);
	assert_int_equal(count(live), 2);
	assert_int_equal(live_samples_complete_since(live), 0);
	live_samples_free(live);
}

static void what_is_old_is_dropped(void **state)
{
	struct live_samples *live = live_samples_new();

	(void)state;
	assert_non_null(live);
	take(live, 10, 1);
	take(live, 20, 1);
	live_samples_collect(live, 15, NULL, NULL);
	assert_int_equal(count(live), 1);
	/* Looking further back does not bring it back. */
	live_samples_collect(live, 5, NULL, NULL);
	assert_int_equal(count(live), 1);
	assert_int_equal(live_samples_complete_since(live), 15);
	assert_int_equal(live_samples_unseen_until(live), 0);
	live_samples_free(live);
}

/* Nobody collects: the newest stay, and it is told since when there are all. */
static void memory_has_a_limit(void **state)
{
	enum { FRAMES = 65536, SAMPLES = 200 };
	struct live_samples *live = live_samples_new();
	size_t kept;

	(void)state;
	assert_non_null(live);
	for (uint64_t i = 1; i <= SAMPLES; i++)
		take(live, i, FRAMES);
	live_samples_collect(live, 0, NULL, NULL);
	kept = count(live);
	assert_in_range(kept, 1, LIVE_SAMPLES_BYTES_MAX / (FRAMES * sizeof(struct frame)));
	assert_int_equal(live_samples_complete_since(live), SAMPLES - kept + 1);
	assert_int_equal(live_samples_unseen_until(live), SAMPLES - kept + 1);
	assert_false(live_samples_out_of_memory(live));
	live_samples_free(live);
}

static void figures_come_along(void **state)
{
	struct live_samples *live = live_samples_new();
	struct figures *figures = calloc(1, sizeof(*figures));

	(void)state;
	assert_non_null(live);
	assert_non_null(figures);
	figures->missed_ticks = 7;
	live_samples_progress(live, figures);
	live_samples_collect(live, 0, NULL, NULL);
	assert_int_equal(live_samples_figures(live)->missed_ticks, 7);
	free(figures);
	live_samples_free(live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_show_when_they_are_collected),
		cmocka_unit_test(what_is_old_is_dropped),
		cmocka_unit_test(memory_has_a_limit),
		cmocka_unit_test(figures_come_along),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

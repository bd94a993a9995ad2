/* SPDX-License-Identifier: MIT */
/* Captures of the samples that a server's sampler takes. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "output/recording/recording_format.h"
#include "src/linux/clocks/clock.h"
#include "src/serve/hub.h"

enum { DURATION_NS = 300 * 1000 * 1000, TRIES_MAX = 100 };

struct client {
	struct hub *hub;
	pthread_t thread;
	enum hub_answer answer;
	struct hub_recording recording;
};

static bool is_there(void *context)
{
	(void)context;
	return true;
}

/* When it is over, the sampler's run ends. */
static void *capture(void *context)
{
	const struct hub_request request = { .mode = HUB_CPU,
					     .duration_ns = DURATION_NS,
					     .is_there = is_there };
	struct client *client = context;
	int error;

	client->answer = hub_capture(client->hub, &request, &client->recording, &error);
	hub_stop(client->hub);
	return NULL;
}

/* A client's capture of samples like this one. */
static void capture_of(const struct sample *model, struct hub_recording *ret_recording)
{
	const struct hub_options options = { .base = HUB_CPU, .threshold_ns = 1, .rate_hz = 100 };
	struct client client = { .hub = hub_new(&options) };
	const struct figures so_far = { .dropped = 3 };
	struct sample sample = *model;
	enum hub_mode mode;

	assert_non_null(client.hub);
	assert_true(hub_next(client.hub, &mode));
	assert_true(hub_progress(client.hub, &so_far));
	assert_int_equal(pthread_create(&client.thread, NULL, capture, &client), 0);
	while (hub_progress(client.hub, &so_far)) {
		sample.time_ns = clock_now_ns(CLOCK_MONOTONIC);
		hub_take(client.hub, &sample);
		usleep(1000);
	}
	assert_int_equal(pthread_join(client.thread, NULL), 0);
	assert_int_equal(client.answer, HUB_DONE);
	hub_free(client.hub);
	*ret_recording = client.recording;
}

/* Those that the sampler dropped before it began are not its own. */
static void samples_that_do_not_fit_into_a_recording_count_as_dropped(void **state)
{
	struct frame *frames = calloc(RECORDING_DEPTH_MAX + 1, sizeof(*frames));
	const struct sample small = { .pid = 7, .tid = 7, .cpu_ns = 1 };
	struct sample deep = small;
	struct hub_recording recording;

	(void)state;
	assert_non_null(frames);
	deep.frames = frames;
	deep.frame_count = RECORDING_DEPTH_MAX + 1;
	/* On a busy machine, the capture may be over before the first sample. */
	for (int i = 0; i < TRIES_MAX; i++) {
		capture_of(&deep, &recording);
		fclose(recording.stream);
		if (recording.figures.dropped)
			break;
	}
	assert_true(recording.figures.dropped > 0);
	capture_of(&small, &recording);
	fclose(recording.stream);
	assert_int_equal(recording.figures.dropped, 0);
	free(frames);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_that_do_not_fit_into_a_recording_count_as_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include "src/serve/hub.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "output/recording/recording_writer.h"
#include "output/reports/turns.h"
#include "output/sample/functions.h"
#include "src/linux/clocks/clock.h"
#include "src/program/interruption.h"
#include "src/program/output_file.h"

/* How often a thread looks whether its client is still there, or whether a signal has come. */
enum { LOOK_NS = 200 * 1000 * 1000 };

/* A capture that cannot begin for so long is refused. */
static const uint64_t patience_ns = 400 * (uint64_t)NS_PER_SECOND;
/*
 * The loop stays in a higher mode for so long: another client may want the same, and a change costs samples.
 */
static const uint64_t linger_ns = 60 * (uint64_t)NS_PER_SECOND;
/* A run tells of itself once a second, but not while it looks at the targets before it begins. */
static const uint64_t silence_ns = 30 * (uint64_t)NS_PER_SECOND;

const unsigned int hub_turn_bounds_ms[HUB_TURN_BUCKETS] = { 5, 10, 20, 50, 100, 200, 500, 1000 };

struct hub_capture {
	struct hub_capture *next; /* in the order of their coming */
	enum hub_mode mode;
	bool begun;
	int error; /* 0, or the negative errno that it failed with */
	uint64_t begin_ns;
	FILE *stream;
	struct recording_writer *writer;
	struct turns *turns; /* HUB_TURNS */
	struct session session;
	struct figures figures, before; /* before: of the hub, when it began */
	uint64_t missing;               /* samples that exceed the limits of a recording */
};

struct hub {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct hub_options options;
	struct functions *functions;
	struct turns *turns; /* for the totals; NULL if the base mode has none */
	struct hub_capture *captures;
	size_t count;
	enum hub_mode mode; /* of the current run */
	bool running;       /* it samples */
	uint64_t ran_ns;    /* when it was seen to do so; 0: never */
	bool stopped;
	uint64_t higher_ns;   /* when a mode above the base was last wanted */
	struct figures ended; /* of runs that are over */
	uint64_t clocked_ns;  /* the time that their samples stand for */
	struct hub_totals totals;
};

/*---- Which mode ----*/

static bool is_exclusive(enum hub_mode mode)
{
	return mode >= HUB_COROUTINES;
}

/* May the capture go on now, as far as those before it are concerned? */
static bool is_due(const struct hub *hub, const struct hub_capture *capture)
{
	if (is_exclusive(capture->mode))
		return capture == hub->captures;
	for (const struct hub_capture *before = hub->captures; before != capture; before = before->next)
		if (is_exclusive(before->mode))
			return false;
	return true;
}

static enum hub_mode wanted_mode(struct hub *hub)
{
	enum hub_mode mode = hub->options.base;
	uint64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);

	for (const struct hub_capture *capture = hub->captures; capture; capture = capture->next) {
		if (is_exclusive(capture->mode))
			return capture == hub->captures ? capture->mode : mode;
		if (capture->mode > mode)
			mode = capture->mode;
	}
	if (mode > hub->options.base)
		hub->higher_ns = now_ns;
	else if (hub->running && !is_exclusive(hub->mode) && now_ns - hub->higher_ns < linger_ns)
		mode = hub->mode;
	return mode;
}

/* Does the current run have what the capture wants? */
static bool is_served(const struct hub *hub, const struct hub_capture *capture)
{
	if (!hub->running || !is_due(hub, capture))
		return false;
	return is_exclusive(capture->mode) || is_exclusive(hub->mode) ? capture->mode == hub->mode
								      : capture->mode <= hub->mode;
}

/*---- Captures ----*/

static int keep_sample(void *context, const struct turn *turn, const struct sample *sample)
{
	struct hub_capture *capture = context;

	(void)turn;
	return recording_writer_add(capture->writer, sample);
}

static void ignore_turn(void *context, const struct turn *turn, bool is_long)
{
	(void)context;
	(void)turn;
	(void)is_long;
}

/* 0 or a negative errno. */
static int begin_capture(struct hub *hub, struct hub_capture *capture)
{
	const struct turns_options turns = {
		.threshold_ns = hub->options.threshold_ns,
		.take = keep_sample,
		.close = ignore_turn,
		.context = capture,
	};
	struct session *session = &capture->session;
	int error;

	*session = hub->options.session;
	session->start_unix_ns = clock_now_ns(CLOCK_REALTIME);
	session->start_ns = clock_now_ns(CLOCK_MONOTONIC);
	session->clock = capture->mode == HUB_CPU ? WEIGHT_CPU_TIME : WEIGHT_WALL_TIME;
	capture->begin_ns = session->start_ns;
	capture->before = hub->totals.figures;
	if (capture->mode == HUB_TURNS)
		capture->turns = turns_new(&turns);
	if (capture->mode == HUB_TURNS && !capture->turns)
		return -ENOMEM;
	error = output_file_scratch(&capture->stream);
	return error ? error : recording_writer_new(capture->stream, session, &capture->writer);
}

/* Begin what the current run has samples for. */
static void begin_captures(struct hub *hub)
{
	for (struct hub_capture *capture = hub->captures; capture; capture = capture->next) {
		if (capture->begun || !is_served(hub, capture))
			continue;
		capture->begun = true;
		if (capture->mode != HUB_HEAP)
			capture->error = begin_capture(hub, capture);
	}
}

static void add_to(const struct hub *hub, struct hub_capture *capture, const struct sample *sample)
{
	int error;

	if (!capture->begun || capture->error || !is_served(hub, capture) ||
	    sample->time_ns < capture->begin_ns || (capture->mode == HUB_CPU && sample->cpu_ns == 0))
		return;
	capture->figures.target_cpu_ns += sample->cpu_ns;
	error = capture->turns ? turns_add(capture->turns, sample)
			       : recording_writer_add(capture->writer, sample);
	if (error == -EIO || error == -ENOMEM)
		capture->error = output_file_error(error);
	else if (error)
		capture->missing++;
}

static void free_capture(struct hub_capture *capture)
{
	recording_writer_free(capture->writer);
	turns_free(capture->turns);
	if (capture->stream)
		fclose(capture->stream);
	free(capture);
}

static void remove_capture(struct hub *hub, struct hub_capture *capture)
{
	struct hub_capture **link = &hub->captures;

	while (*link != capture)
		link = &(*link)->next;
	*link = capture->next;
	hub->count--;
	pthread_cond_broadcast(&hub->changed);
}

/*---- The hub ----*/

static void count_turn(void *context, const struct turn *turn, bool is_long)
{
	struct hub *hub = context;
	uint64_t length_ns = turn->end_ns > turn->begin_ns ? turn->end_ns - turn->begin_ns : 0;
	size_t bucket = 0;

	(void)is_long;
	while (bucket < HUB_TURN_BUCKETS && length_ns > hub_turn_bounds_ms[bucket] * UINT64_C(1000000))
		bucket++;
	hub->totals.turns[bucket]++;
	hub->totals.turn_ns += length_ns;
}

static int ignore_sample(void *context, const struct turn *turn, const struct sample *sample)
{
	(void)context;
	(void)turn;
	(void)sample;
	return 0;
}

/* Its waits are by the clock that nobody sets. */
static void init_changed(struct hub *hub)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&hub->changed, &attributes);
	pthread_condattr_destroy(&attributes);
}

struct hub *hub_new(const struct hub_options *options)
{
	struct hub *hub = calloc(1, sizeof(*hub));
	const struct turns_options turns = {
		.threshold_ns = options->threshold_ns,
		.take = ignore_sample,
		.close = count_turn,
		.context = hub,
	};

	if (!hub)
		return NULL;
	hub->options = *options;
	pthread_mutex_init(&hub->lock, NULL);
	init_changed(hub);
	hub->totals.has_turns = options->base == HUB_TURNS;
	if (hub->totals.has_turns)
		hub->turns = turns_new(&turns);
	hub->functions = functions_new();
	if (!hub->functions || (hub->totals.has_turns && !hub->turns)) {
		hub_free(hub);
		return NULL;
	}
	return hub;
}

void hub_free(struct hub *hub)
{
	if (!hub)
		return;
	turns_free(hub->turns);
	functions_free(hub->functions);
	pthread_cond_destroy(&hub->changed);
	pthread_mutex_destroy(&hub->lock);
	free(hub);
}

static void wait_a_little(struct hub *hub)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += LOOK_NS;
	until.tv_sec += until.tv_nsec / NS_PER_SECOND;
	until.tv_nsec %= NS_PER_SECOND;
	pthread_cond_timedwait(&hub->changed, &hub->lock, &until);
}

/*---- The sampling thread ----*/

static void note_running(struct hub *hub)
{
	hub->running = true;
	hub->ran_ns = clock_now_ns(CLOCK_MONOTONIC);
}

bool hub_next(struct hub *hub, enum hub_mode *ret_mode)
{
	bool go_on;

	pthread_mutex_lock(&hub->lock);
	while ((hub->mode = wanted_mode(hub)) == HUB_HEAP && !hub->stopped) {
		note_running(hub); /* nobody traces the targets */
		begin_captures(hub);
		pthread_cond_broadcast(&hub->changed);
		wait_a_little(hub);
		/* There is no run that a signal could end. */
		hub->stopped |= interruption_is_pending();
	}
	hub->running = false;
	hub->totals.runs++;
	*ret_mode = hub->mode;
	go_on = !hub->stopped;
	pthread_mutex_unlock(&hub->lock);
	return go_on;
}

struct functions *hub_functions(struct hub *hub)
{
	return hub->functions;
}

static void note_heap(struct hub_totals *totals, const struct sample *sample)
{
	struct hub_process *process = totals->processes, *oldest = process;

	for (; process < totals->processes + totals->process_count && process->pid != sample->pid; process++)
		if (process->seen_ns < oldest->seen_ns)
			oldest = process;
	if (process == totals->processes + HUB_PROCESSES_MAX)
		process = oldest;
	else if (process == totals->processes + totals->process_count)
		totals->process_count++;
	process->pid = sample->pid;
	process->heap_bytes = sample->gc.heap_bytes;
	process->seen_ns = sample->time_ns;
	snprintf(process->name, sizeof(process->name), "%s",
		 sample->process_name ? sample->process_name : "");
}

void hub_take(struct hub *hub, const struct sample *sample)
{
	pthread_mutex_lock(&hub->lock);
	note_running(hub);
	if (sample->vm_state < VM_STATE_COUNT)
		hub->totals.cpu_ns[sample->vm_state] += sample->cpu_ns;
	if (sample->gc.heap_bytes)
		note_heap(&hub->totals, sample);
	if (hub->turns && hub->mode == HUB_TURNS)
		turns_add(hub->turns, sample);
	for (struct hub_capture *capture = hub->captures; capture; capture = capture->next)
		add_to(hub, capture, sample);
	pthread_mutex_unlock(&hub->lock);
}

void hub_keep(struct hub *hub)
{
	pthread_mutex_lock(&hub->lock);
	if (hub->turns)
		turns_keep_functions(hub->turns);
	for (struct hub_capture *capture = hub->captures; capture; capture = capture->next) {
		if (capture->writer)
			recording_writer_forget_functions(capture->writer);
		if (capture->turns)
			turns_keep_functions(capture->turns);
	}
	pthread_mutex_unlock(&hub->lock);
}

static void sum_up(struct hub *hub, const struct figures *run)
{
	hub->totals.figures = hub->ended;
	figures_add(&hub->totals.figures, run);
}

bool hub_progress(struct hub *hub, const struct figures *so_far)
{
	bool go_on;

	pthread_mutex_lock(&hub->lock);
	note_running(hub);
	sum_up(hub, so_far);
	begin_captures(hub);
	go_on = !hub->stopped && wanted_mode(hub) == hub->mode;
	pthread_mutex_unlock(&hub->lock);
	return go_on;
}

void hub_note_end(struct hub *hub, const struct figures *figures)
{
	pthread_mutex_lock(&hub->lock);
	sum_up(hub, figures);
	if (figures->rate_reached_hz > 0)
		hub->clocked_ns += (uint64_t)((double)figures->samples * 1e9 / figures->rate_reached_hz);
	figures_set_rate(&hub->totals.figures, hub->clocked_ns);
	hub->ended = hub->totals.figures;
	hub->running = false;
	pthread_mutex_unlock(&hub->lock);
}

void hub_stop(struct hub *hub)
{
	pthread_mutex_lock(&hub->lock);
	hub->stopped = true;
	pthread_cond_broadcast(&hub->changed);
	while (hub->captures)
		pthread_cond_wait(&hub->changed, &hub->lock);
	pthread_mutex_unlock(&hub->lock);
}

/*---- Clients ----*/

bool hub_is_stopped(struct hub *hub)
{
	bool stopped;

	pthread_mutex_lock(&hub->lock);
	stopped = hub->stopped;
	pthread_mutex_unlock(&hub->lock);
	return stopped;
}

/* With the lock: a new capture, behind the others. */
static struct hub_capture *add_capture(struct hub *hub, const struct hub_request *request)
{
	struct hub_capture *capture, **link = &hub->captures;

	if (hub->count == HUB_CAPTURES_MAX || hub->stopped) {
		hub->totals.refused++;
		return NULL;
	}
	capture = calloc(1, sizeof(*capture));
	if (!capture)
		return NULL;
	capture->mode = request->mode;
	while (*link)
		link = &(*link)->next;
	*link = capture;
	hub->count++;
	hub->totals.captures++;
	begin_captures(hub);
	pthread_cond_broadcast(&hub->changed);
	return capture;
}

/* With the lock: wait until the capture has what was asked for. */
static enum hub_answer await(struct hub *hub, const struct hub_capture *capture,
			     const struct hub_request *request)
{
	const uint64_t came_ns = clock_now_ns(CLOCK_MONOTONIC);

	for (;;) {
		uint64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);

		if (hub->stopped)
			return HUB_STOPPED;
		if (capture->error)
			return HUB_FAILED;
		if (capture->begun && now_ns - capture->begin_ns >= request->duration_ns)
			return HUB_DONE;
		if (!capture->begun && now_ns - came_ns > patience_ns)
			return HUB_BUSY;
		if (!request->is_there(request->client)) {
			hub->totals.abandoned++;
			return HUB_GONE;
		}
		wait_a_little(hub);
	}
}

/* With the lock: complete the recording. 0 or a negative errno. */
static int finish(const struct hub *hub, struct hub_capture *capture)
{
	struct figures *figures = &capture->figures;
	int error = capture->turns ? turns_finish(capture->turns, &capture->missing) : 0;

	capture->session.duration_ns = clock_now_ns(CLOCK_MONOTONIC) - capture->begin_ns;
	figures->duration_ns = capture->session.duration_ns;
	figures_count_since(figures, &hub->totals.figures, &capture->before);
	figures->dropped += capture->missing;
	figures->rate_asked_hz = hub->options.rate_hz;
	if (!error)
		error = recording_writer_finish(capture->writer, &capture->session, figures);
	return output_file_error(error);
}

enum hub_answer hub_capture(struct hub *hub, const struct hub_request *request,
			    struct hub_recording *ret_recording, int *ret_error)
{
	enum hub_answer answer = HUB_BUSY;
	struct hub_capture *capture;

	pthread_mutex_lock(&hub->lock);
	capture = add_capture(hub, request);
	if (capture) {
		answer = await(hub, capture, request);
		if (answer == HUB_DONE)
			capture->error = finish(hub, capture);
		if (answer == HUB_DONE && capture->error)
			answer = HUB_FAILED;
		if (answer == HUB_FAILED)
			*ret_error = capture->error;
		remove_capture(hub, capture);
	}
	pthread_mutex_unlock(&hub->lock);
	if (!capture)
		return answer;
	if (answer == HUB_DONE) {
		*ret_recording = (struct hub_recording){ capture->stream, capture->session,
							 capture->figures };
		capture->stream = NULL;
	}
	free_capture(capture);
	return answer;
}

enum hub_answer hub_reserve(struct hub *hub, const struct hub_request *request,
			    struct hub_capture **ret_capture)
{
	enum hub_answer answer = HUB_BUSY;
	struct hub_capture *capture;

	pthread_mutex_lock(&hub->lock);
	capture = add_capture(hub, request);
	if (capture)
		answer = await(hub, capture, request);
	if (capture && answer != HUB_DONE) {
		remove_capture(hub, capture);
		free_capture(capture);
	}
	pthread_mutex_unlock(&hub->lock);
	if (answer == HUB_DONE)
		*ret_capture = capture;
	return answer;
}

void hub_release(struct hub *hub, struct hub_capture *capture)
{
	pthread_mutex_lock(&hub->lock);
	remove_capture(hub, capture);
	pthread_mutex_unlock(&hub->lock);
	free_capture(capture);
}

void hub_totals(struct hub *hub, struct hub_totals *ret_totals)
{
	pthread_mutex_lock(&hub->lock);
	*ret_totals = hub->totals;
	ret_totals->mode = hub->mode;
	ret_totals->running = hub->ran_ns && clock_now_ns(CLOCK_MONOTONIC) - hub->ran_ns < silence_ns &&
			      !hub->stopped;
	pthread_mutex_unlock(&hub->lock);
}

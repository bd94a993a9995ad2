/* SPDX-License-Identifier: MIT */
#include "src/top/live_samples.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A sample with copies of what it points to, except functions. */
struct live_sample {
	struct live_sample *next;
	size_t bytes;
	struct sample sample;
	struct frame frames[];
};

struct sample_list {
	struct live_sample *first, **end;
	size_t bytes;
	uint64_t complete_since_ns; /* earlier samples may have been dropped */
};

struct live_samples {
	struct sample_source source;    /* first: callbacks cast it to live_samples */
	const struct live_sample *next; /* what source returns next */
	struct sample_list collected;
	struct figures figures;
	uint64_t unseen_until_ns;

	pthread_mutex_t lock; /* protects what follows */
	struct sample_list pending;
	struct figures latest;
	bool out_of_memory;
};

/*---- Lists ----*/

static void list_clear(struct sample_list *list)
{
	list->first = NULL;
	list->end = &list->first;
	list->bytes = 0;
}

/* Leaves more empty. */
static void list_append(struct sample_list *list, struct sample_list *more)
{
	if (more->complete_since_ns > list->complete_since_ns)
		list->complete_since_ns = more->complete_since_ns;
	if (!more->first)
		return;
	*list->end = more->first;
	list->end = more->end;
	list->bytes += more->bytes;
	list_clear(more);
}

static void list_drop_first(struct sample_list *list)
{
	struct live_sample *first = list->first;

	list->first = first->next;
	list->bytes -= first->bytes;
	if (!list->first)
		list->end = &list->first;
	free(first);
}

static void list_limit(struct sample_list *list, uint64_t since_ns)
{
	if (list->complete_since_ns < since_ns)
		list->complete_since_ns = since_ns;
	while (list->first && list->first->sample.time_ns < since_ns)
		list_drop_first(list);
	while (list->first && list->bytes > LIVE_SAMPLES_BYTES_MAX) {
		list->complete_since_ns = list->first->sample.time_ns + 1;
		list_drop_first(list);
	}
}

/*---- The source ----*/

static int source_next(struct sample_source *source, struct sample *ret_sample)
{
	struct live_samples *live = (struct live_samples *)source;

	if (!live->next)
		return 0;
	*ret_sample = live->next->sample;
	live->next = live->next->next;
	return 1;
}

static int source_rewind(struct sample_source *source)
{
	struct live_samples *live = (struct live_samples *)source;

	live->next = live->collected.first;
	return 0;
}

struct live_samples *live_samples_new(void)
{
	struct live_samples *live = calloc(1, sizeof(*live));

	if (!live)
		return NULL;
	live->source.next = source_next;
	live->source.rewind = source_rewind;
	list_clear(&live->collected);
	list_clear(&live->pending);
	pthread_mutex_init(&live->lock, NULL);
	return live;
}

void live_samples_free(struct live_samples *live)
{
	if (!live)
		return;
	list_limit(&live->collected, UINT64_MAX);
	list_limit(&live->pending, UINT64_MAX);
	pthread_mutex_destroy(&live->lock);
	free(live);
}

/*---- Taking ----*/

/* Copy the string to *end; move *end behind it. */
static const char *keep_string(const char *string, char **end)
{
	size_t size;
	char *copy = *end;

	if (!string)
		return NULL;
	size = strlen(string) + 1;
	memcpy(copy, string, size);
	*end += size;
	return copy;
}

static size_t string_size(const char *string)
{
	return string ? strlen(string) + 1 : 0;
}

static struct live_sample *copy_sample(const struct sample *sample)
{
	size_t frames_size = sample->frame_count * sizeof(*sample->frames);
	size_t bytes = sizeof(struct live_sample) + frames_size + string_size(sample->process_name) +
		       string_size(sample->thread_name) + string_size(sample->phase);
	struct live_sample *copy = malloc(bytes);
	char *end;

	if (!copy)
		return NULL;
	copy->next = NULL;
	copy->bytes = bytes;
	copy->sample = *sample;
	if (frames_size)
		memcpy(copy->frames, sample->frames, frames_size);
	copy->sample.frames = copy->frames;
	end = (char *)copy->frames + frames_size;
	copy->sample.process_name = keep_string(sample->process_name, &end);
	copy->sample.thread_name = keep_string(sample->thread_name, &end);
	copy->sample.phase = keep_string(sample->phase, &end);
	copy->sample.request = (struct sample_request){ 0 }; /* nothing shows it */
	return copy;
}

void live_samples_take(struct live_samples *live, const struct sample *sample)
{
	struct live_sample *copy = copy_sample(sample);

	pthread_mutex_lock(&live->lock);
	if (copy) {
		struct sample_list added = { .first = copy, .end = &copy->next, .bytes = copy->bytes };

		list_append(&live->pending, &added);
		list_limit(&live->pending, 0);
	} else {
		live->out_of_memory = true;
	}
	pthread_mutex_unlock(&live->lock);
}

void live_samples_progress(struct live_samples *live, const struct figures *figures)
{
	pthread_mutex_lock(&live->lock);
	live->latest = *figures;
	pthread_mutex_unlock(&live->lock);
}

/*---- Showing ----*/

void live_samples_collect(struct live_samples *live, uint64_t since_ns, live_samples_see *see, void *context)
{
	const struct live_sample *added;

	pthread_mutex_lock(&live->lock);
	added = live->pending.first;
	list_append(&live->collected, &live->pending);
	live->figures = live->latest;
	live->unseen_until_ns = live->pending.complete_since_ns;
	pthread_mutex_unlock(&live->lock);
	for (; see && added; added = added->next)
		see(context, &added->sample);
	list_limit(&live->collected, since_ns);
	source_rewind(&live->source);
}

struct sample_source *live_samples_source(struct live_samples *live)
{
	return &live->source;
}

const struct figures *live_samples_figures(const struct live_samples *live)
{
	return &live->figures;
}

uint64_t live_samples_complete_since(const struct live_samples *live)
{
	return live->collected.complete_since_ns;
}

uint64_t live_samples_unseen_until(const struct live_samples *live)
{
	return live->unseen_until_ns;
}

bool live_samples_out_of_memory(struct live_samples *live)
{
	bool result;

	pthread_mutex_lock(&live->lock);
	result = live->out_of_memory;
	pthread_mutex_unlock(&live->lock);
	return result;
}

/* SPDX-License-Identifier: MIT */
#include "output/views/thread_samples.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static_assert(sizeof(struct table_sample) == 120, "the header tells what memory it takes");

struct thread_samples {
	struct sample_table *table;
	size_t room;
	struct table_sample *read; /* samples of the threads from first to before end, thread by thread */
	uint32_t first, end;
	struct place {
		size_t begin, count;
	} * places; /* for each thread: where its samples are in read */
};

struct thread_samples *thread_samples_new(struct sample_table *table)
{
	struct thread_samples *samples = calloc(1, sizeof(*samples));
	size_t share = table->sample_count / THREAD_SAMPLES_SHARE;

	if (!samples)
		return NULL;
	samples->table = table;
	samples->room = share > THREAD_SAMPLES_ROOM ? share : THREAD_SAMPLES_ROOM;
	samples->places = calloc((size_t)table->thread_count + 1, sizeof(*samples->places));
	if (samples->places)
		return samples;
	free(samples);
	return NULL;
}

void thread_samples_free(struct thread_samples *samples)
{
	if (!samples)
		return;
	free(samples->read);
	free(samples->places);
	free(samples);
}

static int keep(void *context, const struct table_sample *sample)
{
	struct thread_samples *samples = context;
	uint32_t thread = sample->kind.thread;
	struct place *place = &samples->places[thread];

	if (thread < samples->first || thread >= samples->end)
		return 0;
	if (place->count == samples->table->threads[thread].sample_count)
		return sample_table_changed();
	samples->read[place->begin + place->count++] = *sample;
	return 0;
}

/* Read the samples of this thread and of the threads after it that fit. 0 or a negative errno. */
static int read_from(struct thread_samples *samples, uint32_t thread)
{
	const struct sample_table *table = samples->table;
	size_t count = 0;
	int error;

	free(samples->read);
	samples->first = samples->end = thread;
	for (; samples->end < table->thread_count; samples->end++) {
		if (table->threads[samples->end].sample_count > samples->room - count)
			break;
		samples->places[samples->end] = (struct place){ .begin = count };
		count += table->threads[samples->end].sample_count;
	}
	samples->read = reallocarray(NULL, count, sizeof(*samples->read));
	error = samples->read ? sample_table_each(samples->table, keep, samples) : -ENOMEM;
	for (uint32_t i = thread; i < samples->end && !error; i++)
		if (samples->places[i].count != table->threads[i].sample_count)
			error = sample_table_changed();
	if (error)
		samples->end = thread;
	return error;
}

struct selection {
	uint32_t thread;
	sample_table_take *take;
	void *context;
};

static int select_sample(void *context, const struct table_sample *sample)
{
	const struct selection *selection = context;

	return sample->kind.thread == selection->thread ? selection->take(selection->context, sample) : 0;
}

int thread_samples_each(struct thread_samples *samples, uint32_t thread, sample_table_take *take,
			void *context)
{
	const struct place *place = &samples->places[thread];
	size_t count = samples->table->threads[thread].sample_count;
	int error = 0;

	if (count > samples->room)
		return sample_table_each(
			samples->table, select_sample,
			&(struct selection){ .thread = thread, .take = take, .context = context });
	if (thread < samples->first || thread >= samples->end)
		error = read_from(samples, thread);
	for (size_t i = 0; i < count && !error; i++)
		error = take(context, &samples->read[place->begin + i]);
	return error;
}

/* SPDX-License-Identifier: MIT */
#include "output/flamegraph/flamegraph_samples.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "memory/hash.h"
#include "output/labels/escape.h"
#include "output/views/color.h"
#include "output/views/profile_read.h"

/* RECENT is the number of places in the caches of threads and parts. */
enum { RECENT = 4096, PHASE_MAX = 256, TIME_BITS = 48, WEIGHT_BITS = 56 };

/*
 * A constant expression: gcc sees that a value masked by it fits into a bit-field, without optimising, too.
 */
#define LOW_BITS(count) ((UINT64_C(1) << (count)) - 1)

struct moment {
	const struct profile_node *leaf;
	uint64_t time_us : TIME_BITS;
	uint64_t thread : 16;
	uint64_t weight_ns : WEIGHT_BITS;
	uint64_t state : 8;
};

/* A thread in a phase. */
struct thread {
	struct thread_key {
		pid_t pid, tid;
		char phase[PHASE_MAX]; /* "" for none; longer ones are cut */
	} key;
	const char *process_name, *thread_name;
	const char *phase; /* of the first sample, whose pointer is compared first */
	uint32_t number;
	UT_hash_handle hh;
};

/* The sum of equal samples. No padding, because the key is hashed as bytes. */
struct part {
	struct part_key {
		const struct profile_node *leaf;
		uint32_t thread, state;
	} key;
	uint64_t weight_ns, samples;
	UT_hash_handle hh;
};

struct flamegraph_samples {
	struct profile *profile;
	struct flamegraph_samples_options options;
	struct cpu_use *cpu;
	size_t moments_max;
	struct moment *moments; /* NULL once there are too many */
	size_t moment_count, moment_room;
	struct thread *threads; /* in order of appearance */
	struct part *parts;     /* NULL until there are too many moments, and with too many parts */
	bool summing;           /* samples go into parts */
	bool too_many_parts;
	struct thread *recent_threads[RECENT];
	struct part *recent_parts[RECENT];
};

/*---- Threads ----*/

static bool is_thread(const struct thread *thread, const struct sample *sample)
{
	return thread && thread->key.pid == sample->pid && thread->key.tid == sample->tid &&
	       thread->phase == sample->phase;
}

static struct thread_key thread_key(const struct sample *sample)
{
	struct thread_key key;

	memset(&key, 0, sizeof(key));
	key.pid = sample->pid;
	key.tid = sample->tid;
	if (sample->phase)
		memcpy(key.phase, sample->phase, strnlen(sample->phase, PHASE_MAX - 1));
	return key;
}

static struct thread *add_thread(struct flamegraph_samples *samples, const struct sample *sample,
				 const struct thread_key *key)
{
	struct thread *thread = calloc(1, sizeof(*thread));

	if (!thread)
		return NULL;
	thread->key = *key;
	thread->process_name = sample->process_name;
	thread->thread_name = sample->thread_name;
	thread->phase = sample->phase;
	thread->number = (uint32_t)HASH_COUNT(samples->threads);
	HASH_ADD(hh, samples->threads, key, sizeof(thread->key), thread);
	if (hash_added(&thread->hh))
		return thread;
	free(thread);
	return NULL;
}

/* The thread of a sample in its phase; NULL when memory is short. */
static struct thread *find_thread(struct flamegraph_samples *samples, const struct sample *sample)
{
	static const struct sample others = { 0 };
	struct thread **recent =
		&samples->recent_threads[((size_t)sample->tid + (uintptr_t)sample->phase / 16) % RECENT];
	struct thread *thread = *recent;
	struct thread_key key;

	if (is_thread(thread, sample))
		return thread;
	key = thread_key(sample);
	HASH_FIND(hh, samples->threads, &key, sizeof(key), thread);
	if (!thread && HASH_COUNT(samples->threads) + 1 >= FLAMEGRAPH_THREADS_MAX) {
		sample = &others;
		key = thread_key(sample);
		HASH_FIND(hh, samples->threads, &key, sizeof(key), thread);
	}
	if (!thread)
		thread = add_thread(samples, sample, &key);
	*recent = thread;
	return thread;
}

/*---- Parts ----*/

static void free_parts(struct flamegraph_samples *samples)
{
	HASH_FREE_ALL(samples->parts);
}

static struct part *add_part(struct flamegraph_samples *samples, const struct part_key *key)
{
	struct part *part = calloc(1, sizeof(*part));

	if (!part)
		return NULL;
	part->key = *key;
	HASH_ADD(hh, samples->parts, key, sizeof(part->key), part);
	if (hash_added(&part->hh))
		return part;
	free(part);
	return NULL;
}

static int add_to_part(struct flamegraph_samples *samples, const struct moment *moment)
{
	struct part_key key = { .leaf = moment->leaf,
				.thread = (uint32_t)moment->thread,
				.state = (uint32_t)moment->state };
	size_t place = ((uintptr_t)moment->leaf / 16 + 31 * moment->thread + 7 * moment->state) % RECENT;
	struct part *part = samples->recent_parts[place];

	if (samples->too_many_parts)
		return 0;
	if (!part || memcmp(&part->key, &key, sizeof(key)) != 0) {
		HASH_FIND(hh, samples->parts, &key, sizeof(key), part);
		if (!part)
			part = add_part(samples, &key);
		if (!part)
			return -ENOMEM;
		samples->recent_parts[place] = part;
	}
	part->weight_ns += moment->weight_ns;
	part->samples++;
	if (HASH_COUNT(samples->parts) > FLAMEGRAPH_PARTS_MAX) {
		samples->too_many_parts = true;
		free_parts(samples);
	}
	return 0;
}

/* From now on, sum: first what there is. 0 or -ENOMEM. */
static int begin_summing(struct flamegraph_samples *samples)
{
	int error = 0;

	samples->summing = true;
	for (size_t i = 0; i < samples->moment_count && !error; i++)
		error = add_to_part(samples, &samples->moments[i]);
	free(samples->moments);
	samples->moments = NULL;
	samples->moment_count = 0;
	return error;
}

/*---- Reading ----*/

static int add_moment(struct flamegraph_samples *samples, const struct moment *moment)
{
	struct moment *moments = array_grow(samples->moments, &samples->moment_room,
					    samples->moment_count + 1, sizeof(*moments));

	if (!moments)
		return -ENOMEM;
	samples->moments = moments;
	samples->moments[samples->moment_count++] = *moment;
	return 0;
}

static int add_sample(void *context, const struct sample *sample, const struct profile_node *leaf)
{
	struct flamegraph_samples *samples = context;
	const struct thread *thread = find_thread(samples, sample);
	const uint64_t start_ns = samples->options.start_ns;
	uint64_t time_us = sample->time_ns > start_ns ? (sample->time_ns - start_ns) / 1000 : 0;
	struct moment moment = {
		.leaf = leaf,
		.time_us = time_us & LOW_BITS(TIME_BITS),
		.weight_ns = weight_of(profile_options(samples->profile)->weight, sample) &
			     LOW_BITS(WEIGHT_BITS),
		.state = (uint8_t)sample->vm_state,
	};

	if (!thread || cpu_use_add(samples->cpu, sample))
		return -ENOMEM;
	moment.thread = (uint16_t)thread->number;
	if (!samples->summing && samples->moment_count == samples->moments_max) {
		int error = begin_summing(samples);

		if (error)
			return error;
	}
	return samples->summing ? add_to_part(samples, &moment) : add_moment(samples, &moment);
}

int flamegraph_samples_read(struct sample_source *source, struct profile *profile,
			    const struct flamegraph_samples_options *options,
			    struct flamegraph_samples **ret_samples)
{
	struct flamegraph_samples *samples = calloc(1, sizeof(*samples));
	int error;

	if (!samples)
		return -ENOMEM;
	samples->profile = profile;
	samples->options = *options;
	samples->moments_max = options->all_moments ? SIZE_MAX : FLAMEGRAPH_MOMENTS_MAX;
	samples->cpu = cpu_use_new(options->start_ns, options->span, options->rate_hz);
	error = samples->cpu ? profile_read_each(profile, source, add_sample, samples) : -ENOMEM;
	if (error) {
		flamegraph_samples_free(samples);
		return error;
	}
	*ret_samples = samples;
	return 0;
}

void flamegraph_samples_free(struct flamegraph_samples *samples)
{
	if (!samples)
		return;
	HASH_FREE_ALL(samples->threads);
	free_parts(samples);
	cpu_use_free(samples->cpu);
	free(samples->moments);
	free(samples);
}

const struct cpu_use *flamegraph_samples_cpu(const struct flamegraph_samples *samples)
{
	return samples->cpu;
}

/*---- Writing ----*/

/* The index of a node in the list. */
struct place {
	const struct profile_node *node;
	size_t index;
};

struct places {
	struct place *places;
	size_t count;
};

static int compare_places(const void *a, const void *b)
{
	uintptr_t one = (uintptr_t)((const struct place *)a)->node;
	uintptr_t other = (uintptr_t)((const struct place *)b)->node;

	return (one > other) - (one < other);
}

static int sort_places(const struct profile_node *const *listed, size_t count, struct places *ret_places)
{
	struct place *places = calloc(count ? count : 1, sizeof(*places));

	if (!places)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		places[i] = (struct place){ .node = listed[i], .index = i };
	qsort(places, count, sizeof(*places), compare_places);
	*ret_places = (struct places){ places, count };
	return 0;
}

/* Write a line. number is the time since the one before, or the number of samples. */
static void write_line(FILE *out, uint64_t number, const struct moment *moment, const struct places *places)
{
	const struct profile_node *node = moment->leaf;
	const struct place *place = NULL;

	for (; node && !place; node = node->parent)
		place = bsearch(&(struct place){ .node = node }, places->places, places->count,
				sizeof(*places->places), compare_places);
	if (!place)
		return;
	fprintf(out, "%" PRId64 " %s%zu %c %" PRIu64, (int64_t)number, place->node == moment->leaf ? "" : "-",
		place->index, color_state_letter((enum vm_state)moment->state), (uint64_t)moment->weight_ns);
	if (moment->thread)
		fprintf(out, " %u", (unsigned)moment->thread);
	fputc('\n', out);
}

static void write_moments(FILE *out, const struct flamegraph_samples *samples, const struct places *places)
{
	const struct moment *moments = samples->moments;
	size_t count = samples->moment_count;
	uint64_t until_us = samples->options.span.until_ns / 1000, before_us = 0;

	/* Several recordings may overlap. */
	for (size_t i = 0; i < count; i++)
		if (moments[i].time_us >= until_us)
			until_us = moments[i].time_us + 1;
	fprintf(out, "<metadata id=\"moments\">%" PRIu64 " %" PRIu64 "\n",
		samples->options.span.since_ns / 1000, until_us);
	for (size_t i = 0; i < count; i++) {
		write_line(out, moments[i].time_us - before_us, &moments[i], places);
		before_us = moments[i].time_us;
	}
	fputs("</metadata>\n", out);
}

static void write_parts(FILE *out, const struct flamegraph_samples *samples, const struct places *places)
{
	fputs("<metadata id=\"parts\">", out);
	for (const struct part *part = samples->parts; part; part = part->hh.next)
		write_line(out, part->samples,
			   &(struct moment){
				   .leaf = part->key.leaf,
				   .thread = (uint16_t)part->key.thread,
				   .weight_ns = part->weight_ns & LOW_BITS(WEIGHT_BITS),
				   .state = (uint8_t)part->key.state,
			   },
			   places);
	fputs("</metadata>\n", out);
}

static void write_threads(FILE *out, const struct flamegraph_samples *samples)
{
	fputs("<metadata id=\"threads\">", out);
	for (const struct thread *thread = samples->threads; thread; thread = thread->hh.next) {
		fprintf(out, "%d %d ", (int)thread->key.pid, (int)thread->key.tid);
		escape_write(ESCAPE_XML, thread->process_name ? thread->process_name : "", out);
		fputc('\t', out);
		escape_write(ESCAPE_XML, thread->thread_name ? thread->thread_name : "", out);
		fputc('\t', out);
		escape_write(ESCAPE_XML, thread->key.phase, out);
		fputc('\n', out);
	}
	fputs("</metadata>\n", out);
}

int flamegraph_samples_write(FILE *out, const struct flamegraph_samples *samples,
			     const struct profile_node *const *listed, size_t listed_count)
{
	struct places places;
	int error;

	cpu_use_write(out, samples->cpu);
	if (samples->summing && (HASH_COUNT(samples->threads) < 2 || samples->too_many_parts))
		return 0;
	error = sort_places(listed, listed_count, &places);
	if (error)
		return error;
	write_threads(out, samples);
	if (samples->summing)
		write_parts(out, samples, &places);
	else
		write_moments(out, samples, &places);
	free(places.places);
	return 0;
}

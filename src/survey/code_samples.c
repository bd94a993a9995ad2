/* SPDX-License-Identifier: MIT */
#include "src/survey/code_samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "memory/hash.h"

/* An instruction of one trace, or of the interpreter. All bytes count. */
struct place_key {
	uint64_t address;
	uint64_t mcode; /* of the trace; 0 for bytecode */
	uint32_t pid, number;
};

_Static_assert(sizeof(struct place_key) == 2 * sizeof(uint64_t) + 2 * sizeof(uint32_t), "compared as bytes");

struct place {
	struct place_key key;
	uint64_t samples, cpu_ns;
	UT_hash_handle hh;
};

struct process_total {
	int pid;
	uint64_t samples, cpu_ns;
	UT_hash_handle hh;
};

struct code_samples {
	struct place *places;
	struct process_total *totals;
	const struct place **chosen; /* in the order of their addresses */
	size_t chosen_count, chosen_size;
};

struct code_samples *code_samples_new(void)
{
	return calloc(1, sizeof(struct code_samples));
}

void code_samples_free(struct code_samples *samples)
{
	if (!samples)
		return;
	HASH_FREE_ALL(samples->places);
	HASH_FREE_ALL(samples->totals);
	free(samples->chosen);
	free(samples);
}

static int add_to_total(struct code_samples *samples, const struct sample *sample)
{
	int pid = (int)sample->pid;
	struct process_total *total;

	HASH_FIND_INT(samples->totals, &pid, total);
	if (!total) {
		total = calloc(1, sizeof(*total));
		if (!total)
			return -ENOMEM;
		total->pid = pid;
		HASH_ADD_INT(samples->totals, pid, total);
		if (!hash_added(&total->hh)) {
			free(total);
			return -ENOMEM;
		}
	}
	total->samples++;
	total->cpu_ns += sample->cpu_ns;
	return 0;
}

int code_samples_add(struct code_samples *samples, const struct sample *sample)
{
	struct place_key key = { .address = sample->code_pc, .pid = (uint32_t)sample->pid };
	struct place *place;
	int error = add_to_total(samples, sample);

	if (error || !sample->code_pc)
		return error;
	if (sample->trace) {
		key.mcode = sample->trace->mcode;
		key.number = sample->trace->number;
	}
	HASH_FIND(hh, samples->places, &key, sizeof(key), place);
	if (!place) {
		place = calloc(1, sizeof(*place));
		if (!place)
			return -ENOMEM;
		place->key = key;
		HASH_ADD(hh, samples->places, key, sizeof(place->key), place);
		if (!hash_added(&place->hh)) {
			free(place);
			return -ENOMEM;
		}
	}
	place->samples++;
	place->cpu_ns += sample->cpu_ns;
	return 0;
}

/*---- Looking up ----*/

static int compare_places(const void *a, const void *b)
{
	const struct place *left = *(const struct place *const *)a, *right = *(const struct place *const *)b;

	return (left->key.address > right->key.address) - (left->key.address < right->key.address);
}

static void count_range(void *context, uint64_t begin, uint64_t end, uint64_t *ret_samples,
			uint64_t *ret_cpu_ns)
{
	const struct code_samples *samples = context;
	size_t low = 0, high = samples->chosen_count;

	*ret_samples = *ret_cpu_ns = 0;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (samples->chosen[middle]->key.address < begin)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < samples->chosen_count && samples->chosen[low]->key.address < end; low++) {
		*ret_samples += samples->chosen[low]->samples;
		*ret_cpu_ns += samples->chosen[low]->cpu_ns;
	}
}

int code_samples_of(struct code_samples *samples, pid_t pid, const struct trace *trace,
		    struct listing_samples *ret_samples)
{
	samples->chosen_count = 0;
	for (const struct place *place = samples->places; place; place = place->hh.next) {
		const struct place **chosen;

		if (place->key.pid != (uint32_t)pid || place->key.mcode != (trace ? trace->mcode : 0) ||
		    place->key.number != (trace ? trace->number : 0))
			continue;
		chosen = array_grow(samples->chosen, &samples->chosen_size, samples->chosen_count + 1,
				    sizeof(const struct place *));
		if (!chosen)
			return -ENOMEM;
		samples->chosen = chosen;
		chosen[samples->chosen_count++] = place;
	}
	if (samples->chosen_count)
		qsort(samples->chosen, samples->chosen_count, sizeof(const struct place *), compare_places);
	*ret_samples = (struct listing_samples){ .at = count_range, .context = samples };
	return 0;
}

void code_samples_total(const struct code_samples *samples, pid_t pid, uint64_t *ret_samples,
			uint64_t *ret_cpu_ns)
{
	int number = (int)pid;
	struct process_total *total;

	HASH_FIND_INT(samples->totals, &number, total);
	*ret_samples = total ? total->samples : 0;
	*ret_cpu_ns = total ? total->cpu_ns : 0;
}

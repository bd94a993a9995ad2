#include "output/tally.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Reading a source; what has been read is in the tally. */
struct reading {
	struct tally *tally;
	const struct view *view;
	bool calls;
	uint64_t count, number;		/* of samples: all, and those before the one at hand */
	unsigned int slice;
	const struct tally_row **rows;	/* of the sample at hand */
	size_t size;
};

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (added = false)

/*---- Slices ----*/

static void close_weight(struct tally_weight *weight, double slice_ns)
{
	weight->squares += (double)weight->slice_ns * (double)weight->slice_ns;
	weight->products += (double)weight->slice_ns * slice_ns;
	weight->slice_ns = 0;
}

/* What a row had in its slice is settled when it occurs in a later one, or at the end. */
static void close_slice(const struct tally *tally, struct tally_row *row)
{
	close_weight(&row->own, tally->slice_ns[row->slice]);
	close_weight(&row->total, tally->slice_ns[row->slice]);
}

static void add_weight(struct tally_weight *weight, uint64_t ns)
{
	weight->ns += ns;
	weight->slice_ns += ns;
	weight->samples++;
}

/*---- Rows and calls ----*/

static struct tally_row *find_row(struct reading *reading, const struct frame *frame)
{
	struct tally *tally = reading->tally;
	struct tally_key key = {
		.function = frame->function,
		.line = reading->view->by_line ? frame->line : 0,
	};
	struct tally_row *row;
	bool added = true;

	HASH_FIND(hh, tally->rows, &key, sizeof(key), row);
	if (row)
		return row;
	row = calloc(1, sizeof(*row));
	if (!row)
		return NULL;
	row->key = key;
	row->slice = reading->slice;
	HASH_ADD(hh, tally->rows, key, sizeof(row->key), row);
	if (added)
		return row;
	free(row);
	return NULL;
}

static int add_call(struct tally *tally, const struct tally_row *caller,
		    const struct tally_row *callee, uint64_t ns)
{
	struct tally_call *call, found = { .key = { caller, callee } };
	bool added = true;

	HASH_FIND(hh, tally->calls, &found.key, sizeof(found.key), call);
	if (!call) {
		call = calloc(1, sizeof(*call));
		if (!call)
			return -ENOMEM;
		call->key = found.key;
		HASH_ADD(hh, tally->calls, key, sizeof(call->key), call);
	}
	if (!added) {
		free(call);
		return -ENOMEM;
	}
	if (call->last_sample != tally->samples)
		call->ns += ns;
	call->last_sample = tally->samples;
	return 0;
}

/*---- Samples ----*/

static int reserve(struct reading *reading, size_t count)
{
	const struct tally_row **bigger;

	if (count <= reading->size)
		return 0;
	bigger = realloc(reading->rows, 2 * count * sizeof(const struct tally_row *));
	if (!bigger)
		return -ENOMEM;
	reading->rows = bigger;
	reading->size = 2 * count;
	return 0;
}

/* Samples are counted from 1, so that no row has occurred in one before the first. */
static int add_sample(struct reading *reading, const struct sample *sample)
{
	struct tally *tally = reading->tally;
	uint64_t ns = reading->view->weight == PROFILE_CPU_TIME ? sample->cpu_ns : sample->wall_ns;

	if (reserve(reading, sample->frame_count))
		return -ENOMEM;
	tally->samples++;
	tally->all_ns += ns;
	tally->sample_squares += (double)ns * (double)ns;
	tally->slice_ns[reading->slice] += (double)ns;
	for (size_t i = 0; i < sample->frame_count; i++) {
		struct tally_row *row = find_row(reading, &sample->frames[i]);

		if (!row)
			return -ENOMEM;
		reading->rows[i] = row;
		if (row->slice != reading->slice)
			close_slice(tally, row);
		row->slice = reading->slice;
		if (i == 0)
			add_weight(&row->own, ns);
		if (row->last_sample != tally->samples)
			add_weight(&row->total, ns);
		row->last_sample = tally->samples;
		if (i + 1 == sample->frame_count)
			row->root_ns += ns;
	}
	for (size_t i = 0; reading->calls && i + 1 < sample->frame_count; i++)
		if (add_call(tally, reading->rows[i + 1], reading->rows[i], ns))
			return -ENOMEM;
	return 0;
}

static int count_sample(void *context, const struct sample *sample)
{
	struct reading *reading = context;

	(void)sample;
	reading->count++;
	return 0;
}

static int read_sample(void *context, const struct sample *sample)
{
	struct reading *reading = context;

	reading->slice = (unsigned int)(reading->number++ * TALLY_SLICES / reading->count);
	return add_sample(reading, sample);
}

static int read_samples(struct reading *reading, struct sample_source *source)
{
	int error = sample_source_each(source, count_sample, reading);

	return error ? error : sample_source_each(source, read_sample, reading);
}

int tally_read(struct sample_source *source, const struct view *view, bool calls,
	       struct tally *ret_tally)
{
	struct tally tally = { 0 };
	struct reading reading = { .tally = &tally, .view = view, .calls = calls };
	int error = read_samples(&reading, source);

	free(reading.rows);
	if (error) {
		tally_clear(&tally);
		return error;
	}
	for (struct tally_row *row = tally.rows; row; row = row->hh.next)
		close_slice(&tally, row);
	for (size_t i = 0; i < TALLY_SLICES; i++)
		tally.slice_squares += tally.slice_ns[i] * tally.slice_ns[i];
	*ret_tally = tally;
	return 0;
}

void tally_clear(struct tally *tally)
{
	struct tally_row *row, *next_row;
	struct tally_call *call, *next_call;

	HASH_ITER(hh, tally->rows, row, next_row) {
		HASH_DEL(tally->rows, row);
		free(row);
	}
	HASH_ITER(hh, tally->calls, call, next_call) {
		HASH_DEL(tally->calls, call);
		free(call);
	}
}

/*---- Shares ----*/

double tally_share(const struct tally *tally, uint64_t ns)
{
	return tally->all_ns ? (double)ns / (double)tally->all_ns : 0;
}

double tally_error(const struct tally *tally, double share)
{
	double all = (double)tally->all_ns;

	return all > 0 ? sqrt(share * (1 - share) * tally->sample_squares) / all : 0;
}

/*
 * A share is a ratio of two sums over slices, w by W. Its error follows from
 * what each slice's w differs from share W; the sum of the squares of that is
 * the sum of w w, less 2 share times that of w W, and share^2 times that of W W.
 */
double tally_steady_error(const struct tally *tally, const struct tally_weight *weight)
{
	double share = tally_share(tally, weight->ns), all = (double)tally->all_ns;
	double rest = weight->squares - 2 * share * weight->products +
		      share * share * tally->slice_squares;
	double between = rest > 0 && all > 0
		? sqrt(rest * TALLY_SLICES / (TALLY_SLICES - 1)) / all : 0;
	double independent = tally_error(tally, share);

	return between > independent ? between : independent;
}

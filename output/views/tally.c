/* SPDX-License-Identifier: MIT */
#include "output/views/tally.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "memory/scatter.h"

enum {
	PILES = 1 << 14,      /* at most this many stacks have a pile; further ones take over another's */
	PILES_NEAR = 8,       /* possible places of a stack's pile */
	PILE_DEPTH_MAX = 256, /* deeper stacks keep a pile for one sample only */
};

/*
 * The samples of one stack in the current slice, which are counted together:
 * most stacks repeat, and finding their rows takes most of the time.
 */
struct pile {
	uint64_t stack;         /* from struct sample, or 0 */
	struct tally_key *keys; /* of its frames, leaf first; owned */
	size_t depth;
	struct tally_row **rows; /* each row of the stack once, the leaf's first; owned */
	size_t row_count;
	struct tally_row *owner;   /* of the leaf, or who allocated it; NULL without frames */
	struct tally_row *root;    /* of the outermost frame; the same */
	struct tally_row *lua;     /* of the innermost Lua function; NULL without one */
	struct tally_call **calls; /* each once; owned */
	size_t call_count;
	uint64_t ns, samples; /* not counted yet */
	double squares;       /* of the weights of these */
};

/* The state of reading a source. The tally and the piles hold everything read so far. */
struct reading {
	struct tally *tally;
	const struct view *view;
	bool calls;
	uint64_t count, number; /* of samples: the expected total, and those read so far */
	unsigned int slice;
	uint64_t piled;         /* number of piles begun so far */
	struct tally_key *keys; /* of the current sample, unless its pile was found without them */
	size_t size;
	struct pile *piles;
};

/*---- Slices ----*/

static void close_weight(struct tally_weight *weight, double slice_ns)
{
	weight->squares += (double)weight->slice_ns * (double)weight->slice_ns;
	weight->products += (double)weight->slice_ns * slice_ns;
	weight->slice_ns = 0;
}

/* Add a row's slice to its sums. Called when the row occurs in a later slice, and at the end. */
static void close_slice(const struct tally *tally, struct tally_row *row)
{
	close_weight(&row->own, tally->slice_ns[row->slice]);
	close_weight(&row->total, tally->slice_ns[row->slice]);
}

static void add_weight(struct tally_weight *weight, const struct pile *pile)
{
	weight->ns += pile->ns;
	weight->slice_ns += pile->ns;
	weight->samples += pile->samples;
	weight->sample_squares += pile->squares;
}

/*---- Rows and calls ----*/

static struct tally_row *find_row(struct reading *reading, const struct tally_key *key)
{
	struct tally *tally = reading->tally;
	struct tally_row *row;

	HASH_FIND(hh, tally->rows, key, sizeof(*key), row);
	if (row)
		return row;
	row = calloc(1, sizeof(*row));
	if (!row)
		return NULL;
	row->key = *key;
	row->slice = reading->slice;
	HASH_ADD(hh, tally->rows, key, sizeof(row->key), row);
	if (hash_added(&row->hh))
		return row;
	free(row);
	return NULL;
}

static struct tally_call *find_call(struct tally *tally, const struct tally_row *caller,
				    const struct tally_row *callee)
{
	struct tally_call *call, found = { .key = { caller, callee } };

	HASH_FIND(hh, tally->calls, &found.key, sizeof(found.key), call);
	if (call)
		return call;
	call = calloc(1, sizeof(*call));
	if (!call)
		return NULL;
	call->key = found.key;
	HASH_ADD(hh, tally->calls, key, sizeof(call->key), call);
	if (hash_added(&call->hh))
		return call;
	free(call);
	return NULL;
}

/*---- Piles ----*/

/* Count the samples of a pile in its rows and calls. */
static void count_pile(struct reading *reading, struct pile *pile)
{
	struct tally *tally = reading->tally;

	if (pile->samples == 0)
		return;
	for (size_t i = 0; i < pile->row_count; i++) {
		struct tally_row *row = pile->rows[i];

		if (row->slice != reading->slice)
			close_slice(tally, row);
		row->slice = reading->slice;
		if (row == pile->owner)
			add_weight(&row->own, pile);
		add_weight(&row->total, pile);
	}
	if (pile->root) {
		pile->root->root_ns += pile->ns;
		pile->root->root_squares += pile->squares;
	}
	for (size_t i = 0; i < pile->call_count; i++) {
		pile->calls[i]->ns += pile->ns;
		pile->calls[i]->squares += pile->squares;
	}
	pile->ns = pile->samples = 0;
	pile->squares = 0;
}

static void count_all(struct reading *reading)
{
	for (size_t i = 0; i < PILES; i++)
		count_pile(reading, &reading->piles[i]);
}

static void clear_pile(struct pile *pile)
{
	free(pile->keys);
	free(pile->rows);
	free(pile->calls);
	*pile = (struct pile){ 0 };
}

/* Find the rows and calls of the pile's frames, each once. 0 or -ENOMEM. */
static int find_rows(struct reading *reading, struct pile *pile)
{
	uint64_t mark = ++reading->piled;
	struct tally_row *callee = NULL;

	pile->lua = pile->owner = NULL;
	for (size_t i = 0; i < pile->depth; i++) {
		struct tally_row *row = find_row(reading, &pile->keys[i]);
		struct tally_call *call = NULL;

		if (!row)
			return -ENOMEM;
		if (!pile->owner || pile->owner->key.function->kind == FRAME_ALLOCATED)
			pile->owner = row;
		if (!pile->lua && row->key.function->kind == FRAME_LUA)
			pile->lua = row;
		if (row->last_pile != mark)
			pile->rows[pile->row_count++] = row;
		row->last_pile = mark;
		if (reading->calls && callee) {
			call = find_call(reading->tally, row, callee);
			if (!call)
				return -ENOMEM;
			if (call->last_pile != mark)
				pile->calls[pile->call_count++] = call;
			call->last_pile = mark;
		}
		callee = row;
	}
	pile->root = callee;
	return 0;
}

/* Begin a pile for the sample's stack, from reading->keys. 0 or -ENOMEM. */
static int begin_pile(struct reading *reading, struct pile *pile, const struct sample *sample)
{
	size_t depth = sample->frame_count, room = depth ? depth : 1;
	int error;

	count_pile(reading, pile);
	clear_pile(pile);
	pile->keys = calloc(room, sizeof(*pile->keys));
	pile->rows = calloc(room, sizeof(struct tally_row *));
	pile->calls = calloc(room, sizeof(struct tally_call *));
	if (!pile->keys || !pile->rows || !pile->calls) {
		clear_pile(pile);
		return -ENOMEM;
	}
	memcpy(pile->keys, reading->keys, depth * sizeof(*pile->keys));
	pile->depth = depth;
	pile->stack = sample->stack;
	error = find_rows(reading, pile);
	if (error)
		clear_pile(pile);
	return error;
}

/*---- Samples ----*/

static int reserve(struct reading *reading, size_t count)
{
	struct tally_key *keys;

	if (count <= reading->size)
		return 0;
	keys = array_grow(reading->keys, &reading->size, count, sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	reading->keys = keys;
	return 0;
}

/* Set reading->keys to the sample's frames. Returns the first possible place of their pile. */
static size_t set_keys(struct reading *reading, const struct sample *sample)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < sample->frame_count; i++) {
		const struct frame *frame = &sample->frames[i];
		struct tally_key *key = &reading->keys[i];

		*key = (struct tally_key){ .function = frame->function,
					   .line = reading->view->by_line ? frame->line : 0 };
		hash = scatter(hash ^ (uintptr_t)key->function ^ key->line << 48);
	}
	return hash % PILES;
}

static bool is_pile_of(const struct pile *pile, const struct reading *reading, const struct sample *sample)
{
	if (!pile->keys || pile->stack != sample->stack)
		return false;
	return sample->stack || (pile->depth == sample->frame_count &&
				 memcmp(pile->keys, reading->keys, pile->depth * sizeof(*pile->keys)) == 0);
}

/* The pile of the sample's stack, or the pile to reuse for it. */
static struct pile *find_pile(struct reading *reading, const struct sample *sample)
{
	size_t place = sample->stack ? scatter(sample->stack) % PILES : set_keys(reading, sample);
	struct pile *free_pile = NULL;

	for (size_t i = 0; i < PILES_NEAR; i++) {
		struct pile *pile = &reading->piles[(place + i) % PILES];

		if (is_pile_of(pile, reading, sample))
			return pile;
		if (!free_pile && !pile->keys)
			free_pile = pile;
	}
	return free_pile ? free_pile : &reading->piles[place];
}

static int add_sample(struct reading *reading, const struct sample *sample)
{
	struct tally *tally = reading->tally;
	const uint64_t ns = weight_of(reading->view->weight, sample);
	const double squares = (double)ns * (double)ns;
	struct pile *pile;

	if (reserve(reading, sample->frame_count))
		return -ENOMEM;
	pile = find_pile(reading, sample);
	if (!is_pile_of(pile, reading, sample)) {
		if (sample->stack)
			set_keys(reading, sample);
		if (begin_pile(reading, pile, sample))
			return -ENOMEM;
	}
	pile->ns += ns;
	pile->squares += squares;
	pile->samples++;
	if (sample->gc.phase != GC_PHASE_NONE && pile->lua) {
		pile->lua->collector_ns += ns;
		pile->lua->collector_squares += squares;
	}
	if (pile->depth > PILE_DEPTH_MAX) {
		count_pile(reading, pile);
		clear_pile(pile);
	}
	tally->samples++;
	tally->all_ns += ns;
	gc_bill_add(&tally->gc, sample, ns);
	tally->sample_squares += squares;
	tally->slice_ns[reading->slice] += (double)ns;
	return request_bill_add(&tally->requests, sample);
}

static int read_sample(void *context, const struct sample *sample)
{
	struct reading *reading = context;
	uint64_t place = reading->count ? reading->number++ * TALLY_SLICES / reading->count : 0;
	unsigned int slice = place < TALLY_SLICES ? (unsigned int)place : TALLY_SLICES - 1;

	if (slice != reading->slice)
		count_all(reading);
	reading->slice = slice;
	return add_sample(reading, sample);
}

int tally_read(struct sample_source *source, uint64_t count, const struct view *view, bool calls,
	       struct tally *ret_tally)
{
	struct tally tally = { 0 };
	struct reading reading = { .tally = &tally, .view = view, .calls = calls, .count = count };
	int error = -ENOMEM;

	reading.piles = calloc(PILES, sizeof(*reading.piles));
	if (reading.piles) {
		error = sample_source_each(source, read_sample, &reading);
		if (!error)
			error = request_bill_close(&tally.requests);
		count_all(&reading);
		for (size_t i = 0; i < PILES; i++)
			clear_pile(&reading.piles[i]);
	}
	free(reading.piles);
	free(reading.keys);
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
	HASH_FREE_ALL(tally->rows);
	HASH_FREE_ALL(tally->calls);
	request_bill_clear(&tally->requests);
}

/*---- Shares ----*/

double tally_share(const struct tally *tally, uint64_t ns)
{
	return tally->all_ns ? (double)ns / (double)tally->all_ns : 0;
}

double tally_error_of(double share, double squares, double all_squares)
{
	double even = share * (1 - share) * all_squares, others = fmax(all_squares - squares, 0);

	return sqrt(fmax((1 - share) * (1 - share) * squares + share * share * others, even));
}

double tally_error(const struct tally *tally, uint64_t ns, double squares)
{
	double share = tally_share(tally, ns), all = (double)tally->all_ns;

	return all > 0 ? tally_error_of(share, squares / (all * all), tally->sample_squares / (all * all))
		       : 0;
}

/*
 * A share is a ratio of two sums over slices, w by W. Its error follows from
 * the differences w - share W of the slices. The sum of their squares is
 * sum(w w) - 2 share sum(w W) + share^2 sum(W W).
 */
double tally_steady_error(const struct tally *tally, const struct tally_weight *weight)
{
	double share = tally_share(tally, weight->ns), all = (double)tally->all_ns;
	double rest = weight->squares - 2 * share * weight->products + share * share * tally->slice_squares;
	double between = rest > 0 && all > 0 ? sqrt(rest * TALLY_SLICES / (TALLY_SLICES - 1)) / all : 0;
	double independent = tally_error(tally, weight->ns, weight->sample_squares);

	return between > independent ? between : independent;
}

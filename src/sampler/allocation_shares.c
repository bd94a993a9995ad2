/* SPDX-License-Identifier: MIT */
#include "src/sampler/allocation_shares.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	PART_SIZES_MAX = 32,
	ARRAY_SLOT = 8, /* bytes */
	HASH_NODE = 24,
	MERGED_MAX = 8,   /* allocations that one look of a watch sees together */
	WATCHED_MIN = 16, /* fewer that watches have seen do not tell how many bytes are in large ones */
	STRING_STEPS_MAX = 64,
	GRANULE =
		16, /* sizes of strings and parts are put together: up to FINE_MAX in steps of so many bytes, */
	FINE_MAX = 512,    /* ... and from there on four steps to each doubling */
	STRINGS_MIN = 100, /* in windows, to compare these with intervals */
};

/* What windows and films of earlier divisions count at each division, in proportion. */
static const double fading = 0.75;

/* Of what films have seen of a part, if new tables explain less than this, they do not. */
static const double explained_min = 0.2;

/* What windows leave for strings and other parts is at least this part of what films say. */
static const double rest_min = 0.5;

/* Less than this of all bytes may be unexplained by chance. */
static const double unexplained_min = 0.05;

/* Looks meet an allocation of one kind up to so many times as often as one of another kind. */
static const double looks_max = 16;

/* Intervals tell how many strings there were if they know it of so many of the bytes. */
static const double known_min = 0.5;

/* What watches have seen of large allocations at earlier divisions counts at each one, in proportion: it is little. */
static const double large_fading = 0.9;
static const double large_enough = 100; /* fewer do not fade */

/* The samples of large allocations count, all together, as if watches had seen so many of these in addition. */
static const double seen_by_samples = 2;

/* Small allocations that a watch sees together with large ones have so much of their bytes at most. */
static const double merged_off = 0.02;

/*
 * Films do not tell the hash parts of new tables from other parts; windows and samples do. What is large is no such
 * part: LuaJIT puts only C objects on its list as it allocates them.
 */
enum part { PART_ANY, PART_FIRST, PART_GROWN, PART_LARGE, PART_LARGE_CDATA };

/* What cannot be told apart by counting: an object by its kind and size, a string or a part by its size. */
struct class_key {
	enum allocation_kind
		kind;   /* ALLOCATION_OTHER for all that is large, or no listed object and no string */
	uint64_t bytes; /* of strings, parts, userdata and prototypes a step; 0: of any size; see is_near() */
	uint32_t ctype; /* of cdata */
	enum part part; /* of parts */
};

struct class
{
	struct class_key key;
	double counted, counted_bytes; /* in windows, in films, or in watches; they fade */
	double part_bytes;             /* of parts: in windows, as parts of new tables; they fade */
	double bytes, objects;         /* that wait for samples */
	double samples, sample_bytes;  /* since the last division */
	double met;                    /* samples of what is large; they fade */
	double mean;                   /* size, by the samples so far; 0 if there were none */
};

/* The samples of all large allocations: see struct class. */
struct large_samples {
	double samples, sample_bytes, mean;
};

/* Samples of hash or array parts that have got this size: at once, or by growing from half of it. */
struct grown_size {
	enum allocation_kind kind;
	uint64_t bytes;
	double first, grown;
};

struct share_sample {
	size_t class;
	uint64_t bytes;
	bool is_object;
};

struct allocation_shares {
	struct allocation_sums sums;
	double after_objects; /* of all divisions */
	double large_bytes;   /* in large allocations, of the last division */
	struct large_samples large;
	/* Of intervals since the last division whose strings are known. */
	double known_bytes, known_strings;
	/* These fade. */
	double counted_samples;    /* of objects and strings: of what is counted */
	double small_sample_bytes; /* of samples of strings and of what is not counted, but for what is large */
	double listed_bytes;       /* of windows whose objects are known */
	double string_window_bytes, strings;       /* of windows whose strings are known */
	double film_large_bytes, film_part_bytes;  /* of films: in large allocations, in other parts */
	double watched;                            /* large allocations that watches have seen */
	double watched_bytes, watched_large_bytes; /* in all, and in large ones */
	struct class classes[ALLOCATION_CLASSES_MAX];
	size_t class_count;
	uint64_t part_sizes[PART_SIZES_MAX]; /* of samples */
	size_t part_size_count;
	uint64_t string_steps[STRING_STEPS_MAX]; /* likewise */
	size_t string_step_count;
	struct grown_size grown_sizes[2 * PART_SIZES_MAX];
	size_t grown_size_count;
	double unmet_bytes; /* that no sample has met, and which wait for one of what is large; they fade */
	double lost_bytes;  /* ... and what has faded */
	struct share_sample *samples;
	struct allocation_share *shares;
	size_t sample_count, sample_size;
};

/* The classes of what nothing has told apart: parts, strings, and large allocations where there are too many classes. */
enum { CLASS_PARTS, CLASS_STRINGS, CLASS_LARGE, CLASSES_FIXED };

struct allocation_shares *allocation_shares_new(void)
{
	struct allocation_shares *shares = calloc(1, sizeof(*shares));

	if (!shares)
		return NULL;
	shares->classes[CLASS_PARTS].key.kind = ALLOCATION_OTHER;
	shares->classes[CLASS_STRINGS].key.kind = ALLOCATION_STRING;
	shares->classes[CLASS_LARGE].key = (struct class_key){ .kind = ALLOCATION_OTHER, .part = PART_LARGE };
	shares->class_count = CLASSES_FIXED;
	return shares;
}

void allocation_shares_free(struct allocation_shares *shares)
{
	if (!shares)
		return;
	free(shares->samples);
	free(shares->shares);
	free(shares);
}

/*---- What was allocated ----*/

/* May few bytes be what they seem to be? */
static bool is_sound(const struct allocated *allocated)
{
	return !allocated->is_least && !allocated->may_have_resized && !allocation_sums_has_freed(allocated);
}

void allocation_shares_add_interval(struct allocation_shares *shares, const struct allocated *allocated,
				    uint64_t cpu_ns)
{
	allocation_sums_add_interval(&shares->sums, allocated, cpu_ns);
	if (allocated->knows_strings) {
		shares->known_bytes += (double)allocated->bytes;
		shares->known_strings += allocated->strings;
	}
}

void allocation_shares_add_look(struct allocation_shares *shares, uint64_t cpu_ns)
{
	shares->sums.look_ns = (double)cpu_ns;
	shares->sums.seen_ns += shares->sums.look_ns;
}

void allocation_shares_add_before(struct allocation_shares *shares, uint64_t cpu_ns)
{
	shares->sums.before_ns += (double)cpu_ns;
}

void allocation_shares_add_span(struct allocation_shares *shares, const struct span_piece *pieces,
				size_t count, bool is_slowed)
{
	allocation_sums_add_span(&shares->sums, pieces, count, is_slowed);
}

/* Sizes in one step are equal. */
static uint64_t size_step(uint64_t bytes)
{
	uint64_t step = GRANULE;

	if (bytes <= FINE_MAX)
		return (bytes + GRANULE - 1) / GRANULE * GRANULE;
	for (step = FINE_MAX; step < bytes - step && step < UINT64_MAX / 4; step *= 2)
		continue;
	return step + (bytes - step + step / 4 - 1) / (step / 4) * (step / 4);
}

/* The class, if there is one, or else a new one with create; fallback if there is none. */
static size_t find_class(struct allocation_shares *shares, const struct class_key *key, bool create,
			 size_t fallback)
{
	for (size_t i = CLASSES_FIXED; i < shares->class_count; i++) {
		const struct class_key *other = &shares->classes[i].key;

		if (other->kind == key->kind && other->ctype == key->ctype && other->part == key->part &&
		    (other->bytes == key->bytes || other->bytes == 0))
			return i;
	}
	if (!create || shares->class_count == ALLOCATION_CLASSES_MAX)
		return fallback;
	shares->classes[shares->class_count].key = *key;
	return shares->class_count++;
}

/* Of an object of the list. Userdata and prototypes have any size. */
static struct class_key object_key(enum allocation_kind kind, uint64_t bytes, uint32_t ctype)
{
	const bool has_steps = kind == ALLOCATION_USERDATA || kind == ALLOCATION_PROTO;

	return (struct class_key){ kind, has_steps ? size_step(bytes) : bytes, ctype, PART_ANY };
}

static size_t find_part_class(struct allocation_shares *shares, uint64_t bytes, enum part part)
{
	const struct class_key key = { .kind = ALLOCATION_OTHER, .bytes = size_step(bytes), .part = part };

	return find_class(shares, &key, true, CLASS_PARTS);
}

static struct grown_size *find_grown_size(struct allocation_shares *shares, enum allocation_kind kind,
					  uint64_t bytes, bool create)
{
	for (size_t i = 0; i < shares->grown_size_count; i++)
		if (shares->grown_sizes[i].kind == kind && shares->grown_sizes[i].bytes == bytes)
			return &shares->grown_sizes[i];
	if (!create ||
	    shares->grown_size_count == sizeof(shares->grown_sizes) / sizeof(shares->grown_sizes[0]))
		return NULL;
	shares->grown_sizes[shares->grown_size_count] = (struct grown_size){ .kind = kind, .bytes = bytes };
	return &shares->grown_sizes[shares->grown_size_count++];
}

/* Which part of those of this size have grown to it, as samples tell. */
static double grown_part(struct allocation_shares *shares, enum allocation_kind kind, uint64_t bytes)
{
	const struct grown_size *size = find_grown_size(shares, kind, bytes, false);

	return size ? size->grown / (size->first + size->grown) : 0;
}

static void add_part(struct allocation_shares *shares, uint64_t bytes, enum part part, double count)
{
	if (bytes >= ALLOCATION_LARGE_MIN)
		return;
	shares->classes[find_part_class(shares, bytes, part)].part_bytes += count * (double)bytes;
}

/* Count the hash part of a new table. It has doubled until then, or not, as those that samples have met. */
static void add_hash_part(struct allocation_shares *shares, uint64_t bytes)
{
	double part = 1;

	for (; bytes > 0; bytes /= 2) {
		const double grown = bytes % 2 == 0 ? part * grown_part(shares, ALLOCATION_HASH, bytes) : 0;
		const uint64_t old = bytes / 2;

		add_part(shares, bytes, PART_FIRST, part - grown);
		if (grown <= 0)
			return;
		add_part(shares, old, PART_GROWN, grown);
		part = grown;
	}
}

/* The same of its array part: one more slot than a power of two, of which half was added (lj_tab.c: bestasize). */
static void add_array_part(struct allocation_shares *shares, uint64_t bytes)
{
	double part = 1;

	for (; bytes > 0; bytes -= (bytes - ARRAY_SLOT) / 2) {
		const double grown = part * grown_part(shares, ALLOCATION_ARRAY, bytes);

		add_part(shares, bytes, PART_ANY, part - grown);
		if (grown <= 0)
			return;
		add_part(shares, (bytes - ARRAY_SLOT) / 2, PART_ANY, grown);
		part = grown;
	}
}

/*
 * Can a window with so many bytes have these objects? LuaJIT puts an object on the list before it fills it in
 * (lj_gc.c: lj_mem_newgco()). Where the thread loses its CPU right then, there is still what was freed there, which
 * may seem to be a table of gigabytes.
 */
static bool has_room_for(const struct allocated *allocated, const struct listed_object *objects, size_t count)
{
	double left = (double)allocated->bytes + ALLOCATED_FREED_MAX;

	for (size_t i = 0; i < count; i++)
		left -= (double)objects[i].bytes + (double)objects[i].hash_bytes +
			(double)objects[i].array_bytes;
	return left >= 0;
}

void allocation_shares_add_window(struct allocation_shares *shares, const struct allocated *allocated,
				  const struct listed_object *objects, size_t count)
{
	/* C objects that were finalized are not new. */
	if (!is_sound(allocated) || allocated->may_have_finalized || !objects ||
	    !has_room_for(allocated, objects, count))
		return;
	if (allocated->knows_strings) {
		shares->string_window_bytes += (double)allocated->bytes;
		shares->strings += allocated->strings;
	}
	shares->listed_bytes += (double)allocated->bytes;
	for (size_t i = 0; i < count; i++) {
		const struct class_key key = object_key(objects[i].kind, objects[i].bytes, objects[i].ctype);
		/* What is large has a class of its own. */
		const size_t class = objects[i].bytes < ALLOCATION_LARGE_MIN
					     ? find_class(shares, &key, true, CLASS_PARTS)
					     : CLASS_LARGE;

		if (class >= CLASSES_FIXED) {
			shares->classes[class].counted++;
			shares->classes[class].counted_bytes += (double)objects[i].bytes;
		}
		if (objects[i].hash_bytes)
			add_hash_part(shares, objects[i].hash_bytes);
		if (objects[i].array_bytes)
			add_array_part(shares, objects[i].array_bytes);
	}
}

/* Count a string or a part. */
static void add_filmed(struct allocation_shares *shares, uint64_t bytes, bool is_string)
{
	const struct class_key key = { .kind = is_string ? ALLOCATION_STRING : ALLOCATION_OTHER,
				       .bytes = size_step(bytes) };
	struct class *class =
		&shares->classes[find_class(shares, &key, true, is_string ? CLASS_STRINGS : CLASS_PARTS)];

	class->counted++;
	class->counted_bytes += (double)bytes;
}

static bool is_part_size(const struct allocation_shares *shares, uint64_t bytes)
{
	for (size_t i = 0; i < shares->part_size_count; i++)
		if (shares->part_sizes[i] == bytes)
			return true;
	return false;
}

/* Count the parts, one or two, of sizes that samples have had. One of an unknown size counts if it came alone. */
static void add_parts(struct allocation_shares *shares, const struct allocated_besides *besides)
{
	if (is_part_size(shares, besides->bytes) || besides->objects < 2) {
		add_filmed(shares, besides->bytes, false);
		return;
	}
	for (size_t i = 0; i < shares->part_size_count; i++)
		if (shares->part_sizes[i] < besides->bytes &&
		    is_part_size(shares, besides->bytes - shares->part_sizes[i])) {
			add_filmed(shares, shares->part_sizes[i], false);
			add_filmed(shares, besides->bytes - shares->part_sizes[i], false);
			return;
		}
}

/* LuaJIT counts a new string only when it has been copied: maybe at the next look, at which nothing else is new. */
static bool will_be_string(const struct allocation_counters *film, size_t i)
{
	const struct allocation_counters *now = &film[i], *next = now + 1;

	return i + 1 < ALLOCATION_FILM_LOOKS && next->strings == now->strings + 1 &&
	       next->total == now->total && next->root == now->root;
}

/* Has a sample met a string of about that size? */
static bool is_string_size(const struct allocation_shares *shares, uint64_t bytes)
{
	for (size_t i = 0; i < shares->string_step_count; i++)
		if (shares->string_steps[i] == size_step(bytes))
			return true;
	return false;
}

/* Count two strings of sizes that samples have met. False if no two fit. */
static bool add_two_strings(struct allocation_shares *shares, uint64_t bytes)
{
	for (size_t i = CLASSES_FIXED; i < shares->class_count; i++) {
		const uint64_t one = (uint64_t)(shares->classes[i].mean + 0.5);

		if (shares->classes[i].key.kind != ALLOCATION_STRING || one == 0 || one >= bytes ||
		    !is_string_size(shares, bytes - one))
			continue;
		add_filmed(shares, one, true);
		add_filmed(shares, bytes - one, true);
		return true;
	}
	return false;
}

/*
 * Count the strings, one or two, that are new between two looks. Parts of objects that are new, too, are subtracted.
 * Of two, LuaJIT may have counted one only (will_be_string()).
 */
static void add_strings(struct allocation_shares *shares, const struct allocated_besides *besides)
{
	const uint64_t bytes = besides->bytes - besides->part_bytes;
	const bool is_one = besides->strings == 1;

	if (besides->bytes <= besides->part_bytes || besides->strings > 2)
		return;
	if ((is_one && is_string_size(shares, bytes)) ||
	    (!add_two_strings(shares, bytes) && is_one && besides->objects == 0))
		add_filmed(shares, bytes, true);
}

static void add_besides(struct allocation_shares *shares, const struct allocation_counters *film, size_t i,
			const struct allocated_besides *besides)
{
	if (besides->strings > 0) {
		add_strings(shares, besides);
	} else if (will_be_string(film, i)) {
		add_filmed(shares, besides->bytes, true);
	} else {
		shares->film_part_bytes += (double)besides->bytes;
		add_parts(shares, besides);
	}
}

void allocation_shares_add_film(struct allocation_shares *shares,
				const struct allocation_counters film[static ALLOCATION_FILM_LOOKS],
				const struct listed_object *objects, size_t count)
{
	const bool knows_objects = count > 0 || film[ALLOCATION_FILM_LOOKS - 1].root == film[0].root;

	for (size_t i = 1; i < ALLOCATION_FILM_LOOKS; i++) {
		const uint64_t bytes = allocated_in_film(&film[i - 1], &film[i]);
		struct allocated_besides besides;

		/* So much at once is one allocation. */
		if (bytes >= ALLOCATION_LARGE_MIN)
			shares->film_large_bytes += knows_objects ? (double)bytes : 0;
		else if (allocated_besides_objects(&film[i - 1], &film[i], objects, count, &besides) &&
			 besides.bytes > 0)
			add_besides(shares, film, i, &besides);
	}
}

/*---- What is large ----*/

static bool is_large(const struct class *class)
{
	return class->key.part == PART_LARGE || class->key.part == PART_LARGE_CDATA;
}

/* Of one class are those of about the same size: small allocations come between two looks of a watch, too. */
static bool is_near(double bytes, double others)
{
	return fabs(bytes - others) <= others / 8;
}

static size_t find_large_class(struct allocation_shares *shares, uint64_t bytes, bool is_cdata, bool create)
{
	const struct class_key key = { .kind = ALLOCATION_OTHER,
				       .bytes = bytes,
				       .part = is_cdata ? PART_LARGE_CDATA : PART_LARGE };
	size_t nearest = CLASS_LARGE;
	double distance = INFINITY;

	for (size_t i = CLASSES_FIXED; i < shares->class_count; i++) {
		const struct class_key *other = &shares->classes[i].key;
		const double away = fabs((double)bytes - (double)other->bytes);

		if (other->part != key.part || away >= distance ||
		    !is_near((double)bytes, (double)other->bytes))
			continue;
		nearest = i;
		distance = away;
	}
	if (nearest != CLASS_LARGE || !create || shares->class_count == ALLOCATION_CLASSES_MAX)
		return nearest;
	shares->classes[shares->class_count].key = key;
	return shares->class_count++;
}

/* As watches see it: while the hash part of a table grows, its old one is there, too, half as large. */
static size_t large_class_of(struct allocation_shares *shares, const struct allocation *allocation)
{
	const bool is_whole = allocation->kind == ALLOCATION_HASH && allocation->is_first_part;

	return find_large_class(shares, allocation->bytes / (is_whole ? 2 : 1),
				allocation->kind == ALLOCATION_CDATA, true);
}

/* What a hash part of about that size has; 0 if none has. */
static uint64_t hash_bytes(uint64_t bytes)
{
	uint64_t hash = HASH_NODE;

	while (hash <= bytes / 2)
		hash *= 2;
	return bytes - hash <= hash / 64 ? hash : 0;
}

bool allocation_shares_has_large(const struct allocation_shares *shares)
{
	return shares->large.mean > 0;
}

static void add_seen(struct allocation_shares *shares, size_t class, double bytes, uint64_t count)
{
	shares->classes[class].counted += (double)count;
	shares->classes[class].counted_bytes += bytes;
	shares->watched += (double)count;
}

/* The class of which so many bytes are one or a few, and samples have met some; CLASS_LARGE if there is none. */
static size_t class_of_several(struct allocation_shares *shares, double bytes, bool is_cdata,
			       uint64_t *ret_count)
{
	for (uint64_t count = 1; count <= MERGED_MAX; count++) {
		const double one = bytes / (double)count;
		const size_t class = find_large_class(shares, (uint64_t)one, is_cdata, false);

		if (class == CLASS_LARGE || shares->classes[class].mean <= 0 ||
		    fabs(one - shares->classes[class].mean) > merged_off * one)
			continue;
		*ret_count = count;
		return class;
	}
	return CLASS_LARGE;
}

void allocation_shares_add_watched(struct allocation_shares *shares, uint64_t bytes, bool is_merged,
				   bool is_cdata)
{
	const uint64_t hash = is_cdata ? 0 : hash_bytes(bytes);
	uint64_t count = 1;
	size_t class;

	if (hash)
		bytes = hash / 2;
	shares->watched_bytes += (double)bytes;
	if (bytes < ALLOCATION_LARGE_MIN)
		return;
	shares->watched_large_bytes += (double)bytes;
	/* C arrays may follow each other as fast as looks do. So may steps of a table, but it doubles by each. */
	class = is_merged || is_cdata ? class_of_several(shares, (double)bytes, is_cdata, &count)
				      : CLASS_LARGE;
	if (class == CLASS_LARGE && !is_merged)
		class = find_large_class(shares, bytes, is_cdata, true);
	/* Several of different sizes stay untold, or there are too many classes. */
	if (class != CLASS_LARGE)
		add_seen(shares, class, (double)bytes, count);
}

/*---- Samples ----*/

/* The size that a part has got, and whether it has grown to it: as much as there was is added, or subtracted before. */
static void note_grown_size(struct allocation_shares *shares, const struct allocation *allocation)
{
	const bool is_hash = allocation->kind == ALLOCATION_HASH;
	const uint64_t bytes = allocation->bytes;
	const bool is_first = allocation->is_first_part ||
			      (!is_hash && (bytes < 2 * ARRAY_SLOT || (bytes & (bytes - 1))));
	struct grown_size *size = find_grown_size(
		shares, allocation->kind, is_first ? bytes : 2 * bytes + (is_hash ? 0 : ARRAY_SLOT), true);

	if (size)
		*(is_first ? &size->first : &size->grown) += 1;
}

static size_t class_of(struct allocation_shares *shares, const struct allocation *allocation)
{
	struct class_key key = object_key(allocation->kind, allocation->bytes, allocation->ctype);
	size_t any;

	if (allocation->bytes >= ALLOCATION_LARGE_MIN)
		return large_class_of(shares, allocation);
	if (allocation->kind == ALLOCATION_STRING) {
		key.bytes = size_step(allocation->bytes);
		if (!is_string_size(shares, key.bytes) && shares->string_step_count < STRING_STEPS_MAX)
			shares->string_steps[shares->string_step_count++] = key.bytes;
		return find_class(shares, &key, false, CLASS_STRINGS);
	}
	if (allocation_is_listed(allocation->kind))
		return find_class(shares, &key, false, CLASS_PARTS);
	if (allocation->kind == ALLOCATION_HASH || allocation->kind == ALLOCATION_ARRAY)
		note_grown_size(shares, allocation);
	if (shares->part_size_count < PART_SIZES_MAX && !is_part_size(shares, allocation->bytes))
		shares->part_sizes[shares->part_size_count++] = allocation->bytes;
	key = (struct class_key){ .kind = ALLOCATION_OTHER, .bytes = size_step(allocation->bytes) };
	any = find_class(shares, &key, false, CLASS_PARTS);
	if (allocation->kind != ALLOCATION_HASH)
		return any;
	key.part = allocation->is_first_part ? PART_FIRST : PART_GROWN;
	return find_class(shares, &key, false, any);
}

static bool make_room(struct allocation_shares *shares)
{
	size_t size = shares->sample_size ? 2 * shares->sample_size : 64;
	struct share_sample *samples;
	struct allocation_share *result;

	if (shares->sample_count < shares->sample_size)
		return true;
	samples = realloc(shares->samples, size * sizeof(*samples));
	if (samples)
		shares->samples = samples;
	result = realloc(shares->shares, size * sizeof(*result));
	if (result)
		shares->shares = result;
	if (!samples || !result)
		return false;
	shares->sample_size = size;
	return true;
}

ptrdiff_t allocation_shares_add_sample(struct allocation_shares *shares, const struct allocation *allocation)
{
	if (!make_room(shares))
		return -1;
	shares->samples[shares->sample_count] = (struct share_sample){
		.class = class_of(shares, allocation),
		.bytes = allocation->bytes,
		.is_object = allocation_is_object(allocation->kind),
	};
	return (ptrdiff_t)shares->sample_count++;
}

/*---- The division ----*/

enum allocation_sum allocation_shares_sum(const struct allocation_shares *shares, uint64_t *ret_bytes)
{
	*ret_bytes = shares->sums.sum_bytes > 0 ? (uint64_t)shares->sums.sum_bytes : 0;
	return shares->sums.sum;
}

uint64_t allocation_shares_large(const struct allocation_shares *shares)
{
	return shares->large_bytes > 0 ? (uint64_t)shares->large_bytes : 0;
}

static void add_up_large(struct allocation_shares *shares)
{
	struct large_samples *large = &shares->large;

	large->samples = large->sample_bytes = 0;
	for (size_t i = 0; i < shares->class_count; i++) {
		struct class *class = &shares->classes[i];

		if (!is_large(class))
			continue;
		class->met += class->samples;
		large->samples += class->samples;
		large->sample_bytes += class->sample_bytes;
	}
	if (large->samples > 0)
		large->mean = large->sample_bytes / large->samples;
}

static void add_up_samples(struct allocation_shares *shares)
{
	for (size_t i = 0; i < shares->class_count; i++)
		shares->classes[i].samples = shares->classes[i].sample_bytes = 0;
	for (size_t i = 0; i < shares->sample_count; i++) {
		struct class *class = &shares->classes[shares->samples[i].class];

		class->samples++;
		class->sample_bytes += (double)shares->samples[i].bytes;
		class->mean = class->sample_bytes / class->samples;
		shares->counted_samples += class->key.kind != ALLOCATION_OTHER;
		if (!is_large(class) && !allocation_is_listed(class->key.kind))
			shares->small_sample_bytes += (double)shares->samples[i].bytes;
	}
	add_up_large(shares);
}

/* The objects of a class among all bytes, and their bytes. */
static double objects_of(const struct allocation_shares *shares, const struct class *class, double bytes)
{
	return allocation_is_listed(class->key.kind) && shares->listed_bytes > 0
		       ? bytes * class->counted / shares->listed_bytes
		       : 0;
}

static double object_bytes_of(const struct allocation_shares *shares, const struct class *class, double bytes)
{
	const double mean = class->key.bytes && class->counted > 0 ? class->counted_bytes / class->counted
								   : class->mean;

	return objects_of(shares, class, bytes) * mean;
}

/* The class of parts of that size of new tables; NULL if none was seen. */
static const struct class *find_part(const struct allocation_shares *shares, const struct class *class,
				     enum part part)
{
	for (size_t i = CLASSES_FIXED; i < shares->class_count; i++) {
		const struct class_key *key = &shares->classes[i].key;

		if (key->kind == ALLOCATION_OTHER && key->part == part && key->bytes == class->key.bytes)
			return &shares->classes[i];
	}
	return NULL;
}

/* Has it had a sample, or other parts of its size? */
static bool was_sampled(const struct allocation_shares *shares, const struct class *class)
{
	const struct class *first, *grown;

	if (class->mean > 0 || class->key.kind != ALLOCATION_OTHER)
		return class->mean > 0;
	first = find_part(shares, class, PART_FIRST);
	grown = find_part(shares, class, PART_GROWN);
	return (first && first->mean > 0) || (grown && grown->mean > 0);
}

/*
 * What films have seen of one kind, in the sizes that have had samples. In a size without any, a film has mostly
 * seen several allocations as one.
 */
struct filmed {
	double objects, bytes;
};

static struct filmed add_up_films(const struct allocation_shares *shares, enum allocation_kind kind)
{
	struct filmed filmed = { 0 };

	for (size_t i = 0; i < shares->class_count; i++) {
		const struct class *class = &shares->classes[i];

		if (class->key.kind == kind && class->key.part == PART_ANY && was_sampled(shares, class)) {
			filmed.objects += class->counted;
			filmed.bytes += class->counted_bytes;
		}
	}
	return filmed;
}

/* Divide the strings, and their bytes, among their classes as films have seen them. */
static void add_strings_by_films(struct allocation_shares *shares, const struct filmed *filmed,
				 double objects, double bytes)
{
	if (filmed->bytes <= 0) {
		shares->classes[CLASS_STRINGS].objects += objects;
		shares->classes[CLASS_STRINGS].bytes += bytes;
		return;
	}
	for (size_t i = 0; i < shares->class_count; i++) {
		struct class *class = &shares->classes[i];

		if (class->key.kind != ALLOCATION_STRING || class->mean <= 0)
			continue;
		class->objects += objects * class->counted / filmed->objects;
		class->bytes += bytes * class->counted_bytes / filmed->bytes;
	}
}

/* What a class of parts has of all bytes, as parts of new tables. */
static double as_new(const struct allocation_shares *shares, const struct class *class, double bytes)
{
	return class->key.kind == ALLOCATION_OTHER && shares->listed_bytes > 0
		       ? bytes * class->part_bytes / shares->listed_bytes
		       : 0;
}

/* What films have seen of a size of parts, if new tables do not explain it. */
static double filmed_beyond(const struct allocation_shares *shares, const struct class *class, double bytes,
			    double parts, const struct filmed *filmed)
{
	const struct class *first, *grown;
	double seen, explained;

	if (class->key.kind != ALLOCATION_OTHER || class->key.part != PART_ANY || filmed->bytes <= 0 ||
	    !was_sampled(shares, class))
		return 0;
	first = find_part(shares, class, PART_FIRST);
	grown = find_part(shares, class, PART_GROWN);
	seen = parts * class->counted_bytes / filmed->bytes;
	explained = as_new(shares, class, bytes) + (first ? as_new(shares, first, bytes) : 0) +
		    (grown ? as_new(shares, grown, bytes) : 0);
	return explained < explained_min * seen ? seen : 0;
}

/* Whose it is: of older tables, which grow, if samples tell them apart. */
static size_t class_beyond(const struct allocation_shares *shares, size_t class)
{
	const struct class *grown = find_part(shares, &shares->classes[class], PART_GROWN);

	return shares->classes[class].mean <= 0 && grown && grown->mean > 0
		       ? (size_t)(grown - shares->classes)
		       : class;
}

/* How many strings there are for each byte, in windows, and by intervals if these know. */
static double strings_in_windows(const struct allocation_shares *shares)
{
	return shares->string_window_bytes > 0 ? shares->strings / shares->string_window_bytes : 0;
}

static double strings_of_all(const struct allocation_shares *shares)
{
	return shares->known_bytes > 0 && shares->known_bytes >= known_min * shares->sums.sum_bytes
		       ? shares->known_strings / shares->known_bytes
		       : strings_in_windows(shares);
}

/*
 * Which part of all bytes is like those of windows. These are short and few: by chance, they have none of the large
 * allocations, or have caught one. Strings tell, as intervals count them all.
 */
static double like_windows(const struct allocation_shares *shares)
{
	return shares->strings >= STRINGS_MIN ? strings_of_all(shares) / strings_in_windows(shares) : 1;
}

/*
 * What nothing else explains belongs to what is large, if samples have met such; and waits for the next sample, unless
 * it is so little that it may be chance. is_all: neither strings nor parts are known.
 */
static double large_bytes(const struct allocation_shares *shares, double bytes, double unexplained,
			  bool is_all)
{
	const struct large_samples *large = &shares->large;
	const struct class *parts = &shares->classes[CLASS_PARTS];

	if (unexplained <= 0 || large->mean <= 0)
		return 0;
	if (large->samples <= 0)
		return !is_all && unexplained >= unexplained_min * bytes ? unexplained : 0;
	return is_all ? unexplained * large->sample_bytes / (large->sample_bytes + parts->sample_bytes)
		      : unexplained;
}

/*
 * So much at most have strings and parts that samples have met, if so many objects and strings were counted:
 * looks have met them as often as these, or some times more or less.
 */
static double met_max(const struct allocation_shares *shares, double count, double string_bytes)
{
	return count > 0 && shares->counted_samples > 0
		       ? string_bytes +
				 looks_max * count * shares->small_sample_bytes / shares->counted_samples
		       : INFINITY;
}

/*
 * Of so many bytes, which are in parts and in large allocations, those in parts, if samples have met what is large: the
 * latter have the part of all bytes that watches tell, or that of these that films have seen.
 */
static double small_parts(const struct allocation_shares *shares, double all, double bytes)
{
	const double filmed = shares->film_large_bytes + shares->film_part_bytes;

	if (shares->large.mean <= 0)
		return bytes;
	if (shares->watched >= WATCHED_MIN)
		return fmax(0, bytes - all * shares->watched_large_bytes / shares->watched_bytes);
	return filmed > 0 ? bytes * shares->film_part_bytes / filmed : bytes;
}

/*
 * What no sample has met, with that of this division: a sample of what is large has it. It does not have what was long
 * before. Returns what it has.
 */
static double take_unmet(struct allocation_shares *shares, double unmet)
{
	const double waiting = shares->unmet_bytes;

	if (shares->large.samples > 0) {
		shares->unmet_bytes = 0;
		return waiting + unmet;
	}
	shares->unmet_bytes = fading * waiting + unmet;
	shares->lost_bytes += (1 - fading) * waiting;
	return 0;
}

/* How many of a class there were for each other one, as watches have seen them and, of few, samples. */
static double large_count(const struct class *class, double met)
{
	return class->counted + (met > 0 ? seen_by_samples * class->met / met : 0);
}

static double large_size(const struct class *class)
{
	return class->mean > 0 || class->counted <= 0 ? class->mean : class->counted_bytes / class->counted;
}

/*
 * Divide what is large among its classes. How often looks meet one depends on its kind: tables that grow copy what
 * they had, while C arrays are filled with zeros only after the allocation.
 */
static void add_large_by_watches(struct allocation_shares *shares, double bytes)
{
	double met = 0, sum = 0;

	for (size_t i = 0; i < shares->class_count; i++)
		met += shares->classes[i].met;
	for (size_t i = 0; i < shares->class_count; i++)
		if (is_large(&shares->classes[i]))
			sum += large_count(&shares->classes[i], met) * large_size(&shares->classes[i]);
	for (size_t i = 0; sum > 0 && i < shares->class_count; i++) {
		struct class *class = &shares->classes[i];

		if (is_large(class))
			class->bytes += bytes * large_count(class, met) * large_size(class) / sum;
	}
}

/*
 * Give each class its part of the bytes. Objects and the parts of new tables are counted in windows. Strings and
 * other parts, of tables that grow later, have the rest, and films tell what each of them has.
 */
static void add_to_classes(struct allocation_shares *shares, double bytes)
{
	const struct filmed strings = add_up_films(shares, ALLOCATION_STRING),
			    parts = add_up_films(shares, ALLOCATION_OTHER);
	const double string_count = bytes * strings_of_all(shares), counted = bytes * like_windows(shares);
	double count = string_count, listed = 0, new_parts = 0, beyond = 0;
	double string_bytes, part_bytes, rest, scale, large, unmet;

	for (size_t i = 0; i < shares->class_count; i++) {
		count += objects_of(shares, &shares->classes[i], counted);
		listed += object_bytes_of(shares, &shares->classes[i], counted);
		new_parts += as_new(shares, &shares->classes[i], counted);
	}
	string_bytes = string_count * (strings.objects > 0 ? strings.bytes / strings.objects
							   : shares->classes[CLASS_STRINGS].mean);
	part_bytes = small_parts(shares, bytes, fmax(0, bytes - listed - string_bytes));
	for (size_t i = 0; i < shares->class_count; i++)
		beyond += filmed_beyond(shares, &shares->classes[i], counted, part_bytes, &parts);
	rest = bytes - listed - new_parts;
	/* Windows are samples, too: if they count so much that too little is left, all have less. */
	scale = rest < rest_min * (string_bytes + beyond)
			? bytes / (listed + new_parts + string_bytes + beyond)
			: 1;
	rest = scale < 1 ? scale * (string_bytes + beyond) : rest;
	large = large_bytes(shares, bytes, rest - string_bytes - beyond, string_bytes + beyond <= 0);
	/* What no sample has met must not go to what samples have met. */
	unmet = rest - large - met_max(shares, count, string_bytes);
	unmet = unmet >= unexplained_min * bytes && unmet > 0 ? unmet : 0;
	rest -= large + unmet;
	shares->large_bytes = large + take_unmet(shares, unmet);
	add_large_by_watches(shares, shares->large_bytes);

	for (size_t i = 0; i < shares->class_count; i++) {
		struct class *class = &shares->classes[i];

		class->objects += objects_of(shares, class, scale * counted);
		class->bytes += object_bytes_of(shares, class, scale * counted) +
				as_new(shares, class, scale * counted);
		if (beyond > 0)
			shares->classes[class_beyond(shares, i)].bytes += rest / (string_bytes + beyond) *
									  filmed_beyond(shares, class,
											counted, part_bytes,
											&parts);
	}
	if (string_bytes > 0)
		add_strings_by_films(shares, &strings, scale * string_count,
				     rest * string_bytes / (string_bytes + beyond));
	else if (beyond <= 0)
		shares->classes[CLASS_PARTS].bytes += rest;
}

/*
 * Hash parts that were counted before any sample of their size wait as parts that came at once. If all samples since
 * were of tables that double, half of each came by doubling, and the other half before.
 */
static void move_waiting_hash_parts(struct allocation_shares *shares)
{
	for (size_t i = CLASSES_FIXED; i < shares->class_count; i++) {
		struct class *class = &shares->classes[i];
		const double bytes = class->bytes;
		const struct grown_size *size = class->key.part == PART_FIRST
							? find_grown_size(shares, ALLOCATION_HASH,
									  class->key.bytes, false)
							: NULL;

		if (!size || size->first > 0)
			continue;
		class->bytes = 0;
		shares->classes[find_part_class(shares, size->bytes / 2, PART_GROWN)].bytes += bytes / 2;
		shares->classes[find_part_class(shares, size->bytes / 2, PART_FIRST)].bytes += bytes / 2;
	}
}

static struct allocation_share share_of(const struct class *class, const struct share_sample *sample)
{
	const double bytes = class->bytes * (double)sample->bytes / class->sample_bytes;
	double objects = class->objects / class->samples;

	if (class->key.kind == ALLOCATION_OTHER)
		objects = sample->is_object ? bytes / (double)sample->bytes : 0;
	return (struct allocation_share){
		.bytes = bytes > 0 ? (uint64_t)(bytes + 0.5) : 0,
		.objects = objects > 0 ? (uint64_t)(objects + 0.5) : 0,
	};
}

static void fade(struct allocation_shares *shares)
{
	const double large = shares->watched * large_fading >= large_enough ? large_fading : 1;
	double *const sums[] = { &shares->counted_samples, &shares->small_sample_bytes,
				 &shares->listed_bytes,    &shares->string_window_bytes,
				 &shares->strings,         &shares->film_large_bytes,
				 &shares->film_part_bytes };
	double *const of_watches[] = { &shares->watched, &shares->watched_bytes,
				       &shares->watched_large_bytes };

	for (size_t i = 0; i < sizeof(of_watches) / sizeof(of_watches[0]); i++)
		*of_watches[i] *= large;
	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
		*sums[i] *= fading;
	for (size_t i = 0; i < shares->class_count; i++) {
		struct class *class = &shares->classes[i];
		const double part = is_large(class) ? large : fading;

		class->counted *= part;
		class->counted_bytes *= part;
		class->part_bytes *= part;
		class->met *= part;
	}
}

static double waiting_objects(const struct allocation_shares *shares)
{
	double objects = 0;

	for (size_t i = 0; i < shares->class_count; i++)
		objects += shares->classes[i].objects;
	return objects;
}

size_t allocation_shares_divide(struct allocation_shares *shares, const struct allocation_share **ret_shares)
{
	const size_t count = shares->sample_count;

	add_up_samples(shares);
	allocation_sums_add_up(&shares->sums);
	shares->after_objects -= waiting_objects(shares);
	add_to_classes(shares, shares->sums.sum_bytes);
	shares->after_objects += waiting_objects(shares);
	move_waiting_hash_parts(shares);
	for (size_t i = 0; i < count; i++)
		shares->shares[i] = share_of(&shares->classes[shares->samples[i].class], &shares->samples[i]);
	for (size_t i = 0; i < shares->class_count; i++)
		if (shares->classes[i].samples > 0 && shares->classes[i].bytes > 0)
			shares->classes[i].bytes = shares->classes[i].objects = 0;
	fade(shares);
	shares->sample_count = 0;
	allocation_sums_end(&shares->sums, fading);
	shares->known_bytes = shares->known_strings = 0;
	*ret_shares = shares->shares;
	return count;
}

size_t allocation_shares_class(const struct allocation_shares *shares, size_t sample)
{
	return shares->samples[sample].class;
}

/* Of less than nothing, nothing: windows have counted too much before. */
static struct allocation_share share_waiting(double bytes, double objects)
{
	return (struct allocation_share){
		.bytes = bytes > 0 ? (uint64_t)bytes : 0,
		.objects = objects > 0 ? (uint64_t)objects : 0,
	};
}

struct allocation_share allocation_shares_waiting(const struct allocation_shares *shares, size_t class)
{
	return share_waiting(shares->classes[class].bytes, shares->classes[class].objects);
}

struct allocation_share allocation_shares_unseen(const struct allocation_shares *shares)
{
	double bytes = shares->unmet_bytes + shares->lost_bytes, objects = 0;

	for (size_t i = 0; i < shares->class_count; i++) {
		if (shares->classes[i].mean > 0)
			continue;
		bytes += shares->classes[i].bytes;
		objects += shares->classes[i].objects;
	}
	return share_waiting(bytes, objects);
}

enum allocation_sum allocation_shares_before(const struct allocation_shares *shares,
					     struct allocation_share *ret_share,
					     uint64_t *ret_uncertain_bytes)
{
	const struct allocation_before before = allocation_sums_before(&shares->sums);

	*ret_share = share_waiting(before.part * shares->sums.after_bytes,
				   before.part * shares->after_objects);
	*ret_uncertain_bytes = before.uncertain_bytes > 0 ? (uint64_t)before.uncertain_bytes : 0;
	return before.sum;
}

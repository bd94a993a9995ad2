/* SPDX-License-Identifier: MIT */
#include "src/allocations/allocation_shares.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/allocations/allocation_shares_parts.h"

enum {
	STRINGS_MIN = 100, /* in windows, to compare these with intervals */
	UNTOLD_MAX = 2,    /* divisions: some 250 films have told nothing then */
	ALONE_MIN = 4, /* strings of a size that films have met: fewer may be several that came together */
};

/* Of what films have seen of a part, if new objects explain less than this, they do not. */
static const double explained_min = 0.2;

/* ... and neither if films have seen so many standard errors more than these explain: few are chance. */
static const double explained_errors = 3;

/* What windows leave for strings and other parts is at least this part of what films say. */
static const double rest_min = 0.5;

/*
 * Beside parts, strings have so many times as much as their number and size tell at most: sizes by films were
 * off by so much in the worst recordings measured.
 */
static const double strings_max = 1.5;

/* Looks meet an allocation of one kind up to so many times as often as one of another kind. */
static const double looks_max = 16;

/* Intervals tell how many strings there were if they know it of so many of the bytes. */
static const double known_min = 0.5;

/* What series have seen of large allocations at earlier divisions counts at each one, in proportion: it
 * is little. */
static const double large_fading = 0.9;
static const double large_enough = 100; /* fewer do not fade */

/*
 * What films have seen of one kind, in the sizes that they tell. Of parts, these have had samples: in a size
 * without any, a film has mostly seen several allocations as one.
 */
struct filmed {
	double objects, bytes;
};

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

bool shares_is_sound(const struct allocated *allocated)
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
		.class = shares_class_of(shares, allocation),
		.bytes = allocation->bytes,
		.is_object = allocation_is_object(allocation->kind),
	};
	return (ptrdiff_t)shares->sample_count++;
}

enum allocation_sum allocation_shares_sum(const struct allocation_shares *shares, uint64_t *ret_bytes)
{
	*ret_bytes = shares->sums.sum_bytes > 0 ? (uint64_t)shares->sums.sum_bytes : 0;
	return shares->sums.sum;
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
		if (!shares_is_large(class) && !allocation_is_listed(class->key.kind))
			shares->small_sample_bytes += (double)shares->samples[i].bytes;
	}
	shares_add_up_large(shares);
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

/* The class of parts of that size of new tables or coroutines; NULL if none was seen. */
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

/*
 * Has it had a sample, or other parts of its size? New coroutines are all counted: no film tells of more
 * stacks that they begin with.
 */
static bool was_sampled(const struct allocation_shares *shares, const struct class *class)
{
	bool is_sampled = class->mean > 0;

	if (class->key.kind != ALLOCATION_OTHER)
		return is_sampled;
	for (enum part part = PART_FIRST; part <= PART_STACK_GROWN && !is_sampled; part++) {
		const struct class *of_part = find_part(shares, class, part);

		is_sampled = of_part && of_part->mean > 0;
	}
	return is_sampled;
}

/* May films have taken a string that samples have met, and a part that was new with it, for one string? */
static bool may_be_sum(const struct allocation_shares *shares, const struct class *class)
{
	for (size_t i = CLASSES_FIXED; i < shares->class_count; i++) {
		const struct class *one = &shares->classes[i];

		if (one->key.kind != ALLOCATION_STRING || one->mean <= 0)
			continue;
		for (size_t part = 0; part < shares->part_size_count; part++)
			if (shares_size_step((uint64_t)(one->mean + 0.5) + shares->part_sizes[part]) ==
			    class->key.bytes)
				return true;
	}
	return false;
}

/*
 * Does it count what films have seen of it? Strings that they have met alone more than a few times are there,
 * and wait for a sample.
 */
static bool is_told(const struct allocation_shares *shares, const struct class *class)
{
	return was_sampled(shares, class) || (class->key.kind == ALLOCATION_STRING && class->key.bytes > 0 &&
					      class->counted >= ALONE_MIN && !may_be_sum(shares, class));
}

static struct filmed add_up_films(const struct allocation_shares *shares, enum allocation_kind kind)
{
	struct filmed filmed = { 0 };

	for (size_t i = 0; i < shares->class_count; i++) {
		const struct class *class = &shares->classes[i];

		if (class->key.kind == kind && class->key.part == PART_ANY && is_told(shares, class)) {
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

		if (class->key.kind != ALLOCATION_STRING || !is_told(shares, class))
			continue;
		class->objects += objects * class->counted / filmed->objects;
		class->bytes += bytes * class->counted_bytes / filmed->bytes;
	}
}

/* What a class of parts has of all bytes, as parts of new objects. */
static double as_new(const struct allocation_shares *shares, const struct class *class, double bytes)
{
	return class->key.kind == ALLOCATION_OTHER && shares->listed_bytes > 0
		       ? bytes * class->part_bytes / shares->listed_bytes
		       : 0;
}

/*
 * Have films seen as many of a size of parts as they see where new objects have so much of all bytes? What
 * films miss of other sizes must not make these more.
 */
static bool are_explained(const struct allocation_shares *shares, const struct class *class, double part)
{
	const double expected = part * shares->film_bytes * class->counted / class->counted_bytes;

	return class->counted <= expected + explained_errors * sqrt(expected);
}

/* What films have seen of a size of parts, if new objects do not explain it. */
static double filmed_beyond(const struct allocation_shares *shares, const struct class *class, double bytes,
			    double parts, const struct filmed *filmed)
{
	double seen, explained;

	if (class->key.kind != ALLOCATION_OTHER || class->key.part != PART_ANY || filmed->bytes <= 0 ||
	    class->counted <= 0 || !was_sampled(shares, class))
		return 0;
	seen = parts * class->counted_bytes / filmed->bytes;
	explained = as_new(shares, class, bytes);
	for (enum part part = PART_FIRST; part <= PART_STACK; part++) {
		const struct class *of_part = find_part(shares, class, part);

		explained += of_part ? as_new(shares, of_part, bytes) : 0;
	}
	return explained < explained_min * seen && !are_explained(shares, class, explained / bytes) ? seen
												    : 0;
}

/* Whose it is: of older tables or coroutines, which grow, if samples tell them apart. */
static size_t class_beyond(const struct allocation_shares *shares, size_t class)
{
	if (shares->classes[class].mean > 0)
		return class;
	for (enum part part = PART_GROWN; part <= PART_STACK_GROWN; part++) {
		const struct class *grown = find_part(shares, &shares->classes[class], part);

		if (grown && grown->mean > 0)
			return (size_t)(grown - shares->classes);
	}
	return class;
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
 * Which part of all bytes is like those of windows. These are short and few: by chance, they have none of the
 * large allocations, or have caught one. Strings tell, as intervals count them all.
 */
static double like_windows(const struct allocation_shares *shares)
{
	return shares->strings >= STRINGS_MIN ? strings_of_all(shares) / strings_in_windows(shares) : 1;
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
 * Of what strings and parts have, that of strings. Parts that samples have met may have most of it even where
 * films have met hardly any of them alone.
 */
static double strings_of(const struct allocation_shares *shares, double rest, double string_bytes,
			 double beyond)
{
	const double bytes = string_bytes > 0 ? rest * string_bytes / (string_bytes + beyond) : 0;

	return shares->part_size_count > 0 ? fmin(bytes, strings_max * string_bytes) : bytes;
}

/*
 * What parts have now: how often samples meet each of them does not tell. So it waits for films that do, but
 * not for long: there may be none.
 */
static double take_untold(struct allocation_shares *shares, double bytes, double beyond)
{
	const double all = shares->untold_bytes + bytes;

	if (beyond <= 0 && shares->film_bytes > 0 && shares->untold_count < UNTOLD_MAX) {
		shares->untold_bytes = all;
		shares->untold_count++;
		return 0;
	}
	shares->untold_bytes = 0;
	shares->untold_count = 0;
	return all;
}

/*
 * Give each class its part of the bytes. Objects and the parts of new tables are counted in windows. Strings
 * and other parts, of tables that grow later, have the rest, and films tell what each of them has.
 */
static void add_to_classes(struct allocation_shares *shares, double bytes)
{
	const struct filmed strings = add_up_films(shares, ALLOCATION_STRING),
			    parts = add_up_films(shares, ALLOCATION_OTHER);
	const double string_count = bytes * strings_of_all(shares), counted = bytes * like_windows(shares);
	double count = string_count, listed = 0, new_parts = 0, beyond = 0;
	double string_bytes, part_bytes, rest, scale, large, unmet, of_strings, of_parts;

	for (size_t i = 0; i < shares->class_count; i++) {
		count += objects_of(shares, &shares->classes[i], counted);
		listed += object_bytes_of(shares, &shares->classes[i], counted);
		new_parts += as_new(shares, &shares->classes[i], counted);
	}
	string_bytes = string_count * (strings.objects > 0 ? strings.bytes / strings.objects
							   : shares->classes[CLASS_STRINGS].mean);
	part_bytes = shares_small_parts(shares, bytes, fmax(0, bytes - listed - string_bytes));
	for (size_t i = 0; i < shares->class_count; i++)
		beyond += filmed_beyond(shares, &shares->classes[i], counted, part_bytes, &parts);
	rest = bytes - listed - new_parts;
	/* Windows are samples, too: if they count so much that too little is left, all have less. */
	scale = rest < rest_min * (string_bytes + beyond)
			? bytes / (listed + new_parts + string_bytes + beyond)
			: 1;
	rest = scale < 1 ? scale * (string_bytes + beyond) : rest;
	large = shares_large_bytes(shares, bytes, rest - string_bytes - beyond, string_bytes + beyond <= 0);
	/* What no sample has met must not go to what samples have met. */
	unmet = rest - large - met_max(shares, count, string_bytes);
	unmet = unmet >= unexplained_min * bytes && unmet > 0 ? unmet : 0;
	rest -= large + unmet;
	shares->large_bytes = large + shares_take_unmet(shares, unmet);
	shares_add_large_by_series(shares, shares->large_bytes);
	of_strings = strings_of(shares, rest, string_bytes, beyond);
	of_parts = take_untold(shares, rest - of_strings, beyond);

	for (size_t i = 0; i < shares->class_count; i++) {
		struct class *class = &shares->classes[i];

		class->objects += objects_of(shares, class, scale * counted);
		class->bytes += object_bytes_of(shares, class, scale * counted) +
				as_new(shares, class, scale * counted);
		if (beyond > 0)
			shares->classes[class_beyond(shares, i)].bytes +=
				of_parts / beyond * filmed_beyond(shares, class, counted, part_bytes, &parts);
	}
	if (string_bytes > 0)
		add_strings_by_films(shares, &strings, scale * string_count, of_strings);
	if (beyond <= 0)
		shares->classes[CLASS_PARTS].bytes += of_parts;
}

/*
 * Hash parts that were counted before any sample of their size wait as parts that came at once. If all
 * samples since were of tables that double, half of each came by doubling, and the other half before.
 */
static void move_waiting_hash_parts(struct allocation_shares *shares)
{
	for (size_t i = CLASSES_FIXED; i < shares->class_count; i++) {
		struct class *class = &shares->classes[i];
		const double bytes = class->bytes;
		const struct grown_size *size = class->key.part == PART_FIRST
							? shares_find_grown_size(shares, ALLOCATION_HASH,
										 class->key.bytes, false)
							: NULL;

		if (!size || size->first > 0)
			continue;
		class->bytes = 0;
		shares->classes[shares_part_class(shares, size->bytes / 2, PART_GROWN)].bytes += bytes / 2;
		shares->classes[shares_part_class(shares, size->bytes / 2, PART_FIRST)].bytes += bytes / 2;
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
	const double large = shares->series_large * large_fading >= large_enough ? large_fading : 1;
	double *const sums[] = { &shares->counted_samples, &shares->small_sample_bytes,
				 &shares->listed_bytes,    &shares->string_window_bytes,
				 &shares->strings,         &shares->film_large_bytes,
				 &shares->film_part_bytes, &shares->film_bytes };
	double *const of_series[] = { &shares->series_large, &shares->series_bytes,
				      &shares->series_large_bytes, &shares->series_untold_bytes };

	for (size_t i = 0; i < sizeof(of_series) / sizeof(of_series[0]); i++)
		*of_series[i] *= large;
	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
		*sums[i] *= fading;
	for (size_t i = 0; i < shares->grown_stack_count; i++)
		shares->grown_stacks[i].samples *= fading;
	for (size_t i = 0; i < shares->class_count; i++) {
		struct class *class = &shares->classes[i];
		const double part = shares_is_large(class) ? large : fading;

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
	const double untold = class == CLASS_PARTS ? shares->untold_bytes : 0;

	return share_waiting(shares->classes[class].bytes + untold, shares->classes[class].objects);
}

struct allocation_share allocation_shares_unseen(const struct allocation_shares *shares)
{
	double bytes = shares->unmet_bytes + shares->lost_bytes, objects = 0;

	for (size_t i = 0; i < shares->class_count; i++) {
		if (shares->classes[i].mean > 0)
			continue;
		bytes += shares->classes[i].bytes + (i == CLASS_PARTS ? shares->untold_bytes : 0);
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

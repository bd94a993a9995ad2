/* SPDX-License-Identifier: MIT */
/* Sources number their stacks so that what is known of one is found again: it changes no result. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/formats/format.h"
#include "output/recording/stack_cache.h"
#include "output/views/filter.h"
#include "output/views/sum.h"

/* More stacks than there are places for, one of them deep. */
enum { STACKS = 2 * STACK_CACHE_PLACES, SAMPLES = STACKS, DEEP = 300, FUNCTIONS = 50 };

static struct function functions[FUNCTIONS];
static struct frame deep[DEEP];

struct made {
	struct sample_source source; /* first: the source and this are one address */
	bool numbered;
	unsigned int next;
	struct frame frames[3];
};

static int next_sample(struct sample_source *source, struct sample *ret_sample)
{
	struct made *made = (struct made *)source;
	unsigned int which = made->next * 7919 % STACKS, number = which;

	if (made->next == SAMPLES)
		return 0;
	/* A few stacks come most of the time. */
	if (made->next % 3)
		number = which %= 5;
	for (int i = 0; i < 3; i++, which /= FUNCTIONS)
		made->frames[i] = (struct frame){
			.function = &functions[which % FUNCTIONS],
			.line = 1 + number % 3,
			.compiled = number % 2,
			.certainty = (enum frame_certainty)(number % CERTAINTY_COUNT),
		};
	*ret_sample = (struct sample){
		.time_ns = made->next,
		.pid = 1,
		.tid = 1,
		.cpu_ns = 1000 * (1 + made->next % 10),
		.vm_state = (enum vm_state)(made->next % VM_STATE_COUNT),
		.phase = made->next % 4 ? "content" : NULL,
		.frames = made->frames,
		.frame_count = 3,
		.stack = made->numbered ? 1 + number : 0,
	};
	if (number == 3) {
		ret_sample->frames = deep;
		ret_sample->frame_count = DEEP;
	}
	made->next++;
	return 1;
}

static int rewind_samples(struct sample_source *source)
{
	((struct made *)source)->next = 0;
	return 0;
}

/* What a format makes of the samples of two sources that pass a filter. */
static char *written(const char *format, const struct filter_options *options, bool numbered,
		     size_t *ret_length)
{
	struct made made[2] = {
		{ .source = { next_sample, rewind_samples }, .numbered = numbered },
		{ .source = { next_sample, rewind_samples }, .numbered = numbered },
	};
	const struct sum_part parts[] = { { &made[0].source, 0, 0 }, { &made[1].source, 1, 0 } };
	struct sum *sum = sum_new(parts, 2);
	struct functions *interned = functions_new();
	struct filter *filter = sum && interned ? filter_new(sum_samples(sum), interned, options) : NULL;
	struct session session = { .target = "made up" };
	struct figures figures = { .samples = 2 * SAMPLES };
	struct view view = { .by_line = true, .annotate = true };
	char *text;
	FILE *out = open_memstream(&text, ret_length);

	assert_non_null(filter);
	assert_non_null(out);
	assert_int_equal(
		format_by_name(format)->write(out, filter_samples(filter), &session, &figures, &view), 0);
	assert_int_equal(fclose(out), 0);
	filter_free(filter);
	functions_free(interned);
	sum_free(sum);
	return text;
}

static void assert_same_filtered(const char *format, const struct filter_options *options)
{
	size_t length, numbered_length;
	char *plain = written(format, options, false, &length);
	char *numbered = written(format, options, true, &numbered_length);

	assert_true(length > 1000);
	assert_int_equal(length, numbered_length);
	assert_memory_equal(plain, numbered, length);
	free(plain);
	free(numbered);
}

static void assert_same(const char *format)
{
	assert_same_filtered(format, &(struct filter_options){ 0 });
}

static void stacks_are_changed_in_the_same_way(void **state)
{
	regex_t few;

	(void)state;
	assert_int_equal(regcomp(&few, "f7 ", REG_NOSUB), 0);
	assert_same_filtered("folded", &(struct filter_options){ .group = GROUP_STATE });
	assert_same_filtered("folded", &(struct filter_options){ .group = GROUP_PHASE, .include = &few });
	assert_same_filtered("text", &(struct filter_options){ .exclude = &few, .merge_recursion = true });
	regfree(&few);
}

static void trees_are_the_same(void **state)
{
	(void)state;
	assert_same("folded");
}

static void tables_of_functions_are_the_same(void **state)
{
	(void)state;
	assert_same("text");
}

static void tables_of_samples_are_the_same(void **state)
{
	(void)state;
	assert_same("speedscope");
}

static void a_cache_holds_no_more_frames_than_it_may(void **state)
{
	struct stack_cache cache;
	size_t place;

	(void)state;
	assert_int_equal(stack_cache_init(&cache), 0);
	place = stack_cache_place(&cache, 1);
	assert_false(stack_cache_take(&cache, place, 1, STACK_CACHE_FRAMES + 1));
	assert_true(stack_cache_take(&cache, place, 1, STACK_CACHE_FRAMES));
	assert_int_equal(cache.places[stack_cache_place(&cache, 1)].number, 1);
	assert_false(stack_cache_take(&cache, stack_cache_place(&cache, 2), 2, 1));
	assert_true(stack_cache_take(&cache, place, 2, 1));
	assert_int_not_equal(cache.places[stack_cache_place(&cache, 1)].number, 1);
	stack_cache_forget(&cache);
	assert_int_equal(cache.places[place].number, 0);
	place = stack_cache_place(&cache, 3);
	assert_true(stack_cache_take(&cache, place, 3, STACK_CACHE_FRAMES));
	stack_cache_clear(&cache);
}

static void a_stack_that_is_replaced_makes_room_for_as_many_frames(void **state)
{
	struct stack_cache cache;
	size_t place, other;

	(void)state;
	assert_int_equal(stack_cache_init(&cache), 0);
	place = stack_cache_place(&cache, 1);
	for (uint64_t number = 1; number <= 4; number++)
		assert_true(stack_cache_take(&cache, place, number, STACK_CACHE_FRAMES / 2));
	other = stack_cache_place(&cache, 5);
	assert_int_not_equal(other, place);
	assert_false(stack_cache_take(&cache, other, 5, STACK_CACHE_FRAMES / 2 + 1));
	assert_true(stack_cache_take(&cache, other, 5, STACK_CACHE_FRAMES / 2));
	/* One that does not fit is gone with its frames, too. */
	assert_false(stack_cache_take(&cache, place, 6, STACK_CACHE_FRAMES / 2 + 1));
	assert_int_equal(cache.places[place].number, 0);
	assert_true(stack_cache_take(&cache, place, 6, STACK_CACHE_FRAMES / 2));
	stack_cache_clear(&cache);
}

/* As long as a number has an empty place, no stack of it is lost; with all taken, one makes way. */
static void numbers_with_the_same_first_place_are_cached_together(void **state)
{
	enum { TOGETHER = 8 };
	struct stack_cache cache;
	uint64_t numbers[TOGETHER + 1];
	size_t first, count = 0;

	(void)state;
	assert_int_equal(stack_cache_init(&cache), 0);
	first = stack_cache_place(&cache, 1);
	for (uint64_t number = 1; count <= TOGETHER; number++)
		if (stack_cache_place(&cache, number) == first)
			numbers[count++] = number;
	for (size_t i = 0; i < TOGETHER; i++)
		assert_true(stack_cache_take(&cache, stack_cache_place(&cache, numbers[i]), numbers[i], 0));
	for (size_t i = 0; i < TOGETHER; i++)
		assert_int_equal(cache.places[stack_cache_place(&cache, numbers[i])].number, numbers[i]);
	assert_int_equal(stack_cache_place(&cache, numbers[TOGETHER]), first);
	stack_cache_clear(&cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trees_are_the_same),
		cmocka_unit_test(tables_of_functions_are_the_same),
		cmocka_unit_test(tables_of_samples_are_the_same),
		cmocka_unit_test(stacks_are_changed_in_the_same_way),
		cmocka_unit_test(a_cache_holds_no_more_frames_than_it_may),
		cmocka_unit_test(a_stack_that_is_replaced_makes_room_for_as_many_frames),
		cmocka_unit_test(numbers_with_the_same_first_place_are_cached_together),
	};
	static char names[FUNCTIONS][8];

	for (unsigned int i = 0; i < FUNCTIONS; i++) {
		snprintf(names[i], sizeof(names[i]), "f%u", i);
		functions[i] = (struct function){ .kind = FRAME_LUA, .name = names[i], .file = "made.lua" };
	}
	for (size_t i = 0; i < DEEP; i++)
		deep[i] = (struct frame){ .function = &functions[i % 2] };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

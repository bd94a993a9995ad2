/* SPDX-License-Identifier: MIT */
/* The samples behind the frames of a flame graph, as its file has them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/flamegraph/flamegraph_samples.h"
#include "tests/unit/made_up_source.h"

#define MS UINT64_C(1000000)

enum { LISTED_MAX = 8 };

static const struct function chunk = { .kind = FRAME_LUA, .name = "main chunk", .file = "test.lua" };
static const struct function heavy = { .kind = FRAME_LUA, .name = "heavy", .file = "test.lua" };
static const struct function light = { .kind = FRAME_LUA, .name = "light", .file = "test.lua" };
static const struct frame in_heavy[] = { { .function = &heavy }, { .function = &chunk } };
static const struct frame in_light[] = { { .function = &light }, { .function = &chunk } };

static struct profile *new_profile(enum weight_kind weight)
{
	struct profile *profile = profile_new(&(struct profile_options){ .weight = weight });

	assert_non_null(profile);
	return profile;
}

/* What is written of a source, if the file lists the frames but those of left_out, which may be NULL. */
static char *written_without(struct sample_source *source, enum weight_kind weight,
			     const struct flamegraph_samples_options *options,
			     const struct function *left_out)
{
	const struct profile_node *listed[LISTED_MAX];
	struct profile *profile = new_profile(weight);
	struct flamegraph_samples *samples = NULL;
	size_t count = 0, size;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(flamegraph_samples_read(source, profile, options, &samples), 0);
	for (const struct profile_node *node = profile_root(profile); node && count < LISTED_MAX;
	     node = profile_node_next(node))
		if (!left_out || node->function != left_out)
			listed[count++] = node;
	assert_int_equal(flamegraph_samples_write(out, samples, listed, count), 0);
	assert_int_equal(fclose(out), 0);
	flamegraph_samples_free(samples);
	profile_free(profile);
	return text;
}

static char *written(struct made_up_source *source, const struct flamegraph_samples_options *options)
{
	return written_without(&source->source, WEIGHT_CPU_TIME, options, NULL);
}

/* Of two threads, one of them in two phases; the first sample is from before the beginning. */
static const struct sample few[] = {
	{ .time_ns = 7 * MS - 1,
	  .pid = 1,
	  .tid = 1,
	  .process_name = "a<b",
	  .cpu_ns = 10,
	  .wall_ns = 100,
	  .vm_state = VM_STATE_INTERPRETED,
	  .frames = in_heavy,
	  .frame_count = 2 },
	{ .time_ns = 7 * MS + 1999,
	  .pid = 1,
	  .tid = 2,
	  .process_name = "a<b",
	  .thread_name = "w\tk",
	  .phase = "content",
	  .cpu_ns = 20,
	  .wall_ns = 200,
	  .vm_state = VM_STATE_GC,
	  .frames = in_light,
	  .frame_count = 2 },
	{ .time_ns = 7 * MS + 4000, .pid = 1, .tid = 1, .cpu_ns = 30, .wall_ns = 300 },
	{ .time_ns = 7 * MS + 4000,
	  .pid = 1,
	  .tid = 1,
	  .phase = "acc&ess",
	  .cpu_ns = 40,
	  .wall_ns = 400,
	  .vm_state = VM_STATE_COMPILED,
	  .frames = in_light,
	  .frame_count = 2 },
};
enum { FEW = sizeof(few) / sizeof(few[0]) };

#define THREADS \
	"<metadata id=\"threads\">1 1 a&lt;b\t\t\n1 2 a&lt;b\tw\\tk\tcontent\n1 1 \t\tacc&amp;ess\n</metadata>\n"

static void each_sample_has_its_time_frame_state_weight_and_thread(void **state)
{
	const struct flamegraph_samples_options options = { .start_ns = 7 * MS, .span = { 1999, 9000 } };
	struct made_up_source source = made_up_source(few, FEW);
	char *text = written(&source, &options);

	(void)state;
	assert_string_equal(text, THREADS "<metadata id=\"moments\">1 9\n"
					  "0 2 i 10\n1 3 g 20 1\n3 0 n 30\n0 3 j 40 2\n</metadata>\n");
	free(text);
	text = written_without(&source.source, WEIGHT_WALL_TIME, &options, NULL);
	assert_non_null(strstr(text, "\n0 2 i 100\n1 3 g 200 1\n3 0 n 300\n0 3 j 400 2\n"));
	free(text);
}

static void a_frame_too_small_to_be_listed_has_its_samples_at_its_caller(void **state)
{
	const struct flamegraph_samples_options options = { .start_ns = 7 * MS };
	struct made_up_source source = made_up_source(few, FEW);
	char *text = written_without(&source.source, WEIGHT_CPU_TIME, &options, &light);

	(void)state;
	assert_non_null(strstr(text, "\n0 2 i 10\n1 -1 g 20 1\n3 0 n 30\n0 -1 j 40 2\n"));
	free(text);
	text = written_without(&source.source, WEIGHT_CPU_TIME, &options, &chunk);
	assert_non_null(strstr(text, "\n0 1 i 10\n1 2 g 20 1\n3 0 n 30\n0 2 j 40 2\n"));
	free(text);
}

static void the_time_of_the_recording_has_all_samples_in_it(void **state)
{
	static const struct {
		uint64_t until_ns;
		const char *wanted;
	} known[] = { { 0, ">0 5\n" },
		      { 4000, ">0 5\n" },
		      { 4999, ">0 5\n" },
		      { 5000, ">0 5\n" },
		      { 6000, ">0 6\n" } };

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct made_up_source source = made_up_source(few, FEW);
		char *text = written(&source, &(struct flamegraph_samples_options){
						      .start_ns = 7 * MS, .span = { 0, known[i].until_ns } });

		assert_non_null(strstr(text, known[i].wanted));
		free(text);
	}
}

/* Of a part of a recording, both its times and its CPU use are. */
static void a_chosen_time_begins_where_it_was_chosen(void **state)
{
	const struct flamegraph_samples_options options = { .start_ns = 7 * MS,
							    .span = { 300 * MS, 750 * MS } };
	struct sample late[] = { few[0], few[0] };
	struct made_up_source source = made_up_source(late, 2);
	char *text;

	(void)state;
	late[0].time_ns = 7 * MS + 400 * MS;
	late[1].time_ns = 7 * MS + 700 * MS;
	text = written(&source, &options);
	assert_non_null(strstr(text, "<metadata id=\"cpu\">200000 3 1000 300000 750000\n"));
	assert_non_null(
		strstr(text, "<metadata id=\"moments\">300000 750000\n400000 2 i 10\n300000 2 i 10\n<"));
	free(text);
}

/* Several recordings have strings of their own. Long phases are cut. */
static void a_phase_is_known_by_its_text(void **state)
{
	enum { CUT = 255 };
	char phases[4][2 * CUT] = { "content", "content" };
	struct sample samples[4] = { 0 };
	struct made_up_source source = made_up_source(samples, 4);
	char *text;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		if (i >= 2)
			memset(phases[i], 'p', CUT + i);
		samples[i] = few[3];
		samples[i].phase = phases[i];
	}
	text = written(&source, &(struct flamegraph_samples_options){ .start_ns = 7 * MS });
	phases[2][CUT] = '\0';
	assert_int_equal(strncmp(text, "<metadata id=\"threads\">1 1 \t\tcontent\n1 1 \t\t", 43), 0);
	assert_int_equal(strncmp(text + 43, phases[2], CUT), 0);
	assert_string_equal(text + 43 + CUT, "\n</metadata>\n<metadata id=\"moments\">0 5\n"
					     "4 2 j 40\n0 2 j 40\n0 2 j 40 1\n0 2 j 40 1\n</metadata>\n");
	free(text);
}

/* Threads that were seen lately are kept by where the texts of their phases are: these have one place. */
static void threads_and_phases_are_told_apart_wherever_their_texts_are(void **state)
{
	enum { APART = 1 << 16 };
	static char phases[APART + 16];
	struct sample samples[4] = { few[3], few[3], few[3], few[3] };
	struct made_up_source source = made_up_source(samples, 4);
	char *text;

	(void)state;
	strcpy(phases, "access");
	strcpy(phases + APART, "content");
	samples[0].phase = samples[3].phase = phases;
	samples[1].phase = samples[2].phase = phases + APART;
	samples[2].pid = 2;
	text = written(&source, &(struct flamegraph_samples_options){ .start_ns = 7 * MS });
	assert_string_equal(text, "<metadata id=\"threads\">1 1 \t\taccess\n1 1 \t\tcontent\n"
				  "2 1 \t\tcontent\n</metadata>\n<metadata id=\"moments\">0 5\n"
				  "4 2 j 40\n0 2 j 40 1\n0 2 j 40 2\n0 2 j 40\n</metadata>\n");
	free(text);
}

static void more_samples_have_no_times_unless_they_are_asked_for(void **state)
{
	struct made_up_source source = made_up_source(few, FEW);
	struct flamegraph_samples_options options = { .start_ns = 7 * MS };
	char *text;

	(void)state;
	source.count = FLAMEGRAPH_MOMENTS_MAX;
	text = written(&source, &options);
	assert_non_null(strstr(text, "<metadata id=\"moments\">"));
	assert_null(strstr(text, "<metadata id=\"parts\">"));
	free(text);
	/* One more: the first of its round. */
	source.count++;
	text = written(&source, &options);
	assert_string_equal(text, THREADS "<metadata id=\"parts\">"
					  "25001 2 i 250010\n25000 3 g 500000 1\n"
					  "25000 0 n 750000\n25000 3 j 1000000 2\n</metadata>\n");
	free(text);
	options.all_moments = true;
	text = written(&source, &options);
	assert_non_null(strstr(text, "<metadata id=\"moments\">"));
	assert_null(strstr(text, "<metadata id=\"parts\">"));
	free(text);
}

static void sums_of_one_thread_are_left_out(void **state)
{
	struct sample one = few[0];
	struct made_up_source source = made_up_source(&one, 1);
	char *text;

	(void)state;
	/* CPU time is told in any case, if it is of two steps at least. */
	one.time_ns = 7 * MS + 300 * MS;
	source.count = FLAMEGRAPH_MOMENTS_MAX + 1;
	text = written(&source, &(struct flamegraph_samples_options){ .start_ns = 7 * MS, .rate_hz = 99 });
	assert_int_equal(strncmp(text, "<metadata id=\"cpu\">", 19), 0);
	assert_null(strstr(text, "threads"));
	assert_null(strstr(text, "parts"));
	assert_null(strstr(text, "moments"));
	free(text);
}

static void sums_of_two_threads_are_there(void **state)
{
	struct made_up_source source = made_up_source(few, 2);
	char *text;

	(void)state;
	source.count = FLAMEGRAPH_MOMENTS_MAX + 2;
	text = written(&source, &(struct flamegraph_samples_options){ .start_ns = 7 * MS });
	assert_non_null(strstr(text, "<metadata id=\"parts\">50001 2 i 500010\n50001 3 g 1000020 1\n<"));
	free(text);
}

/* Samples of which each is the only one of its thread in its function. */
struct many {
	struct sample_source source; /* first: what is read */
	struct function *functions;
	struct frame frame;
	size_t threads, count, next;
};

static int next_of_many(struct sample_source *source, struct sample *ret_sample)
{
	struct many *many = (struct many *)source;

	if (many->next == many->count)
		return 0;
	many->frame.function = &many->functions[many->next / many->threads];
	*ret_sample = (struct sample){ .pid = 1,
				       .tid = (pid_t)(many->next % many->threads + 1),
				       .cpu_ns = 1,
				       .frames = &many->frame,
				       .frame_count = 1 };
	many->next++;
	return 1;
}

static int rewind_many(struct sample_source *source)
{
	((struct many *)source)->next = 0;
	return 0;
}

static void too_many_sums_are_left_out(void **state)
{
	enum { THREADS_OF_MANY = 1000, FUNCTIONS = FLAMEGRAPH_PARTS_MAX / THREADS_OF_MANY + 1 };
	static struct function functions[FUNCTIONS];

	(void)state;
	for (size_t more = 0; more < 2; more++) {
		struct many many = { .source = { next_of_many, rewind_many },
				     .functions = functions,
				     .threads = THREADS_OF_MANY,
				     .count = FLAMEGRAPH_PARTS_MAX + more };
		char *text = written_without(&many.source, WEIGHT_CPU_TIME,
					     &(struct flamegraph_samples_options){ 0 }, NULL);

		if (more)
			assert_string_equal(text, "");
		else
			assert_non_null(strstr(text, "\n1 -0 n 1 999\n</metadata>"));
		free(text);
	}
}

static void threads_beyond_a_number_count_as_one(void **state)
{
	static struct function function;
	struct many many = { .source = { next_of_many, rewind_many },
			     .functions = &function,
			     .threads = FLAMEGRAPH_THREADS_MAX + 10,
			     .count = FLAMEGRAPH_THREADS_MAX + 10 };
	char *text = written_without(&many.source, WEIGHT_CPU_TIME, &(struct flamegraph_samples_options){ 0 },
				     NULL);
	char last[64];

	(void)state;
	snprintf(last, sizeof(last), "\n1 %d \t\t\n0 0 \t\t\n</metadata>", FLAMEGRAPH_THREADS_MAX - 1);
	assert_non_null(strstr(text, last));
	snprintf(last, sizeof(last), "\n0 1 n 1 %d\n0 1 n 1 %d\n</metadata>", FLAMEGRAPH_THREADS_MAX - 1,
		 FLAMEGRAPH_THREADS_MAX - 1);
	assert_non_null(strstr(text, last));
	snprintf(last, sizeof(last), "\n0 1 n 1 %d\n", FLAMEGRAPH_THREADS_MAX);
	assert_null(strstr(text, last));
	free(text);
}

static void an_error_of_the_source_is_passed_on(void **state)
{
	struct made_up_source source = made_up_source(few, FEW);
	struct profile *profile = new_profile(WEIGHT_CPU_TIME);
	struct flamegraph_samples *samples = NULL;

	(void)state;
	source.end = -EBADMSG;
	assert_int_equal(flamegraph_samples_read(&source.source, profile,
						 &(struct flamegraph_samples_options){ 0 }, &samples),
			 -EBADMSG);
	assert_null(samples);
	flamegraph_samples_free(NULL);
	profile_free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_sample_has_its_time_frame_state_weight_and_thread),
		cmocka_unit_test(a_frame_too_small_to_be_listed_has_its_samples_at_its_caller),
		cmocka_unit_test(the_time_of_the_recording_has_all_samples_in_it),
		cmocka_unit_test(a_chosen_time_begins_where_it_was_chosen),
		cmocka_unit_test(a_phase_is_known_by_its_text),
		cmocka_unit_test(threads_and_phases_are_told_apart_wherever_their_texts_are),
		cmocka_unit_test(more_samples_have_no_times_unless_they_are_asked_for),
		cmocka_unit_test(sums_of_one_thread_are_left_out),
		cmocka_unit_test(sums_of_two_threads_are_there),
		cmocka_unit_test(too_many_sums_are_left_out),
		cmocka_unit_test(threads_beyond_a_number_count_as_one),
		cmocka_unit_test(an_error_of_the_source_is_passed_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

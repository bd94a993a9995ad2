/* SPDX-License-Identifier: MIT */
/* The flame graph's plain shapes: which frames they show, where, how wide and in which colours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/flamegraph/flamegraph_static.h"
#include "output/over_time/cpu_picture.h"

/* Of weight, a tenth of a pixel: the picture is 1176 pixels wide without its margins. */
enum { ALL = 11760 };

static const struct function chunk = { .kind = FRAME_LUA, .name = "chunk" };
static const struct function heavy = { .kind = FRAME_BUILTIN, .name = "heavy" };
static const struct function light = { .kind = FRAME_LUA, .name = "a light one" };

static struct flamegraph_header header = { .lines = { "title", "detail" }, .count = 2 };

static struct profile *new_profile(enum weight_kind weight, bool inverted)
{
	struct profile *profile = profile_new(
		&(struct profile_options){ .weight = weight, .inverted = inverted });

	assert_non_null(profile);
	return profile;
}

/* So many samples, which weigh so much together. */
static void add(struct profile *profile, uint64_t weight, uint64_t samples, const struct frame *frames,
		size_t count)
{
	const struct profile_sum sum = { .ns = weight, .samples = samples };
	const struct profile_node *leaf;

	assert_int_equal(profile_add_sum(profile, frames, count, &sum, &leaf), 0);
}

static char *written_with(const struct profile *profile, const struct profile *baseline,
			  const struct changed *changed, const struct cpu_use *cpu, size_t *ret_height)
{
	struct flamegraph_static *picture = NULL;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(flamegraph_static_new(profile, baseline, changed, &header, cpu, &picture), 0);
	*ret_height = flamegraph_static_height(picture);
	flamegraph_static_write(out, picture);
	flamegraph_static_free(picture);
	assert_int_equal(fclose(out), 0);
	return text;
}

static char *written(const struct profile *profile)
{
	size_t height;

	return written_with(profile, NULL, NULL, NULL, &height);
}

static void assert_has(const char *text, const char *wanted)
{
	if (!strstr(text, wanted))
		fail_msg("%s is not in\n%s", wanted, text);
}

static void assert_has_not(const char *text, const char *unwanted)
{
	if (strstr(text, unwanted))
		fail_msg("%s is in\n%s", unwanted, text);
}

/* Callers below, siblings by their names; the gap to the next frame is left out where frames are narrow. */
static void frames_are_as_wide_as_their_shares(void **state)
{
	static const struct function functions[] = {
		{ .kind = FRAME_NATIVE, .name = "b" }, { .kind = FRAME_NATIVE, .name = "c" },
		{ .kind = FRAME_NATIVE, .name = "d" }, { .kind = FRAME_NATIVE, .name = "e" },
		{ .kind = FRAME_NATIVE, .name = "f" },
	};
	static const uint64_t widths[] = { 41, 40, 20, 18, 5000 };
	struct profile *profile = new_profile(WEIGHT_CPU_TIME, false);
	const struct frame in_chunk[] = { { .function = &chunk } };
	size_t height;
	char *text;

	(void)state;
	for (size_t i = 5; i-- > 0;) {
		const struct frame frames[] = { { .function = &functions[i] }, { .function = &chunk } };

		add(profile, widths[i], 1, frames, 2);
	}
	add(profile, ALL - 5119, 3, in_chunk, 1);
	text = written_with(profile, NULL, NULL, NULL, &height);
	assert_has(
		text,
		">all\n100.00 %, 8 samples</title><rect x=\"12.0\" width=\"1175.0\" y=\"112\" height=\"17\"/>"
		"<text x=\"15.0\" y=\"124\">all</text></g>\n");
	assert_has(
		text,
		">chunk\n100.00 %, 8 samples</title><rect x=\"12.0\" width=\"1175.0\" y=\"94\" height=\"17\"/>");
	assert_has(text,
		   "b\n0.35 %, 1 samples</title><rect x=\"12.0\" width=\"3.1\" y=\"76\" height=\"17\"/></g>");
	assert_has(text,
		   "c\n0.34 %, 1 samples</title><rect x=\"16.1\" width=\"4.0\" y=\"76\" height=\"17\"/></g>");
	assert_has(text,
		   "d\n0.17 %, 1 samples</title><rect x=\"20.1\" width=\"2.0\" y=\"76\" height=\"17\"/></g>");
	assert_has_not(text, "<title>e\n");
	assert_has(
		text,
		"f\n42.52 %, 1 samples</title><rect x=\"23.9\" width=\"499.0\" y=\"76\" height=\"17\"/><text");
	assert_int_equal(height, 112 + 18 + 12);
	free(text);
	profile_free(profile);
}

static void inverted_frames_hang_the_heaviest_first(void **state)
{
	struct profile *profile = new_profile(WEIGHT_CPU_TIME, true);
	const struct frame in_heavy[] = { { .function = &heavy }, { .function = &chunk } };
	const struct frame in_light[] = { { .function = &light }, { .function = &chunk } };
	const struct function twin = { .kind = FRAME_LUA, .name = "b twin" };
	const struct frame in_twin[] = { { .function = &twin }, { .function = &chunk } };
	char *text;

	(void)state;
	add(profile, 2000, 1, in_twin, 2);
	add(profile, 2000, 1, in_light, 2);
	add(profile, ALL - 4000, 1, in_heavy, 2);
	text = written(profile);
	assert_has(text, ">all\n100.00 %, 3 samples</title><rect x=\"12.0\" width=\"1175.0\" y=\"76\"");
	assert_has(
		text,
		"<title>heavy [builtin]\n65.99 %, 1 samples</title><rect x=\"12.0\" width=\"775.0\" y=\"94\"");
	assert_has(
		text,
		"<title>a light one\n17.01 %, 1 samples</title><rect x=\"788.0\" width=\"199.0\" y=\"94\"");
	assert_has(text,
		   "<title>b twin\n17.01 %, 1 samples</title><rect x=\"988.0\" width=\"199.0\" y=\"94\"");
	assert_has(text,
		   "<title>chunk\n65.99 %, 1 samples</title><rect x=\"12.0\" width=\"775.0\" y=\"112\"");
	free(text);
	profile_free(profile);
}

/* A letter takes 7.3 pixels, and the text is 3 pixels off either edge. */
static void labels_fit_into_their_frames(void **state)
{
	static const struct {
		uint64_t width;
		const char *text;
	} known[] = {
		{ 60 + 2 * 73 - 1, NULL },
		{ 60 + 2 * 73, ">a\u2026</text>" },
		{ 60 + 10 * 73, ">a ligh\u2026one</text>" },
		{ 60 + 11 * 73, ">a light one</text>" },
	};
	const struct frame in_light = { .function = &light }, in_heavy = { .function = &heavy };

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct profile *profile = new_profile(WEIGHT_CPU_TIME, false);
		char *text, *box;

		add(profile, known[i].width, 1, &in_light, 1);
		add(profile, ALL - known[i].width, 1, &in_heavy, 1);
		text = written(profile);
		box = strstr(text, "<title>a light one\n");
		assert_non_null(box);
		*strstr(box, "</g>") = '\0';
		if (known[i].text)
			assert_has(box, known[i].text);
		else
			assert_has_not(box, "<text");
		free(text);
		profile_free(profile);
	}
}

/* The title's letters are wider. */
static void long_lines_of_the_header_are_cut(void **state)
{
	enum { COLUMNS = 11760 / 73, TITLE_COLUMNS = COLUMNS * 3 / 4 };
	static const struct {
		size_t title, detail;
		bool is_cut;
	} known[] = { { TITLE_COLUMNS, COLUMNS, false }, { TITLE_COLUMNS + 1, COLUMNS + 1, true } };
	static struct flamegraph_header kept;
	struct profile *profile = new_profile(WEIGHT_CPU_TIME, false);

	(void)state;
	kept = header;
	for (size_t i = 0; i < 2; i++) {
		char wanted[FLAMEGRAPH_HEADER_LINE_SIZE], *text;
		const int cut = known[i].is_cut;

		memset(header.lines[0], 'x', known[i].title);
		header.lines[0][known[i].title] = '\0';
		memset(header.lines[1], 'y', known[i].detail);
		header.lines[1][known[i].detail] = '\0';
		text = written(profile);
		snprintf(wanted, sizeof(wanted), "<text class=\"headline\" x=\"12\" y=\"24\">%.*s%s</text>\n",
			 TITLE_COLUMNS - cut, header.lines[0], cut ? "\u2026" : "");
		assert_has(text, wanted);
		snprintf(wanted, sizeof(wanted), "<text class=\"detail\" x=\"12\" y=\"42\">%.*s%s</text>\n",
			 COLUMNS - cut, header.lines[1], cut ? "\u2026" : "");
		assert_has(text, wanted);
		free(text);
	}
	header = kept;
	profile_free(profile);
}

static void the_legend_has_the_colours_of_samples_that_occur(void **state)
{
	const struct frame frames[] = { { .function = &heavy }, { .function = &chunk } };
	struct profile *sampled = new_profile(WEIGHT_CPU_TIME, false);
	struct profile *heap = new_profile(WEIGHT_HEAP_BYTES, false);
	size_t height;
	char *text;

	(void)state;
	add(sampled, 10, 1, frames, 2);
	add(heap, 10, 1, frames, 2);
	text = written(sampled);
	assert_has(text, "<g class=\"f l\"><rect x=\"12\" y=\"50\" width=\"12\" height=\"12\"/></g>"
			 "<text class=\"detail\" x=\"29\" y=\"60\">Lua, interpreted</text>\n"
			 "<g class=\"f b\"><rect x=\"160\" y=\"50\" width=\"12\" height=\"12\"/></g>"
			 "<text class=\"detail\" x=\"177\" y=\"60\">builtin</text>\n");
	assert_has_not(text, ">Lua, compiled<");
	free(text);
	/* What a heap's colours are is told by its frames. */
	text = written(heap);
	assert_has_not(text, ">Lua, interpreted<");
	assert_has(text, "100.00 %, 1 objects");
	free(text);
	text = written_with(heap, heap, NULL, NULL, &height);
	assert_has(text, ">no clear change</text>");
	free(text);
	profile_free(sampled);
	profile_free(heap);
}

static void changes_have_colours_and_their_share_before(void **state)
{
	const struct frame in_heavy[] = { { .function = &heavy }, { .function = &chunk } };
	const struct frame in_light[] = { { .function = &light }, { .function = &chunk } };
	struct profile *now = new_profile(WEIGHT_CPU_TIME, false);
	struct profile *before = new_profile(WEIGHT_CPU_TIME, false);
	struct changed changed = { 0 };
	size_t height;
	char *text;

	(void)state;
	add(now, 600000, 6000, in_heavy, 2);
	add(now, 400000, 4000, in_light, 2);
	add(before, 900000, 9000, in_heavy, 2);
	add(before, 100000, 1000, in_heavy + 1, 1);
	text = written_with(now, before, NULL, NULL, &height);
	assert_has(text,
		   "<g class=\"f q\"><title>heavy [builtin]\n60.00 %, 6000 samples; before 90.00 %</title>");
	assert_has(text, "<g class=\"f z\"><title>a light one\n40.00 %, 4000 samples; before 0.00 %</title>");
	assert_has(text, "<g class=\"f s\"><title>chunk\n100.00 %, 10000 samples; before 100.00 %</title>");
	free(text);
	/* Of others it is not known whether that is chance. */
	assert_int_equal(changed_add(&changed, &light), 0);
	text = written_with(now, before, &changed, NULL, &height);
	assert_has(text, "<g class=\"f s\"><title>heavy [builtin]\n");
	assert_has(text, "<g class=\"f z\"><title>a light one\n");
	free(text);
	changed_clear(&changed);
	profile_free(now);
	profile_free(before);
}

static void cpu_use_stands_above_the_frames(void **state)
{
	const struct sample sample = { .time_ns = 500000000, .cpu_ns = 400000000, .pid = 1, .tid = 1 };
	struct profile *profile = new_profile(WEIGHT_CPU_TIME, false);
	struct cpu_use *cpu = cpu_use_new(0, (struct time_span){ 0 }, 99);
	size_t height, height_without;
	char *text;

	(void)state;
	assert_non_null(cpu);
	text = written_with(profile, NULL, NULL, cpu, &height_without); /* nothing to see in it */
	assert_has_not(text, "CPU use over");
	free(text);
	assert_int_equal(cpu_use_add(cpu, &sample), 0);
	text = written_with(profile, NULL, NULL, cpu, &height);
	assert_has(text, "<text class=\"detail\" x=\"12\" y=\"62\">CPU use over ");
	assert_has(text, "<rect class=\"field\" x=\"12\" y=\"68\" width=\"1176\"");
	assert_has(text, "<text class=\"headline\" x=\"12\" y=\"152\">No samples</text>");
	assert_int_equal(height, height_without + CPU_PICTURE_HEIGHT);
	free(text);
	cpu_use_free(cpu);
	profile_free(profile);
}

/* A damaged recording may have any weights: then the sum is less than a part of it. */
static void weights_beyond_all_numbers_do_no_harm(void **state)
{
	struct profile *profile = new_profile(WEIGHT_CPU_TIME, false);
	const struct frame in_heavy = { .function = &heavy }, in_light = { .function = &light };
	char *text;

	(void)state;
	add(profile, UINT64_MAX, 1, &in_heavy, 1);
	add(profile, 101, 1, &in_light, 1);
	text = written(profile);
	assert_has(text, "<title>heavy [builtin]\n");
	assert_has_not(text, "width=\"-");
	assert_has_not(text, "nan");
	free(text);
	profile_free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_are_as_wide_as_their_shares),
		cmocka_unit_test(inverted_frames_hang_the_heaviest_first),
		cmocka_unit_test(labels_fit_into_their_frames),
		cmocka_unit_test(long_lines_of_the_header_are_cut),
		cmocka_unit_test(the_legend_has_the_colours_of_samples_that_occur),
		cmocka_unit_test(changes_have_colours_and_their_share_before),
		cmocka_unit_test(cpu_use_stands_above_the_frames),
		cmocka_unit_test(weights_beyond_all_numbers_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* What the flame graph's file holds; tests/browser sees how it looks and behaves. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/flamegraph/flamegraph.h"
#include "output/flamegraph/flamegraph_header.h"
#include "output/flamegraph/flamegraph_static.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
#include "tests/unit/failing_allocation.h"

static const struct function chunk = { .kind = FRAME_LUA, .name = "main chunk", .file = "test.lua" };
static const struct function heavy = {
	.kind = FRAME_LUA, .name = "heavy", .file = "test.lua", .firstline = 5
};
static const struct function gsub = { .kind = FRAME_BUILTIN, .name = "string.gsub" };

static struct profile *new_profile(void)
{
	struct profile_options options = flamegraph_profile_options(WEIGHT_CPU_TIME);
	struct profile *profile = profile_new(&options);

	assert_non_null(profile);
	return profile;
}

static void add(struct profile *profile, uint64_t cpu_ns, const struct frame *frames, size_t count)
{
	struct sample sample = {
		.cpu_ns = cpu_ns,
		.frames = frames,
		.frame_count = count,
		.vm_state = VM_STATE_INTERPRETED,
	};

	assert_int_equal(profile_add(profile, &sample), 0);
}

static const struct session session = { .pid = 42,
					.target = "luajit test.lua",
					.command_line = "ljspy record -p 42" };

static char *written_with(struct profile *profile, const struct flamegraph_options *options)
{
	struct figures figures = { .samples = profile_root(profile)->total_samples };
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(flamegraph_write(out, profile, &session, &figures, options), 0);
	assert_int_equal(fclose(out), 0);
	profile_free(profile);
	return text;
}

/* Writes and frees the profile. */
static char *written(struct profile *profile)
{
	return written_with(profile, &(struct flamegraph_options){ 0 });
}

static size_t occurrences(const char *text, const char *wanted)
{
	size_t count = 0;

	for (; (text = strstr(text, wanted)); text++)
		count++;
	return count;
}

static void data_lists_labels_by_alphabet_and_frames_by_caller(void **state)
{
	struct profile *profile = new_profile();
	struct frame deep[] = {
		{ .function = &gsub },
		{ .function = &heavy, .line = 8, .compiled = true },
		{ .function = &chunk, .line = 20 },
	};
	struct frame nearest[] = { deep[1], deep[2] };
	struct sample collecting = {
		.cpu_ns = 5, .frames = nearest, .frame_count = 2, .vm_state = VM_STATE_GC
	};
	char *text;

	(void)state;
	nearest[0].certainty = CERTAINTY_NEAREST;
	add(profile, 30, deep, 3);
	add(profile, 10, nearest, 2);
	assert_int_equal(profile_add(profile, &collecting), 0);
	text = written(profile);
	assert_non_null(
		strstr(text, "<metadata id=\"functions\">a all\nl heavy\ttest.lua:5\nl main chunk\ttest.lua\n"
			     "b string.gsub\t[builtin]\n</metadata>"));
	assert_non_null(
		strstr(text, "<metadata id=\"lines\">0 all\n1 heavy\ttest.lua:8\n2 main chunk\ttest.lua:20\n"
			     "3 string.gsub\t[builtin]\n</metadata>"));
	assert_non_null(strstr(
		text,
		"<metadata id=\"frames\">0 0\n1 2\n2 1 1\n3 3 0 1 0 i30\n2 1 3 2 0 i10 g5\n</metadata>"));
	assert_non_null(strstr(text, "data-inverted=\"0\" data-lines=\"0\""));
	assert_null(strstr(text, "id=\"baseline\""));
	free(text);
}

static void samples_give_the_same_picture_in_any_order(void **state)
{
	struct frame first[] = { { .function = &gsub }, { .function = &chunk } };
	struct frame second[] = { { .function = &heavy }, { .function = &chunk } };
	struct flamegraph_options options = { .inverted = true, .by_line = true };
	struct profile *one = new_profile();
	struct profile *other = new_profile();
	char *one_text, *other_text;

	(void)state;
	add(one, 10, first, 2);
	add(one, 20, second, 2);
	add(other, 20, second, 2);
	add(other, 10, first, 2);
	one_text = written_with(one, &options);
	other_text = written_with(other, &options);
	/* All but the list of frames, which is in the order of their appearance. */
	*strstr(one_text, "<metadata id=\"frames\"") = '\0';
	*strstr(other_text, "<metadata id=\"frames\"") = '\0';
	assert_string_equal(one_text, other_text);
	assert_non_null(strstr(one_text, "data-inverted=\"1\" data-lines=\"1\""));
	free(one_text);
	free(other_text);
}

static void comparison_holds_both_profiles(void **state)
{
	struct frame frames[] = { { .function = &heavy, .line = 6 }, { .function = &chunk, .line = 20 } };
	struct frame gone = { .function = &gsub };
	struct profile *baseline = new_profile();
	struct profile *profile = new_profile();
	char *text;

	(void)state;
	add(profile, 40, frames, 2);
	add(baseline, 30, frames, 2);
	add(baseline, 10, &gone, 1);
	text = written_with(profile,
			    &(struct flamegraph_options){ .baseline = baseline, .baseline_name = "a<b" });
	assert_non_null(strstr(text, "<metadata id=\"frames\">0 0\n1 2\n2 1 0 1 0 i40\n</metadata>"));
	assert_non_null(strstr(
		text, "<metadata id=\"baseline\">0 0\n1 2\n2 1 0 1 0 i30\n1 3 0 1 0 i10\n</metadata>"));
	assert_non_null(strstr(text, "Compared with a&lt;b, 2 samples"));
	assert_non_null(strstr(text, "100.00 %, 1 samples; before 75.00 %</title>"));
	free(text);
	profile_free(baseline);
}

static void page_holds_the_same_picture(void **state)
{
	struct frame frame = { .function = &heavy };
	struct profile *profiles[] = { new_profile(), new_profile() };
	char *svg, *page;

	(void)state;
	add(profiles[0], 40, &frame, 1);
	add(profiles[1], 40, &frame, 1);
	svg = written(profiles[0]);
	page = written_with(profiles[1], &(struct flamegraph_options){ .page = true });
	assert_int_equal(strncmp(page, "<!DOCTYPE html>\n", 16), 0);
	assert_int_equal(strncmp(strstr(page, "<svg "), strstr(svg, "<svg "), strlen(strstr(svg, "<svg "))),
			 0);
	free(svg);
	free(page);
}

static void small_frames_are_left_out_and_counted(void **state)
{
	enum { SMALL = 3 };
	struct function functions[SMALL];
	struct profile *profile = new_profile();
	struct frame big = { .function = &chunk };
	char *text;

	(void)state;
	add(profile, UINT64_C(10) * FLAMEGRAPH_SMALLEST_PART, &big, 1);
	for (size_t i = 0; i < SMALL; i++) {
		struct frame frames[] = { { .function = &functions[i] }, { .function = &chunk } };

		functions[i] = (struct function){ .kind = FRAME_BUILTIN, .name = "rare" };
		add(profile, 9, frames, 2);
	}
	text = written(profile);
	assert_null(strstr(text, "rare"));
	assert_non_null(strstr(text, "1 1 0 1 27 i1000000\n</metadata>"));
	assert_non_null(strstr(text, "3 frames of less than 0.0010 % each are left out"));
	free(text);
}

static void frames_below_the_wanted_share_are_left_out(void **state)
{
	struct frame often = { .function = &heavy }, seldom = { .function = &gsub };
	struct profile *profile = new_profile();
	char *text;

	(void)state;
	add(profile, 99, &often, 1);
	add(profile, 1, &seldom, 1);
	text = written_with(profile, &(struct flamegraph_options){ .min_percent = 2 });
	assert_non_null(strstr(text, "<metadata id=\"frames\">0 0 0 0 1\n1 1 0 1 0 i99\n</metadata>"));
	assert_non_null(strstr(text, "1 frames of less than 2.0000 % each are left out"));
	free(text);
}

static void a_frame_is_as_large_as_all_its_lines(void **state)
{
	enum { LINES = 10 };
	struct frame seldom = { .function = &gsub };
	struct profile *profile = new_profile();
	char *text;

	(void)state;
	for (uint32_t i = 0; i < LINES; i++) {
		struct frame frames[] = { { .function = &heavy, .line = 1 + i, .compiled = i % 2 },
					  { .function = &chunk, .line = 20 + i } };

		add(profile, 9, frames, 2);
	}
	add(profile, 10, &seldom, 1);
	/* Each line has 9 %, the function 90 %. */
	text = written_with(profile, &(struct flamegraph_options){ .min_percent = 20 });
	assert_int_equal(occurrences(text, " i9\n"), LINES);
	assert_null(strstr(text, " i10\n"));
	assert_non_null(strstr(text, "<metadata id=\"frames\">0 0 0 0 10\n"));
	assert_non_null(strstr(text, "1 frames of less than 20.0000 % each are left out"));
	free(text);
}

static void of_two_profiles_the_larger_share_counts(void **state)
{
	struct frame often = { .function = &heavy }, grew = { .function = &gsub },
		     seldom = { .function = &chunk };
	struct profile *baseline = new_profile();
	struct profile *profile = new_profile();
	char *text;

	(void)state;
	add(baseline, 93, &often, 1);
	add(baseline, 5, &grew, 1);
	add(baseline, 2, &seldom, 1);
	add(profile, 54, &often, 1);
	add(profile, 45, &grew, 1);
	add(profile, 1, &seldom, 1);
	text = written_with(profile, &(struct flamegraph_options){ .baseline = baseline, .min_percent = 20 });
	assert_non_null(
		strstr(text, "<metadata id=\"frames\">0 0 0 0 1\n1 1 0 1 0 i54\n1 2 0 1 0 i45\n</metadata>"));
	assert_non_null(strstr(
		text, "<metadata id=\"baseline\">0 0 0 0 2\n1 1 0 1 0 i93\n1 2 0 1 0 i5\n</metadata>"));
	free(text);
	profile_free(baseline);
}

static void number_of_frames_is_bounded(void **state)
{
	enum { COUNT = FLAMEGRAPH_FRAMES_MAX / 20 + 100, DEPTH = 20 };
	struct function *functions = calloc(COUNT, sizeof(*functions));
	struct profile *profile = new_profile();
	const char *data, *end;
	size_t lines = 0;
	char *text;

	(void)state;
	assert_non_null(functions);
	for (size_t i = 0; i < COUNT; i++) {
		struct frame frames[DEPTH];

		functions[i] = (struct function){ .kind = FRAME_BUILTIN, .name = "same" };
		for (size_t j = 0; j < DEPTH; j++)
			frames[j] = (struct frame){ .function = &functions[i] };
		add(profile, 1000 + i, frames, DEPTH);
	}
	text = written(profile);
	data = strstr(text, "<metadata id=\"frames\">");
	assert_non_null(data);
	end = strstr(data, "</metadata>");
	for (; data < end; data++)
		lines += *data == '\n';
	assert_in_range(lines, FLAMEGRAPH_FRAMES_MAX / 4, FLAMEGRAPH_FRAMES_MAX);
	assert_non_null(strstr(text, "are left out"));
	free(text);
	free(functions);
}

static void the_title_has_the_script_and_the_pid(void **state)
{
	const struct session long_one = { .pid = 42, .target = "/opt/a b/bin/luajit /srv/app/main.lua" };
	const struct session plain = { .pid = 42, .target = "/opt/bin/luajit /srv/app/main.lua" };
	const struct figures figures = { 0 };
	struct flamegraph_header header;

	(void)state;
	flamegraph_header_fill(&header, &plain, &figures);
	assert_string_equal(header.lines[0], "CPU time of luajit /srv/app/main.lua (pid 42)");
	/* Where the first word ends is not known here. */
	flamegraph_header_fill(&header, &long_one, &figures);
	assert_string_equal(header.lines[0], "CPU time of a b/bin/luajit /srv/app/main.lua (pid 42)");
}

static void names_cannot_leave_their_place(void **state)
{
	const struct function hostile = {
		.kind = FRAME_LUA,
		.name = "]]></metadata></script><script>\n1 1 1\x01\xff",
		.file = "\"'><&",
	};
	struct profile *profile = new_profile();
	struct frame frame = { .function = &hostile };
	char *text;

	(void)state;
	add(profile, 10, &frame, 1);
	text = written(profile);
	assert_int_equal(occurrences(text, "<script>"), 1);
	assert_int_equal(occurrences(text, "</script>"), 1);
	assert_int_equal(occurrences(text, "]]>"), 2); /* of the style sheet and the script */
	assert_non_null(strstr(
		text,
		"l ]]&gt;&lt;/metadata&gt;&lt;/script&gt;&lt;script&gt;\\n1 1 1\\x01\\xff\t&quot;&#39;&gt;&lt;&amp;\n"));
	free(text);
}

static void deep_stacks_are_whole_in_the_data_and_bounded_in_the_static_picture(void **state)
{
	enum { DEPTH = 32768 };
	struct profile *profile = new_profile();
	struct frame *frames = calloc(DEPTH, sizeof(*frames));
	char *text;

	(void)state;
	assert_non_null(frames);
	for (size_t i = 0; i < DEPTH; i++)
		frames[i].function = &heavy;
	add(profile, 10, frames, DEPTH);
	text = written(profile);
	assert_non_null(strstr(text, "32768 1 0 1 0 i10\n</metadata>"));
	assert_int_equal(occurrences(text, "<g class=\"f l\"><title>"), FLAMEGRAPH_STATIC_ROWS_MAX - 1);
	assert_non_null(strstr(text, "32269 deeper levels: open in a browser"));
	free(text);
	free(frames);
}

static void nothing_sampled_is_said(void **state)
{
	char *text = written(new_profile());

	(void)state;
	assert_non_null(strstr(text, ">No samples</text>"));
	assert_null(strstr(text, "nan"));
	free(text);
}

/* They may be of a clock that the recording does not have. */
static void frames_without_weight_are_left_out_and_counted(void **state)
{
	struct profile *profile = new_profile();
	struct frame frames[] = { { .function = &heavy }, { .function = &chunk } };
	char *text;

	(void)state;
	add(profile, 0, frames, 2);
	text = written(profile);
	assert_non_null(strstr(text, ">No samples</text>"));
	assert_non_null(strstr(text, "<metadata id=\"frames\">0 0\n</metadata>"));
	assert_non_null(strstr(text, "2 frames of less than 0.0010 % each are left out"));
	free(text);
}

static void a_full_disk_is_reported(void **state)
{
	struct figures figures = { 0 };
	struct profile *profile = new_profile();
	FILE *out = fopen("/dev/full", "w");

	(void)state;
	if (!out) {
		profile_free(profile);
		print_message("no /dev/full here\n");
		skip();
	}
	assert_int_equal(
		flamegraph_write(out, profile, &session, &figures, &(struct flamegraph_options){ 0 }), -EIO);
	fclose(out);
	profile_free(profile);
}

/*---- The document ----*/

enum { ELEMENTS_MAX = 64, NAME_SIZE = 32 };

/* Of XML, each element ends, and ends in the one that it began in. */
static void assert_is_whole(const char *text)
{
	static char open[ELEMENTS_MAX][NAME_SIZE];
	size_t depth = 0;

	while ((text = strchr(text, '<'))) {
		const char *end = strchr(text, '>');
		const size_t length = strcspn(text + 1, " >\n");

		assert_non_null(end);
		if (strncmp(text, "<![CDATA[", 9) == 0) {
			end = strstr(text, "]]>");
			assert_non_null(end);
		} else if (text[1] == '/') {
			assert_in_range(depth, 1, ELEMENTS_MAX);
			depth--;
			assert_int_equal(strlen(open[depth]), length - 1);
			assert_memory_equal(open[depth], text + 2, length - 1);
		} else if (text[1] != '?' && text[1] != '!' && end[-1] != '/' &&
			   strncmp(text, "<meta ", 6) != 0) {
			assert_in_range(depth, 0, ELEMENTS_MAX - 1);
			assert_in_range(length, 1, NAME_SIZE - 1);
			memcpy(open[depth], text + 1, length);
			open[depth++][length] = '\0';
		}
		text = end;
	}
	assert_int_equal(depth, 0);
}

static void add_some(struct profile *profile)
{
	struct frame frames[] = { { .function = &heavy, .line = 6 }, { .function = &chunk, .line = 20 } };

	add(profile, 40, frames, 2);
}

static void a_document_is_whole_whatever_it_holds(void **state)
{
	struct changed changed = { 0 };

	(void)state;
	assert_int_equal(changed_add(&changed, &heavy), 0);
	for (unsigned int i = 0; i < 8; i++) {
		struct profile *profile = new_profile(), *baseline = new_profile();
		char *text;

		if (i & 4)
			add_some(profile);
		add_some(baseline);
		text = written_with(profile, &(struct flamegraph_options){
						     .page = i & 1,
						     .baseline = i & 2 ? baseline : NULL,
						     .changed = i & 2 ? &changed : NULL,
					     });
		assert_is_whole(text);
		assert_int_equal(occurrences(text, "<svg "), 1);
		free(text);
		profile_free(baseline);
	}
	changed_clear(&changed);
}

static void a_page_loads_nothing(void **state)
{
	char *text = written_with(new_profile(), &(struct flamegraph_options){ .page = true });

	(void)state;
	assert_non_null(strstr(text, "content=\"default-src 'none'; style-src 'unsafe-inline';"));
	assert_non_null(strstr(text, "<meta charset=\"utf-8\">"));
	assert_int_equal(occurrences(text, "<title>CPU time of luajit test.lua (pid 42)</title>\n"), 2);
	free(text);
	text = written(new_profile());
	assert_int_equal(strncmp(text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg ", 44), 0);
	free(text);
}

static void the_header_is_title_and_text(void **state)
{
	struct profile *profile = new_profile();
	char *text;
	const char *about;

	(void)state;
	add_some(profile);
	text = written(profile);
	about = strstr(text, "<title>CPU time of luajit test.lua (pid 42)</title>\n"
			     "<desc id=\"about\">CPU time of luajit test.lua (pid 42)\n");
	assert_non_null(about);
	about = strstr(about, "</desc>\n");
	assert_non_null(about);
	assert_int_not_equal(about[-1], '\n');
	free(text);
}

static void the_first_view_is_told(void **state)
{
	const struct profile_options memory = flamegraph_profile_options(WEIGHT_HEAP_BYTES);
	struct profile *profile = profile_new(&memory);
	size_t height, other;
	int width;
	char *text;

	(void)state;
	text = written_with(profile, &(struct flamegraph_options){ .heatmap = true });
	assert_non_null(strstr(text, " data-heatmap=\"1\" data-source=\"0\" data-unit=\"bytes\""));
	assert_non_null(strstr(text, "data-sampled=\"0\">\n<title>"));
	free(text);
	text = written(new_profile());
	assert_non_null(strstr(text, " data-heatmap=\"0\" data-source=\"0\" data-unit=\"time\""));
	assert_non_null(strstr(text, "data-sampled=\"1\">\n<title>"));
	assert_int_equal(sscanf(strstr(text, " id=\"ljspy\""),
				" id=\"ljspy\" width=\"%d\" height=\"%zu\" viewBox=\"0 0 1200 %zu\"", &width,
				&height, &other),
			 3);
	assert_int_equal(width, FLAMEGRAPH_STATIC_WIDTH);
	assert_int_equal(height, other);
	free(text);
}

/* By their numbers in the list of functions. */
static void functions_that_changed_are_listed(void **state)
{
	struct profile *profile = new_profile();
	struct changed changed = { 0 };
	char *text;

	(void)state;
	add_some(profile);
	assert_int_equal(changed_add(&changed, &chunk), 0);
	assert_int_equal(changed_add(&changed, &gsub), 0);
	text = written_with(profile, &(struct flamegraph_options){ .changed = &changed });
	assert_non_null(strstr(text, "<metadata id=\"changed\">2\n</metadata>\n"));
	free(text);
	profile = new_profile();
	add_some(profile);
	text = written(profile);
	assert_null(strstr(text, "id=\"changed\""));
	free(text);
	changed_clear(&changed);
}

static void where_memory_is_short_nothing_else_goes_wrong(void **state)
{
	const struct figures figures = { 0 };
	struct profile *profile = new_profile(), *baseline = new_profile();
	const struct flamegraph_options options = { .baseline = baseline };
	size_t failures = 0;
	int error = -ENOMEM;

	(void)state;
	add_some(profile);
	add_some(baseline);
	for (size_t count = 0; error; count++) {
		char *text = NULL;
		size_t size = 0;
		FILE *out = open_memstream(&text, &size);

		allocation_fails_after(count);
		error = flamegraph_write(out, profile, &session, &figures, &options);
		if (allocation_failed())
			failures += error != 0;
		assert_true(error == 0 || error == -ENOMEM);
		fclose(out);
		free(text);
	}
	assert_in_range(failures, 5, SIZE_MAX);
	profile_free(profile);
	profile_free(baseline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_lists_labels_by_alphabet_and_frames_by_caller),
		cmocka_unit_test(samples_give_the_same_picture_in_any_order),
		cmocka_unit_test(comparison_holds_both_profiles),
		cmocka_unit_test(page_holds_the_same_picture),
		cmocka_unit_test(small_frames_are_left_out_and_counted),
		cmocka_unit_test(frames_below_the_wanted_share_are_left_out),
		cmocka_unit_test(a_frame_is_as_large_as_all_its_lines),
		cmocka_unit_test(of_two_profiles_the_larger_share_counts),
		cmocka_unit_test(number_of_frames_is_bounded),
		cmocka_unit_test(the_title_has_the_script_and_the_pid),
		cmocka_unit_test(names_cannot_leave_their_place),
		cmocka_unit_test(deep_stacks_are_whole_in_the_data_and_bounded_in_the_static_picture),
		cmocka_unit_test(nothing_sampled_is_said),
		cmocka_unit_test(frames_without_weight_are_left_out_and_counted),
		cmocka_unit_test(a_document_is_whole_whatever_it_holds),
		cmocka_unit_test(a_page_loads_nothing),
		cmocka_unit_test(the_header_is_title_and_text),
		cmocka_unit_test(the_first_view_is_told),
		cmocka_unit_test(functions_that_changed_are_listed),
		cmocka_unit_test(where_memory_is_short_nothing_else_goes_wrong),
		cmocka_unit_test(a_full_disk_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/formats/folded.h"

static const struct function chunk = { .kind = FRAME_LUA, .name = "main chunk", .file = "test.lua" };
static const struct function heavy = {
	.kind = FRAME_LUA, .name = "heavy", .file = "test.lua", .firstline = 5
};
static const struct function gsub = { .kind = FRAME_BUILTIN, .name = "string.gsub" };
static const struct function handler = { .kind = FRAME_VM, .name = "lj_BC_ADDVV" };

static void add(struct profile *profile, uint64_t cpu_ns, const struct frame *frames, size_t count)
{
	struct sample sample = { .cpu_ns = cpu_ns, .frames = frames, .frame_count = count };

	assert_int_equal(profile_add(profile, &sample), 0);
}

static struct profile *new_profile(struct profile_options options)
{
	struct profile *profile = profile_new(&options);

	assert_non_null(profile);
	return profile;
}

/* Writes and frees the profile. */
static char *folded(struct profile *profile, bool annotate)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(folded_write(out, profile, &(struct folded_options){ .annotate = annotate }), 0);
	assert_int_equal(fclose(out), 0);
	profile_free(profile);
	return text;
}

static void a_line_is_a_stack_root_first_and_its_microseconds(void **state)
{
	struct profile *profile = new_profile((struct profile_options){ 0 });
	struct frame deep[] = { { .function = &gsub }, { .function = &heavy }, { .function = &chunk } };
	struct frame shallow[] = { { .function = &handler }, { .function = &chunk } };
	char *text;

	(void)state;
	add(profile, 10000000, deep, 3);
	add(profile, 10000000, shallow, 2);
	add(profile, 20000000, deep + 1, 2);
	add(profile, 10000000, deep, 3);
	text = folded(profile, false);
	assert_string_equal(text, "main chunk test.lua;heavy test.lua:5 20000\n"
				  "main chunk test.lua;heavy test.lua:5;string.gsub [builtin] 20000\n"
				  "main chunk test.lua;lj_BC_ADDVV [vm] 10000\n");
	free(text);
}

static void lines_add_up_to_the_weight_of_the_profile(void **state)
{
	enum { COUNT = 1000 };
	static struct function functions[COUNT];
	static char names[COUNT][16];
	struct profile *profile = new_profile((struct profile_options){ 0 });
	unsigned long long sum = 0;
	uint64_t expected = 0;
	char *text, *line, *rest;

	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		uint64_t weight = 400 + 7 * i;
		struct frame frame = { .function = &functions[i] };

		snprintf(names[i], sizeof(names[i]), "f%zu", i);
		functions[i] = (struct function){ .kind = FRAME_BUILTIN, .name = names[i] };
		add(profile, weight, &frame, 1);
		expected += weight;
	}
	text = folded(profile, false);
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		sum += strtoull(strrchr(line, ' '), NULL, 10);
	assert_in_range(sum, expected / 1000, expected / 1000 + 1);
	free(text);
}

static void marks_tell_compiled_interpreted_and_vm_frames(void **state)
{
	struct profile *profile = new_profile((struct profile_options){ .by_compiled = true });
	struct frame compiled[] = { { .function = &heavy, .compiled = true }, { .function = &chunk } };
	struct frame interpreted[] = { { .function = &handler },
				       { .function = &heavy },
				       { .function = &chunk } };
	char *text;

	(void)state;
	add(profile, 3000, compiled, 2);
	add(profile, 1000, interpreted, 3);
	text = folded(profile, true);
	assert_string_equal(text, "main chunk test.lua;heavy test.lua:5_[j] 3\n"
				  "main chunk test.lua;heavy test.lua:5;lj_BC_ADDVV [vm] 1\n");
	free(text);
}

static void a_name_cannot_break_the_line_or_pose_as_a_weight(void **state)
{
	const struct function hostile = { .kind = FRAME_LUA, .name = "a;b\nc 12", .file = "x y\xff.lua" };
	const struct function numeric = { .kind = FRAME_LUA, .name = "main chunk", .file = "=42" };
	struct profile *profile = new_profile((struct profile_options){ 0 });
	struct frame frames[] = { { .function = &numeric }, { .function = &hostile } };
	char *text;

	(void)state;
	add(profile, 1000, frames, 2);
	text = folded(profile, false);
	assert_string_equal(text, "a:b\\nc 12 x y\\xff.lua;main chunk_42 1\n");
	free(text);
}

static void an_empty_profile_is_an_empty_file(void **state)
{
	char *text = folded(new_profile((struct profile_options){ 0 }), false);

	(void)state;
	assert_string_equal(text, "");
	free(text);
}

static void a_deep_stack_is_written_whole(void **state)
{
	enum { DEPTH = 32768 };
	struct profile *profile = new_profile((struct profile_options){ 0 });
	struct frame *frames = calloc(DEPTH, sizeof(*frames));
	size_t separators = 0;
	char *text;

	(void)state;
	assert_non_null(frames);
	for (size_t i = 0; i < DEPTH; i++)
		frames[i].function = &heavy;
	add(profile, 1000, frames, DEPTH);
	text = folded(profile, false);
	for (const char *at = text; (at = strchr(at, ';')); at++)
		separators++;
	assert_int_equal(separators, DEPTH - 1);
	assert_string_equal(strrchr(text, ';'), ";heavy test.lua:5 1\n");
	free(text);
	free(frames);
}

static void a_full_disk_is_reported(void **state)
{
	struct profile *profile = new_profile((struct profile_options){ 0 });
	struct frame frame = { .function = &heavy };
	FILE *out = fopen("/dev/full", "w");

	(void)state;
	if (!out) {
		profile_free(profile);
		print_message("no /dev/full here\n");
		skip();
	}
	setvbuf(out, NULL, _IONBF, 0);
	add(profile, 1000, &frame, 1);
	assert_int_equal(folded_write(out, profile, &(struct folded_options){ 0 }), -EIO);
	fclose(out);
	profile_free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_a_stack_root_first_and_its_microseconds),
		cmocka_unit_test(lines_add_up_to_the_weight_of_the_profile),
		cmocka_unit_test(marks_tell_compiled_interpreted_and_vm_frames),
		cmocka_unit_test(a_name_cannot_break_the_line_or_pose_as_a_weight),
		cmocka_unit_test(an_empty_profile_is_an_empty_file),
		cmocka_unit_test(a_deep_stack_is_written_whole),
		cmocka_unit_test(a_full_disk_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

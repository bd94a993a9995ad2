/* SPDX-License-Identifier: MIT */
/* ljspy report and diff: which files they read together, what they refuse, and what they leave on failure. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "output/recording/recording_writer.h"
#include "output/views/filter.h"
#include "output/views/sum.h"
#include "src/linux/clocks/clock.h"
#include "src/program/output_file.h"
#include "tests/unit/bounded_files.h"
#include "tests/unit/full_output.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/report_line.h"

enum { SAMPLE_NS = 10000000, SECONDS = 2, PIPED = 1 << 16, LARGE = 10000 };

static const uint64_t began_unix_s = 1700000000, began_ns = 5000000000;

static struct {
	bool lacks_functions, lacks_filter, lacks_sum;
	int scratch_error;
} scene;

INSTEAD_OF(functions_new);
struct functions *__wrap_functions_new(void)
{
	return scene.lacks_functions ? NULL : __real_functions_new();
}

INSTEAD_OF(filter_new);
struct filter *__wrap_filter_new(struct sample_source *source, struct functions *functions,
				 const struct filter_options *given)
{
	return scene.lacks_filter ? NULL : __real_filter_new(source, functions, given);
}

INSTEAD_OF(sum_new);
struct sum *__wrap_sum_new(const struct sum_part *parts, size_t count)
{
	return scene.lacks_sum ? NULL : __real_sum_new(parts, count);
}

INSTEAD_OF(output_file_scratch);
int __wrap_output_file_scratch(FILE **ret_stream)
{
	return scene.scratch_error ? scene.scratch_error : __real_output_file_scratch(ret_stream);
}

/*---- Files ----*/

struct made_up {
	const char *name, *function;
	unsigned int samples;
	pid_t pid;
	enum weight_kind clock;
	uint64_t later_s; /* than the first one */
	uint64_t request; /* that its samples work on; 0: none */
	bool is_unfinished;
	bool is_noisy; /* it can hardly be compressed */
};

static void write_file(const char *name, const void *bytes, size_t length)
{
	FILE *out = fopen(path_of(name), "w");

	assert_non_null(out);
	assert_int_equal(fwrite(bytes, 1, length, out), length);
	assert_int_equal(fclose(out), 0);
}

static char *read_file(const char *name, size_t *ret_length)
{
	FILE *in = fopen(path_of(name), "r");
	char *bytes = malloc(1 << 20);

	assert_non_null(in);
	assert_non_null(bytes);
	*ret_length = fread(bytes, 1, 1 << 20, in);
	fclose(in);
	return bytes;
}

static void record(const struct made_up *of)
{
	const struct function function = { .kind = FRAME_LUA, .name = of->function, .file = "@/srv/app.lua" };
	const struct frame frame = { .function = &function, .line = 3 };
	const struct session session = {
		.pid = of->pid,
		.target = of->pid == 7 ? "lua seven.lua" : "lua other.lua",
		.start_unix_ns = (began_unix_s + of->later_s) * NS_PER_SECOND,
		.start_ns = began_ns,
		.duration_ns = SECONDS * (uint64_t)NS_PER_SECOND,
		.clock = of->clock,
	};
	const struct figures figures = { .samples = of->samples,
					 .duration_ns = session.duration_ns,
					 .target_cpu_ns = of->samples * (uint64_t)SAMPLE_NS };
	FILE *out = fopen(path_of(of->name), "w");
	struct recording_writer *writer;

	assert_non_null(out);
	assert_int_equal(recording_writer_new(out, &session, &writer), 0);
	for (unsigned int i = 0; i < of->samples; i++) {
		const unsigned int noise = of->is_noisy ? i * 2654435761u >> 8 : 0;
		const struct sample sample = {
			.time_ns = began_ns + 1 + i * (uint64_t)SAMPLE_NS,
			.pid = of->pid,
			.tid = of->pid,
			.vm_state = VM_STATE_INTERPRETED,
			.cpu_ns = SAMPLE_NS + noise,
			.wall_ns = SAMPLE_NS,
			.request = { .route = of->request ? "/a" : NULL,
				     .connection = of->request,
				     .number = of->request ? 1 : 0 },
			.frames = &frame,
			.frame_count = 1,
		};

		assert_int_equal(recording_writer_add(writer, &sample), 0);
	}
	assert_int_equal(of->is_unfinished ? recording_writer_flush(writer)
					   : recording_writer_finish(writer, &session, &figures),
			 0);
	recording_writer_free(writer);
	assert_int_equal(fclose(out), 0);
}

/*---- The user ----*/

static const struct made_up first = { .name = "first.ljspy", .function = "alpha", .samples = 50, .pid = 7 };
static const struct made_up second = {
	.name = "second.ljspy", .function = "beta", .samples = 150, .pid = 8, .later_s = 60
};

static int begin(void **state)
{
	(void)state;
	memset(&scene, 0, sizeof(scene));
	output_is_full = false;
	record(&first);
	record(&second);
	return 0;
}

static void several_recordings_have_one_sum(void **state)
{
	(void)state;
	assert_int_equal(run("report", "-f folded first.ljspy"), EXIT_ALL_GOOD);
	ASSERT_SHOWN("alpha");
	assert_null(strstr(shown, "beta"));
	assert_string_equal(told, "");
	assert_int_equal(run("report", "first.ljspy second.ljspy"), EXIT_ALL_GOOD);
	ASSERT_SHOWN("25.00");
	ASSERT_SHOWN("75.00");
	ASSERT_SHOWN("several targets");
	ASSERT_SHOWN("4.0 s, 200 samples of 2000.0 ms");
	assert_int_equal(run("report", "second.ljspy -p 7 first.ljspy -f folded"), EXIT_ALL_GOOD);
	assert_null(strstr(shown, "beta"));
	ASSERT_SHOWN("alpha");
}

static void recordings_of_other_clocks_have_no_sum(void **state)
{
	struct made_up other = second;

	(void)state;
	other.clock = WEIGHT_WALL_TIME;
	record(&other);
	assert_refused("report", "first.ljspy second.ljspy", EXIT_NOTHING_DONE, "they have no sum.");
	assert_refused("report", "--off-cpu first.ljspy", EXIT_NOTHING_DONE, "what slept is not in it");
	ASSERT_TOLD("`ljspy record --clock wall` records both.");
	assert_int_equal(run("report", "--clock cpu second.ljspy first.ljspy"), EXIT_ALL_GOOD);
	other.clock = WEIGHT_ALLOC_BYTES;
	record(&other);
	assert_refused("report", "--clock cpu second.ljspy", EXIT_NOTHING_DONE, "what was allocated: time");
}

/*---- What is no recording, or not all of one ----*/

static void a_file_that_is_no_recording_is_told(void **state)
{
	(void)state;
	write_file("none.any", "no recording at all, but some text", 34);
	assert_refused("report", "none.any", EXIT_NOTHING_DONE, "none.any is not a recording of ljspy.");
	assert_refused("report", "nowhere.any", EXIT_NOTHING_DONE, "nowhere.any: No such file");
	assert_refused("report", "first.ljspy none.any", EXIT_NOTHING_DONE, "none.any is not a recording");
	assert_refused("report", "/tmp/. first.ljspy", EXIT_NOTHING_DONE, "");
}

static void a_recording_that_is_damaged_is_shown_as_far_as_it_goes(void **state)
{
	struct made_up unfinished = second;
	size_t length;
	char *bytes;

	(void)state;
	unfinished.is_unfinished = true;
	record(&unfinished);
	assert_int_equal(run("report", "-f folded second.ljspy"), EXIT_ALL_GOOD);
	ASSERT_SHOWN("beta");
	ASSERT_TOLD("second.ljspy has no end: it is being written, or its writer was killed.");
	bytes = read_file("first.ljspy", &length);
	memcpy(bytes + length, "more", 4);
	write_file("more.any", bytes, length + 4);
	assert_int_equal(run("report", "-f folded more.any"), EXIT_WITH_ERRORS);
	ASSERT_SHOWN("alpha");
	ASSERT_TOLD("goes on after the end of its recording");
	bytes[length - 3] ^= 0x55;
	bytes[length / 2] ^= 0x55;
	write_file("more.any", bytes, length);
	assert_int_equal(run("diff", "more.any first.ljspy"), EXIT_WITH_ERRORS);
	ASSERT_TOLD("is damaged: what follows the first");
	assert_int_equal(run("diff", "first.ljspy more.any"), EXIT_WITH_ERRORS);
	free(bytes);
}

/* What is left of `ljspy record -o out.svg` that was killed. */
static void what_was_kept_for_an_output_is_shown_in_its_place(void **state)
{
	struct made_up kept = first;

	(void)state;
	kept.name = "out.svg.unfinished.ljspy";
	record(&kept);
	if (run("report", "-f folded out.svg") != EXIT_ALL_GOOD)
		fprintf(stderr, "%s", told);
	ASSERT_TOLD("out.svg is no recording, but what was recorded for it is in ");
	ASSERT_SHOWN("alpha");
	unlink(path_of(kept.name));
}

/*---- Standard input ----*/

static enum exit_status run_with_input(const char *command, const char *line, const void *bytes,
				       size_t length)
{
	const int saved = dup(STDIN_FILENO);
	enum exit_status status;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_true(fcntl(ends[1], F_SETPIPE_SZ, PIPED) >= (int)length);
	assert_int_equal(write(ends[1], bytes, length), length);
	close(ends[1]);
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	status = run(command, line);
	dup2(saved, STDIN_FILENO);
	close(saved);
	return status;
}

static void a_pipe_is_read_as_a_file_is(void **state)
{
	size_t length;
	char *bytes = read_file("first.ljspy", &length);

	(void)state;
	assert_int_equal(run_with_input("report", "-f folded -", bytes, length), EXIT_ALL_GOOD);
	ASSERT_SHOWN("alpha");
	assert_string_equal(told, "");
	assert_int_equal(run_with_input("report", "-", "some text", 9), EXIT_NOTHING_DONE);
	ASSERT_TOLD("Standard input is not a recording of ljspy.");
	scene.scratch_error = -ENOSPC;
	assert_int_equal(run_with_input("report", "-", bytes, length), EXIT_NOTHING_DONE);
	ASSERT_TOLD("standard input: No space left on device");
	scene.scratch_error = 0;
	free(bytes);
}

/* What is left of it would be shown as a recording whose writer was killed. */
static void a_pipe_that_finds_no_room_is_an_error(void **state)
{
	struct made_up large = first;
	size_t length;
	char *bytes;

	(void)state;
	large.samples = LARGE;
	large.is_noisy = true;
	record(&large);
	bytes = read_file("first.ljspy", &length);
	assert_in_range(length, 2 * BUFSIZ, PIPED);
	bound_files(length - BUFSIZ / 2);
	assert_int_equal(run_with_input("report", "-f folded -", bytes, length), EXIT_NOTHING_DONE);
	unbound_files();
	ASSERT_TOLD("standard input: File too large");
	free(bytes);
}

/*---- Times ----*/

static void times_choose_samples_of_each_recording(void **state)
{
	(void)state;
	assert_int_equal(run("report", "--since 0.25s first.ljspy second.ljspy"), EXIT_ALL_GOOD);
	ASSERT_SHOWN("3.5 s, 150 samples of"); /* 25 of 50, 125 of 150 */
	assert_int_equal(run("report", "--until 0.25s first.ljspy second.ljspy"), EXIT_ALL_GOOD);
	ASSERT_SHOWN("0.5 s, 50 samples of");
	assert_refused("report", "--since 2s first.ljspy second.ljspy", EXIT_NOTHING_DONE,
		       "--since 2.0s is past the end: the longest recording lasts 2.0s.");
	assert_refused("report", "--since 3s first.ljspy", EXIT_NOTHING_DONE, "first.ljspy lasts 2.0s.");
	assert_int_equal(run("report", "--since 1s -f folded first.ljspy"), EXIT_ALL_GOOD);
	ASSERT_TOLD("There are no such samples.");
}

/* By the clock: 22:13:20 to 22:13:22, and a minute later. */
static void times_of_the_clock_choose_recordings(void **state)
{
	(void)state;
	setenv("TZ", "UTC", 1);
	assert_int_equal(run("report", "--since 22:14:00 -f folded first.ljspy second.ljspy"), EXIT_ALL_GOOD);
	ASSERT_SHOWN("beta");
	assert_null(strstr(shown, "alpha"));
	assert_int_equal(run("report", "--until 22:14:00 -f folded first.ljspy second.ljspy"), EXIT_ALL_GOOD);
	ASSERT_SHOWN("alpha");
	assert_null(strstr(shown, "beta"));
	assert_refused("report", "--since 22:15:00 first.ljspy second.ljspy", EXIT_NOTHING_DONE,
		       "--since is past the end of all recordings.");
	assert_refused("report", "--since 22:15:00 first.ljspy", EXIT_NOTHING_DONE, "first.ljspy.");
}

/*---- Requests ----*/

static void the_life_of_a_request_takes_the_place_of_a_profile(void **state)
{
	struct made_up with_requests = first;
	json_t *life;

	(void)state;
	with_requests.request = 5;
	with_requests.clock = WEIGHT_WALL_TIME;
	record(&with_requests);
	assert_int_equal(run("report", "--request 5.1 first.ljspy"), EXIT_ALL_GOOD);
	ASSERT_SHOWN("5.1");
	ASSERT_SHOWN("alpha");
	assert_int_equal(run("report", "--request 5.1 -f json first.ljspy"), EXIT_ALL_GOOD);
	life = json_loads(shown, 0, NULL);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(life, "request"), "number")), 1);
	json_decref(life);
	assert_int_equal(run("report", "--request 5.1 -f folded first.ljspy"), EXIT_ALL_GOOD);
	ASSERT_SHOWN("alpha ");
	assert_refused("report", "--request 6.1 first.ljspy", EXIT_NOTHING_DONE,
		       "No sample has request 6.1.");
	/* Another process may have one of that number. */
	with_requests.name = second.name;
	with_requests.pid = 9;
	record(&with_requests);
	assert_int_equal(run("report", "--request 5.1 first.ljspy second.ljspy"), EXIT_ALL_GOOD);
	ASSERT_TOLD("Several processes have a request of that number.");
	assert_int_equal(run("report", "--request 5.1 -p 9 first.ljspy second.ljspy"), EXIT_ALL_GOOD);
	assert_string_equal(told, "");
}

/*---- Outputs ----*/

static void a_recording_is_never_replaced_by_its_report(void **state)
{
	size_t length, length_then;
	char *bytes = read_file("first.ljspy", &length), *then;

	(void)state;
	assert_refused("report", "-f svg -o first.ljspy first.ljspy", EXIT_USAGE,
		       "would replace what is to be read.");
	assert_refused("diff", "-f svg -o second.ljspy first.ljspy second.ljspy", EXIT_USAGE,
		       "would replace what is to be read.");
	assert_refused("report", "-o first.ljspy --since 1s first.ljspy", EXIT_USAGE,
		       "would replace what is to be read.");
	then = read_file("first.ljspy", &length_then);
	assert_int_equal(length_then, length);
	assert_memory_equal(then, bytes, length);
	free(then);
	free(bytes);
	assert_int_equal(run("report", "-o first.ljspy --until 0.25s first.ljspy"), EXIT_ALL_GOOD);
	assert_int_equal(run("report", "first.ljspy"), EXIT_ALL_GOOD);
	ASSERT_SHOWN("25 samples of");
}

static void an_output_is_whole_or_not_there(void **state)
{
	(void)state;
	assert_int_equal(run("report", "-o out.svg first.ljspy"), EXIT_ALL_GOOD);
	assert_true(is_there("out.svg"));
	ASSERT_TOLD("out.svg");
	unlink(path_of("out.svg"));
	bound_files(4096);
	assert_int_equal(run("report", "-o out.svg first.ljspy"), EXIT_NOTHING_DONE);
	assert_int_equal(run("diff", "-o out.svg first.ljspy second.ljspy"), EXIT_NOTHING_DONE);
	unbound_files();
	assert_false(is_there("out.svg"));
	assert_refused("report", "-f svg -o /nowhere/at/all first.ljspy", EXIT_NOTHING_DONE,
		       "/nowhere/at/all");
	assert_refused("diff", "-f svg -o /nowhere/at/all first.ljspy second.ljspy", EXIT_NOTHING_DONE,
		       "/nowhere/at/all");
}

/*---- Memory ----*/

static void short_memory_is_told(void **state)
{
	bool *const lacks[] = { &scene.lacks_functions, &scene.lacks_filter, &scene.lacks_sum };

	(void)state;
	for (size_t i = 0; i < sizeof(lacks) / sizeof(*lacks); i++) {
		*lacks[i] = true;
		assert_refused("report", "first.ljspy", EXIT_NOTHING_DONE, "Cannot allocate memory");
		assert_refused("diff", "first.ljspy second.ljspy", EXIT_NOTHING_DONE,
			       "Cannot allocate memory");
		*lacks[i] = false;
	}
}

/*---- Differences ----*/

static void a_difference_has_both_sides(void **state)
{
	struct made_up other = second;

	(void)state;
	assert_int_equal(run("diff", "first.ljspy second.ljspy"), EXIT_ALL_GOOD);
	ASSERT_SHOWN("first.ljspy");
	ASSERT_SHOWN("second.ljspy");
	ASSERT_SHOWN("alpha");
	ASSERT_SHOWN("beta");
	assert_int_equal(run("diff", "-o out.svg first.ljspy second.ljspy"), EXIT_ALL_GOOD);
	assert_true(is_there("out.svg"));
	unlink(path_of("out.svg"));
	assert_refused("diff", "first.ljspy nowhere.any", EXIT_NOTHING_DONE, "No such file");
	other.clock = WEIGHT_WALL_TIME;
	record(&other);
	assert_refused("diff", "first.ljspy second.ljspy", EXIT_NOTHING_DONE, "they cannot be compared.");
}

static int begin_all(void **state)
{
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

static int end_all(void **state)
{
	static const char *const names[] = { "first.ljspy", "second.ljspy", "none.any", "more.any" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		unlink(path_of(names[i]));
	return rmdir(directory); /* nothing else is left behind */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, unbound_files_after)
	const struct CMUnitTest tests[] = {
		TEST(several_recordings_have_one_sum),
		TEST(recordings_of_other_clocks_have_no_sum),
		TEST(a_file_that_is_no_recording_is_told),
		TEST(a_recording_that_is_damaged_is_shown_as_far_as_it_goes),
		TEST(what_was_kept_for_an_output_is_shown_in_its_place),
		TEST(a_pipe_is_read_as_a_file_is),
		TEST(a_pipe_that_finds_no_room_is_an_error),
		TEST(times_choose_samples_of_each_recording),
		TEST(times_of_the_clock_choose_recordings),
		TEST(the_life_of_a_request_takes_the_place_of_a_profile),
		TEST(a_recording_is_never_replaced_by_its_report),
		TEST(an_output_is_whole_or_not_there),
		TEST(short_memory_is_told),
		TEST(a_difference_has_both_sides),
	};

	return cmocka_run_group_tests(tests, begin_all, end_all);
}

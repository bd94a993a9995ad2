/* SPDX-License-Identifier: MIT */
/* ljspy report and diff of heap files: one heap, a series, what changed, and what they refuse. */
#include <errno.h>
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

#include "src/rendering/heap_output.h"
#include "tests/unit/bounded_files.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_heap.h"
#include "tests/unit/report_line.h"

enum { PID = 4242, STATES_MAX = 2 };

static struct {
	bool lacks_memory;
} scene;

INSTEAD_OF(heap_output_begin_moment);
int __wrap_heap_output_begin_moment(struct heap_output *output, const char *name)
{
	return scene.lacks_memory ? -ENOMEM : __real_heap_output_begin_moment(output, name);
}

/*---- Files ----*/

/* One file with the heap of each state: how many entries its cache has; 0: it could not be read. */
struct made_up {
	const char *name;
	size_t states;
	uint32_t entries[STATES_MAX];
	bool is_partial;
};

static void write_heaps(const struct made_up *of)
{
	const struct options heap = {
		.command = COMMAND_HEAP,
		.heap_format = heap_format_by_name("heap"),
		.output = path_of(of->name),
	};
	struct heap_output output = { .options = &heap };

	told_begin();
	assert_int_equal(__real_heap_output_begin_moment(&output, NULL), 0);
	for (size_t i = 0; i < of->states; i++) {
		struct heap_graph graph = of->entries[i] ? made_up_leak(of->entries[i], 2, 2)
							 : made_up_root_alone();
		struct heap_account account = made_up_account(&graph);

		account.pid = PID;
		account.g = 0x1000 * (i + 1);
		account.vm = (unsigned int)i + 1;
		account.gc_total = of->is_partial ? 2 * account.sum : account.sum;
		account.uncertain = (struct heap_uncertain){ 0 };
		if (!of->entries[i])
			account.method = HEAP_MISSING;
		assert_int_equal(heap_output_add(&output, &graph, &account), 0);
	}
	assert_true(heap_output_write(&output));
	told_end();
	heap_output_clear(&output);
}

static void write_text(const char *name, const char *text)
{
	FILE *out = fopen(path_of(name), "w");

	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
}

/*---- The user ----*/

static int begin(void **state)
{
	(void)state;
	memset(&scene, 0, sizeof(scene));
	write_heaps(&(struct made_up){ .name = "before.heap", .states = 1, .entries = { 1000 } });
	write_heaps(&(struct made_up){ .name = "after.heap", .states = 1, .entries = { 3000 } });
	return 0;
}

static void one_heap_is_reported_and_several_are_a_series(void **state)
{
	(void)state;
	assert_int_equal(run("report", "before.heap"), EXIT_ALL_GOOD);
	assert_string_equal(told, "");
	ASSERT_SHOWN("4242");
	ASSERT_SHOWN("cache");
	assert_int_equal(run("report", "before.heap after.heap"), EXIT_ALL_GOOD);
	ASSERT_SHOWN("+2000");
	assert_int_equal(run("report", "-o out.svg after.heap"), EXIT_ALL_GOOD);
	assert_true(is_there("out.svg"));
	ASSERT_TOLD("out.svg; open it in a browser");
	unlink(path_of("out.svg"));
	assert_refused("report", "-f folded before.heap after.heap", EXIT_USAGE,
		       "The format folded shows one heap, not what grew over several.");
}

static void a_difference_leaves_out_states_that_are_missing_on_one_side(void **state)
{
	const struct made_up before = { .name = "before.heap", .states = 2, .entries = { 1000, 50 } };
	struct made_up after = { .name = "after.heap", .states = 2, .entries = { 3000, 0 } };

	(void)state;
	assert_int_equal(run("diff", "before.heap after.heap"), EXIT_ALL_GOOD);
	ASSERT_SHOWN("+2000");
	assert_string_equal(told, "");
	write_heaps(&before);
	write_heaps(&after);
	assert_int_equal(run("diff", "before.heap after.heap"), EXIT_WITH_ERRORS);
	ASSERT_TOLD("VM 2 of process 4242 is left out: it could not be read in ");
	ASSERT_TOLD("after.heap.");
	ASSERT_SHOWN("+2000");
	assert_int_equal(run("diff", "after.heap before.heap"), EXIT_WITH_ERRORS);
	assert_int_equal(told_times("is left out"), 1);
	/* One that has gone is no such one. */
	after.states = 1;
	write_heaps(&after);
	assert_int_equal(run("diff", "before.heap after.heap"), EXIT_ALL_GOOD);
	assert_int_equal(told_times("is left out"), 0);
}

static void a_heap_of_which_a_part_was_not_found_is_told(void **state)
{
	(void)state;
	write_heaps(&(struct made_up){
		.name = "after.heap", .states = 1, .entries = { 3000 }, .is_partial = true });
	assert_int_equal(run("report", "after.heap"), EXIT_WITH_ERRORS);
	ASSERT_SHOWN("4242");
	assert_int_equal(run("report", "-f folded after.heap"), EXIT_WITH_ERRORS);
	ASSERT_TOLD("after.heap: ");
	assert_int_equal(run("report", "-f folded before.heap"), EXIT_ALL_GOOD);
	assert_string_equal(told, "");
}

static void files_that_are_no_heaps_are_told(void **state)
{
	struct stat status;

	(void)state;
	write_text("none.any", "no heap at all, but some text");
	assert_refused("report", "before.heap none.any", EXIT_NOTHING_DONE, "none.any is not a heap.");
	assert_refused("report", "before.heap nowhere.any", EXIT_NOTHING_DONE, "nowhere.any: No such file");
	assert_int_equal(mkdir(path_of("folder.any"), 0700), 0);
	assert_refused("diff", "before.heap folder.any", EXIT_NOTHING_DONE, "folder.any: Is a directory");
	assert_int_equal(rmdir(path_of("folder.any")), 0);
	assert_int_equal(stat(path_of("after.heap"), &status), 0);
	assert_int_equal(truncate(path_of("after.heap"), status.st_size / 2), 0);
	assert_refused("report", "after.heap", EXIT_NOTHING_DONE, "after.heap is damaged");
	scene.lacks_memory = true;
	assert_refused("report", "before.heap", EXIT_NOTHING_DONE, "before.heap: Cannot allocate memory");
	unlink(path_of("none.any"));
}

static void options_that_heaps_have_not_are_refused(void **state)
{
	(void)state;
	assert_refused("report", "--since 1s before.heap", EXIT_USAGE, "--since");
	assert_refused("report", "-f speedscope before.heap", EXIT_USAGE,
		       "The format speedscope is for profiles: ");
	assert_refused("diff", "--slower-than 1s before.heap", EXIT_USAGE, "");
	assert_refused("report", "-o before.heap after.heap before.heap", EXIT_USAGE,
		       "would replace what is to be read.");
	assert_int_equal(run("report", "before.heap"), EXIT_ALL_GOOD);
}

static void an_output_is_whole_or_not_there(void **state)
{
	static const char *const lines[] = { "-o out.svg before.heap", "-o out.txt before.heap after.heap" };

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		bound_files(300);
		assert_int_equal(run("report", lines[i]), EXIT_NOTHING_DONE);
		unbound_files();
		ASSERT_TOLD("File too large");
	}
	bound_files(300);
	assert_int_equal(run("diff", "-o out.svg before.heap after.heap"), EXIT_NOTHING_DONE);
	unbound_files();
	ASSERT_TOLD("File too large");
	assert_false(is_there("out.svg") || is_there("out.txt"));
	assert_refused("report", "-o nowhere/out.svg before.heap", EXIT_NOTHING_DONE,
		       "there is no directory");
	assert_refused("report", "-o nowhere/out.txt before.heap after.heap", EXIT_NOTHING_DONE,
		       "there is no directory");
	assert_refused("diff", "-o nowhere/out.svg before.heap after.heap", EXIT_NOTHING_DONE,
		       "there is no directory");
}

static int begin_all(void **state)
{
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

static int end_all(void **state)
{
	(void)state;
	unlink(path_of("before.heap"));
	unlink(path_of("after.heap"));
	return rmdir(directory); /* nothing else is left behind */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, unbound_files_after)
	const struct CMUnitTest tests[] = {
		TEST(one_heap_is_reported_and_several_are_a_series),
		TEST(a_difference_leaves_out_states_that_are_missing_on_one_side),
		TEST(a_heap_of_which_a_part_was_not_found_is_told),
		TEST(files_that_are_no_heaps_are_told),
		TEST(options_that_heaps_have_not_are_refused),
		TEST(an_output_is_whole_or_not_there),
	};

	return cmocka_run_group_tests(tests, begin_all, end_all);
}

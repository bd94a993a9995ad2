/* SPDX-License-Identifier: MIT */
/* Where the recording is that an output is made of, under which name, and when it is gone. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/program/kept_recording.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/told.h"

enum { PATH_SIZE = 128, TEXT_SIZE = 512, LARGE = (3 << 16) + 1, NAMES_TRIED = 100 };

/* The output's directory; two for temporary files, one of another file system. */
static char directory[PATH_SIZE], temporary[PATH_SIZE], elsewhere[PATH_SIZE];
static char output_path[2 * PATH_SIZE], output_name[] = "out.folded";
static struct output_file output;
static bool lacks_nameless; /* the file systems have no files without a name */
static bool fails_to_open;  /* none may be written to */
static int writes_left;     /* until the other file system is full; -1: it never is */
static bool fails_to_read;  /* what is to be copied */

INSTEAD_OF(openat);
int __wrap_openat(int at, const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = va_arg(arguments, mode_t);
	va_end(arguments);
	if (lacks_nameless && (flags & O_TMPFILE) == O_TMPFILE) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return __real_openat(at, path, flags, mode);
}

INSTEAD_OF(new_file_open);
int __wrap_new_file_open(const char *in, const char *name, mode_t mode, struct new_file *ret_file)
{
	return fails_to_open ? -EROFS : __real_new_file_open(in, name, mode, ret_file);
}

INSTEAD_OF(pwrite);
ssize_t __wrap_pwrite(int fd, const void *buffer, size_t length, off_t offset)
{
	if (writes_left < 0 || writes_left-- > 0)
		return __real_pwrite(fd, buffer, length, offset);
	writes_left = 0;
	return __real_pwrite(fd, buffer, length / 2, offset);
}

INSTEAD_OF(pread);
ssize_t __wrap_pread(int fd, void *buffer, size_t length, off_t offset)
{
	errno = EIO;
	return fails_to_read ? -1 : __real_pread(fd, buffer, length, offset);
}

static bool make_directory(char *path, const char *in)
{
	snprintf(path, PATH_SIZE, "%s/ljspy-kept-XXXXXX", in);
	return mkdtemp(path) != NULL;
}

static int begin(void **state)
{
	(void)state;
	lacks_nameless = fails_to_open = fails_to_read = false;
	writes_left = -1;
	if (!make_directory(directory, "/tmp") || !make_directory(temporary, "/tmp") ||
	    !make_directory(elsewhere, "/dev/shm"))
		return -1;
	snprintf(output_path, sizeof(output_path), "%s/%s", directory, output_name);
	output = (struct output_file){ .path = output_path, .name = output_name, .file = new_file_none };
	return setenv("TMPDIR", temporary, 1);
}

static void remove_directory(const char *path)
{
	DIR *files = opendir(path);
	struct dirent *entry;

	while (files && (entry = readdir(files)) != NULL)
		if (unlinkat(dirfd(files), entry->d_name, 0))
			unlinkat(dirfd(files), entry->d_name, AT_REMOVEDIR);
	if (files)
		closedir(files);
	rmdir(path);
}

static int end(void **state)
{
	(void)state;
	remove_directory(directory);
	remove_directory(temporary);
	remove_directory(elsewhere);
	return 0;
}

static size_t count_files(const char *path)
{
	DIR *files = opendir(path);
	size_t count = 0;

	assert_non_null(files);
	while (readdir(files))
		count++;
	closedir(files);
	return count - 2;
}

static const char *path_of(const char *in, const char *name)
{
	static char path[2 * PATH_SIZE];

	snprintf(path, sizeof(path), "%s/%s", in, name);
	return path;
}

static void assert_contains(const char *in, const char *name, const char *words)
{
	char text[TEXT_SIZE] = "";
	FILE *file = fopen(path_of(in, name), "r");

	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	assert_string_equal(text, words);
}

/* Nobody else may read what a recording tells of a program. */
static bool is_private(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && (status.st_mode & 07777) == 0600;
}

static struct kept_recording open_kept(const char *words)
{
	struct kept_recording kept;

	assert_int_equal(kept_recording_open(&output, "base", &kept), 0);
	assert_true(kept_recording_is_empty(&kept));
	fputs(words, kept.stream);
	assert_int_equal(fflush(kept.stream), 0);
	assert_int_equal(kept_recording_is_empty(&kept), *words == '\0');
	return kept;
}

static bool name(struct kept_recording *kept)
{
	bool has_name;

	told_begin();
	has_name = kept_recording_name(kept);
	told_end();
	return has_name;
}

static const char first_name[] = "out.folded.unfinished.ljspy",
		  second_name[] = "out.folded.unfinished-2.ljspy";

static void it_has_its_name_from_when_there_is_something_to_lose(void **state)
{
	(void)state;
	for (int round = 0; round < 2; round++) {
		struct kept_recording kept;

		lacks_nameless = round == 1;
		kept = open_kept("a sample");
		assert_int_equal(access(path_of(directory, first_name), F_OK), -1);
		assert_in_range(count_files(directory), lacks_nameless, 1);
		assert_true(name(&kept));
		assert_string_equal(told, "");
		assert_contains(directory, first_name, "a sample");
		assert_true(is_private(path_of(directory, first_name)));
		assert_int_equal(count_files(directory), 1);
		assert_string_equal(kept.path, path_of(directory, first_name));
		assert_true(name(&kept));
		assert_int_equal(count_files(directory), 1);
		kept_recording_remove(&kept);
		assert_null(kept.stream);
		assert_int_equal(count_files(directory), 0);
		kept_recording_remove(&kept);
	}
}

static void what_has_a_name_stays_when_it_is_closed(void **state)
{
	(void)state;
	for (int round = 0; round < 2; round++) {
		struct kept_recording kept;

		lacks_nameless = round == 1;
		kept = open_kept("lost");
		kept_recording_close(&kept);
		assert_int_equal(count_files(directory), 0);
		kept = open_kept("kept");
		assert_true(name(&kept));
		kept_recording_close(&kept);
		kept_recording_close(&kept);
		assert_contains(directory, first_name, "kept");
		assert_int_equal(count_files(directory), 1);
		unlink(path_of(directory, first_name));
	}
}

static void it_replaces_what_nobody_writes_any_more(void **state)
{
	(void)state;
	for (int round = 0; round < 2; round++) {
		struct kept_recording one, other, third;

		lacks_nameless = round == 1;
		one = open_kept("one");
		other = open_kept("other");
		assert_true(name(&one));
		assert_true(name(&other));
		assert_string_equal(told, "");
		assert_contains(directory, first_name, "one");
		assert_contains(directory, second_name, "other");
		kept_recording_close(&one);
		third = open_kept("third");
		assert_true(name(&third));
		assert_int_equal(
			told_times("which a recording that was not finished had left, has been replaced."),
			1);
		assert_non_null(strstr(told, path_of(directory, first_name)));
		assert_contains(directory, first_name, "third");
		assert_contains(directory, second_name, "other");
		kept_recording_remove(&third);
		kept_recording_remove(&other);
		assert_int_equal(count_files(directory), 0);
	}
}

static void where_every_name_is_taken_it_has_none(void **state)
{
	struct kept_recording kept = open_kept("nameless");
	char taken[TEXT_SIZE];

	(void)state;
	for (int number = 1; number <= NAMES_TRIED; number++) {
		snprintf(taken, sizeof(taken), "%s/out.folded.unfinished-%d.ljspy", directory, number);
		assert_int_equal(mkdir(number == 1 ? path_of(directory, first_name) : taken, 0700), 0);
	}
	assert_false(name(&kept));
	assert_null(kept.path);
	/* One more try, as it is asked for later. */
	assert_int_equal(rmdir(taken), 0);
	assert_true(name(&kept));
	assert_string_equal(kept.path, taken);
	kept_recording_remove(&kept);
	assert_int_equal(count_files(directory), NAMES_TRIED - 1);
}

/* The output has no directory that could take it, or is no file. */
static void it_may_be_in_a_directory_for_temporary_files(void **state)
{
	struct kept_recording kept;

	(void)state;
	output.path = "/tmp/ljspy-is-not-there/out.folded";
	kept = open_kept("a sample");
	assert_true(name(&kept));
	assert_int_equal(told_times("Until the output is written, what it is made of is in "), 1);
	assert_non_null(strstr(told, path_of(temporary, first_name)));
	assert_contains(temporary, first_name, "a sample");
	assert_true(name(&kept));
	assert_string_equal(told, "");
	kept_recording_remove(&kept);

	output = (struct output_file){ .path = "-", .file = new_file_none };
	kept = open_kept("a sample");
	assert_true(name(&kept));
	assert_contains(temporary, "base.unfinished.ljspy", "a sample");
	kept_recording_remove(&kept);
	assert_int_equal(count_files(temporary), 0);
	/* It has no name: whoever runs the test may have such a file. */
	for (int round = 0; round < 3; round++) {
		setenv("TMPDIR", round ? "" : "/tmp/ljspy-is-not-there", 1);
		if (round == 2)
			unsetenv("TMPDIR");
		kept = open_kept("a sample");
		assert_string_equal(kept.directory, "/tmp");
		assert_false(kept.beside);
		kept_recording_close(&kept);
	}
}

/* What a move leaves. */
static struct kept_recording behind;

static void where_no_directory_will_do_it_is_in_memory(void **state)
{
	struct kept_recording kept;

	(void)state;
	fails_to_open = true;
	kept = open_kept("a sample");
	assert_int_equal(ftell(kept.stream), strlen("a sample"));
	assert_false(name(&kept));
	assert_string_equal(told, "");
	assert_false(kept_recording_move(&kept, &behind));
	kept_recording_remove(&kept);
	assert_null(kept.stream);
}

static bool is_same_file_system(const char *a, const char *b)
{
	struct stat of_a, of_b;

	assert_int_equal(stat(a, &of_a), 0);
	assert_int_equal(stat(b, &of_b), 0);
	return of_a.st_dev == of_b.st_dev;
}

static void assert_large(const char *path, const char *tail)
{
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	for (int i = 0; i < LARGE; i++)
		assert_int_equal(fgetc(file), 'a' + i % 26);
	while (*tail)
		assert_int_equal(fgetc(file), *tail++);
	assert_int_equal(fgetc(file), EOF);
	fclose(file);
}

static struct kept_recording open_large(void)
{
	struct kept_recording kept;

	if (is_same_file_system(directory, elsewhere)) {
		print_message("there is one file system only\n");
		skip();
	}
	setenv("TMPDIR", elsewhere, 1);
	kept = open_kept("");
	for (int i = 0; i < LARGE; i++)
		fputc('a' + i % 26, kept.stream);
	assert_int_equal(fflush(kept.stream), 0);
	return kept;
}

static void it_goes_on_whole_on_another_file_system(void **state)
{
	(void)state;
	for (int had_name = 0; had_name < 2; had_name++) {
		struct kept_recording kept = open_large();
		bool moved;

		if (had_name)
			assert_true(name(&kept));
		told_begin();
		moved = kept_recording_move(&kept, &behind);
		told_end();
		assert_true(moved);
		assert_int_equal(count_files(directory), had_name);
		kept_recording_remove(&behind);
		assert_int_equal(count_files(directory), 0);
		assert_int_equal(count_files(elsewhere), had_name);
		assert_int_equal(told_times("what it is made of is in"), had_name);
		fputs("the rest", kept.stream);
		assert_int_equal(fflush(kept.stream), 0);
		assert_true(name(&kept));
		assert_large(path_of(elsewhere, first_name), "the rest");
		kept_recording_remove(&kept);
		assert_int_equal(count_files(elsewhere), 0);
	}
}

/* That one may be full, too, or what is there can no more be read. */
static void it_stays_where_a_part_of_it_cannot_be_copied(void **state)
{
	struct kept_recording kept = open_large();

	(void)state;
	assert_true(name(&kept));
	for (int round = 0; round < 3; round++) {
		writes_left = round < 2 ? round : -1;
		fails_to_read = round == 2;
		assert_false(kept_recording_move(&kept, &behind));
		assert_int_equal(count_files(elsewhere), 0);
		assert_large(path_of(directory, first_name), "");
	}
	kept_recording_remove(&kept);
}

/* A full file system is no other one by another name. */
static void it_stays_where_there_is_no_other_file_system(void **state)
{
	struct kept_recording kept = open_kept("a sample");

	(void)state;
	assert_true(name(&kept));
	for (int round = 0; round < 2; round++) {
		fails_to_open = round == 1;
		assert_false(kept_recording_move(&kept, &behind));
		assert_int_equal(count_files(temporary), 0);
		assert_contains(directory, first_name, "a sample");
		assert_int_equal(ftell(kept.stream), strlen("a sample"));
	}
	kept_recording_remove(&kept);
	assert_int_equal(count_files(directory), 0);
}

static void it_is_told_if_what_is_needed_no_more_stays(void **state)
{
	(void)state;
	for (int is_gone = 0; is_gone < 2; is_gone++) {
		struct kept_recording kept = open_kept("a sample");

		assert_true(name(&kept));
		assert_int_equal(unlink(path_of(directory, first_name)), 0);
		if (!is_gone)
			assert_int_equal(mkdir(path_of(directory, first_name), 0700), 0);
		told_begin();
		kept_recording_remove(&kept);
		told_end();
		assert_int_equal(told_times("which is needed no more, cannot be removed: Is a directory"),
				 !is_gone);
		assert_int_equal(told[0] == '\0', is_gone);
		rmdir(path_of(directory, first_name));
	}
}

/* The user is told `ljspy report PATH`: a dash would begin an option there. */
static void its_path_does_not_begin_with_a_dash(void **state)
{
	char dashed[] = "-y.svg", path[] = "./-y.svg";
	struct kept_recording kept;

	(void)state;
	assert_int_equal(chdir(directory), 0);
	output.path = path;
	output.name = dashed;
	kept = open_kept("a sample");
	assert_true(name(&kept));
	assert_string_equal(kept.path, "./-y.svg.unfinished.ljspy");
	kept_recording_remove(&kept);
	assert_int_equal(chdir("/"), 0);
}

static void it_has_the_outputs_path_and_a_suffix_first(void **state)
{
	char *path = kept_recording_path("some/out.svg");

	(void)state;
	assert_string_equal(path, "some/out.svg.unfinished.ljspy");
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_has_its_name_from_when_there_is_something_to_lose, begin,
						end),
		cmocka_unit_test_setup_teardown(what_has_a_name_stays_when_it_is_closed, begin, end),
		cmocka_unit_test_setup_teardown(it_replaces_what_nobody_writes_any_more, begin, end),
		cmocka_unit_test_setup_teardown(where_every_name_is_taken_it_has_none, begin, end),
		cmocka_unit_test_setup_teardown(it_may_be_in_a_directory_for_temporary_files, begin, end),
		cmocka_unit_test_setup_teardown(where_no_directory_will_do_it_is_in_memory, begin, end),
		cmocka_unit_test_setup_teardown(it_goes_on_whole_on_another_file_system, begin, end),
		cmocka_unit_test_setup_teardown(it_stays_where_a_part_of_it_cannot_be_copied, begin, end),
		cmocka_unit_test_setup_teardown(it_stays_where_there_is_no_other_file_system, begin, end),
		cmocka_unit_test_setup_teardown(it_is_told_if_what_is_needed_no_more_stays, begin, end),
		cmocka_unit_test_setup_teardown(its_path_does_not_begin_with_a_dash, begin, end),
		cmocka_unit_test(it_has_the_outputs_path_and_a_suffix_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

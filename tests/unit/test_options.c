/* SPDX-License-Identifier: MIT */
/* The command line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/options/options.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
#include "tests/unit/failing_allocation.h"

enum { ARGUMENTS_MAX = 24, TEXT_MAX = 8192 };

/* What a command line gave: the options, and what was said on both outputs. */
struct outcome {
	bool go_on;
	enum exit_status status;
	struct options options;
	char said[TEXT_MAX], printed[TEXT_MAX];
};

static int divert(int fd, FILE *file)
{
	int saved = dup(fd);

	dup2(fileno(file), fd);
	return saved;
}

static void restore(int fd, int saved, FILE *file, char *text)
{
	dup2(saved, fd);
	close(saved);
	rewind(file);
	text[fread(text, 1, TEXT_MAX - 1, file)] = '\0';
	fclose(file);
}

/* The words are split at spaces. The outcome is good until the next call. */
static struct outcome *parse(const char *words)
{
	static struct outcome outcome;
	static char line[512];
	static char *argv[ARGUMENTS_MAX + 1];
	FILE *out = tmpfile(), *err = tmpfile();
	int argc = 0, saved_out, saved_err;

	snprintf(line, sizeof(line), "ljspy %s", words);
	for (char *word = strtok(line, " "); word && argc < ARGUMENTS_MAX; word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	options_clear(&outcome.options); /* of the last time */
	fflush(stdout);
	saved_out = divert(STDOUT_FILENO, out);
	saved_err = divert(STDERR_FILENO, err);
	outcome.go_on = options_parse(argc, argv, &outcome.options, &outcome.status);
	fflush(stdout);
	restore(STDOUT_FILENO, saved_out, out, outcome.printed);
	restore(STDERR_FILENO, saved_err, err, outcome.said);
	return &outcome;
}

static int clear(void **state)
{
	(void)state;
	options_clear(&parse("record")->options);
	return 0;
}

static const struct options *accept(const char *words)
{
	const struct outcome *outcome = parse(words);

	if (!outcome->go_on)
		fail_msg("\"%s\" was not understood: %s", words, outcome->said);
	assert_string_equal(outcome->said, "");
	assert_string_equal(outcome->printed, "");
	return &outcome->options;
}

/* It is usage, said in a sentence with that word and at most one more line. */
static void refuse(const char *words, const char *word)
{
	const struct outcome *outcome = parse(words);
	const char *newline;

	if (outcome->go_on)
		fail_msg("\"%s\" was taken", words);
	assert_int_equal(outcome->status, EXIT_USAGE);
	assert_string_equal(outcome->printed, "");
	assert_int_equal(strncmp(outcome->said, "ljspy: ", 7), 0);
	newline = strchr(outcome->said, '\n');
	assert_non_null(newline);
	if (!strstr(outcome->said, word))
		fail_msg("\"%s\" does not mention %s", outcome->said, word);
	if (newline[1])
		assert_string_equal(strchr(newline + 1, '\n'), "\n");
}

static void commands_may_be_abbreviated(void **state)
{
	(void)state;
	assert_int_equal(accept("record")->command, COMMAND_RECORD);
	refuse("d", "diff");
	refuse("re", "report");
	assert_int_equal(accept("rec")->command, COMMAND_RECORD);
	assert_int_equal(accept("du")->command, COMMAND_DUMP);
	assert_int_equal(accept("to")->command, COMMAND_TOP);
	assert_int_equal(accept("inf")->command, COMMAND_INFO);
	refuse("recorder", "recorder");
	refuse("pot", "pot");
	refuse("-p 1", "-p");
}

static void defaults_need_no_option(void **state)
{
	const struct options *options = accept("record");

	(void)state;
	assert_int_equal(options->pid_count, 0);
	assert_null(options->name);
	assert_null(options->launch);
	assert_null(options->output);
	assert_string_equal(options->format->name, "svg");
	assert_int_equal(options->duration_ns, 0);
	assert_int_equal(options->rate_hz, 99);
	assert_null(options->stats);
	assert_false(options->lines);
	assert_false(options->annotate);
}

static void pids_are_collected(void **state)
{
	const struct options *options = accept("dump -p 12,34 --pid 56 -p 12");

	(void)state;
	assert_int_equal(options->pid_count, 3);
	assert_int_equal(options->pids[0], 12);
	assert_int_equal(options->pids[1], 34);
	assert_int_equal(options->pids[2], 56);
	refuse("dump -p 0", "0");
	refuse("dump -p -1", "-1");
	refuse("dump -p 1,", "1,");
	refuse("dump -p 1,,2", "1,,2");
	refuse("dump -p 1;2", "1;2");
	refuse("dump -p 2147483648", "2147483648");
	refuse("dump -p nginx", "--name");
	refuse("record --blocked=50ms", "--blocked takes no argument");
	refuse("record --subprocesses=all", "--subprocesses takes no argument");
	refuse("record --lines -Zx", "-Z");
	refuse("dump -p", "argument");
}

static void heat_maps_are_for_pictures(void **state)
{
	(void)state;
	assert_string_equal(accept("report a.ljspy --heatmap")->format->name, "svg");
	assert_string_equal(accept("report a.ljspy --heatmap -o when.html")->format->name, "html");
	refuse("report a.ljspy --heatmap -f text", "text");
	assert_string_equal(accept("report a.ljspy --source")->format->name, "text");
	assert_true(accept("record -p 1 --source")->source);
	refuse("report a.ljspy --source -f folded", "folded");
	refuse("diff a.ljspy b.ljspy --source", "--source");
}

/* An option without effect would show something else than what was asked for. */
static void formats_refuse_options_that_they_do_not_heed(void **state)
{
	static const char *const taken[] = {
		"report a.ljspy --inverted -f folded",  "report a.ljspy --min-percent 2",
		"record -p 1 --annotate -f folded",     "report a --by module -f json",
		"heap -p 1 --by type -f pprof",         "heap -p 1 --measure count -f pprof",
		"heap -p 1 --measure own --by path",    "heap -p 1 --measure retained -o a.svg",
		"diff a b --by module --min-percent 2",
	};
	static const struct {
		const char *words, *option;
	} refused[] = {
		{ "report a.ljspy --inverted", "--inverted" },
		{ "record -p 1 -o a.ljspy --inverted", "--inverted" },
		{ "record -p 1 --every 1m -o a/ --inverted", "--inverted" },
		{ "report a.ljspy -f folded --min-percent 2", "--min-percent" },
		{ "record -p 1 --annotate", "--annotate" },
		{ "heap -p 1 --inverted", "--inverted" },
		{ "heap -p 1 --by module", "--by" },
		{ "heap -p 1 --measure retained -f pprof", "--measure retained" },
		{ "heap -p 1 --every 1m -o a.heap --measure count", "--measure count" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		accept(taken[i]);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		refuse(refused[i].words, refused[i].option);
}

static void the_kind_of_a_file_tells_what_its_format_heeds(void **state)
{
	const struct options *options = accept("report a --by module -f text");

	(void)state;
	assert_true(options_check_kind(options, false));
	assert_false(options_check_kind(options, true));
	assert_true(options_check_kind(accept("report a --by module -f svg"), true));
}

static void durations_take_units(void **state)
{
	static const struct {
		const char *words;
		uint64_t ms;
	} good[] = {
		{ "record -d 30", 30000 },
		{ "record -d 30s", 30000 },
		{ "record -d 500ms", 500 },
		{ "record -d 1h30m", 5400000 },
		{ "record -d 1m2.5s", 62500 },
		{ "record -d 90s", 90000 },
		{ "record -d 1.5h", 5400000 },
		{ "record -d 1d1ms", 86400001 },
		{ "record -d 2m", 120000 },
		{ "record --duration 1h", 3600000 },
		{ "record -d 1.5s", 1500 },
		{ "record -d 12.345s", 12345 },
		{ "record --duration=0.5h", 1800000 },
		{ "record -d 8784h", 366u * 24 * 3600 * UINT64_C(1000) },
	};
	static const char *const bad[] = {
		"soon",
		"5x",
		"-5",
		"0",
		"0.0s",
		"1e3",
		"nan",
		"inf",
		"1.s",
		"1.1234567s",
		".5",
		"5 s",
		"8785h",
		"99999999999999999999",
		"18446744073709551616ms",
		"30m1h",
		"1h1h",
		"1hx",
		"366d1h",
		"1h30",
		"2m30",
	};
	static const struct {
		const char *words, *asked;
	} unclear[] = {
		{ "record -d 1h30", "1h30m or 1h30s" }, { "record -d 2m30", "is it 2m30s?" },
		{ "record -d 1s5", "is it 1s5ms?" },    { "report a.ljspy --since 1h30", "1h30m or 1h30s" },
		{ "record --threshold=1s5", "1s5ms" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(accept(good[i].words)->duration_ns, good[i].ms * 1000000);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char words[64];

		snprintf(words, sizeof(words), "record -d %s", bad[i]);
		if (strcmp(bad[i], "5 s") == 0)
			refuse(words, "\"s\"");
		else
			refuse(words, bad[i]);
	}
	for (size_t i = 0; i < sizeof(unclear) / sizeof(unclear[0]); i++)
		refuse(unclear[i].words, unclear[i].asked);
}

static void rates_are_bounded(void **state)
{
	(void)state;
	assert_int_equal(accept("record -r 1")->rate_hz, 1);
	assert_int_equal(accept("record --rate 10000")->rate_hz, 10000);
	refuse("record -r 0", "rate");
	refuse("record -r 10001", "10000");
	refuse("record -r 99Hz", "rate");
	refuse("record -r -1", "rate");
}

static void turns_of_a_threshold_are_not_missed(void **state)
{
	(void)state;
	assert_int_equal(accept("record --blocked")->blocked_ns, 20000000);
	assert_int_equal(accept("record --blocked")->clock, WEIGHT_WALL_TIME);
	assert_int_equal(accept("record --blocked")->rate_hz, 100);
	assert_int_equal(accept("record --blocked --threshold 1ms")->rate_hz, 2000);
	assert_int_equal(accept("record --threshold 50ms -r 99")->blocked_ns, 50000000);
	assert_int_equal(accept("record --threshold 50ms -r 99")->rate_hz, 99);
	refuse("record --threshold 0.9ms", "1ms");
	refuse("record --blocked --no-stop -p 1", "--no-stop");
}

static void coroutines_are_looked_at_less_often(void **state)
{
	(void)state;
	assert_int_equal(accept("record")->rate_hz, 99);
	assert_int_equal(accept("record --coroutines")->rate_hz, 10);
	assert_int_equal(accept("record --coroutines -r 99")->rate_hz, 99);
	assert_int_equal(accept("record --coroutines")->clock, WEIGHT_WALL_TIME);
	refuse("record --coroutines --blocked", "--blocked");
	refuse("record --coroutines --no-stop -p 1", "--no-stop");
}

static void allocations_go_with_no_time(void **state)
{
	(void)state;
	assert_false(accept("record")->alloc);
	assert_true(accept("record --alloc")->alloc);
	assert_int_equal(accept("record --alloc")->clock, WEIGHT_ALLOC_BYTES);
	assert_int_equal(accept("record --alloc")->rate_hz, 499);
	assert_int_equal(accept("record --alloc -r 50")->rate_hz, 50);
	assert_int_equal(accept("record --alloc --every 1m -o d/")->rate_hz, 499);
	assert_int_equal(accept("record --alloc --when cpu>90% -o d/")->clock, WEIGHT_ALLOC_BYTES);
	refuse("record --alloc --clock wall", "--clock");
	refuse("record --alloc --clock cpu", "--clock");
	refuse("record --off-cpu --alloc", "--off-cpu");
	refuse("record --alloc --blocked", "--blocked");
	refuse("record --alloc --threshold 30ms", "--blocked");
	refuse("record --alloc --when blocked>20ms -o d/", "blocked");
	refuse("record --alloc --coroutines", "--coroutines");
	refuse("record --requests --alloc", "--requests");
	refuse("record --alloc --no-stop -p 1", "--no-stop");
	refuse("report a.ljspy --alloc", "--alloc");
}

static void a_recording_is_shown_by_what_its_clock_records(void **state)
{
	(void)state;
	assert_int_equal(accept("report a.ljspy --clock alloc")->clock, WEIGHT_ALLOC_BYTES);
	assert_int_equal(accept("report a.ljspy --clock alloc-objects")->clock, WEIGHT_ALLOC_OBJECTS);
	assert_int_equal(accept("diff a.ljspy b.ljspy --clock alloc-objects")->clock, WEIGHT_ALLOC_OBJECTS);
	refuse("report a.ljspy --clock bytes", "alloc-objects");
	refuse("record --clock alloc", "cpu");
	refuse("record --clock alloc-objects", "cpu");
	refuse("serve --clock alloc", "cpu");
}

static void format_follows_the_name_unless_it_is_given(void **state)
{
	(void)state;
	assert_string_equal(accept("record -o a.folded")->format->name, "folded");
	assert_string_equal(accept("record -o a.b.svg")->format->name, "svg");
	assert_string_equal(accept("record -o plain")->format->name, "svg");
	assert_string_equal(accept("record -o dir.folded/plain")->format->name, "svg");
	assert_string_equal(accept("record -o -")->format->name, "svg");
	assert_string_equal(accept("record -o a.svg -f folded")->format->name, "folded");
	assert_string_equal(accept("record -f svg -o a.folded")->format->name, "svg");
	assert_string_equal(accept("record -f folded -o a.doc")->format->name, "folded");
	refuse("record -o a.doc", "a.doc");
	refuse("record -f jpeg", "jpeg");
	refuse("record -f SVG", "SVG");
}

static void command_to_start_follows_two_dashes(void **state)
{
	const struct options *options = accept("record --lines -- luajit -o x --help");

	(void)state;
	assert_true(options->lines);
	assert_null(options->output);
	assert_string_equal(options->launch[0], "luajit");
	assert_string_equal(options->launch[3], "--help");
	assert_null(options->launch[4]);
	refuse("record --", "command");
	refuse("record luajit", "luajit");
	refuse("record -p 1 2", "2");
	refuse("dump -- luajit", "--");
}

static void targets_are_chosen_in_one_way(void **state)
{
	(void)state;
	assert_string_equal(accept("record --name ^nginx")->name, "^nginx");
	refuse("record -p 1 --name x", "-p");
	refuse("record -p 1 -- x", "-p");
	refuse("record --name x -- x", "--name");
}

static void options_of_other_commands_are_refused(void **state)
{
	(void)state;
	refuse("dump -r 99", "-r");
	refuse("info --output x", "--output");
	refuse("record --nonsense", "--nonsense");
	refuse("record -x", "-x");
}

static void every_option_is_understood(void **state)
{
	const struct options *options = accept(
		"record -p 1 -o x.svg -f folded -d 1s -r 2 --stats s.json --lines --annotate --vm-state");

	(void)state;
	assert_string_equal(options->output, "x.svg");
	assert_string_equal(options->stats, "s.json");
	assert_true(options->lines);
	assert_true(options->annotate);
	assert_int_equal(options->filter.group, GROUP_STATE);
}

static void recordings_come_before_and_after_options(void **state)
{
	const struct options *options = accept("report a.ljspy --lines b.ljspy -f folded");

	(void)state;
	assert_string_equal(options->recordings[0], "a.ljspy");
	assert_string_equal(options->recordings[1], "b.ljspy");
	assert_null(options->recordings[2]);
	assert_true(options->lines);
	assert_string_equal(options->format->name, "folded");
	assert_string_equal(accept("report a.ljspy")->format->name, "text");
	assert_string_equal(accept("report a.ljspy -o x.svg")->format->name, "svg");
	assert_string_equal(accept("diff a b")->recordings[1], "b");
	refuse("report", "recording");
	refuse("diff a", "two recordings");
	refuse("report a --request 17", "not the number of a request");
	refuse("report a --request 0.1", "not the number of a request");
	refuse("report a --request 1.2x", "not the number of a request");
	refuse("report a --request 99999999999999999999.1", "not the number of a request");
	refuse("diff a b c", "two recordings");
	refuse("diff a b -f ljspy", "ljspy");
	refuse("record a.ljspy", "a.ljspy");
}

static void samples_of_recordings_are_chosen(void **state)
{
	const struct options *options = accept(
		"report a --pid 3,4 --tid 5 --thread io --state gc,blocked --since 1.5s --until 1m "
		"--by phase --merge-recursion --min-percent 0.25");

	(void)state;
	assert_int_equal(options->pid_count, 2);
	assert_int_equal(options->filter.tid_count, 1);
	assert_int_equal(options->tids[0], 5);
	assert_string_equal(options->filter.thread, "io");
	assert_int_equal(options->filter.thread_states, 1 << THREAD_BLOCKED);
	assert_int_equal(options->filter.vm_states, 1 << VM_STATE_GC);
	assert_int_equal(options->since_ns, 1500000000);
	assert_int_equal(options->until_ns, 60000000000);
	assert_int_equal(options->filter.group, GROUP_PHASE);
	assert_true(options->filter.merge_recursion);
	assert_true(options->min_percent == 0.25);
	assert_non_null(accept("report a --include ^a|b$ --exclude x --exclude y")->include);
	refuse("report a --tid x", "x");
	refuse("report a --state asleep", "asleep");
	refuse("report a --state gc,", "gc,");
	refuse("report a --since later", "later");
	refuse("report a --by function", "function");
	refuse("report a --include (", "(");
	refuse("report a --min-percent 101", "101");
	refuse("report a --min-percent -1", "-1");
	refuse("report a --min-percent .", ".");
	refuse("record --since 1s", "--since");
}

static void times_of_the_clock_have_a_date_or_find_one(void **state)
{
	const int64_t day_s = 24 * 3600, noon_s = 1000 * day_s + 12 * 3600;
	struct clock_time time, fixed = clock_time_at(noon_s);

	(void)state;
	assert_true(accept("report a --since 14:02 --until 14:05:30Z")->since.given);
	assert_true(clock_time_read("1972-09-27T12:00Z", &time) && time.has_date);
	assert_int_equal(clock_time_near(&time, 0, 0), noon_s);
	assert_int_equal(clock_time_after(&time, noon_s + day_s, 0), noon_s);
	assert_int_equal(clock_time_near(&fixed, 0, 0), noon_s);
	assert_true(clock_time_read("12:00:00Z", &time) && !time.has_date);
	/* Of several days, the last; of no day, the nearest. */
	assert_int_equal(clock_time_near(&time, noon_s - 9 * day_s, noon_s), noon_s);
	assert_int_equal(clock_time_near(&time, noon_s - 9 * day_s, noon_s - 1), noon_s - day_s);
	assert_int_equal(clock_time_near(&time, noon_s + 60, noon_s + 600), noon_s);
	assert_int_equal(clock_time_near(&time, noon_s - 600, noon_s - 60), noon_s);
	assert_int_equal(clock_time_after(&time, noon_s - 1, 0), noon_s);
	assert_int_equal(clock_time_after(&time, noon_s, 0), noon_s + day_s);
	/* A fraction decides within a second. */
	assert_true(clock_time_read("12:00:00.25Z", &time) && time.fraction_ns == 250000000);
	assert_int_equal(clock_time_near(&time, noon_s, noon_s), noon_s);
	assert_int_equal(clock_time_after(&time, noon_s, 249999999), noon_s);
	assert_int_equal(clock_time_after(&time, noon_s, 250000000), noon_s + day_s);
	assert_true(clock_time_read("1972-09-27T12:00:00.000000001", &time) && time.fraction_ns == 1);
	refuse("report a --since 12:00:00.", "12:00:00.");
	refuse("report a --since 12:00:00.0000000001", "12:00:00.0000000001");
	refuse("report a --since 12:00.5", "12:00.5");
	refuse("report a --since 24:00", "24:00");
	refuse("report a --since 2026-02-30T10:00", "2026-02-30");
	refuse("report a --since 2026-02-03", "2026-02-03");
	refuse("report a --since 1:2", "1:2");
}

static void an_archive_has_bounds(void **state)
{
	const struct options *options = accept("record --every 1m -o d");

	(void)state;
	assert_int_equal(options->keep_ns, UINT64_C(86400) * 1000000000);
	assert_int_equal(options->keep_bytes, 1 << 30);
	assert_int_equal(options->rate_hz, 19);
	assert_true(options->format->recording);
	assert_true(accept("record --every 1m --keep-bytes 3G -o d")->keep_bytes == UINT64_C(3) << 30);
	assert_int_equal(accept("record --every 1m -r 50 -o d")->rate_hz, 50);
	assert_true(accept("record --every 2d -o d")->keep_ns == UINT64_C(2) * 86400 * 1000000000);
	refuse("record --every 1m --keep-bytes 3X -o d", "3X");
	refuse("record --every 1m --keep-bytes 99999999999999999999 -o d", "99999");
	refuse("record --every 1m", "-o names");
	refuse("record --keep 1h", "--every");
}

/* Rows and columns of a text. */
static void measure(const char *text, int *ret_lines, int *ret_width)
{
	*ret_lines = *ret_width = 0;
	for (const char *at = text; *at; at += strcspn(at, "\n") + 1) {
		int width = (int)strcspn(at, "\n");

		*ret_width = width > *ret_width ? width : *ret_width;
		++*ret_lines;
		if (!at[width])
			break;
	}
}

static void help_fits_a_screen(void **state)
{
	static const char *const helps[] = { "--help",        "-h",          "record --help",
					     "dump -h",       "top -h",      "info --help",
					     "report --help", "diff --help", "requests --help" };

	(void)state;
	for (size_t i = 0; i < sizeof(helps) / sizeof(helps[0]); i++) {
		const struct outcome *outcome = parse(helps[i]);
		int lines, width;

		assert_false(outcome->go_on);
		assert_int_equal(outcome->status, EXIT_ALL_GOOD);
		assert_string_equal(outcome->said, "");
		assert_non_null(strstr(outcome->printed, "Examples:"));
		measure(outcome->printed, &lines, &width);
		assert_in_range(lines, 5, 56);
		assert_in_range(width, 40, 79);
	}
}

static void help_has_help(void **state)
{
	static const char *const words[] = { "--help", "-h", "help --help", "help -h" };
	const struct outcome *outcome;
	char usual[sizeof(outcome->printed)];

	(void)state;
	strcpy(usual, parse("help")->printed);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		outcome = parse(words[i]);
		assert_false(outcome->go_on);
		assert_int_equal(outcome->status, EXIT_ALL_GOOD);
		assert_string_equal(outcome->printed, usual);
	}
	refuse("help --version", "--version");
}

/* Whoever forgets the name of a file means the next word as an option. */
static void an_option_is_no_name_of_a_file(void **state)
{
	(void)state;
	refuse("record --stats -o x.svg", "--stats needs the name of a file, and -o is an option.");
	refuse("record -o --stats x.json", "./--stats");
	assert_string_equal(accept("record -o - --stats ./-o")->stats, "./-o");
}

static void version_and_nothing_at_all(void **state)
{
	static const char *const versions[] = { "--version", "-V" };
	const struct outcome *outcome;

	(void)state;
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		outcome = parse(versions[i]);
		assert_false(outcome->go_on);
		assert_int_equal(outcome->status, EXIT_ALL_GOOD);
		assert_string_equal(outcome->printed, "ljspy " LJSPY_VERSION "\n");
	}
	outcome = parse("");
	assert_false(outcome->go_on);
	assert_int_equal(outcome->status, EXIT_USAGE);
	assert_non_null(strstr(outcome->said, "record"));
	assert_string_equal(outcome->printed, "");
}

static void default_output_is_named_after_the_target(void **state)
{
	char *path = options_default_output("a/b\n\x1b c", 12, format_by_name("folded"));
	unsigned int date, time;
	char end;

	(void)state;
	assert_int_equal(sscanf(path, "ljspy-a_b___c-12-%8u-%6u.folde%c", &date, &time, &end), 3);
	assert_int_equal(end, 'd');
	assert_true(date > 20000000);
	free(path);
	path = options_default_output("luajit", 0, format_by_name("svg"));
	assert_int_equal(sscanf(path, "ljspy-luajit-%8u-%6u.sv%c", &date, &time, &end), 3);
	free(path);
	path = options_default_output("", 12, format_by_name("svg"));
	assert_int_equal(sscanf(path, "ljspy-12-%8u-%6u.sv%c", &date, &time, &end), 3);
	free(path);
}

static void a_lack_of_memory_is_no_wrong_command_line(void **state)
{
	char words[] = "ljspy report a.ljspy --tid 1 --include x", *argv[ARGUMENTS_MAX + 1];
	enum exit_status status;
	struct options options;
	size_t refused = 0;
	bool failed = true;
	int argc = 0;

	(void)state;
	for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	for (size_t i = 0; failed; i++) {
		bool good;

		allocation_fails_after(i);
		good = options_parse(argc, argv, &options, &status);
		failed = allocation_failed();
		options_clear(&options);
		if (good)
			continue;
		assert_true(failed);
		assert_int_equal(status, EXIT_NOTHING_DONE);
		refused++;
	}
	assert_true(refused >= 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands_may_be_abbreviated),
		cmocka_unit_test(defaults_need_no_option),
		cmocka_unit_test(pids_are_collected),
		cmocka_unit_test(a_lack_of_memory_is_no_wrong_command_line),
		cmocka_unit_test(heat_maps_are_for_pictures),
		cmocka_unit_test(formats_refuse_options_that_they_do_not_heed),
		cmocka_unit_test(the_kind_of_a_file_tells_what_its_format_heeds),
		cmocka_unit_test(durations_take_units),
		cmocka_unit_test(rates_are_bounded),
		cmocka_unit_test(turns_of_a_threshold_are_not_missed),
		cmocka_unit_test(coroutines_are_looked_at_less_often),
		cmocka_unit_test(allocations_go_with_no_time),
		cmocka_unit_test(a_recording_is_shown_by_what_its_clock_records),
		cmocka_unit_test(format_follows_the_name_unless_it_is_given),
		cmocka_unit_test(command_to_start_follows_two_dashes),
		cmocka_unit_test(targets_are_chosen_in_one_way),
		cmocka_unit_test(options_of_other_commands_are_refused),
		cmocka_unit_test(every_option_is_understood),
		cmocka_unit_test(recordings_come_before_and_after_options),
		cmocka_unit_test(samples_of_recordings_are_chosen),
		cmocka_unit_test(times_of_the_clock_have_a_date_or_find_one),
		cmocka_unit_test(an_archive_has_bounds),
		cmocka_unit_test(help_fits_a_screen),
		cmocka_unit_test(help_has_help),
		cmocka_unit_test(an_option_is_no_name_of_a_file),
		cmocka_unit_test(version_and_nothing_at_all),
		cmocka_unit_test(default_output_is_named_after_the_target),
	};

	return cmocka_run_group_tests(tests, NULL, clear);
}

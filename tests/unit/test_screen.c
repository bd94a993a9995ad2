/* SPDX-License-Identifier: MIT */
/* What the live view draws of a picture, in terminals of any size: what is in each line, and its colour. */
#include <errno.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NCURSES_WIDECHAR 1
#include <ncurses.h>

#include <cmocka.h>

#include "output/labels/names.h"
#include "src/top/screen.h"
#include "tests/unit/instead_of.h"

/* ncurses keeps what it allocates before it knows a terminal. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libtinfo\n";
}

enum { ROWS = 4, WIDTH_MAX = 220, SECOND = 1000000000, NAME_COLUMN = 15, LIST_LINE = 4 };

static const uint64_t second_ns = SECOND;

static struct {
	bool no_input, no_output; /* that is a terminal */
	bool lacks_memory;
} scene;

static struct screen *screen;
static FILE *null_output, *null_input;

static const struct function work = {
	.kind = FRAME_LUA, .name = "work", .file = "@/usr/share/lua/5.1/app/init.lua", .firstline = 5
};
static const struct function builtin = { .kind = FRAME_BUILTIN, .name = "string.rep" };
static const struct function lost = { .kind = FRAME_LOST, .name = "asleep" };

static struct row rows_at[ROWS];
static struct rows rows;
static struct figures figures;
static struct filter shown_filter;
static struct rows_options rows_options;
static struct position position;
static struct history history;
static struct picture picture;

/*---- Instead of a terminal ----*/

INSTEAD_OF(isatty);
int __wrap_isatty(int fd)
{
	return fd == STDIN_FILENO ? !scene.no_input : !scene.no_output;
}

INSTEAD_OF(newterm);
SCREEN *__wrap_newterm(const char *type, FILE *output, FILE *input)
{
	assert_ptr_equal(output, stdout);
	assert_ptr_equal(input, stdin);
	return __real_newterm(type, null_output, null_input);
}

INSTEAD_OF(calloc);
void *__wrap_calloc(size_t count, size_t size)
{
	return scene.lacks_memory ? NULL : __real_calloc(count, size);
}

static int begin(void **state)
{
	(void)state;
	memset(&scene, 0, sizeof(scene));
	setenv("TERM", "linux", 1);
	setenv("LC_ALL", "C", 1);
	unsetenv("NO_COLOR");
	unsetenv("CLICOLOR");
	memset(rows_at, 0, sizeof(rows_at));
	rows_at[0] = (struct row){ .function = &work, .line = 7, .own_ns = 60, .total_ns = 70 };
	rows_at[1] = (struct row){
		.function = &work, .line = 9, .own_ns = 20, .total_ns = 20, .compiled = true
	};
	rows_at[2] = (struct row){ .function = &builtin, .own_ns = 15, .total_ns = 15 };
	rows_at[3] = (struct row){ .function = &lost, .own_ns = 5, .total_ns = 5 };
	rows = (struct rows){ .rows = rows_at, .count = ROWS, .totals = { .samples = 1234, .cpu_ns = 100 } };
	memset(&figures, 0, sizeof(figures));
	memset(&history, 0, sizeof(history));
	shown_filter = (struct filter){ .text = "" };
	position = (struct position){ .selected = 1 };
	rows_options = (struct rows_options){ .filter = &shown_filter };
	picture = (struct picture){ .target = "7 lua app.lua",
				    .notice = "",
				    .rows = &rows,
				    .figures = &figures,
				    .options = &rows_options,
				    .position = &position,
				    .history = &history,
				    .now_ns = second_ns,
				    .period_ns = 10 * second_ns,
				    .period_s = 10,
				    .rate_hz = 99 };
	return 0;
}

static int open_screen(int lines, int columns)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", lines);
	setenv("LINES", text, 1);
	snprintf(text, sizeof(text), "%d", columns);
	setenv("COLUMNS", text, 1);
	screen = NULL;
	return screen_open(&screen);
}

static void draw(int lines, int columns)
{
	screen_close(screen);
	assert_int_equal(open_screen(lines, columns), 0);
	assert_int_equal(LINES, lines);
	assert_int_equal(COLS, columns);
	screen_draw(screen, &picture);
}

static int end(void **state)
{
	(void)state;
	screen_close(screen);
	screen = NULL;
	return 0;
}

static const char *line(int y)
{
	static char texts[4][WIDTH_MAX];
	static unsigned int next;
	char *text = texts[next++ % 4];

	assert_true(mvinnstr(y, 0, text, COLS) >= 0);
	return text;
}

#define ASSERT_LINE(y, words) assert_non_null(strstr(line(y), words))
#define ASSERT_NOT_IN_LINE(y, words) assert_null(strstr(line(y), words))

static int column_of(int y, const char *words)
{
	const char *text = line(y), *at = strstr(text, words);

	assert_non_null(at);
	return (int)(at - text);
}

static short color_at(int y, const char *words)
{
	return (short)PAIR_NUMBER(mvinch(y, column_of(y, words)) & A_COLOR);
}

static bool is_reverse(int y, const char *words)
{
	return (mvinch(y, column_of(y, words)) & A_REVERSE) != 0;
}

/*---- Head and foot ----*/

static void the_title_tells_the_target_and_the_time(void **state)
{
	(void)state;
	draw(18, 100);
	ASSERT_LINE(0, "ljspy top  7 lua app.lua");
	ASSERT_LINE(0, " 99 Hz, last 10 s ");
	assert_int_equal(column_of(0, " 99 Hz, last 10 s "), 100 - 18);
	assert_true(is_reverse(0, "ljspy") && is_reverse(0, "99 Hz"));
	picture.period_ns = 3 * second_ns + second_ns / 2;
	draw(18, 100);
	ASSERT_LINE(0, "last 4 of 10 s ");
	picture.notice = "paused";
	draw(18, 100);
	ASSERT_LINE(0, " paused ");
	ASSERT_NOT_IN_LINE(0, "Hz");
	/* The target first, where there is little room. */
	draw(18, 16);
	ASSERT_LINE(0, "ljspy top  7");
	picture.target = "a name that is too long for a line of that width";
	draw(18, 40);
	ASSERT_LINE(0, "a name that is");
	assert_int_equal(column_of(0, " paused "), 40 - 8);
}

static void figures_that_do_not_fit_are_left_out(void **state)
{
	int width;

	(void)state;
	rows.totals.cpu_ns = 5 * second_ns;
	rows.totals.lost_ns = second_ns / 2;
	rows.totals.process_count = 2;
	rows.totals.thread_count = 3;
	figures.missed_ticks = 4;
	for (int i = 0; i < 100; i++)
		histogram_add(&figures.pause_ns, 50000);
	draw(18, 120);
	ASSERT_LINE(1, "CPU 50.0%  lost 10.0%  pause 5");
	ASSERT_LINE(1, "max 50  missed 4  samples 1234  2 processes, 3 threads");
	width = column_of(1, "missed 4") + 8;
	draw(18, width);
	ASSERT_LINE(1, "missed 4");
	ASSERT_NOT_IN_LINE(1, "samples");
	draw(18, width - 1);
	ASSERT_LINE(1, "CPU 50.0%");
	ASSERT_NOT_IN_LINE(1, "missed");
	rows.totals.thread_count = 1;
	draw(18, 120);
	ASSERT_NOT_IN_LINE(1, "threads");
	rows.totals.thread_count = 3;
	rows_options.pid = 7;
	draw(18, 120);
	ASSERT_NOT_IN_LINE(1, "threads");
	rows.totals.cpu_ns = 0; /* is a share of nothing */
	draw(18, 120);
	ASSERT_LINE(1, "CPU 0.0%  lost 0.0%");
}

static void states_come_by_their_shares(void **state)
{
	(void)state;
	rows.totals.by_state[VM_STATE_C] = 20;
	rows.totals.by_state[VM_STATE_COMPILED] = 70;
	rows.totals.by_state[VM_STATE_INTERPRETED] = 10;
	draw(18, 100);
	ASSERT_LINE(2, "70.0%");
	assert_true(column_of(2, "70.0%") < column_of(2, "20.0%"));
	assert_true(column_of(2, "20.0%") < column_of(2, "10.0%"));
	assert_int_not_equal(color_at(2, "70.0%"), color_at(2, "20.0%"));
	assert_int_not_equal(color_at(2, "20.0%"), color_at(2, "10.0%"));
	ASSERT_NOT_IN_LINE(2, "heap");
	rows.totals.gc.heap_least = 1000000;
	rows.totals.gc.heap_most = 2500000;
	rows.totals.gc.phase_ns[GC_PHASE_NONE + 1] = 3;
	rows.totals.gc.steps[0].length_ns = 12000000;
	draw(18, 120);
	ASSERT_LINE(2, "heap 1.0-2.5 MB");
	ASSERT_LINE(2, gc_phase_name(GC_PHASE_NONE + 1));
	ASSERT_LINE(2, " 3.0%  longest step 12 ms");
	assert_int_equal(color_at(2, "heap"), 0);
	rows.totals.gc.has_heaps = true;
	draw(18, 120);
	ASSERT_LINE(2, "heaps 1.0-2.5 MB");
	draw(18, 40);
	ASSERT_NOT_IN_LINE(2, "longest");
}

static void charts_need_room(void **state)
{
	(void)state;
	draw(20, 60);
	ASSERT_LINE(3, "The last minutes show here in a moment.");
	draw(19, 60);
	ASSERT_LINE(3, "OWN%");
	draw(20, 39);
	ASSERT_LINE(3, "OWN%");
	history_begin(&history, 1000 * second_ns);
	for (unsigned int i = 0; i < 60; i++)
		history_add(&history, &(struct sample){ .time_ns = (1000 + i) * second_ns,
							.cpu_ns = second_ns / 2,
							.vm_state = VM_STATE_COMPILED });
	picture.now_ns = 1060 * second_ns;
	draw(24, 100);
	ASSERT_LINE(3, "CPU");
	ASSERT_LINE(0, "; charts: 57 s ");
	ASSERT_LINE(5, "OWN%");
	draw(32, 60);
	ASSERT_LINE(3, "CPU");
	ASSERT_LINE(4, vm_state_name(VM_STATE_COMPILED));
	assert_int_not_equal(color_at(4, vm_state_name(VM_STATE_COMPILED)), 0);
	ASSERT_LINE(6, "OWN%");
	picture.now_ns = 1140 * second_ns;
	draw(24, 100);
	ASSERT_LINE(0, "; charts: 2 min ");
	rows_options.pid = 7;
	draw(24, 100);
	ASSERT_LINE(3, "The last minutes are of all processes and threads");
	ASSERT_NOT_IN_LINE(0, "charts");
}

static void the_foot_tells_of_keys_or_the_filter(void **state)
{
	(void)state;
	draw(18, 100);
	ASSERT_LINE(17, "h Help  / Filter");
	strcpy(shown_filter.text, "lua");
	draw(18, 100);
	ASSERT_LINE(17, "Filter: lua  (Esc clears)");
	picture.typing = true;
	draw(18, 100);
	ASSERT_LINE(17, "Filter: lua ");
	ASSERT_NOT_IN_LINE(17, "Esc");
	assert_true(mvinch(17, 11) & A_REVERSE);
	*shown_filter.text = '\0';
	draw(18, 100);
	ASSERT_LINE(17, "Filter: ");
	/* The end of a long text stays, with the place where the next character goes. */
	strcpy(shown_filter.text, "a long text that does not fit");
	draw(18, 20);
	ASSERT_LINE(17, "not fit");
	assert_true(mvinch(17, 19) & A_REVERSE);
}

static void help_takes_the_place_of_the_list(void **state)
{
	(void)state;
	picture.help = true;
	draw(24, 100);
	ASSERT_LINE(0, "ljspy top");
	ASSERT_LINE(1, "Up Down PgUp PgDn");
	ASSERT_LINE(18, "pause   for how long");
	ASSERT_LINE(23, "Any key: back");
	ASSERT_NOT_IN_LINE(4, "work");
	draw(4, 100);
	ASSERT_LINE(2, "Left Right");
	ASSERT_LINE(3, "Any key: back");
}

/*---- The list ----*/

static void functions_have_their_place_in_a_column_of_its_own(void **state)
{
	(void)state;
	draw(18, 100);
	ASSERT_LINE(3, "  OWN%");
	ASSERT_LINE(3, "FUNCTION ");
	ASSERT_LINE(3, "FILE:LINE OF DEFINITION");
	assert_true(is_reverse(3, "OWN%"));
	assert_false(is_reverse(3, "TOTAL%"));
	assert_int_equal(strncmp(line(LIST_LINE), " 60.0%  70.0%  work ", 20), 0);
	assert_int_equal(column_of(LIST_LINE, "app/init.lua:5"), column_of(3, "FILE"));
	ASSERT_NOT_IN_LINE(LIST_LINE, "/usr/share");
	ASSERT_LINE(LIST_LINE + 2, " 15.0%  15.0%  string.rep");
	assert_false(is_reverse(LIST_LINE, "work"));
	assert_true(is_reverse(LIST_LINE + 1, "work"));
	ASSERT_NOT_IN_LINE(LIST_LINE + ROWS, "%");
	/* What is interpreted, compiled, built in and lost has a colour each. */
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < i; j++)
			assert_int_not_equal(PAIR_NUMBER(mvinch(LIST_LINE + i, 2) & A_COLOR),
					     PAIR_NUMBER(mvinch(LIST_LINE + j, 2) & A_COLOR));
	rows.totals.by_state[VM_STATE_COMPILED] = 20;
	draw(18, 100);
	assert_int_equal(color_at(LIST_LINE + 1, "work"), color_at(2, "20.0%"));
	rows_options.by_line = true;
	rows_options.sort = SORT_TOTAL;
	draw(18, 100);
	ASSERT_LINE(3, "FUNCTION AND LINE");
	ASSERT_LINE(LIST_LINE, "app/init.lua:7");
	assert_true(is_reverse(3, "TOTAL%"));
	draw(18, 59);
	ASSERT_NOT_IN_LINE(3, "FILE");
	ASSERT_LINE(LIST_LINE, "work ");
	ASSERT_LINE(LIST_LINE, "init.lua:7");
	draw(18, 60);
	ASSERT_LINE(3, "FILE");
}

static void the_list_begins_where_the_user_is(void **state)
{
	(void)state;
	position = (struct position){ .first = 2, .selected = 2, .left = 7 };
	draw(18, 100);
	ASSERT_LINE(LIST_LINE, " 15.0%  15.0%  rep");
	assert_true(is_reverse(LIST_LINE, "rep"));
	ASSERT_NOT_IN_LINE(LIST_LINE + 2, "%");
	position = (struct position){ .selected = 0 };
	draw(LIST_LINE + 2 + 1, 100);
	ASSERT_LINE(LIST_LINE + 1, " 20.0%");
	ASSERT_NOT_IN_LINE(LIST_LINE + 2, "%");
}

static void an_empty_list_says_why(void **state)
{
	(void)state;
	rows.count = 0;
	draw(18, 100);
	ASSERT_LINE(LIST_LINE, "No CPU time was used.");
	strcpy(shown_filter.text, "nothing");
	draw(18, 100);
	ASSERT_LINE(LIST_LINE, "Nothing matches the filter.");
}

static void a_tree_is_indented_by_half_the_width_at_most(void **state)
{
	(void)state;
	rows_options.list = ROWS_TREE;
	rows_at[0].has_children = true;
	rows_at[1].has_children = rows_at[1].is_folded = true;
	rows_at[1].depth = 1;
	rows_at[2].depth = 2;
	rows_at[3].depth = 1000;
	draw(18, 101);
	assert_int_equal(column_of(LIST_LINE, "- work"), NAME_COLUMN);
	assert_int_equal(column_of(LIST_LINE + 1, "+ work"), NAME_COLUMN + 1);
	assert_int_equal(column_of(LIST_LINE + 2, "  string.rep"), NAME_COLUMN + 2);
	assert_int_equal(column_of(LIST_LINE + 3, "["), NAME_COLUMN + (101 - NAME_COLUMN) / 2 + 2);
	ASSERT_NOT_IN_LINE(3, "FILE");
}

static void threads_are_below_their_process(void **state)
{
	(void)state;
	rows_options.list = ROWS_THREADS;
	rows.totals.cpu_ns = 5 * second_ns;
	rows_at[0] = (struct row){ .pid = 70, .total_ns = 5 * second_ns, .name = "worker" };
	rows_at[1] = (struct row){ .pid = 70, .tid = 71, .total_ns = second_ns, .name = "helper\x1b" };
	rows.count = 2;
	draw(18, 100);
	ASSERT_LINE(3, "  CPU%");
	ASSERT_LINE(3, "SHARE%");
	ASSERT_LINE(3, "PROCESS AND THREADS");
	assert_int_equal(strncmp(line(LIST_LINE), " 50.0% 100.0%  70 worker ", 25), 0);
	assert_int_equal(strncmp(line(LIST_LINE + 1), " 10.0%  20.0%    71 helper", 26), 0);
	ASSERT_NOT_IN_LINE(LIST_LINE + 1, "\x1b");
}

static void shares_that_change_have_an_arrow(void **state)
{
	(void)state;
	rows.totals.cpu_ns = 10000;
	rows.totals.samples = 10000;
	rows.whole_late_ns = rows.samples_late = 5000;
	rows_at[0] = (struct row){ .function = &work,
				   .own_ns = 4000,
				   .own_late_ns = 3500,
				   .total_ns = 5000,
				   .total_late_ns = 2500 };
	rows_at[1] = (struct row){
		.function = &work, .own_ns = 4000, .own_late_ns = 2000, .total_ns = 5000, .total_late_ns = 500
	};
	draw(18, 100);
	assert_int_equal(strncmp(line(LIST_LINE), " 40.0%^ 50.0%  work", 19), 0);
	assert_int_equal(strncmp(line(LIST_LINE + 1), " 40.0%  50.0%v work", 19), 0);
	rows_options.list = ROWS_THREADS;
	draw(18, 100);
	ASSERT_NOT_IN_LINE(LIST_LINE, "^");
	ASSERT_LINE(LIST_LINE + 1, "50.0%v");
	rows_options.list = ROWS_TREE;
	draw(18, 100);
	ASSERT_NOT_IN_LINE(LIST_LINE + 1, "v ");
	rows_options.list = ROWS_FUNCTIONS;
	setenv("LC_ALL", "C.UTF-8", 1);
	draw(18, 100);
	ASSERT_LINE(LIST_LINE, "40.0%\u2191");
	ASSERT_LINE(LIST_LINE + 1, "50.0%\u2193");
}

/*---- The terminal ----*/

static void the_page_is_what_the_head_and_foot_leave(void **state)
{
	static const struct {
		int lines, columns;
		size_t page;
	} known[] = { { 1, 80, 0 },   { 5, 80, 0 },   { 6, 80, 1 },   { 19, 80, 14 },
		      { 20, 80, 13 }, { 20, 39, 15 }, { 31, 80, 24 }, { 32, 80, 24 } };

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		draw(known[i].lines, known[i].columns);
		assert_int_equal(screen_page(), known[i].page);
	}
}

static void any_size_can_be_drawn(void **state)
{
	(void)state;
	rows_at[1].depth = 1000;
	for (int list = 0; list < ROWS_LIST_COUNT; list++)
		for (int columns = 1; columns < 200; columns += columns < 20 ? 3 : 37) {
			rows_options.list = (enum rows_list)list;
			for (int lines = 1; lines < 40; lines += lines < 8 ? 1 : 12)
				draw(lines, columns);
			picture.help = !picture.help;
		}
}

static void colours_are_left_out_where_they_are_not_wanted(void **state)
{
	(void)state;
	setenv("NO_COLOR", "", 1);
	setenv("CLICOLOR", "1", 1);
	draw(18, 100);
	assert_int_not_equal(color_at(LIST_LINE, "work"), 0);
	setenv("NO_COLOR", "1", 1);
	draw(18, 100);
	assert_int_equal(color_at(LIST_LINE, "work"), 0);
	unsetenv("NO_COLOR");
	setenv("CLICOLOR", "0", 1);
	draw(18, 100);
	assert_int_equal(color_at(LIST_LINE, "work"), 0);
	unsetenv("CLICOLOR");
	setenv("TERM", "vt100", 1);
	draw(18, 100);
	assert_int_equal(color_at(LIST_LINE, "work"), 0);
}

static void what_is_no_terminal_is_not_taken_over(void **state)
{
	(void)state;
	scene.no_input = true;
	assert_int_equal(open_screen(24, 80), -ENOTTY);
	scene.no_input = false;
	scene.no_output = true;
	assert_int_equal(open_screen(24, 80), -ENOTTY);
	scene.no_output = false;
	setenv("TERM", "made-up", 1);
	assert_int_equal(open_screen(24, 80), -ENOTSUP);
	setenv("TERM", "dumb", 1);
	assert_int_equal(open_screen(24, 80), -ENOTSUP);
	setenv("TERM", "linux", 1);
	scene.lacks_memory = true;
	assert_int_equal(open_screen(24, 80), -ENOMEM);
	scene.lacks_memory = false;
	assert_null(screen);
	assert_int_equal(open_screen(24, 80), 0);
	assert_non_null(screen);
	assert_int_equal(is_keypad(stdscr) && is_nodelay(stdscr), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(the_title_tells_the_target_and_the_time),
		TEST(figures_that_do_not_fit_are_left_out),
		TEST(states_come_by_their_shares),
		TEST(charts_need_room),
		TEST(the_foot_tells_of_keys_or_the_filter),
		TEST(help_takes_the_place_of_the_list),
		TEST(functions_have_their_place_in_a_column_of_its_own),
		TEST(the_list_begins_where_the_user_is),
		TEST(an_empty_list_says_why),
		TEST(a_tree_is_indented_by_half_the_width_at_most),
		TEST(threads_are_below_their_process),
		TEST(shares_that_change_have_an_arrow),
		TEST(the_page_is_what_the_head_and_foot_leave),
		TEST(any_size_can_be_drawn),
		TEST(colours_are_left_out_where_they_are_not_wanted),
		TEST(what_is_no_terminal_is_not_taken_over),
	};
	int result;

	null_output = fopen("/dev/null", "w");
	null_input = fopen("/dev/null", "r");
	result = cmocka_run_group_tests(tests, NULL, NULL);
	fclose(null_output);
	fclose(null_input);
	return result;
}

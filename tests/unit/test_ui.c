/* SPDX-License-Identifier: MIT */
/* What each key of the live view does, and when its samples are collected: without a terminal. */
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NCURSES_WIDECHAR 1
#include <ncurses.h>

#include <cmocka.h>

#include "src/linux/clocks/clock.h"
#include "src/top/ui.h"
#include "tests/unit/instead_of.h"

enum { PAGE = 2, KEYS_MAX = 16, STEPS_MAX = 160, START_S = 100, ENDED_FD = 77, SIGNAL_FD };

static const uint64_t ns_per_second = NS_PER_SECOND;

/* A key, or a character beyond ASCII that has its number. */
struct key {
	wint_t key;
	bool is_character;
};

/* What happens while the view waits; then it is looked at, and the next step follows. */
struct step {
	struct key keys[KEYS_MAX];
	uint64_t pass_ns; /* of time */
	bool ends;        /* sampling */
	bool is_resized;
	short input_events; /* of the terminal; POLLHUP: it is gone */
	bool is_told_to_end;
};

/* How the view looked when it was last drawn. */
struct look {
	char notice[64], filter[FILTER_SIZE];
	char rows[8][ROW_NAME_SIZE];
	size_t count;
	struct position position;
	struct rows_options options;
	uint64_t now_ns, period_ns, history_begin_ns;
	unsigned int period_s;
	uint64_t samples;
	bool help, typing;
};

static struct {
	uint64_t now_ns;
	struct step steps[STEPS_MAX];
	size_t step_count, step; /* so many are known; so many have happened */
	struct look looks[STEPS_MAX];
	size_t key; /* of the step, the next one */
	bool has_waited_forever;
	const char *nothing_left;
	uint64_t dropped_until_ns; /* samples, for memory is short; 0: none */
	size_t page;
} seen;

static struct live_samples *live;

static const struct function functions[] = {
	{ .kind = FRAME_LUA, .name = "alpha", .file = "@a.lua" },
	{ .kind = FRAME_LUA, .name = "beta", .file = "@b.lua" },
	{ .kind = FRAME_LUA, .name = "gamma", .file = "@c.lua" },
};

/*---- Instead of a terminal, and of time ----*/

INSTEAD_OF(clock_gettime);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	if (clock != CLOCK_MONOTONIC)
		return __real_clock_gettime(clock, ret_time);
	*ret_time = (struct timespec){ .tv_sec = (time_t)(seen.now_ns / ns_per_second),
				       .tv_nsec = (long)(seen.now_ns % ns_per_second) };
	return 0;
}

/* As if samples from before had been dropped, some of them before anybody saw them. */
INSTEAD_OF(live_samples_complete_since);
uint64_t __wrap_live_samples_complete_since(const struct live_samples *of)
{
	return seen.dropped_until_ns ? seen.dropped_until_ns : __real_live_samples_complete_since(of);
}

INSTEAD_OF(live_samples_unseen_until);
uint64_t __wrap_live_samples_unseen_until(const struct live_samples *of)
{
	return seen.dropped_until_ns ? seen.dropped_until_ns : __real_live_samples_unseen_until(of);
}

INSTEAD_OF(screen_page);
size_t __wrap_screen_page(void)
{
	return seen.page;
}

INSTEAD_OF(screen_draw);
void __wrap_screen_draw(struct screen *screen, const struct picture *picture)
{
	struct look *look = &seen.looks[seen.step];

	assert_ptr_equal(screen, &seen);
	assert_string_equal(picture->target, "target");
	assert_int_equal(picture->rate_hz, 99);
	*look = (struct look){ .count = picture->rows->count,
			       .position = *picture->position,
			       .options = *picture->options,
			       .now_ns = picture->now_ns,
			       .period_ns = picture->period_ns,
			       .history_begin_ns = picture->history->begin_ns,
			       .period_s = picture->period_s,
			       .samples = picture->rows->totals.samples,
			       .help = picture->help,
			       .typing = picture->typing };
	strcpy(look->notice, picture->notice);
	strcpy(look->filter, picture->options->filter->text);
	for (size_t i = 0; i < look->count && i < 8; i++) {
		const struct row *row = &picture->rows->rows[i];

		snprintf(look->rows[i], ROW_NAME_SIZE, "%s", row->function ? row->function->name : row->name);
	}
}

INSTEAD_OF(ppoll);
int __wrap_ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	const struct step *step = &seen.steps[seen.step];

	assert_int_equal(count, 3);
	assert_int_equal(files[0].fd, STDIN_FILENO);
	assert_int_equal(files[1].fd, SIGNAL_FD);
	assert_false(sigismember(mask, SIGWINCH));
	seen.has_waited_forever = !timeout;
	/* Whatever a step forgets, the view ends. */
	assert_true(seen.step < seen.step_count);
	seen.now_ns += step->pass_ns;
	seen.key = 0;
	seen.step++;
	if (step->is_resized) {
		errno = EINTR;
		return -1;
	}
	files[0].revents = (short)(step->input_events | (step->keys[0].key ? POLLIN : 0));
	files[1].revents = step->is_told_to_end ? POLLIN : 0;
	files[2].revents = step->ends && files[2].fd == ENDED_FD ? POLLIN : 0;
	return 1;
}

INSTEAD_OF(wget_wch);
int __wrap_wget_wch(WINDOW *window, wint_t *ret_key)
{
	const struct key *key = &seen.steps[seen.step - 1].keys[seen.key];

	(void)window;
	if (seen.key == KEYS_MAX || !key->key)
		return ERR;
	seen.key++;
	*ret_key = key->key;
	return key->key >= KEY_MIN && !key->is_character ? KEY_CODE_YES : OK;
}

/*---- Steps ----*/

static int begin(void **state)
{
	(void)state;
	memset(&seen, 0, sizeof(seen));
	seen.now_ns = START_S * ns_per_second;
	seen.page = PAGE;
	live = live_samples_new();
	assert_non_null(live);
	return 0;
}

static int end(void **state)
{
	(void)state;
	live_samples_free(live);
	return 0;
}

static struct step *add_step(void)
{
	assert_true(seen.step_count < STEPS_MAX - 1);
	return &seen.steps[seen.step_count++];
}

/* Press these keys. */
static void press_all(const wint_t *keys)
{
	struct step *step = add_step();

	for (size_t i = 0; keys[i]; i++)
		step->keys[i].key = keys[i];
}

#define PRESS(...) press_all((const wint_t[]){ __VA_ARGS__, 0 })

static void pass(uint64_t time_ns)
{
	add_step()->pass_ns = time_ns;
}

/* Take all steps, of which the last one ends the view. */
static void run_to_the_end(void)
{
	const struct ui_options options = { .live = live,
					    .screen = (struct screen *)&seen,
					    .target = "target",
					    .rate_hz = 99,
					    .ended_fd = ENDED_FD,
					    .nothing_left = &seen.nothing_left,
					    .signal_fd = SIGNAL_FD };

	assert_int_equal(ui_run(&options), 0);
	assert_int_equal(seen.step, seen.step_count);
}

/* Take all steps and leave. */
static void run(void)
{
	PRESS('q');
	run_to_the_end();
}

/* After so many steps. */
static const struct look *after(size_t steps)
{
	return &seen.looks[steps];
}

/* A sample of a stack, the leaf first, of functions by their numbers. */
static void take(uint64_t time_ns, pid_t tid, uint64_t cpu_ns, size_t count, const size_t *numbers)
{
	struct frame frames[4] = { 0 };
	struct sample sample = { .time_ns = time_ns,
				 .pid = 10,
				 .tid = tid,
				 .process_name = "made_up",
				 .thread_name = "made_up",
				 .cpu_ns = cpu_ns,
				 .frames = frames,
				 .frame_count = count };

	for (size_t i = 0; i < count; i++)
		frames[i].function = &functions[numbers[i]];
	live_samples_take(live, &sample);
}

/* alpha calls beta, which calls gamma: own times of 1, 4 and 2, totals of 7, 6 and 2. */
static void take_some(void)
{
	take(START_S * ns_per_second, 10, 1, 1, (const size_t[]){ 0 });
	take(START_S * ns_per_second, 11, 4, 2, (const size_t[]){ 1, 0 });
	take(START_S * ns_per_second, 10, 2, 3, (const size_t[]){ 2, 1, 0 });
}

static void assert_rows(const struct look *look, size_t count, const char *const *names)
{
	assert_int_equal(look->count, count);
	for (size_t i = 0; i < count; i++)
		assert_string_equal(look->rows[i], names[i]);
}

#define ASSERT_ROWS(look, ...) \
	assert_rows(look, sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *), \
		    (const char *[]){ __VA_ARGS__ })

/*---- Time ----*/

static void samples_are_collected_often_at_first(void **state)
{
	(void)state;
	pass(ns_per_second / 8);
	pass(ns_per_second / 8);
	pass(ns_per_second * 3 / 4);
	pass(ns_per_second / 2);
	pass(ns_per_second / 2);
	run();
	assert_int_equal(after(0)->now_ns, START_S * ns_per_second);
	/* A quarter of a second, and later a whole one. */
	assert_int_equal(after(1)->now_ns, START_S * ns_per_second);
	assert_int_equal(after(2)->now_ns, START_S * ns_per_second + ns_per_second / 4);
	assert_int_equal(after(3)->now_ns, (START_S + 1) * ns_per_second);
	assert_int_equal(after(4)->now_ns, (START_S + 1) * ns_per_second);
	assert_int_equal(after(5)->now_ns, (START_S + 2) * ns_per_second);
	assert_int_equal(after(5)->period_ns, 2 * ns_per_second);
	assert_false(seen.has_waited_forever);
}

static void a_period_can_be_chosen(void **state)
{
	(void)state;
	pass(100 * ns_per_second);
	PRESS(']');
	PRESS(']', ']', ']', ']');
	PRESS('[', '[', '[', '[', '[', '[');
	pass(ns_per_second);
	run();
	assert_int_equal(after(1)->period_s, 5);
	assert_int_equal(after(1)->period_ns, 5 * ns_per_second);
	assert_int_equal(after(1)->options.middle_ns, after(1)->now_ns - 5 * ns_per_second / 2);
	assert_int_equal(after(2)->period_s, 10);
	assert_int_equal(after(3)->period_s, 60);
	assert_int_equal(after(4)->period_s, 1);
	assert_int_equal(after(5)->period_ns, ns_per_second);
}

static void what_is_older_than_the_period_is_not_shown(void **state)
{
	(void)state;
	take_some();
	take((START_S + 4) * ns_per_second, 10, 1, 1, (const size_t[]){ 2 });
	pass(5 * ns_per_second);
	pass(ns_per_second);
	run();
	ASSERT_ROWS(after(1), "beta", "gamma", "alpha");
	assert_int_equal(after(1)->samples, 4);
	ASSERT_ROWS(after(2), "gamma");
}

static void what_was_dropped_makes_the_period_shorter(void **state)
{
	(void)state;
	pass(4 * ns_per_second);
	seen.dropped_until_ns = (START_S + 3) * ns_per_second;
	run();
	assert_int_equal(after(1)->period_ns, ns_per_second);
	assert_int_equal(after(1)->options.since_ns, seen.dropped_until_ns);
	assert_int_equal(after(1)->history_begin_ns, seen.dropped_until_ns);
}

static void a_pause_stops_the_view(void **state)
{
	(void)state;
	take_some();
	PRESS(' ');
	pass(10 * ns_per_second);
	PRESS('p');
	run();
	assert_string_equal(after(1)->notice, "paused");
	assert_int_equal(after(2)->now_ns, START_S * ns_per_second);
	assert_int_equal(after(2)->samples, 3);
	assert_string_equal(after(3)->notice, "");
	assert_int_equal(after(3)->now_ns, (START_S + 10) * ns_per_second);
	assert_int_equal(after(3)->samples, 0);
}

static void nobody_waits_for_a_time_while_paused(void **state)
{
	(void)state;
	PRESS(' ');
	run();
	assert_true(seen.has_waited_forever);
}

static void a_reset_begins_anew(void **state)
{
	(void)state;
	take_some();
	pass(2 * ns_per_second);
	PRESS('r');
	pass(ns_per_second / 4);
	run();
	assert_int_equal(after(1)->samples, 3);
	assert_int_equal(after(2)->samples, 0);
	assert_int_equal(after(2)->period_ns, 0);
	assert_int_equal(after(2)->history_begin_ns, (START_S + 2) * ns_per_second);
	/* Often again, too. */
	assert_int_equal(after(3)->period_ns, ns_per_second / 4);
}

static void the_last_samples_stay_when_the_target_ends(void **state)
{
	struct step *step;

	(void)state;
	take_some();
	seen.nothing_left = "the target has ended";
	step = add_step();
	step->ends = true;
	step->pass_ns = ns_per_second / 8;
	step = add_step();
	step->ends = true; /* it stays readable */
	step->pass_ns = 10 * ns_per_second;
	PRESS('r');
	PRESS(' ');
	run();
	assert_string_equal(after(1)->notice, "the target has ended");
	assert_int_equal(after(1)->now_ns, START_S * ns_per_second + ns_per_second / 8);
	assert_true(seen.has_waited_forever);
	for (size_t i = 1; i <= 4; i++) {
		assert_int_equal(after(i)->samples, 3);
		assert_string_equal(after(i)->notice, "the target has ended");
		assert_int_equal(after(i)->now_ns, after(1)->now_ns);
	}
}

/* As one that another debugger has meanwhile: it runs on. */
static void what_is_left_out_has_not_ended(void **state)
{
	struct step *step;

	(void)state;
	take_some();
	seen.nothing_left = "no target is left to sample";
	step = add_step();
	step->ends = true;
	PRESS(' ');
	run();
	assert_string_equal(after(1)->notice, "no target is left to sample");
	assert_int_equal(after(2)->samples, 3);
}

static void a_pause_holds_though_the_target_ends(void **state)
{
	struct step *step;

	(void)state;
	PRESS(' ');
	take_some();
	seen.nothing_left = "the target has ended";
	step = add_step();
	step->ends = true;
	step->pass_ns = ns_per_second;
	PRESS(' ');
	run();
	assert_string_equal(after(2)->notice, "paused; the target has ended");
	assert_int_equal(after(2)->now_ns, START_S * ns_per_second);
	assert_string_equal(after(3)->notice, "the target has ended");
	assert_int_equal(after(3)->now_ns, (START_S + 1) * ns_per_second);
	assert_int_equal(after(3)->samples, 3);
}

/*---- The end ----*/

static void what_ends_the_view(void **state)
{
	static const wint_t keys[] = { 'q', KEY_F(10), 3 };

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		struct step *step;

		seen.step = seen.step_count = 0;
		memset(seen.steps, 0, sizeof(seen.steps));
		step = add_step();
		if (i < 3)
			step->keys[0].key = keys[i];
		step->is_told_to_end = i == 3;
		step->ends = i == 4; /* of sampling, though the target lives */
		step->input_events = i == 5 ? POLLHUP : 0;
		run_to_the_end();
	}
}

static void a_window_may_change_its_size(void **state)
{
	struct step *step;

	(void)state;
	take_some();
	PRESS('h');
	step = add_step();
	step->is_resized = true;
	step->keys[0].key = KEY_RESIZE;
	PRESS('x');
	run();
	/* It leaves the help where it is; any other key ends it. */
	assert_true(after(1)->help);
	assert_true(after(2)->help);
	assert_false(after(3)->help);
	assert_int_equal(after(3)->samples, 3);
}

/*---- Moving ----*/

static void the_selected_row_moves_and_stays_in_view(void **state)
{
	(void)state;
	take_some();
	PRESS('j');
	PRESS(KEY_DOWN, KEY_DOWN, KEY_DOWN);
	PRESS('k');
	PRESS('g');
	PRESS('G');
	PRESS(KEY_PPAGE);
	PRESS(KEY_NPAGE);
	PRESS(KEY_HOME, KEY_UP);
	PRESS(KEY_END, KEY_UP);
	run();
	for (size_t i = 1; i <= 9; i++) {
		static const size_t selected[] = { 0, 1, 2, 1, 0, 2, 0, 2, 0, 1 };
		static const size_t first[] = { 0, 0, 1, 1, 0, 1, 0, 1, 0, 1 };

		assert_int_equal(after(i)->position.selected, selected[i]);
		assert_int_equal(after(i)->position.first, first[i]);
	}
}

static void no_line_is_empty_while_rows_are_hidden(void **state)
{
	(void)state;
	take_some();
	PRESS('G');
	PRESS('/', 'a', 'l', 'p', 'h', 'a', '\r');
	run();
	assert_int_equal(after(1)->position.first, 1);
	assert_int_equal(after(2)->position.first, 0);
	assert_int_equal(after(2)->position.selected, 0);
}

static void a_larger_window_shows_rows_above(void **state)
{
	(void)state;
	take_some();
	PRESS('G');
	pass(0);
	seen.page = 3;
	run();
	assert_int_equal(after(1)->position.first, 0);
	assert_int_equal(after(1)->position.selected, 2);
}

static void names_scroll_by_columns(void **state)
{
	(void)state;
	take_some();
	PRESS(KEY_RIGHT, KEY_RIGHT);
	PRESS(KEY_LEFT);
	PRESS(KEY_LEFT, KEY_LEFT);
	run();
	assert_int_equal(after(1)->position.left, 16);
	assert_int_equal(after(2)->position.left, 8);
	assert_int_equal(after(3)->position.left, 0);
}

/*---- Lists ----*/

static void rows_are_sorted_as_asked(void **state)
{
	(void)state;
	take_some();
	PRESS('2');
	PRESS('3');
	PRESS('>');
	PRESS('<');
	PRESS('G', '<');
	run();
	assert_int_equal(after(0)->count, 0);
	ASSERT_ROWS(after(1), "alpha", "beta", "gamma");
	ASSERT_ROWS(after(3), "beta", "gamma", "alpha");
	assert_int_equal(after(2)->options.sort, SORT_NAME);
	assert_int_equal(after(4)->options.sort, SORT_NAME);
	assert_int_equal(after(5)->options.sort, SORT_TOTAL);
	assert_int_equal(after(5)->position.selected, 0);
}

static void lists_take_turns(void **state)
{
	(void)state;
	take_some();
	PRESS('\t');
	PRESS('\t');
	PRESS('\t');
	PRESS('t');
	PRESS(KEY_F(5));
	PRESS('G', 'H');
	PRESS('H');
	PRESS('l');
	PRESS('l');
	run();
	for (size_t i = 1; i <= 7; i++) {
		static const enum rows_list lists[] = {
			0,         ROWS_TREE,      ROWS_THREADS, ROWS_FUNCTIONS,
			ROWS_TREE, ROWS_FUNCTIONS, ROWS_THREADS, ROWS_FUNCTIONS
		};

		assert_int_equal(after(i)->options.list, lists[i]);
	}
	assert_int_equal(after(6)->position.selected, 0);
	/* A tree begins with its root. */
	assert_int_equal(after(1)->options.sort, SORT_TOTAL);
	assert_int_equal(after(3)->options.sort, SORT_OWN);
	assert_true(after(8)->options.by_line);
	assert_false(after(9)->options.by_line);
}

static void a_tree_is_folded_by_its_rows(void **state)
{
	(void)state;
	take_some();
	PRESS('t');
	PRESS('j', KEY_LEFT);
	PRESS(KEY_RIGHT);
	/* What cannot be folded leads to its caller. */
	PRESS('G', KEY_LEFT);
	PRESS('\r');
	PRESS('\n', KEY_LEFT, KEY_LEFT);
	PRESS(KEY_ENTER);
	run();
	ASSERT_ROWS(after(1), "alpha", "beta", "gamma");
	ASSERT_ROWS(after(2), "alpha", "beta");
	ASSERT_ROWS(after(3), "alpha", "beta", "gamma");
	assert_int_equal(after(4)->count, 3);
	assert_int_equal(after(4)->position.selected, 1);
	ASSERT_ROWS(after(5), "alpha", "beta");
	ASSERT_ROWS(after(6), "alpha", "beta");
	assert_int_equal(after(6)->position.selected, 0);
	assert_int_equal(after(7)->count, 1);
}

static void one_thread_is_shown_alone(void **state)
{
	(void)state;
	take_some();
	PRESS('/', 'm', 'a', 'd', 'e', '\r', 'H');
	PRESS('g', 'j', '\r');
	PRESS(' ');
	PRESS(27);
	run();
	assert_int_equal(after(1)->count, 3);
	assert_int_equal(after(2)->options.list, ROWS_FUNCTIONS);
	assert_int_equal(after(2)->options.pid, 10);
	assert_int_equal(after(2)->options.tid, 11);
	assert_string_equal(after(2)->filter, "");
	assert_string_equal(after(2)->notice, "thread 11 (Esc: all)");
	ASSERT_ROWS(after(2), "beta", "alpha");
	assert_string_equal(after(3)->notice, "thread 11 (Esc: all), paused");
	assert_int_equal(after(4)->options.pid, 0);
	assert_int_equal(after(4)->count, 3);
}

static void one_process_is_shown_alone(void **state)
{
	(void)state;
	take_some();
	PRESS('H', 'g', '\r');
	PRESS('H');
	run();
	assert_string_equal(after(1)->notice, "process 10 (Esc: all)");
	assert_int_equal(after(1)->count, 3);
	/* The list of threads has all. */
	assert_string_equal(after(2)->notice, "");
}

/*---- The filter ----*/

static void a_filter_is_typed(void **state)
{
	(void)state;
	take_some();
	PRESS('/');
	PRESS('g');
	PRESS('a', KEY_DOWN);
	PRESS(KEY_BACKSPACE, 127, '\b', 'q');
	PRESS(127, 'b', '\r');
	PRESS('/', 'x', 27);
	run();
	assert_true(after(1)->typing);
	ASSERT_ROWS(after(2), "gamma");
	/* A function key keeps its meaning. */
	assert_string_equal(after(3)->filter, "ga");
	assert_string_equal(after(4)->filter, "q");
	assert_int_equal(after(4)->count, 0);
	assert_string_equal(after(5)->filter, "b");
	assert_false(after(5)->typing);
	ASSERT_ROWS(after(5), "beta");
	assert_string_equal(after(6)->filter, "");
	assert_false(after(6)->typing);
	assert_int_equal(after(6)->count, 3);
}

static void a_filter_is_as_long_as_there_is_room(void **state)
{
	(void)state;
	PRESS('/');
	for (size_t i = 0; i < FILTER_SIZE; i += 8)
		PRESS('x', 'x', 'x', 'x', 'x', 'x', 'x', 'x');
	PRESS('\r');
	run();
	assert_int_equal(strlen(after(seen.step_count - 1)->filter), FILTER_SIZE - 1);
}

static void a_character_is_typed_and_erased_as_a_whole(void **state)
{
	(void)state;
	PRESS('/', 'a', 0xe9);
	PRESS(127);
	for (size_t i = 1; i < FILTER_SIZE - 2; i++)
		PRESS('x');
	PRESS(0xe9);
	PRESS('\r');
	run();
	assert_string_equal(after(1)->filter, "a\xc3\xa9");
	assert_string_equal(after(2)->filter, "a");
	/* There is room for one more byte. */
	assert_int_equal(strlen(after(seen.step_count - 1)->filter), FILTER_SIZE - 2);
}

/* Some of those have the numbers of function keys. */
static void a_character_beyond_ascii_is_no_function_key(void **state)
{
	struct step *step;

	(void)state;
	take_some();
	step = add_step();
	step->keys[0] = (struct key){ KEY_F(1), true };
	PRESS(KEY_F(4));
	PRESS('\r');
	run();
	assert_false(after(1)->help);
	assert_true(after(2)->typing);
}

static void keys_without_a_meaning_do_nothing(void **state)
{
	(void)state;
	PRESS('x', KEY_F(3), 12);
	PRESS('\r', KEY_LEFT);
	PRESS('t', KEY_LEFT, KEY_RIGHT, '\r');
	run();
	assert_int_equal(after(2)->count, 0);
	assert_int_equal(after(3)->position.selected, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(samples_are_collected_often_at_first),
		TEST(a_period_can_be_chosen),
		TEST(what_is_older_than_the_period_is_not_shown),
		TEST(what_was_dropped_makes_the_period_shorter),
		TEST(a_pause_stops_the_view),
		TEST(nobody_waits_for_a_time_while_paused),
		TEST(a_reset_begins_anew),
		TEST(the_last_samples_stay_when_the_target_ends),
		TEST(what_is_left_out_has_not_ended),
		TEST(a_pause_holds_though_the_target_ends),
		TEST(what_ends_the_view),
		TEST(a_window_may_change_its_size),
		TEST(the_selected_row_moves_and_stays_in_view),
		TEST(no_line_is_empty_while_rows_are_hidden),
		TEST(a_larger_window_shows_rows_above),
		TEST(names_scroll_by_columns),
		TEST(rows_are_sorted_as_asked),
		TEST(lists_take_turns),
		TEST(a_tree_is_folded_by_its_rows),
		TEST(one_thread_is_shown_alone),
		TEST(one_process_is_shown_alone),
		TEST(a_filter_is_typed),
		TEST(a_filter_is_as_long_as_there_is_room),
		TEST(a_character_is_typed_and_erased_as_a_whole),
		TEST(a_character_beyond_ascii_is_no_function_key),
		TEST(keys_without_a_meaning_do_nothing),
	};

	/* Characters are those of UTF-8. */
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

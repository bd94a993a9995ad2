/* SPDX-License-Identifier: MIT */
#include "src/top/ui.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NCURSES_WIDECHAR 1
#include <ncurses.h>

#include "output/sample/utf8.h"
#include "src/linux/clocks/clock.h"
#include "src/top/rows_fill.h"

enum {
	FIRST_REFRESH_NS = NS_PER_SECOND / 4,
	REFRESH_NS = NS_PER_SECOND,
	SCROLL_COLUMNS = 8,
	KEY_ESCAPE = 27,
	KEY_CTRL_C = 3,
	KEY_CTRL_L = 12,
	KEY_DELETE = 127,
	NOTICE_SIZE = 80,
};

static const unsigned int periods_s[] = { 1, 2, 5, 10, 30, 60 };

enum {
	PERIOD_COUNT = sizeof(periods_s) / sizeof(periods_s[0]),
	PERIOD_DEFAULT = 2, /* 5 s */
};

struct ui {
	const struct ui_options *options;
	struct rows rows;
	struct rows_options rows_options;
	struct folded_paths *folded;
	struct filter filter;
	struct position position;
	struct history history;
	size_t period;         /* in periods_s */
	uint64_t start_ns;     /* earlier samples are not shown: start, or the last reset */
	uint64_t collected_ns; /* when samples were last collected */
	uint64_t refresh_ns;   /* when to collect them next */
	uint64_t ended_ns;     /* when sampling ended */
	bool paused, ended, help, typing, quit;
	int error;
};

/*---- What is shown ----*/

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static uint64_t period_begin(const struct ui *ui, uint64_t end_ns)
{
	uint64_t period_ns = (uint64_t)periods_s[ui->period] * NS_PER_SECOND;

	return end_ns - ui->start_ns > period_ns ? end_ns - period_ns : ui->start_ns;
}

/* Samples may cover less than the period. */
static uint64_t shown_begin(const struct ui *ui)
{
	uint64_t begin = period_begin(ui, ui->collected_ns);
	uint64_t complete = live_samples_complete_since(ui->options->live);

	return complete > begin ? complete : begin;
}

static void see_sample(void *context, const struct sample *sample)
{
	history_add(context, sample);
}

static void collect(struct ui *ui)
{
	struct live_samples *live = ui->options->live;

	ui->collected_ns = ui->ended ? ui->ended_ns : clock_now_ns(CLOCK_MONOTONIC);
	live_samples_collect(live, period_begin(ui, ui->collected_ns), see_sample, &ui->history);
	history_forget(&ui->history, live_samples_unseen_until(live));
	ui->refresh_ns = ui->collected_ns +
			 (ui->collected_ns - ui->start_ns < REFRESH_NS ? FIRST_REFRESH_NS : REFRESH_NS);
}

static void keep_in_view(struct ui *ui)
{
	struct position *position = &ui->position;
	size_t page = screen_page();

	if (position->selected >= ui->rows.count)
		position->selected = ui->rows.count ? ui->rows.count - 1 : 0;
	if (position->first > position->selected)
		position->first = position->selected;
	if (page && position->selected - position->first >= page)
		position->first = position->selected - page + 1;
	/* Leave no lines empty while rows are hidden above. */
	if (page && position->first + page > ui->rows.count)
		position->first = ui->rows.count > page ? ui->rows.count - page : 0;
}

/* What is unlike the usual: which process or thread is shown alone, and why nothing changes. */
static void describe(const struct ui *ui, char ret_text[static NOTICE_SIZE])
{
	const struct rows_options *options = &ui->rows_options;
	const char *paused = ui->paused ? "paused" : "";
	const char *between = ui->paused && ui->ended ? "; " : "";
	const char *ended = ui->ended ? *ui->options->nothing_left : "";
	const char *before = ui->paused || ui->ended ? ", " : "";

	if (rows_show_one(options))
		snprintf(ret_text, NOTICE_SIZE, "%s %d (Esc: all)%s%s%s%s",
			 options->tid ? "thread" : "process", options->tid ? options->tid : options->pid,
			 before, paused, between, ended);
	else
		snprintf(ret_text, NOTICE_SIZE, "%s%s%s", paused, between, ended);
}

static void draw(struct ui *ui)
{
	char notice[NOTICE_SIZE];
	struct picture picture = {
		.target = ui->options->target,
		.notice = notice,
		.rows = &ui->rows,
		.figures = live_samples_figures(ui->options->live),
		.options = &ui->rows_options,
		.position = &ui->position,
		.history = &ui->history,
		.now_ns = ui->collected_ns,
		.period_s = periods_s[ui->period],
		.rate_hz = ui->options->rate_hz,
		.help = ui->help,
		.typing = ui->typing,
	};

	describe(ui, notice);
	keep_in_view(ui);
	picture.period_ns = ui->collected_ns - shown_begin(ui);
	screen_draw(ui->options->screen, &picture);
}

static void fill(struct ui *ui)
{
	int error;

	ui->rows_options.since_ns = shown_begin(ui);
	ui->rows_options.middle_ns = ui->rows_options.since_ns +
				     (ui->collected_ns - ui->rows_options.since_ns) / 2;
	error = rows_fill(&ui->rows, live_samples_source(ui->options->live), &ui->rows_options);

	if (error)
		ui->error = error;
}

/*---- Keys ----*/

static void move_to(struct ui *ui, size_t row)
{
	ui->position.selected = row;
}

static void move_up(struct ui *ui, size_t rows)
{
	ui->position.selected -= least(rows, ui->position.selected);
}

static void move_down(struct ui *ui, size_t rows)
{
	ui->position.selected += rows;
}

static void show_list(struct ui *ui, enum rows_list list)
{
	ui->rows_options.list = list;
	ui->position = (struct position){ 0 };
	/* A tree begins at its root, whose rows have little own time. */
	if (list == ROWS_TREE && ui->rows_options.sort == SORT_OWN)
		ui->rows_options.sort = SORT_TOTAL;
	else if (list == ROWS_FUNCTIONS && ui->rows_options.sort == SORT_TOTAL)
		ui->rows_options.sort = SORT_OWN;
}

static void toggle_list(struct ui *ui, enum rows_list list)
{
	show_list(ui, ui->rows_options.list == list ? ROWS_FUNCTIONS : list);
}

static void sort_by(struct ui *ui, int sort)
{
	ui->rows_options.sort = (enum rows_sort)((sort + SORT_COUNT) % SORT_COUNT);
	move_to(ui, 0);
}

static const struct row *selected_row(const struct ui *ui)
{
	return ui->position.selected < ui->rows.count ? &ui->rows.rows[ui->position.selected] : NULL;
}

/* Fold or unfold the selected row; if it cannot be folded, select its caller. */
static void fold(struct ui *ui, bool is_folded)
{
	const struct row *row = selected_row(ui);

	if (!row)
		return;
	if (!is_folded || (row->has_children && !row->is_folded)) {
		folded_paths_set(ui->folded, row->path, is_folded);
		return;
	}
	for (size_t i = ui->position.selected; i-- > 0;)
		if (ui->rows.rows[i].depth < row->depth) {
			move_to(ui, i);
			return;
		}
}

static void go_left(struct ui *ui)
{
	if (ui->rows_options.list == ROWS_TREE)
		fold(ui, true);
	else
		ui->position.left -= least(SCROLL_COLUMNS, ui->position.left);
}

static void go_right(struct ui *ui)
{
	if (ui->rows_options.list == ROWS_TREE)
		fold(ui, false);
	else
		ui->position.left += SCROLL_COLUMNS;
}

static void enter(struct ui *ui)
{
	const struct row *row = selected_row(ui);

	if (!row)
		return;
	if (ui->rows_options.list == ROWS_TREE) {
		folded_paths_set(ui->folded, row->path, row->has_children && !row->is_folded);
	} else if (ui->rows_options.list == ROWS_THREADS) {
		ui->rows_options.pid = row->pid;
		ui->rows_options.tid = row->tid;
		filter_clear(&ui->filter);
		show_list(ui, ROWS_FUNCTIONS);
	}
}

/* Show everything again. */
static void escape(struct ui *ui)
{
	filter_clear(&ui->filter);
	ui->rows_options.pid = 0;
	ui->rows_options.tid = 0;
}

static void reset(struct ui *ui)
{
	if (ui->ended)
		return;
	ui->start_ns = clock_now_ns(CLOCK_MONOTONIC);
	history_begin(&ui->history, ui->start_ns);
	collect(ui);
}

static void change_period(struct ui *ui, int by)
{
	if (by < 0 && ui->period > 0)
		ui->period--;
	else if (by > 0 && ui->period < PERIOD_COUNT - 1)
		ui->period++;
}

static void pause_or_go_on(struct ui *ui)
{
	if (ui->ended && !ui->paused)
		return;
	ui->paused = !ui->paused;
	if (!ui->paused)
		collect(ui);
}

static bool handle_motion(struct ui *ui, wint_t key)
{
	size_t page = screen_page();

	switch (key) {
	case KEY_UP:
	case 'k': move_up(ui, 1); return true;
	case KEY_DOWN:
	case 'j': move_down(ui, 1); return true;
	case KEY_PPAGE: move_up(ui, page); return true;
	case KEY_NPAGE: move_down(ui, page); return true;
	case KEY_HOME:
	case 'g': move_to(ui, 0); return true;
	case KEY_END:
	case 'G': move_to(ui, SIZE_MAX); return true;
	case KEY_LEFT: go_left(ui); return true;
	case KEY_RIGHT: go_right(ui); return true;
	default: return false;
	}
}

/* Keys that change the list. */
static bool handle_choice(struct ui *ui, wint_t key)
{
	switch (key) {
	case '1':
	case '2':
	case '3': sort_by(ui, (int)(key - '1')); return true;
	case '<': sort_by(ui, (int)ui->rows_options.sort - 1); return true;
	case '>': sort_by(ui, (int)ui->rows_options.sort + 1); return true;
	case 'l': ui->rows_options.by_line = !ui->rows_options.by_line; return true;
	case 't':
	case KEY_F(5): toggle_list(ui, ROWS_TREE); return true;
	case 'H': toggle_list(ui, ROWS_THREADS); return true;
	case '\t': show_list(ui, (ui->rows_options.list + 1) % ROWS_LIST_COUNT); return true;
	case '[': change_period(ui, -1); return true;
	case ']': change_period(ui, 1); return true;
	default: return false;
	}
}

static void handle_command(struct ui *ui, wint_t key)
{
	switch (key) {
	case 'q':
	case KEY_F(10):
	case KEY_CTRL_C: ui->quit = true; break;
	case 'h':
	case '?':
	case KEY_F(1): ui->help = true; break;
	case '/':
	case KEY_F(4): ui->typing = true; break;
	case ' ':
	case 'p': pause_or_go_on(ui); break;
	case 'r': reset(ui); break;
	case '\r':
	case '\n':
	case KEY_ENTER: enter(ui); break;
	case KEY_ESCAPE: escape(ui); break;
	case KEY_CTRL_L: clearok(curscr, true); break;
	default: break;
	}
}

/*---- Typing a filter ----*/

static void type_character(struct ui *ui, wint_t character)
{
	char text[FILTER_SIZE + MB_LEN_MAX];
	size_t length = strlen(ui->filter.text);
	mbstate_t state = { 0 };
	size_t added;

	memcpy(text, ui->filter.text, length);
	added = wcrtomb(text + length, (wchar_t)character, &state);
	if (added == (size_t)-1 || length + added >= FILTER_SIZE)
		return;
	text[length + added] = '\0';
	filter_set(&ui->filter, text);
	move_to(ui, 0);
}

static void erase_character(struct ui *ui)
{
	char text[FILTER_SIZE];
	size_t length = strlen(ui->filter.text);

	memcpy(text, ui->filter.text, length + 1);
	while (length > 0 && utf8_continues(text[--length]))
		;
	text[length] = '\0';
	filter_set(&ui->filter, text);
}

/* False for a key that keeps its usual meaning. */
static bool handle_typing(struct ui *ui, bool is_function_key, wint_t key)
{
	if (key == KEY_ESCAPE && !is_function_key) {
		ui->typing = false;
		filter_clear(&ui->filter);
	} else if (key == '\r' || key == '\n' || (is_function_key && key == KEY_ENTER)) {
		ui->typing = false;
	} else if ((is_function_key && key == KEY_BACKSPACE) || key == KEY_DELETE || key == '\b') {
		erase_character(ui);
	} else if (is_function_key || key < ' ') {
		return false;
	} else {
		type_character(ui, key);
	}
	return true;
}

static void handle_key(struct ui *ui, bool is_function_key, wint_t key)
{
	if (ui->help && !(is_function_key && key == KEY_RESIZE)) {
		ui->help = false;
		return;
	}
	if (ui->typing && handle_typing(ui, is_function_key, key))
		return;
	/* Characters beyond ASCII share numbers with function keys. */
	if (!is_function_key && key > KEY_DELETE)
		return;
	if (!handle_motion(ui, key) && !handle_choice(ui, key))
		handle_command(ui, key);
}

static void read_keys(struct ui *ui)
{
	wint_t key;
	int kind;

	while (!ui->quit && (kind = get_wch(&key)) != ERR) {
		handle_key(ui, kind == KEY_CODE_YES, key);
		/* The next key acts on the result of this one. */
		fill(ui);
		keep_in_view(ui);
	}
}

/*---- The loop ----*/

static void note_end(struct ui *ui)
{
	if (!*ui->options->nothing_left) {
		ui->quit = true;
		return;
	}
	ui->ended = true;
	ui->ended_ns = clock_now_ns(CLOCK_MONOTONIC);
	if (!ui->paused)
		collect(ui);
}

/* Wait for a key, a signal, the end or the next refresh. */
static void wait_and_handle(struct ui *ui, const sigset_t *waiting_mask)
{
	struct pollfd files[] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = ui->options->signal_fd, .events = POLLIN },
		{ .fd = ui->ended ? -1 : ui->options->ended_fd, .events = POLLIN },
	};
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC);
	uint64_t wait_ns = ui->refresh_ns > now ? ui->refresh_ns - now : 0;
	struct timespec timeout = {
		.tv_sec = (time_t)(wait_ns / NS_PER_SECOND),
		.tv_nsec = (long)(wait_ns % NS_PER_SECOND),
	};
	bool idle = ui->paused || ui->ended;

	if (ppoll(files, sizeof(files) / sizeof(files[0]), idle ? NULL : &timeout, waiting_mask) < 0)
		memset(files, 0, sizeof(files)); /* the window was resized: get_wch() tells */
	if ((files[0].revents & ~POLLIN) || files[1].revents)
		ui->quit = true;
	if (files[2].revents)
		note_end(ui);
	if (!ui->paused && !ui->ended && clock_now_ns(CLOCK_MONOTONIC) >= ui->refresh_ns)
		collect(ui);
	fill(ui);
	read_keys(ui);
}

int ui_run(const struct ui_options *options)
{
	struct ui ui = {
		.options = options,
		.folded = folded_paths_new(),
		.period = PERIOD_DEFAULT,
		.start_ns = clock_now_ns(CLOCK_MONOTONIC),
	};
	sigset_t waiting_mask;

	if (!ui.folded)
		ui.error = -ENOMEM;
	ui.rows_options = (struct rows_options){
		.by_line = options->by_line,
		.filter = &ui.filter,
		.folded = ui.folded,
	};
	/* Unblock SIGWINCH only while waiting, so that no resize is missed. */
	pthread_sigmask(SIG_SETMASK, NULL, &waiting_mask);
	sigdelset(&waiting_mask, SIGWINCH);
	history_begin(&ui.history, ui.start_ns);
	if (!ui.error)
		collect(&ui);
	while (!ui.quit && !ui.error) {
		draw(&ui);
		wait_and_handle(&ui, &waiting_mask);
	}
	filter_clear(&ui.filter);
	folded_paths_free(ui.folded);
	rows_clear(&ui.rows);
	return ui.error;
}

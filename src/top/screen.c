/* SPDX-License-Identifier: MIT */
#include "src/top/screen.h"

#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NCURSES_WIDECHAR 1
#include <ncurses.h>

#include "output/labels/frame_label.h"
#include "output/labels/module_path.h"
#include "output/labels/names.h"
#include "output/sample/utf8.h"
#include "src/top/charts.h"
#include "src/top/text.h"
#ifdef LJSPY_STATIC
#include "src/static/terminals.h"
#endif

/* Colours; A_NORMAL in terminals that have none. */
enum ink { INK_PLAIN, INK_INTERPRETED, INK_COMPILED, INK_BUILTIN, INK_NATIVE, INK_VM, INK_LOST, INK_COUNT };

enum {
	HEAD_LINES = 4, /* title, figures, states, columns; charts are before the last of them */
	FOOT_LINES = 1,
	CHARTS_FROM_LINES = 20, /* two lines of charts; */
	TALL_FROM_LINES = 32,   /* ... three from this height on */
	CHART_COLUMNS_MIN = 40,
	CHARTS_ABREAST_MAX = 3,
	SHARE_COLUMNS = 7,       /* "100.0%^" */
	SPLIT_FROM_COLUMNS = 60, /* from this width on, places have their own column */
	ESCAPE_DELAY_MS = 25,
};

struct screen {
	SCREEN *terminal;
	bool colours;
};

static const enum ink state_inks[VM_STATE_COUNT] = {
	[VM_STATE_NONE] = INK_NATIVE,
	[VM_STATE_INTERPRETED] = INK_INTERPRETED,
	[VM_STATE_COMPILED] = INK_COMPILED,
	[VM_STATE_C] = INK_NATIVE,
	[VM_STATE_GC] = INK_VM,
	[VM_STATE_RECORDING] = INK_VM,
	[VM_STATE_OPTIMISING] = INK_VM,
	[VM_STATE_ASSEMBLING] = INK_VM,
	[VM_STATE_EXIT] = INK_VM,
	[VM_STATE_UNKNOWN] = INK_LOST,
};

/*---- The terminal ----*/

static bool wants_colours(void)
{
	const char *no_color = getenv("NO_COLOR"), *clicolor = getenv("CLICOLOR");

	return (!no_color || !*no_color) && !(clicolor && strcmp(clicolor, "0") == 0);
}

static void set_colours(struct screen *screen)
{
	static const short colours[INK_COUNT] = {
		[INK_INTERPRETED] = COLOR_YELLOW, [INK_COMPILED] = COLOR_GREEN, [INK_BUILTIN] = COLOR_CYAN,
		[INK_NATIVE] = COLOR_BLUE,        [INK_VM] = COLOR_MAGENTA,     [INK_LOST] = COLOR_RED,
	};

	if (!wants_colours() || !has_colors() || start_color() != OK || use_default_colors() != OK ||
	    COLOR_PAIRS < INK_COUNT)
		return;
	for (int ink = INK_PLAIN + 1; ink < INK_COUNT; ink++)
		init_pair((short)ink, colours[ink], -1);
	screen->colours = true;
}

/* Can the terminal move its cursor? */
static bool is_usable_terminal(void)
{
	const char *cursor_address = tigetstr("cup");

	return cursor_address && *cursor_address;
}

static SCREEN *open_terminal(void)
{
	SCREEN *terminal = newterm(NULL, stdout, stdin);
#ifdef LJSPY_STATIC
	const char *name = getenv("TERM");

	if (!terminal && name && terminals_describe(name))
		terminal = newterm(NULL, stdout, stdin);
#endif
	return terminal;
}

int screen_open(struct screen **ret_screen)
{
	struct screen *screen;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return -ENOTTY;
	setlocale(LC_CTYPE, "");
	screen = calloc(1, sizeof(*screen));
	if (!screen)
		return -ENOMEM;
	screen->terminal = open_terminal();
	if (!screen->terminal) {
		free(screen);
		return -ENOTSUP;
	}
	if (!is_usable_terminal()) {
		screen_close(screen);
		return -ENOTSUP;
	}
	set_escdelay(ESCAPE_DELAY_MS);
	/* Keys send no signals: a stopped ljspy would hold up the target's signals. */
	raw();
	noecho();
	nonl();
	keypad(stdscr, true);
	nodelay(stdscr, true);
	curs_set(0);
	set_colours(screen);
	*ret_screen = screen;
	return 0;
}

void screen_close(struct screen *screen)
{
	if (!screen)
		return;
	curs_set(1);
	endwin();
	delscreen(screen->terminal);
	free(screen);
}

/*---- Text ----*/

static void set_ink(const struct screen *screen, enum ink ink)
{
	attr_set(A_NORMAL, screen->colours ? (short)ink : 0, NULL);
}

/* Put text from column x to column end at most; returns the column behind it. */
static int put(int y, int x, int end, enum text_part part, const char *text)
{
	wchar_t wide[TEXT_SIZE];
	size_t length, columns;

	if (x >= end)
		return x;
	columns = text_fit(text, part, (size_t)(end - x), wide, &length);
	mvaddnwstr(y, x, wide, (int)length);
	return x + (int)columns;
}

__attribute__((format(printf, 4, 5))) static int put_format(int y, int x, int end, const char *format, ...)
{
	char text[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return put(y, x, end, TEXT_HEAD, text);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

/*---- Head and foot ----*/

/* chart_s is the time of the charts; 0 if there are none. */
static void describe_period(const struct picture *picture, unsigned int chart_s, char *text, size_t size)
{
	/* Samples cover less than the period at the beginning, or if there are too many. */
	unsigned int shown_s = (unsigned int)((picture->period_ns + 500000000) / 1000000000);
	char of[32] = "", charts[32] = "";

	if (shown_s < picture->period_s)
		snprintf(of, sizeof(of), "%u of ", shown_s);
	if (chart_s >= 120)
		snprintf(charts, sizeof(charts), "; charts: %u min", chart_s / 60);
	else if (chart_s)
		snprintf(charts, sizeof(charts), "; charts: %u s", chart_s);
	snprintf(text, size, " %u Hz, last %s%u s%s ", picture->rate_hz, of, picture->period_s, charts);
}

static void draw_title(const struct picture *picture, unsigned int chart_s)
{
	char right[96];
	int begin, end = COLS;

	attron(A_REVERSE);
	mvhline(0, 0, ' ', COLS);
	if (*picture->notice)
		snprintf(right, sizeof(right), " %s ", picture->notice);
	else
		describe_period(picture, chart_s, right, sizeof(right));
	begin = COLS - (int)strlen(right);
	if (begin > 8) {
		put(0, begin, COLS, TEXT_HEAD, right);
		end = begin;
	}
	put(0, put(0, 0, end, TEXT_HEAD, "ljspy top  "), end, TEXT_HEAD, picture->target);
	attroff(A_REVERSE);
}

/* Add a piece of text if all of it fits. */
__attribute__((format(printf, 3, 4))) static void add_piece(int y, int *x, const char *format, ...)
{
	char text[128];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (length <= 0 || *x + length > COLS)
		return;
	put(y, *x, COLS, TEXT_HEAD, text);
	*x += length + 2;
}

static void draw_figures(const struct picture *picture)
{
	const struct totals *totals = &picture->rows->totals;
	const struct figures *figures = picture->figures;
	const struct histogram *pause = &figures->pause_ns;
	int x = 0;

	add_piece(1, &x, "CPU %.1f%%", percent(totals->cpu_ns, picture->period_ns));
	add_piece(1, &x, "lost %.1f%%", percent(totals->lost_ns, totals->cpu_ns));
	add_piece(1, &x, "pause %.0f us", (double)histogram_percentile(pause, 500) / 1e3);
	add_piece(1, &x, "p99 %.0f", (double)histogram_percentile(pause, 990) / 1e3);
	add_piece(1, &x, "max %.0f", (double)pause->max / 1e3);
	add_piece(1, &x, "missed %llu", (unsigned long long)figures->missed_ticks);
	add_piece(1, &x, "samples %llu", (unsigned long long)totals->samples);
	if (totals->thread_count > 1 && !rows_show_one(picture->options))
		add_piece(1, &x, "%zu processes, %zu threads", totals->process_count, totals->thread_count);
}

/* How large the heaps were, and what the collectors did, behind the states if there is room. */
static void draw_collector(const struct picture *picture, int x)
{
	const struct totals *totals = &picture->rows->totals;
	const struct gc_bill *bill = &totals->gc;

	if (bill->heap_most)
		add_piece(2, &x, "%s %.1f-%.1f MB", bill->has_heaps ? "heaps" : "heap",
			  (double)bill->heap_least / 1e6, (double)bill->heap_most / 1e6);
	for (enum gc_phase phase = GC_PHASE_NONE + 1; phase < GC_PHASE_COUNT; phase++)
		if (bill->phase_ns[phase])
			add_piece(2, &x, "%s %.1f%%", gc_phase_name(phase),
				  percent(bill->phase_ns[phase], totals->cpu_ns));
	if (bill->steps[0].length_ns)
		add_piece(2, &x, "longest step %.0f ms", (double)bill->steps[0].length_ns / 1e6);
}

/* The VM's states by their shares, the largest first. */
static void draw_states(const struct screen *screen, const struct picture *picture)
{
	const struct totals *totals = &picture->rows->totals;
	bool shown[VM_STATE_COUNT] = { false };
	int x = 0;

	for (;;) {
		int largest = -1;

		for (int state = 0; state < VM_STATE_COUNT; state++)
			if (!shown[state] && totals->by_state[state] &&
			    (largest < 0 || totals->by_state[state] > totals->by_state[largest]))
				largest = state;
		if (largest < 0)
			break;
		shown[largest] = true;
		set_ink(screen, state_inks[largest]);
		add_piece(2, &x, "%s %.1f%%", vm_state_name((enum vm_state)largest),
			  percent(totals->by_state[largest], totals->cpu_ns));
	}
	set_ink(screen, INK_PLAIN);
	draw_collector(picture, x);
}

/* How many lines of charts there are. */
static int chart_lines(void)
{
	return LINES < CHARTS_FROM_LINES || COLS < CHART_COLUMNS_MIN ? 0 : LINES < TALL_FROM_LINES ? 2 : 3;
}

static int head_lines(void)
{
	return HEAD_LINES + chart_lines();
}

/* The last minutes, side by side where there is room. Returns their time in seconds. */
static unsigned int draw_charts(const struct screen *screen, const struct picture *picture)
{
	int abreast = COLS / CHART_COLUMNS_MIN, lines = chart_lines(), width;
	struct chart charts[CHARTS_MAX];
	unsigned int seconds = 0;
	size_t count;

	if (lines == 0)
		return 0;
	if (rows_show_one(picture->options)) {
		put(HEAD_LINES - 1, 0, COLS, TEXT_HEAD,
		    "The last minutes are of all processes and threads: Esc shows them.");
		return 0;
	}
	if (abreast > CHARTS_ABREAST_MAX)
		abreast = CHARTS_ABREAST_MAX;
	width = COLS / abreast;
	count = charts_make(picture->history, picture->now_ns, (size_t)abreast * (size_t)lines,
			    (size_t)width - 2, MB_CUR_MAX > 1, charts, &seconds);
	for (size_t i = 0; i < count; i++) {
		int x = (int)i % abreast * width;

		set_ink(screen, charts[i].state < 0 ? INK_PLAIN : state_inks[charts[i].state]);
		put(HEAD_LINES - 1 + (int)i / abreast, x, x + width - 1, TEXT_HEAD, charts[i].text);
	}
	set_ink(screen, INK_PLAIN);
	if (count == 0)
		put(HEAD_LINES - 1, 0, COLS, TEXT_HEAD, "The last minutes show here in a moment.");
	return seconds;
}

static void draw_foot(const struct picture *picture)
{
	int y = LINES - 1, x;

	if (picture->typing || *picture->options->filter->text) {
		x = put(y, 0, COLS, TEXT_HEAD, "Filter: ");
		x = put(y, x, COLS - 1, TEXT_TAIL, picture->options->filter->text);
		if (picture->typing)
			mvaddch(y, x, ' ' | A_REVERSE);
		else
			put(y, x + 2, COLS, TEXT_HEAD, "(Esc clears)");
		return;
	}
	put(y, 0, COLS, TEXT_HEAD,
	    "h Help  / Filter  t Tree  H Threads  l Lines  1 2 3 Sort  Space Pause  q Quit");
}

/*---- The list ----*/

/* Where the columns of the list begin. */
struct columns {
	int name, place, end; /* place is end if the name's column contains it */
};

static struct columns lay_out(const struct picture *picture)
{
	struct columns columns = { .name = 2 * SHARE_COLUMNS + 1, .place = COLS, .end = COLS };

	if (picture->options->list == ROWS_FUNCTIONS && COLS >= SPLIT_FROM_COLUMNS)
		columns.place = columns.name + (COLS - columns.name) / 2;
	return columns;
}

static void draw_column_name(int y, int x, int end, const char *text, bool sorted)
{
	attrset(sorted ? A_BOLD | A_REVERSE : A_BOLD | A_UNDERLINE);
	put(y, x, end, TEXT_HEAD, text);
	attrset(A_NORMAL);
}

static void draw_column_names(const struct picture *picture, struct columns columns)
{
	const struct rows_options *options = picture->options;
	bool threads = options->list == ROWS_THREADS;
	int y = head_lines() - 1;

	draw_column_name(y, 0, SHARE_COLUMNS - 1, threads ? "  CPU%" : "  OWN%", options->sort == SORT_OWN);
	draw_column_name(y, SHARE_COLUMNS, columns.name - 2, threads ? "SHARE%" : "TOTAL%",
			 options->sort == SORT_TOTAL);
	draw_column_name(y, columns.name, columns.place - 1,
			 threads            ? "PROCESS AND THREADS"
			 : options->by_line ? "FUNCTION AND LINE"
					    : "FUNCTION",
			 options->sort == SORT_NAME);
	if (columns.place < columns.end)
		draw_column_name(y, columns.place, columns.end,
				 options->by_line ? "FILE:LINE" : "FILE:LINE OF DEFINITION", false);
}

static enum ink ink_of(const struct row *row)
{
	if (!row->function)
		return INK_PLAIN;
	switch (row->function->kind) {
	case FRAME_LUA: return row->compiled ? INK_COMPILED : INK_INTERPRETED;
	case FRAME_BUILTIN: return INK_BUILTIN;
	case FRAME_C_FUNCTION:
	case FRAME_NATIVE: return INK_NATIVE;
	case FRAME_VM:
	case FRAME_VM_WORK:
	case FRAME_ALLOCATED:
	case FRAME_TRACE: return INK_VM;
	case FRAME_LOST: return INK_LOST;
	case FRAME_KIND_COUNT: break;
	}
	return INK_PLAIN;
}

/* A place without the package root of its file, which is the same in most rows. */
static const char *below_root(const struct function *function, const char *place)
{
	const char *file;
	size_t root;

	if (function->kind != FRAME_LUA || !function->file)
		return place;
	file = module_path_file(function, &root);
	/* The beginning of a long path is cut off. */
	return strncmp(place, file, root) == 0 ? place + root : place;
}

static void draw_function(const struct picture *picture, const struct row *row, int y, struct columns columns)
{
	char label[FRAME_LABEL_SIZE];
	size_t name_length;
	const char *place = "";

	frame_label_parts(row->function, row->line, picture->options->by_line, label, &name_length);
	if (columns.place < columns.end && label[name_length]) {
		label[name_length] = '\0';
		place = below_root(row->function, label + name_length + 1);
	}
	put(y, columns.name, columns.place - 1, TEXT_HEAD, utf8_skip(label, picture->position->left));
	put(y, columns.place, columns.end, TEXT_TAIL, place);
}

static void draw_branch(const struct picture *picture, const struct row *row, int y, struct columns columns)
{
	/* Indent at most by half the width, so that deep rows stay visible. */
	int most = (columns.end - columns.name) / 2;
	int x = columns.name + (row->depth < (uint32_t)most ? (int)row->depth : most);
	char label[FRAME_LABEL_SIZE];

	frame_label(row->function, row->line, picture->options->by_line, label);
	put(y, x, columns.end, TEXT_HEAD, !row->has_children ? "  " : row->is_folded ? "+ " : "- ");
	put(y, x + 2, columns.end, TEXT_HEAD, utf8_skip(label, picture->position->left));
}

static void draw_thread(const struct row *row, int y, struct columns columns)
{
	int x = columns.name + (row->tid ? 2 : 0);

	x = put_format(y, x, columns.end, "%d ", row->tid ? row->tid : row->pid);
	put(y, x, columns.end, TEXT_HEAD, row->name);
}

static void draw_trend(int y, int x, enum trend trend)
{
	bool utf8 = MB_CUR_MAX > 1;

	if (trend == TREND_UP)
		put(y, x, x + 1, TEXT_HEAD, utf8 ? "\u2191" : "^");
	else if (trend == TREND_DOWN)
		put(y, x, x + 1, TEXT_HEAD, utf8 ? "\u2193" : "v");
}

static void draw_row(const struct screen *screen, const struct picture *picture, size_t index, int y,
		     struct columns columns)
{
	const struct row *row = &picture->rows->rows[index];
	bool threads = picture->options->list == ROWS_THREADS;
	uint64_t whole = picture->rows->totals.cpu_ns;

	set_ink(screen, ink_of(row));
	if (index == picture->position->selected)
		attron(A_REVERSE);
	mvhline(y, 0, ' ', COLS);
	put_format(y, 0, SHARE_COLUMNS, "%5.1f%%",
		   threads ? percent(row->total_ns, picture->period_ns) : percent(row->own_ns, whole));
	put_format(y, SHARE_COLUMNS, columns.name, "%5.1f%%", percent(row->total_ns, whole));
	if (picture->options->list == ROWS_FUNCTIONS)
		draw_trend(y, SHARE_COLUMNS - 1, rows_trend(picture->rows, row->own_ns, row->own_late_ns));
	if (picture->options->list != ROWS_TREE)
		draw_trend(y, 2 * SHARE_COLUMNS - 1,
			   rows_trend(picture->rows, row->total_ns, row->total_late_ns));
	if (picture->options->list == ROWS_FUNCTIONS)
		draw_function(picture, row, y, columns);
	else if (picture->options->list == ROWS_TREE)
		draw_branch(picture, row, y, columns);
	else
		draw_thread(row, y, columns);
	attrset(A_NORMAL);
}

static void draw_list(const struct screen *screen, const struct picture *picture)
{
	struct columns columns = lay_out(picture);
	size_t page = screen_page();

	draw_column_names(picture, columns);
	for (size_t i = 0; i < page && picture->position->first + i < picture->rows->count; i++)
		draw_row(screen, picture, picture->position->first + i, head_lines() + (int)i, columns);
	if (picture->rows->count == 0 && page > 0)
		put(head_lines(), 0, COLS, TEXT_HEAD,
		    *picture->options->filter->text ? "Nothing matches the filter."
						    : "No CPU time was used.");
}

/*---- Help ----*/

static void draw_help(void)
{
	static const char *const lines[] = {
		"Up Down PgUp PgDn Home End   move",
		"Left Right                   scroll names; in the tree: fold, unfold",
		"1 2 3, < >                   sort by own share, total share, name",
		"l                            functions or lines",
		"t, F5                        tree of callers and callees",
		"H                            processes and threads; Enter: show only that one",
		"Tab                          the next of these lists",
		"/, F4                        filter by text or regular expression; Esc clears",
		"[ ]                          shorter, longer period",
		"Space, p                     pause, go on",
		"r                            reset: forget what was seen",
		"q, F10, Ctrl-C               quit",
		"",
		"OWN%    share of CPU time in the function itself",
		"TOTAL%  the same with all that it called",
		"up down arrows: the share has changed since the middle of the period",
		"charts  the last minutes, up to five: CPU, by VM state, and the Lua heap",
		"pause   for how long a thread is held for a sample: median, p99, longest",
	};

	for (int i = 0; i < (int)(sizeof(lines) / sizeof(lines[0])) && i < LINES - 2; i++)
		put(i + 1, 0, COLS, TEXT_HEAD, lines[i]);
	put(LINES - 1, 0, COLS, TEXT_HEAD, "Any key: back");
}

void screen_draw(struct screen *screen, const struct picture *picture)
{
	unsigned int chart_s = 0;

	attrset(A_NORMAL);
	erase();
	if (picture->help) {
		draw_help();
	} else {
		draw_figures(picture);
		draw_states(screen, picture);
		chart_s = draw_charts(screen, picture);
		draw_list(screen, picture);
		draw_foot(picture);
	}
	draw_title(picture, chart_s);
	refresh();
}

size_t screen_page(void)
{
	int lines = LINES - head_lines() - FOOT_LINES;

	return lines > 0 ? (size_t)lines : 0;
}

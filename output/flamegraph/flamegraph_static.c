/* SPDX-License-Identifier: MIT */
#include "output/flamegraph/flamegraph_static.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/labels/escape.h"
#include "output/labels/label_table.h"
#include "output/labels/short_label.h"
#include "output/over_time/cpu_picture.h"
#include "output/views/color.h"

/* In pixels. CHAR_WIDTH, of 12 px monospace, is in tenths of a pixel. */
enum {
	MARGIN = 12,
	INNER_WIDTH = FLAMEGRAPH_STATIC_WIDTH - 2 * MARGIN,
	ROW_HEIGHT = 18,
	NARROWEST = 2,
	CHAR_WIDTH = 73,
	TEXT_INDENT = 3,
	HEADER_COLUMNS = INNER_WIDTH * 10 / CHAR_WIDTH,
	LINE_HEIGHT = 18,
};

struct box {
	const struct profile_node *node;
	const struct profile_node *before; /* the same frame in the baseline, or NULL */
	const struct label *label;
	uint64_t start_ns; /* distance from the left edge */
};

struct flamegraph_static {
	const struct profile *profile, *baseline;
	const struct changed *changed;
	const struct flamegraph_header *header;
	const struct cpu_use *cpu; /* NULL if it is not shown */
	uint64_t total_ns;
	struct label_table labels;
	struct box *boxes; /* callers before callees; siblings by label, inverted by weight */
	size_t box_count;
	size_t rows;
	bool used[COLOR_COUNT];
};

static bool is_sampled(const struct flamegraph_static *picture)
{
	return weight_is_sampled(profile_options(picture->profile)->weight);
}

/* -- Layout -- */

/* A weight in tenths of a pixel. In a damaged recording, the total may overflow and be less than a weight. */
static uint64_t tenths(const struct flamegraph_static *picture, uint64_t ns)
{
	if (ns > picture->total_ns)
		ns = picture->total_ns;
	return (uint64_t)((double)ns / (double)picture->total_ns * INNER_WIDTH * 10);
}

static bool is_shown(const struct flamegraph_static *picture, const struct box *box)
{
	return picture->total_ns > 0 && box->node->depth < FLAMEGRAPH_STATIC_ROWS_MAX &&
	       tenths(picture, box->node->total_ns) >= 10 * NARROWEST;
}

static enum color box_color(const struct flamegraph_static *picture, const struct box *box)
{
	const struct profile_node *all = profile_root(picture->profile), *all_before;
	struct color_share before = { 0 }, now;

	if (!picture->baseline)
		return color_of_node(box->node);
	if (picture->changed && !changed_has(picture->changed, box->node->function))
		return COLOR_SAME;
	all_before = profile_root(picture->baseline);
	before.all_ns = all_before->total_ns;
	before.all_samples = all_before->total_samples;
	if (box->before) {
		before.ns = box->before->total_ns;
		before.samples = box->before->total_samples;
	}
	now = (struct color_share){
		.ns = box->node->total_ns,
		.all_ns = all->total_ns,
		.samples = box->node->total_samples,
		.all_samples = all->total_samples,
		.exact = !is_sampled(picture),
	};
	return color_of_change(&before, &now);
}

static int add_labels(struct flamegraph_static *picture)
{
	picture->labels.by_line = profile_options(picture->profile)->by_line;
	for (const struct profile_node *node = profile_root(picture->profile); node;
	     node = profile_node_next(node)) {
		if (label_table_add(&picture->labels, node->function, node->line) < 0)
			return -ENOMEM;
	}
	label_table_sort(&picture->labels);
	return 0;
}

/* In reverse order, because add_boxes() takes boxes from the end. */
static int compare_labels(const void *a, const void *b)
{
	uint32_t left = ((const struct box *)a)->label->rank;
	uint32_t right = ((const struct box *)b)->label->rank;

	return left < right ? 1 : left > right ? -1 : 0;
}

static int compare_weights(const void *a, const void *b)
{
	uint64_t left = ((const struct box *)a)->node->total_ns;
	uint64_t right = ((const struct box *)b)->node->total_ns;

	return left < right ? -1 : left > right ? 1 : compare_labels(a, b);
}

static struct box make_box(const struct flamegraph_static *picture, const struct profile_node *node,
			   const struct profile_node *before)
{
	return (struct box){
		.node = node,
		.before = before,
		.label = label_table_find(&picture->labels, node->function, node->line),
	};
}

/* Put the children of a box on the stack in order. Returns their number. */
static size_t push_children(const struct flamegraph_static *picture, const struct box *parent,
			    struct box *stack)
{
	uint64_t start_ns = parent->start_ns;
	size_t count = 0;

	for (const struct profile_node *node = parent->node->first_child; node; node = node->next_sibling) {
		const struct profile_node *before = NULL;

		if (parent->before)
			before = profile_find_child(picture->baseline, parent->before, node);
		stack[count++] = make_box(picture, node, before);
	}
	qsort(stack, count, sizeof(*stack),
	      profile_options(picture->profile)->inverted ? compare_weights : compare_labels);
	for (size_t i = count; i-- > 0;) {
		stack[i].start_ns = start_ns;
		start_ns += stack[i].node->total_ns;
	}
	return count;
}

static int add_boxes(struct flamegraph_static *picture)
{
	/* Each box is on the stack at most once, so the stack needs room for all boxes at most. */
	size_t room = profile_node_count(picture->profile) + 1;
	struct box *stack = calloc(room, sizeof(*stack));
	size_t waiting = 0;

	picture->boxes = calloc(room, sizeof(*picture->boxes));
	if (!stack || !picture->boxes) {
		free(stack);
		return -ENOMEM;
	}
	stack[waiting++] = make_box(picture, profile_root(picture->profile),
				    picture->baseline ? profile_root(picture->baseline) : NULL);
	picture->rows = 1;
	while (waiting > 0) {
		struct box *box = &picture->boxes[picture->box_count++];

		*box = stack[--waiting];
		waiting += push_children(picture, box, stack + waiting);
		picture->used[box_color(picture, box)] = true;
		if (is_shown(picture, box) && box->node->depth >= picture->rows)
			picture->rows = box->node->depth + 1;
	}
	free(stack);
	return 0;
}

int flamegraph_static_new(const struct profile *profile, const struct profile *baseline,
			  const struct changed *changed, const struct flamegraph_header *header,
			  const struct cpu_use *cpu, struct flamegraph_static **ret_picture)
{
	struct flamegraph_static *picture = calloc(1, sizeof(*picture));

	if (!picture)
		return -ENOMEM;
	picture->profile = profile;
	picture->baseline = baseline;
	picture->changed = changed;
	picture->header = header;
	picture->cpu = cpu_picture_has(cpu) ? cpu : NULL;
	picture->total_ns = profile_root(profile)->total_ns;
	if (add_labels(picture) < 0 || add_boxes(picture) < 0) {
		flamegraph_static_free(picture);
		return -ENOMEM;
	}
	*ret_picture = picture;
	return 0;
}

void flamegraph_static_free(struct flamegraph_static *picture)
{
	if (!picture)
		return;
	label_table_clear(&picture->labels);
	free(picture->boxes);
	free(picture);
}

/* -- Drawing -- */

/* Write a length in pixels from tenths, with a point in any locale. */
static void write_tenths(FILE *out, const char *attribute, uint64_t tenths)
{
	fprintf(out, " %s=\"%" PRIu64 ".%u\"", attribute, tenths / 10, (unsigned)(tenths % 10));
}

/* Write text, shortened to columns, as character data. */
static void write_fitted(FILE *out, const char *text, size_t columns)
{
	char cut[LABEL_TEXT_SIZE];
	size_t length = short_label_fitting(text, columns);
	bool whole = text[length] == '\0';

	if (!whole)
		length = short_label_fitting(text, columns - 1);
	memcpy(cut, text, length);
	cut[length] = '\0';
	escape_write(ESCAPE_XML, cut, out);
	if (!whole)
		fputs("\u2026", out);
}

static void write_header(FILE *out, const struct flamegraph_header *header)
{
	for (size_t i = 0; i < header->count; i++) {
		fprintf(out, "<text class=\"%s\" x=\"%d\" y=\"%zu\">", i ? "detail" : "headline", MARGIN,
			24 + LINE_HEIGHT * i);
		/* The title's letters are wider. */
		write_fitted(out, header->lines[i], i ? HEADER_COLUMNS : HEADER_COLUMNS * 3 / 4);
		fputs("</text>\n", out);
	}
}

static size_t cpu_top(const struct flamegraph_static *picture)
{
	return 14 + LINE_HEIGHT * picture->header->count;
}

static size_t legend_top(const struct flamegraph_static *picture)
{
	return cpu_top(picture) + (picture->cpu ? CPU_PICTURE_HEIGHT : 0);
}

static size_t frames_top(const struct flamegraph_static *picture)
{
	return legend_top(picture) + 26;
}

size_t flamegraph_static_height(const struct flamegraph_static *picture)
{
	return frames_top(picture) + picture->rows * ROW_HEIGHT + MARGIN;
}

static void write_legend(FILE *out, const struct flamegraph_static *picture)
{
	size_t deepest = profile_depth(picture->profile);
	size_t y = legend_top(picture);
	size_t x = MARGIN;

	for (int i = COLOR_LUA; i < COLOR_COUNT; i++) {
		const char *name = color_name((enum color)i);

		if (!picture->used[i] || (!is_sampled(picture) && !picture->baseline))
			continue;
		fprintf(out,
			"<g class=\"f %c\"><rect x=\"%zu\" y=\"%zu\" width=\"12\" height=\"12\"/></g>"
			"<text class=\"detail\" x=\"%zu\" y=\"%zu\">%s</text>\n",
			color_letter((enum color)i), x, y, x + 17, y + 10, name);
		x += 17 + (strlen(name) + 2) * CHAR_WIDTH / 10;
	}
	if (deepest >= FLAMEGRAPH_STATIC_ROWS_MAX)
		fprintf(out,
			"<text class=\"detail\" x=\"%zu\" y=\"%zu\">%zu deeper levels: open in a browser</text>\n",
			x, y + 10, deepest + 1 - FLAMEGRAPH_STATIC_ROWS_MAX);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

static void write_title(FILE *out, const struct flamegraph_static *picture, const struct box *box)
{
	fputs("<title>", out);
	escape_write(ESCAPE_XML, box->label->text, out);
	fprintf(out, "\n%.2f %%, %" PRIu64 " %s", percent(box->node->total_ns, picture->total_ns),
		box->node->total_samples, is_sampled(picture) ? "samples" : "objects");
	if (picture->baseline)
		fprintf(out, "; before %.2f %%",
			percent(box->before ? box->before->total_ns : 0,
				profile_root(picture->baseline)->total_ns));
	fputs("</title>", out);
}

static void write_box(FILE *out, const struct flamegraph_static *picture, const struct box *box)
{
	bool inverted = profile_options(picture->profile)->inverted;
	size_t row = inverted ? box->node->depth : picture->rows - 1 - box->node->depth;
	size_t y = frames_top(picture) + row * ROW_HEIGHT;
	uint64_t x = tenths(picture, box->start_ns);
	uint64_t end = tenths(picture, box->start_ns + box->node->total_ns);
	uint64_t width = end > x ? end - x : 0;
	size_t columns = width > 20 * TEXT_INDENT ? (width - 20 * TEXT_INDENT) / CHAR_WIDTH : 0;
	char text[LABEL_TEXT_SIZE];

	fprintf(out, "<g class=\"f %c\">", color_letter(box_color(picture, box)));
	write_title(out, picture, box);
	fputs("<rect", out);
	write_tenths(out, "x", MARGIN * 10 + x);
	/* A gap between neighbours, unless it takes much of the frame. */
	write_tenths(out, "width", width > 40 ? width - 10 : width);
	fprintf(out, " y=\"%zu\" height=\"%d\"/>", y, ROW_HEIGHT - 1);
	if (columns >= 2) {
		fputs("<text", out);
		write_tenths(out, "x", (MARGIN + TEXT_INDENT) * 10 + x);
		fprintf(out, " y=\"%zu\">", y + 12);
		short_label(box->label, columns, text);
		escape_write(ESCAPE_XML, text, out);
		fputs("</text>", out);
	}
	fputs("</g>\n", out);
}

void flamegraph_static_write(FILE *out, const struct flamegraph_static *picture)
{
	/* Where the page that shows it forbids styles, it is in outlines. */
	fputs("<g id=\"static\" fill=\"none\" stroke=\"#333\" stroke-width=\"0.6\" font-family=\"monospace\" font-size=\"12\">\n"
	      "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n",
	      out);
	write_header(out, picture->header);
	if (picture->cpu)
		cpu_picture_write(out, picture->cpu, MARGIN, cpu_top(picture), INNER_WIDTH);
	write_legend(out, picture);
	if (picture->total_ns == 0)
		fprintf(out, "<text class=\"headline\" x=\"%d\" y=\"%zu\">No %s</text>\n", MARGIN,
			frames_top(picture) + 12, is_sampled(picture) ? "samples" : "objects");
	for (size_t i = 0; i < picture->box_count; i++) {
		if (is_shown(picture, &picture->boxes[i]))
			write_box(out, picture, &picture->boxes[i]);
	}
	fputs("</g>\n", out);
}

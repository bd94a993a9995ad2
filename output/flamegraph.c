#include "output/flamegraph.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "output/escape.h"
#include "output/frame_label.h"

/* output/flamegraph_assets.S */
extern const char flamegraph_js[], flamegraph_js_end[];
extern const char flamegraph_css[], flamegraph_css_end[];

/* The picture for viewers without scripts, in pixels. CHAR_WIDTH is in tenths, of 12 px monospace. */
enum {
	WIDTH = 1200,
	MARGIN = 10,
	INNER_WIDTH = WIDTH - 2 * MARGIN,
	ROW_HEIGHT = 17,
	CHAR_WIDTH = 73,
	TEXT_INDENT = 3,
	HEADER_COLUMNS = INNER_WIDTH * 10 / CHAR_WIDTH,
};

/* A label escaped for display; what is beyond is cut. */
enum { TEXT_SIZE = 4 * FRAME_LABEL_SIZE };

/* How a frame is coloured. The letters are class names and what the labels' data begins with. */
enum look {
	LOOK_ALL,
	LOOK_LUA,
	LOOK_COMPILED,
	LOOK_BUILTIN,
	LOOK_C_FUNCTION,
	LOOK_NATIVE,
	LOOK_VM,
	LOOK_TRACE,
	LOOK_LOST,
	LOOK_COUNT
};

static const struct {
	char letter;
	const char *name;	/* in the legend; NULL to leave it out */
} looks[LOOK_COUNT] = {
	[LOOK_ALL] = { 'a', NULL },
	[LOOK_LUA] = { 'l', "Lua, interpreted" },
	[LOOK_COMPILED] = { 'j', "Lua, compiled" },
	[LOOK_BUILTIN] = { 'b', "builtin" },
	[LOOK_C_FUNCTION] = { 'c', "C function" },
	[LOOK_NATIVE] = { 'n', "native" },
	[LOOK_VM] = { 'v', "VM" },
	[LOOK_TRACE] = { 't', "trace" },
	[LOOK_LOST] = { 'x', "lost" },
};

/* One text that frames show. The key has no padding: it is hashed as bytes. */
struct label_key {
	const struct function *function;
	uint64_t line;
};

struct label {
	struct label_key key;
	char *text;		/* escaped as ESCAPE_PLAIN */
	uint32_t rank;		/* alphabetical */
	UT_hash_handle hh;
};

/* One frame of the picture. */
struct box {
	const struct profile_node *node;
	const struct label *label;
	uint64_t start_ns;	/* distance from the left edge */
};

struct graph {
	const struct profile *profile;
	uint64_t total_ns;
	uint64_t limit_ns;	/* frames below are left out */
	struct label *labels;	/* the table, sorted by rank */
	struct box *boxes;	/* callers before callees, siblings by label */
	size_t box_count;
	size_t depth;		/* of the deepest box */
	bool used[LOOK_COUNT];
};

static enum look kind_look(const struct function *function)
{
	static const enum look kind_looks[FRAME_KIND_COUNT] = {
		[FRAME_LUA] = LOOK_LUA,
		[FRAME_BUILTIN] = LOOK_BUILTIN,
		[FRAME_C_FUNCTION] = LOOK_C_FUNCTION,
		[FRAME_NATIVE] = LOOK_NATIVE,
		[FRAME_VM] = LOOK_VM,
		[FRAME_TRACE] = LOOK_TRACE,
		[FRAME_LOST] = LOOK_LOST,
	};

	return function ? kind_looks[function->kind] : LOOK_ALL;
}

/* A Lua function has the colour of what it was more often. */
static enum look node_look(const struct profile_node *node)
{
	enum look look = kind_look(node->function);

	return look == LOOK_LUA && node->compiled_ns > node->total_ns / 2 ? LOOK_COMPILED : look;
}

/* -- Which frames are shown, and where -- */

static bool is_shown(const struct graph *graph, const struct profile_node *node)
{
	return node->total_ns > 0 && node->total_ns >= graph->limit_ns;
}

static size_t count_shown(const struct graph *graph)
{
	const struct profile_node *node = profile_root(graph->profile);
	size_t count = 1;	/* the root */

	while ((node = profile_node_next(node)))
		count += is_shown(graph, node);
	return count;
}

static void set_limit(struct graph *graph)
{
	graph->total_ns = profile_root(graph->profile)->total_ns;
	graph->limit_ns = graph->total_ns / FLAMEGRAPH_SMALLEST_PART;
	while ((graph->box_count = count_shown(graph)) > FLAMEGRAPH_FRAMES_MAX)
		graph->limit_ns = 2 * graph->limit_ns + 1;
}

static char *label_text(const struct graph *graph, const struct label_key *key)
{
	char label[FRAME_LABEL_SIZE] = "all";
	char text[TEXT_SIZE];

	if (key->function)
		frame_label(key->function, (uint32_t)key->line,
			    profile_options(graph->profile)->by_line, label);
	escape_text(ESCAPE_PLAIN, label, text, sizeof(text));
	return strdup(text);
}

static struct label *find_label(const struct graph *graph, const struct profile_node *node)
{
	struct label_key key = { .function = node->function, .line = node->line };
	struct label *label;

	HASH_FIND(hh, graph->labels, &key, sizeof(key), label);
	return label;
}

static int add_label(struct graph *graph, const struct profile_node *node)
{
	struct label *label;
	bool added = true;

	if (find_label(graph, node))
		return 0;
	label = calloc(1, sizeof(*label));
	if (!label)
		return -ENOMEM;
	label->key = (struct label_key) { .function = node->function, .line = node->line };
	label->text = label_text(graph, &label->key);
	if (label->text) {
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (added = false)
		HASH_ADD(hh, graph->labels, key, sizeof(label->key), label);
		if (added)
			return 0;
	}
	free(label->text);
	free(label);
	return -ENOMEM;
}

static int compare_labels(const struct label *a, const struct label *b)
{
	return strcmp(a->text, b->text);
}

static int add_labels(struct graph *graph)
{
	const struct profile_node *node = profile_root(graph->profile);
	uint32_t rank = 0;

	for (; node; node = profile_node_next(node)) {
		if (node->parent && !is_shown(graph, node))
			continue;
		if (add_label(graph, node) < 0)
			return -ENOMEM;
	}
	HASH_SORT(graph->labels, compare_labels);
	for (struct label *label = graph->labels; label; label = label->hh.next)
		label->rank = rank++;
	return 0;
}

/* The last in the alphabet first: boxes are taken from the end. */
static int compare_boxes(const void *a, const void *b)
{
	uint32_t left = ((const struct box *)a)->label->rank;
	uint32_t right = ((const struct box *)b)->label->rank;

	return left < right ? 1 : left > right ? -1 : 0;
}

/* Put the children of a box on the stack in order. Returns how many there are. */
static size_t push_children(const struct graph *graph, const struct box *parent, struct box *stack)
{
	uint64_t start_ns = parent->start_ns;
	size_t count = 0;

	for (const struct profile_node *node = parent->node->first_child; node; node = node->next_sibling) {
		if (is_shown(graph, node))
			stack[count++] = (struct box) { .node = node, .label = find_label(graph, node) };
	}
	qsort(stack, count, sizeof(*stack), compare_boxes);
	for (size_t i = count; i-- > 0;) {
		stack[i].start_ns = start_ns;
		start_ns += stack[i].node->total_ns;
	}
	return count;
}

static int add_boxes(struct graph *graph)
{
	/* Each box is on the stack at most once, so it never needs more than all. */
	struct box *stack = calloc(graph->box_count, sizeof(*stack));
	size_t waiting = 0;
	size_t done = 0;

	graph->boxes = calloc(graph->box_count, sizeof(*graph->boxes));
	if (!stack || !graph->boxes) {
		free(stack);
		return -ENOMEM;
	}
	stack[waiting].node = profile_root(graph->profile);
	stack[waiting].label = find_label(graph, stack[waiting].node);
	waiting++;
	while (waiting > 0) {
		struct box *box = &graph->boxes[done++];

		*box = stack[--waiting];
		waiting += push_children(graph, box, stack + waiting);
		if (box->node->depth > graph->depth)
			graph->depth = box->node->depth;
		graph->used[node_look(box->node)] = true;
	}
	free(stack);
	return 0;
}

static void graph_clear(struct graph *graph)
{
	struct label *label, *next;

	HASH_ITER(hh, graph->labels, label, next) {
		HASH_DEL(graph->labels, label);
		free(label->text);
		free(label);
	}
	free(graph->boxes);
}

/* -- What was recorded, in words -- */

enum { HEADER_LINES_MAX = 5, HEADER_LINE_SIZE = 2048 };

/* The first line is the title. */
struct header {
	char lines[HEADER_LINES_MAX][HEADER_LINE_SIZE];
	size_t count;
};

__attribute__((format(printf, 2, 3)))
static void add_line(struct header *header, const char *format, ...)
{
	char raw[HEADER_LINE_SIZE];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(raw, sizeof(raw), format, arguments);
	va_end(arguments);
	escape_text(ESCAPE_PLAIN, raw, header->lines[header->count++], HEADER_LINE_SIZE);
}

/* Longer than any line shows, shorter than would push the rest of the line out. */
enum { COMMAND_MAX = 1024 };

static void add_title(struct header *header, const struct session *session)
{
	const char *time = session->clock == PROFILE_CPU_TIME ? "CPU time" : "Wall-clock time";
	const char *target = session->target ? session->target : "LuaJIT";

	if (session->pid > 0)
		add_line(header, "%s of %.*s (pid %ld)", time, COMMAND_MAX, target, (long)session->pid);
	else
		add_line(header, "%s of %.*s", time, COMMAND_MAX, target);
}

static void add_figures(struct header *header, const struct session *session,
			const struct figures *figures)
{
	const struct histogram *pause_ns = &figures->pause_ns;
	time_t start = (time_t)(session->start_unix_ns / 1000000000);
	char date[64] = "";
	char pause[128] = "";
	struct tm utc;

	if (session->start_unix_ns > 0 && gmtime_r(&start, &utc))
		strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S UTC, ", &utc);
	if (pause_ns->count > 0)
		snprintf(pause, sizeof(pause), ", paused p50 %.1f \u00b5s, p99 %.1f \u00b5s, max %.1f \u00b5s",
			 (double)histogram_percentile(pause_ns, 500) / 1e3,
			 (double)histogram_percentile(pause_ns, 990) / 1e3,
			 (double)pause_ns->max / 1e3);
	add_line(header, "%s%.1f s, %" PRIu64 " samples%s", date,
		 (double)session->duration_ns / 1e9, figures->samples, pause);
}

static void add_lost(struct header *header, const struct figures *figures)
{
	uint64_t lost = figures_lost(figures);
	char reasons[HEADER_LINE_SIZE - 256] = "";
	size_t length = 0;

	for (int i = 0; i < LOST_COUNT && length < sizeof(reasons); i++) {
		if (figures->lost[i] > 0)
			length += (size_t)snprintf(reasons + length, sizeof(reasons) - length, "%s %s %" PRIu64,
						   length ? "," : ":", lost_reason_text((enum lost_reason)i),
						   figures->lost[i]);
	}
	add_line(header, "%" PRIu64 " ticks missed, %" PRIu64 " samples lost (%.2f %%)%s", figures->missed_ticks, lost,
		 figures->samples ? 100.0 * (double)lost / (double)figures->samples : 0.0, reasons);
}

static void header_fill(struct header *header, const struct graph *graph,
			const struct session *session, const struct figures *figures)
{
	size_t left_out = profile_node_count(graph->profile) + 1 - graph->box_count;

	header->count = 0;
	add_title(header, session);
	if (session->command_line)
		add_line(header, "$ %.*s", COMMAND_MAX, session->command_line);
	add_figures(header, session, figures);
	add_lost(header, figures);
	if (left_out > 0)
		add_line(header, "%zu frames of less than %.4f %% each are left out; their time is in their callers",
			 left_out, 100.0 * (double)graph->limit_ns / (double)graph->total_ns);
}

/* -- The picture for viewers without scripts -- */

/* A length in tenths of a pixel, whatever the locale's decimal point is. */
static void write_tenths(FILE *out, const char *attribute, uint64_t tenths)
{
	fprintf(out, " %s=\"%" PRIu64 ".%u\"", attribute, tenths / 10, (unsigned)(tenths % 10));
}

static uint64_t tenths(const struct graph *graph, uint64_t ns)
{
	return (uint64_t)((double)ns / (double)graph->total_ns * INNER_WIDTH * 10);
}

/* The bytes of valid UTF-8 text that fit in so many columns; East Asian characters take two. */
static size_t fitting(const char *text, size_t columns)
{
	size_t used = 0;
	size_t i = 0;

	while (text[i]) {
		unsigned char lead = (unsigned char)text[i];

		used += lead >= 0xe1 ? 2 : 1;
		if (used > columns)
			break;
		i += lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
	}
	return i;
}

/* text shortened to columns, as character data. */
static void write_fitted(FILE *out, const char *text, size_t columns)
{
	char cut[TEXT_SIZE];
	size_t length = fitting(text, columns);
	bool whole = text[length] == '\0';

	if (!whole)
		length = fitting(text, columns - 1);
	memcpy(cut, text, length);
	cut[length] = '\0';
	escape_write(ESCAPE_XML, cut, out);
	if (!whole)
		fputs("\u2026", out);
}

static void write_static_header(FILE *out, const struct header *header)
{
	for (size_t i = 0; i < header->count; i++) {
		fprintf(out, "<text class=\"%s\" x=\"%d\" y=\"%zu\">", i ? "detail" : "headline",
			MARGIN, 24 + 18 * i);
		/* The title's letters are wider. */
		write_fitted(out, header->lines[i], i ? HEADER_COLUMNS : HEADER_COLUMNS * 3 / 4);
		fputs("</text>\n", out);
	}
}

static void write_static_legend(FILE *out, const struct graph *graph, size_t y)
{
	size_t x = MARGIN;

	for (int i = 0; i < LOOK_COUNT; i++) {
		if (!looks[i].name || !graph->used[i])
			continue;
		fprintf(out, "<g class=\"f %c\"><rect x=\"%zu\" y=\"%zu\" width=\"12\" height=\"12\"/></g>"
			"<text class=\"detail\" x=\"%zu\" y=\"%zu\">%s</text>\n",
			looks[i].letter, x, y, x + 17, y + 10, looks[i].name);
		x += 17 + (strlen(looks[i].name) + 2) * CHAR_WIDTH / 10;
	}
	if (graph->depth >= FLAMEGRAPH_STATIC_ROWS_MAX)
		fprintf(out, "<text class=\"detail\" x=\"%zu\" y=\"%zu\">%zu deeper levels: open in a browser</text>\n",
			x, y + 10, graph->depth + 1 - FLAMEGRAPH_STATIC_ROWS_MAX);
}

static void write_static_box(FILE *out, const struct graph *graph, const struct box *box, size_t y)
{
	uint64_t x = tenths(graph, box->start_ns);
	uint64_t width = tenths(graph, box->start_ns + box->node->total_ns) - x;
	size_t columns = width > 20 * TEXT_INDENT ? (width - 20 * TEXT_INDENT) / CHAR_WIDTH : 0;

	fprintf(out, "<g class=\"f %c\"><title>", looks[node_look(box->node)].letter);
	escape_write(ESCAPE_XML, box->label->text, out);
	fprintf(out, "\n%.2f %%, %" PRIu64 " samples</title><rect",
		100.0 * (double)box->node->total_ns / (double)graph->total_ns,
		box->node->total_samples);
	write_tenths(out, "x", MARGIN * 10 + x);
	/* A gap between neighbours, unless it would eat much of the frame. */
	write_tenths(out, "width", width > 40 ? width - 10 : width);
	fprintf(out, " y=\"%zu\" height=\"%d\"/>", y, ROW_HEIGHT - 1);
	if (columns >= 2) {
		fputs("<text", out);
		write_tenths(out, "x", (MARGIN + TEXT_INDENT) * 10 + x);
		fprintf(out, " y=\"%zu\">", y + 12);
		write_fitted(out, box->label->text, columns);
		fputs("</text>", out);
	}
	fputs("</g>\n", out);
}

/* Narrower than a pixel is not worth a shape. */
static bool is_static(const struct graph *graph, const struct box *box)
{
	return graph->total_ns > 0 && tenths(graph, box->node->total_ns) >= 10 &&
	       box->node->depth < FLAMEGRAPH_STATIC_ROWS_MAX;
}

static size_t static_rows(const struct graph *graph)
{
	size_t rows = 1;

	for (size_t i = 0; i < graph->box_count; i++) {
		if (is_static(graph, &graph->boxes[i]) && graph->boxes[i].node->depth >= rows)
			rows = graph->boxes[i].node->depth + 1;
	}
	return rows;
}

static void write_static_boxes(FILE *out, const struct graph *graph, size_t top, size_t rows, bool inverted)
{
	if (graph->total_ns == 0)
		fprintf(out, "<text class=\"headline\" x=\"%d\" y=\"%zu\">No samples</text>\n", MARGIN, top + 12);
	for (size_t i = 0; i < graph->box_count; i++) {
		const struct box *box = &graph->boxes[i];
		size_t row = inverted ? box->node->depth : rows - 1 - box->node->depth;

		if (is_static(graph, box))
			write_static_box(out, graph, box, top + row * ROW_HEIGHT);
	}
}

/* -- The data for the script -- */

static void write_labels(FILE *out, const struct graph *graph)
{
	fputs("<metadata id=\"labels\">", out);
	for (const struct label *label = graph->labels; label; label = label->hh.next) {
		fprintf(out, "%c ", looks[kind_look(label->key.function)].letter);
		escape_write(ESCAPE_XML, label->text, out);
		fputc('\n', out);
	}
	fputs("</metadata>\n", out);
}

static void write_frames(FILE *out, const struct graph *graph)
{
	fputs("<metadata id=\"frames\">", out);
	for (size_t i = 0; i < graph->box_count; i++) {
		const struct profile_node *node = graph->boxes[i].node;

		fprintf(out, "%" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
			node->depth, graph->boxes[i].label->rank, node->total_ns, node->own_ns,
			node->total_samples, node->own_samples, node->compiled_ns);
	}
	fputs("</metadata>\n", out);
}

static void write_asset(FILE *out, const char *element, const char *begin, const char *end)
{
	fprintf(out, "<%s><![CDATA[\n", element);
	fwrite(begin, 1, (size_t)(end - begin), out);
	fprintf(out, "]]></%s>\n", element);
}

static void write_document(FILE *out, const struct graph *graph, const struct header *header, bool inverted)
{
	size_t legend_y = 12 + 18 * header->count;
	size_t top = legend_y + 24;
	size_t rows = static_rows(graph);
	size_t height = top + rows * ROW_HEIGHT + MARGIN;

	fprintf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"ljspy\" width=\"%d\" height=\"%zu\""
		" viewBox=\"0 0 %d %zu\" data-inverted=\"%d\">\n<title>",
		WIDTH, height, WIDTH, height, inverted);
	escape_write(ESCAPE_XML, header->lines[0], out);
	fputs("</title>\n<desc id=\"about\">", out);
	for (size_t i = 0; i < header->count; i++) {
		escape_write(ESCAPE_XML, header->lines[i], out);
		fputs(i + 1 < header->count ? "\n" : "</desc>\n", out);
	}
	write_asset(out, "style", flamegraph_css, flamegraph_css_end);
	fputs("<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\""
	      " patternTransform=\"rotate(45)\"><rect class=\"paper\" width=\"6\" height=\"6\"/>"
	      "<rect class=\"stripe\" width=\"2\" height=\"6\"/></pattern></defs>\n", out);
	fputs("<g id=\"static\">\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n", out);
	write_static_header(out, header);
	write_static_legend(out, graph, legend_y);
	write_static_boxes(out, graph, top, rows, inverted);
	fputs("</g>\n", out);
	write_labels(out, graph);
	write_frames(out, graph);
	write_asset(out, "script", flamegraph_js, flamegraph_js_end);
	fputs("</svg>\n", out);
}

int flamegraph_write(FILE *out, const struct profile *profile, const struct session *session,
		     const struct figures *figures, const struct flamegraph_options *options)
{
	struct graph graph = { .profile = profile };
	struct header *header = calloc(1, sizeof(*header));
	int result = header ? 0 : -ENOMEM;

	set_limit(&graph);
	if (result == 0)
		result = add_labels(&graph);
	if (result == 0)
		result = add_boxes(&graph);
	if (result == 0) {
		header_fill(header, &graph, session, figures);
		write_document(out, &graph, header, options->inverted);
		if (ferror(out))
			result = -EIO;
	}
	graph_clear(&graph);
	free(header);
	return result;
}

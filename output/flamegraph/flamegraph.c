/* SPDX-License-Identifier: MIT */
#include "output/flamegraph/flamegraph.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "output/flamegraph/flamegraph_header.h"
#include "output/flamegraph/flamegraph_static.h"
#include "output/labels/escape.h"
#include "output/labels/label_table.h"
#include "output/source/source_data.h"
#include "output/views/color.h"
#include "output/views/large_frames.h"

/* output/flamegraph/flamegraph_assets.S */
extern const char flamegraph_js[], flamegraph_js_end[];
extern const char flamegraph_css[], flamegraph_css_end[];

struct graph {
	struct large_frames large; /* the frames in the file */
	struct label_table functions, lines;
	struct flamegraph_header header;
	struct profile *shown, *shown_before; /* merged for the static picture */
	struct flamegraph_static *picture;
};

struct profile_options flamegraph_profile_options(enum weight_kind weight)
{
	return (struct profile_options){
		.weight = weight,
		.by_line = true,
		.by_compiled = true,
		.by_certainty = true,
	};
}

static int add_labels(struct graph *graph, const struct frame_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct profile_node *node = list->nodes[i];

		if (label_table_add(&graph->functions, node->function, node->line) < 0 ||
		    label_table_add(&graph->lines, node->function, node->line) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* -- The data for the script -- */

static void write_part(FILE *out, const char *begin, size_t length)
{
	char part[LABEL_TEXT_SIZE];

	snprintf(part, sizeof(part), "%.*s", (int)length, begin);
	escape_write(ESCAPE_XML, part, out);
}

static void write_label(FILE *out, const struct label *label)
{
	const char *name_end = label->text + label->name_length, *place = label->text + label->place;

	write_part(out, label->text, label->name_length);
	if (*name_end) {
		fputc('\t', out);
		if (place > name_end + 1) {
			write_part(out, name_end + 1, (size_t)(place - name_end - 1));
			fputc('\t', out);
		}
		escape_write(ESCAPE_XML, place, out);
	}
	fputc('\n', out);
}

static void write_functions(FILE *out, const struct graph *graph)
{
	fputs("<metadata id=\"functions\">", out);
	for (const struct label *label = graph->functions.labels; label; label = label->hh.next) {
		fprintf(out, "%c ", color_letter(color_of_kind(label->key.function)));
		write_label(out, label);
	}
	fputs("</metadata>\n", out);
}

static void write_changed(FILE *out, const struct graph *graph, const struct changed *changed)
{
	fputs("<metadata id=\"changed\">", out);
	for (const struct label *label = graph->functions.labels; label; label = label->hh.next)
		if (changed_has(changed, label->key.function))
			fprintf(out, "%" PRIu32 "\n", label->rank);
	fputs("</metadata>\n", out);
}

static void write_lines(FILE *out, const struct graph *graph)
{
	fputs("<metadata id=\"lines\">", out);
	for (const struct label *label = graph->lines.labels; label; label = label->hh.next) {
		fprintf(out, "%" PRIu32 " ",
			label_table_find(&graph->functions, label->key.function, 0)->rank);
		write_label(out, label);
	}
	fputs("</metadata>\n", out);
}

static unsigned frame_mark(const struct profile_node *node)
{
	static const unsigned marks[CERTAINTY_COUNT] = { [CERTAINTY_NEAREST] = 2, [CERTAINTY_FUNCTION] = 4 };

	return (node->parent && node->compiled) | marks[node->certainty];
}

static void write_frame(FILE *out, const struct graph *graph, const struct frame_list *list, size_t index)
{
	const struct profile_node *node = list->nodes[index];
	const struct label *line = label_table_find(&graph->lines, node->function, node->line);
	const uint64_t fields[] = { frame_mark(node), node->own_samples, list->left_out_ns[index],
				    node->own_ns };
	size_t count = sizeof(fields) / sizeof(fields[0]);

	fprintf(out, "%" PRIu32 " %" PRIu32, node->depth, line->rank);
	while (count > 0 && fields[count - 1] == 0)
		count--;
	/* The loop over the states writes the last field, own_ns, in parts. */
	for (size_t i = 0; i < count && i < 3; i++)
		fprintf(out, " %" PRIu64, fields[i]);
	for (int state = 0; state < VM_STATE_COUNT; state++)
		if (node->own_state_ns[state] > 0)
			fprintf(out, " %c%" PRIu64, color_state_letter((enum vm_state)state),
				node->own_state_ns[state]);
	fputc('\n', out);
}

static void write_frames(FILE *out, const struct graph *graph, const struct frame_list *list, const char *id)
{
	if (!list->profile)
		return;
	fprintf(out, "<metadata id=\"%s\">", id);
	for (size_t i = 0; i < list->count; i++)
		write_frame(out, graph, list, i);
	fputs("</metadata>\n", out);
}

static int write_sources(FILE *out, const struct graph *graph, struct source_reader *source)
{
	const struct function **functions = calloc(HASH_COUNT(graph->functions.labels) + 1,
						   sizeof(const struct function *));
	size_t count = 0;
	int error;

	if (!functions)
		return -ENOMEM;
	for (const struct label *label = graph->functions.labels; label; label = label->hh.next)
		functions[count++] = label->key.function;
	error = source_data_write(out, functions, count, source);
	free(functions);
	return error;
}

/* -- The document -- */

static void write_asset(FILE *out, const char *element, const char *begin, const char *end)
{
	fprintf(out, "<%s><![CDATA[\n", element);
	fwrite(begin, 1, (size_t)(end - begin), out);
	fprintf(out, "]]></%s>\n", element);
}

static int write_svg(FILE *out, const struct graph *graph, const struct flamegraph_options *options)
{
	const enum weight_kind weight = profile_options(graph->shown)->weight;
	const struct flamegraph_header *header = &graph->header;
	size_t height = flamegraph_static_height(graph->picture);
	int error = 0;

	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"ljspy\" width=\"%d\" height=\"%zu\""
		" viewBox=\"0 0 %d %zu\" data-inverted=\"%d\" data-lines=\"%d\""
		" data-heatmap=\"%d\" data-source=\"%d\" data-unit=\"%s\" data-sampled=\"%d\"",
		FLAMEGRAPH_STATIC_WIDTH, height, FLAMEGRAPH_STATIC_WIDTH, height, options->inverted,
		options->by_line, options->heatmap, options->source != NULL, weights[weight].unit,
		weight_is_sampled(weight));
	if (options->begin_unix_ns)
		fprintf(out, " data-begin=\"%" PRIu64 "\"", options->begin_unix_ns);
	fputs(">\n<title>", out);
	escape_write(ESCAPE_XML, header->lines[0], out);
	fputs("</title>\n<desc id=\"about\">", out);
	for (size_t i = 0; i < header->count; i++) {
		escape_write(ESCAPE_XML, header->lines[i], out);
		fputs(i + 1 < header->count ? "\n" : "</desc>\n", out);
	}
	write_asset(out, "style", flamegraph_css, flamegraph_css_end);
	fputs("<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\""
	      " patternTransform=\"rotate(45)\"><rect class=\"paper\" width=\"6\" height=\"6\"/>"
	      "<rect class=\"stripe\" width=\"2\" height=\"6\"/></pattern></defs>\n",
	      out);
	flamegraph_static_write(out, graph->picture);
	write_functions(out, graph);
	write_lines(out, graph);
	write_frames(out, graph, &graph->large.list, "frames");
	write_frames(out, graph, &graph->large.other, "baseline");
	if (options->changed)
		write_changed(out, graph, options->changed);
	if (options->source)
		error = write_sources(out, graph, options->source);
	if (!error && options->samples)
		error = flamegraph_samples_write(out, options->samples, graph->large.list.nodes,
						 graph->large.list.count);
	write_asset(out, "script", flamegraph_js, flamegraph_js_end);
	fputs("</svg>\n", out);
	return error;
}

/* SVG and HTML hold the same picture. HTML also makes small screens use their own width. */
static int write_document(FILE *out, const struct graph *graph, const struct flamegraph_options *options)
{
	int error;

	if (!options->page) {
		fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", out);
		return write_svg(out, graph, options);
	}
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\""
	      " content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; worker-src data:\">\n<title>",
	      out);
	escape_write(ESCAPE_XML, graph->header.lines[0], out);
	fputs("</title>\n</head>\n<body>\n", out);
	error = write_svg(out, graph, options);
	fputs("</body>\n</html>\n", out);
	return error;
}

/* -- Preparation -- */

static int merge_shown(const struct profile *profile, const struct flamegraph_options *options,
		       struct profile **ret_shown)
{
	struct profile *shown;
	int error;

	if (!profile)
		return 0;
	shown = profile_new(&(struct profile_options){
		.weight = profile_options(profile)->weight,
		.by_line = options->by_line,
		.inverted = options->inverted,
	});
	error = shown ? profile_add_profile(shown, profile) : -ENOMEM;
	if (error) {
		profile_free(shown);
		return error;
	}
	*ret_shown = shown;
	return 0;
}

static void fill_header(struct graph *graph, const struct session *session, const struct figures *figures,
			const struct flamegraph_options *options)
{
	flamegraph_header_fill(&graph->header, session, figures);
	flamegraph_header_add_uncertain(&graph->header, options->uncertain, false);
	if (options->baseline) {
		flamegraph_header_add_baseline(&graph->header, session, options->baseline_name,
					       profile_root(options->baseline)->total_samples);
		flamegraph_header_add_uncertain(&graph->header, options->baseline_uncertain, true);
	}
	if (graph->large.list.left_out > 0)
		flamegraph_header_add_left_out(&graph->header, graph->large.list.left_out,
					       graph->large.share);
}

static int graph_fill(struct graph *graph, const struct profile *profile,
		      const struct flamegraph_options *options)
{
	double share = fmax(options->min_percent / 100, 1.0 / FLAMEGRAPH_SMALLEST_PART);
	int error = large_frames_find(profile, options->baseline, share, FLAMEGRAPH_FRAMES_MAX,
				      &graph->large);

	if (error)
		return error;
	graph->lines.by_line = true;
	if (add_labels(graph, &graph->large.list) < 0 || add_labels(graph, &graph->large.other) < 0)
		return -ENOMEM;
	label_table_sort(&graph->functions);
	label_table_sort(&graph->lines);
	error = merge_shown(profile, options, &graph->shown);
	return error ? error : merge_shown(options->baseline, options, &graph->shown_before);
}

static void graph_free(struct graph *graph)
{
	flamegraph_static_free(graph->picture);
	profile_free(graph->shown);
	profile_free(graph->shown_before);
	large_frames_clear(&graph->large);
	label_table_clear(&graph->functions);
	label_table_clear(&graph->lines);
	free(graph);
}

int flamegraph_write(FILE *out, const struct profile *profile, const struct session *session,
		     const struct figures *figures, const struct flamegraph_options *options)
{
	struct graph *graph = calloc(1, sizeof(*graph));
	int error;

	if (!graph)
		return -ENOMEM;
	error = graph_fill(graph, profile, options);
	if (error == 0) {
		fill_header(graph, session, figures, options);
		error = flamegraph_static_new(
			graph->shown, graph->shown_before, options->changed, &graph->header,
			options->samples ? flamegraph_samples_cpu(options->samples) : NULL, &graph->picture);
	}
	if (error == 0) {
		error = write_document(out, graph, options);
		if (ferror(out))
			error = -EIO;
	}
	graph_free(graph);
	return error;
}

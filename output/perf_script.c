#include "output/perf_script.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "output/escape.h"
#include "output/frame_text.h"
#include "output/names.h"

/*
 * Write a safe text as readers want it. What is in round brackets they take
 * for arguments or a module; the head of an arrow begins what was inlined; and
 * text that is not ASCII ends inferno, which may cut it within a character.
 * A word has no spaces.
 */
static void write_symbol(FILE *out, const char *text, bool word)
{
	for (const char *at = text; *at; at++) {
		if ((unsigned char)*at >= 0x80 || (*at == '>' && at > text && at[-1] == '-'))
			fprintf(out, "\\x%02x", (unsigned char)*at);
		else
			fputc(*at == '(' ? '[' : *at == ')' ? ']' : *at == ' ' && word ? '_' : *at, out);
	}
}

static void write_module(FILE *out, const struct sample *sample, const struct frame *frame)
{
	const struct function *function = frame->function;
	char text[FRAME_TEXT_SIZE];

	if (function->kind == FRAME_LUA && frame->compiled) {
		fprintf(out, "/tmp/perf-%d.map", (int)sample->pid);
	} else if (function->module) {
		escape_text(ESCAPE_FOLDED, function->module, text, sizeof(text));
		write_symbol(out, text, true);
	} else {
		write_symbol(out, frame_text_file(function, text) ? text : frame_kind_name(function->kind), true);
	}
}

static void write_frame(FILE *out, const struct sample *sample, const struct frame *frame,
			bool by_line)
{
	char text[FRAME_TEXT_SIZE];

	fprintf(out, "\t%16x ", 0);
	write_symbol(out, frame_text(frame->function, frame->line, by_line, text), false);
	fputs(" (", out);
	write_module(out, sample, frame);
	fputs(")\n", out);
}

static void write_command(FILE *out, const char *name)
{
	char text[FRAME_TEXT_SIZE];

	escape_text(ESCAPE_FOLDED, name && *name ? name : "?", text, sizeof(text));
	/* A line that begins so is a comment. */
	if (*text == '#')
		*text = '_';
	write_symbol(out, text, true);
}

static void write_sample(FILE *out, const struct sample *sample, const struct view *view)
{
	uint64_t weight_ns = profile_weight_ns(view->weight, sample);

	/* Readers take no weight for one. */
	if (weight_ns == 0)
		return;
	write_command(out, sample->thread_name);
	fprintf(out, "  %d/%d  %" PRIu64 ".%09" PRIu64 ": %10" PRIu64 " %s-clock:\n",
		(int)sample->pid, (int)sample->tid, sample->time_ns / 1000000000,
		sample->time_ns % 1000000000, weight_ns, profile_weight_name(view->weight));
	for (size_t i = 0; i < sample->frame_count; i++)
		write_frame(out, sample, &sample->frames[i], view->by_line);
	fputc('\n', out);
}

struct writer {
	FILE *out;
	const struct view *view;
};

static int take_sample(void *context, const struct sample *sample)
{
	const struct writer *writer = context;

	write_sample(writer->out, sample, writer->view);
	return 0;
}

int perf_script_write(FILE *out, struct sample_source *source, const struct session *session,
		      const struct figures *figures, const struct view *view)
{
	struct writer writer = { .out = out, .view = view };
	int error = sample_source_each(source, take_sample, &writer);

	(void)session;
	(void)figures;
	return error ? error : ferror(out) ? -EIO : 0;
}

/* SPDX-License-Identifier: MIT */
#include "output/reports/request_life.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "memory/array.h"
#include "output/labels/escape.h"
#include "output/labels/frame_label.h"
#include "output/labels/json_values.h"
#include "output/labels/names.h"
#include "unwind/nginx/route.h"

enum {
	SCHEMA_VERSION = 1,
	PHASE_SIZE = 64,
	OPEN_STEPS = 64, /* steps beside each other that a look can continue */
	NS_PER_SECOND = 1000 * 1000 * 1000,
};

static const double ns_per_ms = 1e6;

/*---- What a sample tells ----*/

static bool is_wait_of_request(const struct sample *sample)
{
	const struct function *top = sample->frame_count ? sample->frames[0].function : NULL;

	return sample->thread_state == THREAD_PARKED && top && top->kind == FRAME_NATIVE && top->name &&
	       top->module && strcmp(top->module, "nginx") == 0;
}

/* The caller frees it; NULL when memory is short. */
static char *what_of(const struct sample *sample)
{
	const char *state = thread_state_name(sample->thread_state);
	char *what;

	if (sample->thread_state == THREAD_RUNNING)
		return strdup("CPU");
	if (is_wait_of_request(sample))
		return strdup(sample->frames[0].function->name);
	if (!sample->wait || !sample->wait->name)
		return strdup(state);
	return asprintf(&what, "%s: %s", state, sample->wait->name) < 0 ? NULL : what;
}

/* "ngx.sleep [ngx_http_lua_module.so] < main chunk app.lua:3": the innermost frame, and the first of Lua. */
static char *frames_of(const struct sample *sample)
{
	size_t first = is_wait_of_request(sample) ? 1 : 0, lua = first;
	char inner[FRAME_LABEL_SIZE], outer[FRAME_LABEL_SIZE], *frames;

	if (first >= sample->frame_count)
		return strdup("");
	frame_label(sample->frames[first].function, sample->frames[first].line, true, inner);
	while (lua < sample->frame_count && sample->frames[lua].function->kind != FRAME_LUA)
		lua++;
	if (lua == first || lua == sample->frame_count)
		return strdup(inner);
	frame_label(sample->frames[lua].function, sample->frames[lua].line, true, outer);
	return asprintf(&frames, "%s < %s", inner, outer) < 0 ? NULL : frames;
}

/*---- Steps ----*/

static void clear_step(struct life_step *step)
{
	free(step->phase);
	free(step->what);
	free(step->frames);
}

/* Takes over the texts of the step. 0 or -ENOMEM. */
static int add_step(struct request_life *life, struct life_step *step)
{
	struct life_step *steps;

	life->is_cut |= life->count == REQUEST_LIFE_STEPS_MAX;
	steps = life->is_cut ? NULL : array_grow(life->steps, &life->room, life->count + 1, sizeof(*steps));
	if (!steps) {
		clear_step(step);
		return life->is_cut ? 0 : -ENOMEM;
	}
	life->steps = steps;
	steps[life->count++] = *step;
	return 0;
}

static bool is_same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool is_same_step(const struct life_step *a, const struct life_step *b)
{
	return a->looks && is_same_text(a->phase, b->phase) && strcmp(a->what, b->what) == 0 &&
	       strcmp(a->frames, b->frames) == 0;
}

/* Continue a step of the look before, or of this one. False if there is none. */
static bool continue_step(struct request_life *life, const struct life_step *step)
{
	for (size_t i = life->count; i-- > 0 && i + OPEN_STEPS >= life->count;) {
		struct life_step *open = &life->steps[i];

		if (!is_same_step(open, step))
			continue;
		if (open->end_ns == step->end_ns) {
			open->now++;
		} else if (open->end_ns == step->start_ns) {
			open->end_ns = step->end_ns;
			open->looks++;
			open->now = 1;
		} else {
			continue;
		}
		if (open->now > open->at_once)
			open->at_once = open->now;
		return true;
	}
	return false;
}

/*---- Looks ----*/

struct reading {
	struct request_life *life;
	enum weight_kind clock;
	uint64_t period_ns; /* between looks; 0 if unknown */
	/* The look that is read, and the one before it. */
	uint64_t at_ns, before_ns, weight_ns;
	struct life_step *steps; /* owned */
	size_t count, room;
};

static bool is_of(const struct request_life *life, const struct sample *sample)
{
	return sample->request.route && sample->request.connection == life->connection &&
	       sample->request.number == life->number;
}

/* A later text takes the place of none, and the client's request that of a subrequest. */
static int keep_text(char **kept, const char *text, bool replace)
{
	char *copy;

	if (!text || (*kept && (!replace || strcmp(*kept, text) == 0)))
		return 0;
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	free(*kept);
	*kept = copy;
	return 0;
}

static int keep_request(struct request_life *life, const struct sample_request *request)
{
	bool replace = !request->is_subrequest;

	if (request->status && replace)
		life->status = request->status;
	return keep_text(&life->method, request->method, replace) ||
			       keep_text(&life->host, request->host, replace) ||
			       keep_text(&life->route, request->route, replace)
		       ? -ENOMEM
		       : 0;
}

/* Where the time begins that the look stands for. */
static uint64_t start_of_look(const struct reading *reading)
{
	uint64_t weight_ns = reading->weight_ns, start_ns;

	if (reading->period_ns && weight_ns > 2 * reading->period_ns)
		weight_ns = 2 * reading->period_ns;
	start_ns = reading->at_ns > weight_ns ? reading->at_ns - weight_ns : 0;
	/* Ticks come a little early or late. */
	return start_ns > reading->before_ns + reading->period_ns / 2 ? start_ns : reading->before_ns;
}

/* All samples of the look are read. 0 or -ENOMEM. */
static int end_look(struct reading *reading)
{
	struct request_life *life = reading->life;
	uint64_t start_ns = start_of_look(reading);
	struct life_step gap = { .start_ns = reading->before_ns, .end_ns = start_ns };
	int error = 0;

	if (reading->count && gap.end_ns > gap.start_ns)
		error = add_step(life, &gap);
	for (size_t i = 0; i < reading->count; i++) {
		struct life_step *step = &reading->steps[i];

		step->start_ns = start_ns;
		step->end_ns = reading->at_ns;
		if (error || continue_step(life, step))
			clear_step(step);
		else
			error = add_step(life, step);
	}
	reading->count = 0;
	reading->weight_ns = 0;
	reading->before_ns = reading->at_ns;
	return error;
}

/* 0 or -ENOMEM. */
static int note_step(struct reading *reading, const struct sample *sample)
{
	struct life_step *steps = array_grow(reading->steps, &reading->room, reading->count + 1,
					     sizeof(*steps));
	struct life_step step = {
		.looks = 1,
		.at_once = 1,
		.now = 1,
		.phase = sample->phase ? strdup(sample->phase) : NULL,
		.what = what_of(sample),
		.frames = frames_of(sample),
	};
	uint64_t weight_ns;

	if (steps)
		reading->steps = steps;
	if (!steps || !step.what || !step.frames || (sample->phase && !step.phase)) {
		clear_step(&step);
		return -ENOMEM;
	}
	reading->steps[reading->count++] = step;
	weight_ns = reading->clock == WEIGHT_CPU_TIME ? sample->cpu_ns : sample->wall_ns;
	/* Light threads that wait share the time; coroutines of --coroutines have all of it each. */
	if (is_wait_of_request(sample))
		reading->weight_ns += weight_ns;
	else if (weight_ns > reading->weight_ns)
		reading->weight_ns = weight_ns;
	return 0;
}

static int take_sample(void *context, const struct sample *sample)
{
	struct reading *reading = context;
	struct request_life *life = reading->life;
	uint64_t at_ns;

	if (!is_of(life, sample))
		return 0;
	if (life->pid == 0) {
		life->pid = sample->pid;
		life->begin_ns = sample->time_ns > sample->request.age_ns
					 ? sample->time_ns - sample->request.age_ns
					 : 0;
	}
	if (sample->pid != life->pid) {
		life->is_ambiguous = true;
		return 0;
	}
	at_ns = sample->time_ns > life->begin_ns ? sample->time_ns - life->begin_ns : 0;
	if (at_ns != reading->at_ns && reading->count && end_look(reading))
		return -ENOMEM;
	reading->at_ns = life->last_ns = at_ns;
	life->samples++;
	if (keep_request(life, &sample->request))
		return -ENOMEM;
	return note_step(reading, sample);
}

int request_life_read(struct sample_source *source, const struct session *session,
		      const struct figures *figures, struct request_life *life)
{
	struct reading reading = { .life = life, .clock = session->clock };
	int error;

	if (figures->rate_asked_hz > 0)
		reading.period_ns = (uint64_t)(NS_PER_SECOND / figures->rate_asked_hz);
	error = sample_source_each(source, take_sample, &reading);
	if (!error)
		error = end_look(&reading);
	while (reading.count > 0)
		clear_step(&reading.steps[--reading.count]);
	free(reading.steps);
	life->recording_ends = life->begin_ns + life->last_ns + 2 * reading.period_ns >=
			       session->start_ns + session->duration_ns;
	return error;
}

void request_life_clear(struct request_life *life)
{
	for (size_t i = 0; i < life->count; i++)
		clear_step(&life->steps[i]);
	free(life->steps);
	free(life->method);
	free(life->host);
	free(life->route);
	*life = (struct request_life){ 0 };
}

/*---- Text ----*/

static double since_recording_ms(const struct request_life *life, const struct session *session)
{
	return ((double)life->begin_ns - (double)session->start_ns) / ns_per_ms;
}

static void print_head(FILE *out, const struct request_life *life, const struct session *session)
{
	double begin_ms = since_recording_ms(life, session);

	fprintf(out, "Request %" PRIu64 ".%" PRIu64 " of process %d: ", life->connection, life->number,
		(int)life->pid);
	escape_write(ESCAPE_PLAIN, life->method ? life->method : "-", out);
	fputc(' ', out);
	escape_write(ESCAPE_PLAIN, life->host ? life->host : "-", out);
	if (life->route) {
		fputs(route_separator(life->route), out);
		escape_write(ESCAPE_PLAIN, life->route, out);
	}
	if (life->status)
		fprintf(out, ", status %u", life->status);
	fprintf(out, "\nIt began %.3f s %s. %" PRIu64 " sample%s saw it, the last one after %.1f ms;\n",
		(begin_ms < 0 ? -begin_ms : begin_ms) / 1e3,
		begin_ms < 0 ? "before the recording" : "after the recording's beginning", life->samples,
		life->samples == 1 ? "" : "s", (double)life->last_ns / ns_per_ms);
	fputs(life->recording_ends ? "the recording ends there, and the request may have gone on.\n"
				   : "no later sample of the recording has it.\n",
	      out);
}

static void print_step(FILE *out, const struct life_step *step)
{
	char phase[PHASE_SIZE];

	fprintf(out, "%12.1f  %10.1f  ", (double)step->start_ns / ns_per_ms,
		(double)(step->end_ns - step->start_ns) / ns_per_ms);
	if (step->looks == 0) {
		fprintf(out, "%6s  %-13s  not seen: no look fell into this time\n", "-", "-");
		return;
	}
	escape_text(ESCAPE_PLAIN, step->phase ? step->phase : "-", phase, sizeof(phase));
	fprintf(out, "%6" PRIu64 "  %-13s  ", step->looks, phase);
	escape_write(ESCAPE_PLAIN, step->what, out);
	if (step->at_once > 1)
		fprintf(out, " (%u at once)", step->at_once);
	if (*step->frames) {
		fputs("  ", out);
		escape_write(ESCAPE_PLAIN, step->frames, out);
	}
	fputc('\n', out);
}

int request_life_print(FILE *out, const struct request_life *life, const struct session *session)
{
	print_head(out, life, session);
	fputs("\n    start ms          ms   looks  phase          what it did\n", out);
	for (size_t i = 0; i < life->count; i++)
		print_step(out, &life->steps[i]);
	if (life->is_cut)
		fputs("There is more, which is left out.\n", out);
	return ferror(out) ? -EIO : 0;
}

/*---- JSON ----*/

static json_t *step_json(const struct life_step *step)
{
	return json_pack("{s:f, s:f, s:I, s:I, s:o, s:o, s:o}", "start_ms",
			 (double)step->start_ns / ns_per_ms, "duration_ms",
			 (double)(step->end_ns - step->start_ns) / ns_per_ms, "looks",
			 (json_int_t)step->looks, "at_once", (json_int_t)step->at_once, "phase",
			 json_value_text(step->phase), "what", json_value_text(step->what), "frames",
			 json_value_text(step->frames));
}

static json_t *life_json(const struct request_life *life, const struct session *session, json_t *steps)
{
	return json_pack("{s:i, s:{s:i, s:I, s:I, s:o, s:o, s:o, s:o}, s:f, s:f, s:I, s:b, s:b, s:O}",
			 "version", SCHEMA_VERSION, "request", "pid", (int)life->pid, "connection",
			 (json_int_t)life->connection, "number", (json_int_t)life->number, "method",
			 json_value_text(life->method), "host", json_value_text(life->host), "route",
			 json_value_text(life->route), "status", json_value_number(life->status), "begin_ms",
			 since_recording_ms(life, session), "last_seen_ms", (double)life->last_ns / ns_per_ms,
			 "looks", (json_int_t)life->samples, "recording_ends", life->recording_ends, "cut",
			 life->is_cut, "steps", steps);
}

int request_life_write_json(FILE *out, const struct request_life *life, const struct session *session)
{
	json_t *steps = json_array(), *document;
	int error;

	for (size_t i = 0; steps && i < life->count; i++)
		steps = json_value_append(steps, step_json(&life->steps[i]));
	document = steps ? life_json(life, session, steps) : NULL;
	json_decref(steps);
	if (!document)
		return -ENOMEM;
	error = json_dumpf(document, out, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) || fputc('\n', out) == EOF
			? -EIO
			: 0;
	json_decref(document);
	return error;
}

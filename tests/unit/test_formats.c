/* SPDX-License-Identifier: MIT */
/* Every format that is text, or packed text, of the same made-up samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "output/formats/format.h"
#include "output/formats/pprof.pb-c.h"
#include "output/source/source_report.h"
#include "output/source/source_text.h"
#include "tests/unit/kept_text.h"
#include "tests/unit/made_up_source.h"

#define MS UINT64_C(1000000)

enum { BEGIN_MS = 5000, PLAIN_BYTES_MAX = 1 << 16 };

static const struct function chunk = { .kind = FRAME_LUA, .name = "main chunk", .file = "@test.lua" };
static const struct function heavy = {
	.kind = FRAME_LUA, .name = "he;av\"y\n", .file = "@/srv/app/test.lua", .firstline = 5, .root = 10
};
static const struct function unnamed = { .kind = FRAME_LUA, .file = "@test.lua", .firstline = 12 };
static const struct function gsub = { .kind = FRAME_BUILTIN, .name = "string.gsub" };
static const struct function root = { .kind = FRAME_C_FUNCTION, .name = "sqrt", .module = "libm.so.6" };
static const struct function memory = { .kind = FRAME_NATIVE, .name = "malloc", .module = "libc.so.6" };
static const struct function handler = { .kind = FRAME_VM, .name = "lj_BC_ADDVV" };
static const struct function gone = { .kind = FRAME_LOST, .name = "frame chain broken" };
static const struct function waits = { .kind = FRAME_NATIVE, .name = "read /etc/hosts" };

static const struct function new_table = { .kind = FRAME_ALLOCATED, .name = "table" };
static const struct function new_string = { .kind = FRAME_ALLOCATED, .name = "string" };

static const struct frame stacks[][4] = {
	{ { &heavy, 7, CERTAINTY_EXACT, false }, { &chunk, 30, CERTAINTY_EXACT, false } },
	{ { &heavy, 8, CERTAINTY_NEAREST, true },
	  { &heavy, 7, CERTAINTY_NEAREST, true },
	  { &chunk, 31, CERTAINTY_EXACT, false } },
	{ { &memory, 0, CERTAINTY_EXACT, false },
	  { &gsub, 0, CERTAINTY_EXACT, false },
	  { &unnamed, 13, CERTAINTY_EXACT, false },
	  { &chunk, 33, CERTAINTY_EXACT, false } },
	{ { &root, 0, CERTAINTY_EXACT, false }, { &unnamed, 0, CERTAINTY_FUNCTION, false } },
	{ { &handler, 0, CERTAINTY_EXACT, false } },
	{ { &gone, 0, CERTAINTY_FUNCTION, false }, { &chunk, 34, CERTAINTY_EXACT, false } },
};
static const size_t depths[] = { 2, 3, 4, 2, 1, 2 };

enum { SAMPLES = 12 };

static struct sample samples[SAMPLES];
static const struct session session = {
	.pid = 42,
	.target = "lua\njit test.lua",
	.command_line = "ljspy record",
	.start_unix_ns = UINT64_C(1700000000123000000),
	.start_ns = BEGIN_MS * MS,
	.duration_ns = 200 * MS,
	.roots = "/srv/app/;",
	.clock = WEIGHT_WALL_TIME,
};
static struct figures figures;

/* Of three threads of two processes, in time order. */
static int make_samples(void **state)
{
	(void)state;
	figures = (struct figures){ .missed_ticks = 3,
				    .duration_ns = 200 * MS,
				    .self_cpu_ns = 2 * MS,
				    .target_cpu_ns = 115 * MS,
				    .rate_asked_hz = 99,
				    .rate_reached_hz = 60 };
	for (size_t i = 0; i < SAMPLES; i++) {
		struct sample *sample = &samples[i];

		*sample = (struct sample){
			.time_ns = (BEGIN_MS + 10 + 15 * i) * MS,
			.pid = i % 4 == 3 ? 50 : 42,
			.tid = i % 4 == 3 ? 50 : 42 + (i % 4 == 2),
			.process_name = "ngi;nx",
			.thread_name = i % 4 == 2 ? "wor\nker" : NULL,
			.phase = i % 3 ? "content" : NULL,
			.vm_state = (enum vm_state)(i % VM_STATE_COUNT),
			.cpu_ns = (5 + i) * MS,
			.wall_ns = (7 + 2 * i) * MS,
			.frames = stacks[i % 6],
			.frame_count = depths[i % 6],
			.gc = { .phase = i % 5 == 1 ? GC_PHASE_SWEEP : GC_PHASE_NONE,
				.has_marked = i == 6,
				.heap_bytes = i < 9 ? (1 + i) << 20 : 0 },
		};
		if (i == 5 || i == 9) {
			sample->thread_state = THREAD_BLOCKED;
			sample->wait = &waits;
			sample->cpu_ns = 0;
		}
		if (i % 4 < 2)
			sample->request = (struct sample_request){
				.route = i % 4 ? "/users/*" : "/b",
				.method = "GET",
				.host = "example.com",
				.status = i == 4 ? 404 : 0,
				.connection = 7 + i / 4,
				.number = 1 + i % 4,
				.age_ns = i * MS,
			};
		figures_add_sample(&figures, sample);
	}
	return 0;
}

/*---- Allocations ----*/

static struct frame unseen = { .certainty = CERTAINTY_FUNCTION };
static struct sample allocations[] = {
	{ .alloc_bytes = 4000000,
	  .alloc_objects = 50000,
	  .frames = (const struct frame[]){ { &new_table, 0, CERTAINTY_FUNCTION, false },
					    { &heavy, 7, CERTAINTY_EXACT, false },
					    { &chunk, 30, CERTAINTY_EXACT, false } },
	  .frame_count = 3,
	  .gc = { .heap_bytes = 3000000 } },
	{ .alloc_bytes = 1500000,
	  .frames = (const struct frame[]){ { &new_table, 0, CERTAINTY_FUNCTION, false },
					    { &chunk, 31, CERTAINTY_EXACT, false } },
	  .frame_count = 2,
	  .gc = { .heap_bytes = 4000000, .has_marked = true } },
	{ .alloc_bytes = 4000000,
	  .alloc_objects = 30000,
	  .frames = (const struct frame[]){ { &new_string, 0, CERTAINTY_FUNCTION, false },
					    { &gsub, 0, CERTAINTY_EXACT, false },
					    { &heavy, 8, CERTAINTY_NEAREST, true },
					    { &heavy, 7, CERTAINTY_EXACT, false },
					    { &chunk, 30, CERTAINTY_EXACT, false } },
	  .frame_count = 5 },
	{ .alloc_bytes = 500000, .frames = &unseen, .frame_count = 1 },
};
enum { ALLOCATIONS = sizeof(allocations) / sizeof(allocations[0]) };

static struct session alloc_session;
static struct figures alloc_figures;

static void make_allocations(const struct view *view)
{
	unseen.function = lost_function(LOST_ALLOCATION_UNSEEN);
	alloc_session = session;
	alloc_session.clock = view->weight;
	alloc_figures = (struct figures){ .duration_ns = session.duration_ns,
					  .target_cpu_ns = 115 * MS,
					  .lost_cpu_unknown = true,
					  .alloc_all = 9000000,
					  .alloc_large = 5500000,
					  .rate_asked_hz = 499 };
	for (size_t i = 0; i < ALLOCATIONS; i++) {
		allocations[i].time_ns = (BEGIN_MS + 10 + 40 * i) * MS;
		allocations[i].pid = allocations[i].tid = 42;
		allocations[i].vm_state = i == 3 ? VM_STATE_UNKNOWN : VM_STATE_INTERPRETED;
		figures_add_sample(&alloc_figures, &allocations[i]);
	}
}

static bool is_of_allocations(const struct view *view)
{
	return weights[view->weight].clock == WEIGHT_ALLOC_BYTES;
}

/*---- Texts ----*/

static void write_format(FILE *out, const char *name, const struct view *view)
{
	const bool is_alloc = is_of_allocations(view);
	struct made_up_source source = is_alloc ? made_up_source(allocations, ALLOCATIONS)
						: made_up_source(samples, SAMPLES);

	if (is_alloc)
		make_allocations(view);
	assert_int_equal(format_by_name(name)->write(out, &source.source,
						     is_alloc ? &alloc_session : &session,
						     is_alloc ? &alloc_figures : &figures, view),
			 0);
}

/* What is packed by gzip. */
static size_t unpack(const char *packed, size_t length, unsigned char *ret_plain)
{
	z_stream stream = { .next_in = (unsigned char *)(uintptr_t)packed, .avail_in = (uInt)length };

	stream.next_out = ret_plain;
	stream.avail_out = PLAIN_BYTES_MAX;
	assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	inflateEnd(&stream);
	return stream.total_out;
}

static void check_format(const char *name, const struct view *view, const char *example)
{
	struct kept_text kept;

	kept_text_begin(&kept);
	write_format(kept.out, name, view);
	kept_text_check(&kept, example);
}

static void texts_are_as_they_were_read(void **state)
{
	static const char *const names[] = { "folded", "text", "speedscope", "callgrind",
					     "perf",   "json", "firefox" };
	const struct view plain = { 0 }, by_line = {
		.by_line = true, .annotate = true, .weight = WEIGHT_WALL_TIME, .min_percent = 5
	};
	char example[64];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(example, sizeof(example), "%s.txt", names[i]);
		check_format(names[i], &plain, example);
		snprintf(example, sizeof(example), "%s-lines.txt", names[i]);
		check_format(names[i], &by_line, example);
	}
	check_format("folded", &(struct view){ .inverted = true }, "folded-inverted.txt");
	check_format("text", &(struct view){ .group = "module" }, "text-groups.txt");
}

/* Looks at requests of two routes, each at its age: what a route waits for, how long, and the slowest. */
static void waits_of_requests_are_told_by_route(void **state)
{
	static const struct function upstream = { .kind = FRAME_NATIVE,
						  .name = "upstream first byte: 127.0.0.1:80",
						  .module = "nginx" };
	static const struct function sleeps = { .kind = FRAME_NATIVE, .name = "sleep", .module = "nginx" };
	static const struct frame waiting[] = { { .function = &upstream }, { .function = &sleeps } };
	enum { LOOKS = 40, GAP_MS = 5 };
	static struct sample looks[LOOKS];
	struct made_up_source source = made_up_source(looks, LOOKS);
	struct session of_requests = session;
	struct kept_text kept;

	(void)state;
	of_requests.duration_ns = LOOKS * GAP_MS * MS;
	for (size_t i = 0; i < LOOKS; i++) {
		const bool slow = i >= 10;

		looks[i] = (struct sample){
			.time_ns = (BEGIN_MS + GAP_MS * (i + 1)) * MS,
			.pid = slow ? 50 : 42,
			.tid = slow ? 50 : 42,
			.thread_state = i % 8 == 7 ? THREAD_RUNNING : THREAD_PARKED,
			.wall_ns = GAP_MS * MS,
			.request = { .route = slow ? "/slow\n" : "/users/*",
				     .connection = 7,
				     .number = slow ? 9 : 1 + i / 2,
				     .age_ns = (slow ? GAP_MS * (i - 9) : GAP_MS * (i % 2) + 1) * MS },
			.frames = &waiting[i % 3 == 0],
			.frame_count = 1,
		};
	}
	kept_text_begin(&kept);
	assert_int_equal(format_by_name("text")->write(kept.out, &source.source, &of_requests,
						       &(struct figures){ 0 },
						       &(struct view){ .weight = WEIGHT_WALL_TIME }),
			 0);
	/* Buckets are of estimates, and ages by a clock that may be behind: neither is a lower bound. */
	fflush(kept.out);
	assert_non_null(strstr(kept.text, "requests  from (about)"));
	assert_null(strstr(kept.text, "at least"));
	kept_text_check(&kept, "text-waits.txt");
}

static void allocations_are_bytes_and_objects(void **state)
{
	static const char *const names[] = { "folded", "text", "speedscope", "callgrind",
					     "perf",   "json", "firefox" };
	const struct view bytes = { .weight = WEIGHT_ALLOC_BYTES, .by_line = true };
	char example[64];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(example, sizeof(example), "%s-alloc.txt", names[i]);
		check_format(names[i], &bytes, example);
	}
	check_format("text", &(struct view){ .weight = WEIGHT_ALLOC_OBJECTS }, "text-alloc-objects.txt");
}

/*---- Pictures ----*/

/* Without what the browser runs, and without its style: these are files of their own. */
static void drop_elements(char *text, const char *name)
{
	char opening[16], closing[16], *at = text, *end;

	snprintf(opening, sizeof(opening), "<%s", name);
	snprintf(closing, sizeof(closing), "</%s>", name);
	while ((at = strstr(at, opening)) && (end = strstr(at, closing))) {
		end += strlen(closing);
		memmove(at, end, strlen(end) + 1);
	}
}

static void check_picture(const char *name, const struct view *view, const char *example)
{
	struct kept_text whole, kept;

	kept_text_begin(&whole);
	write_format(whole.out, name, view);
	fclose(whole.out);
	drop_elements(whole.text, "script");
	drop_elements(whole.text, "style");
	kept_text_begin(&kept);
	fputs(whole.text, kept.out);
	free(whole.text);
	kept_text_check(&kept, example);
}

static void pictures_are_as_they_were_read(void **state)
{
	(void)state;
	check_picture("svg", &(struct view){ 0 }, "svg.txt");
	check_picture(
		"svg",
		&(struct view){
			.by_line = true, .inverted = true, .min_percent = 10, .weight = WEIGHT_WALL_TIME },
		"svg-inverted.txt");
	check_picture("svg", &(struct view){ .weight = WEIGHT_ALLOC_BYTES }, "svg-alloc.txt");
	check_picture("html", &(struct view){ .heatmap = true, .span = { 20 * MS, 90 * MS } },
		      "html-heatmap.txt");
}

static void pictures_show_differences(void **state)
{
	struct sample after[SAMPLES];
	struct made_up_source before_source = made_up_source(samples, SAMPLES);
	struct made_up_source after_source = made_up_source(after, SAMPLES);
	const struct side sides[] = { { "before.ljspy", &before_source.source, &session, &figures },
				      { "after.ljspy", &after_source.source, &session, &figures } };
	struct kept_text whole, kept;

	(void)state;
	memcpy(after, samples, sizeof(after));
	for (size_t i = 0; i < SAMPLES; i++)
		after[i].cpu_ns *= i % 6 == 0 ? 9 : 1;
	kept_text_begin(&whole);
	assert_int_equal(format_by_name("svg")->compare(whole.out, &sides[0], &sides[1], &(struct view){ 0 }),
			 0);
	fclose(whole.out);
	drop_elements(whole.text, "script");
	drop_elements(whole.text, "style");
	kept_text_begin(&kept);
	fputs(whole.text, kept.out);
	free(whole.text);
	kept_text_check(&kept, "svg-difference.txt");
}

/*---- pprof ----*/

static const char *text(const Pprof__Profile *profile, int64_t index)
{
	assert_in_range(index, 0, profile->n_string_table - 1);
	return profile->string_table[index];
}

static void print_pprof_sample(FILE *out, const Pprof__Profile *profile, const Pprof__Sample *sample)
{
	for (size_t i = 0; i < sample->n_location_id; i++) {
		const Pprof__Location *location = profile->location[sample->location_id[i] - 1];

		assert_int_equal(location->id, sample->location_id[i]);
		for (size_t j = 0; j < location->n_line; j++) {
			const Pprof__Function *function =
				profile->function[location->line[j]->function_id - 1];

			fprintf(out, "%s%s %s:%lld (%lld)", i ? " < " : "", text(profile, function->name),
				text(profile, function->filename), (long long)location->line[j]->line,
				(long long)function->start_line);
		}
		if (location->mapping_id)
			fprintf(out, " in %s",
				text(profile, profile->mapping[location->mapping_id - 1]->filename));
	}
	for (size_t i = 0; i < sample->n_value; i++)
		fprintf(out, " %lld", (long long)sample->value[i]);
	for (size_t i = 0; i < sample->n_label; i++)
		fprintf(out, " %s=%s%lld", text(profile, sample->label[i]->key),
			text(profile, sample->label[i]->str), (long long)sample->label[i]->num);
	putc('\n', out);
}

static void check_pprof(const struct view *view, const char *example)
{
	static unsigned char plain[PLAIN_BYTES_MAX];
	Pprof__Profile *profile;
	struct kept_text packed, kept;

	kept_text_begin(&packed);
	write_format(packed.out, "pprof", view);
	fclose(packed.out);
	profile = pprof__profile__unpack(NULL, unpack(packed.text, packed.length, plain), plain);
	free(packed.text);
	assert_non_null(profile);
	kept_text_begin(&kept);
	for (size_t i = 0; i < profile->n_sample_type; i++)
		fprintf(kept.out, "%s in %s\n", text(profile, profile->sample_type[i]->type),
			text(profile, profile->sample_type[i]->unit));
	fprintf(kept.out, "period %lld %s, from %lld for %lld, shows %s\n", (long long)profile->period,
		profile->period_type ? text(profile, profile->period_type->type) : "-",
		(long long)profile->time_nanos, (long long)profile->duration_nanos,
		text(profile, profile->default_sample_type));
	for (size_t i = 0; i < profile->n_comment; i++)
		fprintf(kept.out, "# %s\n", text(profile, profile->comment[i]));
	for (size_t i = 0; i < profile->n_sample; i++)
		print_pprof_sample(kept.out, profile, profile->sample[i]);
	pprof__profile__free_unpacked(profile, NULL);
	kept_text_check(&kept, example);
}

static void pprof_has_all_that_samples_have(void **state)
{
	(void)state;
	check_pprof(&(struct view){ 0 }, "pprof.txt");
	check_pprof(&(struct view){ .few_labels = true, .weight = WEIGHT_WALL_TIME }, "pprof-few.txt");
	check_pprof(&(struct view){ .weight = WEIGHT_ALLOC_BYTES }, "pprof-alloc.txt");
	check_pprof(&(struct view){ .few_labels = true, .weight = WEIGHT_ALLOC_OBJECTS },
		    "pprof-alloc-objects.txt");
}

/*---- Comparison ----*/

static void two_recordings_are_compared(void **state)
{
	struct sample after[SAMPLES];
	struct made_up_source before_source = made_up_source(samples, SAMPLES);
	struct made_up_source after_source = made_up_source(after, SAMPLES);
	const struct side sides[] = { { "before.ljspy", &before_source.source, &session, &figures },
				      { "after.ljspy", &after_source.source, &session, &figures } };
	struct kept_text kept;

	(void)state;
	memcpy(after, samples, sizeof(after));
	for (size_t i = 0; i < SAMPLES; i++)
		after[i].cpu_ns *= i % 6 == 0 ? 9 : 1;
	kept_text_begin(&kept);
	for (size_t i = 0; i < format_count; i++)
		if (formats[i].compare && !formats[i].picture)
			assert_int_equal(formats[i].compare(kept.out, &sides[0], &sides[1],
							    &(struct view){ .by_line = true }),
					 0);
	kept_text_check(&kept, "comparison.txt");
}

static void allocations_of_two_recordings_are_compared(void **state)
{
	const struct view view = { .weight = WEIGHT_ALLOC_BYTES };
	struct sample after[ALLOCATIONS];
	struct made_up_source before_source = made_up_source(allocations, ALLOCATIONS);
	struct made_up_source after_source = made_up_source(after, ALLOCATIONS);
	const struct side sides[] = {
		{ "before.ljspy", &before_source.source, &alloc_session, &alloc_figures },
		{ "after.ljspy", &after_source.source, &alloc_session, &alloc_figures }
	};
	struct kept_text kept;

	(void)state;
	make_allocations(&view);
	memcpy(after, allocations, sizeof(after));
	after[2].alloc_bytes *= 3;
	kept_text_begin(&kept);
	assert_int_equal(format_by_name("text")->compare(kept.out, &sides[0], &sides[1], &view), 0);
	kept_text_check(&kept, "comparison-alloc.txt");
}

/*---- Sources ----*/

static int read_file(struct source_reader *reader, const char *file, struct source_text *ret_text)
{
	char *bytes = NULL;
	size_t length;
	FILE *out;

	(void)reader;
	*ret_text = (struct source_text){ 0 };
	if (strcmp(file, chunk.file) != 0) {
		snprintf(ret_text->note, sizeof(ret_text->note), "not found");
		return 0;
	}
	out = open_memstream(&bytes, &length);
	for (int i = 1; i < 60; i++)
		fprintf(out, "\tline(%d)\t-- \"\x1b\"\n", i);
	fputc('\0', out);
	fclose(out);
	return source_text_split(bytes, length - 1, ret_text);
}

static void sources_have_the_time_of_their_lines(void **state)
{
	struct made_up_source source = made_up_source(samples, SAMPLES);
	struct source_reader reader = { read_file };
	struct kept_text kept;

	(void)state;
	kept_text_begin(&kept);
	assert_int_equal(source_report_write(kept.out, &source.source, &session, &figures,
					     &(struct view){ .source = &reader }),
			 0);
	made_up_rewind(&source.source);
	assert_int_equal(
		source_report_write(
			kept.out, &source.source, &session, &figures,
			&(struct view){ .source = &reader, .weight = WEIGHT_WALL_TIME, .min_percent = 20 }),
		0);
	kept_text_check(&kept, "source.txt");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_as_they_were_read),
		cmocka_unit_test(waits_of_requests_are_told_by_route),
		cmocka_unit_test(allocations_are_bytes_and_objects),
		cmocka_unit_test(pictures_are_as_they_were_read),
		cmocka_unit_test(pictures_show_differences),
		cmocka_unit_test(pprof_has_all_that_samples_have),
		cmocka_unit_test(two_recordings_are_compared),
		cmocka_unit_test(allocations_of_two_recordings_are_compared),
		cmocka_unit_test(sources_have_the_time_of_their_lines),
	};

	return cmocka_run_group_tests(tests, make_samples, NULL);
}

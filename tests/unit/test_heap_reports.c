/* SPDX-License-Identifier: MIT */
/* What the formats for heaps say of a made-up leak, and that hostile names break none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>
#include <zlib.h>

#include "output/formats/pprof.pb-c.h"
#include "output/heap/heap_builder.h"
#include "output/heap/heap_file.h"
#include "output/heap_reports/heap_diff_text.h"
#include "output/heap_reports/heap_report.h"
#include "output/heap_reports/heap_uncertain.h"
#include "output/heap_views/heap_words.h"
#include "tests/unit/made_up_heap.h"

enum { RANDOM_GRAPHS = 300, ENTRIES = 2000, COROUTINES = 100, CLOSURES = 5000, PLAIN_BYTES_MAX = 1 << 20 };

/* What a format writes; the caller frees it. */
static char *written(const char *name, const struct heap_subject *subjects, size_t count,
		     const struct heap_view *view, size_t *ret_length)
{
	const struct heap_side side = { .subjects = subjects, .count = count };
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_length);

	assert_int_equal(heap_format_by_name(name)->write(out, &side, view), 0);
	assert_int_equal(fclose(out), 0);
	return text;
}

static char *text_of(const char *name, const struct heap_subject *subject)
{
	size_t length;

	return written(name, subject, 1, &(struct heap_view){ 0 }, &length);
}

/* The line of a text that holds all of these words. */
static bool has_line(const char *text, const char *first, const char *second)
{
	for (const char *line = text; line && *line;
	     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		const char *end = strchrnul(line, '\n');
		const char *found = memmem(line, (size_t)(end - line), first, strlen(first));

		if (found && memmem(line, (size_t)(end - line), second, strlen(second)))
			return true;
	}
	return false;
}

static void the_text_names_each_leak(void **state)
{
	struct heap_subject subject = made_up_subject(made_up_leak(ENTRIES, COROUTINES, CLOSURES));
	char *text = text_of("text", &subject);

	(void)state;
	/* 2,000 tables of 64 bytes with a string of 1,000 each. */
	assert_true(
		has_line(text, "2.1 MB", "upvalue \"cache\" of function handler /srv/my/app.lua:5[\"*\"]"));
	assert_true(has_line(text, "registry.timers[*]: function <app.lua:12>", "5,000"));
	assert_true(has_line(text, "150.0 kB", "registry.coroutines[*]: coroutine at wait app.lua:30"));
	assert_true(has_line(text, "240.0 kB", "function <app.lua:12>"));
	assert_true(has_line(text, "150.0 kB", "  wait app.lua:30"));
	assert_true(has_line(text, "29.1 kB", "local \"rows\" of wait app.lua:30"));
	assert_true(has_line(text, "4.1 kB", "string table"));
	assert_true(has_line(text, "gc.total", "all of it found"));
	assert_true(has_line(text, "my/app", "2.1 MB"));
	free(text);
	heap_subject_clear(&subject);
}

static void json_has_the_sums(void **state)
{
	struct heap_subject subject = made_up_subject(made_up_leak(ENTRIES, COROUTINES, CLOSURES));
	char *text = text_of("json", &subject);
	json_t *document = json_loads(text, 0, NULL), *vm, *value;
	uint64_t sum = 0;
	size_t i;

	(void)state;
	assert_non_null(document);
	assert_int_equal(json_integer_value(json_object_get(document, "version")), 1);
	vm = json_array_get(json_object_get(json_array_get(json_object_get(document, "processes"), 0), "vms"),
			    0);
	json_array_foreach(json_object_get(vm, "objects"), i, value)
		sum += (uint64_t)json_integer_value(json_object_get(value, "bytes"));
	assert_int_equal(sum, json_integer_value(json_object_get(vm, "sum")));
	assert_int_equal(sum, json_integer_value(json_object_get(vm, "gc_total")));
	assert_int_equal(json_integer_value(json_object_get(vm, "difference")), 0);
	sum = 0;
	json_array_foreach(json_object_get(vm, "modules"), i, value)
		sum += (uint64_t)json_integer_value(json_object_get(value, "bytes"));
	assert_int_equal(sum, json_integer_value(json_object_get(vm, "sum")));
	value = json_array_get(json_object_get(vm, "paths"), 0);
	assert_string_equal(json_string_value(json_object_get(value, "path")), "package.loaded");
	assert_int_equal(json_integer_value(json_object_get(value, "count")), 1);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(vm, "held"), "times")), 1);
	json_decref(document);
	free(text);
	heap_subject_clear(&subject);
}

/*
 * Of a program's cdata, three are in a list and one in a field; one closure finalizes two of them, and
 * another one the third. Garbage of as many bytes as the argument says lies beside them.
 */
static struct heap_graph made_up_cdata(uint64_t garbage)
{
	enum { REGISTRY = 1, LIST, FINALIZERS, FIRST, SECOND, THIRD, SINGLE, RELEASE, CLOSE, GARBAGE };
	const struct made_up_node nodes[] = {
		{ .kind = HEAP_KIND_TABLE, .bytes = 64 },
		{ .kind = HEAP_KIND_TABLE, .bytes = 64 },
		{ .kind = HEAP_KIND_TABLE, .bytes = 64 },
		{ .kind = HEAP_KIND_CDATA, .bytes = 100, .text = "struct conn", .flags = HEAP_FINALIZER },
		{ .kind = HEAP_KIND_CDATA, .bytes = 100, .text = "struct conn", .flags = HEAP_FINALIZER },
		{ .kind = HEAP_KIND_CDATA, .bytes = 100, .text = "struct conn", .flags = HEAP_FINALIZER },
		{ .kind = HEAP_KIND_CDATA, .bytes = 100, .text = "struct conn" },
		{ .kind = HEAP_KIND_FUNCTION, .bytes = 40, .text = "function <pool.lua:7>" },
		{ .kind = HEAP_KIND_FUNCTION, .bytes = 40, .text = "function <pool.lua:9>" },
		{ .kind = HEAP_KIND_TABLE, .bytes = garbage },
	};
	const struct made_up_edge edges[] = {
		{ HEAP_ROOT, REGISTRY, HEAP_HOLDS_ROOT, "registry", NULL, 0, false },
		{ HEAP_ROOT, FINALIZERS, HEAP_HOLDS_ROOT, "finalizers", NULL, 0, false },
		{ REGISTRY, LIST, HEAP_HOLDS_FIELD, "open", NULL, 0, false },
		{ REGISTRY, SINGLE, HEAP_HOLDS_FIELD, "single", NULL, 0, false },
		{ LIST, FIRST, HEAP_HOLDS_FIELD, "to", NULL, 0, false },
		{ LIST, SECOND, HEAP_HOLDS_FIELD, "to", NULL, 0, false },
		{ LIST, THIRD, HEAP_HOLDS_FIELD, "to", NULL, 0, false },
		{ FINALIZERS, FIRST, HEAP_HOLDS_KEY, NULL, NULL, 0, true },
		{ FINALIZERS, CLOSE, HEAP_HOLDS_VALUE, "cdata", NULL, 0, false },
		{ FINALIZERS, SECOND, HEAP_HOLDS_KEY, NULL, NULL, 0, true },
		{ FINALIZERS, RELEASE, HEAP_HOLDS_VALUE, "cdata", NULL, 0, false },
		{ FINALIZERS, THIRD, HEAP_HOLDS_KEY, NULL, NULL, 0, true },
		{ FINALIZERS, RELEASE, HEAP_HOLDS_VALUE, "cdata", NULL, 0, false },
	};

	return made_up_heap(nodes, sizeof(nodes) / sizeof(nodes[0]), edges, sizeof(edges) / sizeof(edges[0]));
}

static void cdata_have_a_holder_and_a_finalizer(void **state)
{
	struct heap_subject subject = made_up_subject(made_up_cdata(1000));
	char *text = text_of("text", &subject);

	(void)state;
	assert_true(has_line(text, "(3 with a finalizer) struct conn in registry.open.to, ",
			     "finalizer function <pool.lua:7>"));
	free(text);
	heap_subject_clear(&subject);
}

/* The sum of the numbers at the ends of lines. */
static uint64_t sum_of_lines(const char *text)
{
	uint64_t sum = 0;

	for (const char *line = text; *line; line = strchr(line, '\n') + 1)
		sum += strtoull((const char *)memrchr(line, ' ', strcspn(line, "\n")), NULL, 10);
	return sum;
}

static void folded_lines_add_up(void **state)
{
	struct heap_subject subject = made_up_subject(made_up_leak(ENTRIES, COROUTINES, CLOSURES));
	size_t length;

	(void)state;
	for (int measure = 0; measure < HEAP_MEASURE_COUNT; measure++) {
		struct heap_view view = { .measure = (enum heap_measure)measure };
		char *text = written("folded", &subject, 1, &view, &length);

		assert_int_equal(sum_of_lines(text), measure == HEAP_BY_COUNT ? subject.summary.all.count
									      : subject.summary.all.bytes);
		free(text);
	}
	heap_subject_clear(&subject);
}

static void coroutines_have_a_view(void **state)
{
	struct heap_subject subject = made_up_subject(made_up_leak(ENTRIES, COROUTINES, CLOSURES));
	struct heap_view view = { .group = HEAP_GROUP_COROUTINE };
	size_t length;
	char *text = written("folded", &subject, 1, &view, &length);

	(void)state;
	assert_int_equal(strncmp(text, "coroutine at wait app.lua:30;", 29), 0);
	assert_int_equal(sum_of_lines(text), COROUTINES * 1500);
	free(text);
	heap_subject_clear(&subject);
}

static void assert_big_before_small(const struct heap_group *first)
{
	assert_non_null(first);
	assert_non_null(strstr(first->name, "big"));
	assert_non_null(first->hh.next);
	assert_non_null(strstr(((const struct heap_group *)first->hh.next)->name, "small"));
}

/* Whatever comes first in the heap. */
static void what_holds_more_stands_first(void **state)
{
	static const enum heap_kind kinds[] = { HEAP_KIND_THREAD, HEAP_KIND_FUNCTION, HEAP_KIND_CDATA };
	enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };
	struct made_up_node nodes[2 * KINDS];
	struct made_up_edge edges[2 * KINDS];
	struct heap_subject subject;

	(void)state;
	for (uint32_t i = 0; i < 2 * KINDS; i++) {
		nodes[i] = (struct made_up_node){ .kind = kinds[i / 2],
						  .bytes = i % 2 ? 1000 : 100,
						  .text = i % 2 ? "big:1" : "small:1",
						  .module = i % 2 ? "big.lua" : "small.lua" };
		edges[i] = (struct made_up_edge){
			.from = HEAP_ROOT, .to = i + 1, .hold = HEAP_HOLDS_ROOT, .text = "registry"
		};
	}
	subject = made_up_subject(made_up_heap(nodes, 2 * KINDS, edges, 2 * KINDS));
	assert_big_before_small(subject.summary.modules);
	assert_big_before_small(subject.summary.coroutines);
	assert_big_before_small(subject.summary.closures);
	assert_big_before_small(subject.summary.cdata);
	heap_subject_clear(&subject);
}

/* No control characters but line ends, and valid JSON where it is meant to be. */
static void check_clean(const char *name, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		assert_true((unsigned char)text[i] >= 0x20 || text[i] == '\n' || text[i] == '\t');
	assert_null(memmem(text, length, "\u202e", strlen("\u202e")));
	if (strcmp(name, "json") == 0 || strcmp(name, "heapsnapshot") == 0) {
		json_t *document = json_loadb(text, length, 0, NULL);

		assert_non_null(document);
		json_decref(document);
	}
}

static void hostile_heaps_break_no_format(void **state)
{
	static const char *const texts[] = { "text", "json", "svg", "html", "folded", "heapsnapshot" };
	struct heap_view view = { .strings = true };

	(void)state;
	for (unsigned int seed = 0; seed < RANDOM_GRAPHS; seed++) {
		struct heap_subject subjects[] = {
			made_up_subject(made_up_random_heap(seed, 100, 300)),
			made_up_subject(made_up_random_heap(seed + RANDOM_GRAPHS, 100, 300)),
		};
		size_t length;
		char *text;

		view.measure = (enum heap_measure)(seed % HEAP_MEASURE_COUNT);
		view.group = (enum heap_grouping)(seed % HEAP_GROUPING_COUNT);
		for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
			text = written(texts[i], subjects, 1 + seed % 2, &view, &length);
			check_clean(texts[i], text, length);
			free(text);
		}
		free(written("pprof", subjects, 2, &view, &length));
		heap_subject_clear(&subjects[0]);
		heap_subject_clear(&subjects[1]);
	}
}

static const char *string_of(const Pprof__Profile *profile, int64_t index)
{
	assert_in_range(index, 0, profile->n_string_table - 1);
	return profile->string_table[index];
}

/* The profile in what the format writes. */
static Pprof__Profile *pprof_of(const struct heap_subject *subject, const struct heap_view *view)
{
	static unsigned char plain[PLAIN_BYTES_MAX];
	size_t length;
	char *packed = written("pprof", subject, 1, view, &length);
	z_stream stream = { .next_in = (unsigned char *)packed,
			    .avail_in = (uInt)length,
			    .next_out = plain,
			    .avail_out = PLAIN_BYTES_MAX };
	Pprof__Profile *profile;

	assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	inflateEnd(&stream);
	free(packed);
	profile = pprof__profile__unpack(NULL, stream.total_out, plain);
	assert_non_null(profile);
	return profile;
}

static void pprof_has_objects_and_bytes_of_each_path(void **state)
{
	struct heap_subject subject = made_up_subject(made_up_leak(ENTRIES, COROUTINES, CLOSURES));

	(void)state;
	for (int by_count = 0; by_count < 2; by_count++) {
		Pprof__Profile *profile = pprof_of(
			&subject, &(struct heap_view){ .measure = by_count ? HEAP_BY_COUNT : HEAP_BY_OWN });
		uint64_t count = 0, bytes = 0;

		assert_int_equal(profile->n_sample_type, 2);
		assert_string_equal(string_of(profile, profile->sample_type[0]->type), "inuse_objects");
		assert_string_equal(string_of(profile, profile->sample_type[0]->unit), "count");
		assert_string_equal(string_of(profile, profile->sample_type[1]->type), "inuse_space");
		assert_string_equal(string_of(profile, profile->sample_type[1]->unit), "bytes");
		assert_string_equal(string_of(profile, profile->default_sample_type),
				    by_count ? "inuse_objects" : "inuse_space");
		assert_true(profile->time_nanos > 0);
		assert_int_equal(profile->n_mapping, 1);
		for (size_t i = 0; i < profile->n_sample; i++) {
			assert_int_equal(profile->sample[i]->n_value, 2);
			count += (uint64_t)profile->sample[i]->value[0];
			bytes += (uint64_t)profile->sample[i]->value[1];
		}
		assert_int_equal(count, subject.summary.all.count);
		assert_int_equal(bytes, subject.summary.all.bytes);
		pprof__profile__free_unpacked(profile, NULL);
	}
	heap_subject_clear(&subject);
}

static void a_difference_names_what_grew(void **state)
{
	struct heap_subject before = made_up_subject(made_up_leak(500, COROUTINES, CLOSURES));
	struct heap_subject after = made_up_subject(made_up_leak(ENTRIES, COROUTINES, CLOSURES + 100));
	const struct heap_side sides[] = {
		{ .name = "a.heap", .subjects = &before, .count = 1 },
		{ .name = "b.heap", .subjects = &after, .count = 1 },
	};
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	(void)state;
	assert_int_equal(
		heap_format_by_name("text")->compare(out, &sides[0], &sides[1], &(struct heap_view){ 0 }), 0);
	fclose(out);
	assert_true(
		has_line(text, "+1.6 MB", "upvalue \"cache\" of function handler /srv/my/app.lua:5[\"*\"]"));
	assert_true(has_line(text, "+4.8 kB", "registry.timers[*]: function <app.lua:12>"));
	assert_true(has_line(text, "+1500", "upvalue \"cache\""));
	assert_false(has_line(text, "Shrank", ""));
	free(text);
	heap_subject_clear(&before);
	heap_subject_clear(&after);
}

/* The report of a series of as many moments; the caller frees it. Frees the subjects. */
static char *series_of(struct heap_subject *subjects, size_t count)
{
	struct heap_side sides[8];
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	assert_true(count <= sizeof(sides) / sizeof(sides[0]));
	for (size_t i = 0; i < count; i++)
		sides[i] = (struct heap_side){ .subjects = &subjects[i], .count = 1 };
	assert_int_equal(heap_series_write(out, sides, count, 0, &(struct heap_view){ 0 }), 0);
	assert_int_equal(fclose(out), 0);
	for (size_t i = 0; i < count; i++)
		heap_subject_clear(&subjects[i]);
	return text;
}

static void a_series_tells_steady_growth_from_a_wave(void **state)
{
	struct heap_subject subjects[] = {
		made_up_subject(made_up_leak(500, 10, 9000)),
		made_up_subject(made_up_leak(600, 10, 1000)),
		made_up_subject(made_up_leak(700, 10, 9500)),
	};
	char *text = series_of(subjects, 3), *steady = strstr(text, "Grew in every interval"), *rest;

	(void)state;
	assert_non_null(steady);
	rest = strstr(steady, "\n\n");
	assert_non_null(rest);
	*rest = '\0';
	assert_true(has_line(steady, "upvalue \"cache\"", "+200"));
	assert_false(has_line(steady, "timers", ""));
	free(text);
}

/* So many coroutines of one function that wait at one line, and at another; held by a table or not. */
static struct heap_graph made_up_waiting(uint32_t here, uint32_t there, bool held)
{
	struct heap_builder *builder = heap_builder_new();
	const uint32_t count = here + there;
	struct heap_graph graph;

	assert_non_null(builder);
	for (uint32_t i = 0; i <= count; i++) {
		const char *place = i <= here ? "read io.lua:20" : "write io.lua:40";
		const struct heap_node thread = {
			.address = 0x1000 + 16 * (uint64_t)i,
			.bytes = 1000,
			.text = heap_builder_text(builder, "serve a.lua:1", 13),
			.place = heap_builder_text(builder, place, strlen(place)),
			.kind = HEAP_KIND_THREAD,
		};
		const struct heap_node pool = { .address = 0x1000, .bytes = 64, .kind = HEAP_KIND_TABLE };

		heap_builder_add_node(builder, i ? &thread : &pool);
	}
	heap_builder_start_edges(builder, HEAP_ROOT);
	heap_builder_add_edge(builder, &(struct heap_edge){ .to = 1, .hold = HEAP_HOLDS_ROOT });
	heap_builder_start_edges(builder, 1);
	for (uint32_t i = 0; i < count; i++)
		heap_builder_add_edge(builder, &(struct heap_edge){ .to = 2 + i,
								    .hold = HEAP_HOLDS_INDEX,
								    .number = (int32_t)i,
								    .weak = !held });
	assert_int_equal(heap_builder_finish(builder, &graph), 0);
	heap_builder_free(builder);
	return graph;
}

/* Others that share their path have gone meanwhile. */
static void a_series_tells_a_place_where_coroutines_pile_up(void **state)
{
	(void)state;
	for (int held = 0; held < 2; held++) {
		struct heap_subject subjects[] = {
			made_up_subject(made_up_waiting(100, 500, held)),
			made_up_subject(made_up_waiting(200, 100, held)),
			made_up_subject(made_up_waiting(300, 50, held)),
		};
		char *text = series_of(subjects, 3),
		     *steady = strstr(text, "Grew in every interval, coroutines");

		assert_non_null(strstr(text, "No path grew in every interval."));
		assert_int_equal(steady != NULL, held);
		if (steady) {
			*strstr(steady, "\n\n") = '\0';
			assert_true(has_line(steady, "read io.lua:20", "+200"));
			assert_false(has_line(steady, "write io.lua:40", ""));
		}
		free(text);
	}
}

/* made_up_leak() has coroutines as old files have them. */
static void heaps_that_tell_coroutines_in_other_words_do_not_compare(void **state)
{
	static const char words[] = "Paths through coroutines do not compare";
	static const struct {
		uint32_t coroutines; /* of the older heap */
		uint32_t waiting;    /* of the newer one */
		bool told;
	} known[] = { { 3, 5, true }, { 0, 5, false }, { 3, 0, false }, { 0, 0, false } };

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct heap_subject subjects[] = {
			made_up_subject(made_up_leak(5, known[i].coroutines, 5)),
			made_up_subject(made_up_waiting(known[i].waiting, 0, true)),
		};
		const struct heap_side sides[] = { { .subjects = &subjects[0], .count = 1 },
						   { .subjects = &subjects[1], .count = 1 } };
		char *text = NULL;
		size_t length;
		FILE *out = open_memstream(&text, &length);

		assert_int_equal(heap_diff_text_write(out, &sides[0], &sides[1], &(struct heap_view){ 0 }),
				 0);
		fclose(out);
		assert_int_equal(strstr(text, words) != NULL, known[i].told);
		free(text);
		text = series_of(subjects, 2);
		assert_int_equal(strstr(text, words) != NULL, known[i].told);
		free(text);
	}
}

/* A VM that could not be read has none. */
static void heaps_that_do_not_name_functions_in_c_do_not_compare_with_those_that_do(void **state)
{
	static const char words[] = "Paths through functions in C do not compare";
	static const struct {
		bool unnamed[2]; /* in the older heap, in the newer one */
		bool missing;    /* the older one */
		bool told;
	} known[] = {
		{ { true, false }, false, true }, { { false, true }, false, true },
		{ { true, true }, false, false }, { { false, false }, false, false },
		{ { true, false }, true, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct heap_subject subjects[] = {
			made_up_subject(known[i].missing ? made_up_root_alone() : made_up_leak(5, 0, 5)),
			made_up_subject(made_up_leak(5, 0, 5)),
		};
		char *text;

		for (size_t k = 0; k < 2; k++)
			subjects[k].summary.account.c_unnamed = known[i].unnamed[k];
		text = series_of(subjects, 2);
		assert_int_equal(strstr(text, words) != NULL, known[i].told);
		assert_null(strstr(text, "Paths through coroutines"));
		free(text);
	}
}

static void garbage_is_no_suspect(void **state)
{
	struct heap_subject subjects[] = {
		made_up_subject(made_up_cdata(1000)),
		made_up_subject(made_up_cdata(20000)),
		made_up_subject(made_up_cdata(300000)),
	};
	char *text = series_of(subjects, 3);

	(void)state;
	assert_non_null(strstr(text, "No path grew in every interval."));
	assert_null(strstr(text, "a tenth of all"));
	assert_true(has_line(text, "+299.0 kB", "tables"));
	free(text);
}

static void name_process(struct heap_subject *subject, const char *name)
{
	free(subject->summary.account.process);
	subject->summary.account.process = strdup(name);
}

/* A dictionary that fills up is not seen in a Lua heap. */
static void where_shared_dictionaries_are_told_is_said_of_nginx(void **state)
{
	static const struct {
		const char *name;
		pid_t pid;           /* of some cores, none is known */
		const char *command; /* NULL: none is told */
	} known[] = {
		{ "nginx", 4711, "`ljspy shdict -p 4711` shows" },
		{ "nginx", 0, "`ljspy shdict` shows" },
		{ "luajit", 4711, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct heap_subject subjects[] = {
			made_up_subject(made_up_cdata(1000)),
			made_up_subject(made_up_cdata(1000)),
		};
		char *text;

		for (size_t j = 0; j < 2; j++) {
			name_process(&subjects[j], known[i].name);
			subjects[j].summary.account.pid = known[i].pid;
		}
		text = series_of(subjects, 2);
		assert_non_null(strstr(text, "No path grew in every interval."));
		assert_int_equal(strstr(text, "Shared dictionaries (ngx.shared) are in no Lua heap") != NULL,
				 known[i].command != NULL);
		if (known[i].command)
			assert_non_null(strstr(text, known[i].command));
		free(text);
	}
}

/* A single buffer of so many bytes beside a little. */
static struct heap_graph made_up_buffer(uint64_t bytes)
{
	enum { REGISTRY = 1, LITTLE, BUFFER };
	const struct made_up_node nodes[] = {
		{ .kind = HEAP_KIND_TABLE, .bytes = 64 },
		{ .kind = HEAP_KIND_STRING, .bytes = 100 },
		{ .kind = HEAP_KIND_STRING, .bytes = bytes },
	};
	const struct made_up_edge edges[] = {
		{ HEAP_ROOT, REGISTRY, HEAP_HOLDS_ROOT, "registry", NULL, 0, false },
		{ REGISTRY, LITTLE, HEAP_HOLDS_FIELD, "little", NULL, 0, false },
		{ REGISTRY, BUFFER, HEAP_HOLDS_FIELD, "buffer", NULL, 0, false },
	};

	return made_up_heap(nodes, sizeof(nodes) / sizeof(*nodes), edges, sizeof(edges) / sizeof(*edges));
}

static void who_has_a_suspect_is_not_told_to_look_elsewhere(void **state)
{
	struct heap_subject subjects[] = {
		made_up_subject(made_up_buffer(1000)),
		made_up_subject(made_up_buffer(90000)),
		made_up_subject(made_up_buffer(80000)),
	};
	char *text;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		name_process(&subjects[i], "nginx");
	text = series_of(subjects, 3);
	assert_non_null(strstr(text, "No path grew in every interval."));
	assert_non_null(strstr(text, "Grew, and holds more than a tenth of all"));
	assert_null(strstr(text, "Shared dictionaries"));
	free(text);
}

/*---- What is missing ----*/

/* A leak of which so many bytes were not found, and that leads to no object so often. */
static struct heap_subject partial(uint32_t entries, uint64_t not_found, uint64_t dangling)
{
	struct heap_subject subject = made_up_subject(made_up_leak(entries, 10, 100));

	subject.summary.account.gc_total += not_found;
	subject.summary.account.uncertain.dangling = dangling;
	return subject;
}

static void a_difference_says_what_was_not_found(void **state)
{
	struct heap_subject subjects[] = { partial(500, 0, 0), partial(900, 7000000, 0),
					   partial(900, 0, 1234) };
	const struct heap_side before = { .subjects = subjects, .count = 1 };
	const struct heap_side after = { .subjects = subjects + 1, .count = 2 };
	char *text = NULL, *end;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	(void)state;
	assert_int_equal(heap_diff_text_write(out, &before, &after, &(struct heap_view){ 0 }), 0);
	fclose(out);
	end = strstr(text, "change ");
	assert_non_null(end);
	*end = '\0';
	assert_true(has_line(text, "nginx (pid 4242), VM 1: ", "+7000000 bytes not found"));
	assert_true(has_line(text, "nginx (pid 4242), VM 1: ", "uncertain: 1,234 references to no object"));
	assert_true(strstr(text, "not found") > strstr(text, "after"));
	assert_null(strstr(text, "processes"));
	free(text);
	for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++)
		heap_subject_clear(&subjects[i]);
}

/* Of a VM that could not be read nothing is said that only looks as if it had been. */
static void a_vm_that_could_not_be_read_is_told_as_that(void **state)
{
	struct heap_subject subject = made_up_subject(made_up_leak(0, 0, 0));
	struct heap_account *account = &subject.summary.account;
	char line[HEAP_UNCERTAIN_SIZE], *text;

	(void)state;
	account->method = HEAP_MISSING;
	account->sum = account->gc_total = 0;
	text = text_of("text", &subject);
	assert_true(has_line(text, "could not be read", ""));
	assert_null(strstr(text, "found"));
	assert_null(strstr(text, "gc.total"));
	assert_null(strstr(text, "uncertain"));
	assert_null(strstr(text, "Read "));
	free(text);
	assert_string_equal(heap_uncertain_text(account, line), "nginx (pid 4242), VM 1: could not be read");
	account->gc_total = 67108864;
	text = text_of("text", &subject);
	assert_true(has_line(text, "could not be read; gc.total 67,108,864 bytes", ""));
	free(text);
	text = text_of("json", &subject);
	assert_true(has_line(text, "\"method\"", "\"missing\""));
	free(text);
	account->gc_total = account->sum = 0;
	assert_false(heap_account_is_whole(account));
	heap_subject_clear(&subject);
}

/* What was not found at a moment seems to grow afterwards. */
static void a_moment_that_lacks_something_has_no_suspects(void **state)
{
	struct heap_subject lacking[] = { partial(500, 0, 0), partial(100, 400000, 0), partial(600, 0, 7) };
	struct heap_subject too_few[] = { partial(100, 400000, 0), partial(200, 300000, 0),
					  partial(600, 0, 0) };
	char *text = series_of(lacking, 3);

	(void)state;
	assert_true(has_line(text, "+400000 bytes not found", ""));
	assert_true(has_line(text, "uncertain: 7 references", ""));
	assert_true(has_line(text, "Compared are the 2 of 3 moments", ""));
	/* From the first moment to the last. */
	assert_true(has_line(text, "change", "+200 objects"));
	assert_non_null(strstr(text, "Grew in every interval"));
	assert_true(has_line(text, "upvalue \"cache\" of function handler /srv/my/app.lua:5", "+100"));
	free(text);
	text = series_of(too_few, 3);
	assert_non_null(strstr(text, "There are no suspects"));
	assert_null(strstr(text, "Grew in every interval"));
	assert_null(strstr(text, "a tenth of all"));
	assert_true(has_line(text, "+400000 bytes not found", ""));
	free(text);
}

/* Of a chain whose end could not be read, and of memory that was not copied, the sums may agree. */
static void what_could_not_be_read_is_missing_though_the_sums_agree(void **state)
{
	struct heap_account account = { .gc_total = 5,
					.sum = 5,
					.uncertain = { .dangling = 1, .changed_pages = 1 } };

	(void)state;
	assert_true(heap_account_is_whole(&account));
	account.uncertain.unread_bytes = 1;
	assert_false(heap_account_is_whole(&account));
	account.uncertain = (struct heap_uncertain){ .broken_chains = 1 };
	assert_false(heap_account_is_whole(&account));
	account.uncertain = (struct heap_uncertain){ 0 };
	account.sum = 6;
	assert_false(heap_account_is_whole(&account));
}

/* One of two processes could not be read at the second moment. */
static void a_moment_of_fewer_processes_is_not_compared(void **state)
{
	struct heap_subject subjects[6];
	struct heap_side sides[3];
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		subjects[i] = partial(500 + 10 * (uint32_t)(i / 2), 0, 0);
		subjects[i].summary.account.pid += (pid_t)(i % 2);
	}
	for (size_t i = 0; i < 3; i++)
		sides[i] = (struct heap_side){ .subjects = &subjects[2 * i], .count = i == 1 ? 1 : 2 };
	assert_int_equal(heap_series_write(out, sides, 3, 0, &(struct heap_view){ 0 }), 0);
	fclose(out);
	assert_true(has_line(text, "of 1 process only, not of 2", ""));
	assert_true(has_line(text, "Compared are the 2 of 3 moments", ""));
	assert_non_null(strstr(text, "Grew in every interval"));
	free(text);
	for (size_t i = 0; i < 6; i++)
		heap_subject_clear(&subjects[i]);
}

static void a_picture_says_what_was_not_found(void **state)
{
	struct heap_subject subjects[] = { partial(500, 7000000, 0), partial(500, 0, 3), partial(500, 0, 4) };
	const struct heap_side before = { .subjects = subjects, .count = 1 };
	const struct heap_side after = { .subjects = subjects + 1, .count = 2 };
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	(void)state;
	assert_int_equal(heap_format_by_name("svg")->compare(out, &before, &after, &(struct heap_view){ 0 }),
			 0);
	fclose(out);
	assert_true(has_line(text, "Before: nginx (pid 4242), VM 1: +7000000 bytes not found", ""));
	assert_true(has_line(
		text, "nginx (pid 4242), VM 1: uncertain: 3 references to no object; and of 1 VM more", ""));
	free(text);
	for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++)
		heap_subject_clear(&subjects[i]);
}

/*---- Words ----*/

struct known_step {
	struct heap_step step;
	enum heap_hold hold;
	const char *text, *detail;
	int32_t number;
	bool begins; /* the path */
	const char *words;
};

static const struct known_step known_steps[] = {
	{ { 0 }, HEAP_HOLDS_ROOT, "registry", NULL, 0, true, "registry" },
	{ { 0 }, HEAP_HOLDS_ROOT, "", NULL, 0, true, "root" },
	{ { 0 }, HEAP_HOLDS_FIELD, "_name9", NULL, 0, false, "._name9" },
	{ { 0 }, HEAP_HOLDS_FIELD, "9name", NULL, 0, false, "[\"9name\"]" },
	{ { 0 }, HEAP_HOLDS_FIELD, "a b", NULL, 0, false, "[\"a b\"]" },
	{ { 0 }, HEAP_HOLDS_FIELD, "a\"\\", NULL, 0, false, "[\"a\\\"\\\\\"]" },
	{ { 0 }, HEAP_HOLDS_FIELD, "_G", NULL, 0, false, "._G" },
	{ { .of_package_loaded = true }, HEAP_HOLDS_FIELD, "_G", NULL, 0, true, "_G" },
	{ { .of_package_loaded = true }, HEAP_HOLDS_FIELD, "app", NULL, 0, false, "[\"app\"]" },
	{ { .many = true }, HEAP_HOLDS_FIELD, "name", NULL, 0, false, "[\"*\"]" },
	{ { 0 }, HEAP_HOLDS_INDEX, "", NULL, -3, false, "[-3]" },
	{ { .many = true }, HEAP_HOLDS_INDEX, "", NULL, 3, false, "[*]" },
	{ { 0 }, HEAP_HOLDS_VALUE, "0.5", NULL, 0, false, "[0.5]" },
	{ { .many = true }, HEAP_HOLDS_VALUE, "0.5", NULL, 0, false, "[*]" },
	{ { 0 }, HEAP_HOLDS_KEY, "", NULL, 0, false, " (key)" },
	{ { 0 }, HEAP_HOLDS_METATABLE, "", NULL, 0, false, " (metatable)" },
	{ { 0 }, HEAP_HOLDS_ENVIRONMENT, "", NULL, 0, false, " (environment)" },
	{ { 0 }, HEAP_HOLDS_UPVALUE, "cache", NULL, 0, false, "upvalue \"cache\"" },
	{ { 0 }, HEAP_HOLDS_UPVALUE, "", NULL, 2, false, "upvalue 2" },
	{ { .of = "f a.lua:1" }, HEAP_HOLDS_UPVALUE, "", NULL, 2, true, "upvalue 2 of f a.lua:1" },
	{ { 0 }, HEAP_HOLDS_CLOSED, "", NULL, 0, false, " (value)" },
	{ { 0 }, HEAP_HOLDS_LOCAL, "row", "f a.lua:1", 0, true, "local \"row\" of f a.lua:1" },
	{ { .of = "coroutine at f a.lua:1" },
	  HEAP_HOLDS_LOCAL,
	  "row",
	  "f a.lua:1",
	  0,
	  true,
	  "local \"row\" of f a.lua:1" },
	{ { .of = "coroutine of f a.lua:1" },
	  HEAP_HOLDS_LOCAL,
	  "row",
	  "f a.lua:1",
	  0,
	  true,
	  "local \"row\" of f a.lua:1" },
	{ { .of = "coroutine running f a.lua:1" },
	  HEAP_HOLDS_LOCAL,
	  "row",
	  "f a.lua:1",
	  0,
	  true,
	  "local \"row\" of f a.lua:1" },
	{ { .of = "coroutine at g a.lua:9" },
	  HEAP_HOLDS_LOCAL,
	  "row",
	  "f a.lua:1",
	  0,
	  true,
	  "local \"row\" of f a.lua:1 (coroutine at g a.lua:9)" },
	{ { .of = "coroutine of g a.lua:9" },
	  HEAP_HOLDS_LOCAL,
	  "row",
	  "f a.lua:1",
	  0,
	  true,
	  "local \"row\" of f a.lua:1 (coroutine of g a.lua:9)" },
	{ { .of = "coroutine at g a.lua:9" },
	  HEAP_HOLDS_SLOT,
	  "",
	  "",
	  0,
	  true,
	  "slot of coroutine at g a.lua:9" },
	{ { .of_main_thread = true }, HEAP_HOLDS_SLOT, "", "", 0, true, "slot of main thread" },
	{ { 0 }, HEAP_HOLDS_SLOT, "", "", 0, true, "slot" },
	{ { 0 }, HEAP_HOLDS_PROTO, "", NULL, 0, false, " (prototype)" },
	{ { 0 }, HEAP_HOLDS_CONSTANT, "", NULL, 0, false, " (constant)" },
	{ { .of = "f a.lua:1" }, HEAP_HOLDS_CONSTANT, "", NULL, 0, true, "constant of f a.lua:1" },
	{ { .of = "f a.lua:1" }, HEAP_HOLDS_TRACE, "", NULL, 7, true, "trace 7 of f a.lua:1" },
	{ { 0 }, HEAP_HOLDS_OTHER, "finalizer", NULL, 0, false, " (finalizer)" },
	{ { 0 }, HEAP_HOLDS_OTHER, "", NULL, 0, false, " (other)" },
};

static void a_step_reads_by_what_holds_and_by_what_is_known_of_the_holder(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(known_steps) / sizeof(known_steps[0]); i++) {
		const size_t length = strlen(known_steps[i].text);
		char texts[64] = "", words[HEAP_WORDS_SIZE] = "left";
		const struct heap_graph graph = { .texts = texts, .texts_bytes = sizeof(texts) };
		struct heap_edge edge = { .hold = (uint8_t)known_steps[i].hold,
					  .number = known_steps[i].number };
		struct heap_step step = known_steps[i].step;

		if (length) {
			memcpy(texts + 1, known_steps[i].text, length);
			edge.text = 1;
		}
		if (known_steps[i].detail && *known_steps[i].detail) {
			memcpy(texts + 20, known_steps[i].detail, strlen(known_steps[i].detail));
			edge.detail = 20;
		}
		step.edge = &edge;
		assert_int_equal(heap_words_step(&graph, &step, words), known_steps[i].begins);
		assert_string_equal(words, known_steps[i].words);
	}
}

static void a_node_reads_as_what_it_is(void **state)
{
	static const struct {
		enum heap_kind kind;
		const char *text, *words;
		uint32_t place;
	} known[] = {
		{ HEAP_KIND_FUNCTION, "handler a.lua:1", "function handler a.lua:1", 0 },
		{ HEAP_KIND_FUNCTION, "function a.lua:1", "function a.lua:1", 0 },
		{ HEAP_KIND_FUNCTION, "main chunk a.lua", "main chunk a.lua", 0 },
		{ HEAP_KIND_FUNCTION, "pairs [builtin]", "pairs [builtin]", 0 },
		{ HEAP_KIND_PROTO, "handler a.lua:1", "prototype of handler a.lua:1", 0 },
		{ HEAP_KIND_THREAD, "wait a.lua:3", "coroutine at wait a.lua:3", 0 },
		{ HEAP_KIND_THREAD, "running f a.lua:1", "coroutine running f a.lua:1", 0 },
		{ HEAP_KIND_THREAD, "f a.lua:1", "coroutine of f a.lua:1", 1 },
		{ HEAP_KIND_CDATA, "struct x", "cdata struct x", 0 },
		{ HEAP_KIND_STRING, "text", "text", 0 },
		{ HEAP_KIND_FUNCTION, "", NULL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		char texts[64] = "", words[HEAP_WORDS_SIZE];
		const struct heap_graph graph = { .texts = texts, .texts_bytes = sizeof(texts) };
		const struct heap_node node = { .kind = (uint8_t)known[i].kind,
						.text = 1,
						.place = known[i].place };

		memcpy(texts + 1, known[i].text, strlen(known[i].text));
		if (known[i].words)
			assert_string_equal(heap_words_what(&graph, &node, words), known[i].words);
		else
			assert_null(heap_words_what(&graph, &node, words));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_text_names_each_leak),
		cmocka_unit_test(json_has_the_sums),
		cmocka_unit_test(cdata_have_a_holder_and_a_finalizer),
		cmocka_unit_test(folded_lines_add_up),
		cmocka_unit_test(coroutines_have_a_view),
		cmocka_unit_test(what_holds_more_stands_first),
		cmocka_unit_test(hostile_heaps_break_no_format),
		cmocka_unit_test(pprof_has_objects_and_bytes_of_each_path),
		cmocka_unit_test(a_difference_names_what_grew),
		cmocka_unit_test(a_series_tells_steady_growth_from_a_wave),
		cmocka_unit_test(a_series_tells_a_place_where_coroutines_pile_up),
		cmocka_unit_test(heaps_that_tell_coroutines_in_other_words_do_not_compare),
		cmocka_unit_test(heaps_that_do_not_name_functions_in_c_do_not_compare_with_those_that_do),
		cmocka_unit_test(garbage_is_no_suspect),
		cmocka_unit_test(where_shared_dictionaries_are_told_is_said_of_nginx),
		cmocka_unit_test(who_has_a_suspect_is_not_told_to_look_elsewhere),
		cmocka_unit_test(a_difference_says_what_was_not_found),
		cmocka_unit_test(a_moment_that_lacks_something_has_no_suspects),
		cmocka_unit_test(a_vm_that_could_not_be_read_is_told_as_that),
		cmocka_unit_test(what_could_not_be_read_is_missing_though_the_sums_agree),
		cmocka_unit_test(a_moment_of_fewer_processes_is_not_compared),
		cmocka_unit_test(a_picture_says_what_was_not_found),
		cmocka_unit_test(a_step_reads_by_what_holds_and_by_what_is_known_of_the_holder),
		cmocka_unit_test(a_node_reads_as_what_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

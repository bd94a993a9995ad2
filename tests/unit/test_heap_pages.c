/* SPDX-License-Identifier: MIT */
/* The pages and documents of a made-up program's heaps, compared with kept ones that were read. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "output/heap/heap_builder.h"
#include "output/heap/heap_file.h"
#include "output/heap_reports/heap_diff_text.h"
#include "output/heap_reports/heap_profile.h"
#include "output/heap_reports/heap_report.h"
#include "tests/unit/kept_text.h"
#include "tests/unit/made_up_heap.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Its objects. */
enum {
	REGISTRY = 1,
	LOADED,
	APP,
	HANDLER,
	PROTO,
	UPVALUE,
	CACHE,
	LONGER,
	LONG,
	SHORT,
	PARKED,
	NESTED,
	OTHER,
	ROWS,
	FEW_SLOTS,
	USED_SLOTS,
	BUFFER,
	SMALL_BUFFER,
	FIRST,
	SECOND,
	ARRAY,
	FINALIZERS,
	RELEASE,
	TEXTS,
	BUFFERS,
	DEAD,
	WEAK,
	TRACE,
	LIST,
	NEXT,
	LAST,
	OWNER,
	CONTENT,
	SHARED,
};

static const struct made_up_edge program_edges[] = {
	{ HEAP_ROOT, LOADED, HEAP_HOLDS_ROOT, "package.loaded", NULL, 0, false },
	{ HEAP_ROOT, REGISTRY, HEAP_HOLDS_ROOT, "registry", NULL, 0, false },
	{ HEAP_ROOT, FINALIZERS, HEAP_HOLDS_ROOT, "finalizers", NULL, 0, false },
	{ HEAP_ROOT, TEXTS, HEAP_HOLDS_ROOT, "string table", NULL, 0, false },
	{ HEAP_ROOT, BUFFERS, HEAP_HOLDS_ROOT, "buffers", NULL, 0, false },
	{ LOADED, APP, HEAP_HOLDS_FIELD, "my.app", NULL, 0, false },
	{ APP, HANDLER, HEAP_HOLDS_FIELD, "handler", NULL, 0, false },
	{ HANDLER, PROTO, HEAP_HOLDS_PROTO, NULL, NULL, 0, false },
	{ HANDLER, UPVALUE, HEAP_HOLDS_UPVALUE, "cache", NULL, 0, false },
	{ UPVALUE, CACHE, HEAP_HOLDS_CLOSED, NULL, NULL, 0, false },
	{ PROTO, TRACE, HEAP_HOLDS_TRACE, NULL, NULL, 7, false },
	{ CACHE, LONGER, HEAP_HOLDS_FIELD, "longer", NULL, 0, false },
	{ CACHE, LONG, HEAP_HOLDS_FIELD, "long", NULL, 0, false },
	{ CACHE, SHORT, HEAP_HOLDS_FIELD, "short", NULL, 0, false },
	{ CACHE, WEAK, HEAP_HOLDS_FIELD, "weak", NULL, 0, true },
	{ REGISTRY, PARKED, HEAP_HOLDS_INDEX, NULL, NULL, 1, false },
	{ PARKED, NESTED, HEAP_HOLDS_LOCAL, "co", "wait app.lua:30", 0, false },
	{ NESTED, OTHER, HEAP_HOLDS_SLOT, NULL, "wait app.lua:30", 0, false },
	{ OTHER, ROWS, HEAP_HOLDS_LOCAL, "rows", "render page.lua:4", 0, false },
	{ REGISTRY, FEW_SLOTS, HEAP_HOLDS_FIELD, "few", NULL, 0, false },
	{ REGISTRY, USED_SLOTS, HEAP_HOLDS_FIELD, "used", NULL, 0, false },
	{ REGISTRY, BUFFER, HEAP_HOLDS_FIELD, "buffer", NULL, 0, false },
	{ REGISTRY, SMALL_BUFFER, HEAP_HOLDS_FIELD, "small", NULL, 0, false },
	{ REGISTRY, FIRST, HEAP_HOLDS_FIELD, "first", NULL, 0, false },
	{ REGISTRY, SECOND, HEAP_HOLDS_FIELD, "second", NULL, 0, false },
	{ REGISTRY, ARRAY, HEAP_HOLDS_FIELD, "array", NULL, 0, false },
	{ REGISTRY, LIST, HEAP_HOLDS_FIELD, "list", NULL, 0, false },
	{ REGISTRY, OWNER, HEAP_HOLDS_FIELD, "owner", NULL, 0, false },
	{ OWNER, CONTENT, HEAP_HOLDS_FIELD, "content", NULL, 0, false },
	{ APP, SHARED, HEAP_HOLDS_FIELD, "shared", NULL, 0, false },
	{ OWNER, SHARED, HEAP_HOLDS_FIELD, "shared", NULL, 0, false },
	{ LIST, NEXT, HEAP_HOLDS_FIELD, "next", NULL, 0, false },
	{ NEXT, LAST, HEAP_HOLDS_FIELD, "next", NULL, 0, false },
	{ FINALIZERS, FIRST, HEAP_HOLDS_KEY, NULL, NULL, 0, true },
	{ FINALIZERS, RELEASE, HEAP_HOLDS_VALUE, "cdata", NULL, 0, false },
};

/*
 * A heap with something in every table of a page. Sizes are on both sides of the bounds from which on a
 * string is long and a table or buffer is sparse. more: entries that a second moment has.
 */
static struct heap_graph made_up_program(uint64_t more)
{
	const struct made_up_node nodes[] = {
		{ .kind = HEAP_KIND_TABLE, .bytes = 640 },
		{ .kind = HEAP_KIND_TABLE, .bytes = 320 },
		{ .kind = HEAP_KIND_TABLE, .bytes = 160 },
		{ HEAP_KIND_FUNCTION, 48, "handler /srv/my/app.lua:5", "@/srv/my/app.lua", 0, 0, 0, NULL },
		{ HEAP_KIND_PROTO, 900, "handler /srv/my/app.lua:5", "@/srv/my/app.lua", 0, 0, 0, NULL },
		{ .kind = HEAP_KIND_UPVALUE, .bytes = 40 },
		{ .kind = HEAP_KIND_TABLE, .bytes = 4100 + 64 * more, .slots = 256, .used = 10 },
		{ .kind = HEAP_KIND_STRING, .bytes = 5000 + 1000 * more },
		{ .kind = HEAP_KIND_STRING, .bytes = 4096 },
		{ .kind = HEAP_KIND_STRING, .bytes = 4095 },
		{ HEAP_KIND_THREAD, 1200, "function <app.lua:20>", "@/srv/my/app.lua", 0, 0, 0,
		  "wait app.lua:30" },
		{ HEAP_KIND_THREAD, 1100, "function <app.lua:20>", "@/srv/my/app.lua", 0, 0, 0,
		  "wait app.lua:30" },
		{ .kind = HEAP_KIND_THREAD, .bytes = 1000 },
		{ .kind = HEAP_KIND_TABLE, .bytes = 300, .slots = 16, .used = 4 },
		{ .kind = HEAP_KIND_TABLE, .bytes = 310, .slots = 15, .used = 0 },
		{ .kind = HEAP_KIND_TABLE, .bytes = 330, .slots = 16, .used = 5 },
		{ HEAP_KIND_USERDATA, 2100, NULL, NULL, 2048, 512, HEAP_FINALIZER, NULL },
		{ HEAP_KIND_USERDATA, 290, NULL, NULL, 255, 0, 0, NULL },
		{ HEAP_KIND_CDATA, 150, "struct conn", NULL, 0, 0, HEAP_FINALIZER, NULL },
		{ HEAP_KIND_CDATA, 130, "struct conn", NULL, 0, 0, 0, NULL },
		{ HEAP_KIND_CDATA, 110, NULL, NULL, 0, 0, 0, NULL },
		{ .kind = HEAP_KIND_TABLE, .bytes = 70 },
		{ HEAP_KIND_FUNCTION, 44, "function <pool.lua:7>", "@pool.lua", 0, 0, 0, NULL },
		{ .kind = HEAP_KIND_VM, .bytes = 8192, .text = "string table" },
		{ .kind = HEAP_KIND_VM, .bytes = 512, .text = "buffers" },
		{ .kind = HEAP_KIND_TABLE, .bytes = 700, .flags = HEAP_DEAD },
		{ .kind = HEAP_KIND_STRING, .bytes = 80 },
		{ .kind = HEAP_KIND_TRACE, .bytes = 600 },
		{ .kind = HEAP_KIND_TABLE, .bytes = 201 },
		{ .kind = HEAP_KIND_TABLE, .bytes = 202 },
		{ .kind = HEAP_KIND_TABLE, .bytes = 203 },
		{ .kind = HEAP_KIND_TABLE, .bytes = 100 },
		{ .kind = HEAP_KIND_STRING, .bytes = 3000 + 2000 * more },
		{ .kind = HEAP_KIND_TABLE, .bytes = 720 },
	};

	return made_up_heap(nodes, COUNT(nodes), program_edges, COUNT(program_edges));
}

static struct heap_subject subject_of(struct heap_graph graph, const struct heap_account *account)
{
	struct heap_subject subject;

	assert_int_equal(heap_subject_make(&graph, account, true, &subject), 0);
	return subject;
}

/* All that an account may say, at the first of two moments or the second. */
static struct heap_subject program_at(uint64_t more)
{
	struct heap_graph graph = made_up_program(more);
	struct heap_account account = made_up_account(&graph);

	account.gc_total = account.sum + 123;
	account.threshold.value = 60000;
	account.dead_objects = 1;
	account.dead_bytes = 700;
	account.attempts = 3;
	account.retry_reason = "the list of objects had changed";
	account.holds = 2;
	account.longest_hold_ns = 1234001;
	account.held_ns = 2345000;
	account.time += (int64_t)more;
	account.uncertain = (struct heap_uncertain){ 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009 };
	return subject_of(graph, &account);
}

/* Little is known of this one. */
static struct heap_subject nameless(void)
{
	const struct made_up_node nodes[] = { { .kind = HEAP_KIND_TABLE, .bytes = 1000 } };
	const struct made_up_edge edges[] = { { 0, 1, HEAP_HOLDS_ROOT, "registry", NULL, 0, false } };
	struct heap_graph graph = made_up_heap(nodes, 1, edges, 1);
	const struct heap_account account = {
		.vm = 2,
		.g = 0x1000,
		.gc_total = 1000,
		.sum = 1000,
		.threshold = { true, 1000 },
	};

	return subject_of(graph, &account);
}

/* A third one in the process of the first, read at once, with so many entries. */
static struct heap_subject leak(uint32_t entries)
{
	struct heap_graph graph = made_up_leak(entries, 3, 12);
	struct heap_account account = made_up_account(&graph);

	account.vm = 3;
	account.dead_known = false;
	account.estimate.known = false;
	account.threshold.known = false;
	return subject_of(graph, &account);
}

struct page {
	const char *name, *format;
	struct heap_view view;
	size_t subjects;
};

static void the_heaps_of_two_processes_are_as_they_were_read(void **state)
{
	static const struct page pages[] = {
		{ "heap-text.txt", "text", { 0 }, 3 },
		{ "heap-text-rows.txt", "text", { .rows = 2 }, 2 },
		{ "heap-json.txt", "json", { 0 }, 3 },
		{ "heap-folded.txt", "folded", { 0 }, 1 },
		{ "heap-folded-count.txt", "folded", { .measure = HEAP_BY_COUNT }, 3 },
		{ "heap-folded-retained.txt", "folded", { .measure = HEAP_BY_RETAINED }, 1 },
		{ "heap-folded-module.txt", "folded", { .group = HEAP_GROUP_MODULE }, 1 },
		{ "heap-folded-type.txt", "folded", { .group = HEAP_GROUP_TYPE }, 1 },
		{ "heap-folded-coroutine.txt", "folded", { .group = HEAP_GROUP_COROUTINE }, 2 },
	};
	struct heap_subject subjects[] = { program_at(0), leak(20), nameless() };
	char *text = NULL;
	size_t length;

	(void)state;
	for (size_t i = 0; i < COUNT(pages); i++) {
		const struct heap_side side = { .subjects = subjects, .count = pages[i].subjects };
		const struct heap_format *format = heap_format_by_name(pages[i].format);
		struct kept_text kept;

		kept_text_begin(&kept);
		if (strcmp(pages[i].format, "json") == 0) {
			FILE *out = open_memstream(&text, &length);

			assert_int_equal(format->write(out, &side, &pages[i].view), 0);
			fclose(out);
			kept_text_json(&kept, json_loadb(text, length, 0, NULL));
			free(text);
		} else {
			assert_int_equal(format->write(kept.out, &side, &pages[i].view), 0);
		}
		kept_text_check(&kept, pages[i].name);
	}
	for (size_t i = 0; i < COUNT(subjects); i++)
		heap_subject_clear(&subjects[i]);
}

static void differences_are_as_they_were_read(void **state)
{
	struct heap_subject moments[][2] = {
		{ program_at(0), leak(70) },
		{ program_at(5), leak(80) },
		{ program_at(25), leak(100) },
	};
	const struct heap_side sides[] = {
		{ "first.heap", moments[0], 2 },
		{ NULL, moments[1], 2 },
		{ "evil\x1b.heap", moments[2], 2 },
		{ "empty.heap", NULL, 0 },
	};
	const struct heap_view all = { 0 }, few = { .rows = 2 }, one = { .rows = 1 };
	struct kept_text kept;

	(void)state;
	kept_text_begin(&kept);
	assert_int_equal(heap_diff_text_write(kept.out, &sides[0], &sides[2], &all), 0);
	kept_text_check(&kept, "heap-grew.txt");
	kept_text_begin(&kept);
	assert_int_equal(heap_diff_text_write(kept.out, &sides[2], &sides[1], &one), 0);
	kept_text_check(&kept, "heap-shrank.txt");
	kept_text_begin(&kept);
	assert_int_equal(heap_diff_text_write(kept.out, &sides[3], &sides[0], &few), 0);
	kept_text_check(&kept, "heap-from-nothing.txt");
	/* A series suspects nothing of moments that lack something. */
	for (size_t i = 0; i < COUNT(moments); i++) {
		struct heap_account *account = &moments[i][0].summary.account;

		account->gc_total = account->sum;
		account->uncertain = (struct heap_uncertain){ 0 };
	}
	kept_text_begin(&kept);
	assert_int_equal(heap_series_write(kept.out, sides, 3, 0, &all), 0);
	kept_text_check(&kept, "heap-series.txt");
	kept_text_begin(&kept);
	assert_int_equal(heap_series_write(kept.out, sides, 1, 0, &all), -EINVAL);
	assert_int_equal(heap_series_write(kept.out, sides + 1, 2, 0, &few), 0);
	kept_text_check(&kept, "heap-series-rows.txt");
	for (size_t i = 0; i < COUNT(moments); i++)
		for (size_t j = 0; j < 2; j++)
			heap_subject_clear(&moments[i][j]);
}

static void a_format_is_known_by_its_name_and_by_the_suffix_of_a_file(void **state)
{
	char path[64];

	(void)state;
	assert_in_range(heap_format_count, 8, 20);
	for (size_t i = 0; i < heap_format_count; i++) {
		assert_ptr_equal(heap_format_by_name(heap_formats[i].name), &heap_formats[i]);
		snprintf(path, sizeof(path), "a.%s", heap_formats[i].suffix);
		assert_ptr_equal(heap_format_by_path(path), &heap_formats[i]);
		/* A name that is the suffix alone has none, and one without its dot is none. */
		assert_null(heap_format_by_path(heap_formats[i].suffix));
		snprintf(path, sizeof(path), "a-%s", heap_formats[i].suffix);
		assert_null(heap_format_by_path(path));
		snprintf(path, sizeof(path), "a.%s.bak", heap_formats[i].suffix);
		assert_null(heap_format_by_path(path));
	}
	assert_null(heap_format_by_name("txt"));
	assert_null(heap_format_by_name(""));
	assert_null(heap_format_by_path(""));
}

static void a_file_of_heaps_has_each_of_them(void **state)
{
	struct heap_subject subjects[] = { program_at(0), leak(20), nameless() };
	const struct heap_side side = { .subjects = subjects, .count = COUNT(subjects) };
	const struct heap_format *format = heap_format_by_name("heap");
	struct heap_file_reader *reader;
	struct heap_account account;
	struct heap_graph graph;
	FILE *file = tmpfile();

	(void)state;
	assert_non_null(file);
	assert_true(format->needs_graph);
	assert_true(heap_format_by_name("heapsnapshot")->needs_graph);
	assert_false(heap_format_by_name("text")->needs_graph);
	assert_int_equal(format->write(file, &side, &(struct heap_view){ 0 }), 0);
	rewind(file);
	assert_int_equal(heap_file_reader_new(file, 1 << 20, &reader), 0);
	for (size_t i = 0; i < COUNT(subjects); i++) {
		assert_int_equal(heap_file_reader_next(reader, &graph, &account), 1);
		assert_int_equal(graph.node_count, subjects[i].graph.node_count);
		assert_int_equal(account.vm, subjects[i].summary.account.vm);
		assert_int_equal(account.sum, subjects[i].summary.account.sum);
		heap_graph_free(&graph);
		heap_file_account_clear(&account);
	}
	assert_int_equal(heap_file_reader_next(reader, &graph, &account), 0);
	heap_file_reader_free(reader);
	fclose(file);
	for (size_t i = 0; i < COUNT(subjects); i++)
		heap_subject_clear(&subjects[i]);
}

/* The beginning of a picture of one side, or of the difference of two. */
static void check_begins(const char *name, bool compare, const struct heap_side *side, const char *begin)
{
	const struct heap_format *format = heap_format_by_name(name);
	const struct heap_view view = { 0 };
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	assert_true(format->picture);
	assert_int_equal(compare ? format->compare(out, side, side, &view) : format->write(out, side, &view),
			 0);
	fclose(out);
	assert_int_equal(strncasecmp(text, begin, strlen(begin)), 0);
	free(text);
}

static void a_picture_is_a_page_or_an_image_as_its_name_says(void **state)
{
	struct heap_subject subject = program_at(0);
	const struct heap_side side = { .subjects = &subject, .count = 1 };

	(void)state;
	for (int compare = 0; compare < 2; compare++) {
		check_begins("svg", compare, &side, "<?xml");
		check_begins("html", compare, &side, "<!doctype html>");
	}
	heap_subject_clear(&subject);
}

static void a_picture_is_titled_by_the_process_if_it_is_one(void **state)
{
	struct heap_subject subjects[] = { program_at(0), leak(20), nameless() };
	struct heap_side side = { .subjects = subjects, .count = 2 };
	const struct heap_view view = { .command_line = "ljspy heap" };
	struct session session = heap_profile_session(&side, &view);

	(void)state;
	assert_int_equal(session.pid, 4242);
	assert_string_equal(session.target, "nginx");
	assert_string_equal(session.command_line, "ljspy heap");
	assert_int_equal(session.start_unix_ns, UINT64_C(1700000000000000000));
	assert_int_equal(session.clock, WEIGHT_HEAP_BYTES);
	side.count = 3;
	assert_int_equal(heap_profile_session(&side, &view).pid, 0);
	side.count = 0;
	session = heap_profile_session(&side, &(struct heap_view){ .measure = HEAP_BY_COUNT });
	assert_int_equal(session.pid, 0);
	assert_null(session.target);
	assert_int_equal(session.clock, WEIGHT_HEAP_OBJECTS);
	for (size_t i = 0; i < COUNT(subjects); i++)
		heap_subject_clear(&subjects[i]);
}

/* Adds bytes up by the kind of the leaf. */
static int add_by_kind(void *context, const struct frame *frames, size_t count, const struct heap_sum *sum)
{
	uint64_t *bytes = context;

	assert_in_range(count, 1, HEAP_DEPTH_MAX);
	bytes[frames[0].function->kind] += sum->bytes;
	return 0;
}

static void functions_and_coroutines_are_frames_of_their_own_kinds(void **state)
{
	struct heap_subject subject = program_at(0);
	const struct heap_side side = { .subjects = &subject, .count = 1 };
	struct functions *functions = functions_new();
	uint64_t bytes[FRAME_KIND_COUNT] = { 0 };

	(void)state;
	assert_non_null(functions);
	assert_int_equal(heap_profile_each(&side, &(struct heap_view){ 0 }, functions, add_by_kind, bytes),
			 0);
	assert_int_equal(bytes[FRAME_LUA], 48 + 900 + 44);
	assert_int_equal(bytes[FRAME_C_FUNCTION], 1200 + 1100 + 1000);
	assert_int_equal(bytes[FRAME_LUA] + bytes[FRAME_C_FUNCTION] + bytes[FRAME_NATIVE],
			 subject.summary.all.bytes);
	/* By coroutine, what none holds is left out, and has no empty stack either. */
	memset(bytes, 0, sizeof(bytes));
	assert_int_equal(heap_profile_each(&side, &(struct heap_view){ .group = HEAP_GROUP_COROUTINE },
					   functions, add_by_kind, bytes),
			 0);
	assert_int_equal(bytes[FRAME_LUA], 0);
	assert_int_equal(bytes[FRAME_C_FUNCTION], 1200 + 1100 + 1000);
	assert_int_equal(bytes[FRAME_NATIVE], 300);
	functions_free(functions);
	heap_subject_clear(&subject);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_heaps_of_two_processes_are_as_they_were_read),
		cmocka_unit_test(differences_are_as_they_were_read),
		cmocka_unit_test(a_format_is_known_by_its_name_and_by_the_suffix_of_a_file),
		cmocka_unit_test(a_file_of_heaps_has_each_of_them),
		cmocka_unit_test(a_picture_is_a_page_or_an_image_as_its_name_says),
		cmocka_unit_test(a_picture_is_titled_by_the_process_if_it_is_one),
		cmocka_unit_test(functions_and_coroutines_are_frames_of_their_own_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

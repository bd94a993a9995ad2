/* SPDX-License-Identifier: MIT */
/* Heap files: what goes in comes out, and a damaged file is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zstd.h>

#include "output/heap/heap_analysis.h"
#include "output/heap/heap_builder.h"
#include "output/heap/heap_file.h"
#include "output/heap/heap_method.h"
#include "output/heap_views/heap_paths.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_heap.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
INSTEAD_OF(reallocarray);
#define FAILING_REALLOCARRAY
#include "tests/unit/failing_allocation.h"

enum { RANDOM_GRAPHS = 200, MEMORY_MAX = 1 << 28, SMALL_MEMORY = 1 << 16 };

/* A file with these graphs; the caller frees it. */
static char *file_of(const struct heap_graph *graphs, size_t count, size_t *ret_length)
{
	struct heap_file_writer *writer;
	char *bytes = NULL;
	FILE *out = open_memstream(&bytes, ret_length);

	assert_int_equal(heap_file_writer_new(out, &writer), 0);
	for (size_t i = 0; i < count; i++) {
		struct heap_account account = made_up_account(&graphs[i]);

		account.vm = (unsigned int)i + 1;
		assert_int_equal(heap_file_writer_add(writer, &graphs[i], &account), 0);
	}
	assert_int_equal(heap_file_writer_end(writer), 0);
	heap_file_writer_free(writer);
	fclose(out);
	return bytes;
}

static void check_equal(const struct heap_graph *graph, const struct heap_graph *other)
{
	assert_int_equal(graph->node_count, other->node_count);
	assert_int_equal(graph->edge_count, other->edge_count);
	assert_int_equal(graph->texts_bytes, other->texts_bytes);
	assert_memory_equal(graph->texts, other->texts, graph->texts_bytes);
	for (uint32_t i = 0; i <= graph->node_count; i++)
		assert_int_equal(graph->nodes[i].first_edge, other->nodes[i].first_edge);
	for (uint32_t i = 0; i < graph->node_count; i++) {
		const struct heap_node *left = &graph->nodes[i], *right = &other->nodes[i];

		assert_true(left->address == right->address && left->bytes == right->bytes &&
			    left->text == right->text && left->module == right->module &&
			    left->slots == right->slots && left->used == right->used &&
			    left->kind == right->kind && left->flags == right->flags);
	}
	for (uint32_t i = 0; i < graph->edge_count; i++) {
		const struct heap_edge *left = &graph->edges[i], *right = &other->edges[i];

		assert_true(left->to == right->to && left->text == right->text &&
			    left->detail == right->detail && left->hold == right->hold &&
			    left->weak == right->weak);
	}
}

static void check_account(const struct heap_account *account, const struct heap_graph *graph, unsigned int vm)
{
	struct heap_account made = made_up_account(graph);

	assert_string_equal(account->process, made.process);
	assert_string_equal(account->module, made.module);
	assert_string_equal(account->gc_state, made.gc_state);
	assert_int_equal(account->pid, made.pid);
	assert_int_equal(account->vm, vm);
	assert_int_equal(account->g, made.g);
	assert_int_equal(account->time, made.time);
	assert_int_equal(account->gc_total, made.gc_total);
	assert_int_equal(account->sum, made.sum);
	assert_true(account->threshold.known && account->threshold.value == made.threshold.value);
	assert_true(account->stepmul.known && account->stepmul.value == made.stepmul.value);
	assert_true(account->dead_known);
	assert_int_equal(account->method, made.method);
	assert_int_equal(account->longest_hold_ns, made.longest_hold_ns);
}

static void what_goes_in_comes_out(void **state)
{
	(void)state;
	for (unsigned int seed = 0; seed < RANDOM_GRAPHS; seed++) {
		struct heap_graph graphs[] = {
			made_up_random_heap(seed, 300, 1000),
			made_up_random_heap(seed + RANDOM_GRAPHS, 300, 1000),
		};
		struct heap_graph graph;
		struct heap_account account;
		struct heap_file_reader *reader;
		size_t length;
		char *bytes = file_of(graphs, 2, &length);
		FILE *in = fmemopen(bytes, length, "r");

		assert_true(heap_file_is_one(in));
		assert_int_equal(heap_file_reader_new(in, MEMORY_MAX, &reader), 0);
		for (unsigned int i = 0; i < 2; i++) {
			assert_int_equal(heap_file_reader_next(reader, &graph, &account), 1);
			check_equal(&graph, &graphs[i]);
			check_account(&account, &graphs[i], i + 1);
			assert_false(account.c_unnamed);
			heap_graph_free(&graph);
			heap_file_account_clear(&account);
		}
		assert_int_equal(heap_file_reader_next(reader, &graph, &account), 0);
		heap_file_reader_free(reader);
		fclose(in);
		free(bytes);
		heap_graph_free(&graphs[0]);
		heap_graph_free(&graphs[1]);
	}
}

/* Read all VMs of some bytes. The last result. */
static int read_all(char *bytes, size_t length, size_t memory_max)
{
	struct heap_file_reader *reader;
	struct heap_graph graph;
	struct heap_account account;
	FILE *in = fmemopen(bytes, length, "r");
	int result = heap_file_reader_new(in, memory_max, &reader);

	if (result == 0) {
		while ((result = heap_file_reader_next(reader, &graph, &account)) == 1) {
			heap_graph_free(&graph);
			heap_file_account_clear(&account);
		}
		heap_file_reader_free(reader);
	}
	fclose(in);
	return result;
}

static void a_damaged_file_is_refused(void **state)
{
	struct heap_graph graph = made_up_leak(2000, 100, 100);
	size_t length;
	char *bytes = file_of(&graph, 1, &length);

	(void)state;
	assert_true(length > 1000);
	assert_int_equal(read_all(bytes, length, MEMORY_MAX), 0);
	assert_int_equal(read_all(bytes, length, SMALL_MEMORY), -ENOMEM);
	for (size_t cut = BLOCK_HEADER_SIZE; cut < length; cut += 97)
		assert_int_equal(read_all(bytes, cut, MEMORY_MAX), -EBADMSG);
	assert_int_equal(read_all(bytes, BLOCK_HEADER_SIZE - 1, MEMORY_MAX), -EILSEQ);
	for (size_t at = BLOCK_HEADER_SIZE; at < length; at += 97) {
		bytes[at] ^= 0x40;
		assert_int_equal(read_all(bytes, length, MEMORY_MAX), -EBADMSG);
		bytes[at] ^= 0x40;
	}
	bytes = realloc(bytes, length + 1);
	assert_non_null(bytes);
	bytes[length] = 0;
	assert_int_equal(read_all(bytes, length + 1, MEMORY_MAX), -EBADMSG); /* more than one file */
	bytes[BLOCK_VERSION_OFFSET]++;
	assert_int_equal(read_all(bytes, length, MEMORY_MAX), -EPROTONOSUPPORT);
	bytes[0]++;
	assert_int_equal(read_all(bytes, length, MEMORY_MAX), -EILSEQ);
	free(bytes);
	heap_graph_free(&graph);
}

/*
 * A bit that is no longer what it was is told, or changes nothing. Compressed data have bits without a
 * meaning, which is why not each one is told.
 */
static void each_flipped_bit_is_told_or_changes_nothing(void **state)
{
	struct heap_graph made = made_up_leak(3, 2, 2);
	size_t length, told = 0;
	char *bytes = file_of(&made, 1, &length);

	(void)state;
	for (size_t bit = 0; bit < 8 * length; bit++) {
		struct heap_file_reader *reader = NULL;
		struct heap_account account;
		struct heap_graph graph;
		FILE *in;
		int result;

		bytes[bit / 8] ^= (char)(1 << bit % 8);
		in = fmemopen(bytes, length, "r");
		result = heap_file_reader_new(in, MEMORY_MAX, &reader);
		while (result >= 0 && (result = heap_file_reader_next(reader, &graph, &account)) == 1) {
			check_equal(&graph, &made);
			check_account(&account, &made, 1);
			assert_false(account.c_unnamed);
			heap_graph_free(&graph);
			heap_file_account_clear(&account);
		}
		told += result < 0;
		heap_file_reader_free(reader);
		fclose(in);
		bytes[bit / 8] ^= (char)(1 << bit % 8);
	}
	assert_true(told > 7 * length);
	free(bytes);
	heap_graph_free(&made);
}

/* Whichever allocation fails, of each array that grows. */
static void a_file_that_memory_is_too_short_for_is_not_read(void **state)
{
	struct heap_graph graph = made_up_leak(2000, 100, 100);
	size_t length, passed = 0;
	char *bytes = file_of(&graph, 1, &length);
	int result;

	(void)state;
	for (;; passed++) {
		allocation_fails_after(passed);
		result = read_all(bytes, length, MEMORY_MAX);
		if (!allocation_failed())
			break;
		assert_int_equal(result, -ENOMEM);
	}
	assert_int_equal(result, 0);
	assert_true(passed > 10);
	free(bytes);
	heap_graph_free(&graph);
}

/* What a later version may have, or who means harm. */
static void objects_and_references_that_are_none_are_refused(void **state)
{
	enum { KINDS, SECOND_ROOT, NO_ROOT, HOLDS, BYTES, KNOWN, COUNT };

	(void)state;
	for (int fault = 0; fault < COUNT; fault++) {
		struct heap_graph graph = made_up_leak(3, 2, 2);
		size_t length;
		char *bytes;

		switch (fault) {
		case KINDS: graph.nodes[2].kind = HEAP_KIND_COUNT; break;
		case SECOND_ROOT: graph.nodes[2].kind = HEAP_KIND_ROOT; break;
		case NO_ROOT: graph.nodes[0].kind = HEAP_KIND_TABLE; break;
		case HOLDS: graph.edges[2].hold = HEAP_HOLD_COUNT; break;
		case BYTES: graph.nodes[2].bytes = (UINT64_MAX >> 24) + 1; break;
		case KNOWN:
			graph.nodes[2].kind = HEAP_KIND_COUNT - 1;
			graph.nodes[2].bytes = UINT64_MAX >> 24;
			graph.nodes[2].slots = graph.nodes[2].used = UINT32_MAX;
			break;
		}
		bytes = file_of(&graph, 1, &length);
		assert_int_equal(read_all(bytes, length, MEMORY_MAX), fault == KNOWN ? 0 : -EBADMSG);
		free(bytes);
		heap_graph_free(&graph);
	}
}

/* A text, as the others; a number of any size would be one of another VM, or of none. */
static void the_place_of_a_coroutine_is_read_and_checked(void **state)
{
	static const struct made_up_node nodes[] = {
		{ .kind = HEAP_KIND_THREAD, .text = "function <a.lua:1>", .place = "wait a.lua:3" },
	};
	static const struct made_up_edge edges[] = { { .to = 1, .hold = HEAP_HOLDS_ROOT, .text = "held" } };
	struct heap_graph made = made_up_heap(nodes, 1, edges, 1), graph;
	struct heap_account account;
	struct heap_file_reader *reader;
	size_t length;
	char *bytes = file_of(&made, 1, &length);
	FILE *in = fmemopen(bytes, length, "r");

	(void)state;
	assert_int_equal(heap_file_reader_new(in, MEMORY_MAX, &reader), 0);
	assert_int_equal(heap_file_reader_next(reader, &graph, &account), 1);
	assert_string_equal(heap_text(&graph, graph.nodes[1].text), "function <a.lua:1>");
	assert_string_equal(heap_place(&graph, &graph.nodes[1]), "wait a.lua:3");
	heap_graph_free(&graph);
	heap_file_account_clear(&account);
	heap_file_reader_free(reader);
	fclose(in);
	free(bytes);
	made.nodes[1].place = made.texts_bytes;
	bytes = file_of(&made, 1, &length);
	assert_int_equal(read_all(bytes, length, MEMORY_MAX), -EBADMSG);
	free(bytes);
	heap_graph_free(&made);
}

/* A file of an older ljspy, whose first VM is the one made up. Free its reader, and close it. */
static struct heap_file_reader *open_kept(const char *path, const struct heap_graph *made, FILE **ret_in,
					  struct heap_graph *ret_graph, struct heap_account *ret_account)
{
	struct heap_file_reader *reader;
	FILE *in = fopen(path, "re");

	assert_non_null(in);
	*ret_in = in;
	assert_int_equal(heap_file_reader_new(in, MEMORY_MAX, &reader), 0);
	assert_int_equal(heap_file_reader_next(reader, ret_graph, ret_account), 1);
	check_equal(ret_graph, made);
	return reader;
}

/* Version 1, as it was first written: made_up_leak(3, 2, 2). */
static void the_kept_file_is_readable(void **state)
{
	struct heap_graph made = made_up_leak(3, 2, 2), graph;
	struct heap_account account;
	struct heap_file_reader *reader;
	FILE *in;

	(void)state;
	reader = open_kept("tests/recordings/version-1.heap", &made, &in, &graph, &account);
	assert_true(account.c_unnamed);
	check_account(&account, &made, 1);
	/* Its texts say where coroutines stand. */
	for (uint32_t i = 0; i < graph.node_count; i++)
		if (graph.nodes[i].kind == HEAP_KIND_THREAD)
			assert_string_equal(heap_place(&graph, &graph.nodes[i]), "wait app.lua:30");
	heap_graph_free(&graph);
	heap_file_account_clear(&account);
	assert_int_equal(heap_file_reader_next(reader, &graph, &account), 0);
	heap_file_reader_free(reader);
	fclose(in);
	heap_graph_free(&made);
}

/* Version 1, of a time when a text could be what a coroutine runs. */
static void a_kept_file_tells_what_coroutines_run(void **state)
{
	static const struct made_up_node nodes[] = {
		{ .kind = HEAP_KIND_TABLE, .bytes = 64 },
		{ .kind = HEAP_KIND_THREAD, .bytes = 1000, .text = "running main chunk run.lua" },
		{ .kind = HEAP_KIND_TABLE, .bytes = 64 },
	};
	static const struct made_up_edge edges[] = {
		{ .to = 1, .hold = HEAP_HOLDS_ROOT, .text = "registry" },
		{ .from = 1, .to = 2, .hold = HEAP_HOLDS_FIELD, .text = "co" },
		{ .from = 2,
		  .to = 3,
		  .hold = HEAP_HOLDS_LOCAL,
		  .text = "row",
		  .detail = "main chunk run.lua" },
	};
	struct heap_graph made = made_up_heap(nodes, 3, edges, 3), graph;
	struct heap_account account;
	struct heap_file_reader *reader;
	struct heap_analysis analysis;
	struct heap_paths paths;
	char text[HEAP_PATH_SIZE];
	uint32_t *of;
	FILE *in;

	(void)state;
	reader = open_kept("tests/recordings/version-1-running.heap", &made, &in, &graph, &account);
	assert_int_equal(heap_analysis_make(&graph, &analysis), 0);
	assert_int_equal(heap_paths_make(&graph, &analysis, &paths, &of), 0);
	assert_string_equal(heap_path_text(&paths, of[2], text),
			    "registry.co: coroutine running main chunk run.lua");
	assert_string_equal(heap_path_text(&paths, of[3], text), "local \"row\" of main chunk run.lua");
	free(of);
	heap_paths_clear(&paths);
	heap_analysis_clear(&analysis);
	heap_graph_free(&graph);
	heap_file_account_clear(&account);
	heap_file_reader_free(reader);
	fclose(in);
	heap_graph_free(&made);
}

/* A function in C without a text, which holds a coroutine. */
static struct heap_graph made_up_wrapped(void)
{
	static const struct made_up_node nodes[] = {
		{ .kind = HEAP_KIND_TABLE, .bytes = 64, .slots = 4, .used = 1 },
		{ .kind = HEAP_KIND_FUNCTION, .bytes = 48 },
		{ .kind = HEAP_KIND_THREAD,
		  .bytes = 1000,
		  .text = "function <a.lua:1>",
		  .module = "a.lua",
		  .place = "wait a.lua:3" },
	};
	static const struct made_up_edge edges[] = {
		{ .to = 1, .hold = HEAP_HOLDS_ROOT, .text = "registry" },
		{ .from = 1, .to = 2, .hold = HEAP_HOLDS_FIELD, .text = "next" },
		{ .from = 2, .to = 3, .hold = HEAP_HOLDS_UPVALUE },
	};

	return made_up_heap(nodes, 3, edges, 3);
}

/* Version 2, of a time when functions in C had no texts: made_up_wrapped(). */
static void a_kept_file_says_that_functions_in_c_have_no_names(void **state)
{
	struct heap_graph made = made_up_wrapped(), graph;
	struct heap_account account;
	struct heap_file_reader *reader;
	FILE *in;

	(void)state;
	reader = open_kept("tests/recordings/version-2.heap", &made, &in, &graph, &account);
	assert_true(account.c_unnamed);
	check_account(&account, &made, 1);
	assert_string_equal(heap_text(&graph, graph.nodes[3].text), "function <a.lua:1>");
	assert_string_equal(heap_place(&graph, &graph.nodes[3]), "wait a.lua:3");
	heap_graph_free(&graph);
	heap_file_account_clear(&account);
	assert_int_equal(heap_file_reader_next(reader, &graph, &account), 0);
	heap_file_reader_free(reader);
	fclose(in);
	heap_graph_free(&made);
}

/* Each number is unlike the others. */
static void each_number_of_an_account_comes_out(void **state)
{
	struct heap_graph made = made_up_leak(3, 2, 2), graph;
	struct heap_account written = made_up_account(&made), account;
	struct heap_file_writer *writer;
	struct heap_file_reader *reader;
	char *bytes = NULL;
	size_t length;
	FILE *out = open_memstream(&bytes, &length), *in;

	(void)state;
	written.pid = 1;
	written.vm = UINT32_MAX;
	written.g = UINT64_MAX;
	written.time = INT64_MAX;
	written.gc_total = 2;
	written.sum = 3;
	written.gc_state = "sweep strings";
	written.threshold = (struct heap_figure){ .known = true };
	written.estimate = (struct heap_figure){ .known = true, .value = 4 };
	written.pause = (struct heap_figure){ .known = false };
	written.stepmul = (struct heap_figure){ .known = true, .value = 5 };
	written.dead_objects = 6;
	written.dead_bytes = 7;
	written.dead_known = false;
	written.attempts = 8;
	written.holds = 9;
	written.longest_hold_ns = 10;
	written.held_ns = 11;
	written.copied_bytes = 12;
	written.copied_held_bytes = 13;
	written.c_unnamed = true;
	written.uncertain = (struct heap_uncertain){ 14, 15, 16, 17, 18, 19, 20, 21, 22 };
	assert_int_equal(heap_file_writer_new(out, &writer), 0);
	for (int method = 0; method < HEAP_METHOD_COUNT; method++) {
		written.method = (enum heap_method)method;
		assert_int_equal(heap_file_writer_add(writer, &made, &written), 0);
	}
	assert_int_equal(heap_file_writer_end(writer), 0);
	heap_file_writer_free(writer);
	fclose(out);
	in = fmemopen(bytes, length, "r");
	assert_int_equal(heap_file_reader_new(in, MEMORY_MAX, &reader), 0);
	for (int method = 0; method < HEAP_METHOD_COUNT; method++) {
		assert_int_equal(heap_file_reader_next(reader, &graph, &account), 1);
		assert_int_equal(account.method, method);
		assert_int_equal(account.pid, 1);
		assert_int_equal(account.vm, UINT32_MAX);
		assert_int_equal(account.g, UINT64_MAX);
		assert_int_equal(account.time, INT64_MAX);
		assert_int_equal(account.gc_total, 2);
		assert_int_equal(account.sum, 3);
		assert_string_equal(account.gc_state, "sweep strings");
		assert_true(account.threshold.known && account.threshold.value == 0);
		assert_true(account.estimate.known && account.estimate.value == 4);
		assert_false(account.pause.known);
		assert_true(account.stepmul.known && account.stepmul.value == 5);
		assert_int_equal(account.dead_objects, 6);
		assert_int_equal(account.dead_bytes, 7);
		assert_false(account.dead_known);
		assert_int_equal(account.attempts, 8);
		assert_int_equal(account.holds, 9);
		assert_int_equal(account.longest_hold_ns, 10);
		assert_int_equal(account.held_ns, 11);
		assert_int_equal(account.copied_bytes, 12);
		assert_int_equal(account.copied_held_bytes, 13);
		assert_true(account.c_unnamed);
		assert_memory_equal(&account.uncertain, &written.uncertain, sizeof(account.uncertain));
		heap_graph_free(&graph);
		heap_file_account_clear(&account);
	}
	assert_int_equal(heap_file_reader_next(reader, &graph, &account), 0);
	heap_file_reader_free(reader);
	fclose(in);
	free(bytes);
	heap_graph_free(&made);
}

/* The same file, with another word in the place of one as long. The caller frees it. */
static char *with_other_word(const char *bytes, size_t length, const char *word, const char *other,
			     size_t *ret_length)
{
	enum { RAW_MAX = 1 << 16 };
	char *raw = malloc(RAW_MAX), *packed = malloc(2 * RAW_MAX), *at;
	size_t size;

	assert_non_null(raw);
	assert_non_null(packed);
	size = ZSTD_decompress(raw, RAW_MAX, bytes + BLOCK_HEADER_SIZE, length - BLOCK_HEADER_SIZE);
	assert_false(ZSTD_isError(size));
	at = memmem(raw, size, word, strlen(word));
	assert_non_null(at);
	memcpy(at, other, strlen(word));
	memcpy(packed, bytes, BLOCK_HEADER_SIZE);
	size = ZSTD_compress(packed + BLOCK_HEADER_SIZE, 2 * RAW_MAX - BLOCK_HEADER_SIZE, raw, size, 1);
	assert_false(ZSTD_isError(size));
	*ret_length = BLOCK_HEADER_SIZE + size;
	free(raw);
	return packed;
}

/* A later ljspy may read in a way of its own: what is not known is not taken for something else. */
static void a_way_to_read_that_is_not_known_is_none_of_the_known_ones(void **state)
{
	static const char *const others[][2] = { { "method", "METHOD" }, { "asleep", "ASLEEP" } };
	struct heap_graph made = made_up_leak(3, 2, 2);
	struct heap_account written = made_up_account(&made);
	struct heap_file_writer *writer;
	char *bytes = NULL;
	size_t length;
	FILE *out = open_memstream(&bytes, &length);

	(void)state;
	written.method = HEAP_WHILE_ASLEEP;
	assert_int_equal(heap_file_writer_new(out, &writer), 0);
	assert_int_equal(heap_file_writer_add(writer, &made, &written), 0);
	assert_int_equal(heap_file_writer_end(writer), 0);
	heap_file_writer_free(writer);
	fclose(out);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct heap_file_reader *reader;
		struct heap_account account;
		struct heap_graph graph;
		size_t other_length;
		char *other = with_other_word(bytes, length, others[i][0], others[i][1], &other_length);
		FILE *in = fmemopen(other, other_length, "r");

		assert_int_equal(heap_file_reader_new(in, MEMORY_MAX, &reader), 0);
		assert_int_equal(heap_file_reader_next(reader, &graph, &account), 1);
		assert_int_equal(account.method, HEAP_METHOD_UNKNOWN);
		assert_string_equal(heap_method_name(account.method), "?");
		assert_string_equal(heap_method_text(account.method),
				    "in a way that this ljspy does not know");
		assert_int_equal(account.holds, written.holds);
		heap_graph_free(&graph);
		heap_file_account_clear(&account);
		heap_file_reader_free(reader);
		fclose(in);
		free(other);
	}
	free(bytes);
	heap_graph_free(&made);
}

/* What fits into the stream's buffer fails at the end. */
static void a_full_disk_is_told(void **state)
{
	struct heap_graph small = made_up_leak(3, 2, 2);
	struct heap_account account = made_up_account(&small);
	struct heap_file_writer *writer;
	FILE *out = fopen("/dev/full", "we");

	(void)state;
	assert_non_null(out);
	assert_int_equal(heap_file_writer_new(out, &writer), 0);
	assert_int_equal(heap_file_writer_add(writer, &small, &account), 0);
	assert_int_equal(heap_file_writer_end(writer), -EIO);
	assert_int_equal(heap_file_writer_end(writer), -EIO);
	heap_file_writer_free(writer);
	setvbuf(out, NULL, _IONBF, 0);
	assert_int_equal(heap_file_writer_new(out, &writer), -EIO);
	fclose(out);
	heap_graph_free(&small);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_goes_in_comes_out),
		cmocka_unit_test(a_damaged_file_is_refused),
		cmocka_unit_test(each_flipped_bit_is_told_or_changes_nothing),
		cmocka_unit_test(a_file_that_memory_is_too_short_for_is_not_read),
		cmocka_unit_test(objects_and_references_that_are_none_are_refused),
		cmocka_unit_test(each_number_of_an_account_comes_out),
		cmocka_unit_test(a_way_to_read_that_is_not_known_is_none_of_the_known_ones),
		cmocka_unit_test(a_full_disk_is_told),
		cmocka_unit_test(the_place_of_a_coroutine_is_read_and_checked),
		cmocka_unit_test(the_kept_file_is_readable),
		cmocka_unit_test(a_kept_file_tells_what_coroutines_run),
		cmocka_unit_test(a_kept_file_says_that_functions_in_c_have_no_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

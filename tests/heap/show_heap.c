/* SPDX-License-Identifier: MIT */
/*
 * Print a heap for the tests: every object that is no string, and every reference.
 *
 * 	show_heap [account] PID [MAX_PAUSE_US] | show_heap core FILE
 *
 * A line is tab-separated: "heap", gc.total, sum, state, attempts, method, uncertain things, number of holds,
 * the longest one in us, bytes copied while it was held, changed pages, changed objects; or "refused", the us
 * that the hold would have taken; "node", address, kind, bytes, flags, text; "edge", address, how, name,
 * weak, address.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/core_file.h"
#include "output/heap/heap_builder.h"
#include "output/heap/heap_method.h"
#include "src/heap/heap_capture.h"
#include "src/survey/confirm_layout.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/threads/threads.h"
#include "src/linux/tracer/tracer.h"

static const char *const kinds[HEAP_KIND_COUNT] = {
	"root",  "string", "upvalue", "thread",   "proto", "function",
	"trace", "cdata",  "table",   "userdata", "vm",
};

static const char *const holds[HEAP_HOLD_COUNT] = {
	"root",   "field", "index", "value", "key",      "metatable", "environment", "upvalue",
	"closed", "local", "slot",  "proto", "constant", "trace",     "other",
};

static void print_edge(const struct heap_graph *graph, const struct heap_node *from,
		       const struct heap_edge *edge)
{
	const struct heap_node *to = &graph->nodes[edge->to];
	bool numbered = edge->hold == HEAP_HOLDS_INDEX;

	printf("edge\t%" PRIx64 "\t%s\t", from->address, holds[edge->hold]);
	if (numbered)
		printf("%d", edge->number);
	else
		fputs(heap_text(graph, edge->text), stdout);
	printf("\t%d\t%" PRIx64 "\n", edge->weak, to->address);
}

/* If none is given: as long as it takes on a full machine. */
#define MAX_PAUSE_NS (10 * UINT64_C(1000000000))

/* What to print, and for how long to hold at most; 0: as without --max-pause. */
struct wish {
	bool only_account;
	uint64_t max_pause_ns;
};

static void print_account(const struct heap_account *account)
{
	const struct heap_uncertain *uncertain = &account->uncertain;

	printf("heap\t%" PRIu64 "\t%" PRIu64 "\t%s\t%u\t%s\t%" PRIu64, account->gc_total, account->sum,
	       account->gc_state, account->attempts, heap_method_name(account->method),
	       uncertain->unread_objects + uncertain->broken_chains + uncertain->unknown_objects +
		       uncertain->unsized_objects);
	printf("\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", account->holds,
	       account->longest_hold_ns / 1000, account->copied_held_bytes, uncertain->changed_pages,
	       uncertain->changed_objects);
}

static void print_graph(const struct heap_graph *graph)
{
	for (uint32_t i = 0; i < graph->node_count; i++) {
		const struct heap_node *node = &graph->nodes[i];

		if (node->kind == HEAP_KIND_STRING)
			continue;
		printf("node\t%" PRIx64 "\t%s\t%" PRIu64 "\t%u\t%s\n", node->address, kinds[node->kind],
		       node->bytes, node->flags, heap_text(graph, node->text));
		for (uint32_t j = node->first_edge; j < node[1].first_edge; j++)
			if (graph->nodes[graph->edges[j].to].kind != HEAP_KIND_STRING)
				print_edge(graph, node, &graph->edges[j]);
	}
}

/* A hold that was refused, and for how long it would have been. */
static int print_error(int error, const struct heap_account *account)
{
	if (error == -EFBIG) {
		printf("refused\t%" PRIu64 "\n", account->longest_hold_ns / 1000);
		return EXIT_SUCCESS;
	}
	fprintf(stderr, "heap_capture: %s\n", strerror(-error));
	return EXIT_FAILURE;
}

static int show_vm(struct lua_process *process, struct hold *hold, pid_t pid, size_t vm,
		   const struct wish *wish)
{
	const struct heap_capture_options options = { .max_pause_ns = wish->max_pause_ns };
	struct heap_account account = { .pid = pid };
	struct heap_graph graph;
	int error;

	error = heap_capture(process, hold, vm, &options, &graph, &account);
	if (error)
		return print_error(error, &account);
	print_account(&account);
	if (!wish->only_account)
		print_graph(&graph);
	heap_graph_free(&graph);
	return EXIT_SUCCESS;
}

static int show(struct lua_process *process, struct hold *hold, pid_t pid, const struct wish *wish)
{
	const size_t count = lua_process_global_count(process);
	int status = count ? EXIT_SUCCESS : EXIT_FAILURE;

	for (size_t i = 0; i < count && status == EXIT_SUCCESS; i++)
		status = show_vm(process, hold, pid, i, wish);
	return status;
}

static int show_process(pid_t pid, struct functions *functions, const struct wish *wish)
{
	const struct namer_options namer = { .native = NATIVE_NONE };
	struct tracer *tracer = tracer_new();
	struct threads *threads = tracer ? threads_new(tracer, pid) : NULL;
	struct hold *hold = threads ? hold_new(tracer, threads) : NULL;
	struct lua_process *process;

	if (!hold || threads_refresh(threads, clock_now_ns(CLOCK_MONOTONIC), 0) ||
	    lua_process_open(pid, functions, NULL, &namer, &process) || lua_process_refresh(process, true))
		return EXIT_FAILURE;
	confirm_while_held(process, hold);
	return show(process, hold, pid, wish);
}

static int show_core(const char *path, struct functions *functions)
{
	const struct namer_options namer = { .native = NATIVE_NONE };
	struct lua_process *process;
	struct core_file *core;
	const char *problem;

	if (core_file_open(path, &core, &problem) ||
	    lua_process_open_core(core, functions, &namer, &process) || lua_process_refresh(process, true))
		return EXIT_FAILURE;
	return show(process, NULL, core_file_pid(core), &(struct wish){ 0 });
}

int main(int argc, char **argv)
{
	struct functions *functions = functions_new();

	struct wish wish = { .max_pause_ns = MAX_PAUSE_NS };

	if (argc == 3 && strcmp(argv[1], "core") == 0)
		return show_core(argv[2], functions);
	wish.only_account = argc > 1 && strcmp(argv[1], "account") == 0;
	argv += wish.only_account;
	argc -= wish.only_account;
	if (argc > 2)
		wish.max_pause_ns = strtoull(argv[2], NULL, 10) * 1000;
	return argc > 1 ? show_process((pid_t)strtol(argv[1], NULL, 10), functions, &wish) : EXIT_FAILURE;
}

/* SPDX-License-Identifier: MIT */
#include "output/findings/findings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/hash.h"
#include "output/findings/work_kind.h"
#include "output/sample/functions.h"

enum {
	GROWTH_BYTES_MIN = 256 << 10, /* that a path has to grow by */
	GROWTH_SHOWN_PART = 20,       /* what grows by a smaller part of the most is not shown */
	BLOCKED_TURNS_MIN = 2,
};

/* Smaller parts of CPU time are not compared with the list of what is not compiled. */
static const double smallest_share = 0.005;

/* A place with the time that it has for one kind. */
struct place_key {
	const struct function *function, *callee;
	const struct interpreted_row *interpreted; /* why it is not compiled; NULL if it is not asked */
	uint32_t line;
	uint32_t kind; /* enum finding_kind */
};

struct place {
	struct place_key key;
	uint64_t ns;
	UT_hash_handle hh;
};

struct judging {
	const struct evidence *evidence;
	struct place *places;
	uint64_t sums_ns[FINDING_KIND_COUNT];
};

/*---- Places ----*/

static int add_place(struct judging *judging, const struct place *wanted)
{
	struct place *place;

	HASH_FIND(hh, judging->places, &wanted->key, sizeof(wanted->key), place);
	if (!place) {
		place = calloc(1, sizeof(*place));
		if (!place)
			return -ENOMEM;
		place->key = wanted->key;
		HASH_ADD(hh, judging->places, key, sizeof(place->key), place);
		if (!hash_added(&place->hh)) {
			free(place);
			return -ENOMEM;
		}
	}
	place->ns += wanted->ns;
	judging->sums_ns[wanted->key.kind] += wanted->ns;
	return 0;
}

static void free_places(struct judging *judging)
{
	HASH_FREE_ALL(judging->places);
}

/* All bytes of the key count. */
_Static_assert(sizeof(struct place_key) == 3 * sizeof(void *) + 2 * sizeof(uint32_t), "compared as bytes");

/*
 * Stripped functions of a file, and functions on one line, have the same definition. And the prototype
 * may be another one by now, at the same address.
 */
static bool is_row_of(const struct interpreted_row *row, const struct work_key *key)
{
	return key->proto && row->proto == key->proto &&
	       functions_share_definition(row->function, key->function);
}

/*
 * Of the places in a function, the one that LuaJIT has given up, or else tried most often. NULL if there is
 * none.
 */
static const struct interpreted_row *find_interpreted(const struct evidence *evidence,
						      const struct work_key *key)
{
	const struct interpreted_row *found = NULL;

	for (size_t i = 0; evidence->traces && i < evidence->traces->vm_count; i++) {
		const struct trace_vm *vm = &evidence->traces->vms[i];

		for (size_t j = 0; j < vm->interpreted_count; j++) {
			const struct interpreted_row *row = &vm->interpreted[j];

			if (!is_row_of(row, key))
				continue;
			if (!found || row->cause < found->cause ||
			    (row->cause == found->cause && row->times > found->times))
				found = row;
		}
	}
	return found;
}

/* Time in the interpreter is of a kind if LuaJIT could not, or may not, compile the function. */
static void judge_interpreted(const struct evidence *evidence, const struct work *work, struct place *place)
{
	if (work->key.state != VM_STATE_INTERPRETED || work->key.compiled || !work->key.function ||
	    evidence_share(evidence, work->cpu_ns) < smallest_share)
		return;
	place->key.interpreted = find_interpreted(evidence, &work->key);
	if (!place->key.interpreted)
		return;
	place->key.kind = place->key.interpreted->cause == NOT_COMPILED_OFF ? FINDING_SWITCHED_OFF
									    : FINDING_NOT_COMPILED;
	place->key.line = place->key.interpreted->line;
	place->key.callee = NULL;
}

/*
 * Does a thread sleep until a child ends? The name of a wait begins with its system call
 * (output/sample/sample.h).
 */
static bool waits_for_child(const struct function *wait)
{
	static const char *const calls[] = { "wait4", "waitid" };
	const size_t length = wait && wait->name ? strcspn(wait->name, " ") : 0;

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (length == strlen(calls[i]) && strncmp(wait->name, calls[i], length) == 0)
			return true;
	return false;
}

static bool is_named(const struct function *function, const char *const *names, size_t count)
{
	for (size_t i = 0; function && function->name && i < count; i++)
		if (strcmp(function->name, names[i]) == 0)
			return true;
	return false;
}

/* What closes a file may close the pipe of a program, and waits until it ends (pclose()). */
static bool waits_for_program(const struct work *work)
{
	static const char *const starts[] = { "os.execute", "io.popen" };
	static const char *const closes[] = { "file.close", "io.close" };
	const struct work_key *key = &work->key;

	if (work->asleep_ns == 0)
		return false;
	return is_named(key->callee, starts, sizeof(starts) / sizeof(starts[0])) ||
	       (is_named(key->callee, closes, sizeof(closes) / sizeof(closes[0])) &&
		waits_for_child(key->leaf));
}

static int judge_work(struct judging *judging, const struct work *work)
{
	const struct evidence *evidence = judging->evidence;
	struct place place = {
		.key = { work->key.function, work->key.callee, NULL, work->key.line,
			 work_kind(work, evidence_line(evidence, work->key.function, work->key.line)) },
		.ns = work->cpu_ns,
	};
	int error = 0;

	if (place.key.kind == FINDING_GARBAGE || place.key.kind == FINDING_COMPILING ||
	    place.key.kind == FINDING_EXITS)
		place.key.callee = NULL;
	if (place.key.kind == FINDING_NONE)
		judge_interpreted(evidence, work, &place);
	if (place.key.kind != FINDING_NONE && place.ns)
		error = add_place(judging, &place);
	if (error || !waits_for_program(work))
		return error;
	return add_place(judging, &(struct place){ .key = { work->key.function, work->key.callee, NULL,
							    work->key.line, FINDING_PROGRAMS },
						   .ns = work->asleep_ns });
}

static int judge_call(struct judging *judging, const struct call *call)
{
	if (!call->key.called->name || strcmp(call->key.called->name, "table.sort") != 0)
		return 0;
	return add_place(judging, &(struct place){ .key = { call->key.caller, call->key.called, NULL,
							    call->key.line, FINDING_SORTS },
						   .ns = call->cpu_ns });
}

/* Long turns, without the time in which others had the CPU. */
static int judge_turn_line(struct judging *judging, const struct turn_line *line)
{
	if (line->wants_cpu)
		return 0;
	return add_place(judging, &(struct place){ .key = { line->function, line->callee, NULL, line->line,
							    FINDING_BLOCKED },
						   .ns = line->ns });
}

static int judge_all(struct judging *judging)
{
	const struct evidence *evidence = judging->evidence;
	int error = 0;

	for (const struct work *work = evidence->works; work && !error; work = work->hh.next)
		error = judge_work(judging, work);
	for (const struct call *call = evidence->calls; call && !error; call = call->hh.next)
		error = judge_call(judging, call);
	for (size_t i = 0; i < evidence->turn_line_count && !error; i++)
		error = judge_turn_line(judging, &evidence->turn_lines[i]);
	if (!error && evidence->deep.cpu_ns)
		error = add_place(judging, &(struct place){ .key = { evidence->deep.function, NULL, NULL,
								     evidence->deep.line, FINDING_RECURSION },
							    .ns = evidence->deep.cpu_ns });
	return error;
}

/*---- Findings ----*/

static void add_item(struct finding *finding, const struct finding_item *item)
{
	size_t at = finding->item_count;

	while (at > 0 && finding->items[at - 1].amount < item->amount)
		at--;
	if (at == FINDING_ITEMS_MAX)
		return;
	if (finding->item_count < FINDING_ITEMS_MAX)
		finding->item_count++;
	memmove(&finding->items[at + 1], &finding->items[at],
		(finding->item_count - at - 1) * sizeof(finding->items[0]));
	finding->items[at] = *item;
}

static void say_why(const struct interpreted_row *row, char ret_words[static FINDING_TEXT_SIZE])
{
	const char *what = row->is_loop ? "loop" : "function";

	if (row->cause == NOT_COMPILED_OFF)
		snprintf(ret_words, FINDING_TEXT_SIZE, "jit.off()");
	else
		snprintf(ret_words, FINDING_TEXT_SIZE, "%s, %s: %s", what,
			 row->cause == NOT_COMPILED_BLACKLISTED ? "never tried again" : "to be tried again",
			 row->reason ? row->reason : "reason no longer known");
}

static void add_items(const struct judging *judging, struct finding *finding)
{
	for (const struct place *place = judging->places; place; place = place->hh.next) {
		struct finding_item item = {
			.function = place->key.function,
			.callee = place->key.callee,
			.line = place->key.line,
			.amount = place->ns,
		};

		if (place->key.kind != finding->kind)
			continue;
		if (place->key.interpreted)
			say_why(place->key.interpreted, item.words);
		add_item(finding, &item);
	}
}

static void say_garbage(const struct evidence *evidence, struct finding *finding)
{
	const struct gc_bill *gc = &evidence->gc;
	const uint64_t mark_ns = gc->phase_ns[GC_PHASE_MARK] + gc->phase_ns[GC_PHASE_ATOMIC];

	snprintf(finding->words, sizeof(finding->words),
		 "%.0f %% of it marks what lives; %s from %.1f to %.1f MB, in %" PRIu64 " cycles or more",
		 finding->amount ? 100.0 * (double)mark_ns / (double)finding->amount : 0.0,
		 gc->has_heaps ? "heaps of several threads were" : "the heap was",
		 (double)gc->heap_least / 1e6, (double)gc->heap_most / 1e6, gc->cycles);
}

static void say_turns(const struct turn_sums *turns, char ret_words[static FINDING_TEXT_SIZE])
{
	int length = snprintf(ret_words, FINDING_TEXT_SIZE,
			      "%" PRIu64 " turns of %g ms or more, the longest of %.0f ms", turns->long_turns,
			      (double)turns->threshold_ns / 1e6, (double)turns->longest_ns / 1e6);

	if (turns->unsure)
		snprintf(ret_words + length, FINDING_TEXT_SIZE - (size_t)length,
			 "; %" PRIu64 " may be several each, of a loop that always finds work",
			 turns->unsure);
}

static void say_more(const struct evidence *evidence, struct finding *finding)
{
	const size_t size = sizeof(finding->words);

	if (finding->kind == FINDING_GARBAGE)
		say_garbage(evidence, finding);
	if (finding->kind == FINDING_COMPILING && evidence->traces && evidence->traces->vm_count)
		snprintf(finding->words, size, "%zu traces that ran are gone since",
			 evidence->traces->gone_count);
	if (finding->kind == FINDING_RECURSION)
		snprintf(finding->words, size, "up to %zu calls of Lua at a time", evidence->deep.frames);
	if (finding->kind == FINDING_BLOCKED)
		say_turns(&evidence->turns, finding->words);
}

static bool stands_out(const struct evidence *evidence, const struct finding *finding)
{
	const struct finding_rule *rule = &finding_rules[finding->kind];

	if (finding->kind == FINDING_BLOCKED &&
	    (!evidence->has_loop || evidence->turns.long_turns < BLOCKED_TURNS_MIN))
		return false;
	if (rule->cost == COST_WALL)
		return finding->share >= rule->least;
	return evidence_is_busy(evidence) && evidence_is_enough(evidence) &&
	       evidence_sure_share(evidence, finding->amount) >= rule->least;
}

static void add_finding(struct findings *findings, const struct finding *finding)
{
	size_t at = findings->count++;

	for (; at > 0 && findings->at[at - 1].share < finding->share; at--)
		findings->at[at] = findings->at[at - 1];
	findings->at[at] = *finding;
}

static void conclude_time(const struct judging *judging, enum finding_kind kind, struct findings *findings)
{
	const struct evidence *evidence = judging->evidence;
	const uint64_t amount = judging->sums_ns[kind];
	struct finding finding = {
		.kind = kind,
		.cost = finding_rules[kind].cost,
		.amount = amount,
		.share = finding_rules[kind].cost == COST_CPU ? evidence_share(evidence, amount)
			 : evidence->duration_ns              ? (double)amount / (double)evidence->duration_ns
							      : 0,
	};

	if (finding.share > 1)
		finding.share = 1;
	if (!amount || !stands_out(evidence, &finding))
		return;
	add_items(judging, &finding);
	say_more(evidence, &finding);
	add_finding(findings, &finding);
}

/*---- Growth ----*/

static void say_growth(const struct heap_evidence *heap, const struct heap_growth *growth,
		       char ret_words[static FINDING_TEXT_SIZE])
{
	const double minutes = (double)heap->duration_ns / 60e9;

	snprintf(ret_words, FINDING_TEXT_SIZE, "%+" PRId64 " objects, %.1f MB a minute",
		 heap_growth_count(&heap->growths, growth),
		 minutes > 0 ? (double)heap_growth_bytes(&heap->growths, growth) / 1e6 / minutes : 0.0);
}

static void conclude_growth(const struct evidence *evidence, struct findings *findings)
{
	const struct heap_evidence *heap = &evidence->heap;
	struct finding finding = { .kind = FINDING_GROWTH, .cost = COST_HEAP };

	for (const struct heap_growth *growth = heap->growths.rows; growth; growth = growth->hh.next) {
		struct finding_item item = { .path = growth->name };

		if (growth->unheld || growth->in_chain || heap_growth_bytes(&heap->growths, growth) <= 0 ||
		    !heap_growth_is_steady(&heap->growths, growth))
			continue;
		item.amount = (uint64_t)heap_growth_bytes(&heap->growths, growth);
		say_growth(heap, growth, item.words);
		add_item(&finding, &item);
	}
	if (finding.item_count == 0 || heap->last_bytes == 0)
		return;
	finding.amount = finding.items[0].amount;
	while (finding.items[finding.item_count - 1].amount < finding.amount / GROWTH_SHOWN_PART)
		finding.item_count--;
	finding.share = (double)finding.amount / (double)heap->last_bytes;
	if (finding.amount < GROWTH_BYTES_MIN || finding.share < finding_rules[FINDING_GROWTH].least)
		return;
	snprintf(finding.words, sizeof(finding.words), "the heap has %.1f MB now",
		 (double)heap->last_bytes / 1e6);
	add_finding(findings, &finding);
}

int findings_judge(const struct evidence *evidence, struct findings *ret_findings)
{
	struct judging judging = { .evidence = evidence };
	int error = judge_all(&judging);

	if (!error) {
		*ret_findings = (struct findings){ 0 };
		for (int kind = FINDING_NONE + 1; kind < FINDING_KIND_COUNT; kind++)
			conclude_time(&judging, (enum finding_kind)kind, ret_findings);
		conclude_growth(evidence, ret_findings);
	}
	free_places(&judging);
	return error;
}

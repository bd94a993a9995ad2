/* SPDX-License-Identifier: MIT */
#include "output/heap_reports/heap_uncertain.h"

#include <inttypes.h>
#include <string.h>

#include "output/heap_reports/heap_amounts.h"
#include "output/sample/amount_text.h"

enum { COUNTS = 9 };

struct count {
	uint64_t count;
	const char *what;
};

static void list(const struct heap_uncertain *uncertain, struct count ret_counts[static COUNTS])
{
	const struct count counts[COUNTS] = {
		{ uncertain->unread_objects, "objects could not be read" },
		{ uncertain->unread_bytes, "bytes were not copied" },
		{ uncertain->broken_chains, "chains of objects led nowhere" },
		{ uncertain->unknown_objects, "objects of an unknown type" },
		{ uncertain->dangling, "references to no object" },
		{ uncertain->unsized_objects, "objects may be larger than counted" },
		{ uncertain->changed_pages, "pages changed after they were copied" },
		{ uncertain->changed_objects, "objects lie in these pages" },
		{ uncertain->left_out, "objects beyond what is read of one VM" },
	};

	memcpy(ret_counts, counts, sizeof(counts));
}

static void write_missing(FILE *out, const struct heap_account *account)
{
	char total[AMOUNT_SIZE];

	fputs("could not be read", out);
	if (account->gc_total)
		fprintf(out, "; gc.total %s bytes", amount_number(account->gc_total, total));
}

void heap_not_found_write(FILE *out, const struct heap_account *account)
{
	int64_t difference = heap_account_difference(account);

	if (heap_account_is_missing(account))
		write_missing(out, account);
	else if (difference == 0)
		fputs("all of it found", out);
	else
		fprintf(out, "%+" PRId64 " bytes not found", difference);
}

void heap_uncertain_write(FILE *out, const struct heap_uncertain *uncertain)
{
	struct count counts[COUNTS];
	char number[AMOUNT_SIZE];

	list(uncertain, counts);
	for (size_t i = 0; i < COUNTS; i++)
		if (counts[i].count)
			fprintf(out, "  uncertain: %s %s\n", amount_number(counts[i].count, number),
				counts[i].what);
}

/*---- In one line ----*/

static bool is_any(const struct heap_account *account)
{
	struct count counts[COUNTS];
	bool any = heap_account_is_missing(account) || heap_account_difference(account) != 0;

	list(&account->uncertain, counts);
	for (size_t i = 0; i < COUNTS; i++)
		any |= counts[i].count > 0;
	return any;
}

static void write_line(FILE *out, const struct heap_account *account)
{
	struct heap_account of = *account;
	const char *separator = ": ", *word = "uncertain: ";
	struct count counts[COUNTS];
	char number[AMOUNT_SIZE];

	of.module = NULL;
	heap_place_write(out, &of);
	if (heap_account_is_missing(account) || heap_account_difference(account)) {
		fputs(separator, out);
		heap_not_found_write(out, account);
		separator = "; ";
	}
	list(&account->uncertain, counts);
	for (size_t i = 0; i < COUNTS && !heap_account_is_missing(account); i++) {
		if (!counts[i].count)
			continue;
		fprintf(out, "%s%s%s %s", separator, word, amount_number(counts[i].count, number),
			counts[i].what);
		separator = ", ";
		word = "";
	}
}

const char *heap_uncertain_text(const struct heap_account *account, char ret_text[static HEAP_UNCERTAIN_SIZE])
{
	FILE *out = is_any(account) ? fmemopen(ret_text, HEAP_UNCERTAIN_SIZE, "w") : NULL;

	ret_text[0] = '\0';
	if (out) {
		write_line(out, account);
		fclose(out);
		ret_text[HEAP_UNCERTAIN_SIZE - 1] = '\0';
	}
	return ret_text;
}

/*---- Of a side ----*/

const char *heap_side_uncertain_text(const struct heap_side *side, char ret_text[static HEAP_UNCERTAIN_SIZE])
{
	size_t more = 0, length;

	ret_text[0] = '\0';
	for (size_t i = 0; i < side->count; i++) {
		const struct heap_account *account = &side->subjects[i].summary.account;

		if (!*ret_text)
			heap_uncertain_text(account, ret_text);
		else
			more += is_any(account);
	}
	length = strlen(ret_text);
	if (more)
		snprintf(ret_text + length, HEAP_UNCERTAIN_SIZE - length, "; and of %zu VM%s more", more,
			 more == 1 ? "" : "s");
	return ret_text;
}

size_t heap_side_processes(const struct heap_side *side)
{
	size_t processes = side->count > 0;

	for (size_t i = 1; i < side->count; i++)
		processes += side->subjects[i].summary.account.pid !=
			     side->subjects[i - 1].summary.account.pid;
	return processes;
}

size_t heap_sides_most_processes(const struct heap_side *sides, size_t count)
{
	size_t most = 0;

	for (size_t i = 0; i < count; i++) {
		size_t processes = heap_side_processes(&sides[i]);

		most = processes > most ? processes : most;
	}
	return most;
}

void heap_side_uncertain_write(FILE *out, const struct heap_side *side, size_t most_processes)
{
	size_t processes = heap_side_processes(side);

	if (processes > 0 && processes < most_processes)
		fprintf(out, "    of %zu process%s only, not of %zu\n", processes, processes == 1 ? "" : "es",
			most_processes);
	for (size_t i = 0; i < side->count; i++) {
		const struct heap_account *account = &side->subjects[i].summary.account;

		if (!is_any(account))
			continue;
		fputs("    ", out);
		write_line(out, account);
		putc('\n', out);
	}
}

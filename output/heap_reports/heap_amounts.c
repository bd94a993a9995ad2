/* SPDX-License-Identifier: MIT */
#include "output/heap_reports/heap_amounts.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "output/heap/heap_account.h"
#include "output/labels/escape.h"
#include "output/sample/utf8.h"

enum { NAME_SIZE = 1 << 14 };

const char *heap_amount_change(int64_t bytes, char ret_text[static AMOUNT_SIZE])
{
	char amount[AMOUNT_SIZE];

	amount_bytes(bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes, amount);
	snprintf(ret_text, AMOUNT_SIZE, "%s%.20s", bytes < 0 ? "-" : bytes > 0 ? "+" : "", amount);
	return ret_text;
}

const char *heap_amount_objects(uint64_t count, char ret_text[static AMOUNT_SIZE])
{
	char number[AMOUNT_SIZE];

	snprintf(ret_text, AMOUNT_SIZE, "%.30s object%s", amount_number(count, number),
		 count == 1 ? "" : "s");
	return ret_text;
}

double heap_percent(uint64_t part, uint64_t whole)
{
	return whole ? 100 * (double)part / (double)whole : 0;
}

void heap_name_write(FILE *out, const char *name, size_t columns)
{
	char text[NAME_SIZE];
	size_t length = escape_text(ESCAPE_PLAIN, name, text, sizeof(text));
	size_t count = utf8_count(text, length), head = columns / 3;

	if (count <= columns) {
		fputs(text, out);
		return;
	}
	/* The end says most: a path's last steps, a function's file and line. */
	fprintf(out, "%.*s\u2026%s", (int)(utf8_skip(text, head) - text), text,
		utf8_skip(text, count - (columns - head - 1)));
}

void heap_place_write(FILE *out, const struct heap_account *account)
{
	escape_write(ESCAPE_PLAIN, account->process ? account->process : "process", out);
	if (account->pid)
		fprintf(out, " (pid %d)", (int)account->pid);
	fprintf(out, ", VM %u", account->vm);
	if (account->module) {
		fputs(" of ", out);
		escape_write(ESCAPE_PLAIN, account->module, out);
	}
}

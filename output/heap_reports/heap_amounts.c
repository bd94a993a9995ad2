/* SPDX-License-Identifier: MIT */
#include "output/heap_reports/heap_amounts.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "output/heap/heap_account.h"
#include "output/labels/escape.h"

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

static bool continues(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

static size_t count_characters(const char *text)
{
	size_t count = 0;

	for (; *text; text++)
		count += !continues(*text);
	return count;
}

/* Where the text begins without its first so many characters. */
static const char *skip_characters(const char *text, size_t count)
{
	for (; *text && (count > 0 || continues(*text)); text++)
		count -= !continues(*text);
	return text;
}

void heap_name_write(FILE *out, const char *name, size_t columns)
{
	char text[NAME_SIZE];
	size_t count, head = columns / 3;

	escape_text(ESCAPE_PLAIN, name, text, sizeof(text));
	count = count_characters(text);
	if (count <= columns) {
		fputs(text, out);
		return;
	}
	/* The end says most: a path's last steps, a function's file and line. */
	fprintf(out, "%.*s\u2026%s", (int)(skip_characters(text, head) - text), text,
		skip_characters(text, count - (columns - head - 1)));
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

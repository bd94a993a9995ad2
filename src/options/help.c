/* SPDX-License-Identifier: MIT */
#include "src/options/help.h"

#include <ctype.h>
#include <string.h>

#include "output/formats/format.h"
#include "output/heap_reports/heap_report.h"
#include "src/options/option_table.h"
#include "src/options/similar.h"
#include "src/program/message.h"

enum { HELP_COLUMN = 28, HELP_WIDTH = 79 };

/* Print a word, on a new line if it does not fit. Returns the column behind it. */
static int print_word(FILE *out, int column, const char *word, const char *end)
{
	int length = (int)(strlen(word) + strlen(end));

	if (column > HELP_COLUMN && column + 1 + length > HELP_WIDTH) {
		fprintf(out, "\n%*s", HELP_COLUMN, "");
		column = HELP_COLUMN;
	}
	return column + fprintf(out, "%s%s%s", column > HELP_COLUMN ? " " : "", word, end);
}

/* List the command's formats, as the help of --format. */
static void print_formats(FILE *out, enum command command)
{
	const bool is_diff = command == COMMAND_DIFF;
	const bool heaps = command == COMMAND_HEAP || is_diff || command == COMMAND_REPORT;
	const char *last = NULL;
	int column = HELP_COLUMN;

	for (size_t i = 0; command != COMMAND_HEAP && i < format_count; i++) {
		if (is_diff && !formats[i].compare)
			continue;
		if (last)
			column = print_word(out, column, last, ",");
		last = formats[i].name;
	}
	for (size_t i = 0; heaps && i < heap_format_count; i++) {
		if ((is_diff && !heap_formats[i].compare) ||
		    (command != COMMAND_HEAP && format_by_name(heap_formats[i].name)))
			continue;
		if (last)
			column = print_word(out, column, last, ",");
		last = heap_formats[i].name;
	}
	print_word(out, column, last ? last : "", "\n");
}

static void print_option(FILE *out, const struct option_entry *option, enum command command)
{
	const char *argument = option->argument;
	char spelled[64];

	snprintf(spelled, sizeof(spelled), "--%s%s%s", option->name, argument ? " " : "",
		 argument ? argument : "");
	if (option->letter <= UCHAR_MAX)
		fprintf(out, "  -%c, %-20s  ", option->letter, spelled);
	else
		fprintf(out, "      %-20s  ", spelled);
	if (option->letter == 'f')
		print_formats(out, command);
	else
		fprintf(out, "%s\n", option->help);
}

void help_print(FILE *out)
{
	fputs("Usage: ljspy COMMAND [options]\n"
	      "Profile running LuaJIT programs from outside: Lua and native code in one stack.\n"
	      "\nCommands (may be abbreviated):\n",
	      out);
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		fprintf(out, "  %-10s%s\n", command_table[i].name, command_table[i].summary);
	fputs("\nExamples:\n", out);
	/* The first example of each command. */
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		fprintf(out, "%.*s", (int)strcspn(command_table[i].examples, "\n") + 1,
			command_table[i].examples);
	fputs("\n`ljspy help COMMAND` shows its options.\n", out);
}

void help_print_command(enum command command)
{
	const struct command_entry *entry = &command_table[command];

	printf("Usage: ljspy %s %s\n%c%s.\n\n", entry->name, entry->arguments,
	       toupper((unsigned char)entry->summary[0]), entry->summary + 1);
	for (size_t i = 0; i < option_count; i++)
		if (option_is_of(&option_table[i], command))
			print_option(stdout, &option_table[i], command);
	if (command_has_targets(command))
		puts("\nWithout a target: the only process that runs LuaJIT, or a list of several.");
	puts("\nExit status: 0 all is good, 1 there were errors, 2 nothing to show, 64 usage.");
	if (command == COMMAND_RECORD)
		puts("If COMMAND fails: its own status; if a signal ended it: 128 and its number.");
	printf("\nExamples:\n%s", entry->examples);
}

void help_print_version(void)
{
	puts("ljspy " LJSPY_VERSION);
}

void help_no_command(const char *command)
{
	struct similar similar = similar_begin(command);

	for (size_t i = 0; i < COMMAND_COUNT; i++)
		similar_add(&similar, command_table[i].name);
	message_error("There is no command \"%s\".", command);
	if (similar.best)
		message_note("Did you mean `ljspy %s`? `ljspy --help` shows the commands.", similar.best);
	else
		message_note("`ljspy --help` shows the commands.");
}

void help_no_option(enum command command, const char *option)
{
	char name[64];
	struct similar similar;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(option, "="), option);
	similar = similar_begin(name + strspn(name, "-"));
	for (size_t i = 0; i < option_count; i++)
		if (option_is_of(&option_table[i], command))
			similar_add(&similar, option_table[i].name);
	message_error("`ljspy %s` has no option %s.", command_table[command].name, name);
	if (similar.best)
		message_note("Did you mean --%s? `ljspy %s --help` shows the options.", similar.best,
			     command_table[command].name);
	else
		help_suggest(command);
}

void help_no_letter(enum command command, char letter)
{
	message_error("`ljspy %s` has no option -%c.", command_table[command].name, letter);
	help_suggest(command);
}

void help_suggest(enum command command)
{
	message_note("`ljspy %s --help` shows the options.", command_table[command].name);
}

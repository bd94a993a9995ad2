#include "src/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "output/names.h"
#include "src/filter_arguments.h"
#include "src/message.h"

enum {
	RECORD = 1 << COMMAND_RECORD,
	DUMP = 1 << COMMAND_DUMP,
	TOP = 1 << COMMAND_TOP,
	TRACES = 1 << COMMAND_TRACES,
	INFO = 1 << COMMAND_INFO,
	REPORT = 1 << COMMAND_REPORT,
	DIFF = 1 << COMMAND_DIFF,
	TARGETS = RECORD | DUMP | TOP | TRACES | INFO,	/* look at processes */
	RENDER = RECORD | REPORT | DIFF,	/* write profiles */
	ALL = TARGETS | RENDER,

	/* Letters of options that have none. */
	OPTION_NAME = UCHAR_MAX + 1,
	OPTION_TREE,
	OPTION_CLOCK,
	OPTION_OFF_CPU,
	OPTION_STATS,
	OPTION_NATIVE,
	OPTION_LINES,
	OPTION_ANNOTATE,
	OPTION_JSON,
	OPTION_CORE,
	OPTION_TRACES,
	OPTION_NO_STOP,
	OPTION_ALLOW_ATTACH,
	OPTION_VM_STATE,
	OPTION_LAYOUT,
	OPTION_DWARF,
	OPTION_INVERTED,
	OPTION_HEATMAP,
	OPTION_COROUTINES,
	OPTION_BLOCKED,
	OPTION_THRESHOLD,
	OPTION_MIN_PERCENT,
	OPTION_SINCE,
	OPTION_UNTIL,
	OPTION_TID,
	OPTION_THREAD,
	OPTION_STATE,
	OPTION_INCLUDE,
	OPTION_EXCLUDE,
	OPTION_BY,
	OPTION_MERGE_RECURSION,
};

static const uint64_t second_ns = 1000000000u;
static const uint64_t blocked_default_ns = 20000000u, blocked_min_ns = 1000000u;
static const uint64_t duration_max_ns = 366 * 24 * 3600 * UINT64_C(1000000000);

static const struct {
	const char *name;
	int letter;
	unsigned int commands;	/* that have it */
	const char *argument;	/* NULL if it takes none */
	const char *help;
} option_table[] = {
	{ "pid", 'p', TARGETS, "PID[,PID...]", "the processes to look at" },
	{ "name", OPTION_NAME, TARGETS, "PATTERN", "those whose name, program or script matches" },
	{ "tree", OPTION_TREE, TARGETS, "PID[,PID...]", "these and all their descendants, e.g. a master" },
	{ "subprocesses", 's', RECORD, NULL, "all descendants too, as with --tree" },
	{ "output", 'o', RENDER, "FILE", "where to write; - is stdout; the suffix tells -f" },
	{ "format", 'f', RENDER, "FORMAT", "" },
	{ "duration", 'd', RECORD, "TIME", "for how long: 30s, 2m, 1h, 500ms; else until Ctrl-C" },
	{ "duration", 'd', TRACES, "TIME", "for how long to take samples, if not for 3s" },
	{ "rate", 'r', RECORD | TOP | TRACES, "HZ", "samples per second of CPU time, 1 to 10000; else 99" },
	{ "clock", OPTION_CLOCK, RECORD, "CLOCK", "cpu: what runs (default); wall: what sleeps, too" },
	{ "coroutines", OPTION_COROUTINES, RECORD, NULL, "where coroutines wait after they have yielded" },
	{ "blocked", OPTION_BLOCKED, RECORD, NULL, "turns of event loops that take 20ms or more" },
	{ "threshold", OPTION_THRESHOLD, RECORD, "TIME", "the same, of turns that take so long" },
	{ "clock", OPTION_CLOCK, REPORT | DIFF, "CLOCK", "of recordings by the wall clock: cpu or wall" },
	{ "off-cpu", OPTION_OFF_CPU, RENDER, NULL, "time off the CPU, by what the threads wait for" },
	{ "no-stop", OPTION_NO_STOP, RECORD | TOP, NULL, "stop nobody; see only Lua, as far as it shows" },
	{ "allow-attach", OPTION_ALLOW_ATTACH, RECORD | DUMP | TOP | TRACES, NULL, "send SIGSTOP where PTRACE_SEIZE is missing" },
	{ "stats", OPTION_STATS, RECORD, "FILE", "write figures about the recording as JSON" },
	{ "native", OPTION_NATIVE, RECORD | DUMP | TOP, "WHICH", "native frames: all, none, or fold (as Lua calls it)" },
	{ "pid", 'p', REPORT | DIFF, "PID[,PID...]", "only these processes" },
	{ "tid", OPTION_TID, REPORT | DIFF, "TID[,TID...]", "only these threads" },
	{ "thread", OPTION_THREAD, REPORT | DIFF, "NAME", "only threads of that name" },
	{ "state", OPTION_STATE, REPORT | DIFF, "STATE[,...]", "only in these states: compiled, gc, blocked, ..." },
	{ "since", OPTION_SINCE, REPORT | DIFF, "TIME", "from that time after the beginning on" },
	{ "until", OPTION_UNTIL, REPORT | DIFF, "TIME", "up to that time after the beginning" },
	{ "include", OPTION_INCLUDE, REPORT | DIFF, "REGEX", "only stacks with such a function" },
	{ "exclude", OPTION_EXCLUDE, REPORT | DIFF, "REGEX", "only stacks without such a function" },
	{ "by", OPTION_BY, REPORT | DIFF, "WHAT", "group by pid, tid, comm, state, phase or module" },
	{ "merge-recursion", OPTION_MERGE_RECURSION, REPORT | DIFF, NULL, "show functions that call themselves once" },
	{ "lines", OPTION_LINES, RECORD | TOP | REPORT | DIFF, NULL, "tell lines apart, not only functions" },
	{ "inverted", OPTION_INVERTED, RECORD | REPORT, NULL, "callees at the root" },
	{ "heatmap", OPTION_HEATMAP, RECORD | REPORT, NULL, "above the flame graph, when it was: choose a range" },
	{ "traces", OPTION_TRACES, RECORD | DUMP, NULL, "show the trace that runs on top of compiled code" },
	{ "vm-state", OPTION_VM_STATE, RENDER, NULL, "split by state: interpreted, compiled, gc, ..." },
	{ "annotate", OPTION_ANNOTATE, RECORD | REPORT, NULL, "mark compiled Lua functions with _[j]" },
	{ "min-percent", OPTION_MIN_PERCENT, REPORT | DIFF, "SHARE", "leave out what took less of all time" },
	{ "core", OPTION_CORE, DUMP, "FILE", "a core file, in place of a process" },
	{ "json", OPTION_JSON, DUMP | TRACES, NULL, "write JSON, for programs to read" },
	{ "layout", OPTION_LAYOUT, TARGETS, "NAME|FILE", "LuaJIT's layout, instead of recognising it" },
	{ "dwarf", OPTION_DWARF, INFO, "FILE", "write the layout in debug info, for --layout" },
	{ "help", 'h', ALL, NULL, "show this" },
	{ "version", 'V', ALL, NULL, "show the version" },
};

enum { OPTION_COUNT = sizeof(option_table) / sizeof(option_table[0]) };

static const struct {
	const char *name;
	const char *arguments;
	const char *summary;
	const char *examples;
} command_table[COMMAND_COUNT] = {
	[COMMAND_RECORD] = {
		"record", "[options] [-- COMMAND [ARG...]]",
		"profile processes for a while and draw a flame graph",
		"  ljspy record -p 1234 -d 30s               ljspy-NAME-1234-DATE-TIME.svg\n"
		"  ljspy record --tree 1234 -d 1m            a master, its workers, new ones too\n"
		"  ljspy record -o - -f folded -- luajit game.lua\n",
	},
	[COMMAND_DUMP] = {
		"dump", "[options]",
		"show what every thread and coroutine is doing, once",
		"  ljspy dump -p 1234\n"
		"  ljspy dump --core core.1234\n"
		"  ljspy dump -p 1234 --json | jq '.processes[].vms[].coroutines'\n",
	},
	[COMMAND_TOP] = {
		"top", "[options]",
		"show live what takes the time; h tells the keys",
		"  ljspy top -p 1234\n"
		"  ljspy top --name nginx                    all workers, live\n",
	},
	[COMMAND_TRACES] = {
		"traces", "[options]",
		"show the compiled traces, and the time that is spent in each",
		"  ljspy traces -p 1234\n"
		"  ljspy traces -p 1234 -d 30s --json\n",
	},
	[COMMAND_INFO] = {
		"info", "[options]",
		"show what ljspy sees in a process, and what it may do",
		"  ljspy info -p 1234\n",
	},
	[COMMAND_REPORT] = {
		"report", "RECORDING... [options]",
		"show recordings, as text or in any format",
		"  ljspy report nginx.ljspy --include access_by_lua -o access.svg\n"
		"  ljspy report a.ljspy b.ljspy              their sum, as text\n",
	},
	[COMMAND_DIFF] = {
		"diff", "BEFORE AFTER [options]",
		"show what has changed between two recordings",
		"  ljspy diff before.ljspy after.ljspy -o diff.svg\n",
	},
};

enum { HELP_COLUMN = 28, HELP_WIDTH = 79 };

/* One more word, in another line if it does not fit. Returns the column behind it. */
static int print_word(FILE *out, int column, const char *word, const char *end)
{
	int length = (int)(strlen(word) + strlen(end));

	if (column > HELP_COLUMN && column + 1 + length > HELP_WIDTH) {
		fprintf(out, "\n%*s", HELP_COLUMN, "");
		column = HELP_COLUMN;
	}
	return column + fprintf(out, "%s%s%s", column > HELP_COLUMN ? " " : "", word, end);
}

/* The formats of a command, behind the option that chooses one. */
static void print_formats(FILE *out, enum command command)
{
	const struct format *last = NULL;
	int column = HELP_COLUMN;

	for (size_t i = 0; i < format_count; i++) {
		if (command == COMMAND_DIFF && !formats[i].compare)
			continue;
		if (last)
			column = print_word(out, column, last->name, ",");
		last = &formats[i];
	}
	print_word(out, column, last ? last->name : "", "\n");
}

static void print_option(FILE *out, size_t i, enum command command)
{
	const char *argument = option_table[i].argument;
	char spelled[64];

	snprintf(spelled, sizeof(spelled), "--%s%s%s", option_table[i].name, argument ? " " : "",
		 argument ? argument : "");
	if (option_table[i].letter <= UCHAR_MAX)
		fprintf(out, "  -%c, %-20s  ", option_table[i].letter, spelled);
	else
		fprintf(out, "      %-20s  ", spelled);
	if (option_table[i].letter == 'f')
		print_formats(out, command);
	else
		fprintf(out, "%s\n", option_table[i].help);
}

/* The first example of each command. */
static void print_help(FILE *out)
{
	fputs("Usage: ljspy COMMAND [options]\n"
	      "Profile running LuaJIT programs from outside: Lua and native code in one stack.\n"
	      "\nCommands (may be abbreviated):\n", out);
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		fprintf(out, "  %-8s%s\n", command_table[i].name, command_table[i].summary);
	fputs("\nExamples:\n", out);
	/* The first of each. */
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		fprintf(out, "%.*s", (int)strcspn(command_table[i].examples, "\n") + 1,
			command_table[i].examples);
	fputs("\n`ljspy COMMAND --help` tells of its options.\n", out);
}

static void print_command_help(enum command command)
{
	printf("Usage: ljspy %s %s\n%c%s.\n\n", command_table[command].name, command_table[command].arguments,
	       toupper((unsigned char)command_table[command].summary[0]),
	       command_table[command].summary + 1);
	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (option_table[i].commands & (1u << command))
			print_option(stdout, i, command);
	if (TARGETS & (1u << command))
		puts("\nWithout any target: the one process that runs LuaJIT, or a list of them.");
	printf("\nExamples:\n%s", command_table[command].examples);
}

static void print_version(void)
{
	puts("ljspy " LJSPY_VERSION);
}

static void suggest_help(enum command command)
{
	message_note("`ljspy %s --help` shows the options.", command_table[command].name);
}

static const char *command_name(enum command command)
{
	return command_table[command].name;
}

/* False, and said why, unless the text is the beginning of just one command. */
static bool parse_command(const char *text, enum command *ret_command)
{
	int found = -1;

	for (int i = 0; i < COMMAND_COUNT; i++) {
		if (strncmp(command_table[i].name, text, strlen(text)) != 0)
			continue;
		if (found >= 0) {
			message_error("\"%s\" may be %s or %s.", text, command_table[found].name,
				      command_table[i].name);
			return false;
		}
		found = i;
	}
	if (found < 0 || !*text) {
		message_error("There is no command \"%s\".", text);
		message_note("`ljspy --help` shows the commands.");
		return false;
	}
	*ret_command = (enum command)found;
	return true;
}

/* A decimal number up to maximum that *text begins with; *text is moved behind it. */
static bool take_number(const char **text, uint64_t maximum, uint64_t *ret)
{
	const char *at = *text;
	uint64_t value = 0;

	for (; *at >= '0' && *at <= '9'; at++) {
		value = value * 10 + (uint64_t)(*at - '0');
		if (value > maximum)
			return false;
	}
	if (at == *text)
		return false;
	*text = at;
	*ret = value;
	return true;
}

/* Ids are unique. */
static bool add_id(pid_t **ids, size_t *count, pid_t id)
{
	for (size_t i = 0; i < *count; i++)
		if ((*ids)[i] == id)
			return true;
	if (!*ids)
		*ids = calloc(OPTIONS_PIDS_MAX, sizeof(**ids));
	if (!*ids || *count == OPTIONS_PIDS_MAX) {
		message_error("There are more than %d processes.", OPTIONS_PIDS_MAX);
		return false;
	}
	(*ids)[(*count)++] = id;
	return true;
}

static bool parse_ids(const struct options *options, const char *text, pid_t **ids, size_t *count)
{
	const char *at = text;
	uint64_t id;

	do {
		if (!take_number(&at, INT_MAX, &id) || id == 0 || (*at && *at != ',')) {
			message_error("\"%s\" is not an id, or several with commas between.", text);
			if (TARGETS & (1u << options->command))
				message_note("To choose processes by name, use --name.");
			return false;
		}
		if (!add_id(ids, count, (pid_t)id))
			return false;
	} while (*at++ == ',');
	return true;
}

/* "svg, folded and ljspy" */
static void list_formats(char *text, size_t size)
{
	size_t length = 0;

	for (size_t i = 0; i < format_count && length < size; i++)
		length += (size_t)snprintf(text + length, size - length, "%s%s", formats[i].name,
					   i + 2 < format_count ? ", " : i + 1 < format_count ? " and " : "");
}

static bool parse_format(const char *text, const struct format **ret_format)
{
	const struct format *format = format_by_name(text);
	char all[256];

	if (format) {
		*ret_format = format;
		return true;
	}
	list_formats(all, sizeof(all));
	message_error("There is no format \"%s\".", text);
	message_note("The formats are %s.", all);
	return false;
}

/* The digits behind a decimal point, in millionths: at least one, at most six. */
static bool take_millionths(const char **text, uint64_t *ret)
{
	uint64_t value = 0, unit = 1000000;
	const char *at = *text;

	for (; *at >= '0' && *at <= '9' && unit > 1; at++)
		value += (uint64_t)(*at - '0') * (unit /= 10);
	if (at == *text)
		return false;
	*text = at;
	*ret = value;
	return true;
}

/* "90", "1.5s", "12.34s", "500ms", "2m", "1h" */
static bool parse_duration(const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = {
		{ "", second_ns }, { "s", second_ns }, { "ms", second_ns / 1000 },
		{ "m", 60 * second_ns }, { "h", 3600 * second_ns },
	};
	uint64_t whole, millionths = 0;
	const char *at = text;

	if (!take_number(&at, duration_max_ns / second_ns, &whole))
		return false;
	if (*at == '.') {
		at++;
		if (!take_millionths(&at, &millionths))
			return false;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		uint64_t ns;

		if (strcmp(at, units[i].unit) != 0)
			continue;
		if (whole > duration_max_ns / units[i].ns)
			return false;
		ns = whole * units[i].ns + millionths * units[i].ns / 1000000;
		if (ns == 0)
			return false;
		*ret_ns = ns;
		return true;
	}
	return false;
}

static bool complain_of_time(const char *text, const char *what)
{
	message_error("\"%s\" is not a %s.", text, what);
	message_note("Write it like 30s, 2m, 1h, 500ms or 12.34s; a year is the most.");
	return false;
}

/* "0.5", "10", up to 100 */
static bool parse_percent(const char *text, double *ret_percent)
{
	const char *at = text;
	uint64_t whole, millionths = 0;

	if (take_number(&at, 100, &whole) && *at == '.') {
		at++;
		take_millionths(&at, &millionths);
	}
	if (at != text && !*at && (double)whole + (double)millionths / 1e6 <= 100) {
		*ret_percent = (double)whole + (double)millionths / 1e6;
		return true;
	}
	message_error("\"%s\" is not a part in percent.", text);
	return false;
}

static bool parse_native(const char *text, enum native_display *ret_native)
{
	static const char *const names[] = {
		[NATIVE_FOLD] = "fold", [NATIVE_ALL] = "all", [NATIVE_NONE] = "none",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(text, names[i]) == 0) {
			*ret_native = (enum native_display)i;
			return true;
		}
	message_error("\"%s\" is not a way to show native code.", text);
	message_note("The ways are all, fold and none; fold unless given.");
	return false;
}

static bool parse_clock(const char *text, enum profile_weight *ret_clock)
{
	for (enum profile_weight clock = PROFILE_CPU_TIME; clock <= PROFILE_WALL_TIME; clock++)
		if (strcmp(text, profile_weight_name(clock)) == 0) {
			*ret_clock = clock;
			return true;
		}
	message_error("There is no clock \"%s\".", text);
	message_note("The clocks are cpu and wall.");
	return false;
}

static bool parse_layout(struct options *options, const char *argument)
{
	if (!options->layout)
		options->layout = malloc(sizeof(*options->layout));
	if (!options->layout) {
		message_error_errno(ENOMEM, "%s", argument);
		return false;
	}
	return given_layout_read(argument, options->layout);
}

/* Which samples of a recording are wanted. */
static bool parse_filter_option(struct options *options, int letter, const char *argument)
{
	switch (letter) {
	case OPTION_SINCE:
		return parse_duration(argument, &options->since_ns) || complain_of_time(argument, "time");
	case OPTION_UNTIL:
		return parse_duration(argument, &options->until_ns) || complain_of_time(argument, "time");
	case OPTION_TID:
		return parse_ids(options, argument, &options->tids, &options->filter.tid_count);
	case OPTION_THREAD:
		options->filter.thread = argument;
		return true;
	case OPTION_STATE:
		return filter_arguments_states(argument, &options->filter);
	case OPTION_INCLUDE:
		return filter_arguments_pattern(argument, &options->include);
	case OPTION_EXCLUDE:
		return filter_arguments_pattern(argument, &options->exclude);
	case OPTION_BY:
		return filter_arguments_group(argument, &options->filter);
	case OPTION_MERGE_RECURSION:
		options->filter.merge_recursion = true;
		return true;
	default:
		return false;
	}
}

static bool parse_option(struct options *options, int letter, const char *argument)
{
	uint64_t number;

	switch (letter) {
	case 'p':
		return parse_ids(options, argument, &options->pids, &options->pid_count);
	case OPTION_NAME:
		options->name = argument;
		return true;
	case OPTION_TREE:
		options->subprocesses = true;
		return parse_ids(options, argument, &options->pids, &options->pid_count);
	case 's':
		options->subprocesses = true;
		return true;
	case 'o':
		options->output = argument;
		return true;
	case 'f':
		return parse_format(argument, &options->format);
	case 'd':
		if (parse_duration(argument, &options->duration_ns))
			return true;
		return complain_of_time(argument, "duration");
	case 'r':
		if (take_number(&argument, OPTIONS_RATE_MAX, &number) && !*argument && number > 0) {
			options->rate_hz = (unsigned int)number;
			return true;
		}
		message_error("The rate is to be a number from 1 to %d, in samples per second.",
			      OPTIONS_RATE_MAX);
		return false;
	case OPTION_COROUTINES:
		options->coroutines = true;
		return true;
	case OPTION_BLOCKED:
		if (!options->blocked_ns)
			options->blocked_ns = blocked_default_ns;
		return true;
	case OPTION_THRESHOLD:
		if (parse_duration(argument, &options->blocked_ns) && options->blocked_ns >= blocked_min_ns)
			return true;
		message_error("\"%s\" is not a threshold from 1ms on.", argument);
		return false;
	case OPTION_CLOCK:
		options->clock_given = true;
		return parse_clock(argument, &options->clock);
	case OPTION_OFF_CPU:
		options->clock_given = true;
		options->clock = PROFILE_OFF_CPU_TIME;
		return true;
	case OPTION_STATS:
		options->stats = argument;
		return true;
	case OPTION_NATIVE:
		return parse_native(argument, &options->native);
	case OPTION_LINES:
		options->lines = true;
		return true;
	case OPTION_NO_STOP:
		options->no_stop = true;
		return true;
	case OPTION_ALLOW_ATTACH:
		options->allow_attach = true;
		return true;
	case OPTION_TRACES:
		options->traces = true;
		return true;
	case OPTION_VM_STATE:
		options->filter.group = GROUP_STATE;
		return true;
	case OPTION_ANNOTATE:
		options->annotate = true;
		return true;
	case OPTION_CORE:
		options->core = argument;
		return true;
	case OPTION_JSON:
		options->json = true;
		return true;
	case OPTION_INVERTED:
		options->inverted = true;
		return true;
	case OPTION_HEATMAP:
		options->heatmap = true;
		return true;
	case OPTION_MIN_PERCENT:
		return parse_percent(argument, &options->min_percent);
	case OPTION_LAYOUT:
		return parse_layout(options, argument);
	case OPTION_DWARF:
		options->dwarf = argument;
		return true;
	default:
		return parse_filter_option(options, letter, argument);
	}
}

/* For getopt_long(): the options that the command has. */
struct getopt_tables {
	char letters[2 + 2 * OPTION_COUNT + 1];
	struct option names[OPTION_COUNT + 1];
};

static void fill_tables(enum command command, struct getopt_tables *tables)
{
	char *letter = tables->letters;
	size_t count = 0;

	memset(tables, 0, sizeof(*tables));
	if (TARGETS & (1u << command))
		*letter++ = '+';	/* stop at the first argument that is no option */
	*letter++ = ':';	/* tell a missing argument from an unknown option */
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		if (!(option_table[i].commands & (1u << command)))
			continue;
		tables->names[count++] = (struct option){
			.name = option_table[i].name,
			.has_arg = option_table[i].argument ? required_argument : no_argument,
			.val = option_table[i].letter,
		};
		if (option_table[i].letter > UCHAR_MAX)
			continue;
		*letter++ = (char)option_table[i].letter;
		if (option_table[i].argument)
			*letter++ = ':';
	}
}

/* The format follows the name of the file unless it was given. */
static bool follow_name(struct options *options)
{
	const char *slash, *name;

	if (options->format)
		return true;
	options->format = format_by_name(TARGETS & (1u << options->command) || options->heatmap ? "svg" : "text");
	if (!options->output)
		return true;
	slash = strrchr(options->output, '/');
	name = slash ? slash + 1 : options->output;
	if (!strchr(name, '.') || name[strlen(name) - 1] == '.')
		return true;
	options->format = format_by_path(name);
	if (options->format)
		return true;
	message_error("\"%s\" does not tell which format is wanted.", options->output);
	message_note("Use a name that ends in .svg or the like, or add -f svg or the like.");
	return false;
}

static bool choose_format(struct options *options)
{
	if (!follow_name(options))
		return false;
	if (options->heatmap && !options->format->picture) {
		message_error("A heat map is part of a flame graph: the format %s has none.", options->format->name);
		return false;
	}
	if (options->command != COMMAND_DIFF || options->format->compare)
		return true;
	message_error("The format %s cannot show what has changed.", options->format->name);
	suggest_help(options->command);
	return false;
}

static bool take_recordings(struct options *options, char **rest)
{
	size_t count = 0;

	while (rest[count])
		count++;
	if (options->command == COMMAND_DIFF ? count != 2 : count == 0) {
		message_error("`ljspy %s` takes %s.", command_name(options->command),
			      options->command == COMMAND_DIFF ? "two recordings" : "a recording, or several");
		suggest_help(options->command);
		return false;
	}
	options->recordings = rest;
	return true;
}

/* What is left behind the options: recordings, nothing, or "--" and a command to start. */
static bool parse_rest(struct options *options, char **rest, bool separated)
{
	if (!(TARGETS & (1u << options->command)))
		return take_recordings(options, rest);
	if (!*rest && !separated)
		return true;
	if (!separated || options->command != COMMAND_RECORD) {
		message_error("\"%s\" is one argument too many.", separated ? "--" : *rest);
		message_note("A process is chosen by -p, --tree or --name; a command to start follows \"--\" in `ljspy record`.");
		return false;
	}
	if (!*rest) {
		message_error("After \"--\" a command is missing.");
		suggest_help(options->command);
		return false;
	}
	options->launch = rest;
	return true;
}

static bool check_targets(const struct options *options)
{
	int ways = (options->pid_count > 0) + (options->name != NULL) + (options->launch != NULL) +
		   (options->core != NULL);

	if (options->no_stop && options->launch) {
		message_error("--no-stop is for processes that run: a command that ljspy starts is stopped for it.");
		return false;
	}
	if (ways <= 1)
		return true;
	message_error(options->command == COMMAND_DUMP
		      ? "Only one of -p or --tree, --name and --core can be given."
		      : "Only one of -p or --tree, --name and a command to start can be given.");
	suggest_help(options->command);
	return false;
}

/*
 * Looks come at a random moment of each period: two are less than two periods
 * apart, in which no turn that is asked for may pass.
 */
static bool settle_blocked(struct options *options)
{
	uint64_t rate_hz = (2 * second_ns + options->blocked_ns - 1) / (options->blocked_ns ? options->blocked_ns : 1);

	if (!options->blocked_ns)
		return true;
	if (options->no_stop) {
		message_error("With --no-stop, turns of event loops (--blocked) cannot be told.");
		return false;
	}
	options->clock = PROFILE_WALL_TIME;
	if (options->rate_hz < rate_hz)
		options->rate_hz = (unsigned int)rate_hz;
	return true;
}

static bool settle_coroutines(struct options *options)
{
	if (options->coroutines && (options->no_stop || options->blocked_ns)) {
		message_error("--coroutines does not go together with %s.", options->no_stop ? "--no-stop" : "--blocked");
		return false;
	}
	if (options->coroutines)
		options->clock = PROFILE_WALL_TIME;
	if (options->rate_hz == 0)
		options->rate_hz = options->coroutines ? OPTIONS_RATE_COROUTINES : OPTIONS_RATE_DEFAULT;
	return true;
}

/* True to go on; otherwise *ret_status is what to exit with. */
static bool parse_arguments(int argc, char **argv, struct options *options, enum exit_status *ret_status)
{
	struct getopt_tables tables;
	int letter;

	fill_tables(options->command, &tables);
	*ret_status = EXIT_USAGE;
	opterr = 0;
	optind = 0;	/* begin anew, also within a program that has parsed before */
	while ((letter = getopt_long(argc, argv, tables.letters, tables.names, NULL)) != -1) {
		switch (letter) {
		case 'h':
			print_command_help(options->command);
			*ret_status = EXIT_ALL_GOOD;
			return false;
		case 'V':
			print_version();
			*ret_status = EXIT_ALL_GOOD;
			return false;
		case ':':
			message_error("%s needs an argument.", argv[optind - 1]);
			suggest_help(options->command);
			return false;
		case '?':
			if (optopt && optopt <= UCHAR_MAX)
				message_error("`ljspy %s` has no option -%c.", command_name(options->command), optopt);
			else
				message_error("`ljspy %s` has no option %s.", command_name(options->command),
					      argv[optind - 1]);
			suggest_help(options->command);
			return false;
		default:
			if (!parse_option(options, letter, optarg))
				return false;
		}
	}
	return parse_rest(options, argv + optind, optind > 1 && strcmp(argv[optind - 1], "--") == 0) &&
	       check_targets(options) && settle_coroutines(options) && settle_blocked(options) && choose_format(options);
}

bool options_parse(int argc, char **argv, struct options *ret_options, enum exit_status *ret_status)
{
	*ret_options = (struct options){ 0 };
	*ret_status = EXIT_USAGE;
	if (argc < 2) {
		print_help(stderr);
		return false;
	}
	if (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0) {
		print_help(stdout);
		*ret_status = EXIT_ALL_GOOD;
		return false;
	}
	if (strcmp(argv[1], "-V") == 0 || strcmp(argv[1], "--version") == 0) {
		print_version();
		*ret_status = EXIT_ALL_GOOD;
		return false;
	}
	if (argv[1][0] == '-') {
		message_error("A command comes before options such as %s.", argv[1]);
		message_note("`ljspy --help` shows the commands.");
		return false;
	}
	return parse_command(argv[1], &ret_options->command) &&
	       parse_arguments(argc - 1, argv + 1, ret_options, ret_status);
}

void options_clear(struct options *options)
{
	free(options->pids);
	options->pids = NULL;
	options->pid_count = 0;
	free(options->layout);
	options->layout = NULL;
	free(options->tids);
	options->tids = NULL;
	filter_arguments_free_pattern(options->include);
	filter_arguments_free_pattern(options->exclude);
	options->include = options->exclude = NULL;
}

char *options_default_output(const char *name, pid_t pid, const struct format *format)
{
	char harmless[32], id[16] = "", date[32], *path;
	time_t now = time(NULL);
	struct tm local;
	size_t length = 0;

	for (; *name && length < sizeof(harmless) - 1; name++) {
		bool is_harmless = isalnum((unsigned char)*name) || *name == '_' || *name == '.' || *name == '-';

		if (is_harmless)
			harmless[length++] = *name;
		else
			harmless[length++] = '_';
	}
	harmless[length] = '\0';
	if (!localtime_r(&now, &local) || !strftime(date, sizeof(date), "%Y%m%d-%H%M%S", &local))
		snprintf(date, sizeof(date), "%lld", (long long)now);
	if (pid)
		snprintf(id, sizeof(id), "%d-", (int)pid);
	if (asprintf(&path, "ljspy-%s-%s%s.%s", harmless, id, date, format->suffix) < 0)
		return NULL;
	return path;
}

/* SPDX-License-Identifier: MIT */
#include "src/options/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/options/filter_arguments.h"
#include "src/options/heeded.h"
#include "src/options/help.h"
#include "src/options/option_table.h"
#include "src/options/option_values.h"
#include "src/program/message.h"

static const uint64_t second_ns = 1000000000u;
static const uint64_t blocked_default_ns = 20000000u;
static const uint64_t archive_every_min_ns = 1000000000u;
static const uint64_t when_for_default_ns = UINT64_C(30) * 1000000000u;
static const uint64_t when_for_max_ns = UINT64_C(3600) * 1000000000u;
static const uint64_t archive_keep_default_ns = UINT64_C(24) * 3600 * 1000000000u;
enum { ARCHIVE_BYTES_MIN = 1 << 20, ARCHIVE_BYTES_DEFAULT = 1 << 30, AT_MOST_DEFAULT = 6 };

/* Tell which commands begin with this text. */
static void explain_ambiguous(const char *text)
{
	char names[COMMAND_COUNT * 16];
	size_t length = 0, left = 0;

	for (int i = 0; i < COMMAND_COUNT; i++)
		left += strncmp(command_table[i].name, text, strlen(text)) == 0;
	for (int i = 0; i < COMMAND_COUNT; i++) {
		if (strncmp(command_table[i].name, text, strlen(text)) != 0)
			continue;
		left--;
		length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%s",
					   command_table[i].name,
					   left > 1 ? ", "
					   : left   ? " or "
						    : "");
	}
	message_error("\"%s\" may be %s.", text, names);
}

/* False, after telling the user, unless the text is the beginning of exactly one command. */
static bool parse_command(const char *text, enum command *ret_command)
{
	int found = -1;

	for (int i = 0; i < COMMAND_COUNT; i++) {
		if (strncmp(command_table[i].name, text, strlen(text)) != 0)
			continue;
		if (found >= 0) {
			explain_ambiguous(text);
			return false;
		}
		found = i;
	}
	if (found < 0 || !*text) {
		help_no_command(text);
		return false;
	}
	*ret_command = (enum command)found;
	return true;
}

static bool parse_layout(struct options *options, const char *argument)
{
	if (!options->layout)
		options->layout = malloc(sizeof(*options->layout));
	if (!options->layout)
		return option_value_no_memory(argument);
	options->layout_text = argument;
	return given_layout_read(argument, options->layout);
}

/* Of recordings or, by what the files are, of heaps. */
static bool parse_group(struct options *options, const char *argument)
{
	if (options->command == COMMAND_HEAP)
		return option_value_heap_group(argument, &options->heap_group);
	if (!heap_grouping_by_name(argument, &options->heap_group))
		return filter_arguments_group(argument, &options->filter);
	return options->heap_group != HEAP_GROUP_MODULE || filter_arguments_group(argument, &options->filter);
}

static bool parse_condition(struct options *options, const char *argument)
{
	if (options->condition_count == CONDITIONS_MAX) {
		message_error("--when can be given %d times at most.", CONDITIONS_MAX);
		return false;
	}
	if (!condition_read(argument, &options->conditions[options->condition_count]))
		return false;
	options->condition_count++;
	return true;
}

/* Options that choose samples of a recording. */
static bool parse_filter_option(struct options *options, int letter, const char *argument)
{
	switch (letter) {
	case OPTION_SINCE: return option_value_moment(argument, &options->since_ns, &options->since);
	case OPTION_UNTIL: return option_value_moment(argument, &options->until_ns, &options->until);
	case OPTION_TID: return option_value_ids(argument, false, &options->tids, &options->filter.tid_count);
	case OPTION_THREAD: options->filter.thread = argument; return true;
	case OPTION_STATE: return filter_arguments_states(argument, &options->filter);
	case OPTION_INCLUDE: return filter_arguments_pattern(argument, &options->include);
	case OPTION_EXCLUDE: return filter_arguments_pattern(argument, &options->exclude);
	case OPTION_INCLUDE_REQUEST: return filter_arguments_pattern(argument, &options->include_request);
	case OPTION_SLOWER_THAN:
		return option_value_slowness(argument, &options->filter.slower_than_ns,
					     &options->filter.slower_than_ppm);
	case OPTION_REQUEST:
		return option_value_request(argument, &options->filter.connection, &options->filter.number);
	case OPTION_BY: return parse_group(options, argument);
	case OPTION_MERGE_RECURSION: options->filter.merge_recursion = true; return true;
	default: return false;
	}
}

/* Options that choose how samples are shown. */
static bool parse_view_option(struct options *options, int letter, const char *argument)
{
	switch (letter) {
	case OPTION_NATIVE: return option_value_native(argument, &options->native);
	case OPTION_LINES: options->lines = true; return true;
	case OPTION_VM_STATE: options->filter.group = GROUP_STATE; return true;
	case OPTION_ANNOTATE: options->annotate = true; return true;
	case OPTION_EXACT_PATHS: options->exact_paths = true; return true;
	case OPTION_MEASURE: return option_value_measure(argument, &options->measure);
	case OPTION_INVERTED: options->inverted = true; return true;
	case OPTION_HEATMAP: options->heatmap = true; return true;
	case OPTION_SOURCE: options->source = true; return true;
	case OPTION_MIN_PERCENT: return option_value_percent(argument, &options->min_percent);
	default: return parse_filter_option(options, letter, argument);
	}
}

/* Options that tell where profiles and samples go, and when. */
static bool parse_service_option(struct options *options, int letter, const char *argument)
{
	switch (letter) {
	case OPTION_EVERY:
		return option_value_time(argument, "time from one to the next", &options->every_ns);
	case OPTION_LISTEN: options->listen = argument; return true;
	case OPTION_TOKEN_FILE: options->token_file = argument; return true;
	case OPTION_PUSH: options->push = argument; return true;
	case OPTION_PUSH_CREDENTIALS: options->push_credentials = argument; return true;
	case OPTION_PUSH_CA: options->push_ca = argument; return true;
	case OPTION_WHEN: return parse_condition(options, argument);
	case OPTION_AT_MOST: return option_value_at_most(argument, &options->at_most);
	case OPTION_KEEP: return option_value_time(argument, "time", &options->keep_ns);
	case OPTION_KEEP_BYTES: return option_value_size(argument, &options->keep_bytes);
	case OPTION_FOR: return option_value_time(argument, "duration", &options->for_ns);
	default: return parse_view_option(options, letter, argument);
	}
}

/* Which formats does the command write? */
static unsigned int formats_of(const struct options *options)
{
	if (options->command == COMMAND_HEAP)
		return FORMATS_OF_HEAPS;
	return options->command == COMMAND_REPORT || options->command == COMMAND_DIFF
		       ? FORMATS_OF_PROFILES | FORMATS_OF_HEAPS
		       : FORMATS_OF_PROFILES;
}

static bool parse_option(struct options *options, int letter, const char *argument)
{
	bool has_targets = command_has_targets(options->command);

	switch (letter) {
	case 'p': return option_value_ids(argument, has_targets, &options->pids, &options->pid_count);
	case OPTION_NAME: options->name = argument; return true;
	case OPTION_TREE:
		options->subprocesses = true;
		return option_value_ids(argument, has_targets, &options->pids, &options->pid_count);
	case 's': options->subprocesses = true; return true;
	case 'o': return option_value_file(argument, "-o", &options->output);
	case 'f':
		return option_value_format(argument, formats_of(options), &options->format,
					   &options->heap_format);
	case 'd': return option_value_time(argument, "duration", &options->duration_ns);
	case 'r': return option_value_rate(argument, &options->rate_hz);
	case OPTION_COROUTINES: options->coroutines = true; return true;
	case OPTION_REQUESTS: options->requests = true; return true;
	case OPTION_ALLOC: options->alloc = true; return true;
	case OPTION_BLOCKED:
		if (!options->blocked_ns)
			options->blocked_ns = blocked_default_ns;
		return true;
	case OPTION_THRESHOLD: return option_value_threshold(argument, &options->blocked_ns);
	case OPTION_CLOCK:
		options->clock_given = true;
		return option_value_clock(argument, has_targets, &options->clock);
	case OPTION_OFF_CPU:
		options->clock_given = true;
		options->clock = WEIGHT_OFF_CPU_TIME;
		return true;
	case OPTION_STATS: return option_value_file(argument, "--stats", &options->stats);
	case OPTION_NO_STOP: options->no_stop = true; return true;
	case OPTION_ALLOW_ATTACH: options->allow_attach = true; return true;
	case OPTION_TRACES: options->traces = true; return true;
	case OPTION_CORE: options->core = argument; return true;
	case OPTION_SHOW: return option_value_trace(argument, &options->show);
	case OPTION_BYTECODE: options->bytecode = argument; return true;
	case OPTION_JSON: options->json = true; return true;
	case OPTION_MAX_PAUSE: return option_value_time(argument, "pause", &options->max_pause_ns);
	case OPTION_DETAIL: options->details = true; return true;
	case OPTION_LOCALS: options->locals = true; return true;
	case OPTION_WATCH: options->watch = true; return true;
	case OPTION_STRINGS: options->strings = true; return true;
	case 'v': options->verbose = true; return true;
	case OPTION_LAYOUT: return parse_layout(options, argument);
	case OPTION_DWARF: options->dwarf = argument; return true;
	default: return parse_service_option(options, letter, argument);
	}
}

/* Note options that only profiles or only heaps have: what the files are shows later. */
static void note_kind(struct options *options, int letter, const char *argument)
{
	const struct option_entry *option = option_of_letter(options->command, letter);
	const struct given_option given = { option->name, argument };
	enum heap_grouping group;

	if (command_has_targets(options->command))
		return;
	if (letter == OPTION_BY ? !heap_grouping_by_name(argument, &group)
				: !option_is_of(option, COMMAND_HEAP))
		options->for_profiles = given;
	else if (letter == OPTION_MEASURE || (letter == OPTION_BY && group != HEAP_GROUP_MODULE))
		options->for_heaps = given;
}

/* Unless -f gives the format, derive it from the output's name. False after telling the user. */
static bool follow_name(struct options *options)
{
	const char *slash, *name;

	if (options->format || options->heap_format)
		return true;
	options->heap_format = heap_format_by_name("text");
	options->format = format_by_name(command_has_targets(options->command) || options->heatmap ? "svg"
												   : "text");
	if (!options->output)
		return true;
	slash = strrchr(options->output, '/');
	name = slash ? slash + 1 : options->output;
	if (!strchr(name, '.') || name[strlen(name) - 1] == '.')
		return true;
	options->format = formats_of(options) & FORMATS_OF_PROFILES ? format_by_path(name) : NULL;
	options->heap_format = formats_of(options) & FORMATS_OF_HEAPS ? heap_format_by_path(name) : NULL;
	if (options->format || options->heap_format)
		return true;
	message_error("\"%s\" does not tell which format is wanted.", options->output);
	message_note("Use a name that ends in .svg or the like, or add -f svg or the like.");
	return false;
}

static bool choose_format(struct options *options)
{
	const char *name;

	if (!follow_name(options))
		return false;
	if (options->heatmap && options->format && !options->format->picture) {
		message_error("A heat map is part of a flame graph: the format %s has none.",
			      options->format->name);
		return false;
	}
	if (!heeded_check(options, formats_of(options)))
		return false;
	if (options->command != COMMAND_DIFF || (options->format && options->format->compare) ||
	    (options->heap_format && options->heap_format->compare))
		return true;
	name = options->format        ? options->format->name
	       : options->heap_format ? options->heap_format->name
				      : "";
	options_explain_no_comparison(name);
	help_suggest(options->command);
	return false;
}

/*
 * Looks come at a random moment of each period, so two are less than two periods apart.
 * Raise the rate until two periods are no longer than the threshold: a look then falls
 * into each such turn.
 */
static void see_turns(struct options *options, uint64_t threshold_ns)
{
	uint64_t rate_hz = (2 * second_ns + threshold_ns - 1) / threshold_ns;

	options->clock = WEIGHT_WALL_TIME;
	if (options->rate_hz < rate_hz)
		options->rate_hz = (unsigned int)rate_hz;
}

static const char push_wants_every[] = "--push sends what is recorded --every so often into a directory.";

/* What is wrong with options that are for an archive alone, without one; NULL if nothing is. */
static const char *stray_archive_option(const struct options *options)
{
	if (options->push)
		return push_wants_every;
	if (options->keep_ns || options->keep_bytes)
		return "--keep and --keep-bytes bound what is recorded --every so often or --when it happens.";
	if (options->command == COMMAND_RECORD && (options->for_ns || options->at_most))
		return "--for and --at-most go with --when.";
	return NULL;
}

/* What does not go together with an archive; NULL if all does. */
static const char *conflict_with_archive(const struct options *options)
{
	if (options->push && !options->every_ns)
		return push_wants_every;
	if (options->every_ns && options->condition_count)
		return "--every records all the time, and --when at times: give one of them.";
	if (!options->output || strcmp(options->output, "-") == 0)
		return "With --every and --when, -o names the directory for the recordings.";
	if ((options->format && !options->format->recording) || options->stats)
		return "With --every and --when, ljspy writes recordings only; `ljspy report` shows them in "
		       "any format.";
	if (options->blocked_ns)
		return options->every_ns ? "--every does not go together with --blocked."
					 : "--when takes a condition in place of --blocked: blocked>20ms.";
	if (options->every_ns && options->every_ns < archive_every_min_ns)
		return "--every is a second or more.";
	if (options->every_ns && (options->for_ns || options->at_most))
		return "--for and --at-most go with --when.";
	if (options->for_ns > when_for_max_ns)
		return "--for is an hour at most.";
	if (options->keep_ns && options->keep_ns < options->every_ns)
		return "--keep is to be longer than --every.";
	if (options->keep_bytes && options->keep_bytes < ARCHIVE_BYTES_MIN)
		return "--keep-bytes is 1M or more.";
	return NULL;
}

/* Conditions on turns of event loops need samples of the wall clock, like --blocked. */
static bool resolve_conditions(struct options *options)
{
	uint64_t blocked_ns = conditions_blocked_ns(options->conditions, options->condition_count);

	if (options->condition_count == 0)
		return true;
	if (options->coroutines || options->no_stop) {
		message_error("--when does not go together with %s.",
			      options->no_stop ? "--no-stop" : "--coroutines");
		return false;
	}
	if (!options->for_ns)
		options->for_ns = when_for_default_ns;
	if (!options->at_most)
		options->at_most = AT_MOST_DEFAULT;
	if (blocked_ns)
		see_turns(options, blocked_ns);
	return true;
}

/* Complete the options of an archive of recordings; what is given for one makes sense for no other. */
static bool resolve_archive(struct options *options)
{
	const bool is_wanted = options_want_archive(options);
	const char *wrong = is_wanted ? conflict_with_archive(options) : stray_archive_option(options);

	if ((options->push_credentials || options->push_ca) && !options->push) {
		message_error("--push-credentials and --push-ca are for --push URL.");
		help_suggest(options->command);
		return false;
	}
	if (wrong) {
		message_error("%s", wrong);
		if (is_wanted)
			message_note("For example: ljspy record --name nginx %s -o DIRECTORY/",
				     options->condition_count ? "--when 'cpu>90% for 10s'"
							      : "--every 1m --keep 24h");
		else
			help_suggest(options->command);
		return false;
	}
	if (!is_wanted)
		return true;
	if (!options->keep_ns)
		options->keep_ns = archive_keep_default_ns > options->every_ns ? archive_keep_default_ns
									       : options->every_ns;
	if (!options->keep_bytes)
		options->keep_bytes = ARCHIVE_BYTES_DEFAULT;
	if (!options->rate_hz && !options->coroutines)
		options->rate_hz = OPTIONS_RATE_ARCHIVE;
	options->format = format_by_name("ljspy");
	return resolve_conditions(options);
}

static bool check_series(const struct options *options)
{
	if (options->for_ns && !options->every_ns && options->command == COMMAND_HEAP) {
		message_error("--for is how long to look --every so often.");
		help_suggest(options->command);
		return false;
	}
	if (options->every_ns && options->core) {
		message_error("A core file does not change: --every is for processes.");
		return false;
	}
	return true;
}

static bool check_listing(const struct options *options)
{
	if (options->show && options->bytecode) {
		message_error("--show lists a trace, --bytecode a function: give one of them.");
		return false;
	}
	if (options->command == COMMAND_TRACES && options->core && !options->show && !options->bytecode) {
		message_error("A core file has no samples: name what to list by --show or --bytecode.");
		help_suggest(options->command);
		return false;
	}
	return true;
}

static bool is_by_slowness(const struct options *options)
{
	return options->filter.slower_than_ns || options->filter.slower_than_ppm;
}

static bool take_recordings(struct options *options, char **rest)
{
	size_t count = 0;

	while (rest[count])
		count++;
	/* The slow requests of one recording differ from its other ones. */
	if (options->command == COMMAND_DIFF ? count != 2 && (count != 1 || !is_by_slowness(options))
					     : count == 0) {
		message_error("`ljspy %s` takes %s.", command_table[options->command].name,
			      options->command == COMMAND_DIFF ? "two recordings, or one with --slower-than"
							       : "a recording, or several");
		help_suggest(options->command);
		return false;
	}
	options->recordings = rest;
	return true;
}

/* The arguments after the options: recordings, nothing, or "--" and a command to start. */
static bool parse_rest(struct options *options, char **rest, bool separated)
{
	if (!command_has_targets(options->command))
		return take_recordings(options, rest);
	if (!*rest && !separated)
		return true;
	if (!separated || options->command != COMMAND_RECORD) {
		message_error("\"%s\" is one argument too many.", separated ? "--" : *rest);
		message_note(
			"A process is chosen by -p, --tree or --name; a command to start follows \"--\" in `ljspy record`.");
		return false;
	}
	if (!*rest || !**rest) {
		message_error("After \"--\" a command is missing.");
		help_suggest(options->command);
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
		message_error(
			"--no-stop is for processes that run: a command that ljspy starts is stopped for it.");
		return false;
	}
	if (ways <= 1)
		return true;
	message_error(options->command == COMMAND_DUMP || options->command == COMMAND_HEAP ||
				      options->command == COMMAND_TRACES
			      ? "Only one of -p or --tree, --name and --core can be given."
			      : "Only one of -p or --tree, --name and a command to start can be given.");
	help_suggest(options->command);
	return false;
}

static bool resolve_blocked(struct options *options)
{
	if (options->command == COMMAND_CHECK)
		options->blocked_ns = blocked_default_ns;
	if (!options->blocked_ns)
		return true;
	if (options->no_stop) {
		message_error("With --no-stop, turns of event loops (--blocked) cannot be told.");
		return false;
	}
	see_turns(options, options->blocked_ns);
	return true;
}

static bool check_times(const struct options *options)
{
	if (!options->until_ns || options->since_ns < options->until_ns)
		return true;
	message_error("--until is to be later than --since.");
	return false;
}

/* What is shown instead of threads goes with none of the others. */
static bool resolve_coroutines(struct options *options)
{
	const char *other = options->no_stop                           ? "--no-stop"
			    : options->blocked_ns                      ? "--blocked"
			    : options->coroutines && options->requests ? "--coroutines"
								       : NULL;

	if ((options->coroutines || options->requests) && other) {
		message_error("--%s does not go together with %s.",
			      options->requests ? "requests" : "coroutines", other);
		return false;
	}
	if (options->coroutines || options->requests)
		options->clock = WEIGHT_WALL_TIME;
	if (options->command == COMMAND_SERVE && !options->listen)
		options->listen = "127.0.0.1:6060";
	if (options->rate_hz == 0)
		options->rate_hz = options->coroutines ? OPTIONS_RATE_COROUTINES : OPTIONS_RATE_DEFAULT;
	return true;
}

/* Allocations come in place of samples of time, and only a stop shows them. */
static bool resolve_alloc(struct options *options)
{
	const bool waits_for_turns = conditions_blocked_ns(options->conditions, options->condition_count);
	const char *other = options->clock_given  ? "--clock and --off-cpu"
			    : options->blocked_ns ? "--blocked"
			    : waits_for_turns     ? "--when 'blocked>...'"
			    : options->coroutines ? "--coroutines"
			    : options->requests   ? "--requests"
			    : options->no_stop    ? "--no-stop"
						  : NULL;

	if (!options->alloc)
		return true;
	if (other) {
		message_error("--alloc does not go together with %s.", other);
		return false;
	}
	options->clock = WEIGHT_ALLOC_BYTES;
	if (!options->rate_hz)
		options->rate_hz = OPTIONS_RATE_ALLOC;
	return true;
}

/* Tell what is wrong with an option that getopt_long() has refused as '?': optopt tells more. */
static void refuse_option(enum command command, const char *letters, const char *word)
{
	if (optopt > UCHAR_MAX || (optopt && strchr(letters, optopt))) {
		message_error("%.*s takes no argument.", (int)strcspn(word, "="), word);
		help_suggest(command);
	} else if (optopt) {
		help_no_letter(command, (char)optopt);
	} else {
		help_no_option(command, word);
	}
}

/* True to go on; otherwise *ret_status is what to exit with. */
static bool parse_arguments(int argc, char **argv, struct options *options, enum exit_status *ret_status)
{
	struct getopt_tables tables;
	int letter;

	option_table_fill(options->command, &tables);
	*ret_status = EXIT_USAGE;
	opterr = 0;
	optind = 0; /* start over, even if getopt has run before in this program */
	while ((letter = getopt_long(argc, argv, tables.letters, tables.names, NULL)) != -1) {
		switch (letter) {
		case 'h':
			help_print_command(options->command);
			*ret_status = EXIT_ALL_GOOD;
			return false;
		case 'V':
			help_print_version();
			*ret_status = EXIT_ALL_GOOD;
			return false;
		case ':':
			message_error("%s needs an argument.", argv[optind - 1]);
			help_suggest(options->command);
			return false;
		case '?': refuse_option(options->command, tables.letters, argv[optind - 1]); return false;
		default:
			errno = 0;
			if (!parse_option(options, letter, optarg)) {
				if (errno == ENOMEM)
					*ret_status = EXIT_NOTHING_DONE;
				return false;
			}
			note_kind(options, letter, optarg);
		}
	}
	return parse_rest(options, argv + optind, optind > 1 && strcmp(argv[optind - 1], "--") == 0) &&
	       check_targets(options) && check_times(options) && check_series(options) &&
	       check_listing(options) && resolve_alloc(options) && resolve_archive(options) &&
	       resolve_coroutines(options) && resolve_blocked(options) && choose_format(options);
}

static bool wants_help(const char *word)
{
	return strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0;
}

/* ljspy help [COMMAND] */
static bool parse_help(int argc, char **argv, struct options *options, enum exit_status *ret_status)
{
	if (argc > 3) {
		message_error("`ljspy help` takes one command.");
		return false;
	}
	if (argc == 2 || wants_help(argv[2]))
		help_print(stdout);
	else if (parse_command(argv[2], &options->command))
		help_print_command(options->command);
	else
		return false;
	*ret_status = EXIT_ALL_GOOD;
	return false;
}

bool options_parse(int argc, char **argv, struct options *ret_options, enum exit_status *ret_status)
{
	*ret_options = (struct options){ 0 };
	*ret_status = EXIT_USAGE;
	if (argc < 2) {
		help_print(stderr);
		return false;
	}
	if (wants_help(argv[1])) {
		help_print(stdout);
		*ret_status = EXIT_ALL_GOOD;
		return false;
	}
	if (strcmp(argv[1], "-V") == 0 || strcmp(argv[1], "--version") == 0) {
		help_print_version();
		*ret_status = EXIT_ALL_GOOD;
		return false;
	}
	if (argv[1][0] == '-') {
		message_error("A command comes before options such as %s.", argv[1]);
		message_note("`ljspy --help` shows the commands.");
		return false;
	}
	if (strcmp(argv[1], "help") == 0)
		return parse_help(argc, argv, ret_options, ret_status);
	return parse_command(argv[1], &ret_options->command) &&
	       parse_arguments(argc - 1, argv + 1, ret_options, ret_status);
}

void options_explain_no_comparison(const char *format)
{
	message_error("The format %s cannot show what has changed.", format);
}

bool options_check_kind(const struct options *options, bool is_heap)
{
	const struct given_option *other = is_heap ? &options->for_profiles : &options->for_heaps;

	if (other->name)
		message_error("--%s%s%s is for %s: %s is %s.", other->name, other->argument ? " " : "",
			      other->argument ? other->argument : "", is_heap ? "profiles" : "heaps",
			      options->recordings[0], is_heap ? "a heap" : "none");
	return !other->name && heeded_check(options, is_heap ? FORMATS_OF_HEAPS : FORMATS_OF_PROFILES);
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
	filter_arguments_free_pattern(options->include_request);
	filter_arguments_free_pattern(options->exclude);
	options->include = options->exclude = NULL;
	for (char **path = options->archived; path && *path; path++)
		free(*path);
	free(options->archived);
	options->archived = NULL;
}

char *options_default_output(const char *name, pid_t pid, const struct format *format)
{
	char harmless[32], id[16] = "", date[32], *path;
	time_t now = time(NULL);
	struct tm local;
	size_t length = 0;

	for (; *name && length < sizeof(harmless) - 1; name++) {
		bool is_harmless = isalnum((unsigned char)*name) || *name == '_' || *name == '.' ||
				   *name == '-';

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
	/* Programs may take the name from their process. */
	if (asprintf(&path, "ljspy-%s%s%s%s.%s", harmless, length ? "-" : "", id, date, format->suffix) < 0)
		return NULL;
	return path;
}

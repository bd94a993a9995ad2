/* SPDX-License-Identifier: MIT */
#include "src/options/option_table.h"

enum {
	RECORD = 1 << COMMAND_RECORD,
	DUMP = 1 << COMMAND_DUMP,
	TOP = 1 << COMMAND_TOP,
	TRACES = 1 << COMMAND_TRACES,
	HEAP = 1 << COMMAND_HEAP,
	MEMORY = 1 << COMMAND_MEMORY,
	REQUESTS = 1 << COMMAND_REQUESTS,
	CHECK = 1 << COMMAND_CHECK,
	TIMERS = 1 << COMMAND_TIMERS,
	SHDICT = 1 << COMMAND_SHDICT,
	LOOKS = REQUESTS | TIMERS | SHDICT, /* into nginx, once or again and again */
	INFO = 1 << COMMAND_INFO,
	REPORT = 1 << COMMAND_REPORT,
	DIFF = 1 << COMMAND_DIFF,
	SERVE = 1 << COMMAND_SERVE,
	TARGETS = RECORD | DUMP | TOP | TRACES | HEAP | MEMORY | LOOKS | CHECK | INFO |
		  SERVE,                 /* look at processes */
	RENDER = RECORD | REPORT | DIFF, /* write profiles */
	ALL = TARGETS | RENDER,
};

const struct option_entry option_table[] = {
	{ "pid", 'p', TARGETS, "PID[,PID...]", "the processes with these ids" },
	{ "name", OPTION_NAME, TARGETS, "PATTERN", "processes whose name, program or script matches" },
	{ "tree", OPTION_TREE, TARGETS, "PID[,PID...]", "these and all their descendants, e.g. a master" },
	{ "subprocesses", 's', RECORD | SERVE, NULL, "all descendants too, as with --tree" },
	{ "listen", OPTION_LISTEN, SERVE, "ADDRESS", "127.0.0.1:6060 (default), [::1]:6060, unix:/PATH" },
	{ "token-file", OPTION_TOKEN_FILE, SERVE, "FILE", "have clients show the token in FILE" },
	{ "output", 'o', RENDER | HEAP, "FILE", "where to write; - is stdout; the suffix sets -f" },
	{ "format", 'f', RENDER | HEAP, "FORMAT", "" },
	{ "duration", 'd', RECORD, "TIME", "for how long: 30s, 2m, 1h, 500ms; else until Ctrl-C" },
	{ "duration", 'd', TRACES, "TIME", "for how long to take samples; default 3s" },
	{ "duration", 'd', CHECK, "TIME", "for how long to take samples; default 10s" },
	{ "rate", 'r', RECORD | TOP | TRACES | CHECK | SERVE, "HZ",
	  "samples per CPU second, 1 to 10000; default 99" },
	{ "clock", OPTION_CLOCK, RECORD | SERVE, "CLOCK",
	  "cpu: what runs (default); wall: what sleeps, too" },
	{ "coroutines", OPTION_COROUTINES, RECORD, NULL, "where coroutines wait after they have yielded" },
	{ "requests", OPTION_REQUESTS, RECORD, NULL, "where requests of nginx spend their time" },
	{ "blocked", OPTION_BLOCKED, RECORD | SERVE, NULL, "turns of event loops that take 20ms or more" },
	{ "threshold", OPTION_THRESHOLD, RECORD | SERVE, "TIME",
	  "the same, for turns of at least that time" },
	{ "alloc", OPTION_ALLOC, RECORD, NULL, "which code allocates, in bytes and objects" },
	{ "clock", OPTION_CLOCK, REPORT | DIFF, "WEIGHT", "cpu or wall; of --alloc: alloc or alloc-objects" },
	{ "off-cpu", OPTION_OFF_CPU, RENDER, NULL, "time off the CPU, by what the threads wait for" },
	{ "no-stop", OPTION_NO_STOP, RECORD | TOP, NULL, "stop no thread; read only Lua's memory" },
	{ "allow-attach", OPTION_ALLOW_ATTACH, RECORD | DUMP | TOP | TRACES | HEAP | CHECK | SERVE, NULL,
	  "send SIGSTOP where PTRACE_SEIZE is missing" },
	{ "stats", OPTION_STATS, RECORD, "FILE", "write figures about the recording as JSON" },
	{ "native", OPTION_NATIVE, RECORD | DUMP | TOP | SERVE, "WHICH",
	  "native frames: all, none, or fold (as Lua calls it)" },
	{ "pid", 'p', REPORT | DIFF, "PID[,PID...]", "only these processes" },
	{ "tid", OPTION_TID, REPORT | DIFF, "TID[,TID...]", "only these threads" },
	{ "thread", OPTION_THREAD, REPORT | DIFF, "NAME", "only threads of that name" },
	{ "state", OPTION_STATE, REPORT | DIFF, "STATE[,...]",
	  "only in these states: compiled, gc, blocked, ..." },
	{ "since", OPTION_SINCE, REPORT | DIFF, "TIME", "only from then on: 14:02; 20m after the beginning" },
	{ "until", OPTION_UNTIL, REPORT | DIFF, "TIME", "only until TIME, likewise" },
	{ "include", OPTION_INCLUDE, REPORT | DIFF, "REGEX", "only stacks with such a function" },
	{ "exclude", OPTION_EXCLUDE, REPORT | DIFF, "REGEX", "only stacks without such a function" },
	{ "include-request", OPTION_INCLUDE_REQUEST, REPORT | DIFF, "REGEX",
	  "only requests whose METHOD HOST/ROUTE matches" },
	{ "slower-than", OPTION_SLOWER_THAN, REPORT | DIFF, "TIME",
	  "only requests that took that long, or e.g. p99" },
	{ "request", OPTION_REQUEST, REPORT, "NUMBER", "one request's life, step by step: 17.3 as listed" },
	{ "by", OPTION_BY, REPORT | DIFF, "WHAT", "by pid, tid, state, phase, module, route, host, ..." },
	{ "merge-recursion", OPTION_MERGE_RECURSION, REPORT | DIFF, NULL,
	  "merge calls of a function by itself into one frame" },
	{ "lines", OPTION_LINES, RECORD | TOP | REPORT | DIFF, NULL,
	  "distinguish lines, not only functions" },
	{ "inverted", OPTION_INVERTED, RECORD | REPORT | HEAP, NULL, "callees at the root" },
	{ "heatmap", OPTION_HEATMAP, RECORD | REPORT, NULL,
	  "a map of time above the flame graph, to select in" },
	{ "source", OPTION_SOURCE, RECORD | REPORT, NULL,
	  "each file's lines with their time, and their text" },
	{ "traces", OPTION_TRACES, RECORD | DUMP, NULL, "show the running trace on top of compiled code" },
	{ "detail", OPTION_DETAIL, RECORD | DUMP | REQUESTS, NULL,
	  "which pattern, dict, lock, file; who catches errors" },
	{ "vm-state", OPTION_VM_STATE, RENDER, NULL, "split by state: interpreted, compiled, gc, ..." },
	{ "annotate", OPTION_ANNOTATE, RECORD | REPORT, NULL, "mark compiled Lua functions with _[j]" },
	{ "min-percent", OPTION_MIN_PERCENT, REPORT | DIFF | HEAP, "SHARE",
	  "leave out frames with a smaller share, in percent" },
	{ "max-pause", OPTION_MAX_PAUSE, HEAP, "TIME", "hold no longer at a time; count what does not fit" },
	{ "every", OPTION_EVERY, HEAP, "TIME", "read again after each TIME, and show what grows" },
	{ "every", OPTION_EVERY, RECORD, "TIME", "into directory -o: a new recording each TIME" },
	{ "keep", OPTION_KEEP, RECORD, "TIME", "with --every, --when: keep that much; default 24h" },
	{ "keep-bytes", OPTION_KEEP_BYTES, RECORD, "SIZE", "and at most that: 500M, 2G; default 1G" },
	{ "push", OPTION_PUSH, RECORD, "URL", "with --every: to Pyroscope or Parca as well" },
	{ "push-credentials", OPTION_PUSH_CREDENTIALS, RECORD, "FILE",
	  "for --push: user NAME:PASSWORD, token, tenant" },
	{ "push-ca", OPTION_PUSH_CA, RECORD, "FILE", "for --push to https: certificates to trust" },
	{ "when", OPTION_WHEN, RECORD, "CONDITION", "into directory -o, when it holds: 'cpu>90% for 10s'" },
	{ "for", OPTION_FOR, RECORD, "TIME", "with --when: go on for that long; default 30s" },
	{ "at-most", OPTION_AT_MOST, RECORD, "NUMBER", "with --when: so many recordings an hour; default 6" },
	{ "for", OPTION_FOR, HEAP, "TIME", "for how long to do so; else until Ctrl-C" },
	{ "measure", OPTION_MEASURE, HEAP | REPORT | DIFF, "MEASURE", "heaps: own, retained or count" },
	{ "by", OPTION_BY, HEAP, "WHAT", "group by path, module, type or coroutine" },
	{ "strings", OPTION_STRINGS, HEAP, NULL, "keep the contents of strings, which may be secret" },
	{ "show", OPTION_SHOW, TRACES, "TRACE", "its bytecode, IR and machine code, with the time" },
	{ "bytecode", OPTION_BYTECODE, TRACES, "FUNCTION", "of FILE:LINE or a name, with the time" },
	{ "core", OPTION_CORE, DUMP | HEAP | TRACES, "FILE", "a core file, in place of a process" },
	{ "locals", OPTION_LOCALS, DUMP, NULL, "values of variables, which may be secret" },
	{ "watch", OPTION_WATCH, LOOKS, NULL, "show them again each second, until Ctrl-C" },
	{ "exact-paths", OPTION_EXACT_PATHS, REQUESTS, NULL,
	  "paths and query strings as they are, not routes" },
	{ "json", OPTION_JSON, DUMP | TRACES | MEMORY | LOOKS | CHECK, NULL,
	  "write JSON, for programs to read" },
	{ "layout", OPTION_LAYOUT, TARGETS, "NAME|FILE", "LuaJIT's layout, instead of recognising it" },
	{ "verbose", 'v', INFO, NULL, "how the layout was found; where the Lua states are" },
	{ "dwarf", OPTION_DWARF, INFO, "FILE", "write the layout in FILE's debug info, for --layout" },
	{ "help", 'h', ALL, NULL, "show this" },
	{ "version", 'V', ALL, NULL, "show the version" },
};

const size_t option_count = sizeof(option_table) / sizeof(option_table[0]);

_Static_assert(sizeof(option_table) / sizeof(option_table[0]) <= OPTIONS_MAX, "room for all of them");

const struct command_entry command_table[COMMAND_COUNT] = {
	[COMMAND_RECORD] = {
		"record", "[options] [-- COMMAND [ARG...]]",
		"profile processes for a while and draw a flame graph",
		"  ljspy record -p 1234 -d 30s               ljspy-NAME-1234-DATE-TIME.svg\n"
		"  ljspy record --tree 1234 -d 1m            a master, its workers, new ones too\n"
		"  ljspy record -o - -f folded -- luajit game.lua\n"
		"  ljspy record --name nginx --every 1m --keep 24h -o /var/log/ljspy/\n",
	},
	[COMMAND_DUMP] = {
		"dump", "[options]",
		"show what every thread and coroutine is doing, once",
		"  ljspy dump -p 1234\n"
		"  ljspy dump -p 1234 --locals               with arguments, locals, upvalues\n"
		"  ljspy dump --core core.1234\n"
		"  ljspy dump -p 1234 --json | jq '.processes[].vms[].coroutines'\n",
	},
	[COMMAND_TOP] = {
		"top", "[options]",
		"show live which functions take the time; h shows the keys",
		"  ljspy top -p 1234\n"
		"  ljspy top --name nginx                    all workers, live\n",
	},
	[COMMAND_TRACES] = {
		"traces", "[options]",
		"show the compiled traces, and the time spent in each",
		"  ljspy traces -p 1234\n"
		"  ljspy traces -p 1234 -d 30s --json\n"
		"  ljspy traces -p 1234 --show 7             one trace, as jit.dump prints it\n"
		"  ljspy traces -p 1234 --bytecode app.lua:120\n",
	},
	[COMMAND_HEAP] = {
		"heap", "[options]",
		"show what holds the memory of a LuaJIT program",
		"  ljspy heap -p 1234\n"
		"  ljspy heap -p 1234 -o now.heap            to look at and compare later\n"
		"  ljspy heap -p 1234 --every 1m --for 1h    what grows\n"
		"  ljspy heap --core core.1234 -o heap.svg\n",
	},
	[COMMAND_MEMORY] = {
		"memory", "[options]",
		"show what the memory of a process is, to the last page",
		"  ljspy memory -p 1234\n"
		"  ljspy memory --tree 1234                  a master, its workers, and the sum\n"
		"  ljspy memory -p 1234 --json | jq '.processes[].rows'\n",
	},
	[COMMAND_REQUESTS] = {
		"requests", "[options]",
		"show the requests in flight in nginx, and what each waits for",
		"  ljspy requests -p 1234\n"
		"  ljspy requests --tree 1234 --watch        of all workers, and who has most\n"
		"  ljspy requests -p 1234 --json | jq '.processes[].requests[]'\n",
	},
	[COMMAND_CHECK] = {
		"check", "[options]",
		"look at everything at once, and say what stands out",
		"  ljspy check -p 1234\n"
		"  ljspy check -p 1234 -d 1m\n"
		"  ljspy check --tree 1234 --json | jq '.processes[].findings'\n",
	},
	[COMMAND_TIMERS] = {
		"timers", "[options]",
		"show the pending timers of nginx, and when they are due",
		"  ljspy timers -p 1234\n"
		"  ljspy timers --tree 1234 --watch          of all workers, each second\n",
	},
	[COMMAND_SHDICT] = {
		"shdict", "[options]",
		"show the zones that nginx shares, and who holds their locks",
		"  ljspy shdict -p 1234\n"
		"  ljspy shdict -p 1234 --json | jq '.processes[].zones[]'\n",
	},
	[COMMAND_SERVE] = {
		"serve", "[options]",
		"profile without an end, for programs that ask by HTTP",
		"  ljspy serve --name nginx --listen 127.0.0.1:6060\n"
		"  go tool pprof 'http://127.0.0.1:6060/debug/pprof/profile?seconds=10'\n"
		"  curl 127.0.0.1:6060/metrics\n",
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
		"  ljspy report a.ljspy b.ljspy              their sum, as text\n"
		"  ljspy report /var/log/ljspy --since 14:02 --until 14:05\n",
	},
	[COMMAND_DIFF] = {
		"diff", "BEFORE [AFTER] [options]",
		"show what has changed between two recordings",
		"  ljspy diff before.ljspy after.ljspy -o diff.svg\n"
		"  ljspy diff a.ljspy --slower-than p99      the slowest 1 %, and the others\n"
		"  ljspy diff before.heap after.heap         what grew in memory\n",
	},
};

bool option_is_of(const struct option_entry *option, enum command command)
{
	return option->commands & (1u << command);
}

const struct option_entry *option_of_letter(enum command command, int letter)
{
	const struct option_entry *option = option_table;

	while (option->letter != letter || !option_is_of(option, command))
		option++;
	return option;
}

bool command_has_targets(enum command command)
{
	return TARGETS & (1u << command);
}

void option_table_fill(enum command command, struct getopt_tables *ret_tables)
{
	size_t count = 0;
	char *letter;

	*ret_tables = (struct getopt_tables){ 0 };
	letter = ret_tables->letters;
	if (command_has_targets(command))
		*letter++ = '+'; /* stop at the first argument that is no option */
	*letter++ = ':';         /* distinguish a missing argument from an unknown option */
	for (size_t i = 0; i < option_count; i++) {
		const struct option_entry *option = &option_table[i];

		if (!option_is_of(option, command))
			continue;
		ret_tables->names[count++] = (struct option){
			.name = option->name,
			.has_arg = option->argument ? required_argument : no_argument,
			.val = option->letter,
		};
		if (option->letter > UCHAR_MAX)
			continue;
		*letter++ = (char)option->letter;
		if (option->argument)
			*letter++ = ':';
	}
}

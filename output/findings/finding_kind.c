/* SPDX-License-Identifier: MIT */
#include "output/findings/finding_kind.h"

#define FINDINGS_PAGE "doc/FINDINGS.md"

const struct finding_rule finding_rules[FINDING_KIND_COUNT] = {
	[FINDING_JOINS] = { "joins", "Strings are joined piece by piece", COST_CPU, 0.20,
			    "Collect the pieces in a table and join them once with table.concat(), or use a string.buffer.",
			    FINDINGS_PAGE "#joins" },
	[FINDING_STORES] = { "stores", "Storing in tables makes them grow again and again", COST_CPU, 0.25,
			     "Make the table with its final size (table.new(), or a constructor), or clear "
			     "and reuse one (table.clear()).",
			     FINDINGS_PAGE "#stores" },
	[FINDING_CLOSURES] = { "closures", "Functions are made in hot code", COST_CPU, 0.08,
			       "Make the function once, outside of the loop, and pass what it needs as arguments.",
			       FINDINGS_PAGE "#closures" },
	[FINDING_FORMATS] = { "formats", "Numbers are turned into text, or text into numbers", COST_CPU, 0.20,
			      "Keep and compare numbers as numbers, and make the text once, where it is shown.",
			      FINDINGS_PAGE "#formats" },
	[FINDING_PATTERNS] = { "patterns", "Searching text by patterns takes the time", COST_CPU, 0.40,
			       "Anchor the pattern, replace .- and nested repeats by sets such as [^=]*, search plain "
			       "text with find(s, t, 1, true), and keep results.",
			       FINDINGS_PAGE "#patterns" },
	[FINDING_SORTS] = { "sorts", "Sorting takes the time", COST_CPU, 0.30,
			    "Sort once, when the data change, and not for each use.",
			    FINDINGS_PAGE "#sorts" },
	[FINDING_SHIFTS] = { "shifts", "Lists are shifted, or measured, entry by entry", COST_CPU, 0.25,
			     "Do not insert or remove at the front of a long list: keep a first and a last index, "
			     "or a ring.",
			     FINDINGS_PAGE "#shifts" },
	[FINDING_LOADS] = { "loads", "Source code is compiled while the program works", COST_CPU, 0.10,
			    "Load each source once and keep the function.", FINDINGS_PAGE "#loads" },
	[FINDING_ERRORS] = { "errors", "Errors are raised and caught all the time", COST_CPU, 0.10,
			     "Return nil and a message where a failure is expected, and keep errors for faults.",
			     FINDINGS_PAGE "#errors" },
	[FINDING_CLOCK] = { "clock", "The program asks for the time, or polls, without a pause", COST_CPU,
			    0.25,
			    "Wait by a timer, a sleep or an event; within one turn, ask the clock once.",
			    FINDINGS_PAGE "#clock" },
	[FINDING_CALLS] = { "calls", "Reading and writing take the time", COST_CPU, 0.20,
			    "Where it goes in small pieces, collect what is to be written and write it in one call, "
			    "and read by blocks, not by bytes.",
			    FINDINGS_PAGE "#calls" },
	[FINDING_DEBUG] = { "debug", "The debug library works in hot code", COST_CPU, 0.10,
			    "Ask for tracebacks only where they are shown, and take hooks out.",
			    FINDINGS_PAGE "#debug" },
	[FINDING_CDATA] = { "cdata", "C data are handled by the interpreter", COST_CPU, 0.15,
			    "Keep the FFI in code that is compiled: see what `ljspy traces` says of this function.",
			    FINDINGS_PAGE "#cdata" },
	[FINDING_OWN_WORK] = { "own-work", "LuaJIT's own C code works for a few lines", COST_CPU, 0.40,
			       "Look at what the line does: making strings, tables and closures costs more than to use them.",
			       FINDINGS_PAGE "#own-work" },
	[FINDING_GARBAGE] = { "garbage", "The garbage collector takes a large part", COST_CPU, 0.25,
			      "Make less garbage in these lines: reuse tables and buffers, and join strings once; hold "
			      "less, if most is marking.",
			      FINDINGS_PAGE "#garbage" },
	[FINDING_COMPILING] = { "compiling", "LuaJIT compiles again and again", COST_CPU, 0.10,
				"Find what throws compiled code away (jit.flush(), too many traces, functions made anew) or "
				"what never compiles, and give it more room or switch the compiler off there.",
				FINDINGS_PAGE "#compiling" },
	[FINDING_EXITS] = { "exits", "Compiled code is left again and again", COST_CPU, 0.15,
			    "Keep to one type for each variable and make branches few in the hot loop; `ljspy traces` "
			    "lists the exits.",
			    FINDINGS_PAGE "#exits" },
	[FINDING_NOT_COMPILED] = { "not-compiled", "Hot code is interpreted: LuaJIT could not compile it",
				   COST_CPU, 0.20,
				   "Write the line as the reason asks for: the page has each reason and its cure.",
				   "doc/NOT_COMPILED.md" },
	[FINDING_SWITCHED_OFF] = { "switched-off", "The compiler is switched off for hot code", COST_CPU,
				   0.20, "Take out the jit.off(), unless the code makes callbacks from C.",
				   FINDINGS_PAGE "#switched-off" },
	[FINDING_RECURSION] = { "recursion", "Calls are nested very deep", COST_CPU, 0.30,
				"Write a loop, or make the call the last thing that the function does (return f(x)).",
				FINDINGS_PAGE "#recursion" },
	[FINDING_BLOCKED] = { "blocked", "The event loop stands still", COST_WALL, 0.05,
			      "Cut long work into pieces with a yield between them, use calls that do not block, or move it "
			      "to another process.",
			      "doc/REQUESTS_STALL.md" },
	[FINDING_PROGRAMS] = { "programs", "The program waits for other programs that it starts", COST_WALL,
			       0.20,
			       "Call a library in place of os.execute() and io.popen(), or keep one helper running.",
			       FINDINGS_PAGE "#programs" },
	[FINDING_GROWTH] = { "growth", "What the heap holds grows", COST_HEAP, 0.05,
			     "Bound it: drop entries by age or number (lua-resty-lrucache), or clear it when its work is done.",
			     "contrib/openresty.md#memory-grows" },
};

const char *finding_cost_title(enum finding_cost cost)
{
	static const char *const titles[] = {
		[COST_CPU] = "CPU time",
		[COST_WALL] = "the time",
		[COST_HEAP] = "the heap",
	};

	return titles[cost];
}

const char *finding_cost_name(enum finding_cost cost)
{
	static const char *const names[] = { [COST_CPU] = "cpu", [COST_WALL] = "wall", [COST_HEAP] = "heap" };

	return names[cost];
}

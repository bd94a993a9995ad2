/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/findings/evidence.h"
#include "output/findings/findings.h"
#include "output/findings/findings_report.h"
#include "output/findings/heap_looks.h"
#include "output/findings/work_kind.h"
#include "output/heap/heap_builder.h"
#include "tests/made_up.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/kept_text.h"
#include "tests/unit/made_up_heap.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
#include "tests/unit/failing_allocation.h"

enum { MS = 1000000, SECONDS = 10, MB = 1000000 };
enum { PROTO = 0x5000, OTHER_PROTO = 0x6000 };

static const struct function *handler, *vm;

/*---- Made-up evidence ----*/

static struct evidence *begin(void)
{
	struct evidence *evidence = evidence_new(4242, "made\x1bup");

	assert_non_null(evidence);
	evidence->duration_ns = SECONDS * UINT64_C(1000000000);
	handler = lua("handle", "@app.lua", 10);
	vm = other(FRAME_VM, NULL, NULL);
	return evidence;
}

struct took {
	const struct function *above; /* of the handler; NULL: nothing */
	enum vm_state state;
	uint32_t line;
	unsigned samples; /* of 10 ms each */
};

static void add(struct evidence *evidence, struct took took)
{
	struct frame frames[] = {
		{ .function = took.above },
		{ .function = handler, .line = took.line },
	};
	struct sample sample = {
		.pid = 4242,
		.tid = 4242,
		.thread_state = THREAD_RUNNING,
		.vm_state = took.state,
		.cpu_ns = 10 * MS,
		.wall_ns = 10 * MS,
		.proto = PROTO,
		.frames = took.above ? frames : frames + 1,
		.frame_count = took.above ? 2 : 1,
	};

	if (took.state == VM_STATE_GC)
		sample.gc = (struct sample_gc){ .phase = GC_PHASE_MARK, .heap_bytes = 5 * MB };
	for (unsigned i = 0; i < took.samples; i++)
		assert_int_equal(evidence_add(evidence, &sample), 0);
}

/* Compiled code, which is no finding. */
static void add_honest(struct evidence *evidence, unsigned samples)
{
	add(evidence, (struct took){ .state = VM_STATE_COMPILED, .line = 11, .samples = samples });
}

static struct findings judge(const struct evidence *evidence)
{
	struct findings findings;

	assert_int_equal(findings_judge(evidence, &findings), 0);
	return findings;
}

static void expect_nothing(struct evidence *evidence)
{
	assert_int_equal(judge(evidence).count, 0);
	evidence_free(evidence);
}

static void expect_first(const struct evidence *evidence, enum finding_kind kind, uint32_t line, double share)
{
	struct findings findings = judge(evidence);

	assert_true(findings.count >= 1);
	assert_string_equal(finding_rules[findings.at[0].kind].name, finding_rules[kind].name);
	assert_true(findings.at[0].share > share - 0.001 && findings.at[0].share < share + 0.001);
	assert_true(findings.at[0].item_count >= 1);
	assert_int_equal(findings.at[0].items[0].line, line);
}

/*---- Work ----*/

static void test_work_is_known_by_its_name(void **state)
{
	static const struct {
		enum finding_kind kind;
		enum frame_kind frame;
		const char *name, *module;
	} named[] = {
		{ FINDING_OWN_WORK, FRAME_BUILTIN, "table.concat", NULL },
		{ FINDING_JOINS, FRAME_VM_WORK, "concatenating strings", NULL },
		{ FINDING_STORES, FRAME_VM_WORK, "growing a table", NULL },
		{ FINDING_CLOSURES, FRAME_VM_WORK, "creating a closure", NULL },
		{ FINDING_FORMATS, FRAME_BUILTIN, "string.format", NULL },
		{ FINDING_PATTERNS, FRAME_BUILTIN, "string.gsub", NULL },
		{ FINDING_PATTERNS, FRAME_NATIVE, "pcre2_match_8", "libpcre2-8.so.0" },
		{ FINDING_SORTS, FRAME_BUILTIN, "table.sort", NULL },
		{ FINDING_SHIFTS, FRAME_BUILTIN, "table.remove", NULL },
		{ FINDING_LOADS, FRAME_BUILTIN, "loadstring", NULL },
		{ FINDING_ERRORS, FRAME_BUILTIN, "error", NULL },
		{ FINDING_CLOCK, FRAME_NATIVE, "gettimeofday", "libc.so.6" },
		{ FINDING_CLOCK, FRAME_NATIVE, "clock_gettime", "vdso" },
		{ FINDING_CLOCK, FRAME_BUILTIN, "os.clock", NULL },
		{ FINDING_CALLS, FRAME_NATIVE, "write", "libpthread-2.31.so" },
		{ FINDING_CALLS, FRAME_NATIVE, "_IO_file_xsputn", "libc.so.6" },
		{ FINDING_CALLS, FRAME_NATIVE, "_IO_new_file_write", "libc.so.6" },
		{ FINDING_CALLS, FRAME_NATIVE, "_IO_do_write", "libc.so.6" },
		{ FINDING_CALLS, FRAME_BUILTIN, "io.write", NULL },
		{ FINDING_CALLS, FRAME_BUILTIN, "file.write", NULL },
		{ FINDING_CALLS, FRAME_BUILTIN, "file.read", NULL },
		{ FINDING_CALLS, FRAME_BUILTIN, "file.lines", NULL },
		{ FINDING_DEBUG, FRAME_BUILTIN, "debug.traceback", NULL },
		{ FINDING_CDATA, FRAME_VM_WORK, "handling C data", NULL },
		{ FINDING_OWN_WORK, FRAME_VM, NULL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		struct evidence *evidence = begin();

		add(evidence, (struct took){ other(named[i].frame, named[i].name, named[i].module),
					     VM_STATE_C, 12, 300 });
		add_honest(evidence, 100);
		expect_first(evidence, named[i].kind, 12, 0.75);
		assert_int_equal(judge(evidence).count, 1);
		evidence_free(evidence);
	}
}

/* A C library's grid:load("texture") loads no source, and select() of Lua does not wait for files. */
static void test_a_name_counts_for_its_kind_of_function_only(void **state)
{
	static const struct {
		enum frame_kind frame;
		const char *name, *module;
	} named[] = {
		{ FRAME_C_FUNCTION, "load", "grid.so" },
		{ FRAME_C_FUNCTION, "time", "grid.so" },
		{ FRAME_C_FUNCTION, "string.format", NULL },
		{ FRAME_NATIVE, "load", "grid.so" },
		{ FRAME_NATIVE, "time", "grid.so" },
		{ FRAME_NATIVE, "write", NULL },
		/* snprintf() works on a file that is a string. */
		{ FRAME_NATIVE, "_IO_default_xsputn", "libc.so.6" },
		{ FRAME_NATIVE, "_IO_str_init_static_internal", "libc.so.6" },
		{ FRAME_NATIVE, "_IO_old_init", "libc.so.6" },
		{ FRAME_NATIVE, "error", "libc.so.6" },
		{ FRAME_NATIVE, "print", "libc.so.6" },
		{ FRAME_BUILTIN, "select", NULL },
		{ FRAME_BUILTIN, "read", NULL },
		{ FRAME_BUILTIN, "pcre_exec", NULL },
		{ FRAME_TRACE, "select", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		struct evidence *evidence = begin();

		add(evidence, (struct took){ other(named[i].frame, named[i].name, named[i].module),
					     VM_STATE_C, 12, 300 });
		expect_nothing(evidence);
	}
}

static void test_states_of_luajit_are_findings(void **state)
{
	static const struct {
		enum finding_kind kind;
		enum vm_state state;
	} states[] = {
		{ FINDING_GARBAGE, VM_STATE_GC },
		{ FINDING_COMPILING, VM_STATE_RECORDING },
		{ FINDING_COMPILING, VM_STATE_ASSEMBLING },
		{ FINDING_EXITS, VM_STATE_EXIT },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		struct evidence *evidence = begin();

		add(evidence, (struct took){ vm, states[i].state, 14, 200 });
		add_honest(evidence, 200);
		expect_first(evidence, states[i].kind, 14, 0.5);
		evidence_free(evidence);
	}
}

static void test_small_shares_are_silent(void **state)
{
	struct evidence *evidence = begin();
	const struct function *error = other(FRAME_BUILTIN, "error", NULL);

	(void)state;
	add(evidence, (struct took){ error, VM_STATE_C, 12, 9 });
	add(evidence, (struct took){ vm, VM_STATE_GC, 12, 20 });
	add(evidence, (struct took){ other(FRAME_BUILTIN, "string.find", NULL), VM_STATE_C, 12, 35 });
	add_honest(evidence, 36);
	expect_nothing(evidence);
}

static void test_a_share_that_may_be_chance_is_silent(void **state)
{
	struct evidence *evidence = begin();

	(void)state;
	/* 12 % of 100 samples: limit 10 %. Of 10,000 it is sure. */
	add(evidence, (struct took){ other(FRAME_BUILTIN, "error", NULL), VM_STATE_C, 12, 12 });
	add_honest(evidence, 88);
	assert_int_equal(judge(evidence).count, 0);
	add(evidence, (struct took){ other(FRAME_BUILTIN, "error", NULL), VM_STATE_C, 12, 1188 });
	add_honest(evidence, 8712);
	expect_first(evidence, FINDING_ERRORS, 12, 0.12);
	evidence_free(evidence);
}

static void test_few_samples_and_idle_processes_are_silent_and_say_so(void **state)
{
	struct evidence *few = begin(), *idle = begin();
	struct unseen unseen = { 0 };

	(void)state;
	few->duration_ns = 100 * MS;
	add(few, (struct took){ other(FRAME_BUILTIN, "error", NULL), VM_STATE_C, 12, 15 });
	unseen_add_of(&unseen, few);
	assert_non_null(strstr(unseen.at[0], "too few samples"));
	expect_nothing(few);

	unseen = (struct unseen){ 0 };
	idle->duration_ns = 1000 * UINT64_C(1000000000);
	add(idle, (struct took){ other(FRAME_BUILTIN, "error", NULL), VM_STATE_C, 12, 100 });
	unseen_add_of(&unseen, idle);
	assert_non_null(strstr(unseen.at[0], "used too little"));
	expect_nothing(idle);
}

/* Two looks at a heap fail for the same reason, after other times. */
static void test_what_could_not_be_looked_at_is_told_once(void **state)
{
	struct unseen unseen = { 0 };

	(void)state;
	unseen_add(&unseen, "the heap: it would hold the process for some %d ms", 100);
	unseen_add(&unseen, "the heap: it would hold the process for some %d ms", 112);
	unseen_add(&unseen, "the heaps: none");
	unseen_add(&unseen, "turns of an event loop: none was seen");
	assert_int_equal(unseen.count, 3);
	assert_string_equal(unseen.at[0], "the heap: it would hold the process for some 100 ms");
	assert_string_equal(unseen.at[1], "the heaps: none");
}

static void test_findings_come_by_share_and_places_by_weight(void **state)
{
	struct evidence *evidence = begin();
	const struct function *error = other(FRAME_BUILTIN, "error", NULL);
	struct findings findings;

	(void)state;
	add(evidence, (struct took){ vm, VM_STATE_GC, 20, 400 });
	for (uint32_t line = 1; line <= 8; line++)
		add(evidence, (struct took){ error, VM_STATE_C, line, 10 * line });
	findings = judge(evidence);
	assert_int_equal(findings.count, 2);
	assert_int_equal(findings.at[0].kind, FINDING_GARBAGE);
	assert_int_equal(findings.at[1].kind, FINDING_ERRORS);
	assert_int_equal(findings.at[1].item_count, FINDING_ITEMS_MAX);
	for (size_t i = 0; i < FINDING_ITEMS_MAX; i++)
		assert_int_equal(findings.at[1].items[i].line, 8 - i);
	evidence_free(evidence);
}

static void test_a_line_tells_what_nameless_work_is_for(void **state)
{
	static const struct {
		const char *line;
		enum finding_kind kind;
	} lines[] = {
		{ "\tpage = page .. row", FINDING_JOINS },
		{ "local text = table.concat(list)", FINDING_OWN_WORK },
		{ "list[#list + 1] = i", FINDING_STORES },
		{ "t[k] =v", FINDING_STORES },
		{ "return f(...)", FINDING_OWN_WORK },
		{ "if t[k] == v then", FINDING_OWN_WORK },
		{ "f('..') -- a .. b", FINDING_OWN_WORK },
		{ "f(\"\\\"..\") g('t[1] = 2')", FINDING_OWN_WORK },
		{ "return tostring(n)", FINDING_FORMATS },
		{ "s = (\"%d\"):format(i)", FINDING_FORMATS },
		{ "table.insert(t, 1, x)", FINDING_SHIFTS },
		{ "table.insert(t, f(1, 2))", FINDING_OWN_WORK },
		{ "table.remove(t)", FINDING_OWN_WORK },
		{ "x = table.remove(t) or f(a, b)", FINDING_OWN_WORK },
		{ "remove(queue[n], 1)", FINDING_SHIFTS },
		{ "insert(", FINDING_OWN_WORK },
		{ "", FINDING_OWN_WORK },
		{ "\"never closed ..", FINDING_OWN_WORK },
		{ "]", FINDING_OWN_WORK },
	};
	char *endless = malloc(5000);

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_int_equal(work_kind_of_line(lines[i].line), lines[i].kind);
	assert_non_null(endless);
	memset(endless, ']', 4999);
	endless[4999] = '\0';
	assert_int_equal(work_kind_of_line(endless), FINDING_OWN_WORK);
	free(endless);
}

static void test_what_pcall_calls_is_no_error(void **state)
{
	struct frame frames[] = {
		{ .function = other(FRAME_C_FUNCTION, "decode", "cjson.so") },
		{ .function = other(FRAME_BUILTIN, "pcall", NULL) },
		{ .function = NULL, .line = 12 },
	};
	struct sample sample = {
		.vm_state = VM_STATE_C, .cpu_ns = 10 * MS, .frames = frames, .frame_count = 3
	};
	struct evidence *evidence = begin();

	(void)state;
	frames[2].function = handler;
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(evidence_add(evidence, &sample), 0);
	assert_int_equal(judge(evidence).count, 0);
	/* The interpreter calls without an error; C code catches one. */
	add(evidence, (struct took){ frames[1].function, VM_STATE_INTERPRETED, 12, 200 });
	add(evidence, (struct took){ other(FRAME_BUILTIN, "xpcall", NULL), VM_STATE_INTERPRETED, 12, 200 });
	assert_int_equal(judge(evidence).count, 0);
	add(evidence, (struct took){ frames[1].function, VM_STATE_C, 12, 200 });
	expect_first(evidence, FINDING_ERRORS, 12, 0.25);
	evidence_free(evidence);
}

static int read_made_up(struct source_reader *reader, const char *file, struct source_text *ret_text)
{
	static const char source[] = "local page = ''\npage = page .. 'x'\n"
				     "table.insert(t, x)\ntable.insert(t, 1, 'a' .. x)\n";

	(void)reader;
	assert_string_equal(file, "@app.lua");
	return source_text_split(strdup(source), sizeof(source) - 1, ret_text);
}

static void test_nameless_work_is_judged_by_its_source(void **state)
{
	struct evidence *evidence = begin();
	struct source_reader reader = { .read = read_made_up };

	(void)state;
	add(evidence, (struct took){ vm, VM_STATE_C, 2, 300 });
	add_honest(evidence, 100);
	expect_first(evidence, FINDING_OWN_WORK, 2, 0.75);
	assert_int_equal(evidence_read_sources(evidence, &reader), 0);
	expect_first(evidence, FINDING_JOINS, 2, 0.75);
	assert_string_equal(evidence_line(evidence, handler, 1), "local page = ''");
	assert_string_equal(evidence_line(evidence, handler, 4), "table.insert(t, 1, 'a' .. x)");
	assert_null(evidence_line(evidence, handler, 0));
	assert_null(evidence_line(evidence, lua("elsewhere", "@other.lua", 1), 1));
	assert_null(evidence_line(evidence, vm, 1));
	assert_null(evidence_line(evidence, NULL, 1));
	assert_null(evidence_line(evidence, handler, 5));
	evidence_free(evidence);
}

static int read_newer(struct source_reader *reader, const char *file, struct source_text *ret_text)
{
	int error = read_made_up(reader, file, ret_text);

	snprintf(ret_text->note, sizeof(ret_text->note), "changed after the process began");
	return error;
}

/* Its lines may be others than those of the program that runs. */
static void test_a_file_that_has_changed_judges_nothing(void **state)
{
	struct evidence *evidence = begin();
	struct source_reader reader = { .read = read_newer };
	struct unseen unseen = { .count = 0 };
	bool is_said = false;

	(void)state;
	add(evidence, (struct took){ vm, VM_STATE_C, 2, 300 });
	add_honest(evidence, 100);
	assert_int_equal(evidence_read_sources(evidence, &reader), 0);
	expect_first(evidence, FINDING_OWN_WORK, 2, 0.75);
	assert_null(evidence_line(evidence, handler, 1));
	unseen_add_of(&unseen, evidence);
	for (size_t i = 0; i < unseen.count; i++)
		is_said |= strncmp(unseen.at[i], "the lines of 1 source file:", 27) == 0;
	assert_true(is_said);
	evidence_free(evidence);
}

static int count_reads(struct source_reader *reader, const char *file, struct source_text *ret_text)
{
	(void)file;
	*ret_text = (struct source_text){ 0 };
	reader->read = NULL;
	return 0;
}

/* A hundredth of the CPU time is worth a look at the source. */
static void test_sources_of_small_shares_are_not_read(void **state)
{
	(void)state;
	for (unsigned samples = 1; samples <= 2; samples++) {
		struct source_reader reader = { .read = count_reads };
		struct evidence *evidence = begin();
		const struct frame frame = { .function = vm };
		const struct sample native = { .cpu_ns = 10 * MS, .frames = &frame, .frame_count = 1 };

		add_honest(evidence, samples);
		for (unsigned i = samples; i < 200; i++)
			assert_int_equal(evidence_add(evidence, &native), 0);
		assert_int_equal(evidence_read_sources(evidence, &reader), 0);
		assert_int_equal(reader.read == NULL, samples == 2);
		evidence_free(evidence);
	}
}

static void test_appending_is_no_shift(void **state)
{
	struct evidence *evidence = begin();
	struct source_reader reader = { .read = read_made_up };
	const struct function *insert = other(FRAME_BUILTIN, "table.insert", NULL);

	(void)state;
	add(evidence, (struct took){ insert, VM_STATE_C, 3, 100 });
	expect_first(evidence, FINDING_SHIFTS, 3, 1); /* without the source */
	assert_int_equal(evidence_read_sources(evidence, &reader), 0);
	assert_int_equal(judge(evidence).count, 0);
	add(evidence, (struct took){ insert, VM_STATE_C, 4, 100 });
	expect_first(evidence, FINDING_SHIFTS, 4, 0.5);
	evidence_free(evidence);
}

/* What is called at a line, and what runs for it. */
static enum finding_kind kind_at(const char *line, const struct function *callee, const struct function *leaf)
{
	const struct work work = { .key = { .function = lua("handle", "@app.lua", 10),
					    .callee = callee,
					    .leaf = leaf,
					    .line = 12,
					    .state = VM_STATE_C } };

	return work_kind(&work, line);
}

/* os.time() with a table turns a date into a time. */
static void test_only_a_time_without_arguments_is_that_of_now(void **state)
{
	static const struct {
		const char *line;
		enum finding_kind kind;
	} lines[] = {
		{ "while os.time() < over do", FINDING_CLOCK },
		{ "local now = time ( )", FINDING_CLOCK },
		{ "local at = os.time({ year = y, month = m, day = d })", FINDING_NONE },
		{ "local at = os.time{ year = y, month = m, day = d }", FINDING_NONE },
		{ "local at = os.time(date())", FINDING_NONE },
		{ "local at = settime(), os.time(date)", FINDING_NONE },
		{ "log('time()', os.time(date)) -- time()", FINDING_NONE },
		{ "local time", FINDING_NONE },
		{ NULL, FINDING_NONE },
	};
	const struct function *callee = other(FRAME_BUILTIN, "os.time", NULL);
	const struct function *native = other(FRAME_NATIVE, "time", "libc.so.6");
	const struct function *makes = other(FRAME_NATIVE, "mktime", "libc.so.6");

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_int_equal(kind_at(lines[i].line, callee, callee), lines[i].kind);
		assert_int_equal(kind_at(lines[i].line, callee, makes), lines[i].kind);
		/* The C library says itself that it is asked for the time. */
		assert_int_equal(kind_at(lines[i].line, callee, native), FINDING_CLOCK);
	}
}

static void test_finding_plain_text_is_no_pattern(void **state)
{
	static const struct {
		const char *line;
		enum finding_kind kind;
	} lines[] = {
		{ "local at = s:find('needle', 1, true)", FINDING_NONE },
		{ "local at = s:find(word, 1 ,\ttrue )", FINDING_NONE },
		{ "local at = s:find('needle')", FINDING_PATTERNS },
		{ "local at = s:find('needle, true)')", FINDING_PATTERNS },
		{ "local at = s:find(word, 1, trueish)", FINDING_PATTERNS },
		{ "local at = s:find(word, true, 1)", FINDING_PATTERNS },
		{ "local at = s:find(word, 1, isplain, true", FINDING_PATTERNS },
		{ NULL, FINDING_PATTERNS },
	};
	const struct function *find = other(FRAME_BUILTIN, "string.find", NULL);
	const struct function *match = other(FRAME_BUILTIN, "string.match", NULL);

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_int_equal(kind_at(lines[i].line, find, find), lines[i].kind);
		assert_int_equal(kind_at(lines[i].line, match, match), FINDING_PATTERNS);
	}
}

/* LuaJIT's buffers do the work of "..", of table.concat() and of a string.buffer. */
static void test_only_dots_join_piece_by_piece(void **state)
{
	static const char concats[] = "n = n + #table.concat(t)", dots[] = "page = page .. row";
	const struct function *joins = other(FRAME_VM_WORK, "concatenating strings", NULL);
	const struct function *concat = other(FRAME_BUILTIN, "table.concat", NULL);
	const struct function *put = other(FRAME_BUILTIN, "buffer.put", NULL);
	const struct function *format = other(FRAME_BUILTIN, "string.format", NULL);
	const struct function *catches = other(FRAME_BUILTIN, "pcall", NULL);
	const struct {
		const struct function *callee;
		const char *line;
		bool is_compiled;
		enum finding_kind kind;
	} known[] = {
		{ joins, dots, true, FINDING_JOINS },
		{ joins, concats, true, FINDING_OWN_WORK },
		{ joins, NULL, true, FINDING_JOINS },
		/* The interpreter joins for this instruction only, even if the other line has its dots. */
		{ joins, concats, false, FINDING_JOINS },
		{ concat, concats, false, FINDING_OWN_WORK },
		{ concat, dots, false, FINDING_OWN_WORK },
		{ concat, NULL, false, FINDING_OWN_WORK },
		{ put, NULL, false, FINDING_OWN_WORK },
		{ format, NULL, false, FINDING_FORMATS },
		{ catches, NULL, false, FINDING_OWN_WORK },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const struct work work = { .key = { .function = lua("handle", "@app.lua", 10),
						    .callee = known[i].callee,
						    .leaf = joins,
						    .line = 12,
						    .state = VM_STATE_C,
						    .compiled = known[i].is_compiled } };

		assert_int_equal(work_kind(&work, known[i].line), known[i].kind);
	}
}

/*---- Calls and depth ----*/

static void test_sorting_has_its_comparisons(void **state)
{
	struct evidence *evidence = begin();
	struct frame frames[] = {
		{ .function = lua("less", "@app.lua", 3), .line = 4, .compiled = true },
		{ .function = other(FRAME_BUILTIN, "table.sort", NULL) },
		{ .function = handler, .line = 30 },
	};
	struct sample sample = {
		.vm_state = VM_STATE_COMPILED,
		.cpu_ns = 10 * MS,
		.frames = frames,
		.frame_count = 3,
	};

	(void)state;
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(evidence_add(evidence, &sample), 0);
	add_honest(evidence, 200);
	expect_first(evidence, FINDING_SORTS, 30, 0.5);
	evidence_free(evidence);
}

static void test_deep_stacks_are_recursion(void **state)
{
	static struct frame frames[EVIDENCE_DEEP + 1];
	struct sample sample = { .vm_state = VM_STATE_COMPILED, .cpu_ns = 10 * MS, .frames = frames };
	struct evidence *evidence = begin();

	(void)state;
	for (size_t i = 0; i <= EVIDENCE_DEEP; i++)
		frames[i] = (struct frame){ .function = handler, .line = 7, .compiled = true };
	sample.frame_count = EVIDENCE_DEEP - 1;
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(evidence_add(evidence, &sample), 0);
	assert_int_equal(judge(evidence).count, 0);
	sample.frame_count = EVIDENCE_DEEP;
	for (unsigned i = 0; i < 199; i++)
		assert_int_equal(evidence_add(evidence, &sample), 0);
	sample.frame_count = EVIDENCE_DEEP + 1;
	assert_int_equal(evidence_add(evidence, &sample), 0);
	expect_first(evidence, FINDING_RECURSION, 7, 0.5);
	assert_int_equal(evidence->deep.frames, EVIDENCE_DEEP + 1);
	/* Of stacks as deep, the first one is named. */
	frames[0].line = 8;
	assert_int_equal(evidence_add(evidence, &sample), 0);
	assert_int_equal(evidence->deep.line, 7);
	evidence_free(evidence);
}

/*---- What is not compiled ----*/

static void test_interpreted_time_counts_where_luajit_says_why(void **state)
{
	struct evidence *evidence = begin();
	struct trace_process *traces = trace_process_new(4242, "luajit");
	struct trace_vm *of = traces ? trace_process_add_vm(traces, 0x1000, "/luajit") : NULL;
	/* As another closure of it was called. */
	const struct interpreted_row rows[] = {
		{ lua("other", "@app.lua", 10), 13, true, NOT_COMPILED_ABORTED, "NYI: later", 3, 0, PROTO },
		{ lua("other", "@app.lua", 10), 15, true, NOT_COMPILED_BLACKLISTED, "NYI: bytecode", 11, 0,
		  PROTO },
		{ lua("elsewhere", "@app.lua", 90), 91, true, NOT_COMPILED_OFF, NULL, 0, 0, PROTO },
	};
	struct findings findings;

	(void)state;
	assert_non_null(of);
	add(evidence, (struct took){ NULL, VM_STATE_INTERPRETED, 16, 300 });
	add_honest(evidence, 100);
	assert_int_equal(judge(evidence).count, 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(trace_vm_add_interpreted(of, &rows[i]), 0);
	evidence->traces = traces;
	expect_first(evidence, FINDING_NOT_COMPILED, 15, 0.75);
	findings = judge(evidence);
	assert_string_equal(findings.at[0].items[0].words, "loop, never tried again: NYI: bytecode");
	evidence_free(evidence);
	trace_process_free(traces);
}

/* What the first finding's first place says, if LuaJIT has tried this; "" if there is no finding. */
static const char *words_of(const struct interpreted_row *rows, size_t count)
{
	static char words[FINDING_TEXT_SIZE];
	struct evidence *evidence = begin();
	struct trace_process *traces = trace_process_new(4242, "luajit");
	struct findings findings;

	assert_non_null(traces);
	for (size_t i = 0; i < count; i++) {
		struct trace_vm *of = trace_process_add_vm(traces, 0x1000 * (i + 1), "/luajit");

		assert_non_null(of);
		assert_int_equal(trace_vm_add_interpreted(of, &rows[i]), 0);
	}
	add(evidence, (struct took){ NULL, VM_STATE_INTERPRETED, 16, 300 });
	add_honest(evidence, 100);
	evidence->traces = traces;
	findings = judge(evidence);
	snprintf(words, sizeof(words), "%s", findings.count ? findings.at[0].items[0].words : "");
	evidence_free(evidence);
	trace_process_free(traces);
	return words;
}

static void test_a_function_has_the_reason_of_its_own_definition_only(void **state)
{
	struct interpreted_row row = { .cause = NOT_COMPILED_OFF, .proto = PROTO };
	struct evidence *evidence = begin();
	const struct function *const others[] = {
		lua("handle", "@app.lua", 11),
		lua("handle", "@other.lua", 10),
		lua("handle", NULL, 10),
		made_up((struct function){ .kind = FRAME_BUILTIN, .file = "@app.lua", .firstline = 10 }),
		NULL,
	};

	(void)state;
	evidence_free(evidence);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		row.function = others[i];
		assert_string_equal(words_of(&row, 1), "");
	}
	row.function = lua("by another name", "@app.lua", 10);
	assert_string_equal(words_of(&row, 1), "jit.off()");
}

/* Of functions on one line, or without lines. */
static void test_a_function_has_the_reason_of_its_own_prototype_only(void **state)
{
	const struct function *same = lua("same", "@app.lua", 10);
	const struct interpreted_row rows[] = {
		{ same, 10, true, NOT_COMPILED_BLACKLISTED, "NYI: bytecode", 11, 0, OTHER_PROTO },
		{ same, 10, false, NOT_COMPILED_OFF, NULL, 0, 0, PROTO },
	};
	const struct interpreted_row unknown = { same, 10, false, NOT_COMPILED_OFF, NULL, 0, 0, 0 };

	(void)state;
	assert_string_equal(words_of(rows, 1), "");
	assert_string_equal(words_of(rows, 2), "jit.off()");
	assert_string_equal(words_of(&unknown, 1), "");
}

static void test_each_function_on_a_line_is_a_place_of_its_own(void **state)
{
	const struct function *same = lua("same", "@app.lua", 10);
	const struct interpreted_row rows[] = {
		{ same, 10, true, NOT_COMPILED_BLACKLISTED, "one", 11, 0, PROTO },
		{ same, 10, true, NOT_COMPILED_BLACKLISTED, "other", 11, 0, OTHER_PROTO },
	};
	struct evidence *evidence = begin();
	struct trace_process *traces = trace_process_new(4242, "luajit");
	struct trace_vm *of = traces ? trace_process_add_vm(traces, 0x1000, "/luajit") : NULL;
	const struct frame frame = { .function = handler, .line = 10 };
	struct sample sample = {
		.vm_state = VM_STATE_INTERPRETED, .cpu_ns = 10 * MS, .frames = &frame, .frame_count = 1
	};
	struct findings findings;

	(void)state;
	assert_non_null(of);
	for (size_t i = 0; i < 2; i++) {
		struct interpreted_row row = rows[i];

		row.cpu_ns = (i + 1) * 1000 * (uint64_t)MS;
		assert_int_equal(trace_vm_add_interpreted(of, &row), 0);
		sample.proto = row.proto;
		for (size_t j = 0; j < 100 * (i + 1); j++)
			assert_int_equal(evidence_add(evidence, &sample), 0);
	}
	evidence->traces = traces;
	findings = judge(evidence);
	assert_int_equal(findings.count, 1);
	assert_int_equal(findings.at[0].item_count, 2);
	assert_string_equal(findings.at[0].items[0].words, "loop, never tried again: other");
	assert_int_equal(findings.at[0].items[0].amount, 2000 * (uint64_t)MS);
	assert_string_equal(findings.at[0].items[1].words, "loop, never tried again: one");
	evidence_free(evidence);
	trace_process_free(traces);
}

static void test_of_several_reasons_the_hardest_is_told_and_then_the_most_frequent(void **state)
{
	const struct function *same = lua("same", "@app.lua", 10);
	const struct interpreted_row
		off = { same, 10, false, NOT_COMPILED_OFF, NULL, 0, 0, PROTO },
		seldom = { same, 11, false, NOT_COMPILED_ABORTED, "seldom", 2, 0, PROTO },
		often = { same, 12, false, NOT_COMPILED_ABORTED, "often", 9, 0, PROTO },
		too = { same, 13, true, NOT_COMPILED_ABORTED, "often, too", 9, 0, PROTO },
		never = { same, 14, true, NOT_COMPILED_BLACKLISTED, NULL, 1, 0, PROTO };
	const struct {
		struct interpreted_row rows[3];
		const char *words;
	} known[] = {
		{ { off, seldom, often }, "function, to be tried again: often" },
		{ { often, seldom, off }, "function, to be tried again: often" },
		{ { seldom, too, often }, "loop, to be tried again: often, too" },
		{ { often, never, seldom }, "loop, never tried again: reason no longer known" },
		{ { never, often, off }, "loop, never tried again: reason no longer known" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		assert_string_equal(words_of(known[i].rows, 3), known[i].words);
}

static void test_a_function_that_is_switched_off_is_another_finding(void **state)
{
	struct evidence *evidence = begin();
	struct trace_process *traces = trace_process_new(4242, "luajit");
	struct trace_vm *of = traces ? trace_process_add_vm(traces, 0x1000, "/luajit") : NULL;
	const struct interpreted_row row = { handler, 10, false, NOT_COMPILED_OFF, NULL, 0, 0, PROTO };
	const struct frame frame = { .function = handler, .line = 11, .compiled = true };
	const struct sample left = { .vm_state = VM_STATE_INTERPRETED,
				     .cpu_ns = 10 * MS,
				     .proto = PROTO,
				     .frames = &frame,
				     .frame_count = 1 };

	(void)state;
	assert_non_null(of);
	assert_int_equal(trace_vm_add_interpreted(of, &row), 0);
	evidence->traces = traces;
	/* 0.4 % of the time at each line: too little to ask for any of them. */
	for (uint32_t line = 20; line < 220; line++)
		add(evidence, (struct took){ NULL, VM_STATE_INTERPRETED, line, 1 });
	add_honest(evidence, 50);
	assert_int_equal(judge(evidence).count, 0);
	evidence_free(evidence);
	evidence = begin();
	evidence->traces = traces;
	/* 0.5 % each: enough. */
	for (uint32_t line = 20; line < 220; line++)
		add(evidence, (struct took){ NULL, VM_STATE_INTERPRETED, line, 1 });
	expect_first(evidence, FINDING_SWITCHED_OFF, 10, 1);
	evidence_free(evidence);
	evidence = begin();
	evidence->traces = traces;
	/* Compiled code that has been left is not of a function that is not compiled, ... */
	for (unsigned i = 0; i < 400; i++)
		assert_int_equal(evidence_add(evidence, &left), 0);
	assert_int_equal(judge(evidence).count, 0);
	/* ... and the work of C that it calls is not, either. */
	add(evidence, (struct took){ other(FRAME_C_FUNCTION, "decode", "cjson.so"), VM_STATE_C, 16, 300 });
	assert_int_equal(judge(evidence).count, 0);
	evidence_free(evidence);

	evidence = begin();
	evidence->traces = traces;
	add(evidence, (struct took){ other(FRAME_BUILTIN, "pairs", NULL), VM_STATE_INTERPRETED, 16, 300 });
	add_honest(evidence, 100);
	expect_first(evidence, FINDING_SWITCHED_OFF, 10, 0.75);
	assert_null(judge(evidence).at[0].items[0].callee);
	evidence_free(evidence);
	trace_process_free(traces);
}

/*---- Time ----*/

static void set_turns(struct evidence *evidence, const struct turn_line *lines, size_t count)
{
	evidence->turn_lines = calloc(count, sizeof(*lines));
	assert_non_null(evidence->turn_lines);
	memcpy(evidence->turn_lines, lines, count * sizeof(*lines));
	evidence->turn_line_count = count;
	evidence->turns = (struct turn_sums){ .threshold_ns = 20 * MS, .seen = 100, .long_turns = 7 };
}

static void test_long_turns_count_without_the_wait_for_a_cpu(void **state)
{
	struct evidence *evidence = begin();
	const struct turn_line lines[] = {
		{ .function = handler, .line = 40, .ns = 9000 * (uint64_t)MS, .wants_cpu = true },
		{ .function = handler, .line = 41, .ns = 1000 * (uint64_t)MS },
	};

	(void)state;
	set_turns(evidence, lines, 2);
	assert_int_equal(judge(evidence).count, 0); /* no loop */
	evidence->has_loop = true;
	expect_first(evidence, FINDING_BLOCKED, 41, 0.1);
	assert_null(strstr(judge(evidence).at[0].words, "several"));
	evidence->turns.unsure = 2;
	assert_non_null(strstr(judge(evidence).at[0].words, "; 2 may be several each"));
	evidence->turns.long_turns = 1;
	assert_int_equal(judge(evidence).count, 0);
	evidence->turns.long_turns = 7;
	evidence->turn_lines[1].ns = 400 * (uint64_t)MS;
	expect_nothing(evidence);
}

static void test_waits_for_programs_are_a_part_of_the_time(void **state)
{
	struct evidence *evidence = begin();
	struct frame frames[] = {
		{ .function = other(FRAME_BUILTIN, "os.execute", NULL) },
		{ .function = handler, .line = 50 },
	};
	struct sample sample = {
		.thread_state = THREAD_BLOCKED,
		.wall_ns = 4000 * (uint64_t)MS,
		.frames = frames,
		.frame_count = 2,
	};

	(void)state;
	assert_int_equal(evidence_add(evidence, &sample), 0);
	expect_first(evidence, FINDING_PROGRAMS, 50, 0.4);
	evidence_free(evidence);
}

/*
 * As unwind/lua/builtins.c names the methods of files. A close() of a pipe waits for its program, one of a
 * file for the disk.
 */
static void test_only_these_calls_wait_for_programs(void **state)
{
	static const struct {
		const char *callee, *wait;
		bool waits;
	} known[] = {
		{ "os.execute", NULL, true },      { "os.execute", "wait4", true },
		{ "io.popen", "clone3", true },    { "file.close", "wait4", true },
		{ "file.close", "waitid", true },  { "io.close", "wait4", true },
		{ "file.close", "close", false },  { "file.close", "write /var/log/app.log", false },
		{ "file.close", "wait4s", false }, { "file.close", NULL, false },
		{ "io.close", NULL, false },       { "io.lines", "read pipe", false },
		{ "os.time", "wait4", false },     { NULL, "wait4", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct evidence *evidence = begin();
		struct frame frames[] = {
			{ .function = other(FRAME_BUILTIN, known[i].callee, NULL) },
			{ .function = handler, .line = 49 },
		};
		struct sample sample = {
			.thread_state = THREAD_RUNNING,
			.vm_state = VM_STATE_C,
			.cpu_ns = 1,
			.wall_ns = 9000 * (uint64_t)MS,
			.frames = frames,
			.frame_count = 2,
		};

		assert_int_equal(evidence_add(evidence, &sample), 0);
		assert_int_equal(judge(evidence).count, 0); /* it runs, and waits for nothing */
		sample.thread_state = THREAD_BLOCKED;
		sample.wait = known[i].wait ? other(FRAME_NATIVE, known[i].wait, "kernel") : NULL;
		frames[1].line = 50;
		assert_int_equal(evidence_add(evidence, &sample), 0);
		if (known[i].waits) {
			expect_first(evidence, FINDING_PROGRAMS, 50, 0.9);
			assert_int_equal(judge(evidence).at[0].item_count, 1);
		}
		assert_int_equal(judge(evidence).count, known[i].waits);
		evidence_free(evidence);
	}
}

/* Several threads wait side by side; and a program that was not watched for any time has no share of it. */
static void test_a_share_of_the_time_is_all_of_it_at_most(void **state)
{
	struct evidence *evidence = begin();
	const struct turn_line lines[] = {
		{ .function = handler, .line = 40, .ns = 15000 * (uint64_t)MS },
	};

	(void)state;
	set_turns(evidence, lines, 1);
	evidence->has_loop = true;
	expect_first(evidence, FINDING_BLOCKED, 40, 1);
	evidence->duration_ns = 0;
	expect_nothing(evidence);
}

static void test_two_long_turns_of_a_twentieth_of_the_time_are_enough(void **state)
{
	struct evidence *evidence = begin();
	const struct turn_line lines[] = {
		{ .function = handler, .callee = vm, .line = 40, .ns = 500 * (uint64_t)MS },
	};
	struct findings findings;

	(void)state;
	set_turns(evidence, lines, 1);
	evidence->has_loop = true;
	evidence->turns.long_turns = 2;
	evidence->turns.longest_ns = 350 * (uint64_t)MS;
	expect_first(evidence, FINDING_BLOCKED, 40, 0.05);
	findings = judge(evidence);
	assert_int_equal(findings.at[0].amount, 500 * (uint64_t)MS);
	assert_ptr_equal(findings.at[0].items[0].callee, lines[0].callee);
	assert_string_equal(findings.at[0].words, "2 turns of 20 ms or more, the longest of 350 ms");
	evidence->turn_lines[0].ns--;
	expect_nothing(evidence);
}

/*---- Words and order ----*/

static void test_findings_say_their_figures(void **state)
{
	static struct frame frames[EVIDENCE_DEEP + 5];
	struct sample deep = { .vm_state = VM_STATE_COMPILED,
			       .cpu_ns = 10 * MS,
			       .frames = frames,
			       .frame_count = EVIDENCE_DEEP + 5 };
	struct evidence *evidence = begin();
	struct trace_process *traces = trace_process_new(4242, "luajit");
	struct findings findings;

	(void)state;
	assert_non_null(traces);
	for (size_t i = 0; i < EVIDENCE_DEEP + 5; i++)
		frames[i] = (struct frame){ .function = handler, .line = 7, .compiled = true };
	for (unsigned i = 0; i < 400; i++)
		assert_int_equal(evidence_add(evidence, &deep), 0);
	add(evidence, (struct took){ vm, VM_STATE_RECORDING, 14, 300 });
	add(evidence, (struct took){ other(FRAME_BUILTIN, "string.format", NULL), VM_STATE_C, 15, 300 });
	findings = judge(evidence);
	assert_int_equal(findings.count, 3);
	assert_int_equal(findings.at[0].kind, FINDING_RECURSION);
	assert_string_equal(findings.at[0].words, "up to 1005 calls of Lua at a time");
	/* What costs the same comes in the order of the kinds. */
	assert_int_equal(findings.at[1].kind, FINDING_FORMATS);
	assert_string_equal(findings.at[1].items[0].callee->name, "string.format");
	assert_string_equal(findings.at[1].words, "");
	assert_string_equal(findings.at[1].items[0].words, "");
	assert_int_equal(findings.at[2].kind, FINDING_COMPILING);
	assert_null(findings.at[2].items[0].callee);
	assert_string_equal(findings.at[2].words, ""); /* its traces were not looked at */
	evidence->traces = traces;
	assert_string_equal(judge(evidence).at[2].words, ""); /* no state was found to look at */
	trace_process_add_vm(traces, 0x4000, "/usr/bin/luajit");
	traces->gone_count = 17;
	assert_string_equal(judge(evidence).at[2].words, "17 traces that ran are gone since");
	evidence_free(evidence);
	trace_process_free(traces);
}

static void test_places_that_cost_the_same_stay_in_the_order_of_their_time(void **state)
{
	struct evidence *evidence = begin();
	const struct function *error = other(FRAME_BUILTIN, "error", NULL);
	const struct frame frames[] = { { .function = error }, { .function = handler, .line = 99 } };
	const struct sample free_of_charge = { .vm_state = VM_STATE_C, .frames = frames, .frame_count = 2 };
	struct findings findings;

	(void)state;
	add(evidence, (struct took){ error, VM_STATE_C, 1, 200 });
	assert_int_equal(evidence_add(evidence, &free_of_charge), 0);
	assert_int_equal(judge(evidence).at[0].item_count, 1); /* without the line that took no time */
	evidence_free(evidence);
	evidence = begin();
	for (uint32_t line = 1; line <= FINDING_ITEMS_MAX + 3; line++)
		add(evidence, (struct took){ error, VM_STATE_C, line, 10 });
	findings = judge(evidence);
	assert_int_equal(findings.at[0].item_count, FINDING_ITEMS_MAX);
	for (uint32_t i = 0; i < FINDING_ITEMS_MAX; i++)
		assert_int_equal(findings.at[0].items[i].line, i + 1);
	add(evidence, (struct took){ error, VM_STATE_C, 7, 10 });
	add(evidence, (struct took){ error, VM_STATE_C, 3, 5 });
	findings = judge(evidence);
	assert_int_equal(findings.at[0].item_count, FINDING_ITEMS_MAX);
	assert_int_equal(findings.at[0].items[0].line, 7);
	assert_int_equal(findings.at[0].items[0].amount, 200 * (uint64_t)MS);
	assert_int_equal(findings.at[0].items[1].line, 3);
	for (uint32_t i = 2; i < FINDING_ITEMS_MAX; i++)
		assert_int_equal(findings.at[0].items[i].line, i > 3 ? i : i - 1);
	evidence_free(evidence);
}

static void test_short_memory_is_told(void **state)
{
	struct evidence *evidence = begin();
	size_t failures = 0;

	(void)state;
	add(evidence, (struct took){ other(FRAME_BUILTIN, "error", NULL), VM_STATE_C, 12, 200 });
	add(evidence, (struct took){ vm, VM_STATE_GC, 20, 250 });
	for (bool failed = true; failed; failures++) {
		struct findings findings = { .count = 77 };
		int error;

		allocation_fails_after(failures);
		error = findings_judge(evidence, &findings);
		failed = allocation_failed();
		assert_int_equal(error, failed ? -ENOMEM : 0);
		assert_int_equal(findings.count, failed ? 77 : 2);
	}
	assert_in_range(failures, 4, 50); /* two places, and a table of them */
	evidence_free(evidence);
}

/*---- Heaps ----*/

enum { GROWTH_BYTES_MIN = 256 << 10 };

static const char *const most = "a path";

/*
 * The evidence of a heap with this path, which has grown in a minute from nothing by so much, in all that it
 * has now.
 */
static struct evidence *begin_growth(uint64_t bytes, uint64_t last_bytes)
{
	struct evidence *evidence = begin();

	evidence->heap = (struct heap_evidence){
		.growths = { .moment_count = 2 },
		.last_bytes = last_bytes,
		.duration_ns = UINT64_C(60000000000),
	};
	assert_int_equal(heap_growths_add(&evidence->heap.growths, most, 1,
					  &(struct heap_moment){ bytes, { bytes, 2 } }),
			 0);
	return evidence;
}

static void test_growth_counts_from_some_bytes_and_a_share_on(void **state)
{
	static const struct {
		uint64_t bytes, last_bytes;
		bool counts;
	} known[] = {
		{ GROWTH_BYTES_MIN, 10 * MB, false }, /* less than a twentieth */
		{ GROWTH_BYTES_MIN, MB, true },
		{ GROWTH_BYTES_MIN - 1, MB, false },
		{ 20 * MB, 400 * MB, true },
		{ 20 * MB - 1, 400 * MB, false },
		{ 20 * MB, 0, false }, /* not known */
		{ 0, MB, false },
	};
	struct evidence *evidence;
	struct findings findings;

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		evidence = begin_growth(known[i].bytes, known[i].last_bytes);
		assert_int_equal(judge(evidence).count, known[i].counts);
		evidence_free(evidence);
	}
	evidence = begin_growth(20 * MB, 400 * MB);
	findings = judge(evidence);
	assert_int_equal(findings.at[0].amount, 20 * MB);
	assert_true(findings.at[0].share > 0.0499 && findings.at[0].share < 0.0501);
	assert_string_equal(findings.at[0].words, "the heap has 400.0 MB now");
	assert_int_equal(findings.at[0].item_count, 1);
	assert_string_equal(findings.at[0].items[0].words, "+2 objects, 20.0 MB a minute");
	evidence->heap.duration_ns *= 4;
	assert_string_equal(judge(evidence).at[0].items[0].words, "+2 objects, 5.0 MB a minute");
	evidence->heap.duration_ns = 0;
	assert_string_equal(judge(evidence).at[0].items[0].words, "+2 objects, 0.0 MB a minute");
	evidence_free(evidence);
}

static void test_growth_that_is_small_beside_the_most_is_not_shown(void **state)
{
	static const uint64_t others[] = { MB - 1, 3 * MB, MB, 2 * MB };
	struct evidence *evidence = begin_growth(20 * MB, 40 * MB);
	struct findings findings;
	char name[16];

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		snprintf(name, sizeof(name), "path %zu", i);
		assert_int_equal(heap_growths_add(&evidence->heap.growths, name, 1,
						  &(struct heap_moment){ others[i], { others[i], 1 } }),
				 0);
	}
	findings = judge(evidence);
	assert_int_equal(findings.at[0].item_count, 4);
	assert_string_equal(findings.at[0].items[0].path, most);
	assert_string_equal(findings.at[0].items[1].path, "path 1");
	assert_string_equal(findings.at[0].items[2].path, "path 3");
	assert_string_equal(findings.at[0].items[3].path, "path 2");
	evidence_free(evidence);
}

static void test_growth_that_the_collector_frees_or_that_is_shown_already_does_not_count(void **state)
{
	struct evidence *evidence = begin_growth(20 * MB, 40 * MB);

	(void)state;
	evidence->heap.growths.rows->unheld = true;
	assert_int_equal(judge(evidence).count, 0);
	evidence->heap.growths.rows->unheld = false;
	evidence->heap.growths.rows->in_chain = true;
	assert_int_equal(judge(evidence).count, 0);
	evidence->heap.growths.rows->in_chain = false;
	assert_int_equal(judge(evidence).count, 1);
	evidence_free(evidence);
}

/* Looks at a heap with a cache of so many entries. */
static void look(struct heap_looks *looks, uint32_t entries)
{
	struct heap_graph graph = made_up_leak(entries, 2, 2);
	struct heap_account account = made_up_account(&graph);

	assert_int_equal(heap_looks_begin(looks, looks->count * UINT64_C(30000000000), 1), 0);
	assert_int_equal(heap_looks_add(looks, &graph, &account), 0);
	heap_graph_free(&graph);
}

static void test_what_grows_at_each_look_is_a_finding(void **state)
{
	static const struct {
		uint32_t entries[HEAP_LOOKS_MAX];
		bool grows;
	} series[] = {
		{ { 2000, 20000, 40000 }, true },   { { 2000, 40000, 20000 }, false },
		{ { 40000, 40000, 40000 }, false }, { { 40000, 40400, 40800 }, false },
		{ { 10, 20, 30 }, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(series) / sizeof(series[0]); i++) {
		struct evidence *evidence = begin();
		struct heap_looks looks = { 0 };
		struct findings findings;

		for (size_t j = 0; j < HEAP_LOOKS_MAX; j++)
			look(&looks, series[i].entries[j]);
		assert_int_equal(heap_looks_begin(&looks, 0, 1), -ENOMEM); /* no room for more */
		assert_int_equal(heap_looks_compare(&looks, &evidence->heap), 0);
		findings = judge(evidence);
		assert_int_equal(findings.count, series[i].grows);
		if (series[i].grows) {
			assert_int_equal(findings.at[0].kind, FINDING_GROWTH);
			assert_non_null(strstr(findings.at[0].items[0].path, "cache"));
			assert_non_null(strstr(findings.at[0].items[0].words, "+38000 objects"));
			assert_non_null(strstr(findings.at[0].items[0].words, "MB a minute"));
		}
		heap_looks_clear(&looks);
		evidence_free(evidence);
	}
}

/* What was not found at one look would grow until the next. */
static void test_a_look_that_lacks_something_is_refused(void **state)
{
	struct heap_graph graph = made_up_leak(10, 2, 2);
	struct heap_account account = made_up_account(&graph);
	struct heap_looks looks = { 0 };

	(void)state;
	assert_int_equal(heap_looks_begin(&looks, 0, 2), 0);
	account.gc_total++;
	assert_int_equal(heap_looks_add(&looks, &graph, &account), -ENODATA);
	assert_int_equal(looks.at[0].count, 0);
	account.gc_total--;
	assert_int_equal(heap_looks_add(&looks, &graph, &account), 0);
	assert_int_equal(looks.at[0].count, 1);
	heap_looks_clear(&looks);
	heap_graph_free(&graph);
}

/* Their table has few at the first look, so that it tells them apart by itself. */
static void test_keys_that_become_many_have_one_path(void **state)
{
	struct heap_looks looks = { 0 };
	struct heap_evidence evidence = { 0 };
	size_t shared = 0;

	(void)state;
	look(&looks, HEAP_KEYS_MAX);
	look(&looks, HEAP_KEYS_MAX + 1);
	assert_int_equal(heap_looks_compare(&looks, &evidence), 0);
	for (const struct heap_growth *growth = evidence.growths.rows; growth; growth = growth->hh.next) {
		assert_null(strstr(growth->name, "user:"));
		if (!strstr(growth->name, "[\"*\"]"))
			continue;
		assert_int_equal(heap_growth_count(&evidence.growths, growth), 1);
		shared++;
	}
	assert_true(shared > 0);
	heap_growths_clear(&evidence.growths);
	heap_looks_clear(&looks);
}

/* A VM that is missing at one look would grow until the next: nothing of it counts, but the others do. */
static void test_a_vm_that_is_missing_at_a_look_is_left_out(void **state)
{
	struct heap_looks looks = { 0 };
	struct heap_evidence evidence = { 0 };
	uint64_t others[2];

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		struct heap_graph other = made_up_leak(500 + i, 2, 2),
				  graph = made_up_leak(i ? 9000 : 0, 2, 2);
		struct heap_account of_other = made_up_account(&other), account = made_up_account(&graph);

		of_other.g = 1;
		account.g = 2;
		others[i] = of_other.sum;
		if (i == 0) {
			account.method = HEAP_MISSING;
			account.sum = 0;
		}
		assert_int_equal(heap_looks_begin(&looks, i, 2), 0);
		assert_int_equal(heap_looks_add(&looks, &graph, &account), 0);
		assert_int_equal(heap_looks_add(&looks, &other, &of_other), 0);
		heap_graph_free(&graph);
		heap_graph_free(&other);
	}
	assert_int_equal(heap_looks_compare(&looks, &evidence), 0);
	assert_int_equal(evidence.first_bytes, others[0]);
	assert_int_equal(evidence.last_bytes, others[1]);
	for (const struct heap_growth *growth = evidence.growths.rows; growth; growth = growth->hh.next)
		assert_true(heap_growth_bytes(&evidence.growths, growth) <= (int64_t)(others[1] - others[0]));
	heap_growths_clear(&evidence.growths);
	heap_looks_clear(&looks);
}

/* Begin a look at that time, at the heaps of two VMs: a small one, and a cache of so many entries. */
static uint64_t look_at_two(struct heap_looks *looks, uint64_t time_ns, uint32_t entries)
{
	uint64_t bytes = 0;

	assert_int_equal(heap_looks_begin(looks, time_ns, 2), 0);
	for (int i = 0; i < 2; i++) {
		struct heap_graph graph = made_up_leak(i ? entries : 1, 2, 2);
		struct heap_account account = made_up_account(&graph);

		assert_int_equal(heap_looks_add(looks, &graph, &account), 0);
		bytes += account.sum;
		heap_graph_free(&graph);
	}
	return bytes;
}

static void test_two_looks_are_compared_over_all_vms_and_the_time_between(void **state)
{
	struct heap_looks looks = { 0 };
	struct heap_evidence heap = { 0 };
	uint64_t first, last;
	size_t shown = 0;

	(void)state;
	first = look_at_two(&looks, 1000, 1000);
	assert_int_equal(heap_looks_compare(&looks, &heap), 0);
	assert_int_equal(heap.first_bytes, first);
	assert_int_equal(heap.last_bytes, first);
	assert_int_equal(heap.duration_ns, 0);
	assert_null(heap.growths.rows);
	last = look_at_two(&looks, 7000, 2000);
	assert_int_equal(heap_looks_compare(&looks, &heap), 0);
	assert_int_equal(heap.first_bytes, first);
	assert_int_equal(heap.last_bytes, last);
	assert_int_equal(heap.duration_ns, 6000);
	assert_int_equal(heap.growths.moment_count, 2);
	/* The most growth comes first, and is not shown again at each step of the path to it. */
	assert_int_equal(heap_growth_bytes(&heap.growths, heap.growths.rows), last - first);
	for (const struct heap_growth *row = heap.growths.rows; row; row = row->hh.next) {
		const struct heap_growth *next = row->hh.next;

		shown += !row->in_chain && heap_growth_bytes(&heap.growths, row) > 0;
		assert_true(!next ||
			    heap_growth_bytes(&heap.growths, next) <= heap_growth_bytes(&heap.growths, row));
	}
	assert_int_equal(shown, 1);
	/* A look that failed counts for nothing, and its place is free again. */
	look_at_two(&looks, 9000, 4000);
	heap_looks_drop(&looks);
	assert_int_equal(looks.count, 2);
	assert_int_equal(heap_looks_compare(&looks, &heap), 0);
	assert_int_equal(heap.last_bytes, last);
	assert_int_equal(heap.duration_ns, 6000);
	heap_growths_clear(&heap.growths);
	heap_looks_clear(&looks);
	assert_int_equal(looks.count, 0);
}

static void test_paths_that_are_small_in_their_heap_are_not_compared(void **state)
{
	struct heap_looks looks = { 0 };
	struct heap_evidence heap = { 0 };
	bool has_entries = false, has_small = false;

	(void)state;
	for (uint64_t i = 0; i < 2; i++)
		look_at_two(&looks, i, 1000);
	assert_int_equal(heap_looks_compare(&looks, &heap), 0);
	for (const struct heap_growth *row = heap.growths.rows; row; row = row->hh.next) {
		has_entries |= strstr(row->name, "[\"*\"]") != NULL;
		/* Both VMs have this closure of 48 bytes: in a megabyte, and in some kilobytes. */
		if (strcmp(row->name, "registry.timers[1]: function <app.lua:12>") == 0) {
			has_small = true;
			assert_int_equal(row->moments[0].held, 48);
		}
	}
	assert_true(has_entries && has_small);
	heap_growths_clear(&heap.growths);
	heap_looks_clear(&looks);
}

static void test_looks_tell_that_memory_is_short(void **state)
{
	struct heap_graph graph = made_up_leak(10, 2, 2);
	struct heap_account account = made_up_account(&graph);
	size_t failures = 0;

	(void)state;
	for (bool failed = true; failed; failures++) {
		struct heap_looks looks = { 0 };
		struct heap_evidence heap = { 0 };
		int error = 0;

		allocation_fails_after(failures);
		for (uint64_t i = 0; i < 2 && !error; i++) {
			error = heap_looks_begin(&looks, i, 1);
			if (!error)
				error = heap_looks_add(&looks, &graph, &account);
		}
		if (!error)
			error = heap_looks_compare(&looks, &heap);
		failed = allocation_failed();
		assert_int_equal(error, failed ? -ENOMEM : 0);
		heap_growths_clear(&heap.growths);
		heap_looks_clear(&looks);
	}
	assert_in_range(failures, 20, SIZE_MAX);
	heap_graph_free(&graph);
}

static void test_heaps_that_were_not_read_are_silent(void **state)
{
	struct evidence *evidence = begin();
	struct heap_looks looks = { 0 };

	(void)state;
	assert_int_equal(heap_looks_compare(&looks, &evidence->heap), 0);
	assert_int_equal(evidence->heap.last_bytes, 0);
	look(&looks, 100);
	assert_int_equal(heap_looks_compare(&looks, &evidence->heap), 0);
	assert_true(evidence->heap.last_bytes > 0);
	heap_looks_clear(&looks);
	expect_nothing(evidence);
}

/*---- Reports ----*/

static char *print(const struct evidence *evidence, const struct unseen *unseen)
{
	struct findings findings = judge(evidence);
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	findings_print(out, evidence, &findings, unseen);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void test_the_page_is_safe_and_says_everything(void **state)
{
	struct evidence *evidence = begin();
	struct unseen unseen = { 0 };
	char *text;

	(void)state;
	text = print(evidence, &unseen);
	assert_non_null(strstr(text, "\nNothing stands out.\n"));
	assert_null(strstr(text, "Not looked at"));
	assert_null(strchr(text, '\x1b'));
	free(text);

	handler = lua("evil\x1b[2J\n", "@app.lua", 10);
	add(evidence, (struct took){ other(FRAME_BUILTIN, "error", NULL), VM_STATE_C, 12, 300 });
	for (unsigned i = 0; i < 2 * FINDINGS_UNSEEN_MAX; i++)
		unseen_add(&unseen, "part %u", i);
	assert_int_equal(unseen.count, FINDINGS_UNSEEN_MAX);
	text = print(evidence, &unseen);
	assert_null(strchr(text, '\x1b'));
	assert_non_null(strstr(text, "1. Errors are raised and caught all the time: 100.0 % of CPU time\n"));
	assert_non_null(strstr(text, "app.lua:12: error [builtin]\n"));
	assert_non_null(strstr(text, "What people do: Return nil"));
	assert_non_null(strstr(text, "Not looked at:\n   part 0\n"));
	assert_null(strstr(text, "Nothing stands out"));
	free(text);
	evidence_free(evidence);
}

static void test_json_has_the_same(void **state)
{
	struct evidence *evidence = begin();
	struct unseen unseen = { 0 };
	struct findings findings;
	json_t *document, *finding;

	(void)state;
	add(evidence, (struct took){ other(FRAME_BUILTIN, "error", NULL), VM_STATE_C, 12, 300 });
	unseen_add(&unseen, "the moon");
	findings = judge(evidence);
	document = findings_json(evidence, &findings, &unseen);
	assert_non_null(document);
	finding = json_array_get(json_object_get(document, "findings"), 0);
	assert_string_equal(json_string_value(json_object_get(finding, "kind")), "errors");
	assert_string_equal(json_string_value(json_object_get(finding, "of")), "cpu");
	assert_true(json_real_value(json_object_get(finding, "ms")) == 3000);
	finding = json_array_get(json_object_get(finding, "evidence"), 0);
	assert_string_equal(json_string_value(json_object_get(finding, "file")), "app.lua");
	assert_int_equal(json_integer_value(json_object_get(finding, "line")), 12);
	assert_string_equal(json_string_value(json_array_get(json_object_get(document, "not_looked_at"), 0)),
			    "the moon");
	assert_true(json_is_null(json_object_get(document, "heap_bytes")));
	json_decref(document);
	evidence_free(evidence);
}

static void keep_report(struct kept_text *kept, const struct evidence *evidence, const struct unseen *unseen)
{
	struct findings findings = judge(evidence);

	findings_print(kept->out, evidence, &findings, unseen);
	kept_text_json(kept, findings_json(evidence, &findings, unseen));
}

/* Of CPU time, of the time and of the heap; with all that a place may have. */
static void test_pages_are_as_they_were_read(void **state)
{
	struct evidence *evidence = begin(), *nameless = evidence_new(7, NULL);
	struct heap_looks looks = { 0 };
	struct unseen unseen = { 0 };
	struct frame waiting[] = {
		{ .function = other(FRAME_BUILTIN, "os.execute", NULL) },
		{ .function = handler, .line = 50 },
	};
	const struct sample sample = {
		.thread_state = THREAD_BLOCKED,
		.wall_ns = 4000 * (uint64_t)MS,
		.frames = waiting,
		.frame_count = 2,
	};
	struct kept_text kept;

	(void)state;
	assert_non_null(nameless);
	for (uint32_t i = 0; i < HEAP_LOOKS_MAX; i++)
		look(&looks, 2000 + 20000 * i);
	assert_int_equal(heap_looks_compare(&looks, &evidence->heap), 0);
	assert_int_equal(evidence_add(evidence, &sample), 0);
	add(evidence, (struct took){ vm, VM_STATE_GC, 20, 250 });
	add(evidence, (struct took){ other(FRAME_BUILTIN, "error", NULL), VM_STATE_C, 12, 200 });
	add(evidence, (struct took){ other(FRAME_BUILTIN, "pcall", NULL), VM_STATE_C, 0, 100 });
	add_honest(evidence, 50);
	add(evidence, (struct took){ other(FRAME_LOST, "no reason", NULL), VM_STATE_NONE, 13, 40 });
	/* 0.3 % of the time: too little to name. */
	add(evidence, (struct took){ NULL, VM_STATE_INTERPRETED, 13, 2 });
	unseen_add_of(&unseen, evidence);
	kept_text_begin(&kept);
	keep_report(&kept, evidence, &unseen);
	unseen = (struct unseen){ 0 };
	unseen_add_of(&unseen, nameless);
	keep_report(&kept, nameless, &unseen);
	heap_looks_clear(&looks);
	evidence_free(evidence);
	evidence_free(nameless);
	kept_text_check(&kept, "findings.txt");
}

static void test_what_of_the_traces_is_unknown_is_told(void **state)
{
	static const struct {
		uint64_t states;
		bool has_jit, complete;
		const char *told;
	} looked[] = {
		{ 0, false, true, "compiled code: no Lua state is known" },
		{ 2, false, true, "compiled code: this LuaJIT has no compiler" },
		{ 2, false, false, "compiled code: this LuaJIT has no compiler" },
		{ 2, true, false, "a part of the traces, or of what is not compiled: it could not be read" },
		{ 2, true, true, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(looked) / sizeof(looked[0]); i++) {
		struct evidence *evidence = begin();
		struct trace_process *traces = trace_process_new(4242, "luajit");
		struct unseen unseen = { 0 };

		assert_non_null(traces);
		for (uint64_t g = 1; g <= looked[i].states; g++) {
			struct trace_vm *of = trace_process_add_vm(traces, g, "/luajit");

			assert_non_null(of);
			of->has_jit = g == 1 && looked[i].has_jit;
			of->complete = g == 1 || looked[i].complete;
		}
		add_honest(evidence, 300);
		evidence->has_loop = true;
		evidence->traces = traces;
		unseen_add_of(&unseen, evidence);
		assert_int_equal(unseen.count, looked[i].told != NULL);
		assert_string_equal(unseen.at[0], looked[i].told ? looked[i].told : "");
		evidence_free(evidence);
		trace_process_free(traces);
	}
}

/* Samples whose leaf is known, and a caller is not. */
static void add_lost_callers(struct evidence *evidence, const struct function *lost, unsigned samples)
{
	struct frame frames[] = { { .function = handler, .line = 13 }, { .function = lost } };
	const struct sample sample = { .pid = 4242,
				       .tid = 4242,
				       .thread_state = THREAD_RUNNING,
				       .vm_state = VM_STATE_NONE,
				       .cpu_ns = 10 * MS,
				       .wall_ns = 10 * MS,
				       .frames = frames,
				       .frame_count = 2 };

	for (unsigned i = 0; i < samples; i++)
		assert_int_equal(evidence_add(evidence, &sample), 0);
}

static void test_lost_stacks_are_told_from_a_twentieth_on(void **state)
{
	static const struct {
		unsigned lost; /* of 300 samples */
		const char *told;
	} known[] = { { 14, NULL },
		      { 15, "5 % of the CPU time: a part of its stacks is unknown" },
		      { 300, "100 % of the CPU time: a part of its stacks is unknown" } };
	const struct function *lost = other(FRAME_LOST, "no reason", NULL);

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(known) / sizeof(known[0]); i++) {
		const unsigned samples = known[i / 2].lost;
		const char *told = known[i / 2].told;
		struct evidence *evidence = begin();
		struct unseen unseen = { 0 };

		evidence->has_loop = true;
		if (i % 2)
			add_lost_callers(evidence, lost, samples);
		else
			add(evidence, (struct took){ lost, VM_STATE_NONE, 13, samples });
		add_honest(evidence, 300 - samples);
		unseen_add_of(&unseen, evidence);
		assert_int_equal(unseen.count, told != NULL);
		assert_string_equal(unseen.at[0], told ? told : "");
		evidence_free(evidence);
	}
}

/* A stack whose leaf is known may still be cut below it. */
static void test_a_stack_is_lost_at_whichever_frame(void **state)
{
	struct evidence *evidence = begin();
	const struct frame frames[] = {
		{ .function = handler, .line = 11 },
		{ .function = vm },
		{ .function = other(FRAME_LOST, "no reason", NULL) },
	};
	const struct sample sample = { .cpu_ns = MS, .frames = frames, .frame_count = 3 };
	const struct sample known = { .cpu_ns = MS, .frames = frames, .frame_count = 2 };

	(void)state;
	assert_int_equal(evidence_add(evidence, &known), 0);
	assert_int_equal(evidence->lost_ns, 0);
	assert_int_equal(evidence_add(evidence, &sample), 0);
	assert_int_equal(evidence->lost_ns, MS);
	evidence_free(evidence);
}

static void test_nothing_has_no_share(void **state)
{
	struct evidence *evidence = begin();

	(void)state;
	assert_true(evidence_share(evidence, 0) == 0);
	assert_true(evidence_sure_share(evidence, 0) == 0);
	assert_true(evidence_weight(evidence) == 0);
	assert_false(evidence_is_enough(evidence));
	assert_false(evidence_is_busy(evidence));
	add_honest(evidence, 20);
	assert_true(evidence_is_enough(evidence));
	assert_false(evidence_is_busy(evidence)); /* 20 of 1000 parts of the time: no more than that */
	add_honest(evidence, 80);
	assert_true(evidence_is_busy(evidence));
	assert_true(evidence_sure_share(evidence, evidence->cpu_ns) == 1);
	/* A half of 100 samples has a standard error of a twentieth. */
	assert_true(evidence_sure_share(evidence, evidence->cpu_ns / 2) > 0.399);
	assert_true(evidence_sure_share(evidence, evidence->cpu_ns / 2) < 0.401);
	evidence_free(evidence);
}

static void test_each_kind_has_all_its_words(void **state)
{
	(void)state;
	for (int kind = FINDING_NONE + 1; kind < FINDING_KIND_COUNT; kind++) {
		const struct finding_rule *rule = &finding_rules[kind];

		assert_true(rule->name && rule->title && rule->page && rule->least > 0 && rule->least < 1);
		assert_int_equal(rule->advice[strlen(rule->advice) - 1], '.');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_work_is_known_by_its_name),
		cmocka_unit_test(test_what_could_not_be_looked_at_is_told_once),
		cmocka_unit_test(test_a_name_counts_for_its_kind_of_function_only),
		cmocka_unit_test(test_states_of_luajit_are_findings),
		cmocka_unit_test(test_small_shares_are_silent),
		cmocka_unit_test(test_a_share_that_may_be_chance_is_silent),
		cmocka_unit_test(test_few_samples_and_idle_processes_are_silent_and_say_so),
		cmocka_unit_test(test_findings_come_by_share_and_places_by_weight),
		cmocka_unit_test(test_a_line_tells_what_nameless_work_is_for),
		cmocka_unit_test(test_nameless_work_is_judged_by_its_source),
		cmocka_unit_test(test_what_pcall_calls_is_no_error),
		cmocka_unit_test(test_a_file_that_has_changed_judges_nothing),
		cmocka_unit_test(test_sources_of_small_shares_are_not_read),
		cmocka_unit_test(test_appending_is_no_shift),
		cmocka_unit_test(test_only_a_time_without_arguments_is_that_of_now),
		cmocka_unit_test(test_finding_plain_text_is_no_pattern),
		cmocka_unit_test(test_only_dots_join_piece_by_piece),
		cmocka_unit_test(test_sorting_has_its_comparisons),
		cmocka_unit_test(test_deep_stacks_are_recursion),
		cmocka_unit_test(test_interpreted_time_counts_where_luajit_says_why),
		cmocka_unit_test(test_a_function_has_the_reason_of_its_own_definition_only),
		cmocka_unit_test(test_a_function_has_the_reason_of_its_own_prototype_only),
		cmocka_unit_test(test_each_function_on_a_line_is_a_place_of_its_own),
		cmocka_unit_test(test_of_several_reasons_the_hardest_is_told_and_then_the_most_frequent),
		cmocka_unit_test(test_a_function_that_is_switched_off_is_another_finding),
		cmocka_unit_test(test_long_turns_count_without_the_wait_for_a_cpu),
		cmocka_unit_test(test_waits_for_programs_are_a_part_of_the_time),
		cmocka_unit_test(test_only_these_calls_wait_for_programs),
		cmocka_unit_test(test_a_share_of_the_time_is_all_of_it_at_most),
		cmocka_unit_test(test_two_long_turns_of_a_twentieth_of_the_time_are_enough),
		cmocka_unit_test(test_findings_say_their_figures),
		cmocka_unit_test(test_places_that_cost_the_same_stay_in_the_order_of_their_time),
		cmocka_unit_test(test_short_memory_is_told),
		cmocka_unit_test(test_growth_counts_from_some_bytes_and_a_share_on),
		cmocka_unit_test(test_growth_that_is_small_beside_the_most_is_not_shown),
		cmocka_unit_test(
			test_growth_that_the_collector_frees_or_that_is_shown_already_does_not_count),
		cmocka_unit_test(test_what_grows_at_each_look_is_a_finding),
		cmocka_unit_test(test_keys_that_become_many_have_one_path),
		cmocka_unit_test(test_a_look_that_lacks_something_is_refused),
		cmocka_unit_test(test_a_vm_that_is_missing_at_a_look_is_left_out),
		cmocka_unit_test(test_two_looks_are_compared_over_all_vms_and_the_time_between),
		cmocka_unit_test(test_paths_that_are_small_in_their_heap_are_not_compared),
		cmocka_unit_test(test_looks_tell_that_memory_is_short),
		cmocka_unit_test(test_heaps_that_were_not_read_are_silent),
		cmocka_unit_test(test_the_page_is_safe_and_says_everything),
		cmocka_unit_test(test_json_has_the_same),
		cmocka_unit_test(test_pages_are_as_they_were_read),
		cmocka_unit_test(test_what_of_the_traces_is_unknown_is_told),
		cmocka_unit_test(test_lost_stacks_are_told_from_a_twentieth_on),
		cmocka_unit_test(test_a_stack_is_lost_at_whichever_frame),
		cmocka_unit_test(test_nothing_has_no_share),
		cmocka_unit_test(test_each_kind_has_all_its_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Listings of traces of real programs, as they lay in a process (test_kept_traces.c). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/instead_of.h"
#include "tests/unit/kept_pages.h"
#include "tests/unit/kept_text.h"
#include "unwind/compiled/trace_list.h"
#include "unwind/listing/trace_listing.h"
#include "unwind/lua/luajit.h"
#include "unwind/trace/trace_block.h"

INSTEAD_OF(builtins_collect);
INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
INSTEAD_OF(reallocarray);

#define FAILING_REALLOCARRAY
#include "tests/unit/failing_allocation.h"

enum { SHOWN_MAX = 12 };

/* A build's process, and its release, which is not among what is kept. */
static const struct build {
	const char *process, *version, *text;
	uint32_t shown[SHOWN_MAX]; /* traces, which have most of the instructions that there are */
} builds[] = {
	{ "traces-gc64.process",
	  "LuaJIT 2.1.1737090214",
	  "trace-listing-gc64.txt",
	  { 2, 7, 12, 20, 24, 28, 41, 43, 55, 61 } },
	{ "traces-gc32.process", "LuaJIT 2.1.0-beta3", "trace-listing-gc32.txt", { 2, 19, 23, 40, 42, 57 } },
};

enum {
	BUILDS = sizeof(builds) / sizeof(builds[0]),
	TRACES_MIN = 20,
	NUMBERS_MAX = 100,
	LOOP = 1,            /* a trace of a loop */
	SIDE = 2,            /* one that begins at its exit */
	STITCHED_AFTER = 27, /* one that ends at a call */
	STITCHED = 28,       /* and the one behind the call */
	FIELDS = 7,          /* one with fields of tables */
};

static const char *version;

void __wrap_builtins_collect(struct memory *memory, const struct layout *layout, uint64_t g,
			     struct builtins *ret_builtins)
{
	(void)memory;
	(void)layout;
	(void)g;
	*ret_builtins = (struct builtins){ 0 };
	strcpy(ret_builtins->version, version);
}

static struct process {
	struct kept_pages kept;
	const struct layout *layout;
	struct vm_code vm;
	struct global_state global;
	struct trace_listing *reading;
	struct listing listing;
} process;

/* Skips on other machines than the processes'. */
static void begin(const struct build *build)
{
#ifndef __x86_64__
	skip();
#endif
	process = (struct process){ .reading = NULL };
	kept_pages_load(&process.kept, build->process);
	process.vm.layout = process.kept.layout;
	process.layout = &process.vm.layout;
	process.global = (struct global_state){ .g = process.kept.g, .vm = &process.vm };
	version = build->version;
}

/* Copy this trace. */
static const struct trace *read_trace(uint32_t number)
{
	listing_clear(&process.listing);
	trace_listing_free(process.reading);
	process.reading = trace_listing_new(&process.kept.memory, &process.global, number);
	assert_non_null(process.reading);
	assert_null(trace_listing_trace(process.reading));
	trace_listing_read(process.reading);
	return trace_listing_trace(process.reading);
}

static const struct listing *list(uint32_t number, const struct listing_samples *samples)
{
	assert_non_null(read_trace(number));
	assert_int_equal(trace_listing_make(process.reading, samples, &process.listing), 0);
	assert_false(process.listing.cut);
	return &process.listing;
}

static void end(void)
{
	listing_clear(&process.listing);
	trace_listing_free(process.reading);
	kept_pages_free(&process.kept);
}

/* How many traces there are: their numbers have no gaps. */
static uint32_t count_traces(void)
{
	uint32_t number = 1;

	while (number < NUMBERS_MAX && read_trace(number))
		number++;
	assert_in_range(number, TRACES_MIN, NUMBERS_MAX - 1);
	return number - 1;
}

/* The only line that begins like this. */
static const struct listing_line *find_line(const struct listing *listing, const char *text)
{
	const struct listing_line *found = NULL;

	for (size_t i = 0; i < listing->count; i++) {
		if (strncmp(listing->lines[i].text, text, strlen(text)) != 0)
			continue;
		assert_null(found);
		found = &listing->lines[i];
	}
	return found;
}

static void assert_line(const struct listing *listing, const char *text)
{
	const struct listing_line *line = find_line(listing, text);

	assert_non_null(line);
	assert_string_equal(line->text, text);
}

/*---- The whole ----*/

/* A sample at each byte of code, of two nanoseconds. */
static void at_each_byte(void *context, uint64_t from, uint64_t up_to, uint64_t *ret_samples,
			 uint64_t *ret_cpu_ns)
{
	(void)context;
	assert_true(from <= up_to);
	*ret_samples = up_to - from;
	*ret_cpu_ns = 2 * (up_to - from);
}

static const struct listing_samples samples = { .at = at_each_byte };

static void print_listing(FILE *out, const struct listing *listing, bool with_code)
{
	for (size_t i = 0; i < listing->count; i++) {
		const struct listing_line *line = &listing->lines[i];

		if (line->kind == LISTING_CODE && !with_code)
			continue;
		fprintf(out, "%d %s", (int)line->kind, line->place);
		if (line->samples)
			fprintf(out, " %llu", (unsigned long long)line->samples);
		if (line->ref)
			fprintf(out, " for %04u", line->ref);
		fputs(" | ", out);
		print_without_addresses(out,
					line->kind == LISTING_CODE ? strchr(line->text, ' ') : line->text);
		putc('\n', out);
	}
}

static void traces_read_as_jit_dump_prints_them(void **state)
{
	(void)state;
	for (size_t i = 0; i < BUILDS; i++) {
		struct kept_text kept;

		begin(&builds[i]);
		kept_text_begin(&kept);
		for (size_t shown = 0; builds[i].shown[shown]; shown++)
			print_listing(kept.out, list(builds[i].shown[shown], &samples), shown == 0);
		kept_text_check(&kept, builds[i].text);
		end();
	}
}

struct sums {
	uint64_t samples, cpu_ns;
	size_t lines;
};

static struct sums sum_kind(const struct listing *listing, enum listing_kind kind)
{
	struct sums sums = { 0 };

	for (size_t i = 0; i < listing->count; i++) {
		if (listing->lines[i].kind != kind)
			continue;
		sums.lines++;
		sums.samples += listing->lines[i].samples;
		sums.cpu_ns += listing->lines[i].cpu_ns;
	}
	return sums;
}

/* Lines of code follow each other, and each has the samples of its own bytes. */
static void check_code(const struct listing *listing, const struct trace *trace)
{
	uint64_t next = trace->mcode;

	for (size_t i = 0; i < listing->count; i++) {
		const struct listing_line *line = &listing->lines[i];

		if (line->kind != LISTING_CODE)
			continue;
		assert_int_equal(line->address, next);
		assert_int_equal(strtoull(line->text, NULL, 16), next);
		assert_in_range(line->samples, 1, 15);
		assert_int_equal(line->cpu_ns, 2 * line->samples);
		next += line->samples;
	}
	assert_int_equal(next, trace->mcode + trace->szmcode);
}

/* A sample is told by each kind once: code that sets up a trace is of no instruction's. */
static void check_samples(const struct listing *listing, const struct trace *trace)
{
	const struct sums ir = sum_kind(listing, LISTING_IR), bytecode = sum_kind(listing, LISTING_BYTECODE);

	assert_int_equal(listing->samples, trace->szmcode);
	assert_int_equal(listing->cpu_ns, 2 * trace->szmcode);
	assert_in_range(ir.samples, 0, trace->szmcode);
	assert_in_range(bytecode.samples, 0, trace->szmcode);
	assert_int_equal(ir.cpu_ns, 2 * ir.samples);
	assert_int_equal(bytecode.cpu_ns, 2 * bytecode.samples);
}

static void each_byte_of_code_has_one_line_and_its_samples(void **state)
{
	(void)state;
	for (size_t i = 0; i < BUILDS; i++) {
		uint32_t count;

		begin(&builds[i]);
		count = count_traces();
		for (uint32_t number = 1; number <= count; number++) {
			const struct listing *listing = list(number, &samples);
			const struct trace *trace = trace_listing_trace(process.reading);
			const size_t lines = listing->count;

			check_code(listing, trace);
			check_samples(listing, trace);
			/* The same lines without samples. */
			listing = list(number, NULL);
			assert_int_equal(listing->count, lines);
			assert_int_equal(listing->samples + listing->cpu_ns, 0);
			for (size_t line = 0; line < lines; line++)
				assert_int_equal(listing->lines[line].samples + listing->lines[line].cpu_ns,
						 0);
		}
		end();
	}
}

/*---- Which trace ----*/

static uint64_t J(int32_t field)
{
	return process.kept.g + (uint64_t)process.layout->GG_J + (uint64_t)field;
}

static void a_number_without_a_trace_has_no_lines(void **state)
{
	uint32_t count;

	(void)state;
	begin(&builds[0]);
	count = count_traces();
	for (size_t i = 0; i < 3; i++) {
		const uint32_t numbers[] = { 0, count + 1, UINT16_MAX };

		assert_null(read_trace(numbers[i]));
		assert_int_equal(trace_listing_make(process.reading, &samples, &process.listing), 0);
		assert_int_equal(process.listing.count, 0);
		assert_int_equal(process.listing.samples, 0);
	}
	assert_non_null(read_trace(count));
	end();
}

/* LuaJIT has flushed its traces, or its memory is gone. */
static void a_trace_that_is_read_again_replaces_its_copy(void **state)
{
	(void)state;
	begin(&builds[0]);
	assert_non_null(read_trace(LOOP));
	trace_listing_read(process.reading);
	assert_non_null(trace_listing_trace(process.reading));
	assert_int_equal(trace_listing_make(process.reading, NULL, &process.listing), 0);
	assert_true(process.listing.count > 0);
	listing_clear(&process.listing);
	kept_pages_put(&process.kept, J(process.layout->J_sizetrace), LOOP, sizeof(uint32_t));
	trace_listing_read(process.reading);
	assert_null(trace_listing_trace(process.reading));
	assert_int_equal(trace_listing_make(process.reading, NULL, &process.listing), 0);
	assert_int_equal(process.listing.count, 0);
	process.kept.count = 0;
	trace_listing_read(process.reading);
	assert_null(trace_listing_trace(process.reading));
	end();
}

/*---- Heads ----*/

static void assert_head(uint32_t number, const char *text)
{
	assert_line(list(number, NULL), text);
}

static void set_field(uint32_t number, int32_t field, uint64_t value, size_t size)
{
	const struct trace *trace = read_trace(number);

	assert_non_null(trace);
	kept_pages_put(&process.kept, trace->address + (uint64_t)field, value, size);
}

static void the_first_line_tells_where_a_trace_began(void **state)
{
	(void)state;
	begin(&builds[0]);
	assert_head(LOOP, "---- TRACE 1 start (command line):6");
	assert_head(SIDE, "---- TRACE 2 start 1/1 (command line):7");
	assert_head(STITCHED, "---- TRACE 28 start 27/stitch (command line):171");
	/* The trace before it links elsewhere. */
	set_field(STITCHED_AFTER, process.layout->GCtrace_linktype, TRACE_LINK_RETURN, 1);
	assert_head(STITCHED, "---- TRACE 28 start ?/stitch (command line):171");
	end();
}

static void the_last_line_tells_where_a_trace_ends(void **state)
{
	static const struct {
		uint16_t link;
		uint8_t linktype;
		const char *text;
	} ends[] = {
		{ LOOP, TRACE_LINK_LOOP, "---- TRACE 1 stop -> loop" },
		{ LOOP, TRACE_LINK_TAILREC, "---- TRACE 1 stop -> tail-recursion" },
		{ LOOP, TRACE_LINK_UPREC, "---- TRACE 1 stop -> up-recursion" },
		{ SIDE, TRACE_LINK_DOWNREC, "---- TRACE 1 stop -> 2 down-recursion" },
		{ SIDE, TRACE_LINK_ROOT, "---- TRACE 1 stop -> 2" },
		{ 0, TRACE_LINK_INTERP, "---- TRACE 1 stop -> interpreter" },
		{ 0, TRACE_LINK_RETURN, "---- TRACE 1 stop -> return" },
		{ SIDE, TRACE_LINK_STITCH, "---- TRACE 1 stop -> 2 stitch" },
		{ 0, TRACE_LINK_NONE, "---- TRACE 1 stop -> none" },
		{ 0, TRACE_LINK_COUNT, "---- TRACE 1 stop -> ?" },
		{ SIDE, UINT8_MAX, "---- TRACE 1 stop -> 2 ?" },
	};

	(void)state;
	begin(&builds[0]);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		const struct listing *listing;

		set_field(LOOP, process.layout->GCtrace_link, ends[i].link, sizeof(ends[i].link));
		set_field(LOOP, process.layout->GCtrace_linktype, ends[i].linktype, 1);
		listing = list(LOOP, NULL);
		assert_string_equal(listing->lines[listing->count - 1].text, ends[i].text);
		assert_int_equal(listing->lines[listing->count - 1].kind, LISTING_HEAD);
	}
	end();
}

/*---- What cannot be told ----*/

static void a_release_with_other_names_has_numbers_and_says_so(void **state)
{
	static const char note[] =
		"(which names this build's numbers of fields and functions have is not known)";
	size_t lines;

	(void)state;
	begin(&builds[0]);
	assert_null(find_line(list(FIELDS, NULL), note));
	lines = process.listing.count;
	version = "LuaJIT 2.1.1990000000";
	assert_line(list(FIELDS, NULL), note);
	assert_int_equal(find_line(&process.listing, note)->kind, LISTING_NOTE);
	assert_int_equal(process.listing.count, lines + 1);
	end();
}

static bool has_text(const struct listing *listing, enum listing_kind kind, const char *text)
{
	for (size_t i = 0; i < listing->count; i++)
		if (listing->lines[i].kind == kind && strstr(listing->lines[i].text, text))
			return true;
	return false;
}

/* Put a string at an address. */
static void put_string(uint64_t at, const char *text)
{
	kept_pages_put(&process.kept, at + (uint64_t)process.layout->GChead_gct, GCT_STRING, 1);
	kept_pages_put(&process.kept, at + (uint64_t)process.layout->GCstr_len, strlen(text), 4);
	kept_pages_put_bytes(&process.kept, at + (uint64_t)process.layout->GCstr_size, text, strlen(text));
}

/* Put a string at each of a trace's constants that is one; returns how many. */
static unsigned put_strings(const struct trace *trace, char prefix)
{
	unsigned count = 0;

	for (uint32_t ref = trace_nk(trace, process.layout); ref < TRACE_REF_BIAS; ref++) {
		struct trace_instruction constant;
		char text[8];
		uint64_t at;

		if (!trace_instruction(trace, process.layout, ref, &constant) || constant.op != IR_KGC ||
		    constant.type != IRT_STR || !trace_constant(trace, process.layout, ref, &at))
			continue;
		snprintf(text, sizeof(text), "%c%u", prefix, count++);
		put_string(at, text);
	}
	return count;
}

static void strings_that_were_read_are_shown(void **state)
{
	enum { STRINGS_MIN = 3 };

	(void)state;
	for (size_t i = 0; i < BUILDS; i++) {
		unsigned count, in_ir = 0, in_bytecode = 0;

		begin(&builds[i]);
		assert_true(has_text(list(FIELDS, NULL), LISTING_IR, "string: 0x"));
		count = put_strings(read_trace(FIELDS), 's');
		assert_true(count >= STRINGS_MIN);
		assert_false(has_text(list(FIELDS, NULL), LISTING_IR, "string: 0x"));
		for (unsigned string = 0; string < count; string++) {
			char text[16];

			snprintf(text, sizeof(text), "\"s%u\"", string);
			in_ir += has_text(&process.listing, LISTING_IR, text);
			in_bytecode += has_text(&process.listing, LISTING_BYTECODE, text);
		}
		/* A trace holds some that none of its instructions needs any more. */
		assert_true(in_ir >= STRINGS_MIN);
		assert_true(in_bytecode >= STRINGS_MIN);
		end();
	}
}

/* Also those that are in none of its instructions. */
static void strings_of_its_function_are_shown(void **state)
{
	enum { STRINGS_MIN = 4 };

	(void)state;
	for (size_t i = 0; i < BUILDS; i++) {
		uint64_t startpt, k = 0, string = 0;
		uint32_t sizekgc = 0, shown = 0;
		unsigned ref;

		begin(&builds[i]);
		ref = layout_ref_size(process.layout);
		startpt = read_trace(FIELDS)->startpt;
		assert_true(memory_u32(&process.kept.memory,
				       startpt + (uint64_t)process.layout->GCproto_sizekgc, &sizekgc));
		assert_int_equal(memory_read(&process.kept.memory,
					     startpt + (uint64_t)process.layout->GCproto_k, &k, ref),
				 MEMORY_OK);
		assert_true(has_text(list(FIELDS, NULL), LISTING_BYTECODE, "; ?"));
		assert_in_range(sizekgc, STRINGS_MIN, 20);
		for (uint32_t constant = 1; constant <= sizekgc; constant++) {
			char text[8];

			snprintf(text, sizeof(text), "p%u", constant);
			assert_int_equal(
				memory_read(&process.kept.memory, k - (uint64_t)constant * ref, &string, ref),
				MEMORY_OK);
			put_string(string, text);
		}
		list(FIELDS, NULL);
		assert_false(has_text(&process.listing, LISTING_BYTECODE, "; ?"));
		for (uint32_t constant = 1; constant <= sizekgc; constant++) {
			char text[8];

			snprintf(text, sizeof(text), "\"p%u\"", constant);
			shown += has_text(&process.listing, LISTING_BYTECODE, text);
		}
		assert_true(shown >= STRINGS_MIN);
		end();
	}
}

static void a_trace_without_its_code_has_the_other_lines(void **state)
{
	struct sums bytecode, ir;

	(void)state;
	begin(&builds[0]);
	bytecode = sum_kind(list(LOOP, NULL), LISTING_BYTECODE);
	ir = sum_kind(&process.listing, LISTING_IR);
	kept_pages_forget(&process.kept, trace_listing_trace(process.reading)->mcode);
	assert_line(list(LOOP, &samples), "(the machine code could not be read)");
	assert_int_equal(sum_kind(&process.listing, LISTING_CODE).lines, 0);
	assert_int_equal(sum_kind(&process.listing, LISTING_BYTECODE).lines, bytecode.lines);
	assert_int_equal(sum_kind(&process.listing, LISTING_IR).lines, ir.lines);
	assert_int_equal(sum_kind(&process.listing, LISTING_IR).samples, 0);
	assert_int_equal(process.listing.samples, trace_listing_trace(process.reading)->szmcode);
	assert_line(&process.listing, "---- TRACE 1 stop -> loop");
	end();
}

/* Whichever allocation fails: what its listing lacks, a way back to bytecode or code, it says. */
static void a_listing_is_whole_or_memory_is_said_to_be_short(void **state)
{
	size_t lines, whole = 0, short_of_memory = 0;
	bool failed = true;

	(void)state;
	begin(&builds[0]);
	lines = sum_kind(list(SIDE, NULL), LISTING_IR).lines;
	for (size_t after = 0; failed; after++) {
		int error;

		assert_non_null(read_trace(SIDE));
		allocation_fails_after(after);
		error = trace_listing_make(process.reading, NULL, &process.listing);
		failed = allocation_failed();
		assert_true(error == 0 || (failed && error == -ENOMEM));
		short_of_memory += error != 0;
		if (error)
			continue;
		whole++;
		assert_int_equal(sum_kind(&process.listing, LISTING_HEAD).lines, 4);
		assert_int_equal(sum_kind(&process.listing, LISTING_IR).lines, lines);
		assert_string_equal(process.listing.lines[process.listing.count - 1].text,
				    "---- TRACE 2 stop -> 1");
	}
	assert_true(whole > 1);
	assert_true(short_of_memory > 3);
	end();
}

static void a_copy_is_made_whole_or_not_at_all(void **state)
{
	size_t none = 0;
	bool failed = true;

	(void)state;
	begin(&builds[0]);
	for (size_t after = 0; failed; after++) {
		struct trace_listing *reading;

		allocation_fails_after(after);
		reading = trace_listing_new(&process.kept.memory, &process.global, SIDE);
		if (reading)
			trace_listing_read(reading);
		failed = allocation_failed();
		none += !reading || !trace_listing_trace(reading);
		if (reading)
			assert_int_equal(trace_listing_make(reading, NULL, &process.listing), 0);
		trace_listing_free(reading);
		listing_clear(&process.listing);
	}
	assert_true(none > 3);
	trace_listing_free(NULL);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(traces_read_as_jit_dump_prints_them),
		cmocka_unit_test(each_byte_of_code_has_one_line_and_its_samples),
		cmocka_unit_test(a_number_without_a_trace_has_no_lines),
		cmocka_unit_test(a_trace_that_is_read_again_replaces_its_copy),
		cmocka_unit_test(the_first_line_tells_where_a_trace_began),
		cmocka_unit_test(the_last_line_tells_where_a_trace_ends),
		cmocka_unit_test(a_release_with_other_names_has_numbers_and_says_so),
		cmocka_unit_test(strings_that_were_read_are_shown),
		cmocka_unit_test(strings_of_its_function_are_shown),
		cmocka_unit_test(a_trace_without_its_code_has_the_other_lines),
		cmocka_unit_test(a_listing_is_whole_or_memory_is_said_to_be_short),
		cmocka_unit_test(a_copy_is_made_whole_or_not_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

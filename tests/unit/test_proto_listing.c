/* SPDX-License-Identifier: MIT */
/* Listings of a function's bytecode, and which function is meant, with a prototype that is made up. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "luajit-layouts/bytecode.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_lua.h"
#include "unwind/listing/bytecode_text.h"
#include "unwind/listing/proto_listing.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
INSTEAD_OF(reallocarray);

#define FAILING_REALLOCARRAY
#include "tests/unit/failing_allocation.h"

/* Words of the target: a prototype, and strings. */
enum {
	PROTO = 8,
	BC = PROTO + 8, /* its instructions, then its constants: objects below K, numbers from there on */
	INSTRUCTIONS = 14,
	K = PROTO + 20,
	UPVALUES = PROTO + 24, /* names */
	LINES = PROTO + 26,
	PROTO_WORDS = 32,
	STRINGS = 64,
	STRING_WORDS = 16,
	CHILD = 200,
};

static const struct layout layout = {
	.gc64 = true,
	MADE_UP_LAYOUT,
	.bytecode = BYTECODE_V21,
	.GCproto_k = 2 * WORD,
	.GCproto_uvinfo = 3 * WORD,
	.GCproto_lineinfo = 4 * WORD,
	.GCproto_varinfo = 5 * WORD,
	.GCproto_sizeuv = 6 * WORD,
};

static struct made_up made_up;
static struct proto proto;
static struct listing_source source;

static uint32_t ad(enum bytecode_op op, unsigned int a, unsigned int d)
{
	return (uint32_t)bytecode_number(&layout, op) | a << 8 | d << 16;
}

static uint32_t abc(enum bytecode_op op, unsigned int a, unsigned int b, unsigned int c)
{
	return ad(op, a, c | b << 8);
}

static void set_instruction(size_t number, uint32_t instruction)
{
	memcpy((uint8_t *)&made_up.words[BC] + number * BYTECODE_SIZE, &instruction, sizeof(instruction));
}

static uint64_t string_at(size_t number)
{
	return at(STRINGS + number * STRING_WORDS);
}

/* function(a) ... end from line 10 to 20 of app/main.lua, with upvalues up and other. */
static void begin(void)
{
	static char chunkname[] = "@app/main.lua";
	static const char *const strings[] = { "key", "with \"\n\001\177",
					       "a text of more than forty bytes, which is cut" };
	double number = 1.5;

	made_up = (struct made_up){ .memory = { .read_ranges = read_ranges } };
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
		put_string(&made_up, &layout, STRINGS + i * STRING_WORDS, strings[i]);
		made_up.words[K - 1 - i] = string_at(i);
	}
	made_up.words[K - 4] = at(CHILD);
	memcpy(&made_up.words[K], &number, sizeof(number));
	made_up.words[K + 1] = tagged(&layout, TAG_NUMBER, (uint32_t)-7);
	made_up.words[PROTO + 2] = at(K);
	made_up.words[PROTO + 3] = at(UPVALUES);
	made_up.words[PROTO + 4] = at(LINES);
	made_up.words[PROTO + 6] = 2;
	memcpy(&made_up.words[UPVALUES], "up\0other", sizeof("up\0other"));
	for (size_t i = 1; i < INSTRUCTIONS; i++)
		((uint8_t *)&made_up.words[LINES])[i - 1] = (uint8_t)i;
	proto = (struct proto){ .address = at(PROTO),
				.bytes = (const uint8_t *)&made_up.words[PROTO],
				.size = PROTO_WORDS * WORD,
				.sizebc = INSTRUCTIONS,
				.firstline = 10,
				.numline = 10,
				.bc = at(BC),
				.chunkname = chunkname };
	source = (struct listing_source){ .memory = &made_up.memory, .layout = &layout };
	source.objects = lua_objects_new();
	assert_non_null(source.objects);
}

static void end(void)
{
	lua_objects_free(source.objects);
}

/*---- Lines ----*/

static void assert_line(uint32_t instruction, const char *expected)
{
	struct listing_text text;
	char *line;

	assert_true(listing_text_begin(&text));
	bytecode_text_line(&source, &proto, 7, instruction, "=>", text.out);
	line = listing_text_end(&text);
	assert_non_null(line);
	assert_string_equal(line, expected);
	free(line);
}

/* As jit.bc prints them. */
static void instructions_read_as_with_jit_bc(void **state)
{
	(void)state;
	begin();
	assert_line(ad(BC_MOV, 3, 4), "0007 => MOV      3   4");
	assert_line(abc(BC_ADDVV, 3, 4, 5), "0007 => ADDVV    3   4   5");
	assert_line(ad(BC_RET0, 0, 1), "0007 => RET0     0   1");
	assert_line(ad(BC_KSHORT, 2, (uint16_t)-3), "0007 => KSHORT   2  -3");
	assert_line(ad(BC_KPRI, 2, 1), "0007 => KPRI     2   1");
	assert_line(ad(BC_KNUM, 2, 0), "0007 => KNUM     2   0      ; 1.5");
	assert_line(ad(BC_KNUM, 2, 1), "0007 => KNUM     2   1      ; -7");
	assert_line(ad(BC_KNUM, 2, 200), "0007 => KNUM     2 200      ; ?");
	assert_line(ad(BC_KSTR, 2, 0), "0007 => KSTR     2   0      ; \"key\"");
	assert_line(ad(BC_KSTR, 2, 1), "0007 => KSTR     2   1      ; \"with \"\\n\\001\\127\"");
	assert_line(ad(BC_KSTR, 2, 2),
		    "0007 => KSTR     2   2      ; \"a text of more than forty bytes, which i\"~");
	assert_line(ad(BC_KSTR, 2, 200), "0007 => KSTR     2 200      ; ?");
	assert_line(abc(BC_TGETS, 1, 2, 0), "0007 => TGETS    1   2   0  ; \"key\"");
	assert_line(ad(BC_UGET, 1, 1), "0007 => UGET     1   1      ; other");
	assert_line(ad(BC_UGET, 1, 2), "0007 => UGET     1   2      ; ?");
	assert_line(ad(BC_USETV, 0, 3), "0007 => USETV    0   3      ; up");
	assert_line(ad(BC_USETS, 0, 0), "0007 => USETS    0   0      ; up ; \"key\"");
	assert_line(ad(BC_USETN, 1, 0), "0007 => USETN    1   0      ; other ; 1.5");
	assert_line(ad(BC_FNEW, 1, 3), "0007 => FNEW     1   3      ; (?)");
	assert_line(ad(BC_JMP, 1, 0x8000 + 2), "0007 => JMP      1 => 0010");
	assert_line(ad(BC_FORL, 1, 0x8000 - 3), "0007 => FORL     1 => 0005");
	assert_line(ad(BC_FUNCF, 9, 0), "0007 => FUNCF    9 ");
	assert_line(0x030201ff, "0007 => #255     1 770");
	end();
}

static void jumps_have_targets(void **state)
{
	uint32_t target = 0;

	(void)state;
	assert_true(bytecode_text_target(&layout, 7, ad(BC_JMP, 0, 0x8000), &target));
	assert_int_equal(target, 8);
	assert_true(bytecode_text_target(&layout, 7, ad(BC_LOOP, 0, 0x8005), &target));
	assert_int_equal(target, 13);
	assert_false(bytecode_text_target(&layout, 7, ad(BC_MOV, 0, 0x8005), &target));
}

static void constants_are_those_that_instructions_name(void **state)
{
	uint64_t objects[4] = { 0 };

	(void)state;
	begin();
	set_instruction(1, ad(BC_KSTR, 0, 0));
	set_instruction(2, ad(BC_FNEW, 0, 3));
	set_instruction(3, abc(BC_TSETS, 0, 1, 1));
	set_instruction(4, ad(BC_KNUM, 0, 2));
	assert_int_equal(bytecode_text_constants(&layout, &proto, BYTECODE_STRINGS, objects, 4), 2);
	assert_int_equal(objects[0], string_at(0));
	assert_int_equal(objects[1], string_at(1));
	assert_int_equal(bytecode_text_constants(&layout, &proto, BYTECODE_STRINGS, objects, 1), 1);
	assert_int_equal(bytecode_text_constants(&layout, &proto, BYTECODE_PROTOS, objects, 4), 1);
	assert_int_equal(objects[0], at(CHILD));
	end();
}

/* Two samples of each instruction but the header, the second of which is in the loop. */
static void samples_at(void *context, uint64_t first, uint64_t last, uint64_t *ret_samples,
		       uint64_t *ret_cpu_ns)
{
	(void)context;
	*ret_samples = (last - first) / BYTECODE_SIZE * 2;
	*ret_cpu_ns = (first - at(BC)) / BYTECODE_SIZE;
}

static void a_listing_has_all_instructions_but_the_first(void **state)
{
	const struct listing_samples samples = { .at = samples_at };
	struct listing listing = { 0 };

	(void)state;
	begin();
	set_instruction(0, ad(BC_FUNCF, 9, 0));
	for (size_t i = 1; i < INSTRUCTIONS; i++)
		set_instruction(i, ad(BC_MOV, 1, 2));
	set_instruction(4, ad(BC_JMP, 1, 0x8000 - 2));
	set_instruction(5, ad(BC_JMP, 1, 0x8000 + 100));
	assert_int_equal(proto_listing_add(&source, &proto, &samples, &listing), 0);
	assert_int_equal(listing.count, INSTRUCTIONS);
	assert_int_equal(listing.lines[0].kind, LISTING_HEAD);
	assert_string_equal(listing.lines[0].text, "-- BYTECODE -- main.lua:10-20");
	for (size_t i = 1; i < INSTRUCTIONS; i++) {
		const struct listing_line *line = &listing.lines[i];

		assert_int_equal(line->kind, LISTING_BYTECODE);
		assert_int_equal(line->address, at(BC) + i * BYTECODE_SIZE);
		assert_int_equal(strtoul(line->text, NULL, 10), i);
		assert_memory_equal(line->text + 5, i == 3 ? "=>" : "  ", 2);
		assert_int_equal(strtoul(strrchr(line->place, ':') + 1, NULL, 10), 10 + i);
		assert_int_equal(line->samples, 2);
		assert_int_equal(line->cpu_ns, i);
	}
	assert_int_equal(listing.samples, 2 * INSTRUCTIONS);
	listing_clear(&listing);
	/* Without samples. */
	assert_int_equal(proto_listing_add(&source, &proto, NULL, &listing), 0);
	assert_int_equal(listing.count, INSTRUCTIONS);
	assert_int_equal(listing.samples, 0);
	listing_clear(&listing);
	end();
}

static void a_listing_is_whole_or_memory_is_said_to_be_short(void **state)
{
	size_t short_of_memory = 0;
	bool failed = true;

	(void)state;
	begin();
	for (size_t after = 0; failed; after++) {
		struct listing listing = { 0 };
		int error;

		allocation_fails_after(after);
		error = proto_listing_add(&source, &proto, NULL, &listing);
		failed = allocation_failed();
		assert_int_equal(error, failed ? -ENOMEM : 0);
		if (!error)
			assert_int_equal(listing.count, INSTRUCTIONS);
		short_of_memory += failed;
		listing_clear(&listing);
	}
	assert_in_range(short_of_memory, 2, INSTRUCTIONS);
	end();
}

/*---- Which function ----*/

static void assert_wanted(const char *text, const char *name, const char *file, uint32_t line)
{
	struct proto_wanted wanted = proto_wanted(text);

	if (name) {
		assert_string_equal(wanted.name, name);
		assert_null(wanted.file);
		return;
	}
	assert_null(wanted.name);
	assert_int_equal(wanted.file_length, strlen(file));
	assert_memory_equal(wanted.file, file, strlen(file));
	assert_int_equal(wanted.line, line);
}

static void a_function_is_wanted_by_its_place_or_its_name(void **state)
{
	(void)state;
	assert_wanted("main.lua:12", NULL, "main.lua", 12);
	assert_wanted("a:b.lua:4294967295", NULL, "a:b.lua", UINT32_MAX);
	assert_wanted("heavy", "heavy", NULL, 0);
	assert_wanted("cache.get", "get", NULL, 0);
	assert_wanted("a.b:get", "get", NULL, 0);
	assert_wanted("main.lua:12x", "12x", NULL, 0);
	assert_wanted(":12", "12", NULL, 0);
	assert_wanted("get.", "get.", NULL, 0);
	assert_wanted("get:", "get:", NULL, 0);
}

static enum proto_match match(const char *text)
{
	struct proto_wanted wanted = proto_wanted(text);

	return proto_match_place(&proto, &wanted);
}

static void a_place_is_a_line_of_a_file_or_the_end_of_its_path(void **state)
{
	static char other[] = "main.lua", none[] = "x";

	(void)state;
	begin();
	assert_int_equal(match("main.lua:10"), PROTO_BEGINS_AT_LINE);
	assert_int_equal(match("app/main.lua:11"), PROTO_HAS_LINE);
	assert_int_equal(match("main.lua:20"), PROTO_HAS_LINE);
	assert_int_equal(match("main.lua:21"), PROTO_IS_ELSEWHERE);
	assert_int_equal(match("main.lua:9"), PROTO_IS_ELSEWHERE);
	assert_int_equal(match("ain.lua:10"), PROTO_IS_ELSEWHERE);
	assert_int_equal(match("p/main.lua:10"), PROTO_IS_ELSEWHERE);
	assert_int_equal(match("/app/main.lua:10"), PROTO_IS_ELSEWHERE);
	proto.chunkname = other;
	assert_int_equal(match("main.lua:10"), PROTO_BEGINS_AT_LINE);
	proto.chunkname = none;
	assert_int_equal(match("main.lua:10"), PROTO_IS_ELSEWHERE);
	proto.chunkname = NULL;
	assert_int_equal(match("main.lua:10"), PROTO_IS_ELSEWHERE);
	proto.chunkname = other;
	proto.firstline = FIRSTLINE_BUILTIN;
	assert_int_equal(match("main.lua:4294967295"), PROTO_IS_ELSEWHERE);
	end();
}

static size_t named(const char *name)
{
	uint64_t protos[2];
	size_t count = proto_children_named(&source, &proto, name, protos, 2);

	for (size_t i = 0; i < count; i++)
		assert_int_equal(protos[i], at(CHILD));
	return count;
}

static void a_function_has_the_name_that_it_is_stored_under(void **state)
{
	(void)state;
	begin();
	set_instruction(2, ad(BC_FNEW, 4, 3));
	/* A global, a field; of another slot. */
	set_instruction(3, ad(BC_GSET, 4, 0));
	assert_int_equal(named("key"), 1);
	assert_int_equal(named("ke"), 0);
	assert_int_equal(named("keys"), 0);
	set_instruction(3, abc(BC_TSETS, 4, 1, 0));
	assert_int_equal(named("key"), 1);
	set_instruction(3, abc(BC_TSETS, 5, 1, 0));
	assert_int_equal(named("key"), 0);
	/* An upvalue. */
	set_instruction(3, ad(BC_USETV, 1, 4));
	assert_int_equal(named("other"), 1);
	assert_int_equal(named("up"), 0);
	set_instruction(3, ad(BC_USETV, 1, 5));
	assert_int_equal(named("other"), 0);
	/* No more than wanted. */
	for (size_t i = 2; i < 8; i += 2) {
		set_instruction(i, ad(BC_FNEW, 4, 3));
		set_instruction(i + 1, ad(BC_GSET, 4, 0));
	}
	assert_int_equal(named("key"), 2);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instructions_read_as_with_jit_bc),
		cmocka_unit_test(jumps_have_targets),
		cmocka_unit_test(constants_are_those_that_instructions_name),
		cmocka_unit_test(a_listing_has_all_instructions_but_the_first),
		cmocka_unit_test(a_listing_is_whole_or_memory_is_said_to_be_short),
		cmocka_unit_test(a_function_is_wanted_by_its_place_or_its_name),
		cmocka_unit_test(a_place_is_a_line_of_a_file_or_the_end_of_its_path),
		cmocka_unit_test(a_function_has_the_name_that_it_is_stored_under),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

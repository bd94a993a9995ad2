/* SPDX-License-Identifier: MIT */
/* What paths have in common, and what code tells of structures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/made_up_words.h"
#include "unwind/nginx/gateway.h"
#include "unwind/members/member_loads.h"
#include "unwind/nginx/route.h"

static void assert_route(const char *path, const char *expected)
{
	char route[ROUTE_BYTES];

	route_of(path, route);
	assert_string_equal(route, expected);
}

static void numbers_and_identifiers_are_folded(void **state)
{
	(void)state;
	assert_route("/users/42/orders/7", "/users/*/orders/*");
	assert_route("/users/7f3a90bc", "/users/*");
	assert_route("/v/123e4567-e89b-12d3-a456-426614174000/x", "/v/*/x");
	assert_route("/t/eyJhbGciOiJIUzI1NiIsInR5", "/t/*");
	assert_route("/2024-11-23/12.5", "/*/*");
	assert_route("/images/1234.jpg", "/images/*.jpg");
	assert_route("/order-12345/part7", "/order-*/part7");
	assert_route("//double///slash/", "/double/slash/");
}

static void words_stay(void **state)
{
	(void)state;
	assert_route("/", "/");
	assert_route("", "");
	assert_route("*", "*");
	assert_route("/api/v1/up50", "/api/v1/up50");
	assert_route("/deadbeef", "/deadbeef"); /* a word of hexadecimal digits without a number */
	assert_route("/internationalization-and-more", "/internationalization-and-more");
	assert_route("/caf\xc3\xa9/\xff", "/caf\xc3\xa9/\xff");
}

static void long_routes_are_cut(void **state)
{
	char path[4 * ROUTE_BYTES], route[ROUTE_BYTES];

	(void)state;
	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	route_of(path, route);
	assert_int_equal(strlen(route), ROUTE_BYTES - 1);
}

static void assert_loads(const char *code, size_t length, const char *expected)
{
	struct member_loads loads;
	char text[512] = "";
	size_t end = 0;

	member_loads_read((const uint8_t *)code, length, 0x1000, &loads);
	for (size_t i = 0; i < loads.count; i++) {
		for (size_t step = 0; step < loads.loads[i].depth; step++)
			end += (size_t)snprintf(text + end, sizeof(text) - end, "%s%x", step ? ">" : "",
						(unsigned int)loads.loads[i].offsets[step]);
		end += (size_t)snprintf(text + end, sizeof(text) - end, ":%u ", loads.loads[i].bytes);
	}
	assert_string_equal(text, expected);
}

#define CODE(bytes) bytes, sizeof(bytes) - 1

static void loads_are_followed_through_pointers_and_branches(void **state)
{
	(void)state;
	/* mov 0x8(%rdi),%rcx; mov 0x78(%rcx),%rax; mov 0x80(%rcx),%rax; ret */
	assert_loads(CODE("\x48\x8b\x4f\x08\x48\x8b\x41\x78\x48\x8b\x81\x80\0\0\0\xc3"),
		     "8:8 8>78:8 8>80:8 ");
	/* mov 0x10(%rdi),%rax; test %rax,%rax; je +1; ret; mov 0x18(%rdi),%eax; ret */
	assert_loads(CODE("\x48\x8b\x47\x10\x48\x85\xc0\x74\x01\xc3\x8b\x47\x18\xc3"), "10:8 18:4 ");
	/* push %rbx; mov %rdi,%rbx; call; mov 0x8(%rdi),%rax; mov 0x8(%rbx),%rax: a call keeps rbx only */
	assert_loads(CODE("\x53\x48\x89\xfb\xe8\0\0\0\0\x48\x8b\x47\x10\x48\x8b\x43\x08\xc3"), "8:8 ");
	/* lea 0x20(%rdi),%rax; mov 0x8(%rax),%rax; mov (%rdi,%rcx,8),%rdx; ret */
	assert_loads(CODE("\x48\x8d\x47\x20\x48\x8b\x40\x08\x48\x8b\x14\xcf\xc3"), "28:8 80000000:8 ");
	/* add $0x40,%rdi; cmpq $0x9,0x8(%rdi); ret */
	assert_loads(CODE("\x48\x83\xc7\x40\x48\x83\x7f\x08\x09\xc3"), "48:8 ");
	/* lea 0x20(%rdi),%rax; lea 0x8(%rax),%rax; mov (%rax),%rcx; ret */
	assert_loads(CODE("\x48\x8d\x47\x20\x48\x8d\x40\x08\x48\x8b\x08\xc3"), "28:8 ");
	/* add $0x40,%rdi; add $0x8,%rdi; mov (%rdi),%rax; ret */
	assert_loads(CODE("\x48\x83\xc7\x40\x48\x83\xc7\x08\x48\x8b\x07\xc3"), "48:8 ");
	/* jmp to itself, and code that ends in the middle */
	assert_loads(CODE("\xeb\xfe"), "");
	assert_loads(CODE("\x48\x8b"), "");
}

static void a_register_that_is_written_is_unknown(void **state)
{
	(void)state;
	/* mov 0x8(%rdi),%rax; mov %rcx,%rax; mov 0x10(%rax),%rdx; ret */
	assert_loads(CODE("\x48\x8b\x47\x08\x48\x89\xc8\x48\x8b\x50\x10\xc3"), "8:8 ");
	/* mov 0x8(%rdi),%rax; sub $0x8,%rax; mov 0x10(%rax),%rdx; ret */
	assert_loads(CODE("\x48\x8b\x47\x08\x48\x83\xe8\x08\x48\x8b\x50\x10\xc3"), "8:8 ");
	/* add %rcx,%rdi; mov 0x8(%rdi),%rax; ret */
	assert_loads(CODE("\x48\x01\xcf\x48\x8b\x47\x08\xc3"), "");
	/* mov 0x8(%rdi),%rdx; cqto; mov 0x10(%rdx),%rcx; ret */
	assert_loads(CODE("\x48\x8b\x57\x08\x48\x99\x48\x8b\x4a\x10\xc3"), "8:8 ");
	/* mov 0x8(%rdi),%rdx; mul %rcx; mov 0x10(%rdx),%rcx; ret */
	assert_loads(CODE("\x48\x8b\x57\x08\x48\xf7\xe1\x48\x8b\x4a\x10\xc3"), "8:8 ");
	/* mov 0x8(%rdi),%rax; mul %rcx; mov 0x10(%rax),%rcx; ret */
	assert_loads(CODE("\x48\x8b\x47\x08\x48\xf7\xe1\x48\x8b\x48\x10\xc3"), "8:8 ");
	/* xchg %rdi,%rcx; mov 0x8(%rdi),%rax; ret */
	assert_loads(CODE("\x48\x87\xf9\x48\x8b\x47\x08\xc3"), "");
	/* xchg %rcx,%rdi; mov 0x8(%rdi),%rax; ret */
	assert_loads(CODE("\x48\x87\xcf\x48\x8b\x47\x08\xc3"), "");
	/* mov %edi,%ecx; mov 0x8(%rcx),%rax; mov %ecx,%edi; mov 0x8(%rdi),%rax; ret */
	assert_loads(CODE("\x89\xf9\x48\x8b\x41\x08\x89\xcf\x48\x8b\x47\x08\xc3"), "");
	/* mov 0x8(%rdi),%rax; call .+5; mov 0x10(%rax),%rdx; ret */
	assert_loads(CODE("\x48\x8b\x47\x08\xe8\x00\x00\x00\x00\x48\x8b\x50\x10\xc3"), "8:8 ");
	/* mov %rdi,%r11; call .+5; mov 0x10(%r11),%rdx; ret */
	assert_loads(CODE("\x49\x89\xfb\xe8\x00\x00\x00\x00\x49\x8b\x53\x10\xc3"), "");
	/* lea (%rdi,%rcx,8),%rax; mov 0x8(%rax),%rax; ret */
	assert_loads(CODE("\x48\x8d\x04\xcf\x48\x8b\x40\x08\xc3"), "");
	/* add $0x8,%edi; mov 0x8(%rdi),%rax; ret */
	assert_loads(CODE("\x83\xc7\x08\x48\x8b\x47\x08\xc3"), "");
	/* lea 0x8(%rip),%rdi; mov 0x8(%rdi),%rax; ret */
	assert_loads(CODE("\x48\x8d\x3d\x08\x00\x00\x00\x48\x8b\x47\x08\xc3"), "");
	/* lea 0x8(%rcx),%rdi; mov 0x8(%rdi),%rax; ret */
	assert_loads(CODE("\x48\x8d\x79\x08\x48\x8b\x47\x08\xc3"), "");
}

static void a_register_that_is_read_stays_known(void **state)
{
	(void)state;
	/* mov %rdi,%rax; mov 0x8(%rdi),%rcx; mov 0x10(%rax),%rcx; ret */
	assert_loads(CODE("\x48\x89\xf8\x48\x8b\x4f\x08\x48\x8b\x48\x10\xc3"), "8:8 10:8 ");
	/* cmp %rax,%rdi; test %rdi,%rdi; mov %rcx,(%rdi); push %rdi; mov 0x8(%rdi),%rcx; ret */
	assert_loads(CODE("\x48\x39\xc7\x48\x85\xff\x48\x89\x0f\x57\x48\x8b\x4f\x08\xc3"), "8:8 ");
	/* cmp %rdi,%rax; cmp 0x8(%rdi),%rdi; cmp $0x1,%rdi; cmp $0x1000,%rdi; mov 0x10(%rdi),%rcx; ret */
	assert_loads(CODE("\x48\x39\xf8\x48\x3b\x7f\x08\x48\x83\xff\x01\x48\x81\xff\0\x10\0\0"
			  "\x48\x8b\x4f\x10\xc3"),
		     "8:8 10:8 ");
	/* test %rdi,%rax; test %rdi,0x8(%rdi); test $0x1,%rdi; test $0x1,%dil; mov 0x10(%rdi),%rcx; ret */
	assert_loads(CODE("\x48\x85\xf8\x48\x85\x7f\x08\x48\xf7\xc7\x01\0\0\0\x40\xf6\xc7\x01"
			  "\x48\x8b\x4f\x10\xc3"),
		     "8:8 10:8 ");
	/* mov %rdi,%rax; cmp $0x1000,%rax; test $0x1000,%rax; mov 0x10(%rax),%rcx; ret */
	assert_loads(CODE("\x48\x89\xf8\x48\x3d\0\x10\0\0\x48\xa9\0\x10\0\0\x48\x8b\x48\x10\xc3"), "10:8 ");
	/* mov %rdi,%r12; call .+5; mov 0x8(%r12),%rax; ret */
	assert_loads(CODE("\x49\x89\xfc\xe8\x00\x00\x00\x00\x49\x8b\x44\x24\x08\xc3"), "8:8 ");
}

static void only_addresses_within_a_structure_are_paths(void **state)
{
	(void)state;
	/* mov -0x8(%rdi),%rax; mov 0x8(%rdi),%rax; ret */
	assert_loads(CODE("\x48\x8b\x47\xf8\x48\x8b\x47\x08\xc3"), "8:8 ");
	/* mov 0xff8(%rdi),%rax; mov 0x1000(%rdi),%rcx; ret */
	assert_loads(CODE("\x48\x8b\x87\xf8\x0f\x00\x00\x48\x8b\x8f\x00\x10\x00\x00\xc3"), "ff8:8 ");
	/* mov 0x8(%rdi,%rcx,8),%rax; mov (%rdi,%rcx,4),%rax; ret */
	assert_loads(CODE("\x48\x8b\x44\xcf\x08\x48\x8b\x04\x8f\xc3"), "");
	/* mov %fs:0x8(%rdi),%rax; mov 0x8(%rip),%rcx; mov 0x8(%edi),%rax; ret */
	assert_loads(CODE("\x64\x48\x8b\x47\x08\x48\x8b\x0d\x08\x00\x00\x00\x67\x48\x8b\x47\x08\xc3"), "");
	/* lea 0x8(%rdi),%rax; nopw 0x8(%rdi); mov %rax,0x8(%rdi); ret */
	assert_loads(CODE("\x48\x8d\x47\x08\x66\x0f\x1f\x47\x08\x48\x89\x47\x08\xc3"), "");
	/* mov 0x8(%rdi),%rax; mov 0x10(%rdi),%rcx; mov 0x8(%rdi),%edx; ret */
	assert_loads(CODE("\x48\x8b\x47\x08\x48\x8b\x4f\x10\x8b\x57\x08\xc3"), "8:8 10:8 ");
	/* mov 0x8(%rdi),%rax; mov 0x10(%rdi),%rax; mov 0x10(%rdi),%rax; ret */
	assert_loads(CODE("\x48\x8b\x47\x08\x48\x8b\x47\x10\x48\x8b\x47\x10\xc3"), "8:8 10:8 ");
	/* mov 0x8(%rdi),%rax; mov 0x10(%rax),%rax; mov 0x18(%rax),%rax; mov 0x20(%rax),%rax; ret */
	assert_loads(CODE("\x48\x8b\x47\x08\x48\x8b\x40\x10\x48\x8b\x40\x18\x48\x8b\x40\x20\xc3"),
		     "8:8 8>10:8 8>10>18:8 ");
}

static void code_is_followed_where_control_goes(void **state)
{
	(void)state;
	/* jmp *%rax; mov 0x8(%rdi),%rax; ret */
	assert_loads(CODE("\xff\xe0\x48\x8b\x47\x08\xc3"), "");
	/* jmp 1f; mov 0x8(%rdi),%rax; 1: mov 0x10(%rdi),%rax; ret */
	assert_loads(CODE("\xeb\x04\x48\x8b\x47\x08\x48\x8b\x47\x10\xc3"), "10:8 ");
	/* je 1f; jne 2f; ret; 1: mov 0x8(%rdi),%rax; ret; 2: mov 0x10(%rdi),%rax; ret */
	assert_loads(CODE("\x74\x03\x75\x06\xc3\x48\x8b\x47\x08\xc3\x48\x8b\x47\x10\xc3"), "8:8 10:8 ");
	/* je .-0x100; mov 0x8(%rdi),%rax; jmp .+0x100; mov 0x10(%rdi),%rax; ret */
	assert_loads(CODE("\x0f\x84\xfa\xfe\xff\xff\x48\x8b\x47\x08\xe9\xfb\x00\x00\x00\x48\x8b\x47\x10\xc3"),
		     "8:8 ");
	/* ret; mov 0x8(%rdi),%rax */
	assert_loads(CODE("\xc3\x48\x8b\x47\x08"), "");
}

/* Code is followed for so many instructions, and lists so many members: a function of interest is shorter. */
static void long_code_is_followed_to_a_bound(void **state)
{
	enum { INSTRUCTIONS_MAX = 512, NOP = 0x90, LOAD_BYTES = 4 };
	static const uint8_t load[LOAD_BYTES] = { 0x48, 0x8b, 0x47, 0x08 }; /* mov 0x8(%rdi),%rax */
	uint8_t code[MEMBER_CODE_MAX + LOAD_BYTES];
	struct member_loads loads;

	(void)state;
	for (size_t more = 0; more < 2; more++) {
		memset(code, NOP, sizeof(code));
		memcpy(code + INSTRUCTIONS_MAX - 1 + more, load, sizeof(load));
		member_loads_read(code, sizeof(code), 0x1000, &loads);
		assert_int_equal(loads.count, 1 - more);
	}
	for (size_t i = 0; i < sizeof(code) / LOAD_BYTES; i++) {
		memcpy(code + i * LOAD_BYTES, load, LOAD_BYTES);
		code[(i + 1) * LOAD_BYTES - 1] = (uint8_t)(i % 120);
	}
	member_loads_read(code, sizeof(code), 0x1000, &loads);
	assert_int_equal(loads.count, MEMBER_LOADS_MAX);
	for (int32_t i = 0; i < MEMBER_LOADS_MAX; i++)
		assert_int_equal(loads.loads[i].offsets[0], i);
}

/* The end of the code may not be mapped. */
static void code_is_read_as_far_as_it_is_mapped(void **state)
{
	static const uint8_t load[] = { 0x48, 0x8b, 0x47, 0x08 }; /* mov 0x8(%rdi),%rax */
	struct made_up made_up = { .memory = { .read_ranges = read_ranges } };
	uint8_t *bytes = (uint8_t *)made_up.words;
	struct member_loads loads = { .count = 7 };

	(void)state;
	memset(bytes, 0x90, sizeof(made_up.words));
	memcpy(bytes + sizeof(made_up.words) - sizeof(load), load, sizeof(load));
	assert_true(member_loads_of(&made_up.memory, at(WORDS) - 64, &loads));
	assert_int_equal(loads.count, 1);
	assert_true(member_loads_of(&made_up.memory, at(WORDS) - 128, &loads));
	assert_int_equal(loads.count, 1);
	assert_true(member_loads_of(&made_up.memory, at(0), &loads));
	assert_int_equal(loads.count, 0);
	loads.count = 7;
	assert_false(member_loads_of(&made_up.memory, at(WORDS) - 63, &loads));
	assert_int_equal(loads.count, 7);
}

static void the_reference_to_ngx_ctx_is_the_only_number_beside_the_phase(void **state)
{
	static const struct request_layout layout = { .r_ctx = 16, .ctx_context = 0x1a4 };
	/* r->ctx[ctx_index]->ctx_ref, ...->context, r->connection->ssl->connection */
	struct member_loads loads = { .loads = { { 3, { 16, MEMBER_INDEXED, 0x108 }, 4 },
						 { 3, { 16, MEMBER_INDEXED, 0x1a4 }, 4 },
						 { 3, { 8, 0x90, 0 }, 8 },
						 { 3, { 16, MEMBER_INDEXED, 0x110 }, 4 } },
				      .count = 3 };

	(void)state;
	assert_int_equal(gateway_ref_of(&loads, &layout), 0x108);
	loads.count = 4;
	assert_int_equal(gateway_ref_of(&loads, &layout), 0);
	loads.count = 0;
	assert_int_equal(gateway_ref_of(&loads, &layout), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_and_identifiers_are_folded),
		cmocka_unit_test(words_stay),
		cmocka_unit_test(long_routes_are_cut),
		cmocka_unit_test(loads_are_followed_through_pointers_and_branches),
		cmocka_unit_test(a_register_that_is_written_is_unknown),
		cmocka_unit_test(a_register_that_is_read_stays_known),
		cmocka_unit_test(only_addresses_within_a_structure_are_paths),
		cmocka_unit_test(code_is_followed_where_control_goes),
		cmocka_unit_test(long_code_is_followed_to_a_bound),
		cmocka_unit_test(code_is_read_as_far_as_it_is_mapped),
		cmocka_unit_test(the_reference_to_ngx_ctx_is_the_only_number_beside_the_phase),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* What paths have in common, and what code tells of structures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

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
	/* jmp to itself, and code that ends in the middle */
	assert_loads(CODE("\xeb\xfe"), "");
	assert_loads(CODE("\x48\x8b"), "");
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
		cmocka_unit_test(the_reference_to_ngx_ctx_is_the_only_number_beside_the_phase),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

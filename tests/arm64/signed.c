/* SPDX-License-Identifier: MIT */
/*
 * C functions whose return addresses are signed, in each way that compilers have: as
 * -mbranch-protection=standard does it, leaf functions, too, and with ARMv8.3's combined instructions.
 * signed.lua calls them.
 */
#include <stdint.h>

#define SIGNED_WAYS(WAY) \
	WAY(standard, "branch-protection=standard") \
	WAY(leaves, "branch-protection=bti+pac-ret+leaf") \
	WAY(combined, "arch=armv8.3-a,branch-protection=pac-ret+leaf")

/*
 * WAY_calls() leads to the function by a tail call, another call, and code after it; WAY_works() to a busy
 * leaf.
 */
#define SIGNED_FUNCTIONS(name, way) \
	__attribute__((noinline, target(way))) static unsigned int name##_leaf(unsigned int n) \
	{ \
		for (unsigned int i = 0; i < 8 + (n >> 4); i++) \
			__asm__ volatile("add %w0, %w0, #1" : "+r"(n)); \
		return n; \
	} \
	__attribute__((noinline, target(way))) static int name##_inner(int (*call)(int), int n) \
	{ \
		int result = call(n); \
\
		return result + (int)name##_leaf((unsigned int)result & 7); \
	} \
	__attribute__((noinline, target(way))) static int name##_outer(int (*call)(int), int n) \
	{ \
		return name##_inner(call, n + 1) - 1; \
	} \
	__attribute__((target(way))) int name##_calls(int (*call)(int), int n) \
	{ \
		return name##_outer(call, n * 2); \
	} \
	__attribute__((target(way))) unsigned int name##_works(unsigned int n) \
	{ \
		return name##_leaf(n) + 1; \
	} \
	/* What the signature adds to a return address: 0 where the processor does not sign. */ \
	__attribute__((target(way))) uint64_t name##_signature(int (*call)(int)) \
	{ \
		const uint64_t *record = __builtin_frame_address(0); \
\
		call(0); \
		return record[1] ^ \
		       (uint64_t)(uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)); \
	}

SIGNED_WAYS(SIGNED_FUNCTIONS)

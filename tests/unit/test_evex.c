/* SPDX-License-Identifier: MIT */
/* AVX-512 instructions, as an assembler encodes them: their length, and what they write beside vectors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "unwind/machine/evex_x86_64.h"

enum { NONE = EVEX_NO_REGISTER, RBX = 3, RSP, RBP, R12 = 12, R13, R15 = 15 };

static const struct {
	const char *bytes;
	size_t length;
	int written;
	uint8_t store_bytes; /* 0: it does not store */
	int base;
	int32_t displacement; /* if there is a base */
	bool writes_flags;
} instructions[] = {
#define IS(bytes) bytes, sizeof(bytes) - 1
	{ IS("\x62\xf1\x6c\x48\x58\xd9"), .written = NONE },         /* vaddps %zmm1,%zmm2,%zmm3 */
	{ IS("\x62\xf1\x6c\x48\x58\x5c\x24\x01"), .written = NONE }, /* vaddps 0x40(%rsp),%zmm2,%zmm3 */
	{ IS("\x62\xd1\x1c\x20\xc2\xc9\x01"), .written = NONE },     /* vcmpltps %ymm9,%ymm28,%k1 */
	{ IS("\x62\x61\xed\x20\x15\x15\x78\x56\x34\x12"),
	  .written = NONE }, /* vunpckhpd 0x12345678(%rip),%ymm18,%ymm26 */
	{ IS("\x62\xf3\x7d\x48\x25\xc0\xff"), .written = NONE }, /* vpternlogd $0xff,%zmm0,%zmm0,%zmm0 */
	{ IS("\x62\xf1\x7c\x48\x11\x1c\x24"), .written = NONE, .store_bytes = 64, .base = RSP,
	  .displacement = 0x0 }, /* vmovups %zmm3,(%rsp) */
	{ IS("\x62\xf1\x7c\x48\x11\x5c\x24\x02"), .written = NONE, .store_bytes = 64, .base = RSP,
	  .displacement = 0x80 }, /* vmovups %zmm3,0x80(%rsp) */
	{ IS("\x62\xe1\xfe\x28\x7f\x4d\xfe"), .written = NONE, .store_bytes = 32, .base = RBP,
	  .displacement = -0x40 }, /* vmovdqu64 %ymm17,-0x40(%rbp) */
	{ IS("\x62\xc1\x7f\x08\x7f\x4c\x5c\x01"), .written = NONE, .store_bytes = 16,
	  .base = NONE }, /* vmovdqu8 %xmm17,0x10(%r12,%rbx,2) */
	{ IS("\x62\xd1\x7c\x48\x29\x9d\x45\x23\x01\x00"), .written = NONE, .store_bytes = 64, .base = R13,
	  .displacement = 0x12345 }, /* vmovaps %zmm3,0x12345(%r13) */
	{ IS("\x62\xe1\x7e\x08\x11\x4c\x24\x02"), .written = NONE, .store_bytes = 4, .base = RSP,
	  .displacement = 0x8 }, /* vmovss %xmm17,0x8(%rsp) */
	{ IS("\x62\xe1\xff\x08\x11\x4c\x24\x01"), .written = NONE, .store_bytes = 8, .base = RSP,
	  .displacement = 0x8 }, /* vmovsd %xmm17,0x8(%rsp) */
	{ IS("\x62\xc1\xfd\x08\x7e\x4c\x24\x02"), .written = NONE, .store_bytes = 8, .base = R12,
	  .displacement = 0x10 },                               /* vmovq %xmm17,0x10(%r12) */
	{ IS("\x62\xe1\x7d\x08\x7e\xcb"), .written = RBX },     /* vmovd %xmm17,%ebx */
	{ IS("\x62\xc1\xfd\x08\x7e\xcf"), .written = R15 },     /* vmovq %xmm17,%r15 */
	{ IS("\x62\xb1\x7e\x08\x2c\xe9"), .written = RBP },     /* vcvttss2si %xmm17,%ebp */
	{ IS("\x62\x31\xff\x08\x79\xe1"), .written = R12 },     /* vcvtsd2usi %xmm17,%r12 */
	{ IS("\x62\xe3\x7d\x08\x16\xcb\x01"), .written = RBX }, /* vpextrd $0x1,%xmm17,%ebx */
	{ IS("\x62\xe3\x7d\x08\x14\x4d\x03\x01"), .written = NONE, .store_bytes = 1, .base = RBP,
	  .displacement = 0x3 }, /* vpextrb $0x1,%xmm17,0x3(%rbp) */
	{ IS("\x62\xe3\xfd\x48\x1b\x4c\x24\x01\x01"), .written = NONE, .store_bytes = 32, .base = RSP,
	  .displacement = 0x20 }, /* vextractf64x4 $0x1,%zmm17,0x20(%rsp) */
	{ IS("\x62\xe2\x7e\x48\x32\x4c\x24\x03"), .written = NONE, .store_bytes = 8, .base = RSP,
	  .displacement = 0x18 }, /* vpmovqb %zmm17,0x18(%rsp) */
	{ IS("\x62\xe2\x7d\x48\x8a\x4c\x24\x02"), .written = NONE, .store_bytes = 64, .base = RSP,
	  .displacement = 0x8 }, /* vcompressps %zmm17,0x8(%rsp) */
	{ IS("\x62\xe2\x7d\x49\xa0\x4c\xa4\x02"), .written = NONE, .store_bytes = 64,
	  .base = NONE }, /* vpscatterdd %zmm17,0x8(%rsp,%zmm4,4){%k1} */
	{ IS("\x62\xf1\x7c\x48\x11\x1d\x00\x01\x00\x00"), .written = NONE, .store_bytes = 64,
	  .base = NONE },                                        /* vmovups %zmm3,0x100(%rip) */
	{ IS("\x62\xf1\x7c\x48\x10\x1c\x24"), .written = NONE }, /* vmovups (%rsp),%zmm3 */
	{ IS("\x62\xf1\x6c\x48\xc2\xd9\x01"), .written = NONE }, /* vcmpltps %zmm1,%zmm2,%k3 */
	{ IS("\x62\xe5\x7e\x08\x11\x4c\x24\x02"), .written = NONE, .store_bytes = 2, .base = RSP,
	  .displacement = 0x4 }, /* vmovsh %xmm17,0x4(%rsp) */
	{ IS("\x62\xb1\x7c\x08\x2e\xd9"), .written = NONE, .writes_flags = true }, /* vucomiss %xmm17,%xmm3 */
	{ IS("\xc5\xfb\x92\xcf"), .written = NONE },                               /* kmovd %edi,%k1 */
	{ IS("\xc5\xfb\x93\xd9"), .written = RBX },                                /* kmovd %k1,%ebx */
	{ IS("\xc4\x61\xfb\x93\xf9"), .written = R15 },                            /* kmovq %k1,%r15 */
	{ IS("\xc5\xf8\x91\x4c\x24\x08"), .written = NONE, .store_bytes = 2, .base = RSP, .displacement = 8 },
	{ IS("\xc5\xf9\x91\x4d\xf8"), .written = NONE, .store_bytes = 1, .base = RBP, .displacement = -8 },
	{ IS("\xc4\xe1\xf8\x91\x4d\xf8"), .written = NONE, .store_bytes = 8, .base = RBP,
	  .displacement = -8 },
	{ IS("\xc4\xe1\xf9\x91\x4d\xf8"), .written = NONE, .store_bytes = 4, .base = RBP,
	  .displacement = -8 },
	{ IS("\xc5\xf8\x98\xc9"), .written = NONE, .writes_flags = true }, /* kortestw %k1,%k1 */
	{ IS("\xc4\xe3\xf9\x30\xd9\x04"), .written = NONE },               /* kshiftrw $4,%k1,%k3 */
	{ IS("\x62\xe1\xfd\x48\x11\x4c\x24\x02"), .written = NONE, .store_bytes = 64, .base = RSP,
	  .displacement = 0x80 }, /* vmovupd %zmm17,0x80(%rsp) */
	{ IS("\x62\xe1\x7c\x08\x13\x4c\x24\x02"), .written = NONE, .store_bytes = 8, .base = RSP,
	  .displacement = 0x10 }, /* vmovlps %xmm17,0x10(%rsp) */
	{ IS("\x62\xe1\xfd\x08\x13\x4c\x24\x02"), .written = NONE, .store_bytes = 8, .base = RSP,
	  .displacement = 0x10 }, /* vmovlpd %xmm17,0x10(%rsp) */
	{ IS("\x62\xe1\x7c\x08\x17\x4c\x24\x02"), .written = NONE, .store_bytes = 8, .base = RSP,
	  .displacement = 0x10 }, /* vmovhps %xmm17,0x10(%rsp) */
	{ IS("\x62\xe1\xfd\x08\x17\x4c\x24\x02"), .written = NONE, .store_bytes = 8, .base = RSP,
	  .displacement = 0x10 }, /* vmovhpd %xmm17,0x10(%rsp) */
	{ IS("\x62\xe1\xfd\x28\x29\x4c\x24\x02"), .written = NONE, .store_bytes = 32, .base = RSP,
	  .displacement = 0x40 }, /* vmovapd %ymm17,0x40(%rsp) */
	{ IS("\x62\xe1\x7c\x48\x2b\x4c\x24\x02"), .written = NONE, .store_bytes = 64, .base = RSP,
	  .displacement = 0x80 }, /* vmovntps %zmm17,0x80(%rsp) */
	{ IS("\x62\xe1\xfd\x48\x2b\x4c\x24\x02"), .written = NONE, .store_bytes = 64, .base = RSP,
	  .displacement = 0x80 }, /* vmovntpd %zmm17,0x80(%rsp) */
	{ IS("\x62\xe1\x7d\x08\x7e\x4c\x24\x02"), .written = NONE, .store_bytes = 4, .base = RSP,
	  .displacement = 0x8 }, /* vmovd %xmm17,0x8(%rsp) */
	{ IS("\x62\xe1\x7d\x48\x7f\x4c\x24\x02"), .written = NONE, .store_bytes = 64, .base = RSP,
	  .displacement = 0x80 }, /* vmovdqa32 %zmm17,0x80(%rsp) */
	{ IS("\x62\xe1\x7e\x48\x7f\x4c\x24\x02"), .written = NONE, .store_bytes = 64, .base = RSP,
	  .displacement = 0x80 }, /* vmovdqu32 %zmm17,0x80(%rsp) */
	{ IS("\x62\xe1\xfd\x08\xd6\x4c\x24\x02"), .written = NONE, .store_bytes = 8, .base = RSP,
	  .displacement = 0x10 }, /* vmovq %xmm17,0x10(%rsp) */
	{ IS("\x62\xe1\x7d\x48\xe7\x4c\x24\x02"), .written = NONE, .store_bytes = 64, .base = RSP,
	  .displacement = 0x80 }, /* vmovntdq %zmm17,0x80(%rsp) */
	{ IS("\x62\xe2\x7e\x48\x10\x4c\x24\x02"), .written = NONE, .store_bytes = 32, .base = RSP,
	  .displacement = 0x40 }, /* vpmovuswb %zmm17,0x40(%rsp) */
	{ IS("\x62\xe2\x7e\x48\x11\x4c\x24\x02"), .written = NONE, .store_bytes = 16, .base = RSP,
	  .displacement = 0x20 }, /* vpmovusdb %zmm17,0x20(%rsp) */
	{ IS("\x62\xe2\x7e\x48\x12\x4c\x24\x02"), .written = NONE, .store_bytes = 8, .base = RSP,
	  .displacement = 0x10 }, /* vpmovusqb %zmm17,0x10(%rsp) */
	{ IS("\x62\xe2\x7e\x48\x13\x4c\x24\x02"), .written = NONE, .store_bytes = 32, .base = RSP,
	  .displacement = 0x40 }, /* vpmovusdw %zmm17,0x40(%rsp) */
	{ IS("\x62\xe2\x7e\x48\x14\x4c\x24\x02"), .written = NONE, .store_bytes = 16, .base = RSP,
	  .displacement = 0x20 }, /* vpmovusqw %zmm17,0x20(%rsp) */
	{ IS("\x62\xe2\x7e\x48\x15\x4c\x24\x02"), .written = NONE, .store_bytes = 32, .base = RSP,
	  .displacement = 0x40 }, /* vpmovusqd %zmm17,0x40(%rsp) */
	{ IS("\x62\xe2\x7e\x48\x20\x4c\x24\x02"), .written = NONE, .store_bytes = 32, .base = RSP,
	  .displacement = 0x40 }, /* vpmovswb %zmm17,0x40(%rsp) */
	{ IS("\x62\xe2\x7e\x48\x21\x4c\x24\x02"), .written = NONE, .store_bytes = 16, .base = RSP,
	  .displacement = 0x20 }, /* vpmovsdb %zmm17,0x20(%rsp) */
	{ IS("\x62\xe2\x7e\x48\x22\x4c\x24\x02"), .written = NONE, .store_bytes = 8, .base = RSP,
	  .displacement = 0x10 }, /* vpmovsqb %zmm17,0x10(%rsp) */
	{ IS("\x62\xe2\x7e\x48\x23\x4c\x24\x02"), .written = NONE, .store_bytes = 32, .base = RSP,
	  .displacement = 0x40 }, /* vpmovsdw %zmm17,0x40(%rsp) */
	{ IS("\x62\xe2\x7e\x48\x24\x4c\x24\x02"), .written = NONE, .store_bytes = 16, .base = RSP,
	  .displacement = 0x20 }, /* vpmovsqw %zmm17,0x20(%rsp) */
	{ IS("\x62\xe2\x7e\x48\x25\x4c\x24\x02"), .written = NONE, .store_bytes = 32, .base = RSP,
	  .displacement = 0x40 }, /* vpmovsqd %zmm17,0x40(%rsp) */
	{ IS("\x62\xe2\x7e\x48\x30\x4c\x24\x02"), .written = NONE, .store_bytes = 32, .base = RSP,
	  .displacement = 0x40 }, /* vpmovwb %zmm17,0x40(%rsp) */
	{ IS("\x62\xe2\x7e\x48\x31\x4c\x24\x02"), .written = NONE, .store_bytes = 16, .base = RSP,
	  .displacement = 0x20 }, /* vpmovdb %zmm17,0x20(%rsp) */
	{ IS("\x62\xe2\x7e\x48\x32\x4c\x24\x02"), .written = NONE, .store_bytes = 8, .base = RSP,
	  .displacement = 0x10 }, /* vpmovqb %zmm17,0x10(%rsp) */
	{ IS("\x62\xe2\x7e\x48\x33\x4c\x24\x02"), .written = NONE, .store_bytes = 32, .base = RSP,
	  .displacement = 0x40 }, /* vpmovdw %zmm17,0x40(%rsp) */
	{ IS("\x62\xe2\x7e\x48\x34\x4c\x24\x02"), .written = NONE, .store_bytes = 16, .base = RSP,
	  .displacement = 0x20 }, /* vpmovqw %zmm17,0x20(%rsp) */
	{ IS("\x62\xe2\x7e\x48\x35\x4c\x24\x02"), .written = NONE, .store_bytes = 32, .base = RSP,
	  .displacement = 0x40 }, /* vpmovqd %zmm17,0x40(%rsp) */
	{ IS("\x62\xe2\x7d\x48\x63\x4c\x24\x02"), .written = NONE, .store_bytes = 64, .base = RSP,
	  .displacement = 0x2 }, /* vpcompressb %zmm17,0x2(%rsp) */
	{ IS("\x62\xe2\xfd\x48\x63\x4c\x24\x02"), .written = NONE, .store_bytes = 64, .base = RSP,
	  .displacement = 0x4 }, /* vpcompressw %zmm17,0x4(%rsp) */
	{ IS("\x62\xe2\xfd\x48\x8a\x4c\x24\x02"), .written = NONE, .store_bytes = 64, .base = RSP,
	  .displacement = 0x10 }, /* vcompresspd %zmm17,0x10(%rsp) */
	{ IS("\x62\xe2\x7d\x48\x8b\x4c\x24\x02"), .written = NONE, .store_bytes = 64, .base = RSP,
	  .displacement = 0x8 },                                /* vpcompressd %zmm17,0x8(%rsp) */
	{ IS("\x62\xe3\x7d\x08\x14\xcb\x01"), .written = RBX }, /* vpextrb $0x1,%xmm17,%ebx */
	{ IS("\x62\xe3\x7d\x08\x15\x4c\x24\x02\x01"), .written = NONE, .store_bytes = 2, .base = RSP,
	  .displacement = 0x4 },                                /* vpextrw $0x1,%xmm17,0x4(%rsp) */
	{ IS("\x62\xe3\x7d\x08\x15\xcb\x01"), .written = RBX }, /* vpextrw $0x1,%xmm17,%ebx */
	{ IS("\x62\xe3\x7d\x08\x16\x4c\x24\x02\x01"), .written = NONE, .store_bytes = 4, .base = RSP,
	  .displacement = 0x8 }, /* vpextrd $0x1,%xmm17,0x8(%rsp) */
	{ IS("\x62\xe3\xfd\x08\x16\x4c\x24\x02\x01"), .written = NONE, .store_bytes = 8, .base = RSP,
	  .displacement = 0x10 }, /* vpextrq $0x1,%xmm17,0x10(%rsp) */
	{ IS("\x62\xe3\x7d\x08\x17\x4c\x24\x02\x01"), .written = NONE, .store_bytes = 4, .base = RSP,
	  .displacement = 0x8 },                                /* vextractps $0x1,%xmm17,0x8(%rsp) */
	{ IS("\x62\xe3\x7d\x08\x17\xcb\x01"), .written = RBX }, /* vextractps $0x1,%xmm17,%ebx */
	{ IS("\x62\xe3\x7d\x48\x19\x4c\x24\x02\x01"), .written = NONE, .store_bytes = 16, .base = RSP,
	  .displacement = 0x20 }, /* vextractf32x4 $0x1,%zmm17,0x20(%rsp) */
	{ IS("\x62\xe3\x7d\x48\x1d\x4c\x24\x02\x01"), .written = NONE, .store_bytes = 32, .base = RSP,
	  .displacement = 0x40 }, /* vcvtps2ph $0x1,%zmm17,0x40(%rsp) */
	{ IS("\x62\xe3\x7d\x48\x39\x4c\x24\x02\x01"), .written = NONE, .store_bytes = 16, .base = RSP,
	  .displacement = 0x20 }, /* vextracti32x4 $0x1,%zmm17,0x20(%rsp) */
	{ IS("\x62\xe3\xfd\x48\x3b\x4c\x24\x02\x01"), .written = NONE, .store_bytes = 32, .base = RSP,
	  .displacement = 0x40 }, /* vextracti64x4 $0x1,%zmm17,0x40(%rsp) */
	{ IS("\x62\xe5\x7d\x08\x7e\x4c\x24\x02"), .written = NONE, .store_bytes = 2, .base = RSP,
	  .displacement = 0x4 },                                /* vmovw %xmm17,0x4(%rsp) */
	{ IS("\x62\xe5\x7d\x08\x7e\xcb"), .written = RBX },     /* vmovw %xmm17,%ebx */
	{ IS("\x62\xb1\x7d\x08\xc5\xd9\x01"), .written = RBX }, /* vpextrw $0x1,%xmm17,%ebx */
	{ IS("\x62\xb5\x7e\x08\x2c\xd9"), .written = RBX },     /* vcvttsh2si %xmm17,%ebx */
	{ IS("\x62\xb5\xfe\x08\x79\xe9"), .written = RBP },     /* vcvtsh2usi %xmm17,%rbp */
	{ IS("\x62\xb5\x7e\x08\x6c\xd9"), .written = RBX },     /* vcvttss2usis %xmm17,%ebx */
	{ IS("\x62\xb5\x7e\x08\x6d\xe9"), .written = RBP },     /* vcvttss2sis %xmm17,%ebp */
	{ IS("\x62\xb5\x7c\x08\x2e\xd9"), .written = NONE, .writes_flags = true }, /* vucomish %xmm17,%xmm3 */
	{ IS("\x62\xb1\x7d\x48\x70\xd9\x01"), .written = NONE }, /* vpshufd $0x1,%zmm17,%zmm3 */
	{ IS("\x62\xb1\x65\x48\x72\xd1\x01"), .written = NONE }, /* vpsrld $0x1,%zmm17,%zmm3 */
	{ IS("\x62\xf1\x75\x00\xc4\xdb\x01"), .written = NONE }, /* vpinsrw $0x1,%ebx,%xmm17,%xmm3 */
	{ IS("\x62\xb1\x6c\x48\xc6\xd9\x01"), .written = NONE }, /* vshufps $0x1,%zmm17,%zmm2,%zmm3 */
	{ IS("\xc5\xec\x41\xd9"), .written = NONE },             /* kandw %k1,%k2,%k3 */
	{ IS("\xc5\xec\x42\xd9"), .written = NONE },             /* kandnw %k1,%k2,%k3 */
	{ IS("\xc5\xf8\x44\xd9"), .written = NONE },             /* knotw %k1,%k3 */
	{ IS("\xc5\xec\x47\xd9"), .written = NONE },             /* kxorw %k1,%k2,%k3 */
	{ IS("\xc5\xec\x4a\xd9"), .written = NONE },             /* kaddw %k1,%k2,%k3 */
	{ IS("\xc5\xed\x4b\xd9"), .written = NONE },             /* kunpckbw %k1,%k2,%k3 */
	{ IS("\xc5\xf8\x90\xd9"), .written = NONE },             /* kmovw %k1,%k3 */
	{ IS("\xc5\xf8\x90\x5c\x24\x08"), .written = NONE },     /* kmovw 0x8(%rsp),%k3 */
	{ IS("\xc5\xf8\x99\xd9"), .written = NONE, .writes_flags = true }, /* ktestw %k1,%k3 */
	{ IS("\xc4\xe3\xf9\x32\xd9\x04"), .written = NONE },               /* kshiftlw $0x4,%k1,%k3 */
};

static void an_instruction_tells_its_length_and_what_it_writes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(instructions) / sizeof(instructions[0]); i++) {
		uint8_t bytes[16] = { 0 };
		struct evex evex;

		memcpy(bytes, instructions[i].bytes, instructions[i].length);
		assert_true(evex_decode(bytes, sizeof(bytes), &evex));
		assert_int_equal(evex.size, instructions[i].length);
		assert_int_equal(evex.written, instructions[i].written);
		assert_int_equal(evex.writes_flags, instructions[i].writes_flags);
		assert_int_equal(evex.stores, instructions[i].store_bytes != 0);
		assert_int_equal(evex.store_bytes, instructions[i].store_bytes);
		if (!evex.stores)
			continue;
		assert_int_equal(evex.base, instructions[i].base);
		if (evex.base != EVEX_NO_REGISTER)
			assert_int_equal(evex.displacement, instructions[i].displacement);
	}
}

static void a_part_of_an_instruction_is_none(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(instructions) / sizeof(instructions[0]); i++) {
		struct evex evex;

		for (size_t length = 0; length < instructions[i].length; length++) {
			uint8_t bytes[16] = { 0 };

			memcpy(bytes, instructions[i].bytes, length);
			assert_false(evex_decode(bytes, length, &evex));
		}
	}
}

/* They may write general registers that nobody told of. */
static void instructions_of_apx_and_others_are_none(void **state)
{
	static const struct {
		const char *bytes;
		size_t length;
	} others[] = {
		{ IS("\x62\xf4\x7c\x08\x01\xd8\x90\x90") }, /* map 4: add %ebx, %eax */
		{ IS("\x62\xf9\x7c\x08\x58\xd9\x90\x90") }, /* a register above 15 */
		{ IS("\x62\xf1\x68\x48\x58\xd9\x90\x90") }, /* likewise, as an index */
		{ IS("\x62\xf2\x74\x08\xf2\xd9\x90\x90") }, /* andn */
		{ IS("\x62\xf1\x7c\x08\x93\xd9\x90\x90") }, /* kmovw to a general register */
		{ IS("\x62\xe1\x7e\x08\x2c\xd9\x90\x90") }, /* vcvttss2si %xmm1,%r19d */
		{ IS("\x62\xf1\x7c\x08\x41\xd9\x90\x90") }, /* kandw */
		{ IS("\x62\xf2\x7f\x08\x4b\x1c\x04\x90") }, /* tileloadd */
		{ IS("\x62\xf2\x7f\x08\x5e\xd9\x90\x90") }, /* tdpbssd */
		{ IS("\x62\xf2\x7e\x08\xd8\x18\x90\x90") }, /* aesencwide128kl */
		{ IS("\x62\xf2\x75\x08\xe0\x18\x90\x90") }, /* cmpoxadd */
		{ IS("\x62\xf3\x7f\x08\xf0\xd9\x01\x90") }, /* rorx */
		{ IS("\x62\xf0\x6c\x48\x58\xd9\x90\x90") }, /* no such map */
		{ IS("\x62\xf7\x6c\x48\x58\xd9\x90\x90") },
		{ IS("\xc5\xf8\x77\x90\x90\x90\x90\x90") }, /* vzeroupper */
	};
	struct evex evex;

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(evex_decode((const uint8_t *)others[i].bytes, others[i].length, &evex));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_instruction_tells_its_length_and_what_it_writes),
		cmocka_unit_test(a_part_of_an_instruction_is_none),
		cmocka_unit_test(instructions_of_apx_and_others_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include "unwind/machine/evex_x86_64.h"

#include <string.h>

enum {
	EVEX = 0x62,
	VEX_OF_2 = 0xc5, /* bytes */
	VEX_OF_3 = 0xc4,
	HEAD_BYTES = 6, /* the prefix, the opcode and ModRM; less with VEX */
	VECTOR_BYTES = 16,
	NEEDS_SIB = 4,   /* ModRM.rm */
	NO_INDEX = 4,    /* SIB.index, not extended */
	NO_BASE = 5,     /* ModRM.rm or SIB.base with mod 0 */
	IS_REGISTER = 3, /* ModRM.mod */
};

/* The opcode maps. */
enum { MAP_0F = 1, MAP_0F38, MAP_0F3A, MAP_5 = 5, MAP_6 };

/* The prefix that stands for 66, F3 or F2, as a set. */
enum { PP_NONE = 1, PP_66 = 2, PP_F3 = 4, PP_F2 = 8, PP_ANY = 15 };

/* The head, as encoded. */
struct head {
	uint8_t size;            /* in bytes, with ModRM */
	uint8_t map, opcode, pp; /* pp: one of PP_* */
	uint8_t mod, reg, rm;
	bool is_wide; /* W */
	uint8_t length;
	uint8_t reg_high, index_high, base_high; /* 0 or 8 */
};

/* Opcodes from first to last that have something in common. */
struct opcodes {
	uint8_t map, pp, first, last;
};

static bool is_among(const struct head *head, const struct opcodes *opcodes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (head->map == opcodes[i].map && head->pp & opcodes[i].pp &&
		    head->opcode >= opcodes[i].first && head->opcode <= opcodes[i].last)
			return true;
	return false;
}

#define IS_AMONG(head, opcodes) is_among((head), (opcodes), sizeof(opcodes) / sizeof((opcodes)[0]))

/* Instructions of VEX that APX has under EVEX: on general, mask and tile registers. */
static const struct opcodes others[] = {
	{ MAP_0F, PP_ANY, 0x41, 0x4b },   /* k... */
	{ MAP_0F, PP_ANY, 0x90, 0x99 },   /* kmov, kortest, ktest */
	{ MAP_0F38, PP_ANY, 0x49, 0x4b }, /* ldtilecfg, tileload, tilestore */
	{ MAP_0F38, PP_ANY, 0x5e, 0x5e }, /* tdp... */
	{ MAP_0F38, PP_ANY, 0xd8, 0xd8 }, /* of Key Locker */
	{ MAP_0F38, PP_ANY, 0xe0, 0xef }, /* cmpccxadd */
	{ MAP_0F38, PP_ANY, 0xf0, 0xff }, /* andn, bzhi, pdep, shlx, ... */
	{ MAP_0F3A, PP_ANY, 0xf0, 0xff }, /* rorx */
};

/* Those of map 0F that have an immediate byte; all of 0F3A have one, and those of other maps have none. */
static const struct opcodes with_immediate[] = {
	{ MAP_0F, PP_ANY, 0x70, 0x73 }, /* vpshufd, vpsrld, ... */
	{ MAP_0F, PP_ANY, 0xc2, 0xc2 }, /* vcmpps */
	{ MAP_0F, PP_ANY, 0xc4, 0xc6 }, /* vpinsrw, vpextrw, vshufps */
};

/* Those that write the general register of ModRM.reg. */
static const struct opcodes to_reg[] = {
	{ MAP_0F, PP_F3 | PP_F2, 0x2c, 0x2d }, /* vcvttss2si, vcvtss2si */
	{ MAP_0F, PP_F3 | PP_F2, 0x78, 0x79 }, /* vcvttss2usi, vcvtss2usi */
	{ MAP_0F, PP_66, 0xc5, 0xc5 },         /* vpextrw */
	{ MAP_5, PP_F3 | PP_F2, 0x2c, 0x2d },  /* vcvttsh2si, vcvtsh2si */
	{ MAP_5, PP_F3 | PP_F2, 0x78, 0x79 },  /* vcvttsh2usi, vcvtsh2usi */
	{ MAP_5, PP_F3 | PP_F2, 0x6c, 0x6d },  /* vcvttss2usis, vcvttss2sis */
};

/* Those that write the flags. */
static const struct opcodes to_flags[] = {
	{ MAP_0F, PP_ANY, 0x2e, 0x2f }, /* vucomiss, vcomiss */
	{ MAP_5, PP_ANY, 0x2e, 0x2f },  /* vucomish, vcomish */
	{ MAP_0F, PP_ANY, 0x98, 0x99 }, /* kortest, ktest */
};

/* What is stored to memory: so many bytes, which are also the unit of a displacement of one byte. */
enum store {
	STORES_ELEMENT, /* 4 bytes, or 8 with W */
	STORES_1,
	STORES_2,
	STORES_4,
	STORES_8,
	STORES_16,
	STORES_32,
	STORES_VECTOR,
	STORES_HALF, /* of a vector */
	STORES_QUARTER,
	STORES_EIGHTH,
	STORES_PACKED,      /* up to a vector; the unit is an element */
	STORES_PACKED_TINY, /* the same of bytes, or with W of words */
};

/* Those that may store. In the place of memory, some have a general register, and the rest a vector. */
static const struct {
	struct opcodes opcodes;
	enum store store;
	bool may_be_register;
} stores[] = {
	{ { MAP_0F, PP_F3, 0x11, 0x11 }, STORES_4, false },                      /* vmovss */
	{ { MAP_0F, PP_F2, 0x11, 0x11 }, STORES_8, false },                      /* vmovsd */
	{ { MAP_0F, PP_NONE | PP_66, 0x11, 0x11 }, STORES_VECTOR, false },       /* vmovups, vmovupd */
	{ { MAP_0F, PP_NONE | PP_66, 0x13, 0x13 }, STORES_8, false },            /* vmovlps */
	{ { MAP_0F, PP_NONE | PP_66, 0x17, 0x17 }, STORES_8, false },            /* vmovhps */
	{ { MAP_0F, PP_NONE | PP_66, 0x29, 0x29 }, STORES_VECTOR, false },       /* vmovaps */
	{ { MAP_0F, PP_NONE | PP_66, 0x2b, 0x2b }, STORES_VECTOR, false },       /* vmovntps */
	{ { MAP_0F, PP_66, 0x7e, 0x7e }, STORES_ELEMENT, true },                 /* vmovd, vmovq */
	{ { MAP_0F, PP_66 | PP_F3 | PP_F2, 0x7f, 0x7f }, STORES_VECTOR, false }, /* vmovdqa32, vmovdqu8 */
	{ { MAP_0F, PP_66, 0xd6, 0xd6 }, STORES_ELEMENT, false },                /* vmovq */
	{ { MAP_0F, PP_66, 0xe7, 0xe7 }, STORES_VECTOR, false },                 /* vmovntdq */
	{ { MAP_0F38, PP_F3, 0x10, 0x10 }, STORES_HALF, false },                 /* vpmovuswb */
	{ { MAP_0F38, PP_F3, 0x11, 0x11 }, STORES_QUARTER, false },              /* vpmovusdb */
	{ { MAP_0F38, PP_F3, 0x12, 0x12 }, STORES_EIGHTH, false },               /* vpmovusqb */
	{ { MAP_0F38, PP_F3, 0x13, 0x13 }, STORES_HALF, false },                 /* vpmovusdw */
	{ { MAP_0F38, PP_F3, 0x14, 0x14 }, STORES_QUARTER, false },              /* vpmovusqw */
	{ { MAP_0F38, PP_F3, 0x15, 0x15 }, STORES_HALF, false },                 /* vpmovusqd */
	{ { MAP_0F38, PP_F3, 0x20, 0x20 }, STORES_HALF, false },                 /* vpmovswb, ... */
	{ { MAP_0F38, PP_F3, 0x21, 0x21 }, STORES_QUARTER, false },
	{ { MAP_0F38, PP_F3, 0x22, 0x22 }, STORES_EIGHTH, false },
	{ { MAP_0F38, PP_F3, 0x23, 0x23 }, STORES_HALF, false },
	{ { MAP_0F38, PP_F3, 0x24, 0x24 }, STORES_QUARTER, false },
	{ { MAP_0F38, PP_F3, 0x25, 0x25 }, STORES_HALF, false },
	{ { MAP_0F38, PP_F3, 0x30, 0x30 }, STORES_HALF, false }, /* vpmovwb, ... */
	{ { MAP_0F38, PP_F3, 0x31, 0x31 }, STORES_QUARTER, false },
	{ { MAP_0F38, PP_F3, 0x32, 0x32 }, STORES_EIGHTH, false },
	{ { MAP_0F38, PP_F3, 0x33, 0x33 }, STORES_HALF, false },
	{ { MAP_0F38, PP_F3, 0x34, 0x34 }, STORES_QUARTER, false },
	{ { MAP_0F38, PP_F3, 0x35, 0x35 }, STORES_HALF, false },
	{ { MAP_0F38, PP_66, 0x63, 0x63 }, STORES_PACKED_TINY, false }, /* vpcompressb */
	{ { MAP_0F38, PP_66, 0x8a, 0x8b }, STORES_PACKED, false },      /* vcompressps, vpcompressd */
	{ { MAP_0F38, PP_66, 0xa0, 0xa3 }, STORES_VECTOR, false },      /* vpscatterdd: with an index */
	{ { MAP_0F3A, PP_66, 0x14, 0x14 }, STORES_1, true },            /* vpextrb */
	{ { MAP_0F3A, PP_66, 0x15, 0x15 }, STORES_2, true },            /* vpextrw */
	{ { MAP_0F3A, PP_66, 0x16, 0x16 }, STORES_ELEMENT, true },      /* vpextrd, vpextrq */
	{ { MAP_0F3A, PP_66, 0x17, 0x17 }, STORES_4, true },            /* vextractps */
	{ { MAP_0F3A, PP_66, 0x19, 0x19 }, STORES_16, false },          /* vextractf32x4 */
	{ { MAP_0F3A, PP_66, 0x1b, 0x1b }, STORES_32, false },          /* vextractf32x8 */
	{ { MAP_0F3A, PP_66, 0x1d, 0x1d }, STORES_HALF, false },        /* vcvtps2ph */
	{ { MAP_0F3A, PP_66, 0x39, 0x39 }, STORES_16, false },          /* vextracti32x4 */
	{ { MAP_0F3A, PP_66, 0x3b, 0x3b }, STORES_32, false },          /* vextracti32x8 */
	{ { MAP_5, PP_F3, 0x11, 0x11 }, STORES_2, false },              /* vmovsh */
	{ { MAP_5, PP_66 | PP_F3, 0x7e, 0x7e }, STORES_2, true },       /* vmovw */
};

static bool read_evex(const uint8_t *bytes, size_t length, struct head *ret_head)
{
	enum { NOT_EVEX_0 = 0x08, IS_EVEX_1 = 0x04, REG_BELOW_16 = 0x10 };

	if (length < HEAD_BYTES || bytes[0] != EVEX || bytes[1] & NOT_EVEX_0 || !(bytes[2] & IS_EVEX_1))
		return false;
	*ret_head = (struct head){
		.size = HEAD_BYTES,
		.map = bytes[1] & 7,
		.opcode = bytes[4],
		.pp = (uint8_t)(1 << (bytes[2] & 3)),
		.mod = bytes[5] >> 6,
		.reg = bytes[5] >> 3 & 7,
		.rm = bytes[5] & 7,
		.is_wide = bytes[2] >> 7,
		.length = bytes[3] >> 5 & 3,
		.reg_high = bytes[1] & 0x80 ? 0 : 8,
		.index_high = bytes[1] & 0x40 ? 0 : 8,
		.base_high = bytes[1] & 0x20 ? 0 : 8,
	};
	return ret_head->map >= MAP_0F && ret_head->map <= MAP_6 && ret_head->map != MAP_0F3A + 1 &&
	       !IS_AMONG(ret_head, others) && (bytes[1] & REG_BELOW_16 || !IS_AMONG(ret_head, to_reg));
}

/* Instructions on mask registers, which have VEX as their prefix. No others have these opcodes with it. */
static const struct opcodes of_masks[] = {
	{ MAP_0F, PP_ANY, 0x41, 0x42 },   /* kand, kandn */
	{ MAP_0F, PP_ANY, 0x44, 0x47 },   /* knot, kor, kxnor, kxor */
	{ MAP_0F, PP_ANY, 0x4a, 0x4b },   /* kadd, kunpck */
	{ MAP_0F, PP_ANY, 0x90, 0x93 },   /* kmov */
	{ MAP_0F, PP_ANY, 0x98, 0x99 },   /* kortest, ktest */
	{ MAP_0F3A, PP_ANY, 0x30, 0x33 }, /* kshiftr, kshiftl */
};

static bool read_vex(const uint8_t *bytes, size_t length, struct head *ret_head)
{
	uint8_t size = bytes[0] == VEX_OF_2 ? 4 : 5;
	const uint8_t *last;

	if (length < size || (bytes[0] != VEX_OF_2 && bytes[0] != VEX_OF_3))
		return false;
	last = bytes + size - 3; /* of the prefix */
	*ret_head = (struct head){
		.size = size,
		.map = bytes[0] == VEX_OF_2 ? MAP_0F : bytes[1] & 0x1f,
		.opcode = last[1],
		.pp = (uint8_t)(1 << (last[0] & 3)),
		.mod = last[2] >> 6,
		.reg = last[2] >> 3 & 7,
		.rm = last[2] & 7,
		.is_wide = bytes[0] == VEX_OF_3 && last[0] >> 7,
		.reg_high = bytes[1] & 0x80 ? 0 : 8,
		.index_high = bytes[0] == VEX_OF_2 || bytes[1] & 0x40 ? 0 : 8,
		.base_high = bytes[0] == VEX_OF_2 || bytes[1] & 0x20 ? 0 : 8,
	};
	return IS_AMONG(ret_head, of_masks);
}

/* What such an instruction writes beside masks and flags. */
static void find_written_of_mask(const struct head *head, struct evex *evex)
{
	enum { FROM_MASK_TO_MEMORY = 0x91, FROM_MASK = 0x93 };

	if (head->map != MAP_0F)
		return;
	if (head->opcode == FROM_MASK)
		evex->written = head->reg + head->reg_high;
	if (head->opcode != FROM_MASK_TO_MEMORY || head->mod == IS_REGISTER)
		return;
	evex->stores = true;
	evex->store_bytes = (uint8_t)((head->is_wide ? 4 : 1) << (head->pp == PP_66 ? 0 : 1));
}

/* The bytes that are stored, and the unit of a displacement of one byte. */
static uint8_t store_size(const struct head *head, enum store store, uint8_t *ret_unit)
{
	/* A length of 3 is an error, or the rounding of an instruction between registers. */
	const uint8_t vector = (uint8_t)(VECTOR_BYTES << (head->length > 2 ? 2 : head->length));
	const uint8_t element = head->is_wide ? 8 : 4, tiny = head->is_wide ? 2 : 1;
	const uint8_t sizes[] = {
		[STORES_ELEMENT] = element,
		[STORES_1] = 1,
		[STORES_2] = 2,
		[STORES_4] = 4,
		[STORES_8] = 8,
		[STORES_16] = 16,
		[STORES_32] = 32,
		[STORES_VECTOR] = vector,
		[STORES_HALF] = vector / 2,
		[STORES_QUARTER] = vector / 4,
		[STORES_EIGHTH] = vector / 8,
		[STORES_PACKED] = vector,
		[STORES_PACKED_TINY] = vector,
	};

	*ret_unit = store == STORES_PACKED ? element : store == STORES_PACKED_TINY ? tiny : sizes[store];
	return sizes[store];
}

/* Read the address behind the head, without the unit of a displacement. False if there are too few bytes. */
static bool read_address(const struct head *head, const uint8_t *bytes, size_t length, struct evex *evex)
{
	const bool has_sib = head->rm == NEEDS_SIB;
	uint8_t base = head->rm, displacement_bytes = head->mod == 1 ? 1 : head->mod == 2 ? 4 : 0;
	bool has_index = false;

	if (has_sib && length < (size_t)head->size + 1)
		return false;
	if (has_sib) {
		base = bytes[evex->size] & 7;
		/* Of a scatter it is a vector, and 4 is one of these. */
		has_index = (bytes[evex->size] >> 3 & 7) != NO_INDEX || head->index_high;
		evex->size++;
	}
	if (head->mod == 0 && base == NO_BASE)
		displacement_bytes = 4;
	if ((size_t)evex->size + displacement_bytes > length)
		return false;
	if (displacement_bytes == 1)
		evex->displacement = bytes[evex->size] - (bytes[evex->size] & 0x80 ? 0x100 : 0);
	else if (displacement_bytes)
		memcpy(&evex->displacement, bytes + evex->size, sizeof(evex->displacement));
	evex->size = (uint8_t)(evex->size + displacement_bytes);
	if (!has_index && (head->mod != 0 || base != NO_BASE))
		evex->base = base + head->base_high;
	return true;
}

static bool is_scatter(const struct head *head)
{
	return head->map == MAP_0F38 && head->opcode >= 0xa0 && head->opcode <= 0xa3;
}

/* What it writes beside vectors and masks, once its operands are read. */
static void find_written(const struct head *head, struct evex *evex)
{
	if (head->size != HEAD_BYTES) {
		find_written_of_mask(head, evex);
		return;
	}
	if (IS_AMONG(head, to_reg))
		evex->written = head->reg + head->reg_high;
	for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++) {
		uint8_t unit;

		if (!is_among(head, &stores[i].opcodes, 1))
			continue;
		if (head->mod == IS_REGISTER) {
			if (stores[i].may_be_register)
				evex->written = head->rm + head->base_high;
			return;
		}
		evex->stores = true;
		evex->store_bytes = store_size(head, stores[i].store, &unit);
		if (head->mod == 1)
			evex->displacement *= unit;
		if (is_scatter(head))
			evex->base = EVEX_NO_REGISTER;
		return;
	}
}

bool evex_decode(const uint8_t *bytes, size_t length, struct evex *ret_evex)
{
	struct evex evex = { .written = EVEX_NO_REGISTER, .base = EVEX_NO_REGISTER };
	struct head head;

	if (length == 0 || !(read_evex(bytes, length, &head) || read_vex(bytes, length, &head)))
		return false;
	evex.size = head.size;
	evex.writes_flags = IS_AMONG(&head, to_flags);
	if (head.mod != IS_REGISTER && !read_address(&head, bytes, length, &evex))
		return false;
	if (head.map == MAP_0F3A || IS_AMONG(&head, with_immediate))
		evex.size++;
	if (evex.size > length)
		return false;
	find_written(&head, &evex);
	*ret_evex = evex;
	return true;
}

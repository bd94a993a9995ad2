/* SPDX-License-Identifier: MIT */
/*
 * table_entry: read the entries of .eh_frame, which describe how to find the callers of code: CIEs, with what
 * many functions have in common, and FDEs, one a function (LSB 5.0, "Exception Frames"). What they say is
 * untrusted.
 */
#ifndef LJSPY_TABLE_ENTRY_H
#define LJSPY_TABLE_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

/* The bytes left to read. A read past the end fails, and leaves nothing. */
struct table_reader {
	uint8_t *at, *end;
	bool failed;
};

void table_skip(struct table_reader *reader, uint64_t length);

/* 0 if there are too few bytes left. */
uint8_t table_u8(struct table_reader *reader);
uint32_t table_u32(struct table_reader *reader);
uint64_t table_leb(struct table_reader *reader); /* LEB128, without its sign */

/* In an encoding, DW_EH_PE_*: the format. The other bits are what the number counts from. */
enum { TABLE_FORMAT_MASK = 0x0f };

/* A number in the format of an encoding of fixed size. It fails for others. */
uint64_t table_number(struct table_reader *reader, uint8_t encoding);

/*
 * Read an entry's length, and leave no more than that to read. False if there are fewer bytes, and for
 * lengths of 64 bits, which begin with UINT32_MAX: no table is so large that it needs them.
 */
bool table_entry_begin(struct table_reader *reader);

/* A CIE's properties that its FDEs depend on. */
struct table_cie {
	uint8_t address_encoding; /* DW_EH_PE_* */
	bool has_augmentation;
};

/*
 * Read a CIE from behind its length up to its instructions, if its return addresses and augmentation are such
 * as compilers write for functions.
 */
bool table_cie_read(struct table_reader *reader, struct table_cie *ret_cie);

/*
 * Read an FDE from behind its way back to the CIE up to its instructions. *ret_code is where its code begins,
 * counted from what the CIE's encoding says.
 */
bool table_fde_read(struct table_reader *reader, const struct table_cie *cie, uint64_t *ret_code,
		    uint64_t *ret_length);

#endif

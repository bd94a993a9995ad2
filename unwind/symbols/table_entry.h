/* SPDX-License-Identifier: MIT */
/*
 * table_entry: read the entries of .eh_frame, which describe how to find the callers of code: CIEs, with what many
 * functions have in common, and FDEs, one a function (LSB 5.0, "Exception Frames"). What they say is untrusted.
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

/* A number in the format of an encoding, DW_EH_PE_*, of fixed size. It fails for others. */
uint64_t table_number(struct table_reader *reader, uint8_t encoding);

/* A CIE's properties that its FDEs depend on. */
struct table_cie {
	uint8_t address_encoding; /* DW_EH_PE_* */
	bool has_augmentation;
};

/*
 * Read a CIE from behind its length up to its instructions, if its return addresses and augmentation are such as
 * compilers write for functions.
 */
bool table_cie_read(struct table_reader *reader, struct table_cie *ret_cie);

#endif

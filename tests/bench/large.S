/* SPDX-License-Identifier: MIT */
/*
 * large: a function, in a library with a file full of debug info (DWARF names
 * it): after the unit with the function, one with as many base types as fit.
 */
	.text
	.globl large_spin
	.type large_spin, @function
large_spin:
	.cfi_startproc
1:	dec %rdi
	jnz 1b
	ret
	.cfi_endproc
.Lend:
	.size large_spin, . - large_spin

	.section .debug_abbrev, "", @progbits
.Labbrev:
	.uleb128 1			/* a unit with children: name, low_pc, high_pc */
	.uleb128 0x11
	.byte 1
	.uleb128 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0
	.uleb128 2			/* a base type: byte_size, encoding, name */
	.uleb128 0x24
	.byte 0
	.uleb128 0x0b, 0x0b, 0x3e, 0x0b, 0x03, 0x08, 0, 0
	.uleb128 3			/* a function: name, low_pc, high_pc */
	.uleb128 0x2e
	.byte 0
	.uleb128 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0
	.uleb128 4			/* a unit with children: name */
	.uleb128 0x11
	.byte 1
	.uleb128 0x03, 0x08, 0, 0
	.byte 0

	.section .debug_info, "", @progbits
	.long .Lunit_end - . - 4
	.short 4
	.long .Labbrev
	.byte 8
	.uleb128 1
	.asciz "large.S"
	.quad large_spin
	.quad .Lend - large_spin
	.uleb128 3
	.asciz "large_spin"
	.quad large_spin
	.quad .Lend - large_spin
	.byte 0
.Lunit_end:
	.long .Ltypes_end - . - 4
	.short 4
	.long .Labbrev
	.byte 8
	.uleb128 4
	.asciz "types"
	.incbin DWARF
	.byte 0
.Ltypes_end:

	.section .note.GNU-stack, "", @progbits

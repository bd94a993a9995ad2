/* SPDX-License-Identifier: MIT */
/* foreign_line: a part of a function's body, so that its code has a line of another file. */
__asm__ volatile(".globl foreign_place\n.hidden foreign_place\nforeign_place: nop");

/* SPDX-License-Identifier: MIT */
/*
 * exactness step|signal|sample LUAJIT PROGRAM on|off COUNT [JIT PARAMETER...]
 *
 * Judges what ljspy's unwinder says of a program whose stacks are known:
 *
 * step		at every instruction, COUNT of them at most. With the JIT compiler off
 *		the order of the stacks is judged, too.
 * signal	the same, from within a handler of a signal that comes at the instruction
 * sample	COUNT times, at any time
 *
 * To be run in the folder of truth.lua. Prints one row: what was judged, how
 * much of it was lost, for which reasons, was without the line of a Lua function,
 * and was wrong; and on stderr, where the first of each were seen. Exit status 1
 * when there is a wrong stack, and 2, without a row, when nothing could be judged.
 */
#ifndef LJSPY_TESTS_EXACTNESS_H
#define LJSPY_TESTS_EXACTNESS_H

struct exactness {
	unsigned long judged, wrong, no_line, lost; /* stacks */
};

/* argv is that of the program, with NULL behind it. 0 or a negative errno: nothing could be judged. */
int exactness_judge(char *argv[], struct exactness *ret_judged);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * stack_room: enough native stack, however little `ulimit -s` allows.
 *
 * By default the limit is every thread's stack size. Reading and drawing stacks, and
 * the libraries for it, need up to a few hundred kilobytes.
 */
#ifndef LJSPY_STACK_ROOM_H
#define LJSPY_STACK_ROOM_H

/*
 * Call run with enough stack for it, and for all threads it creates, and not much more for these; in a new
 * thread if the first one has too little. Returns its result, or a negative errno if it could
 * not run.
 */
int stack_room_run(int (*run)(void *context), void *context);

#endif

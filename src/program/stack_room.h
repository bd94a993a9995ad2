/* SPDX-License-Identifier: MIT */
/*
 * stack_room: enough stack, however little `ulimit -s` allows.
 *
 * Threads get as much as the limit says, and the first one no more than it;
 * reading and drawing stacks, with libraries for it, needs up to some hundred
 * kilobytes.
 */
#ifndef LJSPY_STACK_ROOM_H
#define LJSPY_STACK_ROOM_H

/*
 * Run it, with room for its own stack and those of all threads to come: in a
 * thread if the first one has too little. Its result, or the negative errno
 * that kept it from being run.
 */
int stack_room_run(int (*run)(void *context), void *context);

#endif

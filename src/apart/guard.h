/* SPDX-License-Identifier: MIT */
/*
 * guard: the process between front and engine.
 *
 * It waits for the engine and does nothing else. Should anybody stop the engine,
 * it goes on at once; should it not, it is killed, which frees all that it traces.
 * The engine dies with the guard, and the guard with the front.
 */
#ifndef LJSPY_GUARD_H
#define LJSPY_GUARD_H

#include "src/apart/shared.h"

/*
 * The child of the front that forked it, whose process id is given, and that
 * is to be the guard. Returns in the child's child, the engine, and nowhere else.
 */
void guard_become(struct shared *shared, pid_t front);

/* Die with the parent, which is that process. For the engine, too: the kernel forgets it with a change of user. */
void guard_die_with(pid_t parent);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * guard: the process between front and engine.
 *
 * It does nothing but wait for the engine, and for processes that the engine leaves. If the engine is
 * stopped, the guard continues it at once; if it stays stopped, the guard kills it, which releases its
 * tracees.
 * The engine dies with the guard, and the guard with the front. If the guard cannot start the engine,
 * or cannot wait, it notes why (struct shared) and ends.
 */
#ifndef LJSPY_GUARD_H
#define LJSPY_GUARD_H

#include "src/apart/shared.h"

/*
 * Make the calling process the guard; it is a fresh child of the front, whose process
 * id is given. Returns only in the guard's child, which becomes the engine. adopts: processes that the
 * engine leaves are the guard's.
 */
void guard_become(struct shared *shared, pid_t front, bool adopts);

/*
 * Die with the parent, whose process id is given. The engine repeats this call: the
 * kernel drops the setting when the user changes.
 */
void guard_die_with(pid_t parent);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * engine_name: the names of ljspy's engine and guard processes (src/apart/apart.h).
 */
#ifndef LJSPY_ENGINE_NAME_H
#define LJSPY_ENGINE_NAME_H

#define ENGINE_NAME "ljspy-engine"
#define GUARD_NAME "ljspy-guard"

#endif

/* SPDX-License-Identifier: MIT */
/*
 * names: how formats spell what is an enum in ljspy. These words are part of
 * the formats and of options: none is ever changed.
 */
#ifndef LJSPY_NAMES_H
#define LJSPY_NAMES_H

#include "output/sample/frame.h"
#include "output/sample/sample.h"

/* "running" */
const char *thread_state_name(enum thread_state state);
/* What a thread that is runnable waits for, as what one sleeps for is told. */
#define WAITING_FOR_CPU "waiting for a CPU"
/* "interpreted" */
const char *vm_state_name(enum vm_state state);
/* "lua" */
const char *frame_kind_name(enum frame_kind kind);

#endif

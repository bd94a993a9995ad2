/* SPDX-License-Identifier: MIT */
/*
 * names: the words for enums in formats. These words are part of the formats
 * and of options, and never change.
 */
#ifndef LJSPY_NAMES_H
#define LJSPY_NAMES_H

#include "output/sample/frame.h"
#include "output/sample/sample.h"

/* "running" */
const char *thread_state_name(enum thread_state state);
/* What a runnable thread waits for, in place of the name of a wait. */
#define WAITING_FOR_CPU "waiting for a CPU"
/* "interpreted" */
const char *vm_state_name(enum vm_state state);
/* "sweep"; NULL for GC_PHASE_NONE */
const char *gc_phase_name(enum gc_phase phase);
/* "lua" */
const char *frame_kind_name(enum frame_kind kind);

#endif

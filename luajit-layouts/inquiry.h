/* SPDX-License-Identifier: MIT */
/*
 * inquiry: telling whoever asked what each step of recognition found.
 */
#ifndef LJSPY_INQUIRY_H
#define LJSPY_INQUIRY_H

#include "memory/memory.h"

/* Receives each probe's verdict in words, one call a probe; may be NULL. */
typedef void recognise_evidence(void *context, const char *probe, const char *verdict);

struct inquiry {
	struct memory *memory;
	recognise_evidence *evidence;
	void *context;
};

__attribute__((format(printf, 3, 4)))
void inquiry_verdict(const struct inquiry *inquiry, const char *probe, const char *format, ...);

#endif

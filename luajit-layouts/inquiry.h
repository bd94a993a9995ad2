/* SPDX-License-Identifier: MIT */
/*
 * inquiry: reports what each step of recognition finds.
 */
#ifndef LJSPY_INQUIRY_H
#define LJSPY_INQUIRY_H

#include "memory/memory.h"

/* Receives each probe's verdict in words, valid during the call. May be NULL. */
typedef void recognise_evidence(void *context, const char *probe, const char *verdict);

struct inquiry {
	struct memory *memory;
	recognise_evidence *evidence;
	void *context;
};

/* Hand a verdict to the inquiry's evidence, if it has one. */
__attribute__((format(printf, 3, 4))) void inquiry_verdict(const struct inquiry *inquiry, const char *probe,
							   const char *format, ...);

#endif

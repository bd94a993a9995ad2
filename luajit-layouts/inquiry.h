/*
 * inquiry: telling whoever asked what each step of recognition found.
 */
#ifndef LJSPY_INQUIRY_H
#define LJSPY_INQUIRY_H

#include "luajit-layouts/recognise/recognise.h"

struct inquiry {
	struct memory *memory;
	recognise_evidence *evidence;	/* may be NULL */
	void *context;
};

__attribute__((format(printf, 3, 4)))
void inquiry_verdict(const struct inquiry *inquiry, const char *probe, const char *format, ...);

#endif

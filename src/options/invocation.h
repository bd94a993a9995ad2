/* SPDX-License-Identifier: MIT */
/* invocation: what a command knows of the process that it runs in. */
#ifndef LJSPY_INVOCATION_H
#define LJSPY_INVOCATION_H

#include <signal.h>

#include "src/options/options.h"

struct invocation {
	struct options *options;
	char *command_line;      /* ljspy's own, for the recording; NULL when memory is short */
	sigset_t inherited_mask; /* the signal mask ljspy started with, for a command it starts */
};

#endif

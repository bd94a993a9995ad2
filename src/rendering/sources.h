/* SPDX-License-Identifier: MIT */
/*
 * sources: read the source files of a session where its target has them.
 *
 * While the target lives, its own root and current directory tell; later the session's,
 * as long as ljspy has a path to that root.
 */
#ifndef LJSPY_SOURCES_H
#define LJSPY_SOURCES_H

#include "output/sample/session.h"
#include "output/source/source_text.h"

/* The session is borrowed. NULL when memory is short. */
struct source_reader *sources_new(const struct session *session);
void sources_free(struct source_reader *reader);

#endif

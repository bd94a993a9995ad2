/* SPDX-License-Identifier: MIT */
/*
 * session_title: what was recorded, in a line: "CPU time of luajit test.lua (pid 42)".
 */
#ifndef LJSPY_SESSION_TITLE_H
#define LJSPY_SESSION_TITLE_H

#include <stdint.h>
#include <stdio.h>

#include "output/sample/figures.h"
#include "output/sample/session.h"

enum { SESSION_TITLE_SIZE = 1280 };

/* Write the title, unescaped. Long commands are cut, and the directory of the program is left out. */
void session_title(const struct session *session, char ret_title[static SESSION_TITLE_SIZE]);

/*
 * The first lines of a text: what was recorded, when, and how many samples with how much
 * time. On failure, the stream's error flag is set.
 */
void session_title_write_head(FILE *out, const struct session *session, const struct figures *figures,
			      uint64_t samples, uint64_t all);

#endif

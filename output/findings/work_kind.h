/* SPDX-License-Identifier: MIT */
/*
 * work_kind: which kind of finding is a piece of work a part of?
 */
#ifndef LJSPY_WORK_KIND_H
#define LJSPY_WORK_KIND_H

#include "output/findings/evidence.h"
#include "output/findings/finding_kind.h"

/*
 * By what the frames above the Lua function are called. Where LuaJIT's own code has no name, as in
 * compiled code of stripped programs, by the text of the line, if there is one (NULL: there is not).
 */
enum finding_kind work_kind(const struct work *work, const char *line);

/* What a line does that LuaJIT's own code works for. FINDING_OWN_WORK if it does not tell. */
enum finding_kind work_kind_of_line(const char *line);

#endif

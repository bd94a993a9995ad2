/* SPDX-License-Identifier: MIT */
/* told_no_luajit: that a process runs no LuaJIT is told in one sentence. */
#ifndef LJSPY_TOLD_NO_LUAJIT_H
#define LJSPY_TOLD_NO_LUAJIT_H

#include <stdio.h>

#include "src/targets/choose.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(choose_explain_no_luajit);
void __wrap_choose_explain_no_luajit(pid_t pid)
{
	fprintf(stderr, "%d runs no LuaJIT.\n", (int)pid);
}

#endif

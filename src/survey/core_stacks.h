/* SPDX-License-Identifier: MIT */
/*
 * core_stacks: fill a report with the stacks of a core file.
 *
 * Registers, unwinding and LuaJIT's machine code are a machine's own, and known when ljspy is compiled. For
 * core files of the other machine that ljspy knows, the rooms from unwind/elf to here are compiled once more
 * for it, and linked into one object that exports core_stacks_read_other() only (GNUmakefile,
 * unwind/elf/machine.h).
 */
#ifndef LJSPY_CORE_STACKS_H
#define LJSPY_CORE_STACKS_H

#include <stdbool.h>

#include "memory/core_file.h"
#include "output/reports/dump_report.h"
#include "output/sample/functions.h"
#include "src/inspect/given_layout.h"
#include "unwind/names/namer.h"

struct core_stacks_options {
	struct namer_options namer;
	const struct given_layout *layout; /* NULL: recognise it */
	bool wants_values;
};

/*
 * Read the core of a process of the machine that ljspy runs on, or of the other one. 0 with a report that the
 * caller frees, whose functions are functions'; without VMs if LuaJIT is not known in it. Or a negative
 * errno.
 */
int core_stacks_read(struct core_file *core, const struct core_stacks_options *options,
		     struct functions *functions, struct dump_process **ret_report);
int core_stacks_read_other(struct core_file *core, const struct core_stacks_options *options,
			   struct functions *functions, struct dump_process **ret_report);

/*
 * Is it the core of a process of a machine that one of the two reads? The first one, if *ret_is_other is
 * false.
 */
bool core_stacks_machine(const struct core_file *core, bool *ret_is_other);

#endif

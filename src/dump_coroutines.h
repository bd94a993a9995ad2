/*
 * dump_coroutines: the coroutines of a process, in slices.
 *
 * While threads run they are held for a slice at a time, about a millisecond,
 * and then run on for as long before the next. A process that
 * sleeps is read without a stop.
 */
#ifndef LJSPY_DUMP_COROUTINES_H
#define LJSPY_DUMP_COROUTINES_H

#include "output/dump_report.h"
#include "src/target/hold.h"
#include "src/target/lua_process.h"

/*
 * Add each universe of the process and its coroutines to the report; hold is
 * NULL for what never changes, such as a core file. 0 or -ENOMEM.
 */
int dump_coroutines(struct lua_process *process, struct hold *hold, struct dump_process *report);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * json: all data of each sample, for scripts.
 *
 * One object. Its lists that grow with the recording have one element a line.
 *
 *	format		"ljspy", and version, 1: these members never change, new ones may come
 *	session		pid (null if several), target, command_line, cause, start_unix_ns,
 *			duration_ns, clock: "cpu", "wall", "off-cpu", "alloc" or
 *			"alloc-objects"
 *	figures		the same as --stats writes
 *	functions	name (the same as in the flame graph), kind ("lua", "builtin",
 *			"c_function", "native", "vm", "trace", "lost", "allocated"), and if known
 *			file, firstline, module
 *	frames		function (an index into functions), line (null if unknown),
 *			compiled
 *	stacks		lists of indices into frames, root first
 *	threads		pid, tid, process, thread (names or null), the heaviest first
 *	samples		in time order: time_ns (since the session began),
 *			thread and stack (indices), cpu_ns and wall_ns (the time that
 *			the sample stands for), alloc_bytes and alloc_objects (the
 *			same; only of allocations), state ("running"), vm_state
 *			("compiled"), phase (null if none), request (of nginx; only if
 *			there is one: route, method and host, null if unknown, status,
 *			only if set, subrequest, connection and number, which together
 *			name the client's request, age_ns), wait (what a sleeping
 *			thread waits for, "read /etc/hosts"; else null)
 *
 * Names are escaped as in every other output: valid UTF-8 on one line, with
 * invisible characters as \n, \x1b.
 */
#ifndef LJSPY_JSON_H
#define LJSPY_JSON_H

#include <stdio.h>

#include "output/recording/sample_source.h"
#include "output/sample/figures.h"
#include "output/sample/session.h"
#include "output/views/view.h"

/* See struct format. */
int json_write(FILE *out, struct sample_source *source, const struct session *session,
	       const struct figures *figures, const struct view *view);

#endif

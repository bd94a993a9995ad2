/* SPDX-License-Identifier: MIT */
/*
 * halt: is a process kept from running, though it does not sleep?
 *
 * A frozen cgroup shows its processes as asleep (Linux, Documentation/admin-guide: cgroup-v2.rst on
 * cgroup.freeze, cgroup-v1/freezer-subsystem.rst). `docker pause` freezes that of a container.
 */
#ifndef LJSPY_HALT_H
#define LJSPY_HALT_H

#include <sys/types.h>

enum process_halt {
	HALT_NONE,    /* also if it is unknown */
	HALT_SIGNAL,  /* SIGSTOP, Ctrl-Z */
	HALT_TRACER,  /* by the process that traces it, such as gdb */
	HALT_FREEZER, /* its cgroup is frozen */
};

enum process_halt process_halt(pid_t pid);

#endif

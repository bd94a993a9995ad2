/* SPDX-License-Identifier: MIT */
/*
 * pid_namespace: the namespace in which processes have their numbers.
 */
#ifndef LJSPY_PID_NAMESPACE_H
#define LJSPY_PID_NAMESPACE_H

#include <stdbool.h>

/* Are the numbers in /proc those that system calls take here? False also if /proc is not mounted. */
bool pid_namespace_is_that_of_proc(void);

/* Is /proc mounted at all, be it another namespace's? */
bool pid_namespace_has_proc(void);

/* Does ljspy run in the machine's first pid namespace, in which all processes have a number? */
bool pid_namespace_is_first(void);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * pid_namespace: whose numbers processes have.
 */
#ifndef LJSPY_PID_NAMESPACE_H
#define LJSPY_PID_NAMESPACE_H

#include <stdbool.h>

/* Are the numbers in /proc those that system calls take here? False also where /proc is not mounted. */
bool pid_namespace_is_that_of_proc(void);

/* Is it the machine's own, in which all processes have a number? */
bool pid_namespace_is_first(void);

#endif

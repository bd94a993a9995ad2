/* SPDX-License-Identifier: MIT */
/*
 * time_namespace: a process may have a CLOCK_MONOTONIC of its own (time_namespaces(7), Linux 5.6).
 */
#ifndef LJSPY_TIME_NAMESPACE_H
#define LJSPY_TIME_NAMESPACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * How far the process's CLOCK_MONOTONIC is ahead of ljspy's; negative if it is behind. False if that is
 * unknown: the kernel tells it to those who may trace the process, and of the namespace that its next child
 * gets.
 */
bool time_namespace_offset(pid_t pid, int64_t *ret_ns);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * origin: the labels of a process: which service, pod and container it is.
 *
 * The first of these that has a label decides:
 *
 *	OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES	in the environment of the process
 *	its cgroup, with the names of the node's containers (containers.h)
 *	the same variables, and POD_NAME, POD_NAMESPACE and NODE_NAME, in ljspy's environment
 *	its unit of systemd, its name			for service_name
 *
 * Of the environment of the process nothing else is read or kept.
 */
#ifndef LJSPY_ORIGIN_H
#define LJSPY_ORIGIN_H

#include <sys/types.h>

#include "src/push/labels.h"

/* The name may be NULL. What is not known has no label; service_name is always there. */
void origin_read(pid_t pid, const char *name, struct labels *ret_labels);

/* The labels of a process of which nothing is known but its name. */
void origin_of_name(const char *name, struct labels *ret_labels);

#endif

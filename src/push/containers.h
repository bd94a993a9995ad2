/* SPDX-License-Identifier: MIT */
/*
 * containers: what cgroups and the logs of a node tell of the container of a process.
 *
 * A process's cgroup has the id of its container and of its pod in its path
 * (proc_pid_cgroup(5); the paths are those of runc under Docker, containerd, CRI-O and
 * podman). A node of Kubernetes has the names: the kubelet keeps a link
 * POD_NAMESPACE_CONTAINER-ID.log for each container in /var/log/containers.
 */
#ifndef LJSPY_CONTAINERS_H
#define LJSPY_CONTAINERS_H

#include "src/push/labels.h"

enum { CONTAINER_ID_LENGTH = 64, CONTAINER_ID_SHOWN = 12, POD_UID_LENGTH = 36, UNIT_SIZE = 128 };

/* Each is "" if unknown. */
struct cgroup_names {
	char container[CONTAINER_ID_LENGTH + 1];
	char pod_uid[POD_UID_LENGTH + 1]; /* in the form with "-" */
	char unit[UNIT_SIZE];             /* of systemd, without ".service" */
};

/* Read the text of /proc/PID/cgroup. */
void cgroup_names_read(const char *text, struct cgroup_names *ret_names);

/* Add namespace, pod and container from the name of that container's log; false if it is no such name. */
bool containers_read_log_name(const char *name, const char *container, struct labels *labels);

#endif

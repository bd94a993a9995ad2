/* SPDX-License-Identifier: MIT */
#include "src/push/origin.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/linux/proc/proc_file.h"
#include "src/push/containers.h"

enum { PROC_TEXT_MAX = 1 << 16, LOGS_MAX = 10000, HOST_NAME_SIZE = 256 };

static const char service_variable[] = "OTEL_SERVICE_NAME";
static const char attributes_variable[] = "OTEL_RESOURCE_ATTRIBUTES";
static const char logs_directory[] = "/var/log/containers";

/* A file of the process, with a NUL behind it, to be freed; NULL if it cannot be read. */
static char *read_file(pid_t pid, const char *name, size_t *ret_length)
{
	int fd = proc_file_open(pid, name);
	char *text = fd < 0 ? NULL : malloc(PROC_TEXT_MAX + 1);
	ssize_t length = text ? proc_file_fill(fd, text, PROC_TEXT_MAX) : -1;

	if (fd >= 0)
		close(fd);
	if (length < 0) {
		free(text);
		return NULL;
	}
	text[length] = '\0';
	*ret_length = (size_t)length;
	return text;
}

/* The value of a variable among texts that end with a NUL each; NULL if it is not there. */
static const char *find_variable(const char *text, size_t length, const char *name)
{
	const char *end = text + length;
	const size_t name_length = strlen(name);

	for (; text < end; text += strlen(text) + 1)
		if (strncmp(text, name, name_length) == 0 && text[name_length] == '=')
			return text + name_length + 1;
	return NULL;
}

static void add_environment(pid_t pid, struct labels *labels)
{
	size_t length;
	char *text = read_file(pid, "environ", &length);
	const char *attributes = text ? find_variable(text, length, attributes_variable) : NULL;

	if (text)
		labels_add_text(labels, "service_name", find_variable(text, length, service_variable));
	if (attributes)
		labels_add_attributes(labels, attributes, false);
	free(text);
}

static void add_container(const char *id, struct labels *labels)
{
	DIR *directory = opendir(logs_directory);
	const struct dirent *entry;

	for (int i = 0; directory && i < LOGS_MAX && (entry = readdir(directory)); i++)
		if (containers_read_log_name(entry->d_name, id, labels))
			break;
	if (directory)
		closedir(directory);
	labels_add(labels, "container_id", id, CONTAINER_ID_SHOWN);
}

static void read_cgroup(pid_t pid, struct cgroup_names *ret_names)
{
	size_t length;
	char *text = read_file(pid, "cgroup", &length);

	cgroup_names_read(text ? text : "", ret_names);
	free(text);
}

/* What ljspy was told of itself holds for its own pod, as far as the cgroups show pods. */
static bool is_own_pod(const struct cgroup_names *names)
{
	struct cgroup_names own;

	read_cgroup(getpid(), &own);
	return !*names->pod_uid || strcmp(names->pod_uid, own.pod_uid) == 0;
}

static void add_own_environment(const struct cgroup_names *names, struct labels *labels)
{
	const char *attributes = getenv(attributes_variable), *node = getenv("NODE_NAME");
	char host[HOST_NAME_SIZE] = "";

	if (gethostname(host, sizeof(host) - 1))
		*host = '\0';
	if (is_own_pod(names)) {
		labels_add_text(labels, "namespace", getenv("POD_NAMESPACE"));
		labels_add_text(labels, "pod", getenv("POD_NAME"));
		labels_add_text(labels, "service_name", getenv(service_variable));
	}
	labels_add_text(labels, "node", node);
	labels_add_text(labels, "instance", node ? node : host);
	if (attributes)
		labels_add_attributes(labels, attributes, true);
}

void origin_of_name(const char *name, struct labels *ret_labels)
{
	ret_labels->count = 0;
	labels_add_text(ret_labels, "service_name", name);
	labels_add_text(ret_labels, "service_name", "unknown");
}

void origin_read(pid_t pid, const char *name, struct labels *ret_labels)
{
	struct cgroup_names names;

	ret_labels->count = 0;
	add_environment(pid, ret_labels);
	read_cgroup(pid, &names);
	if (*names.container)
		add_container(names.container, ret_labels);
	add_own_environment(&names, ret_labels);
	labels_add_text(ret_labels, "service_name", labels_value(ret_labels, "container"));
	labels_add_text(ret_labels, "service_name", names.unit);
	labels_add_text(ret_labels, "service_name", name);
	labels_add_text(ret_labels, "service_name", "unknown");
}

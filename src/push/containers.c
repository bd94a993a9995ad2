/* SPDX-License-Identifier: MIT */
#include "src/push/containers.h"

#include <ctype.h>
#include <string.h>

static bool is_hex(char character)
{
	return isdigit((unsigned char)character) || (character >= 'a' && character <= 'f');
}

/* "ID", "docker-ID.scope", "cri-containerd-ID.scope": the only run of 64 digits, or false. */
static bool read_container(const char *text, size_t length, char ret_id[static CONTAINER_ID_LENGTH + 1])
{
	size_t run = 0;

	for (size_t i = 0; i <= length; i++) {
		if (i < length && is_hex(text[i])) {
			run++;
			continue;
		}
		if (run == CONTAINER_ID_LENGTH) {
			memcpy(ret_id, text + i - run, run);
			ret_id[run] = '\0';
			return true;
		}
		run = 0;
	}
	return false;
}

/* "podUID", "kubepods-burstable-podUID.slice" with "_" for "-" in the UID. */
static bool read_pod(const char *text, size_t length, char ret_uid[static POD_UID_LENGTH + 1])
{
	static const char dashes[] = "        -    -    -    -            ";
	static const char suffix[] = ".slice";

	if (length > sizeof(suffix) - 1 &&
	    memcmp(text + length - (sizeof(suffix) - 1), suffix, sizeof(suffix) - 1) == 0)
		length -= sizeof(suffix) - 1;
	if (length < POD_UID_LENGTH + 3 || memcmp(text + length - POD_UID_LENGTH - 3, "pod", 3) != 0)
		return false;
	text += length - POD_UID_LENGTH;
	for (size_t i = 0; i < POD_UID_LENGTH; i++) {
		bool is_dash = text[i] == '-' || text[i] == '_';

		if (dashes[i] == '-' ? !is_dash : !is_hex(text[i]))
			return false;
		ret_uid[i] = text[i];
		if (is_dash)
			ret_uid[i] = '-';
	}
	ret_uid[POD_UID_LENGTH] = '\0';
	return true;
}

static void read_unit(const char *text, size_t length, char ret_unit[static UNIT_SIZE])
{
	static const char suffix[] = ".service";
	const size_t end = sizeof(suffix) - 1;

	if (length <= end || length - end >= UNIT_SIZE || memcmp(text + length - end, suffix, end) != 0)
		return;
	memcpy(ret_unit, text, length - end);
	ret_unit[length - end] = '\0';
}

static void read_path(const char *path, size_t length, struct cgroup_names *names)
{
	while (length) {
		const char *slash = memchr(path, '/', length);
		size_t part = slash ? (size_t)(slash - path) : length;

		if (!read_container(path, part, names->container) && !read_pod(path, part, names->pod_uid))
			read_unit(path, part, names->unit);
		part += slash != NULL;
		path += part;
		length -= part;
	}
}

void cgroup_names_read(const char *text, struct cgroup_names *ret_names)
{
	*ret_names = (struct cgroup_names){ 0 };
	while (*text) {
		size_t length = strcspn(text, "\n");
		const char *colon = memchr(text, ':', length);

		/* HIERARCHY:CONTROLLERS:PATH */
		if (colon)
			colon = memchr(colon + 1, ':', length - (size_t)(colon + 1 - text));
		if (colon)
			read_path(colon + 1, length - (size_t)(colon + 1 - text), ret_names);
		text += length + (text[length] == '\n');
	}
	/* The unit is that of the container's runtime. */
	if (*ret_names->container)
		*ret_names->unit = '\0';
}

bool containers_read_log_name(const char *name, const char *container, struct labels *labels)
{
	static const char suffix[] = ".log";
	const char *space = strchr(name, '_');
	const char *own = space ? strchr(space + 1, '_') : NULL;
	size_t length = own ? strlen(own + 1) : 0, end = 1 + CONTAINER_ID_LENGTH + sizeof(suffix) - 1;
	const char *id;

	if (length <= end)
		return false;
	id = own + 1 + length - end;
	if (*id != '-' || strncmp(id + 1, container, CONTAINER_ID_LENGTH) != 0 ||
	    strcmp(id + 1 + CONTAINER_ID_LENGTH, suffix) != 0)
		return false;
	labels_add(labels, "namespace", space + 1, (size_t)(own - space - 1));
	labels_add(labels, "pod", name, (size_t)(space - name));
	labels_add(labels, "container", own + 1, (size_t)(id - own - 1));
	return true;
}

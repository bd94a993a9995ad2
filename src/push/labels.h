/* SPDX-License-Identifier: MIT */
/*
 * labels: what a service for profiles files a profile under, such as service_name=nginx.
 *
 * Names and values come from targets, environments and files: they are made harmless when
 * they are added. A name has letters, digits and "_"; a value is printable ASCII.
 */
#ifndef LJSPY_LABELS_H
#define LJSPY_LABELS_H

#include <stdbool.h>
#include <stddef.h>

enum {
	LABELS_MAX = 20, /* Pyroscope takes 30, with its own and those of samples */
	LABEL_NAME_SIZE = 64,
	LABEL_VALUE_SIZE = 256,
	LABELS_TEXT_SIZE = LABELS_MAX * (LABEL_NAME_SIZE + LABEL_VALUE_SIZE) + 1,
};

struct label {
	char name[LABEL_NAME_SIZE];
	char value[LABEL_VALUE_SIZE];
};

struct labels {
	struct label labels[LABELS_MAX];
	size_t count;
};

/* NULL if there is none of that name. */
const char *labels_value(const struct labels *labels, const char *name);

/*
 * Add a label unless there is one of that name, the value is empty, the name is reserved
 * ("__...") or there are LABELS_MAX. The text need not end with a NUL.
 */
void labels_add(struct labels *labels, const char *name, const char *value, size_t length);
void labels_add_text(struct labels *labels, const char *name, const char *value);

/*
 * Add what OTEL_RESOURCE_ATTRIBUTES holds: "key=value,key=value" with %XX for odd
 * characters. Keys that services know by another name get that name; others only if
 * all is set.
 */
void labels_add_attributes(struct labels *labels, const char *text, bool all);

/* One line a label: "name=value\n"; and back. Lines that are no labels are skipped. */
void labels_write(const struct labels *labels, char ret_text[static LABELS_TEXT_SIZE]);
void labels_read(const char *text, struct labels *ret_labels);

#endif

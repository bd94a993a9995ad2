/* SPDX-License-Identifier: MIT */
#include "src/push/labels.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool is_word(char character)
{
	return isalnum((unsigned char)character) && isascii((unsigned char)character);
}

/* False if nothing is left of it, or it is reserved. */
static bool clean_name(const char *text, size_t length, char ret_name[static LABEL_NAME_SIZE])
{
	if (length == 0 || length >= LABEL_NAME_SIZE || isdigit((unsigned char)*text) ||
	    (length >= 2 && memcmp(text, "__", 2) == 0))
		return false;
	memcpy(ret_name, text, length);
	for (size_t i = 0; i < length; i++)
		if (!is_word(text[i]))
			ret_name[i] = '_';
	ret_name[length] = '\0';
	return strncmp(ret_name, "__", 2) != 0;
}

const char *labels_value(const struct labels *labels, const char *name)
{
	for (size_t i = 0; i < labels->count; i++)
		if (strcmp(labels->labels[i].name, name) == 0)
			return labels->labels[i].value;
	return NULL;
}

static void add(struct labels *labels, const char *name, const char *value, size_t length)
{
	struct label *label = &labels->labels[labels->count];

	if (length == 0 || labels->count == LABELS_MAX || labels_value(labels, name))
		return;
	if (length >= LABEL_VALUE_SIZE)
		length = LABEL_VALUE_SIZE - 1;
	snprintf(label->name, sizeof(label->name), "%s", name);
	memcpy(label->value, value, length);
	for (size_t i = 0; i < length; i++)
		if (value[i] < ' ' || value[i] > '~')
			label->value[i] = '_';
	label->value[length] = '\0';
	labels->count++;
}

void labels_add(struct labels *labels, const char *name, const char *value, size_t length)
{
	char clean[LABEL_NAME_SIZE];

	if (clean_name(name, strlen(name), clean))
		add(labels, clean, value, length);
}

void labels_add_text(struct labels *labels, const char *name, const char *value)
{
	if (value)
		labels_add(labels, name, value, strlen(value));
}

static int digit(char character)
{
	if (isdigit((unsigned char)character))
		return character - '0';
	return isxdigit((unsigned char)character) ? tolower((unsigned char)character) - 'a' + 10 : -1;
}

/* Decode %XX; returns the length. */
static size_t decode(const char *text, size_t length, char ret_value[static LABEL_VALUE_SIZE])
{
	size_t count = 0;

	for (size_t i = 0; i < length && count < LABEL_VALUE_SIZE - 1; i++) {
		if (text[i] == '%' && i + 2 < length && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0) {
			ret_value[count++] = (char)(digit(text[i + 1]) * 16 + digit(text[i + 2]));
			i += 2;
		} else {
			ret_value[count++] = text[i];
		}
	}
	return count;
}

/* What services call an attribute, by OpenTelemetry's semantic conventions; NULL for their own name. */
static const char *known_name(const char *key, size_t length)
{
	static const char *const names[][2] = {
		{ "service.name", "service_name" },
		{ "service.namespace", "service_namespace" },
		{ "service.version", "service_version" },
		{ "k8s.namespace.name", "namespace" },
		{ "k8s.pod.name", "pod" },
		{ "k8s.container.name", "container" },
		{ "k8s.node.name", "node" },
		{ "deployment.environment", "env" },
		{ "deployment.environment.name", "env" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i][0]) == length && memcmp(names[i][0], key, length) == 0)
			return names[i][1];
	return NULL;
}

void labels_add_attributes(struct labels *labels, const char *text, bool all)
{
	while (*text) {
		size_t length = strcspn(text, ",");
		size_t key = strcspn(text, "=,");

		if (key < length) {
			char name[LABEL_NAME_SIZE], value[LABEL_VALUE_SIZE];
			const char *known = known_name(text, key);
			size_t decoded = decode(text + key + 1, length - key - 1, value);

			if (known)
				add(labels, known, value, decoded);
			else if (all && clean_name(text, key, name))
				add(labels, name, value, decoded);
		}
		text += length + (text[length] == ',');
	}
}

void labels_write(const struct labels *labels, char ret_text[static LABELS_TEXT_SIZE])
{
	size_t length = 0;

	*ret_text = '\0';
	for (size_t i = 0; i < labels->count; i++)
		length += (size_t)snprintf(ret_text + length, LABELS_TEXT_SIZE - length, "%s=%s\n",
					   labels->labels[i].name, labels->labels[i].value);
}

void labels_read(const char *text, struct labels *ret_labels)
{
	ret_labels->count = 0;
	while (*text) {
		size_t length = strcspn(text, "\n");
		size_t name_length = strcspn(text, "=\n");
		char name[LABEL_NAME_SIZE];

		if (name_length < length && clean_name(text, name_length, name))
			add(ret_labels, name, text + name_length + 1, length - name_length - 1);
		text += length + (text[length] == '\n');
	}
}

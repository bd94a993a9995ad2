/* SPDX-License-Identifier: MIT */
/*
 * What pushing reads again, or reads of others: the labels in a recording, attributes in an
 * environment, cgroups, names of logs, the mark of an archive, a file of credentials.
 *
 *	input = text
 */
#include <stdlib.h>
#include <string.h>

#include "src/push/containers.h"
#include "src/push/credentials.h"
#include "src/push/labels.h"
#include "src/push/mark.h"
#include "tests/fuzz/fuzz.h"

static void check_labels(const struct labels *labels)
{
	char text[LABELS_TEXT_SIZE], again[LABELS_TEXT_SIZE];
	struct labels read;

	fuzz_check(labels->count <= LABELS_MAX, "labels are bounded");
	for (size_t i = 0; i < labels->count; i++) {
		const char *value = labels->labels[i].value;

		fuzz_check(*labels->labels[i].name && strncmp(labels->labels[i].name, "__", 2) != 0,
			   "a label has a name of its own");
		fuzz_check(*value && !strpbrk(value, "\n\x1b") && fuzz_is_clean(value, strlen(value)),
			   "a value is harmless");
	}
	labels_write(labels, text);
	labels_read(text, &read);
	labels_write(&read, again);
	fuzz_check(strcmp(text, again) == 0, "labels survive writing");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct credentials credentials;
	char *text = malloc(size + 1);
	struct labels labels = { .count = 0 };
	struct cgroup_names names;
	struct mark mark;

	fuzz_check(text != NULL, "there is memory");
	memcpy(text, data, size);
	text[size] = '\0';
	labels_read(text, &labels);
	check_labels(&labels);
	labels_add_attributes(&labels, text, true);
	check_labels(&labels);
	cgroup_names_read(text, &names);
	labels.count = 0;
	if (containers_read_log_name(text, *names.container ? names.container : text, &labels))
		check_labels(&labels);
	if (mark_read_text(text, size, &mark)) {
		char written[MARK_TEXT_SIZE];

		mark_write_text(&mark, written);
		fuzz_check(strlen(written) <= size && memcmp(written, text, strlen(written)) == 0,
			   "a mark is its text");
	}
	credentials_read_text(text, &credentials);
	free(text);
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "src/rotation/labelled.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "src/push/labels.h"
#include "src/push/origin.h"

/* Where the process is, or belongs. */
static size_t find(const struct labelled *labelled, pid_t pid)
{
	size_t low = 0, high = labelled->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (labelled->pids[middle] < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int labelled_add(struct labelled *labelled, const struct sample *sample, struct recording_writer *writer)
{
	size_t at = find(labelled, sample->pid);
	char text[LABELS_TEXT_SIZE];
	struct labels labels;
	pid_t *pids;

	if (at < labelled->count && labelled->pids[at] == sample->pid)
		return 0;
	pids = array_grow(labelled->pids, &labelled->size, labelled->count + 1, sizeof(*pids));
	if (!pids)
		return -ENOMEM;
	labelled->pids = pids;
	memmove(pids + at + 1, pids + at, (labelled->count - at) * sizeof(*pids));
	pids[at] = sample->pid;
	labelled->count++;
	origin_read(sample->pid, sample->process_name, &labels);
	labels_write(&labels, text);
	return recording_writer_add_labels(writer, sample->pid, text);
}

void labelled_clear(struct labelled *labelled)
{
	labelled->count = 0;
}

void labelled_free(struct labelled *labelled)
{
	free(labelled->pids);
	*labelled = (struct labelled){ 0 };
}

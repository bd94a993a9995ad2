/* SPDX-License-Identifier: MIT */
#include "src/push/batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "output/formats/pprof.h"
#include "output/recording/recording_reader.h"
#include "output/views/filter.h"
#include "src/push/origin.h"

/* Processes with the same labels. */
struct group {
	char *labels; /* the text of the recording, or that of the process's name */
	pid_t *pids;
	size_t pid_count, pid_size;
};

struct batch {
	FILE *in;
	struct functions *functions;
	struct recording_reader *reader;
	struct group *groups; /* in the order of their first samples */
	size_t count, size;
};

static char *labels_of(const struct batch *batch, const struct sample *sample)
{
	const char *text = recording_reader_labels(batch->reader, sample->pid);
	char named[LABELS_TEXT_SIZE];
	struct labels labels;

	if (text)
		return strdup(text);
	origin_of_name(sample->process_name, &labels);
	labels_write(&labels, named);
	return strdup(named);
}

static bool has_process(const struct batch *batch, pid_t pid)
{
	for (size_t i = 0; i < batch->count; i++)
		for (size_t j = 0; j < batch->groups[i].pid_count; j++)
			if (batch->groups[i].pids[j] == pid)
				return true;
	return false;
}

/* The group with these labels, which it takes over; NULL when memory is short. */
static struct group *find_group(struct batch *batch, char *labels)
{
	struct group *groups;

	for (size_t i = 0; i < batch->count; i++) {
		if (strcmp(batch->groups[i].labels, labels) != 0)
			continue;
		free(labels);
		return &batch->groups[i];
	}
	groups = array_grow(batch->groups, &batch->size, batch->count + 1, sizeof(*groups));
	if (!groups) {
		free(labels);
		return NULL;
	}
	batch->groups = groups;
	groups[batch->count] = (struct group){ .labels = labels };
	return &groups[batch->count++];
}

static int take_process(void *context, const struct sample *sample)
{
	struct batch *batch = context;
	struct group *group;
	char *labels;
	pid_t *pids;

	if (has_process(batch, sample->pid))
		return 0;
	labels = labels_of(batch, sample);
	group = labels ? find_group(batch, labels) : NULL;
	if (!group)
		return -ENOMEM;
	pids = array_grow(group->pids, &group->pid_size, group->pid_count + 1, sizeof(*pids));
	if (!pids)
		return -ENOMEM;
	group->pids = pids;
	pids[group->pid_count++] = sample->pid;
	return 0;
}

int batch_open(FILE *in, struct batch **ret_batch)
{
	struct batch *batch = calloc(1, sizeof(*batch));
	int error = -ENOMEM;

	if (!batch) {
		fclose(in);
		return error;
	}
	batch->in = in;
	batch->functions = functions_new();
	if (batch->functions)
		error = recording_reader_open(in, batch->functions, &batch->reader);
	if (!error)
		error = sample_source_each(recording_reader_samples(batch->reader), take_process, batch);
	if (error)
		batch_close(batch);
	else
		*ret_batch = batch;
	return error;
}

void batch_close(struct batch *batch)
{
	if (!batch)
		return;
	for (size_t i = 0; i < batch->count; i++) {
		free(batch->groups[i].labels);
		free(batch->groups[i].pids);
	}
	free(batch->groups);
	recording_reader_close(batch->reader);
	functions_free(batch->functions);
	fclose(batch->in);
	free(batch);
}

size_t batch_count(const struct batch *batch)
{
	return batch->count;
}

static int render(const struct batch *batch, const struct group *group, FILE *out)
{
	const struct filter_options options = { .pids = group->pids, .pid_count = group->pid_count };
	const struct session *session = recording_reader_session(batch->reader);
	const struct view view = { .weight = session->clock, .few_labels = true };
	struct sample_source *samples = recording_reader_samples(batch->reader);
	struct filter *filter;
	int error = samples->rewind(samples);

	if (error)
		return error;
	filter = filter_new(samples, batch->functions, &options);
	error = filter ? pprof_write(out, filter_samples(filter), session,
				     recording_reader_figures(batch->reader), &view)
		       : -ENOMEM;
	filter_free(filter);
	return error;
}

int batch_profile(const struct batch *batch, size_t number, struct push_profile *ret_profile)
{
	const struct session *session = recording_reader_session(batch->reader);
	const struct group *group = &batch->groups[number];
	struct push_profile profile = {
		.kind = !weight_is_time(session->clock)      ? "memory"
			: weights[session->clock].is_elapsed ? "wall"
							     : "process_cpu",
		.begin_unix_ns = session->start_unix_ns,
		.end_unix_ns = session->start_unix_ns + session->duration_ns,
		.rate_hz = (unsigned int)recording_reader_figures(batch->reader)->rate_asked_hz,
	};
	FILE *out = open_memstream(&profile.bytes, &profile.length);
	int error = out ? render(batch, group, out) : -ENOMEM;

	if (out && fclose(out) && !error)
		error = -ENOMEM;
	if (!error && profile.length > BATCH_PROFILE_MAX)
		error = -EFBIG;
	if (error) {
		free(profile.bytes);
		return error;
	}
	labels_read(group->labels, &profile.labels);
	labels_add_text(&profile.labels, "service_name", "unknown");
	*ret_profile = profile;
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "output/findings/evidence.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "output/sample/text_copy.h"

struct evidence *evidence_new(pid_t pid, const char *name)
{
	struct evidence *evidence = calloc(1, sizeof(*evidence));

	if (!evidence)
		return NULL;
	evidence->pid = pid;
	if (text_copy(name, &evidence->name))
		return evidence;
	free(evidence);
	return NULL;
}

void evidence_free(struct evidence *evidence)
{
	if (!evidence)
		return;
	HASH_FREE_ALL(evidence->works);
	HASH_FREE_ALL(evidence->calls);
	for (size_t i = 0; i < evidence->file_count; i++)
		source_text_clear(&evidence->files[i].text);
	free(evidence->files);
	free(evidence->turn_lines);
	heap_growths_clear(&evidence->heap.growths);
	free(evidence->name);
	free(evidence);
}

/*---- Samples ----*/

static bool is_lua(const struct frame *frame)
{
	return frame->function->kind == FRAME_LUA;
}

/* The index of the innermost Lua function from at on; frame_count if there is none. */
static size_t find_lua(const struct sample *sample, size_t at)
{
	while (at < sample->frame_count && !is_lua(&sample->frames[at]))
		at++;
	return at;
}

static bool is_asleep(const struct sample *sample)
{
	return sample->thread_state == THREAD_BLOCKED || sample->thread_state == THREAD_UNINTERRUPTIBLE;
}

static struct work_key describe(const struct sample *sample)
{
	const size_t at = find_lua(sample, 0);
	struct work_key key;

	memset(&key, 0, sizeof(key)); /* clear the padding, because the key is hashed as bytes */
	key.state = (uint8_t)sample->vm_state;
	key.asleep = is_asleep(sample);
	if (sample->frame_count > 0)
		key.leaf = sample->frames[0].function;
	if (key.asleep && sample->wait)
		key.leaf = sample->wait;
	if (at == sample->frame_count)
		return key;
	key.function = sample->frames[at].function;
	key.line = sample->frames[at].line;
	key.compiled = sample->frames[at].compiled;
	if (sample->vm_state == VM_STATE_INTERPRETED && !key.compiled)
		key.proto = sample->proto;
	if (at > 0)
		key.callee = sample->frames[at - 1].function;
	return key;
}

static int add_work(struct evidence *evidence, const struct sample *sample)
{
	struct work_key key = describe(sample);
	struct work *work;

	HASH_FIND(hh, evidence->works, &key, sizeof(key), work);
	if (!work) {
		if (HASH_COUNT(evidence->works) >= EVIDENCE_ROWS_MAX)
			return 0;
		work = calloc(1, sizeof(*work));
		if (!work)
			return -ENOMEM;
		work->key = key;
		HASH_ADD(hh, evidence->works, key, sizeof(work->key), work);
		if (!hash_added(&work->hh)) {
			free(work);
			return -ENOMEM;
		}
	}
	work->cpu_ns += sample->cpu_ns;
	work->asleep_ns += key.asleep ? sample->wall_ns : 0;
	return 0;
}

static int add_call(struct evidence *evidence, const struct sample *sample, size_t at)
{
	const size_t below = find_lua(sample, at);
	struct call_key key;
	struct call *call;

	memset(&key, 0, sizeof(key));
	key.called = sample->frames[at].function;
	if (below < sample->frame_count) {
		key.caller = sample->frames[below].function;
		key.line = sample->frames[below].line;
	}
	HASH_FIND(hh, evidence->calls, &key, sizeof(key), call);
	if (!call) {
		if (HASH_COUNT(evidence->calls) >= EVIDENCE_ROWS_MAX)
			return 0;
		call = calloc(1, sizeof(*call));
		if (!call)
			return -ENOMEM;
		call->key = key;
		HASH_ADD(hh, evidence->calls, key, sizeof(call->key), call);
		if (!hash_added(&call->hh)) {
			free(call);
			return -ENOMEM;
		}
	}
	if (call->last_sample != evidence->samples)
		call->cpu_ns += sample->cpu_ns;
	call->last_sample = evidence->samples;
	return 0;
}

/* Each builtin once, at its innermost call: a sum of calls counts no sample twice. */
static int add_calls(struct evidence *evidence, const struct sample *sample)
{
	int error = 0;

	for (size_t i = 0; i < sample->frame_count && i < EVIDENCE_DEEP && !error; i++) {
		const struct function *function = sample->frames[i].function;
		bool is_first = function->kind == FRAME_BUILTIN;

		for (size_t j = 0; j < i && is_first; j++)
			is_first = sample->frames[j].function != function;
		if (is_first)
			error = add_call(evidence, sample, i);
	}
	return error;
}

static void add_depth(struct evidence *evidence, const struct sample *sample)
{
	const size_t at = find_lua(sample, 0);
	size_t frames = 0;

	for (size_t i = at; i < sample->frame_count; i++)
		frames += is_lua(&sample->frames[i]);
	if (frames < EVIDENCE_DEEP)
		return;
	evidence->deep.cpu_ns += sample->cpu_ns;
	if (frames <= evidence->deep.frames)
		return;
	evidence->deep.frames = frames;
	evidence->deep.function = sample->frames[at].function;
	evidence->deep.line = sample->frames[at].line;
}

static bool is_lost(const struct sample *sample)
{
	for (size_t i = 0; i < sample->frame_count; i++)
		if (sample->frames[i].function->kind == FRAME_LOST)
			return true;
	return false;
}

int evidence_add(struct evidence *evidence, const struct sample *sample)
{
	int error = add_work(evidence, sample);

	evidence->samples++;
	evidence->has_loop |= sample->awaits_events || sample->loop_ns != 0;
	if (sample->cpu_ns == 0)
		return error;
	evidence->cpu_ns += sample->cpu_ns;
	evidence->squares += (double)sample->cpu_ns * (double)sample->cpu_ns;
	evidence->state_ns[sample->vm_state] += sample->cpu_ns;
	gc_bill_add(&evidence->gc, sample, sample->cpu_ns);
	if (is_lost(sample))
		evidence->lost_ns += sample->cpu_ns;
	add_depth(evidence, sample);
	return error ? error : add_calls(evidence, sample);
}

/*---- Sources ----*/

static struct evidence_file *find_file(const struct evidence *evidence, const char *name)
{
	for (size_t i = 0; i < evidence->file_count; i++)
		if (strcmp(evidence->files[i].name, name) == 0)
			return &evidence->files[i];
	return NULL;
}

static int read_file(struct evidence *evidence, struct source_reader *reader, const char *name)
{
	struct evidence_file *files;
	int error;

	if (find_file(evidence, name) || evidence->file_count >= EVIDENCE_FILES_MAX)
		return 0;
	files = array_grow(evidence->files, &evidence->file_size, evidence->file_count + 1, sizeof(*files));
	if (!files)
		return -ENOMEM;
	evidence->files = files;
	files[evidence->file_count].name = name;
	error = reader->read(reader, name, &files[evidence->file_count].text);
	if (!error)
		evidence->file_count++;
	return error;
}

int evidence_read_sources(struct evidence *evidence, struct source_reader *reader)
{
	int error = 0;

	for (const struct work *work = evidence->works; work && !error; work = work->hh.next)
		if (work->key.function && work->key.function->file &&
		    evidence_share(evidence, work->cpu_ns) >= 0.01)
			error = read_file(evidence, reader, work->key.function->file);
	return error;
}

const char *evidence_line(const struct evidence *evidence, const struct function *function, uint32_t line)
{
	const struct evidence_file *file = function && function->file ? find_file(evidence, function->file)
								      : NULL;

	/* A file that is newer than the program, or another machine's, has other lines maybe. */
	return file && file->text.lines && !*file->text.note && line > 0 && line <= file->text.line_count
		       ? file->text.lines[line - 1]
		       : NULL;
}

/*---- Sums ----*/

double evidence_weight(const struct evidence *evidence)
{
	return evidence->squares > 0 ? (double)evidence->cpu_ns * (double)evidence->cpu_ns / evidence->squares
				     : 0;
}

bool evidence_is_enough(const struct evidence *evidence)
{
	return evidence_weight(evidence) >= EVIDENCE_SAMPLES_MIN;
}

bool evidence_is_busy(const struct evidence *evidence)
{
	return evidence->cpu_ns > evidence->duration_ns / 1000 * EVIDENCE_BUSY_PER_MILLE;
}

double evidence_share(const struct evidence *evidence, uint64_t ns)
{
	return evidence->cpu_ns ? (double)ns / (double)evidence->cpu_ns : 0;
}

double evidence_sure_share(const struct evidence *evidence, uint64_t ns)
{
	const double share = evidence_share(evidence, ns);

	if (evidence->squares <= 0 || share >= 1)
		return share;
	return share - 2 * sqrt(share * (1 - share) / evidence_weight(evidence));
}

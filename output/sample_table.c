#include "output/sample_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* What is in a list of the table already, by what tells it apart. Keys have no padding: they are hashed as bytes. */
struct key {
	uint64_t first;
	uint64_t second;
};

struct entry {
	struct key key;
	uint32_t index;
	UT_hash_handle hh;
};

/* Stacks of the source that came lately, by their numbers: finding one frame by frame is what takes time. */
enum { RECENT = 1 << 14 };

struct recent {
	uint64_t number;
	uint32_t stack;
};

enum list { FUNCTIONS, FRAMES, STACKS, THREADS, LIST_COUNT };

struct builder {
	struct sample_table *table;
	uint32_t *sample_threads;	/* of each sample */
	struct entry *entries[LIST_COUNT];
	struct recent *recent;
};

static uint64_t pair(uint32_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}

/*
 * The index of what has this key. 0 if it has one, 1 if it has been given the
 * next one, or -ENOMEM.
 */
static int look_up(struct builder *builder, enum list list, struct key key, uint32_t *ret_index)
{
	struct entry *entry;
	bool added = true;

	HASH_FIND(hh, builder->entries[list], &key, sizeof(key), entry);
	if (entry) {
		*ret_index = entry->index;
		return 0;
	}
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	entry->key = key;
	entry->index = HASH_COUNT(builder->entries[list]);
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (added = false)
	HASH_ADD(hh, builder->entries[list], key, sizeof(entry->key), entry);
	if (!added) {
		free(entry);
		return -ENOMEM;
	}
	*ret_index = entry->index;
	return 1;
}

/*
 * Room for one more element after count of them: arrays double whenever count
 * is a power of two. 0, -ENOMEM or -EOVERFLOW.
 */
static int make_room(void **array, size_t count, size_t element_size)
{
	void *bigger;

	if (count != 0 && (count & (count - 1)) != 0)
		return 0;
	if (count > UINT32_MAX / 2)
		return -EOVERFLOW;
	bigger = reallocarray(*array, count ? 2 * count : 1, element_size);
	if (!bigger)
		return -ENOMEM;
	*array = bigger;
	return 0;
}

/* Each find_ function tells the index of what it looks up, which it adds if it is new. 0 or a negative errno. */

static int find_function(struct builder *builder, const struct function *function,
			 uint32_t *ret_index)
{
	struct sample_table *table = builder->table;
	int result = look_up(builder, FUNCTIONS, (struct key) { (uintptr_t)function, 0 }, ret_index);

	if (result <= 0)
		return result;
	result = make_room((void **)&table->functions, table->function_count, sizeof(const struct function *));
	if (result < 0)
		return result;
	table->functions[table->function_count++] = function;
	return 0;
}

static int find_frame(struct builder *builder, const struct frame *frame, uint32_t *ret_index)
{
	struct sample_table *table = builder->table;
	uint32_t function;
	int result = find_function(builder, frame->function, &function);

	if (result == 0)
		result = look_up(builder, FRAMES, (struct key) { pair(function, frame->line), frame->compiled },
				 ret_index);
	if (result <= 0)
		return result;
	result = make_room((void **)&table->frames, table->frame_count, sizeof(*table->frames));
	if (result < 0)
		return result;
	table->frames[table->frame_count++] = (struct table_frame) {
		.function = function,
		.line = frame->line,
		.compiled = frame->compiled,
	};
	return 0;
}

static int find_child(struct builder *builder, uint32_t parent, uint32_t frame, uint32_t *ret_index)
{
	struct sample_table *table = builder->table;
	int result = look_up(builder, STACKS, (struct key) { pair(parent, frame), 0 }, ret_index);

	if (result <= 0)
		return result;
	result = make_room((void **)&table->stacks, table->stack_count, sizeof(*table->stacks));
	if (result < 0)
		return result;
	table->stacks[table->stack_count++] = (struct table_stack) {
		.parent = parent,
		.frame = frame,
		.depth = table->stacks[parent].depth + 1,
	};
	return 0;
}

static int find_stack(struct builder *builder, const struct sample *sample, uint32_t *ret_index)
{
	struct recent *recent = &builder->recent[sample->stack % RECENT];
	uint32_t stack = 0;

	if (sample->stack && recent->number == sample->stack) {
		*ret_index = recent->stack;
		return 0;
	}
	for (size_t i = sample->frame_count; i-- > 0;) {
		uint32_t frame;
		int error = find_frame(builder, &sample->frames[i], &frame);

		if (!error)
			error = find_child(builder, stack, frame, &stack);
		if (error)
			return error;
	}
	*recent = (struct recent){ .number = sample->stack, .stack = stack };
	*ret_index = stack;
	return 0;
}

static int find_thread(struct builder *builder, const struct sample *sample, uint32_t *ret_index)
{
	struct sample_table *table = builder->table;
	struct key key = { pair((uint32_t)sample->pid, (uint32_t)sample->tid), 0 };
	int result = look_up(builder, THREADS, key, ret_index);

	if (result <= 0)
		return result;
	result = make_room((void **)&table->threads, table->thread_count, sizeof(*table->threads));
	if (result < 0)
		return result;
	table->threads[table->thread_count++] = (struct table_thread) {
		.pid = sample->pid,
		.tid = sample->tid,
	};
	return 0;
}

/* The empty stack, whose key is no other's. */
static int add_empty_stack(struct builder *builder)
{
	uint32_t index;
	int result = look_up(builder, STACKS, (struct key) { 0, 1 }, &index);

	if (result < 0)
		return result;
	builder->table->stacks = calloc(1, sizeof(*builder->table->stacks));
	builder->table->stack_count = 1;
	return builder->table->stacks ? 0 : -ENOMEM;
}

uint64_t sample_table_weight(const struct sample_table *table, const struct table_sample *sample)
{
	return table->weight == PROFILE_CPU_TIME ? sample->cpu_ns : sample->wall_ns;
}

uint64_t sample_table_origin(const struct sample_table *table, const struct session *session)
{
	/* It is not known, or of another machine's clock, where recordings were summed. */
	return session->start_ns && session->start_ns < table->start_ns ? session->start_ns : table->start_ns;
}

static void count_sample(struct sample_table *table, struct table_thread *thread,
			 const struct sample *sample, const struct table_sample *added)
{
	uint64_t weight_ns = sample_table_weight(table, added);
	uint64_t began_ns = added->time_ns > weight_ns ? added->time_ns - weight_ns : 0;

	if (sample->process_name)
		thread->process_name = sample->process_name;
	if (sample->thread_name)
		thread->thread_name = sample->thread_name;
	thread->weight_ns += weight_ns;
	thread->cpu_ns += added->cpu_ns;
	thread->count++;
	table->weight_ns += weight_ns;
	if (table->sample_count == 0 || began_ns < table->start_ns)
		table->start_ns = began_ns;
	if (table->stacks[added->stack].depth > table->depth)
		table->depth = table->stacks[added->stack].depth;
	table->sample_count++;
}

static int add_sample(void *context, const struct sample *sample)
{
	struct builder *builder = context;
	struct sample_table *table = builder->table;
	uint32_t thread = 0, stack = 0;
	int error = find_thread(builder, sample, &thread);

	if (!error)
		error = find_stack(builder, sample, &stack);
	if (!error)
		error = make_room((void **)&table->samples, table->sample_count,
				  sizeof(*table->samples));
	if (!error)
		error = make_room((void **)&builder->sample_threads, table->sample_count,
				  sizeof(*builder->sample_threads));
	if (error)
		return error;
	builder->sample_threads[table->sample_count] = thread;
	table->samples[table->sample_count] = (struct table_sample) {
		.time_ns = sample->time_ns,
		.cpu_ns = sample->cpu_ns,
		.wall_ns = sample->wall_ns,
		.phase = sample->phase,
		.wait = sample->wait,
		.stack = stack,
		.thread_state = (uint16_t)sample->thread_state,
		.vm_state = (uint16_t)sample->vm_state,
	};
	count_sample(table, &table->threads[thread], sample, &table->samples[table->sample_count]);
	return 0;
}

static int compare_threads(const void *a, const void *b)
{
	const struct table_thread *left = a, *right = b;

	if (left->weight_ns != right->weight_ns)
		return left->weight_ns < right->weight_ns ? 1 : -1;
	if (left->pid != right->pid)
		return left->pid < right->pid ? -1 : 1;
	return left->tid < right->tid ? -1 : left->tid > right->tid;
}

/* Bring each thread's samples together, without changing their order, and the heaviest thread to the front. */
static int sort_by_thread(struct builder *builder)
{
	struct sample_table *table = builder->table;
	struct table_sample *sorted;
	size_t *next;
	size_t first = 0;

	if (table->sample_count == 0)
		return 0;
	sorted = reallocarray(NULL, table->sample_count, sizeof(*sorted));
	next = reallocarray(NULL, table->thread_count, sizeof(*next));
	if (!sorted || !next) {
		free(sorted);
		free(next);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < table->thread_count; i++) {
		table->threads[i].first = next[i] = first;
		first += table->threads[i].count;
	}
	for (size_t i = 0; i < table->sample_count; i++)
		sorted[next[builder->sample_threads[i]]++] = table->samples[i];
	qsort(table->threads, table->thread_count, sizeof(*table->threads), compare_threads);
	free(table->samples);
	table->samples = sorted;
	free(next);
	return 0;
}

static void free_builder(struct builder *builder)
{
	struct entry *entry, *next;

	for (int list = 0; list < LIST_COUNT; list++) {
		HASH_ITER(hh, builder->entries[list], entry, next) {
			HASH_DEL(builder->entries[list], entry);
			free(entry);
		}
	}
	free(builder->sample_threads);
	free(builder->recent);
}

int sample_table_read(struct sample_source *source, enum profile_weight weight,
		      struct sample_table **ret_table)
{
	struct sample_table *table = calloc(1, sizeof(*table));
	struct builder builder = { .table = table };
	int error;

	if (!table)
		return -ENOMEM;
	table->weight = weight;
	error = add_empty_stack(&builder);
	builder.recent = calloc(RECENT, sizeof(*builder.recent));
	if (!builder.recent)
		error = -ENOMEM;
	if (!error)
		error = sample_source_each(source, add_sample, &builder);
	if (!error)
		error = sort_by_thread(&builder);
	free_builder(&builder);
	if (error) {
		sample_table_free(table);
		return error;
	}
	*ret_table = table;
	return 0;
}

void sample_table_free(struct sample_table *table)
{
	if (!table)
		return;
	free(table->functions);
	free(table->frames);
	free(table->stacks);
	free(table->threads);
	free(table->samples);
	free(table);
}

uint32_t sample_table_frames(const struct sample_table *table, uint32_t stack, uint32_t *ret_frames)
{
	uint32_t depth = table->stacks[stack].depth;

	for (uint32_t i = depth; i-- > 0; stack = table->stacks[stack].parent)
		ret_frames[i] = table->stacks[stack].frame;
	return depth;
}

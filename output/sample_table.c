#include "output/sample_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/*
 * Where things are while the table is made. Keys have no padding: they are
 * hashed and compared as bytes.
 */
struct function_entry {
	const struct function *key;
	uint32_t index;
	UT_hash_handle hh;
};

struct frame_key {
	uint32_t function;
	uint32_t line;
	uint32_t compiled;
};

struct frame_entry {
	struct frame_key key;
	uint32_t index;
	UT_hash_handle hh;
};

struct stack_key {
	uint32_t parent;
	uint32_t frame;
};

struct stack_entry {
	struct stack_key key;
	uint32_t index;
	UT_hash_handle hh;
};

struct thread_key {
	pid_t pid;
	pid_t tid;
};

struct thread_entry {
	struct thread_key key;
	uint32_t index;
	UT_hash_handle hh;
};

struct builder {
	struct sample_table *table;
	uint32_t *sample_threads;	/* of each sample */
	struct function_entry *functions;
	struct frame_entry *frames;
	struct stack_entry *stacks;
	struct thread_entry *threads;
};

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

/* Each find_ function sets the index of what it looks up, which it adds if it is new. 0 or a negative errno. */

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (free(element), error = -ENOMEM)

static int find_function(struct builder *builder, const struct function *function,
			 uint32_t *ret_index)
{
	struct sample_table *table = builder->table;
	struct function_entry *entry;
	int error;

	HASH_FIND_PTR(builder->functions, &function, entry);
	if (!entry) {
		error = make_room((void **)&table->functions, table->function_count,
				  sizeof(*table->functions));
		if (error)
			return error;
		entry = calloc(1, sizeof(*entry));
		if (!entry)
			return -ENOMEM;
		entry->key = function;
		entry->index = table->function_count;
		HASH_ADD_PTR(builder->functions, key, entry);
		if (error)
			return error;
		table->functions[table->function_count++] = function;
	}
	*ret_index = entry->index;
	return 0;
}

static int find_frame(struct builder *builder, const struct frame *frame, uint32_t *ret_index)
{
	struct sample_table *table = builder->table;
	struct frame_key key = { .line = frame->line, .compiled = frame->compiled };
	struct frame_entry *entry;
	int error = find_function(builder, frame->function, &key.function);

	if (error)
		return error;
	HASH_FIND(hh, builder->frames, &key, sizeof(key), entry);
	if (!entry) {
		error = make_room((void **)&table->frames, table->frame_count,
				  sizeof(*table->frames));
		if (error)
			return error;
		entry = calloc(1, sizeof(*entry));
		if (!entry)
			return -ENOMEM;
		entry->key = key;
		entry->index = table->frame_count;
		HASH_ADD(hh, builder->frames, key, sizeof(key), entry);
		if (error)
			return error;
		table->frames[table->frame_count++] = (struct table_frame) {
			.function = key.function,
			.line = key.line,
			.compiled = key.compiled,
		};
	}
	*ret_index = entry->index;
	return 0;
}

static int find_child(struct builder *builder, uint32_t parent, uint32_t frame, uint32_t *ret_index)
{
	struct sample_table *table = builder->table;
	struct stack_key key = { .parent = parent, .frame = frame };
	struct stack_entry *entry;
	int error;

	HASH_FIND(hh, builder->stacks, &key, sizeof(key), entry);
	if (!entry) {
		error = make_room((void **)&table->stacks, table->stack_count,
				  sizeof(*table->stacks));
		if (error)
			return error;
		entry = calloc(1, sizeof(*entry));
		if (!entry)
			return -ENOMEM;
		entry->key = key;
		entry->index = table->stack_count;
		HASH_ADD(hh, builder->stacks, key, sizeof(key), entry);
		if (error)
			return error;
		table->stacks[table->stack_count++] = (struct table_stack) {
			.parent = parent,
			.frame = frame,
			.depth = table->stacks[parent].depth + 1,
		};
	}
	*ret_index = entry->index;
	return 0;
}

static int find_stack(struct builder *builder, const struct sample *sample, uint32_t *ret_index)
{
	uint32_t stack = 0;

	for (size_t i = sample->frame_count; i-- > 0;) {
		uint32_t frame;
		int error = find_frame(builder, &sample->frames[i], &frame);

		if (!error)
			error = find_child(builder, stack, frame, &stack);
		if (error)
			return error;
	}
	*ret_index = stack;
	return 0;
}

static int find_thread(struct builder *builder, const struct sample *sample, uint32_t *ret_index)
{
	struct sample_table *table = builder->table;
	struct thread_key key = { .pid = sample->pid, .tid = sample->tid };
	struct thread_entry *entry;
	int error;

	HASH_FIND(hh, builder->threads, &key, sizeof(key), entry);
	if (!entry) {
		error = make_room((void **)&table->threads, table->thread_count,
				  sizeof(*table->threads));
		if (error)
			return error;
		entry = calloc(1, sizeof(*entry));
		if (!entry)
			return -ENOMEM;
		entry->key = key;
		entry->index = table->thread_count;
		HASH_ADD(hh, builder->threads, key, sizeof(key), entry);
		if (error)
			return error;
		table->threads[table->thread_count++] = (struct table_thread) {
			.pid = key.pid,
			.tid = key.tid,
		};
	}
	*ret_index = entry->index;
	return 0;
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

static int add_sample(struct builder *builder, const struct sample *sample)
{
	struct sample_table *table = builder->table;
	uint32_t thread, stack;
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

static int read_samples(struct builder *builder, struct sample_source *source)
{
	struct sample sample;
	int result = source->rewind(source);

	while (result == 0) {
		result = source->next(source, &sample);
		if (result <= 0)
			return result;
		result = add_sample(builder, &sample);
	}
	return result;
}

static void free_builder(struct builder *builder)
{
	struct function_entry *function, *next_function;
	struct frame_entry *frame, *next_frame;
	struct stack_entry *stack, *next_stack;
	struct thread_entry *thread, *next_thread;

	HASH_ITER(hh, builder->functions, function, next_function) {
		HASH_DEL(builder->functions, function);
		free(function);
	}
	HASH_ITER(hh, builder->frames, frame, next_frame) {
		HASH_DEL(builder->frames, frame);
		free(frame);
	}
	HASH_ITER(hh, builder->stacks, stack, next_stack) {
		HASH_DEL(builder->stacks, stack);
		free(stack);
	}
	HASH_ITER(hh, builder->threads, thread, next_thread) {
		HASH_DEL(builder->threads, thread);
		free(thread);
	}
	free(builder->sample_threads);
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
	table->stacks = calloc(1, sizeof(*table->stacks));
	table->stack_count = 1;
	error = table->stacks ? read_samples(&builder, source) : -ENOMEM;
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

/* SPDX-License-Identifier: MIT */
#include "output/views/sample_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/recording/stack_cache.h"

/* The key of an element in a list of the table. It has no padding, because it is compared as bytes. */
struct key {
	uint64_t first;
	uint64_t second;
	uint64_t third;
};

/* A fast hash: the lookup of each sample would take most of the time with another. */
#include "memory/word_hash.h"

struct entry {
	struct key key;
	uint32_t index;
	UT_hash_handle hh;
};

/* What the table knows about a recent stack of the source, because finding one frame by frame takes time. */
struct recent {
	uint32_t stack;
	uint32_t sum; /* the last sum with that stack */
};

enum list { FUNCTIONS, FRAMES, STACKS, THREADS, SITES, REQUESTS, SUMS, LIST_COUNT };

struct table_index {
	struct entry *entries[LIST_COUNT];
	bool complete;            /* the source has been read: new elements are an error */
	uint32_t *ranks;          /* index in threads of each thread, in the order of appearance */
	struct stack_cache cache; /* recent stacks, without their frames */
	struct recent *recent;    /* one for each place of the cache, and one for stacks without a place */
};

static uint64_t pair(uint32_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}

int sample_table_changed(void)
{
	errno = EIO;
	return -EIO;
}

/*
 * Find the index of the element with this key. 0 if known, 1 if it is new and
 * gets the next index, -ENOMEM, or -EIO if it is new in a complete table.
 */
static int look_up(struct table_index *index, enum list list, struct key key, uint32_t *ret_index)
{
	struct entry *entry;

	HASH_FIND(hh, index->entries[list], &key, sizeof(key), entry);
	if (entry) {
		*ret_index = entry->index;
		return 0;
	}
	if (index->complete)
		return sample_table_changed();
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	entry->key = key;
	entry->index = HASH_COUNT(index->entries[list]);
	HASH_ADD(hh, index->entries[list], key, sizeof(entry->key), entry);
	if (!hash_added(&entry->hh)) {
		free(entry);
		return -ENOMEM;
	}
	*ret_index = entry->index;
	return 1;
}

/*
 * Make room for one more element after count elements. The array doubles
 * whenever count is a power of two. 0, -ENOMEM or -EOVERFLOW.
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

/*
 * Each find_ function sets the index of an element, and adds the element if it is new. 0 or a negative errno.
 */

static int find_function(struct sample_table *table, const struct function *function, uint32_t *ret_index)
{
	int result = look_up(table->index, FUNCTIONS, (struct key){ .first = (uintptr_t)function },
			     ret_index);

	if (result <= 0)
		return result;
	result = make_room((void **)&table->functions, table->function_count,
			   sizeof(const struct function *));
	if (result < 0)
		return result;
	table->functions[table->function_count++] = function;
	return 0;
}

static int find_frame(struct sample_table *table, const struct frame *frame, uint32_t *ret_index)
{
	uint32_t function;
	int result = find_function(table, frame->function, &function);

	if (result == 0)
		result = look_up(table->index, FRAMES,
				 (struct key){ pair(function, frame->line), frame->compiled, 0 }, ret_index);
	if (result <= 0)
		return result;
	result = make_room((void **)&table->frames, table->frame_count, sizeof(*table->frames));
	if (result < 0)
		return result;
	table->frames[table->frame_count++] = (struct table_frame){
		.function = function,
		.line = frame->line,
		.compiled = frame->compiled,
	};
	return 0;
}

static int find_child(struct sample_table *table, uint32_t parent, uint32_t frame, uint32_t *ret_index)
{
	int result = look_up(table->index, STACKS, (struct key){ .first = pair(parent, frame) }, ret_index);

	if (result <= 0)
		return result;
	result = make_room((void **)&table->stacks, table->stack_count, sizeof(*table->stacks));
	if (result < 0)
		return result;
	table->stacks[table->stack_count++] = (struct table_stack){
		.parent = parent,
		.frame = frame,
		.depth = table->stacks[parent].depth + 1,
	};
	return 0;
}

/* Sets *ret_recent to the stack's place in recent; stacks without a number share the last one. */
static int find_stack(struct sample_table *table, const struct sample *sample, struct recent **ret_recent)
{
	struct stack_cache *cache = &table->index->cache;
	size_t place = sample->stack ? stack_cache_place(cache, sample->stack) : STACK_CACHE_PLACES;
	uint32_t stack = 0;

	*ret_recent = &table->index->recent[place];
	if (sample->stack && cache->places[place].number == sample->stack)
		return 0;
	for (size_t i = sample->frame_count; i-- > 0;) {
		uint32_t frame;
		int error = find_frame(table, &sample->frames[i], &frame);

		if (!error)
			error = find_child(table, stack, frame, &stack);
		if (error)
			return error;
	}
	**ret_recent = (struct recent){ .stack = stack };
	if (sample->stack)
		stack_cache_take(cache, place, sample->stack, 0);
	return 0;
}

static int find_thread(struct sample_table *table, const struct sample *sample, uint32_t *ret_index)
{
	struct key key = { .first = pair((uint32_t)sample->pid, (uint32_t)sample->tid) };
	int result = look_up(table->index, THREADS, key, ret_index);

	if (result <= 0)
		return result;
	result = make_room((void **)&table->threads, table->thread_count, sizeof(*table->threads));
	if (result < 0)
		return result;
	table->threads[table->thread_count++] = (struct table_thread){
		.pid = sample->pid,
		.tid = sample->tid,
	};
	return 0;
}

/* A site is a method and a host. */
static int find_request(struct sample_table *table, const struct sample_request *request, uint32_t *ret_index)
{
	uint32_t site;
	int result = look_up(table->index, SITES,
			     (struct key){ (uintptr_t)request->method, (uintptr_t)request->host, 0 }, &site);

	if (result >= 0)
		result = look_up(table->index, REQUESTS,
				 (struct key){ (uintptr_t)request->route, pair(site, request->status),
					       request->is_subrequest },
				 ret_index);
	if (result <= 0)
		return result;
	result = make_room((void **)&table->requests, table->request_count, sizeof(*table->requests));
	if (result < 0)
		return result;
	table->requests[table->request_count++] = (struct table_request){
		.route = request->route,
		.method = request->method,
		.host = request->host,
		.status = request->status,
		.is_subrequest = request->is_subrequest,
	};
	return 0;
}

static int compare_phases(const char *left, const char *right)
{
	return left && right ? strcmp(left, right) : (left != NULL) - (right != NULL);
}

static int compare_kinds(const struct table_kind *left, const struct table_kind *right)
{
	if (left->thread != right->thread)
		return left->thread < right->thread ? -1 : 1;
	if (left->stack != right->stack)
		return left->stack < right->stack ? -1 : 1;
	if (left->thread_state != right->thread_state)
		return left->thread_state < right->thread_state ? -1 : 1;
	if (left->vm_state != right->vm_state)
		return left->vm_state < right->vm_state ? -1 : 1;
	if (left->gc_phase != right->gc_phase)
		return left->gc_phase < right->gc_phase ? -1 : 1;
	if (left->request != right->request)
		return left->request < right->request ? -1 : 1;
	return compare_phases(left->phase, right->phase);
}

static int find_sum(struct sample_table *table, const struct table_kind *kind, uint32_t *ret_index)
{
	struct key key = {
		pair(kind->thread, kind->stack),
		(uintptr_t)kind->phase,
		pair(kind->request,
		     (uint32_t)kind->thread_state << 16 | (uint32_t)kind->vm_state << 8 | kind->gc_phase),
	};
	int result = look_up(table->index, SUMS, key, ret_index);

	if (result <= 0)
		return result;
	result = make_room((void **)&table->sums, table->sum_count, sizeof(*table->sums));
	if (result < 0)
		return result;
	table->sums[table->sum_count++] = (struct table_sum){ .kind = *kind };
	return 0;
}

/* Add the empty stack, with a key that no other stack has. */
static int add_empty_stack(struct sample_table *table)
{
	uint32_t index;
	int result = look_up(table->index, STACKS, (struct key){ .second = 1 }, &index);

	if (result < 0)
		return result;
	table->stacks = calloc(1, sizeof(*table->stacks));
	table->stack_count = 1;
	return table->stacks ? 0 : -ENOMEM;
}

/* The kind of a sample; its thread is still an index in the order of appearance. */
static int find_kind(struct sample_table *table, const struct sample *sample, struct table_kind *ret_kind,
		     struct recent **ret_recent)
{
	uint32_t thread = 0, request = 0;
	int error = find_thread(table, sample, &thread);

	if (!error)
		error = find_request(table, &sample->request, &request);
	if (!error)
		error = find_stack(table, sample, ret_recent);
	if (error)
		return error;
	*ret_kind = (struct table_kind){
		.phase = sample->phase,
		.thread = thread,
		.request = request,
		.stack = (*ret_recent)->stack,
		.thread_state = (uint16_t)sample->thread_state,
		.vm_state = (uint8_t)sample->vm_state,
		.gc_phase = (uint8_t)sample->gc.phase,
	};
	return 0;
}

/*---- Reading ----*/

uint64_t sample_table_weight(const struct sample_table *table, const struct amounts *amounts)
{
	return weight_in(table->weight, amounts);
}

uint64_t sample_table_origin(const struct sample_table *table, const struct session *session)
{
	/* In a sum of recordings, the session's start is 0 or of another machine's clock. */
	return session->start_ns && session->start_ns <= table->first_ns ? session->start_ns
									 : table->start_ns;
}

static void count_sample(struct sample_table *table, const struct sample *sample,
			 const struct table_kind *kind, struct table_sum *sum)
{
	struct table_thread *thread = &table->threads[kind->thread];
	const struct amounts amounts = amounts_of(sample);
	uint64_t weight = sample_table_weight(table, &amounts);
	uint64_t length_ns = weight_is_time(table->weight) ? weight : 0;
	uint64_t began_ns = sample->time_ns > length_ns ? sample->time_ns - length_ns : 0;

	if (sample->process_name)
		thread->process_name = sample->process_name;
	if (sample->thread_name)
		thread->thread_name = sample->thread_name;
	thread->weight += weight;
	thread->cpu_ns += sample->cpu_ns;
	thread->sample_count++;
	sum->count++;
	amounts_add(&sum->amounts, &amounts);
	table->weight_sum += weight;
	if (table->sample_count == 0 || began_ns < table->start_ns)
		table->start_ns = began_ns;
	if (table->sample_count == 0 || sample->time_ns < table->first_ns)
		table->first_ns = sample->time_ns;
	if (table->stacks[kind->stack].depth > table->depth)
		table->depth = table->stacks[kind->stack].depth;
	table->sample_count++;
}

static bool is_sum_of(const struct sample_table *table, uint32_t sum, const struct table_kind *kind)
{
	const struct table_kind *known = sum < table->sum_count ? &table->sums[sum].kind : NULL;

	return known && known->phase == kind->phase && known->thread == kind->thread &&
	       known->stack == kind->stack && known->request == kind->request &&
	       known->thread_state == kind->thread_state && known->vm_state == kind->vm_state &&
	       known->gc_phase == kind->gc_phase;
}

static int add_sample(void *context, const struct sample *sample)
{
	struct sample_table *table = context;
	struct table_kind kind;
	struct recent *recent;
	int error = find_kind(table, sample, &kind, &recent);

	if (!error && !is_sum_of(table, recent->sum, &kind))
		error = find_sum(table, &kind, &recent->sum);
	if (!error)
		count_sample(table, sample, &kind, &table->sums[recent->sum]);
	return error;
}

static int compare_threads(const void *a, const void *b)
{
	const struct table_thread *left = a, *right = b;

	if (left->weight != right->weight)
		return left->weight < right->weight ? 1 : -1;
	if (left->pid != right->pid)
		return left->pid < right->pid ? -1 : 1;
	return left->tid < right->tid ? -1 : left->tid > right->tid;
}

/* Sort threads by weight, the heaviest first. 0 or -ENOMEM. */
static int sort_threads(struct sample_table *table)
{
	uint32_t *ranks = calloc((size_t)table->thread_count + 1, sizeof(*ranks));

	if (!ranks)
		return -ENOMEM;
	table->index->ranks = ranks;
	if (table->thread_count == 0)
		return 0;
	qsort(table->threads, table->thread_count, sizeof(*table->threads), compare_threads);
	for (uint32_t i = 0; i < table->thread_count; i++) {
		const struct table_thread *thread = &table->threads[i];
		struct key key = { .first = pair((uint32_t)thread->pid, (uint32_t)thread->tid) };
		uint32_t index = 0;

		look_up(table->index, THREADS, key, &index);
		ranks[index] = i;
	}
	return 0;
}

static int compare_sums(const void *a, const void *b)
{
	const struct table_sum *left = a, *right = b;

	return compare_kinds(&left->kind, &right->kind);
}

/* Sort sums and merge equal ones: in a sum of recordings, equal phases may be different pointers. */
static void sort_sums(struct sample_table *table)
{
	size_t count = 0;

	for (size_t i = 0; i < table->sum_count; i++)
		table->sums[i].kind.thread = table->index->ranks[table->sums[i].kind.thread];
	if (table->sum_count)
		qsort(table->sums, table->sum_count, sizeof(*table->sums), compare_sums);
	for (size_t i = 0; i < table->sum_count; i++) {
		const struct table_sum *sum = &table->sums[i];
		struct table_sum *last = count ? &table->sums[count - 1] : NULL;

		if (last && compare_sums(last, sum) == 0) {
			last->count += sum->count;
			amounts_add(&last->amounts, &sum->amounts);
		} else {
			table->sums[count++] = *sum;
		}
	}
	table->sum_count = count;
	for (size_t i = count; i-- > 0;) {
		struct table_thread *thread = &table->threads[table->sums[i].kind.thread];

		thread->first_sum = i;
		thread->sum_count++;
	}
}

static void free_list(struct table_index *index, enum list list)
{
	HASH_FREE_ALL(index->entries[list]);
}

static void free_index(struct table_index *index)
{
	for (int list = 0; index && list < LIST_COUNT; list++)
		free_list(index, (enum list)list);
	if (index) {
		stack_cache_clear(&index->cache);
		free(index->ranks);
		free(index->recent);
	}
	free(index);
}

static struct table_index *new_index(void)
{
	struct table_index *index = calloc(1, sizeof(*index));

	if (!index)
		return NULL;
	index->recent = calloc(STACK_CACHE_PLACES + 1, sizeof(*index->recent));
	if (index->recent && stack_cache_init(&index->cache) == 0)
		return index;
	free_index(index);
	return NULL;
}

int sample_table_read(struct sample_source *source, enum weight_kind weight, struct sample_table **ret_table)
{
	struct sample_table *table = calloc(1, sizeof(*table));
	int error;

	if (!table)
		return -ENOMEM;
	table->source = source;
	table->weight = weight;
	table->index = new_index();
	error = table->index ? add_empty_stack(table) : -ENOMEM;
	if (!error)
		error = sample_source_each(source, add_sample, table);
	if (!error)
		error = sort_threads(table);
	if (error) {
		sample_table_free(table);
		return error;
	}
	sort_sums(table);
	free_list(table->index, SUMS);
	table->index->complete = true;
	*ret_table = table;
	return 0;
}

/*---- Reading again ----*/

struct rereading {
	struct sample_table *table;
	sample_table_take *take;
	void *context;
	size_t count;
};

static int read_again(void *context, const struct sample *sample)
{
	struct rereading *rereading = context;
	struct sample_table *table = rereading->table;
	struct table_sample known = {
		.wait = sample->wait,
		.heap_bytes = sample->gc.heap_bytes,
		.allocated_bytes = sample->gc.allocated_bytes,
		.step_ns = sample->gc.step_ns,
		.connection = sample->request.connection,
		.number = sample->request.number,
		.age_ns = sample->request.age_ns,
		.time_ns = sample->time_ns,
		.amounts = amounts_of(sample),
	};
	struct recent *recent;
	int error = find_kind(table, sample, &known.kind, &recent);

	if (error)
		return error;
	known.kind.thread = table->index->ranks[known.kind.thread];
	rereading->count++;
	return rereading->take(rereading->context, &known);
}

int sample_table_each(struct sample_table *table, sample_table_take *take, void *context)
{
	struct rereading rereading = { .table = table, .take = take, .context = context };
	int error;

	stack_cache_forget(&table->index->cache);
	error = sample_source_each(table->source, read_again, &rereading);
	return !error && rereading.count != table->sample_count ? sample_table_changed() : error;
}

void sample_table_free(struct sample_table *table)
{
	if (!table)
		return;
	free(table->functions);
	free(table->frames);
	free(table->stacks);
	free(table->threads);
	free(table->requests);
	free(table->sums);
	free_index(table->index);
	free(table);
}

uint32_t sample_table_frames(const struct sample_table *table, uint32_t stack, uint32_t *ret_frames)
{
	uint32_t depth = table->stacks[stack].depth;

	for (uint32_t i = depth; i-- > 0; stack = table->stacks[stack].parent)
		ret_frames[i] = table->stacks[stack].frame;
	return depth;
}

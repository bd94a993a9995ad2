/* SPDX-License-Identifier: MIT */
#include "src/sampler/sampler_allocations.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "output/sample/lost.h"
#include "src/linux/clocks/clock.h"
#include "src/allocations/allocation_series.h"
#include "src/allocations/allocation_shares.h"
#include "unwind/allocation/allocated.h"
#include "unwind/allocation/allocation_text.h"
#include "unwind/values/live_ctypes.h"

enum {
	VMS_MAX = 64, /* of one process, at a time */
	FILM_EVERY_NS = 4 * 1000 * 1000,
	FILM_NS_MAX = 100 *
		      1000, /* it takes 15 us; in a longer one, small allocations may look like a large one */
	SPAN_EVERY_NS = 5 * 1000 * 1000,
	SPAN_AGAIN_NS = 1000 * 1000, /* after one that failed: to await one takes a sixth of that */
	SPAN_NS = 25 * 1000,         /* short beside a cycle of the smallest heap */
	SPAN_NS_MAX = 2 * SPAN_NS,
	SPAN_VMS_MAX = 8,     /* to read the counters of each takes a third of a microsecond more */
	WARM_NS = 200 * 1000, /* after a hold, maybe on another CPU, a thread runs slower for so long */
	SERIES_EVERY = 64,    /* a series of looks costs ljspy its whole time: one in so much of all time */
	WINDOW_EVERY_NS = 20 * 1000 * 1000, /* a window costs ljspy up to half a millisecond */
	WINDOW_NS = 100 * 1000,             /* longer than it takes to unwind the thread */
	WINDOW_NS_MAX = 1000 * 1000,
	DIVIDE_EVERY_NS = 500 * 1000 * 1000,
	IDLE_NS = 2 * DIVIDE_EVERY_NS,
	KEPT_MAX = 4096, /* samples, between two divisions */
};

struct kept_sample {
	struct sample sample;
	struct frame *frames;
	char *texts[4]; /* of the request, and the thread's name */
};

struct vm_allocations {
	uint64_t g, serial;                /* of its global_State */
	const struct global_state *global; /* NULL, but from allocations_note() to the end of that look */
	struct allocation_counters last;   /* at the last look */
	uint64_t last_ns;                  /* when that was */
	/* At the look that bytes were counted up to, and the target's CPU time then: both go together. */
	bool has_counted;
	struct allocation_counters counted;
	uint64_t counted_cpu_ns;
	bool has_marked;             /* a marking has ended since its last sample */
	uint64_t window_ns, film_ns; /* when the next ones are due */
	bool has_window;             /* one was due at the last look */
	uint64_t userdata;           /* with has_window: the newest one then */
	uint64_t span_ns;            /* when it was last one of those of which one was tried */
	uint64_t series_ns;          /* when its last series was */
	struct allocation_shares *shares;
	struct kept_sample *kept;
	size_t kept_count, kept_size;
	struct kept_sample *last_of; /* the last sample of each class (allocation_shares_class()), or none */
};

struct allocations {
	struct vm_allocations vms[VMS_MAX];
	size_t vm_count;
	bool has_unseen;        /* there were more VMs since the last division */
	uint64_t divide_ns;     /* when the next division is due */
	bool has_looked;        /* at any VM */
	uint64_t looked_cpu_ns; /* CPU time at the last look, or at the beginning */
	pid_t pid;              /* the target's */
	const char *process_name;
	struct listed_object objects[LISTED_OBJECTS_MAX];
};

struct allocations *allocations_new(pid_t pid, const char *process_name, uint64_t cpu_ns)
{
	struct allocations *allocations = calloc(1, sizeof(*allocations));

	if (!allocations)
		return NULL;
	allocations->looked_cpu_ns = cpu_ns;
	allocations->pid = pid;
	allocations->process_name = process_name;
	return allocations;
}

static void free_kept(struct kept_sample *kept)
{
	free(kept->frames);
	for (size_t i = 0; i < sizeof(kept->texts) / sizeof(kept->texts[0]); i++)
		free(kept->texts[i]);
}

static void free_vm(struct vm_allocations *vm)
{
	for (size_t k = 0; k < vm->kept_count; k++)
		free_kept(&vm->kept[k]);
	free(vm->kept);
	for (size_t k = 0; k < ALLOCATION_CLASSES_MAX; k++)
		free_kept(&vm->last_of[k]);
	free(vm->last_of);
	allocation_shares_free(vm->shares);
}

void allocations_open(struct allocations *allocations, uint64_t cpu_ns)
{
	if (!allocations->has_looked)
		allocations->looked_cpu_ns = cpu_ns;
}

void allocations_free(struct allocations *allocations)
{
	if (!allocations)
		return;
	for (size_t i = 0; i < allocations->vm_count; i++)
		free_vm(&allocations->vms[i]);
	free(allocations);
}

/*---- Looks ----*/

static struct vm_allocations *find_vm(struct allocations *allocations, const struct global_state *global)
{
	struct vm_allocations *vm;

	for (size_t i = 0; i < allocations->vm_count; i++)
		if (allocations->vms[i].g == global->g && allocations->vms[i].serial == global->serial)
			return &allocations->vms[i];
	if (allocations->vm_count == VMS_MAX)
		return NULL;
	vm = &allocations->vms[allocations->vm_count];
	*vm = (struct vm_allocations){ .g = global->g, .serial = global->serial };
	vm->shares = allocation_shares_new();
	vm->last_of = calloc(ALLOCATION_CLASSES_MAX, sizeof(*vm->last_of));
	if (!vm->shares || !vm->last_of) {
		allocation_shares_free(vm->shares);
		free(vm->last_of);
		return NULL;
	}
	allocations->vm_count++;
	return vm;
}

/* The global_State may be gone at the next one. */
static void end_look(struct allocations *allocations)
{
	for (size_t i = 0; i < allocations->vm_count; i++)
		allocations->vms[i].global = NULL;
}

void allocations_note(struct allocations *allocations, struct lua_process *process, bool is_held)
{
	end_look(allocations);
	for (size_t i = 0; i < lua_process_captured_count(process); i++) {
		const struct global_state *global = lua_process_captured(process, i);
		struct vm_allocations *vm = find_vm(allocations, global);
		struct allocation_counters counters;

		allocations->has_unseen |= !vm;
		if (!vm || !allocation_counters_read(lua_process_copy(process), global, &counters))
			continue;
		/* Only the allocator's callers need it, and these are native code. */
		if (is_held && lua_process_in_native(process))
			allocation_counters_read_newest(lua_process_memory(process), global, &counters);
		if (vm->global == global)
			allocation_counters_follow(&vm->last, &counters);
		vm->global = global;
		vm->last = counters;
		vm->last_ns = clock_now_ns(CLOCK_MONOTONIC);
		vm->has_window = vm->last_ns >= vm->window_ns;
		if (vm->has_window)
			vm->userdata = allocated_newest_userdata(lua_process_copy(process),
								 lua_process_memory(process), global);
	}
}

/* How often it has had a CPU since it was held; -1 if that is unknown. */
static int count_runs(const struct allocating_thread *thread)
{
	const uint64_t held = thread->thread->runs;
	uint64_t runs;

	return held && thread_count_runs(thread->threads, thread->thread, &runs) == 0 && runs - held < INT_MAX
		       ? (int)(runs - held)
		       : -1;
}

static void sleep_until(uint64_t time_ns)
{
	const struct timespec time = { (time_t)(time_ns / NS_PER_SECOND), (long)(time_ns % NS_PER_SECOND) };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

static uint64_t window_end_ns(const struct allocating_thread *thread)
{
	return thread->thread->tracee->resumed_ns + WINDOW_NS;
}

/* At a random moment between two looks: the thread is as slow in such a part of the spans as of all time. */
static uint64_t span_begin_ns(const struct allocating_thread *thread)
{
	return thread->thread->tracee->resumed_ns + (thread->wait_ns < WARM_NS ? thread->wait_ns : WARM_NS);
}

/*
 * Count the objects made since the thread was held. The count begins and ends whatever the thread does: as
 * long as it takes to unwind would be longer where it runs C code. False when the thread has had no CPU
 * since.
 */
static bool take_window(struct allocations *allocations, struct vm_allocations *vm,
			struct lua_process *process, const struct allocating_thread *thread)
{
	struct memory *memory = lua_process_memory(process);
	struct allocation_counters now;
	struct allocated allocated;
	size_t count = 0;
	uint64_t userdata;
	bool is_known;

	sleep_until(window_end_ns(thread));
	if (count_runs(thread) == 0)
		return false;
	userdata = allocated_newest_userdata(memory, memory, vm->global);
	if (!allocation_counters_read(memory, vm->global, &now))
		return true;
	/* ljspy may have lost its CPU meanwhile. */
	if (clock_now_ns(CLOCK_MONOTONIC) - vm->last_ns > WINDOW_NS_MAX)
		return true;
	allocated = allocated_between(&vm->last, &now);
	is_known = allocated_objects(memory, vm->global, now.root, vm->last.root, allocations->objects,
				     &count) &&
		   allocated_userdata(memory, vm->global, userdata, vm->userdata, allocations->objects,
				      &count);
	allocation_shares_add_window(vm->shares, &allocated, is_known ? allocations->objects : NULL, count);
	return true;
}

/*
 * What VMs have allocated in one short time. If each had a time of its own, which may be one in which another
 * VM runs, their speeds would add up to that of the process by chance only.
 */
struct span {
	struct vm_allocations *vms[SPAN_VMS_MAX];   /* NULL: it cannot be read, or was closed meanwhile */
	struct allocation_look looks[SPAN_VMS_MAX]; /* the last ones */
	struct span_piece pieces[SPAN_VMS_MAX][SPAN_PIECES_MAX];
	size_t vm_count, piece_count;
};

/* The VM of this look whose last span was longest ago. */
static struct vm_allocations *next_with_span(struct allocations *allocations)
{
	struct vm_allocations *next = NULL;

	for (size_t i = 0; i < allocations->vm_count; i++) {
		struct vm_allocations *vm = &allocations->vms[i];

		if (vm->global && (!next || vm->span_ns < next->span_ns))
			next = vm;
	}
	return next;
}

/* False if no VM can be read any more. */
static bool look_at_vms(struct span *span, struct memory *memory)
{
	bool is_read = false;

	allocation_looks_read(memory, span->looks, span->vm_count);
	for (size_t i = 0; i < span->vm_count; i++) {
		if (!span->looks[i].is_read)
			span->vms[i] = NULL;
		is_read |= span->vms[i] != NULL;
	}
	return is_read;
}

/* Of all VMs of this look or, of many, of some in turn. False if none can be read. */
static bool begin_span(struct allocations *allocations, struct memory *memory, struct span *ret_span)
{
	const uint64_t now = clock_now_ns(CLOCK_MONOTONIC);
	struct vm_allocations *vm;

	ret_span->vm_count = ret_span->piece_count = 0;
	while (ret_span->vm_count < SPAN_VMS_MAX && (vm = next_with_span(allocations)) &&
	       vm->span_ns != now) {
		vm->span_ns = now;
		ret_span->looks[ret_span->vm_count].global = vm->global;
		ret_span->vms[ret_span->vm_count++] = vm;
	}
	return look_at_vms(ret_span, memory);
}

/* The piece up to now: its time is told by end_piece(). */
static void read_piece(struct span *span, struct memory *memory)
{
	struct allocation_look before[SPAN_VMS_MAX];

	memcpy(before, span->looks, span->vm_count * sizeof(*before));
	look_at_vms(span, memory);
	for (size_t i = 0; i < span->vm_count; i++)
		if (span->vms[i])
			span->pieces[i][span->piece_count].allocated = allocated_in_span(
				&before[i].counters, &span->looks[i].counters);
}

static void end_piece(struct span *span, uint64_t ns)
{
	for (size_t i = 0; i < span->vm_count; i++)
		span->pieces[i][span->piece_count].ns = ns;
	span->piece_count++;
}

static void add_span(const struct span *span, bool is_slowed)
{
	for (size_t i = 0; i < span->vm_count; i++)
		if (span->vms[i])
			allocation_shares_add_span(span->vms[i]->shares, span->pieces[i], span->piece_count,
						   is_slowed);
}

/*
 * Has it not left its CPU since it was held, if it has had one since? As long as it is held, both counts are
 * equal.
 */
static bool has_kept_cpu(const void *context)
{
	const struct allocating_thread *thread = context;
	struct switches switches;

	return thread_count_switches(thread->threads, thread->thread, &switches) == 0 &&
	       switches.count == thread->thread->runs;
}

/*
 * How fast VMs allocate while the thread runs on another CPU. A film would slow it down: each look takes the
 * counters away from that CPU. The CPU time does not tell how long it ran: the kernel brings that up to date
 * only now and then.
 */
static bool take_span_beside(struct allocations *allocations, struct memory *memory,
			     const struct allocating_thread *thread)
{
	struct span span;
	uint64_t before_ns, after_ns, now_ns;

	/* Its speed is to be multiplied by the CPU time of all. */
	if (!thread->is_alone)
		return false;
	sleep_until(span_begin_ns(thread));
	if (!begin_span(allocations, memory, &span))
		return false;
	before_ns = clock_now_ns(CLOCK_MONOTONIC);
	for (after_ns = before_ns; span.piece_count < SPAN_PIECES_MAX; after_ns = now_ns) {
		clock_spin_until(CLOCK_MONOTONIC, after_ns + SPAN_NS / SPAN_PIECES_MAX);
		read_piece(&span, memory);
		now_ns = clock_now_ns(CLOCK_MONOTONIC);
		end_piece(&span, now_ns - after_ns);
	}
	/* Others may want that CPU, too. */
	if (after_ns - before_ns > SPAN_NS_MAX || !has_kept_cpu(thread))
		return false;
	add_span(&span, false);
	return true;
}

static bool has_one_cpu(const struct allocating_thread *thread)
{
	cpu_set_t cpus;

	return sched_getaffinity(thread->thread->tid, sizeof(cpus), &cpus) == 0 && CPU_COUNT(&cpus) == 1;
}

/*
 * The same where both have one CPU: it runs while ljspy sleeps. The CPU time is exact when it does not run,
 * but a good part of it is what the kernel needs to pass the CPU on.
 */
static bool take_span_in_turn(struct allocations *allocations, struct memory *memory,
			      const struct cpu_clock *clock, const struct allocating_thread *thread)
{
	const uint64_t begin_ns = clock_now_ns(CLOCK_MONOTONIC);
	const int runs = count_runs(thread);
	struct span span;
	uint64_t before_ns, after_ns, slept_ns;

	if (cpu_clock_now(clock, &before_ns) != 0 || !begin_span(allocations, memory, &span))
		return false;
	sleep_until(begin_ns + SPAN_NS);
	slept_ns = clock_now_ns(CLOCK_MONOTONIC) - begin_ns;
	read_piece(&span, memory);
	/* In a longer one, there may be two markings, which hide each other. */
	if (cpu_clock_now(clock, &after_ns) != 0 || count_runs(thread) != runs + 1 ||
	    after_ns - before_ns < slept_ns / 2 || after_ns - before_ns > SPAN_NS_MAX)
		return false;
	end_piece(&span, after_ns - before_ns);
	add_span(&span, true);
	return true;
}

/* runs: see count_runs(). False if there was none: others may want the CPU that the thread has. */
static bool take_span(struct allocations *allocations, struct memory *memory, const struct cpu_clock *clock,
		      const struct allocating_thread *thread, int runs)
{
	if (runs == 1)
		return take_span_beside(allocations, memory, thread);
	return runs == 0 && has_one_cpu(thread) && take_span_in_turn(allocations, memory, clock, thread);
}

static void take_film(struct allocations *allocations, struct vm_allocations *vm, struct memory *memory)
{
	struct allocation_counters film[ALLOCATION_FILM_LOOKS];
	const uint64_t begin_ns = clock_now_ns(CLOCK_MONOTONIC);
	size_t count = 0;

	/* ljspy may have lost its CPU meanwhile. */
	if (!allocation_film_read(memory, vm->global, film) ||
	    clock_now_ns(CLOCK_MONOTONIC) - begin_ns > FILM_NS_MAX)
		return;
	if (!allocated_objects(memory, vm->global, film[ALLOCATION_FILM_LOOKS - 1].root, film[0].root,
			       allocations->objects, &count))
		count = 0;
	allocation_shares_add_film(vm->shares, film, allocations->objects, count);
}

static bool is_film_due(const struct allocations *allocations, uint64_t now)
{
	for (size_t i = 0; i < allocations->vm_count; i++)
		if (allocations->vms[i].global && now >= allocations->vms[i].film_ns)
			return true;
	return false;
}

static void take_windows(struct allocations *allocations, struct lua_process *process,
			 const struct allocating_thread *thread, uint64_t now)
{
	for (size_t i = 0; i < allocations->vm_count; i++) {
		struct vm_allocations *vm = &allocations->vms[i];

		if (vm->global && vm->has_window && take_window(allocations, vm, process, thread))
			vm->window_ns = now + WINDOW_EVERY_NS;
	}
}

static void take_films(struct allocations *allocations, struct memory *memory, uint64_t now, int runs)
{
	for (size_t i = 0; i < allocations->vm_count; i++) {
		struct vm_allocations *vm = &allocations->vms[i];

		if (!vm->global || now < vm->film_ns)
			continue;
		vm->film_ns = now + FILM_EVERY_NS;
		if (runs != 0)
			take_film(allocations, vm, memory);
	}
}

/*
 * Of those of this look in which samples have met what is large, the VM whose last series was longest ago, or
 * NULL.
 */
static struct vm_allocations *next_with_series(struct allocations *allocations)
{
	struct vm_allocations *next = NULL;

	for (size_t i = 0; i < allocations->vm_count; i++) {
		struct vm_allocations *vm = &allocations->vms[i];

		if (vm->global && (!next || vm->series_ns < next->series_ns) &&
		    allocation_shares_has_large(vm->shares))
			next = vm;
	}
	return next;
}

static void take_series(struct allocations *allocations, struct vm_allocations *vm, struct memory *memory,
			const struct allocating_thread *thread)
{
	const struct series series = { .memory = memory,
				       .global = vm->global,
				       .shares = vm->shares,
				       .objects = allocations->objects,
				       .has_kept_cpu = has_kept_cpu,
				       .context = thread };
	const uint64_t begin_ns = clock_now_ns(CLOCK_MONOTONIC);

	allocation_series_take(&series);
	vm->series_ns = clock_now_ns(CLOCK_MONOTONIC);
	*thread->series_ns = begin_ns + SERIES_EVERY * (vm->series_ns - begin_ns);
}

/* What the VMs of this look do while the thread runs on. */
static void look_at_running(struct allocations *allocations, struct lua_process *process,
			    const struct cpu_clock *clock, const struct allocating_thread *thread)
{
	const uint64_t now = clock_now_ns(CLOCK_MONOTONIC);
	const bool is_span_due = now >= *thread->span_ns;
	struct vm_allocations *of_series = now >= *thread->series_ns ? next_with_series(allocations) : NULL;
	const int runs = is_span_due || of_series || is_film_due(allocations, now)
				 ? count_runs(thread)
				 : -1; /* before ljspy sleeps, which may leave it a CPU */
	/* Else after the windows, which take up to half a millisecond. */
	const bool is_span_first = span_begin_ns(thread) + SPAN_NS_MAX <= window_end_ns(thread);
	bool is_taken = false;

	if (is_span_due && is_span_first)
		is_taken = take_span(allocations, lua_process_memory(process), clock, thread, runs);
	take_windows(allocations, process, thread, now);
	if (is_span_due && !is_span_first)
		is_taken = take_span(allocations, lua_process_memory(process), clock, thread, runs);
	if (is_span_due)
		*thread->span_ns = now + (is_taken ? SPAN_EVERY_NS : SPAN_AGAIN_NS);
	take_films(allocations, lua_process_memory(process), now, runs);
	if (of_series && runs > 0)
		take_series(allocations, of_series, lua_process_memory(process), thread);
}

/*---- Samples ----*/

static const char *copied(const char *text, char **ret_copy)
{
	*ret_copy = text ? strdup(text) : NULL;
	return *ret_copy;
}

/* Keep the sample with this leaf. False when memory is short. */
static bool keep(struct vm_allocations *vm, const struct sample *sample, const struct function *leaf)
{
	struct kept_sample kept = { .sample = *sample };

	if (vm->kept_count == vm->kept_size) {
		size_t size = vm->kept_size ? 2 * vm->kept_size : 64;
		struct kept_sample *larger = realloc(vm->kept, size * sizeof(*larger));

		if (!larger)
			return false;
		vm->kept = larger;
		vm->kept_size = size;
	}
	kept.frames = calloc(sample->frame_count + 1, sizeof(*kept.frames));
	if (!kept.frames)
		return false;
	kept.frames[0].function = leaf;
	memcpy(kept.frames + 1, sample->frames, sample->frame_count * sizeof(*kept.frames));
	kept.sample.frames = kept.frames;
	kept.sample.frame_count = sample->frame_count + 1;
	kept.sample.cpu_ns = kept.sample.wall_ns = 0;
	kept.sample.request.route = copied(sample->request.route, &kept.texts[0]);
	kept.sample.request.method = copied(sample->request.method, &kept.texts[1]);
	kept.sample.request.host = copied(sample->request.host, &kept.texts[2]);
	kept.sample.thread_name = copied(sample->thread_name, &kept.texts[3]);
	kept.sample.trace = NULL;
	/* Of the VM that allocates: no Lua need be on the stack, or another VM's may be. */
	kept.sample.gc.heap_bytes = vm->last.total + vm->last.string_table;
	kept.sample.gc.has_marked = vm->has_marked;
	vm->kept[vm->kept_count++] = kept;
	return true;
}

static bool is_string_table(const struct allocation *allocation, const struct allocation_counters *held)
{
	return allocation->kind == ALLOCATION_STRING_TABLE ||
	       (allocation->kind == ALLOCATION_OTHER && allocated_for_strings(held, allocation->bytes));
}

static void take_sample(struct allocations *allocations, struct lua_process *process,
			struct functions *functions, const struct sample *sample)
{
	struct allocation allocation;
	struct vm_allocations *vm;
	const struct function *leaf;
	char text[ALLOCATION_TEXT_SIZE], ctype[CTYPE_TEXT_SIZE] = "";

	if (!lua_process_allocation(process, &allocation))
		return;
	vm = find_vm(allocations, allocation.global);
	if (!vm || !vm->global || vm->kept_count == KEPT_MAX || is_string_table(&allocation, &vm->last))
		return;
	if (allocation.ctype)
		live_ctypes_text(lua_process_memory(process), &allocation.global->vm->layout,
				 allocation.global->g, allocation.ctype, ctype);
	allocation_text(lua_process_memory(process), &allocation, &vm->last, ctype, text);
	leaf = functions_allocated(functions, text);
	if (!leaf || !keep(vm, sample, leaf))
		return;
	if (allocation_shares_add_sample(vm->shares, &allocation) < 0)
		free_kept(&vm->kept[--vm->kept_count]);
	else
		vm->has_marked = false;
}

/* Count what was allocated up to the noted look. False if there is none, or no CPU time for it. */
static bool count_interval(struct allocations *allocations, const struct cpu_clock *clock)
{
	uint64_t cpu_ns, since_ns;
	bool is_noted = false;

	/* A sample's weight is no interval's: weights are evened out. */
	if (cpu_clock_now(clock, &cpu_ns) != 0)
		return false;
	since_ns = cpu_ns - allocations->looked_cpu_ns;
	allocations->looked_cpu_ns = cpu_ns;
	for (size_t i = 0; i < allocations->vm_count; i++) {
		struct vm_allocations *vm = &allocations->vms[i];
		struct allocated interval;

		if (!vm->global)
			continue;
		is_noted = true;
		if (allocations->has_looked)
			allocation_shares_add_look(vm->shares, since_ns);
		else
			allocation_shares_add_before(vm->shares, since_ns);
		if (vm->has_counted) {
			interval = allocated_between(&vm->counted, &vm->last);
			allocation_shares_add_interval(vm->shares, &interval, cpu_ns - vm->counted_cpu_ns);
			vm->has_marked |= interval.has_marked;
		}
		vm->has_counted = true;
		vm->counted = vm->last;
		vm->counted_cpu_ns = cpu_ns;
	}
	allocations->has_looked |= is_noted;
	return is_noted;
}

void allocations_skip(struct allocations *allocations, const struct cpu_clock *clock)
{
	count_interval(allocations, clock);
	end_look(allocations);
}

void allocations_take(struct allocations *allocations, struct lua_process *process,
		      const struct cpu_clock *clock, const struct allocating_thread *thread,
		      struct functions *functions, const struct sample *sample)
{
	if (count_interval(allocations, clock)) {
		look_at_running(allocations, process, clock, thread);
		take_sample(allocations, process, functions, sample);
	}
	end_look(allocations);
}

/*---- Shares ----*/

static void deliver_kept(struct vm_allocations *vm, allocations_deliver *deliver, void *context)
{
	const struct allocation_share *shares;
	const size_t count = allocation_shares_divide(vm->shares, &shares);

	for (size_t i = 0; i < count; i++) {
		struct kept_sample *kept = &vm->kept[i],
				   *last = &vm->last_of[allocation_shares_class(vm->shares, i)];

		kept->sample.alloc_bytes = shares[i].bytes;
		kept->sample.alloc_objects = shares[i].objects;
		if (shares[i].bytes)
			deliver(context, &kept->sample);
		else
			vm->has_marked |= kept->sample.gc.has_marked;
		free_kept(last);
		*last = *kept;
	}
	vm->kept_count = 0;
}

/*
 * What was allocated of a class since its last sample belongs to that one: it is as likely as any other, and
 * what waits is about what one sample stands for.
 */
static void deliver_waiting(struct vm_allocations *vm, allocations_deliver *deliver, void *context)
{
	for (size_t i = 0; i < ALLOCATION_CLASSES_MAX; i++) {
		struct sample *sample = &vm->last_of[i].sample;
		struct allocation_share share;

		if (!vm->last_of[i].frames)
			continue;
		share = allocation_shares_waiting(vm->shares, i);
		sample->time_ns = clock_now_ns(CLOCK_MONOTONIC);
		sample->gc = (struct sample_gc){ .phase = GC_PHASE_NONE };
		sample->alloc_bytes = share.bytes;
		sample->alloc_objects = share.objects;
		if (share.bytes)
			deliver(context, sample);
	}
}

static void note_bytes(enum allocation_sum sum, uint64_t bytes, struct figures *figures)
{
	switch (sum) {
	case ALLOCATION_SUM_COUNTED: break;
	case ALLOCATION_SUM_ESTIMATED: figures->alloc_estimated += bytes; break;
	case ALLOCATION_SUM_LEAST: figures->alloc_least += bytes; break;
	}
}

/* has_others: other VMs allocate what is not counted. */
static void note_sum(const struct vm_allocations *vm, bool has_others, struct figures *figures)
{
	uint64_t bytes;
	enum allocation_sum sum = allocation_shares_sum(vm->shares, &bytes);

	note_bytes(has_others ? ALLOCATION_SUM_LEAST : sum, bytes, figures);
	figures->alloc_all += bytes;
	figures->alloc_large += allocation_shares_large(vm->shares);
}

/* What has no sample, or was before the first look. */
static void deliver_unseen(struct allocations *allocations, const struct vm_allocations *vm,
			   struct figures *figures, allocations_deliver *deliver, void *context)
{
	const struct allocation_share unseen = allocation_shares_unseen(vm->shares);
	struct allocation_share before;
	uint64_t uncertain_bytes;
	const enum allocation_sum sum = allocation_shares_before(vm->shares, &before, &uncertain_bytes);
	const struct frame frame = { .function = lost_function(LOST_ALLOCATION_UNSEEN) };
	const struct sample sample = {
		.time_ns = clock_now_ns(CLOCK_MONOTONIC),
		.pid = allocations->pid,
		.tid = allocations->pid,
		.process_name = allocations->process_name,
		.thread_state = THREAD_RUNNING,
		.vm_state = VM_STATE_UNKNOWN,
		.frames = &frame,
		.frame_count = 1,
		.alloc_bytes = unseen.bytes + before.bytes,
		.alloc_objects = unseen.objects + before.objects,
	};

	note_bytes(sum, uncertain_bytes, figures);
	figures->alloc_all += before.bytes;
	if (sample.alloc_bytes)
		deliver(context, &sample);
}

static void deliver_rest(struct allocations *allocations, struct vm_allocations *vm, struct figures *figures,
			 allocations_deliver *deliver, void *context)
{
	deliver_waiting(vm, deliver, context);
	deliver_unseen(allocations, vm, figures, deliver, context);
}

/* Where half of the places are taken, one that was not seen for so long has been closed, or does nothing. */
static void drop_idle(struct allocations *allocations, uint64_t now, struct figures *figures,
		      allocations_deliver *deliver, void *context)
{
	size_t kept = 0;

	if (allocations->vm_count < VMS_MAX / 2)
		return;
	for (size_t i = 0; i < allocations->vm_count; i++) {
		struct vm_allocations *vm = &allocations->vms[i];

		if (now - vm->last_ns < IDLE_NS) {
			allocations->vms[kept++] = *vm;
			continue;
		}
		deliver_rest(allocations, vm, figures, deliver, context);
		free_vm(vm);
	}
	allocations->vm_count = kept;
}

void allocations_divide(struct allocations *allocations, bool all, struct figures *figures,
			allocations_deliver *deliver, void *context)
{
	const uint64_t now = clock_now_ns(CLOCK_MONOTONIC);

	if (now < allocations->divide_ns && !all)
		return;
	allocations->divide_ns = now + DIVIDE_EVERY_NS;
	for (size_t i = 0; i < allocations->vm_count; i++) {
		deliver_kept(&allocations->vms[i], deliver, context);
		note_sum(&allocations->vms[i], allocations->has_unseen, figures);
	}
	for (size_t i = 0; all && i < allocations->vm_count; i++)
		deliver_rest(allocations, &allocations->vms[i], figures, deliver, context);
	if (!all)
		drop_idle(allocations, now, figures, deliver, context);
	allocations->has_unseen = false;
}

static void keep_functions_of(const struct kept_sample *kept, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t f = 0; f < kept[i].sample.frame_count; f++)
			functions_keep(kept[i].frames[f].function);
}

void allocations_keep_functions(const struct allocations *allocations)
{
	for (size_t i = 0; i < allocations->vm_count; i++) {
		keep_functions_of(allocations->vms[i].kept, allocations->vms[i].kept_count);
		keep_functions_of(allocations->vms[i].last_of, ALLOCATION_CLASSES_MAX);
	}
}

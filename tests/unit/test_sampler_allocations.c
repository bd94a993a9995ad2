/* SPDX-License-Identifier: MIT */
/* Samples of allocations: when a VM is looked at, what is kept, and what is delivered, on a made-up clock. */
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "output/sample/lost.h"
#include "src/allocations/allocation_series.h"
#include "src/allocations/allocation_shares.h"
#include "src/sampler/sampler_allocations.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/ticking_clock.h"
#include "unwind/allocation/allocated.h"
#include "unwind/allocation/allocation_text.h"
#include "unwind/capture/capture.h"
#include "unwind/values/live_ctypes.h"

enum { MS = 1000 * 1000, SERIES_NS = 150 * 1000, VMS = 65, SHARES_MAX = 5000, FILM_ROOT = 0x10000 };

/* The process: its VMs, and what is known of them. */
static const struct vm_code vm;
static struct global_state globals[VMS];
static size_t captured_first, captured_count;
static bool can_read, can_count, knows_objects, knows_userdata, in_native;
static uint64_t userdata_from, userdata_to, userdata_reads;
static uint64_t total;                  /* gc.total */
static uint64_t listed_from, listed_to; /* the objects that were asked for last */
static bool is_allocating;
static bool halves_strings; /* the VM, its table of them */
static uint8_t white;       /* g->gc.currentwhite */
static struct allocation allocation;

/* The clocks: of time, and of the process, which gets this part of it. */
static uint64_t cpu_ns, cpu_percent;
static unsigned int readings, readings_before_failure = UINT_MAX - 1; /* of a clock or of counters */
static uint64_t read_takes_ns, unwinding_ns; /* a look at the counters, and what comes before it */

enum { MORE_TAKES_NS = 300 }; /* for each VM more in a look at several */

/* The thread: on how many CPUs it may be, and how often it got one before it was held, and since. */
static struct tracee tracee;
static struct thread thread = { .tid = 11, .runs = 40, .tracee = &tracee };
static uint64_t runs, leaves; /* how often it got its CPU and, since it was held, left it */
static unsigned int cpus;
static uint64_t span_ns;                /* when the next span is due */
static uint64_t window_ns, span_end_ns; /* after the hold: of the last window and the last span */
static uint64_t series_ns;              /* when the next series is due */
static struct allocating_thread allocating = { NULL, &thread, &span_ns, &series_ns, true, UINT64_MAX };

/* What was made of it. */
static struct noted {
	unsigned int intervals, windows, windows_with_objects, films, spans, newest_reads;
	uint64_t interval_bytes, interval_cpu_ns, looks_cpu_ns, before_cpu_ns, span_ns;
	size_t samples;
} noted[VMS];

static struct vm_shares {
	size_t index;
} shares_of[VMS];
static size_t shares_made;
static struct allocation_share divided[SHARES_MAX];
static struct allocation_share waiting, unseen; /* of one VM, */
static size_t unseen_of;                        /* ... this one for the latter */
/* Series: of which VM each was, and whether the thread had kept its CPU in the last one. */
static bool has_large, has_kept_cpu;
static size_t series_of[8], series_count;
static enum allocation_sum sum;
static uint64_t large_bytes;           /* of the first VM */
static struct allocation_share before; /* the first look */

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
#include "tests/unit/failing_allocation.h"

INSTEAD_OF(cpu_clock_now);
INSTEAD_OF(lua_process_memory);
INSTEAD_OF(lua_process_copy);
INSTEAD_OF(lua_process_in_native);
INSTEAD_OF(lua_process_captured_count);
INSTEAD_OF(lua_process_captured);
INSTEAD_OF(lua_process_allocation);
INSTEAD_OF(allocation_counters_read);
INSTEAD_OF(allocation_counters_read_newest);
INSTEAD_OF(allocation_looks_read);
INSTEAD_OF(allocation_film_read);
INSTEAD_OF(allocated_objects);
INSTEAD_OF(allocated_newest_userdata);
INSTEAD_OF(allocated_userdata);
INSTEAD_OF(live_ctypes_text);
INSTEAD_OF(allocation_text);
INSTEAD_OF(allocation_shares_new);
INSTEAD_OF(allocation_shares_free);
INSTEAD_OF(allocation_shares_add_interval);
INSTEAD_OF(allocation_shares_add_look);
INSTEAD_OF(allocation_shares_add_before);
INSTEAD_OF(allocation_shares_add_film);
INSTEAD_OF(allocation_shares_add_span);
INSTEAD_OF(allocation_shares_has_large);
INSTEAD_OF(allocation_series_take);
INSTEAD_OF(allocation_shares_sum);
INSTEAD_OF(allocation_shares_large);
INSTEAD_OF(thread_count_runs);
INSTEAD_OF(thread_count_switches);
INSTEAD_OF(clock_nanosleep);
INSTEAD_OF(sched_getaffinity);
INSTEAD_OF(allocation_shares_add_window);
INSTEAD_OF(allocation_shares_add_sample);
INSTEAD_OF(allocation_shares_divide);
INSTEAD_OF(allocation_shares_class);
INSTEAD_OF(allocation_shares_waiting);
INSTEAD_OF(allocation_shares_unseen);

static void pass(uint64_t ns)
{
	now_ns += ns;
	cpu_ns += ns * cpu_percent / 100;
}

/* Whether the next reading of a clock or of counters succeeds. */
static bool reads(void)
{
	return ++readings != readings_before_failure + 1 && can_read;
}

int __wrap_cpu_clock_now(const struct cpu_clock *clock, uint64_t *ret_ns)
{
	(void)clock;
	*ret_ns = cpu_ns;
	return reads() ? 0 : -1;
}

struct memory *__wrap_lua_process_memory(struct lua_process *process)
{
	(void)process;
	return NULL;
}

struct memory *__wrap_lua_process_copy(const struct lua_process *process)
{
	(void)process;
	return NULL;
}

bool __wrap_lua_process_in_native(const struct lua_process *process)
{
	(void)process;
	return in_native;
}

size_t __wrap_lua_process_captured_count(const struct lua_process *process)
{
	(void)process;
	return captured_count;
}

const struct global_state *__wrap_lua_process_captured(const struct lua_process *process, size_t index)
{
	(void)process;
	return &globals[captured_first + index];
}

bool __wrap_lua_process_allocation(struct lua_process *process, struct allocation *ret_allocation)
{
	(void)process;
	*ret_allocation = allocation;
	return is_allocating;
}

static struct allocation_counters counters(void)
{
	return (struct allocation_counters){ .total = total,
					     .root = total,
					     .string_table = 8192,
					     .white = white,
					     .has_few_strings = halves_strings,
					     .may_resize = halves_strings };
}

bool __wrap_allocation_counters_read(struct memory *memory, const struct global_state *global,
				     struct allocation_counters *ret_counters)
{
	(void)memory;
	(void)global;
	pass(read_takes_ns);
	*ret_counters = counters();
	return reads();
}

void __wrap_allocation_looks_read(struct memory *memory, struct allocation_look *looks, size_t count)
{
	(void)memory;
	pass(count > 1 ? (count - 1) * MORE_TAKES_NS : 0);
	pass(read_takes_ns);
	for (size_t i = 0; i < count; i++) {
		looks[i].is_read = reads();
		looks[i].counters = counters();
	}
}

void __wrap_allocation_counters_read_newest(struct memory *memory, const struct global_state *global,
					    struct allocation_counters *counters)
{
	(void)memory;
	(void)counters;
	noted[global->g - 1].newest_reads++;
}

int __wrap_thread_count_runs(const struct threads *threads, struct thread *of, uint64_t *ret_runs)
{
	(void)threads;
	*ret_runs = runs;
	return can_read && can_count && of == &thread ? 0 : -1;
}

int __wrap_thread_count_switches(const struct threads *threads, struct thread *of,
				 struct switches *ret_switches)
{
	(void)threads;
	*ret_switches = (struct switches){ .count = thread.runs + leaves };
	return can_read && of == &thread ? 0 : -1;
}

/* On one CPU, the thread runs when ljspy sleeps. */
int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
	const uint64_t until_ns = (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec;

	(void)left;
	assert_int_equal(clock, CLOCK_MONOTONIC);
	assert_int_equal(flags, TIMER_ABSTIME);
	if (until_ns > now_ns) {
		runs += cpus == 1;
		pass(until_ns - now_ns);
	}
	return 0;
}

int __wrap_sched_getaffinity(pid_t tid, size_t size, cpu_set_t *ret_cpus)
{
	assert_int_equal(tid, thread.tid);
	memset(ret_cpus, 0, size);
	for (unsigned int cpu = 0; cpu < cpus; cpu++)
		CPU_SET(cpu, ret_cpus);
	return 0;
}

bool __wrap_allocation_film_read(struct memory *memory, const struct global_state *global,
				 struct allocation_counters ret_film[static ALLOCATION_FILM_LOOKS])
{
	(void)memory;
	(void)global;
	pass(read_takes_ns);
	for (size_t i = 0; i < ALLOCATION_FILM_LOOKS; i++)
		ret_film[i] = (struct allocation_counters){ .root = FILM_ROOT + i };
	return can_read;
}

bool __wrap_allocated_objects(struct memory *memory, const struct global_state *global, uint64_t first,
			      uint64_t last, struct listed_object *objects, size_t *ret_count)
{
	(void)memory;
	(void)global;
	listed_from = first;
	listed_to = last;
	objects[0] = (struct listed_object){ .address = 1 };
	*ret_count = 1;
	return knows_objects;
}

/* Userdata come as other bytes do. */
uint64_t __wrap_allocated_newest_userdata(struct memory *copy, struct memory *memory,
					  const struct global_state *global)
{
	(void)copy;
	(void)memory;
	(void)global;
	userdata_reads++;
	return total + 1;
}

bool __wrap_allocated_userdata(struct memory *memory, const struct global_state *global, uint64_t first,
			       uint64_t last, struct listed_object *objects, size_t *count)
{
	(void)memory;
	(void)global;
	assert_int_equal(*count, 1);
	userdata_from = first;
	userdata_to = last;
	objects[1] = (struct listed_object){ .address = 2 };
	*count = 2;
	return knows_userdata;
}

bool __wrap_live_ctypes_text(struct memory *memory, const struct layout *layout, uint64_t g, uint32_t ctype,
			     char ret_text[static CTYPE_TEXT_SIZE])
{
	(void)memory;
	(void)layout;
	(void)g;
	snprintf(ret_text, CTYPE_TEXT_SIZE, "ctype %u", (unsigned int)ctype);
	return true;
}

void __wrap_allocation_text(struct memory *memory, struct allocation *of,
			    const struct allocation_counters *held, const char *ctype,
			    char ret_text[static ALLOCATION_TEXT_SIZE])
{
	(void)memory;
	(void)held;
	snprintf(ret_text, ALLOCATION_TEXT_SIZE, "kind %d%s%s", (int)of->kind, *ctype ? " " : "", ctype);
}

struct allocation_shares *__wrap_allocation_shares_new(void)
{
	shares_of[shares_made] = (struct vm_shares){ .index = shares_made };
	return (struct allocation_shares *)&shares_of[shares_made++];
}

static struct noted *noted_of(const struct allocation_shares *shares)
{
	return &noted[((const struct vm_shares *)shares)->index];
}

void __wrap_allocation_shares_free(struct allocation_shares *shares)
{
	(void)shares;
	shares_made--;
}

void __wrap_allocation_shares_add_interval(struct allocation_shares *shares,
					   const struct allocated *allocated, uint64_t of_cpu_ns)
{
	noted_of(shares)->intervals++;
	noted_of(shares)->interval_cpu_ns += of_cpu_ns;
	noted_of(shares)->interval_bytes += (uint64_t)allocated->bytes;
}

void __wrap_allocation_shares_add_look(struct allocation_shares *shares, uint64_t of_cpu_ns)
{
	noted_of(shares)->looks_cpu_ns += of_cpu_ns;
}

void __wrap_allocation_shares_add_before(struct allocation_shares *shares, uint64_t of_cpu_ns)
{
	noted_of(shares)->before_cpu_ns += of_cpu_ns;
}

void __wrap_allocation_shares_add_span(struct allocation_shares *shares, const struct span_piece *pieces,
				       size_t count, bool is_slowed)
{
	assert_int_equal(is_slowed, cpus == 1);
	assert_int_equal(count, cpus == 1 ? 1 : 3);
	noted_of(shares)->spans++;
	for (size_t i = 0; i < count; i++) {
		assert_in_range(pieces[i].ns, 8000, 40000);
		noted_of(shares)->span_ns += pieces[i].ns;
	}
	span_end_ns = now_ns - tracee.resumed_ns;
}

enum allocation_sum __wrap_allocation_shares_sum(const struct allocation_shares *shares, uint64_t *ret_bytes)
{
	*ret_bytes = 1000;
	return noted_of(shares) == noted ? sum : ALLOCATION_SUM_COUNTED;
}

uint64_t __wrap_allocation_shares_large(const struct allocation_shares *shares)
{
	return noted_of(shares) == noted ? large_bytes : 0;
}

INSTEAD_OF(allocation_shares_before);
enum allocation_sum __wrap_allocation_shares_before(const struct allocation_shares *shares,
						    struct allocation_share *ret_share,
						    uint64_t *ret_uncertain_bytes)
{
	(void)shares;
	*ret_share = before;
	*ret_uncertain_bytes = 70;
	return sum;
}

void __wrap_allocation_shares_add_film(struct allocation_shares *shares,
				       const struct allocation_counters film[static ALLOCATION_FILM_LOOKS],
				       const struct listed_object *objects, size_t count)
{
	(void)film;
	(void)objects;
	assert_int_equal(count, knows_objects);
	noted_of(shares)->films++;
}

bool __wrap_allocation_shares_has_large(const struct allocation_shares *shares)
{
	(void)shares;
	return has_large;
}

/* It takes SERIES_NS. */
void __wrap_allocation_series_take(const struct series *series)
{
	assert_true(series_count < sizeof(series_of) / sizeof(series_of[0]));
	assert_int_equal(noted_of(series->shares) - noted, series->global->g - 1);
	series_of[series_count++] = series->global->g - 1;
	has_kept_cpu = series->has_kept_cpu(series->context);
	series->objects[LISTED_OBJECTS_MAX - 1].address = 0;
	pass(SERIES_NS);
}

void __wrap_allocation_shares_add_window(struct allocation_shares *shares, const struct allocated *allocated,
					 const struct listed_object *objects, size_t count)
{
	(void)allocated;
	(void)count;
	window_ns = now_ns - tracee.resumed_ns;
	noted_of(shares)->windows++;
	noted_of(shares)->windows_with_objects += objects != NULL;
}

ptrdiff_t __wrap_allocation_shares_add_sample(struct allocation_shares *shares, const struct allocation *of)
{
	if (of->bytes == 0)
		return -1;
	return (ptrdiff_t)noted_of(shares)->samples++;
}

size_t __wrap_allocation_shares_divide(struct allocation_shares *shares,
				       const struct allocation_share **ret_shares)
{
	size_t count = noted_of(shares)->samples;

	noted_of(shares)->samples = 0;
	*ret_shares = divided;
	return count;
}

size_t __wrap_allocation_shares_class(const struct allocation_shares *shares, size_t number)
{
	(void)shares;
	return number % 2;
}

/* Of the first class. */
struct allocation_share __wrap_allocation_shares_waiting(const struct allocation_shares *shares, size_t class)
{
	return noted_of(shares) == noted && class == 0 ? waiting : (struct allocation_share){ 0 };
}

struct allocation_share __wrap_allocation_shares_unseen(const struct allocation_shares *shares)
{
	return noted_of(shares) == &noted[unseen_of] ? unseen : (struct allocation_share){ 0 };
}

/*---- What the sampler does ----*/

static struct functions *functions;
static struct frame frames[2];
static const struct function lua = { .kind = FRAME_LUA, .name = "f", .file = "@f.lua" };
static struct sample sample;

static struct allocations *begin(void)
{
	struct allocations *allocations;

	memset(noted, 0, sizeof(noted));
	for (size_t i = 0; i < VMS; i++)
		globals[i] = (struct global_state){ .vm = &vm, .g = i + 1 };
	captured_first = unseen_of = 0;
	captured_count = 1;
	can_read = can_count = knows_objects = knows_userdata = true;
	userdata_reads = 0;
	total = 1000;
	white = 1;
	is_allocating = halves_strings = false;
	allocation = (struct allocation){ .kind = ALLOCATION_TABLE, .bytes = 64, .global = &globals[0] };
	now_ns = 100 * UINT64_C(1000000000);
	cpu_ns = 7 * MS;
	cpu_percent = 100;
	read_takes_ns = 1000;
	unwinding_ns = 0;
	runs = thread.runs + 1;
	leaves = 0;
	cpus = 2;
	span_ns = 0;
	sum = ALLOCATION_SUM_COUNTED;
	waiting = unseen = before = (struct allocation_share){ 0 };
	in_native = has_large = false;
	series_ns = series_count = 0;
	functions = functions_new();
	frames[0] = frames[1] = (struct frame){ .function = &lua };
	sample = (struct sample){ .time_ns = 5,
				  .pid = 10,
				  .tid = 11,
				  .process_name = "p",
				  .thread_name = "t",
				  .cpu_ns = 3,
				  .wall_ns = 4,
				  .request = { .route = "/r", .method = "GET", .host = "h" },
				  .frames = frames,
				  .frame_count = 2 };
	allocations = allocations_new(10, "p", cpu_ns);
	assert_non_null(allocations);
	return allocations;
}

static void end(struct allocations *allocations)
{
	allocations_free(allocations);
	functions_free(functions);
	assert_int_equal(shares_made, 0);
}

/* A look at a thread of the process, so much later. */
static void look(struct allocations *allocations, uint64_t ns)
{
	pass(ns);
	allocations_note(allocations, NULL, true);
	tracee.resumed_ns = now_ns;
	pass(unwinding_ns);
	allocations_take(allocations, NULL, NULL, &allocating, functions, &sample);
}

static void intervals_are_from_look_to_look(void **state)
{
	struct allocations *allocations = begin();
	uint64_t begin_ns;

	(void)state;
	read_takes_ns = 0;
	runs = thread.runs; /* no span takes time */
	look(allocations, MS);
	begin_ns = cpu_ns;
	assert_int_equal(noted[0].intervals, 0);
	total += 500;
	look(allocations, MS);
	assert_int_equal(noted[0].intervals, 1);
	assert_int_equal(noted[0].interval_bytes, 500);
	assert_int_equal(noted[0].interval_cpu_ns, cpu_ns - begin_ns);
	/* What cannot be read is an interval with the next one. */
	can_read = false;
	total += 100;
	look(allocations, MS);
	assert_int_equal(noted[0].intervals, 1);
	can_read = true;
	total += 100;
	look(allocations, MS);
	assert_int_equal(noted[0].intervals, 2);
	assert_int_equal(noted[0].interval_bytes, 700);
	assert_int_equal(noted[0].interval_cpu_ns, cpu_ns - begin_ns);
	end(allocations);
	allocations_free(NULL);
}

/* A thread that has fallen asleep at the end of its hold has no sample. */
static void a_look_without_a_sample_counts_bytes(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	runs = thread.runs + 2; /* no span takes time */
	look(allocations, MS);
	total += 500;
	pass(MS);
	allocations_note(allocations, NULL, true);
	allocations_skip(allocations, NULL);
	assert_int_equal(noted[0].intervals, 1);
	assert_int_equal(noted[0].interval_bytes, 500);
	assert_in_range(noted[0].interval_cpu_ns, MS, MS + 200 * 1000);
	assert_int_equal(noted[0].windows, 1);
	total += 30;
	look(allocations, MS);
	assert_int_equal(noted[0].intervals, 2);
	assert_int_equal(noted[0].interval_bytes, 530);
	end(allocations);
}

/* A sample of a thread that is not stopped comes without a look if its stack changed meanwhile. */
static void a_look_is_taken_once(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	look(allocations, MS);
	total += 500;
	look(allocations, MS);
	for (int i = 0; i < 3; i++) {
		pass(MS);
		allocations_take(allocations, NULL, NULL, &allocating, functions, &sample);
	}
	assert_int_equal(noted[0].intervals, 1);
	assert_int_equal(noted[0].interval_bytes, 500);
	end(allocations);
}

static void a_thread_that_runs_on_has_intervals_only(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	is_allocating = in_native = true;
	for (int i = 0; i < 3; i++) {
		total += 100;
		pass(100 * MS);
		allocations_note(allocations, NULL, false);
		allocations_skip(allocations, NULL);
		allocations_take(allocations, NULL, NULL, &allocating, functions, &sample);
	}
	assert_int_equal(noted[0].intervals, 2);
	assert_int_equal(noted[0].interval_bytes, 200);
	assert_int_equal(noted[0].windows + noted[0].films + noted[0].newest_reads, 0);
	assert_int_equal(noted[0].samples, 0);
	end(allocations);
}

/* What it had allocated before is not what the one had that was closed. */
static void a_vm_at_the_address_of_a_closed_one_begins_anew(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	look(allocations, MS);
	globals[0].serial++;
	total += 500;
	look(allocations, MS);
	assert_int_equal(noted[0].intervals + noted[1].intervals, 0);
	total += 20;
	look(allocations, MS);
	assert_int_equal(noted[1].interval_bytes, 20);
	end(allocations);
}

/*
 * Intervals tell what it has allocated meanwhile, too; how fast it was when looks met it tells only of those
 * times.
 */
static void a_vm_has_the_time_before_looks_that_meet_it(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	look(allocations, 100 * MS);
	captured_first = 1;
	look(allocations, 200 * MS);
	captured_count = 0;
	look(allocations, 400 * MS);
	captured_first = 0;
	captured_count = 1;
	look(allocations, 800 * MS);
	assert_in_range(noted[0].interval_cpu_ns, 1400 * MS, 1410 * MS);
	assert_in_range(noted[0].before_cpu_ns, 100 * MS, 110 * MS);
	assert_in_range(noted[0].looks_cpu_ns, 800 * MS, 810 * MS);
	assert_int_equal(noted[1].before_cpu_ns, 0);
	assert_in_range(noted[1].looks_cpu_ns, 200 * MS, 210 * MS);
	end(allocations);
}

/* It begins later than ljspy attaches; but not anew. */
static void the_time_before_looks_is_of_the_recording(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	pass(50 * MS);
	allocations_open(allocations, cpu_ns);
	look(allocations, 10 * MS);
	assert_in_range(noted[0].before_cpu_ns, 10 * MS, 20 * MS);
	pass(50 * MS);
	allocations_open(allocations, cpu_ns);
	look(allocations, 10 * MS);
	assert_in_range(noted[0].looks_cpu_ns, 60 * MS, 70 * MS);
	end(allocations);
}

/* Only a thread in native code can be in the allocator. */
static void the_newest_object_is_read_of_native_code(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	look(allocations, MS);
	assert_int_equal(noted[0].newest_reads, 0);
	in_native = true;
	look(allocations, MS);
	assert_int_equal(noted[0].newest_reads, 1);
	end(allocations);
}

static void deliver_nothing(void *context, const struct sample *of)
{
	(void)context;
	(void)of;
}

static void so_many_vms_are_seen_and_of_more_it_is_said(void **state)
{
	struct allocations *allocations = begin();
	struct figures figures = { 0 };

	(void)state;
	captured_count = VMS - 1;
	for (int round = 0; round < 2; round++)
		look(allocations, MS);
	allocations_divide(allocations, false, &figures, deliver_nothing, NULL);
	assert_int_equal(figures.alloc_least, 0);
	captured_count = VMS;
	look(allocations, 500 * MS);
	assert_int_equal(shares_made, VMS - 1);
	for (size_t i = 0; i < VMS; i++)
		assert_int_equal(noted[i].intervals, i + 1 < VMS ? 2 : 0);
	allocations_divide(allocations, false, &figures, deliver_nothing, NULL);
	assert_int_equal(figures.alloc_least, 1000 * (VMS - 1));
	/* It says nothing of the time when all were seen again. */
	captured_count = VMS - 1;
	look(allocations, 500 * MS);
	allocations_divide(allocations, false, &figures, deliver_nothing, NULL);
	assert_int_equal(figures.alloc_least, 1000 * (VMS - 1));
	end(allocations);
}

static void a_vm_that_is_gone_gives_its_place_to_another(void **state)
{
	struct allocations *allocations = begin();
	struct figures figures = { 0 };

	(void)state;
	captured_count = VMS - 1;
	look(allocations, MS);
	captured_first = 1;
	captured_count = 1;
	for (int i = 0; i < 3; i++) {
		look(allocations, 500 * MS);
		allocations_divide(allocations, false, &figures, deliver_nothing, NULL);
	}
	assert_int_equal(shares_made, 1);
	assert_int_equal(noted[1].intervals, 3);
	assert_int_equal(figures.alloc_least, 0);
	end(allocations);
}

static void windows_and_films_have_a_rate(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	/* A look each millisecond, for 100 of them. */
	for (int i = 0; i < 100; i++)
		look(allocations, MS);
	assert_in_range(noted[0].windows, 4, 6);
	assert_int_equal(noted[0].windows_with_objects, noted[0].windows);
	assert_in_range(noted[0].films, 20, 26);
	assert_in_range(noted[0].spans, 10, 21);
	assert_in_range(noted[0].span_ns / noted[0].spans, 10000, 40000);
	end(allocations);
}

/*
 * Right after a hold, which a thread is slower after, too; but to wait long changes nothing. Neither how long
 * it takes to unwind the thread nor a window changes when they begin.
 */
static void spans_begin_at_random_moments(void **state)
{
	static const uint64_t waits_ns[] = {
		45 * 1000, 50 * 1000, 60 * 1000, 110 * 1000, 150 * 1000, 10 * MS
	};

	(void)state;
	for (size_t i = 0; i < sizeof(waits_ns) / sizeof(waits_ns[0]); i++) {
		struct allocations *allocations = begin();
		const uint64_t wait_ns = waits_ns[i] < 200 * 1000 ? waits_ns[i] : 200 * 1000;

		unwinding_ns = 40 * 1000;
		allocating.wait_ns = waits_ns[i];
		/* The second one has no window. */
		for (unsigned int spans = 1; spans <= 2; spans++) {
			look(allocations, 6 * MS);
			assert_int_equal(noted[0].windows, 1);
			assert_int_equal(noted[0].spans, spans);
			/* While windows wait for their end, no span begins. */
			if (spans == 2 || wait_ns <= 50 * 1000 || wait_ns > 100 * 1000)
				assert_in_range(span_end_ns, wait_ns + 25 * 1000, wait_ns + 33 * 1000);
			else
				assert_in_range(span_end_ns, 125 * 1000, 133 * 1000);
			if (spans == 1)
				assert_in_range(window_ns, 100 * 1000, 103 * 1000);
		}
		allocating.wait_ns = UINT64_MAX;
		end(allocations);
	}
}

/* The CPU time of the process is that of all its threads, the span's time is that of one. */
static void beside_another_thread_of_the_process_there_is_no_span(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	allocating.is_alone = false;
	for (int i = 0; i < 100; i++)
		look(allocations, MS);
	allocating.is_alone = true;
	assert_int_equal(noted[0].spans, 0);
	for (int i = 0; i < 100; i++)
		look(allocations, MS);
	assert_in_range(noted[0].spans, 10, 21);
	end(allocations);
}

/* If each had spans of its own, that these met it or another VM would be chance, for each of them. */
static void vms_of_one_process_have_the_same_spans(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	captured_count = 3;
	for (int i = 0; i < 100; i++)
		look(allocations, MS);
	for (int i = 0; i < 3; i++) {
		assert_in_range(noted[i].spans, 10, 21);
		assert_int_equal(noted[i].spans, noted[0].spans);
		assert_int_equal(noted[i].span_ns, noted[0].span_ns);
	}
	end(allocations);
}

/* All are looked at at once, or a span would be longer than a cycle of the smallest heap. */
static void spans_of_many_vms_are_short(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	captured_count = 8;
	read_takes_ns = 1400;
	for (int i = 0; i < 100; i++)
		look(allocations, MS);
	for (int i = 0; i < 8; i++) {
		assert_in_range(noted[i].spans, 10, 21);
		assert_in_range(noted[i].span_ns / noted[i].spans, 25000, 40000);
	}
	end(allocations);
}

/* So many are met at a look, at most. */
static void many_vms_have_spans_in_turn(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	captured_count = CAPTURE_GLOBALS_MAX;
	for (int i = 0; i < 200; i++)
		look(allocations, 5 * MS);
	for (int i = 0; i < CAPTURE_GLOBALS_MAX; i++)
		assert_in_range(noted[i].spans, 80, 120);
	end(allocations);
}

/* From the newest one, which the collector's list begins with, on. */
static void a_film_has_the_objects_made_meanwhile(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	look(allocations, MS);
	assert_int_equal(noted[0].films, 1);
	assert_int_equal(listed_from, FILM_ROOT + ALLOCATION_FILM_LOOKS - 1);
	assert_int_equal(listed_to, FILM_ROOT);
	end(allocations);
}

/* Where ljspy loses its CPU in a film, many small allocations lie between two of its looks. */
static void films_that_take_long_do_not_count(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	read_takes_ns = 200 * 1000;
	look(allocations, MS);
	assert_int_equal(noted[0].films, 0);
	read_takes_ns = 0;
	pass(10 * MS);
	look(allocations, MS);
	assert_int_equal(noted[0].films, 1);
	end(allocations);
}

/* A 64th of all time: 9.6 ms from the beginning of one to the next. */
static void series_are_rare(void **state)
{
	struct allocations *allocations = begin();
	uint64_t due_ns;

	(void)state;
	look(allocations, MS);
	assert_int_equal(series_count, 0); /* nobody has met anything large */
	has_large = true;
	look(allocations, MS);
	assert_int_equal(series_count, 1);
	due_ns = now_ns - SERIES_NS + 64 * SERIES_NS;
	assert_in_range(series_ns, due_ns - 100, due_ns + 1000);
	look(allocations, series_ns - now_ns - 100 * 1000);
	assert_int_equal(series_count, 1);
	look(allocations, MS);
	assert_int_equal(series_count, 2);
	end(allocations);
}

/* ... of all VMs and processes together. */
static void vms_have_series_in_turn(void **state)
{
	struct allocations *allocations = begin();
	uint64_t begin_ns;

	(void)state;
	captured_count = 3;
	has_large = true;
	begin_ns = now_ns;
	while (now_ns - begin_ns < 47 * MS)
		look(allocations, MS);
	assert_int_equal(series_count, 5);
	for (size_t i = 0; i < series_count; i++)
		assert_int_equal(series_of[i], i % 3);
	series_ns = UINT64_MAX; /* another process has had one */
	look(allocations, 10 * MS);
	assert_int_equal(series_count, 5);
	end(allocations);
}

/* Whoever has not had a CPU since the hold allocates nothing; also where neither a span nor a film is due. */
static void only_threads_that_run_have_series(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	span_ns = UINT64_MAX;
	look(allocations, MS);
	has_large = true;
	runs = thread.runs;
	look(allocations, MS);
	can_count = false;
	look(allocations, MS);
	assert_int_equal(noted[0].films, 1);
	assert_int_equal(series_count, 0);
	can_count = true;
	runs = thread.runs + 1;
	look(allocations, MS / 10);
	assert_int_equal(noted[0].films, 1);
	assert_int_equal(series_count, 1);
	end(allocations);
}

static void a_series_asks_whether_the_thread_has_kept_its_cpu(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	has_large = true;
	look(allocations, MS);
	assert_true(has_kept_cpu);
	leaves = 1;
	look(allocations, 20 * MS);
	assert_int_equal(series_count, 2);
	assert_false(has_kept_cpu);
	end(allocations);
}

static void what_was_not_seen_at_the_look_has_no_window(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	captured_count = 2;
	look(allocations, MS);
	assert_int_equal(noted[1].windows, 1);
	captured_count = 1;
	for (int i = 0; i < 100; i++)
		look(allocations, MS);
	assert_int_equal(noted[1].windows, 1);
	assert_int_equal(noted[1].films, 1);
	assert_in_range(noted[0].windows, 4, 7);
	end(allocations);
}

static void windows_are_short(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	knows_objects = false;
	look(allocations, MS);
	assert_int_equal(noted[0].windows, 1);
	assert_int_equal(noted[0].windows_with_objects, 0);
	/* ljspy had no CPU between the look and the window. */
	pass(100 * MS);
	allocations_note(allocations, NULL, true);
	pass(MS);
	allocations_take(allocations, NULL, NULL, &allocating, functions, &sample);
	assert_int_equal(noted[0].windows, 1);
	pass(100 * MS);
	allocations_note(allocations, NULL, true);
	pass(MS - (uint64_t)read_takes_ns - 100);
	allocations_take(allocations, NULL, NULL, &allocating, functions, &sample);
	assert_int_equal(noted[0].windows, 2);
	end(allocations);
}

static void windows_have_the_userdata_since_the_look(void **state)
{
	struct allocations *allocations = begin();
	const uint64_t total_before = total;

	(void)state;
	allocations_note(allocations, NULL, true);
	tracee.resumed_ns = now_ns;
	total += 100;
	allocations_take(allocations, NULL, NULL, &allocating, functions, &sample);
	assert_int_equal(noted[0].windows_with_objects, 1);
	assert_int_equal(userdata_to, total_before + 1);
	assert_int_equal(userdata_from, total_before + 101);
	assert_int_equal(userdata_reads, 2);
	/* No window is due: nothing is read for it while the thread is held. */
	look(allocations, MS);
	assert_int_equal(userdata_reads, 2);
	knows_userdata = false;
	look(allocations, 100 * MS);
	assert_int_equal(noted[0].windows, 2);
	assert_int_equal(noted[0].windows_with_objects, 1);
	end(allocations);
}

/* Native code takes longer to unwind: more of what it allocates would be counted. */
static void windows_end_after_the_same_time(void **state)
{
	static const uint64_t takes_ns[] = { 1000, 20 * 1000, 60 * 1000 };
	uint64_t first_ns = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(takes_ns) / sizeof(takes_ns[0]); i++) {
		struct allocations *allocations = begin();

		unwinding_ns = takes_ns[i];
		look(allocations, MS);
		assert_int_equal(noted[0].windows, 1);
		first_ns = i ? first_ns : window_ns;
		assert_in_range(window_ns, first_ns - 1000, first_ns + 1000);
		assert_true(window_ns > takes_ns[i]);
		end(allocations);
	}
}

/* Else windows of programs that wait for a CPU would be empty, and few would be left to go by. */
static void a_thread_without_a_cpu_has_its_window_later(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	runs = thread.runs;
	for (int i = 0; i < 3; i++)
		look(allocations, MS);
	assert_int_equal(noted[0].windows, 0);
	runs++;
	look(allocations, MS);
	assert_int_equal(noted[0].windows, 1);
	/* It had none yet when it was unwound. */
	runs = thread.runs;
	cpus = 1;
	look(allocations, 100 * MS);
	assert_int_equal(noted[0].windows, 2);
	end(allocations);
}

/* One that waits for a CPU, or has had another one meanwhile, tells nothing of how fast it is. */
static void a_thread_without_a_cpu_has_no_span(void **state)
{
	static const uint64_t more[] = { 0, 2, 1000, (UINT64_C(1) << 32) + 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
		struct allocations *allocations = begin();

		runs = thread.runs + more[i];
		look(allocations, MS);
		assert_int_equal(noted[0].spans, 0);
		assert_int_equal(noted[0].films, more[i] != 0);
		end(allocations);
	}
}

/* The next look tries again: another thread wants that CPU. */
static void a_thread_that_has_left_its_cpu_has_no_span(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	leaves = 1;
	look(allocations, MS);
	assert_int_equal(noted[0].films, 1);
	assert_int_equal(noted[0].spans, 0);
	leaves = 0;
	look(allocations, MS);
	assert_int_equal(noted[0].films, 1);
	assert_int_equal(noted[0].spans, 1);
	look(allocations, MS);
	assert_int_equal(noted[0].spans, 1);
	end(allocations);
}

/* ljspy does not know then how long the counters took. */
static void a_span_in_which_ljspy_lost_its_cpu_is_none(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	read_takes_ns = 60 * 1000;
	look(allocations, MS);
	assert_int_equal(noted[0].windows, 1);
	assert_int_equal(noted[0].spans, 0);
	read_takes_ns = 1000;
	look(allocations, MS);
	assert_int_equal(noted[0].spans, 1);
	end(allocations);
}

/* Those of another process, too. */
static void spans_do_not_follow_each_other_at_once(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	span_ns = now_ns + 10 * MS;
	look(allocations, MS);
	assert_int_equal(noted[0].films, 1);
	assert_int_equal(noted[0].spans, 0);
	look(allocations, 9 * MS);
	assert_int_equal(noted[0].spans, 1);
	assert_in_range(span_ns, now_ns, now_ns + 10 * MS);
	end(allocations);
}

/* Not every kernel counts how often a thread gets a CPU. */
static void without_counts_there_are_films_only(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	thread.runs = runs = 0;
	look(allocations, MS);
	assert_int_equal(noted[0].films, 1);
	assert_int_equal(noted[0].spans, 0);
	end(allocations);
	thread.runs = 40;
	/* Or it does not tell just then, whatever it told before; or what it tells cannot be. */
	for (int i = 0; i < 2; i++) {
		allocations = begin();
		can_count = i;
		runs = i ? thread.runs - 1 : thread.runs;
		look(allocations, MS);
		assert_int_equal(noted[0].windows, 1);
		assert_int_equal(noted[0].films, 1);
		assert_int_equal(noted[0].spans, 0);
		end(allocations);
	}
}

static void on_one_cpu_the_thread_runs_while_ljspy_sleeps(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	cpus = 1;
	runs = thread.runs;
	look(allocations, MS);
	assert_int_equal(noted[0].spans, 1);
	assert_in_range(noted[0].span_ns, 10000, 40000);
	end(allocations);
	/* It got the CPU for a part of the time only, or kept it for long. */
	for (int i = 0; i < 2; i++) {
		allocations = begin();
		cpu_percent = i ? 300 : 40;
		cpus = 1;
		runs = thread.runs;
		look(allocations, MS);
		assert_int_equal(noted[0].spans, 0);
		end(allocations);
	}
}

static void on_one_cpu_a_span_needs_its_clock_and_counters_before_and_after(void **state)
{
	unsigned int count = 0, lost = 0;

	(void)state;
	for (unsigned int few = 0; few <= count; few++) {
		struct allocations *allocations = begin();

		cpus = 1;
		runs = thread.runs;
		readings = 0;
		readings_before_failure = few;
		look(allocations, MS);
		lost += noted[0].windows == 1 && noted[0].spans == 0;
		count = readings > count ? readings : count;
		readings_before_failure = UINT_MAX - 1;
		end(allocations);
	}
	assert_int_equal(lost, 4);
}

/*---- Samples ----*/

static struct delivered {
	size_t count, lost;
	struct sample last;
	char leaf[64], texts[64];
	uint64_t bytes;
} delivered;

static void deliver(void *context, const struct sample *result)
{
	struct delivered *to = context;

	to->count++;
	to->last = *result;
	to->bytes += result->alloc_bytes;
	to->lost += result->frames[0].function->kind == FRAME_LOST;
	snprintf(to->leaf, sizeof(to->leaf), "%s",
		 result->frames[0].function->name ? result->frames[0].function->name : "");
	snprintf(to->texts, sizeof(to->texts), "%s %s %s %s",
		 result->request.route ? result->request.route : "-",
		 result->request.method ? result->request.method : "-",
		 result->request.host ? result->request.host : "-",
		 result->thread_name ? result->thread_name : "-");
}

static struct figures figures;

static void divide(struct allocations *allocations, bool all)
{
	memset(&delivered, 0, sizeof(delivered));
	allocations_divide(allocations, all, &figures, deliver, &delivered);
}

static void figures_tell_how_sure_the_bytes_are(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	figures = (struct figures){ 0 };
	captured_count = 2;
	look(allocations, MS);
	for (sum = ALLOCATION_SUM_COUNTED; sum <= ALLOCATION_SUM_LEAST; sum++) {
		pass(1000 * MS);
		divide(allocations, false);
		assert_int_equal(figures.alloc_estimated, sum >= ALLOCATION_SUM_ESTIMATED ? 1000 : 0);
		assert_int_equal(figures.alloc_least, sum == ALLOCATION_SUM_LEAST ? 1000 : 0);
	}
	end(allocations);
}

/* Of all divisions and VMs, beside all bytes. */
static void figures_tell_how_many_bytes_are_in_large_allocations(void **state)
{
	static const uint64_t sums[] = { 500, 3, 0, 700 }, told[] = { 500, 503, 503, 1203 };
	struct allocations *allocations = begin();

	(void)state;
	figures = (struct figures){ 0 };
	captured_count = 2;
	look(allocations, MS);
	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
		large_bytes = sums[i];
		pass(1000 * MS);
		divide(allocations, false);
		assert_int_equal(figures.alloc_large, told[i]);
		assert_int_equal(figures.alloc_all, (i + 1) * 2000);
	}
	large_bytes = 0;
	end(allocations);
}

static void a_sample_is_delivered_with_its_share(void **state)
{
	struct allocations *allocations = begin();
	char route[] = "/r", name[] = "t";

	(void)state;
	divide(allocations, false);
	is_allocating = true;
	sample.request.route = route;
	sample.thread_name = name;
	look(allocations, MS);
	/* Its texts are copies. */
	route[1] = name[0] = 'x';
	frames[0].function = NULL;
	divided[0] = (struct allocation_share){ .bytes = 4096, .objects = 64 };
	divide(allocations, false);
	assert_int_equal(delivered.count, 0); /* half a second has not passed */
	pass(500 * MS);
	divide(allocations, false);
	assert_int_equal(delivered.count, 1);
	assert_string_equal(delivered.leaf, "kind 7");
	assert_string_equal(delivered.texts, "/r GET h t");
	assert_int_equal(delivered.last.frame_count, 3);
	assert_int_equal(delivered.last.alloc_bytes, 4096);
	assert_int_equal(delivered.last.alloc_objects, 64);
	assert_int_equal(delivered.last.cpu_ns, 0);
	assert_int_equal(delivered.last.wall_ns, 0);
	assert_int_equal(delivered.last.time_ns, 5);
	assert_int_equal(delivered.last.pid, 10);
	assert_int_equal(delivered.last.tid, 11);
	divide(allocations, true);
	assert_int_equal(delivered.count, 0);
	end(allocations);
}

/* Divide after half a second. The last sample's VM has so much, and was marked since its last one. */
static void divide_marked(struct allocations *allocations, uint64_t share, bool has_marked)
{
	divided[0] = (struct allocation_share){ .bytes = share };
	pass(500 * MS);
	divide(allocations, false);
	assert_int_equal(delivered.count, share > 0);
	if (share == 0)
		return;
	assert_int_equal(delivered.last.gc.heap_bytes, total + 8192);
	assert_int_equal(delivered.last.gc.has_marked, has_marked);
}

/* Whatever Lua is on the stack, if any is. */
static void a_sample_has_the_collector_of_the_vm_that_allocates(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	divide(allocations, false);
	sample.gc = (struct sample_gc){ .heap_bytes = 77, .has_marked = true };
	look(allocations, MS);
	is_allocating = true;
	total += 3000;
	look(allocations, MS);
	divide_marked(allocations, 64, false);

	/* A look that finds no allocation is no sample: what it sees is the next one's. */
	is_allocating = false;
	white = 2;
	look(allocations, MS);
	sample.gc = (struct sample_gc){ .heap_bytes = 0 };
	is_allocating = true;
	look(allocations, MS);
	divide_marked(allocations, 0, true);
	look(allocations, MS);
	divide_marked(allocations, 64, true);
	look(allocations, MS);
	divide_marked(allocations, 64, false);
	end(allocations);
}

static void samples_without_a_share_are_not_delivered(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	is_allocating = true;
	for (int i = 0; i < 3; i++)
		look(allocations, MS);
	divided[0] = divided[2] = (struct allocation_share){ .bytes = 100, .objects = 1 };
	divided[1] = (struct allocation_share){ .bytes = 0 };
	divide(allocations, true);
	assert_int_equal(delivered.count, 2);
	assert_int_equal(delivered.bytes, 200);
	end(allocations);
}

/* Neither then, nor where memory is short of its share, too, is another one dropped in its place. */
static void a_sample_that_memory_is_too_short_for_is_none(void **state)
{
	size_t failures = 0;

	(void)state;
	divided[0] = divided[1] = (struct allocation_share){ .bytes = 100, .objects = 1 };
	for (uint64_t bytes = 0; bytes <= 100; bytes += 100) {
		bool has_failed = true;

		for (size_t passed = 0; has_failed; passed++) {
			struct allocations *allocations = begin();
			const size_t expected = bytes ? 2 : 1;

			is_allocating = true;
			look(allocations, MS);
			allocation.bytes = bytes;
			allocation_fails_after(passed);
			look(allocations, MS);
			has_failed = allocation_failed();
			failures += has_failed;
			assert_int_equal(noted[0].samples, has_failed ? 1 : expected);
			divide(allocations, true);
			assert_int_equal(delivered.count, has_failed ? 1 : expected);
			end(allocations);
		}
	}
	assert_true(failures >= 2);
}

static void what_is_no_allocation_of_a_vm_is_no_sample(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	look(allocations, MS);
	is_allocating = true;
	allocation.kind = ALLOCATION_STRING_TABLE;
	look(allocations, MS);
	halves_strings = true;
	allocation.kind = ALLOCATION_OTHER;
	allocation.bytes = 4096;
	look(allocations, MS);
	halves_strings = false;
	allocation.kind = ALLOCATION_TABLE;
	allocation.global = &globals[3]; /* which was not captured */
	look(allocations, MS);
	allocation.global = &globals[0];
	allocation.bytes = 0; /* memory is short */
	look(allocations, MS);
	assert_int_equal(noted[0].samples, 0);
	divide(allocations, true);
	assert_int_equal(delivered.count, 0);
	end(allocations);
}

static void so_many_samples_are_kept(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	is_allocating = true;
	for (int i = 0; i < 4200; i++)
		look(allocations, 1000);
	assert_int_equal(noted[0].samples, 4096);
	for (size_t i = 0; i < 4096; i++)
		divided[i] = (struct allocation_share){ .bytes = 1, .objects = 1 };
	divide(allocations, true);
	assert_int_equal(delivered.count, 4096);
	end(allocations);
}

static void what_has_no_sample_is_lost_at_the_end(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	captured_count = 2;
	look(allocations, MS);
	unseen_of = 1;
	unseen = (struct allocation_share){ .bytes = 300, .objects = 3 };
	divide(allocations, false);
	assert_int_equal(delivered.count, 0);
	divide(allocations, true);
	assert_int_equal(delivered.count, 1);
	assert_int_equal(delivered.lost, 1);
	assert_int_equal(delivered.last.alloc_bytes, 300);
	assert_int_equal(delivered.last.alloc_objects, 3);
	assert_int_equal(delivered.last.pid, 10);
	assert_int_equal(delivered.last.tid, 10);
	assert_in_range(delivered.last.time_ns, now_ns - 100, now_ns);
	assert_string_equal(delivered.last.process_name, "p");
	end(allocations);
}

/* But it has a part, at the end, with what has no sample. */
static void what_was_before_the_first_look_has_no_sample(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct allocations *allocations = begin();

		figures = (struct figures){ 0 };
		look(allocations, MS);
		before = (struct allocation_share){ .bytes = 60, .objects = 2 };
		unseen = (struct allocation_share){ .bytes = 300, .objects = 3 };
		divide(allocations, false);
		assert_int_equal(delivered.count, 0);
		sum = i ? ALLOCATION_SUM_LEAST : ALLOCATION_SUM_ESTIMATED;
		divide(allocations, true);
		assert_int_equal(delivered.lost, 1);
		assert_int_equal(delivered.last.alloc_bytes, 360);
		assert_int_equal(delivered.last.alloc_objects, 5);
		/* Those of the division, and these. */
		assert_int_equal(figures.alloc_estimated, i ? 0 : 1070);
		assert_int_equal(figures.alloc_least, i ? 1070 : 0);
		end(allocations);
	}
}

/* A process may make and close many VMs. */
static void what_a_vm_that_is_gone_has_left_is_lost_then(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	captured_count = VMS - 1;
	look(allocations, MS);
	unseen = (struct allocation_share){ .bytes = 300, .objects = 3 };
	captured_first = 1;
	captured_count = 1;
	look(allocations, 500 * MS);
	divide(allocations, false);
	assert_int_equal(delivered.count, 0);
	look(allocations, 600 * MS);
	divide(allocations, false);
	assert_int_equal(shares_made, 1);
	assert_int_equal(delivered.lost, 1);
	assert_int_equal(delivered.last.alloc_bytes, 300);
	end(allocations);
}

static void what_waits_at_the_end_is_the_last_sample_s(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	is_allocating = true;
	waiting = (struct allocation_share){ .bytes = 50, .objects = 5 };
	for (int i = 0; i < 4; i++) {
		sample.tid = 20 + i;
		look(allocations, MS);
		divided[i] = (struct allocation_share){ .bytes = 1, .objects = 1 };
	}
	pass(500 * MS);
	divide(allocations, false);
	assert_int_equal(delivered.count, 4);
	assert_int_equal(delivered.bytes, 4);
	divide(allocations, true);
	assert_int_equal(delivered.count, 1);
	assert_int_equal(delivered.lost, 0);
	assert_int_equal(delivered.last.tid, 22); /* of its class */
	assert_int_equal(delivered.last.alloc_bytes, 50);
	assert_int_equal(delivered.last.alloc_objects, 5);
	assert_in_range(delivered.last.time_ns, now_ns - 100, now_ns);
	assert_string_equal(delivered.leaf, "kind 7");
	end(allocations);
}

static void objects_of_c_have_their_type(void **state)
{
	struct allocations *allocations = begin();

	(void)state;
	is_allocating = true;
	allocation.ctype = 9;
	look(allocations, MS);
	divided[0] = (struct allocation_share){ .bytes = 1, .objects = 1 };
	divide(allocations, true);
	assert_string_equal(delivered.leaf, "kind 7 ctype 9");
	end(allocations);
}

/* What is kept refers to functions that must stay: of the leaf, and of the others. */
static void functions_of_kept_samples_stay(void **state)
{
	struct allocations *allocations = begin();
	const struct function *kept = functions_intern(functions, &lua);
	size_t size;

	(void)state;
	is_allocating = true;
	frames[0].function = frames[1].function = kept;
	look(allocations, MS);
	allocations_keep_functions(allocations);
	size = functions_size(functions);
	functions_drop_others(functions);
	assert_int_equal(functions_size(functions), size);
	/* The second time nothing is in use. */
	functions_drop_others(functions);
	assert_int_equal(functions_size(functions), 0);
	end(allocations);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(intervals_are_from_look_to_look),
		cmocka_unit_test(a_look_without_a_sample_counts_bytes),
		cmocka_unit_test(a_vm_has_the_time_before_looks_that_meet_it),
		cmocka_unit_test(the_time_before_looks_is_of_the_recording),
		cmocka_unit_test(what_was_before_the_first_look_has_no_sample),
		cmocka_unit_test(the_newest_object_is_read_of_native_code),
		cmocka_unit_test(a_look_is_taken_once),
		cmocka_unit_test(a_thread_that_runs_on_has_intervals_only),
		cmocka_unit_test(a_vm_at_the_address_of_a_closed_one_begins_anew),
		cmocka_unit_test(so_many_vms_are_seen_and_of_more_it_is_said),
		cmocka_unit_test(a_vm_that_is_gone_gives_its_place_to_another),
		cmocka_unit_test(windows_and_films_have_a_rate),
		cmocka_unit_test(spans_begin_at_random_moments),
		cmocka_unit_test(beside_another_thread_of_the_process_there_is_no_span),
		cmocka_unit_test(vms_of_one_process_have_the_same_spans),
		cmocka_unit_test(spans_of_many_vms_are_short),
		cmocka_unit_test(many_vms_have_spans_in_turn),
		cmocka_unit_test(a_film_has_the_objects_made_meanwhile),
		cmocka_unit_test(films_that_take_long_do_not_count),
		cmocka_unit_test(series_are_rare),
		cmocka_unit_test(vms_have_series_in_turn),
		cmocka_unit_test(only_threads_that_run_have_series),
		cmocka_unit_test(a_series_asks_whether_the_thread_has_kept_its_cpu),
		cmocka_unit_test(what_was_not_seen_at_the_look_has_no_window),
		cmocka_unit_test(windows_are_short),
		cmocka_unit_test(windows_have_the_userdata_since_the_look),
		cmocka_unit_test(windows_end_after_the_same_time),
		cmocka_unit_test(a_thread_without_a_cpu_has_its_window_later),
		cmocka_unit_test(a_thread_without_a_cpu_has_no_span),
		cmocka_unit_test(a_thread_that_has_left_its_cpu_has_no_span),
		cmocka_unit_test(a_span_in_which_ljspy_lost_its_cpu_is_none),
		cmocka_unit_test(spans_do_not_follow_each_other_at_once),
		cmocka_unit_test(without_counts_there_are_films_only),
		cmocka_unit_test(on_one_cpu_the_thread_runs_while_ljspy_sleeps),
		cmocka_unit_test(on_one_cpu_a_span_needs_its_clock_and_counters_before_and_after),
		cmocka_unit_test(figures_tell_how_sure_the_bytes_are),
		cmocka_unit_test(figures_tell_how_many_bytes_are_in_large_allocations),
		cmocka_unit_test(a_sample_is_delivered_with_its_share),
		cmocka_unit_test(a_sample_has_the_collector_of_the_vm_that_allocates),
		cmocka_unit_test(samples_without_a_share_are_not_delivered),
		cmocka_unit_test(a_sample_that_memory_is_too_short_for_is_none),
		cmocka_unit_test(what_is_no_allocation_of_a_vm_is_no_sample),
		cmocka_unit_test(so_many_samples_are_kept),
		cmocka_unit_test(what_has_no_sample_is_lost_at_the_end),
		cmocka_unit_test(what_a_vm_that_is_gone_has_left_is_lost_then),
		cmocka_unit_test(what_waits_at_the_end_is_the_last_sample_s),
		cmocka_unit_test(objects_of_c_have_their_type),
		cmocka_unit_test(functions_of_kept_samples_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

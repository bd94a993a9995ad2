/* SPDX-License-Identifier: MIT */
/* What a filter makes of stacks: patterns, waits, groups, recursion, functions without lines and roots. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/labels/frame_label.h"
#include "output/recording/stack_cache.h"
#include "output/views/filter.h"
#include "output/labels/names.h"
#include "tests/unit/made_up_source.h"

static const struct function a = {
	.kind = FRAME_LUA, .name = "a", .file = "@/srv/app/lib/a.lua", .firstline = 1
};
static const struct function a_again = {
	.kind = FRAME_LUA, .name = "a", .file = "@/srv/app/lib/a.lua", .firstline = 9
};
static const struct function b = {
	.kind = FRAME_LUA, .name = "b", .file = "@/srv/app/lib/b.lua", .firstline = 2, .root = 10
};
static const struct function nameless = { .kind = FRAME_LUA, .file = "@/srv/app/lib/a.lua", .firstline = 5 };
static const struct function native = { .kind = FRAME_NATIVE, .name = "c", .module = "libc.so.6" };
static const struct function lock = { .kind = FRAME_NATIVE, .name = "futex (lock)", .module = "kernel" };

static const struct function trace = {
	.kind = FRAME_TRACE, .name = "trace#2", .file = "@/srv/app/lib/b.lua", .firstline = 8, .root = 10
};

enum { FRAMES_MAX = 40 };

/* Frames of these functions, leaf first. */
static struct sample sample_of(struct frame *frames, const struct function *const *functions, size_t count)
{
	for (size_t i = 0; i < count; i++)
		frames[i] = (struct frame){ .function = functions[i], .line = (uint32_t)i + 1 };
	return (struct sample){ .time_ns = 1,
				.pid = 10,
				.tid = 11,
				.cpu_ns = 3,
				.wall_ns = 5,
				.frames = frames,
				.frame_count = count };
}

static char text[1024];

/* What passes of a sample: its frames with their lines, root first; "-" if it does not pass. */
static const char *passed(const struct filter_options *options, const struct sample *sample)
{
	struct functions *functions = functions_new();
	struct made_up_source source = made_up_source(sample, 1);
	struct filter *filter = filter_new(&source.source, functions, options);
	struct sample_source *filtered = filter_samples(filter);
	struct sample result;
	size_t end = 0;

	assert_non_null(functions);
	assert_non_null(filter);
	strcpy(text, "-");
	/* The second time, the stack's number tells what has become of it. */
	source.count = 2;
	for (int round = 0; round < 2; round++) {
		char before[sizeof(text)];

		strcpy(before, text);
		if (filtered->next(filtered, &result) != 1)
			break;
		end = 0;
		for (size_t i = result.frame_count; i-- > 0;) {
			const struct function *function = result.frames[i].function;

			end += (size_t)snprintf(text + end, sizeof(text) - end, "%s%s", end ? ";" : "",
						function->name ? function->name : "?");
			if (function->file)
				end += (size_t)snprintf(text + end, sizeof(text) - end, " %s:%u",
							function->file, function->firstline);
		}
		if (round)
			assert_string_equal(text, before);
	}
	filter_free(filter);
	functions_free(functions);
	return text;
}

static regex_t pattern(const char *expression)
{
	regex_t compiled;

	assert_int_equal(regcomp(&compiled, expression, REG_EXTENDED | REG_NOSUB), 0);
	return compiled;
}

static void any_frame_may_match(void **state)
{
	struct frame frames[FRAMES_MAX];
	struct sample sample = sample_of(frames, (const struct function *[]){ &native, &b, &a }, 3);
	regex_t of_a = pattern("^a "), of_c = pattern("libc"), of_none = pattern("^d"),
		of_lock = pattern("lock");

	(void)state;
	for (uint64_t stack = 0; stack < 2; stack++) {
		static const char all[] = "a @/srv/app/lib/a.lua:1;b @/srv/app/lib/b.lua:2;c";

		sample.stack = stack;
		assert_string_equal(passed(&(struct filter_options){ .include = &of_a }, &sample), all);
		assert_string_equal(passed(&(struct filter_options){ .include = &of_c }, &sample), all);
		assert_string_equal(passed(&(struct filter_options){ .include = &of_none }, &sample), "-");
		assert_string_equal(passed(&(struct filter_options){ .exclude = &of_a }, &sample), "-");
		assert_string_equal(passed(&(struct filter_options){ .exclude = &of_none }, &sample), all);
		assert_string_equal(
			passed(&(struct filter_options){ .include = &of_a, .exclude = &of_c }, &sample), "-");
		/* What a thread waits for is a frame only where time off the CPU is shown. */
		sample.wait = &lock;
		sample.thread_state = THREAD_BLOCKED;
		assert_string_equal(passed(&(struct filter_options){ .include = &of_lock }, &sample), "-");
		assert_string_equal(
			passed(&(struct filter_options){ .include = &of_lock, .time = TIME_OFF_CPU },
			       &sample),
			"a @/srv/app/lib/a.lua:1;b @/srv/app/lib/b.lua:2;c;futex (lock)");
		sample.wait = NULL;
	}
	regfree(&of_a);
	regfree(&of_c);
	regfree(&of_none);
	regfree(&of_lock);
}

static void times_are_shares_of_a_sample(void **state)
{
	const struct filter_options off = { .time = TIME_OFF_CPU }, on = { .time = TIME_ON_CPU };
	const struct filter_options idle = { .time = TIME_OFF_CPU, .thread_states = 1 << THREAD_IDLE };
	struct frame frames[FRAMES_MAX];
	struct sample sample = sample_of(frames, (const struct function *[]){ &native }, 1), result;
	struct functions *functions = functions_new();

	(void)state;
	assert_int_equal(filter_time_by(WEIGHT_OFF_CPU_TIME, WEIGHT_WALL_TIME), TIME_OFF_CPU);
	assert_int_equal(filter_time_by(WEIGHT_WALL_TIME, WEIGHT_WALL_TIME), TIME_ALL);
	assert_int_equal(filter_time_by(WEIGHT_CPU_TIME, WEIGHT_CPU_TIME), TIME_ALL);
	assert_int_equal(filter_time_by(WEIGHT_CPU_TIME, WEIGHT_WALL_TIME), TIME_ON_CPU);
	for (size_t i = 0; i < 3; i++) {
		struct made_up_source source = made_up_source(&sample, 1);
		struct filter *filter = filter_new(
			&source.source, functions,
			(const struct filter_options *[]){ &(struct filter_options){ 0 }, &on, &off }[i]);

		assert_int_equal(filter_samples(filter)->next(filter_samples(filter), &result), 1);
		assert_int_equal(result.wall_ns, i == 2 ? 2 : 5);
		assert_int_equal(result.cpu_ns, i == 2 ? 0 : 3);
		filter_free(filter);
	}
	/* All of it on the CPU; none of it. */
	sample.cpu_ns = 5;
	assert_string_equal(passed(&off, &sample), "-");
	sample.cpu_ns = 0;
	assert_string_equal(passed(&on, &sample), "c"); /* it runs */
	sample.thread_state = THREAD_RUNNABLE;
	assert_string_equal(passed(&on, &sample), "-");
	assert_string_equal(passed(&off, &sample), "c;" WAITING_FOR_CPU);
	sample.cpu_ns = 1;
	assert_string_equal(passed(&on, &sample), "c");
	sample.thread_state = THREAD_IDLE;
	sample.wait = &lock;
	assert_string_equal(passed(&off, &sample), "-");
	assert_string_equal(passed(&idle, &sample), "c;futex (lock)");
	functions_free(functions);
}

static void states_and_threads_are_those_asked_for(void **state)
{
	struct frame frames[FRAMES_MAX];
	struct sample sample = sample_of(frames, (const struct function *[]){ &native }, 1);

	(void)state;
	sample.thread_state = THREAD_BLOCKED;
	sample.vm_state = VM_STATE_C;
	for (uint32_t bit = 0; bit < VM_STATE_COUNT; bit++) {
		assert_string_equal(passed(&(struct filter_options){ .thread_states = 1u << bit }, &sample),
				    bit == THREAD_BLOCKED ? "c" : "-");
		assert_string_equal(passed(&(struct filter_options){ .vm_states = 1u << bit }, &sample),
				    bit == VM_STATE_C ? "c" : "-");
		assert_string_equal(passed(&(struct filter_options){ .vm_states = 1u << bit,
								     .thread_states = 1 << THREAD_BLOCKED },
					   &sample),
				    "c");
	}
	assert_string_equal(passed(&(struct filter_options){ .thread = "worker" }, &sample), "-");
	sample.thread_name = "worker";
	assert_string_equal(passed(&(struct filter_options){ .thread = "worker" }, &sample), "c");
	sample.thread_name = "workers";
	assert_string_equal(passed(&(struct filter_options){ .thread = "worker" }, &sample), "-");
}

/* The stack grouped by this. */
static const char *root_of(enum filter_group group, const struct sample *sample)
{
	char *end;

	passed(&(struct filter_options){ .group = group }, sample);
	end = strchr(text, ';');
	assert_non_null(end);
	*end = '\0';
	return text;
}

static void a_group_is_the_root_of_each_stack(void **state)
{
	static const struct function peer = { .kind = FRAME_NATIVE,
					      .name = "upstream first byte: 127.0.0.1:8080" };
	static const struct function cosocket = { .kind = FRAME_NATIVE, .name = "socket receive: db:5432" };
	static const struct function resolving = { .kind = FRAME_NATIVE, .name = "upstream name" };
	struct frame frames[FRAMES_MAX];
	struct sample sample = sample_of(frames, (const struct function *[]){ &native, &b, &a }, 3);

	(void)state;
	for (uint64_t stack = 0; stack < 2; stack++) {
		sample.stack = stack;
		sample.process_name = sample.thread_name = sample.phase = NULL;
		sample.request = (struct sample_request){ 0 };
		sample.gc.phase = GC_PHASE_NONE;
		sample.thread_state = THREAD_RUNNING;
		sample.vm_state = VM_STATE_COMPILED;
		frames[0].function = &native;
		assert_string_equal(root_of(GROUP_PID, &sample), "process (pid 10)");
		assert_string_equal(root_of(GROUP_TID, &sample), "thread (tid 11)");
		assert_string_equal(root_of(GROUP_COMM, &sample), "thread");
		assert_string_equal(root_of(GROUP_STATE, &sample), "compiled");
		assert_string_equal(root_of(GROUP_PHASE, &sample), "no phase");
		assert_string_equal(root_of(GROUP_GC_PHASE, &sample), "no collection");
		assert_string_equal(root_of(GROUP_ROUTE, &sample), "no request");
		assert_string_equal(root_of(GROUP_HOST, &sample), "no request");
		assert_string_equal(root_of(GROUP_STATUS, &sample), "no request");
		assert_string_equal(root_of(GROUP_UPSTREAM, &sample), "no upstream");
		assert_string_equal(root_of(GROUP_MODULE, &sample), "lib/b");
		sample.process_name = "nginx";
		sample.thread_name = "pool";
		sample.phase = "content";
		sample.gc.phase = GC_PHASE_MARK;
		sample.request = (struct sample_request){ .route = "/x/*" };
		sample.thread_state = THREAD_PARKED;
		assert_string_equal(root_of(GROUP_PID, &sample), "nginx (pid 10)");
		assert_string_equal(root_of(GROUP_TID, &sample), "pool (tid 11)");
		assert_string_equal(root_of(GROUP_COMM, &sample), "pool");
		assert_string_equal(root_of(GROUP_STATE, &sample), "parked");
		assert_string_equal(root_of(GROUP_PHASE, &sample), "content");
		assert_string_equal(root_of(GROUP_GC_PHASE, &sample), "mark");
		assert_string_equal(root_of(GROUP_ROUTE, &sample), "/x/*");
		assert_string_equal(root_of(GROUP_HOST, &sample), "no host");
		assert_string_equal(root_of(GROUP_STATUS, &sample), "no status yet");
		assert_string_equal(root_of(GROUP_UPSTREAM, &sample), "no upstream");
		sample.request.host = "h";
		sample.request.status = 404;
		assert_string_equal(root_of(GROUP_HOST, &sample), "h");
		assert_string_equal(root_of(GROUP_STATUS, &sample), "404");
		sample.request.route = ROUTE_UNKNOWN;
		assert_string_equal(root_of(GROUP_HOST, &sample), ROUTE_UNKNOWN);
		assert_string_equal(root_of(GROUP_STATUS, &sample), ROUTE_UNKNOWN);
		frames[0].function = &peer;
		assert_string_equal(root_of(GROUP_UPSTREAM, &sample), "127.0.0.1:8080");
		frames[0].function = &cosocket;
		assert_string_equal(root_of(GROUP_UPSTREAM, &sample), "db:5432");
		frames[0].function = &resolving;
		assert_string_equal(root_of(GROUP_UPSTREAM, &sample), "no upstream");
		frames[0].function = &cosocket;
		sample.thread_state = THREAD_BLOCKED;
		assert_string_equal(root_of(GROUP_UPSTREAM, &sample), "no upstream");
		sample.thread_state = THREAD_PARKED;
		sample.request.route = NULL;
		assert_string_equal(root_of(GROUP_UPSTREAM, &sample), "no upstream");
		sample.frame_count = 1;
		assert_string_equal(root_of(GROUP_MODULE, &sample), "no Lua");
		sample.frame_count = 3;
	}
}

static void only_what_a_request_waits_for_has_an_upstream(void **state)
{
	static const struct function pool = { .kind = FRAME_NATIVE, .name = "upstream_pool: 127.0.0.1:8080" };
	static const struct function pair = { .kind = FRAME_NATIVE, .name = "socketpair: db:5432" };
	static const struct function *const leaves[] = { &pool, &pair, &nameless };
	struct frame frames[FRAMES_MAX];
	struct sample sample = sample_of(frames, (const struct function *[]){ &native, &a }, 2);

	(void)state;
	sample.thread_state = THREAD_PARKED;
	sample.request = (struct sample_request){ .route = "/x" };
	for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++) {
		frames[0].function = leaves[i];
		assert_string_equal(root_of(GROUP_UPSTREAM, &sample), "no upstream");
	}
	sample.frame_count = 0;
	assert_string_equal(passed(&(struct filter_options){ .group = GROUP_UPSTREAM }, &sample),
			    "no upstream");
}

/* Samples of one stack by two processes: the number of the stack alone does not tell what it becomes. */
static void stacks_of_one_number_are_told_apart_by_their_groups(void **state)
{
	struct frame frames[FRAMES_MAX];
	struct sample samples[3], result;
	struct functions *functions = functions_new();
	struct made_up_source source = made_up_source(samples, 3);
	struct filter *filter = filter_new(&source.source, functions,
					   &(struct filter_options){ .group = GROUP_PID });
	uint64_t numbers[3];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		samples[i] = sample_of(frames, (const struct function *[]){ &native }, 1);
		samples[i].stack = 7;
		samples[i].pid = i == 1 ? 20 : 10;
	}
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(filter_samples(filter)->next(filter_samples(filter), &result), 1);
		assert_int_equal(result.frame_count, 2);
		assert_string_equal(result.frames[1].function->name,
				    i == 1 ? "process (pid 20)" : "process (pid 10)");
		numbers[i] = result.stack;
	}
	assert_int_equal(numbers[0], numbers[2]);
	assert_int_not_equal(numbers[0], numbers[1]);
	assert_int_equal(filter_samples(filter)->next(filter_samples(filter), &result), 0);
	assert_int_equal(filter_samples(filter)->rewind(filter_samples(filter)), 0);
	assert_int_equal(filter_samples(filter)->next(filter_samples(filter), &result), 1);
	filter_free(filter);
	functions_free(functions);
}

/* Numbers of stacks that are 0, or too large to be told apart together with their groups, say nothing. */
static void without_a_good_number_each_stack_is_looked_at(void **state)
{
	static const struct function *const functions_of[] = { &native, &native, &b, &native, &b };
	static const uint64_t stacks[] = { 0, 0, 0, 7, 7 + (UINT64_C(1) << 48) };
	enum { COUNT = sizeof(stacks) / sizeof(stacks[0]) };
	struct frame frames[COUNT][1];
	struct sample samples[COUNT], result;
	struct functions *functions = functions_new();
	struct made_up_source source = made_up_source(samples, COUNT);
	struct filter *filter = filter_new(&source.source, functions,
					   &(struct filter_options){ .group = GROUP_PID });

	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		samples[i] = sample_of(frames[i], &functions_of[i], 1);
		samples[i].stack = stacks[i];
		samples[i].pid = i == 0 ? 10 : 20;
	}
	for (size_t i = 0; i < COUNT; i++) {
		assert_int_equal(filter_samples(filter)->next(filter_samples(filter), &result), 1);
		assert_int_equal(result.frame_count, 2);
		assert_ptr_equal(result.frames[0].function, functions_of[i]);
		assert_string_equal(result.frames[1].function->name,
				    i == 0 ? "process (pid 10)" : "process (pid 20)");
	}
	filter_free(filter);
	functions_free(functions);
}

/* Not even the cache of stacks has room for this one. */
static void a_stack_that_is_not_kept_passes_each_time(void **state)
{
	enum { DEEP = STACK_CACHE_FRAMES + 1 };
	struct frame *frames = calloc(DEEP, sizeof(*frames));
	struct sample sample = { .time_ns = 1, .stack = 7, .frames = frames, .frame_count = DEEP }, result;
	struct functions *functions = functions_new();
	struct made_up_source source = made_up_source(&sample, 1);
	struct filter *filter = filter_new(&source.source, functions,
					   &(struct filter_options){ .group = GROUP_PID });

	(void)state;
	assert_non_null(frames);
	for (size_t i = 0; i < DEEP; i++)
		frames[i].function = i == 0 ? &b : &a;
	source.count = 2;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(filter_samples(filter)->next(filter_samples(filter), &result), 1);
		assert_int_equal(result.frame_count, DEEP + 1);
		assert_ptr_equal(result.frames[0].function, &b);
		assert_ptr_equal(result.frames[DEEP - 1].function, &a);
	}
	filter_free(filter);
	functions_free(functions);
	free(frames);
}

/* One stack of four requests: two without host and status, one that is unknown, and none. */
static void requests_with_one_stack_are_told_apart(void **state)
{
	static const struct sample_request requests[] = {
		{ .route = "/x" }, { .route = ROUTE_UNKNOWN }, { 0 }, { .route = "/y" }
	};
	static const struct {
		enum filter_group group;
		const char *roots[4];
	} known[] = {
		{ GROUP_ROUTE, { "/x", ROUTE_UNKNOWN, "no request", "/y" } },
		{ GROUP_HOST, { "no host", ROUTE_UNKNOWN, "no request", "no host" } },
		{ GROUP_STATUS, { "no status yet", ROUTE_UNKNOWN, "no request", "no status yet" } },
	};
	struct functions *functions = functions_new();
	struct frame frames[FRAMES_MAX];
	struct sample samples[8], result;

	(void)state;
	for (size_t i = 0; i < 8; i++) {
		samples[i] = sample_of(frames, (const struct function *[]){ &native }, 1);
		samples[i].stack = 7;
		samples[i].request = requests[i % 4];
	}
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct made_up_source source = made_up_source(samples, 8);
		struct filter *filter = filter_new(&source.source, functions,
						   &(struct filter_options){ .group = known[i].group });

		for (size_t j = 0; j < 8; j++) {
			assert_int_equal(filter_samples(filter)->next(filter_samples(filter), &result), 1);
			assert_string_equal(result.frames[1].function->name, known[i].roots[j % 4]);
		}
		filter_free(filter);
	}
	functions_free(functions);
}

/* One stack, of which the fourth sample is as the first one; each of the others differs in one thing. */
static void samples_with_one_stack_are_told_apart(void **state)
{
	static const struct {
		enum filter_group group;
		struct sample samples[3];
		const char *roots[3];
	} known[] = {
		{ GROUP_PID,
		  { { .pid = 1, .process_name = "a" },
		    { .pid = 2, .process_name = "a" },
		    { .pid = 1, .process_name = "b" } },
		  { "a (pid 1)", "a (pid 2)", "b (pid 1)" } },
		{ GROUP_TID,
		  { { .tid = 1, .thread_name = "a" },
		    { .tid = 2, .thread_name = "a" },
		    { .tid = 1, .thread_name = "b" } },
		  { "a (tid 1)", "a (tid 2)", "b (tid 1)" } },
		{ GROUP_COMM,
		  { { .process_name = "a", .thread_name = "c" },
		    { .process_name = "a", .thread_name = "d" },
		    { 0 } },
		  { "c", "d", "thread" } },
		{ GROUP_STATE,
		  { { .vm_state = VM_STATE_COMPILED },
		    { .vm_state = VM_STATE_INTERPRETED },
		    { .thread_state = THREAD_PARKED } },
		  { "compiled", "interpreted", "parked" } },
		{ GROUP_PHASE,
		  { { .phase = "log" }, { .phase = "content" }, { 0 } },
		  { "log", "content", "no phase" } },
		{ GROUP_GC_PHASE,
		  { { .gc.phase = GC_PHASE_MARK },
		    { .gc.phase = GC_PHASE_NONE },
		    { .gc.phase = GC_PHASE_SWEEP } },
		  { "mark", "no collection", "sweep" } },
		{ GROUP_HOST,
		  { { .request = { .route = "/", .host = "a" } },
		    { .request = { .route = "/", .host = "b" } },
		    { .request = { .route = "/" } } },
		  { "a", "b", "no host" } },
		{ GROUP_STATUS,
		  { { .request = { .route = "/", .status = 200 } },
		    { .request = { .route = "/", .status = 404 } },
		    { .request = { .route = "/" } } },
		  { "200", "404", "no status yet" } },
	};
	struct functions *functions = functions_new();

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct frame frame = { .function = &native };
		struct sample samples[4], result;
		struct made_up_source source = made_up_source(samples, 4);
		struct filter *filter = filter_new(&source.source, functions,
						   &(struct filter_options){ .group = known[i].group });

		for (size_t j = 0; j < 4; j++) {
			samples[j] = known[i].samples[j % 3];
			samples[j].frames = &frame;
			samples[j].frame_count = 1;
			samples[j].stack = 7;
		}
		for (size_t j = 0; j < 4; j++) {
			assert_int_equal(filter_samples(filter)->next(filter_samples(filter), &result), 1);
			assert_string_equal(result.frames[1].function->name, known[i].roots[j % 3]);
		}
		filter_free(filter);
	}
	functions_free(functions);
}

/* The frames of the sample before lie behind those of a shorter one. */
static void calls_of_another_sample_do_not_repeat(void **state)
{
	struct frame frames[2][FRAMES_MAX];
	struct sample result;
	const struct sample samples[] = {
		sample_of(frames[0], (const struct function *[]){ &a, &native, &b }, 3),
		sample_of(frames[1], (const struct function *[]){ &a, &b }, 2),
	};
	struct functions *functions = functions_new();
	struct made_up_source source = made_up_source(samples, 2);
	struct filter *filter = filter_new(&source.source, functions,
					   &(struct filter_options){ .merge_recursion = true });

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(filter_samples(filter)->next(filter_samples(filter), &result), 1);
		assert_int_equal(result.frame_count, samples[i].frame_count);
		for (size_t j = 0; j < result.frame_count; j++)
			assert_ptr_equal(result.frames[j].function, samples[i].frames[j].function);
	}
	filter_free(filter);
	functions_free(functions);
}

static void repeated_calls_are_one(void **state)
{
	const struct filter_options options = { .merge_recursion = true };
	const struct function *functions[FRAMES_MAX];
	struct frame frames[FRAMES_MAX];
	struct sample sample;

	(void)state;
	sample = sample_of(frames, (const struct function *[]){ &native, &b, &a, &a, &a, &b }, 6);
	assert_string_equal(passed(&options, &sample),
			    "b @/srv/app/lib/b.lua:2;a @/srv/app/lib/a.lua:1;b @/srv/app/lib/b.lua:2;c");
	/* A cycle of two, which begins wherever it does. */
	sample = sample_of(frames, (const struct function *[]){ &b, &a, &b, &a, &b, &native }, 6);
	assert_string_equal(passed(&options, &sample),
			    "c;b @/srv/app/lib/b.lua:2;a @/srv/app/lib/a.lua:1;b @/srv/app/lib/b.lua:2");
	/* Cycles of up to so many functions. */
	for (size_t length = FILTER_CYCLE_MAX; length <= FILTER_CYCLE_MAX + 1; length++) {
		struct function many[FILTER_CYCLE_MAX + 1];

		for (size_t i = 0; i < 2 * length; i++) {
			many[i % length] = native;
			functions[i] = &many[i % length];
		}
		sample = sample_of(frames, functions, 2 * length);
		passed(&options, &sample);
		assert_int_equal(strlen(text), (length == FILTER_CYCLE_MAX ? length : 2 * length) * 2 - 1);
	}
	/* The innermost one's line remains. */
	sample = sample_of(frames, (const struct function *[]){ &a, &a, &native }, 3);
	{
		struct functions *interned = functions_new();
		struct made_up_source source = made_up_source(&sample, 1);
		struct filter *filter = filter_new(&source.source, interned, &options);
		struct sample result;

		assert_int_equal(filter_samples(filter)->next(filter_samples(filter), &result), 1);
		assert_int_equal(result.frame_count, 2);
		assert_int_equal(result.frames[0].line, 1);
		assert_int_equal(result.frames[1].line, 3);
		filter_free(filter);
		functions_free(interned);
	}
}

static void functions_lose_their_lines_and_roots(void **state)
{
	const struct filter_options line = { .without_line = true }, root = { .without_root = true };
	const struct filter_options both = { .without_line = true, .without_root = true };
	struct frame frames[FRAMES_MAX];
	struct sample sample = sample_of(
		frames, (const struct function *[]){ &native, &nameless, &b, &a_again, &a }, 5);

	(void)state;
	assert_string_equal(passed(&line, &sample),
			    "a @/srv/app/lib/a.lua:0;a @/srv/app/lib/a.lua:0;b @/srv/app/lib/b.lua:0;"
			    "? @/srv/app/lib/a.lua:5;c");
	assert_string_equal(
		passed(&root, &sample),
		"a @/srv/app/lib/a.lua:1;a @/srv/app/lib/a.lua:9;b @lib/b.lua:2;? @/srv/app/lib/a.lua:5;c");
	assert_string_equal(
		passed(&both, &sample),
		"a @/srv/app/lib/a.lua:0;a @/srv/app/lib/a.lua:0;b @lib/b.lua:0;? @/srv/app/lib/a.lua:5;c");
	/* Traces begin at a line, which is what they are. */
	sample = sample_of(frames, (const struct function *[]){ &trace }, 1);
	assert_string_equal(passed(&both, &sample), "trace#2 @/srv/app/lib/b.lua:8");
}

/* Whatever the root, and however long it is: so a comparison puts both side by side. */
static void a_function_of_two_roots_is_one_without_them(void **state)
{
	const struct function one = {
		.kind = FRAME_LUA, .name = "b", .file = "@/srv/app/lib/some/package/b.lua", .root = 10
	};
	const struct function other = {
		.kind = FRAME_LUA, .name = "b", .file = "@/opt/releases/2/lib/some/package/b.lua", .root = 17
	};
	const struct filter_options options = { .without_root = true };
	struct frame frames[FRAMES_MAX];
	struct sample sample = sample_of(frames, (const struct function *[]){ &one, &other }, 2), result;
	struct made_up_source source = made_up_source(&sample, 1);
	struct functions *interned = functions_new();
	struct filter *filter = filter_new(&source.source, interned, &options);

	(void)state;
	assert_int_equal(filter_samples(filter)->next(filter_samples(filter), &result), 1);
	assert_string_equal(result.frames[0].function->file, "@lib/some/package/b.lua");
	assert_int_equal(result.frames[0].function->root, 0);
	assert_ptr_equal(result.frames[0].function, result.frames[1].function);
	filter_free(filter);
	functions_free(interned);
}

static void a_filter_without_conditions_passes_all(void **state)
{
	static const pid_t ids[] = { 1 };
	regex_t some = pattern("x");
	const struct filter_options conditions[] = {
		{ .since_ns = 1 },
		{ .until_ns = 1 },
		{ .pids = ids, .pid_count = 1 },
		{ .tids = ids, .tid_count = 1 },
		{ .thread = "x" },
		{ .thread_states = 1 },
		{ .vm_states = 1 },
		{ .include = &some },
		{ .exclude = &some },
		{ .include_request = &some },
		{ .slower_than_ns = 1 },
		{ .slower_than_ppm = 1 },
		{ .number = 1 },
		{ .time = TIME_ON_CPU },
		{ .merge_recursion = true },
		{ .group = GROUP_PID },
	};
	struct made_up_source source = made_up_source(NULL, 0);
	struct functions *functions = functions_new();
	struct filter *filter = filter_new(&source.source, functions, &(struct filter_options){ 0 });

	(void)state;
	assert_true(filter_passes_all(filter));
	filter_free(filter);
	filter_free(NULL);
	for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++) {
		filter = filter_new(&source.source, functions, &conditions[i]);
		assert_false(filter_passes_all(filter));
		filter_free(filter);
	}
	functions_free(functions);
	regfree(&some);
}

static void errors_of_the_source_are_passed_on(void **state)
{
	const struct filter_options options[] = { { 0 }, { .slower_than_ns = 1 }, { .group = GROUP_PID } };
	struct functions *functions = functions_new();

	(void)state;
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		struct made_up_source source = made_up_source(NULL, 0);
		struct filter *filter = filter_new(&source.source, functions, &options[i]);
		struct sample result;

		source.end = -5;
		assert_int_equal(filter_samples(filter)->next(filter_samples(filter), &result), -5);
		filter_free(filter);
	}
	functions_free(functions);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_frame_may_match),
		cmocka_unit_test(times_are_shares_of_a_sample),
		cmocka_unit_test(states_and_threads_are_those_asked_for),
		cmocka_unit_test(a_group_is_the_root_of_each_stack),
		cmocka_unit_test(only_what_a_request_waits_for_has_an_upstream),
		cmocka_unit_test(stacks_of_one_number_are_told_apart_by_their_groups),
		cmocka_unit_test(requests_with_one_stack_are_told_apart),
		cmocka_unit_test(samples_with_one_stack_are_told_apart),
		cmocka_unit_test(without_a_good_number_each_stack_is_looked_at),
		cmocka_unit_test(a_stack_that_is_not_kept_passes_each_time),
		cmocka_unit_test(repeated_calls_are_one),
		cmocka_unit_test(calls_of_another_sample_do_not_repeat),
		cmocka_unit_test(functions_lose_their_lines_and_roots),
		cmocka_unit_test(a_function_of_two_roots_is_one_without_them),
		cmocka_unit_test(a_filter_without_conditions_passes_all),
		cmocka_unit_test(errors_of_the_source_are_passed_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

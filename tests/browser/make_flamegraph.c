/* SPDX-License-Identifier: MIT */
/*
 * Writes the flame graph of a made-up profile to standard output.
 *
 *	make_flamegraph small|compare|nginx|big|hostile|deep|wide|empty|stall|part|alloc|waits
 *		|worker|many|stacks [inverted|lines|page|heatmap|source]...
 *
 * small and compare are what the tests compute with: their shares are round
 * numbers. stall and alloc have a heat map; part is 1.75 seconds of stall; waits is
 * by the wall clock; worker has two processes with three threads. source adds made-up sources: of
 * test.lua 20 lines, of hostile files what a page could run.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/flamegraph/flamegraph.h"
#include "output/source/source_text.h"
#include "output/views/filter.h"
#include "tests/made_up.h"
#include "tests/unit/made_up_source.h"

enum { STACK_MAX = 6000 };

/* What the VM does while this is running. */
static enum vm_state state_in(const struct frame *leaf)
{
	static const enum vm_state states[FRAME_KIND_COUNT] = {
		[FRAME_LUA] = VM_STATE_INTERPRETED, [FRAME_BUILTIN] = VM_STATE_C,
		[FRAME_C_FUNCTION] = VM_STATE_C,    [FRAME_NATIVE] = VM_STATE_C,
		[FRAME_VM] = VM_STATE_GC,           [FRAME_TRACE] = VM_STATE_COMPILED,
		[FRAME_LOST] = VM_STATE_UNKNOWN,    [FRAME_ALLOCATED] = VM_STATE_INTERPRETED,
	};

	return leaf->compiled ? VM_STATE_COMPILED : states[leaf->function->kind];
}

/* Where the innermost frame of a stack is, and how it runs there. */
struct position {
	uint32_t line; /* 0: the one after the function's first */
	enum frame_certainty certainty;
	enum vm_state state; /* VM_STATE_NONE: as the kind of frame has it */
};

/* count samples of 10 ms of one stack, root first, ended by NULL; bit i of compiled is for frame i. */
static void add_at(struct profile *profile, unsigned count, unsigned compiled, struct position leaf,
		   const struct function *const *stack)
{
	static struct frame frames[STACK_MAX];
	size_t depth = 0;

	while (stack[depth])
		depth++;
	for (size_t i = 0; i < depth; i++)
		frames[depth - 1 - i] = (struct frame){
			.function = stack[i],
			.compiled = i < 32 && (compiled >> i & 1),
			.line = stack[i]->kind == FRAME_LUA ? stack[i]->firstline + 1 : 0,
		};
	if (leaf.line > 0)
		frames[0].line = leaf.line;
	frames[0].certainty = leaf.certainty;
	for (; count > 0; count--) {
		struct sample sample = {
			.cpu_ns = 10000000,
			.frames = frames,
			.frame_count = depth,
			.vm_state = leaf.state ? leaf.state : state_in(&frames[0]),
		};

		if (profile_add(profile, &sample) < 0)
			exit(1);
	}
}

static void add(struct profile *profile, unsigned count, unsigned compiled,
		const struct function *const *stack)
{
	add_at(profile, count, compiled, (struct position){ 0 }, stack);
}

#define STACK(...) ((const struct function *const[]){ __VA_ARGS__, NULL })

static void small(struct profile *profile)
{
	const struct function *chunk = lua("main chunk", "test.lua", 0);
	const struct function *heavy = lua("heavy", "test.lua", 5);
	const struct function *light = lua("light", "test.lua", 12);
	const struct function *gsub = other(FRAME_BUILTIN, "string.gsub", NULL);
	const struct function *root = other(FRAME_C_FUNCTION, "sqrt", "libm.so.6");
	const struct function *memory = other(FRAME_NATIVE, "malloc", "libc.so.6");
	const struct function *handler = other(FRAME_VM, "lj_BC_ADDVV", NULL);
	const struct function *lost = other(FRAME_LOST, "frame chain broken", NULL);

	add_at(profile, 20, 2, (struct position){ .line = 8 }, STACK(chunk, heavy));
	add_at(profile, 10, 2, (struct position){ .line = 9, .certainty = CERTAINTY_NEAREST },
	       STACK(chunk, heavy));
	add(profile, 20, 6, STACK(chunk, heavy, heavy)); /* recursion: matches nest */
	add(profile, 10, 0, STACK(chunk, heavy, gsub));
	add(profile, 5, 0, STACK(chunk, light, gsub, memory));
	add(profile, 15, 0, STACK(chunk, light, root));
	add(profile, 10, 0, STACK(chunk, handler));
	add_at(profile, 5, 0, (struct position){ .state = VM_STATE_RECORDING }, STACK(chunk));
	add(profile, 5, 0, STACK(lost));
}

/* A thousand samples each, now and before. */
static void compare(struct profile *profile, struct profile *baseline)
{
	static const struct {
		const char *name;
		unsigned now, before;
	} functions_of_both[] = {
		{ "slower", 400, 200 }, { "faster", 100, 300 }, { "same", 300, 300 },
		{ "chance", 104, 100 }, { "fresh", 96, 0 },     { "gone", 0, 100 },
	};
	const struct function *chunk = lua("main chunk", "test.lua", 0);

	for (unsigned i = 0; i < sizeof(functions_of_both) / sizeof(functions_of_both[0]); i++) {
		const struct function *function = lua(functions_of_both[i].name, "test.lua", 10 * i + 1);

		add(profile, functions_of_both[i].now, 0, STACK(chunk, function));
		add(baseline, functions_of_both[i].before, 0, STACK(chunk, function));
	}
}

static uint32_t random_below(uint32_t limit)
{
	static uint32_t seed = 1;

	seed = seed * 1664525u + 1013904223u;
	return seed / 65536u % limit;
}

static const struct function *server_function(unsigned i)
{
	static const char *const verbs[] = { "get",      "set",    "parse",  "encode", "match",
					     "run",      "load",   "check",  "handle", "render",
					     "validate", "lookup", "insert", "merge",  "flush" };
	static const char *const nouns[] = { "header",  "route",    "plugin", "token", "request",
					     "cache",   "upstream", "schema", "body",  "config",
					     "session", "balancer", "metric" };

	if (i % 17 == 0)
		return other(FRAME_VM, text("lj_BC_CALL%u", i), NULL);
	if (i % 13 == 0)
		return other(FRAME_BUILTIN, text("string.format%u", i), NULL);
	if (i % 11 == 0)
		return other(FRAME_C_FUNCTION, text("cjson_encode%u", i), "cjson.so");
	if (i % 7 == 0)
		return other(FRAME_NATIVE, text("pcre2_match_%u", i), "libpcre2-8.so.0");
	return lua(i % 101 == 0 ? NULL : text("%s_%s", verbs[i * 7 % 15], nouns[i * 11 % 13]),
		   text("/usr/local/share/lua/5.1/%s/%s%u.lua", nouns[i % 13], verbs[i % 15], i % 40), 5 + i);
}

/* A busy web server: 1,200 different functions. */
static void serve(struct profile *profile, unsigned requests)
{
	enum { POOL = 1200, CHUNKS = 5, BASE = 6 };
	static const char *const chunk_names[CHUNKS] = {
		"=access_by_lua(nginx.conf:24)",        "=content_by_lua(nginx.conf:31)",
		"=header_filter_by_lua(nginx.conf:40)", "=log_by_lua(nginx.conf:47)",
		"=rewrite_by_lua(nginx.conf:20)",
	};
	static const char *const base_names[BASE] = {
		"main",
		"ngx_worker_process_cycle",
		"ngx_epoll_process_events",
		"ngx_event_process_posted",
		"ngx_http_core_run_phases",
		"ngx_http_lua_run_thread",
	};
	const struct function *pool[POOL], *chunks[CHUNKS], *stack[64];

	for (unsigned i = 0; i < POOL; i++)
		pool[i] = server_function(i);
	for (unsigned i = 0; i < CHUNKS; i++)
		chunks[i] = lua("main chunk", chunk_names[i], 0);
	for (unsigned i = 0; i < BASE; i++)
		stack[i] = other(FRAME_NATIVE, base_names[i], "nginx");
	for (unsigned i = 0; i < requests; i++) {
		unsigned phase = random_below(CHUNKS);
		unsigned frames = 3 + random_below(22);
		unsigned depth = BASE;

		stack[depth++] = chunks[phase];
		for (unsigned j = 0, at = phase * 240; j < frames; j++) {
			/* Few branches, and fewer the deeper: most stacks have much in common. */
			at = (at * 3 + j * j + random_below(100) / (j < 4 ? 60 : 40)) % POOL;
			stack[depth++] = pool[at];
		}
		stack[depth] = NULL;
		add_at(profile, 1, random_below(3) == 0 ? 0 : 0xffffffu << 7,
		       (struct position){ .certainty = random_below(5) == 0 ? CERTAINTY_NEAREST
									    : CERTAINTY_EXACT,
					  .state = random_below(12) == 0 ? 4 + random_below(5) : 0 },
		       stack);
	}
	stack[3] = made_up((struct function){
		.kind = FRAME_TRACE, .name = "trace#2", .file = "test.lua", .firstline = 8 });
	stack[4] = NULL;
	add(profile, 40, 0, stack);
	stack[2] = other(FRAME_LOST, "inside half-done call or return", NULL);
	stack[3] = NULL;
	add(profile, 60, 0, stack);
}

static void nginx(struct profile *profile)
{
	serve(profile, 3000);
}

/* More than 50,000 frames. */
static void big(struct profile *profile)
{
	serve(profile, 11000);
}

static void hostile(struct profile *profile)
{
	static char huge[1 << 20];
	/* The page lays it out anew at each click in the list of files. */
	const char *long_file = &huge[sizeof(huge) - 16384];
	static const char *const names[] = {
		"</script><script>document.documentElement.dataset.owned=1</script>",
		"]]><script>document.documentElement.dataset.owned=2</script>",
		"<![CDATA[",
		"<!--",
		"&lt;&amp;&#x0;",
		"\"' onmouseover='document.documentElement.dataset.owned=3'",
		"javascript:alert(1)",
		"line one\nline two\r\t\x01\x02\x1b[31m",
		"\xff\xfe\xc0\xaf\xed\xa0\x80",
		"\u202egnp.exe",
		"\uffff\ufffe",
		"\u4e2d\u6587\u51fd\u6570\u540d\u5b57\u5f88\u957f\u5f88\u957f\u5f88\u957f",
		"na\u00efve \U0001f4a9",
		"${1}`+alert(1)+`",
		"%s%n%n%n",
		"",
		" ",
	};

	memset(huge, 'H', sizeof(huge) - 1);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		add(profile, 10, 0,
		    STACK(lua(names[i], names[i], 1), other(FRAME_NATIVE, names[i], names[i])));
	add(profile, 10, 0, STACK(lua(huge, long_file, 1), other(FRAME_BUILTIN, huge, NULL)));
}

/* 5,000 levels, and a branch on the way. */
static void deep(struct profile *profile)
{
	static const struct function *stack[STACK_MAX];

	for (unsigned i = 0; i < 5000; i++)
		stack[i] = lua(text("level%u", i), "deep.lua", i + 1);
	add(profile, 80, 0, stack);
	stack[2500] = NULL;
	add(profile, 20, 0, stack);
}

/* 50,000 functions called by one, one of them often, and a few too small to keep. */
static void wide(struct profile *profile)
{
	const struct function *chunk = lua("main chunk", "wide.lua", 0);

	for (unsigned i = 0; i < 50000; i++)
		add(profile, 1, 0, STACK(chunk, lua(text("callee%05u", i), "wide.lua", i + 1)));
	add(profile, 50000, 0, STACK(chunk, lua("often", "wide.lua", 1)));
	for (unsigned i = 0; i < 7; i++) {
		struct frame frame = { .function = lua(text("rare%u", i), "wide.lua", 2) };
		struct sample sample = { .cpu_ns = 1, .frames = &frame, .frame_count = 1 };

		profile_add(profile, &sample);
	}
}

/* The shortest units of time. */
static void brief(struct profile *profile)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} times[] = {
		{ "microseconds", 2500 },
		{ "nanoseconds", 999 },
	};

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		struct frame frame = { .function = lua(times[i].name, "brief.lua", (uint32_t)i + 1) };
		struct sample sample = { .cpu_ns = times[i].ns, .frames = &frame, .frame_count = 1 };

		if (profile_add(profile, &sample) < 0)
			exit(1);
	}
}

static void empty(struct profile *profile)
{
	(void)profile;
}

/* Ten seconds of a sample each 10 ms, and what the tests look for in them. */
enum {
	STALL_TICKS = 1000,
	STALL_FROM = 420,
	STALL_UNTIL = 470,
	STALL_IDLE_FROM = 700,
	STALL_IDLE_UNTIL = 800
};

static const uint64_t stall_tick_ns = 10000000, stall_start_ns = 5000000000;
static const struct time_span stall_whole = { 0, UINT64_C(10000000) * STALL_TICKS },
			      stall_part = { 6500000000, 8250000000 };

struct stall_samples {
	struct sample_source source;
	const struct function *chunk, *heavy, *light, *execute;
	unsigned tick;
	struct frame frames[2];
};

/* heavy and light by turns; os.execute for half a second; nothing for a second. */
static int next_stalled(struct sample_source *source, struct sample *ret_sample)
{
	struct stall_samples *samples = (struct stall_samples *)source;
	unsigned tick = samples->tick++;
	const struct function *leaf = samples->execute;

	if (tick == STALL_TICKS)
		return 0;
	if (tick == STALL_IDLE_FROM)
		samples->tick = STALL_IDLE_UNTIL;
	if (tick < STALL_FROM || tick >= STALL_UNTIL)
		leaf = tick % 2 ? samples->light : samples->heavy;
	samples->frames[0] = (struct frame){ .function = leaf,
					     .line = leaf->firstline ? leaf->firstline + 1 : 0 };
	samples->frames[1] = (struct frame){ .function = samples->chunk, .line = 3 };
	*ret_sample = (struct sample){
		.time_ns = stall_start_ns + tick * stall_tick_ns + 5000000,
		.cpu_ns = stall_tick_ns,
		.vm_state = state_in(&samples->frames[0]),
		.frames = samples->frames,
		.frame_count = 2,
	};
	return 1;
}

static int rewind_stalled(struct sample_source *source)
{
	((struct stall_samples *)source)->tick = 0;
	return 0;
}

/* What was chosen of the ten seconds. */
static struct flamegraph_samples *stall(struct profile *profile, struct time_span span)
{
	const struct filter_options chosen = { .since_ns = stall_start_ns + span.since_ns,
					       .until_ns = stall_start_ns + span.until_ns };
	struct stall_samples samples = {
		.source = { next_stalled, rewind_stalled },
		.chunk = lua("main chunk", "test.lua", 0),
		.heavy = lua("heavy", "test.lua", 5),
		.light = lua("light", "test.lua", 12),
		.execute = other(FRAME_BUILTIN, "os.execute", NULL),
	};
	const struct flamegraph_samples_options options = {
		.start_ns = stall_start_ns,
		.span = span,
		.all_moments = true,
	};
	struct functions *functions = functions_new();
	struct filter *filter = functions ? filter_new(&samples.source, functions, &chosen) : NULL;
	struct flamegraph_samples *result;

	if (!filter || flamegraph_samples_read(filter_samples(filter), profile, &options, &result) < 0)
		exit(1);
	filter_free(filter);
	functions_free(functions);
	return result;
}

/*
 * Two workers, each with the same native frames at the bottom, and Lua files in
 * deep folders. Of each 10 samples of 10 ms: access 5, of which 3 are in the
 * handler of one plugin and 2 in that of another; content 4; no phase 1, in a
 * timer. The second worker, pid 101, has a second thread, tid 102, with one
 * sample each 100 ms, in the handler. "many" has too many samples for times.
 */
enum { WORKER_BASE = 12, WORKER_TICKS = 400, MANY_TICKS = 60000 };

static const uint64_t worker_start_ns = 5000000000;

struct worker_samples {
	struct sample_source source;
	unsigned tick, ticks, thread;
	const struct function *base[WORKER_BASE], *chunk, *leaves[4];
	struct frame frames[WORKER_BASE + 2];
};

#define PLUGINS "/usr/local/share/lua/5.1/kong/plugins/"

static int next_of_workers(struct sample_source *source, struct sample *ret_sample)
{
	struct worker_samples *samples = (struct worker_samples *)source;
	static const unsigned plan[10] = { 0, 0, 0, 1, 1, 2, 2, 2, 2, 3 };
	static const char *const phases[] = { "access", "access", "content", NULL };
	unsigned tick = samples->tick, kind = plan[tick % 10], depth = 0;

	if (tick == samples->ticks)
		return 0;
	samples->frames[depth++] = (struct frame){ .function = samples->leaves[kind],
						   .line = samples->leaves[kind]->firstline + 1 };
	samples->frames[depth++] = (struct frame){ .function = samples->chunk, .line = 3 };
	for (unsigned i = WORKER_BASE; i-- > 0;)
		samples->frames[depth++] = (struct frame){ .function = samples->base[i] };
	*ret_sample = (struct sample){
		.time_ns = worker_start_ns + (tick + 1) * UINT64_C(10000000),
		.cpu_ns = 10000000,
		.pid = samples->thread == 0 ? 100 : 101,
		.tid = 100 + (pid_t)samples->thread,
		.process_name = "nginx",
		.thread_name = samples->thread == 2 ? "<b>pool\t&amp;" : "nginx",
		.phase = phases[kind],
		.vm_state = kind == 2 ? VM_STATE_COMPILED : VM_STATE_INTERPRETED,
		.frames = samples->frames,
		.frame_count = depth,
	};
	if (++samples->thread > 1 && (samples->thread > 2 || tick % 10)) {
		samples->thread = 0;
		samples->tick++;
	}
	return 1;
}

static int rewind_workers(struct sample_source *source)
{
	struct worker_samples *samples = (struct worker_samples *)source;

	samples->tick = samples->thread = 0;
	return 0;
}

static struct flamegraph_samples *workers(struct profile *profile, unsigned ticks)
{
	static const char *const names[WORKER_BASE] = {
		"_start",
		"__libc_start_main",
		"main",
		"ngx_master_process_cycle",
		"ngx_start_worker_processes",
		"ngx_spawn_process",
		"ngx_worker_process_cycle",
		"ngx_process_events_and_timers",
		"ngx_epoll_process_events",
		"ngx_http_wait_request_handler",
		"ngx_http_process_request_line",
		"ngx_http_core_run_phases",
	};
	struct worker_samples samples = {
		.source = { next_of_workers, rewind_workers },
		.ticks = ticks,
		.chunk = lua("main chunk", "/opt/site/lua/init.lua", 0),
		.leaves = {
			lua("handler", PLUGINS "rate-limiting/handler.lua", 12),
			lua("handler", PLUGINS "rate-limiting-advanced/handler.lua", 12),
			lua("render", "/opt/site/lua/views/page.lua", 40),
			lua("tick", "/opt/site/lua/timers.lua", 7),
		},
	};
	const struct flamegraph_samples_options options = {
		.start_ns = worker_start_ns,
		.span.until_ns = ticks * UINT64_C(10000000),
	};
	struct flamegraph_samples *result;

	for (unsigned i = 0; i < WORKER_BASE; i++)
		samples.base[i] = other(FRAME_NATIVE, names[i], "nginx");
	if (flamegraph_samples_read(&samples.source, profile, &options, &result) < 0)
		exit(1);
	return result;
}

/*
 * 100 samples of allocations, each 10 ms after the one before: 70 MB of tables made by rows, 20 MB of strings
 * that it makes in table.concat, and 10 MB by which tables grow in the chunk.
 */
static struct flamegraph_samples *allocations(struct profile *profile)
{
	enum { COUNT = 100 };
	static struct sample samples[COUNT];
	const struct function *chunk = lua("main chunk", "test.lua", 0), *rows = lua("rows", "test.lua", 5),
			      *concat = other(FRAME_BUILTIN, "table.concat", NULL);
	const struct frame frames[3][4] = {
		{ { .function = other(FRAME_ALLOCATED, "table", NULL) },
		  { .function = rows, .line = 6 },
		  { .function = chunk, .line = 3 } },
		{ { .function = other(FRAME_ALLOCATED, "string", NULL) },
		  { .function = concat },
		  { .function = rows, .line = 7 },
		  { .function = chunk, .line = 3 } },
		{ { .function = other(FRAME_ALLOCATED, "growth of a table", NULL) },
		  { .function = chunk, .line = 4 } },
	};
	static const size_t depths[] = { 3, 4, 2 };
	struct made_up_source source = made_up_source(samples, COUNT);
	const struct flamegraph_samples_options options = {
		.start_ns = stall_start_ns,
		.span.until_ns = COUNT * UINT64_C(10000000),
		.all_moments = true,
	};
	struct flamegraph_samples *result;

	for (unsigned i = 0; i < COUNT; i++) {
		unsigned kind = i % 10 < 7 ? 0 : i % 10 < 9 ? 1 : 2;

		samples[i] = (struct sample){
			.time_ns = stall_start_ns + (i + 1) * UINT64_C(10000000),
			.alloc_bytes = 1000000,
			.alloc_objects = kind < 2 ? 10000 : 0,
			.vm_state = VM_STATE_INTERPRETED,
			.frames = frames[kind],
			.frame_count = depths[kind],
		};
	}
	if (flamegraph_samples_read(&source.source, profile, &options, &result) < 0)
		exit(1);
	return result;
}

/*
 * A second by the wall clock beside busy processes: in each 100 ms, heavy and light by turns run for 20 ms
 * and wait for a CPU for 80 ms. Both are samples of the time when the thread was looked at.
 */
static struct flamegraph_samples *waits(struct profile *profile)
{
	enum { LOOKS = 10 };
	static struct sample samples[2 * LOOKS];
	const struct function *chunk = lua("main chunk", "test.lua", 0), *heavy = lua("heavy", "test.lua", 5),
			      *light = lua("light", "test.lua", 12);
	const struct frame frames[2][2] = {
		{ { .function = heavy, .line = 6 }, { .function = chunk, .line = 3 } },
		{ { .function = light, .line = 13 }, { .function = chunk, .line = 3 } }
	};
	struct made_up_source source = made_up_source(samples, 2 * LOOKS);
	const struct flamegraph_samples_options options = {
		.start_ns = stall_start_ns,
		.span.until_ns = LOOKS * UINT64_C(100000000),
	};
	struct flamegraph_samples *result;

	for (unsigned i = 0; i < 2 * LOOKS; i++) {
		const bool is_wait = i % 2;

		samples[i] = (struct sample){
			.time_ns = stall_start_ns + (i / 2 + 1) * UINT64_C(100000000),
			.thread_state = is_wait ? THREAD_RUNNABLE : THREAD_RUNNING,
			.vm_state = VM_STATE_INTERPRETED,
			.cpu_ns = is_wait ? 0 : 20000000,
			.wall_ns = is_wait ? 80000000 : 20000000,
			.frames = frames[i / 2 % 2],
			.frame_count = 2,
		};
	}
	if (flamegraph_samples_read(&source.source, profile, &options, &result) < 0)
		exit(1);
	return result;
}

/* 50,000 different stacks of 24 frames, which part ever more the deeper they are: 150,000 frames. */
static void stacks(struct profile *profile)
{
	enum { STACKS = 50000, POOL = 2000, DEPTH = 24 };
	const struct function *pool[POOL], *stack[64];

	for (unsigned i = 0; i < POOL; i++)
		pool[i] = server_function(i);
	for (unsigned i = 0; i < STACKS; i++) {
		for (unsigned depth = 0; depth < DEPTH; depth++) {
			unsigned branch = depth < DEPTH - 2 ? i >> (DEPTH - 2 - depth) : i;

			/* Two neighbours differ; the rest is spread over the pool. */
			stack[depth] = pool[(branch * 37 + branch / POOL + depth) % POOL];
		}
		stack[DEPTH] = NULL;
		add(profile, 1 + i % 3, i % 3 ? 0xffff00u : 0, stack);
	}
}

static const struct {
	const char *name;
	void (*fill)(struct profile *profile);
	const char *target;
} profiles[] = {
	{ "small", small, "luajit test.lua" },
	{ "nginx", nginx, "nginx: worker process" },
	{ "big", big, "nginx: worker process" },
	{ "hostile", hostile,
	  "</title><script>document.documentElement.dataset.owned=4</script>\x1b[0m\xff" },
	{ "deep", deep, "luajit deep.lua" },
	{ "wide", wide, "luajit wide.lua" },
	{ "brief", brief, "luajit brief.lua" },
	{ "empty", empty, "luajit idle.lua" },
	{ "stacks", stacks, "nginx: worker process" },
};

static struct figures made_up_figures(const struct profile *profile)
{
	struct figures figures = {
		.samples = profile_root(profile)->total_samples,
		.missed_ticks = 2,
		.duration_ns = 30000000000,
		.self_cpu_ns = 310000000,
		.target_cpu_ns = 29000000000,
		.rate_asked_hz = 100,
		.rate_reached_hz = 99.8,
		.frames = { [CERTAINTY_EXACT] = 940, [CERTAINTY_NEAREST] = 50, [CERTAINTY_FUNCTION] = 10 },
	};

	figures.lost[LOST_BROKEN_CHAIN] = figures.samples / 20;
	for (unsigned i = 0; i < 1000; i++)
		histogram_add(&figures.pause_ns, 7400 + 10 * i + (i == 999 ? 120000 : 0));
	return figures;
}

static enum weight_kind weight_of_set(const char *name)
{
	if (strcmp(name, "alloc") == 0)
		return WEIGHT_ALLOC_BYTES;
	return strcmp(name, "waits") == 0 ? WEIGHT_WALL_TIME : WEIGHT_CPU_TIME;
}

static struct profile *new_profile(enum weight_kind weight)
{
	struct profile_options options = flamegraph_profile_options(weight);
	struct profile *profile = profile_new(&options);

	if (!profile)
		exit(1);
	return profile;
}

static int write_graph(const struct profile *profile, const char *target,
		       const struct flamegraph_options *options)
{
	struct session session = {
		.pid = 4242,
		.target = target,
		.command_line = "ljspy record -p 4242 -d 30s -o profile.svg",
		.start_unix_ns = UINT64_C(1790000000) * 1000000000,
		.duration_ns = 30000000000,
		.clock = profile_options(profile)->weight,
	};
	struct figures figures = made_up_figures(profile);
	int result = flamegraph_write(stdout, profile, &session, &figures, options);

	return result == 0 && fflush(stdout) == 0 ? 0 : 1;
}

/*
 * A text for *.lua: line 1 of each would run in a page if it were markup, line 9 has a tab, the rest numbers.
 */
static int read_source(struct source_reader *reader, const char *file, struct source_text *ret_text)
{
	char *bytes = NULL;
	size_t length;
	FILE *out;

	(void)reader;
	if (!strstr(file, ".lua")) {
		*ret_text = (struct source_text){ .note = "there is no such file" };
		return 0;
	}
	out = open_memstream(&bytes, &length);
	fputs("--</metadata><script>document.documentElement.dataset.owned = 1</script>]]>\n", out);
	for (int line = 2; line <= 1200; line++)
		fprintf(out, line == 9 ? "\treturn %d\n" : "local l%d\n", line);
	fclose(out);
	return source_text_split(bytes, length, ret_text);
}

int main(int argc, char **argv)
{
	struct source_reader reader = { .read = read_source };
	struct flamegraph_options options = { 0 };
	const enum weight_kind weight = weight_of_set(argc > 1 ? argv[1] : "");
	struct profile *profile = new_profile(weight), *baseline = new_profile(weight);
	struct flamegraph_samples *samples = NULL;
	const char *target = NULL;
	int result = 64;

	for (int i = 2; i < argc; i++) {
		options.inverted |= strcmp(argv[i], "inverted") == 0;
		options.by_line |= strcmp(argv[i], "lines") == 0;
		options.page |= strcmp(argv[i], "page") == 0;
		options.heatmap |= strcmp(argv[i], "heatmap") == 0;
		if (strcmp(argv[i], "source") == 0)
			options.source = &reader;
	}
	for (size_t i = 0; argc > 1 && i < sizeof(profiles) / sizeof(profiles[0]); i++) {
		if (strcmp(argv[1], profiles[i].name) != 0)
			continue;
		profiles[i].fill(profile);
		target = profiles[i].target;
	}
	if (argc > 1 && strcmp(argv[1], "compare") == 0) {
		compare(profile, baseline);
		options.baseline = baseline;
		options.baseline_name = "before.ljspy";
		target = "luajit test.lua";
	}
	if (argc > 1 && (strcmp(argv[1], "stall") == 0 || strcmp(argv[1], "part") == 0)) {
		samples = stall(profile, strcmp(argv[1], "stall") == 0 ? stall_whole : stall_part);
		options.heatmap = true;
		target = "luajit test.lua";
	}
	if (argc > 1 && (strcmp(argv[1], "worker") == 0 || strcmp(argv[1], "many") == 0)) {
		samples = workers(profile, strcmp(argv[1], "many") == 0 ? MANY_TICKS : WORKER_TICKS);
		target = "nginx: worker process";
	}
	if (weight == WEIGHT_WALL_TIME) {
		samples = waits(profile);
		target = "luajit test.lua";
	}
	if (weight == WEIGHT_ALLOC_BYTES) {
		samples = allocations(profile);
		options.heatmap = true;
		target = "luajit test.lua";
	}
	options.samples = samples;
	if (target)
		result = write_graph(profile, target, &options);
	else
		fprintf(stderr,
			"usage: make_flamegraph small|compare|nginx|big|hostile|deep|wide|empty|stall|part|alloc|waits|worker|many|stacks"
			" [inverted|lines|page|heatmap|source]...\n");
	flamegraph_samples_free(samples);
	profile_free(profile);
	profile_free(baseline);
	return result;
}

/* SPDX-License-Identifier: MIT */
/*
 * Writes made-up samples in any format to standard output.
 *
 *	make_samples small|random|hostile|deep|wide|empty|alloc FORMAT [lines] [annotate] [WEIGHT]
 *
 * small is what the tests compute with, and alloc of allocations: their shares are round numbers.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/formats/format.h"
#include "tests/made_up.h"
#include "tests/unit/made_up_source.h"

enum { SAMPLES_MAX = 60000, STACK_MAX = 6000 };

#define MS UINT64_C(1000000)
#define BEGIN_NS (1000 * MS) /* of the session */

static struct sample samples[SAMPLES_MAX];
static size_t sample_count;

/*---- Making ----*/

/* A line of a function; lines below zero are of compiled code. */
struct at {
	const struct function *function;
	int line;
};

/*
 * Adds a sample of this much CPU time at this time; elapsed time is thrice as much. The stack is root first.
 */
static void add(struct sample like, uint64_t time_ns, uint64_t cpu_ns, const struct at *stack, size_t depth)
{
	struct frame *frames = calloc(depth, sizeof(*frames));

	if (sample_count == SAMPLES_MAX || !frames)
		exit(1);
	for (size_t i = 0; i < depth; i++)
		frames[depth - 1 - i] = (struct frame){
			.function = stack[i].function,
			.line = (uint32_t)abs(stack[i].line),
			.compiled = stack[i].line < 0,
		};
	like.time_ns = BEGIN_NS + time_ns;
	like.cpu_ns = cpu_ns;
	like.wall_ns = 3 * cpu_ns;
	like.frames = frames;
	like.frame_count = depth;
	samples[sample_count++] = like;
}

#define STACK(...) \
	(const struct at[]){ __VA_ARGS__ }, sizeof((const struct at[]){ __VA_ARGS__ }) / sizeof(struct at)

static const struct sample worker = {
	.pid = 4242,
	.tid = 4242,
	.process_name = "nginx",
	.thread_name = "nginx",
	.phase = "content",
	.thread_state = THREAD_RUNNING,
	.vm_state = VM_STATE_INTERPRETED,
};

static uint32_t random_below(uint32_t limit)
{
	static uint32_t seed = 1;

	seed = seed * 1664525u + 1013904223u;
	return seed / 65536u % limit;
}

/*---- The sets ----*/

/*
 * 1,000 ms in 100 samples, of two processes, one with two threads. By share of
 * all, own and total: main chunk 5, 85; heavy 50, 60 (of which recursion 20);
 * gsub 15, 20; light 0, 20; sqrt 10, 10; malloc 5, 5; VM 10, 10; lost 5, 5.
 */
static void small(void)
{
	struct sample compiled = worker, logger = worker, second = worker, lost = worker;
	const struct function *chunk = lua("main chunk", "@test.lua", 0);
	const struct function *heavy = lua("heavy", "@test.lua", 5);
	const struct function *light = lua(NULL, "@test.lua", 12);
	const struct function *gsub = other(FRAME_BUILTIN, "string.gsub", NULL);
	const struct function *root = other(FRAME_C_FUNCTION, "sqrt", "libm.so.6");
	const struct function *memory = other(FRAME_NATIVE, "malloc", "libc.so.6");
	const struct function *handler = other(FRAME_VM, "lj_BC_ADDVV", NULL);
	const struct function *unknown = other(FRAME_LOST, "frame chain broken", NULL);
	uint64_t time_ns = 0;

	compiled.vm_state = VM_STATE_COMPILED;
	compiled.phase = "access";
	logger.tid = 4243;
	logger.thread_name = "log writer";
	logger.vm_state = VM_STATE_C;
	logger.phase = NULL;
	second.pid = second.tid = 4300;
	second.vm_state = VM_STATE_GC;
	lost.vm_state = VM_STATE_UNKNOWN;
	lost.thread_state = THREAD_RUNNABLE;
	for (unsigned i = 0; i < 5; i++) {
		for (unsigned j = 0; j < 6; j++)
			add(worker, time_ns += 10 * MS, 10 * MS,
			    STACK({ chunk, 30 }, { heavy, (int)(6 + j % 2) }));
		for (unsigned j = 0; j < 4; j++)
			add(compiled, time_ns += 10 * MS, 10 * MS,
			    STACK({ chunk, 31 }, { heavy, -7 }, { heavy, -8 }));
		for (unsigned j = 0; j < 2; j++)
			add(worker, time_ns += 10 * MS, 10 * MS,
			    STACK({ chunk, 30 }, { heavy, 9 }, { gsub, 0 }));
		add(logger, time_ns += 5 * MS, 10 * MS,
		    STACK({ chunk, 33 }, { light, 13 }, { gsub, 0 }, { memory, 0 }));
		for (unsigned j = 0; j < 2; j++)
			add(logger, time_ns += 5 * MS, 10 * MS,
			    STACK({ chunk, 33 }, { light, 14 }, { root, 0 }));
		add(logger, time_ns += 5 * MS, 10 * MS, STACK({ chunk, 33 }, { light, 15 }, { gsub, 0 }));
		for (unsigned j = 0; j < 2; j++)
			add(second, time_ns += 12 * MS, 10 * MS, STACK({ handler, 0 }));
		add(worker, time_ns += 40 * MS, 10 * MS, STACK({ chunk, 35 }));
		add(lost, time_ns += 10 * MS, 10 * MS, STACK({ unknown, 0 }));
	}
}

/*
 * An allocation at this time of so many objects, with their bytes. The stack is root first, what is allocated
 * last.
 */
static void allocate(uint64_t time_ns, uint64_t objects, uint64_t bytes, const struct at *stack, size_t depth)
{
	struct sample sample = worker;

	sample.alloc_objects = objects;
	sample.alloc_bytes = bytes;
	sample.gc.heap_bytes = 5000000;
	add(sample, time_ns, 0, stack, depth);
}

/*
 * 10 MB and 100,000 objects in 50 samples. By share of bytes, own of who allocates and total:
 * chunk 10, 95; make 50, 85; gsub 35, 35; lost 5, 5; tables 50, growth 10, strings 35.
 */
static void allocations(void)
{
	const struct function *chunk = lua("main chunk", "@test.lua", 0);
	const struct function *make = lua("make", "@test.lua", 5);
	const struct function *gsub = other(FRAME_BUILTIN, "string.gsub", NULL);
	const struct function *table = other(FRAME_ALLOCATED, "table", NULL);
	const struct function *growth = other(FRAME_ALLOCATED, "growth of a table", NULL);
	const struct function *string = other(FRAME_ALLOCATED, "string", NULL);
	const struct function *unseen = lost_function(LOST_ALLOCATION_UNSEEN);
	uint64_t time_ns = 0;

	for (unsigned i = 0; i < 10; i++) {
		for (unsigned j = 0; j < 2; j++)
			allocate(time_ns += 10 * MS, 3000, 250000,
				 STACK({ chunk, 30 }, { make, 6 + (int)j }, { table, 0 }));
		allocate(time_ns += 10 * MS, 4000, 350000,
			 STACK({ chunk, 30 }, { make, 8 }, { gsub, 0 }, { string, 0 }));
		allocate(time_ns += 10 * MS, 0, 100000, STACK({ chunk, 31 }, { growth, 0 }));
		allocate(time_ns += 10 * MS, 0, 50000, STACK({ unseen, 0 }));
	}
}

/* What no one would think of: every kind, recursion of all sorts, weights of any size. */
static void random_samples(void)
{
	enum { POOL = 60, THREADS = 5, COUNT = 4000 };
	const struct function *pool[POOL];
	struct sample threads[THREADS];
	uint64_t time_ns = 0;

	for (unsigned i = 0; i < POOL; i++) {
		enum frame_kind kind = (enum frame_kind)random_below(FRAME_KIND_COUNT);

		pool[i] = kind == FRAME_LUA || i % 3 == 0
				  ? lua(i % 5 ? text("f%u", i) : NULL,
					text("=content_by_lua(nginx.conf:%u)", i % 7), i)
				  : other(kind, text("%s%u", i % 2 ? "operator->" : "g", i),
					  kind == FRAME_NATIVE ? "lib x(1).so" : NULL);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		threads[i] = worker;
		threads[i].pid = 100 + (int)i / 2;
		threads[i].tid = 100 + (int)i;
		threads[i].thread_name = i ? text("worker %u", i) : NULL;
	}
	for (unsigned i = 0; i < COUNT; i++) {
		struct sample *thread = &threads[random_below(THREADS)];
		struct at stack[40];
		size_t depth = 1 + random_below(40);

		for (unsigned j = 0, at = random_below(3); j < depth;
		     j++, at = (at * 5 + random_below(3)) % POOL)
			stack[j] = (struct at){ pool[at], (int)random_below(9) - 4 };
		thread->vm_state = (enum vm_state)random_below(VM_STATE_COUNT);
		thread->thread_state = (enum thread_state)random_below(THREAD_STATE_COUNT);
		add(*thread, time_ns += random_below(20) * MS,
		    UINT64_C(997) * random_below(1u << random_below(17)), stack, depth);
	}
}

static void hostile(void)
{
	static char huge[1 << 20];
	static const char *const names[] = {
		"a;b",
		"a;b 12",
		"line one\nline two\r\t\x01\x02\x1b[31m",
		"\xff\xfe\xc0\xaf\xed\xa0\x80",
		"\u202egnp.exe",
		"\uffff\ufffe",
		"\u4e2d\u6587\u51fd",
		"na\u00efve \U0001f4a9",
		"\\\"quoted\\\"",
		"%s%n%n",
		"",
		" ",
		"#comment",
		"fn=(1) other",
		"(12)",
		"f(x) -> y",
		"</script>",
		"calls=1 2",
		"1 2 3",
		"[unknown]",
		"a 1/2 3.4: 5 cycles:",
	};

	memset(huge, 'H', sizeof(huge) - 1);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct sample thread = worker;

		thread.tid = 5000 + (int)i;
		thread.process_name = thread.thread_name = thread.phase = names[i];
		add(thread, i * 10 * MS, 10 * MS,
		    STACK({ lua(names[i], names[i], (unsigned)i + 1), 4 },
			  { other(FRAME_NATIVE, names[i], names[i]), 0 },
			  { other(FRAME_BUILTIN, names[i], NULL), 0 }));
	}
	add(worker, 500 * MS, 10 * MS,
	    STACK({ lua(huge, huge, 1), 2 }, { other(FRAME_BUILTIN, huge, huge), 0 }));
}

/* 5,000 levels of one recursion, and a branch on the way. */
static void deep(void)
{
	static struct at stack[STACK_MAX];
	const struct function *down = lua("down", "@deep.lua", 1), *across = lua("across", "@deep.lua", 9);

	for (unsigned i = 0; i < 5000; i++)
		stack[i] = (struct at){ i % 10 == 9 ? across : down, 2 };
	for (unsigned i = 0; i < 8; i++)
		add(worker, i * 10 * MS, 10 * MS, stack, 5000);
	add(worker, 100 * MS, 20 * MS, stack, 2500);
}

/* 20,000 functions called by one. */
static void wide(void)
{
	const struct function *chunk = lua("main chunk", "@wide.lua", 0);

	for (unsigned i = 0; i < 20000; i++)
		add(worker, i * 10 * MS, 10 * MS,
		    STACK({ chunk, (int)i + 1 },
			  { lua(text("callee%05u", i), "@wide.lua", i + 1), (int)i + 1 }));
}

static void empty(void)
{
}

static const struct {
	const char *name;
	void (*make)(void);
	const char *target;
} sets[] = {
	{ "small", small, "nginx: worker process" },
	{ "random", random_samples, "luajit random.lua" },
	{ "hostile", hostile, "\"</script>\x1b[0m\xff\nevents: x\n" },
	{ "deep", deep, "luajit deep.lua" },
	{ "wide", wide, "luajit wide.lua" },
	{ "empty", empty, "luajit idle.lua" },
	{ "alloc", allocations, "luajit makes.lua" },
};

/*---- Writing ----*/

static int write_set(const struct format *format, const char *target, const struct view *view)
{
	struct made_up_source made = made_up_source(samples, sample_count);
	struct session session = {
		.target = target,
		.command_line = "ljspy record --name nginx -d 30s",
		.start_unix_ns = UINT64_C(1790000000) * 1000000000,
		.start_ns = BEGIN_NS,
		.duration_ns = 30000 * MS,
		.clock = view->weight,
	};
	struct figures figures = {
		.samples = sample_count,
		.missed_ticks = 2,
		.duration_ns = 30000 * MS,
		.self_cpu_ns = 310 * MS,
		.target_cpu_ns = 29000 * MS,
		.rate_asked_hz = 100,
		.rate_reached_hz = 99.8,
	};

	figures.lost[LOST_BROKEN_CHAIN] = figures.samples / 20;
	return format->write(stdout, &made.source, &session, &figures, view);
}

int main(int argc, char **argv)
{
	const struct format *format = argc > 2 ? format_by_name(argv[2]) : NULL;
	struct view view = { .weight = WEIGHT_CPU_TIME };

	for (int i = 3; i < argc; i++) {
		view.by_line |= strcmp(argv[i], "lines") == 0;
		view.annotate |= strcmp(argv[i], "annotate") == 0;
		weight_by_name(argv[i], strlen(argv[i]), &view.weight);
	}
	for (size_t i = 0; format && i < sizeof(sets) / sizeof(sets[0]); i++) {
		int error;

		if (strcmp(argv[1], sets[i].name) != 0)
			continue;
		sets[i].make();
		error = write_set(format, sets[i].target, &view);
		if (error)
			fprintf(stderr, "make_samples: %s\n", strerror(-error));
		return error == 0 && fflush(stdout) == 0 ? 0 : 1;
	}
	fprintf(stderr,
		"usage: make_samples small|random|hostile|deep|wide|empty|alloc FORMAT [lines] [annotate]"
		" [WEIGHT]\n");
	return 64;
}

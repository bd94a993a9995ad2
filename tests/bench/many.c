/* SPDX-License-Identifier: MIT */
/*
 * many: a recording of so many samples, to standard output.
 *
 *	many SAMPLES
 *
 * As of a gateway: some thousand stacks of ten to forty frames, the same few
 * most of the time.
 */
#include <stdio.h>
#include <stdlib.h>

#include "output/recording/recording_writer.h"
#include "output/sample/figures.h"
#include "tests/made_up.h"

enum {
	FUNCTIONS = 1000,
	STACKS = 5000,
	DEPTH_MIN = 10,
	DEPTH_MAX = 40,
	FLUSH_EVERY = 99, /* samples: about a second's */
	PERIOD_NS = 10101010,
};

struct stack {
	struct frame frames[DEPTH_MAX];
	size_t depth;
};

static uint32_t random_below(uint32_t limit)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % limit;
}

/* Stacks of the same root are alike. */
static void make_stacks(struct stack *stacks)
{
	const struct function *functions[FUNCTIONS];

	for (unsigned i = 0; i < FUNCTIONS; i++)
		functions[i] = lua(text("function_%u", i), text("@module_%u.lua", i / 10), i);
	for (unsigned i = 0; i < STACKS; i++) {
		stacks[i].depth = DEPTH_MIN + random_below(DEPTH_MAX - DEPTH_MIN + 1);
		for (unsigned j = 0; j < stacks[i].depth; j++) {
			unsigned level = (unsigned)stacks[i].depth - 1 - j;
			unsigned which = level < 8 ? level * 10 + random_below(2) : random_below(FUNCTIONS);

			stacks[i].frames[j] = (struct frame){ .function = functions[which],
							      .line = 1 + random_below(20) };
		}
	}
}

int main(int argc, char **argv)
{
	unsigned long count = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
	struct stack *stacks = calloc(STACKS, sizeof(*stacks));
	struct session session = { .pid = 1, .target = "many", .duration_ns = count * PERIOD_NS };
	struct figures figures = { .samples = count,
				   .target_cpu_ns = count * PERIOD_NS,
				   .duration_ns = count * PERIOD_NS };
	struct recording_writer *writer;

	if (count == 0 || !stacks || recording_writer_new(stdout, &session, &writer)) {
		fprintf(stderr, "usage: many SAMPLES\n");
		return 1;
	}
	make_stacks(stacks);
	for (unsigned long i = 0; i < count; i++) {
		const struct stack *stack = &stacks[random_below(1 + random_below(STACKS))];
		struct sample sample = {
			.time_ns = i * PERIOD_NS,
			.pid = 1,
			.tid = 1,
			.process_name = "many",
			.thread_name = "many",
			.phase = i % 4 ? "content" : "access",
			.thread_state = THREAD_RUNNING,
			.vm_state = VM_STATE_INTERPRETED,
			.cpu_ns = PERIOD_NS,
			.wall_ns = PERIOD_NS,
			.frames = stack->frames,
			.frame_count = stack->depth,
		};

		if (recording_writer_add(writer, &sample) ||
		    (i % FLUSH_EVERY == 0 && recording_writer_flush(writer)))
			return 1;
	}
	if (recording_writer_finish(writer, &session, &figures) || fflush(stdout))
		return 1;
	recording_writer_free(writer);
	free(stacks);
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "output/sample/weight.h"

#include <string.h>

const struct weight weights[WEIGHT_COUNT] = {
	[WEIGHT_CPU_TIME] = {
		.name = "cpu", .title = "CPU time", .unit = "time", .clock = WEIGHT_CPU_TIME,
	},
	[WEIGHT_WALL_TIME] = {
		.name = "wall", .title = "Wall-clock time", .unit = "time", .clock = WEIGHT_WALL_TIME, .is_elapsed = true,
	},
	[WEIGHT_OFF_CPU_TIME] = {
		.name = "off-cpu", .title = "Time off the CPU", .unit = "time", .clock = WEIGHT_WALL_TIME, .is_elapsed = true,
	},
	[WEIGHT_HEAP_BYTES] = {
		.name = "bytes", .title = "Heap", .unit = "bytes", .clock = WEIGHT_COUNT,
	},
	[WEIGHT_HEAP_OBJECTS] = {
		.name = "objects", .title = "Objects of the heap", .unit = "objects", .clock = WEIGHT_COUNT,
	},
};

bool weight_is_clock(enum weight_kind kind)
{
	return weights[kind].clock == kind;
}

bool weight_by_name(const char *name, size_t length, enum weight_kind *ret_kind)
{
	for (enum weight_kind kind = 0; kind < WEIGHT_COUNT; kind++)
		if (strlen(weights[kind].name) == length && memcmp(weights[kind].name, name, length) == 0) {
			*ret_kind = kind;
			return true;
		}
	return false;
}

/* Samples with elapsed time have their CPU time, too. */
bool weight_is_in(enum weight_kind shown, enum weight_kind clock)
{
	return weights[shown].clock != WEIGHT_COUNT &&
	       (weights[clock].is_elapsed || !weights[shown].is_elapsed);
}

uint64_t weight_of_times(enum weight_kind kind, uint64_t cpu_ns, uint64_t wall_ns)
{
	return weights[kind].is_elapsed ? wall_ns : cpu_ns;
}

uint64_t weight_of(enum weight_kind kind, const struct sample *sample)
{
	return weight_of_times(kind, sample->cpu_ns, sample->wall_ns);
}

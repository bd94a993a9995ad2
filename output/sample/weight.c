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
	[WEIGHT_ALLOC_BYTES] = {
		.name = "alloc", .title = "Allocated bytes", .unit = "bytes", .clock = WEIGHT_ALLOC_BYTES,
	},
	[WEIGHT_ALLOC_OBJECTS] = {
		.name = "alloc-objects", .title = "Allocated objects", .unit = "objects", .clock = WEIGHT_ALLOC_BYTES,
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

bool weight_is_sampled(enum weight_kind kind)
{
	return weights[kind].clock != WEIGHT_COUNT;
}

bool weight_is_time(enum weight_kind kind)
{
	return strcmp(weights[kind].unit, "time") == 0;
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
	return weights[shown].clock == clock || (weights[clock].is_elapsed && shown == WEIGHT_CPU_TIME);
}

struct amounts amounts_of(const struct sample *sample)
{
	return (struct amounts){
		.cpu_ns = sample->cpu_ns,
		.wall_ns = sample->wall_ns,
		.alloc_bytes = sample->alloc_bytes,
		.alloc_objects = sample->alloc_objects,
	};
}

void amounts_add(struct amounts *sum, const struct amounts *amounts)
{
	sum->cpu_ns += amounts->cpu_ns;
	sum->wall_ns += amounts->wall_ns;
	sum->alloc_bytes += amounts->alloc_bytes;
	sum->alloc_objects += amounts->alloc_objects;
}

uint64_t weight_in(enum weight_kind kind, const struct amounts *amounts)
{
	switch (kind) {
	case WEIGHT_CPU_TIME: return amounts->cpu_ns;
	case WEIGHT_WALL_TIME:
	case WEIGHT_OFF_CPU_TIME: return amounts->wall_ns;
	case WEIGHT_ALLOC_BYTES: return amounts->alloc_bytes;
	case WEIGHT_ALLOC_OBJECTS: return amounts->alloc_objects;
	case WEIGHT_HEAP_BYTES:
	case WEIGHT_HEAP_OBJECTS:
	case WEIGHT_COUNT: break;
	}
	return 0;
}

uint64_t weight_of(enum weight_kind kind, const struct sample *sample)
{
	const struct amounts amounts = amounts_of(sample);

	return weight_in(kind, &amounts);
}

uint64_t weight_clocked_ns(enum weight_kind clock, uint64_t cpu_ns, uint64_t wall_ns)
{
	if (!weight_is_time(clock))
		return 0;
	return weights[clock].is_elapsed ? wall_ns : cpu_ns;
}

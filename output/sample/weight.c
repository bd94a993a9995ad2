#include "output/sample/weight.h"

uint64_t weight_of(enum weight_kind kind, const struct sample *sample)
{
	return kind == WEIGHT_CPU_TIME ? sample->cpu_ns : sample->wall_ns;
}

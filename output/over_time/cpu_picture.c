/* SPDX-License-Identifier: MIT */
#include "output/over_time/cpu_picture.h"

#include <math.h>

#include "output/views/color.h"

enum { TEXT_HEIGHT = 18, PLOT_HEIGHT = CPU_PICTURE_HEIGHT - TEXT_HEIGHT - 6 };

/* Where it is drawn. */
struct place {
	FILE *out;
	const struct cpu_use *use;
	size_t x, y, width;
	double top; /* cores at the upper edge */
};

/* From the bottom up; a color of a frame's kind stands for each. */
static const struct {
	enum vm_state state;
	char letter;
} states[] = {
	{ VM_STATE_GC, 'g' },         { VM_STATE_INTERPRETED, 'l' }, { VM_STATE_COMPILED, 'j' },
	{ VM_STATE_C, 'c' },          { VM_STATE_RECORDING, 'k' },   { VM_STATE_OPTIMISING, 'k' },
	{ VM_STATE_ASSEMBLING, 'k' }, { VM_STATE_EXIT, 'e' },        { VM_STATE_NONE, 'n' },
	{ VM_STATE_UNKNOWN, 'u' },
};

enum { STATES = sizeof(states) / sizeof(states[0]) };
_Static_assert(STATES == (int)VM_STATE_COUNT, "every state has its area");

bool cpu_picture_has(const struct cpu_use *use)
{
	return use && cpu_use_steps(use) >= 2;
}

static double all_states(const struct cpu_use *use, size_t process, size_t step)
{
	double sum = 0;

	for (int state = 0; state < VM_STATE_COUNT; state++)
		sum += cpu_use_of(use, process, (enum vm_state)state, step);
	return sum;
}

/* The most cores of one process in one step, as a round number. */
static double top_of(const struct cpu_use *use)
{
	static const double parts[] = { 1, 1.5, 2, 3, 5, 7.5 };
	double most = 0, power;

	for (size_t process = 0; process < cpu_use_processes(use); process++)
		for (size_t step = 0; step < cpu_use_steps(use); step++)
			most = fmax(most, all_states(use, process, step));
	if (most <= 0 || most > 1e6)
		return 1;
	power = pow(10, floor(log10(most)));
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (parts[i] * power >= most * 0.98)
			return parts[i] * power;
	return 10 * power;
}

static double length_s(const struct cpu_use *use)
{
	return (double)cpu_use_step_begin_ns(use, cpu_use_steps(use)) / 1e9;
}

/* In tenths of a pixel, so that no locale has a say; y from the top. */
static long x_of(const struct place *place, size_t step)
{
	const double begin_s = (double)cpu_use_step_begin_ns(place->use, step) / 1e9;

	return (long)(10 * place->x) + lround(10 * (double)place->width * begin_s / length_s(place->use));
}

static long y_of(const struct place *place, double cores)
{
	double part = fmin(1, cores / place->top);

	return (long)(10 * (place->y + TEXT_HEIGHT + PLOT_HEIGHT)) - lround(10 * PLOT_HEIGHT * part);
}

static void write_point(const struct place *place, char command, long x, long y)
{
	fprintf(place->out, "%c%ld.%ld,%ld.%ld", command, x / 10, x % 10, y / 10, y % 10);
}

/* The upper edge of what is on below, from left to right or back; each step is level. */
static void write_edge(const struct place *place, const double *cores, bool is_back)
{
	const size_t steps = cpu_use_steps(place->use);

	for (size_t i = 0; i < steps; i++) {
		const size_t step = is_back ? steps - 1 - i : i;
		const long y = y_of(place, cores[step]);

		write_point(place, i || is_back ? 'L' : 'M', x_of(place, is_back ? step + 1 : step), y);
		write_point(place, 'L', x_of(place, is_back ? step : step + 1), y);
	}
}

static void write_areas(const struct place *place)
{
	const size_t steps = cpu_use_steps(place->use);
	double below[CPU_USE_STEPS_MAX] = { 0 }, above[CPU_USE_STEPS_MAX];

	for (size_t i = 0; i < STATES; i++) {
		double sum = 0;

		for (size_t step = 0; step < steps; step++) {
			double used = cpu_use_of(place->use, 0, states[i].state, step);

			above[step] = below[step] + used;
			sum += used;
		}
		if (sum <= 0)
			continue;
		fprintf(place->out, "<g class=\"f %c\"><path d=\"", states[i].letter);
		write_edge(place, above, false);
		write_edge(place, below, true);
		fputs("z\"/></g>\n", place->out);
		for (size_t step = 0; step < steps; step++)
			below[step] = above[step];
	}
}

static void write_lines(const struct place *place)
{
	const size_t steps = cpu_use_steps(place->use);
	double cores[CPU_USE_STEPS_MAX];

	for (size_t process = 0; process < cpu_use_processes(place->use); process++) {
		for (size_t step = 0; step < steps; step++)
			cores[step] = all_states(place->use, process, step);
		fprintf(place->out, "<path class=\"w w%zu\" d=\"", process % CPU_PICTURE_LINES);
		write_edge(place, cores, false);
		fputs("\"/>\n", place->out);
	}
}

static void write_words(const struct place *place)
{
	const struct cpu_use *use = place->use;
	double all_s = 0, gc_s = 0;

	for (size_t step = 0; step < cpu_use_steps(use); step++) {
		const uint64_t step_ns = cpu_use_step_begin_ns(use, step + 1) -
					 cpu_use_step_begin_ns(use, step);

		for (size_t process = 0; process < cpu_use_processes(use); process++) {
			all_s += all_states(use, process, step) * (double)step_ns / 1e9;
			gc_s += cpu_use_of(use, process, VM_STATE_GC, step) * (double)step_ns / 1e9;
		}
	}
	fprintf(place->out,
		"<text class=\"detail\" x=\"%zu\" y=\"%zu\">CPU use over %.1f s, up to %.0f %% of a core%s: "
		"%.0f %% on average, %.1f %% of it garbage collection; %.1f %% of it sampled</text>\n",
		place->x, place->y + 12, length_s(use), 100 * place->top,
		cpu_use_processes(use) > 1 ? " each" : "", 100 * all_s / length_s(use),
		all_s > 0 ? 100 * gc_s / all_s : 0, 100 * cpu_use_sampled(use));
}

void cpu_picture_write(FILE *out, const struct cpu_use *use, size_t x, size_t y, size_t width)
{
	const struct place place = { out, use, x, y, width, top_of(use) };

	write_words(&place);
	fprintf(out, "<rect class=\"field\" x=\"%zu\" y=\"%zu\" width=\"%zu\" height=\"%d\"/>\n", x,
		y + TEXT_HEIGHT, width, PLOT_HEIGHT);
	if (cpu_use_processes(use) == 1)
		write_areas(&place);
	else
		write_lines(&place);
}

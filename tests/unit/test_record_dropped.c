/* SPDX-License-Identifier: MIT */
/* What `ljspy record` makes of samples that do not fit into a recording. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "output/recording/recording_format.h"
#include "output/recording/recording_reader.h"
#include "src/commands/commands.h"
#include "src/program/interruption.h"
#include "src/program/wake_signal.h"
#include "src/sampler/sampler_apart.h"
#include "src/targets/choose.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/told.h"

static struct frame deep[RECORDING_DEPTH_MAX + 1];
static size_t deep_count; /* so many samples do not fit into a recording */

INSTEAD_OF(choose_check_all);
bool __wrap_choose_check_all(const struct options *options)
{
	(void)options;
	return true;
}

INSTEAD_OF(choose_check_layouts);
bool __wrap_choose_check_layouts(const struct options *options)
{
	(void)options;
	return true;
}

INSTEAD_OF(sampler_run_apart);
void __wrap_sampler_run_apart(const struct sampler_options *options, struct sampler_result *ret_result)
{
	static const struct function chunk = { .kind = FRAME_LUA, .name = "main chunk", .file = "@a.lua" };
	static const struct frame frame = { .function = &chunk, .line = 1 };
	struct sample sample = { .pid = 7, .tid = 7, .cpu_ns = 5, .frames = &frame, .frame_count = 1 };

	*ret_result = (struct sampler_result){ .end = SAMPLER_DURATION_OVER,
					       .has_attached = true,
					       .saw_luajit = true,
					       .figures = { .samples = deep_count + 1, .dropped = 3 } };
	sample.time_ns = 1;
	options->take(options->context, &sample);
	sample.frames = deep;
	sample.frame_count = RECORDING_DEPTH_MAX + 1;
	for (size_t i = 0; i < deep_count; i++) {
		sample.time_ns++;
		options->take(options->context, &sample);
	}
}

/* The status. *ret_figures are those that the recording has. */
static enum exit_status record(struct figures *ret_figures)
{
	char words[][8] = { "ljspy", "record", "-f", "ljspy", "-o", "-p" };
	char path[] = "/tmp/test_record.XXXXXX", pid[24];
	char *argv[] = { words[0], words[1], words[2], words[3], words[4], path, words[5], pid, NULL };
	struct options options;
	const struct invocation invocation = { .options = &options };
	struct functions *functions = functions_new();
	struct recording_reader *reader;
	enum exit_status status;
	FILE *in;

	close(mkstemp(path));
	snprintf(pid, sizeof(pid), "%d", getpid());
	assert_true(options_parse(sizeof(argv) / sizeof(argv[0]) - 1, argv, &options, &status));
	told_begin();
	status = command_record(&invocation);
	told_end();
	options_clear(&options);
	in = fopen(path, "r");
	assert_non_null(in);
	assert_int_equal(recording_reader_open(in, functions, &reader), 0);
	*ret_figures = *recording_reader_figures(reader);
	recording_reader_close(reader);
	functions_free(functions);
	fclose(in);
	unlink(path);
	return status;
}

static void samples_that_do_not_fit_into_a_recording_are_told_and_counted(void **state)
{
	struct figures figures;

	(void)state;
	deep_count = 2;
	assert_int_equal(record(&figures), EXIT_WITH_ERRORS);
	assert_int_equal(told_times("2 samples could not be written."), 1);
	assert_int_equal(told_times("Memory"), 0);
	assert_int_equal(figures.samples, 1);
	assert_int_equal(figures.dropped, 3 + 2);
	deep_count = 0;
	assert_int_equal(record(&figures), EXIT_ALL_GOOD);
	assert_int_equal(told_times("could not be written"), 0);
	assert_int_equal(figures.dropped, 3);
}

static int block_signals(void **state)
{
	sigset_t blocked;

	(void)state;
	interruption_signals(&blocked);
	sigaddset(&blocked, WAKE_SIGNAL);
	return sigprocmask(SIG_BLOCK, &blocked, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_that_do_not_fit_into_a_recording_are_told_and_counted),
	};

	return cmocka_run_group_tests(tests, block_signals, NULL);
}

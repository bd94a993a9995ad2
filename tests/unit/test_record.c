/* SPDX-License-Identifier: MIT */
/* How a recording ends, what its user is told of that, and what is left on the disk. */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "output/recording/recording_writer.h"
#include "output/reports/turns.h"
#include "src/commands/commands.h"
#include "src/commands/record_archive.h"
#include "src/linux/clocks/clock.h"
#include "src/program/interruption.h"
#include "src/program/kept_recording.h"
#include "src/program/message.h"
#include "src/sampler/sampler_apart.h"
#include "src/targets/choose.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/told.h"
#include "tests/unit/told_reason.h"

enum { TEXT_SIZE = 1 << 16, PATH_SIZE = 64, OTHER = 5000000, NAPS_MAX = 20000 };

enum child { NO_CHILD, CHILD_ENDS_LATER, CHILD_IS_ENDED_BY_SIGNALS };

/* What the sampler does; it runs in a thread of its own, in which no check may fail. */
static struct {
	bool may_not, misfits;
	struct sampler_result result;
	unsigned int samples, each_of; /* each sample stands for so many nanoseconds */
	bool is_named;                 /* the output, or what it is made of, before sampling ends */
	enum child child;
	int child_status;

	int add_error, add_errno; /* of one sample */
	unsigned int fails_at;    /* which one, from 1 on; 0: none */
	int finish_error, finish_errno;
	bool is_empty; /* what is kept */
	unsigned int turns_lost;
	bool may_move, is_nameless, is_short; /* what the output is made of */
} scene;

static struct {
	unsigned int runs, archives, moves, adds;
	bool went_on;               /* the last time that the sampler asked */
	unsigned int interruptions; /* that were begun and not ended */
	struct interruption interruption;
	char words[TEXT_SIZE], other_words[TEXT_SIZE]; /* at first, and later */
	struct sampler_options sampler;
} seen;

static struct options options;
static pid_t pids[2];
static char program[] = "lua prog";
static char *launch[] = { program, NULL };
static char directory[PATH_SIZE], output[2 * PATH_SIZE], stats[2 * PATH_SIZE], text[TEXT_SIZE];

/*---- Instead of sampling ----*/

INSTEAD_OF(choose_check_all);
bool __wrap_choose_check_all(const struct options *given)
{
	(void)given;
	return !scene.may_not;
}

INSTEAD_OF(choose_check_layouts);
bool __wrap_choose_check_layouts(const struct options *given)
{
	(void)given;
	return !scene.misfits;
}

static pid_t begin_child(void)
{
	pid_t child = fork();

	if (child)
		return child;
	alarm(60);
	if (scene.child == CHILD_IS_ENDED_BY_SIGNALS)
		sigsuspend(&(sigset_t){ 0 });
	usleep(10000);
	_exit(scene.child_status);
}

static size_t count_files(void)
{
	DIR *files = opendir(directory);
	size_t count = 0;

	while (readdir(files))
		count++;
	closedir(files);
	return count - 2;
}

static void await_name(void)
{
	for (int i = 0; i < NAPS_MAX && count_files() == 0; i++)
		usleep(1000);
}

static void take_one(const struct sampler_options *sampler, unsigned int number)
{
	static const struct function function = { .kind = FRAME_LUA, .name = "work", .file = "@a.lua" };
	const struct frame frame = { .function = &function };
	const struct sample sample = {
		.time_ns = 1000 + (uint64_t)number * NS_PER_SECOND,
		.pid = getpid(),
		.tid = getpid(),
		.thread_state = THREAD_RUNNING,
		.vm_state = VM_STATE_INTERPRETED,
		.cpu_ns = scene.each_of,
		.wall_ns = scene.each_of,
		.loop_ns = options.blocked_ns ? 1000 : 0,
		.frames = &frame,
		.frame_count = 1,
	};

	sampler->take(sampler->context, &sample);
}

INSTEAD_OF(sampler_run_apart);
void __wrap_sampler_run_apart(const struct sampler_options *sampler, struct sampler_result *ret_result)
{
	struct figures so_far = { 0 };

	seen.runs++;
	seen.sampler = *sampler;
	*ret_result = scene.result;
	if (scene.child) {
		ret_result->launched = true;
		ret_result->pid = begin_child();
	}
	if (scene.result.refused.count)
		sampler->tell_refused(&scene.result.refused);
	seen.went_on = sampler->progress(sampler->context, &so_far);
	for (unsigned int i = 0; i < scene.samples; i++)
		take_one(sampler, i);
	so_far = (struct figures){ .samples = scene.samples, .duration_ns = 2 * NS_PER_SECOND };
	if (!scene.is_short)
		seen.went_on = sampler->progress(sampler->context, &so_far);
	if (scene.is_named)
		await_name();
	so_far.target_cpu_ns = scene.result.figures.target_cpu_ns;
	so_far.rate_asked_hz = 99;
	ret_result->figures = so_far;
}

INSTEAD_OF(record_archive);
enum exit_status __wrap_record_archive(const struct invocation *invocation)
{
	assert_ptr_equal(invocation->options, &options);
	seen.archives++;
	return EXIT_WITH_ERRORS;
}

/*---- Writing ----*/

INSTEAD_OF(recording_writer_add);
int __wrap_recording_writer_add(struct recording_writer *writer, const struct sample *sample)
{
	if (++seen.adds != scene.fails_at)
		return __real_recording_writer_add(writer, sample);
	errno = scene.add_errno;
	return scene.add_error;
}

INSTEAD_OF(recording_writer_finish);
int __wrap_recording_writer_finish(struct recording_writer *writer, const struct session *session,
				   const struct figures *figures)
{
	if (!scene.finish_error || seen.moves)
		return __real_recording_writer_finish(writer, session, figures);
	errno = scene.finish_errno;
	return scene.finish_error;
}

INSTEAD_OF(turns_finish);
int __wrap_turns_finish(struct turns *turns, uint64_t *lost)
{
	const int error = __real_turns_finish(turns, lost);

	*lost += scene.turns_lost;
	return scene.turns_lost ? -ENOMEM : error;
}

INSTEAD_OF(kept_recording_move);
bool __wrap_kept_recording_move(struct kept_recording *kept, struct kept_recording *ret_behind)
{
	seen.moves++;
	*ret_behind = (struct kept_recording){ .file = new_file_none };
	if (scene.may_move && kept->path) {
		free(kept->path);
		kept->path = strdup("/elsewhere/kept.ljspy");
	}
	return scene.may_move;
}

/* What who interrupts ljspy would be told. */
INSTEAD_OF(interruption_set_words);
void __wrap_interruption_set_words(struct interruption *interruption, const char *words)
{
	__real_interruption_set_words(interruption, words);
	if (seen.interruptions && words)
		snprintf(seen.other_words, sizeof(seen.other_words), "%s", words);
}

INSTEAD_OF(kept_recording_name);
bool __wrap_kept_recording_name(struct kept_recording *kept)
{
	return !scene.is_nameless && __real_kept_recording_name(kept);
}

INSTEAD_OF(kept_recording_is_empty);
bool __wrap_kept_recording_is_empty(const struct kept_recording *kept)
{
	return scene.is_empty || __real_kept_recording_is_empty(kept);
}

INSTEAD_OF(interruption_begin);
bool __wrap_interruption_begin(struct interruption *interruption)
{
	const char *words = interruption->words;

	seen.interruptions++;
	seen.interruption.command = interruption->command;
	seen.interruption.signal = interruption->signal;
	snprintf(seen.words, sizeof(seen.words), "%s", words ? words : "");
	return true;
}

INSTEAD_OF(interruption_end);
void __wrap_interruption_end(struct interruption *interruption)
{
	const char *words = interruption->words;

	seen.interruptions--;
	seen.interruption.words = words;
}

/*---- The user ----*/

static void set_output(const char *format)
{
	options.format = format_by_name(format);
	assert_non_null(options.format);
	snprintf(output, sizeof(output), "%s/out.%s", directory, options.format->suffix);
}

static void set_scene(void)
{
	memset(&seen, 0, sizeof(seen));
	memset(&scene, 0, sizeof(scene));
	scene.samples = 3;
	scene.each_of = NS_PER_SECOND;
	scene.result = (struct sampler_result){
		.end = SAMPLER_DURATION_OVER, .begin_ns = 1, .saw_luajit = true, .has_attached = true
	};
}

static int begin(void **state)
{
	sigset_t signals;

	(void)state;
	interruption_signals(&signals);
	sigaddset(&signals, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	strcpy(directory, "/tmp/ljspy-record-XXXXXX");
	assert_non_null(mkdtemp(directory));
	snprintf(stats, sizeof(stats), "%s/stats.json", directory);
	set_scene();
	pids[0] = getpid();
	pids[1] = OTHER;
	options = (struct options){
		.command = COMMAND_RECORD, .pids = pids, .pid_count = 1, .rate_hz = 99, .output = output
	};
	set_output("folded");
	told_reason = PERMISSION_UNKNOWN;
	return 0;
}

static void remove_all(void)
{
	DIR *files = opendir(directory);
	struct dirent *entry;

	assert_non_null(files);
	while ((entry = readdir(files)) != NULL)
		unlinkat(dirfd(files), entry->d_name, 0);
	closedir(files);
}

static int end(void **state)
{
	(void)state;
	remove_all();
	rmdir(directory);
	message_must_not_wait(false);
	assert_int_equal(seen.interruptions, 0);
	return 0;
}

static enum exit_status record(void)
{
	struct invocation invocation = { .options = &options };
	enum exit_status status;

	told_begin();
	status = command_record(&invocation);
	told_end();
	assert_int_equal(seen.interruptions, 0);
	return status;
}

static const char *contents(const char *path)
{
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	return text;
}

static bool is_there(const char *path)
{
	return access(path, F_OK) == 0;
}

/* The output alone, of so many samples of a second each. */
static void assert_has_seconds(unsigned int seconds)
{
	unsigned long long of_it;

	assert_int_equal(count_files(), 1);
	assert_int_equal(sscanf(strrchr(contents(output), ' '), " %llu", &of_it), 1);
	assert_int_equal(of_it, seconds * 1000000ULL);
}

#define ASSERT_TOLD(words) assert_non_null(strstr(told, words))

/*---- It ends well ----*/

static void a_whole_recording_is_good(void **state)
{
	static const enum sampler_end ends[] = { SAMPLER_DURATION_OVER, SAMPLER_INTERRUPTED,
						 SAMPLER_TARGETS_ENDED };

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		set_scene();
		scene.result.end = ends[i];
		scene.result.interrupted_by = ends[i] == SAMPLER_INTERRUPTED ? SIGINT : 0;
		assert_int_equal(record(), EXIT_ALL_GOOD);
		assert_true(seen.went_on);
		assert_has_seconds(3);
		ASSERT_TOLD("samples  3 in 2.0 s");
		ASSERT_TOLD(output);
		assert_null(strstr(told, "warning"));
		/* The signal that ended it may come again. */
		assert_int_equal(seen.interruption.signal, scene.result.interrupted_by);
		remove_all();
	}
	ASSERT_TOLD("The recording ended early, with its target.");
}

static void all_formats_are_written(void **state)
{
	(void)state;
	for (size_t i = 0; i < format_count; i++) {
		set_scene();
		set_output(formats[i].name);
		assert_int_equal(record(), EXIT_ALL_GOOD);
		assert_int_equal(count_files(), 1);
		assert_true(is_there(output));
		remove_all();
	}
}

static void the_sampler_gets_what_the_user_wants(void **state)
{
	(void)state;
	options.duration_ns = 7;
	options.details = options.traces = options.coroutines = true;
	options.clock = WEIGHT_WALL_TIME;
	assert_int_equal(record(), EXIT_ALL_GOOD);
	assert_int_equal(seen.sampler.duration_ns, 7);
	assert_int_equal(seen.sampler.rate_hz, 99);
	assert_ptr_equal(seen.sampler.pids, pids);
	assert_true(seen.sampler.wall_clock);
	assert_true(seen.sampler.coroutines);
	assert_true(seen.sampler.namer.traces);
	assert_true(seen.sampler.namer.details);
	assert_int_equal(seen.sampler.namer.errors, ERRORS_CAUGHT);
	assert_false(seen.sampler.alloc || seen.sampler.requests || seen.sampler.turns);
	assert_null(seen.sampler.launch);
	remove_all();
	options.coroutines = options.details = false;
	options.clock = WEIGHT_CPU_TIME;
	options.requests = options.alloc = true;
	assert_int_equal(record(), EXIT_ALL_GOOD);
	assert_true(seen.sampler.alloc && seen.sampler.requests);
	assert_false(seen.sampler.wall_clock || seen.sampler.coroutines || seen.sampler.namer.details);
	assert_int_equal(seen.sampler.namer.errors, ERRORS_HIDDEN);
}

static void archives_are_another_matter(void **state)
{
	(void)state;
	options.every_ns = 1;
	assert_int_equal(record(), EXIT_WITH_ERRORS);
	assert_int_equal(seen.archives, 1);
	assert_int_equal(seen.runs, 0);
	assert_int_equal(count_files(), 0);
}

/*---- There is nothing ----*/

static void assert_nothing_done(const char *words)
{
	assert_int_equal(record(), EXIT_NOTHING_DONE);
	ASSERT_TOLD(words);
	assert_int_equal(count_files(), 0);
}

static void without_a_sample_there_is_no_output(void **state)
{
	(void)state;
	scene.samples = 0;
	assert_nothing_done("There is no sample");
	scene.result.end = SAMPLER_TARGETS_ENDED;
	assert_nothing_done("the target ended");
	scene.result.end = SAMPLER_INTERRUPTED;
	assert_nothing_done("There is no sample");
	scene.result.left_out = 1;
	scene.result.left_out_pid = OTHER;
	scene.result.left_out_error = -EPERM;
	assert_nothing_done("5000000: error 1.");
	set_output("ljspy");
	assert_nothing_done("There is no sample");
}

static void what_never_began_is_nothing(void **state)
{
	(void)state;
	scene.samples = 0;
	scene.result.begin_ns = 0;
	scene.result.end = SAMPLER_INTERRUPTED;
	assert_nothing_done("sampling was to end before it had begun");
	scene.result.end = SAMPLER_NO_LUAJIT;
	scene.result.pid = getpid();
	assert_nothing_done("LuaJIT");
	scene.result.end = SAMPLER_FAILED;
	scene.result.error = -EPERM;
	assert_nothing_done(": error 1.");
	scene.result.pid = 0;
	scene.result.error = -EMFILE;
	assert_nothing_done("files");
	scene.result.end = SAMPLER_KILLED;
	scene.result.error = 0;
	assert_nothing_done("takes samples was killed.");
	scene.result.end = SAMPLER_BLOCKED;
	assert_nothing_done("ljspy: ");
}

static void what_may_not_be_looked_at_is_not_sampled(void **state)
{
	(void)state;
	scene.may_not = true;
	assert_nothing_done("");
	scene.may_not = false;
	scene.misfits = true;
	assert_nothing_done("");
	assert_int_equal(seen.runs, 0);
	/* A command is not there yet. */
	options.launch = launch;
	assert_int_equal(record(), EXIT_ALL_GOOD);
	assert_int_equal(seen.runs, 1);
	assert_ptr_equal(seen.sampler.launch, launch);
}

static void no_output_no_sampling(void **state)
{
	(void)state;
	options.output = "/nowhere/at/all.folded";
	assert_nothing_done("there is no directory /nowhere/at");
	options.output = output;
	options.stats = "/nowhere/at/stats.json";
	assert_nothing_done("Make it, or name a file elsewhere with --stats FILE.");
	options.stats = output;
	assert_int_equal(record(), EXIT_USAGE);
	ASSERT_TOLD("-o and --stats are to write the same file");
	assert_int_equal(seen.runs, 0);
	assert_int_equal(count_files(), 0);
}

/*---- Errors worth knowing ----*/

static void what_is_missing_is_an_error(void **state)
{
	(void)state;
	options.pid_count = 2;
	scene.result.left_out = 1;
	scene.result.left_out_pid = OTHER;
	scene.result.left_out_error = -EPERM;
	assert_int_equal(record(), EXIT_WITH_ERRORS);
	assert_has_seconds(3);
	ASSERT_TOLD("ljspy: 5000000: error 1.\n");
	ASSERT_TOLD("Process 5000000 was left out.");
	set_scene();
	scene.result.unknown_pid = OTHER;
	strcpy(scene.result.unknown_reason, "no state");
	assert_int_equal(record(), EXIT_WITH_ERRORS);
	ASSERT_TOLD("so its Lua is not shown: no state.");
	set_scene();
	scene.result.end = SAMPLER_KILLED;
	assert_int_equal(record(), EXIT_WITH_ERRORS);
	assert_has_seconds(3);
	ASSERT_TOLD("there are no samples after that.");
	scene.result.end = SAMPLER_BLOCKED;
	assert_int_equal(record(), EXIT_WITH_ERRORS);
	assert_has_seconds(3);
}

/* They may come later, or were not asked for. */
static void what_may_be_missing_is_told(void **state)
{
	(void)state;
	options.pid_count = 2;
	sampler_note(&scene.result.refused, OTHER, -EPERM);
	scene.result.unsearched = 1;
	scene.result.unsearched_pid = OTHER;
	assert_int_equal(record(), EXIT_ALL_GOOD);
	ASSERT_TOLD("1 of the processes cannot be sampled, or not yet.");
	ASSERT_TOLD("Whether process 5000000 has run LuaJIT is not known");
	assert_int_equal(told_times("5000000: error 1."), 1);
}

static void samples_that_memory_lacks_are_counted(void **state)
{
	(void)state;
	scene.fails_at = 2;
	scene.add_error = -ENOMEM;
	assert_int_equal(record(), EXIT_WITH_ERRORS);
	assert_true(seen.went_on);
	assert_has_seconds(2);
	ASSERT_TOLD("1 sample could not be written.");
}

/*---- Disks ----*/

static void a_full_disk_ends_the_recording(void **state)
{
	(void)state;
	scene.fails_at = 3;
	scene.add_error = -EIO;
	scene.add_errno = ENOSPC;
	assert_int_equal(record(), EXIT_WITH_ERRORS);
	assert_false(seen.went_on);
	assert_int_equal(seen.moves, 1);
	assert_has_seconds(2);
	ASSERT_TOLD("The recording ended early: No space left on device");
	set_scene();
	scene.fails_at = 3;
	scene.add_error = -EIO;
	scene.add_errno = EFBIG;
	assert_int_equal(record(), EXIT_WITH_ERRORS);
	assert_int_equal(seen.moves, 0);
	assert_has_seconds(2);
	ASSERT_TOLD("The recording ended early: File too large");
	ASSERT_TOLD("ulimit");
}

static void a_recording_goes_on_on_another_disk(void **state)
{
	static const int causes[] = { ENOSPC, EDQUOT };

	(void)state;
	for (size_t i = 0; i < sizeof(causes) / sizeof(*causes); i++) {
		set_scene();
		scene.fails_at = 2;
		scene.add_error = -EIO;
		scene.add_errno = causes[i];
		scene.may_move = true;
		assert_int_equal(record(), EXIT_ALL_GOOD);
		assert_true(seen.went_on);
		assert_int_equal(seen.moves, 1);
		assert_has_seconds(3);
	}
	/* Its end is written when sampling is over. */
	set_scene();
	scene.finish_error = -EIO;
	scene.finish_errno = ENOSPC;
	scene.may_move = true;
	assert_int_equal(record(), EXIT_ALL_GOOD);
	assert_int_equal(seen.moves, 1);
	assert_has_seconds(3);
	assert_null(strstr(seen.words, "/elsewhere/"));
	assert_non_null(
		strstr(seen.other_words, "What was recorded is in /elsewhere/kept.ljspy: ljspy report "));
}

/* What the user wants to have there is not elsewhere. */
static void a_recording_that_is_the_output_stays_there(void **state)
{
	(void)state;
	set_output("ljspy");
	scene.fails_at = 3;
	scene.add_error = -EIO;
	scene.add_errno = ENOSPC;
	scene.may_move = true;
	assert_int_equal(record(), EXIT_WITH_ERRORS);
	assert_int_equal(seen.moves, 0);
	assert_false(seen.went_on);
	assert_int_equal(count_files(), 0);
	ASSERT_TOLD("No space left on device");
	/* What has its name by then stays. */
	set_scene();
	scene.is_named = true;
	scene.finish_error = -EIO;
	scene.finish_errno = ENOSPC;
	assert_int_equal(record(), EXIT_WITH_ERRORS);
	assert_true(is_there(output));
	ASSERT_TOLD("can be read up to there.");
}

static void an_end_that_memory_lacks_is_an_error(void **state)
{
	(void)state;
	scene.finish_error = -ENOMEM;
	assert_int_equal(record(), EXIT_WITH_ERRORS);
	ASSERT_TOLD("The recording ended early: Cannot allocate memory");
	remove_all();
	set_output("ljspy");
	scene.is_named = true;
	assert_int_equal(record(), EXIT_WITH_ERRORS);
	assert_true(is_there(output));
	ASSERT_TOLD("can be read up to there.");
}

static void what_cannot_be_rendered_is_kept(void **state)
{
	char kept[2 * PATH_SIZE];

	(void)state;
	scene.is_named = true;
	options.output = "/dev/full";
	options.format = format_by_name("folded");
	if (!is_there("/dev/full"))
		skip();
	setenv("TMPDIR", directory, 1);
	assert_int_equal(record(), EXIT_WITH_ERRORS);
	unsetenv("TMPDIR");
	assert_int_equal(count_files(), 1);
	ASSERT_TOLD("/dev/full: No space left on device");
	snprintf(kept, sizeof(kept), "What was recorded is in %s/", directory);
	ASSERT_TOLD(kept);
	ASSERT_TOLD(": ljspy report ");
	/* Who interrupts the rendering is told the same. */
	assert_non_null(strstr(seen.words, ": ljspy report "));
	assert_non_null(strstr(told, seen.words));
	assert_null(strstr(told, "Wrote"));
}

/* A disk that was full from the start. */
static void what_could_not_be_written_at_all_is_no_result(void **state)
{
	(void)state;
	scene.is_named = scene.is_empty = true;
	scene.finish_error = -EIO;
	scene.finish_errno = ENOSPC;
	assert_int_equal(record(), EXIT_NOTHING_DONE);
	assert_int_equal(count_files(), 0);
	ASSERT_TOLD("The recording ended early: No space left on device");
	ASSERT_TOLD("Nothing that was recorded could be written");
	assert_null(strstr(told, "What was recorded is in"));
	assert_null(strstr(told, "Wrote"));
}

/* Nor is it kept where nothing can have a name. */
static void what_cannot_be_kept_either_is_an_error(void **state)
{
	(void)state;
	scene.is_nameless = true;
	options.output = "/dev/full";
	if (!is_there("/dev/full"))
		skip();
	for (int may_move = 0; may_move < 2; may_move++) {
		scene.may_move = may_move;
		assert_int_equal(record(), EXIT_WITH_ERRORS);
		assert_int_equal(seen.moves, 1 + may_move);
		ASSERT_TOLD("/dev/full: No space left on device");
		assert_null(strstr(told, "What was recorded"));
		assert_string_equal(seen.words, "");
	}
}

static void what_is_rendered_needs_no_words(void **state)
{
	(void)state;
	scene.is_named = true;
	assert_int_equal(record(), EXIT_ALL_GOOD);
	assert_non_null(strstr(seen.words, "What was recorded is in "));
	assert_null(seen.interruption.words);
	assert_has_seconds(3);
}

/* It may take long to render; until then the recording can be found. */
static void a_short_recording_has_a_name_before_it_is_rendered(void **state)
{
	(void)state;
	scene.is_short = true;
	assert_int_equal(record(), EXIT_ALL_GOOD);
	assert_non_null(strstr(seen.words, "What was recorded is in "));
	assert_has_seconds(3);
	/* What is worth nothing gets none. */
	remove_all();
	scene.samples = 0;
	assert_nothing_done("There is no sample");
	assert_string_equal(seen.words, "");
}

/*---- Figures ----*/

static json_t *read_stats(void)
{
	json_t *document = json_load_file(stats, 0, NULL);

	assert_non_null(document);
	return document;
}

static void figures_are_written_without_samples_too(void **state)
{
	json_t *document;

	(void)state;
	options.stats = stats;
	assert_int_equal(record(), EXIT_ALL_GOOD);
	document = read_stats();
	assert_int_equal(json_integer_value(json_object_get(document, "samples")), 3);
	assert_null(json_object_get(document, "command"));
	json_decref(document);
	remove_all();
	scene.samples = 0;
	assert_int_equal(record(), EXIT_NOTHING_DONE);
	document = read_stats();
	assert_int_equal(json_integer_value(json_object_get(document, "samples")), 0);
	json_decref(document);
	assert_int_equal(count_files(), 1);
	options.stats = "/dev/full";
	scene.samples = 3;
	if (is_there("/dev/full"))
		assert_int_equal(record(), EXIT_WITH_ERRORS);
}

/*---- Turns ----*/

static void record_turns(void)
{
	set_scene();
	options.blocked_ns = 10;
	options.clock = WEIGHT_WALL_TIME;
	options.stats = stats;
}

static void turns_are_reported(void **state)
{
	json_t *document;

	(void)state;
	record_turns();
	assert_int_equal(record(), EXIT_ALL_GOOD);
	assert_true(seen.sampler.turns);
	document = read_stats();
	assert_non_null(json_object_get(document, "blocked"));
	json_decref(document);
	remove_all();
	/* That there was none is a result. */
	record_turns();
	scene.samples = 0;
	assert_int_equal(record(), EXIT_ALL_GOOD);
	assert_true(is_there(output));
}

static void samples_of_turns_that_memory_lacks_are_counted(void **state)
{
	(void)state;
	record_turns();
	scene.turns_lost = 3;
	assert_int_equal(record(), EXIT_WITH_ERRORS);
	ASSERT_TOLD("3 samples could not be written.");
}

/*---- Commands ----*/

static void launched(int status)
{
	set_scene();
	options.launch = launch;
	options.pid_count = 0;
	scene.result.end = SAMPLER_TARGETS_ENDED;
	scene.result.launched = true;
	scene.result.pid = OTHER;
	scene.result.exit_known = true;
	scene.result.exit_status = status;
}

static void a_commands_status_counts_first(void **state)
{
	(void)state;
	launched(W_EXITCODE(0, 0));
	assert_int_equal(record(), EXIT_ALL_GOOD);
	launched(W_EXITCODE(7, 0));
	assert_int_equal(record(), 7);
	assert_has_seconds(3);
	launched(W_EXITCODE(0, SIGSEGV));
	assert_int_equal(record(), 128 + SIGSEGV);
	launched(W_EXITCODE(7, 0));
	scene.result.left_out = 1;
	assert_int_equal(record(), 7);
	launched(W_EXITCODE(0, 0));
	scene.result.left_out = 1;
	assert_int_equal(record(), EXIT_WITH_ERRORS);
	remove_all();
	launched(W_EXITCODE(0, 0));
	scene.samples = 0;
	assert_nothing_done("There is no sample");
	launched(W_EXITCODE(0, 0));
	scene.result.saw_luajit = false;
	assert_nothing_done("lua prog did not run LuaJIT.");
	launched(W_EXITCODE(3, 0));
	scene.result.saw_luajit = false;
	assert_int_equal(record(), 3);
	assert_int_equal(count_files(), 0);
}

static void a_command_that_cannot_start(void **state)
{
	(void)state;
	launched(0);
	scene.samples = 0;
	scene.result.launched = false;
	scene.result.exit_known = false;
	scene.result.end = SAMPLER_FAILED;
	scene.result.error = -ENOENT;
	assert_nothing_done("lua prog");
}

static void another_lua_is_told_while_it_runs(void **state)
{
	(void)state;
	launched(0);
	scene.result.saw_luajit = false;
	strcpy(scene.result.other_lua, "5.4");
	assert_nothing_done("So far there is no LuaJIT: lua prog runs PUC Lua 5.4");
	ASSERT_TOLD("lua prog runs PUC Lua 5.4, which ljspy does not know.\n");
	launched(0);
	strcpy(scene.result.other_lua, "5.4");
	assert_int_equal(record(), EXIT_ALL_GOOD);
	assert_null(strstr(told, "PUC Lua"));
}

static void a_command_that_goes_on_is_awaited(void **state)
{
	json_t *document, *command;

	(void)state;
	launched(0);
	options.stats = stats;
	scene.result.exit_known = false;
	scene.result.end = SAMPLER_DURATION_OVER;
	scene.child = CHILD_ENDS_LATER;
	scene.child_status = 9;
	assert_int_equal(record(), 9);
	document = read_stats();
	command = json_object_get(document, "command");
	assert_non_null(command);
	assert_non_null(json_object_get(command, "exit_status"));
	json_decref(document);
}

/* A process ends ljspy, so ljspy ends the command, which a terminal would do. */
static void a_signal_for_ljspy_reaches_the_command(void **state)
{
	(void)state;
	launched(0);
	scene.result.exit_known = false;
	scene.result.end = SAMPLER_INTERRUPTED;
	scene.result.interrupted_by = SIGTERM;
	scene.result.interrupted_by_process = true;
	scene.child = CHILD_IS_ENDED_BY_SIGNALS;
	assert_int_equal(record(), 128 + SIGTERM);
	assert_int_equal(seen.interruption.signal, SIGTERM);
	assert_has_seconds(3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_whole_recording_is_good, begin, end),
		cmocka_unit_test_setup_teardown(all_formats_are_written, begin, end),
		cmocka_unit_test_setup_teardown(the_sampler_gets_what_the_user_wants, begin, end),
		cmocka_unit_test_setup_teardown(archives_are_another_matter, begin, end),
		cmocka_unit_test_setup_teardown(without_a_sample_there_is_no_output, begin, end),
		cmocka_unit_test_setup_teardown(what_never_began_is_nothing, begin, end),
		cmocka_unit_test_setup_teardown(what_may_not_be_looked_at_is_not_sampled, begin, end),
		cmocka_unit_test_setup_teardown(no_output_no_sampling, begin, end),
		cmocka_unit_test_setup_teardown(what_is_missing_is_an_error, begin, end),
		cmocka_unit_test_setup_teardown(what_may_be_missing_is_told, begin, end),
		cmocka_unit_test_setup_teardown(samples_that_memory_lacks_are_counted, begin, end),
		cmocka_unit_test_setup_teardown(a_full_disk_ends_the_recording, begin, end),
		cmocka_unit_test_setup_teardown(a_recording_goes_on_on_another_disk, begin, end),
		cmocka_unit_test_setup_teardown(a_recording_that_is_the_output_stays_there, begin, end),
		cmocka_unit_test_setup_teardown(an_end_that_memory_lacks_is_an_error, begin, end),
		cmocka_unit_test_setup_teardown(what_could_not_be_written_at_all_is_no_result, begin, end),
		cmocka_unit_test_setup_teardown(what_cannot_be_rendered_is_kept, begin, end),
		cmocka_unit_test_setup_teardown(what_cannot_be_kept_either_is_an_error, begin, end),
		cmocka_unit_test_setup_teardown(what_is_rendered_needs_no_words, begin, end),
		cmocka_unit_test_setup_teardown(a_short_recording_has_a_name_before_it_is_rendered, begin,
						end),
		cmocka_unit_test_setup_teardown(figures_are_written_without_samples_too, begin, end),
		cmocka_unit_test_setup_teardown(turns_are_reported, begin, end),
		cmocka_unit_test_setup_teardown(samples_of_turns_that_memory_lacks_are_counted, begin, end),
		cmocka_unit_test_setup_teardown(a_commands_status_counts_first, begin, end),
		cmocka_unit_test_setup_teardown(a_command_that_cannot_start, begin, end),
		cmocka_unit_test_setup_teardown(another_lua_is_told_while_it_runs, begin, end),
		cmocka_unit_test_setup_teardown(a_command_that_goes_on_is_awaited, begin, end),
		cmocka_unit_test_setup_teardown(a_signal_for_ljspy_reaches_the_command, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

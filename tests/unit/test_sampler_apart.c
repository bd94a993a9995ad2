/* SPDX-License-Identifier: MIT */
/*
 * The sampler in a process of its own: what the front gets of its samples, its figures and its end.
 *
 * The engine is a real process, as each side has its own copy of everything; it runs to its end before the
 * front takes what it has sent.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "output/sample/lost.h"
#include "src/apart/sample_message.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/proc/process.h"
#include "src/sampler/sampler_apart.h"
#include "tests/unit/instead_of.h"

enum {
	EVENTS_MAX = 32,
	EVENT_BYTES = 12000,
	FRONT_CPU_NS = 1000,
	AWAY_NS = 2000,
	ENGINE_CPU_NS = 500,
	GROUP = 77,
	TRACER_TID = 78,
};

struct apart {
	const struct apart_options *options;
};

/* What the engine did, in its order. */
struct event {
	enum { SENT, PUBLISHED } what;
	size_t size;
	unsigned char bytes[EVENT_BYTES];
};

/* Both processes see it. */
static struct shared {
	struct event events[EVENTS_MAX];
	size_t count;
	unsigned int engines;
	unsigned int refused; /* so many messages find no room, from the first one on */
	bool passed;          /* what the engine asked for was so */
	bool closed_files;    /* the engine did */
	bool rests;           /* as told last */
	unsigned int rest_calls, come_by_calls;
	uint64_t come_by_ns;
	pid_t tracer_tid;
	bool resumed_as_told; /* what apart_stay_away() says */
} * shared;

static void (*sampler)(const struct sampler_options *options, const struct sampler_breaks *breaks,
		       struct sampler_result *ret_result);
static enum apart_wish wish;
static uint64_t now_ns;
static enum apart_end apart_ends;
static int apart_error;
static unsigned int blocked; /* so many engines end as the memory of a process keeps them waiting */
static uint64_t hang_ns;     /* for so long, each */
static uint64_t step_ns;     /* from one sample to the next */
static int interrupted_by;
static pid_t reused;   /* another process has this id now */
static pid_t blocker;  /* whose memory each engine waits for; 0: each another's */
static pid_t in_exec;  /* it is in the middle of an execve(); negative: each is */
static bool exec_ends; /* when the engine that waited for it has ended */

/* What the front did. */
static struct {
	unsigned int conclusions, progresses, progresses_max, keeps;
	bool subreaper;
	struct sample sample; /* the last one */
	struct frame frames[2];
	size_t samples, samples_at_keep;
	uint64_t told_samples; /* by the last progress */
	bool garbled;          /* one message on its way */
	bool is_short;         /* of memory */
	struct apart_options given;
} front;

static struct sampler_options options;
static struct sampler_result result;
static struct apart the_apart;

static const pid_t own_pids[APART_OWN_PIDS] = { 5, 6 };

/*---- The engine's side ----*/

INSTEAD_OF(apart_send);
bool __wrap_apart_send(struct apart *apart, const void *bytes, size_t size)
{
	struct event *event = &shared->events[shared->count];

	(void)apart;
	if (shared->refused) {
		shared->refused--;
		return false;
	}
	event->what = SENT;
	event->size = size;
	memcpy(event->bytes, bytes, size);
	shared->count++;
	return true;
}

INSTEAD_OF(apart_publish);
void __wrap_apart_publish(struct apart *apart, const void *results)
{
	struct event *event = &shared->events[shared->count++];

	event->what = PUBLISHED;
	event->size = apart->options->results_size;
	memcpy(event->bytes, results, event->size);
}

INSTEAD_OF(apart_wish);
enum apart_wish __wrap_apart_wish(const struct apart *apart)
{
	(void)apart;
	return wish;
}

INSTEAD_OF(apart_rest);
void __wrap_apart_rest(struct apart *apart, bool rests)
{
	(void)apart;
	shared->rests = rests;
	shared->rest_calls++;
}

INSTEAD_OF(apart_come_by);
void __wrap_apart_come_by(struct apart *apart, uint64_t wait_ns)
{
	shared->come_by_ns = wait_ns;
	(void)apart;
	shared->come_by_calls++;
}

INSTEAD_OF(apart_note_tracer);
void __wrap_apart_note_tracer(struct apart *apart, pid_t tid)
{
	(void)apart;
	shared->tracer_tid = tid;
}

INSTEAD_OF(apart_stay_away);
bool __wrap_apart_stay_away(struct apart *apart)
{
	(void)apart;
	return shared->resumed_as_told;
}

INSTEAD_OF(apart_close_standard_files);
void __wrap_apart_close_standard_files(struct apart *apart)
{
	(void)apart;
	shared->closed_files = true;
}

INSTEAD_OF(apart_front_group);
pid_t __wrap_apart_front_group(const struct apart *apart)
{
	(void)apart;
	return GROUP;
}

INSTEAD_OF(apart_own_pids);
const pid_t *__wrap_apart_own_pids(const struct apart *apart)
{
	(void)apart;
	return own_pids;
}

INSTEAD_OF(sampler_run_resumed);
void __wrap_sampler_run_resumed(const struct sampler_options *given, const struct sampler_breaks *breaks,
				struct sampler_result *ret_result)
{
	sampler(given, breaks, ret_result);
}

INSTEAD_OF(clock_gettime);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	const uint64_t now = clock == CLOCK_PROCESS_CPUTIME_ID ? ENGINE_CPU_NS : now_ns;

	*ret_time = (struct timespec){ .tv_sec = (time_t)(now / NS_PER_SECOND),
				       .tv_nsec = (long)(now % NS_PER_SECOND) };
	return 0;
}

/*---- The front's side ----*/

INSTEAD_OF(process_start);
uint64_t __wrap_process_start(pid_t pid)
{
	return pid == reused ? 2 : 1;
}

INSTEAD_OF(process_is_in_exec);
bool __wrap_process_is_in_exec(pid_t pid)
{
	return !exec_ends && (pid == in_exec || in_exec < 0);
}

INSTEAD_OF(prctl);
int __wrap_prctl(int option, ...)
{
	front.subreaper |= option == PR_SET_CHILD_SUBREAPER;
	return 0;
}

INSTEAD_OF(apart_conclude);
void __wrap_apart_conclude(struct apart *apart)
{
	(void)apart;
	front.conclusions++;
}

static const struct event *last_published;

INSTEAD_OF(apart_results);
bool __wrap_apart_results(const struct apart *apart, void *ret_results)
{
	(void)apart;
	if (last_published)
		memcpy(ret_results, last_published->bytes, last_published->size);
	return last_published != NULL;
}

INSTEAD_OF(apart_interrupted_by);
int __wrap_apart_interrupted_by(const struct apart *apart, bool *ret_by_process)
{
	(void)apart;
	*ret_by_process = true;
	return interrupted_by;
}

INSTEAD_OF(apart_away_ns);
uint64_t __wrap_apart_away_ns(const struct apart *apart)
{
	(void)apart;
	return AWAY_NS;
}

INSTEAD_OF(apart_cpu_ns);
uint64_t __wrap_apart_cpu_ns(const struct apart *apart)
{
	(void)apart;
	return FRONT_CPU_NS;
}

static void take_all(const struct apart_options *of)
{
	last_published = NULL;
	for (size_t i = 0; i < shared->count; i++) {
		struct event *event = &shared->events[i];

		if (event->what == PUBLISHED) {
			last_published = event;
			of->update(&the_apart, of->context);
			of->update(&the_apart, of->context); /* it may come without anything new */
			continue;
		}
		if (front.garbled)
			event->size--;
		front.garbled = false;
		now_ns += step_ns;
		of->take(&the_apart, of->context, event->bytes, event->size);
	}
	of->update(&the_apart, of->context);
}

INSTEAD_OF(sample_reader_read);
int __wrap_sample_reader_read(struct sample_reader *reader, const unsigned char *bytes, size_t size,
			      struct sample *ret_sample)
{
	return front.is_short ? -ENOMEM : __real_sample_reader_read(reader, bytes, size, ret_sample);
}

INSTEAD_OF(apart_run);
int __wrap_apart_run(const struct apart_options *of, struct apart_outcome *ret_outcome)
{
	const bool is_blocked = blocked > 0;
	int status;
	pid_t pid;

	front.given = *of;
	the_apart.options = of;
	*ret_outcome = (struct apart_outcome){ .end = is_blocked ? APART_BLOCKED : apart_ends,
					       .blocked_pid = blocker   ? blocker
							      : blocked ? (pid_t)(70 + blocked)
									: 77 };
	ret_outcome->blocked_in_exec = ret_outcome->blocked_pid == in_exec || in_exec < 0;
	blocked -= is_blocked;
	if (apart_error && apart_ends != APART_UNWATCHED)
		return apart_error;
	shared->engines++;
	pid = fork();
	if (pid == 0) {
		of->work(&the_apart, of->context);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	take_all(of);
	shared->count = 0;
	now_ns += is_blocked ? hang_ns : 0;
	return apart_error;
}

/*---- What the caller wants ----*/

static void take(void *context, const struct sample *sample)
{
	assert_ptr_equal(context, &front);
	front.samples++;
	front.sample = *sample;
	assert_in_range(sample->frame_count, 1, 2);
	memcpy(front.frames, sample->frames, sample->frame_count * sizeof(front.frames[0]));
}

static bool progress(void *context, const struct figures *so_far)
{
	assert_ptr_equal(context, &front);
	front.told_samples = so_far->samples;
	return ++front.progresses < front.progresses_max;
}

static void keep(void *context)
{
	assert_ptr_equal(context, &front);
	front.keeps++;
	front.samples_at_keep = front.samples;
}

static int begin(void **state)
{
	(void)state;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	memset(&front, 0, sizeof(front));
	front.progresses_max = 100;
	wish = APART_GO_ON;
	now_ns = NS_PER_SECOND;
	apart_ends = APART_CONCLUDED;
	apart_error = 0;
	blocked = 0;
	hang_ns = step_ns = 0;
	interrupted_by = SIGTERM;
	reused = blocker = in_exec = 0;
	exec_ends = false;
	options = (struct sampler_options){
		.functions = functions_new(), .take = take, .progress = progress, .context = &front
	};
	return options.functions ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	functions_free(options.functions);
	return munmap(shared, sizeof(*shared));
}

static void run(void)
{
	sampler_run_apart(&options, &result);
}

/*---- Samplers ----*/

static const struct function works = { .kind = FRAME_LUA, .name = "works", .file = "@a.lua" };

static void send_sample(const struct sampler_options *given, uint64_t cpu_ns, bool is_lost)
{
	const struct frame frame = { .function = is_lost ? lost_function(LOST_ASLEEP)
							 : functions_intern(given->functions, &works),
				     .line = 8 };
	const struct sample sample = {
		.time_ns = 3, .pid = 1, .tid = 2, .cpu_ns = cpu_ns, .frames = &frame, .frame_count = 1
	};

	given->take(given->context, &sample);
}

/* What it counts itself is wrong. */
static const struct sampler_result three_seconds = {
	.end = SAMPLER_DURATION_OVER,
	.saw_luajit = true,
	.layout = "a layout",
	.figures = { .samples = 1000, .duration_ns = UINT64_C(3000000000), .self_cpu_ns = ENGINE_CPU_NS },
};

static void sends_three(const struct sampler_options *given, const struct sampler_breaks *breaks,
			struct sampler_result *ret_result)
{
	struct sampler_result so_far = three_seconds;

	for (uint64_t i = 1; i <= 3; i++) {
		so_far.figures.self_cpu_ns = 0;
		send_sample(given, i, i == 3);
		if (!breaks->progress(breaks->context, &so_far))
			return;
	}
	*ret_result = three_seconds;
}

static void the_front_gets_each_sample(void **state)
{
	(void)state;
	sampler = sends_three;
	run();
	assert_int_equal(front.samples, 3);
	assert_int_equal(front.sample.cpu_ns, 3);
	assert_ptr_equal(front.frames[0].function, lost_function(LOST_ASLEEP));
	assert_int_equal(result.end, SAMPLER_DURATION_OVER);
	assert_true(result.saw_luajit);
	assert_string_equal(result.layout, "a layout");
	/* It counts what has arrived. */
	assert_int_equal(result.figures.samples, 3);
	assert_int_equal(result.figures.lost[LOST_ASLEEP], 1);
	assert_int_equal(result.figures.frames[CERTAINTY_EXACT], 2);
	assert_int_equal(result.figures.dropped, 0);
	assert_int_equal(result.figures.duration_ns, UINT64_C(3000000000));
	assert_int_equal(result.figures.away_ns, AWAY_NS);
	assert_int_equal(result.figures.self_cpu_ns, ENGINE_CPU_NS + FRONT_CPU_NS);
	assert_int_equal(result.interrupted_by, SIGTERM);
	assert_true(result.interrupted_by_process);
	assert_int_equal(front.conclusions, 0);
	assert_true(front.given.can_be_concluded);
	assert_false(front.given.keeps_standard_files);
	assert_false(front.subreaper);
}

static void samples_without_room_count_as_dropped(void **state)
{
	(void)state;
	sampler = sends_three;
	shared->refused = 2;
	run();
	assert_int_equal(front.samples, 1);
	assert_int_equal(result.figures.samples, 1);
	assert_int_equal(result.figures.dropped, 2);
}

/* The engine publishes once for each progress, and at its end. */
static void progress_is_told_once_a_time(void **state)
{
	(void)state;
	sampler = sends_three;
	run();
	assert_int_equal(front.progresses, 4);
	assert_int_equal(front.told_samples, 3);
	assert_true(shared->closed_files);
}

static void is_interrupted(const struct sampler_options *given, const struct sampler_breaks *breaks,
			   struct sampler_result *ret_result)
{
	sends_three(given, breaks, ret_result);
	ret_result->end = SAMPLER_INTERRUPTED;
}

static void progress_may_end_it(void **state)
{
	(void)state;
	sampler = is_interrupted;
	front.progresses_max = 2;
	run();
	assert_int_equal(front.progresses, 2);
	assert_int_equal(front.conclusions, 1);
	assert_int_equal(result.end, SAMPLER_TOLD_TO_END);
	/* It ends by itself meanwhile. */
	sampler = sends_three;
	shared->count = 0;
	front.progresses = 0;
	run();
	assert_int_equal(result.end, SAMPLER_DURATION_OVER);
	/* It was not told to. */
	sampler = is_interrupted;
	shared->count = 0;
	front.progresses_max = 100;
	run();
	assert_int_equal(result.end, SAMPLER_INTERRUPTED);
	options.progress = NULL;
	shared->count = 0;
	run();
	assert_int_equal(result.end, SAMPLER_INTERRUPTED);
}

static void an_engine_that_was_killed_leaves_what_it_published(void **state)
{
	(void)state;
	sampler = sends_three;
	apart_ends = APART_KILLED;
	run();
	assert_int_equal(result.end, SAMPLER_KILLED);
	assert_int_equal(result.error, 0);
	assert_int_equal(result.figures.samples, 3);
	assert_string_equal(result.layout, "a layout");
	assert_false(result.figures.lost_cpu_unknown);
	shared->count = 0;
	apart_ends = APART_BLOCKED;
	options.alloc = true;
	run();
	options.alloc = false;
	assert_true(result.figures.lost_cpu_unknown);
	assert_int_equal(result.end, SAMPLER_BLOCKED);
	assert_int_equal(result.pid, 77); /* whose memory it waited for */
	assert_int_equal(result.figures.samples, 3);
	shared->count = 0;
	apart_ends = APART_UNWATCHED;
	apart_error = -ECHILD;
	run();
	assert_int_equal(result.end, SAMPLER_KILLED);
	assert_int_equal(result.error, -ECHILD);
	assert_int_equal(result.figures.samples, 3);
}

/* The engines have left out those before. */
static void leaves_some_out(const struct sampler_options *given, const struct sampler_breaks *breaks,
			    struct sampler_result *ret_result)
{
	shared->passed = given->unreadable_count + 1 == shared->engines;
	for (size_t i = 0; i < given->unreadable_count; i++)
		shared->passed &= given->unreadable[i].pid == (pid_t)(72 - i);
	sends_three(given, breaks, ret_result);
}

static struct sampler_noted told;

static void note_told(const struct sampler_noted *refused)
{
	for (size_t i = 0; i < refused->count; i++)
		sampler_note(&told, refused->at[i].pid, refused->at[i].why);
}

static void want_targets(size_t count)
{
	static const pid_t pids[] = { 71, 72, 73 };

	options.pids = pids;
	options.pid_count = count;
}

/* Three targets, until the end of the recording; what is refused is told. */
static void want_three(void)
{
	interrupted_by = 0;
	told = (struct sampler_noted){ 0 };
	want_targets(3);
	options.tell_refused = note_told;
}

static void one_of_several_that_keeps_it_waiting_is_left_out(void **state)
{
	(void)state;
	sampler = leaves_some_out;
	blocked = 2;
	want_three();
	run();
	assert_int_equal(shared->engines, 3);
	assert_true(shared->passed);
	assert_int_equal(result.end, SAMPLER_DURATION_OVER);
	assert_int_equal(front.samples, 9);
	assert_int_equal(result.figures.samples, 9);
	assert_int_equal(result.figures.lost[LOST_ASLEEP], 3);
	/* Each is told at once, and is not to be told again. */
	assert_int_equal(told.count, 2);
	assert_int_equal(result.refused.count, 2);
	assert_int_equal(result.left_out, 2);
	assert_int_equal(result.left_out_error, -ETIMEDOUT);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(told.at[i].pid, 72 - i);
		assert_int_equal(told.at[i].why, -ETIMEDOUT);
		assert_int_equal(result.refused.at[i].pid, 72 - i);
	}
}

static void samples_nothing(const struct sampler_options *given, const struct sampler_breaks *breaks,
			    struct sampler_result *ret_result)
{
	(void)given;
	(void)breaks;
	*ret_result = (struct sampler_result){ .end = SAMPLER_DURATION_OVER };
}

/* For the end of its execve(), that is: it is looked at again by then. */
static void one_that_keeps_it_waiting_by_its_execve_is_not_left_out(void **state)
{
	(void)state;
	sampler = leaves_some_out;
	blocked = 1;
	in_exec = 71;
	want_three();
	run();
	assert_int_equal(shared->engines, 2);
	assert_false(shared->passed); /* the second one was to leave none out */
	assert_int_equal(result.end, SAMPLER_DURATION_OVER);
	assert_int_equal(result.figures.samples, 6);
	assert_int_equal(told.count, 0);
	assert_int_equal(result.left_out, 0);
	assert_int_equal(result.unreadable_count, 0);
}

static void nor_is_one_whose_execve_is_over_when_the_engine_has_ended(void **state)
{
	exec_ends = true;
	one_that_keeps_it_waiting_by_its_execve_is_not_left_out(state);
}

static void awaits_it_the_second_time(const struct sampler_options *given,
				      const struct sampler_breaks *breaks, struct sampler_result *ret_result)
{
	shared->passed = given->awaits_exec == (shared->engines > 1);
	sends_three(given, breaks, ret_result);
}

static void the_only_one_is_awaited_in_its_execve_once(void **state)
{
	(void)state;
	sampler = awaits_it_the_second_time;
	blocked = 1;
	in_exec = 71;
	want_targets(1);
	interrupted_by = 0;
	run();
	assert_int_equal(shared->engines, 2);
	assert_true(shared->passed);
	assert_int_equal(result.end, SAMPLER_DURATION_OVER);
	assert_int_equal(result.figures.samples, 6);
	assert_int_equal(result.left_out, 0);
	shared->engines = 0;
	shared->count = 0;
	blocked = 2;
	blocker = 71;
	run();
	assert_int_equal(shared->engines, 2);
	assert_int_equal(result.end, SAMPLER_BLOCKED);
	assert_int_equal(result.pid, 71);
}

static bool samples_before;
static bool failed_in_exec; /* it was still in its execve() when all was over */

static void finds_no_luajit(const struct sampler_options *given, const struct sampler_breaks *breaks,
			    struct sampler_result *ret_result)
{
	if (!given->awaits_exec && samples_before)
		sends_three(given, breaks, ret_result);
	if (!given->awaits_exec)
		_exit(0);
	*ret_result = (struct sampler_result){ .end = SAMPLER_NO_LUAJIT, .pid = 71 };
	if (failed_in_exec)
		*ret_result = (struct sampler_result){ .end = SAMPLER_FAILED,
						       .error = -ETIMEDOUT,
						       .pid = 71 };
}

static void what_the_only_one_runs_after_its_execve_is_told(void **state)
{
	(void)state;
	sampler = finds_no_luajit;
	interrupted_by = 0;
	for (int i = 0; i < 3; i++) {
		static const enum sampler_end ends[] = { SAMPLER_NO_LUAJIT, SAMPLER_TARGETS_ENDED,
							 SAMPLER_BLOCKED };

		samples_before = i > 0;
		failed_in_exec = i == 2;
		blocked = 1;
		in_exec = 71;
		want_targets(1);
		run();
		assert_int_equal(result.end, ends[i]);
		assert_int_equal(result.figures.samples, samples_before ? 3 : 0);
		assert_int_equal(result.pid, 71);
		assert_int_equal(result.left_out, 0);
	}
}

static void one_that_is_slow_in_execve_again_is_left_out(void **state)
{
	(void)state;
	sampler = samples_nothing;
	blocked = 2;
	blocker = in_exec = 71;
	want_three();
	run();
	assert_int_equal(shared->engines, 3);
	assert_int_equal(result.end, SAMPLER_DURATION_OVER);
	assert_int_equal(told.count, 1);
	assert_int_equal(result.left_out, 1);
	assert_int_equal(result.left_out_pid, 71);
	assert_int_equal(result.unreadable_count, 1);
}

static void where_many_are_slow_in_execve_some_are_left_out(void **state)
{
	(void)state;
	sampler = samples_nothing;
	blocked = UNREADABLE_MAX + 2;
	in_exec = -1;
	interrupted_by = 0;
	options.subprocesses = true;
	run();
	assert_int_equal(shared->engines, UNREADABLE_MAX + 3);
	assert_int_equal(result.end, SAMPLER_DURATION_OVER);
	assert_int_equal(result.unreadable_count, 2);
	/* Not without an end. */
	shared->engines = 0;
	shared->count = 0;
	blocked = 2 * UNREADABLE_MAX + 1;
	run();
	assert_int_equal(shared->engines, 2 * UNREADABLE_MAX + 1);
	assert_int_equal(result.end, SAMPLER_BLOCKED);
	assert_int_equal(result.unreadable_count, UNREADABLE_MAX);
}

static void looks_for_those_before(const struct sampler_options *given, const struct sampler_breaks *breaks,
				   struct sampler_result *ret_result)
{
	shared->passed = given->unreadable_count == 1 && given->unreadable[0].pid == 72;
	sends_three(given, breaks, ret_result);
}

static void those_of_an_earlier_run_are_left_out_while_they_are_there(void **state)
{
	const struct unreadable before[] = { { 71, 1 }, { 72, 1 } };

	(void)state;
	sampler = looks_for_those_before;
	options.unreadable = before;
	options.unreadable_count = 2;
	reused = 71;
	run();
	assert_true(shared->passed);
	assert_int_equal(result.left_out, 1);
	assert_int_equal(result.unreadable_count, 1);
}

static int next_error;

static void cannot_begin_again(const struct sampler_options *given, const struct sampler_breaks *breaks,
			       struct sampler_result *ret_result)
{
	if (!given->unreadable_count && samples_before)
		sends_three(given, breaks, ret_result);
	if (!given->unreadable_count)
		_exit(0);
	*ret_result = (struct sampler_result){ .end = SAMPLER_FAILED, .error = next_error, .pid = 72 };
}

/* Of two targets, one keeps the first engine waiting. */
static void want_two(void)
{
	want_targets(2);
	blocked = 1;
}

static void begin_again_in_vain(int error, bool has_samples)
{
	sampler = cannot_begin_again;
	want_two();
	interrupted_by = 0;
	next_error = error;
	samples_before = has_samples;
	run();
}

static void why_the_others_cannot_be_sampled_is_told(void **state)
{
	(void)state;
	begin_again_in_vain(-EPERM, false);
	assert_int_equal(result.end, SAMPLER_FAILED);
	assert_int_equal(result.error, -EPERM);
	assert_int_equal(result.pid, 72);
	/* Samples count. */
	begin_again_in_vain(-EPERM, true);
	assert_int_equal(result.end, SAMPLER_TARGETS_ENDED);
	assert_int_equal(result.figures.samples, 3);
	assert_int_equal(result.left_out, 2);
	begin_again_in_vain(-ETIMEDOUT, true);
	assert_int_equal(result.end, SAMPLER_BLOCKED);
	assert_int_equal(result.pid, 71);
	assert_int_equal(result.figures.samples, 3);
}

/* The one that is blocked publishes no end. */
static void samples_for_the_time_left(const struct sampler_options *given,
				      const struct sampler_breaks *breaks, struct sampler_result *ret_result)
{
	struct sampler_result so_far = { .end = SAMPLER_DURATION_OVER };

	for (uint64_t i = 1; i <= 3; i++) {
		send_sample(given, i, false);
		breaks->progress(breaks->context, &so_far);
	}
	if (!given->unreadable_count)
		_exit(0);
	so_far.figures.duration_ns = given->duration_ns;
	so_far.figures.target_cpu_ns = 100;
	*ret_result = so_far;
}

static void the_time_that_an_engine_waits_is_away_and_not_sampled(void **state)
{
	(void)state;
	sampler = samples_for_the_time_left;
	want_two();
	options.duration_ns = 3 * (uint64_t)NS_PER_SECOND;
	interrupted_by = 0;
	hang_ns = 5 * (uint64_t)NS_PER_SECOND; /* longer than all is to take */
	step_ns = NS_PER_SECOND;
	run();
	assert_int_equal(shared->engines, 2);
	assert_int_equal(result.end, SAMPLER_DURATION_OVER);
	assert_int_equal(front.samples, 6);
	/* Until the next one's first sample comes. */
	assert_int_equal(result.figures.away_ns, 2 * AWAY_NS + hang_ns + step_ns);
	assert_int_equal(result.figures.duration_ns, options.duration_ns + hang_ns + step_ns);
	assert_int_equal(result.figures.target_cpu_ns, 1 + 2 + 3 + 100);
	assert_false(result.figures.target_cpu_unknown);
}

static void begins_without_the_unreadable(const struct sampler_options *given,
					  const struct sampler_breaks *breaks,
					  struct sampler_result *ret_result)
{
	if (!given->unreadable_count)
		_exit(0);
	samples_for_the_time_left(given, breaks, ret_result);
}

static void an_engine_that_waits_before_it_samples_takes_no_time(void **state)
{
	(void)state;
	sampler = begins_without_the_unreadable;
	want_two();
	options.duration_ns = 3 * (uint64_t)NS_PER_SECOND;
	interrupted_by = 0;
	hang_ns = 5 * (uint64_t)NS_PER_SECOND;
	run();
	assert_int_equal(shared->engines, 2);
	assert_int_equal(result.figures.duration_ns, options.duration_ns);
	assert_int_equal(result.figures.away_ns, AWAY_NS);
	assert_int_equal(result.figures.target_cpu_ns, 100);
	assert_false(result.figures.target_cpu_unknown);
}

static void who_is_interrupted_or_has_but_one_begins_no_other_engine(void **state)
{
	(void)state;
	sampler = leaves_some_out;
	want_two();
	run();
	assert_int_equal(shared->engines, 1);
	assert_int_equal(result.end, SAMPLER_BLOCKED);
	assert_int_equal(result.figures.target_cpu_ns, 6); /* that of its samples */
	interrupted_by = 0;
	options.pid_count = 1;
	blocked = 1;
	run();
	assert_int_equal(shared->engines, 2);
	assert_int_equal(result.end, SAMPLER_BLOCKED);
}

static void an_engine_that_does_not_start_is_a_failure(void **state)
{
	(void)state;
	apart_ends = APART_KILLED;
	apart_error = -EAGAIN;
	run();
	assert_int_equal(result.end, SAMPLER_FAILED);
	assert_int_equal(result.error, -EAGAIN);
	assert_int_equal(result.figures.samples, 0);
}

static void a_message_that_is_none_ends_it(void **state)
{
	(void)state;
	sampler = sends_three;
	front.garbled = true;
	run();
	assert_int_equal(front.samples, 0); /* nothing of what follows can be trusted */
	assert_int_equal(front.conclusions, 1);
	assert_int_equal(result.end, SAMPLER_KILLED);
	assert_int_equal(result.error, 0);
}

static void a_message_that_finds_no_memory_ends_it(void **state)
{
	(void)state;
	sampler = sends_three;
	front.is_short = true;
	run();
	assert_int_equal(front.samples, 0);
	assert_int_equal(front.conclusions, 1);
	assert_int_equal(result.end, SAMPLER_KILLED);
	assert_int_equal(result.error, -ENOMEM);
}

static void says_nonsense(const struct sampler_options *given, const struct sampler_breaks *breaks,
			  struct sampler_result *ret_result)
{
	(void)given;
	(void)breaks;
	memset(ret_result, 'x', sizeof(*ret_result));
	memset(&ret_result->figures, 0, sizeof(ret_result->figures));
}

static void lets_go(const struct sampler_options *given, const struct sampler_breaks *breaks,
		    struct sampler_result *ret_result)
{
	(void)given;
	(void)breaks;
	*ret_result = (struct sampler_result){ .end = SAMPLER_LET_GO };
}

static void what_the_engine_says_is_checked(void **state)
{
	(void)state;
	sampler = says_nonsense;
	run();
	assert_int_equal(result.end, SAMPLER_KILLED);
	assert_int_equal(result.halted.count, NOTED_MAX);
	assert_int_equal(result.refused.count, NOTED_MAX);
	assert_int_equal(strlen(result.layout), sizeof(result.layout) - 1);
	assert_int_equal(strlen(result.roots), sizeof(result.roots) - 1);
	assert_int_equal(strlen(result.other_lua), sizeof(result.other_lua) - 1);
	assert_int_equal(strlen(result.unknown_reason), sizeof(result.unknown_reason) - 1);
	shared->count = 0;
	sampler = lets_go;
	run();
	assert_int_equal(result.end, SAMPLER_INTERRUPTED);
}

static void forgets(const struct sampler_options *given, const struct sampler_breaks *breaks,
		    struct sampler_result *ret_result)
{
	(void)breaks;
	send_sample(given, 1, false);
	if (given->keep)
		given->keep(given->context);
	send_sample(given, 2, false);
	*ret_result = three_seconds;
}

static void functions_are_dropped_on_both_sides(void **state)
{
	const struct function other = { .kind = FRAME_LUA, .name = "other", .file = "@b.lua" };
	const struct function *kept = functions_intern(options.functions, &other);
	size_t size = functions_size(options.functions);

	(void)state;
	assert_non_null(kept);
	sampler = forgets;
	options.keep = keep;
	run();
	assert_int_equal(front.samples, 2);
	assert_int_equal(front.keeps, 1);
	assert_int_equal(front.samples_at_keep, 1); /* before the second one is read */
	assert_true(functions_size(options.functions) <= size);
	assert_string_equal(front.frames[0].function->name, "works");
	/* Who keeps none may have none dropped. */
	options.keep = NULL;
	shared->count = 0;
	run();
	assert_int_equal(front.samples, 4);
	assert_int_equal(front.keeps, 1);
}

static void looks_at_its_options(const struct sampler_options *given, const struct sampler_breaks *breaks,
				 struct sampler_result *ret_result)
{
	const struct sampler_watch *watch = given->watch;

	shared->passed = given->launch_group == GROUP && given->own_pids == own_pids &&
			 given->own_pid_count == APART_OWN_PIDS && !breaks->stay_away(breaks->context);
	shared->resumed_as_told = true;
	shared->passed &= breaks->stay_away(breaks->context);
	shared->passed &= watch->may_go_on(watch->context);
	watch->rests(watch->context, true, 6);
	shared->passed &= shared->rests;
	watch->rests(watch->context, false, 7);
	shared->passed &= !shared->rests;
	watch->rests(watch->context, true, 8);
	watch->binds(watch->context, TRACER_TID);
	shared->passed &= shared->tracer_tid == TRACER_TID;
	wish = APART_LET_GO;
	shared->passed &= !watch->may_go_on(watch->context);
	*ret_result = three_seconds;
}

static void the_sampler_does_what_the_front_wishes(void **state)
{
	char *const command[] = { (char[]){ "true" }, NULL };

	(void)state;
	sampler = looks_at_its_options;
	options.launch = command;
	run();
	assert_true(shared->passed);
	/* At its end it does not rest. */
	assert_int_equal(shared->rest_calls, 4);
	/* It comes by where it does not rest. */
	assert_int_equal(shared->come_by_calls, 1);
	assert_int_equal(shared->come_by_ns, 7);
	assert_false(shared->rests);
	/* The command has the standard files, and is inherited from the engine. */
	assert_true(front.given.keeps_standard_files);
	assert_true(front.subreaper);
}

static void is_asked_to_conclude(const struct sampler_options *given, const struct sampler_breaks *breaks,
				 struct sampler_result *ret_result)
{
	const struct sampler_watch *watch = given->watch;

	(void)breaks;
	wish = APART_CONCLUDE;
	shared->passed = watch->may_go_on(watch->context);
	now_ns += NS_PER_SECOND;
	shared->passed &= watch->may_go_on(watch->context);
	now_ns += NS_PER_SECOND - 1;
	shared->passed &= watch->may_go_on(watch->context);
	now_ns += 1;
	shared->passed &= !watch->may_go_on(watch->context);
	*ret_result = three_seconds;
}

static void who_concludes_may_wait_for_two_seconds(void **state)
{
	(void)state;
	sampler = is_asked_to_conclude;
	run();
	assert_true(shared->passed);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(the_front_gets_each_sample),
		TEST(samples_without_room_count_as_dropped),
		TEST(progress_is_told_once_a_time),
		TEST(progress_may_end_it),
		TEST(an_engine_that_was_killed_leaves_what_it_published),
		TEST(one_of_several_that_keeps_it_waiting_is_left_out),
		TEST(one_that_keeps_it_waiting_by_its_execve_is_not_left_out),
		TEST(the_only_one_is_awaited_in_its_execve_once),
		TEST(what_the_only_one_runs_after_its_execve_is_told),
		TEST(nor_is_one_whose_execve_is_over_when_the_engine_has_ended),
		TEST(one_that_is_slow_in_execve_again_is_left_out),
		TEST(where_many_are_slow_in_execve_some_are_left_out),
		TEST(why_the_others_cannot_be_sampled_is_told),
		TEST(those_of_an_earlier_run_are_left_out_while_they_are_there),
		TEST(the_time_that_an_engine_waits_is_away_and_not_sampled),
		TEST(an_engine_that_waits_before_it_samples_takes_no_time),
		TEST(who_is_interrupted_or_has_but_one_begins_no_other_engine),
		TEST(an_engine_that_does_not_start_is_a_failure),
		TEST(a_message_that_is_none_ends_it),
		TEST(a_message_that_finds_no_memory_ends_it),
		TEST(what_the_engine_says_is_checked),
		TEST(functions_are_dropped_on_both_sides),
		TEST(the_sampler_does_what_the_front_wishes),
		TEST(who_concludes_may_wait_for_two_seconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

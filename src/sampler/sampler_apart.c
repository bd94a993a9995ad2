/* SPDX-License-Identifier: MIT */
/* The sampler in the engine, and the front that receives its samples. */
#include "src/sampler/sampler_apart.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "src/apart/apart.h"
#include "src/apart/queue.h"
#include "src/apart/sample_message.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/proc/process.h"
#include "src/sampler/wanted.h"

static const uint64_t conclude_ns_max = 2 * UINT64_C(1000000000);

/*---- In any engine ----*/

struct watched {
	struct apart *apart;
	uint64_t conclude_ns; /* when the front first asked to conclude; 0 if not yet */
};

/* When the front asks to conclude, the sampler may still wait for conclude_ns_max. */
static bool may_go_on(void *context)
{
	struct watched *watched = context;
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC);

	switch (apart_wish(watched->apart)) {
	case APART_LET_GO: return false;
	case APART_CONCLUDE:
		if (!watched->conclude_ns)
			watched->conclude_ns = now;
		return now - watched->conclude_ns < conclude_ns_max;
	case APART_GO_ON: break;
	}
	return true;
}

static void rests(void *context, bool rests, uint64_t wait_ns)
{
	const struct watched *watched = context;

	apart_rest(watched->apart, rests);
	if (!rests)
		apart_come_by(watched->apart, wait_ns);
}

static void binds(void *context, pid_t tid)
{
	const struct watched *watched = context;

	apart_note_tracer(watched->apart, tid);
}

void sampler_run_in_engine(struct apart *apart, const struct sampler_options *given,
			   const struct sampler_breaks *breaks, struct sampler_result *ret_result)
{
	struct watched watched = { .apart = apart };
	const struct sampler_watch watch = {
		.may_go_on = may_go_on, .rests = rests, .binds = binds, .context = &watched
	};
	struct sampler_options options = *given;

	options.watch = &watch;
	options.launch_group = apart_front_group(apart);
	options.own_pids = apart_own_pids(apart);
	options.own_pid_count = APART_OWN_PIDS;
	sampler_run_resumed(&options, breaks, ret_result);
	apart_rest(apart, false);
}

/*---- One of samples ----*/

struct sampler_apart {
	struct sampler_options
		options; /* the caller's, but for what only the first of several engines does */

	/* The engine's. */
	struct apart *apart;
	struct sample_writer *writer;
	uint64_t dropped;

	/* The front's. */
	struct sample_reader *reader;
	struct sampler_result *result;
	struct sampler_result run; /* what this engine has published */
	struct figures taken;      /* figures counted from the samples received from this engine */
	uint64_t pulses;           /* progress calls: sent by the engine, seen by the front */
	bool told_to_end;
	int failure;       /* why messages can be read no more; a negative errno, 0 if they can */
	uint64_t began_ns; /* when this engine had begun to sample; 0 before */
	uint64_t seen_ns;  /* when the last of its samples or pulses came */

	/*
	 * Processes whose memory kept an engine waiting, and the result of the engines that ended for that.
	 */
	struct unreadable unreadable[UNREADABLE_MAX];
	pid_t execs[UNREADABLE_MAX]; /* not left out: an engine ended for the execve() of each */
	unsigned int exec_count;
	bool blocked_in_exec; /* the last engine waited for an execve() */
	bool has_before;
	struct sampler_result before;
	uint64_t unseen_ns;       /* how long no engine has sampled after the first one began */
	uint64_t unseen_since_ns; /* since when no engine has sampled; 0: since none began, or one does */
};

/* What the engine publishes. It stays valid even if the engine is killed next. */
struct told {
	uint64_t pulses;
	struct sampler_result result;
};

/*---- The engine ----*/

static void send_sample(void *context, const struct sample *sample)
{
	struct sampler_apart *self = context;
	size_t size = 0;
	const void *message = sample_writer_write(self->writer, sample, &size);
	bool sent = message && apart_send(self->apart, message, size);

	sample_writer_note(self->writer, sent);
	self->dropped += !sent;
}

/* The engine forgets all functions; the message has the front keep those it needs. */
static void forget(void *context)
{
	struct sampler_apart *self = context;

	sample_writer_forget(self->writer);
}

static void tell(struct sampler_apart *self, const struct sampler_result *result)
{
	struct told told = { .pulses = ++self->pulses, .result = *result };

	told.result.figures.dropped = self->dropped;
	apart_publish(self->apart, &told);
}

static bool tell_so_far(void *context, const struct sampler_result *so_far)
{
	struct sampler_apart *self = context;

	struct sampler_result result = *so_far;

	apart_close_standard_files(self->apart); /* the command has them, if there is one */
	/* The sampler counts at its end. */
	result.figures.self_cpu_ns = clock_now_ns(CLOCK_PROCESS_CPUTIME_ID);
	tell(self, &result);
	return true;
}

static bool stay_away(void *context)
{
	const struct sampler_apart *self = context;

	return apart_stay_away(self->apart);
}

static void work(struct apart *apart, void *context)
{
	struct sampler_apart *self = context;
	struct sampler_options options = self->options;
	const struct sampler_breaks breaks = {
		.stay_away = stay_away,
		.progress = tell_so_far,
		.context = self,
	};
	struct sampler_result result = { .end = SAMPLER_FAILED, .error = -ENOMEM };

	self->apart = apart;
	self->writer = sample_writer_new(QUEUE_MESSAGE_MAX);
	options.take = send_sample;
	if (options.keep)
		options.keep = forget;
	options.context = self;
	if (self->writer)
		sampler_run_in_engine(apart, &options, &breaks, &result);
	tell(self, &result);
	sample_writer_free(self->writer);
}

/*---- The front ----*/

static void take(struct apart *apart, void *context, const unsigned char *bytes, size_t size)
{
	struct sampler_apart *self = context;
	struct sample sample;

	if (self->failure)
		return;
	if (sample_message_forgets(bytes, size) && self->options.keep) {
		self->options.keep(self->options.context);
		functions_drop_others(self->options.functions);
	}
	self->failure = sample_reader_read(self->reader, bytes, size, &sample);
	if (self->failure) {
		apart_conclude(apart);
		return;
	}
	self->seen_ns = clock_now_ns(CLOCK_MONOTONIC);
	figures_add_sample(&self->taken, &sample);
	self->taken.target_cpu_ns += sample.cpu_ns;
	self->options.take(self->options.context, &sample);
}

static void check_noted(struct sampler_noted *noted)
{
	if (noted->count > NOTED_MAX)
		noted->count = NOTED_MAX;
}

/* Do not trust the result: keep the enum in its range, and end each text. */
static void check(struct sampler_result *result)
{
	if ((unsigned)result->end >= SAMPLER_KILLED)
		result->end = SAMPLER_KILLED;
	if (result->end == SAMPLER_LET_GO)
		result->end = SAMPLER_INTERRUPTED;
	check_noted(&result->halted);
	check_noted(&result->refused);
	result->layout[sizeof(result->layout) - 1] = '\0';
	result->roots[sizeof(result->roots) - 1] = '\0';
	result->other_lua[sizeof(result->other_lua) - 1] = '\0';
	result->unknown_reason[sizeof(result->unknown_reason) - 1] = '\0';
}

/* The front counts the samples that arrived, so its figures are the right ones. */
static void correct(const struct sampler_apart *self, const struct apart *apart, struct figures *figures)
{
	figures_take_samples(figures, &self->taken);
	figures->away_ns = apart_away_ns(apart);
	figures->self_cpu_ns += apart_cpu_ns(apart);
}

/* Sampling has begun. The time since an engine before was kept waiting is in no sample. */
static void begin(struct sampler_apart *self, const struct sampler_noted *refused)
{
	self->began_ns = clock_now_ns(CLOCK_MONOTONIC);
	if (self->unseen_since_ns) {
		const uint64_t unseen_ns = self->began_ns - self->unseen_since_ns;

		self->unseen_ns += unseen_ns;
		self->before.figures.away_ns += unseen_ns;
		self->before.figures.duration_ns += unseen_ns;
	}
	self->unseen_since_ns = 0;
	if (self->options.tell_refused)
		self->options.tell_refused(refused);
	self->options.tell_refused = NULL;
}

static void sum_up(const struct sampler_apart *self)
{
	if (self->has_before)
		sampler_add_results(&self->before, &self->run, self->result);
	else
		*self->result = self->run;
}

static void update(struct apart *apart, void *context)
{
	struct sampler_apart *self = context;
	struct sampler_result *run = &self->run;
	struct told told;

	run->interrupted_by = apart_interrupted_by(apart, &run->interrupted_by_process);
	if (!apart_results(apart, &told))
		return;
	check(&told.result);
	told.result.interrupted_by = run->interrupted_by;
	told.result.interrupted_by_process = run->interrupted_by_process;
	correct(self, apart, &told.result.figures);
	if (told.pulses && self->pulses == 0)
		begin(self, &told.result.refused);
	*run = told.result;
	sum_up(self);
	if (told.pulses == self->pulses)
		return;
	self->pulses = told.pulses;
	self->seen_ns = clock_now_ns(CLOCK_MONOTONIC);
	if (self->options.progress && !self->told_to_end &&
	    !self->options.progress(self->options.context, &self->result->figures)) {
		self->told_to_end = true;
		apart_conclude(apart);
	}
}

/* The sampler counts times at its end, which did not come: those of the samples are known. */
static void complete(struct sampler_apart *self)
{
	struct figures *figures = &self->run.figures;
	const uint64_t sampled_ns = self->began_ns ? self->seen_ns - self->began_ns : 0;

	figures->rate_asked_hz = self->options.rate_hz;
	figures->lost_cpu_unknown = self->options.alloc;
	if (figures->duration_ns < sampled_ns)
		figures->duration_ns = sampled_ns;
	if (figures->target_cpu_ns < self->taken.target_cpu_ns)
		figures->target_cpu_ns = self->taken.target_cpu_ns;
	figures->target_cpu_unknown = figures->samples > 0 && figures->target_cpu_ns == 0;
}

/* error: of waitpid(), if the engine could not be watched; else 0. */
static void conclude(struct sampler_apart *self, const struct apart_outcome *outcome, int error)
{
	struct sampler_result *run = &self->run;

	if (outcome->end == APART_BLOCKED) {
		run->end = SAMPLER_BLOCKED;
		run->pid = outcome->blocked_pid;
		complete(self);
	} else if (outcome->end != APART_CONCLUDED || self->failure) {
		run->end = SAMPLER_KILLED;
		run->error = self->failure == -ENOMEM ? self->failure : error;
		complete(self);
	} else if (self->told_to_end && run->end == SAMPLER_INTERRUPTED) {
		run->end = SAMPLER_TOLD_TO_END;
	}
}

/* Run an engine. The process that it ended for, if another may go on without that one, or later; else 0. */
static pid_t run_engine(struct sampler_apart *self)
{
	const struct sampler_options *options = &self->options;
	const struct apart_options apart_options = {
		.work = work,
		.take = take,
		.update = update,
		.context = self,
		.results_size = sizeof(struct told),
		.can_be_concluded = true,
		.keeps_standard_files = options->launch,
	};
	struct apart_outcome outcome = { .end = APART_KILLED };
	int error;

	self->run = (struct sampler_result){ .end = SAMPLER_KILLED };
	self->reader = sample_reader_new(options->functions);
	error = self->reader ? apart_run(&apart_options, &outcome) : -ENOMEM;
	if (error && outcome.end != APART_UNWATCHED)
		self->run = (struct sampler_result){ .end = SAMPLER_FAILED, .error = error };
	else
		conclude(self, &outcome, error);
	self->blocked_in_exec = outcome.blocked_in_exec;
	sum_up(self);
	sample_reader_free(self->reader);
	if (self->run.end != SAMPLER_BLOCKED || self->run.interrupted_by || self->told_to_end)
		return 0;
	return options->launch ? 0 : outcome.blocked_pid;
}

/* It counts as left out however the next engine ends. */
static void note_unreadable(struct sampler_apart *self, struct unreadable process)
{
	self->unreadable[self->options.unreadable_count++] = process;
	self->has_before = true;
	self->before.left_out++;
	self->before.left_out_pid = process.pid;
	self->before.left_out_error = -ETIMEDOUT;
}

/*
 * An engine waited for the end of its execve(), before which the next one asks for nothing of the process. Go
 * on with it then, but only once: nothing is sampled during such waits.
 */
static bool excuse(struct sampler_apart *self, pid_t pid)
{
	if (!self->blocked_in_exec || self->exec_count == UNREADABLE_MAX)
		return false;
	for (unsigned int i = 0; i < self->exec_count; i++)
		if (self->execs[i] == pid)
			return false;
	self->execs[self->exec_count++] = pid;
	return true;
}

/*
 * Prepare to go on without the process, or until its execve() is over. False if ljspy has left it out
 * already, or there is no time left.
 */
static bool leave_out(struct sampler_apart *self, pid_t pid, uint64_t duration_ns,
		      sampler_tell_refused *tell_refused)
{
	const uint64_t sampled_ns = self->result->figures.duration_ns - self->unseen_ns;
	struct sampler_noted unreadable = { 0 };
	const struct sampler_options *options = &self->options;
	const bool are_several = options->pid_count > 1 || options->subprocesses || options->pattern;
	const bool is_excused = excuse(self, pid);

	if (!are_several && !is_excused)
		return false;
	if (wanted_is_unreadable(options, pid) ||
	    (!is_excused && self->options.unreadable_count == UNREADABLE_MAX) ||
	    (duration_ns && sampled_ns >= duration_ns))
		return false;
	if (duration_ns)
		self->options.duration_ns = duration_ns - sampled_ns;
	self->before = *self->result;
	self->has_before = true;
	self->options.awaits_exec = !are_several;
	if (!is_excused)
		note_unreadable(self, (struct unreadable){ pid, wanted_start(pid) });
	if (self->began_ns)
		self->unseen_since_ns = self->seen_ns;
	self->taken = (struct figures){ 0 };
	self->pulses = self->began_ns = 0;
	if (!tell_refused || is_excused)
		return true;
	sampler_note(&unreadable, pid, -ETIMEDOUT);
	tell_refused(&unreadable);
	sampler_note(&self->before.refused, pid, -ETIMEDOUT);
	return true;
}

/* Those of an earlier run that are still there. */
static void take_over_unreadable(struct sampler_apart *self, const struct sampler_options *options)
{
	self->options.unreadable = self->unreadable;
	self->options.unreadable_count = 0;
	for (size_t i = 0; i < options->unreadable_count && i < UNREADABLE_MAX; i++)
		if (wanted_is_left(options->unreadable[i].pid, options->unreadable[i].start_ticks))
			note_unreadable(self, options->unreadable[i]);
}

/*
 * After last was left out, or its execve() awaited, nothing can be sampled. If processes refuse, or what last
 * runs now has no LuaJIT, that is why; samples count.
 */
static void explain_rest(struct sampler_apart *self, pid_t last)
{
	const size_t count = self->options.unreadable_count;
	const bool is_left_out = count && self->unreadable[count - 1].pid == last;
	const bool tells = self->run.end == SAMPLER_FAILED ? self->run.error != -ETIMEDOUT : !is_left_out;

	if (tells && self->before.figures.samples == 0)
		return;
	if (tells) {
		sampler_explain_again(&self->run);
		sum_up(self);
		return;
	}
	*self->result = self->before;
	self->result->end = SAMPLER_BLOCKED;
	self->result->pid = is_left_out ? last : self->run.pid;
}

void sampler_run_apart(const struct sampler_options *options, struct sampler_result *ret_result)
{
	struct sampler_apart self = { .options = *options, .result = ret_result };
	pid_t blocked, last = 0;

	take_over_unreadable(&self, options);
	/* Inherit the command from the engine, to wait for it. */
	if (options->launch)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	while ((blocked = run_engine(&self)) &&
	       leave_out(&self, blocked, options->duration_ns, options->tell_refused))
		last = blocked;
	if (last && (ret_result->end == SAMPLER_FAILED || ret_result->end == SAMPLER_NO_LUAJIT))
		explain_rest(&self, last);
	memcpy(ret_result->unreadable, self.unreadable, sizeof(self.unreadable));
	ret_result->unreadable_count = self.options.unreadable_count;
}

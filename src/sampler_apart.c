#include "src/sampler_apart.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "src/apart/apart.h"
#include "src/apart/queue.h"
#include "src/apart/sample_message.h"
#include "src/clock.h"
#include "src/sampler_resumed.h"

static const uint64_t conclude_ns_max = 2 * UINT64_C(1000000000);

struct sampler_apart {
	struct sampler_options options;		/* the caller's */

	/* The engine's. */
	struct apart *apart;
	struct sampler_resumed *resumed;
	struct sample_writer *writer;
	uint64_t dropped;
	uint64_t conclude_ns;		/* when it was first asked to conclude; 0 if not yet */

	/* The front's. */
	struct sample_reader *reader;
	struct sampler_result *result;
	struct figures taken;		/* what follows from the samples that came */
	uint64_t pulses;		/* that were told of */
	bool told_to_end, failed;
};

/* What the engine tells of: all of it holds, whatever becomes of it next. */
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

static void tell(struct sampler_apart *self, const struct sampler_result *result)
{
	struct told told = { .pulses = ++self->pulses, .result = *result };

	told.result.figures.dropped = self->dropped;
	apart_publish(self->apart, &told);
}

static bool tell_so_far(void *context, const struct sampler_result *so_far)
{
	struct sampler_apart *self = context;

	apart_close_standard_files(self->apart);	/* the command has them, if there is one */
	tell(self, so_far);
	return true;
}

/* When the work is to be concluded, what is being waited for has some time left. */
static bool may_go_on(void *context)
{
	struct sampler_apart *self = context;
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC);

	switch (apart_wish(self->apart)) {
	case APART_LET_GO:
		return false;
	case APART_CONCLUDE:
		if (!self->conclude_ns)
			self->conclude_ns = now;
		return now - self->conclude_ns < conclude_ns_max;
	case APART_GO_ON:
		break;
	}
	return true;
}

static void rests(void *context, bool rests)
{
	const struct sampler_apart *self = context;

	apart_rest(self->apart, rests);
}

static bool begin_engine(struct sampler_apart *self)
{
	struct sampler_options options = self->options;

	options.take = send_sample;
	options.may_go_on = may_go_on;
	options.rests = rests;
	options.context = self;
	options.launch_group = apart_front_group(self->apart);
	options.own_pids = apart_others(self->apart);
	options.own_pid_count = APART_OTHERS;
	self->writer = sample_writer_new(QUEUE_MESSAGE_MAX);
	self->resumed = sampler_resumed_new(&options, tell_so_far);
	return self->writer && self->resumed;
}

static enum apart_next work(struct apart *apart, void *context)
{
	struct sampler_apart *self = context;
	struct sampler_result out_of_memory = { .end = SAMPLER_FAILED, .error = ENOMEM };

	self->apart = apart;
	if (!self->resumed && !begin_engine(self)) {
		tell(self, &out_of_memory);
		return APART_DONE;
	}
	if (sampler_resumed_run(self->resumed) && apart_wish(apart) != APART_CONCLUDE)
		return APART_AGAIN;
	tell(self, sampler_resumed_result(self->resumed));
	return APART_DONE;
}

/*---- The front ----*/

static void take(struct apart *apart, void *context, const unsigned char *bytes, size_t size)
{
	struct sampler_apart *self = context;
	struct sample sample;

	if (self->failed)
		return;
	if (sample_reader_read(self->reader, bytes, size, &sample)) {
		self->failed = true;
		apart_conclude(apart);
		return;
	}
	figures_add_sample(&self->taken, &sample);
	self->options.take(self->options.context, &sample);
}

/* Whatever is in there, no enum is out of its range and each text ends. */
static void check(struct sampler_result *result)
{
	if ((unsigned)result->end > SAMPLER_KILLED)
		result->end = SAMPLER_KILLED;
	if (result->end == SAMPLER_LET_GO)
		result->end = SAMPLER_INTERRUPTED;
	result->layout[sizeof(result->layout) - 1] = '\0';
	result->unknown_reason[sizeof(result->unknown_reason) - 1] = '\0';
}

/* What follows from samples is known better here. */
static void correct(const struct sampler_apart *self, const struct apart *apart, struct figures *figures)
{
	figures->samples = self->taken.samples;
	memcpy(figures->lost, self->taken.lost, sizeof(figures->lost));
	memcpy(figures->frames, self->taken.frames, sizeof(figures->frames));
	figures->away_ns = apart_away_ns(apart);
	figures->self_cpu_ns += apart_cpu_ns(apart);
}

static void look(struct apart *apart, void *context)
{
	struct sampler_apart *self = context;
	struct told told;

	if (!apart_results(apart, &told))
		return;
	check(&told.result);
	correct(self, apart, &told.result.figures);
	*self->result = told.result;
	if (told.pulses == self->pulses || self->told_to_end)
		return;
	self->pulses = told.pulses;
	if (self->options.pulse && !self->options.pulse(self->options.context, &self->result->figures)) {
		self->told_to_end = true;
		apart_conclude(apart);
	}
}

static void conclude(const struct sampler_apart *self, enum apart_end end)
{
	if (end == APART_KILLED || self->failed)
		self->result->end = SAMPLER_KILLED;
	else if (self->told_to_end && self->result->end == SAMPLER_INTERRUPTED)
		self->result->end = SAMPLER_TOLD_TO_END;
}

void sampler_run_apart(const struct sampler_options *options, struct sampler_result *ret_result)
{
	struct sampler_apart self = {
		.options = *options,
		.reader = sample_reader_new(options->functions),
		.result = ret_result,
	};
	const struct apart_options apart_options = {
		.work = work,
		.take = take,
		.look = look,
		.context = &self,
		.results_size = sizeof(struct told),
		.can_be_concluded = true,
		.keeps_standard_files = options->launch,
	};
	enum apart_end end = APART_KILLED;
	int error;

	*ret_result = (struct sampler_result){ .end = SAMPLER_KILLED };
	/* What the engine leaves is to be ours: the command, to wait for it. */
	if (options->launch)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	error = self.reader ? apart_run(&apart_options, &end) : -ENOMEM;
	if (error)
		*ret_result = (struct sampler_result){ .end = SAMPLER_FAILED, .error = -error };
	else
		conclude(&self, end);
	sample_reader_free(self.reader);
}

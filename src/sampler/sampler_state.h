/* SPDX-License-Identifier: MIT */
/*
 * sampler_state: what the parts of the sampler share.
 *
 * sampler_samples.c takes samples of a target, sampler_targets.c knows its
 * life from being found to its end, sampler.c is the loop.
 */
#ifndef LJSPY_SAMPLER_STATE_H
#define LJSPY_SAMPLER_STATE_H

#include "memory/hash.h"
#include "src/inspect/known_files.h"
#include "src/inspect/lua_process.h"
#include "src/inspect/patience.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/clocks/cpu_clock.h"
#include "src/linux/proc/follow.h"
#include "src/linux/threads/launch.h"
#include "src/linux/threads/on_cpu.h"
#include "src/linux/threads/threads.h"
#include "src/linux/threads/tracer.h"
#include "src/linux/threads/wait_text.h"
#include "src/sampler/pace.h"
#include "src/sampler/sampler.h"

enum {
	HOUSEKEEPING_NS = NS_PER_SECOND,	/* how often mappings are looked at */
	WORTH_TELLING_ONE_IN = 8,		/* part of a period; less is not told as lost */
};

/*
 * Time of a thread for which no sample stands yet. Less than nothing if samples
 * stand for more than there was, as the kernel tells of CPU time late.
 */
struct time_account {
	int64_t pending_ns;
	uint32_t sample_count;
};

/* Where a thread was found asleep, and is until it runs again. */
struct sleep {
	bool known;
	uint64_t runs;			/* how often it had been given a CPU */
	enum thread_state thread_state;
	enum vm_state vm_state;
	const char *phase;
	const struct function *wait;	/* see struct sample */
	struct frame *frames;		/* owned */
	size_t frame_count, frames_size;
};

/* What is kept of a thread between its samples. */
struct thread_record {
	pid_t tid;
	char name[THREAD_NAME_MAX];
	struct capture_hints hints;
	uint64_t stack_address;		/* on its native stack; 0 if not known, or not needed */
	bool has_run;			/* since its last sample */
	enum presence presence;		/* at the last look */
	uint64_t look_waited_ns, look_runs;	/* of then */
	uint64_t last_sample_ns;	/* when it was taken */

	/*
	 * All of its time since it is known: on a CPU, waiting for one, and
	 * asleep. Of the last two only the wall clock takes samples.
	 */
	struct time_account on_cpu, waiting, asleep;
	uint64_t measured_ns;		/* up to when; 0: from the first measurement on */
	uint64_t cpu_ns, waited_ns;	/* what the thread had then */

	uint64_t loop_ns, sleeps;	/* as in samples; only where they are wanted */
	uint64_t stops;			/* how often it was stopped for a sample */

	struct registers held;		/* as they were when it was held last; all zero if it never was */
	struct sleep sleep;
	struct wait_socket last_socket;
	bool is_told;			/* of its sleep there are samples: see sampler_sleepers.c */
	UT_hash_handle hh;
};

/*
 * A process. Those that were asked for are attached at once; one that was
 * found is a candidate, left alone but for a look now and then, until it runs
 * LuaJIT.
 */
struct target {
	pid_t pid;
	bool found;			/* by following others */
	bool is_new;			/* found, and started since the beginning */
	bool attached;
	bool sampled;			/* attached, and runs LuaJIT or was asked for */
	int refusal;			/* why a candidate cannot be attached, a negative errno */
	dev_t program_device;		/* of a candidate's executable, to notice another one */
	ino_t program_inode;
	char name[THREAD_NAME_MAX];	/* of the process */
	struct cpu_clock clock;
	struct threads *threads;
	struct lua_process *process;	/* NULL after an execve until the next look */
	struct thread_record *records;
	uint64_t start_cpu_ns, cpu_ns;	/* of the process clock */
	struct pace pace;		/* of looks by the CPU clock; by the wall clock it keeps its first one */
	uint64_t accounted_ns;		/* the weight of all its samples */
	uint64_t look_at_ns;		/* when to look for a VM again */
	uint64_t look_interval_ns;
	uint64_t haste_ns;		/* how soon to look where unknown code runs */
	bool is_hasty;			/* the look that is due was asked for by that */
	/*
	 * While it runs, looks are due at random moments, a period apart on average, for
	 * the kernel's tick, on which alarms come, may beat with the target's
	 * own rhythm, and come too late for what runs right after a sleep. When
	 * it has used no CPU for a while, it is left to the alarm of its CPU clock, and that
	 * is read about once a second: an idle target costs nothing. What never
	 * runs on a tick has no alarm.
	 */
	bool active;
	uint64_t idle_since_ns;
	uint64_t rest_look_ns;		/* when to see whether it still rests */
	uint64_t due_ns;
	bool is_late;			/* this look is: see target_is_late() */
	bool wants_look;		/* it waits for a CPU, and no sample stands for what it has used last */
	uint64_t active_cpu_ns;		/* of the process clock, at the last look */
	uint64_t last_look_ns, next_look_ns;	/* at its coroutines: when it was, and not before when it may be */
	int index;			/* its place among the targets */
	bool ended;
};

struct sampler {
	const struct sampler_options *options;
	struct sampler_result *result;
	struct tracer *tracer;
	struct known_files *files;	/* that the targets have mapped */
	struct patience patience;
	struct target **targets;	/* NULL in places that are free */
	size_t target_count;
	struct follow *follow;		/* NULL if nobody is to be followed */
	struct launch launch;
	uint64_t random;		/* state of a generator, never 0 */
	bool closing;			/* the looks that are taken now are the last ones */
	bool last_chance;		/* ... and there will be no others */
	uint64_t start_ns, end_ns;	/* 0 if there was no beginning */
	uint64_t period_ns;
	uint64_t wall_ns;		/* of all samples */
	size_t wait_name_bytes;		/* of what threads were seen to wait for */
	uint64_t progress_ns;		/* when the next one is due */
};

/*---- sampler_samples.c ----*/

/* The record of a thread, made if there is none yet; NULL when memory is short. */
struct thread_record *target_record(struct target *target, const struct thread *thread, uint64_t now);
void target_forget_records(struct target *target);

/* Have the thread's time up to now in its accounts. False if it has ended. */
bool target_measure(struct target *target, struct thread *thread, struct thread_record *record);

/* What its time has been so far is nobody's. */
void target_open_record(struct thread_record *record, const struct thread *thread, uint64_t now);

/* How much of a thread's time its sample stands for; it is no longer pending. */
uint64_t sampler_take_weight(const struct sampler *sampler, struct time_account *account);
uint64_t sampler_take_all(struct time_account *account);

/* While the thread holds still: which turn of its event loop it is in, for its next sample. */
void target_note_turn(const struct sampler *sampler, struct target *target, struct thread *thread,
		      struct thread_record *record);

/* Count the sample and hand it on. */
void target_deliver(struct sampler *sampler, struct target *target, const struct sample *sample);

/* CPU time for which there is no stack. */
void target_deliver_lost(struct sampler *sampler, struct target *target, pid_t tid,
			 uint64_t cpu_ns, enum lost_reason reason);

/* So few that it costs little to look at each of them. */
bool target_has_few_threads(const struct target *target);

/* At the last look, was a thread on a CPU, or was none looked at? */
bool target_is_up(const struct target *target);

/* Is it so long since a look was due that what runs now is not what ran then? */
bool target_is_late(const struct sampler *sampler, uint64_t due_ns, uint64_t now);

/* Take a sample of each thread that has run since its last one and is running now. */
void target_sample(struct sampler *sampler, struct target *target);

/* Take those of threads that have stopped late. */
void target_take_late(struct sampler *sampler, struct target *target);

/*---- sampler_coroutines.c ----*/

/* Take samples of the coroutines that have yielded. */
void target_sample_coroutines(struct sampler *sampler, struct target *target);

/*---- sampler_sleepers.c: for the wall clock ----*/

/* Take a sample of the thread if it sleeps; false if it runs. */
bool target_sample_sleeper(struct sampler *sampler, struct target *target, struct thread *thread,
			   struct thread_record *record);

/* The time that a running thread had to wait for its CPU; sample is that of the thread. */
void target_deliver_waiting(struct sampler *sampler, struct target *target,
			    struct thread_record *record, const struct sample *sample);

/* For what is left of the times of threads there will be no more samples. */
void target_close_records(struct sampler *sampler, struct target *target);

/*---- sampler_targets.c ----*/

/* A target in a place of its own, of which nothing is known but its pid; NULL when memory is short. */
struct target *target_add(struct sampler *sampler, pid_t pid);

/* Sample it from now on. 0 or a negative errno. */
int target_attach(struct sampler *sampler, struct target *target);

/* If there is LuaJIT in it now, attach it; else come back later. */
void target_consider(struct sampler *sampler, struct target *target, uint64_t now);

/* For follow_look(); context is the sampler. */
void targets_take_found(void *context, pid_t pid);

/* Look at the process as it is now; false if it has ended. */
bool target_look(struct sampler *sampler, struct target *target, uint64_t now);

/* Code runs that may be of a library that was just loaded: look soon. */
void target_hasten_look(struct target *target, uint64_t now);
void target_refresh_threads(struct sampler *sampler, struct target *target, uint64_t now);

/* Look at it and sample what runs. */
void target_take_look(struct sampler *sampler, struct target *target, uint64_t now);

/* It has begun to run; a look was due. */
void target_wake(struct sampler *sampler, struct target *target);
/* It rests: does it still? Costs next to nothing. */
void target_look_at_rest(struct sampler *sampler, struct target *target, uint64_t now);
void target_tick(struct sampler *sampler, struct target *target, uint64_t now);

void target_note_end(struct sampler *sampler, struct target *target);

/* Before functions are dropped: keep those of threads that sleep, and forget all others. */
void target_keep_functions(struct target *target);

/* What has been used so far is nobody's. */
void target_open_accounts(struct sampler *sampler, struct target *target, uint64_t now);

/*
 * A look was due, and there was none. By the CPU clock the pace knows: there are missed
 * ticks where there is CPU time without samples.
 */
void sampler_note_missed(struct sampler *sampler, uint64_t count);

/* A random number below that. */
uint64_t sampler_random(struct sampler *sampler, uint64_t below);

/* The last period of each thread is not over: look at those that run once more. */
void target_take_last_look(struct sampler *sampler, struct target *target);

/* Say of CPU time that no sample stands for that it has no stack. */
void target_close_accounts(struct sampler *sampler, struct target *target);

/* Free it and its place. */
void target_close(struct sampler *sampler, struct target *target);

/* Processes come and go while a recording lasts: close those that have ended. */
void targets_drop_ended(struct sampler *sampler);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * sampler_state: what the parts of the sampler share.
 *
 * sampler_opening.c begins with the processes that are there or with a command, sampler_candidates.c has the
 * processes that may run LuaJIT, sampler_inspections.c finds out whether they do, sampler_targets.c follows
 * those that are sampled to their end, sampler_samples.c samples them, and sampler.c is the loop.
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
#include "src/linux/tracer/tracer.h"
#include "src/linux/threads/wait_text.h"
#include "src/sampler/pace.h"
#include "src/sampler/sampler.h"
#include "src/sampler/sampler_allocations.h"
#include "unwind/nginx/nginx_request.h"
#include "unwind/nginx/route.h"

enum {
	HOUSEKEEPING_NS = NS_PER_SECOND,     /* how often ljspy looks at mappings */
	WORTH_TELLING_ONE_IN = 8,            /* part of a period; less is not reported as lost */
	INSPECT_AGAIN_NS = 20 * 1000 * 1000, /* first interval, for a VM that has not started yet */
};

/*
 * Time of a thread that no sample stands for yet. Negative if samples stand for
 * more than there was, as the kernel reports CPU time late.
 */
struct time_account {
	int64_t pending_ns;
	uint32_t sample_count;
};

/* Where a thread was found asleep; it stays there until it runs again. */
struct sleep {
	bool known;
	uint64_t runs; /* how often the kernel had given it a CPU */
	enum thread_state thread_state;
	bool awaits_events; /* see struct sample */
	/* It waits for this lock, maybe only for its turn to wait for events; 0: it does not. */
	uint64_t lock;
	bool lock_is_shared; /* with other processes, maybe */
	enum vm_state vm_state;
	struct sample_gc gc;
	const char *phase;
	struct sample_request request; /* its texts are those of texts */
	struct sleep_texts {
		char route[ROUTE_BYTES], method[NGINX_METHOD_BYTES], host[NGINX_HOST_BYTES];
	} texts;
	const struct function *wait; /* see struct sample */
	struct frame *frames;        /* owned */
	size_t frame_count, frames_size;
};

/* A lock that threads wait for. */
struct lock_seen {
	uint64_t address;
	uint64_t look;      /* target.looks when it was last asked about */
	bool awaits_events; /* who held it waited for events then */
	bool is_for_turn;   /* the same, or at the look before */
	UT_hash_handle hh;
};

/* What ljspy keeps of a thread between its samples. */
struct thread_record {
	pid_t tid;
	uint64_t serial; /* of its struct thread */
	char name[THREAD_NAME_MAX];
	struct capture_hints hints;
	uint64_t stack_address;             /* on its native stack; 0 if unknown or not needed */
	bool stack_address_is_end;          /* see struct stack_place */
	bool has_run;                       /* since its last sample */
	enum presence presence;             /* at the last look */
	uint64_t look_waited_ns, look_runs; /* at that look */
	bool has_rested;                    /* it had had no CPU since the look before */
	uint64_t awaited_look;              /* the look that its late stop is of: target.looks */
	uint64_t last_sample_ns;            /* when ljspy took it */
	unsigned int visits_left;           /* until it counts as one without system calls: makes_calls() */

	/*
	 * All of its time since ljspy knows it: on a CPU, waiting for one where it ran, the
	 * same where it slept, and asleep. Only the wall clock takes samples of the last three.
	 */
	struct time_account on_cpu, waiting, woken, asleep;
	int64_t waits_left_ns;            /* of `waiting`, from before its last sleep */
	uint64_t measured_ns;             /* the accounts reach to here; 0: no measurement yet */
	uint64_t cpu_ns, waited_ns, runs; /* the thread's totals at measured_ns */

	uint64_t ran_at_ns; /* when it was last seen to have run, or was first known */
	uint64_t lively_ns; /* how long from then on each look asks about it */

	uint64_t loop_ns, sleeps; /* as in samples; only where wanted */
	uint64_t stops;           /* how often ljspy stopped it for a sample */

	struct registers held; /* of the last hold; all zero if there was none */
	struct sleep sleep;
	struct wait_socket last_socket;
	bool is_told; /* its sleep has samples: see sampler_sleepers.c */
	bool is_read; /* at this look, it was found to sleep, and where */
	UT_hash_handle hh;
};

/* A thread and what ljspy keeps of it. */
struct known_thread {
	struct thread *thread;
	struct thread_record *record;
};

/*
 * A process. The sampler attaches at once to one that the user asked for. One that
 * it found is a candidate until it runs LuaJIT: the sampler only inspects it now and then.
 */
struct target {
	pid_t pid;
	bool found;       /* by following others */
	bool is_new;      /* found, and started since the recording began */
	bool is_searched; /* it came out at least once whether LuaJIT is in it */
	bool attached;
	bool sampled;       /* attached, and runs LuaJIT or the user asked for it */
	bool is_unreadable; /* it is never looked at */
	bool in_exec;       /* at the last look, see process_is_in_exec(); nothing else is read of it then */
	unsigned int unsearched_looks; /* in a row; what tells whether it runs LuaJIT could not be read */
	int statm;            /* its file of that name, once it is attached; negative if that is not open */
	int refusal;          /* why a candidate cannot be attached, a negative errno */
	dev_t program_device; /* of its executable, to notice another one */
	ino_t program_inode;
	char name[THREAD_NAME_MAX]; /* of the process */
	struct cpu_clock clock;
	bool clock_is_kept; /* a timer makes it quick to read, or was refused; not while the target rests */
	struct threads *threads;
	struct lua_process *process;     /* NULL after an execve until the next inspection */
	struct allocations *allocations; /* NULL unless these are sampled */
	struct thread_record *records;
	/*
	 * Its threads. First come the lively ones, which may have a CPU at any look. The others did not
	 * run for long, and are asked only when CPU time was used that the lively ones did not use.
	 */
	struct known_thread *known;
	size_t lively_count, known_count;
	uint64_t listed_changes;       /* threads_changes() when they were listed */
	uint64_t list_again_ns;        /* when to list them again, in any case */
	uint64_t all_again_ns;         /* when to ask about all of them, in any case */
	uint64_t unseen_ns;            /* CPU time of threads that came and went unseen, at least */
	uint64_t seen_changes;         /* threads_changes() at the last search for execs */
	uint64_t start_cpu_ns, cpu_ns; /* of the process clock */
	/*
	 * Of a candidate, on the same clock: when the recording began, or ljspy first met it, and when it was
	 * last seen to have no LuaJIT.
	 */
	uint64_t begin_cpu_ns, searched_cpu_ns;
	uint64_t found_ns;      /* when a candidate was found */
	struct pace pace;       /* of looks by the CPU clock; constant by the wall clock */
	uint64_t accounted_ns;  /* the weight of all its samples */
	uint64_t inspect_at_ns; /* when to search for a VM again */
	uint64_t inspect_interval_ns;
	uint64_t haste_ns; /* how soon to inspect when unknown code runs */
	bool is_hasty;     /* unknown code asked for the inspection that is due */
	/*
	 * While the target runs, looks are due at random moments, a period apart on average.
	 * Alarms come on the kernel's tick, which may beat with the target's own rhythm
	 * and comes too late for what runs right after a sleep. When the target has used no
	 * CPU for a while, the sampler waits for the alarm of its CPU clock and reads that
	 * clock about once a second: an idle target costs nothing. A target that never runs
	 * on a tick gets no alarm.
	 */
	bool active;
	uint64_t idle_since_ns;
	uint64_t check_rest_ns; /* when to see whether it still rests */
	uint64_t due_ns;
	int cpu;                      /* to await the next look on; -1: any */
	bool is_bound;                /* the thread that was on it may run on no other */
	bool is_late;                 /* this look is late: see target_is_late() */
	uint64_t looks;               /* how many there were */
	struct lock_seen *locks_seen; /* by the wall clock, at the last look */
	bool wants_look;              /* it waits for a CPU, and its last CPU time has no sample */
	uint64_t active_cpu_ns;       /* of the process clock, at the last look */
	uint64_t read_last_ns;        /* when ljspy read its coroutines or requests; 0: not yet */
	uint64_t read_next_ns;        /* the earliest time to read them again */
	uint64_t usual_hold_ns;       /* of readings of requests that held it; 0: none has */
	uint64_t requests_unseen_ns;  /* of looks that found its requests only later; in no sample yet */
	int index;                    /* its place among the targets */
	bool ended;
	bool is_stopped; /* in the end */
};

struct sampler {
	const struct sampler_options *options;
	struct sampler_result *result;
	struct tracer *tracer;
	struct known_files *files; /* the files that the targets have mapped */
	struct patience patience;
	struct target **targets; /* NULL in free places */
	size_t target_count;
	struct follow *follow; /* NULL if there is nothing to follow */
	struct launch launch;
	uint64_t random;             /* state of the generator, never 0 */
	uint64_t span_ns, series_ns; /* struct allocating_thread */
	bool closing;                /* the last looks are under way */
	bool last_chance;            /* ... and no look follows this one */
	uint64_t start_ns, end_ns;   /* 0 if sampling never began */
	uint64_t start_ticks;        /* start_ns on the clock of wanted_start() */
	uint64_t until_ns;           /* when the recording is to end; UINT64_MAX: not by itself */
	bool searches;               /* a search is under way, which need not go on at the end */
	uint64_t period_ns;
	uint64_t wall_ns;         /* of all samples */
	size_t wait_name_bytes;   /* of names of what threads waited for */
	uint64_t progress_ns;     /* when the next progress is due */
	uint64_t search_again_ns; /* when a candidate may be searched again */
	uint64_t poll_again_ns;   /* when to ask tracees for reports without a signal */
};

/*---- sampler.c ----*/

/* Does nobody want ljspy to let its targets go? See struct sampler_watch. */
bool sampler_may_go_on(const struct sampler *sampler);

/* Is it time to end the recording, or has a signal come that is to end it? The loop takes the signal. */
bool sampler_is_to_end(const struct sampler *sampler);

/*---- sampler_opening.c ----*/

/* The recording failed, by that process or, with 0, as a whole; error is a negative errno. Returns false. */
bool sampler_fail(struct sampler *sampler, pid_t pid, int error);

/*
 * Attach to the processes that the options name, or start the command. Where nothing can be sampled, the
 * result tells why, and this is false.
 */
bool sampler_open_targets(struct sampler *sampler);

/* The recording begins now. */
void sampler_begin(struct sampler *sampler);

/*
 * Processes that were there already ran on while ljspy got to know them: begin their accounts now. Those of a
 * command that ljspy started begin with its start.
 */
void sampler_open_accounts(struct sampler *sampler);

/*---- sampler_threads.c ----*/

/* The record of a thread, or NULL. */
struct thread_record *target_find_record(const struct target *target, const struct thread *thread);
/* The same, created if there is none; NULL when memory is short. */
struct thread_record *target_record(struct target *target, const struct thread *thread, uint64_t now);
void target_forget_records(struct target *target);

/* The thread that the record is of; NULL if it has ended, while another one may have its id. */
struct thread *target_thread_of(const struct target *target, const struct thread_record *record);

/* Bring the thread's accounts up to now. False if the thread has ended. */
bool target_measure(const struct sampler *sampler, struct target *target, struct thread *thread,
		    struct thread_record *record);

/* Discard the thread's time so far. */
void target_open_record(struct thread_record *record, const struct thread *thread, uint64_t now);

/* The record's name becomes the thread's, at most a second old. */
void target_name_thread(struct target *target, struct thread *thread, struct thread_record *record);

/* Does it cost little to look at each of its threads? */
bool target_has_few_threads(const struct target *target);

/* The thread was seen to run, or to have run. */
void target_note_run(struct thread_record *record, uint64_t now);

/*
 * Before each look, after threads_refresh(): bring the list of known threads up to date. What is left of the
 * times of those that have ended is delivered, and their records are freed.
 */
void target_list_threads(struct sampler *sampler, struct target *target);

/* The lively threads were just measured. Must those that are not lively be asked, too? */
bool target_others_may_have_run(const struct sampler *sampler, const struct target *target);

/* All threads were just measured. */
void target_note_all_seen(struct target *target);

/*
 * Has none of its threads had a CPU since the last look, which found them all without one? Then all of the
 * process is as that look left it: its program, its threads, and its CPU time. False, too, where something
 * else than a sample is due, where samples are not only of what runs, and where it is not likely.
 */
bool target_is_still(const struct sampler *sampler, const struct target *target, uint64_t now);

/*---- sampler_samples.c ----*/

/* Take the pending time that a sample is to stand for, or all of it, out of the account; in ns. */
uint64_t sampler_take_weight(const struct sampler *sampler, struct time_account *account);
uint64_t sampler_take_all(struct time_account *account);

/* While the thread holds still: note which turn of its event loop it is in, for its next sample. */
void target_note_turn(const struct sampler *sampler, struct target *target, struct thread *thread,
		      struct thread_record *record);

/* Count the sample and hand it on. */
void target_deliver(struct sampler *sampler, struct target *target, const struct sample *sample);

/* Deliver the samples of allocations whose shares are known, or all of them. */
void target_deliver_allocations(struct sampler *sampler, struct target *target, bool all);

/* Deliver CPU time that has no stack. */
void target_deliver_lost(struct sampler *sampler, struct target *target, pid_t tid, uint64_t cpu_ns,
			 enum lost_reason reason);

/* At the last look, was a thread on a CPU, or was none looked at? */
bool target_is_up(const struct target *target);

/* Is the look so late that what runs now is not what ran when it was due? */
bool target_is_late(const struct sampler *sampler, uint64_t due_ns, uint64_t now);

/* Take a sample of each thread that has run since its last one and is running now. */
void target_sample(struct sampler *sampler, struct target *target);

/* Take the samples of threads that stopped late. */
void target_take_late(struct sampler *sampler, struct target *target);

/*---- sampler_coroutines.c ----*/

/*
 * Its coroutines or requests were read at now_ns: returns for how long those samples stand, the time since
 * the last reading, or a period.
 */
uint64_t target_note_reading(const struct sampler *sampler, struct target *target, uint64_t now_ns);

/* Take samples of the coroutines that have yielded; nothing before read_next_ns. */
void target_sample_coroutines(struct sampler *sampler, struct target *target);

/*---- sampler_requests.c ----*/

/*
 * Take samples of the requests of nginx that are in flight; nothing before read_next_ns, which is a missed
 * tick.
 */
void target_sample_requests(struct sampler *sampler, struct target *target);

/*---- sampler_locks.c: for the wall clock ----*/

/*
 * What sleeps for a lock, without Lua on its stack, waits for work if the lock's holder does: it is its turn
 * next. The holder may change while the thread sleeps on.
 */
void target_judge_lock(struct target *target, struct sleep *sleep);

/* Forget the locks that nobody slept for at this look. */
void target_forget_old_locks(struct target *target);

void target_forget_locks(struct target *target);

/*---- sampler_sleepers.c: for the wall clock ----*/

/* Find out where the thread sleeps; false if it runs. */
bool target_read_sleeper(struct sampler *sampler, struct target *target, struct thread *thread,
			 struct thread_record *record);

/* Take a sample of it then. What it does may depend on others that sleep, which are to be read before. */
void target_sample_sleeper(struct sampler *sampler, struct target *target, struct thread *thread,
			   struct thread_record *record);

/*
 * Deliver the time that the thread waited for a CPU where it was last seen asleep, once something had woken
 * it.
 */
void target_deliver_woken(struct sampler *sampler, struct target *target, struct thread_record *record);

/* Deliver the time that a running thread waited for its CPU; sample is the thread's. */
void target_deliver_waiting(struct sampler *sampler, struct target *target, struct thread_record *record,
			    const struct sample *sample);

/* Deliver what is left of a thread's times, or of all threads': there will be no more samples of it. */
void target_close_record(struct sampler *sampler, struct target *target, struct thread_record *record);
void target_close_records(struct sampler *sampler, struct target *target);

/*---- sampler_candidates.c ----*/

/*
 * Get to know a process, then sample it from now on: its threads are not seized, and no signal for them has
 * to wait for ljspy, while that takes its time. 0 or a negative errno.
 */
int target_open(struct sampler *sampler, struct target *target, uint64_t now);

/* Is the process there, and is nothing sampled of it yet? False for NULL. */
bool target_is_candidate(const struct target *target);

/* What the candidate has used until now is no part of the recording. */
void target_begin_candidate(struct target *target);

/* Attach to the candidate if LuaJIT is in it now; else come back later. */
void target_consider(struct sampler *sampler, struct target *target, uint64_t now);

/* A candidate that could not be read before: has it ended? Another process may get its id. */
void target_check_unreadable(const struct sampler *sampler, struct target *target, uint64_t now);

/* Note a process that follow_search() found as a candidate that is due; context is the sampler. */
void targets_take_found(void *context, pid_t pid);

/* Note those that the user has named, but that are not attached; of roots of trees, those that refuse. */
void targets_note_refused(struct sampler *sampler);

/*
 * A target that was never sampled; the front counts those that are unreadable. After a break, the next run
 * tells of those that are there yet; where the only one has ended, that is why the run failed.
 */
void target_note_unsampled(const struct sampler *sampler, const struct target *target);
/* The same of processes of which it is not known whether they are wanted. */
void targets_note_unread(const struct sampler *sampler);

void sampler_note_left_out(struct sampler_result *result, pid_t pid, int error);

/*---- sampler_inspections.c ----*/

/* Search the process as it is now for LuaJIT; false if it has ended. */
bool target_inspect(struct sampler *sampler, struct target *target, uint64_t now);

/* Code runs that may belong to a library just loaded: inspect the process soon. */
void target_hasten_inspection(struct target *target, uint64_t now);

/* LuaJIT may not have started, or ljspy may not inspect yet: try again, less and less often. */
void target_inspect_later(struct target *target, uint64_t now);

/* Note the first VM with an unknown layout, once no more will be found out about it. */
void target_note_unknown_layout(struct sampler *sampler, const struct target *target);

/* Note where its Lua files are: see lua_process_add_roots(). */
void target_note_roots(const struct sampler *sampler, const struct target *target);

/*---- sampler_targets.c ----*/

/* A new target in a free place; only its pid is known. NULL when memory is short. */
struct target *target_add(struct sampler *sampler, pid_t pid);

/* Sample the target from now on. 0 or a negative errno. */
int target_attach(struct sampler *sampler, struct target *target);

/* Read its CPU time and which threads it has; it may turn out to have ended. */
void target_refresh_threads(struct sampler *sampler, struct target *target, uint64_t now);

/* Look at the target and sample what runs. */
void target_take_look(struct sampler *sampler, struct target *target, uint64_t now);

/* The target has begun to run: look now, and then once in a period, on average. */
void target_wake(struct sampler *sampler, struct target *target);

/* Does a target still rest? Costs next to nothing. */
void target_check_rest(struct sampler *sampler, struct target *target, uint64_t now);

/* A look was due. */
void target_tick(struct sampler *sampler, struct target *target, uint64_t now);

void target_note_end(struct sampler *sampler, struct target *target);

/* Before functions are dropped: keep those of sleeping threads, and forget all others. */
void target_keep_functions(struct target *target);

/* Discard CPU time used before sampling began. */
void target_open_accounts(struct sampler *sampler, struct target *target, uint64_t now);

void sampler_count_missed(struct sampler *sampler, uint64_t count);

/*
 * Looks were due and did not happen: count them. Does nothing by the CPU clock, where
 * the pace counts a missed tick for CPU time without samples.
 */
void sampler_note_missed(struct sampler *sampler, uint64_t count);

/* A random number less than below. */
uint64_t sampler_random(struct sampler *sampler, uint64_t below);

/* The last period of each thread is not over: look once more at those that run. */
void target_take_last_look(struct sampler *sampler, struct target *target);

/* Deliver CPU time that no sample stands for as lost. */
void target_close_accounts(struct sampler *sampler, struct target *target);

/* Free the target and its place. */
void target_close(struct sampler *sampler, struct target *target);

/* Close the targets that have ended. */
void targets_drop_ended(struct sampler *sampler);

/* Does the process run another program than at the last call? */
bool target_program_has_changed(const struct sampler *sampler, struct target *target);

/* The process runs another program now: forget all that is known of it. */
void target_start_over(struct sampler *sampler, struct target *target, uint64_t now);

#endif

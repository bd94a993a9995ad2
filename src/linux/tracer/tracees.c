/* SPDX-License-Identifier: MIT */
#include "src/linux/tracer/tracer_parts.h"

#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "memory/hash.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/proc/proc_file.h"
#include "src/linux/tracer/thread_registers.h"
#include "src/linux/tracer/tracer_files.h"

struct seized *tracer_find_seized(const struct tracer *tracer, pid_t tid)
{
	struct seized *seized;

	HASH_FIND_INT(tracer->seized, &tid, seized);
	return seized;
}

struct tracee *tracer_find(const struct tracer *tracer, pid_t tid)
{
	struct seized *seized = tracer_find_seized(tracer, tid);

	return seized ? &seized->tracee : NULL;
}

void tracer_expect(struct tracer *tracer, struct tracee *tracee, bool expected)
{
	struct seized *seized = seized_of(tracee);

	if (seized->expected == expected)
		return;
	seized->expected = expected;
	tracer->expected += expected ? 1 : -1;
	tracer_update_urgency(tracer);
}

void tracer_note_change(struct tracer *tracer)
{
	tracer->changed = true;
	tracer->changes++;
}

void tracer_mark_gone(struct tracer *tracer, struct tracee *tracee)
{
	tracee->state = TRACEE_GONE;
	tracee->wanted = false;
	tracer_expect(tracer, tracee, false);
	tracer_note_change(tracer);
}

const struct user_regs_struct *seized_regs(struct seized *seized)
{
	struct iovec io = { &seized->regs, sizeof(seized->regs) };

	if (seized->has_regs)
		return &seized->regs;
	/* EIO: the kernel does not know the request. */
	if (ptrace(PTRACE_GETREGSET, seized->tracee.tid, NT_PRSTATUS, &io)) {
		if (errno != EIO || !thread_registers_read_old(seized->tracee.tid, &seized->regs))
			return NULL;
	} else if (io.iov_len != sizeof(seized->regs)) { /* a 32-bit program has fewer */
		errno = ENOTSUP;
		return NULL;
	}
	seized->has_regs = true;
	return &seized->regs;
}

int seized_open_stat(const struct seized *seized)
{
	return proc_file_open_thread(seized->tracee.pid, seized->tracee.tid, "stat");
}

bool seized_read_stat(const struct seized *seized, struct stat_line *ret_line)
{
	enum { FIELDS_BEHIND_STATE = 36 }; /* up to "processor", proc_pid_stat(5) */
	int fd = seized->stat_fd >= 0 ? seized->stat_fd : seized_open_stat(seized);
	char text[1024], *at;
	ssize_t length = pread(fd, text, sizeof(text) - 1, 0);

	if (fd >= 0 && fd != seized->stat_fd)
		close(fd);
	if (length <= 0)
		return false;
	text[length] = '\0';
	at = proc_file_stat_fields(text);
	if (!at)
		return false;
	ret_line->state = *at;
	for (int i = 0; at && i < FIELDS_BEHIND_STATE; i++)
		at = strchr(at + 1, ' ');
	ret_line->cpu = at ? (int)strtol(at, NULL, 10) : -1;
	ret_line->on_other_cpu = at && ret_line->cpu != sched_getcpu();
	return true;
}

struct seized *tracer_add_seized(struct tracer *tracer, pid_t pid, pid_t tid)
{
	struct seized *seized = calloc(1, sizeof(*seized));

	if (!seized)
		return NULL;
	seized->tracee = (struct tracee){
		.pid = pid, .tid = tid, .state = TRACEE_RUNNING, .quiet_ns = clock_now_ns(CLOCK_MONOTONIC)
	};
	HASH_ADD_INT(tracer->seized, tracee.tid, seized);
	if (!hash_added(&seized->hh)) {
		free(seized);
		return NULL;
	}
	seized->reserved = tracer_reserve_files(tracer, 1);
	seized->stat_fd = -1;
	return seized;
}

void tracer_free_seized(struct tracer *tracer, struct seized *seized)
{
	tracer_expect(tracer, &seized->tracee, false);
	if (hash_added(&seized->hh))
		HASH_DEL(tracer->seized, seized);
	if (seized->stat_fd >= 0)
		close(seized->stat_fd);
	if (seized->reserved)
		tracer_release_files(tracer, 1, seized->stat_fd >= 0);
	free(seized);
}

void tracer_continue(struct tracer *tracer, struct tracee *tracee, int signal)
{
	seized_of(tracee)->has_regs = seized_of(tracee)->is_read = false;
	ptrace(PTRACE_CONT, tracee->tid, NULL, (void *)(intptr_t)signal);
	tracee->resumed_ns = clock_now_ns(CLOCK_MONOTONIC);
	tracee->state = TRACEE_RUNNING;
	tracer_expect(tracer, tracee, tracee->wanted || tracee->hold_late);
}

void tracer_leave_job_stopped(struct tracer *tracer, struct tracee *tracee)
{
	struct seized *seized = seized_of(tracee);

	seized->job_stopped = true;
	seized->has_regs = seized->is_read = false;
	if (!seized->attached)
		ptrace(PTRACE_LISTEN, tracee->tid, NULL, NULL);
	tracee->resumed_ns = clock_now_ns(CLOCK_MONOTONIC);
	tracee->state = TRACEE_JOB_STOPPED;
	tracer_expect(tracer, tracee, false);
}

int tracee_ask_to_stop(struct tracee *tracee)
{
	struct seized *seized = seized_of(tracee);

	if (!seized->attached) {
		seized->asked_ns = clock_now_ns(CLOCK_MONOTONIC);
		return (int)ptrace(PTRACE_INTERRUPT, tracee->tid, NULL, NULL);
	}
	if (seized->asked)
		return 0;
	seized->asked = true;
	return (int)syscall(SYS_tgkill, tracee->pid, tracee->tid, SIGSTOP);
}

bool tracer_has_seized(const struct tracee *tracee)
{
	return ((const struct seized *)tracee)->is_seized;
}

void tracer_note_end(struct tracer *tracer, struct tracee *tracee)
{
	tracer_mark_gone(tracer, tracee);
}

void tracer_forget(struct tracer *tracer, struct tracee *tracee)
{
	tracer_free_seized(tracer, seized_of(tracee));
}

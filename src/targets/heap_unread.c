/* SPDX-License-Identifier: MIT */
#include "src/targets/heap_unread.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include "src/program/message.h"
#include "src/targets/choose.h"

struct heap_unread heap_unread_look(pid_t pid, int error)
{
	struct heap_unread why = { .reason = HEAP_UNREAD_LOOK, .error = error };

	if (error != -ENOEXEC)
		permission_diagnose(pid, -error, &why.verdict);
	return why;
}

struct heap_unread heap_unread_why(const struct process_heaps *heaps, pid_t pid, int error)
{
	struct heap_unread why = {
		.too_large = process_heaps_missing_by(heaps, -EFBIG),
		.busy = process_heaps_missing_by(heaps, -EBUSY),
		.closed = process_heaps_missing_by(heaps, -EIO),
	};

	if (why.too_large || why.busy || why.closed)
		why.reason = HEAP_UNREAD_STATES;
	else if (error)
		why = heap_unread_look(pid, error);
	else if (heaps->count == 0)
		why.reason = HEAP_UNREAD_NO_STATE;
	return why;
}

static bool verdict_may_pass(const struct permission_verdict *verdict)
{
	return verdict->reason == PERMISSION_TOO_LITTLE_MEMORY ||
	       verdict->reason == PERMISSION_OTHER_TRACER || verdict->reason == PERMISSION_IN_EXEC ||
	       verdict->reason == PERMISSION_UNREADABLE || verdict->reason == PERMISSION_TOO_FEW_FILES ||
	       verdict->reason == PERMISSION_TOO_FEW_PROCESSES;
}

bool heap_unread_may_pass(const struct heap_unread *why)
{
	if (why->reason == HEAP_UNREAD_LOOK)
		return why->error != -ENOEXEC && verdict_may_pass(&why->verdict);
	return why->reason == HEAP_UNREAD_STATES || why->reason == HEAP_UNREAD_OWN;
}

static void tell_too_large(const struct vm_heap *missing, pid_t pid)
{
	const uint64_t ms = missing->too_long_ns / 1000000;

	message_error("Process %d does not sleep, and copying its heap would hold it for some %" PRIu64
		      " ms.",
		      pid, ms);
	message_note("Allow that with --max-pause %" PRIu64 "ms, or read a core file with --core.",
		     ms + ms / 2);
}

static void tell_busy(pid_t pid, bool goes_on)
{
	message_error(
		"The heap of process %d could not be copied in one moment: again and again, a thread of it woke"
		" meanwhile, or ran where it may not be stopped.",
		pid);
	if (goes_on)
		message_note(
			"The series goes on with the next look. A core file, read with --core, has it in any case.");
	else
		message_note(
			"Try again at another time, or with shorter holds, as by --max-pause 5ms, which counts what"
			" changed meanwhile as uncertain, or read a core file with --core.");
}

static void tell_states(const struct heap_unread *why, const struct process_heaps *heaps, pid_t pid,
			bool goes_on)
{
	char of[32];

	if (process_heaps_missing(heaps) < heaps->count) {
		snprintf(of, sizeof(of), "process %d", (int)pid);
		heap_unread_tell_count(heaps, of);
	}
	if (why->too_large)
		tell_too_large(process_heaps_missing_by(heaps, -EFBIG), pid);
	if (why->busy)
		tell_busy(pid, goes_on);
	if (why->closed)
		message_error("VM %u of process %d could not be read: it may have been closed meanwhile.",
			      process_heaps_missing_by(heaps, -EIO)->account.vm, pid);
}

static void tell_no_state(pid_t pid)
{
	message_error(
		"No Lua state is known in process %d: it has none, or not one that ljspy could confirm.",
		pid);
	message_note("`ljspy info -p %d` tells what was found.", pid);
}

static void tell_look(const struct heap_unread *why, pid_t pid)
{
	if (why->error == -ENOEXEC)
		choose_explain_no_luajit(pid);
	else
		choose_tell(&why->verdict);
}

static bool is_same(const struct heap_unread *a, const struct heap_unread *b)
{
	return a->reason == b->reason && a->error == b->error && a->too_large == b->too_large &&
	       a->busy == b->busy && a->closed == b->closed && a->verdict.reason == b->verdict.reason;
}

void heap_unread_tell(struct heap_unread *told, const struct heap_unread *why,
		      const struct process_heaps *heaps, pid_t pid, bool goes_on)
{
	if (is_same(told, why))
		return;
	*told = *why;
	switch (why->reason) {
	case HEAP_UNREAD_NOT: break;
	case HEAP_UNREAD_STATES: tell_states(why, heaps, pid, goes_on); break;
	case HEAP_UNREAD_NO_STATE: tell_no_state(pid); break;
	case HEAP_UNREAD_LOOK: tell_look(why, pid); break;
	case HEAP_UNREAD_OWN: choose_explain_error(-why->error, "reading a heap"); break;
	}
	if (goes_on && why->reason != HEAP_UNREAD_STATES)
		message_note("The series goes on with the next look.");
}

void heap_unread_tell_count(const struct process_heaps *heaps, const char *of)
{
	const size_t missing = process_heaps_missing(heaps);

	message_error("Of %zu Lua states of %s, %zu %s missing.", heaps->count, of, missing,
		      missing == 1 ? "is" : "are");
}

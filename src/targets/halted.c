/* SPDX-License-Identifier: MIT */
#include "src/targets/halted.h"

#include <stdio.h>

#include "src/linux/proc/process.h"
#include "src/program/message.h"

enum { HALTED_WORDS_SIZE = 128 };

static pid_t tracer_of(pid_t pid, char ret_name[static PROCESS_NAME_MAX])
{
	struct process process, tracer;
	pid_t tracer_pid;

	if (process_read(pid, &process))
		return 0;
	tracer_pid = process.tracer_pid;
	process_clear(&process);
	if (tracer_pid == 0 || process_read(tracer_pid, &tracer))
		return 0;
	snprintf(ret_name, PROCESS_NAME_MAX, "%s", tracer.name);
	process_clear(&tracer);
	return tracer_pid;
}

/* "process 12 is stopped, as by SIGSTOP or Ctrl-Z" in ret_words, which it returns. */
static const char *words(const struct sampler_note *halted, char ret_words[static HALTED_WORDS_SIZE])
{
	const int pid = halted->pid;
	char name[PROCESS_NAME_MAX];
	pid_t tracer = halted->why == HALT_TRACER ? tracer_of(halted->pid, name) : 0;

	if (tracer)
		snprintf(ret_words, HALTED_WORDS_SIZE,
			 "process %d is stopped by process %d (%s), which traces it", pid, (int)tracer, name);
	else if (halted->why == HALT_TRACER)
		snprintf(ret_words, HALTED_WORDS_SIZE,
			 "process %d is stopped by another one, which traces it", pid);
	else if (halted->why == HALT_FREEZER)
		snprintf(ret_words, HALTED_WORDS_SIZE,
			 "process %d is in a frozen cgroup, as by `docker pause`", pid);
	else
		snprintf(ret_words, HALTED_WORDS_SIZE, "process %d is stopped, as by SIGSTOP or Ctrl-Z", pid);
	return ret_words;
}

static void tell_remedy(const struct sampler_note *halted)
{
	switch ((enum process_halt)halted->why) {
	case HALT_NONE: break;
	case HALT_SIGNAL: message_note("Let it go on: kill -CONT %d", (int)halted->pid); break;
	case HALT_TRACER: message_note("Let it go on there, in gdb by `continue`."); break;
	case HALT_FREEZER: message_note("Let it go on, as by `docker unpause`."); break;
	}
}

void halted_tell(const struct sampler_result *result, void message(const char *format, ...), const char *what)
{
	const struct sampler_noted *noted = &result->halted;
	const size_t count = noted->count + noted->more;

	for (size_t i = 0; i < noted->count && i < NOTES_TOLD_MAX; i++) {
		char text[HALTED_WORDS_SIZE];

		message("%s: %s.", what, words(&noted->at[i], text));
		tell_remedy(&noted->at[i]);
	}
	if (count > NOTES_TOLD_MAX)
		message("%s: the same goes for %zu more.", what, count - NOTES_TOLD_MAX);
}

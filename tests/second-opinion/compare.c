/* SPDX-License-Identifier: MIT */
/*
 * compare PID TID COUNT: unwind the native stack of a thread COUNT times, by ljspy's unwinder and by
 * libunwind-ptrace's, while it is stopped.
 *
 * Prints one line for each kind of outcome that was seen: how often, its name, and where the two part:
 * FILE+OFFSET of the last frame that both have, and what each says comes next.
 *
 *	same		all frames
 *	shorter		ljspy's ends where libunwind's goes on
 *	longer		the other way round
 *	different	they name different callers
 *
 * Exit status 1 without a look, 2 when the arguments are wrong.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libunwind-ptrace.h>

#include "src/linux/proc/live_memory.h"
#include "src/linux/proc/maps.h"
#include "src/linux/tracer/tracer.h"
#include "unwind/native/native.h"

enum {
	FRAMES_MAX = 512,
	OUTCOMES_MAX = 64,
	PLACE_SIZE = 192,
	STOP_TIMEOUT_NS = 2000 * 1000 * 1000,
	PAUSE_US = 3000,
};

struct walked {
	uint64_t pcs[FRAMES_MAX];
	size_t count;
};

struct outcome {
	char text[4 * PLACE_SIZE];
	unsigned long count;
};

struct session {
	struct maps *maps;
	struct memory *memory;
	struct image *image;
	struct native_unwinder *native;
	unw_addr_space_t space;
	struct outcome outcomes[OUTCOMES_MAX];
	size_t outcome_count;
};

/*---- The process's code ----*/

static bool take_modules(struct session *session)
{
	size_t count = maps_file_count(session->maps);
	struct module *modules = calloc(count + 1, sizeof(*modules));

	if (!modules)
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct mapped_file *file = maps_file_at(session->maps, i);
		const struct mapping *first = maps_find(session->maps, file->begin);

		modules[i] = (struct module){
			.begin = file->begin,
			.end = file->end,
			.base = file->base,
			.device = file->device,
			.inode = first ? first->inode : 0,
			.path = strdup(first ? first->path : ""),
			.file = strdup(first ? first->path : ""),
		};
	}
	image_set_modules(session->image, modules, count);
	return true;
}

static void describe(const struct session *session, uint64_t pc, char text[static PLACE_SIZE])
{
	const struct module *module = image_find(session->image, pc);
	const char *name = module ? strrchr(module->path, '/') : NULL;

	if (module)
		snprintf(text, PLACE_SIZE, "%.100s+%#" PRIx64, name ? name + 1 : module->path,
			 pc - module->base);
	else
		snprintf(text, PLACE_SIZE, "nowhere");
}

/*---- Both walks ----*/

static void walk(struct session *session, const struct registers *leaf, struct walked *ret_walked)
{
	native_begin(session->native, session->memory, leaf);
	ret_walked->count = 0;
	do {
		ret_walked->pcs[ret_walked->count++] = native_current(session->native)->registers.pc;
	} while (ret_walked->count < FRAMES_MAX && native_step(session->native) == NATIVE_FRAME);
}

static bool walk_by_libunwind(struct session *session, pid_t tid, struct walked *ret_walked)
{
	void *context = _UPT_create(tid);
	unw_cursor_t cursor;
	unw_word_t pc;

	ret_walked->count = 0;
	if (!context)
		return false;
	if (unw_init_remote(&cursor, session->space, context) == 0) {
		do {
			if (unw_get_reg(&cursor, UNW_REG_IP, &pc) || pc == 0)
				break;
			ret_walked->pcs[ret_walked->count++] = pc;
		} while (ret_walked->count < FRAMES_MAX && unw_step(&cursor) > 0);
	}
	_UPT_destroy(context);
	return ret_walked->count > 0;
}

/*---- Outcomes ----*/

static void count_outcome(struct session *session, const char *text)
{
	size_t i = 0;

	while (i < session->outcome_count && strcmp(session->outcomes[i].text, text) != 0)
		i++;
	if (i == OUTCOMES_MAX)
		return;
	if (i == session->outcome_count) {
		snprintf(session->outcomes[i].text, sizeof(session->outcomes[i].text), "%s", text);
		session->outcome_count++;
	}
	session->outcomes[i].count++;
}

static void compare(struct session *session, const struct walked *ours, const struct walked *theirs)
{
	size_t shared = 0;
	char last[PLACE_SIZE], our_next[PLACE_SIZE] = "the end", their_next[PLACE_SIZE] = "the end";
	char text[4 * PLACE_SIZE];

	while (shared < ours->count && shared < theirs->count && ours->pcs[shared] == theirs->pcs[shared])
		shared++;
	if (shared == ours->count && shared == theirs->count) {
		count_outcome(session, "same");
		return;
	}
	describe(session, shared ? ours->pcs[shared - 1] : 0, last);
	if (shared < ours->count)
		describe(session, ours->pcs[shared], our_next);
	if (shared < theirs->count)
		describe(session, theirs->pcs[shared], their_next);
	snprintf(text, sizeof(text), "%s after %s: ljspy %s, libunwind %s",
		 shared == ours->count     ? "shorter"
		 : shared == theirs->count ? "longer"
					   : "different",
		 last, our_next, their_next);
	count_outcome(session, text);
}

static bool look(struct session *session, struct tracer *tracer, struct tracee *tracee, pid_t tid)
{
	struct walked ours, theirs;
	struct registers registers;
	bool changed, looked = false;

	if (tracer_stop(tracer, tracee, STOP_TIMEOUT_NS))
		return false;
	if (maps_refresh(session->maps, &changed) == 0 && (!changed || take_modules(session)) &&
	    tracer_registers(tracee, &registers) == 0) {
		if (changed)
			native_reset(session->native);
		walk(session, &registers, &ours);
		looked = walk_by_libunwind(session, tid, &theirs);
	}
	tracer_resume(tracer, tracee);
	if (looked)
		compare(session, &ours, &theirs);
	return looked;
}

int main(int argc, char *argv[])
{
	struct session session = { .outcome_count = 0 };
	struct live_memory *live;
	struct tracer *tracer = tracer_new();
	struct tracee *tracee;
	struct symbols *symbols;
	sigset_t signals;
	pid_t pid, tid;

	if (argc != 4 || !tracer)
		return 2;
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	pid = atoi(argv[1]);
	tid = atoi(argv[2]);
	live = live_memory_new(pid);
	session.maps = maps_new(pid);
	session.memory = live ? live_memory_memory(live) : NULL;
	session.image = live ? image_new(session.memory) : NULL;
	symbols = session.image ? symbols_new(session.image, session.memory, NULL) : NULL;
	session.native = symbols ? native_unwinder_new(session.image, symbols) : NULL;
	session.space = unw_create_addr_space(&_UPT_accessors, 0);
	if (!session.maps || !session.native || !session.space || tracer_seize(tracer, pid, tid, &tracee)) {
		fprintf(stderr, "cannot look at process %d\n", pid);
		return 2;
	}
	for (int i = 0; i < atoi(argv[3]) && look(&session, tracer, tracee, tid); i++)
		usleep(PAUSE_US);
	for (size_t i = 0; i < session.outcome_count; i++)
		printf("%lu %s\n", session.outcomes[i].count, session.outcomes[i].text);
	unw_destroy_addr_space(session.space);
	native_unwinder_free(session.native);
	symbols_free(symbols);
	image_free(session.image);
	maps_free(session.maps);
	live_memory_free(live);
	tracer_free(tracer);
	return session.outcome_count ? EXIT_SUCCESS : EXIT_FAILURE;
}

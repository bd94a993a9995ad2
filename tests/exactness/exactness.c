/* SPDX-License-Identifier: MIT */
#include "tests/exactness/exactness.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "luajit-layouts/bytecode.h"
#include "output/sample/lost.h"
#include "src/inspect/lua_process.h"
#include "tests/exactness/target.h"
#include "tests/exactness/truth.h"
#include "unwind/lua/luajit.h"

enum {
	NATIVE_WHOLE = 256,       /* instructions outside of the VM that are all judged */
	NATIVE_STRIDE = 61,       /* of those that follow, one in so many */
	REFRESH_INTERVAL = 20000, /* steps or samples */
	PAUSE_MIN_NS = 20000,
	PAUSE_SPREAD_NS = 180000,
	PLACES_MAX = 64,
	SHOWN_PLACES = 24,
	CODE_BYTES = 16,
	ROUNDS_STEPPED = 2,
	ROUNDS_STEPPED_LONG = 60, /* more than are stepped through */
	POSITION_MAX = 1000000,   /* a line of a program, rather less */
	HANDLER_STEPS_MAX = 1000, /* of a handler, and of the way back from it */
};

/* Where in the code something wrong or lost was seen. */
struct place {
	uint64_t pc;
	enum verdict verdict;
	unsigned long count;
};

struct session {
	struct target target;
	struct truth *truth;
	struct functions *functions;
	struct lua_process *process;
	struct capture_hints hints;
	struct global_state global; /* as it was at first */
	uint64_t position_slot;
	bool in_order;
	bool with_signals;
	unsigned long stepped, judged, verdicts[VERDICT_COUNT];
	unsigned long lost[LOST_COUNT];
	struct place places[PLACES_MAX];
	size_t place_count;
};

static const char *const verdict_names[VERDICT_COUNT] = {
	[VERDICT_RIGHT] = "right",
	[VERDICT_NO_LINE] = "no line",
	[VERDICT_LOST] = "lost",
	[VERDICT_WRONG] = "wrong",
};

/*---- The target ----*/

/* Of integers, in builds that have such numbers (lj_obj.h, LJ_TISNUM). */
static int32_t integer_tag(bool gc64)
{
	return gc64 ? ~13 : (int32_t)0xfffeffff;
}

/*
 * The number in the position's slot, whichever kind of number the build uses.
 * False if there is none.
 */
static bool read_position(struct session *session, int *ret_position)
{
	bool gc64 = session->global.vm->layout.gc64;
	uint64_t value;
	double number;

	if (!memory_u64(lua_process_memory(session->process), session->position_slot, &value))
		return false;
	if (tvalue_tag(gc64, value) == integer_tag(gc64)) {
		*ret_position = (int32_t)value;
		return true;
	}
	memcpy(&number, &value, sizeof(number));
	if (!(number >= 0 && number < POSITION_MAX))
		return false;
	*ret_position = (int)number;
	return true;
}

static int start(struct session *session, char *argv[], unsigned long rounds)
{
	static char driver[] = "truth.lua";
	char count[32], *lua[16] = { argv[2], driver, argv[3], argv[4], count };
	struct namer_options options = { .native = NATIVE_NONE };
	uint64_t table, array = 0;
	int error;

	snprintf(count, sizeof(count), "%lu", rounds);
	for (size_t i = 0; i < 8 && argv[6 + i]; i++)
		lua[5 + i] = argv[6 + i];
	error = target_start(&session->target, lua);
	if (error)
		return error;
	session->truth = truth_read(session->target.output, argv[3], &table);
	session->functions = functions_new();
	if (!session->truth || !session->functions)
		return -EPROTO;
	error = target_hold(&session->target);
	if (!error)
		error = lua_process_open(session->target.pid, session->functions, NULL, &options,
					 &session->process);
	if (!error)
		error = lua_process_refresh(session->process, true);
	if (error)
		return error;
	if (lua_process_global_count(session->process) != 1)
		return -ENOENT;
	session->global = *lua_process_global(session->process, 0);
	memory_read(lua_process_memory(session->process),
		    table + (uint64_t)session->global.vm->layout.GCtab_array, &array,
		    layout_ref_size(&session->global.vm->layout));
	session->position_slot = array + SLOT_SIZE;
	target_write_line(&session->target);
	return 0;
}

static void finish(struct session *session)
{
	lua_process_close(session->process);
	functions_free(session->functions);
	truth_free(session->truth);
}

/*---- Places ----*/

/* The handler that the pc is in or behind, by the dispatch table. */
static const char *nearest_handler(struct session *session, uint64_t pc, uint64_t *ret_offset)
{
	const struct layout *layout = &session->global.vm->layout;
	uint64_t nearest = session->global.vm->begin;
	const char *name = "VM";

	for (unsigned op = 0; op < 128 && bytecode_name(layout, (uint8_t)op); op++) {
		uint64_t handler;

		if (memory_u64(lua_process_memory(session->process),
			       session->global.g + (uint64_t)layout->GG_dispatch + op * 8, &handler) &&
		    handler <= pc && handler >= nearest) {
			nearest = handler;
			name = bytecode_name(layout, (uint8_t)op);
		}
	}
	*ret_offset = pc - nearest;
	return name;
}

static void show(struct session *session, uint64_t pc, int position, const struct stack_text *stack,
		 const char *verdict)
{
	const struct vm_code *vm = session->global.vm;
	uint64_t offset;
	uint8_t code[CODE_BYTES];

	if (pc >= vm->begin && pc < vm->end) {
		const char *name = nearest_handler(session, pc, &offset);

		fprintf(stderr, "%s at VM+%#" PRIx64 " %s+%#" PRIx64 ":", verdict, pc - vm->begin, name,
			offset);
	} else {
		fprintf(stderr, "%s at %#" PRIx64 " (VM at %#" PRIx64 "):", verdict, pc, vm->begin);
	}
	if (memory_read(lua_process_memory(session->process), pc, code, sizeof(code)) == MEMORY_OK)
		for (size_t i = 0; i < sizeof(code); i++)
			fprintf(stderr, " %02x", code[i]);
	fprintf(stderr, "\n    position %d after %lu: ", position, session->stepped);
	stack_text_print(stderr, stack);
	if (session->in_order)
		truth_print_expected(stderr, session->truth);
}

static bool is_new_place(struct session *session, uint64_t pc, enum verdict verdict)
{
	for (size_t i = 0; i < session->place_count; i++)
		if (session->places[i].pc == pc && session->places[i].verdict == verdict) {
			session->places[i].count++;
			return false;
		}
	if (session->place_count == PLACES_MAX)
		return false;
	session->places[session->place_count++] = (struct place){ pc, verdict, 1 };
	return session->place_count <= SHOWN_PLACES;
}

/*---- Judging ----*/

static void count_lost(struct session *session, const char *reason)
{
	for (enum lost_reason i = 0; i < LOST_COUNT; i++)
		if (strcmp(lost_reason_text(i), reason) == 0)
			session->lost[i]++;
}

/* Calls through the FFI lie behind the interpreter, where there is an FFI. */
static bool is_in_vm(const struct vm_code *vm, uint64_t pc)
{
	return pc >= vm->begin && (pc < vm->end || pc < vm->ffi_call_end);
}

/* at: the instruction of the program that is looked at. */
static int judge(struct session *session, const struct registers *registers, uint64_t at, int position)
{
	static struct stack_text stack;
	const struct frame *frames;
	enum vm_state state;
	enum verdict verdict;
	size_t count;
	int error;

	lua_process_capture(session->process, registers, &session->hints);
	error = lua_process_unwind(session->process, &frames, &count, &state);
	if (error)
		return error;
	lua_process_note_unwound(session->process, &session->hints);
	if (!stack_text_fill(&stack, frames, count))
		return -E2BIG;
	/* Machine code stores a position some instructions after it has begun its line, or never. */
	stack.compiled |= !is_in_vm(session->global.vm, registers->pc) &&
			  !lua_process_in_native(session->process);
	verdict = session->in_order ? truth_follow(session->truth, position, &stack)
				    : truth_judge(session->truth, position, &stack);
	if (verdict == VERDICT_RIGHT && stack.unknown_lines)
		verdict = VERDICT_NO_LINE;
	session->judged++;
	session->verdicts[verdict]++;
	if (verdict == VERDICT_LOST)
		count_lost(session, stack.lost);
	if (verdict != VERDICT_RIGHT && is_new_place(session, at, verdict))
		show(session, at, position, &stack,
		     verdict == VERDICT_LOST ? stack.lost : verdict_names[verdict]);
	return 0;
}

static void refresh_at_times(struct session *session)
{
	if (++session->stepped % REFRESH_INTERVAL == 0)
		lua_process_refresh(session->process, false);
}

/* Look from within a signal's handler, and have it return. */
static int look_from_handler(struct session *session, const struct registers *interrupted, int position)
{
	struct registers registers;
	int error = target_step_into_handler(&session->target, SIGUSR1);

	if (!error)
		error = target_registers(&session->target, &registers);
	if (!error)
		error = judge(session, &registers, interrupted->pc, position);
	for (int i = 0; !error; i++) {
		if (registers.pc == interrupted->pc && registers.sp == interrupted->sp)
			return 0;
		error = i < HANDLER_STEPS_MAX ? target_step(&session->target) : -ELOOP;
		if (!error)
			error = target_registers(&session->target, &registers);
	}
	return error;
}

/* Between the first and the last position of a round, or of all rounds. */
static int step(struct session *session, unsigned long count)
{
	struct registers registers;
	unsigned long native = 0;
	bool begun = false;
	int error = 0, position;

	while (!error && session->stepped < count) {
		error = target_step(&session->target);
		if (error || (error = target_registers(&session->target, &registers)))
			break;
		if (!read_position(session, &position))
			return -EFAULT;
		if (position == 1)
			begun = true;
		if (!begun)
			continue;
		if (session->in_order && truth_is_followed_to_its_end(session->truth))
			return 0;
		refresh_at_times(session);
		native = is_in_vm(session->global.vm, registers.pc) ? 0 : native + 1;
		if (native >= NATIVE_WHOLE && native % NATIVE_STRIDE)
			continue;
		error = session->with_signals ? look_from_handler(session, &registers, position)
					      : judge(session, &registers, registers.pc, position);
	}
	return error == -ESRCH ? 0 : error;
}

static int sample(struct session *session, unsigned long count)
{
	struct registers registers;
	unsigned int seed = 1;
	int error = 0, position = 0;

	while (!error && session->judged < count) {
		error = target_run(&session->target, PAUSE_MIN_NS + rand_r(&seed) % PAUSE_SPREAD_NS);
		if (error)
			break;
		if (lua_process_wants_rehearsal(&session->hints))
			lua_process_rehearse(session->process, &session->hints);
		error = target_stop(&session->target);
		if (error || (error = target_registers(&session->target, &registers)))
			break;
		if (!read_position(session, &position))
			return -EFAULT;
		refresh_at_times(session);
		if (position > 0)
			error = judge(session, &registers, registers.pc, position);
	}
	return error;
}

static void print_row(const struct session *session, char *argv[])
{
	double judged = (double)session->judged;

	printf("%-13s %-3s %8lu judged, %6lu wrong, %6lu without a line, %6lu lost (%.3f %%)", argv[3],
	       argv[4], session->judged, session->verdicts[VERDICT_WRONG], session->verdicts[VERDICT_NO_LINE],
	       session->verdicts[VERDICT_LOST], 100 * (double)session->verdicts[VERDICT_LOST] / judged);
	for (enum lost_reason i = 0; i < LOST_COUNT; i++)
		if (session->lost[i])
			printf("; %s %.3f %%", lost_reason_text(i), 100 * (double)session->lost[i] / judged);
	printf("\n");
}

int exactness_judge(char *argv[], struct exactness *ret_judged)
{
	static struct session session;
	bool is_sample, is_compiled;
	unsigned long count;
	int error;

	session = (struct session){ .in_order = false };
	is_sample = strcmp(argv[1], "sample") == 0;
	is_compiled = strcmp(argv[4], "on") == 0;
	count = strtoul(argv[5], NULL, 10);
	session.with_signals = strcmp(argv[1], "signal") == 0;
	session.in_order = !is_sample && !is_compiled && !session.with_signals;
	if (session.with_signals)
		setenv("TRUTH_HANDLES", "10", 1); /* SIGUSR1 */
	else
		unsetenv("TRUTH_HANDLES");
	error = start(&session, argv,
		      is_sample          ? 0
		      : session.in_order ? ROUNDS_STEPPED
					 : ROUNDS_STEPPED_LONG);
	if (!error)
		error = is_sample ? sample(&session, count) : step(&session, count);
	target_end(&session.target);
	if (!error && session.judged == 0)
		error = -ENODATA;
	if (error)
		fprintf(stderr, "exactness: %s\n", strerror(-error));
	else
		print_row(&session, argv);
	for (size_t i = 0; i < session.place_count; i++)
		fprintf(stderr, "%6lu %-7s at %#" PRIx64 "\n", session.places[i].count,
			verdict_names[session.places[i].verdict],
			session.places[i].pc - session.global.vm->begin);
	finish(&session);
	*ret_judged = (struct exactness){ session.judged, session.verdicts[VERDICT_WRONG],
					  session.verdicts[VERDICT_NO_LINE], session.verdicts[VERDICT_LOST] };
	return error;
}

/* SPDX-License-Identifier: MIT */
/*
 * What a process's parts decide: whether a state's objects confirm a layout, when that comes into doubt,
 * which states become known and go, by which path a mapped file can be opened, and what is told of a request.
 * The process is made up.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cmocka.h>

#include "memory/slow_file.h"
#include "src/inspect/loop_clock.h"
#include "src/inspect/lua_process_parts.h"
#include "src/inspect/stack_states.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/clocks/time_namespace.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_memory.h"
#include "unwind/capture/unknown_states.h"

enum { PID = 77, G = 0x5000, HOLDS = 50, TRIES_RUNNING = 8, SEARCHES = 1000 };

static struct lua_process process;
static struct luajit_module luajit;
static struct given_layout given;
static struct merged_frame frames[2];

/* What ljspy finds in the process. */
static struct {
	uint64_t right;       /* the objects of this state confirm the layout; 0: those of none do */
	uint64_t gone;        /* this state is closed; 0: none is */
	uint64_t in_register; /* a clue; 0: there is none */
	uint64_t on_stack;
	bool more_on_stack; /* than was looked at */
	bool may_compile;
	unsigned int confirms, stack_searches, forgotten, resets;
} found;

INSTEAD_OF(recognise_confirm);
enum recognise_status __wrap_recognise_confirm(struct memory *memory, struct vm_code *vm, uint64_t g,
					       recognise_evidence *evidence, void *context)
{
	assert_non_null(memory);
	assert_ptr_equal(vm, &luajit.known.vm);
	evidence(context, "objects", g == found.right ? "good" : "bad");
	found.confirms++;
	return g == found.right ? RECOGNISE_OK : RECOGNISE_UNKNOWN_LAYOUT;
}

INSTEAD_OF(recognise_finds_state);
bool __wrap_recognise_finds_state(struct memory *memory, const struct vm_code *vm, uint64_t g)
{
	(void)memory;
	(void)vm;
	return g != found.gone;
}

INSTEAD_OF(recognise_is_state);
bool __wrap_recognise_is_state(struct memory *memory, const struct vm_code *vm, uint64_t g)
{
	(void)memory;
	(void)vm;
	return g != found.gone;
}

static size_t clue(struct state_clue *clues, uint64_t g)
{
	clues[0] = (struct state_clue){ .g = g, .vm = &luajit.known.vm };
	return g != 0;
}

INSTEAD_OF(unknown_states_in_registers);
size_t __wrap_unknown_states_in_registers(const struct capture *capture, const struct image *image,
					  struct state_clue ret_clues[static STATE_CLUES_MAX])
{
	assert_ptr_equal(capture, &process.capture);
	assert_ptr_equal(image, process.image);
	return clue(ret_clues, found.in_register);
}

INSTEAD_OF(unknown_states_on_stack);
size_t __wrap_unknown_states_on_stack(const struct capture *capture, const struct image *image,
				      struct memory *live,
				      struct state_clue ret_clues[static STATE_CLUES_MAX], bool *ret_complete)
{
	assert_ptr_equal(capture, &process.capture);
	assert_ptr_equal(image, process.image);
	assert_ptr_equal(live, process.memory);
	*ret_complete = !found.more_on_stack;
	found.stack_searches++;
	return clue(ret_clues, found.on_stack);
}

INSTEAD_OF(unknown_states_may_compile);
bool __wrap_unknown_states_may_compile(const struct capture *capture, const struct image *image)
{
	(void)capture;
	(void)image;
	return found.may_compile;
}

INSTEAD_OF(stack_states_find);
size_t __wrap_stack_states_find(struct snapshot *snapshot, const struct lua_image *lua, struct memory *live,
				pid_t pid, const struct memory_range *stack,
				struct state_clue ret_clues[static STATE_CLUES_MAX])
{
	(void)snapshot;
	assert_ptr_equal(lua, process.lua);
	assert_ptr_equal(live, process.memory);
	assert_int_equal(pid, PID);
	assert_non_null(stack);
	found.stack_searches++;
	return clue(ret_clues, found.on_stack);
}

INSTEAD_OF(namer_forget_global);
void __wrap_namer_forget_global(struct namer *namer, uint64_t g)
{
	(void)namer;
	(void)g;
	found.forgotten++;
}

static int begin(void **state)
{
	(void)state;
	memset(&found, 0, sizeof(found));
	process = (struct lua_process){ .pid = PID, .memory = made_up_memory_begin(), .luajits = &luajit };
	luajit = (struct luajit_module){ .known.status = RECOGNISE_OK };
	process.image = image_new(process.memory);
	process.lua = process.image ? lua_image_new(process.image) : NULL;
	process.stack.frames = frames;
	process.clues_left = CLUES;
	process.stack_searches_left = STACK_SEARCHES;
	return process.lua ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	lua_image_free(process.lua);
	image_free(process.image);
	vm_states_clear(&luajit.states);
	return 0;
}

static void add_states(uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		assert_true(vm_states_add(&luajit.states, G + i));
}

/*---- A layout is confirmed ----*/

static void any_state_may_confirm_a_layout_while_the_target_runs(void **state)
{
	(void)state;
	process_confirm_running(&process, &luajit);
	assert_int_equal(found.confirms, 0);
	add_states(3);
	assert_true(lua_process_needs_confirming(&process));
	process_confirm_running(&process, &luajit);
	assert_int_equal(found.confirms, TRIES_RUNNING);
	assert_false(luajit.known.vm.confirmed);
	assert_int_equal(lua_process_global_count(&process), 0);
	assert_string_equal(luajit.known.verdict, "objects: bad");
	/* Then all states of the VM are known. */
	found.right = G + 1;
	luajit.tries = 7;
	process_confirm_running(&process, &luajit);
	assert_in_range(found.confirms, TRIES_RUNNING + 1, TRIES_RUNNING + 3);
	assert_true(luajit.known.vm.confirmed);
	assert_false(lua_process_needs_confirming(&process));
	assert_int_equal(luajit.tries, 0);
	assert_int_equal(lua_process_global_count(&process), 3);
	assert_ptr_equal(lua_process_global(&process, 0)->vm, &luajit.known.vm);
	assert_true(process_has_global(&process, &luajit.known.vm));
	assert_false(process_has_global(&process, NULL));
	/* Nothing is open any more; unless it is the traces. */
	found.confirms = 0;
	process_confirm_running(&process, &luajit);
	assert_int_equal(found.confirms, 0);
	luajit.known.vm.traces_open = true;
	assert_false(lua_process_needs_confirming(&process));
	process_confirm_running(&process, &luajit);
	assert_in_range(found.confirms, 1, 3);
}

static void a_layout_of_the_users_own_needs_no_objects(void **state)
{
	(void)state;
	given.is_trusted = true;
	process.given = &given;
	add_states(2);
	process_confirm_running(&process, &luajit);
	assert_true(luajit.known.vm.confirmed);
	assert_int_equal(found.confirms, 0);
	assert_int_equal(lua_process_global_count(&process), 2);
	/* The name of a release is no more than a guess. */
	luajit.known.vm.confirmed = false;
	given.is_trusted = false;
	process_confirm_running(&process, &luajit);
	assert_int_equal(found.confirms, TRIES_RUNNING);
	assert_false(luajit.known.vm.confirmed);
}

static void a_layout_that_many_holds_do_not_confirm_is_unknown(void **state)
{
	(void)state;
	add_states(2);
	for (unsigned int hold = 1; hold < HOLDS; hold++) {
		lua_process_confirm(&process);
		assert_int_equal(found.confirms, hold);
		assert_int_equal(luajit.known.status, RECOGNISE_OK);
	}
	lua_process_confirm(&process);
	assert_int_equal(luajit.known.status, RECOGNISE_UNKNOWN_LAYOUT);
	assert_false(lua_process_needs_confirming(&process));
	lua_process_confirm(&process);
	assert_int_equal(found.confirms, HOLDS);
}

static void a_state_that_is_gone_is_no_proof_against_a_layout(void **state)
{
	(void)state;
	for (unsigned int hold = 0; hold < 2 * HOLDS; hold++) {
		add_states(1);
		found.gone = G;
		lua_process_confirm(&process);
		assert_int_equal(luajit.states.count, 0);
	}
	assert_int_equal(found.confirms, 0);
	assert_int_equal(luajit.known.status, RECOGNISE_OK);
	/* One hold is enough where it is right. */
	add_states(2);
	found.right = G + 1;
	lua_process_confirm(&process);
	assert_int_equal(found.confirms, 1);
	assert_true(luajit.known.vm.confirmed);
}

/*---- Doubts ----*/

/* A stack of the VM with its state, and this lost part, or none. */
static void weigh(enum lost_reason reason, bool is_lost)
{
	frames[1] = (struct merged_frame){ .kind = is_lost ? MERGED_LOST : MERGED_LUA, .lost = reason };
	process.stack.count = 2;
	process.capture.global_count = 1;
	process.capture.globals[0].global = lua_image_find(process.lua, G);
	assert_non_null(process.capture.globals[0].global);
	process_weigh_stack(&process);
}

static void begin_doubts(void)
{
	add_states(1);
	luajit.known.vm.confirmed = true;
	process_add_globals(&process, &luajit);
}

static void some_stacks_that_do_not_fit_are_usual(void **state)
{
	static const enum lost_reason against[] = { LOST_UNREADABLE, LOST_BROKEN_CHAIN, LOST_HALF_DONE,
						    LOST_IN_TRACE };

	(void)state;
	begin_doubts();
	found.right = G;
	for (int i = 0; i < 100; i++)
		weigh(LOST_NATIVE_UNWIND, true);
	for (int i = 0; i < 10; i++) {
		weigh(against[i % 4], true);
		for (int j = 0; j < 20; j++)
			weigh(LOST_BROKEN_CHAIN, false);
	}
	assert_int_equal(found.confirms, 0);
	assert_int_equal(luajit.doubts, 10);
}

static void many_stacks_that_do_not_fit_have_the_objects_checked(void **state)
{
	(void)state;
	begin_doubts();
	found.right = G;
	weigh(LOST_UNREADABLE, true);
	weigh(LOST_BROKEN_CHAIN, true);
	assert_int_equal(found.confirms, 0);
	weigh(LOST_HALF_DONE, true);
	assert_int_equal(found.confirms, 1);
	assert_int_equal(luajit.doubted, 0);
	/* The next check takes more than twice as many. */
	for (int i = 0; i < 6; i++)
		weigh(LOST_IN_TRACE, true);
	assert_int_equal(found.confirms, 1);
	weigh(LOST_IN_TRACE, true);
	assert_int_equal(found.confirms, 2);
	/* A layout of the user's own is beyond doubt. */
	given.is_trusted = true;
	process.given = &given;
	for (int i = 0; i < 100; i++)
		weigh(LOST_IN_TRACE, true);
	assert_int_equal(found.confirms, 2);
}

/* A wrong layout need not be wrong for each stack. */
static void one_stack_in_ten_that_does_not_fit_has_the_objects_checked(void **state)
{
	(void)state;
	begin_doubts();
	found.right = G;
	for (int i = 0; i < 4; i++) {
		for (int j = 0; j < 9; j++)
			weigh(LOST_BROKEN_CHAIN, false);
		weigh(LOST_BROKEN_CHAIN, true);
	}
	assert_int_equal(found.confirms, 1);
}

static void begin_to_doubt(void)
{
	for (int i = 0; i < 5; i++)
		weigh(LOST_IN_TRACE, true);
	/* From then on it is for the holds to check. */
	assert_int_equal(found.confirms, 1);
	assert_int_equal(luajit.doubted, G);
}

static void a_layout_that_holds_contradict_is_dropped(void **state)
{
	(void)state;
	begin_doubts();
	begin_to_doubt();
	for (int i = 1; i < HOLDS; i++)
		lua_process_confirm(&process);
	assert_int_equal(found.confirms, HOLDS);
	assert_int_equal(luajit.known.status, RECOGNISE_OK);
	assert_int_equal(lua_process_global_count(&process), 1);
	lua_process_confirm(&process);
	assert_int_equal(luajit.known.status, RECOGNISE_UNKNOWN_LAYOUT);
	assert_int_equal(lua_process_global_count(&process), 0);
	/* What was captured leads to nothing that is gone. */
	assert_int_equal(process.capture.global_count, 0);
	assert_int_equal(process.stack.count, 0);
	lua_process_confirm(&process);
	assert_int_equal(found.confirms, HOLDS + 1);
}

static void a_doubt_ends_where_a_hold_finds_nothing_wrong(void **state)
{
	for (int way = 0; way < 3; way++) {
		end(state);
		begin(state);
		begin_doubts();
		begin_to_doubt();
		lua_process_confirm(&process);
		assert_int_equal(luajit.tries, 1);
		if (way == 0)
			found.right = G;
		else if (way == 1)
			found.gone = G;
		else
			for (int i = 0; i < 200; i++)
				weigh(LOST_IN_TRACE, false);
		lua_process_confirm(&process);
		assert_int_equal(luajit.doubted, 0);
		assert_int_equal(luajit.doubts, 0);
		assert_int_equal(luajit.samples, 0);
		assert_int_equal(luajit.tries, 0);
		assert_int_equal(luajit.doubts_until_check, 10);
		assert_int_equal(found.confirms, way == 0 ? 3 : 2);
		assert_int_equal(luajit.known.status, RECOGNISE_OK);
	}
}

/*---- States come and go ----*/

static void a_state_that_a_thread_runs_becomes_known(void **state)
{
	(void)state;
	luajit.known.vm.confirmed = true;
	found.in_register = G;
	process.searches_left = 5;
	assert_true(process_take_up_running(&process));
	assert_non_null(lua_image_find(process.lua, G));
	assert_int_equal(found.stack_searches, 0);
	assert_int_equal(process.searches_left, SEARCHES);
	assert_int_equal(process.clues_left, CLUES);
	/* Registers tell nothing: its stack may, for as long as there is a reason to search. */
	found.in_register = 0;
	process.searches_left = 2;
	for (int i = 0; i < 4; i++)
		assert_false(process_take_up_running(&process));
	assert_int_equal(found.stack_searches, 2);
	assert_int_equal(process.searches_left, 0);
	found.may_compile = true;
	found.on_stack = G + 1;
	assert_true(process_take_up_running(&process));
	assert_non_null(lua_image_find(process.lua, G + 1));
	assert_int_equal(process.searches_left, SEARCHES);
}

static void clues_that_lead_nowhere_are_followed_so_many_times(void **state)
{
	(void)state;
	luajit.known.vm.confirmed = true;
	found.gone = found.in_register = G;
	for (int i = 0; i < CLUES; i++)
		assert_false(process_take_up_running(&process));
	assert_int_equal(process.clues_left, 0);
	found.gone = 0;
	assert_false(process_take_up_running(&process));
	process.clues_left = 1;
	luajit.known.status = RECOGNISE_UNKNOWN_LAYOUT;
	assert_false(process_take_up_running(&process));
	assert_int_equal(process.clues_left, 1);
	luajit.known.status = RECOGNISE_OK;
	assert_true(process_take_up_running(&process));
	assert_int_equal(process.clues_left, 1);
}

static void a_state_that_is_found_confirms_the_layout_at_once(void **state)
{
	(void)state;
	found.in_register = G;
	for (int hold = 1; hold < HOLDS; hold++)
		assert_false(process_take_up_running(&process));
	assert_int_equal(luajit.known.status, RECOGNISE_OK);
	assert_int_equal(lua_process_global_count(&process), 0);
	found.right = G;
	assert_true(process_take_up_running(&process));
	assert_true(luajit.known.vm.confirmed);
	assert_int_equal(lua_process_global_count(&process), 1);
	/* Many that do not make it unknown. */
	luajit.known.vm.confirmed = false;
	found.right = 0;
	for (int hold = 0; hold < HOLDS; hold++)
		assert_false(process_take_up_running(&process));
	assert_int_equal(luajit.known.status, RECOGNISE_UNKNOWN_LAYOUT);
	assert_int_equal(found.confirms, 2 * HOLDS);
}

static bool is_ruled_out(void)
{
	process.capture.no_unknown_state = false;
	assert_false(process_take_up_running(&process));
	return process.capture.no_unknown_state;
}

static void frames_that_have_led_to_no_state_are_of_none(void **state)
{
	(void)state;
	luajit.known.vm.confirmed = true;
	found.gone = found.on_stack = G;
	assert_false(is_ruled_out()); /* nobody has looked */
	found.may_compile = true;
	assert_true(is_ruled_out());
	found.in_register = G;
	assert_true(is_ruled_out());
	/* There may be one that nobody has looked at. */
	found.more_on_stack = true;
	assert_false(is_ruled_out());
	found.more_on_stack = false;
	/* There may be one that cannot be told yet: too many were tried, or its layout is not sure. */
	process.clues_left = 0;
	assert_false(is_ruled_out());
	process.clues_left = CLUES;
	luajit.known.vm.confirmed = false;
	found.in_register = G + 1;
	assert_false(is_ruled_out());
	found.in_register = 0;
	assert_true(is_ruled_out());
	found.on_stack = G + 1;
	assert_false(is_ruled_out());
	found.right = G + 1;
	assert_true(process_take_up_running(&process));
	assert_false(process.capture.no_unknown_state);
}

static void stacks_of_others_are_searched_so_many_times(void **state)
{
	const struct memory_range none = { 0 }, stack = { .address = 0x1000, .length = 0x1000 };

	(void)state;
	luajit.known.vm.confirmed = true;
	assert_false(process_take_up_on_stack(&process, &none));
	assert_int_equal(process.stack_searches_left, STACK_SEARCHES);
	for (int i = 0; i < STACK_SEARCHES - 1; i++)
		assert_false(process_take_up_on_stack(&process, &stack));
	found.on_stack = G;
	assert_true(process_take_up_on_stack(&process, &stack));
	assert_non_null(lua_image_find(process.lua, G));
	assert_int_equal(process.stack_searches_left, STACK_SEARCHES);
	found.on_stack = 0;
	for (int i = 0; i < STACK_SEARCHES + 5; i++)
		assert_false(process_take_up_on_stack(&process, &stack));
	assert_int_equal(found.stack_searches, 2 * STACK_SEARCHES);
}

static void what_a_stack_does_not_explain_is_looked_for(void **state)
{
	static const struct {
		enum lost_reason reason;
		enum vm_state vm_state;
		unsigned int searches;
		bool wants_refresh;
	} stacks[] = {
		{ LOST_BROKEN_CHAIN, VM_STATE_NONE, 0, false },
		{ LOST_STATE_UNKNOWN, VM_STATE_NONE, SEARCHES, false },
		/* A library was loaded, or a trace of an unknown state has called. */
		{ LOST_NATIVE_UNWIND, VM_STATE_NONE, 1, true },
		{ LOST_NATIVE_UNWIND, VM_STATE_INTERPRETED, 0, true },
		{ LOST_IN_TRACE, VM_STATE_NONE, 0, false },
	};

	(void)state;
	process.stack.count = 2;
	for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++) {
		frames[0] = (struct merged_frame){ .kind = MERGED_NATIVE, .lost = stacks[i].reason };
		frames[1] = (struct merged_frame){ .kind = MERGED_LOST, .lost = stacks[i].reason };
		process.stack.vm_state = stacks[i].vm_state;
		process.searches_left = 0;
		process_note_unknown(&process);
		assert_int_equal(process.searches_left, stacks[i].searches);
		assert_int_equal(lua_process_wants_refresh(&process), stacks[i].wants_refresh);
		process.searches_left = 2;
		process_note_unknown(&process);
		assert_int_equal(process.searches_left, stacks[i].searches < 2 ? 2 : SEARCHES);
	}
	/* Traces confirm what only they can. */
	luajit.known.vm.traces_open = true;
	process_note_unknown(&process);
	assert_true(lua_process_wants_refresh(&process));
	frames[1].lost = LOST_BROKEN_CHAIN;
	process_note_unknown(&process);
	assert_false(lua_process_wants_refresh(&process));
	frames[1].lost = LOST_IN_TRACE;
	luajit.known.status = RECOGNISE_UNKNOWN_LAYOUT;
	process_note_unknown(&process);
	assert_false(lua_process_wants_refresh(&process));
}

static void a_state_that_is_closed_is_forgotten(void **state)
{
	(void)state;
	add_states(3);
	luajit.known.vm.confirmed = true;
	process_add_globals(&process, &luajit);
	process.capture.thread_count = process.capture.global_count = process.stack.count = 1;
	process_drop_closed(&process);
	assert_int_equal(lua_process_global_count(&process), 3);
	assert_int_equal(process.capture.thread_count, 1);
	assert_int_equal(found.forgotten, 0);
	found.gone = G + 1;
	process.capture.running = &process.capture.globals[0];
	process_drop_closed(&process);
	assert_int_equal(lua_process_global_count(&process), 2);
	assert_null(lua_image_find(process.lua, G + 1));
	assert_int_equal(luajit.states.count, 2);
	assert_int_equal(found.forgotten, 1);
	/* Another state may lie there by the next capture. */
	assert_int_equal(process.capture.thread_count, 0);
	assert_int_equal(process.capture.global_count, 0);
	assert_null(process.capture.running);
	assert_int_equal(process.stack.count, 0);
}

/*---- Files ----*/

enum { INODE = 5, MAPPED_AT = MADE_UP_AT, CHANGED_S = 1000 };

/* What lies at a path; the mapped file has device 8:1, INODE and zeros at its beginning. */
static struct place {
	const char *path; /* NULL: nothing */
	ino_t inode;
	dev_t device;
	mode_t mode;
	bool differs; /* from what is mapped, at its last byte */
	bool refuses; /* to be opened */
	bool is_late; /* its disk does not answer in time */
} places[2];
static unsigned int heads, asked;

static const struct place *place_of(const char *path)
{
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (places[i].path && strcmp(places[i].path, path) == 0)
			return &places[i];
	return NULL;
}

INSTEAD_OF(slow_stat);
bool __wrap_slow_stat(struct errands *errands, const char *path, struct stat *ret_status)
{
	const struct place *place = place_of(path);

	(void)errands;
	asked++;
	errno = place ? ETIMEDOUT : ENOENT;
	if (!place || place->is_late)
		return false;
	*ret_status = (struct stat){ .st_ino = place->inode,
				     .st_dev = place->device,
				     .st_mode = place->mode,
				     .st_mtim.tv_sec = CHANGED_S + (place - places) };
	return true;
}

INSTEAD_OF(slow_head);
bool __wrap_slow_head(struct errands *errands, const char *path, void *bytes, size_t length)
{
	const struct place *place = place_of(path);

	(void)errands;
	assert_int_equal(length, FILE_HEAD_BYTES);
	errno = EACCES;
	if (!place || place->refuses)
		return false;
	heads++;
	memset(bytes, 0, length);
	((unsigned char *)bytes)[length - 1] = place->differs;
	return true;
}

INSTEAD_OF(known_files_errands);
struct errands *__wrap_known_files_errands(const struct known_files *files)
{
	(void)files;
	return NULL;
}

INSTEAD_OF(live_memory_memory);
struct memory *__wrap_live_memory_memory(struct live_memory *live)
{
	(void)live;
	return &made_up_memory.memory;
}

/* These are the process's mappings until forget_maps(). */
static void set_maps(const char *text)
{
	process.maps = maps_new(PID);
	assert_int_equal(maps_parse(process.maps, text, strlen(text)), 0);
}

static void forget_maps(void)
{
	maps_free(process.maps);
	process.maps = NULL;
}

static void assert_path(const char *expected)
{
	struct file_place place;
	char text[128];

	snprintf(text, sizeof(text), "%x-%x r-xp 00000000 08:01 %d    /opt/a.so\n", MAPPED_AT,
		 MAPPED_AT + 0x1000, INODE);
	set_maps(text);
	heads = 0;
	assert_true(process_find_file(&process, maps_file_at(process.maps, 0), &place));
	assert_string_equal(place.shown, "/opt/a.so");
	assert_false(place.is_late);
	if (expected) {
		assert_string_equal(place.path, expected);
		assert_int_equal(place.status.st_mtim.tv_sec, CHANGED_S + (place_of(expected) - places));
	} else {
		assert_null(place.path);
		assert_int_equal(place.status.st_mtim.tv_sec, 0);
	}
	file_place_clear(&place);
	forget_maps();
}

static void a_mapped_file_is_opened_where_it_is_the_same(void **state)
{
	static const char *const paths[] = { "/proc/77/root/opt/a.so", "/opt/a.so", "/proc/77/exe",
					     "/proc/77/map_files/10000-11000" };
	const struct place same = { .inode = INODE, .device = makedev(8, 1), .mode = S_IFREG };

	(void)state;
	image_set_root(process.image, "/proc/77/root");
	memset(places, 0, sizeof(places));
	assert_path(NULL);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		memset(places, 0, sizeof(places));
		places[0] = same;
		places[0].path = paths[i];
		assert_path(paths[i]);
		assert_int_equal(heads, 0);
		/* An overlay has numbers of its own: then the beginning tells. */
		places[0].inode++;
		assert_path(paths[i]);
		assert_int_equal(heads, 1);
		places[0].differs = true;
		assert_path(NULL);
		places[0].inode--;
		places[0].device++;
		assert_path(NULL);
		places[0].differs = false;
		assert_path(paths[i]);
		places[0].refuses = true;
		assert_path(NULL);
		places[0].refuses = false;
		places[0].mode = S_IFIFO;
		assert_path(NULL);
		/* The first that is right is taken. */
		places[0] = places[1] = same;
		places[0].path = paths[i];
		places[1].path = paths[0];
		assert_path(paths[0]);
	}
}

/* What is found of a file that is told as deleted; and whether its name ends so, as far as can be seen. */
static void assert_deleted(const char *expected, bool is_name)
{
	struct file_place place;
	const struct mapped_file *file;

	set_maps("10000-11000 r-xp 00000000 08:01 5    /opt/a.so (deleted)\n");
	file = maps_file_at(process.maps, 0);
	asked = 0;
	assert_true(process_find_file(&process, file, &place));
	assert_string_equal(place.path, expected);
	assert_string_equal(place.shown, is_name ? "/opt/a.so (deleted)" : "/opt/a.so");
	assert_true(file_place_shows(file, place.shown));
	file_place_clear(&place);
	forget_maps();
}

/* The kernel tells of deleted files by such a name. */
static void a_name_may_end_as_those_of_deleted_files(void **state)
{
	static const char real[] = "/proc/77/root/opt/a.so (deleted)", other[] = "/proc/77/root/opt/a.so";
	const struct place same = { .inode = INODE, .device = makedev(8, 1), .mode = S_IFREG };

	(void)state;
	memset(places, 0, sizeof(places));
	/* Whatever has the name without it. */
	places[0] = places[1] = same;
	places[0].path = real;
	places[1].path = other;
	places[1].inode++;
	assert_deleted(real, true);
	assert_int_equal(asked, 1);
	places[1].differs = true;
	assert_deleted(real, true);
	/* On an overlay, too, where the beginning tells. */
	places[0].device = places[1].device = makedev(0, 40);
	assert_deleted(real, true);
	places[1].path = NULL;
	assert_deleted(real, true);
	/* A copy beside it on the same device: good enough to be read. */
	places[0] = same;
	places[0].path = real;
	places[0].inode++;
	assert_deleted(real, false);
	places[0].differs = true;
	places[1].path = other;
	places[1].differs = false;
	assert_deleted(other, false);
	places[0].path = "/proc/77/exe";
	places[0].differs = false;
	places[1].path = NULL;
	assert_deleted("/proc/77/exe", false);
}

static void a_file_is_shown_by_its_name_only(void **state)
{
	const struct mapped_file deleted = { .path = "/a.so", .deleted = true }, file = { .path = "/a.so" };

	(void)state;
	assert_true(file_place_shows(&file, "/a.so"));
	assert_true(file_place_shows(&deleted, "/a.so"));
	assert_true(file_place_shows(&deleted, "/a.so (deleted)"));
	assert_false(file_place_shows(&file, "/a.so (deleted)"));
	assert_false(file_place_shows(&deleted, "/a.so (deleted) (deleted)"));
	assert_false(file_place_shows(&deleted, "/a.so.1"));
	assert_false(file_place_shows(&deleted, "/a"));
}

INSTEAD_OF(symbols_reset);
void __wrap_symbols_reset(struct symbols *symbols)
{
	(void)symbols;
	found.resets++;
}

INSTEAD_OF(native_reset);
void __wrap_native_reset(struct native_unwinder *unwinder)
{
	(void)unwinder;
	found.resets++;
}

INSTEAD_OF(namer_reset);
void __wrap_namer_reset(struct namer *namer)
{
	(void)namer;
	found.resets++;
}

/* How often files were asked for in so many refreshes. */
static unsigned int asked_in(unsigned int refreshes)
{
	asked = 0;
	for (unsigned int i = 0; i < refreshes; i++)
		process_find_late_files(&process);
	return asked;
}

/* One that takes no longer is not looked for, nor is one that is known. */
static void a_file_that_is_late_is_found_later(void **state)
{
	static const char path[] = "/proc/77/root/opt/a.so";
	struct module *modules = calloc(2, sizeof(*modules));
	const struct module *module;
	struct file_place place;

	(void)state;
	assert_non_null(modules);
	modules[0] = (struct module){ .begin = MAPPED_AT, .end = MAPPED_AT + 0x1000, .base = MAPPED_AT };
	modules[0].path = strdup("/opt/a.so");
	modules[0].file_is_late = true;
	modules[1] = (struct module){ .begin = 0x90000, .end = 0x91000, .base = 0x90000 };
	modules[1].path = strdup("/opt/b.so");
	image_set_modules(process.image, modules, 2);
	module = image_module(process.image, 0);
	set_maps("10000-11000 r-xp 00000000 08:01 5    /opt/a.so\n"
		 "90000-91000 r-xp 00000000 08:01 6    /opt/b.so\n");
	memset(places, 0, sizeof(places));
	places[0] = (struct place){ path, INODE, makedev(8, 1), S_IFREG, .is_late = true };
	assert_true(process_find_file(&process, maps_file_at(process.maps, 0), &place));
	assert_true(place.is_late);
	assert_null(place.path);
	file_place_clear(&place);
	/* Each asks at four places. */
	assert_int_equal(asked_in(16), 5 * 4);
	assert_true(module->file_is_late);
	assert_null(module->file);
	assert_int_equal(found.resets, 0);
	places[0].is_late = false;
	assert_int_equal(asked_in(16), 1);
	assert_string_equal(module->file, path);
	assert_string_equal(module->path, "/opt/a.so");
	assert_int_equal(module->changed_ns, (uint64_t)CHANGED_S * NS_PER_SECOND);
	assert_false(module->file_is_late);
	assert_int_equal(found.resets, 3);
	assert_null(image_module(process.image, 1)->file);
	forget_maps();
}

/* Does ljspy see that other modules are mapped than a.so, from 0x10000 to 0x12000, and the vdso? */
static void assert_differs(const char *text, bool differs)
{
	set_maps(text);
	assert_int_equal(process_modules_differ(&process), differs);
	forget_maps();
}

/* Then symbols, unwind tables and VMs of what was there before must not be used any more. */
static void modules_that_take_the_place_of_others_are_noticed(void **state)
{
#define VDSO "7f000-80000 r-xp 00000000 00:00 0    [vdso]\n"
	struct module *modules = calloc(2, sizeof(*modules));

	(void)state;
	assert_non_null(modules);
	modules[0] = (struct module){
		.begin = 0x10000, .end = 0x12000, .base = 0x10000, .path = strdup("/a.so")
	};
	modules[1] = (struct module){
		.begin = 0x7f000, .end = 0x80000, .base = 0x7f000, .path = strdup("vdso")
	};
	image_set_modules(process.image, modules, 2);
	assert_differs("10000-12000 r-xp 00000000 08:01 5    /a.so\n" VDSO, false);
	/* Data are no module. */
	assert_differs("10000-12000 r-xp 00000000 08:01 5    /a.so\n"
		       "20000-21000 r--p 00000000 08:01 6    /b.so\n" VDSO,
		       false);
	assert_differs("10000-12000 r-xp 00000000 08:01 6    /b.so\n" VDSO, true);
	assert_differs("10000-13000 r-xp 00000000 08:01 5    /a.so\n" VDSO, true);
	assert_differs("11000-12000 r-xp 00000000 08:01 5    /a.so\n" VDSO, true);
	assert_differs("10000-12000 r-xp 00000000 08:01 5    /a.so\n"
		       "20000-21000 r-xp 00000000 08:01 6    /b.so\n" VDSO,
		       true);
	assert_differs("10000-12000 r-xp 00000000 08:01 5    /a.so\n", true);
	assert_differs(VDSO, true);
}

static void a_layout_that_is_not_known_is_told_though_its_file_is_unmapped(void **state)
{
	struct luajit_module gone = { .known.status = RECOGNISE_OK, .known.verdict = "code: bad" };

	(void)state;
	process.unmapped = &gone;
	assert_null(lua_process_unknown_layout(&process));
	gone.known.status = RECOGNISE_UNKNOWN_LAYOUT;
	assert_string_equal(lua_process_unknown_layout(&process), "code: bad");
}

/*---- Requests ----*/

static uint64_t day_ms(void)
{
	return clock_now_ns(CLOCK_REALTIME) / 1000000;
}

/* How long ago the request began, as it looked so long ago. */
static uint64_t age_ns(uint64_t began_ms, uint64_t looked_ns_ago)
{
	process.capture.request.start_ms = began_ms;
	return lua_process_request(&process, clock_now_ns(CLOCK_MONOTONIC) - looked_ns_ago).age_ns;
}

/* nginx tells by the clock of the day when a request began; looks have the machine's. */
static void a_request_is_as_old_as_it_was_at_the_look(void **state)
{
	const uint64_t minute_ms = 60 * 1000, minute_ns = UINT64_C(60) * NS_PER_SECOND;
	uint64_t began_ms = day_ms() - 2 * minute_ms;

	(void)state;
	process.capture.has_request_context = true;
	process.capture.request = (struct nginx_request){ .address = 0x9000, .main = 0x9000, .uri = "/a" };
	assert_in_range(age_ns(began_ms, 0), 2 * minute_ns, 3 * minute_ns);
	assert_in_range(age_ns(began_ms, minute_ns), minute_ns, 2 * minute_ns);
	/* The clock was set back, or the time is not known. */
	assert_int_equal(age_ns(day_ms() + minute_ms, 0), 0);
	assert_int_equal(age_ns(0, 0), 0);
}

static struct {
	uint64_t clock; /* 0: there is none */
	bool knows_namespace;
	unsigned int questions; /* for the namespace */
} loop;

INSTEAD_OF(loop_clock_find);
bool __wrap_loop_clock_find(struct memory *memory, uint64_t base, uint64_t *ret_address)
{
	(void)memory;
	(void)base;
	*ret_address = loop.clock;
	return loop.clock != 0;
}

INSTEAD_OF(loop_clock_read);
uint64_t __wrap_loop_clock_read(struct memory *memory, uint64_t address, int64_t ahead_ns)
{
	(void)memory;
	return address + (uint64_t)ahead_ns;
}

INSTEAD_OF(time_namespace_offset);
bool __wrap_time_namespace_offset(pid_t pid, int64_t *ret_ns)
{
	assert_int_equal(pid, PID);
	loop.questions++;
	*ret_ns = 5;
	return loop.knows_namespace;
}

/* That may be so for good: it must not cost much. */
static void a_time_namespace_that_cannot_be_read_is_asked_for_more_and_more_rarely(void **state)
{
	struct module *modules = calloc(1, sizeof(*modules));

	(void)state;
	assert_non_null(modules);
	modules[0] = (struct module){
		.begin = 0x10000, .end = 0x12000, .base = 0x10000, .path = strdup("/a.so")
	};
	image_set_modules(process.image, modules, 1);
	loop.clock = 0x11000;
	loop.knows_namespace = false;
	loop.questions = 0;
	for (int i = 0; i < 100; i++)
		assert_int_equal(lua_process_loop_clock(&process), 0);
	assert_int_equal(loop.questions, 7);
	loop.knows_namespace = true;
	for (int i = 0; i < 28; i++)
		lua_process_loop_clock(&process);
	for (int i = 0; i < 200; i++)
		assert_int_equal(lua_process_loop_clock(&process), 0x11005);
	assert_int_equal(loop.questions, 8);
}

static void a_program_without_a_loop_s_clock_is_not_searched_again(void **state)
{
	(void)state;
	loop.clock = 0;
	loop.questions = 0;
	for (int i = 0; i < 10; i++)
		assert_int_equal(lua_process_loop_clock(&process), 0);
	assert_int_equal(process.clock_searches, 1);
	assert_int_equal(loop.questions, 0);
}

static void a_request_is_told_as_nginx_has_it(void **state)
{
	const struct nginx_request request = { .address = 0x9000,
					       .main = 0x9000,
					       .number = 4,
					       .ordinal = 2,
					       .status = 404,
					       .method = "GET",
					       .uri = "/users/17" };
	struct sample_request told;

	(void)state;
	process.capture.has_request_context = true;
	assert_null(lua_process_request(&process, 0).route);
	process.capture.request = request;
	told = lua_process_request(&process, 0);
	assert_string_equal(told.route, "/users/*");
	assert_string_equal(told.method, "GET");
	assert_null(told.host);
	assert_int_equal(told.status, 404);
	assert_int_equal(told.connection, 4);
	assert_int_equal(told.number, 2);
	assert_false(told.is_subrequest);
	process.capture.request.main = 0x8000;
	assert_true(lua_process_request(&process, 0).is_subrequest);
	/* nginx has not read its first line yet. */
	process.capture.request.uri[0] = '\0';
	assert_string_equal(lua_process_request(&process, 0).route, ROUTE_UNKNOWN);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(any_state_may_confirm_a_layout_while_the_target_runs),
		TEST(a_layout_of_the_users_own_needs_no_objects),
		TEST(a_layout_that_many_holds_do_not_confirm_is_unknown),
		TEST(a_state_that_is_gone_is_no_proof_against_a_layout),
		TEST(some_stacks_that_do_not_fit_are_usual),
		TEST(many_stacks_that_do_not_fit_have_the_objects_checked),
		TEST(one_stack_in_ten_that_does_not_fit_has_the_objects_checked),
		TEST(a_layout_that_holds_contradict_is_dropped),
		TEST(a_doubt_ends_where_a_hold_finds_nothing_wrong),
		TEST(a_state_that_a_thread_runs_becomes_known),
		TEST(clues_that_lead_nowhere_are_followed_so_many_times),
		TEST(frames_that_have_led_to_no_state_are_of_none),
		TEST(a_state_that_is_found_confirms_the_layout_at_once),
		TEST(stacks_of_others_are_searched_so_many_times),
		TEST(what_a_stack_does_not_explain_is_looked_for),
		TEST(a_state_that_is_closed_is_forgotten),
		TEST(a_mapped_file_is_opened_where_it_is_the_same),
		TEST(a_name_may_end_as_those_of_deleted_files),
		TEST(a_file_is_shown_by_its_name_only),
		TEST(a_file_that_is_late_is_found_later),
		TEST(modules_that_take_the_place_of_others_are_noticed),
		TEST(a_layout_that_is_not_known_is_told_though_its_file_is_unmapped),
		TEST(a_request_is_as_old_as_it_was_at_the_look),
		TEST(a_time_namespace_that_cannot_be_read_is_asked_for_more_and_more_rarely),
		TEST(a_program_without_a_loop_s_clock_is_not_searched_again),
		TEST(a_request_is_told_as_nginx_has_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

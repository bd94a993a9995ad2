/* SPDX-License-Identifier: MIT */
/*
 * A layout that nothing spoke against at first is dropped when stacks do not fit
 * and the objects there are by then contradict it; one that is right is kept.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "live_luajit.h"
#include "src/inspect/lua_process.h"
#include "src/linux/tracer/tracer.h"

enum { LOOKS_MAX = 2000, LOOKS_TO_KEEP = 200, STOP_TIMEOUT_NS = 1000000000 };

/* There is no trace until it is told to go on. */
static const char script[] =
	"jit.off() io.write('ready\\n') io.flush() io.read() jit.on()\n"
	"local function leaf(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end\n"
	"while true do leaf(1000) end\n";

struct fixture {
	struct live_luajit live;
	struct given_layout given;
	struct functions *functions;
	struct lua_process *process;
	struct tracer *tracer;
	struct tracee *tracee;
	bool lives;
};

static void refresh(struct fixture *fixture)
{
	struct capture_hints hints = { 0 };
	struct registers registers;
	const struct frame *frames;
	enum vm_state state;
	size_t count;

	usleep(1000);
	if (tracer_stop(fixture->tracer, fixture->tracee, STOP_TIMEOUT_NS))
		return;
	assert_int_equal(tracer_registers(fixture->tracee, &registers), 0);
	lua_process_confirm(fixture->process);
	lua_process_capture(fixture->process, &registers, &hints);
	tracer_resume(fixture->tracer, fixture->tracee);
	assert_int_equal(lua_process_unwind(fixture->process, &frames, &count, &state), 0);
}

/* A process that runs, whose layout is held to be this one. */
static void begin(struct fixture *fixture)
{
	if (!fixture->lives) {
		print_message("skipped: no LuaJIT at %s\n", live_executable());
		skip();
	}
	lua_process_give_layout(fixture->process, &fixture->given);
	assert_int_equal(lua_process_refresh(fixture->process, true), 0);
	assert_int_equal(lua_process_global_count(fixture->process), 1);
	assert_int_equal(
		tracer_seize(fixture->tracer, fixture->live.pid, fixture->live.pid, &fixture->tracee), 0);
	assert_int_equal(write(fixture->live.input, "\n", 1), 1);
}

static void a_wrong_layout_is_dropped(void **state)
{
	struct fixture *fixture = *state;

	fixture->given.layout.GCtrace_snapmap -= 8;
	begin(fixture);
	for (int i = 0; i < LOOKS_MAX && lua_process_global_count(fixture->process) > 0; i++)
		refresh(fixture);
	assert_int_equal(lua_process_global_count(fixture->process), 0);
	assert_int_equal(lua_process_module(fixture->process, 0).status, RECOGNISE_UNKNOWN_LAYOUT);
	assert_non_null(strstr(lua_process_module(fixture->process, 0).verdict, "GCtrace.snapmap"));
	assert_string_equal(lua_process_unknown_layout(fixture->process),
			    lua_process_module(fixture->process, 0).verdict);
	/* Nor is it found again. */
	assert_int_equal(lua_process_refresh(fixture->process, true), 0);
	refresh(fixture);
	assert_int_equal(lua_process_global_count(fixture->process), 0);
}

static void the_right_layout_is_kept(void **state)
{
	struct fixture *fixture = *state;

	begin(fixture);
	for (int i = 0; i < LOOKS_TO_KEEP; i++)
		refresh(fixture);
	assert_int_equal(lua_process_global_count(fixture->process), 1);
	assert_int_equal(lua_process_module(fixture->process, 0).status, RECOGNISE_OK);
	assert_null(lua_process_unknown_layout(fixture->process));
}

static int set_up(void **state)
{
	static const struct namer_options options = { .native = NATIVE_FOLD };
	static struct fixture fixture;

	fixture = (struct fixture){ .functions = functions_new(), .tracer = tracer_new() };
	if (!fixture.functions || !fixture.tracer)
		return -1;
	*state = &fixture;
	fixture.lives = live_start(&fixture.live, script);
	if (!fixture.lives)
		return 0;
	if (!live_recognise(&fixture.live) || recognise_confirm(&fixture.live.memory, &fixture.live.vm,
								fixture.live.g, NULL, NULL) != RECOGNISE_OK)
		return -1;
	fixture.given.layout = fixture.live.vm.layout;
	return lua_process_open(fixture.live.pid, fixture.functions, NULL, &options, &fixture.process);
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	tracer_free(fixture->tracer);
	if (fixture->lives)
		live_stop(&fixture->live);
	lua_process_close(fixture->process);
	functions_free(fixture->functions);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_wrong_layout_is_dropped, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_right_layout_is_kept, set_up, tear_down),
	};
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

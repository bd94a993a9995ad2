/* SPDX-License-Identifier: MIT */
/* ljspy serve: how it runs the sampler again and again, when it ends, and what its user is told of that. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/clocks/clock.h"
#include "src/options/option_values.h"
#include "src/program/message.h"
#include "src/sampler/sampler_apart.h"
#include "src/sampler/wanted.h"
#include "src/serve/address.h"
#include "src/serve/hub.h"
#include "src/serve/server.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/run_command.h"
#include "tests/unit/told_reason.h"

enum { RUNS = 4, PROCESSES = 3, SOCKET = 12345, FIRST = 5000000, LONGEST = 4096 };

static struct options options;
static pid_t pids[PROCESSES + 1];

#include "tests/unit/checked_all.h"

/* What is around the command. Its sampling thread sees it, too, in which no check may fail. */
static struct {
	enum hub_mode modes[RUNS]; /* the runs that the hub wants */
	size_t mode_count;
	struct sampler_result results[RUNS]; /* of each run */
	size_t left[RUNS + 1];               /* of the processes, before the first run and after each one */
	int listen_error, start_error;
	bool lacks_hub, lacks_wanted, is_taken_by_file;
} scene;

static struct {
	size_t runs, ends, lefts;
	struct sampler_options sampler[RUNS];
	pid_t sampled[RUNS][PROCESSES];
	struct unreadable unreadable[RUNS];
	struct hub_options hub;
	char target[64];
	struct server_options server;
	char token[2 * LONGEST];
	bool has_token, is_told_refused[RUNS];
	unsigned int listened, started, stopped, forgotten, hub_stops;
	bool sampled_before_listening;
} seen;

/*---- The hub ----*/

INSTEAD_OF(hub_new);
struct hub *__wrap_hub_new(const struct hub_options *given)
{
	seen.hub = *given;
	snprintf(seen.target, sizeof(seen.target), "%s",
		 given->session.target ? given->session.target : "nothing");
	return scene.lacks_hub ? NULL : __real_hub_new(given);
}

INSTEAD_OF(hub_next);
bool __wrap_hub_next(struct hub *hub, enum hub_mode *ret_mode)
{
	(void)hub;
	if (seen.runs == scene.mode_count)
		return false;
	*ret_mode = scene.modes[seen.runs];
	return true;
}

INSTEAD_OF(hub_note_end);
void __wrap_hub_note_end(struct hub *hub, const struct figures *figures)
{
	seen.ends++;
	__real_hub_note_end(hub, figures);
}

INSTEAD_OF(hub_stop);
void __wrap_hub_stop(struct hub *hub)
{
	seen.hub_stops++;
	__real_hub_stop(hub);
}

/*---- The targets ----*/

INSTEAD_OF(wanted_new);
struct wanted *__wrap_wanted_new(const pid_t *of, size_t count)
{
	return scene.lacks_wanted ? NULL : __real_wanted_new(of, count);
}

/* The first of them end first. */
INSTEAD_OF(wanted_left);
size_t __wrap_wanted_left(const struct wanted *wanted, pid_t *ret_pids)
{
	const size_t left = scene.left[seen.runs];

	(void)wanted;
	memcpy(ret_pids, pids + options.pid_count - left, left * sizeof(*pids));
	return left;
}

INSTEAD_OF(sampler_run_apart);
void __wrap_sampler_run_apart(const struct sampler_options *sampler, struct sampler_result *ret_result)
{
	const size_t run = seen.runs;

	seen.sampled_before_listening |= !seen.started;
	seen.sampler[run] = *sampler;
	memcpy(seen.sampled[run], sampler->pids, sampler->pid_count * sizeof(*sampler->pids));
	if (sampler->unreadable_count)
		seen.unreadable[run] = sampler->unreadable[0];
	seen.is_told_refused[run] = sampler->tell_refused != NULL;
	if (sampler->tell_refused && scene.results[run].refused.count)
		sampler->tell_refused(&scene.results[run].refused);
	*ret_result = scene.results[run];
	seen.runs++;
}

/*---- The server ----*/

INSTEAD_OF(address_listen);
int __wrap_address_listen(const struct address *address, char ret_text[static ADDRESS_TEXT_SIZE])
{
	(void)address;
	seen.listened++;
	strcpy(ret_text, "http://made.up/");
	return scene.listen_error ? scene.listen_error : SOCKET;
}

INSTEAD_OF(address_is_taken_by_file);
bool __wrap_address_is_taken_by_file(const struct address *address)
{
	(void)address;
	return scene.is_taken_by_file;
}

INSTEAD_OF(address_forget);
void __wrap_address_forget(const struct address *address)
{
	(void)address;
	seen.forgotten++;
}

INSTEAD_OF(server_start);
int __wrap_server_start(const struct server_options *given, struct server **ret_server)
{
	seen.server = *given;
	seen.has_token = given->token != NULL;
	snprintf(seen.token, sizeof(seen.token), "%s", given->token ? given->token : "");
	if (scene.start_error)
		return scene.start_error;
	seen.started++;
	*ret_server = (struct server *)&seen;
	return 0;
}

INSTEAD_OF(server_stop);
void __wrap_server_stop(struct server *server)
{
	(void)server;
	seen.stopped++;
}

/*---- The user ----*/

static char token_path[] = "/tmp/test_serve_command.XXXXXX";

static int begin(void **state)
{
	(void)state;
	memset(&scene, 0, sizeof(scene));
	memset(&checked, 0, sizeof(checked));
	told_reason = PERMISSION_UNKNOWN;
	for (size_t i = 0; i < PROCESSES; i++)
		pids[i] = i ? FIRST + (pid_t)i : getpid();
	options = (struct options){ .command = COMMAND_SERVE,
				    .pids = pids,
				    .pid_count = 1,
				    .rate_hz = 99,
				    .listen = "127.0.0.1:6060" };
	scene.mode_count = 1;
	for (size_t i = 0; i < RUNS; i++) {
		scene.left[i] = 1;
		scene.results[i] = (struct sampler_result){ .end = SAMPLER_TOLD_TO_END,
							    .begin_ns = 100 + i,
							    .has_attached = true,
							    .saw_luajit = true };
	}
	scene.left[RUNS] = 1;
	return 0;
}

static enum exit_status serve(void)
{
	enum exit_status status;

	memset(&seen, 0, sizeof(seen));
	status = run_command(command_serve, &options);
	assert_true(message_must_not_wait(false));
	assert_false(seen.sampled_before_listening);
	assert_int_equal(seen.stopped, seen.started);
	assert_int_equal(seen.ends, seen.runs);
	return status;
}

static void write_token(const char *text)
{
	FILE *out = fopen(token_path, "w");

	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
}

/* The sampler is run as each capture wants it, and the server with it. */
static void each_mode_is_sampled_in_its_own_way(void **state)
{
	(void)state;
	scene.mode_count = RUNS;
	for (size_t i = 0; i < RUNS; i++)
		scene.modes[i] = (enum hub_mode)i;
	assert_int_equal(serve(), EXIT_ALL_GOOD);
	assert_int_equal(seen.runs, RUNS);
	for (size_t i = 0; i < RUNS; i++) {
		const struct sampler_options *sampler = &seen.sampler[i];

		assert_int_equal(sampler->wall_clock, i != HUB_CPU);
		assert_int_equal(sampler->turns, i == HUB_TURNS);
		assert_int_equal(sampler->coroutines, i == HUB_COROUTINES);
		assert_int_equal(sampler->pid_count, 1);
		assert_int_equal(seen.sampled[i][0], getpid());
		assert_true(sampler->functions && sampler->take && sampler->progress && sampler->keep);
	}
	assert_int_equal(seen.sampler[HUB_CPU].rate_hz, 99);
	assert_int_equal(seen.sampler[HUB_WALL].rate_hz, 99);
	assert_int_equal(seen.sampler[HUB_TURNS].rate_hz, 101); /* two in a turn of 20 ms */
	assert_int_equal(seen.sampler[HUB_COROUTINES].rate_hz, OPTIONS_RATE_COROUTINES);
	ASSERT_TOLD("Listening on http://made.up/\n");
	assert_int_equal(seen.server.socket, SOCKET);
	assert_false(seen.server.is_unix || seen.has_token);
	assert_ptr_equal(seen.server.options, &options);
	assert_non_null(seen.server.hub);
	assert_non_null(seen.server.wanted);
	assert_int_equal(seen.hub_stops, 1);
	assert_int_equal(seen.stopped, 1);
	assert_int_equal(seen.forgotten, 1);
	/* A higher rate than turns need, and a lower one than coroutines may have, stay. */
	options.rate_hz = 500;
	assert_int_equal(serve(), EXIT_ALL_GOOD);
	assert_int_equal(seen.sampler[HUB_TURNS].rate_hz, 500);
	options.rate_hz = 1;
	assert_int_equal(serve(), EXIT_ALL_GOOD);
	assert_int_equal(seen.sampler[HUB_COROUTINES].rate_hz, 1);
}

static void the_hub_knows_what_is_sampled_without_captures(void **state)
{
	(void)state;
	options.rate_hz = 7;
	assert_int_equal(serve(), EXIT_ALL_GOOD);
	assert_int_equal(seen.hub.base, HUB_CPU);
	assert_int_equal(seen.hub.threshold_ns, 20000000);
	assert_int_equal(seen.hub.rate_hz, 7);
	assert_int_equal(seen.hub.session.pid, getpid());
	assert_non_null(strstr(seen.target, "test_serve"));
	options.clock = WEIGHT_WALL_TIME;
	options.blocked_ns = 0;
	assert_int_equal(serve(), EXIT_ALL_GOOD);
	assert_int_equal(seen.hub.base, HUB_WALL);
	options.blocked_ns = 3000000;
	options.name = "serve.*";
	assert_int_equal(serve(), EXIT_ALL_GOOD);
	assert_int_equal(seen.hub.base, HUB_TURNS);
	assert_int_equal(seen.hub.threshold_ns, 3000000);
	assert_string_equal(seen.target, "serve.*");
	assert_true(seen.sampler[0].awaits);
	assert_non_null(seen.sampler[0].pattern);
}

/*---- Runs one after the other ----*/

static void processes_that_have_ended_are_left_out_of_the_next_run(void **state)
{
	(void)state;
	options.pid_count = scene.left[0] = PROCESSES;
	scene.mode_count = RUNS;
	scene.left[1] = 1;
	scene.left[2] = 0;
	assert_int_equal(serve(), EXIT_ALL_GOOD);
	assert_int_equal(seen.runs, 2);
	assert_int_equal(seen.sampler[0].pid_count, PROCESSES);
	assert_int_equal(seen.sampler[1].pid_count, 1);
	assert_int_equal(seen.sampled[1][0], FIRST + 2);
	assert_int_equal(told_times("The recording ended early, with the last of its targets."), 1);
	assert_int_equal(seen.hub_stops, 1);
	/* By name, ljspy waits for others. */
	options.name = "worker";
	assert_int_equal(serve(), EXIT_ALL_GOOD);
	assert_int_equal(seen.runs, RUNS);
	assert_int_equal(seen.sampler[2].pid_count, 0);
	assert_int_equal(told_times("ended early"), 0);
}

static void a_run_that_ends_for_good_is_the_last_one(void **state)
{
	static const enum sampler_end ends[] = { SAMPLER_INTERRUPTED, SAMPLER_TARGETS_ENDED, SAMPLER_FAILED,
						 SAMPLER_KILLED };
	static const enum exit_status statuses[] = { EXIT_ALL_GOOD, EXIT_ALL_GOOD, EXIT_NOTHING_DONE,
						     EXIT_NOTHING_DONE };

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		begin(state);
		scene.mode_count = RUNS;
		scene.results[1].end = ends[i];
		scene.results[1].error = ends[i] == SAMPLER_FAILED ? -EPERM : 0;
		scene.results[1].pid = FIRST;
		assert_int_equal(serve(), statuses[i]);
		assert_int_equal(seen.runs, 2);
		assert_int_equal(seen.hub_stops, 1);
		assert_int_equal(seen.forgotten, 1);
	}
	assert_int_equal(told_times("killed"), 1);
	begin(state);
	scene.mode_count = RUNS;
	scene.results[0].interrupted_by = SIGTERM;
	assert_int_equal(serve(), EXIT_ALL_GOOD);
	assert_int_equal(seen.runs, 1);
}

/* One that ends between two runs is missing at the beginning of the second one. */
static void a_run_whose_process_ended_before_it_comes_again(void **state)
{
	(void)state;
	options.pid_count = scene.left[0] = 2;
	scene.mode_count = 2;
	scene.results[0] = (struct sampler_result){ .end = SAMPLER_FAILED, .error = -ESRCH, .pid = FIRST };
	assert_int_equal(serve(), EXIT_ALL_GOOD);
	assert_int_equal(seen.runs, 2);
	assert_int_equal(seen.sampler[1].pid_count, 1);
	scene.left[1] = 2; /* but all are there */
	assert_int_equal(serve(), EXIT_NOTHING_DONE);
	assert_int_equal(seen.runs, 1);
	ASSERT_TOLD("5000000: error 3");
	scene.left[1] = 1;
	scene.results[0].error = -EPERM;
	assert_int_equal(serve(), EXIT_NOTHING_DONE);
	assert_int_equal(seen.runs, 1);
}

/* Else what came before would be no result. */
static void what_the_first_run_saw_counts_though_the_last_was_to_end_at_once(void **state)
{
	(void)state;
	scene.mode_count = 2;
	scene.results[1] = (struct sampler_result){ .end = SAMPLER_INTERRUPTED, .interrupted_by = SIGINT };
	assert_int_equal(serve(), EXIT_ALL_GOOD);
	assert_int_equal(seen.runs, 2);
	scene.results[0] = scene.results[1];
	scene.mode_count = 1;
	assert_int_equal(serve(), EXIT_NOTHING_DONE);
	ASSERT_TOLD("There is no sample: sampling was to end before it had begun.");
}

static void processes_that_cannot_be_sampled_are_told_once(void **state)
{
	(void)state;
	options.pid_count = scene.left[0] = scene.left[1] = scene.left[2] = 2;
	scene.mode_count = 2;
	for (size_t i = 0; i < 2; i++) {
		struct sampler_result *result = &scene.results[i];

		sampler_note(&result->refused, FIRST + 1, -EPERM);
		result->left_out = 1;
		result->left_out_pid = FIRST + 1;
		result->left_out_error = -EPERM;
		result->unreadable[0] = (struct unreadable){ .pid = FIRST + 1, .start_ticks = 70 + i };
		result->unreadable_count = 1;
	}
	assert_int_equal(serve(), EXIT_WITH_ERRORS);
	assert_int_equal(seen.runs, 2);
	assert_true(seen.is_told_refused[0]);
	assert_false(seen.is_told_refused[1]);
	assert_int_equal(told_times("5000001: error 1"), 1);
	assert_int_equal(told_times("1 of the processes cannot be sampled, or not yet."), 1);
	assert_int_equal(told_times("Process 5000001 was left out."), 1);
	assert_int_equal(seen.sampler[0].unreadable_count, 0);
	assert_int_equal(seen.sampler[1].unreadable_count, 1);
	assert_int_equal(seen.unreadable[1].pid, FIRST + 1);
	assert_int_equal(seen.unreadable[1].start_ticks, 70);
	/* One that no run has refused is told in the end. */
	scene.results[0].refused.count = scene.results[1].refused.count = 0;
	assert_int_equal(serve(), EXIT_WITH_ERRORS);
	assert_int_equal(told_times("5000001: error 1"), 1);
}

/*---- What cannot begin ----*/

static void assert_nothing_done(const char *words)
{
	assert_int_equal(serve(), EXIT_NOTHING_DONE);
	ASSERT_TOLD(words);
	assert_int_equal(seen.runs, 0);
	assert_int_equal(told_times("Listening"), 0);
	assert_int_equal(told_times("samples"), 0);
}

static void nobody_listens_unless_the_targets_may_be_sampled(void **state)
{
	(void)state;
	checked.may_not = true;
	assert_nothing_done("");
	assert_int_equal(seen.listened, 0);
	checked.may_not = false;
	checked.misfit = true;
	assert_nothing_done("");
	assert_int_equal(seen.listened, 0);
	/* There is nothing to check while ljspy waits for the first one. */
	options.pid_count = 0;
	options.name = "worker";
	scene.left[0] = scene.left[1] = 0;
	assert_int_equal(serve(), EXIT_ALL_GOOD);
	assert_int_equal(seen.runs, 1);
}

static void an_address_in_use_is_told_with_a_remedy(void **state)
{
	(void)state;
	scene.listen_error = -EADDRINUSE;
	assert_nothing_done("listening on 127.0.0.1:6060: Address already in use");
	ASSERT_TOLD("name another port: --listen ADDRESS:PORT");
	assert_int_equal(seen.forgotten, 0);
	options.listen = "unix:/run/made.up";
	assert_nothing_done("name another path: --listen PATH");
	ASSERT_TOLD("Let that program end");
	scene.is_taken_by_file = true;
	assert_nothing_done("A file that is no socket has this name.");
	scene.listen_error = -EACCES;
	assert_nothing_done("listening on unix:/run/made.up: Permission denied");
	assert_int_equal(told_times("--listen"), 0);
	scene.listen_error = 0;
	assert_int_equal(serve(), EXIT_ALL_GOOD);
	assert_true(seen.server.is_unix);
}

static void a_server_that_cannot_start_leaves_no_address(void **state)
{
	(void)state;
	scene.start_error = -ENOMEM;
	assert_nothing_done("There is not enough memory for ljspy to do that.");
	assert_int_equal(seen.forgotten, 1);
	assert_int_equal(seen.stopped, 0);
}

static void without_memory_nothing_begins(void **state)
{
	(void)state;
	scene.lacks_hub = true;
	assert_nothing_done("starting to sample: Cannot allocate memory");
	scene.lacks_hub = false;
	scene.lacks_wanted = true;
	assert_nothing_done("starting to sample: Cannot allocate memory");
	assert_int_equal(seen.listened, 0);
}

/*---- Who may ask ----*/

static void assert_usage(const char *words)
{
	assert_int_equal(serve(), EXIT_USAGE);
	ASSERT_TOLD(words);
	assert_int_equal(seen.listened + seen.runs, 0);
}

static void other_machines_need_a_token(void **state)
{
	(void)state;
	options.listen = "nowhere at all";
	assert_usage("\"nowhere at all\" is no address to listen on.");
	ASSERT_TOLD("Write it like 127.0.0.1:6060");
	options.listen = "0.0.0.0:6060";
	assert_usage("0.0.0.0:6060 can be reached from other machines");
	ASSERT_TOLD("--token-file FILE");
	write_token("0123456789abcdef\n");
	options.token_file = token_path;
	assert_int_equal(serve(), EXIT_ALL_GOOD);
	assert_true(seen.has_token);
	assert_string_equal(seen.token, "0123456789abcdef");
}

static void a_token_is_a_file_s_first_line(void **state)
{
	static char line[LONGEST + 2];

	(void)state;
	options.token_file = token_path;
	write_token("0123456789abcdef\r\nanother line");
	assert_int_equal(serve(), EXIT_ALL_GOOD);
	assert_string_equal(seen.token, "0123456789abcdef");
	write_token("0123456789abcde\n");
	assert_usage("is to be a token of 16 to 4096 characters.");
	write_token("\n0123456789abcdef\n");
	assert_usage("is to be a token of 16 to 4096 characters.");
	write_token("");
	assert_usage("is to be a token of 16 to 4096 characters.");
	options.token_file = "/nowhere/at/all";
	assert_usage("/nowhere/at/all: No such file or directory");
	options.token_file = "/tmp";
	assert_usage("/tmp: Is a directory");
	options.token_file = token_path;
	memset(line, 'a', LONGEST);
	write_token(line);
	assert_int_equal(serve(), EXIT_ALL_GOOD);
	assert_string_equal(seen.token, line);
	line[LONGEST] = '\n';
	write_token(line);
	assert_int_equal(serve(), EXIT_ALL_GOOD);
	assert_int_equal(strlen(seen.token), LONGEST);
	/* A part of it would let nobody in who has the whole. */
	line[LONGEST] = 'a';
	write_token(line);
	assert_usage("is to be a token of 16 to 4096 characters.");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, begin)
	const struct CMUnitTest tests[] = {
		TEST(each_mode_is_sampled_in_its_own_way),
		TEST(the_hub_knows_what_is_sampled_without_captures),
		TEST(processes_that_have_ended_are_left_out_of_the_next_run),
		TEST(a_run_that_ends_for_good_is_the_last_one),
		TEST(a_run_whose_process_ended_before_it_comes_again),
		TEST(what_the_first_run_saw_counts_though_the_last_was_to_end_at_once),
		TEST(processes_that_cannot_be_sampled_are_told_once),
		TEST(nobody_listens_unless_the_targets_may_be_sampled),
		TEST(an_address_in_use_is_told_with_a_remedy),
		TEST(a_server_that_cannot_start_leaves_no_address),
		TEST(without_memory_nothing_begins),
		TEST(other_machines_need_a_token),
		TEST(a_token_is_a_file_s_first_line),
	};
	int result;

	close(mkstemp(token_path));
	result = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(token_path);
	return result;
}

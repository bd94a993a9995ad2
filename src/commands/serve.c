/* SPDX-License-Identifier: MIT */
/* ljspy serve: sample without an end, and answer requests for what was sampled. */
#include "src/commands/commands.h"

#include "src/program/message.h"

#ifdef LJSPY_STATIC

enum exit_status command_serve(const struct invocation *invocation)
{
	(void)invocation;
	message_error_left_out("`serve`");
	return EXIT_NOTHING_DONE;
}

#else

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/linux/clocks/clock.h"
#include "src/options/option_values.h"
#include "src/program/first_thread.h"
#include "src/sampler/sampler_apart.h"
#include "src/sampler/wanted.h"
#include "src/serve/address.h"
#include "src/serve/hub.h"
#include "src/serve/server.h"
#include "src/targets/choose.h"
#include "src/targets/sampled.h"
#include "src/targets/sampling.h"

enum { TOKEN_MAX = 4096, TOKEN_MIN = 16 };

static const uint64_t threshold_default_ns = 20 * 1000 * 1000;

struct serving {
	const struct options *options;
	struct hub *hub;
	const struct address *address;
	struct server *server; /* NULL: not begun */
	struct first_thread first;
	struct wanted *wanted; /* the processes of the options */
	pid_t *pids;           /* those of them to sample in the next run */
	struct sampler_options sampler_options;
	struct unreadable unreadable[UNREADABLE_MAX]; /* processes that an earlier run has left out */
	struct sampler_result result;
	struct permission_verdict left_out;
	char token[TOKEN_MAX + 2]; /* with the end of its line, at first */
};

static void take_sample(void *context, const struct sample *sample)
{
	const struct serving *serving = context;

	hub_take(serving->hub, sample);
}

static void keep_functions(void *context)
{
	const struct serving *serving = context;

	hub_keep(serving->hub);
}

static bool progress(void *context, const struct figures *so_far)
{
	const struct serving *serving = context;

	return hub_progress(serving->hub, so_far);
}

/* One run of the sampler, in one mode. */
static void run(struct serving *serving, enum hub_mode mode)
{
	const struct options *options = serving->options;
	struct sampler_options sampler = serving->sampler_options;
	const unsigned int turns_hz = (unsigned int)(2 * NS_PER_SECOND / options->blocked_ns + 1);
	const uint64_t begin_ns = serving->result.begin_ns;

	sampler.wall_clock = mode != HUB_CPU;
	sampler.coroutines = mode == HUB_COROUTINES;
	sampler.turns = mode == HUB_TURNS;
	if (mode == HUB_TURNS && sampler.rate_hz < turns_hz)
		sampler.rate_hz = turns_hz;
	if (mode == HUB_COROUTINES && sampler.rate_hz > OPTIONS_RATE_COROUTINES)
		sampler.rate_hz = OPTIONS_RATE_COROUTINES;
	sampler_run_apart(&sampler, &serving->result);
	if (begin_ns) /* what the first run saw counts, even if this one was to end before it began */
		serving->result.begin_ns = begin_ns;
	serving->sampler_options.tell_refused = NULL; /* it has been told */
	memcpy(serving->unreadable, serving->result.unreadable, sizeof(serving->unreadable));
	serving->sampler_options.unreadable = serving->unreadable;
	serving->sampler_options.unreadable_count = serving->result.unreadable_count;
	hub_note_end(serving->hub, &serving->result.figures);
}

/*
 * Leave out processes that have ended since the first run: a run fails if its only process is not there, and
 * another process may have the id by now. False if none is left to sample or to wait for.
 */
static bool keep_those_left(struct serving *serving)
{
	struct sampler_options *sampler = &serving->sampler_options;

	sampler->pids = serving->pids;
	sampler->pid_count = wanted_left(serving->wanted, serving->pids);
	return sampler->pid_count || sampler->awaits;
}

/* Did the run end for another mode, or only since a process ended just before it? */
static bool may_run_again(struct serving *serving)
{
	const struct sampler_result *result = &serving->result;

	/* A run that ends for another mode hides that a signal came, too. */
	if (result->interrupted_by)
		return false;
	if (result->end == SAMPLER_FAILED && result->error == -ESRCH)
		return wanted_left(serving->wanted, serving->pids) < serving->sampler_options.pid_count;
	return result->end == SAMPLER_TOLD_TO_END;
}

static void explain_in_use(const struct address *address)
{
	if (address_is_taken_by_file(address))
		message_note("A file that is no socket has this name. Name another path: --listen PATH");
	else if (address->storage.ss_family == AF_UNIX)
		message_note("Let that program end, or name another path: --listen PATH");
	else
		message_note("Let that program end, or name another port: --listen ADDRESS:PORT");
}

/* serving->server stays NULL after telling the user why it cannot start. */
static void start_server(void *context)
{
	struct serving *serving = context;
	const struct address *address = serving->address;
	struct server_options options = {
		.is_unix = address->storage.ss_family == AF_UNIX,
		.token = *serving->token ? serving->token : NULL,
		.options = serving->options,
		.wanted = serving->wanted,
		.hub = serving->hub,
	};
	char text[ADDRESS_TEXT_SIZE];
	int error;

	options.socket = address_listen(address, text);
	if (options.socket < 0) {
		message_error_errno(-options.socket, "listening on %s", serving->options->listen);
		if (options.socket == -EADDRINUSE)
			explain_in_use(address);
		return;
	}
	error = server_start(&options, &serving->server);
	if (error) {
		address_forget(address);
		choose_explain_error(-error, "starting to serve");
		return;
	}
	message_note("Listening on %s", text);
}

static bool may_sample(const struct options *options)
{
	return options->pid_count == 0 || (choose_check_all(options) && choose_check_layouts(options));
}

/* Listen once it is known that the targets may be sampled. False after telling the user. */
static bool sample(void *context)
{
	struct serving *serving = context;
	enum hub_mode mode;

	if (!may_sample(serving->options))
		return false;
	first_thread_ask(&serving->first, start_server, serving);
	if (!serving->server)
		return false;
	while (hub_next(serving->hub, &mode)) {
		if (!keep_those_left(serving)) {
			serving->result.end = SAMPLER_TARGETS_ENDED;
			break;
		}
		run(serving, mode);
		if (!may_run_again(serving))
			break;
	}
	hub_stop(serving->hub);
	if (serving->result.left_out)
		permission_diagnose(serving->result.left_out_pid, -serving->result.left_out_error,
				    &serving->left_out);
	return true;
}

/* A token of a file's first line. False after telling the user. */
static bool read_token(struct serving *serving)
{
	const char *path = serving->options->token_file;
	char *token = serving->token;
	bool is_whole;
	size_t length;
	FILE *file;
	int error;

	if (!path)
		return true;
	file = fopen(path, "re");
	if (!file) {
		message_error_errno(errno, "%s", path);
		return false;
	}
	errno = 0;
	error = !fgets(token, sizeof(serving->token), file) && ferror(file) ? errno : 0;
	is_whole = feof(file) || strchr(token, '\n');
	fclose(file);
	if (error) {
		message_error_errno(error, "%s", path);
		return false;
	}
	length = strcspn(token, "\r\n");
	token[length] = '\0';
	if (is_whole && length >= TOKEN_MIN)
		return true;
	message_error("The first line of %s is to be a token of %d to %d characters.", path, TOKEN_MIN,
		      TOKEN_MAX);
	return false;
}

/* False after telling the user. */
static bool read_address(const struct serving *serving, struct address *ret_address)
{
	const char *text = serving->options->listen;

	if (!address_read(text, ret_address)) {
		message_error("\"%s\" is no address to listen on.", text);
		message_note("Write it like 127.0.0.1:6060, [::1]:6060 or unix:/run/ljspy.sock.");
		return false;
	}
	if (ret_address->is_local || serving->options->token_file)
		return true;
	message_error("%s can be reached from other machines: profiles tell much about a program.", text);
	message_note("Listen on 127.0.0.1, or have clients show a token: --token-file FILE.");
	return false;
}

static enum exit_status conclude(struct serving *serving)
{
	struct hub_totals *totals = malloc(sizeof(*totals));

	if (choose_explain_failure(&serving->result, NULL)) {
		free(totals);
		return EXIT_NOTHING_DONE;
	}
	if (totals) {
		hub_totals(serving->hub, totals);
		sampled_tell_figures(&totals->figures);
	}
	free(totals);
	return sampled_explain(serving->options, &serving->result, &serving->left_out) ? EXIT_WITH_ERRORS
										       : EXIT_ALL_GOOD;
}

static enum exit_status serve_on(struct serving *serving, const struct address *address)
{
	bool sampled;
	int error;

	serving->address = address;
	error = first_thread_run(&serving->first, sample, serving, &sampled);
	if (serving->server) {
		server_stop(serving->server);
		address_forget(address);
	}
	if (error)
		choose_explain_error(-error, "starting to sample");
	return error || !sampled ? EXIT_NOTHING_DONE : conclude(serving);
}

static void set_sampler_options(struct serving *serving)
{
	struct sampler_options *sampler = &serving->sampler_options;

	*sampler = sampling_options(serving->options);
	sampler->functions = hub_functions(serving->hub);
	sampler->take = take_sample;
	sampler->progress = progress;
	sampler->tell_refused = sampled_tell_refused;
	sampler->keep = keep_functions;
	sampler->context = serving;
}

static enum exit_status serve(struct serving *serving, const struct invocation *invocation)
{
	struct options *options = invocation->options;
	struct hub_options hub = {
		.base = options->blocked_ns                  ? HUB_TURNS
			: weights[options->clock].is_elapsed ? HUB_WALL
							     : HUB_CPU,
		.session.command_line = invocation->command_line,
	};
	char name[PROCESS_NAME_MAX], *title = NULL;
	enum exit_status status = EXIT_NOTHING_DONE;
	struct address address;
	regex_t pattern;

	if (!read_address(serving, &address) || !read_token(serving))
		return EXIT_USAGE;
	if (!options->blocked_ns)
		options->blocked_ns = threshold_default_ns;
	hub.threshold_ns = options->blocked_ns;
	hub.rate_hz = options->rate_hz;
	if (!options->name)
		title = sampling_title(options, name, &hub.session.pid);
	hub.session.target = options->name ? options->name : title;
	serving->hub = hub_new(&hub);
	serving->wanted = wanted_new(options->pids, options->pid_count);
	serving->pids = calloc(options->pid_count + 1, sizeof(*serving->pids));
	if (serving->hub)
		set_sampler_options(serving);
	if (!serving->hub || !serving->wanted || !serving->pids ||
	    sampling_follow(options, &pattern, &serving->sampler_options))
		message_error_errno(ENOMEM, "starting to sample");
	else
		status = serve_on(serving, &address);
	if (serving->hub)
		sampling_forget(&serving->sampler_options, &pattern);
	hub_free(serving->hub);
	wanted_free(serving->wanted);
	free(serving->pids);
	free(title);
	return status;
}

enum exit_status command_serve(const struct invocation *invocation)
{
	struct serving *serving = calloc(1, sizeof(*serving));
	enum exit_status status = EXIT_NOTHING_DONE;

	if (!serving) {
		message_error_errno(ENOMEM, "starting to sample");
		return status;
	}
	/* Who reads what ljspy says may stall; clients must not wait for that, nor must the end. */
	message_must_not_wait(true);
	serving->options = invocation->options;
	status = serve(serving, invocation);
	free(serving);
	return status;
}

#endif

/* SPDX-License-Identifier: MIT */
#include "src/targets/choose.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/inspect/lua_process.h"
#include "src/linux/proc/follow.h"
#include "src/linux/proc/permission.h"
#include "src/linux/proc/user_name.h"
#include "src/program/message.h"
#include "src/survey/puc_lua.h"
#include "src/survey/survey.h"
#include "src/targets/halted.h"

enum {
	SETTLING_MOMENTS = 100,
	OTHER_LUA_WAITS_NS = 500 * 1000 * 1000, /* for files */
};

static const char problem_killed[] = "The process of ljspy's that takes samples was killed",
		  problem_unwatched[] = "ljspy's processes cannot wait for each other: waitpid() fails",
		  problem_unread[] = "The samples that were taken cannot be read";

void choose_tell(const struct permission_verdict *verdict)
{
	message_error("%s", verdict->sentence);
	if (*verdict->remedy)
		message_note("%s", verdict->remedy);
}

void choose_explain(pid_t pid, int error)
{
	struct permission_verdict verdict;

	permission_diagnose(pid, error, &verdict);
	choose_tell(&verdict);
}

/*
 * Of what a filter refuses, the tracer's timer is what fails first. Without clone3(), the C library uses
 * clone(); but not where a filter says EPERM, as old ones of Docker do.
 */
void choose_explain_error(int error, const char *doing)
{
	struct permission_verdict verdict;

	if (permission_diagnose_error(error, &verdict)) {
		choose_tell(&verdict);
	} else if (error == ENOSYS || error == EPERM) {
		bool is_timer = error == ENOSYS;

		message_error("No %s can be had: %s is refused, by a seccomp filter as a rule.",
			      is_timer ? "timer" : "timer, thread or process",
			      is_timer ? "timer_create()" : "timer_create() or clone3()");
		message_note(
			"Start the container with --security-opt seccomp=unconfined or a profile that allows"
			" %s (Kubernetes: securityContext.seccompProfile).",
			is_timer ? "timer_create" : "both");
	} else {
		message_error_errno(error, "%s", doing);
	}
}

bool choose_explain_other_lua(pid_t pid)
{
	struct errands *errands = errands_new(); /* its disk may not answer, or slowly */
	uint64_t left_ns = OTHER_LUA_WAITS_NS;
	char version[PUC_LUA_VERSION_MAX];
	bool found;

	if (errands)
		errands_allow(errands, &left_ns);
	found = puc_lua_find(pid, errands, version);
	errands_free(errands);
	if (!found)
		return false;
	message_error("Process %d does not run LuaJIT: it runs PUC Lua %s, which ljspy does not know.", pid,
		      version);
	return true;
}

void choose_explain_look(pid_t pid, int error)
{
	if (error == ENOEXEC)
		choose_explain_no_luajit(pid);
	else
		choose_explain(pid, error);
}

static bool engine_has_ended(const struct sampler_result *result)
{
	return result->end == SAMPLER_KILLED || result->end == SAMPLER_BLOCKED;
}

void choose_explain_blocked(pid_t pid)
{
	if (pid)
		choose_explain(pid, ETIMEDOUT);
	else
		message_error("The kernel has kept ljspy waiting for seconds, maybe for a target's memory:"
			      " ljspy gives up, and the target runs on.");
}

bool choose_has_told(const struct sampler_noted *refused, pid_t pid)
{
	for (size_t i = 0; i < refused->count && i < NOTES_TOLD_MAX; i++)
		if (refused->at[i].pid == pid)
			return true;
	return false;
}

static void explain_blocked(const struct sampler_result *result)
{
	if (choose_has_told(&result->refused, result->pid))
		message_warn("No other process is left that can be sampled.");
	else
		choose_explain_blocked(result->pid);
	if (result->unreadable_count == UNREADABLE_MAX)
		message_note("ljspy goes on without %d such processes at most.", UNREADABLE_MAX);
}

/* With an error, of one that was killed. */
static const char *problem_of(const struct sampler_result *result)
{
	return result->error == -ENOMEM ? problem_unread : problem_unwatched;
}

static void explain_end(const struct sampler_result *result)
{
	if (result->end == SAMPLER_BLOCKED)
		explain_blocked(result);
	else if (result->error)
		message_error_errno(-result->error, "%s", problem_of(result));
	else
		message_error("%s.", problem_killed);
}

bool choose_ended_before_beginning(const struct sampler_result *result)
{
	return result->end == SAMPLER_INTERRUPTED && !result->begin_ns;
}

static void explain_launch(const char *command, int error)
{
	struct permission_verdict verdict;

	if (permission_diagnose_launch(command, error, &verdict))
		choose_tell(&verdict);
	else if (error == EPERM) /* mostly that of its execve() */
		message_error_errno(EPERM, "%s", command);
	else
		choose_explain_error(error, command);
}

bool choose_explain_failure(const struct sampler_result *result, const char *command)
{
	if (choose_ended_before_beginning(result)) {
		message_error("There is no sample: sampling was to end before it had begun.");
		message_note("ljspy was still searching for LuaJIT.");
		return true;
	}
	if (result->end == SAMPLER_NO_LUAJIT) {
		choose_explain_no_luajit(result->pid);
		return true;
	}
	if (engine_has_ended(result) && result->figures.samples == 0) {
		explain_end(result);
		return true;
	}
	if (result->end != SAMPLER_FAILED)
		return false;
	if (command)
		explain_launch(command, -result->error);
	else if (result->pid)
		choose_explain(result->pid, -result->error);
	else
		choose_explain_error(-result->error, "starting to take samples");
	return true;
}

bool choose_explain_early_end(const struct sampler_result *result)
{
	if (result->end == SAMPLER_KILLED && result->error)
		message_warn("%s (%s); there are no samples after that.", problem_of(result),
			     strerror(-result->error));
	else if (result->end == SAMPLER_KILLED)
		message_warn("%s; there are no samples after that.", problem_killed);
	else if (result->end == SAMPLER_BLOCKED)
		explain_blocked(result);
	return engine_has_ended(result);
}

/*---- May ljspy look at it? ----*/

/*
 * As process_read_outside(), after a moment if the process is in the middle of an execve(), which mostly is
 * over soon.
 */
static int read_settled(pid_t pid, struct process *ret_process)
{
	const struct timespec moment = { .tv_nsec = 10 * 1000 * 1000 };
	int error = process_read_outside(pid, ret_process);

	for (int i = 0; i < SETTLING_MOMENTS && error == -EBUSY; i++) {
		nanosleep(&moment, NULL);
		error = process_read_outside(pid, ret_process);
	}
	return error;
}

struct family {
	struct process_look *looks;
	size_t count;
	bool out_of_memory;
};

static void add_member(void *context, pid_t pid)
{
	struct family *family = context;
	struct process_look *bigger;
	struct process process;

	if (read_settled(pid, &process))
		return;
	process_clear(&process);
	bigger = realloc(family->looks, (family->count + 1) * sizeof(*bigger));
	if (!bigger) {
		family->out_of_memory = true;
		return;
	}
	family->looks = bigger;
	bigger[family->count++] = (struct process_look){ .pid = pid };
}

/* The given processes, with their descendants if the options ask for them. 0 or a negative errno. */
static int find_family(const struct options *options, struct process_list *ret_list)
{
	struct follow_options follow_options = { .descendants = options->subprocesses };
	struct follow *follow = follow_new(&follow_options);
	struct family family = { .out_of_memory = false };
	int error = follow ? 0 : -ENOMEM;

	for (size_t i = 0; i < options->pid_count && !error; i++) {
		error = follow_add(follow, options->pids[i]);
		add_member(&family, options->pids[i]);
	}
	if (!error)
		error = follow_search(follow, 0, add_member, &family);
	follow_free(follow);
	if (!error && family.out_of_memory)
		error = -ENOMEM;
	if (!error)
		error = process_list_read(family.looks, family.count, NULL, ret_list);
	free(family.looks);
	return error;
}

/* As root without CAP_SYS_PTRACE, take on the process's user and group. False after telling the user. */
static bool take_identity(const struct process *process)
{
	int error = permission_take_target_identity(process);

	if (!error || error == -EALREADY)
		return true;
	choose_explain(process->pid, -error);
	return false;
}

/* Read a process that may have something to see in it. 0 or a negative errno. */
static int read_living(pid_t pid, struct process *ret_process)
{
	int error = read_settled(pid, ret_process);

	if (error)
		return error;
	if (!process_is_zombie(ret_process) && !ret_process->kernel_thread && !ret_process->is_32bit &&
	    !process_if_thread(pid))
		return 0;
	process_clear(ret_process);
	return -ESRCH;
}

int choose_can_look(pid_t pid, uint64_t *ret_start)
{
	struct process process;
	int error = read_living(pid, &process);

	if (error)
		return error;
	*ret_start = process.start_ticks;
	error = permission_take_target_identity(&process);
	process_clear(&process);
	return error == -EALREADY ? 0 : error;
}

bool choose_check(pid_t pid)
{
	uint64_t start;
	int error = choose_can_look(pid, &start);

	if (error)
		choose_explain(pid, -error);
	return !error;
}

bool choose_check_presence(const struct options *options)
{
	const bool is_one = options->pid_count == 1 && !options->subprocesses;
	struct process process;
	int error = -ESRCH;

	for (size_t i = 0; i < options->pid_count && error; i++)
		error = is_one ? read_living(options->pids[i], &process)
			       : read_settled(options->pids[i], &process);
	/* Of a tree, a root that begins another program may have descendants. */
	if (error == -EBUSY && options->subprocesses)
		return true;
	if (error)
		choose_explain(options->pids[0], -error);
	else
		process_clear(&process);
	return !error;
}

/*
 * A process of the user that owns most of them, because ljspy can take on one user
 * only. On a tie, not root's: workers rather than their master.
 */
static const struct process *typical(const struct process_list *list)
{
	const struct process *best = NULL;
	size_t most = 0;

	for (size_t i = 0; i < list->count; i++) {
		size_t count = 0;

		for (size_t j = 0; j < list->count; j++)
			count += list->processes[j].uid == list->processes[i].uid &&
				 list->processes[j].gid == list->processes[i].gid;
		if (count > most || (count == most && best && best->uid == 0)) {
			most = count;
			best = &list->processes[i];
		}
	}
	return best;
}

bool choose_check_all(const struct options *options)
{
	struct process_list list;
	bool good = false;
	int error;

	if (options->pid_count == 1 && !options->subprocesses && !options->name)
		return choose_check(options->pids[0]);
	error = find_family(options, &list);
	if (error) {
		choose_explain(options->pids[0], -error);
		return false;
	}
	if (list.count)
		good = take_identity(typical(&list));
	else
		choose_explain(options->pids[0], list.unread_count ? ETIMEDOUT : ESRCH);
	process_list_clear(&list);
	return good;
}

/* Find a module that the layout does not fit; false if there is none. */
static bool find_misfit(const struct lua_process *process, struct lua_module *ret_module)
{
	bool unsettled = lua_process_needs_confirming(process);

	for (size_t i = 0; i < lua_process_module_count(process); i++) {
		*ret_module = lua_process_module(process, i);
		if (!ret_module->vm || unsettled)
			return true;
	}
	return false;
}

/* 0 if it fits; -ENOEXEC, after telling the user, if it does not; or why the process cannot be read. */
static int compare_layout(pid_t pid, const struct given_layout *layout)
{
	struct namer_options options = { .native = NATIVE_FOLD };
	struct functions *functions;
	struct lua_process *process = NULL;
	struct lua_module module;
	int error;

	functions = functions_new();
	error = functions ? lua_process_open(pid, functions, NULL, &options, &process) : -ENOMEM;
	if (!error) {
		lua_process_give_layout(process, layout);
		error = lua_process_refresh(process, true);
	}
	if (!error && find_misfit(process, &module)) {
		message_error("The layout given does not fit the LuaJIT of process %d: %s.", pid,
			      module.verdict);
		error = -ENOEXEC;
	}
	lua_process_close(process);
	functions_free(functions);
	return error;
}

bool choose_check_layout(pid_t pid, const struct given_layout *layout)
{
	const int error = layout ? compare_layout(pid, layout) : 0;

	if (error && error != -ENOEXEC)
		choose_explain(pid, -error);
	return !error;
}

bool choose_check_layouts(const struct options *options)
{
	bool fits = true;

	if (options->pid_count == 1)
		return choose_check_layout(options->pids[0], options->layout);
	for (size_t i = 0; i < options->pid_count && options->layout; i++)
		fits &= compare_layout(options->pids[i], options->layout) != -ENOEXEC;
	return fits;
}

static enum exit_status take_pids(struct options *options, const struct process_list *list)
{
	pid_t *pids = calloc(list->count, sizeof(*pids));

	if (!pids) {
		message_error_errno(ENOMEM, "choosing processes");
		return EXIT_NOTHING_DONE;
	}
	for (size_t i = 0; i < list->count; i++)
		pids[i] = list->processes[i].pid;
	free(options->pids);
	options->pids = pids;
	options->pid_count = list->count;
	return EXIT_ALL_GOOD;
}

/*---- No process ----*/

static void drop(struct process_list *list, size_t place)
{
	process_clear(&list->processes[place]);
	list->count--;
	memmove(&list->processes[place], &list->processes[place + 1],
		(list->count - place) * sizeof(*list->processes));
}

static void leave_out(struct process_list *list, pid_t pid)
{
	for (size_t i = list->count; i-- > 0;)
		if (list->processes[i].pid == pid)
			drop(list, i);
}

/* The process may be a wrapper, as sudo, timeout or a script: then the user means what it has started. */
static bool tell_of_descendants(pid_t pid)
{
	const struct options tree = { .pids = &pid, .pid_count = 1, .subprocesses = true };
	struct process_list list;
	struct survey survey;
	bool found;

	if (find_family(&tree, &list))
		return false;
	leave_out(&list, pid);
	if (survey_take(&list, &survey)) {
		process_list_clear(&list);
		return false;
	}
	found = survey.list.count > 0;
	if (survey.list.count == 1)
		message_note("Its descendant %d (%s) does: name that one in its place, with -p %d",
			     survey.list.processes[0].pid, survey.list.processes[0].name,
			     survey.list.processes[0].pid);
	else if (found)
		message_note("%zu of its descendants do: --tree %d", survey.list.count, pid);
	survey_clear(&survey);
	return found;
}

void choose_explain_no_luajit(pid_t pid)
{
	if (choose_explain_other_lua(pid))
		return;
	message_error("Process %d does not run LuaJIT, as far as can be seen from outside.", pid);
	if (!tell_of_descendants(pid))
		message_note("`ljspy info -p %d` tells what was looked at.", pid);
}

static void explain_none(const struct options *options, const struct survey *survey)
{
	if (survey->refused_pid) {
		choose_explain(survey->refused_pid, survey->refused_error);
		return;
	}
	if (options->name) {
		message_error("No process that runs LuaJIT matches \"%s\".", options->name);
		message_note(
			"The pattern is an extended regular expression for the name, program or script.");
		return;
	}
	if (options->pid_count) {
		message_error(
			"Neither process %d nor any of its descendants runs LuaJIT, as far as can be seen.",
			options->pids[0]);
		return;
	}
	message_error("No process that runs LuaJIT can be seen.");
	if (survey->refused_count)
		message_note("%zu processes may not be looked at; run ljspy as their user or as root.",
			     survey->refused_count);
	else
		message_note("Name one with -p PID, or start one: ljspy record -- COMMAND");
}

/*---- Several ----*/

static void list_process(const struct process *process, const struct finding *finding, double cpu)
{
	char *title = process_title(process);
	char inside[32] = "", owner[USER_NAME_SIZE];

	user_name(process->euid, owner);
	if (process->own_pid != process->pid)
		snprintf(inside, sizeof(inside), " (%d in its container)", process->own_pid);
	message_note("  -p %-8d %-10.10s %4.0f %% CPU  %-16s  %s%s", process->pid, owner, cpu,
		     *finding->vm ? finding->vm : "LuaJIT, unknown", title ? title : process->name, inside);
	free(title);
}

/* A process that has a child in the list, or NULL. */
static const struct process *find_master(const struct process_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		for (size_t j = 0; j < list->count; j++)
			if (list->processes[j].parent_pid == list->processes[i].pid)
				return &list->processes[i];
	return NULL;
}

static enum exit_status offer(const struct survey *survey)
{
	const struct process *master = find_master(&survey->list);
	double *cpu = calloc(survey->list.count, sizeof(*cpu));

	message_error("There are several processes that run LuaJIT; choose one or more:");
	if (cpu)
		survey_measure(survey, cpu);
	for (size_t i = 0; i < survey->list.count; i++)
		list_process(&survey->list.processes[i], &survey->findings[i], cpu ? cpu[i] : 0);
	if (master)
		message_note("  --tree %-4d is process %d and all its workers, those to come too",
			     master->pid, master->pid);
	free(cpu);
	return EXIT_USAGE;
}

/*---- Choosing ----*/

static enum exit_status choose_from(struct options *options, struct process_list *list)
{
	struct survey survey;
	enum exit_status status;

	/* Every process has memory, and nginx has requests and timers without Lua, too. */
	if ((options->command == COMMAND_MEMORY || options_look_into_nginx(options)) && list->count &&
	    (options->name || options->pid_count))
		return take_pids(options, list);
	if (survey_take(list, &survey)) {
		message_error_errno(ENOMEM, "choosing processes");
		return EXIT_NOTHING_DONE;
	}
	if (survey.list.count == 0 && options_await_processes(options)) {
		status = EXIT_ALL_GOOD; /* it waits for them */
	} else if (survey.list.count == 0) {
		explain_none(options, &survey);
		status = EXIT_NOTHING_DONE;
	} else if (survey.list.count == 1 || options->name || options->pid_count) {
		status = take_pids(options, &survey.list);
	} else {
		status = offer(&survey);
	}
	survey_clear(&survey);
	return status;
}

static enum exit_status choose_found(struct options *options, struct process_list *list)
{
	enum exit_status status = choose_from(options, list);

	process_list_clear(list);
	return status;
}

/* error: negative errno. */
static enum exit_status explain_no_search(int error)
{
	message_error_errno(-error, "looking for processes in /proc");
	return EXIT_NOTHING_DONE;
}

/* pid: one of so many. */
static void tell_unknown(const struct options *options, pid_t pid, size_t count)
{
	if (count == 0)
		return;
	if (options->name)
		message_warn(
			"Whether process %d matches \"%s\" is not known: the kernel has kept ljspy waiting"
			" for its arguments for seconds.",
			(int)pid, options->name);
	else
		message_warn(
			"Whether process %d runs LuaJIT is not known: the kernel has kept ljspy waiting for"
			" its arguments for seconds.",
			(int)pid);
	if (count > 1)
		message_warn("So it is with %zu processes.", count);
	message_note(
		"Such processes are left alone. Name those that you want with -p once their memory is to be"
		" had.");
}

/* The members of a tree are, and those whose name matches; others may be. */
static bool is_wanted(const struct options *options, const struct process *process, const regex_t *pattern)
{
	return options->pid_count || (options->name && process_matches(process, pattern));
}

/* Those of which the kernel does not show the arguments. True if one of them is wanted. */
static bool tell_unread(const struct options *options, const struct process_list *list)
{
	pid_t unknown = 0;
	size_t unknown_count = 0;
	bool is_one_wanted = false;
	regex_t pattern;

	if (!list->unread_count || process_pattern(options->name ? options->name : "", &pattern, NULL))
		return false;
	for (size_t i = 0; i < list->unread_count; i++) {
		const struct process *process = &list->unread[i];

		if (is_wanted(options, process, &pattern)) {
			choose_explain(process->pid, ETIMEDOUT);
			is_one_wanted = true;
		} else if (unknown_count++ == 0) {
			unknown = process->pid;
		}
	}
	regfree(&pattern);
	tell_unknown(options, unknown, unknown_count);
	return is_one_wanted;
}

/* Tell those that could not be read, and choose from the others. */
static enum exit_status choose_from_read(struct options *options, struct process_list *list)
{
	const bool is_one_missing = tell_unread(options, list);
	enum exit_status status;

	status = choose_found(options, list);
	return status == EXIT_ALL_GOOD && is_one_missing ? EXIT_WITH_ERRORS : status;
}

static enum exit_status choose_by_name(struct options *options)
{
	struct process_list list;
	char *complaint = NULL;
	int error = process_find(options->name ? options->name : "", &list, &complaint);

	if (error == -EINVAL && complaint) {
		message_error("The pattern \"%s\" is not right: %s", options->name, complaint);
		free(complaint);
		return EXIT_USAGE;
	}
	return error ? explain_no_search(error) : choose_from_read(options, &list);
}

static enum exit_status choose_by_tree(struct options *options)
{
	struct process_list list;
	int error = find_family(options, &list);

	if (error)
		return explain_no_search(error);
	if (list.count == 0) {
		if (!tell_unread(options, &list))
			choose_explain(options->pids[0], ESRCH);
		process_list_clear(&list);
		return EXIT_NOTHING_DONE;
	}
	return choose_from_read(options, &list);
}

/* Of several processes that the user has named, leave out those that are gone, and say so. */
static enum exit_status leave_out_gone(struct options *options)
{
	const size_t named = options->pid_count;
	struct process process;

	options->pid_count = 0;
	for (size_t i = 0; i < named; i++) {
		int error = read_living(options->pids[i], &process);

		if (error) {
			choose_explain(options->pids[i], -error);
			continue;
		}
		process_clear(&process);
		options->pids[options->pid_count++] = options->pids[i];
	}
	if (options->pid_count == named)
		return EXIT_ALL_GOOD;
	return options->pid_count ? EXIT_WITH_ERRORS : EXIT_NOTHING_DONE;
}

static void leave_out_traced(struct process_list *list)
{
	for (size_t i = list->count; i-- > 0;)
		if (list->processes[i].tracer_pid)
			drop(list, i);
}

/*
 * The first of the processes that runs LuaJIT and has no tracer, as far as can be seen; 0 if there is none.
 */
static pid_t first_to_sample(const struct options *options)
{
	struct process_look *looks = calloc(options->pid_count, sizeof(*looks));
	struct process_list list = { .processes = NULL };
	struct survey survey;
	pid_t first = 0;

	for (size_t i = 0; i < options->pid_count && looks; i++)
		looks[i].pid = options->pids[i];
	if (looks && process_list_read(looks, options->pid_count, NULL, &list) == 0) {
		if (!options->no_stop)
			leave_out_traced(&list);
		if (survey_take(&list, &survey) == 0) {
			first = survey.list.count ? survey.list.processes[0].pid : 0;
			survey_clear(&survey);
		}
	}
	free(looks);
	process_list_clear(&list);
	return first;
}

/*
 * The first process gives a profile its name and the place of its files: let it be one that is in the
 * profile.
 */
static void put_first(const struct options *options)
{
	const pid_t first = first_to_sample(options);
	size_t place = 0;

	while (first && options->pids[place] != first)
		place++;
	memmove(&options->pids[1], options->pids, place * sizeof(*options->pids));
	if (first)
		options->pids[0] = first;
}

static bool makes_profile(const struct options *options)
{
	return options->command == COMMAND_RECORD || options->command == COMMAND_TOP ||
	       options->command == COMMAND_SERVE || options->command == COMMAND_CHECK ||
	       options->command == COMMAND_TRACES;
}

/* Do commands that do not follow processes themselves have to find the descendants? */
static bool wants_tree(const struct options *options)
{
	return options->subprocesses &&
	       (options->command == COMMAND_DUMP || options->command == COMMAND_TRACES ||
		options->command == COMMAND_HEAP || options->command == COMMAND_MEMORY ||
		options_look_into_nginx(options) || options->command == COMMAND_CHECK ||
		options->command == COMMAND_INFO);
}

enum exit_status choose_processes(struct options *options)
{
	enum exit_status status = EXIT_ALL_GOOD, of_tree;
	struct permission_verdict verdict;

	if (options->recordings || options->core || (options->dwarf && !options->name))
		return EXIT_ALL_GOOD;
	if (permission_diagnose_error(0, &verdict)) {
		choose_tell(&verdict);
		return EXIT_NOTHING_DONE;
	}
	if (options->launch)
		return EXIT_ALL_GOOD;
	if (options->pid_count == 0)
		return choose_by_name(options);
	if (options->pid_count > 1 || process_if_thread(options->pids[0]))
		status = leave_out_gone(options);
	if (options->pid_count > 1 && !options->subprocesses && makes_profile(options))
		put_first(options);
	if (status == EXIT_NOTHING_DONE || !wants_tree(options))
		return status;
	of_tree = choose_by_tree(options);
	return of_tree == EXIT_ALL_GOOD ? status : of_tree;
}

/* SPDX-License-Identifier: MIT */
/*
 * choose: find the processes that a command looks at, and explain why ljspy cannot.
 */
#ifndef LJSPY_CHOOSE_H
#define LJSPY_CHOOSE_H

#include "src/linux/proc/permission.h"
#include "src/linux/proc/process.h"
#include "src/options/options.h"
#include "src/sampler/sampler.h"

/*
 * Fill options->pids from --name, from --tree (for commands that do not follow processes
 * themselves), or, without a target, with the only process that runs LuaJIT. On failure
 * it tells the user why, or which processes to choose from, and returns the status to exit
 * with. EXIT_WITH_ERRORS: go on with others than those that the user has named, and been told of.
 */
enum exit_status choose_processes(struct options *options);

/* Tell why ljspy could not trace or read the process; error is a positive errno. */
void choose_explain(pid_t pid, int error);

/* Print an earlier verdict. */
void choose_tell(const struct permission_verdict *verdict);

/* Tell why ljspy cannot do this at all; error is a positive errno. doing names the action. */
void choose_explain_error(int error, const char *doing);

/* If the process runs another Lua, tell which one; false if it does not. */
bool choose_explain_other_lua(pid_t pid);

/* Tell that there is no LuaJIT in the process. */
void choose_explain_no_luajit(pid_t pid);

/* Tell why a look at a process failed (src/survey/traced_lua.h); error is a positive errno. */
void choose_explain_look(pid_t pid, int error);

/* The kernel kept ljspy waiting, by the memory of that process; 0 if that is unknown. */
void choose_explain_blocked(pid_t pid);

/* Has the user been told why this one is left out? */
bool choose_has_told(const struct sampler_noted *refused, pid_t pid);

/* Did a signal end sampling while ljspy still searched for LuaJIT? What there is then is no result. */
bool choose_ended_before_beginning(const struct sampler_result *result);

/* If sampling did not begin, tell why and return true; command is the one to start, or NULL. */
bool choose_explain_failure(const struct sampler_result *result, const char *command);

/* If ljspy's engine was killed or had to end, tell that and return true. */
bool choose_explain_early_end(const struct sampler_result *result);

/*
 * Is it a living process that ljspy may trace? False after telling the user. As root
 * without CAP_SYS_PTRACE, take on its user and group.
 */
bool choose_check(pid_t pid);

/* The same without a word: 0 or a negative errno. *ret_start: as process.start_ticks. */
int choose_can_look(pid_t pid, uint64_t *ret_start);

/* Is any process there of those given? False after telling the user. It takes on no user. */
bool choose_check_presence(const struct options *options);

/*
 * The same as choose_check() for all processes to record. Later ones may be left out. The user taken on
 * is the one that owns most of them.
 */
bool choose_check_all(const struct options *options);

/* Does the layout, if not NULL, fit the process's LuaJIT? False after telling the user. */
bool choose_check_layout(pid_t pid, const struct given_layout *layout);

/*
 * Does the layout given, if there is one, fit all processes that the user has chosen? False after telling the
 * user.
 * Of several, those that cannot be read are left to the command.
 */
bool choose_check_layouts(const struct options *options);

#endif

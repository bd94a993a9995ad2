/* SPDX-License-Identifier: MIT */
/*
 * choose: which processes a command is about.
 */
#ifndef LJSPY_CHOOSE_H
#define LJSPY_CHOOSE_H

#include "src/linux/proc/permission.h"
#include "src/linux/proc/process.h"
#include "src/options/options.h"
#include "src/sampler/sampler.h"

/*
 * Fill options->pids from --name, from --tree (for commands that do not
 * follow processes themselves), or, with no target given at all, with the only LuaJIT
 * process there is. Otherwise the user has been told (which processes to choose
 * from) and the exit status is not EXIT_ALL_GOOD.
 */
enum exit_status choose_processes(struct options *options);

/* Tell why the process could not be traced or read; error is a positive errno. */
void choose_explain(pid_t pid, int error);

/* The same of what was found out before. */
void choose_tell(const struct permission_verdict *verdict);

/* Tell what keeps ljspy from doing anything of that kind; error is a positive errno. */
void choose_explain_error(int error, const char *doing);

/* Tell that there is no LuaJIT in the process. */
void choose_explain_no_luajit(pid_t pid);

/* If sampling could not begin, tell why; command is what was to be started, or NULL. */
bool choose_explain_failure(const struct sampler_result *result, const char *command);

/* If sampling ended before its time, not by the target or the user, tell why. */
bool choose_explain_early_end(const struct sampler_result *result);

/*
 * Is it a living process that may be traced? If not, the user has been told.
 * As root without CAP_SYS_PTRACE, take on its user and group.
 */
bool choose_check(pid_t pid);

/*
 * The same for all processes that are to be recorded: of those that are found
 * on the way some may be left out, and the user taken on is the one of most of them.
 */
bool choose_check_all(const struct options *options);

/* Does the layout that was given, if one was, fit the process? If not, the user has been told. */
bool choose_check_layout(pid_t pid, const struct given_layout *layout);

#endif

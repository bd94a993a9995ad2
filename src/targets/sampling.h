/* SPDX-License-Identifier: MIT */
/* sampling: what the command line says to the sampler. */
#ifndef LJSPY_SAMPLING_H
#define LJSPY_SAMPLING_H

#include <regex.h>

#include "src/linux/proc/process.h"
#include "src/options/options.h"
#include "src/sampler/sampler.h"

/* Targets, rate, duration and layout. The caller adds its own part. */
struct sampler_options sampling_options(const struct options *options);

/*
 * Sample future processes, too: descendants, and those that match --name, if these options are given.
 * *pattern must last as long as *sampler; sampling_forget() frees it. 0 or -ENOMEM.
 */
int sampling_follow(const struct options *options, regex_t *pattern, struct sampler_options *sampler);
void sampling_forget(const struct sampler_options *sampler, regex_t *pattern);

/*
 * What the options mean, as a title of what is recorded, which the caller frees; and the name
 * and, if there is one process, the pid for a file's name. NULL if all processes are gone, or
 * memory is short.
 */
char *sampling_title(const struct options *options, char ret_name[static PROCESS_NAME_MAX], pid_t *ret_pid);

#endif

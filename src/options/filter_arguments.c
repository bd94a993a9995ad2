/* SPDX-License-Identifier: MIT */
#include "src/options/filter_arguments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/labels/names.h"
#include "src/options/option_values.h"
#include "src/program/message.h"

static bool is_word(const char *text, size_t length, const char *word)
{
	return strlen(word) == length && strncmp(text, word, length) == 0;
}

static bool add_state(const char *text, size_t length, struct filter_options *options)
{
	for (int i = 0; i < THREAD_STATE_COUNT; i++) {
		if (is_word(text, length, thread_state_name((enum thread_state)i))) {
			options->thread_states |= UINT32_C(1) << i;
			return true;
		}
	}
	for (int i = 0; i < VM_STATE_COUNT; i++) {
		if (is_word(text, length, vm_state_name((enum vm_state)i))) {
			options->vm_states |= UINT32_C(1) << i;
			return true;
		}
	}
	return false;
}

/* "running, runnable, ..., unknown" */
static void list_states(char *list, size_t size)
{
	size_t length = 0;

	for (int i = 0; i < THREAD_STATE_COUNT + VM_STATE_COUNT && length < size; i++)
		length += (size_t)snprintf(list + length, size - length, "%s%s", i ? ", " : "",
					   i < THREAD_STATE_COUNT
						   ? thread_state_name((enum thread_state)i)
						   : vm_state_name((enum vm_state)(i - THREAD_STATE_COUNT)));
}

bool filter_arguments_states(const char *text, struct filter_options *options)
{
	const char *at = text;
	char list[512];

	for (;;) {
		size_t length = strcspn(at, ",");

		if (!add_state(at, length, options))
			break;
		if (!at[length])
			return true;
		at += length + 1;
	}
	list_states(list, sizeof(list));
	message_error("\"%s\" is not a state, or several with commas between.", text);
	message_note("States are %s.", list);
	return false;
}

static const char *const group_names[GROUP_COUNT] = {
	[GROUP_PID] = "pid",           [GROUP_TID] = "tid",           [GROUP_COMM] = "comm",
	[GROUP_STATE] = "state",       [GROUP_PHASE] = "phase",       [GROUP_MODULE] = "module",
	[GROUP_GC_PHASE] = "gc-phase", [GROUP_ROUTE] = "route",       [GROUP_HOST] = "host",
	[GROUP_STATUS] = "status",     [GROUP_UPSTREAM] = "upstream",
};

const char *filter_arguments_group_name(enum filter_group group)
{
	return group_names[group];
}

bool filter_arguments_group(const char *text, struct filter_options *options)
{
	for (int i = 0; i < GROUP_COUNT; i++) {
		if (group_names[i] && strcmp(text, group_names[i]) == 0) {
			options->group = (enum filter_group)i;
			return true;
		}
	}
	message_error("\"%s\" is nothing to group by.", text);
	message_note(
		"What there is: pid, tid, comm, state, phase, gc-phase, module, route, host, status and upstream.");
	return false;
}

bool filter_arguments_pattern(const char *text, regex_t **pattern)
{
	regex_t *made = malloc(sizeof(*made));
	char complaint[256];
	int error;

	if (!made)
		return option_value_no_memory(text);
	error = regcomp(made, text, REG_EXTENDED | REG_NOSUB);
	if (error) {
		regerror(error, made, complaint, sizeof(complaint));
		message_error("The pattern \"%s\" is not right: %s", text, complaint);
		free(made);
		return false;
	}
	filter_arguments_free_pattern(*pattern);
	*pattern = made;
	return true;
}

void filter_arguments_free_pattern(regex_t *pattern)
{
	if (!pattern)
		return;
	regfree(pattern);
	free(pattern);
}

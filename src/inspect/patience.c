/* SPDX-License-Identifier: MIT */
#include "src/inspect/patience.h"

static bool may_wait(void *context)
{
	const struct patience *patience = context;

	return !tracer_holds(patience->tracer);
}

static bool pass_on_meanwhile(void *context)
{
	const struct patience *patience = context;

	tracer_pass_on(patience->tracer);
	return !patience->may_go_on || patience->may_go_on(patience->context);
}

struct errands_waiter patience_waiter(struct patience *patience)
{
	return (struct errands_waiter){
		.may_wait = may_wait,
		.meanwhile = pass_on_meanwhile,
		.context = patience,
	};
}

void patience_begin(struct patience *patience, const struct known_files *files)
{
	const struct errands_waiter waiter = patience_waiter(patience);

	errands_wait_as(known_files_errands(files), &waiter);
	errands_wait_as(known_files_memory_errands(files), &waiter);
	symbol_files_while_waiting(known_files_symbols(files), pass_on_meanwhile, patience);
}

void patience_end(const struct known_files *files)
{
	errands_wait_as(known_files_errands(files), NULL);
	errands_wait_as(known_files_memory_errands(files), NULL);
	symbol_files_while_waiting(known_files_symbols(files), NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * receiver: spins and takes SIGRTMIN signals that carry 0, 1, 2, ...; at the
 * value -1 prints how many came and how many of those were out of order.
 */
#include <stdio.h>
#include <unistd.h>

#include "queued_signals.h"

int main(void)
{
	struct sigaction action = { .sa_sigaction = on_queued, .sa_flags = SA_SIGINFO };

	sigaction(SIGRTMIN, &action, NULL);
	puts("ready");
	fflush(stdout);
	while (!finished)
		;
	printf("%d received, %d disordered\n", (int)received, (int)disordered);
	return 0;
}

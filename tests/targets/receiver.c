/*
 * receiver: spins and takes SIGRTMIN signals that carry 0, 1, 2, ...; at the
 * value -1 prints how many came and how many of those were out of order.
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t received, disordered, finished;

static void receive(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	if (info->si_value.sival_int == -1) {
		finished = 1;
		return;
	}
	if (info->si_value.sival_int != received)
		disordered++;
	received++;
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = receive, .sa_flags = SA_SIGINFO };

	sigaction(SIGRTMIN, &action, NULL);
	puts("ready");
	fflush(stdout);
	while (!finished)
		;
	printf("%d received, %d disordered\n", (int)received, (int)disordered);
	return 0;
}

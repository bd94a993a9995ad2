/*
 * execer TIMES HOW: spins for a moment and runs itself again, that many times;
 * then prints "done" and spins on. HOW is "leader", or "thread" if a second
 * thread is to call execve() while the first one and a third spin, or "orphan"
 * if the first one has ended by then.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char **arguments;
static volatile unsigned long count;

static void spin_ms(int ms)
{
	clock_t end = clock() + ms * (CLOCKS_PER_SEC / 1000);

	while (clock() < end)
		count = count + 1;
}

static void *spin(void *unused)
{
	for (;;)
		count = count + 1;
	return unused;
}

static void *run_again(void *unused)
{
	char times[16];
	char *next[] = { arguments[0], times, arguments[2], NULL };

	spin_ms(20);
	snprintf(times, sizeof(times), "%d", atoi(arguments[1]) - 1);
	execv("/proc/thread-self/exe", next);	/* the first thread may have ended */
	exit(1);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t spinner, runner;
	char line[16];

	if (argc < 3)
		return 1;
	arguments = argv;
	if (!getenv("STARTED")) {
		setenv("STARTED", "yes", 1);
		puts("ready");
		fflush(stdout);
		if (read(STDIN_FILENO, line, sizeof(line)) <= 0)
			return 1;
	}
	if (atoi(argv[1]) == 0) {
		puts("done");
		fflush(stdout);
		spin(NULL);
	}
	if (strcmp(argv[2], "leader") != 0) {
		pthread_create(&spinner, NULL, spin, NULL);
		pthread_create(&runner, NULL, run_again, NULL);
		if (strcmp(argv[2], "orphan") == 0)
			pthread_exit(NULL);
		spin(NULL);
	}
	run_again(NULL);
	return 0;
}

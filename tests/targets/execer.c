/* SPDX-License-Identifier: MIT */
/*
 * execer HOW: for each two lines that it is given, runs itself once more. At
 * the first it starts its threads and prints "threads", at the second one of
 * them calls execve(), and the new program prints "again". Until then it spins
 * unless it waits for a line. HOW is "leader", or "thread" if a second thread
 * is to call execve() while the first one spins, or "orphan" if the first one
 * has ended by then.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char **arguments;
static volatile unsigned long count;

static void await_line(void)
{
	char letter;

	do
		if (read(STDIN_FILENO, &letter, 1) != 1)
			exit(1);
	while (letter != '\n');
}

static void say(const char *what)
{
	puts(what);
	fflush(stdout);
}

static void *spin(void *unused)
{
	for (;;)
		count = count + 1;
	return unused;
}

static void *run_again(void *unused)
{
	say("threads");
	await_line();
	setenv("AGAIN", "yes", 1);
	execv("/proc/thread-self/exe", arguments); /* the first thread may have ended */
	exit(1);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t spinner, runner;

	if (argc < 2)
		return 1;
	arguments = argv;
	say(getenv("AGAIN") ? "again" : "ready");
	await_line();
	if (strcmp(argv[1], "leader") == 0)
		run_again(NULL);
	pthread_create(&spinner, NULL, spin, NULL);
	pthread_create(&runner, NULL, run_again, NULL);
	if (strcmp(argv[1], "orphan") == 0)
		pthread_exit(NULL);
	spin(NULL);
	return 0;
}

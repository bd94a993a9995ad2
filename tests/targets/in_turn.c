/* SPDX-License-Identifier: MIT */
/*
 * Threads that wait in turn: the first waits for a mutex, and who holds it does something else.
 *
 *	in_turn HOLDER LOCK
 *
 * HOLDER: "events" waits in epoll_wait(), "poll" in poll() and "select" in select() of two files, "sleeps"
 * sleeps, "works" runs.
 * LOCK: "own", "robust", or "shared", whose holder is another process; "inner": a pid namespace is made, and
 * its first process is the target. Prints the address of the mutex.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

struct turn {
	pthread_mutex_t mutex;
	volatile pid_t holder;
};

static const char *does;
static struct turn *turn;

static void wait_by_select(void)
{
	int first[2], second[2];
	fd_set files;

	if (pipe(first) || pipe(second))
		exit(1);
	FD_ZERO(&files);
	FD_SET(first[0], &files);
	FD_SET(second[0], &files);
	select(FD_SETSIZE, &files, NULL, NULL, NULL);
}

static void *hold(void *unused)
{
	struct pollfd none[2] = { { .fd = -1 }, { .fd = -1 } };
	struct epoll_event event;
	int epoll = epoll_create1(0);

	(void)unused;
	pthread_mutex_lock(&turn->mutex);
	turn->holder = gettid();
	for (;;) {
		if (strcmp(does, "events") == 0)
			epoll_wait(epoll, &event, 1, -1);
		else if (strcmp(does, "poll") == 0)
			poll(none, 2, -1);
		else if (strcmp(does, "select") == 0)
			wait_by_select();
		else if (strcmp(does, "sleeps") == 0)
			sleep(60);
	}
	return NULL;
}

static void make_lock(const char *kind)
{
	pthread_mutexattr_t attributes;

	turn = mmap(NULL, sizeof(*turn), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (turn == MAP_FAILED)
		exit(1);
	pthread_mutexattr_init(&attributes);
	if (strcmp(kind, "robust") == 0)
		pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	if (strcmp(kind, "shared") == 0) {
		pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
		pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	}
	pthread_mutex_init(&turn->mutex, &attributes);
}

/* In the new namespace, whose first process this becomes. The outer one waits for it. */
static void go_inside(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWPID)) {
		puts("ready\n0");
		exit(0);
	}
	if (fork())
		exit(wait(NULL) > 0 ? 0 : 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void start_holder(const char *kind)
{
	pthread_t thread;

	if (strcmp(kind, "shared") != 0) {
		pthread_create(&thread, NULL, hold, NULL);
	} else if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		hold(NULL);
	}
	while (!turn->holder)
		usleep(1000);
}

int main(int argc, char *argv[])
{
	if (argc < 3)
		return 1;
	does = argv[1];
	if (strcmp(argv[2], "inner") == 0)
		go_inside();
	make_lock(argv[2]);
	start_holder(argv[2]);
	printf("ready\n%p\n", (void *)turn);
	fflush(stdout);
	pthread_mutex_lock(&turn->mutex);
	return 0;
}

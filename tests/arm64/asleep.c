/* SPDX-License-Identifier: MIT */
/*
 * Threads that sleep in each way that the C library has to wait for a lock, another thread or the kernel.
 * asleep.lua starts them: pool_start() returns how many there are. The stack of the thread NAME is, from the
 * outside: pool_thread, NAME_outer, NAME_inner, and what the C library has.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/poll.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/futex.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, never = PTHREAD_MUTEX_INITIALIZER, inherits;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER, exclusive = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_t sleeper;
static sem_t semaphore;
static int word, semaphores, file = -1;

static const struct timespec later = { .tv_sec = INT32_MAX };

/*
 * Waits and the names of the threads that are in them. What is behind a wait keeps it from being a tail call.
 */
#define WAITS(WAIT) \
	WAIT(lock, pthread_mutex_lock(&mutex)) \
	WAIT(timedlock, pthread_mutex_timedlock(&mutex, &later)) \
	WAIT(clocklock, pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &later)) \
	WAIT(inheritor, pthread_mutex_lock(&inherits)) \
	WAIT(inherittimed, pthread_mutex_timedlock(&inherits, &later)) \
	WAIT(reader, pthread_rwlock_rdlock(&exclusive)) \
	WAIT(timedreader, pthread_rwlock_timedrdlock(&exclusive, &later)) \
	WAIT(writer, pthread_rwlock_wrlock(&shared)) \
	WAIT(timedwriter, pthread_rwlock_timedwrlock(&shared, &later)) \
	WAIT(condition, pthread_mutex_lock(&never) || pthread_cond_wait(&condition, &never)) \
	WAIT(semaphore, sem_wait(&semaphore)) \
	WAIT(timedsemaphore, sem_timedwait(&semaphore, &later)) \
	WAIT(barrier, pthread_barrier_wait(&barrier)) \
	WAIT(join, pthread_join(sleeper, NULL)) \
	WAIT(nap, nanosleep(&later, NULL)) \
	WAIT(poll, poll(NULL, 0, -1)) \
	WAIT(flock, flock(file, LOCK_EX)) \
	WAIT(semop, semtimedop(semaphores, &(struct sembuf){ .sem_op = -1 }, 1, NULL)) \
	WAIT(syscall, (int)syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL))

#define WAIT_FUNCTIONS(name, wait) \
	__attribute__((noinline)) static int name##_inner(int n) \
	{ \
		return (wait) + n; \
	} \
	__attribute__((noinline)) static int name##_outer(int n) \
	{ \
		return name##_inner(n + 1) * 2; \
	}
#define WAIT_ROW(name, wait) { #name, name##_outer },

WAITS(WAIT_FUNCTIONS)

static const struct wait {
	const char *name;
	int (*outer)(int n);
} waits[] = { WAITS(WAIT_ROW) };

enum { WAITS_COUNT = sizeof(waits) / sizeof(waits[0]) };

static void *pool_thread(void *argument)
{
	const struct wait *wait = argument;

	pthread_setname_np(pthread_self(), wait->name);
	return (void *)(intptr_t)wait->outer((int)(wait - waits));
}

static void *keep_asleep(void *argument)
{
	(void)argument;
	pause();
	return NULL;
}

/* The calling thread holds all locks. */
int pool_start(void)
{
	char path[] = "/tmp/asleep-XXXXXX";
	pthread_mutexattr_t attributes;
	pthread_t thread;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&inherits, &attributes);
	pthread_barrier_init(&barrier, NULL, 2);
	sem_init(&semaphore, 0, 0);
	semaphores = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
	file = mkstemp(path);
	if (file < 0 || flock(file, LOCK_EX) || pthread_mutex_lock(&mutex) || pthread_mutex_lock(&inherits) ||
	    pthread_rwlock_rdlock(&shared) || pthread_rwlock_wrlock(&exclusive) ||
	    pthread_create(&sleeper, NULL, keep_asleep, NULL))
		return -1;
	/* A lock of a file is its open description's. */
	file = open(path, O_RDWR);
	unlink(path);
	for (int i = 0; i < WAITS_COUNT; i++)
		if (pthread_create(&thread, NULL, pool_thread, (void *)&waits[i]))
			return -1;
	return WAITS_COUNT;
}

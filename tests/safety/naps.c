/* SPDX-License-Identifier: MIT */
/*
 * naps: short sleeps in system calls, in one way after the other, of each of which it is
 * known how it must end when nobody looks. A library for naps.lua.
 *
 * What ends a nap is a limit in time, or a process of the kind's own, the feeder,
 * which is told when one begins and goes on in small steps. A stop makes nothing worse of
 * most kinds, or what it does can be undone. Of those that are called fragile, it may be that
 * what has been done of a call cannot be done again, or ljspy does not know better.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#define SYS_FUTEX_WAIT_2 455 /* futex_wait(2) */

enum {
	LIMIT_NS = 1000 * 1000,
	/* Of sockets; the kernel counts it in ticks, and takes a begun one for a whole one. */
	SOCKET_LIMIT_US = 12 * 1000,
	STEP_US = 150, /* of the feeder */
	SMALL = 64,    /* bytes */
	LARGE = 256 << 10,
	HUGE_FILE = 4 << 20,
	MESSAGES = 4,
};

enum end {
	END_RIGHT,
	END_INTERRUPTED, /* EINTR */
	END_WRONG,
	END_EARLY,
};

struct kind {
	const char *name;
	bool fragile;
	bool (*prepare)(struct kind *kind); /* false: this kernel does not have the call */
	enum end (*nap)(struct kind *kind);
	void (*feed)(struct kind *kind); /* in the feeder, once for each nap; NULL if there is none */
	int variant;

	int fd, far; /* what is waited for, and its other end */
	int third;
	int go[2], done[2];   /* pipes to the feeder and from it */
	volatile int *shared; /* memory */
	void *memory;
};

static _Alignas(4096) char buffer[HUGE_FILE];
static char last_words[256]; /* of the last wrong end */

static void must(bool good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void step(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = STEP_US * 1000 }, NULL);
}

static enum end judge(const struct kind *kind, long result, long wanted, int wanted_errno)
{
	int error = errno;

	if (result == wanted && (wanted >= 0 || error == wanted_errno))
		return END_RIGHT;
	if (result == -1 && error == EINTR)
		return END_INTERRUPTED;
	snprintf(last_words, sizeof(last_words), "%s: %ld, not %ld%s%s", kind->name, result, wanted,
		 result < 0 ? ": " : "", result < 0 ? strerror(error) : "");
	return END_WRONG;
}

/* The same of a call that lasts LIMIT_NS at least. */
static enum end judge_limited(const struct kind *kind, uint64_t begin, long result, long wanted,
			      int wanted_errno)
{
	enum end end = judge(kind, result, wanted, wanted_errno);

	return end == END_RIGHT && now_ns() - begin < LIMIT_NS ? END_EARLY : end;
}

static struct timespec at_limit(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	time.tv_nsec += LIMIT_NS;
	if (time.tv_nsec >= 1000000000) {
		time.tv_sec++;
		time.tv_nsec -= 1000000000;
	}
	return time;
}

static void limit_socket(int fd)
{
	struct timeval time = { .tv_usec = SOCKET_LIMIT_US };

	must(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)) == 0 &&
		     setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time)) == 0,
	     "limit");
}

static int temporary_file(const char *directory)
{
	int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	must(fd >= 0, directory);
	return fd;
}

/*---- Feeders ----*/

static void start_feeder(struct kind *kind)
{
	pid_t parent = getpid(), child;
	char byte;

	if (!kind->feed)
		return;
	must(pipe2(kind->go, O_CLOEXEC) == 0 && pipe2(kind->done, O_CLOEXEC) == 0, "pipe");
	child = fork();
	must(child >= 0, "fork");
	if (child)
		return;
	signal(SIGALRM, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	while (read(kind->go[0], &byte, 1) == 1)
		kind->feed(kind);
	_exit(0);
}

static void go(struct kind *kind)
{
	must(write(kind->go[1], "", 1) == 1, "go");
}

/* The feeder says that it is ready, or has done something. */
static void tell(struct kind *kind)
{
	must(write(kind->done[1], "", 1) == 1, "done");
}

static void await(struct kind *kind)
{
	char byte;

	must(read(kind->done[0], &byte, 1) == 1, "done");
}

/*---- Limits in time ----*/

enum limited {
	EPOLL_WAIT,
	EPOLL_PWAIT,
	EPOLL_PWAIT2,
	POLL,
	PPOLL,
	PPOLL_CONST,
#ifdef SYS_select
	SELECT,
	SELECT_CONST,
#endif
	PSELECT,
	NANOSLEEP,
	CLOCK_NANOSLEEP,
	CLOCK_NANOSLEEP_ABSOLUTE,
	SIGTIMEDWAIT,
	SEMTIMEDOP,
	FUTEX,
	FUTEX_BITSET,
	FUTEX_WAITV,
	FUTEX_2,
	MQ_RECEIVE,
	MQ_SEND,
	IO_GETEVENTS,
	IO_PGETEVENTS,
};

static bool prepare_limited(struct kind *kind)
{
	struct mq_attr attributes = { .mq_maxmsg = 1, .mq_msgsize = SMALL };
	char name[32];
	aio_context_t context = 0;

	kind->shared = calloc(1, sizeof(*kind->shared));
	switch (kind->variant) {
	case EPOLL_WAIT:
	case EPOLL_PWAIT:
	case EPOLL_PWAIT2: kind->fd = epoll_create1(EPOLL_CLOEXEC); break;
	case SEMTIMEDOP: kind->fd = semget(IPC_PRIVATE, 1, 0600); break;
	case MQ_RECEIVE:
	case MQ_SEND:
		snprintf(name, sizeof(name), "/naps-%d-%d", (int)getpid(), kind->variant);
		kind->fd = mq_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600, &attributes);
		if (kind->fd < 0)
			return false;
		mq_unlink(name);
		if (kind->variant == MQ_SEND)
			must(mq_send(kind->fd, "", 1, 0) == 0, "mq_send");
		break;
	case IO_GETEVENTS:
	case IO_PGETEVENTS:
		if (syscall(SYS_io_setup, 4, &context))
			return false;
		kind->memory = (void *)context;
		break;
	case FUTEX_WAITV:
	case FUTEX_2:
		return syscall(kind->variant == FUTEX_2 ? SYS_FUTEX_WAIT_2 : SYS_futex_waitv, NULL, 0, 0, 0,
			       0, 0) == -1 &&
		       errno != ENOSYS;
	default: break;
	}
	must(kind->fd >= 0, kind->name);
	return true;
}

static long nap_in(struct kind *kind)
{
	static const struct timespec time = { .tv_nsec = LIMIT_NS }; /* not to be written to */
	static const struct timeval timeval = { .tv_usec = LIMIT_NS / 1000 };
	struct timeval left = timeval;
	struct timespec rest = time, end = at_limit(CLOCK_MONOTONIC), real_end = at_limit(CLOCK_REALTIME);
	struct epoll_event event;
	struct io_event io[1];
	struct sembuf down = { .sem_op = -1 };
	struct futex_waitv waiter = { .uaddr = (uintptr_t)kind->shared, .flags = FUTEX_32 };
	sigset_t set;
	char message[SMALL];

	sigemptyset(&set);
	switch ((enum limited)kind->variant) {
	case EPOLL_WAIT: return epoll_wait(kind->fd, &event, 1, LIMIT_NS / 1000000);
	case EPOLL_PWAIT: return epoll_pwait(kind->fd, &event, 1, LIMIT_NS / 1000000, &set);
	case EPOLL_PWAIT2: return syscall(SYS_epoll_pwait2, kind->fd, &event, 1, &time, NULL, 0);
	case POLL: return poll(NULL, 0, LIMIT_NS / 1000000);
	case PPOLL: return syscall(SYS_ppoll, NULL, 0, &rest, NULL, 0);
	case PPOLL_CONST: return syscall(SYS_ppoll, NULL, 0, &time, NULL, 0);
#ifdef SYS_select /* not on arm64 */
	case SELECT: return syscall(SYS_select, 0, NULL, NULL, NULL, &left);
	case SELECT_CONST: return syscall(SYS_select, 0, NULL, NULL, NULL, &timeval);
#endif
	case PSELECT: return syscall(SYS_pselect6, 0, NULL, NULL, NULL, &time, NULL);
	case NANOSLEEP: return syscall(SYS_nanosleep, &time, NULL);
	case CLOCK_NANOSLEEP: return syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, &rest);
	case CLOCK_NANOSLEEP_ABSOLUTE:
		return syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
	case SIGTIMEDWAIT: sigaddset(&set, SIGUSR2); return sigtimedwait(&set, NULL, &time);
	case SEMTIMEDOP: return semtimedop(kind->fd, &down, 1, &time);
	case FUTEX: return syscall(SYS_futex, kind->shared, FUTEX_WAIT, 0, &time, NULL, 0);
	case FUTEX_BITSET: return syscall(SYS_futex, kind->shared, FUTEX_WAIT_BITSET, 0, &end, NULL, 1);
	case FUTEX_WAITV: return syscall(SYS_futex_waitv, &waiter, 1, 0, &end, CLOCK_MONOTONIC);
	case FUTEX_2:
		return syscall(SYS_FUTEX_WAIT_2, kind->shared, 0L, ~0u, FUTEX_32, &end, CLOCK_MONOTONIC);
	case MQ_RECEIVE: return mq_timedreceive(kind->fd, message, sizeof(message), NULL, &real_end);
	case MQ_SEND: return mq_timedsend(kind->fd, "", 1, 0, &real_end);
	case IO_GETEVENTS: return syscall(SYS_io_getevents, kind->memory, 1L, 1L, io, &time);
	case IO_PGETEVENTS: return syscall(SYS_io_pgetevents, kind->memory, 1L, 1L, io, &time, NULL);
	}
	return -1;
}

static enum end nap_limited(struct kind *kind)
{
	uint64_t begin = now_ns();
	long result = nap_in(kind);

	switch ((enum limited)kind->variant) {
	case SIGTIMEDWAIT:
	case SEMTIMEDOP: return judge_limited(kind, begin, result, -1, EAGAIN);
	case FUTEX:
	case FUTEX_BITSET:
	case FUTEX_WAITV:
	case FUTEX_2: return judge_limited(kind, begin, result, -1, ETIMEDOUT);
	case MQ_RECEIVE:
	case MQ_SEND: /* by a clock that is set now and then */ return judge(kind, result, -1, ETIMEDOUT);
	default: return judge_limited(kind, begin, result, 0, 0);
	}
}

/*---- Sockets with a limit ----*/

enum socket_call {
	SOCKET_READ,
	SOCKET_READV,
	SOCKET_PREADV2,
	SOCKET_RECV,
	SOCKET_RECVMSG,
	SOCKET_RECVMMSG,
	SOCKET_SPLICE_FROM,
	SOCKET_ACCEPT,
	SOCKET_WRITE,
	SOCKET_WRITEV,
	SOCKET_PWRITEV2,
	SOCKET_SEND,
	SOCKET_SENDMSG,
	SOCKET_SENDMMSG,
	SOCKET_SPLICE_TO,
	SOCKET_SENDFILE,
	SOCKET_CONNECT_UNIX,
};

static int listening(int domain, struct sockaddr_storage *address, socklen_t *length, int backlog)
{
	int fd = socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*address = (struct sockaddr_storage){ .ss_family = (sa_family_t)domain };
	*length = domain == AF_UNIX ? sizeof(sa_family_t) : sizeof(struct sockaddr_in);
	if (domain == AF_INET)
		((struct sockaddr_in *)address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	must(fd >= 0 && bind(fd, (struct sockaddr *)address, *length) == 0 && listen(fd, backlog) == 0,
	     "listen");
	*length = sizeof(*address);
	must(getsockname(fd, (struct sockaddr *)address, length) == 0, "getsockname");
	return fd;
}

static void tcp_pair(int pair[2])
{
	struct sockaddr_storage address;
	socklen_t length;
	int fd = listening(AF_INET, &address, &length, 1);

	pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(connect(pair[0], (struct sockaddr *)&address, length) == 0, "connect");
	pair[1] = accept(fd, NULL, NULL);
	must(pair[1] >= 0, "accept");
	close(fd);
}

/* So many that one more does not find room. */
static void fill_backlog(struct kind *kind, int domain, struct sockaddr_storage *address, socklen_t *length)
{
	kind->far = listening(domain, address, length, 0);
	for (int i = 0; i < 4; i++) {
		int fd = socket(domain, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		must(fd >= 0, "socket");
		connect(fd, (struct sockaddr *)address, *length);
	}
}

static bool prepare_socket(struct kind *kind)
{
	bool sends = kind->variant > SOCKET_ACCEPT;
	struct sockaddr_storage address;
	socklen_t length;
	int pair[2];

	if (kind->variant == SOCKET_ACCEPT) {
		kind->fd = listening(AF_INET, &address, &length, 1);
		limit_socket(kind->fd);
		return true;
	}
	if (kind->variant == SOCKET_CONNECT_UNIX) {
		struct sockaddr_storage *kept = malloc(sizeof(*kept));

		fill_backlog(kind, AF_UNIX, kept, &length);
		kind->third = (int)length;
		kind->memory = kept;
		return true;
	}
	must(socketpair(AF_UNIX, (sends ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC, 0, pair) == 0,
	     "socketpair");
	if (kind->variant == SOCKET_SPLICE_FROM)
		tcp_pair(pair);
	kind->fd = pair[0];
	limit_socket(kind->fd);
	if (sends) {
		/* Up to the last byte. */
		for (size_t size = sizeof(buffer); size; size /= 2)
			while (send(kind->fd, buffer, size, MSG_DONTWAIT) > 0)
				;
	}
	if (kind->variant == SOCKET_SPLICE_TO || kind->variant == SOCKET_SPLICE_FROM) {
		must(pipe2(pair, O_CLOEXEC) == 0, "pipe");
		must(write(pair[1], "x", 1) == 1, "write");
		kind->third = pair[kind->variant == SOCKET_SPLICE_FROM];
	}
	if (kind->variant == SOCKET_SENDFILE) {
		kind->third = temporary_file("/tmp");
		must(write(kind->third, buffer, SMALL) == SMALL, "write");
	}
	return true;
}

static long call_socket(struct kind *kind)
{
	struct iovec io = { buffer, 1 };
	struct mmsghdr messages[1] = { { .msg_hdr = { .msg_iov = &io, .msg_iovlen = 1 } } };
	off_t offset = 0;
	long result;
	int fd, error;

	switch ((enum socket_call)kind->variant) {
	case SOCKET_READ: return read(kind->fd, buffer, 1);
	case SOCKET_READV: return readv(kind->fd, &io, 1);
	case SOCKET_PREADV2: return preadv2(kind->fd, &io, 1, -1, 0);
	case SOCKET_RECV: return recv(kind->fd, buffer, 1, 0);
	case SOCKET_RECVMSG: return recvmsg(kind->fd, &messages[0].msg_hdr, 0);
	case SOCKET_RECVMMSG: return recvmmsg(kind->fd, messages, 1, 0, NULL);
	case SOCKET_SPLICE_FROM: return splice(kind->fd, NULL, kind->third, NULL, SMALL, 0);
	case SOCKET_ACCEPT: return accept(kind->fd, NULL, NULL);
	case SOCKET_WRITE: return write(kind->fd, buffer, 1);
	case SOCKET_WRITEV: return writev(kind->fd, &io, 1);
	case SOCKET_PWRITEV2: return pwritev2(kind->fd, &io, 1, -1, 0);
	case SOCKET_SEND: return send(kind->fd, buffer, 1, 0);
	case SOCKET_SENDMSG: return sendmsg(kind->fd, &messages[0].msg_hdr, 0);
	case SOCKET_SENDMMSG: return sendmmsg(kind->fd, messages, 1, 0);
	case SOCKET_SPLICE_TO: return splice(kind->third, NULL, kind->fd, NULL, SMALL, 0);
	case SOCKET_SENDFILE: return sendfile(kind->fd, kind->third, &offset, SMALL);
	case SOCKET_CONNECT_UNIX:
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		limit_socket(fd);
		result = connect(fd, kind->memory, (socklen_t)kind->third);
		error = errno;
		close(fd);
		errno = error;
		return result;
	}
	return -1;
}

static enum end nap_socket(struct kind *kind)
{
	return judge(kind, call_socket(kind), -1, EAGAIN);
}

/* The limit of a connection that does not come about. */
static bool prepare_connect(struct kind *kind)
{
	struct sockaddr_storage *kept = malloc(sizeof(*kept));
	socklen_t length;

	fill_backlog(kind, AF_INET, kept, &length);
	kind->third = (int)length;
	kind->memory = kept;
	return true;
}

static enum end nap_connect(struct kind *kind)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), error;
	long result;

	limit_socket(fd);
	result = connect(fd, kind->memory, (socklen_t)kind->third);
	error = errno;
	close(fd);
	errno = error;
	return judge(kind, result, -1, EINPROGRESS);
}

/*---- Ended by the feeder, nothing half done ----*/

enum fed {
	READ_PIPE,
	READ_SOCKET,
	READ_EVENTFD,
	READ_INOTIFY,
	READ_SIGNALFD,
	WRITE_PIPE,
	POLL_FED,
	EPOLL_FED,
	MSGRCV,
	MSGSND,
	SEMOP,
	FLOCK,
	SETLKW,
	OFD_SETLKW,
	OPEN_FIFO,
	FUTEX_FED,
	TEE,
	VMSPLICE,
	ACCEPT,
	SPLICE_PIPE,
};

struct message {
	long type;
	char text[SMALL];
};

static void name_of(const struct kind *kind, char name[static 64])
{
	snprintf(name, 64, "/tmp/naps-%d-%d", kind->third, kind->variant);
}

static bool prepare_fed(struct kind *kind)
{
	struct sockaddr_storage address;
	socklen_t length;
	int pair[2] = { -1, -1 };
	struct message message = { .type = 1 };
	char name[64];

	kind->shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	kind->third = getpid();
	name_of(kind, name);
	switch ((enum fed)kind->variant) {
	case READ_PIPE:
	case WRITE_PIPE:
	case TEE:
	case VMSPLICE:
	case SPLICE_PIPE: must(pipe2(pair, O_CLOEXEC) == 0, "pipe"); break;
	case READ_SOCKET:
	case POLL_FED:
		must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "socketpair");
		break;
	case EPOLL_FED:
		must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "socketpair");
		kind->third = pair[0];
		pair[0] = epoll_create1(EPOLL_CLOEXEC);
		must(epoll_ctl(pair[0], EPOLL_CTL_ADD, kind->third,
			       &(struct epoll_event){ .events = EPOLLIN }) == 0,
		     "epoll_ctl");
		break;
	case READ_EVENTFD: pair[0] = pair[1] = eventfd(0, EFD_CLOEXEC); break;
	case READ_INOTIFY:
		pair[0] = inotify_init1(IN_CLOEXEC);
		pair[1] = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		must(inotify_add_watch(pair[0], name, IN_MODIFY) >= 0, name);
		unlink(name);
		break;
	case READ_SIGNALFD: {
		sigset_t set;

		sigemptyset(&set);
		sigaddset(&set, SIGRTMAX);
		sigprocmask(SIG_BLOCK, &set, NULL);
		pair[0] = pair[1] = signalfd(-1, &set, SFD_CLOEXEC);
		break;
	}
	case MSGSND:
	case MSGRCV:
		pair[0] = pair[1] = msgget(IPC_PRIVATE, 0600);
		while (kind->variant == MSGSND && msgsnd(pair[0], &message, SMALL, IPC_NOWAIT) == 0)
			;
		break;
	case SEMOP: pair[0] = pair[1] = semget(IPC_PRIVATE, 1, 0600); break;
	case FLOCK:
	case SETLKW:
	case OFD_SETLKW:
		pair[0] = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		pair[1] = open(name, O_RDWR | O_CLOEXEC);
		unlink(name);
		break;
	case OPEN_FIFO:
		unlink(name);
		must(mkfifo(name, 0600) == 0, name);
		pair[0] = 0;
		break;
	case ACCEPT:
		kind->memory = calloc(1, sizeof(address));
		pair[0] = listening(AF_INET, kind->memory, &length, 8);
		break;
	case FUTEX_FED: pair[0] = 0; break;
	}
	kind->fd = pair[0];
	kind->far = pair[1];
	must(kind->fd >= 0, kind->name);
	if (kind->variant == WRITE_PIPE || kind->variant == VMSPLICE) {
		kind->fd = pair[1];
		kind->far = pair[0];
		fcntl(kind->far, F_SETPIPE_SZ, 4096);
		must(write(kind->fd, buffer, 4096) == 4096, "write");
	}
	if (kind->variant == TEE || kind->variant == SPLICE_PIPE) {
		int other[2];

		must(pipe2(other, O_CLOEXEC) == 0, "pipe");
		kind->third = other[1];
		kind->memory = (void *)(intptr_t)other[0];
	}
	return true;
}

static void set_lock(const struct kind *kind, int fd, short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_len = 1 };
	int command = kind->variant == OFD_SETLKW ? F_OFD_SETLK : F_SETLK;

	if (kind->variant == FLOCK)
		must(flock(fd, type == F_UNLCK ? LOCK_UN : LOCK_EX) == 0, "flock");
	else
		must(fcntl(fd, command, &lock) == 0, "lock");
}

static void feed_once(struct kind *kind)
{
	struct sembuf up = { .sem_op = 1 };
	struct message message = { .type = 1 };
	const uint64_t one = 1;
	char name[64], bytes[4096];
	int fd;

	if (kind->variant == FLOCK || kind->variant == SETLKW || kind->variant == OFD_SETLKW) {
		set_lock(kind, kind->far, F_WRLCK);
		tell(kind);
	}
	step();
	step();
	switch ((enum fed)kind->variant) {
	case READ_PIPE:
	case READ_SOCKET:
	case READ_INOTIFY:
	case POLL_FED:
	case EPOLL_FED:
	case TEE:
	case SPLICE_PIPE: must(write(kind->far, bytes, SMALL) == SMALL, "feed"); break;
	case READ_EVENTFD: must(write(kind->far, &one, sizeof(one)) == sizeof(one), "feed"); break;
	case READ_SIGNALFD: kill(getppid(), SIGRTMAX); break;
	case WRITE_PIPE:
	case VMSPLICE: must(read(kind->far, bytes, sizeof(bytes)) > 0, "feed"); break;
	case MSGRCV: must(msgsnd(kind->fd, &message, SMALL, 0) == 0, "msgsnd"); break;
	case MSGSND: must(msgrcv(kind->fd, &message, SMALL, 0, 0) >= 0, "msgrcv"); break;
	case SEMOP: must(semop(kind->fd, &up, 1) == 0, "semop"); break;
	case FLOCK:
	case SETLKW:
	case OFD_SETLKW: set_lock(kind, kind->far, F_UNLCK); break;
	case OPEN_FIFO:
		name_of(kind, name);
		fd = open(name, O_WRONLY | O_CLOEXEC);
		close(fd);
		break;
	case FUTEX_FED:
		*kind->shared = 1;
		syscall(SYS_futex, kind->shared, FUTEX_WAKE, 1, NULL, NULL, 0);
		break;
	case ACCEPT:
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		connect(fd, kind->memory, sizeof(struct sockaddr_in));
		close(fd);
		break;
	}
}

static long close_result(long fd)
{
	if (fd < 0)
		return fd;
	close((int)fd);
	return 0;
}

static enum end nap_fed(struct kind *kind)
{
	struct signalfd_siginfo info;
	struct inotify_event event;
	struct epoll_event ready;
	struct pollfd polled = { .fd = kind->fd, .events = POLLIN };
	struct sembuf down = { .sem_op = -1 };
	struct message message = { .type = 1 };
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	struct iovec io = { buffer, 4096 };
	uint64_t count;
	enum end end;
	long result;
	char name[64];

	*kind->shared = 0;
	go(kind);
	switch ((enum fed)kind->variant) {
	case READ_PIPE:
	case READ_SOCKET: return judge(kind, read(kind->fd, buffer, sizeof(buffer)), SMALL, 0);
	case READ_EVENTFD: return judge(kind, read(kind->fd, &count, sizeof(count)), sizeof(count), 0);
	case READ_INOTIFY: return judge(kind, read(kind->fd, &event, sizeof(event)), sizeof(event), 0);
	case READ_SIGNALFD: return judge(kind, read(kind->fd, &info, sizeof(info)), sizeof(info), 0);
	case WRITE_PIPE: return judge(kind, write(kind->fd, buffer, 4096), 4096, 0);
	case VMSPLICE: return judge(kind, vmsplice(kind->fd, &io, 1, 0), 4096, 0);
	case POLL_FED:
		result = poll(&polled, 1, -1);
		end = judge(kind, result, 1, 0);
		must(read(kind->fd, buffer, SMALL) == SMALL, "read");
		return end;
	case EPOLL_FED:
		result = epoll_wait(kind->fd, &ready, 1, -1);
		end = judge(kind, result, 1, 0);
		must(read(kind->third, buffer, SMALL) == SMALL, "read");
		return end;
	case MSGRCV: return judge(kind, msgrcv(kind->fd, &message, SMALL, 0, 0), SMALL, 0);
	case MSGSND: return judge(kind, msgsnd(kind->fd, &message, SMALL, 0), 0, 0);
	case SEMOP: return judge(kind, semop(kind->fd, &down, 1), 0, 0);
	case FLOCK:
		await(kind);
		result = flock(kind->fd, LOCK_EX);
		flock(kind->fd, LOCK_UN);
		return judge(kind, result, 0, 0);
	case SETLKW:
	case OFD_SETLKW:
		await(kind);
		result = fcntl(kind->fd, kind->variant == SETLKW ? F_SETLKW : F_OFD_SETLKW, &lock);
		end = judge(kind, result, 0, 0);
		set_lock(kind, kind->fd, F_UNLCK);
		return end;
	case OPEN_FIFO:
		name_of(kind, name);
		return judge(kind, close_result(open(name, O_RDONLY | O_CLOEXEC)), 0, 0);
	case FUTEX_FED:
		result = syscall(SYS_futex, kind->shared, FUTEX_WAIT, 0, NULL, NULL, 0);
		if (result == -1 && errno == EAGAIN && *kind->shared) /* it came first */
			result = 0;
		end = judge(kind, result, 0, 0);
		while (!*kind->shared) /* woken for no reason, which a futex may be */
			sched_yield();
		return end;
	case TEE:
		end = judge(kind, tee(kind->fd, kind->third, SMALL, 0), SMALL, 0);
		must(read(kind->fd, buffer, SMALL) == SMALL, "read");
		must(end || read((int)(intptr_t)kind->memory, buffer, SMALL) == SMALL, "read");
		return end;
	case SPLICE_PIPE:
		end = judge(kind, splice(kind->fd, NULL, kind->third, NULL, SMALL, 0), SMALL, 0);
		must(end || read((int)(intptr_t)kind->memory, buffer, SMALL) == SMALL, "read");
		return end;
	case ACCEPT: return judge(kind, close_result(accept(kind->fd, NULL, NULL)), 0, 0);
	}
	return END_WRONG;
}

/*---- Children, signals, timers ----*/

enum other { WAIT4, WAITID, TIMERFD, PAUSE, SIGSUSPEND };

static volatile sig_atomic_t alarms;

static void count_alarm(int signal)
{
	(void)signal;
	alarms++;
}

static bool prepare_other(struct kind *kind)
{
	if (kind->variant == TIMERFD)
		kind->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	return true;
}

static enum end nap_child(struct kind *kind)
{
	siginfo_t info;
	pid_t child = fork();
	int status;

	if (child == 0) {
		step();
		_exit(0);
	}
	if (kind->variant == WAIT4)
		return judge(kind, waitpid(child, &status, 0) == child ? 0 : -1, 0, 0);
	return judge(kind, waitid(P_PID, (id_t)child, &info, WEXITED), 0, 0);
}

static enum end nap_alarm(struct kind *kind)
{
	static const struct itimerval some = { { 0, LIMIT_NS / 1000 }, { 0, LIMIT_NS / 1000 } }, none;
	struct sigaction action = { .sa_handler = count_alarm }, old;
	enum end end;
	sigset_t set;
	long result;

	sigaction(SIGVTALRM, &action, &old);
	sigaction(SIGALRM, &action, &old);
	sigemptyset(&set);
	alarms = 0;
	setitimer(ITIMER_REAL, &some, NULL);
	result = kind->variant == PAUSE ? pause() : sigsuspend(&set);
	end = result == -1 && errno == EINTR && alarms ? END_RIGHT : END_WRONG;
	setitimer(ITIMER_REAL, &none, NULL);
	sigaction(SIGALRM, &old, NULL);
	return end;
}

static enum end nap_other(struct kind *kind)
{
	struct itimerspec in = { .it_value = { .tv_nsec = LIMIT_NS } };
	uint64_t count, begin = now_ns();

	switch ((enum other)kind->variant) {
	case WAIT4:
	case WAITID: return nap_child(kind);
	case TIMERFD:
		timerfd_settime(kind->fd, 0, &in, NULL);
		return judge_limited(kind, begin, read(kind->fd, &count, sizeof(count)), sizeof(count), 0);
	case PAUSE:
	case SIGSUSPEND: return nap_alarm(kind);
	}
	return END_WRONG;
}

/*---- Long ones that do not sleep ----*/

enum busy { GETRANDOM, READ_ZERO, READ_URANDOM, FALLOCATE, FSYNC };

static bool prepare_busy(struct kind *kind)
{
	if (kind->variant == READ_ZERO || kind->variant == READ_URANDOM)
		kind->fd = open(kind->variant == READ_ZERO ? "/dev/zero" : "/dev/urandom",
				O_RDONLY | O_CLOEXEC);
	if (kind->variant == FALLOCATE || kind->variant == FSYNC)
		kind->fd = temporary_file(kind->variant == FSYNC ? "/tmp" : "/dev/shm");
	return true;
}

static enum end nap_busy(struct kind *kind)
{
	enum end end;

	switch ((enum busy)kind->variant) {
	case GETRANDOM: return judge(kind, syscall(SYS_getrandom, buffer, (size_t)LARGE, 0), LARGE, 0);
	case READ_ZERO: return judge(kind, read(kind->fd, buffer, sizeof(buffer)), sizeof(buffer), 0);
	case READ_URANDOM: return judge(kind, read(kind->fd, buffer, LARGE), LARGE, 0);
	case FALLOCATE:
		end = judge(kind, fallocate(kind->fd, 0, 0, LARGE), 0, 0);
		must(ftruncate(kind->fd, 0) == 0, "ftruncate");
		return end;
	case FSYNC:
		must(pwrite(kind->fd, buffer, SMALL, 0) == SMALL, "pwrite");
		return judge(kind, fsync(kind->fd), 0, 0);
	}
	return END_WRONG;
}

/*---- Fragile ones ----*/

enum fragile {
	RECV_ALL,
	RECVMSG_ALL,
	RECV_ALL_TCP,
	RECV_ALL_LIMITED,
	RECVMMSG_MANY,
	TTY_READ,
	PIPE_WRITE,
	PIPE_WRITEV,
	UNIX_WRITE,
	TCP_SEND,
	TCP_SENDMSG,
	TCP_PWRITEV2,
	UNIX_SENDMMSG,
	TTY_WRITE,
	SENDFILE_UNIX,
	SENDFILE_TCP,
	SPLICE_TCP,
	IO_GETEVENTS_MANY,
	LINGER,
};

static bool takes(int variant)
{
	return variant <= TTY_READ;
}

static bool is_tcp(int variant)
{
	return variant == RECV_ALL_TCP || variant == TCP_SEND || variant == TCP_SENDMSG ||
	       variant == TCP_PWRITEV2 || variant == SENDFILE_TCP || variant == SPLICE_TCP;
}

static void open_terminal(int pair[2])
{
	struct termios raw;

	must(openpty(&pair[1], &pair[0], NULL, NULL, NULL) == 0, "openpty");
	tcgetattr(pair[0], &raw);
	cfmakeraw(&raw);
	raw.c_cc[VMIN] = SMALL;
	tcsetattr(pair[0], TCSANOW, &raw);
}

static bool prepare_fragile(struct kind *kind)
{
	int pair[2], some[2], size = is_tcp(kind->variant) ? 64 << 10 : 4096;
	aio_context_t context = 0;

	kind->shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (kind->variant == IO_GETEVENTS_MANY) {
		must(pipe2(pair, O_CLOEXEC) == 0 && pipe2(some, O_CLOEXEC) == 0, "pipe");
		kind->fd = pair[0];
		kind->far = pair[1];
		kind->third = some[0];
		kind->shared[1] = some[1];
		if (syscall(SYS_io_setup, 4, &context))
			return false;
		kind->memory = (void *)context;
		return true;
	}
	if (kind->variant == LINGER)
		return true;
	if (kind->variant == TTY_READ || kind->variant == TTY_WRITE)
		open_terminal(pair);
	else if (kind->variant == PIPE_WRITE || kind->variant == PIPE_WRITEV)
		must(pipe2(some, O_CLOEXEC) == 0, "pipe"), pair[0] = some[1], pair[1] = some[0];
	else if (is_tcp(kind->variant))
		tcp_pair(pair);
	else
		must(socketpair(AF_UNIX,
				(kind->variant == RECVMMSG_MANY ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0,
				pair) == 0,
		     "socketpair");
	if (!takes(kind->variant) && (is_tcp(kind->variant) || kind->variant == UNIX_WRITE ||
				      kind->variant == UNIX_SENDMMSG || kind->variant == SENDFILE_UNIX)) {
		setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
		setsockopt(pair[1], SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	}
	kind->fd = pair[0];
	kind->far = pair[1];
	if (kind->variant == RECV_ALL_LIMITED) {
		struct timeval time = { .tv_sec = 1 };

		must(setsockopt(kind->fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)) == 0, "limit");
	}
	if (kind->variant == SENDFILE_UNIX || kind->variant == SENDFILE_TCP) {
		kind->third = temporary_file("/tmp");
		must(write(kind->third, buffer, 1 << 20) == 1 << 20, "write");
	}
	if (kind->variant == SPLICE_TCP) {
		must(pipe2(some, O_CLOEXEC) == 0, "pipe");
		must(fcntl(some[0], F_SETPIPE_SZ, 1 << 20) == 1 << 20, "pipe");
		kind->third = some[0];
		kind->shared[1] = some[1];
	}
	return true;
}

static size_t amount(int variant)
{
	switch ((enum fragile)variant) {
	case RECV_ALL:
	case RECVMSG_ALL:
	case RECV_ALL_TCP:
	case RECV_ALL_LIMITED:
	case RECVMMSG_MANY:
	case TTY_READ: return SMALL;
	case TTY_WRITE: return 16 << 10;
	case UNIX_SENDMMSG: return MESSAGES * 4096;
	case SPLICE_TCP: return 1 << 20;
	case UNIX_WRITE:
	case SENDFILE_UNIX: return 64 << 10;
	default: return is_tcp(variant) ? 1 << 20 : LARGE;
	}
}

/* The one who naps says that it is about to. */
static void await_start(struct kind *kind)
{
	char byte;

	must(read(kind->go[0], &byte, 1) == 1, "go");
}

static void feed_lingering(struct kind *kind)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				       .sin_port = (in_port_t)kind->shared[1] };
	int size = 16 << 10;

	/* Less than what the other side has to send: so not all of it arrives before some is taken. */
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	must(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0, "connect");
	await_start(kind);
	step();
	step();
	kind->shared[0] = 1;
	while (read(fd, buffer, sizeof(buffer)) > 0)
		;
	close(fd);
	tell(kind);
}

/* Give, or take, in small steps. */
static void feed_fragile(struct kind *kind)
{
	size_t left = amount(kind->variant);
	ssize_t count;

	if (kind->variant == LINGER) {
		feed_lingering(kind);
		return;
	}
	if (kind->variant == IO_GETEVENTS_MANY) {
		step();
		must(write(kind->far, "", 1) == 1, "write");
		step();
		must(write(kind->shared[1], "", 1) == 1, "write");
		return;
	}
	while (left) {
		step();
		if (takes(kind->variant)) {
			count = write(kind->far, buffer, SMALL / MESSAGES);
		} else {
			count = read(kind->far, buffer, left);
			if (kind->variant == UNIX_SENDMMSG)
				step();
		}
		must(count > 0, "feed");
		left -= (size_t)count;
	}
	tell(kind);
}

static long io_get_many(struct kind *kind)
{
	struct iocb blocks[2] = {
		{ .aio_fildes = (uint32_t)kind->fd, .aio_lio_opcode = IOCB_CMD_POLL, .aio_buf = POLLIN },
		{ .aio_fildes = (uint32_t)kind->third, .aio_lio_opcode = IOCB_CMD_POLL, .aio_buf = POLLIN },
	}, *list[] = { &blocks[0], &blocks[1] };
	struct io_event events[2];
	long result;

	must(syscall(SYS_io_submit, kind->memory, 2L, list) == 2, "io_submit");
	go(kind);
	result = syscall(SYS_io_getevents, kind->memory, 2L, 2L, events, NULL);
	if (result == 1) /* so that the next one finds none */
		syscall(SYS_io_getevents, kind->memory, 1L, 1L, events, NULL);
	must(read(kind->fd, buffer, 1) == 1 && read(kind->third, buffer, 1) == 1, "read");
	return result;
}

/* close() is not to come back before the other side takes what it was sent. */
static enum end nap_linger(struct kind *kind)
{
	struct linger linger = { .l_onoff = 1, .l_linger = 1 };
	struct sockaddr_storage address;
	int fd, size = 64 << 10;
	socklen_t length;
	enum end end;

	fd = listening(AF_INET, &address, &length, 1);
	kind->shared[0] = 0;
	kind->shared[1] = ((struct sockaddr_in *)&address)->sin_port;
	go(kind);
	kind->fd = accept(fd, NULL, NULL);
	close(fd);
	setsockopt(kind->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	setsockopt(kind->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	while (send(kind->fd, buffer, LARGE, MSG_DONTWAIT) > 0)
		;
	go(kind);
	close(kind->fd);
	end = kind->shared[0] ? END_RIGHT : END_WRONG;
	if (end)
		snprintf(last_words, sizeof(last_words), "%s: over before anything was taken", kind->name);
	await(kind);
	return end;
}

static void drain(struct kind *kind, size_t left)
{
	while (left) {
		ssize_t count = takes(kind->variant) ? read(kind->fd, buffer, left)
						     : write(kind->fd, buffer, left);

		must(count > 0 || errno == EINTR || errno == EAGAIN, "the rest");
		left -= count > 0 ? (size_t)count : 0;
	}
}

static long bytes_of(const struct mmsghdr *messages, long count)
{
	long bytes = 0;

	while (count-- > 0)
		bytes += messages[count].msg_len;
	return bytes;
}

static long call_fragile(struct kind *kind, size_t size)
{
	struct iovec io[MESSAGES];
	struct mmsghdr messages[MESSAGES];
	struct msghdr whole = { .msg_iov = io, .msg_iovlen = MESSAGES };
	off_t offset = 0;
	long result;

	for (size_t i = 0; i < MESSAGES; i++) {
		io[i] = (struct iovec){ buffer + size / MESSAGES * i, size / MESSAGES };
		messages[i] = (struct mmsghdr){ .msg_hdr = { .msg_iov = &io[i], .msg_iovlen = 1 } };
	}
	switch ((enum fragile)kind->variant) {
	case RECV_ALL:
	case RECV_ALL_TCP:
	case RECV_ALL_LIMITED: return recv(kind->fd, buffer, size, MSG_WAITALL);
	case RECVMSG_ALL: return recvmsg(kind->fd, &whole, MSG_WAITALL);
	case RECVMMSG_MANY:
		result = recvmmsg(kind->fd, messages, MESSAGES, 0, NULL);
		return result > 0 ? bytes_of(messages, result) : result;
	case TTY_READ: return read(kind->fd, buffer, size);
	case PIPE_WRITE:
	case UNIX_WRITE:
	case TTY_WRITE: return write(kind->fd, buffer, size);
	case PIPE_WRITEV: return writev(kind->fd, io, MESSAGES);
	case TCP_SEND: return send(kind->fd, buffer, size, 0);
	case TCP_SENDMSG: return sendmsg(kind->fd, &whole, 0);
	case TCP_PWRITEV2: return pwritev2(kind->fd, io, MESSAGES, -1, 0);
	case UNIX_SENDMMSG:
		result = sendmmsg(kind->fd, messages, MESSAGES, 0);
		return result > 0 ? bytes_of(messages, result) : result;
	case SENDFILE_UNIX:
	case SENDFILE_TCP: return sendfile(kind->fd, kind->third, &offset, size);
	case SPLICE_TCP:
		must(write(kind->shared[1], buffer, size) == (ssize_t)size, "write");
		result = splice(kind->third, NULL, kind->fd, NULL, size, 0);
		if (result >= 0 && result < (long)size)
			must(read(kind->third, buffer, size - (size_t)result) == (long)size - result, "read");
		return result;
	case IO_GETEVENTS_MANY:
	case LINGER: break;
	}
	return -1;
}

static enum end nap_fragile(struct kind *kind)
{
	size_t size = amount(kind->variant);
	enum end end;
	long result;

	if (kind->variant == LINGER)
		return nap_linger(kind);
	if (kind->variant == IO_GETEVENTS_MANY)
		return judge(kind, io_get_many(kind), 2, 0);
	go(kind);
	result = call_fragile(kind, size);
	end = judge(kind, result, (long)size, 0);
	if (end == END_INTERRUPTED)
		result = 0;
	drain(kind, size - (size_t)(result > 0 ? result : 0));
	await(kind);
	return end;
}

/*---- All ----*/

#define LIMITED(name, variant) \
	{ \
		name, false, prepare_limited, nap_limited, NULL, variant, .fd = 0 \
	}
#define SOCKET(name, fragile, variant) \
	{ \
		name, fragile, prepare_socket, nap_socket, NULL, variant, .fd = 0 \
	}
#define FED(name, variant) \
	{ \
		name, false, prepare_fed, nap_fed, feed_once, variant, .fd = 0 \
	}
#define OTHER(name, variant) \
	{ \
		name, false, prepare_other, nap_other, NULL, variant, .fd = 0 \
	}
#define BUSY(name, fragile, variant) \
	{ \
		name, fragile, prepare_busy, nap_busy, NULL, variant, .fd = 0 \
	}
#define FRAGILE(name, variant) \
	{ \
		name, true, prepare_fragile, nap_fragile, feed_fragile, variant, .fd = 0 \
	}

static struct kind kinds[] = {
	LIMITED("epoll_wait", EPOLL_WAIT),
	LIMITED("epoll_pwait", EPOLL_PWAIT),
	LIMITED("epoll_pwait2", EPOLL_PWAIT2),
	LIMITED("poll", POLL),
	LIMITED("ppoll", PPOLL),
	LIMITED("ppoll, limit not writable", PPOLL_CONST),
#ifdef SYS_select
	LIMITED("select", SELECT),
	LIMITED("select, limit not writable", SELECT_CONST),
#endif
	LIMITED("pselect6", PSELECT),
	LIMITED("nanosleep", NANOSLEEP),
	LIMITED("clock_nanosleep", CLOCK_NANOSLEEP),
	LIMITED("clock_nanosleep until", CLOCK_NANOSLEEP_ABSOLUTE),
	LIMITED("rt_sigtimedwait", SIGTIMEDWAIT),
	LIMITED("semtimedop", SEMTIMEDOP),
	LIMITED("futex wait", FUTEX),
	LIMITED("futex wait until", FUTEX_BITSET),
	LIMITED("futex_waitv", FUTEX_WAITV),
	LIMITED("futex_wait", FUTEX_2),
	LIMITED("mq_timedreceive", MQ_RECEIVE),
	LIMITED("mq_timedsend", MQ_SEND),
	LIMITED("io_getevents", IO_GETEVENTS),
	LIMITED("io_pgetevents", IO_PGETEVENTS),
	SOCKET("read, limited", false, SOCKET_READ),
	SOCKET("readv, limited", false, SOCKET_READV),
	SOCKET("preadv2, limited", false, SOCKET_PREADV2),
	SOCKET("recvfrom, limited", false, SOCKET_RECV),
	SOCKET("recvmsg, limited", false, SOCKET_RECVMSG),
	SOCKET("recvmmsg, limited", false, SOCKET_RECVMMSG),
	SOCKET("splice from a socket, limited", true, SOCKET_SPLICE_FROM),
	SOCKET("accept, limited", false, SOCKET_ACCEPT),
	SOCKET("write, limited", false, SOCKET_WRITE),
	SOCKET("writev, limited", true, SOCKET_WRITEV),
	SOCKET("pwritev2, limited", true, SOCKET_PWRITEV2),
	SOCKET("sendto, limited", false, SOCKET_SEND),
	SOCKET("sendmsg, limited", true, SOCKET_SENDMSG),
	SOCKET("sendmmsg, limited", true, SOCKET_SENDMMSG),
	SOCKET("splice to a socket, limited", true, SOCKET_SPLICE_TO),
	SOCKET("sendfile, limited", true, SOCKET_SENDFILE),
	SOCKET("connect to a path, limited", true, SOCKET_CONNECT_UNIX),
	FED("read of a pipe", READ_PIPE),
	FED("read of a socket", READ_SOCKET),
	FED("read of an eventfd", READ_EVENTFD),
	FED("read of inotify", READ_INOTIFY),
	FED("read of a signalfd", READ_SIGNALFD),
	FED("write of a page to a pipe", WRITE_PIPE),
	FED("poll without a limit", POLL_FED),
	FED("epoll_wait without a limit", EPOLL_FED),
	FED("msgrcv", MSGRCV),
	FED("msgsnd", MSGSND),
	FED("semop", SEMOP),
	FED("flock", FLOCK),
	FED("fcntl F_SETLKW", SETLKW),
	FED("fcntl F_OFD_SETLKW", OFD_SETLKW),
	FED("futex without a limit", FUTEX_FED),
	FED("accept", ACCEPT),
	OTHER("wait4", WAIT4),
	OTHER("waitid", WAITID),
	OTHER("read of a timerfd", TIMERFD),
	OTHER("pause", PAUSE),
	OTHER("rt_sigsuspend", SIGSUSPEND),
	BUSY("getrandom of much", true, GETRANDOM),
	BUSY("read of /dev/zero", true, READ_ZERO),
	BUSY("read of /dev/urandom", true, READ_URANDOM),
	BUSY("fallocate", true, FALLOCATE),
	BUSY("fsync", false, FSYNC),
	{ "open of a FIFO", true, prepare_fed, nap_fed, feed_once, OPEN_FIFO, .fd = 0 },
	{ "tee", true, prepare_fed, nap_fed, feed_once, TEE, .fd = 0 },
	{ "vmsplice", true, prepare_fed, nap_fed, feed_once, VMSPLICE, .fd = 0 },
	{ "splice from pipe to pipe", true, prepare_fed, nap_fed, feed_once, SPLICE_PIPE, .fd = 0 },
	{ "connect, limited", true, prepare_connect, nap_connect, NULL, 0, .fd = 0 },
	FRAGILE("recv MSG_WAITALL", RECV_ALL),
	FRAGILE("recvmsg MSG_WAITALL", RECVMSG_ALL),
	FRAGILE("recv MSG_WAITALL of TCP", RECV_ALL_TCP),
	FRAGILE("recv MSG_WAITALL, limited", RECV_ALL_LIMITED),
	FRAGILE("recvmmsg of several", RECVMMSG_MANY),
	FRAGILE("read of a terminal, VMIN", TTY_READ),
	FRAGILE("write of much to a pipe", PIPE_WRITE),
	FRAGILE("writev of much to a pipe", PIPE_WRITEV),
	FRAGILE("write of much to a socket", UNIX_WRITE),
	FRAGILE("send of much by TCP", TCP_SEND),
	FRAGILE("sendmsg of much by TCP", TCP_SENDMSG),
	FRAGILE("pwritev2 of much by TCP", TCP_PWRITEV2),
	FRAGILE("sendmmsg of several", UNIX_SENDMMSG),
	FRAGILE("write of much to a terminal", TTY_WRITE),
	FRAGILE("sendfile of much to a socket", SENDFILE_UNIX),
	FRAGILE("sendfile of much by TCP", SENDFILE_TCP),
	FRAGILE("splice of much by TCP", SPLICE_TCP),
	FRAGILE("io_getevents of several", IO_GETEVENTS_MANY),
	FRAGILE("close, lingering", LINGER),
};

int naps_count(void);
const char *naps_name(int index);
int naps_is_fragile(int index);
int naps_prepare(int index);
int naps_nap(int index);
const char *naps_last_words(void);

int naps_count(void)
{
	return sizeof(kinds) / sizeof(kinds[0]);
}

const char *naps_name(int index)
{
	return kinds[index].name;
}

int naps_is_fragile(int index)
{
	return kinds[index].fragile;
}

/* 0 if the kernel does not have it. */
int naps_prepare(int index)
{
	struct kind *kind = &kinds[index];

	signal(SIGPIPE, SIG_IGN);
	if (!kind->prepare(kind))
		return 0;
	start_feeder(kind);
	return 1;
}

int naps_nap(int index)
{
	return kinds[index].nap(&kinds[index]);
}

const char *naps_last_words(void)
{
	return last_words;
}

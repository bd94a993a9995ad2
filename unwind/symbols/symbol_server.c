/* SPDX-License-Identifier: MIT */
#include "unwind/symbols/symbol_server.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "memory/child_wait.h"
#include "memory/close_files.h"

enum {
	ROOT_MAX = 64,
	ANSWER_CPU_SECONDS = 3,          /* large debug info takes a second or two at first */
	ANSWER_MS = 60 * 1000,           /* wall-clock time, for a file that never arrives */
	MEANWHILE_MS = 5,                /* between calls of meanwhile until then */
	START_MEANWHILE_NS = 500 * 1000, /* the same at the start, which takes as long where CPUs are free */
};
static const rlim_t memory_max = (rlim_t)4 << 30; /* address space beyond that at its start */

struct symbol_server {
	int fd;
	uint64_t cpu_ns;
	symbol_server_meanwhile *meanwhile;
	void *meanwhile_context;
};

enum request_kind { REQUEST_OPEN, REQUEST_ANSWER };

/* REQUEST_OPEN comes with a descriptor; REQUEST_ANSWER is sent without root and path. */
struct request {
	enum request_kind kind;
	enum symbol_question question;
	size_t number;
	uint64_t address;
	uint64_t base, end;
	bool plain;
	char root[ROOT_MAX];
	char path[PATH_MAX];
};

/* Only the part that is set is sent. */
struct reply {
	uint64_t cpu_ns;
	struct symbol_answer answer;
};

/*---- The server ----*/

struct serving {
	int fd;
	struct symbol_file **files; /* by number */
	struct request request;
	struct reply reply;
};

/* Receive a request, with its descriptor or -1. False when no more will come. */
static bool receive(int fd, struct request *request, int *ret_file)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec data = { request, sizeof(*request) };
	struct msghdr message = {
		.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *header;
	ssize_t length;

	do
		length = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	while (length < 0 && errno == EINTR);
	*ret_file = -1;
	if (length <= 0)
		return false;
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(ret_file, CMSG_DATA(header), sizeof(*ret_file));
	return true;
}

static void open_file(struct serving *serving, const struct request *request, int fd)
{
	struct symbol_source source = {
		.fd = fd,
		.base = request->base,
		.end = request->end,
		.root = request->root,
		.path = request->path,
		.plain = request->plain,
	};

	symbol_file_close(serving->files[request->number]);
	serving->files[request->number] = symbol_file_open(&source);
}

static void answer(struct serving *serving, const struct request *request, struct symbol_answer *answer)
{
	struct symbol_file *file = serving->files[request->number];

	answer->count = 0;
	answer->extent = (struct symbol_extent){ request->address, request->address + 1 };
	if (!file)
		return;
	switch (request->question) {
	case SYMBOL_FUNCTIONS:
		answer->count = symbol_file_find(file, request->address, answer->symbols);
		answer->extent = symbol_file_extent(file, request->address);
		break;
	case SYMBOL_COVERED: answer->count = symbol_file_covers(file, request->address) ? 1 : 0; break;
	case SYMBOL_RULES:
		answer->count = symbol_file_rules(file, request->address, &answer->rules) ? 1 : 0;
		break;
	}
}

/* The length in bytes of a reply with this count. */
static size_t reply_length(enum symbol_question question, size_t count)
{
	const size_t head = offsetof(struct reply, answer.symbols);

	switch (question) {
	case SYMBOL_FUNCTIONS: return head + count * sizeof(struct symbol);
	case SYMBOL_RULES: return head + count * sizeof(struct frame_rules);
	case SYMBOL_COVERED: break;
	}
	return head;
}

static uint64_t cpu_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* Let a signal end the process after this much more CPU time; 0 cancels that. */
static void limit_cpu(time_t seconds)
{
	const struct itimerval timer = { .it_value.tv_sec = seconds };

	setitimer(ITIMER_PROF, &timer, NULL);
}

/*
 * End with the process that has inherited the server, one of ljspy's own, also while stopped or waiting for a
 * disk. To be called with a request: before the client sends any, the one that started the server has ended.
 */
static void end_with_reaper(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void serve(struct serving *serving)
{
	const struct request *request = &serving->request;
	struct reply *reply = &serving->reply;
	int fd;

	while (receive(serving->fd, &serving->request, &fd)) {
		end_with_reaper();
		limit_cpu(ANSWER_CPU_SECONDS);
		if (request->kind == REQUEST_OPEN)
			open_file(serving, request, fd);
		else
			answer(serving, request, &reply->answer);
		limit_cpu(0);
		if (request->kind == REQUEST_OPEN)
			continue;
		reply->cpu_ns = cpu_ns();
		if (send(serving->fd, reply, reply_length(request->question, reply->answer.count),
			 MSG_NOSIGNAL) < 0)
			return;
	}
}

/* Bytes of address space that the process has now, shared ones included; 0 if unknown. */
static rlim_t memory_used(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long pages = 0;

	if (file) {
		if (fscanf(file, "%lu", &pages) != 1)
			pages = 0;
		fclose(file);
	}
	return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/*
 * Close all of the client's descriptors but the socket, take no signals from a
 * terminal, and die quietly, without a core.
 */
static void set_apart(int fd)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGPROF };
	const struct rlimit no_core = { 0, 0 };
	const rlim_t used = memory_used();
	const struct rlimit memory = { used + memory_max, used + memory_max };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	setsid();
	prctl(PR_SET_NAME, "ljspy-symbols");
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		signal(signals[i], SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setrlimit(RLIMIT_CORE, &no_core);
	if (used)
		setrlimit(RLIMIT_AS, &memory);
	for (int standard = 0; null >= 0 && standard <= 2; standard++)
		dup2(null, standard);
	close_files(3, (unsigned int)fd - 1);
	close_files((unsigned int)fd + 1, UINT_MAX);
}

static _Noreturn void run(int fd)
{
	struct serving serving = { .fd = fd };

	set_apart(fd);
	serving.files = calloc(SYMBOL_SERVER_FILES_MAX, sizeof(struct symbol_file *));
	if (serving.files)
		serve(&serving);
	_exit(0);
}

/*---- The client ----*/

/*
 * The child has to get a CPU before it can end, and where many want one that takes a while. As it must be
 * reaped, the client does not do without it.
 */
static bool has_succeeded(const struct symbol_server *server, pid_t child)
{
	const struct timespec moment = { .tv_nsec = START_MEANWHILE_NS };
	const int options = server->meanwhile ? WNOHANG : 0;
	pid_t ended;
	int status;

	while ((ended = child_wait(child, &status, options)) == 0) {
		server->meanwhile(server->meanwhile_context);
		nanosleep(&moment, NULL);
	}
	return ended == child && status == 0;
}

/* Start the server as a child's child, so that the client need not wait for its end. False on failure. */
static bool start(const struct symbol_server *client, int fd)
{
	pid_t child = fork();

	if (child == 0) {
		pid_t server = fork();

		if (server == 0)
			run(fd);
		_exit(server < 0);
	}
	return child > 0 && has_succeeded(client, child);
}

struct symbol_server *symbol_server_start(symbol_server_meanwhile *meanwhile, void *context)
{
	struct symbol_server *server = calloc(1, sizeof(*server));
	int fds[2];

	if (!server)
		return NULL;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds)) {
		free(server);
		return NULL;
	}
	server->fd = fds[0];
	symbol_server_while_waiting(server, meanwhile, context);
	if (!start(server, fds[1])) {
		symbol_server_end(server);
		server = NULL;
	}
	close(fds[1]);
	return server;
}

void symbol_server_end(struct symbol_server *server)
{
	if (!server)
		return;
	close(server->fd);
	free(server);
}

static bool send_request(const struct symbol_server *server, struct request *request, size_t length, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec data = { request, length };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };
	ssize_t sent;

	if (fd >= 0) {
		memset(&control, 0, sizeof(control));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	do
		sent = sendmsg(server->fd, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent == (ssize_t)length;
}

bool symbol_server_open(struct symbol_server *server, size_t number, const struct symbol_source *source)
{
	struct request request = {
		.kind = REQUEST_OPEN,
		.number = number,
		.base = source->base,
		.end = source->end,
		.plain = source->plain,
	};

	if (number >= SYMBOL_SERVER_FILES_MAX || strlen(source->root) >= sizeof(request.root) ||
	    strlen(source->path) >= sizeof(request.path))
		return false;
	snprintf(request.root, sizeof(request.root), "%s", source->root);
	snprintf(request.path, sizeof(request.path), "%s", source->path);
	return send_request(server, &request, sizeof(request), source->fd);
}

void symbol_server_while_waiting(struct symbol_server *server, symbol_server_meanwhile *meanwhile,
				 void *context)
{
	server->meanwhile = meanwhile;
	server->meanwhile_context = context;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

static bool await_reply(const struct symbol_server *server)
{
	struct pollfd readable = { .fd = server->fd, .events = POLLIN };
	uint64_t end = now_ms() + ANSWER_MS;

	do {
		int ready = poll(&readable, 1, MEANWHILE_MS);

		if (ready > 0)
			return true;
		if (ready < 0 && errno != EINTR)
			return false;
		if (server->meanwhile && !server->meanwhile(server->meanwhile_context))
			return false;
	} while (now_ms() < end);
	return false;
}

static bool receive_reply(const struct symbol_server *server, enum symbol_question question,
			  struct reply *reply)
{
	const size_t count_max = question == SYMBOL_FUNCTIONS ? SYMBOL_INLINES_MAX : 1;
	ssize_t length;

	if (!await_reply(server))
		return false;
	length = recv(server->fd, reply, sizeof(*reply), MSG_DONTWAIT);
	return length >= (ssize_t)offsetof(struct reply, answer.symbols) &&
	       reply->answer.count <= count_max &&
	       (size_t)length == reply_length(question, reply->answer.count);
}

bool symbol_server_ask(struct symbol_server *server, enum symbol_question question, size_t number,
		       uint64_t address, struct symbol_answer *ret_answer)
{
	struct request request = {
		.kind = REQUEST_ANSWER,
		.question = question,
		.number = number,
		.address = address,
	};
	struct reply reply;

	if (!send_request(server, &request, offsetof(struct request, root), -1) ||
	    !receive_reply(server, question, &reply))
		return false;
	server->cpu_ns = reply.cpu_ns;
	for (size_t i = 0; question == SYMBOL_FUNCTIONS && i < reply.answer.count; i++) {
		struct symbol *symbol = &reply.answer.symbols[i];

		symbol->name[sizeof(symbol->name) - 1] = '\0';
		symbol->file[sizeof(symbol->file) - 1] = '\0';
	}
	if (question == SYMBOL_FUNCTIONS &&
	    (address < reply.answer.extent.begin || address >= reply.answer.extent.end))
		return false;
	if (question == SYMBOL_RULES && reply.answer.count && !frame_rules_valid(&reply.answer.rules))
		return false;
	memcpy(ret_answer, &reply.answer,
	       reply_length(question, reply.answer.count) - offsetof(struct reply, answer));
	return true;
}

uint64_t symbol_server_cpu_ns(const struct symbol_server *server)
{
	return server->cpu_ns;
}

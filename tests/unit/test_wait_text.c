/* SPDX-License-Identifier: MIT */
/* What sleeping threads wait for, in words: the files and sockets are this process's own. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/threads/wait_text.h"
#include "tests/unit/made_up_memory.h"

static char text[WAIT_TEXT_SIZE];
static struct wait_socket last;

/* A wait for a file of this process. */
static const char *wait_for(int fd, enum wait_kind kind, const struct thread_call *call)
{
	struct wait wait = { .kind = kind, .call = "read", .fd = fd };

	memset(text, 'x', sizeof(text));
	wait_describe(getpid(), &made_up_memory.memory, call, &wait, &last, text);
	/* Only a poll of a socket that listens is something else than it seemed. */
	assert_true(wait.kind == kind || (kind == WAIT_POLL && wait.kind == WAIT_EVENTS));
	if (wait.kind != kind)
		strcat(text, ", events");
	return text;
}

static const struct thread_call some_call = { .known = true, .number = SYS_read };

static void briefly_a_wait_is_its_call(void **state)
{
	const struct thread_call unknown = { .known = false }, none = { .known = true, .number = -1 };
	struct wait wait = { .kind = WAIT_OTHER };

	(void)state;
	wait_describe_briefly(&unknown, &wait, text);
	assert_string_equal(text, "unknown");
	wait_describe_briefly(&none, &wait, text);
	assert_string_equal(text, "not in a system call");
	wait_describe_briefly(&(struct thread_call){ .known = true, .number = 999 }, &wait, text);
	assert_string_equal(text, "system call 999");
	for (enum wait_kind kind = WAIT_UNKNOWN; kind <= WAIT_OTHER; kind++) {
		wait = (struct wait){ .kind = kind, .call = "futex" };
		wait_describe_briefly(&some_call, &wait, text);
		assert_string_equal(text, kind == WAIT_LOCK        ? "futex (lock)"
					  : kind == WAIT_CONDITION ? "futex (condition)"
								   : "futex");
	}
}

static void files_and_pipes_are_named(void **state)
{
	int ends[2], file = open("/etc/passwd", O_RDONLY);

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_in_range(file, 0, 1000);
	assert_string_equal(wait_for(file, WAIT_FILE, &some_call), "read /etc/passwd");
	assert_string_equal(wait_for(file, WAIT_POLL, &some_call), "read /etc/passwd");
	assert_string_equal(wait_for(ends[0], WAIT_FILE, &some_call), "read pipe");
	close(file);
	assert_string_equal(wait_for(file, WAIT_FILE, &some_call), "read");
	assert_string_equal(wait_for(ends[0], WAIT_OTHER, &some_call), "read");
	close(ends[0]);
	close(ends[1]);
}

static int open_socket(int type, struct sockaddr_in *ret_address)
{
	int fd = socket(AF_INET, type, 0);
	socklen_t length = sizeof(*ret_address);

	assert_in_range(fd, 0, 1000);
	*ret_address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	assert_int_equal(bind(fd, (struct sockaddr *)ret_address, length), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)ret_address, &length), 0);
	return fd;
}

/* With a port of servers and one of clients. */
static void sockets_have_peers(void **state)
{
	struct sockaddr_in server, client;
	int listener, one, other;
	char expected[WAIT_TEXT_SIZE];
	struct socket_peer peer;

	(void)state;
	listener = open_socket(SOCK_STREAM, &server);
	assert_int_equal(listen(listener, 1), 0);
	snprintf(expected, sizeof(expected), "read port %u", (unsigned int)ntohs(server.sin_port));
	assert_string_equal(wait_for(listener, WAIT_FILE, &some_call), expected);
	strcat(expected, ", events");
	assert_string_equal(wait_for(listener, WAIT_POLL, &some_call), expected);
	one = open_socket(SOCK_STREAM, &client);
	assert_int_equal(connect(one, (struct sockaddr *)&server, sizeof(server)), 0);
	other = accept(listener, NULL, NULL);
	snprintf(expected, sizeof(expected), "read 127.0.0.1:%u", (unsigned int)ntohs(server.sin_port));
	assert_string_equal(wait_for(one, WAIT_FILE, &some_call), expected);
	/* It is looked up once, for as long as the thread waits for the same. */
	peer = last.peer;
	assert_true(peer.known);
	strcpy(last.peer.text, "as before");
	assert_string_equal(wait_for(one, WAIT_FILE, &some_call), "read as before");
	snprintf(expected, sizeof(expected), "read 127.0.0.1:%u", (unsigned int)ntohs(client.sin_port));
	assert_string_equal(wait_for(other, WAIT_FILE, &some_call), expected);
	close(one);
	close(other);
	close(listener);
	/* One that is in no table. */
	one = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_string_equal(wait_for(one, WAIT_FILE, &some_call), "read socket");
	close(one);
}

/* A call with an address in the made-up memory. */
static struct thread_call with_address(int64_t number, uint16_t port, uint64_t length)
{
	const struct sockaddr_in address = { .sin_family = AF_INET,
					     .sin_port = htons(port),
					     .sin_addr = { htonl(0x0a000035) } };
	struct thread_call call = { .known = true, .number = number };
	size_t first = number == SYS_connect ? 1 : 4;

	put_bytes(MADE_UP_AT, &address, sizeof(address));
	call.arguments[first] = MADE_UP_AT;
	call.arguments[first + 1] = length;
	return call;
}

static void a_call_may_have_its_peers_address(void **state)
{
	static const int64_t numbers[] = { SYS_connect, SYS_sendto };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct thread_call call;

	(void)state;
	made_up_memory_begin();
	for (size_t i = 0; i < 2; i++) {
		call = with_address(numbers[i], 80, sizeof(struct sockaddr_in));
		assert_string_equal(wait_for(fd, WAIT_FILE, &call), "read 10.0.0.53:80");
		call = with_address(numbers[i], 53, sizeof(struct sockaddr_storage));
		assert_string_equal(wait_for(fd, WAIT_FILE, &call), "DNS lookup at 10.0.0.53:53 (read)");
		call = with_address(numbers[i], 80, sizeof(struct sockaddr_storage) + 1);
		assert_string_equal(wait_for(fd, WAIT_FILE, &call), "read socket");
		call = with_address(numbers[i], 80, sizeof(struct sockaddr_in) - 1);
		assert_string_equal(wait_for(fd, WAIT_FILE, &call), "read socket");
		call = with_address(numbers[i], 80, 1);
		assert_string_equal(wait_for(fd, WAIT_FILE, &call), "read socket");
		call = with_address(numbers[i], 80, sizeof(struct sockaddr_in));
		call.arguments[numbers[i] == SYS_connect ? 1 : 4] = 0;
		assert_string_equal(wait_for(fd, WAIT_FILE, &call), "read socket");
		call.arguments[numbers[i] == SYS_connect ? 1 : 4] = 1;
		assert_string_equal(wait_for(fd, WAIT_FILE, &call), "read socket");
	}
	close(fd);
}

static void addresses_have_families(void **state)
{
	struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_port = htons(443) };
	struct socket_peer peer;

	(void)state;
	assert_int_equal(inet_pton(AF_INET6, "2001:db8::7", &address.sin6_addr), 1);
	socket_peer_read(&address, sizeof(address), &peer);
	assert_true(peer.known);
	assert_false(peer.listens);
	assert_false(peer.is_dns);
	assert_string_equal(peer.text, "[2001:db8::7]:443");
	/* The scope may be left out. */
	socket_peer_read(&address, offsetof(struct sockaddr_in6, sin6_scope_id), &peer);
	assert_true(peer.known);
	socket_peer_read(&address, offsetof(struct sockaddr_in6, sin6_scope_id) - 1, &peer);
	assert_false(peer.known);
	address.sin6_family = AF_UNIX;
	socket_peer_read(&address, sizeof(address), &peer);
	assert_false(peer.known);
	socket_peer_read(&address, 1, &peer);
	assert_false(peer.known);
}

static void a_path_is_the_calls(void **state)
{
	struct wait wait = { .kind = WAIT_PATH, .call = "open", .path = MADE_UP_AT };
	char longest[WAIT_PATH_SIZE + sizeof("open ")];

	(void)state;
	made_up_memory_begin();
	put_bytes(MADE_UP_AT, "/etc/hosts", sizeof("/etc/hosts"));
	wait_describe(getpid(), &made_up_memory.memory, &some_call, &wait, &last, text);
	assert_string_equal(text, "open /etc/hosts");
	wait.path = MADE_UP_AT + MADE_UP_BYTES;
	wait_describe(getpid(), &made_up_memory.memory, &some_call, &wait, &last, text);
	assert_string_equal(text, "open");
	/* As far as it can be read, and cut. */
	put_bytes(MADE_UP_AT + MADE_UP_BYTES - 4, "/end", 4);
	wait.path = MADE_UP_AT + MADE_UP_BYTES - 4;
	wait_describe(getpid(), &made_up_memory.memory, &some_call, &wait, &last, text);
	assert_string_equal(text, "open /end");
	memset(made_up_memory.bytes, 'p', MADE_UP_BYTES);
	wait.path = MADE_UP_AT;
	wait_describe(getpid(), &made_up_memory.memory, &some_call, &wait, &last, text);
	strcpy(longest, "open ");
	memset(longest + strlen("open "), 'p', WAIT_PATH_SIZE - 1);
	longest[strlen("open ") + WAIT_PATH_SIZE - 1] = '\0';
	assert_string_equal(text, longest);
}

static void children_are_named(void **state)
{
	struct wait wait = { .kind = WAIT_CHILD, .call = "wait4" };
	struct thread_call call = { .known = true, .number = SYS_wait4 };
	char ready;
	int ends[2];
	pid_t child;

	(void)state;
	assert_int_equal(prctl(PR_SET_NAME, "parent"), 0);
	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		alarm(60);
		close(ends[1]);
		_exit((int)read(ends[0], &ready, 1));
	}
	call.arguments[0] = (uint64_t)child;
	wait_describe(getpid(), &made_up_memory.memory, &call, &wait, &last, text);
	assert_string_equal(text, "wait4 parent");
	/* A process that is no child; any child; another call. */
	call.arguments[0] = (uint64_t)getppid();
	wait_describe(getpid(), &made_up_memory.memory, &call, &wait, &last, text);
	assert_string_equal(text, "wait4");
	call.arguments[0] = (uint64_t)-1;
	wait_describe(getpid(), &made_up_memory.memory, &call, &wait, &last, text);
	assert_string_equal(text, "wait4");
	call = (struct thread_call){ .known = true, .number = SYS_waitid, .arguments = { (uint64_t)child } };
	wait_describe(getpid(), &made_up_memory.memory, &call, &wait, &last, text);
	assert_string_equal(text, "wait4");
	close(ends[0]);
	close(ends[1]);
	waitpid(child, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(briefly_a_wait_is_its_call),
		cmocka_unit_test(files_and_pipes_are_named),
		cmocka_unit_test(sockets_have_peers),
		cmocka_unit_test(a_call_may_have_its_peers_address),
		cmocka_unit_test(addresses_have_families),
		cmocka_unit_test(a_path_is_the_calls),
		cmocka_unit_test(children_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

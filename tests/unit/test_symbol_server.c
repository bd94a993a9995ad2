/* SPDX-License-Identifier: MIT */
/* A process that reads symbols, of this program's file, and what its client believes of its replies. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/instead_of.h"
#include "tests/unit/open_files.h"
#include "tests/unit/own_module.h"
#include "unwind/symbols/symbol_server.h"

INSTEAD_OF(poll);
INSTEAD_OF(recv);
INSTEAD_OF(sendmsg);
INSTEAD_OF(recvmsg);
INSTEAD_OF(clock_gettime);
INSTEAD_OF(waitpid);
INSTEAD_OF(symbol_file_covers);

/* Before a reply's answer is the time that the server has taken. */
enum { ANSWER_AT = sizeof(uint64_t), FILE_NUMBER = 3, MEANWHILE_AT_MOST_MS = 10 };

/* A change of the next reply, as its client gets it. */
static void (*change)(struct symbol_answer *answer, ssize_t *length);
static size_t vain_polls;     /* so many find nothing */
static size_t vain_waits;     /* for a child: it waits for a CPU */
static int poll_error;        /* of the next one; 0: none */
static bool is_interrupted;   /* the next message, once in each process */
static time_t passed_seconds; /* of made-up time */

/* Addresses that the server asks itself about. */
enum server_trait {
	TRAIT_LIMITED_CPU = 1,
	TRAIT_LIMITED_MEMORY,
	TRAIT_NO_CORE,
	TRAIT_OWN_SESSION,
	TRAIT_FEW_FILES,
	TRAIT_QUIET,
	TRAIT_NO_HANDLERS,
	TRAIT_DIES,
};
enum { FILES = 16, FILES_FROM = 200 };

static int behind_socket = -1; /* a file of the client, just behind the server's socket */

/* Is /dev/null all that it reads from and writes to? */
static bool is_quiet(void)
{
	struct stat file;

	for (int standard = 0; standard <= 2; standard++)
		if (fstat(standard, &file) || file.st_rdev != makedev(1, 3))
			return false;
	return true;
}

static bool has_handlers(void)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGPROF };
	struct sigaction action;
	sigset_t blocked;

	sigprocmask(SIG_BLOCK, NULL, &blocked);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (sigaction(signals[i], NULL, &action) || action.sa_handler != SIG_DFL ||
		    sigismember(&blocked, signals[i]))
			return true;
	return false;
}

bool __wrap_symbol_file_covers(struct symbol_file *file, uint64_t address)
{
	struct itimerval timer;
	struct rlimit limit;

	switch (address) {
	case TRAIT_LIMITED_CPU: return getitimer(ITIMER_PROF, &timer) == 0 && timerisset(&timer.it_value);
	case TRAIT_LIMITED_MEMORY:
		return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_max != RLIM_INFINITY;
	case TRAIT_NO_CORE: return getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max == 0;
	case TRAIT_OWN_SESSION: return getsid(0) == getpid();
	case TRAIT_FEW_FILES: return open_files_count() < FILES && fcntl(behind_socket, F_GETFD) < 0;
	case TRAIT_QUIET: return is_quiet();
	case TRAIT_NO_HANDLERS: return !has_handlers();
	case TRAIT_DIES: abort();
	default: return __real_symbol_file_covers(file, address);
	}
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	int result = __real_clock_gettime(clock, ret_time);

	if (clock == CLOCK_MONOTONIC)
		ret_time->tv_sec += passed_seconds;
	return result;
}

static bool interrupt(void)
{
	bool is_now = is_interrupted;

	is_interrupted = false;
	errno = is_now ? EINTR : errno;
	return is_now;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
	return interrupt() ? -1 : __real_sendmsg(fd, message, flags);
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
	return interrupt() ? -1 : __real_recvmsg(fd, message, flags);
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
	if (poll_error) {
		errno = poll_error;
		poll_error = 0;
		return -1;
	}
	if (vain_polls == 0)
		return __real_poll(fds, count, timeout);
	assert_in_range(timeout, 0, MEANWHILE_AT_MOST_MS);
	vain_polls--;
	return 0;
}

pid_t __wrap_waitpid(pid_t pid, int *ret_status, int options)
{
	if (!(options & WNOHANG) || vain_waits == 0)
		return __real_waitpid(pid, ret_status, options);
	vain_waits--;
	return 0;
}

ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags)
{
	ssize_t length = __real_recv(fd, bytes, size, flags);

	if (change && length > ANSWER_AT)
		change((struct symbol_answer *)(void *)((char *)bytes + ANSWER_AT), &length);
	change = NULL;
	return length;
}

static struct symbol_server *server;
static struct module module;
static struct symbol_source source;
static struct symbol_answer answer;

__attribute__((noinline)) static int known_function(int number)
{
	__asm__ volatile("" : "+r"(number));
	return number + 1;
}

static bool ask(enum symbol_question question, uint64_t address)
{
	memset(&answer, 0xff, sizeof(answer));
	return symbol_server_ask(server, question, FILE_NUMBER, address, &answer);
}

static int begin(void **state)
{
	(void)state;
	change = NULL;
	vain_polls = 0;
	poll_error = 0;
	passed_seconds = 0;
	module = own_program();
	server = symbol_server_start(NULL, NULL);
	assert_non_null(server);
	source = (struct symbol_source){ .fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
					 .base = module.base,
					 .end = module.end,
					 .root = "",
					 .path = "/proc/self/exe",
					 .plain = true };
	assert_true(symbol_server_open(server, FILE_NUMBER, &source));
	return 0;
}

static int end(void **state)
{
	(void)state;
	symbol_server_end(server);
	return close(source.fd);
}

static void questions_are_answered(void **state)
{
	const uint64_t function = (uintptr_t)known_function;

	(void)state;
	assert_int_equal(symbol_server_cpu_ns(server), 0);
	assert_true(ask(SYMBOL_FUNCTIONS, function));
	assert_int_equal(answer.count, 1);
	assert_string_equal(answer.symbols[0].name, "known_function");
	assert_int_equal(answer.extent.begin, function);
	assert_true(answer.extent.end > function);
	assert_true(symbol_server_cpu_ns(server) > 0);
	assert_true(ask(SYMBOL_FUNCTIONS, module.base));
	assert_int_equal(answer.count, 0);
	assert_int_equal(answer.extent.begin, module.base);
	assert_int_equal(answer.extent.end, module.base + 1);
	assert_true(ask(SYMBOL_COVERED, function));
	assert_int_equal(answer.count, 1);
	assert_true(ask(SYMBOL_COVERED, module.base));
	assert_int_equal(answer.count, 0);
	assert_true(ask(SYMBOL_RULES, function));
	assert_int_equal(answer.count, 1);
	assert_true(frame_rules_valid(&answer.rules));
	assert_false(answer.rules.is_outermost);
	assert_int_equal(answer.rules.registers[REGISTER_NUMBER_PC].kind, FRAME_RULE_SAVED);
	assert_true(ask(SYMBOL_RULES, module.base));
	assert_int_equal(answer.count, 0);
}

static void with_debug_info_there_is_a_line(void **state)
{
	(void)state;
	source.plain = false;
	assert_true(symbol_server_open(server, FILE_NUMBER, &source)); /* in the place of the other */
	assert_true(ask(SYMBOL_FUNCTIONS, (uintptr_t)known_function));
	assert_int_equal(answer.count, 1);
	assert_string_equal(answer.symbols[0].file, "test_symbol_server.c");
	assert_true(answer.symbols[0].line > 0);
	assert_int_equal(answer.extent.end, (uintptr_t)known_function + 1);
}

static void a_file_that_was_not_opened_has_no_symbols(void **state)
{
	(void)state;
	assert_true(symbol_server_ask(server, SYMBOL_FUNCTIONS, FILE_NUMBER + 1, 100, &answer));
	assert_int_equal(answer.count, 0);
	assert_int_equal(answer.extent.begin, 100);
	assert_int_equal(answer.extent.end, 101);
	/* What is no file. */
	close(source.fd);
	source.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(symbol_server_open(server, SYMBOL_SERVER_FILES_MAX - 1, &source));
	assert_true(
		symbol_server_ask(server, SYMBOL_RULES, SYMBOL_SERVER_FILES_MAX - 1, module.base, &answer));
	assert_int_equal(answer.count, 0);
}

static void numbers_and_paths_are_bounded(void **state)
{
	enum { ROOT_MAX = 64 };
	char root[ROOT_MAX + 1], path[PATH_MAX + 1];

	(void)state;
	assert_false(symbol_server_open(server, SYMBOL_SERVER_FILES_MAX, &source));
	memset(root, 'x', sizeof(root));
	memset(path, 'x', sizeof(path));
	root[ROOT_MAX] = path[PATH_MAX] = '\0';
	source.root = root;
	assert_false(symbol_server_open(server, 0, &source));
	root[ROOT_MAX - 1] = '\0';
	assert_true(symbol_server_open(server, 0, &source));
	source.path = path;
	assert_false(symbol_server_open(server, 0, &source));
	path[PATH_MAX - 1] = '\0';
	assert_true(symbol_server_open(server, 0, &source));
	/* The server goes on. */
	assert_true(ask(SYMBOL_COVERED, (uintptr_t)known_function));
}

/*---- While it waits ----*/

static struct {
	size_t count, enough;
} waited;

static bool count_calls(void *context)
{
	assert_ptr_equal(context, &waited);
	return ++waited.count < waited.enough;
}

static void the_client_has_something_to_do_meanwhile(void **state)
{
	(void)state;
	memset(&waited, 0, sizeof(waited));
	waited.enough = 100;
	vain_polls = 5;
	assert_true(ask(SYMBOL_COVERED, (uintptr_t)known_function)); /* without it, it just waits */
	symbol_server_while_waiting(server, count_calls, &waited);
	vain_polls = 5;
	assert_true(ask(SYMBOL_COVERED, (uintptr_t)known_function));
	assert_int_equal(waited.count, 5);
	/* It may do without the answer. */
	waited.enough = 8;
	vain_polls = 5;
	assert_false(ask(SYMBOL_COVERED, (uintptr_t)known_function));
	assert_int_equal(waited.count, 8);
	assert_int_equal(vain_polls, 2);
}

/* Where many want a CPU, the first child gets one late; it is waited for in any case. */
static void the_client_has_something_to_do_while_the_server_starts(void **state)
{
	(void)state;
	symbol_server_end(server);
	memset(&waited, 0, sizeof(waited));
	waited.enough = 3;
	vain_waits = 5;
	server = symbol_server_start(count_calls, &waited);
	assert_non_null(server);
	assert_int_equal(vain_waits, 0);
	assert_true(waited.count >= 5);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	/* Questions have it, too. */
	assert_true(symbol_server_open(server, FILE_NUMBER, &source));
	memset(&waited, 0, sizeof(waited));
	waited.enough = 10;
	vain_polls = 5;
	assert_true(ask(SYMBOL_COVERED, (uintptr_t)known_function));
	assert_int_equal(waited.count, 5);
}

static bool pass_a_second(void *context)
{
	assert_null(context);
	passed_seconds++;
	return true;
}

static void the_client_does_not_wait_forever(void **state)
{
	enum { WAITS_S = 60 };

	(void)state;
	symbol_server_while_waiting(server, pass_a_second, NULL);
	vain_polls = SIZE_MAX;
	assert_false(ask(SYMBOL_COVERED, (uintptr_t)known_function));
	/* Real time passes, too. */
	assert_in_range(passed_seconds, WAITS_S / 2, WAITS_S);
}

static void what_a_signal_interrupts_goes_on(void **state)
{
	(void)state;
	poll_error = EINTR;
	assert_true(ask(SYMBOL_COVERED, (uintptr_t)known_function));
	poll_error = EBADF;
	assert_false(ask(SYMBOL_COVERED, (uintptr_t)known_function));
	end(NULL);
	/* Of both processes. */
	is_interrupted = true;
	begin(NULL);
	assert_false(is_interrupted);
	assert_true(ask(SYMBOL_COVERED, (uintptr_t)known_function));
}

/*---- The process ----*/

static void the_server_has_limits_and_nothing_of_its_client(void **state)
{
	unsigned int count;
	int files[FILES], sockets[2];
	int input, zero;

	(void)state;
	end(NULL);
	/* The client's standard input is not what the server reads. */
	input = dup(STDIN_FILENO);
	zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	assert_int_equal(dup2(zero, STDIN_FILENO), STDIN_FILENO);
	close(zero);
	/* Some files come before the socket, others behind it. */
	for (int i = 0; i < FILES; i++) {
		files[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		assert_true(files[i] >= 0);
		assert_int_equal(dup2(files[i], FILES_FROM + i), FILES_FROM + i);
	}
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
	behind_socket = sockets[1] + 1;
	close(sockets[0]);
	close(sockets[1]);
	assert_int_equal(dup2(files[0], behind_socket), behind_socket);
	count = open_files_count();
	begin(NULL);
	for (uint64_t trait = TRAIT_LIMITED_CPU; trait < TRAIT_DIES; trait++) {
		assert_true(ask(SYMBOL_COVERED, trait));
		assert_int_equal(answer.count, 1);
	}
	end(NULL);
	/* Nor does the client keep anything of the server. */
	assert_int_equal(open_files_count(), count);
	for (int i = 0; i < FILES; i++) {
		close(files[i]);
		close(FILES_FROM + i);
	}
	close(behind_socket);
	dup2(input, STDIN_FILENO);
	close(input);
	begin(NULL);
}

static void a_server_that_dies_answers_nothing(void **state)
{
	(void)state;
	assert_true(ask(SYMBOL_COVERED, (uintptr_t)known_function));
	assert_false(ask(SYMBOL_COVERED, TRAIT_DIES));
	assert_false(ask(SYMBOL_COVERED, (uintptr_t)known_function));
	assert_false(symbol_server_open(server, FILE_NUMBER, &source));
}

/*---- Replies of no sense ----*/

static void one_more(struct symbol_answer *reply, ssize_t *length)
{
	(void)length;
	reply->count++;
}

static void too_many(struct symbol_answer *reply, ssize_t *length)
{
	reply->count = SYMBOL_INLINES_MAX + 1;
	*length = (ssize_t)(ANSWER_AT + offsetof(struct symbol_answer, symbols) +
			    reply->count * sizeof(struct symbol));
}

static void two_rules(struct symbol_answer *reply, ssize_t *length)
{
	*length += (ssize_t)sizeof(struct frame_rules);
	reply->count++;
}

static void shorter(struct symbol_answer *reply, ssize_t *length)
{
	(void)reply;
	--*length;
}

static void without_a_head(struct symbol_answer *reply, ssize_t *length)
{
	(void)reply;
	*length = (ssize_t)(ANSWER_AT + offsetof(struct symbol_answer, symbols) - 1);
}

static void failed(struct symbol_answer *reply, ssize_t *length)
{
	(void)reply;
	*length = -1;
}

static void extent_behind(struct symbol_answer *reply, ssize_t *length)
{
	(void)length;
	reply->extent.begin = (uintptr_t)known_function + 1;
}

static void extent_before(struct symbol_answer *reply, ssize_t *length)
{
	(void)length;
	reply->extent.begin = 0;
	reply->extent.end = (uintptr_t)known_function;
}

static void bad_rules(struct symbol_answer *reply, ssize_t *length)
{
	(void)length;
	reply->rules.op_count = FRAME_RULE_OPS_MAX + 1;
}

static void replies_of_no_sense_are_not_believed(void **state)
{
	static const struct {
		void (*change)(struct symbol_answer *reply, ssize_t *length);
		enum symbol_question question;
		bool is_believed;
	} replies[] = {
		{ one_more, SYMBOL_FUNCTIONS, false },      { one_more, SYMBOL_RULES, false },
		{ one_more, SYMBOL_COVERED, false },        { too_many, SYMBOL_FUNCTIONS, false },
		{ two_rules, SYMBOL_RULES, false },         { shorter, SYMBOL_FUNCTIONS, false },
		{ shorter, SYMBOL_RULES, false },           { shorter, SYMBOL_COVERED, false },
		{ without_a_head, SYMBOL_COVERED, false },  { failed, SYMBOL_FUNCTIONS, false },
		{ extent_behind, SYMBOL_FUNCTIONS, false }, { extent_before, SYMBOL_FUNCTIONS, false },
		{ extent_before, SYMBOL_COVERED, true },    { bad_rules, SYMBOL_RULES, false },
		{ NULL, SYMBOL_FUNCTIONS, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
		change = replies[i].change;
		assert_int_equal(ask(replies[i].question, (uintptr_t)known_function), replies[i].is_believed);
		/* Nothing is set of an answer that is none. */
		if (!replies[i].is_believed)
			assert_true(answer.count == SIZE_MAX);
	}
}

static void endless_names(struct symbol_answer *reply, ssize_t *length)
{
	(void)length;
	memset(reply->symbols[0].name, 'x', sizeof(reply->symbols[0].name));
	memset(reply->symbols[0].file, 'y', sizeof(reply->symbols[0].file));
}

static void names_end(void **state)
{
	(void)state;
	change = endless_names;
	assert_true(ask(SYMBOL_FUNCTIONS, (uintptr_t)known_function));
	assert_int_equal(strnlen(answer.symbols[0].name, SYMBOL_NAME_SIZE), SYMBOL_NAME_SIZE - 1);
	assert_int_equal(strnlen(answer.symbols[0].file, SYMBOL_NAME_SIZE), SYMBOL_NAME_SIZE - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(questions_are_answered, begin, end),
		cmocka_unit_test_setup_teardown(with_debug_info_there_is_a_line, begin, end),
		cmocka_unit_test_setup_teardown(a_file_that_was_not_opened_has_no_symbols, begin, end),
		cmocka_unit_test_setup_teardown(numbers_and_paths_are_bounded, begin, end),
		cmocka_unit_test_setup_teardown(the_client_has_something_to_do_meanwhile, begin, end),
		cmocka_unit_test_setup_teardown(the_client_has_something_to_do_while_the_server_starts, begin,
						end),
		cmocka_unit_test_setup_teardown(the_client_does_not_wait_forever, begin, end),
		cmocka_unit_test_setup_teardown(what_a_signal_interrupts_goes_on, begin, end),
		cmocka_unit_test_setup_teardown(the_server_has_limits_and_nothing_of_its_client, begin, end),
		cmocka_unit_test_setup_teardown(a_server_that_dies_answers_nothing, begin, end),
		cmocka_unit_test_setup_teardown(replies_of_no_sense_are_not_believed, begin, end),
		cmocka_unit_test_setup_teardown(names_end, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

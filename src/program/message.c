/* SPDX-License-Identifier: MIT */
#include "src/program/message.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "output/labels/escape.h"

/* Bytes; longer messages are cut. Escaping may lengthen them. */
enum { TEXT_MAX = 4096, LINE_MAX_ESCAPED = 2 * TEXT_MAX };

static atomic_bool must_not_wait;

/*
 * While messages must not wait, where they are written: for a terminal, a description of its own, which does
 * not wait.
 */
static atomic_int not_waiting_fd = STDERR_FILENO;

/* A reader that is alive, on a busy machine, reads on within this time. */
enum { PATIENCE_MS = 200 };

static bool would_wait(int milliseconds)
{
	struct pollfd standard_error = { .fd = STDERR_FILENO, .events = POLLOUT };
	int ready;

	do
		ready = poll(&standard_error, 1, milliseconds);
	while (ready < 0 && errno == EINTR);
	return ready != 1;
}

/*
 * A pipe that takes any byte takes PIPE_BUF of them at once: pipe(7). A terminal takes what it has room for.
 */
static void write_without_waiting(const char *text, size_t length)
{
	while (length > 0 && !would_wait(PATIENCE_MS)) {
		const size_t piece = length < PIPE_BUF ? length : PIPE_BUF;
		const ssize_t written = write(not_waiting_fd, text, piece);

		if (written < 0 && errno != EAGAIN && errno != EINTR)
			return;
		if (written > 0) {
			text += written;
			length -= (size_t)written;
		}
	}
}

static void write_out(const char *text, size_t length)
{
	if (must_not_wait)
		write_without_waiting(text, length);
	else
		fwrite(text, 1, length, stderr);
}

/* One write, so that lines of several programs do not mix. A positive error is an errno. */
__attribute__((__format__(__printf__, 3, 0))) static void print_line(const char *kind, int error,
								     const char *format, va_list arguments)
{
	char text[TEXT_MAX], line[LINE_MAX_ESCAPED];
	size_t length;
	int start;

	vsnprintf(text, sizeof(text), format, arguments);
	length = strlen(text);
	if (error)
		snprintf(text + length, sizeof(text) - length, ": %s", strerror(error));
	start = snprintf(line, sizeof(line), "ljspy: %s", kind);
	length = (size_t)start;
	length += escape_text(ESCAPE_PLAIN, text, line + length, sizeof(line) - length - 1);
	line[length++] = '\n';
	write_out(line, length);
}

void message_error(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_line("", 0, format, arguments);
	va_end(arguments);
}

void message_error_errno(int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_line("", error, format, arguments);
	va_end(arguments);
}

void message_error_stdout(int error)
{
	if (error != EPIPE)
		message_error_errno(error, "standard output");
}

void message_warn(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_line("warning: ", 0, format, arguments);
	va_end(arguments);
}

void message_note(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_line("", 0, format, arguments);
	va_end(arguments);
}

void message_note_file_limit(void)
{
	message_note("Allow larger files: ulimit -f unlimited");
}

void message_error_left_out(const char *what)
{
	message_error("This ljspy, which needs nothing installed, is built without %s.", what);
	message_note("The one that `make` builds has it.");
}

void message_lines(const char *lines)
{
	write_out(lines, strlen(lines));
}

int message_print(int print(FILE *out, const void *context), const void *context)
{
	char *text = NULL;
	size_t size;
	FILE *memory = open_memstream(&text, &size);
	int error;

	if (!memory)
		return -ENOMEM;
	error = print(memory, context);
	if (fclose(memory) == 0)
		message_lines(text);
	free(text);
	return error;
}

bool message_must_not_wait(bool must_not)
{
	if (must_not && not_waiting_fd == STDERR_FILENO && isatty(STDERR_FILENO)) {
		int fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

		if (fd >= 0)
			not_waiting_fd = fd;
	}
	return atomic_exchange(&must_not_wait, must_not);
}

bool message_would_wait(void)
{
	return would_wait(0);
}

/* SPDX-License-Identifier: MIT */
/*
 * message: ljspy's messages to its user, on standard error.
 *
 * Each is one line that begins with "ljspy: ". The whole text is escaped for the
 * terminal after formatting, so callers may pass names read from a target as they are.
 */
#ifndef LJSPY_MESSAGE_H
#define LJSPY_MESSAGE_H

#include <stdbool.h>
#include <stdio.h>

#define MESSAGE_FORMAT(format, first) __attribute__((__format__(__printf__, format, first)))

/* Something failed. */
void message_error(const char *format, ...) MESSAGE_FORMAT(1, 2);

/* The same, followed by ": " and the text of a positive errno. */
void message_error_errno(int error, const char *format, ...) MESSAGE_FORMAT(2, 3);

/*
 * Writing the standard output failed with this positive errno. Says nothing if its reader has left
 * (EPIPE), as head(1) does when it has enough: the user knows.
 */
void message_error_stdout(int error);

/* Something is amiss, but ljspy goes on. */
void message_warn(const char *format, ...) MESSAGE_FORMAT(1, 2);

/* What was done, or what to do: "Wrote x.svg", a remedy. */
void message_note(const char *format, ...) MESSAGE_FORMAT(1, 2);

/* The remedy where a file would get larger than the user's limit. */
void message_note_file_limit(void);

/* Only an ljspy that needs libraries can do that, and this one needs none. */
void message_error_left_out(const char *what);

/* Lines as they are, without the beginning; the caller has escaped them. */
void message_lines(const char *lines);

/* The same lines, from a function that prints them to a stream. Returns what that does, or -ENOMEM. */
int message_print(int print(FILE *out, const void *context), const void *context);

/*
 * From now on, messages that would have to wait for long are left out, or not: who records must not wait for
 * who reads them. Returns which held before.
 */
bool message_must_not_wait(bool must_not);

/* Would a message wait now, as for a terminal after Ctrl-S, or behind a connection that hangs? */
bool message_would_wait(void);

#endif

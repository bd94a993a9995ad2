/* SPDX-License-Identifier: MIT */
/*
 * tracing_thread: a thread that traces, whose targets are free once it has been waited for.
 *
 * The kernel frees the targets of a thread while the thread ends, but tells pthread_join() of the end earlier
 * (kernel/exit.c of Linux 6.18, do_exit(): exit_mm() comes before exit_notify()). Whoever seizes them after
 * pthread_join() may be refused.
 */
#ifndef LJSPY_TRACING_THREAD_H
#define LJSPY_TRACING_THREAD_H

/*
 * Run that in a thread of its own, to its end. 0, or a negative errno of pthread_create(). The targets are
 * free then, unless the thread takes longer than 10 s for the rest of its way.
 */
int tracing_thread_run(void *(*run)(void *context), void *context);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * sample_message: a sample as bytes, from the engine to the front (apart.h).
 *
 *	message  = forget? function* sample
 *	forget   = 04
 *	function = 01 kind:uint firstline:uint name:text file:text module:text root:uint
 *	         | 02 reason:uint		a lost frame's function: enum lost_reason
 *	sample   = 03 time:uint pid:uint tid:uint process_name:text thread_name:text
 *	           phase:text request thread_state:uint vm_state:uint wait:ref cpu:uint wall:uint
 *	           bytes:uint objects:uint loop:uint sleeps:uint gc_phase:uint has_marked:uint heap:uint
 *	           live:uint allocated:uint used:uint step:uint count:uint frame{count}
 *	request  = route:text [ method:text host:text status:uint subrequest:uint connection:uint
 *	           number:uint age:uint ]	the rest follows if there is a route
 *	frame    = function:ref line:uint certainty
 *
 *	uint     = LEB128, at most 64 bits
 *	text     = 0: none, or its length + 1, then its bytes, none of them NUL
 *	ref      = 0: none, or the number of a function; the first one defined is 1
 *
 *	            7 6 5 4 3 2 1 0
 *	certainty = - - - - - J C C	C: enum frame_certainty, J: compiled code
 *
 * The message of the first sample that has a function defines it. The definition holds
 * once the message is sent, until a later message begins with forget; numbers then
 * begin at 1 again. A phase is one of request.h. Messages leave out a sample's trace
 * and stack.
 */
#ifndef LJSPY_SAMPLE_MESSAGE_H
#define LJSPY_SAMPLE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "output/sample/functions.h"
#include "output/sample/sample.h"

struct sample_writer;

/* size_max: the most bytes of one message. NULL when memory is short. */
struct sample_writer *sample_writer_new(size_t size_max);
void sample_writer_free(struct sample_writer *writer);

/*
 * The message and its size in bytes; the writer owns it, until the next call. NULL if
 * it would be too long or memory is short.
 */
const void *sample_writer_write(struct sample_writer *writer, const struct sample *sample, size_t *ret_size);

/* Say whether the last message was sent. If not, a later one defines its functions again. */
void sample_writer_note(struct sample_writer *writer, bool sent);

/* Call before functions are dropped: the next message makes the reader forget all of them. */
void sample_writer_forget(struct sample_writer *writer);

struct sample_reader;

/* The reader interns all functions in functions. NULL when memory is short. */
struct sample_reader *sample_reader_new(struct functions *functions);
void sample_reader_free(struct sample_reader *reader);

/* Does the message begin with forget? Then the caller may drop all functions before reading it. */
bool sample_message_forgets(const unsigned char *bytes, size_t size);

/*
 * Read the sample of a message; what it points to is valid until the next call. 0;
 * -EBADMSG if the bytes are no message (any bytes are safe); or -ENOMEM, after which no
 * more can be read.
 */
int sample_reader_read(struct sample_reader *reader, const unsigned char *bytes, size_t size,
		       struct sample *ret_sample);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * sample_message: a sample as bytes, from the engine to the front (apart.h).
 *
 *	message  = forget? function* sample
 *	forget   = 04
 *	function = 01 kind:uint firstline:uint name:text file:text module:text
 *	         | 02 reason:uint		of a lost frame: enum lost_reason
 *	sample   = 03 time:uint pid:uint tid:uint process_name:text thread_name:text
 *	           phase:text thread_state:uint vm_state:uint wait:ref cpu:uint wall:uint
 *	           loop:uint sleeps:uint count:uint frame{count}
 *	frame    = function:ref line:uint certainty
 *
 *	uint     = LEB128, at most 64 bits
 *	text     = 0: none, or its length and 1, then its bytes, none of them NUL
 *	ref      = 0: none, or the number of a function: 1 is the first that was
 *	           defined, and so on
 *
 *	            7 6 5 4 3 2 1 0
 *	certainty = - - - - - J C C	C: enum frame_certainty, J: compiled code
 *
 * A function is defined in the message of the first sample that has it: what a
 * message defines holds once it has been sent, until one of a later message has all
 * forgotten; numbers begin at 1 again then. A phase is one of request.h. A sample's
 * trace and stack are not told.
 */
#ifndef LJSPY_SAMPLE_MESSAGE_H
#define LJSPY_SAMPLE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "output/sample/functions.h"
#include "output/sample/sample.h"

struct sample_writer;

/* Of messages of at most so many bytes. NULL when memory is short. */
struct sample_writer *sample_writer_new(size_t size_max);
void sample_writer_free(struct sample_writer *writer);

/*
 * The message, which is the writer's until the next call. NULL if it would be too
 * long or memory is short.
 */
const void *sample_writer_write(struct sample_writer *writer, const struct sample *sample,
				size_t *ret_size);

/* Has the message that was written last been sent? Otherwise its functions will be defined again. */
void sample_writer_note(struct sample_writer *writer, bool sent);

/* Functions are about to be dropped: the next message has all forgotten. */
void sample_writer_forget(struct sample_writer *writer);

struct sample_reader;

/* functions receives all functions. NULL when memory is short. */
struct sample_reader *sample_reader_new(struct functions *functions);
void sample_reader_free(struct sample_reader *reader);

/* Does the message begin with having all functions forgotten? Before it is read, they may be dropped. */
bool sample_message_forgets(const unsigned char *bytes, size_t size);

/*
 * The sample of a message, with what it points to valid until the next call. 0;
 * -EBADMSG if it is none, whatever its bytes are; or -ENOMEM: then no more can be read.
 */
int sample_reader_read(struct sample_reader *reader, const unsigned char *bytes, size_t size,
		       struct sample *ret_sample);

#endif

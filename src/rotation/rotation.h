/* SPDX-License-Identifier: MIT */
/*
 * rotation: the samples of one sampling run, in one recording of an archive after another.
 *
 * A recording ends at its time, or where it has taken its part of the archive's bytes. What cannot be written
 * is counted, told to the user once, and tried again: recording goes on as soon as it can. All but
 * rotation_init(), rotation_missing() and rotation_free() are called by the thread that samples, within
 * first_thread_run().
 */
#ifndef LJSPY_ROTATION_H
#define LJSPY_ROTATION_H

#include <stdbool.h>
#include <stdint.h>

#include "output/recording/recording_writer.h"
#include "output/sample/figures.h"
#include "output/sample/sample.h"
#include "output/sample/session.h"
#include "src/archive/archive.h"
#include "src/program/first_thread.h"
#include "src/push/pusher.h"
#include "src/rotation/labelled.h"

/* Everything that is pointed to outlives the rotation. */
struct rotation_options {
	uint64_t every_ns;    /* recordings follow each other; 0: each waits for its rotation_begin() */
	uint64_t for_ns;      /* then each ends so long after that, or after it was opened at last */
	unsigned int rate_hz; /* that was asked for */
	struct archive *archive;
	struct first_thread *first;  /* opens and deletes the files */
	const struct pusher *pusher; /* without a process: nothing is pushed */
	const char *roots;           /* what the session has as roots when a recording ends; "" if nothing */
};

struct rotation {
	struct rotation_options options;
	struct session session; /* of the current recording; the caller sets what all recordings share */
	struct figures so_far;  /* of the run: the caller sets them when it knows them */
	bool idle;              /* no recording is on, nor is one tried */
	uint64_t idle_since_ns; /* CLOCK_MONOTONIC */

	/* The current recording. */
	struct recording_writer *writer; /* NULL between two, if none could be opened */
	struct figures figures;          /* of its samples */
	struct figures before;           /* of the run, up to its beginning */
	struct labelled labelled;        /* for pushing */
	uint64_t end_ns;                 /* CLOCK_MONOTONIC */
	uint64_t unwritten;       /* samples that could not be written, and that no recording tells of yet */
	uint64_t told;            /* so many of them the figures of this one have */
	uint64_t unflushed;       /* samples that are in the writer only */
	bool failed;              /* nothing can be written for now */
	bool ended;               /* its end is what could not be written */
	bool said_bounds;         /* the user knows that old recordings cannot be deleted */
	int error;                /* of the errand; a negative errno */
	uint64_t recorded_cpu_ns; /* CPU time in earlier recordings */
	uint64_t missing;         /* samples since writing failed */
	uint64_t all_missing;
	int64_t clock_offset_ns; /* CLOCK_REALTIME against CLOCK_MONOTONIC */
	int64_t suspended_ns;    /* how long the machine was by then */
};

/* Without a recording; session and so_far are empty. */
void rotation_init(struct rotation *rotation, const struct rotation_options *options);
void rotation_free(struct rotation *rotation);

/* Begin the first recording, or be idle from then on. */
void rotation_begin_first(struct rotation *rotation, uint64_t now_ns);

/*
 * While idle: begin a recording of what was sampled from start_ns on; before are the figures of the run by
 * then. False if it could not be opened, which the user was told; it is tried again.
 */
bool rotation_begin(struct rotation *rotation, uint64_t start_ns, const struct figures *before,
		    uint64_t now_ns);

/* End recordings that are over by then. */
void rotation_advance(struct rotation *rotation, uint64_t now_ns);

/* Add a sample (a sample_take, with the rotation as its context). 0: what cannot be written is counted. */
int rotation_take(void *context, const struct sample *given);

/* After this call the recording points to no function. */
void rotation_forget_functions(struct rotation *rotation);

/*
 * Call this about once a second: end what is over though no sample came, what is too large, and what was
 * recorded by another setting of the clock, and see that all is written so far.
 */
void rotation_keep_up(struct rotation *rotation, uint64_t now_ns);
void rotation_write(struct rotation *rotation);

/*
 * End the last recording; all are the figures of the run. Where recordings follow each other, it gets the CPU
 * time that no sample stands for.
 */
void rotation_end(struct rotation *rotation, const struct figures *all);

/* How many samples could not be written, all in all. */
uint64_t rotation_missing(const struct rotation *rotation);

#endif

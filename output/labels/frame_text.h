/* SPDX-License-Identifier: MIT */
/*
 * frame_text: the names of frames in formats for other tools: the labels of
 * output/labels/frame_label.h, escaped as ESCAPE_PLAIN. A function has the same
 * name in all formats but pprof's (output/formats/pprof_name.h).
 */
#ifndef LJSPY_FRAME_TEXT_H
#define LJSPY_FRAME_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "output/labels/frame_label.h"

/* Escaping turns a byte into at most four. */
enum { FRAME_TEXT_SIZE = 4 * FRAME_LABEL_SIZE };

/* Write the name of a frame to ret_text, and return ret_text. */
const char *frame_text(const struct function *function, uint32_t line, bool by_line,
		       char ret_text[static FRAME_TEXT_SIZE]);

/*
 * Write the source file, without the mark of a chunk name, to ret_text, and return ret_text. A long one
 * keeps its beginning. NULL if unknown.
 */
const char *frame_text_file(const struct function *function, char ret_text[static FRAME_TEXT_SIZE]);

#endif

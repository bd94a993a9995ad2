/* SPDX-License-Identifier: MIT */
/*
 * frame_text: frames as formats for other tools name them: the labels of
 * output/labels/frame_label.h, escaped as ESCAPE_PLAIN. All formats have the same
 * name for the same function.
 */
#ifndef LJSPY_FRAME_TEXT_H
#define LJSPY_FRAME_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "output/labels/frame_label.h"

/* The longest spelling of any byte has four. */
enum { FRAME_TEXT_SIZE = 4 * FRAME_LABEL_SIZE };

/* Returns ret_text. */
const char *frame_text(const struct function *function, uint32_t line, bool by_line,
		       char ret_text[static FRAME_TEXT_SIZE]);

/* The source file without the mark of a chunk name; long ones keep their beginning. NULL if unknown. */
const char *frame_text_file(const struct function *function,
			    char ret_text[static FRAME_TEXT_SIZE]);

#endif

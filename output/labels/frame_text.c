/* SPDX-License-Identifier: MIT */
#include "output/labels/frame_text.h"

#include "output/labels/escape.h"

const char *frame_text(const struct function *function, uint32_t line, bool by_line,
		       char ret_text[static FRAME_TEXT_SIZE])
{
	char label[FRAME_LABEL_SIZE];

	frame_label(function, line, by_line, label);
	escape_text(ESCAPE_PLAIN, label, ret_text, FRAME_TEXT_SIZE);
	return ret_text;
}

const char *frame_text_file(const struct function *function, char ret_text[static FRAME_TEXT_SIZE])
{
	if (!function->file)
		return NULL;
	escape_text(ESCAPE_PLAIN, frame_label_file(function->file), ret_text, FRAME_TEXT_SIZE);
	return ret_text;
}

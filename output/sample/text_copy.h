/* SPDX-License-Identifier: MIT */
/*
 * text_copy: a text that may be missing, for something that keeps its own.
 */
#ifndef LJSPY_TEXT_COPY_H
#define LJSPY_TEXT_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* A copy to be freed; NULL for NULL. False, and NULL, when memory is short. */
static inline bool text_copy(const char *text, char **ret_copy)
{
	*ret_copy = text ? strdup(text) : NULL;
	return !text || *ret_copy;
}

#endif

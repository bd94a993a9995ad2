/* SPDX-License-Identifier: MIT */
/*
 * short_label: a label in little room.
 *
 * The name comes first and then the end of the file, because two functions of
 * one deep folder differ there:
 *
 *   handler /usr/local/share/lua/5.1/kong/plugins/rate-limiting/handler.lua:12
 *   handler kong/plugins/rate-limiting/handler.lua:12
 *   handler …/rate-limiting/handler.lua:12
 *   handler …/handler.lua:12
 *   handler …ler.lua:12
 *   handler
 *   ha…r
 *
 * The script of the flame graph does the same (output/flamegraph/label.js).
 */
#ifndef LJSPY_SHORT_LABEL_H
#define LJSPY_SHORT_LABEL_H

#include <stddef.h>

#include "output/labels/label_table.h"

/*
 * Write the longest form of a label that fits in columns (at least 2), without
 * its package root. Characters from U+1000 on take two columns. Returns the
 * length.
 */
size_t short_label(const struct label *label, size_t columns, char ret_text[static LABEL_TEXT_SIZE]);

/* The number of bytes of valid UTF-8 text that fit in columns. */
size_t short_label_fitting(const char *text, size_t columns);

#endif

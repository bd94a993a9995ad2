/* SPDX-License-Identifier: MIT */
/*
 * heeded: does the format that was chosen heed the options that were given?
 */
#ifndef LJSPY_HEEDED_H
#define LJSPY_HEEDED_H

#include <stdbool.h>

#include "src/options/options.h"

/*
 * kinds: of enum option_formats, what may be shown. False after telling the user of an option without effect.
 */
bool heeded_check(const struct options *options, unsigned int kinds);

#endif

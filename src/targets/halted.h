/* SPDX-License-Identifier: MIT */
/* halted: tell which targets could not run, and how to let them go on. */
#ifndef LJSPY_HALTED_H
#define LJSPY_HALTED_H

#include "src/sampler/sampler.h"

enum { HALTED_WORDS_SIZE = 128 };

/* "process 12 is stopped, as by SIGSTOP or Ctrl-Z" in ret_words, which it returns. */
const char *halted_words(const struct sampler_halted *halted, char ret_words[static HALTED_WORDS_SIZE]);

/* Tell what lets it go on. */
void halted_tell_remedy(const struct sampler_halted *halted);

#endif

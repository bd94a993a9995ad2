/* SPDX-License-Identifier: MIT */
/* backoff: how long to wait until a server that has failed is tried again. */
#ifndef LJSPY_BACKOFF_H
#define LJSPY_BACKOFF_H

#include <stdint.h>

/*
 * After the first, second, ... failure in a row: a second, two, four, ... up to a minute,
 * shortened at random by up to a quarter, so that a fleet does not come all at once; and
 * not less than the server asks for.
 */
uint64_t backoff_ns(unsigned int failures, unsigned int retry_after_s, uint32_t random);

#endif

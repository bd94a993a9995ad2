/* SPDX-License-Identifier: MIT */
/* ljspy record --every and --when: write recordings into an archive, without an end. */
#ifndef LJSPY_RECORD_ARCHIVE_H
#define LJSPY_RECORD_ARCHIVE_H

#include "src/options/invocation.h"

enum exit_status record_archive(const struct invocation *invocation);

#endif

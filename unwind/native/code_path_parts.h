/* SPDX-License-Identifier: MIT */
/* code_path_parts: what the files of code_path for each machine share. */
#ifndef LJSPY_CODE_PATH_PARTS_H
#define LJSPY_CODE_PATH_PARTS_H

#include "unwind/native/code_path.h"

/* The value plus an offset; unknown if it is too large. */
struct path_value code_path_plus(struct path_value value, int64_t offset);

/* The word at an address. */
struct path_value code_path_load(const struct code_path *path, struct path_value address);

/* A store to an unknown address does not matter: the stack's addresses are known. */
void code_path_store(struct code_path *path, struct path_value address, int64_t size,
		     struct path_value value);

#endif

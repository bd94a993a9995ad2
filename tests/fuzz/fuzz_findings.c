/* SPDX-License-Identifier: MIT */
/*
 * Lines of source files, by which ljspy check tells what nameless work is for.
 */
#include <stdlib.h>
#include <string.h>

#include "output/findings/work_kind.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct function handler = { .kind = FRAME_LUA }, vm = { .kind = FRAME_VM };
	const struct function remove = { .kind = FRAME_BUILTIN, .name = "table.remove" };
	struct work work = { .key = { .function = &handler, .leaf = &vm, .state = VM_STATE_C } };
	char *line = malloc(size + 1);
	enum finding_kind kind;

	fuzz_check(line != NULL, "there is memory");
	memcpy(line, data, size);
	line[size] = '\0';
	kind = work_kind(&work, line);
	fuzz_check(kind == FINDING_JOINS || kind == FINDING_STORES || kind == FINDING_FORMATS ||
			   kind == FINDING_SHIFTS || kind == FINDING_OWN_WORK,
		   "a line is of a kind");
	work.key.callee = work.key.leaf = &remove;
	kind = work_kind(&work, line);
	fuzz_check(kind == FINDING_SHIFTS || kind == FINDING_NONE, "the name counts more than the line");
	free(line);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* The program of exactness.h. */
#include <stdio.h>

#include "tests/exactness/exactness.h"

int main(int argc, char *argv[])
{
	struct exactness judged;

	if (argc < 6) {
		fprintf(stderr,
			"usage: exactness step|signal|sample LUAJIT PROGRAM on|off COUNT [JIT PARAMETER...]\n");
		return 64;
	}
	if (exactness_judge(argv, &judged))
		return 2;
	return judged.wrong ? 1 : 0;
}

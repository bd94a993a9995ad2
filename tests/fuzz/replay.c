/* SPDX-License-Identifier: MIT */
/*
 * FUZZ_TARGET FILE|FOLDER...: each file once, without libFuzzer.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

enum { INPUT_BYTES_MAX = 16 << 20, PATH_BYTES_MAX = 4096 };

static unsigned int replay_file(const char *path)
{
	uint8_t *bytes = malloc(INPUT_BYTES_MAX), *exact;
	FILE *file = fopen(path, "r");
	size_t size;

	fuzz_check(bytes && file, path);
	size = fread(bytes, 1, INPUT_BYTES_MAX, file);
	fclose(file);
	/* Nothing lies behind it that could be read unnoticed by a sanitizer. */
	exact = realloc(bytes, size ? size : 1);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
	return 1;
}

static unsigned int replay(const char *path)
{
	char inside[PATH_BYTES_MAX];
	struct dirent *entry;
	unsigned int count = 0;
	DIR *folder = opendir(path);

	if (!folder)
		return replay_file(path);
	while ((entry = readdir(folder))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(inside, sizeof(inside), "%s/%s", path, entry->d_name);
		count += replay(inside);
	}
	closedir(folder);
	return count;
}

int main(int argc, char *argv[])
{
	const char *name = strrchr(argv[0], '/');
	unsigned int count = 0;

	for (int i = 1; i < argc; i++)
		count += replay(argv[i]);
	printf("%s: %u inputs replayed\n", name ? name + 1 : argv[0], count);
	return 0;
}

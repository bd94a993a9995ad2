/* SPDX-License-Identifier: MIT */
#include "src/push/credentials.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A line without its end. */
static bool read_line(const char *line, size_t length, struct credentials *credentials)
{
	const struct {
		const char *word;
		char *value;
	} words[] = {
		{ "user ", credentials->user },
		{ "token ", credentials->token },
		{ "tenant ", credentials->tenant },
	};

	if (length && line[length - 1] == '\r')
		length--;
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)line[i] < ' ' || line[i] == 127)
			return false;
	if (length == 0 || *line == '#')
		return true;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t word = strlen(words[i].word);

		if (length <= word || memcmp(line, words[i].word, word) != 0)
			continue;
		if (*words[i].value || length - word >= CREDENTIAL_SIZE)
			return false;
		memcpy(words[i].value, line + word, length - word);
		words[i].value[length - word] = '\0';
		return true;
	}
	return false;
}

int credentials_read_text(const char *text, struct credentials *ret_credentials)
{
	*ret_credentials = (struct credentials){ 0 };
	for (int number = 1; *text; number++) {
		size_t length = strcspn(text, "\n");

		if (!read_line(text, length, ret_credentials))
			return number;
		text += length + (text[length] == '\n');
	}
	return 0;
}

int credentials_read(const char *path, struct credentials *ret_credentials)
{
	char text[CREDENTIALS_FILE_MAX + 1];
	FILE *file = fopen(path, "re");
	size_t length;
	int error = 0;

	if (!file)
		return -errno;
	length = fread(text, 1, sizeof(text), file);
	if (ferror(file))
		error = errno ? -errno : -EIO;
	else if (length > CREDENTIALS_FILE_MAX)
		error = -EFBIG;
	fclose(file);
	if (!error) {
		text[length] = '\0';
		error = credentials_read_text(text, ret_credentials);
	}
	explicit_bzero(text, sizeof(text));
	return error;
}

/* SPDX-License-Identifier: MIT */
#include "src/inspect/given_layout.h"

#include <errno.h>
#include <stdio.h>

#include "luajit-layouts/layout_text.h"
#include "luajit-layouts/release.h"
#include "src/program/message.h"

static void list_releases(void)
{
	char names[4096] = "";
	size_t length = 0;

	for (size_t i = 0; release_name(i) && length < sizeof(names); i++)
		length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%s", i ? ", " : "",
					   release_name(i));
	message_note("Releases with a name are %s.", names);
}

bool given_layout_read(const char *text, struct given_layout *ret_given)
{
	struct layout layout;
	const char *reason;
	unsigned line;
	FILE *file;

	if (release_layout(text, &layout)) {
		*ret_given = (struct given_layout){ .layout = layout };
		return true;
	}
	file = fopen(text, "re");
	if (!file) {
		if (errno == ENOENT) {
			message_error("\"%s\" is neither a release nor a file with a layout.", text);
			list_releases();
		} else {
			message_error_errno(errno, "%s", text);
		}
		return false;
	}
	line = layout_text_read(file, &layout, &reason);
	fclose(file);
	if (line) {
		message_error("%s is no layout: line %u is %s.", text, line, reason);
		return false;
	}
	*ret_given = (struct given_layout){ .layout = layout, .is_trusted = true };
	return true;
}

/* SPDX-License-Identifier: MIT */
#include "src/rendering/sources.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory/errand.h"
#include "src/linux/files/home.h"
#include "src/linux/proc/process.h"
#include "src/linux/files/root_file.h"

/* A process's start is known to this time: a tick of the kernel's. */
static const uint64_t start_error_ns = 10000000;

struct sources {
	struct source_reader reader; /* first: the interface */
	struct errands *errands;
	const struct session_home *home;
	uint64_t start_unix_ns; /* of the session */
	bool is_elsewhere;      /* it was another machine, or before this one started */
	bool is_alive;          /* the target still is */
	char root[PATH_MAX];    /* "" if there is none to read from */
};

static void note(struct source_text *text, const char *words)
{
	snprintf(text->note, sizeof(text->note), "%s", words);
}

static bool is_still(const struct session_home *home)
{
	struct process process;
	bool is_same;

	if (home->pid <= 0 || process_read(home->pid, &process))
		return false;
	is_same = process.start_ticks == home->start_ticks && !process_is_zombie(&process);
	process_clear(&process);
	return is_same;
}

static void find_root(struct sources *sources)
{
	const struct session_home *home = sources->home;
	char boot[HOME_BOOT_SIZE];

	home_boot(boot);
	sources->is_elsewhere = !home->boot || !*boot || strcmp(home->boot, boot) != 0;
	sources->is_alive = !sources->is_elsewhere && is_still(home);
	if (sources->is_alive)
		snprintf(sources->root, sizeof(sources->root), "/proc/%d/root", (int)home->pid);
	/* Somebody else may not use the target's root, but perhaps the path to it. */
	if (sources->is_alive && access(sources->root, F_OK) == 0)
		return;
	*sources->root = '\0';
	if (sources->is_elsewhere)
		snprintf(sources->root, sizeof(sources->root), "/");
	else if (home->root && strlen(home->root) < sizeof(sources->root))
		memcpy(sources->root, home->root, strlen(home->root) + 1);
}

/* The absolute path of a file below the root. False, with a note, if there is none. */
static bool find_path(const struct sources *sources, const char *file, char ret_path[static PATH_MAX],
		      struct source_text *text)
{
	const char *directory = sources->home->directory;
	int length;

	if (*file != '@') {
		note(text, "the program gave this source as a text, not as a file");
		return false;
	}
	file++;
	if (*file != '/' && !directory) {
		note(text, "it is not known which directory this name is relative to");
		return false;
	}
	length = *file == '/' ? snprintf(ret_path, PATH_MAX, "%s", file)
			      : snprintf(ret_path, PATH_MAX, "%s/%s", directory, file);
	if (length >= PATH_MAX)
		note(text, "its path is too long");
	return length < PATH_MAX;
}

static const char *refusal(int error)
{
	switch (error) {
	case -ENOENT:
	case -ENOTDIR: return "there is no such file";
	case -EACCES:
	case -EPERM: return "not readable by everybody, or not by you";
	case -EFBIG: return "too large to show";
	case -EINVAL: return "no regular file";
	case -EILSEQ: return "no text";
	case -ETIMEDOUT: return "its disk does not answer";
	default: return strerror(-error);
	}
}

/* What may be wrong with lines that could be read. */
static void note_doubts(const struct sources *sources, uint64_t changed_ns, struct source_text *text)
{
	const bool knows_begin = sources->home->began_unix_ns > 0;
	const uint64_t since_ns = knows_begin ? sources->home->began_unix_ns + start_error_ns
					      : sources->start_unix_ns;
	const bool is_newer = since_ns > 0 && changed_ns > since_ns;

	snprintf(text->note, sizeof(text->note), "%s%s%s",
		 sources->is_elsewhere ? "read on another machine than the target ran on, or after a restart"
				       : "",
		 sources->is_elsewhere && is_newer ? "; " : "",
		 !is_newer     ? ""
		 : knows_begin ? "changed after the process began: lines may have moved"
			       : "changed after the recording began: lines may have moved");
}

static int read_file(const struct sources *sources, const char *path, struct source_text *ret_text)
{
	struct root_file_wanted wanted = {
		.root = sources->root,
		.path = path,
		.size_max = SOURCE_BYTES_MAX,
	};
	struct root_file file;
	int error = root_file_read(sources->errands, &wanted, &file);

	if (!error)
		error = source_text_split(file.bytes, file.length, ret_text);
	if (error == -ENOMEM)
		return error;
	if (error)
		note(ret_text, refusal(error));
	else
		note_doubts(sources, file.changed_unix_ns, ret_text);
	return 0;
}

static int read_source(struct source_reader *reader, const char *file, struct source_text *ret_text)
{
	const struct sources *sources = (const struct sources *)reader;
	struct source_text text = { 0 };
	char path[PATH_MAX];
	int error = 0;

	if (!find_path(sources, file, path, &text)) {
		*ret_text = text;
		return 0;
	}
	if (!*sources->root)
		note(&text, "the process has ended, and with it the file system that it had");
	else
		error = read_file(sources, path, &text);
	/* The process may have ended in between, and another have its pid. */
	if (!error && sources->is_alive && text.lines && !is_still(sources->home)) {
		source_text_clear(&text);
		note(&text, "the process ended while its files were read");
	}
	*ret_text = text;
	return error;
}

struct source_reader *sources_new(const struct session *session)
{
	struct sources *sources = calloc(1, sizeof(*sources));

	if (!sources)
		return NULL;
	sources->reader.read = read_source;
	sources->home = &session->home;
	sources->start_unix_ns = session->start_unix_ns;
	sources->errands = errands_new();
	if (!sources->errands) {
		free(sources);
		return NULL;
	}
	find_root(sources);
	return &sources->reader;
}

void sources_free(struct source_reader *reader)
{
	struct sources *sources = (struct sources *)reader;

	if (!sources)
		return;
	errands_free(sources->errands);
	free(sources);
}

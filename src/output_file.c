#include "src/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_stream(int fd, struct output_file *file)
{
	file->stream = fdopen(fd, "w");
	if (file->stream)
		return 0;
	close(fd);
	return -errno;
}

static int open_directly(const char *path, struct output_file *file)
{
	int fd = strcmp(path, "-") == 0 ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
					: open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -errno : open_stream(fd, file);
}

static int open_temporary(const char *path, mode_t mode, struct output_file *file)
{
	int fd, error;

	if (asprintf(&file->temporary, "%s.XXXXXX", path) < 0)
		return -ENOMEM;
	fd = mkostemp(file->temporary, O_CLOEXEC);
	error = fd < 0 ? -errno : fchmod(fd, mode) ? -errno : 0;
	if (!error)
		error = open_stream(fd, file);
	else if (fd >= 0)
		close(fd);
	if (error && fd >= 0)
		unlink(file->temporary);
	if (error) {
		free(file->temporary);
		file->temporary = NULL;
	}
	return error;
}

int output_file_open(const char *path, struct output_file *ret_file)
{
	struct output_file file = { .path = path };
	struct stat status;
	mode_t mask = umask(0);
	int error;

	umask(mask);
	if (strcmp(path, "-") == 0)
		error = open_directly(path, &file);
	else if (stat(path, &status) == 0)
		error = S_ISDIR(status.st_mode) ? -EISDIR :
			S_ISREG(status.st_mode) && access(path, W_OK) ? -errno :
			S_ISREG(status.st_mode)
				? open_temporary(path, status.st_mode & 07777, &file)
				: open_directly(path, &file);
	else if (errno == ENOENT)
		error = open_temporary(path, 0666 & ~mask, &file);
	else
		error = -errno;
	if (!error)
		*ret_file = file;
	return error;
}

/* Written data may be refused as late as when it is flushed. */
static int close_stream(struct output_file *file)
{
	bool had_error = ferror(file->stream) != 0;
	int error = 0;

	errno = 0;
	if (fflush(file->stream))
		error = -errno;
	if (fclose(file->stream) && !error)
		error = -errno;
	file->stream = NULL;
	return error ? error : had_error ? -EIO : 0;
}

int output_file_commit(struct output_file *file)
{
	int error = close_stream(file);

	if (file->temporary) {
		if (!error && rename(file->temporary, file->path))
			error = -errno;
		if (error)
			unlink(file->temporary);
		free(file->temporary);
		file->temporary = NULL;
	}
	return error;
}

int output_file_publish(struct output_file *file)
{
	if (!file->temporary)
		return 0;
	if (rename(file->temporary, file->path))
		return -errno;
	free(file->temporary);
	file->temporary = NULL;
	return 0;
}

/* A file in that directory which has no name, or none any more; -1 if there can be none. */
static int open_nameless(const char *directory)
{
	int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char *path;

	if (fd >= 0 || asprintf(&path, "%s/ljspy.XXXXXX", directory) < 0)
		return fd;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	free(path);
	return fd;
}

static int open_beside(const char *path)
{
	char *copy = strdup(path);
	int fd = copy ? open_nameless(dirname(copy)) : -1;

	free(copy);
	return fd;
}

int output_file_scratch(const struct output_file *output, FILE **ret_stream)
{
	const char *given = getenv("TMPDIR");
	int fd = output->temporary ? open_beside(output->temporary) : -1;
	FILE *stream;

	if (fd < 0 && given && *given)
		fd = open_nameless(given);
	if (fd < 0)
		fd = open_nameless("/tmp");
	if (fd < 0)
		fd = memfd_create("ljspy", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	stream = fdopen(fd, "w+");
	if (!stream) {
		close(fd);
		return -ENOMEM;
	}
	*ret_stream = stream;
	return 0;
}

void output_file_abandon(struct output_file *file)
{
	if (!file->stream)
		return;
	fclose(file->stream);
	file->stream = NULL;
	if (file->temporary)
		unlink(file->temporary);
	free(file->temporary);
	file->temporary = NULL;
}

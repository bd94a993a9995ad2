/* SPDX-License-Identifier: MIT */
/*
 * hanging_disk DIRECTORY FILE...: a file system with these files, by FUSE, in a mount namespace
 * of its own. Says "ready", or why there is none. For a line "hang" it leaves what is
 * asked from then on unanswered; for "go on" it answers again.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	FILES_MAX = 8,
	REQUEST_MAX = 1 << 17,
	READ_MAX = 1 << 17,
	FIRST_NODE = 2, /* 1 is the directory */
};

struct file {
	const char *name;
	int fd;
};

static struct file files[FILES_MAX];
static int file_count, fuse;
static _Alignas(8) char request[REQUEST_MAX];
static char bytes[READ_MAX];

static void reply(const struct fuse_in_header *in, int error, void *body, size_t length)
{
	struct fuse_out_header header = {
		.len = (uint32_t)(sizeof(header) + (error ? 0 : length)),
		.error = -error,
		.unique = in->unique,
	};
	struct iovec io[] = { { &header, sizeof(header) }, { body, error ? 0 : length } };

	if (writev(fuse, io, 2) < 0 && errno != ENOENT) /* interrupted meanwhile */
		perror("reply");
}

static struct fuse_attr attributes_of(uint64_t node)
{
	struct stat status = { .st_mode = S_IFDIR | 0755, .st_nlink = 2 };

	if (node >= FIRST_NODE)
		fstat(files[node - FIRST_NODE].fd, &status);
	return (struct fuse_attr){
		.ino = node,
		.size = (uint64_t)status.st_size,
		.mode = (status.st_mode & S_IFMT) | 0755,
		.nlink = (uint32_t)status.st_nlink,
		.mtime = (uint64_t)status.st_mtime,
		.blksize = 4096,
	};
}

static void look_up(const struct fuse_in_header *in, const char *name)
{
	struct fuse_entry_out entry = { 0 };

	for (int i = 0; i < file_count && !entry.nodeid; i++)
		if (strcmp(files[i].name, name) == 0)
			entry.nodeid = (uint64_t)i + FIRST_NODE;
	entry.attr = attributes_of(entry.nodeid);
	reply(in, entry.nodeid ? 0 : ENOENT, &entry, sizeof(entry));
}

static void read_file(const struct fuse_in_header *in, const struct fuse_read_in *asked)
{
	size_t size = asked->size < sizeof(bytes) ? asked->size : sizeof(bytes);
	ssize_t length = pread(files[in->nodeid - FIRST_NODE].fd, bytes, size, (off_t)asked->offset);

	reply(in, length < 0 ? errno : 0, bytes, length < 0 ? 0 : (size_t)length);
}

static void answer(void)
{
	const struct fuse_in_header *in = (const void *)request;
	const void *body = in + 1;
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.max_readahead = 4096,
		.max_write = 4096,
		.max_background = 16,
		.congestion_threshold = 12,
	};
	struct fuse_attr_out attributes = { 0 };
	struct fuse_open_out opened = { .open_flags = FOPEN_KEEP_CACHE };

	switch (in->opcode) {
	case FUSE_INIT: reply(in, 0, &init, sizeof(init)); break;
	case FUSE_LOOKUP: look_up(in, body); break;
	case FUSE_GETATTR:
		attributes.attr = attributes_of(in->nodeid);
		reply(in, 0, &attributes, sizeof(attributes));
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR: reply(in, 0, &opened, sizeof(opened)); break;
	case FUSE_READ: read_file(in, body); break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_READDIR: reply(in, 0, NULL, 0); break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT: break;
	default: reply(in, ENOSYS, NULL, 0); break;
	}
}

static bool mount_at(const char *directory)
{
	char options[128];

	fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fuse);
	return fuse >= 0 && unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("hanging", directory, "fuse", MS_NOSUID | MS_NODEV, options) == 0;
}

/* What the line asks for: whether it hangs. */
static bool read_line(void)
{
	char line[16];

	if (!fgets(line, sizeof(line), stdin))
		exit(0);
	return strcmp(line, "hang\n") == 0;
}

int main(int argc, char **argv)
{
	struct pollfd polled[] = { { .fd = STDIN_FILENO, .events = POLLIN }, { .events = POLLIN } };
	bool hangs = false;

	setvbuf(stdin, NULL, _IONBF, 0);
	for (int i = 2; i < argc && file_count < FILES_MAX; i++) {
		const char *slash = strrchr(argv[i], '/');

		files[file_count++] = (struct file){ slash ? slash + 1 : argv[i],
						     open(argv[i], O_RDONLY | O_CLOEXEC) };
	}
	puts(argc > 2 && mount_at(argv[1]) ? "ready" : strerror(errno));
	fflush(stdout);
	polled[1].fd = fuse;
	while (poll(polled, hangs ? 1 : 2, -1) > 0) {
		if (polled[0].revents)
			hangs = read_line();
		else if (read(fuse, request, sizeof(request)) > 0)
			answer();
		else if (errno == ENODEV)
			break;
		polled[1].revents = 0;
	}
	return 0;
}

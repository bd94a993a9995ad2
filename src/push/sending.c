/* SPDX-License-Identifier: MIT */
#include "src/push/sending.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/archive/archive_list.h"
#include "src/linux/files/same_file.h"
#include "src/program/message.h"
#include "src/push/backoff.h"
#include "src/push/mark.h"

/* How long to wait for the ljspy that has the mark, which is about to end. */
static const uint64_t lock_wait_ns = 200000000;
static const uint64_t nothing_to_do = UINT64_MAX;

enum { TRIES_MIN = 4, CREDIT_MAX = 4 };

struct sending {
	struct sending_options options;
	struct http *http;
	struct mark mark;
	struct batch *batch; /* of recording mark.current; NULL if there is none yet */
	struct push_profile profile;
	struct http_answer failure; /* the last one */
	uint64_t sent, refused, unreadable, deleted, waiting;
	int mark_fd;           /* -1: not open yet */
	unsigned int failures; /* in a row */
	unsigned int tries;    /* of the profile that is due, with which the server failed */
	unsigned int proved;   /* so many profiles that it fails with have been proved in a row */
	unsigned int credit;   /* so many more count as proved */
	bool mark_failed;      /* the user knows that it cannot be written */
	bool has_profile;
	bool failure_said[HTTP_CAUSES_MAX]; /* of these failures */
	bool is_failure_said;               /* any of them */
	bool refusal_said[HTTP_CAUSES_MAX];
	bool deletion_said;
};

struct sending *sending_new(const struct sending_options *options)
{
	struct sending *sending = calloc(1, sizeof(*sending));

	if (!sending)
		return NULL;
	sending->options = *options;
	sending->mark_fd = -1;
	sending->http = http_new(options->ca, options->gives_up, options->context);
	if (!sending->http) {
		free(sending);
		return NULL;
	}
	return sending;
}

static void forget_profile(struct sending *sending)
{
	if (sending->has_profile)
		free(sending->profile.bytes);
	sending->has_profile = false;
	sending->tries = 0;
}

static void close_batch(struct sending *sending)
{
	forget_profile(sending);
	batch_close(sending->batch);
	sending->batch = NULL;
}

void sending_free(struct sending *sending)
{
	if (!sending)
		return;
	close_batch(sending);
	http_free(sending->http);
	if (sending->mark_fd >= 0)
		close(sending->mark_fd);
	free(sending);
}

/*---- The mark ----*/

static void keep_mark(struct sending *sending)
{
	int error = mark_write(sending->mark_fd, &sending->mark);

	if (error && !sending->mark_failed)
		message_error_errno(-error, "%s/pushed: after a restart, profiles may be pushed twice",
				    sending->options.path);
	sending->mark_failed = error != 0;
}

/* What an archive holds from before it was first pushed stays where it is. */
static void begin_mark(struct sending *sending, int error)
{
	if (error != -ENODATA)
		message_warn("%s/pushed cannot be read: what is recorded from now on is pushed.",
			     sending->options.path);
	sending->mark = (struct mark){ .done = sending->options.newest };
	keep_mark(sending);
}

/* Lock and read the mark. 0 or a negative errno. */
static int open_mark(struct sending *sending)
{
	int fd = mark_open(sending->options.directory), error;

	if (fd < 0)
		return fd;
	sending->mark_fd = fd;
	error = mark_read(fd, &sending->mark);
	if (error)
		begin_mark(sending, error);
	return 0;
}

static void finish_recording(struct sending *sending, uint32_t number)
{
	close_batch(sending);
	mark_finish(&sending->mark, number);
	keep_mark(sending);
}

static void finish_profile(struct sending *sending)
{
	forget_profile(sending);
	sending->mark.parts++;
	if (sending->mark.parts < batch_count(sending->batch))
		keep_mark(sending);
	else
		finish_recording(sending, sending->mark.current);
}

/*---- The archive ----*/

static void note_deleted(struct sending *sending, uint32_t count)
{
	sending->deleted += count;
	if (!sending->deletion_said)
		message_warn(
			"Recordings are deleted before they could be pushed: %s holds no more (--keep, --keep-bytes).",
			sending->options.path);
	sending->deletion_said = true;
}

static size_t count_finished(const struct archive_list *list, bool is_last_finished)
{
	return list->count - (is_last_finished || list->count == 0 ? 0 : 1);
}

/* The oldest recording that is not done; NULL if there is none. Counts those that are gone. */
static const struct archive_entry *find_next(struct sending *sending, const struct archive_list *list,
					     size_t finished)
{
	struct mark *mark = &sending->mark;
	size_t i = 0;

	/* The numbers have begun anew: somebody has emptied the directory. */
	if (list->count && list->entries[list->count - 1].number < mark->done)
		*mark = (struct mark){ .done = list->entries[0].number - 1 };
	while (i < list->count && list->entries[i].number <= mark->done)
		i++;
	sending->waiting = finished > i ? finished - i : 0;
	if (i == list->count)
		return NULL;
	if (list->entries[i].number - mark->done > 1)
		note_deleted(sending, list->entries[i].number - mark->done - 1);
	mark->done = list->entries[i].number - 1;
	return i < finished ? &list->entries[i] : NULL;
}

static void note_unreadable(struct sending *sending, const char *name, int error)
{
	if (!sending->unreadable++)
		message_error_errno(-error, "%s/%s cannot be pushed", sending->options.path, name);
}

/* *ret_batch stays as it is if the recording is empty. 0 or a negative errno. */
static int open_batch(const struct sending *sending, const struct archive_entry *entry,
		      struct batch **ret_batch)
{
	char name[ARCHIVE_NAME_SIZE];
	FILE *stream = NULL;
	int fd, error = 0;

	archive_name(entry, name);
	fd = openat(sending->options.directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0)
		stream = fdopen(fd, "r");
	if (!stream)
		error = -errno;
	if (!stream && fd >= 0)
		close(fd);
	if (stream && entry->bytes == 0)
		fclose(stream);
	else if (stream)
		error = batch_open(stream, ret_batch);
	return error;
}

/* Others may have used up memory, or files; later there may be some. */
static bool is_shortage(int error)
{
	return error == -ENOMEM || error == -EMFILE || error == -ENFILE;
}

/*
 * Open a recording, or skip it if it cannot be read or has no samples. 0, or a negative errno of a shortage.
 */
static int open_recording(struct sending *sending, const struct archive_entry *entry)
{
	char name[ARCHIVE_NAME_SIZE];
	int error = open_batch(sending, entry, &sending->batch);

	if (is_shortage(error))
		return error;
	/* If it is gone meanwhile, the next search counts it. */
	if (error == -ENOENT)
		return 0;
	if (error) {
		archive_name(entry, name);
		note_unreadable(sending, name, error);
	}
	if (!sending->batch || batch_count(sending->batch) == 0) {
		finish_recording(sending, entry->number);
		return 0;
	}
	if (sending->mark.current != entry->number)
		sending->mark.parts = 0;
	sending->mark.current = entry->number;
	if (sending->mark.parts == 0 && mark_is_ahead(&sending->mark, entry->number))
		sending->mark.parts = 1;
	/* A recording that a kill cut short may be another now. */
	if (sending->mark.parts >= batch_count(sending->batch))
		finish_recording(sending, entry->number);
	return 0;
}

/*
 * If somebody has moved the directory away or removed it, the recorder goes on in one of the same name, with
 * its numbers. *ret_fd is a descriptor of that one once it has a recording, to be closed, else -1. 0 or a
 * negative errno.
 */
static int open_successor(const struct sending *sending, int *ret_fd)
{
	struct archive_list list = { 0 };
	struct stat here, there;
	int fd = open(sending->options.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), error = 0;

	if (fd < 0 && errno != ENOENT)
		return -errno;
	if (fd >= 0 && fstat(sending->options.directory, &here) == 0 && fstat(fd, &there) == 0 &&
	    !same_file(&here, &there))
		error = archive_list_read(fd, &list);
	if (list.count == 0 && fd >= 0) {
		close(fd);
		fd = -1;
	}
	archive_list_clear(&list);
	if (!error)
		*ret_fd = fd;
	return error;
}

/* The mark holds there, too. 0 or a negative errno. */
static int move_to(struct sending *sending, int directory)
{
	int fd;

	dup3(directory, sending->options.directory, O_CLOEXEC);
	if (sending->mark_fd < 0)
		return 0;
	close(sending->mark_fd);
	sending->mark_fd = -1;
	fd = mark_open(sending->options.directory);
	if (fd < 0)
		return fd;
	sending->mark_fd = fd;
	keep_mark(sending);
	return 0;
}

/* As find_recording(), in this directory. */
static int look_here(struct sending *sending, bool is_last_finished)
{
	struct archive_list list;
	const struct archive_entry *entry = NULL;
	int error = archive_list_read(sending->options.directory, &list);
	size_t finished;

	if (error)
		return error;
	/* Nothing of ljspy's stays in a directory that never had a recording. */
	if (sending->mark_fd < 0 && list.count)
		error = open_mark(sending);
	finished = count_finished(&list, is_last_finished);
	if (!error)
		entry = find_next(sending, &list, finished);
	if (entry)
		error = open_recording(sending, entry);
	archive_list_clear(&list);
	return error ? error : entry != NULL;
}

/* 1: look again; 0: nothing to do; or a negative errno. */
static int find_recording(struct sending *sending, bool is_last_finished)
{
	int successor = -1, error = open_successor(sending, &successor), result;

	if (error)
		return error;
	result = look_here(sending, is_last_finished || successor >= 0);
	/* Of a directory that was removed, there is no list. Nothing is lost if it had no recording. */
	if (successor < 0)
		return result == -ENOENT && sending->mark_fd < 0 ? 0 : result;
	if (result == 0 || result == -ENOENT) {
		error = move_to(sending, successor);
		result = error ? error : 1;
	}
	close(successor);
	return result;
}

/*---- Posting ----*/

/* The user reads once for each cause that it fails, and once that it goes on. */
static void say_failure(struct sending *sending)
{
	const struct sending_options *options = &sending->options;
	const struct http_answer *answer = &sending->failure;

	if (sending->failure_said[answer->cause])
		return;
	sending->failure_said[answer->cause] = sending->is_failure_said = true;
	if (answer->status)
		message_warn("%s answers %ld (%s): profiles wait in %s.", options->url, answer->status,
			     answer->message, options->path);
	else
		message_warn("%s: %s: profiles wait in %s.", options->url, answer->message, options->path);
	if (answer->status == 401 || answer->status == 403)
		message_note("Say who you are: --push-credentials FILE. ljspy reads the file at each try.");
}

/* One failure that the next try, a second later, makes good is not worth a word. */
static uint64_t wait_for(struct sending *sending, const struct http_answer *answer)
{
	const struct sending_options *options = &sending->options;
	uint32_t random = 0;

	sending->failures++;
	sending->failure = *answer;
	if (options->gives_up(options->context) && !answer->status)
		snprintf(sending->failure.message, sizeof(sending->failure.message),
			 "there was no answer before the end");
	else if (sending->failures > 1 || answer->retry_after_s)
		say_failure(sending);
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = (uint32_t)getpid() << 16;
	return backoff_ns(sending->failures, answer->retry_after_s, random);
}

static void forget_proofs(struct sending *sending)
{
	sending->proved = sending->credit = 0;
}

static void note_taken(struct sending *sending)
{
	forget_proofs(sending);
	if (sending->is_failure_said) {
		message_note("%s takes profiles again.", sending->options.url);
		memset(sending->failure_said, 0, sizeof(sending->failure_said));
		sending->is_failure_said = false;
	}
	sending->failures = 0;
	sending->sent++;
}

static void note_refused(struct sending *sending, const struct http_answer *answer)
{
	sending->failures = 0;
	sending->refused++;
	if (sending->refusal_said[answer->cause])
		return;
	sending->refusal_said[answer->cause] = true;
	message_warn("%s refuses a profile: %ld (%s). It is in %s only.", sending->options.url,
		     answer->status, answer->message, sending->options.path);
}

/* False, and an answer that says why, if they cannot be read. */
static bool read_credentials(const struct sending *sending, struct credentials *ret_credentials,
			     struct http_answer *ret_answer)
{
	const char *path = sending->options.credentials;
	int result = path ? credentials_read(path, ret_credentials) : 0;

	if (!path)
		*ret_credentials = (struct credentials){ 0 };
	if (!result)
		return true;
	*ret_answer = (struct http_answer){ 0 };
	if (result < 0)
		snprintf(ret_answer->message, sizeof(ret_answer->message), "%.150s: %s", path,
			 strerror(-result));
	else
		snprintf(ret_answer->message, sizeof(ret_answer->message), "%.150s: line %d is wrong", path,
			 result);
	return false;
}

/* -ENOMEM if there is no memory for the request, else 0 and the answer. */
static int post(const struct sending *sending, const struct push_profile *profile,
		struct http_answer *ret_answer)
{
	struct endpoint_request request;
	struct credentials credentials;
	int error;

	if (!read_credentials(sending, &credentials, ret_answer))
		return 0;
	error = endpoint_request(&sending->options.endpoint, profile, &request);
	if (!error) {
		const struct http_post post = {
			.url = request.url,
			.body = request.body,
			.length = request.length,
			.content_type = request.content_type,
			.credentials = &credentials,
			.is_direct = sending->options.endpoint.is_here,
		};

		http_post(sending->http, &post, ret_answer);
		endpoint_request_clear(&request);
	}
	explicit_bzero(&credentials, sizeof(credentials));
	return error;
}

static uint64_t wait_for_memory(struct sending *sending)
{
	const struct http_answer answer = { .message = "memory is short" };

	return wait_for(sending, &answer);
}

/*
 * Open the newest recording behind this one that has profiles and was not sent ahead. Its number; 0: there is
 * none.
 */
static uint32_t open_newest(const struct sending *sending, bool is_last_finished, struct batch **ret_batch)
{
	struct archive_list list;
	struct batch *batch = NULL;
	uint32_t number = 0;

	if (archive_list_read(sending->options.directory, &list))
		return 0;
	for (size_t i = count_finished(&list, is_last_finished); i-- > 0 && !number;) {
		const struct archive_entry *entry = &list.entries[i];

		if (entry->number <= sending->mark.current)
			break;
		if (mark_is_ahead(&sending->mark, entry->number))
			continue;
		if (open_batch(sending, entry, &batch) == 0 && batch && batch_count(batch)) {
			number = entry->number;
			*ret_batch = batch;
		} else {
			batch_close(batch);
			batch = NULL;
		}
	}
	archive_list_clear(&list);
	return number;
}

/* Send the first profile of the newest recording out of turn. Is it taken? */
static bool send_ahead(struct sending *sending, bool is_last_finished)
{
	struct http_answer answer = { 0 };
	struct push_profile profile;
	struct batch *batch = NULL;
	uint32_t number = 0;

	if (sending->mark.ahead_count < MARK_AHEAD_MAX)
		number = open_newest(sending, is_last_finished, &batch);
	if (number && batch_profile(batch, 0, &profile) == 0) {
		post(sending, &profile, &answer);
		free(profile.bytes);
	}
	batch_close(batch);
	if (endpoint_verdict(answer.status) != ENDPOINT_TAKEN)
		return false;
	sending->mark.ahead[sending->mark.ahead_count++] = number;
	keep_mark(sending);
	sending->sent++;
	return true;
}

/*
 * Does the server take another one at this time? The more profiles it failed with in a row, the longer that
 * holds.
 */
static bool proves_well(struct sending *sending, bool is_last_finished)
{
	if (sending->credit) {
		sending->credit--;
		return true;
	}
	if (!send_ahead(sending, is_last_finished)) {
		forget_proofs(sending);
		return false;
	}
	sending->credit = sending->proved < CREDIT_MAX ? sending->proved + 1 : CREDIT_MAX;
	return true;
}

/*
 * Has the server failed with this profile, and not with others? After some tries, of the first in a row, it
 * gets another one, and then this one once more.
 */
static enum endpoint_verdict judge_failure(struct sending *sending, bool is_last_finished,
					   struct http_answer *answer)
{
	enum endpoint_verdict verdict;

	if ((++sending->tries < TRIES_MIN && !sending->proved) || !proves_well(sending, is_last_finished) ||
	    post(sending, &sending->profile, answer))
		return ENDPOINT_LATER;
	verdict = endpoint_verdict(answer->status);
	if (verdict != ENDPOINT_FAILED)
		return verdict;
	sending->proved++;
	return ENDPOINT_REFUSED;
}

static uint64_t post_profile(struct sending *sending, bool is_last_finished)
{
	struct http_answer answer;
	enum endpoint_verdict verdict;

	if (post(sending, &sending->profile, &answer))
		return wait_for_memory(sending);
	verdict = endpoint_verdict(answer.status);
	if (verdict == ENDPOINT_FAILED)
		verdict = judge_failure(sending, is_last_finished, &answer);
	if (verdict == ENDPOINT_LATER)
		return wait_for(sending, &answer);
	if (verdict == ENDPOINT_TAKEN)
		note_taken(sending);
	else
		note_refused(sending, &answer);
	finish_profile(sending);
	return 0;
}

/* Render the profile that is due, if that is not done yet. 0 or a negative errno. */
static int make_profile(struct sending *sending)
{
	int error;

	if (sending->has_profile)
		return 0;
	error = batch_profile(sending->batch, sending->mark.parts, &sending->profile);
	sending->has_profile = !error;
	return error;
}

uint64_t sending_step(struct sending *sending, bool is_last_finished)
{
	int result = sending->batch ? 1 : find_recording(sending, is_last_finished);

	if (result == -EWOULDBLOCK)
		return lock_wait_ns;
	if (result < 0) {
		struct http_answer answer = { 0 };

		snprintf(answer.message, sizeof(answer.message), "reading what is to be pushed: %s",
			 strerror(-result));
		return wait_for(sending, &answer);
	}
	if (result == 0) {
		forget_proofs(sending);
		return nothing_to_do;
	}
	if (!sending->batch)
		return 0;
	result = make_profile(sending);
	if (result == -ENOMEM)
		return wait_for_memory(sending);
	if (result) {
		note_unreadable(sending, "(a profile of it)", result);
		finish_profile(sending);
		return 0;
	}
	return post_profile(sending, is_last_finished);
}

/*---- The end ----*/

static void count_waiting(struct sending *sending)
{
	struct archive_list list;

	if (sending->mark_fd < 0 || archive_list_read(sending->options.directory, &list))
		return;
	find_next(sending, &list, list.count);
	archive_list_clear(&list);
}

bool sending_conclude(struct sending *sending)
{
	const struct sending_options *options = &sending->options;

	count_waiting(sending);
	message_note("Pushed %" PRIu64 " profiles to %s.", sending->sent, options->url);
	if (sending->waiting && sending->failures)
		say_failure(sending);
	if (sending->waiting)
		message_note("%" PRIu64
			     " recordings wait in %s; the next `ljspy record --push` there sends them.",
			     sending->waiting, options->path);
	if (sending->refused)
		message_warn("%" PRIu64 " profiles were refused.", sending->refused);
	if (sending->deleted)
		message_warn("%" PRIu64 " recordings were deleted before they could be pushed.",
			     sending->deleted);
	if (sending->unreadable)
		message_warn("%" PRIu64 " recordings or profiles could not be read.", sending->unreadable);
	return !sending->refused && !sending->deleted && !sending->unreadable;
}

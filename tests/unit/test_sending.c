/* SPDX-License-Identifier: MIT */
/* Which profiles of an archive are posted, in what order and how often, and what the user is told. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/archive/archive_list.h"
#include "src/push/backoff.h"
#include "src/push/mark.h"
#include "src/push/sending.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/told.h"

enum { RECORDINGS_MAX = 32, PARTS_MAX = 4, POSTED_SIZE = 1024, STEPS_MAX = 200 };

static const uint64_t no_more = UINT64_MAX;

/* A recording's file says its number. */
struct batch {
	FILE *stream;
	unsigned int number;
};

static struct {
	int parts[RECORDINGS_MAX];              /* profiles, or a negative errno: it cannot be read */
	int profile_error[RECORDINGS_MAX];      /* of the first one */
	long status[RECORDINGS_MAX][PARTS_MAX]; /* of the server's answer; 0: it takes the profile */
	long every_status;                      /* of all answers; 0: as above, -1: there is none */
	unsigned int cause, retry_after_s;      /* of all failures */
	const char *token;                      /* what the last post came with */
	char posted[POSTED_SIZE];               /* "1.0 1.1 ": number and part */
	unsigned int batches, requests;         /* and not freed */
	bool ends;                              /* ljspy does */
	bool lacks_memory;                      /* for a request */
} seen;

static char directory[32];
static struct sending_options options;
static struct sending *sending;

/*---- Instead of recordings ----*/

INSTEAD_OF(batch_open);
int __wrap_batch_open(FILE *in, struct batch **ret_batch)
{
	struct batch batch = { .stream = in };
	int error;

	assert_int_equal(fscanf(in, "%u", &batch.number), 1);
	assert_in_range(batch.number, 1, RECORDINGS_MAX - 1);
	error = seen.parts[batch.number] < 0 ? seen.parts[batch.number] : 0;
	if (error) {
		fclose(in);
		return error;
	}
	*ret_batch = malloc(sizeof(batch));
	assert_non_null(*ret_batch);
	**ret_batch = batch;
	seen.batches++;
	return 0;
}

INSTEAD_OF(batch_close);
void __wrap_batch_close(struct batch *batch)
{
	if (!batch)
		return;
	fclose(batch->stream);
	free(batch);
	seen.batches--;
}

INSTEAD_OF(batch_count);
size_t __wrap_batch_count(const struct batch *batch)
{
	return (size_t)seen.parts[batch->number];
}

INSTEAD_OF(batch_profile);
int __wrap_batch_profile(const struct batch *batch, size_t number, struct push_profile *ret_profile)
{
	int length;

	if (number == 0 && seen.profile_error[batch->number])
		return seen.profile_error[batch->number];
	*ret_profile = (struct push_profile){ .kind = "process_cpu" };
	length = asprintf(&ret_profile->bytes, "%u.%zu", batch->number, number);
	assert_true(length > 0);
	ret_profile->length = (size_t)length;
	return 0;
}

/*---- Instead of a server ----*/

INSTEAD_OF(endpoint_request);
int __wrap_endpoint_request(const struct endpoint *endpoint, const struct push_profile *profile,
			    struct endpoint_request *ret_request)
{
	assert_non_null(endpoint);
	if (seen.lacks_memory)
		return -ENOMEM;
	*ret_request = (struct endpoint_request){ .body = strdup(profile->bytes), .length = profile->length };
	assert_non_null(ret_request->body);
	seen.requests++;
	return 0;
}

INSTEAD_OF(endpoint_request_clear);
void __wrap_endpoint_request_clear(struct endpoint_request *request)
{
	free(request->body);
	seen.requests--;
}

INSTEAD_OF(http_new);
struct http *__wrap_http_new(const char *ca_file, http_asks *gives_up, void *context)
{
	assert_ptr_equal(ca_file, options.ca);
	assert_ptr_equal(gives_up, options.gives_up);
	assert_ptr_equal(context, options.context);
	return (struct http *)&seen;
}

INSTEAD_OF(http_free);
void __wrap_http_free(struct http *http)
{
	assert_ptr_equal(http, &seen);
}

static long status_of(const char *body)
{
	unsigned int number, part;

	assert_int_equal(sscanf(body, "%u.%u", &number, &part), 2);
	assert_in_range(part, 0, PARTS_MAX - 1);
	if (seen.every_status)
		return seen.every_status < 0 ? 0 : seen.every_status;
	return seen.status[number][part] ? seen.status[number][part] : 200;
}

INSTEAD_OF(http_post);
void __wrap_http_post(struct http *http, const struct http_post *post, struct http_answer *ret_answer)
{
	static char token[CREDENTIAL_SIZE];
	const size_t length = strlen(seen.posted);
	const long status = status_of(post->body);

	assert_ptr_equal(http, &seen);
	assert_true(length + post->length + 2 < POSTED_SIZE);
	sprintf(seen.posted + length, "%s ", post->body);
	strcpy(token, post->credentials->token);
	seen.token = token;
	*ret_answer = (struct http_answer){ .status = status,
					    .cause = seen.cause ? seen.cause : (unsigned int)status,
					    .retry_after_s = seen.retry_after_s,
					    .message = "no words" };
}

/* So many nanoseconds as there were failures in a row: shows what is counted, and passes at once. */
INSTEAD_OF(backoff_ns);
uint64_t __wrap_backoff_ns(unsigned int failures, unsigned int retry_after_s, uint32_t random)
{
	(void)random;
	assert_true(failures > 0);
	return failures + 1000 * (uint64_t)retry_after_s;
}

static bool gives_up(void *context)
{
	assert_ptr_equal(context, &seen);
	return seen.ends;
}

/*---- The archive ----*/

static void name_of(unsigned int number, char ret_name[static ARCHIVE_NAME_SIZE])
{
	archive_name(&(struct archive_entry){ .number = number, .begin_s = 1000 + number }, ret_name);
}

static void record_empty(unsigned int number)
{
	char name[ARCHIVE_NAME_SIZE];
	int fd;

	name_of(number, name);
	fd = openat(options.directory, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
}

/* Recordings of these numbers. */
static void record(unsigned int first, unsigned int last)
{
	for (unsigned int number = first; number <= last; number++) {
		char name[ARCHIVE_NAME_SIZE];
		int fd;

		record_empty(number);
		name_of(number, name);
		fd = openat(options.directory, name, O_WRONLY | O_CLOEXEC);
		assert_true(dprintf(fd, "%u", number) > 0);
		close(fd);
	}
}

static void delete (unsigned int first, unsigned int last)
{
	for (unsigned int number = first; number <= last; number++) {
		char name[ARCHIVE_NAME_SIZE];

		name_of(number, name);
		assert_int_equal(unlinkat(options.directory, name, 0), 0);
	}
}

static void empty_archive(void)
{
	struct archive_list list;

	assert_int_equal(archive_list_read(options.directory, &list), 0);
	for (size_t i = 0; i < list.count; i++)
		delete (list.entries[i].number, list.entries[i].number);
	archive_list_clear(&list);
}

static void begin_sending(void)
{
	sending = sending_new(&options);
	assert_non_null(sending);
}

static int begin(void **state)
{
	(void)state;
	memset(&seen, 0, sizeof(seen));
	for (size_t i = 0; i < RECORDINGS_MAX; i++)
		seen.parts[i] = 1;
	strcpy(directory, "/tmp/ljspy-test-XXXXXX");
	assert_non_null(mkdtemp(directory));
	options = (struct sending_options){ .url = "URL",
					    .path = directory,
					    .directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
					    .gives_up = gives_up,
					    .context = &seen };
	assert_true(options.directory >= 0);
	begin_sending();
	return 0;
}

static int end(void **state)
{
	(void)state;
	sending_free(sending);
	assert_int_equal(seen.batches, 0);
	assert_int_equal(seen.requests, 0);
	empty_archive();
	unlinkat(options.directory, "pushed", 0);
	close(options.directory);
	assert_int_equal(rmdir(directory), 0);
	return 0;
}

/* As after an end of ljspy, whatever ended it. */
static void begin_again(void)
{
	sending_free(sending);
	seen.posted[0] = '\0';
	begin_sending();
}

/* Go on until there is a pause; how long that is. */
static uint64_t send_on(bool is_last_finished)
{
	uint64_t wait_ns = 0;

	told_begin();
	for (int i = 0; i < STEPS_MAX && !wait_ns; i++)
		wait_ns = sending_step(sending, is_last_finished);
	told_end();
	return wait_ns;
}

static void step_times(int count, bool is_last_finished)
{
	told_begin();
	for (int i = 0; i < count; i++)
		sending_step(sending, is_last_finished);
	told_end();
}

static bool conclude(void)
{
	bool good;

	told_begin();
	good = sending_conclude(sending);
	told_end();
	return good;
}

/* Where the mark is after a restart. */
static struct mark read_mark(void)
{
	int fd = openat(options.directory, "pushed", O_RDONLY | O_CLOEXEC);
	struct mark mark;

	assert_true(fd >= 0);
	assert_int_equal(mark_read(fd, &mark), 0);
	close(fd);
	return mark;
}

/*---- In order ----*/

static void each_profile_is_posted_once_and_in_order(void **state)
{
	(void)state;
	seen.parts[1] = 2;
	record(1, 3);
	/* The newest one is still written to. */
	assert_true(send_on(false) == no_more);
	assert_string_equal(seen.posted, "1.0 1.1 2.0 ");
	assert_true(send_on(true) == no_more);
	assert_string_equal(seen.posted, "1.0 1.1 2.0 3.0 ");
	record(4, 4);
	assert_true(send_on(true) == no_more);
	assert_string_equal(seen.posted, "1.0 1.1 2.0 3.0 4.0 ");
	assert_string_equal(told, "");
	assert_true(conclude());
	assert_string_equal(told, "ljspy: Pushed 5 profiles to URL.\n");
}

static void nothing_is_left_where_nothing_was_recorded(void **state)
{
	(void)state;
	assert_true(send_on(true) == no_more);
	assert_int_equal(faccessat(options.directory, "pushed", F_OK, 0), -1);
	assert_true(conclude());
}

static void what_was_there_before_the_first_push_stays(void **state)
{
	(void)state;
	options.newest = 2;
	begin_again();
	record(1, 3);
	send_on(true);
	assert_string_equal(seen.posted, "3.0 ");
	assert_true(conclude());
}

static void what_was_recorded_since_the_first_push_is_posted(void **state)
{
	(void)state;
	options.newest = 2;
	begin_again();
	record(1, 2);
	assert_true(send_on(true) == no_more);
	assert_string_equal(seen.posted, "");
	/* The next ljspy begins when there are more. */
	record(3, 4);
	options.newest = 4;
	begin_again();
	send_on(true);
	assert_string_equal(seen.posted, "3.0 4.0 ");
}

static void a_restart_goes_on_where_it_was(void **state)
{
	(void)state;
	seen.parts[1] = 3;
	record(1, 2);
	step_times(2, true);
	assert_string_equal(seen.posted, "1.0 1.1 ");
	assert_int_equal(read_mark().current, 1);
	assert_int_equal(read_mark().parts, 2);
	begin_again();
	send_on(true);
	assert_string_equal(seen.posted, "1.2 2.0 ");
	begin_again();
	send_on(true);
	assert_string_equal(seen.posted, "");
}

static void a_recording_that_has_fewer_profiles_after_a_kill_is_done(void **state)
{
	(void)state;
	seen.parts[1] = 3;
	record(1, 2);
	step_times(2, true);
	seen.parts[1] = 2;
	begin_again();
	send_on(true);
	assert_string_equal(seen.posted, "2.0 ");
}

static void a_damaged_mark_begins_anew(void **state)
{
	int fd;

	(void)state;
	record(1, 2);
	fd = openat(options.directory, "pushed", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(dprintf(fd, "nonsense") > 0);
	close(fd);
	options.newest = 1;
	begin_again();
	send_on(true);
	assert_string_equal(seen.posted, "2.0 ");
	assert_int_equal(told_times("/pushed cannot be read: what is recorded from now on is pushed."), 1);
	assert_int_equal(read_mark().done, 2);
}

static void another_ljspy_that_ends_is_awaited(void **state)
{
	int fd;
	uint64_t wait_ns;

	(void)state;
	record(1, 1);
	fd = mark_open(options.directory);
	assert_true(fd >= 0);
	wait_ns = send_on(true);
	assert_in_range(wait_ns, 1000000, 1000000000);
	assert_string_equal(seen.posted, "");
	assert_string_equal(told, "");
	close(fd);
	send_on(true);
	assert_string_equal(seen.posted, "1.0 ");
}

/*---- Recordings that are gone, empty or damaged ----*/

static void what_is_deleted_too_early_is_counted_and_told_once(void **state)
{
	(void)state;
	record(1, 3);
	send_on(false);
	record(4, 6);
	delete (3, 4);
	send_on(false);
	assert_string_equal(seen.posted, "1.0 2.0 5.0 ");
	assert_int_equal(told_times("Recordings are deleted before they could be pushed"), 1);
	record(7, 9);
	delete (6, 6);
	send_on(true);
	assert_string_equal(seen.posted, "1.0 2.0 5.0 7.0 8.0 9.0 ");
	assert_string_equal(told, "");
	assert_false(conclude());
	assert_int_equal(told_times("3 recordings were deleted before they could be pushed."), 1);
}

static void what_is_sent_may_be_deleted(void **state)
{
	(void)state;
	record(1, 3);
	send_on(true);
	delete (1, 2);
	record(4, 4);
	send_on(true);
	assert_string_equal(seen.posted, "1.0 2.0 3.0 4.0 ");
	assert_true(conclude());
}

static void numbers_may_begin_anew(void **state)
{
	(void)state;
	record(5, 7);
	send_on(true);
	empty_archive();
	record(2, 3);
	send_on(true);
	assert_string_equal(seen.posted, "5.0 6.0 7.0 2.0 3.0 ");
	assert_int_equal(read_mark().done, 3);
}

static void a_recording_without_samples_has_nothing_to_post(void **state)
{
	(void)state;
	record_empty(1);
	seen.parts[2] = 0;
	record(2, 3);
	assert_true(send_on(true) == no_more);
	assert_string_equal(seen.posted, "3.0 ");
	assert_true(conclude());
}

static void what_cannot_be_read_is_left_out_and_told_once(void **state)
{
	(void)state;
	seen.parts[1] = seen.parts[2] = -EBADMSG;
	seen.profile_error[3] = -EFBIG;
	seen.parts[3] = 2;
	record(1, 4);
	assert_true(send_on(true) == no_more);
	assert_string_equal(seen.posted, "3.1 4.0 ");
	assert_int_equal(told_times("cannot be pushed"), 1);
	assert_int_equal(told_times("-000001.ljspy cannot be pushed"), 1);
	assert_false(conclude());
	assert_int_equal(told_times("3 recordings or profiles could not be read."), 1);
}

static void shortage_passes(void **state)
{
	static const int shortages[] = { -ENOMEM, -EMFILE, -ENFILE };

	(void)state;
	record(1, 1);
	for (size_t i = 0; i < sizeof(shortages) / sizeof(shortages[0]); i++) {
		seen.parts[1] = shortages[i];
		assert_int_equal(send_on(true), i + 1);
	}
	seen.parts[1] = 1;
	seen.profile_error[1] = -ENOMEM;
	assert_int_equal(send_on(true), 4);
	seen.profile_error[1] = 0;
	seen.lacks_memory = true;
	assert_int_equal(send_on(true), 5);
	assert_string_equal(seen.posted, "");
	seen.lacks_memory = false;
	assert_true(send_on(true) == no_more);
	assert_string_equal(seen.posted, "1.0 ");
	assert_true(conclude());
}

/*---- Another directory of that name ----*/

static void a_directory_of_the_same_name_goes_on(void **state)
{
	char moved[sizeof(directory) + 4];
	const int at = options.directory, old = dup(at);

	(void)state;
	record(1, 2);
	assert_true(send_on(false) == no_more);
	assert_string_equal(seen.posted, "1.0 ");
	snprintf(moved, sizeof(moved), "%s.old", directory);
	assert_int_equal(rename(directory, moved), 0);
	assert_int_equal(mkdir(directory, 0700), 0);
	/* It has no recording yet. */
	assert_true(send_on(false) == no_more);
	assert_string_equal(seen.posted, "1.0 ");
	options.directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	record(3, 4);
	/* Nobody writes to those in the old one. */
	assert_true(send_on(false) == no_more);
	assert_string_equal(seen.posted, "1.0 2.0 3.0 ");
	assert_int_equal(read_mark().done, 3);
	assert_true(conclude());
	assert_int_equal(told_times("1 recordings wait in"), 1);
	sending_free(sending);
	empty_archive();
	unlinkat(options.directory, "pushed", 0);
	close(options.directory);
	assert_int_equal(rmdir(directory), 0);
	/* As end() expects it. */
	assert_int_equal(rename(moved, directory), 0);
	assert_int_equal(dup2(old, at), at);
	close(old);
	options.directory = at;
	begin_sending();
}

/*---- Servers that fail ----*/

static void one_failure_is_not_worth_a_word(void **state)
{
	(void)state;
	record(1, 2);
	seen.every_status = -1;
	assert_int_equal(send_on(true), 1);
	assert_string_equal(told, "");
	seen.every_status = 0;
	assert_true(send_on(true) == no_more);
	assert_string_equal(seen.posted, "1.0 1.0 2.0 ");
	assert_string_equal(told, "");
	/* It is forgotten. */
	record(3, 3);
	seen.every_status = -1;
	assert_int_equal(send_on(true), 1);
	assert_string_equal(told, "");
}

static void a_server_that_fails_is_told_once_for_each_cause(void **state)
{
	(void)state;
	record(1, 1);
	seen.every_status = 503;
	assert_int_equal(send_on(true), 1);
	assert_int_equal(send_on(true), 2);
	assert_int_equal(told_times("URL answers 503 (no words): profiles wait in"), 1);
	assert_int_equal(told_times("--push-credentials"), 0);
	assert_int_equal(send_on(true), 3);
	assert_string_equal(told, "");
	seen.every_status = -1;
	seen.cause = 7;
	assert_int_equal(send_on(true), 4);
	assert_int_equal(told_times("URL: no words: profiles wait in"), 1);
	seen.every_status = 0;
	assert_true(send_on(true) == no_more);
	assert_string_equal(told, "ljspy: URL takes profiles again.\n");
	/* From then on it is news again. */
	record(2, 2);
	seen.every_status = 503;
	seen.cause = 0;
	send_on(true);
	send_on(true);
	assert_int_equal(told_times("URL answers 503"), 1);
}

static void a_server_may_say_when_it_takes_more(void **state)
{
	(void)state;
	record(1, 1);
	seen.every_status = 429;
	seen.retry_after_s = 7;
	assert_int_equal(send_on(true), 7001);
	assert_int_equal(told_times("URL answers 429 (no words): profiles wait in"), 1);
}

static void at_the_end_there_may_be_no_time_for_an_answer(void **state)
{
	(void)state;
	record(1, 3);
	seen.ends = true;
	seen.every_status = -1;
	send_on(true);
	assert_string_equal(told, "");
	assert_true(conclude());
	assert_int_equal(told_times("URL: there was no answer before the end: profiles wait in"), 1);
	assert_int_equal(told_times("3 recordings wait in"), 1);
	assert_int_equal(told_times("Pushed 0 profiles"), 1);
}

static void a_refused_profile_is_not_posted_again(void **state)
{
	(void)state;
	seen.parts[1] = 2;
	record(1, 3);
	seen.status[1][0] = seen.status[2][0] = 400;
	seen.status[3][0] = 413;
	assert_true(send_on(true) == no_more);
	assert_string_equal(seen.posted, "1.0 1.1 2.0 3.0 ");
	assert_int_equal(told_times("URL refuses a profile: 400 (no words)."), 1);
	assert_int_equal(told_times("URL refuses a profile: 413 (no words)."), 1);
	assert_false(conclude());
	assert_int_equal(told_times("3 profiles were refused."), 1);
	assert_int_equal(told_times("Pushed 1 profiles"), 1);
}

/*---- A server that fails with some profiles ----*/

static void another_profile_proves_that_the_server_fails_with_one_only(void **state)
{
	(void)state;
	record(1, 4);
	seen.status[1][0] = 500;
	for (unsigned int i = 1; i <= 3; i++)
		assert_int_equal(send_on(true), i);
	assert_string_equal(seen.posted, "1.0 1.0 1.0 ");
	assert_true(send_on(true) == no_more);
	/* The newest one goes out of turn, and only once. */
	assert_string_equal(seen.posted, "1.0 1.0 1.0 1.0 4.0 1.0 2.0 3.0 ");
	assert_false(conclude());
	assert_int_equal(told_times("1 profiles were refused."), 1);
	assert_int_equal(told_times("Pushed 3 profiles"), 1);
}

static void what_went_out_of_turn_is_known_after_a_restart(void **state)
{
	(void)state;
	seen.parts[4] = 2;
	record(1, 5);
	seen.status[1][0] = 500;
	for (unsigned int i = 0; i < 3; i++)
		send_on(false);
	/* The newest that is finished. */
	step_times(1, false);
	assert_string_equal(seen.posted, "1.0 1.0 1.0 1.0 4.0 1.0 ");
	begin_again();
	send_on(false);
	assert_string_equal(seen.posted, "2.0 3.0 4.1 ");
}

static void a_server_that_fails_with_all_gets_them_later(void **state)
{
	(void)state;
	record(1, 3);
	seen.every_status = 500;
	for (unsigned int i = 1; i <= 6; i++)
		assert_int_equal(send_on(true), i);
	assert_string_equal(seen.posted, "1.0 1.0 1.0 1.0 3.0 1.0 3.0 1.0 3.0 ");
	seen.every_status = 0;
	assert_true(send_on(true) == no_more);
	assert_int_equal(told_times("URL takes profiles again."), 1);
	assert_true(conclude());
	assert_int_equal(told_times("Pushed 3 profiles"), 1);
}

static void without_another_profile_nothing_is_proved(void **state)
{
	(void)state;
	record(1, 1);
	seen.status[1][0] = 500;
	for (unsigned int i = 1; i <= 6; i++)
		assert_int_equal(send_on(true), i);
	assert_string_equal(seen.posted, "1.0 1.0 1.0 1.0 1.0 1.0 ");
	assert_true(conclude());
	assert_int_equal(told_times("1 recordings wait in"), 1);
}

static void each_profile_has_its_own_tries(void **state)
{
	(void)state;
	record(1, 4);
	seen.status[1][0] = seen.status[2][0] = 500;
	send_on(true);
	send_on(true);
	send_on(true);
	seen.status[1][0] = 0;
	assert_int_equal(send_on(true), 1);
	send_on(true);
	send_on(true);
	assert_string_equal(seen.posted, "1.0 1.0 1.0 1.0 2.0 2.0 2.0 ");
	assert_true(send_on(true) == no_more);
	assert_string_equal(seen.posted, "1.0 1.0 1.0 1.0 2.0 2.0 2.0 2.0 4.0 2.0 3.0 ");
}

static void what_is_taken_ends_a_row_of_proofs(void **state)
{
	(void)state;
	record(1, 8);
	seen.status[1][0] = seen.status[3][0] = 500;
	for (unsigned int i = 0; i < 3; i++)
		send_on(true);
	/* 2 is taken; 3 has tries of its own, though nothing came out of turn since. */
	assert_int_equal(send_on(true), 1);
	assert_string_equal(seen.posted, "1.0 1.0 1.0 1.0 8.0 1.0 2.0 3.0 ");
}

/* Each that is taken out of turn proves as many more as were refused in a row, up to 4. */
static void proofs_grow_with_what_was_refused(void **state)
{
	(void)state;
	record(1, 20);
	for (unsigned int number = 1; number <= 13; number++)
		seen.status[number][0] = 500;
	for (unsigned int i = 0; i < 3; i++)
		send_on(true);
	seen.posted[0] = '\0';
	send_on(true);
	/* Each is tried twice: before a proof, and after it. */
	assert_string_equal(seen.posted, "1.0 20.0 1.0 2.0 2.0 3.0 19.0 3.0 4.0 4.0 5.0 5.0 6.0 6.0 7.0 18.0 "
					 "7.0 8.0 8.0 9.0 9.0 10.0 10.0 11.0 11.0 12.0 17.0 12.0 13.0 13.0 "
					 "14.0 15.0 16.0 ");
	assert_false(conclude());
	assert_int_equal(told_times("13 profiles were refused."), 1);
}

/*---- Who ljspy is ----*/

static void write_credentials(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void credentials_are_read_at_each_try(void **state)
{
	char path[sizeof(directory) + sizeof("/secret")];

	(void)state;
	snprintf(path, sizeof(path), "%s/secret", directory);
	options.credentials = path;
	begin_again();
	record(1, 1);
	/* None, and then a wrong one. */
	assert_int_equal(send_on(true), 1);
	assert_string_equal(told, "");
	write_credentials(path, "token A\nwrong\n");
	assert_int_equal(send_on(true), 2);
	assert_int_equal(told_times("/secret: line 2 is wrong: profiles wait in"), 1);
	assert_string_equal(seen.posted, "");
	write_credentials(path, "token B\n");
	seen.every_status = 401;
	assert_int_equal(send_on(true), 3);
	assert_string_equal(seen.token, "B");
	assert_int_equal(told_times("Say who you are: --push-credentials FILE."), 1);
	write_credentials(path, "token C\n");
	seen.every_status = 0;
	assert_true(send_on(true) == no_more);
	assert_string_equal(seen.token, "C");
	assert_int_equal(told_times("URL takes profiles again."), 1);
	assert_int_equal(unlink(path), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_profile_is_posted_once_and_in_order),
		TEST(nothing_is_left_where_nothing_was_recorded),
		TEST(what_was_there_before_the_first_push_stays),
		TEST(what_was_recorded_since_the_first_push_is_posted),
		TEST(a_restart_goes_on_where_it_was),
		TEST(a_recording_that_has_fewer_profiles_after_a_kill_is_done),
		TEST(a_damaged_mark_begins_anew),
		TEST(another_ljspy_that_ends_is_awaited),
		TEST(what_is_deleted_too_early_is_counted_and_told_once),
		TEST(what_is_sent_may_be_deleted),
		TEST(numbers_may_begin_anew),
		TEST(a_recording_without_samples_has_nothing_to_post),
		TEST(what_cannot_be_read_is_left_out_and_told_once),
		TEST(shortage_passes),
		TEST(a_directory_of_the_same_name_goes_on),
		TEST(one_failure_is_not_worth_a_word),
		TEST(a_server_that_fails_is_told_once_for_each_cause),
		TEST(a_server_may_say_when_it_takes_more),
		TEST(at_the_end_there_may_be_no_time_for_an_answer),
		TEST(a_refused_profile_is_not_posted_again),
		TEST(another_profile_proves_that_the_server_fails_with_one_only),
		TEST(what_went_out_of_turn_is_known_after_a_restart),
		TEST(a_server_that_fails_with_all_gets_them_later),
		TEST(without_another_profile_nothing_is_proved),
		TEST(each_profile_has_its_own_tries),
		TEST(what_is_taken_ends_a_row_of_proofs),
		TEST(proofs_grow_with_what_was_refused),
		TEST(credentials_are_read_at_each_try),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

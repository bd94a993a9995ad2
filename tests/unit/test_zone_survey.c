/* SPDX-License-Identifier: MIT */
/* What a report tells of the memory that a process of nginx shares, and of who holds its locks. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/footprint/pieces/slab_zone.h"
#include "src/footprint/pieces/zone_names.h"
#include "src/linux/proc/maps.h"
#include "src/linux/proc/process.h"
#include "src/linux/pages/page_runs.h"
#include "src/nginx/zone_survey.h"
#include "tests/unit/surveyed_worker.h"
#include "tests/unit/target_process.h"
#include "unwind/nginx/shared_dict.h"
#include "unwind/nginx/zones.h"

enum {
	MAPPINGS = 5,
	SIZE = 0x10000,
	CYCLE = 3, /* word of ngx_cycle */
	NOW_MS = 5000,
	OTHER_PID = 5, /* of the holder, in another namespace */
	SHARED = MAPPING_SHARED | MAPPING_READ | MAPPING_WRITE,
};

static const uint64_t huge = UINT64_C(64) << 30;

/* A process with these mappings; each has at most one zone. */
static struct {
	struct mapping mappings[MAPPINGS];
	size_t count;
	bool is_slab[MAPPINGS], is_named[MAPPINGS];
	const char *kind;
	bool has_dict;
	struct shared_dict dict;
	bool knows_holder;
	pid_t holder;
	uint64_t runs_bytes; /* that were asked for */
	int runs_error;
	/* Namespaces of pids by their inodes: that of ljspy, of nginx, and of two other processes. */
	bool is_apart, is_holder_unread;
	char holder_state; /* 0: it is gone */
	bool is_hidden;    /* processes cannot be listed */
} seen;

static struct zone_report *report;

static size_t index_of(uint64_t begin)
{
	for (size_t i = 0; i < seen.count; i++)
		if (seen.mappings[i].begin == begin)
			return i;
	fail();
	return 0;
}

INSTEAD_OF(clock_gettime);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	assert_int_equal(clock, CLOCK_REALTIME);
	*ret_time = (struct timespec){ .tv_sec = NOW_MS / 1000 };
	return 0;
}

INSTEAD_OF(maps_count);
size_t __wrap_maps_count(const struct maps *maps)
{
	(void)maps;
	return seen.count;
}

INSTEAD_OF(maps_at);
const struct mapping *__wrap_maps_at(const struct maps *maps, size_t index)
{
	(void)maps;
	assert_in_range(index, 0, seen.count - 1);
	return &seen.mappings[index];
}

INSTEAD_OF(page_runs_read);
int __wrap_page_runs_read(struct page_runs *runs, int pagemap, uint64_t begin, uint64_t end,
			  bool has_shared_pages)
{
	(void)runs;
	assert_true(has_shared_pages);
	assert_true(pagemap >= 0);
	seen.runs_bytes += end - begin;
	return seen.runs_error;
}

INSTEAD_OF(slab_zone_read);
bool __wrap_slab_zone_read(struct window *window, uint64_t begin, uint64_t end, struct slab_zone *ret_zone)
{
	const size_t index = index_of(begin);

	(void)window;
	assert_int_equal(end, seen.mappings[index].end);
	if (!seen.is_slab[index])
		return false;
	*ret_zone = (struct slab_zone){ .size = 1000, .usable = 900, .knows_free = true, .free = 300 };
	snprintf(ret_zone->kind, sizeof(ret_zone->kind), "%s", seen.kind);
	return true;
}

INSTEAD_OF(zone_names_find);
bool __wrap_zone_names_find(const struct window *window, uint64_t cycle, uint64_t begin, uint64_t end,
			    char ret_name[static SLAB_ZONE_TEXT_MAX])
{
	(void)window, (void)end;
	assert_int_equal(cycle, 0x777);
	if (seen.is_named[index_of(begin)])
		snprintf(ret_name, SLAB_ZONE_TEXT_MAX, "zone %zu", index_of(begin));
	return seen.is_named[index_of(begin)];
}

INSTEAD_OF(shared_dict_read);
bool __wrap_shared_dict_read(struct memory *memory, uint64_t begin, uint64_t end, uint64_t now_ms,
			     struct shared_dict *ret_dict)
{
	(void)memory, (void)begin, (void)end;
	assert_int_equal(now_ms, NOW_MS);
	*ret_dict = seen.dict;
	return seen.has_dict;
}

INSTEAD_OF(zones_read_holder);
bool __wrap_zones_read_holder(struct memory *memory, uint64_t address, pid_t *ret_holder)
{
	(void)memory, (void)address;
	*ret_holder = seen.holder;
	return seen.knows_holder;
}

/*---- Other processes ----*/

INSTEAD_OF(stat);
int __wrap_stat(const char *path, struct stat *ret_status)
{
	int pid = 0;

	if (!seen.is_apart || sscanf(path, "/proc/%d/ns/", &pid) != 1)
		return __real_stat(path, ret_status);
	/* nginx is this process; ljspy is in a namespace above, and OTHER_PID + 1 is in a third one. */
	*ret_status = (struct stat){ .st_dev = 1, .st_ino = pid == OTHER_PID + 1 ? 3 : 1 };
	return 0;
}

INSTEAD_OF(getpid);
pid_t __wrap_getpid(void)
{
	return seen.is_apart ? OTHER_PID + 1 : __real_getpid();
}

INSTEAD_OF(process_find);
int __wrap_process_find(const char *pattern, struct process_list *ret_list, char **ret_message)
{
	const struct process processes[] = {
		{ .pid = OTHER_PID + 1, .own_pid = seen.holder, .state = 'S', .name = "elsewhere" },
		{ .pid = OTHER_PID + 2, .own_pid = seen.holder + 1, .state = 'S', .name = "another" },
		{ .pid = OTHER_PID, .own_pid = seen.holder, .state = seen.holder_state, .name = "nginx" },
	};

	assert_true(seen.is_apart);
	assert_string_equal(pattern, ".");
	assert_null(ret_message);
	if (seen.is_hidden)
		return -EACCES;
	*ret_list = (struct process_list){ .processes = malloc(sizeof(processes)),
					   .count = seen.holder_state ? 3 : 2 };
	assert_non_null(ret_list->processes);
	memcpy(ret_list->processes, processes, sizeof(processes));
	if (seen.is_holder_unread) {
		ret_list->unread = &ret_list->processes[2];
		ret_list->unread_count = 1;
		ret_list->count = 2;
	}
	return 0;
}

INSTEAD_OF(process_list_clear);
void __wrap_process_list_clear(struct process_list *list)
{
	free(list->processes);
}

/*---- A survey ----*/

static int begin(void **state)
{
	(void)state;
	surveyed_begin();
	surveyed.members.cycle = at(CYCLE);
	surveyed.memory.words[CYCLE] = 0x777;
	memset(&seen, 0, sizeof(seen));
	seen.kind = "";
	report = zone_report_new(getpid(), "nginx");
	return report ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	zone_report_free(report);
	return 0;
}

static int take(void)
{
	return zone_survey_take(NULL, report);
}

static void add(unsigned int access, uint64_t size)
{
	const uint64_t at = seen.count ? seen.mappings[seen.count - 1].end : SIZE;

	seen.mappings[seen.count++] = (struct mapping){
		.begin = at, .end = at + size, .access = access, .path = ""
	};
}

static const struct zone_lock *lock_of_only_row(void)
{
	assert_int_equal(take(), 0);
	assert_int_equal(report->count, 1);
	return &report->rows[0].lock;
}

static void shared_mappings_may_be_zones(void **state)
{
	(void)state;
	add(SHARED, SIZE);
	add(SHARED & ~MAPPING_SHARED, SIZE);
	add(SHARED & ~MAPPING_WRITE, SIZE);
	add(SHARED, SIZE);
	add(SHARED, SIZE);
	for (size_t i = 0; i < MAPPINGS; i++)
		seen.is_slab[i] = i != 3;
	seen.is_named[0] = true;
	for (int again = 0; again < 2; again++) {
		assert_int_equal(take(), 0);
		assert_int_equal(report->count, 2);
	}
	assert_string_equal(report->rows[0].name, "zone 0");
	assert_int_equal(report->rows[0].size, 1000);
	assert_int_equal(report->rows[0].usable, 900);
	assert_int_equal(report->rows[0].free, 300);
	assert_true(report->rows[0].knows_free);
	assert_false(report->rows[0].is_dict);
	assert_false(report->rows[0].lock.is_known);
	assert_string_equal(report->rows[1].name, "");
	assert_false(report->is_cut);
}

static void a_zone_whose_pages_are_absent_has_its_name(void **state)
{
	(void)state;
	add(SHARED, SIZE);
	seen.is_named[0] = true;
	assert_int_equal(take(), 0);
	assert_int_equal(report->count, 1);
	assert_string_equal(report->rows[0].name, "zone 0");
	assert_int_equal(report->rows[0].size, SIZE);
	assert_false(report->rows[0].knows_free);
}

static void names_are_known_where_the_configuration_is(void **state)
{
	(void)state;
	add(SHARED, SIZE);
	seen.is_slab[0] = seen.is_named[0] = true;
	surveyed.members.cycle = 0;
	assert_int_equal(take(), 0);
	assert_string_equal(report->rows[0].name, "");
	surveyed.members.cycle = at(CYCLE);
	surveyed.members.known = false;
	assert_int_equal(take(), 0);
	assert_string_equal(report->rows[0].name, "");
	/* It cannot be read. */
	surveyed.members = (struct request_members){ .known = true, .cycle = at(WORDS) };
	assert_int_equal(take(), 0);
	assert_string_equal(report->rows[0].name, "");
}

static void a_process_without_zones_has_none(void **state)
{
	(void)state;
	assert_int_equal(take(), -ENOTSUP);
	add(SHARED, SIZE);
	assert_int_equal(take(), -ENOTSUP);
	seen.runs_error = -EIO;
	seen.is_slab[0] = true;
	assert_int_equal(take(), -EIO);
	assert_int_equal(report->count, 0);
	seen.runs_error = 0;
	report->pid = INT32_MAX;
	assert_true(take() < 0);
}

/* Only mappings that nginx can write to, and that are no mere reservations, are asked for their pages. */
static void mappings_that_only_reserve_are_not_asked_for_pages(void **state)
{
	(void)state;
	add(SHARED, huge);
	add(SHARED, huge + 1);
	add(MAPPING_READ, SIZE);
	add(MAPPING_WRITE, SIZE);
	take();
	assert_int_equal(seen.runs_bytes, huge + SIZE);
}

static void a_dictionary_has_keys(void **state)
{
	(void)state;
	add(SHARED, SIZE);
	seen.is_slab[0] = true;
	seen.dict = (struct shared_dict){ .is_whole = true, .is_quiet = true, .keys = 7, .expired = 2 };
	seen.has_dict = true;
	assert_int_equal(take(), 0);
	assert_false(report->rows[0].is_dict || report->rows[0].knows_keys);
	seen.kind = "lua_shared_dict zone";
	assert_int_equal(take(), 0);
	assert_string_equal(report->rows[0].kind, seen.kind);
	assert_true(report->rows[0].is_dict && report->rows[0].knows_keys && report->rows[0].is_exact);
	assert_int_equal(report->rows[0].keys, 7);
	assert_int_equal(report->rows[0].expired, 2);
	seen.dict.is_quiet = false;
	assert_int_equal(take(), 0);
	assert_false(report->rows[0].is_exact);
	seen.dict.is_whole = false;
	assert_int_equal(take(), 0);
	assert_false(report->rows[0].knows_keys);
	seen.has_dict = false;
	assert_int_equal(take(), 0);
	assert_true(report->rows[0].is_dict);
	assert_false(report->rows[0].knows_keys);
}

/*---- Locks ----*/

static void a_lock_that_nobody_holds(void **state)
{
	(void)state;
	add(SHARED, SIZE);
	seen.is_slab[0] = seen.knows_holder = true;
	assert_true(lock_of_only_row()->is_known);
	assert_int_equal(report->rows[0].lock.holder, 0);
	assert_int_equal(report->rows[0].lock.pid, 0);
	seen.holder = getpid();
	seen.knows_holder = false;
	assert_int_equal(lock_of_only_row()->pid, 0);
}

static void a_holder_lives_or_has_ended(void **state)
{
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_exit(0);
	prctl(PR_SET_NAME, "holder");
	assert_true(child > 0);
	target_process_await(child, child, "Z");
	add(SHARED, SIZE);
	seen.is_slab[0] = seen.knows_holder = true;
	seen.holder = getpid();
	assert_int_equal(lock_of_only_row()->state, ZONE_HOLDER_ALIVE);
	assert_int_equal(report->rows[0].lock.pid, getpid());
	assert_string_equal(report->rows[0].lock.name, "holder");
	/* Its parent has not reaped it. */
	seen.holder = child;
	assert_int_equal(lock_of_only_row()->state, ZONE_HOLDER_DEAD);
	assert_int_equal(report->rows[0].lock.pid, child);
	waitpid(child, NULL, 0);
	assert_int_equal(lock_of_only_row()->state, ZONE_HOLDER_DEAD);
	assert_int_equal(report->rows[0].lock.pid, 0);
}

static void a_holder_in_another_namespace_has_another_pid_there(void **state)
{
	(void)state;
	add(SHARED, SIZE);
	seen.is_slab[0] = seen.knows_holder = seen.is_apart = true;
	seen.holder = 71;
	seen.holder_state = 'S';
	assert_int_equal(lock_of_only_row()->state, ZONE_HOLDER_ALIVE);
	assert_int_equal(report->rows[0].lock.pid, OTHER_PID);
	assert_string_equal(report->rows[0].lock.name, "nginx");
	assert_int_equal(report->rows[0].lock.holder, 71);
	/* The kernel may not show its arguments. */
	seen.is_holder_unread = true;
	assert_int_equal(lock_of_only_row()->state, ZONE_HOLDER_ALIVE);
	assert_int_equal(report->rows[0].lock.pid, OTHER_PID);
	seen.is_holder_unread = false;
	seen.holder_state = 'Z';
	assert_int_equal(lock_of_only_row()->state, ZONE_HOLDER_DEAD);
	assert_int_equal(report->rows[0].lock.pid, OTHER_PID);
	seen.holder_state = 0;
	assert_int_equal(lock_of_only_row()->state, ZONE_HOLDER_DEAD);
	assert_int_equal(report->rows[0].lock.pid, 0);
	seen.is_hidden = true;
	assert_int_equal(lock_of_only_row()->state, ZONE_HOLDER_UNKNOWN);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(shared_mappings_may_be_zones),
		TEST(a_zone_whose_pages_are_absent_has_its_name),
		TEST(names_are_known_where_the_configuration_is),
		TEST(a_process_without_zones_has_none),
		TEST(mappings_that_only_reserve_are_not_asked_for_pages),
		TEST(a_dictionary_has_keys),
		TEST(a_lock_that_nobody_holds),
		TEST(a_holder_lives_or_has_ended),
		TEST(a_holder_in_another_namespace_has_another_pid_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

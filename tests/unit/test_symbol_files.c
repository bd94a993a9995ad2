/* SPDX-License-Identifier: MIT */
/* Which questions go to a server of symbols, and which are answered without one. The server is made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_elf.h"
#include "unwind/symbols/symbol_files.h"

INSTEAD_OF(symbol_server_start);
INSTEAD_OF(symbol_server_end);
INSTEAD_OF(symbol_server_open);
INSTEAD_OF(symbol_server_ask);
INSTEAD_OF(symbol_server_while_waiting);
INSTEAD_OF(symbol_server_cpu_ns);

enum { AT = 0x100000, ELSEWHERE = 0x700000, FILES_MAX = 1024, CODE = 0x400 };

/* What the server has been told, and what it answers. */
static struct {
	size_t starts, ends, opens, asks;
	bool has_no_memory, opens_nothing;
	size_t failures; /* so many questions more fail */
	size_t number;   /* of the last file, or of the last question's */
	uint64_t base, end, address;
	bool plain;
	char root[64], path[64];
	enum symbol_question question;
	struct symbol_answer answer;
	int fd; /* of the last file */
	symbol_server_meanwhile *meanwhile;
	void *context;
	uint64_t cpu_ns;
} server;

struct symbol_server *__wrap_symbol_server_start(symbol_server_meanwhile *meanwhile, void *context)
{
	server.starts++;
	server.meanwhile = meanwhile;
	server.context = context;
	return server.has_no_memory ? NULL : (struct symbol_server *)(void *)&server;
}

void __wrap_symbol_server_end(struct symbol_server *ended)
{
	server.ends += ended != NULL;
}

bool __wrap_symbol_server_open(struct symbol_server *to, size_t number, const struct symbol_source *source)
{
	assert_ptr_equal(to, &server);
	assert_true(source->fd >= 0);
	server.opens++;
	server.fd = source->fd;
	server.number = number;
	server.base = source->base;
	server.end = source->end;
	server.plain = source->plain;
	snprintf(server.root, sizeof(server.root), "%s", source->root);
	snprintf(server.path, sizeof(server.path), "%s", source->path);
	return !server.opens_nothing;
}

bool __wrap_symbol_server_ask(struct symbol_server *to, enum symbol_question question, size_t number,
			      uint64_t address, struct symbol_answer *ret_answer)
{
	assert_ptr_equal(to, &server);
	server.asks++;
	server.question = question;
	server.number = number;
	server.address = address;
	if (server.failures) {
		server.failures--;
		return false;
	}
	*ret_answer = server.answer;
	return true;
}

void __wrap_symbol_server_while_waiting(struct symbol_server *to, symbol_server_meanwhile *meanwhile,
					void *context)
{
	assert_ptr_equal(to, &server);
	server.meanwhile = meanwhile;
	server.context = context;
}

uint64_t __wrap_symbol_server_cpu_ns(const struct symbol_server *of)
{
	assert_ptr_equal(of, &server);
	return server.cpu_ns;
}

static struct made_up_elf elf;
static struct image *image;
static struct symbol_files *files;
static struct module module;
static struct symbol_mapping mapping;
static struct symbol_answer answer;

static int begin(void **state)
{
	static char path[] = "/lib/made-up.so";

	(void)state;
	memset(&server, 0, sizeof(server));
	made_up_elf_begin(&elf);
	elf.base = AT;
	made_up_elf_section(&elf, ".text", (Elf64_Shdr){ .sh_type = SHT_PROGBITS }, NULL, 0x1000);
	made_up_elf_end(&elf);
	image = image_new(&elf.memory);
	files = symbol_files_new(NULL);
	assert_non_null(files);
	module = (struct module){ .begin = AT, .end = AT + elf.size, .base = AT, .inode = 1, .path = path };
	mapping = (struct symbol_mapping){ image, &module, &elf.memory };
	return 0;
}

static int end(void **state)
{
	(void)state;
	symbol_files_free(files);
	image_free(image);
	return 0;
}

static struct symbol_file_entry *get(void)
{
	struct symbol_file_entry *entry = symbol_files_get(files, &mapping);

	assert_non_null(entry);
	return entry;
}

static bool ask(struct symbol_file_entry *entry, enum symbol_question question, uint64_t offset)
{
	memset(&answer, 0xff, sizeof(answer));
	return symbol_files_ask(files, entry, &mapping, question, module.base + offset, &answer);
}

/* The next answers: so many functions, of which this is the name, and an extent of offsets. */
static void answer_with(size_t count, const char *name, uint64_t first, uint64_t last)
{
	server.answer = (struct symbol_answer){ .count = count, .extent = { AT + first, AT + last } };
	snprintf(server.answer.symbols[0].name, sizeof(server.answer.symbols[0].name), "%s", name);
}

static void a_file_has_one_entry(void **state)
{
	struct symbol_file_entry *entry = get();
	const struct symbol_mapping nowhere = {
		image, &(struct module){ .begin = 1, .end = 2, .base = 1, .path = module.path }, &elf.memory
	};

	(void)state;
	assert_ptr_equal(get(), entry);
	module.inode = 2;
	assert_ptr_not_equal(get(), entry);
	module.inode = 1;
	/* In another root other debug files may lie. */
	image_set_root(image, "/tmp");
	assert_ptr_not_equal(get(), entry);
	image_set_root(image, "/");
	assert_ptr_equal(get(), entry);
	assert_null(symbol_files_get(files, &nowhere));
	assert_int_equal(server.starts, 0);
}

static void the_first_question_opens_the_file(void **state)
{
	struct symbol_file_entry *entry = get();

	(void)state;
	image_set_root(image, "/proc/1/root");
	answer_with(0, "", CODE, CODE + 1);
	assert_true(ask(entry, SYMBOL_FUNCTIONS, CODE));
	assert_int_equal(server.starts, 1);
	assert_int_equal(server.opens, 1);
	assert_int_equal(server.number, 0);
	assert_int_equal(server.base, AT);
	assert_int_equal(server.end, AT + elf.size);
	assert_false(server.plain);
	assert_string_equal(server.root, "/proc/1/root");
	assert_string_equal(server.path, module.path);
	assert_int_equal(server.question, SYMBOL_FUNCTIONS);
	assert_int_equal(server.address, AT + CODE);
	assert_int_equal(answer.count, 0);
	/* Another process has it elsewhere. */
	elf.base = module.base = module.begin = ELSEWHERE;
	module.end = ELSEWHERE + elf.size;
	assert_true(ask(entry, SYMBOL_COVERED, CODE + 5));
	assert_int_equal(server.opens, 1);
	assert_int_equal(server.question, SYMBOL_COVERED);
	assert_int_equal(server.address, AT + CODE + 5);
	/* A second file has a number of its own. */
	module.inode = 2;
	assert_true(ask(get(), SYMBOL_COVERED, CODE));
	assert_int_equal(server.opens, 2);
	assert_int_equal(server.number, 1);
	assert_int_equal(server.starts, 1);
}

static void what_is_known_is_not_asked_again(void **state)
{
	struct symbol_file_entry *entry = get();

	(void)state;
	answer_with(1, "known", CODE, CODE + 16);
	assert_true(ask(entry, SYMBOL_FUNCTIONS, CODE));
	assert_int_equal(server.asks, 1);
	for (uint64_t offset = CODE; offset < CODE + 16; offset++) {
		assert_true(ask(entry, SYMBOL_FUNCTIONS, offset));
		assert_int_equal(answer.count, 1);
		assert_string_equal(answer.symbols[0].name, "known");
		assert_string_equal(answer.symbols[0].file, "");
		assert_int_equal(answer.symbols[0].line, 0);
	}
	assert_int_equal(server.asks, 1);
	assert_true(ask(entry, SYMBOL_FUNCTIONS, CODE + 16));
	assert_int_equal(server.asks, 2);
	/* Other questions about a function that has a name. */
	assert_true(ask(entry, SYMBOL_COVERED, CODE));
	assert_true(ask(entry, SYMBOL_RULES, CODE));
	assert_int_equal(server.asks, 4);
	/* Code without a name is covered, or nothing would be known of its neighbours. */
	answer_with(0, "", CODE + 32, CODE + 34);
	assert_true(ask(entry, SYMBOL_FUNCTIONS, CODE + 32));
	assert_int_equal(server.asks, 5);
	assert_true(ask(entry, SYMBOL_FUNCTIONS, CODE + 33));
	assert_int_equal(answer.count, 0);
	assert_true(ask(entry, SYMBOL_COVERED, CODE + 33));
	assert_int_equal(answer.count, 1);
	assert_int_equal(server.asks, 5);
	assert_true(ask(entry, SYMBOL_RULES, CODE + 33));
	assert_int_equal(server.asks, 6);
}

static void what_holds_for_one_address_is_asked_again(void **state)
{
	struct symbol_file_entry *entry = get();
	static const struct {
		size_t count;
		uint64_t first, last;
	} answers[] = { { 1, CODE, CODE + 1 }, { 2, CODE, CODE + 16 }, { 1, CODE + 16, CODE } };

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		answer_with(answers[i].count, "again", answers[i].first, answers[i].last);
		server.asks = 0;
		assert_true(ask(entry, SYMBOL_FUNCTIONS, CODE));
		assert_true(ask(entry, SYMBOL_FUNCTIONS, CODE));
		assert_int_equal(server.asks, 2);
	}
	/* Answers to other questions have no extent. */
	answer_with(1, "none", CODE, CODE + 16);
	assert_true(ask(entry, SYMBOL_COVERED, CODE));
	assert_true(ask(entry, SYMBOL_FUNCTIONS, CODE));
	assert_int_equal(server.asks, 4);
}

static void after_a_failure_debug_info_is_left_out(void **state)
{
	struct symbol_file_entry *entry = get(), *other;

	(void)state;
	module.inode = 2;
	other = get();
	assert_true(ask(other, SYMBOL_COVERED, CODE));
	server.failures = 1;
	assert_true(ask(entry, SYMBOL_COVERED, CODE));
	assert_int_equal(server.starts, 2);
	assert_int_equal(server.ends, 1);
	assert_int_equal(server.opens, 3);
	assert_true(server.plain);
	/* The new server has not got what the old one had; the other file is not to blame. */
	assert_true(ask(other, SYMBOL_COVERED, CODE));
	assert_int_equal(server.opens, 4);
	assert_false(server.plain);
	assert_true(ask(entry, SYMBOL_COVERED, CODE));
	assert_int_equal(server.opens, 4);
	/* One failure more, and there is no answer, and no other attempt. */
	server.failures = 1;
	assert_false(ask(entry, SYMBOL_COVERED, CODE));
	server.asks = 0;
	assert_false(ask(entry, SYMBOL_FUNCTIONS, CODE));
	assert_false(ask(entry, SYMBOL_RULES, CODE));
	assert_int_equal(server.asks, 0);
	assert_true(ask(other, SYMBOL_FUNCTIONS, CODE));
	assert_int_equal(server.starts, 3);
	assert_int_equal(server.ends, 2);
}

static void after_a_failure_over_rules_there_are_names_still(void **state)
{
	struct symbol_file_entry *entry = get();

	(void)state;
	server.failures = 1;
	assert_false(ask(entry, SYMBOL_RULES, CODE));
	assert_int_equal(server.asks, 1);
	assert_false(ask(entry, SYMBOL_RULES, CODE));
	assert_int_equal(server.asks, 1);
	assert_true(ask(entry, SYMBOL_FUNCTIONS, CODE));
	assert_false(server.plain);
	assert_int_equal(server.asks, 2);
}

static void without_a_server_or_a_file_there_are_no_answers(void **state)
{
	struct symbol_file_entry *entry = get();

	(void)state;
	server.has_no_memory = true;
	assert_false(ask(entry, SYMBOL_FUNCTIONS, CODE));
	assert_int_equal(server.starts, 2);
	assert_int_equal(server.ends, 0);
	server.has_no_memory = false;
	module.inode = 2;
	entry = get();
	server.opens_nothing = true;
	assert_false(ask(entry, SYMBOL_FUNCTIONS, CODE));
	assert_int_equal(server.opens, 2);
	assert_int_equal(server.asks, 0);
	server.opens_nothing = false;
	/* Nothing is mapped there any more. */
	module.inode = 3;
	entry = get();
	elf.base = ELSEWHERE;
	assert_false(ask(entry, SYMBOL_FUNCTIONS, CODE));
	elf.base = AT;
	assert_false(ask(entry, SYMBOL_FUNCTIONS, CODE));
	assert_int_equal(server.opens, 2);
}

/* A ljspy whose standard input is closed gets files by that number. */
static void a_file_may_have_the_first_descriptor(void **state)
{
	const int input = dup(STDIN_FILENO);
	bool is_answered, is_first;

	(void)state;
	close(STDIN_FILENO);
	is_answered = ask(get(), SYMBOL_COVERED, CODE);
	is_first = server.fd == STDIN_FILENO;
	if (input >= 0) {
		dup2(input, STDIN_FILENO);
		close(input);
	}
	assert_true(is_answered);
	assert_true(is_first);
	assert_int_equal(server.opens, 1);
}

static bool meanwhile(void *context)
{
	(void)context;
	return true;
}

static void servers_are_told_what_to_do_meanwhile(void **state)
{
	(void)state;
	symbol_files_while_waiting(files, meanwhile, &module);
	assert_true(ask(get(), SYMBOL_COVERED, CODE));
	assert_ptr_equal(server.meanwhile, meanwhile);
	assert_ptr_equal(server.context, &module);
	symbol_files_while_waiting(files, NULL, NULL);
	assert_true(ask(get(), SYMBOL_COVERED, CODE));
	assert_null(server.meanwhile);
}

static void the_time_of_all_servers_counts(void **state)
{
	struct symbol_file_entry *entry = get();

	(void)state;
	assert_int_equal(symbol_files_cpu_ns(files), 0);
	server.cpu_ns = 100;
	assert_true(ask(entry, SYMBOL_COVERED, CODE));
	assert_int_equal(symbol_files_cpu_ns(files), 100);
	server.failures = 1;
	assert_true(ask(entry, SYMBOL_COVERED, CODE));
	server.cpu_ns = 7;
	assert_int_equal(symbol_files_cpu_ns(files), 107);
	symbol_files_free(files);
	assert_int_equal(server.ends, 2);
	symbol_files_free(NULL);
	files = NULL;
}

/* When there is no room, those that nobody uses go. */
static void so_many_files_are_kept(void **state)
{
	struct symbol_file_entry *entries[FILES_MAX];

	(void)state;
	for (size_t i = 0; i < FILES_MAX; i++) {
		module.inode = i + 1;
		entries[i] = get();
	}
	assert_true(ask(entries[FILES_MAX - 1], SYMBOL_COVERED, CODE));
	assert_int_equal(server.number, FILES_MAX - 1);
	module.inode = FILES_MAX + 1;
	assert_null(symbol_files_get(files, &mapping));
	assert_int_equal(server.ends, 1);
	symbol_files_release(entries[5]);
	symbol_files_release(NULL);
	assert_true(ask(get(), SYMBOL_COVERED, CODE));
	assert_int_equal(server.number, 5);
	/* The others are still there. */
	module.inode = 7;
	assert_ptr_equal(get(), entries[6]);
	/* Released once of twice, it is still used. */
	symbol_files_release(entries[6]);
	module.inode = FILES_MAX + 2;
	assert_null(symbol_files_get(files, &mapping));
	symbol_files_release(entries[6]);
	assert_non_null(symbol_files_get(files, &mapping));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_file_has_one_entry, begin, end),
		cmocka_unit_test_setup_teardown(the_first_question_opens_the_file, begin, end),
		cmocka_unit_test_setup_teardown(what_is_known_is_not_asked_again, begin, end),
		cmocka_unit_test_setup_teardown(what_holds_for_one_address_is_asked_again, begin, end),
		cmocka_unit_test_setup_teardown(after_a_failure_debug_info_is_left_out, begin, end),
		cmocka_unit_test_setup_teardown(after_a_failure_over_rules_there_are_names_still, begin, end),
		cmocka_unit_test_setup_teardown(without_a_server_or_a_file_there_are_no_answers, begin, end),
		cmocka_unit_test_setup_teardown(a_file_may_have_the_first_descriptor, begin, end),
		cmocka_unit_test_setup_teardown(servers_are_told_what_to_do_meanwhile, begin, end),
		cmocka_unit_test_setup_teardown(the_time_of_all_servers_counts, begin, end),
		cmocka_unit_test_setup_teardown(so_many_files_are_kept, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Symbols that a mapped module exports, found by its hash table. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/proc/live_memory.h"
#include "tests/unit/made_up_elf.h"
#include "unwind/elf/dynamic_symbol.h"

enum {
	FIRST = 2, /* the first symbol in the hash table; those before are imported */
	SYMBOLS = 40,
	BUCKETS = 3,
	BLOOM_WORDS = 2,
	NAME_SIZE = 160,
	VALUE = 0x40,
};
static const uint64_t AT = 0x7f1200000000;

static struct made_up_elf elf;
static struct symbol {
	char name[NAME_SIZE];
	uint32_t hash;
} symbols[SYMBOLS];
static uint32_t symtab, strtab, hashes, dynamic; /* sections */
static uint64_t chain;                           /* its address in the file */

/* "The ELF object file format: GNU hash table" calls it so: h * 33 + c from 5381 on. */
static uint32_t hash_of(const char *name)
{
	uint32_t hash = 5381;

	while (*name)
		hash = (hash << 5) + hash + (uint8_t)*name++;
	return hash;
}

static int compare_buckets(const void *a, const void *b)
{
	const struct symbol *left = a, *right = b;
	const int difference = (int)(left->hash % BUCKETS) - (int)(right->hash % BUCKETS);

	return difference ? difference : strcmp(left->name, right->name);
}

static void name_symbols(void)
{
	for (size_t i = 0; i < SYMBOLS; i++) {
		snprintf(symbols[i].name, NAME_SIZE, "symbol_%zu", i);
		/* Two long ones: with NUL, up to 128 bytes are compared. */
		if (i < 2) {
			memset(symbols[i].name, 'x', 127 + i);
			symbols[i].name[127 + i] = '\0';
		}
		symbols[i].hash = hash_of(symbols[i].name);
	}
	qsort(symbols, SYMBOLS, sizeof(symbols[0]), compare_buckets);
}

static void add_symbols(void)
{
	Elf64_Sym table[FIRST + SYMBOLS] = { 0 };
	char names[1 + SYMBOLS * NAME_SIZE] = "";
	size_t length = 1;

	for (size_t i = 0; i < SYMBOLS; i++) {
		table[FIRST + i] = (Elf64_Sym){ .st_name = (uint32_t)length,
						.st_value = VALUE + i,
						.st_shndx = 1 };
		length += strlen(strcpy(names + length, symbols[i].name)) + 1;
	}
	symtab = made_up_elf_section(&elf, ".dynsym", (Elf64_Shdr){ .sh_type = SHT_DYNSYM }, table,
				     sizeof(table));
	strtab = made_up_elf_section(&elf, ".dynstr", (Elf64_Shdr){ .sh_type = SHT_STRTAB }, names, length);
}

static void add_hashes(void)
{
	struct {
		uint32_t buckets, first, bloom_words, bloom_shift;
		uint64_t bloom[BLOOM_WORDS];
		uint32_t bucket[BUCKETS], chain[SYMBOLS];
	} table = { BUCKETS, FIRST, BLOOM_WORDS, 6, { UINT64_MAX, UINT64_MAX }, { 0 }, { 0 } };

	for (uint32_t i = 0; i < SYMBOLS; i++) {
		const uint32_t bucket = symbols[i].hash % BUCKETS;
		const bool is_last = i + 1 == SYMBOLS || symbols[i + 1].hash % BUCKETS != bucket;

		if (table.bucket[bucket] == 0)
			table.bucket[bucket] = FIRST + i;
		table.chain[i] = (symbols[i].hash & ~1U) | is_last;
	}
	hashes = made_up_elf_section(&elf, ".gnu.hash", (Elf64_Shdr){ .sh_type = SHT_GNU_HASH }, &table,
				     sizeof(table));
	chain = elf.sections[hashes].sh_addr + offsetof(__typeof__(table), chain);
}

/* The addresses are those of the file, or with a bias those that the loader has put there. */
static void put_dynamic(uint64_t bias)
{
	const Elf64_Dyn entries[] = {
		{ .d_tag = DT_STRSZ, .d_un.d_val = 1 },
		{ .d_tag = DT_SYMTAB, .d_un.d_ptr = elf.sections[symtab].sh_addr + bias },
		{ .d_tag = DT_STRTAB, .d_un.d_ptr = elf.sections[strtab].sh_addr + bias },
		{ .d_tag = DT_GNU_HASH, .d_un.d_ptr = elf.sections[hashes].sh_addr + bias },
		{ .d_tag = DT_NULL },
		{ .d_tag = DT_GNU_HASH, .d_un.d_ptr = 1 }, /* behind the end */
	};

	memcpy(elf.bytes + elf.sections[dynamic].sh_addr, entries, sizeof(entries));
}

static int begin(void **state)
{
	(void)state;
	name_symbols();
	made_up_elf_begin(&elf);
	elf.base = AT;
	add_symbols();
	add_hashes();
	dynamic = made_up_elf_section(&elf, ".dynamic", (Elf64_Shdr){ .sh_type = SHT_DYNAMIC }, NULL,
				      6 * sizeof(Elf64_Dyn));
	made_up_elf_segment(&elf, PT_DYNAMIC, dynamic);
	put_dynamic(0);
	made_up_elf_end(&elf);
	return 0;
}

/* Which symbol has the name, if any: its index, or -1. */
static int find(const char *name)
{
	uint64_t address = 1;

	if (!dynamic_symbol_find(&elf.memory, AT, name, &address)) {
		assert_int_equal(address, 1);
		return -1;
	}
	assert_in_range(address, AT + VALUE, AT + VALUE + SYMBOLS - 1);
	return (int)(address - AT - VALUE);
}

/* How many symbols are found; none is found in the place of another one. */
static size_t count_found(void)
{
	size_t count = 0;

	for (int i = 0; i < SYMBOLS; i++) {
		const int found = find(symbols[i].name);

		assert_true(found == i || found == -1);
		count += found == i;
	}
	return count;
}

static void each_exported_name_is_found(void **state)
{
	(void)state;
	for (int bias = 0; bias < 2; bias++) {
		put_dynamic(bias ? AT : 0);
		for (int i = 0; i < SYMBOLS; i++)
			assert_int_equal(find(symbols[i].name), strlen(symbols[i].name) < 128 ? i : -1);
		assert_int_equal(count_found(), SYMBOLS - 1);
		assert_int_equal(find("symbol"), -1);
		assert_int_equal(find("symbol_40"), -1);
		assert_int_equal(find(""), -1);
	}
}

static void names_with_one_hash_are_told_apart(void **state)
{
	uint32_t first = symbols[0].hash & ~1U;
	const Elf64_Shdr *table = &elf.sections[symtab];
	Elf64_Sym symbol;

	(void)state;
	/* What is before it in the chain claims the hash of the second, but has another name. */
	assert_int_equal(symbols[0].hash % BUCKETS, symbols[1].hash % BUCKETS);
	first = symbols[1].hash & ~1U;
	memcpy(elf.bytes + chain, &first, sizeof(first));
	assert_int_equal(find(symbols[1].name), 1);
	/* One that is only imported does not count. */
	memcpy(&symbol, elf.bytes + table->sh_addr + (FIRST + 1) * sizeof(symbol), sizeof(symbol));
	symbol.st_shndx = SHN_UNDEF;
	memcpy(elf.bytes + table->sh_addr + (FIRST + 1) * sizeof(symbol), &symbol, sizeof(symbol));
	assert_int_equal(find(symbols[1].name), -1);
}

static void a_chain_ends(void **state)
{
	uint32_t hash = symbols[1].hash | 1;

	(void)state;
	assert_int_equal(symbols[2].hash % BUCKETS, symbols[1].hash % BUCKETS);
	assert_int_equal(find(symbols[2].name), 2);
	/* The last of a chain is looked at, and none behind it. */
	memcpy(elf.bytes + chain + sizeof(hash), &hash, sizeof(hash));
	assert_int_equal(find(symbols[1].name), 1);
	assert_int_equal(find(symbols[2].name), -1);
}

static void an_empty_bucket_has_no_names(void **state)
{
	const uint64_t buckets = chain - BUCKETS * sizeof(uint32_t);

	(void)state;
	for (uint32_t first = 0; first < FIRST; first++) {
		for (size_t i = 0; i < BUCKETS; i++)
			memcpy(elf.bytes + buckets + i * sizeof(first), &first, sizeof(first));
		assert_int_equal(count_found(), 0);
	}
}

/* An entry of another kind, so that a table is missing; and a table that is not mapped. */
static void all_tables_are_needed(void **state)
{
	(void)state;
	for (size_t i = 1; i <= 3; i++) {
		uint8_t *entry = elf.bytes + elf.sections[dynamic].sh_addr + i * sizeof(Elf64_Dyn);
		const uint64_t other = DT_DEBUG, nowhere = UINT64_MAX / 2;

		memcpy(entry, &other, sizeof(other));
		assert_int_equal(count_found(), 0);
		put_dynamic(0);
		memcpy(entry + sizeof(other), &nowhere, sizeof(nowhere));
		assert_int_equal(count_found(), 0);
		put_dynamic(0);
	}
	assert_int_equal(count_found(), SYMBOLS - 1);
	/* As many buckets as none. */
	memset(elf.bytes + elf.sections[hashes].sh_addr, 0, sizeof(uint32_t));
	assert_int_equal(count_found(), 0);
}

/* A module may be mapped at 0, where a table that is missing is not to be looked for. */
static void a_missing_table_is_not_at_the_beginning(void **state)
{
	uint8_t *entries = elf.bytes + elf.sections[dynamic].sh_addr;
	const uint64_t other = DT_DEBUG;
	uint64_t address;

	(void)state;
	elf.base = 0;
	put_dynamic(0);
	assert_true(dynamic_symbol_find(&elf.memory, 0, symbols[0].name, &address));
	assert_int_equal(address, VALUE);
	/* The name where it would be found from there. */
	for (size_t i = FIRST; i < FIRST + SYMBOLS; i++) {
		uint8_t *symbol = elf.bytes + elf.sections[symtab].sh_addr + i * sizeof(Elf64_Sym);
		uint32_t name;

		memcpy(&name, symbol, sizeof(name));
		name += (uint32_t)elf.sections[strtab].sh_addr;
		memcpy(symbol, &name, sizeof(name));
	}
	memcpy(entries + 2 * sizeof(Elf64_Dyn), &other, sizeof(other));
	assert_false(dynamic_symbol_find(&elf.memory, 0, symbols[0].name, &address));
}

static void without_a_dynamic_section_there_is_nothing(void **state)
{
	uint64_t address;

	(void)state;
	elf.segments[1].p_type = PT_NOTE;
	memcpy(elf.bytes + sizeof(Elf64_Ehdr), elf.segments, sizeof(elf.segments));
	assert_int_equal(count_found(), 0);
	elf.segments[1].p_type = PT_DYNAMIC;
	elf.segments[1].p_vaddr = MADE_UP_ELF_BYTES;
	memcpy(elf.bytes + sizeof(Elf64_Ehdr), elf.segments, sizeof(elf.segments));
	assert_int_equal(count_found(), 0);
	assert_false(dynamic_symbol_find(&elf.memory, AT + 1, symbols[0].name, &address));
}

/* What the loader's own search finds in the C library. */
static void the_loader_finds_the_same(void **state)
{
	static const char *const names[] = { "getenv", "fopen", "pthread_create", "qsort", "environ" };
	struct live_memory *live = live_memory_new(getpid());

	(void)state;
	assert_non_null(live);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *expected = dlsym(RTLD_NEXT, names[i]);
		uint64_t address;
		Dl_info info;

		assert_non_null(expected);
		assert_int_not_equal(dladdr(expected, &info), 0);
		assert_true(dynamic_symbol_find(live_memory_memory(live), (uintptr_t)info.dli_fbase, names[i],
						&address));
		assert_int_equal(address, (uintptr_t)expected);
	}
	live_memory_free(live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_exported_name_is_found, begin),
		cmocka_unit_test_setup(names_with_one_hash_are_told_apart, begin),
		cmocka_unit_test_setup(a_chain_ends, begin),
		cmocka_unit_test_setup(an_empty_bucket_has_no_names, begin),
		cmocka_unit_test_setup(all_tables_are_needed, begin),
		cmocka_unit_test_setup(a_missing_table_is_not_at_the_beginning, begin),
		cmocka_unit_test_setup(without_a_dynamic_section_there_is_nothing, begin),
		cmocka_unit_test(the_loader_finds_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

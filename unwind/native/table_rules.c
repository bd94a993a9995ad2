/* SPDX-License-Identifier: MIT */
#include "unwind/native/table_rules.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include <libunwind.h>

#include "unwind/native/unwind_entry.h"

/*
 * libunwind exports this for implementers of find_proc_info (perf uses it too),
 * but declares it only in its private headers.
 */
int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t space, unw_word_t ip, unw_dyn_info_t *table,
				       unw_proc_info_t *info, int need_unwind_info, void *context);

struct table_rules {
	struct image *image;
	unw_addr_space_t space;
	struct unwind_entry entry; /* the only part of the tables that libunwind sees */
	uint64_t pc;
	bool missed; /* no table was found: libunwind's result is a guess */
};

/*---- A made-up thread ----*/

/*
 * Registers hold values that are far from each other and from any address of a
 * process. A word of the stack holds its own address, inverted.
 */
static uint64_t made_up(int number)
{
	return UINT64_C(0x2000000000000000) + ((uint64_t)number << 56);
}

/* A value this near to a register's made-up value counts as an offset from it. */
enum { OFFSET_MAX = 1 << 30 };

static bool is_near(uint64_t value, uint64_t origin, uint64_t *ret_offset)
{
	*ret_offset = value - origin;
	return *ret_offset + OFFSET_MAX <= 2 * (uint64_t)OFFSET_MAX;
}

/*---- What libunwind sees ----*/

/* Have libunwind search a table of one pair, which leads to a checked entry. */
static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *info, int need_unwind_info,
			  void *context)
{
	struct table_rules *tables = context;
	struct module *module = image_find(tables->image, ip);
	uint64_t pair, begin;
	unw_dyn_info_t table;
	int result;

	if (!module || !image_unwind_entry(tables->image, module, ip, &pair, &begin) ||
	    !unwind_entry_read(image_text(tables->image), module->unwind_table.header, pair,
			       &tables->entry)) {
		tables->missed = true;
		return -UNW_ENOINFO;
	}
	memset(&table, 0, sizeof(table));
	table.format = UNW_INFO_FORMAT_REMOTE_TABLE;
	table.start_ip = module->begin;
	table.end_ip = module->end;
	table.u.rti.segbase = module->unwind_table.header;
	table.u.rti.table_data = pair;
	table.u.rti.table_len = 1; /* in words of 8 bytes: one pair */
	result = UNW_OBJ(dwarf_search_unwind_table)(space, ip, &table, info, need_unwind_info, context);
	if (result < 0)
		tables->missed = true;
	return result;
}

static void put_unwind_info(unw_addr_space_t space, unw_proc_info_t *info, void *context)
{
	(void)space;
	(void)info;
	(void)context;
}

static int get_dyn_info_list_addr(unw_addr_space_t space, unw_word_t *list, void *context)
{
	(void)space;
	(void)list;
	(void)context;
	return -UNW_ENOINFO;
}

static int access_mem(unw_addr_space_t space, unw_word_t address, unw_word_t *value, int write, void *context)
{
	struct table_rules *tables = context;

	(void)space;
	if (write)
		return -UNW_EINVAL;
	if (unwind_entry_word(&tables->entry, address, value))
		return 0;
	if (image_find(tables->image, address))
		return memory_read(image_text(tables->image), address, value, sizeof(*value)) == MEMORY_OK
			       ? 0
			       : -UNW_EINVAL;
	*value = ~address;
	return 0;
}

static int access_reg(unw_addr_space_t space, unw_regnum_t number, unw_word_t *value, int write,
		      void *context)
{
	const struct table_rules *tables = context;

	(void)space;
	if (write || number < 0 || number >= REGISTER_NUMBERS)
		return -UNW_EBADREG;
	*value = number == REGISTER_NUMBER_PC ? tables->pc : made_up(number);
	return 0;
}

static int access_fpreg(unw_addr_space_t space, unw_regnum_t number, unw_fpreg_t *value, int write,
			void *context)
{
	(void)space;
	(void)number;
	(void)value;
	(void)write;
	(void)context;
	return -UNW_EBADREG;
}

static int resume(unw_addr_space_t space, unw_cursor_t *cursor, void *context)
{
	(void)space;
	(void)cursor;
	(void)context;
	return -UNW_EINVAL;
}

static int get_proc_name(unw_addr_space_t space, unw_word_t address, char *buffer, size_t length,
			 unw_word_t *offset, void *context)
{
	(void)space;
	(void)address;
	(void)buffer;
	(void)length;
	(void)offset;
	(void)context;
	return -UNW_ENOINFO;
}

struct table_rules *table_rules_new(struct image *image)
{
	unw_accessors_t accessors = {
		.find_proc_info = find_proc_info,
		.put_unwind_info = put_unwind_info,
		.get_dyn_info_list_addr = get_dyn_info_list_addr,
		.access_mem = access_mem,
		.access_reg = access_reg,
		.access_fpreg = access_fpreg,
		.resume = resume,
		.get_proc_name = get_proc_name,
	};
	struct table_rules *tables = calloc(1, sizeof(*tables));

	if (!tables)
		return NULL;
	tables->image = image;
	tables->space = unw_create_addr_space(&accessors, 0);
	if (!tables->space) {
		free(tables);
		return NULL;
	}
	/* cfi.c caches: libunwind sees each address once. */
	unw_set_caching_policy(tables->space, UNW_CACHE_NONE);
	return tables;
}

void table_rules_free(struct table_rules *tables)
{
	if (!tables)
		return;
	unw_destroy_addr_space(tables->space);
	free(tables);
}

/*---- From the caller's registers to rules ----*/

static struct frame_rule rule_with(struct frame_rules *rules, enum frame_rule_kind kind, uint8_t atom,
				   uint64_t number, uint64_t number2)
{
	const struct frame_rule rule = { .kind = (uint8_t)kind, .first = rules->op_count, .count = 1 };

	rules->ops[rules->op_count++] = (struct frame_rule_op){ .atom = atom,
								.number = number,
								.number2 = number2 };
	return rule;
}

/* The register that a value is an offset from; false if there is none. */
static bool find_origin(uint64_t value, int *ret_number, uint64_t *ret_offset)
{
	for (int number = 0; number < REGISTER_NUMBER_PC; number++) {
		if (is_near(value, made_up(number), ret_offset)) {
			*ret_number = number;
			return true;
		}
	}
	return false;
}

static bool take_register(unw_cursor_t *cursor, uint64_t cfa, int number, struct frame_rules *rules)
{
	struct frame_rule *rule = &rules->registers[number];
	uint64_t value, offset;
	int origin;

	if (unw_get_reg(cursor, number, &value) < 0) {
		rule->kind = FRAME_RULE_UNKNOWN;
		return number != REGISTER_NUMBER_RETURN;
	}
	if (is_near(~value, cfa, &offset)) {
		*rule = rule_with(rules, FRAME_RULE_SAVED_AT_CFA, DW_OP_plus_uconst, offset, 0);
		return true;
	}
	if (!find_origin(value, &origin, &offset) || offset != 0)
		return false;
	*rule = (struct frame_rule){
		.kind = origin == number ? FRAME_RULE_SAME : FRAME_RULE_REGISTER,
		.number = (uint8_t)origin,
	};
	return true;
}

static bool take_caller(unw_cursor_t *cursor, struct frame_rules *rules)
{
	uint64_t cfa, offset;
	int origin;

	/* The caller's stack pointer is the CFA. */
	if (unw_get_reg(cursor, REGISTER_NUMBER_SP, &cfa) < 0 || !find_origin(cfa, &origin, &offset))
		return false;
	rules->cfa = rule_with(rules, FRAME_RULE_VALUE, DW_OP_bregx, (uint64_t)origin, offset);
	rules->registers[REGISTER_NUMBER_SP] = rules->cfa;
	for (int number = 0; number < REGISTER_COLUMNS; number++)
		if (number != REGISTER_NUMBER_SP && !take_register(cursor, cfa, number, rules))
			return false;
	frame_rules_return(rules);
	return true;
}

enum table_rules_status table_rules_find(struct table_rules *tables, uint64_t pc,
					 struct frame_rules *ret_rules)
{
	unw_cursor_t cursor;
	int result;

	memset(ret_rules, 0, sizeof(*ret_rules));
	/* On arm64, libunwind reads parts of it that it has not set. */
	memset(&cursor, 0, sizeof(cursor));
	tables->pc = pc;
	tables->missed = false;
	if (unw_init_remote(&cursor, tables->space, tables) < 0)
		return TABLE_RULES_BAD;
	result = unw_step(&cursor);
	if (tables->missed)
		return TABLE_RULES_NONE;
	ret_rules->is_outermost = result == 0;
	return result == 0 || (result > 0 && take_caller(&cursor, ret_rules)) ? TABLE_RULES_FOUND
									      : TABLE_RULES_BAD;
}

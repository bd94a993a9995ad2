/* SPDX-License-Identifier: MIT */
/*
 * For cores of the other machine: libunwind knows this one only. The process that reads symbols works the
 * rules out.
 */
#include <stdlib.h>

#include "unwind/native/table_rules.h"

struct table_rules {
	struct image *image;
};

struct table_rules *table_rules_new(struct image *image)
{
	struct table_rules *tables = malloc(sizeof(*tables));

	if (tables)
		tables->image = image;
	return tables;
}

void table_rules_free(struct table_rules *tables)
{
	free(tables);
}

enum table_rules_status table_rules_find(struct table_rules *tables, uint64_t pc,
					 struct frame_rules *ret_rules)
{
	(void)tables;
	(void)pc;
	(void)ret_rules;
	return TABLE_RULES_NONE;
}

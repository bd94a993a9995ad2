/* SPDX-License-Identifier: MIT */
/*
 * heap_amounts: changes, shares and names in tables of text.
 */
#ifndef LJSPY_HEAP_AMOUNTS_H
#define LJSPY_HEAP_AMOUNTS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "output/sample/amount_text.h"

struct heap_account;

/* An amount of bytes with a sign: "+1.2 MB". Returns ret_text. */
const char *heap_amount_change(int64_t bytes, char ret_text[static AMOUNT_SIZE]);

/* "1 object", "12,345 objects". Returns ret_text. */
const char *heap_amount_objects(uint64_t count, char ret_text[static AMOUNT_SIZE]);

double heap_percent(uint64_t part, uint64_t whole);

/*
 * Write a name of the target, escaped, of at most this many characters; of a long one its middle is left out.
 */
void heap_name_write(FILE *out, const char *name, size_t columns);

/* "nginx (pid 4242), VM 2 of /lib/libluajit.so" */
void heap_place_write(FILE *out, const struct heap_account *account);

#endif

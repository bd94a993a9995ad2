/* SPDX-License-Identifier: MIT */
/*
 * heap_amounts: bytes, counts and names in tables of text.
 */
#ifndef LJSPY_HEAP_AMOUNTS_H
#define LJSPY_HEAP_AMOUNTS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct heap_account;

enum { HEAP_AMOUNT_SIZE = 32 };

/* "43.7 MB", "812 B". Returns ret_text. */
const char *heap_amount(uint64_t bytes, char ret_text[static HEAP_AMOUNT_SIZE]);
/* The same with a sign: "+1.2 MB". */
const char *heap_amount_change(int64_t bytes, char ret_text[static HEAP_AMOUNT_SIZE]);
/* "12,345" */
const char *heap_number(uint64_t number, char ret_text[static HEAP_AMOUNT_SIZE]);

double heap_percent(uint64_t part, uint64_t whole);

/* Write a name of the target, escaped, of at most this many characters; of a long one its middle is left out. */
void heap_name_write(FILE *out, const char *name, size_t columns);

/* "nginx (pid 4242), VM 2 of /lib/libluajit.so" */
void heap_place_write(FILE *out, const struct heap_account *account);

#endif

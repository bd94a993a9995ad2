/*
 * plt: which function an entry of a procedure linkage table leads to.
 */
#ifndef LJSPY_PLT_H
#define LJSPY_PLT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libelf.h>

/*
 * The symbol that the PLT entry at an address of the file jumps to, as the
 * relocation of its GOT slot names it. False outside of PLTs and where that
 * cannot be told.
 */
bool plt_find(Elf *elf, uint64_t address, char *ret_name, size_t size);

#endif

/* SPDX-License-Identifier: MIT */
#include "unwind/symbols/searched_cfi.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/symbols/table_search.h"

struct searched_cfi {
	Elf *elf;
	Dwarf_CFI *cfi;
	unsigned char *bytes; /* of the Elf */
};

/* libdw looks for sections by name. */
static const char names[] = "\0.eh_frame";

/* What comes before the table in the file made for libdw. */
struct head {
	Elf64_Ehdr header;
	Elf64_Shdr none, table, names;
	char texts[sizeof(names)];
};

static void fill_head(const Elf64_Ehdr *original, const struct unwind_entries *entries, struct head *head)
{
	memset(head, 0, sizeof(*head));
	head->header = (Elf64_Ehdr){
		.e_type = original->e_type,
		.e_machine = original->e_machine,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(head->header),
		.e_shoff = offsetof(struct head, none),
		.e_shentsize = sizeof(head->none),
		.e_shnum = 3,
		.e_shstrndx = 2,
	};
	memcpy(head->header.e_ident, original->e_ident, EI_NIDENT);
	head->table = (Elf64_Shdr){
		.sh_name = 1, /* in names */
		.sh_type = SHT_PROGBITS,
		.sh_flags = SHF_ALLOC,
		.sh_addr = entries->address,
		.sh_offset = sizeof(*head),
		.sh_size = entries->length,
		.sh_addralign = 1,
	};
	head->names = (Elf64_Shdr){
		.sh_type = SHT_STRTAB,
		.sh_offset = offsetof(struct head, texts),
		.sh_size = sizeof(names),
		.sh_addralign = 1,
	};
	memcpy(head->texts, names, sizeof(names));
}

/* Make a file with that section alone. */
static bool make_file(struct searched_cfi *searched, const Elf64_Ehdr *original,
		      const struct unwind_entries *entries)
{
	const size_t length = sizeof(struct head) + entries->length;
	struct head head;

	fill_head(original, entries, &head);
	searched->bytes = malloc(length);
	if (!searched->bytes)
		return false;
	memcpy(searched->bytes, &head, sizeof(head));
	memcpy(searched->bytes + sizeof(head), entries->bytes, entries->length);
	searched->elf = elf_memory((char *)searched->bytes, length);
	searched->cfi = searched->elf ? dwarf_getcfi_elf(searched->elf) : NULL;
	return searched->cfi;
}

struct searched_cfi *searched_cfi_new(Elf *elf)
{
	const Elf64_Ehdr *header = elf64_getehdr(elf);
	struct searched_cfi *searched;
	struct unwind_entries entries;
	size_t sections;

	if (!header || elf_getshdrnum(elf, &sections) != 0 || sections || !table_search(elf, &entries))
		return NULL;
	searched = calloc(1, sizeof(*searched));
	if (searched && make_file(searched, header, &entries))
		return searched;
	searched_cfi_free(searched);
	return NULL;
}

void searched_cfi_free(struct searched_cfi *searched)
{
	if (!searched)
		return;
	dwarf_cfi_end(searched->cfi);
	elf_end(searched->elf);
	free(searched->bytes);
	free(searched);
}

Dwarf_CFI *searched_cfi_get(const struct searched_cfi *searched)
{
	return searched->cfi;
}

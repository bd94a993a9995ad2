/* SPDX-License-Identifier: MIT */
#include "unwind/values/ctype_text.h"

#include <stdio.h>
#include <string.h>

enum {
	DEPTH_MAX = 16,
	/* LuaJIT's own types and keywords come before what programs declare, some 90 (lj_ctype_init). */
	OWN_TYPES = 64,
};

/* lj_ctype.h */
static const uint32_t CTF_BOOL = 0x08000000, CTF_FP = 0x04000000, CTF_UNSIGNED = 0x00800000,
		      CTF_REF = 0x00800000, CTF_UNION = 0x00800000, CTF_COMPLEX = 0x04000000,
		      CTSIZE_INVALID = 0xffffffff;

bool ctype_is_floating(const struct ctype *type)
{
	return type->info & CTF_FP;
}

bool ctype_is_unsigned(const struct ctype *type)
{
	return type->info & (CTF_UNSIGNED | CTF_BOOL);
}

/* The only enum of LuaJIT's own types is CTID_CTYPEID, 21 or 22. */
static bool is_ctypeid(const struct ctype *type, uint32_t id)
{
	return ctype_kind(type) == CT_ENUM && id < OWN_TYPES;
}

static void number_name(const struct ctype *type, char ret_text[static CTYPE_TEXT_SIZE])
{
	if (type->info & CTF_BOOL)
		snprintf(ret_text, CTYPE_TEXT_SIZE, "bool");
	else if (type->info & CTF_FP)
		snprintf(ret_text, CTYPE_TEXT_SIZE, "%s",
			 type->size == sizeof(double)  ? "double"
			 : type->size == sizeof(float) ? "float"
						       : "long double");
	else
		snprintf(ret_text, CTYPE_TEXT_SIZE, "%sint%u_t", type->info & CTF_UNSIGNED ? "u" : "",
			 type->size * 8);
}

/* "struct conn", or its number if it has no name. */
static void tagged_name(const char *what, const struct ctype *type, uint32_t id,
			char ret_text[static CTYPE_TEXT_SIZE])
{
	if (*type->name)
		snprintf(ret_text, CTYPE_TEXT_SIZE, "%s %s", what, type->name);
	else
		snprintf(ret_text, CTYPE_TEXT_SIZE, "%s %u", what, id);
}

/* The name of a type that is made of no other. False if it is made of one. */
static bool base_name(const struct ctype *type, uint32_t id, char ret_text[static CTYPE_TEXT_SIZE])
{
	switch (ctype_kind(type)) {
	case CT_NUM: number_name(type, ret_text); return true;
	case CT_VOID: snprintf(ret_text, CTYPE_TEXT_SIZE, "void"); return true;
	case CT_STRUCT:
		tagged_name(type->info & CTF_UNION ? "union" : "struct", type, id, ret_text);
		return true;
	case CT_ENUM:
		if (is_ctypeid(type, id))
			snprintf(ret_text, CTYPE_TEXT_SIZE, "ctype");
		else
			tagged_name("enum", type, id, ret_text);
		return true;
	case CT_PTR:
	case CT_ARRAY:
	case CT_FUNC:
	case CT_TYPEDEF:
	case CT_ATTRIB: break;
	}
	return false;
}

/* A pointer to an array or function stands in parentheses: without them, it is an array of pointers. */
static void enclose_pointer(char suffix[static CTYPE_TEXT_SIZE])
{
	char enclosed[CTYPE_TEXT_SIZE + 2];

	if (*suffix != '*' && *suffix != '&')
		return;
	snprintf(enclosed, sizeof(enclosed), "(%s)", suffix);
	snprintf(suffix, CTYPE_TEXT_SIZE, "%.*s", CTYPE_TEXT_SIZE - 1, enclosed);
}

static void array_suffix(const struct ctypes *types, const struct ctype *type, const char *suffix,
			 char ret_suffix[static 2 * CTYPE_TEXT_SIZE])
{
	struct ctype child;
	uint32_t child_size = types->get(types->context, ctype_child(type), &child) ? child.size : 0;

	if (type->info & CTF_COMPLEX)
		snprintf(ret_suffix, 2 * CTYPE_TEXT_SIZE, "complex%s", suffix);
	else if (type->size == CTSIZE_INVALID || child_size == 0)
		snprintf(ret_suffix, 2 * CTYPE_TEXT_SIZE, "%s[?]", suffix);
	else
		snprintf(ret_suffix, 2 * CTYPE_TEXT_SIZE, "%s[%u]", suffix, type->size / child_size);
}

/* A declaration is written from the middle: pointers and arrays go around what is there. */
static void add_suffix(const struct ctypes *types, const struct ctype *type,
		       char suffix[static CTYPE_TEXT_SIZE])
{
	char longer[2 * CTYPE_TEXT_SIZE];

	switch (ctype_kind(type)) {
	case CT_PTR:
		snprintf(longer, sizeof(longer), "%s%s", type->info & CTF_REF ? "&" : "*", suffix);
		break;
	case CT_FUNC:
		enclose_pointer(suffix);
		snprintf(longer, sizeof(longer), "%s()", suffix);
		break;
	case CT_ARRAY:
		if (!(type->info & CTF_COMPLEX))
			enclose_pointer(suffix);
		array_suffix(types, type, suffix, longer);
		break;
	case CT_NUM:
	case CT_STRUCT:
	case CT_VOID:
	case CT_ENUM:
	case CT_TYPEDEF:
	case CT_ATTRIB: return;
	}
	snprintf(suffix, CTYPE_TEXT_SIZE, "%.*s", CTYPE_TEXT_SIZE - 1, longer);
}

bool ctype_text(const struct ctypes *types, uint32_t id, char ret_text[static CTYPE_TEXT_SIZE])
{
	char suffix[CTYPE_TEXT_SIZE] = "", base[CTYPE_TEXT_SIZE], text[2 * CTYPE_TEXT_SIZE];

	for (unsigned int depth = 0; depth < DEPTH_MAX; depth++) {
		struct ctype type;

		if (!types->get(types->context, id, &type))
			return false;
		if (base_name(&type, id, base)) {
			snprintf(text, sizeof(text), "%s%s%s", base, *suffix && *suffix != '[' ? " " : "",
				 suffix);
			snprintf(ret_text, CTYPE_TEXT_SIZE, "%.*s", CTYPE_TEXT_SIZE - 1, text);
			return true;
		}
		add_suffix(types, &type, suffix);
		id = ctype_child(&type);
	}
	return false;
}

bool ctype_is_ctypeid(const struct ctypes *types, uint32_t id)
{
	struct ctype type;

	return types->get(types->context, id, &type) && is_ctypeid(&type, id);
}

bool ctype_object_text(const struct ctypes *types, uint32_t id, uint32_t bytes,
		       char ret_text[static CTYPE_TEXT_SIZE])
{
	char name[CTYPE_TEXT_SIZE], text[CTYPE_TEXT_SIZE + sizeof("ctype<>")];

	if (!ctype_is_ctypeid(types, id) || !ctype_text(types, bytes, name))
		return ctype_text(types, id, ret_text);
	snprintf(text, sizeof(text), "ctype<%s>", name);
	snprintf(ret_text, CTYPE_TEXT_SIZE, "%.*s", CTYPE_TEXT_SIZE - 1, text);
	return true;
}

bool ctype_raw(const struct ctypes *types, uint32_t id, struct ctype *ret_type)
{
	for (unsigned int depth = 0; depth < DEPTH_MAX; depth++) {
		if (!types->get(types->context, id, ret_type))
			return false;
		if (ctype_kind(ret_type) != CT_TYPEDEF && ctype_kind(ret_type) != CT_ATTRIB)
			return true;
		id = ctype_child(ret_type);
	}
	return false;
}

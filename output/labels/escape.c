/* SPDX-License-Identifier: MIT */
#include "output/labels/escape.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "output/sample/utf8.h"

/* The longest output for one character or byte, "\u{10ffff}", fits with its NUL. */
enum { PIECE_SIZE = 12 };

static const char ellipsis[] = "\u2026";

/*
 * The length of the well-formed UTF-8 sequence at text, or 0. Stops at the
 * first byte that does not belong to it, so it reads no further than the NUL.
 */
static size_t decode_utf8(const unsigned char *text, uint32_t *ret_code)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t length = text[0] < 0x80   ? 1
			: text[0] < 0xc0 ? 0
			: text[0] < 0xe0 ? 2
			: text[0] < 0xf0 ? 3
			: text[0] < 0xf8 ? 4
					 : 0;
	uint32_t code;

	if (length == 0)
		return 0;
	code = length == 1 ? text[0] : text[0] & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		if (!utf8_continues((char)text[i]))
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	if (code < smallest[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	*ret_code = code;
	return length;
}

static bool is_control(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

/* Line and paragraph separators, direction marks, tags and noncharacters. */
static bool is_deceptive(uint32_t code)
{
	return code == 0x061c || (code >= 0x200b && code <= 0x200f && code != 0x200c && code != 0x200d) ||
	       (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code == 0xfeff ||
	       (code >= 0xfdd0 && code <= 0xfdef) || (code >= 0xe0000 && code <= 0xe007f) ||
	       (code & 0xfffe) == 0xfffe;
}

static const char *named(enum escape_style style, uint32_t code)
{
	switch (code) {
	case '\n': return "\\n";
	case '\r': return "\\r";
	case '\t': return "\\t";
	case '&': return style == ESCAPE_XML ? "&amp;" : NULL;
	case '<': return style == ESCAPE_XML ? "&lt;" : NULL;
	case '>': return style == ESCAPE_XML ? "&gt;" : NULL;
	case '"': return style == ESCAPE_XML ? "&quot;" : NULL;
	case '\'': return style == ESCAPE_XML ? "&#39;" : NULL;
	case ';': return style == ESCAPE_FOLDED ? ":" : NULL;
	default: return NULL;
	}
}

/* Escape the character at *text and step over it. Returns the length of the piece. */
static size_t next_piece(enum escape_style style, const char **text, char piece[static PIECE_SIZE])
{
	uint32_t code;
	size_t length = decode_utf8((const unsigned char *)*text, &code);
	const char *name = length ? named(style, code) : NULL;

	if (name) {
		*text += length;
		return (size_t)snprintf(piece, PIECE_SIZE, "%s", name);
	}
	if (length == 0 || (length == 1 && is_control(code)))
		return (size_t)snprintf(piece, PIECE_SIZE, "\\x%02x", (unsigned char)*(*text)++);
	if (is_control(code) || is_deceptive(code)) {
		*text += length;
		return (size_t)snprintf(piece, PIECE_SIZE, code > 0xffff ? "\\u{%x}" : "\\u%04x", code);
	}
	memcpy(piece, *text, length);
	*text += length;
	return length;
}

size_t escape_text(enum escape_style style, const char *text, char *buffer, size_t size)
{
	size_t length = 0;
	size_t cut = 0; /* the last length with room for an ellipsis after it */
	char piece[PIECE_SIZE];

	while (*text) {
		size_t n = next_piece(style, &text, piece);

		if (length + n >= size) {
			memcpy(buffer + cut, ellipsis, sizeof(ellipsis));
			return cut + sizeof(ellipsis) - 1;
		}
		memcpy(buffer + length, piece, n);
		length += n;
		if (length + sizeof(ellipsis) <= size)
			cut = length;
	}
	buffer[length] = '\0';
	return length;
}

void escape_write(enum escape_style style, const char *text, FILE *out)
{
	char piece[PIECE_SIZE];

	while (*text) {
		size_t length = next_piece(style, &text, piece);

		fwrite(piece, 1, length, out);
	}
}

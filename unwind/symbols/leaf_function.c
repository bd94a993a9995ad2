/* SPDX-License-Identifier: MIT */
#include "unwind/symbols/leaf_function.h"

#include "unwind/machine/machine_decoder.h"

enum { BYTES_MAX = 64 << 10 };

static bool changes_kept(const struct machine_decoder *decoder)
{
	cs_regs read, written;
	uint8_t read_count, written_count;

	if (cs_regs_access(decoder->capstone, decoder->insn, read, &read_count, written, &written_count) !=
	    CS_ERR_OK)
		return true;
	for (uint8_t i = 0; i < written_count; i++)
		if (machine_decoder_keeps(written[i]))
			return true;
	return false;
}

static bool is_leaf(struct machine_decoder *decoder, const uint8_t *code, size_t length)
{
	uint64_t address = 0;
	bool returns = false;

	while (length) {
		if (!machine_decoder_next(decoder, &code, &length, &address))
			return false;
		if (machine_decoder_returns(decoder))
			returns = true;
		else if (changes_kept(decoder))
			return false;
	}
	return returns;
}

bool leaf_function(const uint8_t *code, size_t length)
{
	struct machine_decoder decoder;
	bool leaf;

	if (length > BYTES_MAX || !machine_decoder_open(&decoder))
		return false;
	leaf = is_leaf(&decoder, code, length);
	machine_decoder_close(&decoder);
	return leaf;
}

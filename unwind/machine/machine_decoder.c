/* SPDX-License-Identifier: MIT */
#include "unwind/machine/machine_decoder.h"

bool machine_decoder_open(struct machine_decoder *ret_decoder)
{
	if (machine_decoder_open_capstone(&ret_decoder->capstone) != CS_ERR_OK)
		return false;
	cs_option(ret_decoder->capstone, CS_OPT_DETAIL, CS_OPT_ON);
	ret_decoder->insn = cs_malloc(ret_decoder->capstone);
	if (!ret_decoder->insn)
		cs_close(&ret_decoder->capstone);
	return ret_decoder->insn != NULL;
}

void machine_decoder_close(struct machine_decoder *decoder)
{
	cs_free(decoder->insn, 1);
	cs_close(&decoder->capstone);
}

bool machine_decoder_next(struct machine_decoder *decoder, const uint8_t **code, size_t *length,
			  uint64_t *address)
{
	return cs_disasm_iter(decoder->capstone, code, length, address, decoder->insn);
}

bool machine_decoder_jumps(const struct machine_decoder *decoder)
{
	return cs_insn_group(decoder->capstone, decoder->insn, CS_GRP_JUMP);
}

/* SPDX-License-Identifier: MIT */
/* The module's arm64 code is not read yet: no request has a phase. */
#include "unwind/lua/request.h"

bool request_code_read(const uint8_t *code, size_t length, uint64_t address, struct request_code *ret_code)
{
	(void)code;
	(void)length;
	(void)address;
	(void)ret_code;
	return false;
}

bool request_code_read_main(const uint8_t *code, size_t length, uint64_t address, int32_t *ret_connection,
			    int32_t *ret_main)
{
	(void)code;
	(void)length;
	(void)address;
	(void)ret_connection;
	(void)ret_main;
	return false;
}

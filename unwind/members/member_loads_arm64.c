/* SPDX-License-Identifier: MIT */
/* arm64 code is not read yet: no request of nginx is found. */
#include "unwind/members/member_loads.h"

void member_loads_read(const uint8_t *code, size_t length, uint64_t address, struct member_loads *ret_loads)
{
	(void)code;
	(void)length;
	(void)address;
	ret_loads->count = 0;
}

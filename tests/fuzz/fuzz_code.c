/*
 * Machine code of LuaJIT's interpreter and of lua-nginx-module.
 */
#include "luajit-layouts/vm_code_x86_64.h"
#include "tests/fuzz/fuzz.h"
#include "unwind/request.h"

enum { ADDRESS = 0x400000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vm_code_evidence evidence;
	struct request_code request;

	vm_code_x86_64_read(data, size, ADDRESS, &evidence);
	request_code_read(data, size, ADDRESS, &request);
	return 0;
}

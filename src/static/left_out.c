/* SPDX-License-Identifier: MIT */
#include "src/static/left_out.h"

#include "src/program/message.h"

void left_out_explain(const char *what)
{
	message_error("This ljspy, which needs nothing installed, is built without %s.", what);
	message_note("The one that `make` builds has it.");
}

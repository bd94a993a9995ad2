/* SPDX-License-Identifier: MIT */
#include "luajit-layouts/inquiry.h"

#include <stdarg.h>
#include <stdio.h>

void inquiry_verdict(const struct inquiry *inquiry, const char *probe, const char *format, ...)
{
	char text[256];
	va_list arguments;

	if (inquiry->evidence == NULL)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	inquiry->evidence(inquiry->context, probe, text);
}

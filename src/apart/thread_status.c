/* SPDX-License-Identifier: MIT */
#include "src/apart/thread_status.h"

#include <string.h>

#include "src/linux/clocks/scheduler.h"
#include "src/linux/proc/proc_text.h"

bool thread_status_is(pid_t tid, char state, char text[static THREAD_STATUS_SIZE], uint64_t *ret_switches)
{
	static const char key[] = "\nState:\t";
	struct switches switches;
	const char *found = proc_text_read(tid, "status", text, THREAD_STATUS_SIZE) < 0 ? NULL
											: strstr(text, key);

	if (!found || found[sizeof(key) - 1] != state || !switches_parse(text, &switches))
		return false;
	*ret_switches = switches.count;
	return true;
}

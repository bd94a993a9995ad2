/* SPDX-License-Identifier: MIT */
#include "src/linux/proc/user_name.h"

#include <pwd.h>
#include <stdio.h>

void user_name(uid_t uid, char ret_name[static USER_NAME_SIZE])
{
	FILE *users = fopen("/etc/passwd", "re");
	const struct passwd *entry = NULL;

	snprintf(ret_name, USER_NAME_SIZE, "%u", (unsigned int)uid);
	if (!users)
		return;
	while ((entry = fgetpwent(users)) && entry->pw_uid != uid)
		;
	if (entry)
		snprintf(ret_name, USER_NAME_SIZE, "%s", entry->pw_name);
	fclose(users);
}

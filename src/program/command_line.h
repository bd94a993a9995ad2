/* SPDX-License-Identifier: MIT */
/*
 * command_line: a command and its arguments in one text.
 */
#ifndef LJSPY_COMMAND_LINE_H
#define LJSPY_COMMAND_LINE_H

/*
 * The arguments, which NULL ends, with blanks between them. The caller frees it. NULL when memory is short.
 */
char *command_line_join(char *const *arguments);

#endif

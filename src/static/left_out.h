/* SPDX-License-Identifier: MIT */
/*
 * left_out: what only the ljspy that needs libraries can do.
 */
#ifndef LJSPY_STATIC_LEFT_OUT_H
#define LJSPY_STATIC_LEFT_OUT_H

/* Tell the user that this ljspy is built without that. */
void left_out_explain(const char *what);

#endif

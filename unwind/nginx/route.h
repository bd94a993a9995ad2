/* SPDX-License-Identifier: MIT */
/*
 * route: what the paths of many requests have in common.
 *
 * Numbers and identifiers in a path become "*": "/users/42/orders/7f3a90bc" is the route
 * "/users/" "*" "/orders/" "*".
 */
#ifndef LJSPY_ROUTE_H
#define LJSPY_ROUTE_H

#include <stddef.h>

enum { ROUTE_BYTES = 128 }; /* with the final NUL; longer routes are cut */

/*
 * A part of the path between slashes is an identifier if it consists of digits, of at least eight
 * hexadecimal digits, or of at least twenty letters and digits of which two are digits; "-", "_",
 * "." and "," may be in between. An ending such as ".jpg" stays. In other parts, three or more
 * digits in a row become "*".
 */
void route_of(const char *path, char ret_route[static ROUTE_BYTES]);

/* What to write between a host and a route: nothing before a path, a space before a name. */
const char *route_separator(const char *route);

#endif

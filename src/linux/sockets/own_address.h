/* SPDX-License-Identifier: MIT */
/*
 * own_address: is it this machine that a host in a URL or an HTTP header names?
 */
#ifndef LJSPY_OWN_ADDRESS_H
#define LJSPY_OWN_ADDRESS_H

#include <stdbool.h>

/*
 * Is the host, up to its port or path, this machine's own name for itself: localhost, or an address of
 * loopback (IPv6 in brackets)? Names are not looked up.
 */
bool own_address(const char *host);

#endif

/* SPDX-License-Identifier: MIT */
/* metrics: the hub's totals in Prometheus' text format, version 0.0.4. */
#ifndef LJSPY_METRICS_H
#define LJSPY_METRICS_H

#include <stdio.h>

#include "src/serve/hub.h"

/* 0 or a negative errno, of a write that failed. */
int metrics_write(FILE *out, const struct hub_totals *totals);

#endif

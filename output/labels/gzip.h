/* SPDX-License-Identifier: MIT */
/*
 * gzip: write protobuf messages one after the other to a gzip stream.
 */
#ifndef LJSPY_GZIP_H
#define LJSPY_GZIP_H

#include <stdio.h>

#include <protobuf-c/protobuf-c.h>

struct gzip;

/* out is borrowed. NULL when memory is short. */
struct gzip *gzip_new(FILE *out);

/* 0, or -EIO (the stream's own error is in errno). */
int gzip_write_message(struct gzip *gzip, const ProtobufCMessage *message);

/* Write the rest and free gzip, which may be NULL. 0 or -EIO. */
int gzip_end(struct gzip *gzip);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * gzip: protobuf messages, one after the other, compressed into a stream.
 */
#ifndef LJSPY_GZIP_H
#define LJSPY_GZIP_H

#include <stdio.h>

#include <protobuf-c/protobuf-c.h>

struct gzip;

/* The stream is borrowed. NULL when memory is short. */
struct gzip *gzip_new(FILE *out);

/* 0, or -EIO (the stream's own error is in errno). */
int gzip_write_message(struct gzip *gzip, const ProtobufCMessage *message);

/* Write what is left and free it; NULL is nothing. 0 or -EIO. */
int gzip_end(struct gzip *gzip);

#endif

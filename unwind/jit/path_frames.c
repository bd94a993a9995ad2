/* SPDX-License-Identifier: MIT */
#include "unwind/jit/path_frames.h"

#include <stdlib.h>

#include "memory/array.h"

enum { FRAMES_MAX = 1 << 16 };

int32_t path_frames_add(struct path_frames *frames, const struct path_frame *frame)
{
	struct path_frame *grown = NULL;

	if (frames->count < FRAMES_MAX)
		grown = array_grow(frames->frame, &frames->size, frames->count + 1, sizeof(*grown));
	if (!grown)
		return -1;
	frames->frame = grown;
	frames->frame[frames->count] = *frame;
	return (int32_t)frames->count++;
}

void path_frames_clear(struct path_frames *frames)
{
	free(frames->frame);
	*frames = (struct path_frames){ 0 };
}

bool path_frames_are_same(const struct path_frames *frames, int32_t left, int32_t right)
{
	while (left != right) {
		const struct path_frame *a, *b;

		if (left < 0 || right < 0)
			return false;
		a = &frames->frame[left];
		b = &frames->frame[right];
		if (a->proto != b->proto || (a->up >= 0 && a->call_pc != b->call_pc))
			return false;
		left = a->up;
		right = b->up;
	}
	return true;
}

bool path_frames_is_running(const struct path_frames *frames, int32_t frame, const struct proto *proto)
{
	for (; frame >= 0; frame = frames->frame[frame].up)
		if (frames->frame[frame].proto == proto)
			return true;
	return false;
}

/* SPDX-License-Identifier: MIT */
#include "output/recording/sample_source.h"

int sample_source_each(struct sample_source *source, sample_take *take, void *context)
{
	struct sample sample;
	int result = source->rewind(source);

	while (result == 0) {
		result = source->next(source, &sample);
		if (result <= 0)
			return result;
		result = take(context, &sample);
	}
	return result;
}

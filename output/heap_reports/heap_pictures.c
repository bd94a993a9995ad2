/* SPDX-License-Identifier: MIT */
#include "output/heap_reports/heap_pictures.h"

#include <errno.h>

#include "output/flamegraph/flamegraph.h"
#include "output/formats/folded.h"
#include "output/heap_reports/heap_profile.h"
#include "output/heap_reports/heap_uncertain.h"

/* The profiles of one picture. baseline is NULL without a comparison. */
struct picture {
	struct functions *functions;
	struct profile *profile, *baseline;
};

static int picture_init(struct picture *picture, const struct profile_options *options, bool compares)
{
	*picture = (struct picture){
		.functions = functions_new(),
		.profile = profile_new(options),
		.baseline = compares ? profile_new(options) : NULL,
	};
	return picture->functions && picture->profile && (picture->baseline || !compares) ? 0 : -ENOMEM;
}

static void picture_clear(struct picture *picture)
{
	profile_free(picture->profile);
	profile_free(picture->baseline);
	if (picture->functions)
		functions_free(picture->functions);
}

int heap_flamegraph_write(FILE *out, const struct heap_side *before, const struct heap_side *side,
			  const struct heap_view *view, bool page)
{
	char uncertain[HEAP_UNCERTAIN_SIZE], baseline_uncertain[HEAP_UNCERTAIN_SIZE];
	struct profile_options profile_options = flamegraph_profile_options(heap_profile_weight(view));
	struct flamegraph_options options = {
		.inverted = view->inverted,
		.min_percent = view->min_percent,
		.page = page,
		.baseline_name = before ? before->name : NULL,
		.uncertain = heap_side_uncertain_text(side, uncertain),
		.baseline_uncertain = before ? heap_side_uncertain_text(before, baseline_uncertain) : NULL,
	};
	struct session session = heap_profile_session(side, view);
	struct figures figures = { 0 };
	struct picture picture;
	int error = picture_init(&picture, &profile_options, before != NULL);

	if (!error)
		error = heap_profile_add(picture.profile, side, view, picture.functions, false);
	if (!error && before)
		error = heap_profile_add(picture.baseline, before, view, picture.functions, false);
	if (!error) {
		figures.samples = profile_root(picture.profile)->total_samples;
		options.baseline = picture.baseline;
		error = flamegraph_write(out, picture.profile, &session, &figures, &options);
	}
	picture_clear(&picture);
	return error;
}

/* Both profiles hold the stacks of both sides, so that they have the same nodes. */
int heap_folded_write(FILE *out, const struct heap_side *before, const struct heap_side *side,
		      const struct heap_view *view)
{
	struct profile_options options = {
		.weight = heap_profile_weight(view),
		.inverted = view->inverted,
	};
	struct picture picture;
	int error = picture_init(&picture, &options, before != NULL);

	if (!error && before)
		error = heap_profile_add(picture.baseline, before, view, picture.functions, false);
	if (!error && before)
		error = heap_profile_add(picture.baseline, side, view, picture.functions, true);
	if (!error && before)
		error = heap_profile_add(picture.profile, before, view, picture.functions, true);
	if (!error)
		error = heap_profile_add(picture.profile, side, view, picture.functions, false);
	if (!error)
		error = folded_write(out, picture.profile,
				     &(struct folded_options){ .baseline = picture.baseline });
	picture_clear(&picture);
	return error;
}

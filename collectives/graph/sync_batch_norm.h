// Batch normalization with the statistics of all ranks' samples.
#pragma once

#include <kolo/core/ops/normalization.h>

namespace kolo {

/// batch_norm (core/ops/normalization.h) over the samples of all ranks together: mean, variance and moving
/// averages are the same everywhere, each sample counts once however many a rank has, none too. x's rank and
/// number of channels must be known. Gradients flow from y to x, scale and offset; that of x counts what x
/// does to the other ranks' y as well, so that averaging parameters' gradients over the ranks gives those of
/// the whole batch. Every rank runs it in the same steps. Cost: one reduction of 2C + 1 numbers forwards and
/// one backwards, which the step waits for. It has no inference form: an evaluation graph takes
/// batch_norm_inference, or models::batch_norm under the same name. Throws as batch_norm does.
BatchNormResult sync_batch_norm(const Scope& s, Output x, Output scale, Output offset, Output moving_mean,
                                Output moving_variance, BatchNormOptions options = {});

}  // namespace kolo

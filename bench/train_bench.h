// kolo-bench train: the time of a training step.
#pragma once

#include <bench/training.h>

namespace kolo::bench {

/// Forward, loss, backward and update, by SGD with momentum unless another optimizer is named, on one batch
/// of made-up samples: mlp 128 of them a rank, resnet50 8, vgg16 4, gpt 16, others 64, as the PyTorch program
/// that it is compared with does. All ranks call it together; rank 0 prints a row for each model, and behind
/// it one for each peer: the peer's median over kolo's (above 1: kolo is faster), each the median of its
/// rounds' medians, and the least and largest of the rounds' own ratios; with `apart` what the ranks' speeds
/// add up to over what they add up to where each trains for itself. Throws FailedPreconditionError where a
/// peer fails or does other work, there is one rank to be measured apart, or no GPU where one is asked for.
/// On a GPU what is fed lies in pinned memory, in two batches by turns, and KOLO_CUDA_COUNT=1 adds counts.
void train_bench(const TrainBenchOptions& options);

}  // namespace kolo::bench

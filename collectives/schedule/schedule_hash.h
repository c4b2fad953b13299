// What of a schedule must be the same on all ranks, and how they find out where it is not.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kolo/collectives/reduce/reduction.h>
#include <kolo/collectives/schedule/bucket.h>

namespace kolo {

/// options: named values that must agree as well (bucket limits, algorithm), in a fixed order.
std::string describe_schedule(const Reduction& reduction,
                              std::span<const std::pair<std::string, std::string>> options,
                              std::span<const GradientSpec> gradients);

/// 128 bits of XXH3 over a description, as 32 hexadecimal digits.
std::string schedule_hash(const std::string& description);

/// Where the descriptions of the ranks, in rank order, first differ: `gradient 3 is "fc1/w" [784,1024] on
/// rank 0 but "fc1/w" [784,1000] on rank 1`. Gradients count from 0 in backward order; types are named where
/// only they differ. Empty if all are equal. what: what the text calls a gradient. ranks: the numbers that it
/// calls them by; none: 0, 1, 2, … .
std::string first_disagreement(std::span<const std::string> descriptions, std::string_view what = "gradient",
                               std::span<const int> ranks = {});

}  // namespace kolo

// One number of the bits of what the ranks of a training hold alike, and who differs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kolo::detail {

/// Steps between two comparisons where the program does not say: KOLO_CHECK_DRIFT, else 100; 0: never.
std::int64_t check_drift_steps();

/// Variables by name, each with a number of its bits; on all ranks in the same order.
using WeightSums = std::vector<std::pair<std::string, std::uint64_t>>;

/// seed: another one gives another number, so that two values whose numbers are equal by chance do not stay
/// so.
std::uint64_t sum_of_bits(const void* memory, std::size_t bytes, std::uint64_t seed);
/// Of the whole list, few enough bits to travel with every step.
std::uint16_t combined(const WeightSums& sums);

/// For Group::allgather.
std::string text_of(const WeightSums& sums);
/// From the texts of all ranks: `weights differ: "fc1/w" on rank 3 since a step in 101..200 (2 of 8
/// variables); …`; nothing where all are the same. The ranks named are those that differ from what most have,
/// in a tie from the lowest. ranks: the job's numbers of those that have sent the texts; none: 0, 1, 2, … .
/// first, last: the steps behind the last one at which they were known to be the same.
std::optional<std::string> weights_that_differ(std::span<const std::string> texts, std::span<const int> ranks,
                                               std::int64_t first, std::int64_t last);

}  // namespace kolo::detail

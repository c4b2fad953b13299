// Shares of samples, as tables and JSON tell them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kolo::models {

/// None of nothing.
inline std::optional<double> share_of(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? std::nullopt : std::optional(static_cast<double>(part) / static_cast<double>(whole));
}

inline std::string share_text(const std::optional<double>& share) {
  return share ? fmt::format("{:.4f}", *share) : "-";
}

inline nlohmann::ordered_json share_json(const std::optional<double>& share) {
  return share ? nlohmann::ordered_json(*share) : nlohmann::ordered_json(nullptr);
}

/// What a table for a terminal lists of `count` classes or labels: all, or where they are more than 100 the
/// 20 of the least share, which share(i) gives.
template <typename Share>
std::vector<std::int64_t> listed_of(std::int64_t count, const Share& share) {
  constexpr std::int64_t kMost = 100, kLeast = 20;
  std::vector<std::int64_t> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  if (count <= kMost) return all;
  std::stable_sort(all.begin(), all.end(), [&](std::int64_t a, std::int64_t b) {
    return share(a).value_or(2) < share(b).value_or(2);
  });
  all.resize(kLeast);
  return all;
}
inline constexpr std::size_t kWidestName = 24;  // in such a table

}  // namespace kolo::models

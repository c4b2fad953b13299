// Shares of samples, as tables and JSON tell them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

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

}  // namespace kolo::models

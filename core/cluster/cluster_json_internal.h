// JSON as clusters are described in it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include <kolo/core/cluster/cluster_spec.h>

namespace kolo::detail {

/// Throws InvalidArgumentError for what is no JSON object, or has an object that names something twice.
nlohmann::json parse_object(std::string_view text);
/// Throws as ClusterSpec::from_json.
ClusterSpec cluster_of(const nlohmann::json& jobs);
/// An index in decimal digits, 0 … 2³¹−1.
std::optional<int> parse_task_index(std::string_view text);

}  // namespace kolo::detail

#include <kolo/optimizer/absent_gradients.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/indexed_slices.h>
#include <kolo/core/ops/basic.h>

namespace kolo::detail {
namespace {

const char kWhole[] = "whole", kRows32[] = "rows32", kRows64[] = "rows64";

const char* kind_of(const Output& gradient, bool whole) {
  const auto slices = indexed_slices(gradient);
  if (whole || !slices) return kWhole;
  return slices->indices.dtype() == DType::i32 ? kRows32 : kRows64;
}

bool is_among(const Variable& variable, std::span<const Variable> list) {
  return std::find(list.begin(), list.end(), variable) != list.end();
}

// What the first rank that has it has, by the variable's name. Names of nodes hold no spaces.
std::map<std::string, std::string> known_kinds(const std::vector<std::string>& reports) {
  std::map<std::string, std::string> kinds;
  for (const std::string& report : reports) {
    std::istringstream in(report);
    for (std::string name, kind; in >> name >> kind;) kinds.emplace(name, kind);
  }
  return kinds;
}

Output zeros_of(const Scope& s, const Variable& variable, const std::string& kind) {
  const Shape& shape = variable.shape();
  if (!shape.is_fully_known())
    throw InvalidArgumentError("the gradient of \"{}\" may be absent, but its shape is {}; it must be known",
                               variable.name(), shape);
  if (kind == kWhole) return zeros(s, variable.dtype(), shape);
  return to_dense(s, {.values = zeros(s, variable.dtype(), shape.with_dim(0, 0)),
                      .indices = zeros(s, kind == kRows32 ? DType::i32 : DType::i64, {0}),
                      .dense_shape = shape});
}

}  // namespace

std::vector<GradientPair> zeros_for_absent(const Scope& s, std::span<const GradientPair> pairs,
                                           std::span<const Variable> may_be_absent, Group& group,
                                           bool whole) {
  std::vector<GradientPair> all(pairs.begin(), pairs.end());
  std::string report;
  for (const GradientPair& pair : all)
    if (pair.gradient && is_among(pair.variable, may_be_absent))
      report += fmt::format("{} {}\n", pair.variable.name(), kind_of(pair.gradient, whole));
  const auto kinds = known_kinds(group.allgather(report));
  for (GradientPair& pair : all) {
    if (pair.gradient || !is_among(pair.variable, may_be_absent)) continue;
    const auto found = kinds.find(pair.variable.name());
    if (found != kinds.end())
      pair.gradient = zeros_of(s.named("absent_gradient"), pair.variable, found->second);
  }
  return all;
}

}  // namespace kolo::detail

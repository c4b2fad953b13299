// How the attributes of a queue's ops say what its elements are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kolo/core/graph/attr.h>

namespace kolo::detail {

struct ElementSpec {
  std::vector<DType> types;
  std::vector<Shape> shapes;  // none: any
  bool operator==(const ElementSpec&) const = default;
};

/// As attributes "component_types", kolo's names, and "shapes": of each shape its rank, then its dimensions.
AttrMap attrs_of(const ElementSpec& spec);
/// Throws InvalidArgumentError for attributes that say nothing of that kind.
ElementSpec element_spec(const std::vector<std::string>& component_types,
                         const std::vector<std::int64_t>& shapes);

/// Each element is one i64 scalar.
bool holds_numbers(const ElementSpec& spec);

/// Throws InvalidArgumentError unless tensors of these types and shapes, as far as they are known, are an
/// element, or with `many` the elements that their rows are.
void check_tuple(const ElementSpec& spec, const std::vector<DType>& types, const std::vector<Shape>& shapes,
                 bool many);

}  // namespace kolo::detail

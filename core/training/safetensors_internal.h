// JSON from files that may be damaged or hostile.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/tensor/dtype.h>

namespace kolo::detail {

/// Throws nlohmann::json::exception for what is not JSON, DataLossError for values nested deeper than 32:
/// each level costs far more memory than the byte that opens it. of_tensors: the same for more lists and
/// objects than descriptions of tensors have in so many bytes, and for lists of more than 64 values.
nlohmann::json parse_bounded_json(const std::string& text, bool of_tensors = false);

/// A list of dimensions or offsets. Throws nlohmann::json::exception or DataLossError unless all are whole
/// numbers ≥ 0.
std::vector<std::int64_t> whole_numbers(const nlohmann::json& list);

/// Bytes of a tensor; nothing if they do not fit in 63 bits.
std::optional<std::uint64_t> bytes_of(DType dtype, const std::vector<std::int64_t>& dims);

}  // namespace kolo::detail

#include <kolo/core/training/bounded_json.h>

#include <kolo/core/base/error.h>

namespace kolo::detail {
namespace {

constexpr int kMaxDepth = 32;

}  // namespace

nlohmann::json parse_bounded_json(const std::string& text) {
  const auto check_depth = [](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth > kMaxDepth) throw DataLossError("its JSON is nested deeper than {} levels", kMaxDepth);
    return true;
  };
  return nlohmann::json::parse(text, check_depth);
}

std::vector<std::int64_t> whole_numbers(const nlohmann::json& list) {
  std::vector<std::int64_t> numbers;
  if (!list.is_array()) throw DataLossError("a shape or a pair of offsets is no list");
  for (const nlohmann::json& number : list) {
    // What exceeds 63 bits comes out negative.
    if (!number.is_number_integer() || number.get<std::int64_t>() < 0)
      throw DataLossError("{} is neither a dimension nor an offset", number.dump());
    numbers.push_back(number.get<std::int64_t>());
  }
  return numbers;
}

std::optional<std::uint64_t> bytes_of(DType dtype, const std::vector<std::int64_t>& dims) {
  std::int64_t bytes = static_cast<std::int64_t>(size_of(dtype));
  for (const std::int64_t dim : dims)
    if (__builtin_mul_overflow(bytes, dim, &bytes)) return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace kolo::detail

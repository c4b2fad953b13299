#include <kolo/core/training/non_finite.h>

#include <fmt/format.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session_variables.h>

namespace kolo::detail {
namespace {

// exponent: all its bits set, those of the sign and the fraction clear. Above it, without the sign, lie the
// NaNs.
template <typename Word>
NonFiniteCount count(const Tensor& tensor, Word exponent) {
  constexpr Word kWithoutSign = static_cast<Word>(~Word{0}) >> 1;
  const std::byte* next = tensor.raw();
  NonFiniteCount found;
  for (std::int64_t i = 0; i < tensor.elements(); ++i, next += sizeof(Word)) {
    Word bits;
    std::memcpy(&bits, next, sizeof bits);
    bits = static_cast<Word>(bits & kWithoutSign);
    found.nan += bits > exponent;
    found.infinite += bits == exponent;
  }
  return found;
}

}  // namespace

NonFiniteCount count_non_finite(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::f64: return count<std::uint64_t>(tensor, 0x7FF0'0000'0000'0000);
    case DType::f32: return count<std::uint32_t>(tensor, 0x7F80'0000);
    case DType::f16: return count<std::uint16_t>(tensor, 0x7C00);
    case DType::bf16: return count<std::uint16_t>(tensor, 0x7F80);
    default: return {};
  }
}

std::string non_finite_text(const Tensor& tensor) {
  const NonFiniteCount found = count_non_finite(tensor);
  if (!found.any()) return "";
  return fmt::format("{} in {} of {} elements",
                     found.infinite == 0 ? "nan"
                     : found.nan == 0    ? "inf"
                                         : "nan and inf",
                     found.nan + found.infinite, tensor.elements());
}

std::string non_finite_weight(Session& session) {
  const std::vector<Variable> weights = trainable_variables(session.graph());
  std::string found;
  read_values(session, weights, [&](std::size_t i, const Tensor& value) {
    if (!value || !found.empty()) return;
    const std::string text = non_finite_text(value);
    if (!text.empty()) found = fmt::format("variable \"{}\" holds {}", weights[i].name(), text);
  });
  return found;
}

}  // namespace kolo::detail

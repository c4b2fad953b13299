#include <kolo/core/graph/attr.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace kolo {
namespace {

bool equal(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.dtype() == DType::string) {
    const auto x = a.span<std::string>(), y = b.span<std::string>();
    return std::equal(x.begin(), x.end(), y.begin());
  }
  return a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

}  // namespace

const char* AttrValue::kind() const {
  constexpr std::array kKinds = {"bool",  "int",    "float",     "string",      "type",
                                 "shape", "tensor", "list(int)", "list(string)"};
  return kKinds.at(value_.index());
}

bool AttrValue::operator==(const AttrValue& other) const {
  if (value_.index() != other.value_.index()) return false;
  return std::visit(
      [&](const auto& mine) {
        using Kind = std::decay_t<decltype(mine)>;
        const auto& theirs = std::get<Kind>(other.value_);
        if constexpr (std::is_same_v<Kind, Tensor>) return equal(mine, theirs);
        else return mine == theirs;
      },
      value_);
}

}  // namespace kolo

#include <kolo/optimizer/compression/compression.h>

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include <kolo/core/ops/debugging.h>
#include <kolo/core/ops/math.h>

namespace kolo {
namespace {

class NoCompression final : public Compression {
 public:
  std::string name() const override { return "none"; }
  bool is_element_wise() const override { return true; }
  Outputs reduce(const Scope& s, std::span<const GradientPair> local,
                 GradientReducer& reducer) const override {
    Outputs values;
    std::vector<std::string> names;
    for (const GradientPair& pair : local) {
      values.push_back(pair.gradient);
      names.push_back(pair.variable.name());
    }
    return reducer.reduce(s, values, names);
  }
};

// Gradients are cast into their bucket and back out of it.
class CastCompression final : public Compression {
 public:
  /// wire: f16 or bf16. f32 and f64 are cast; other types travel as they are.
  CastCompression(std::string name, DType wire) : name_(std::move(name)), wire_(wire) {}

  std::string name() const override { return name_; }
  bool is_element_wise() const override { return true; }
  Outputs reduce(const Scope& s, std::span<const GradientPair> local,
                 GradientReducer& reducer) const override;

 private:
  bool casts(const Output& gradient) const;

  std::string name_;
  DType wire_;
};

bool CastCompression::casts(const Output& gradient) const {
  return gradient.dtype() == DType::f32 || gradient.dtype() == DType::f64;
}

// An element that is too large on one rank is infinite, or NaN, after the sum on all ranks: there it is found
// by all alike, and with it a sum that is too large.
Outputs CastCompression::reduce(const Scope& s, std::span<const GradientPair> local,
                                GradientReducer& reducer) const {
  const Scope scope = s.name_scope(name_);
  Outputs values;
  std::vector<std::string> names;
  for (const GradientPair& pair : local) {
    values.push_back(casts(pair.gradient) ? cast(scope, pair.gradient, wire_) : pair.gradient);
    names.push_back(pair.variable.name());
  }
  Outputs reduced = reducer.reduce(s, values, names);
  for (std::size_t i = 0; i < local.size(); ++i) {
    const GradientPair& pair = local[i];
    if (!casts(pair.gradient)) continue;
    reduced[i] = cast(scope, reduced[i], pair.gradient.dtype());
    if (!reducer.tolerates_overflow())
      reduced[i] = check_numerics(
          scope, reduced[i],
          fmt::format("the gradient of \"{}\" is not finite after {} compression, in which it travels as {}",
                      pair.variable.name(), name_, numpy_name(wire_)));
  }
  return reduced;
}

}  // namespace

std::shared_ptr<const Compression> no_compression() { return std::make_shared<NoCompression>(); }

std::shared_ptr<const Compression> fp16_compression() {
  return std::make_shared<CastCompression>("fp16", DType::f16);
}

std::shared_ptr<const Compression> bf16_compression() {
  return std::make_shared<CastCompression>("bf16", DType::bf16);
}

}  // namespace kolo

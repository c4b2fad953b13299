// What fp16 and bf16 share: gradients are cast into their bucket and back out of it.
#pragma once

#include <string>

#include <kolo/optimizer/compression/compression.h>

namespace kolo::detail {

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

}  // namespace kolo::detail

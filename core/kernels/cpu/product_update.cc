#include <kolo/core/kernels/cpu/product_update.h>

#include <algorithm>

#include <kolo/core/kernels/cpu/parallel.h>

namespace kolo::detail {
namespace {

constexpr std::int64_t kPartBytes = 256 * 1024;  // the gradient's; the variable and its slots go by
constexpr std::int64_t kLine = 16;

}  // namespace

ProductUpdate::ProductUpdate(ThinGemm shape, int factors, int threads)
    : shape_(shape), factors_(factors), threads_(threads) {
  const auto row_bytes = shape.outputs * static_cast<std::int64_t>(sizeof(float));
  part_ = std::clamp(kPartBytes / row_bytes, std::int64_t{1}, shape.inputs);
}

std::size_t ProductUpdate::scratch_bytes() const {
  return static_cast<std::size_t>(floats_of_all_dy() + threads_ * floats_of_thread()) * sizeof(float);
}

// A part of the gradient, and of x that it is made of.
std::int64_t ProductUpdate::floats_of_thread() const {
  return (part_ * (shape_.outputs + all_rows()) + kLine - 1) / kLine * kLine;
}

void ProductUpdate::run(const UpdateRule<float>& rule, const UpdatedRange<float>& variable,
                        std::span<const GradientFactors> factors, float* scratch) const {
  const float* all_dy = factors[0].dy;
  if (factors.size() > 1) {
    for (std::size_t f = 0; f < factors.size(); ++f) {
      const std::int64_t floats = shape_.rows * shape_.outputs;
      std::copy_n(factors[f].dy, floats, scratch + static_cast<std::int64_t>(f) * floats);
    }
    all_dy = scratch;
  }
  parallel_for(threads_, 1, [&](std::int64_t first_thread, std::int64_t end_thread) {
    const std::int64_t end = shape_.inputs * end_thread / threads_;
    float* const gradient = scratch + floats_of_all_dy() + first_thread * floats_of_thread();
    for (std::int64_t row = shape_.inputs * first_thread / threads_; row < end; row += part_) {
      const std::int64_t rows = std::min(part_, end - row);
      make_part(factors, all_dy, row, rows, gradient);
      const UpdatedRange<float> part = variable.part(row * shape_.outputs, rows * shape_.outputs, gradient);
      apply_rule(rule, std::span<const UpdatedRange<float>>(&part, 1));
    }
  });
}

void ProductUpdate::make_part(std::span<const GradientFactors> factors, const float* all_dy,
                              std::int64_t first, std::int64_t rows, float* gradient) const {
  float* const columns = gradient + part_ * shape_.outputs;
  float* next = columns;
  for (const GradientFactors& factor : factors)
    for (std::int64_t i = 0; i < shape_.rows; ++i, next += rows)
      std::copy_n(factor.x + i * shape_.inputs + first, rows, next);
  ThinGemm{all_rows(), rows, shape_.outputs}.weight_gradient(columns, all_dy, gradient, 0, rows);
}

}  // namespace kolo::detail

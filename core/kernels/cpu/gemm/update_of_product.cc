#include <kolo/core/kernels/cpu/gemm/update_of_product.h>

#include <algorithm>

#include <kolo/core/kernels/parallel.h>

namespace kolo::detail {
namespace {

constexpr std::int64_t kPartBytes = 256 * 1024;  // of the gradients; the variable and its slots go by
constexpr std::int64_t kLine = 16;

}  // namespace

UpdateOfProduct::UpdateOfProduct(ThinGemm shape, int factors, int threads)
    : shape_(shape), factors_(factors), threads_(threads) {
  const auto row_bytes = factors * shape.outputs * static_cast<std::int64_t>(sizeof(float));
  part_ = std::clamp(kPartBytes / row_bytes, std::int64_t{1}, shape.inputs);
}

std::size_t UpdateOfProduct::scratch_bytes() const {
  return static_cast<std::size_t>(threads_ * floats_of_thread()) * sizeof(float);
}

// A part of each gradient, and of the x that it is made of.
std::int64_t UpdateOfProduct::floats_of_thread() const {
  return (part_ * (factors_ * shape_.outputs + shape_.rows) + kLine - 1) / kLine * kLine;
}

void UpdateOfProduct::run(const UpdateRule<float>& rule, const UpdatedRange<float>& variable,
                          std::span<const GradientFactors> factors, float* scratch) const {
  parallel_for(threads_, 1, [&](std::int64_t first_thread, std::int64_t end_thread) {
    const std::int64_t end = shape_.inputs * end_thread / threads_;
    float* const gradients = scratch + first_thread * floats_of_thread();
    float* const columns = gradients + part_ * factors_ * shape_.outputs;
    for (std::int64_t row = shape_.inputs * first_thread / threads_; row < end; row += part_) {
      const std::int64_t rows = std::min(part_, end - row);
      UpdatedRange<float> part = variable.part(row * shape_.outputs, rows * shape_.outputs);
      part.num_gradients = static_cast<int>(factors.size());
      for (std::size_t f = 0; f < factors.size(); ++f) {
        float* const gradient = gradients + static_cast<std::int64_t>(f) * part_ * shape_.outputs;
        for (std::int64_t i = 0; i < shape_.rows; ++i)
          std::copy_n(factors[f].x + i * shape_.inputs + row, rows, columns + i * rows);
        ThinGemm{shape_.rows, rows, shape_.outputs}.weight_gradient(columns, factors[f].dy, gradient, 0,
                                                                    rows);
        part.gradients[f] = gradient;
      }
      apply_rule(rule, std::span<const UpdatedRange<float>>(&part, 1));
    }
  });
}

}  // namespace kolo::detail

// The optimizers' rules for those rows of a variable that a step has read.
#include <kolo/core/kernels/cuda/launch_updates.h>
#include <kolo/core/kernels/elements/update_rules.h>
#include <kolo/core/kernels/cuda/run.cuh>

namespace kolo::cuda {
namespace {

// A team for each row of the variable goes through all indices, once for so many columns a thread: gradients
// are added in their order, and no two threads write to one place.
template <typename Rule, typename Index>
struct RowUpdateWork {
  static constexpr int kColumns = 8;
  const float* scalars[kMaxUpdateScalars];
  float* variable;
  float* slots[kMaxUpdateSlots];
  const float* gradients;
  const Index* indices;
  std::int64_t count;
  std::int64_t rows;
  std::int64_t width;
  elements::BadValue* bad;

  template <typename Team>
  KOLO_HOST_DEVICE void operator()(const Team& team, std::int64_t row) const {
    if (row == 0)
      for (std::int64_t i = team.lane(); i < count; i += team.lanes())
        if (indices[i] < 0 || indices[i] >= rows)
          elements::note_bad_value(bad, i, static_cast<std::int64_t>(indices[i]));
    const std::int64_t at_once = std::int64_t{kColumns} * team.lanes();
    for (std::int64_t first = team.lane(); first - team.lane() < width; first += at_once) {
      float sum[kColumns];
      bool is_named = false;
      for (std::int64_t i = 0; i < count; ++i) {
        if (indices[i] != row) continue;
        KOLO_DEVICE_UNROLL
        for (int c = 0; c < kColumns; ++c) {
          const std::int64_t column = first + c * team.lanes();
          if (column >= width) continue;
          const float g = gradients[i * width + column];
          sum[c] = is_named ? sum[c] + g : g;
        }
        is_named = true;
      }
      if (!is_named) return;
      KOLO_DEVICE_UNROLL
      for (int c = 0; c < kColumns; ++c)
        if (first + c * team.lanes() < width) update(row * width + first + c * team.lanes(), sum[c]);
    }
  }

  KOLO_HOST_DEVICE void update(std::int64_t i, float gradient) const {
    float given[kMaxUpdateScalars], of_element[kMaxUpdateSlots];
    for (int k = 0; k < kMaxUpdateScalars; ++k) given[k] = scalars[k] == nullptr ? 0 : *scalars[k];
    for (int s = 0; s < Rule::kSlots; ++s) of_element[s] = slots[s][i];
    float value = variable[i];
    const auto rule = Rule::of(given);
    elements::update(rule, value, of_element, gradient);
    variable[i] = value;
    for (int s = 0; s < Rule::kSlots; ++s) slots[s][i] = of_element[s];
  }

  template <typename Visit>
  void operands(const Visit& visit) {
    for (const float*& scalar : scalars)
      if (scalar != nullptr) visit(scalar, 1);
    visit(variable, rows * width);
    for (int s = 0; s < Rule::kSlots; ++s) visit(slots[s], rows * width);
    visit(gradients, count * width);
    visit(indices, count);
  }
};

template <typename Rule, typename Index>
cudaError_t update_rows(cudaStream_t stream, const RowUpdateArguments& of) {
  RowUpdateWork<Rule, Index> work = {};
  for (int k = 0; k < kMaxUpdateScalars; ++k) work.scalars[k] = of.scalars[k];
  for (int s = 0; s < kMaxUpdateSlots; ++s) work.slots[s] = of.slots[s];
  work.variable = of.variable;
  work.gradients = of.gradients;
  work.indices = static_cast<const Index*>(of.indices);
  work.count = of.count;
  work.rows = of.rows;
  work.width = of.width;
  work.bad = of.bad;
  return run_rows("update_rows", stream, of.rows, work);
}

template <typename Rule>
cudaError_t update(cudaStream_t stream, const RowUpdateArguments& of) {
  switch (of.index_type) {
    case ElementType::i32: return update_rows<Rule, std::int32_t>(stream, of);
    case ElementType::i64: return update_rows<Rule, std::int64_t>(stream, of);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace

cudaError_t launch_row_update(cudaStream_t stream, const RowUpdateArguments& arguments) {
  cudaError_t result = cudaErrorInvalidValue;
  elements::UpdateRules<float>::at(
      arguments.rule, [&](auto rule) { result = update<typename decltype(rule)::type>(stream, arguments); });
  return result;
}

}  // namespace kolo::cuda

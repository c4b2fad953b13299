// The optimizers' rules for those rows of a variable that a step has read.
#include <kolo/core/kernels/cuda/launch_updates.h>
#include <kolo/core/kernels/elements/update_rules.h>
#include <kolo/core/kernels/cuda/row_places.cuh>
#include <kolo/core/kernels/cuda/run.cuh>

namespace kolo::cuda {
namespace {

// A team for some columns of each row of the variable: gradients are added in the order in which they stand,
// and no two threads write to one place.
template <typename Rule, typename Places>
struct RowUpdateWork {
  Places named;
  const float* scalars[kMaxUpdateScalars];
  float* variable;
  float* slots[kMaxUpdateSlots];
  const float* gradients;
  std::int64_t width;
  std::int64_t teams;  // for a row

  template <typename Team>
  KOLO_HOST_DEVICE void operator()(const Team& team, std::int64_t number) const {
    if (number == 0) named.note_all(team);
    const auto [unit, part] = elements::divide(number, teams);
    const std::int64_t row = named.row_of(unit);
    if (row < 0) return;
    const std::int64_t begin = part * kColumnsOfTeam, last = begin + kColumnsOfTeam;
    const std::int64_t end = last < width ? last : width, at_once = kColumnsOfLane * team.lanes();
    for (std::int64_t first = begin + team.lane(); first - team.lane() < end; first += at_once) {
      float sum[kColumnsOfLane];
      bool is_named = false;
      named.for_each(unit, [&](std::int64_t place) {
        KOLO_DEVICE_UNROLL
        for (int c = 0; c < kColumnsOfLane; ++c) {
          const std::int64_t column = first + c * team.lanes();
          if (column >= end) continue;
          const float g = gradients[place * width + column];
          sum[c] = is_named ? sum[c] + g : g;
        }
        is_named = true;
      });
      if (!is_named) return;
      KOLO_DEVICE_UNROLL
      for (int c = 0; c < kColumnsOfLane; ++c)
        if (first + c * team.lanes() < end) update(row * width + first + c * team.lanes(), sum[c]);
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
    visit(variable, named.rows * width);
    for (int s = 0; s < Rule::kSlots; ++s) visit(slots[s], named.rows * width);
    visit(gradients, named.count * width);
    named.operands(visit);
  }
};

template <typename Rule>
cudaError_t update_rows(cudaStream_t stream, const RowUpdateArguments& of) {
  return with_places(of.rows, [&](auto named) {
    RowUpdateWork<Rule, decltype(named)> work = {
        .named = named,
        .scalars = {},
        .variable = of.variable,
        .slots = {},
        .gradients = of.gradients,
        .width = of.rows.inner,
        .teams = (of.rows.inner + kColumnsOfTeam - 1) / kColumnsOfTeam};
    for (int k = 0; k < kMaxUpdateScalars; ++k) work.scalars[k] = of.scalars[k];
    for (int s = 0; s < kMaxUpdateSlots; ++s) work.slots[s] = of.slots[s];
    return run_rows("update_rows", stream, named.units() * work.teams, work);
  });
}

}  // namespace

cudaError_t launch_row_update(cudaStream_t stream, const RowUpdateArguments& arguments) {
  cudaError_t result = cudaErrorInvalidValue;
  elements::UpdateRules<float>::at(arguments.rule, [&](auto rule) {
    result = update_rows<typename decltype(rule)::type>(stream, arguments);
  });
  return result;
}

}  // namespace kolo::cuda

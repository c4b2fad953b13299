#include <kolo/core/training/variable_slices.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include <kolo/core/base/error.h>

namespace kolo::detail {
namespace {

// Calls copy(in the whole, in the part, bytes) for each run of elements that lie together in both.
template <typename Copy>
void for_each_run(const Tensor& whole, const VariableSlice& slice, const Tensor& part, const Copy& copy) {
  if (part.elements() == 0) return;
  const auto& dims = whole.shape().dims();
  std::size_t outer = 1, inner = size_of(whole.dtype());
  for (int i = 0; i < static_cast<int>(dims.size()); ++i) {
    if (i < slice.axis) outer *= static_cast<std::size_t>(dims[i]);
    if (i > slice.axis) inner *= static_cast<std::size_t>(dims[i]);
  }
  const std::size_t bytes = part.bytes() / outer, stride = whole.bytes() / outer,
                    first = static_cast<std::size_t>(slice.first) * inner;
  for (std::size_t i = 0; i < outer; ++i)
    copy(whole.raw() + i * stride + first, part.raw() + i * bytes, bytes);
}

std::int64_t size_along(const Shape& shape, int axis) { return shape.rank() == 0 ? 1 : shape.dim(axis); }

void check_whole(const std::string& name, std::vector<std::pair<Variable, VariableSlice>> slices) {
  std::sort(slices.begin(), slices.end(),
            [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
  const VariableSlice whole = slices.front().second;
  const DType dtype = slices.front().first.dtype();
  const std::int64_t size = size_along(whole.shape, whole.axis);
  std::int64_t next = 0;
  bool is_whole = true;
  for (const auto& [variable, slice] : slices) {
    if (slice.shape != whole.shape || slice.axis != whole.axis || variable.dtype() != dtype)
      throw InvalidArgumentError("At least two variables have the same name: {}", name);
    const std::int64_t own = size_along(variable.shape(), slice.axis);
    is_whole &= own == 0 || slice.first == next;
    next += own;
  }
  if (!is_whole || next != size)
    throw InvalidArgumentError(
        "\"{}\" of shape {} is in parts; the {} that are to be saved do not make it up along dimension {}",
        name, whole.shape, slices.size(), whole.axis);
}

}  // namespace

VariableSlice in_file(const Variable& variable) {
  return variable_slice(variable).value_or(
      VariableSlice{.whole = variable.name(), .shape = variable.shape(), .axis = 0, .first = 0});
}

void copy_out(const Tensor& whole, const VariableSlice& slice, const Tensor& part) {
  for_each_run(whole, slice, part, [](std::byte* in_whole, std::byte* in_part, std::size_t bytes) {
    std::memcpy(in_part, in_whole, bytes);
  });
}

void copy_in(const Tensor& part, const VariableSlice& slice, const Tensor& whole) {
  for_each_run(whole, slice, part, [](std::byte* in_whole, std::byte* in_part, std::size_t bytes) {
    std::memcpy(in_whole, in_part, bytes);
  });
}

void WholeReader::read(const std::string& name, const VariableSlice& slice, const Tensor& part) {
  if (!whole_ || name != name_) {
    whole_ = Tensor(part.dtype(), slice.shape);
    read_(name, whole_);
    name_ = name;
  }
  copy_out(whole_, slice, part);
}

void check_wholes(const std::vector<Variable>& variables) {
  std::map<std::string, std::vector<std::pair<Variable, VariableSlice>>> wholes;
  for (const Variable& variable : variables)
    if (const auto slice = variable_slice(variable)) wholes[slice->whole].emplace_back(variable, *slice);
  for (const auto& [name, slices] : wholes) check_whole(name, slices);
}

}  // namespace kolo::detail

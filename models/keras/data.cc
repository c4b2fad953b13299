#include <kolo/models/keras/data.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include <kolo/core/base/error.h>
#include <kolo/models/keras/data_internal.h>
#include <kolo/models/keras/names_internal.h>
#include <kolo/models/samples_internal.h>

namespace kolo::keras {

const Tensor& Arrays::tensor() const {
  if (list.size() == 1) return list.front();
  if (list.empty() && by_name.size() == 1) return by_name.begin()->second;
  throw InvalidArgumentError("one tensor was asked for; there are {}", list.size() + by_name.size());
}

bool BatchesOf::next(Samples& batch) {
  models::Batch digits;
  batches_->next(digits);
  batch = {.x = digits.samples, .y = digits.labels};
  if (digits.weight == 1) return true;
  const Tensor weights(DType::f32, {digits.samples.shape().dim(0)});
  std::fill_n(weights.data<float>(), weights.elements(), digits.weight);
  batch.weights = weights;
  return true;
}

std::string BatchesOf::position() const { return models::to_json(batches_->position()); }
void BatchesOf::seek(const std::string& position) { batches_->seek(models::position_from_json(position)); }

Tensor to_categorical(const Tensor& y, std::int64_t classes) {
  Tensor result = Tensor::zeros(DType::f32, {y.elements(), classes});
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const auto label = static_cast<std::int64_t>(detail::number_at(y, i));
    if (label < 0 || label >= classes)
      throw InvalidArgumentError("to_categorical: sample {} is of class {}; there are {} classes", i, label,
                                 classes);
    result.data<float>()[i * classes + label] = 1;
  }
  return result;
}

namespace detail {
namespace {

template <typename Use>
void with_numbers(const Tensor& tensor, const Use& use) {
  switch (tensor.dtype()) {
    case DType::f32: return use(tensor.data<float>());
    case DType::f64: return use(tensor.data<double>());
    case DType::i32: return use(tensor.data<std::int32_t>());
    case DType::i64: return use(tensor.data<std::int64_t>());
    case DType::u8: return use(tensor.data<std::uint8_t>());
    case DType::boolean: return use(tensor.data<bool>());
    default:
      throw InvalidArgumentError("samples of type {} cannot be fed; use f32, f64, i32, i64, u8 or bool",
                                 tensor.dtype());
  }
}

void check(const Slot& slot, const Shape& shape, const std::string& what) {
  if (slot.shape.rank() != shape.rank())
    throw InvalidArgumentError(
        "Error when checking {}: expected {} to have {} dimensions, but got array with shape {}", what,
        slot.name, slot.shape.rank(), shape_text(shape));
  const auto behind = [](const Shape& all) {
    return Shape(std::vector<std::int64_t>(all.dims().begin() + 1, all.dims().end()));
  };
  if (!slot.shape.with_dim(0, -1).is_compatible_with(shape))
    throw InvalidArgumentError(
        "Error when checking {}: expected {} to have shape {} but got array with shape {}", what, slot.name,
        shape_text(behind(slot.shape)), shape_text(behind(shape)));
}

std::vector<Tensor> in_order(const Arrays& arrays, const std::vector<Slot>& slots, const std::string& what) {
  if (arrays.by_name.empty()) {
    if (arrays.list.size() != slots.size())
      throw InvalidArgumentError(
          "Error when checking model {}: the list of arrays that you are passing to your model is not the "
          "size the "
          "model expected. Expected to see {} array(s), but instead got {}",
          what, slots.size(), arrays.list.size());
    return arrays.list;
  }
  std::vector<Tensor> tensors;
  for (const Slot& slot : slots) {
    const auto found = arrays.by_name.find(slot.name);
    if (found == arrays.by_name.end())
      throw InvalidArgumentError("No data provided for \"{}\". Need data for each key in: {}", slot.name,
                                 list_text(keys_of(arrays.by_name)));
    tensors.push_back(found->second);
  }
  return tensors;
}

}  // namespace

std::vector<Tensor> standardized(const Arrays& arrays, const std::vector<Slot>& slots,
                                 const std::string& what) {
  std::vector<Tensor> tensors = in_order(arrays, slots, what);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    Tensor& tensor = tensors[i];
    if (tensor && tensor.shape().rank() == 1 && slots[i].shape.rank() != 1)
      tensor = tensor.reshaped({tensor.elements(), 1});
    check(slots[i], tensor.shape(), what);
    models::detail::check_finite(fmt::format("Error when checking {} {}", what, slots[i].name), tensor);
  }
  return tensors;
}

std::int64_t samples_of(const std::vector<Tensor>& tensors, const char* list) {
  for (const Tensor& tensor : tensors)
    if (tensor.shape().dim(0) != tensors.front().shape().dim(0))
      throw InvalidArgumentError("All {} should have the same number of samples. Got array shapes: {} and {}",
                                 list, shape_text(tensors.front().shape()), shape_text(tensor.shape()));
  return tensors.empty() ? 0 : tensors.front().shape().dim(0);
}

Tensor gathered(const Tensor& from, std::span<const std::int64_t> rows, DType dtype, Allocator& memory) {
  const std::int64_t row = from.shape().dim(0) == 0 ? 0 : from.elements() / from.shape().dim(0);
  Tensor to(dtype, from.shape().with_dim(0, static_cast<std::int64_t>(rows.size())), memory);
  if (dtype == from.dtype()) {
    const std::size_t bytes = static_cast<std::size_t>(row) * size_of(dtype);
    for (std::size_t i = 0; i < rows.size() && bytes > 0; ++i)
      std::memcpy(to.raw() + i * bytes, from.raw() + static_cast<std::size_t>(rows[i]) * bytes, bytes);
    return to;
  }
  with_numbers(from, [&](const auto* numbers) {
    with_numbers(to, [&](auto* results) {
      using To = std::remove_pointer_t<decltype(results)>;
      for (std::size_t i = 0; i < rows.size(); ++i)
        for (std::int64_t j = 0; j < row; ++j)
          results[static_cast<std::int64_t>(i) * row + j] = static_cast<To>(numbers[rows[i] * row + j]);
    });
  });
  return to;
}

Tensor copied(const Tensor& from, DType dtype, Allocator& memory) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(from.shape().dim(0)));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  return gathered(from, all, dtype, memory);
}

Tensor cast_to(const Tensor& from, DType dtype) {
  return from.dtype() == dtype ? from : copied(from, dtype, cpu_allocator());
}

double number_at(const Tensor& tensor, std::int64_t index) {
  double number = 0;
  with_numbers(tensor, [&](const auto* numbers) { number = static_cast<double>(numbers[index]); });
  return number;
}

}  // namespace detail
}  // namespace kolo::keras

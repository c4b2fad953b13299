// From the caller's tensors to what a step is fed with.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kolo/core/tensor/allocator.h>
#include <kolo/models/keras/data.h>

namespace kolo::keras::detail {

/// What one input or target takes: with the batch, −1, first.
struct Slot {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
};

/// The tensors in the order of the slots, [N] as [N,1], all shapes checked. what: "input" or "target". Throws
/// InvalidArgumentError `Error when checking <what>: expected <n> to have …`.
std::vector<Tensor> standardized(const Arrays& arrays, const std::vector<Slot>& slots,
                                 const std::string& what);
/// Rows of all tensors; the same for all of them. Throws InvalidArgumentError `All input arrays (x) should
/// have the same number of samples.` of `list`.
std::int64_t samples_of(const std::vector<Tensor>& tensors, const char* list);
/// `rows` of `from` as `dtype`, in `memory`.
Tensor gathered(const Tensor& from, std::span<const std::int64_t> rows, DType dtype,
                Allocator& memory = cpu_allocator());
/// All of it likewise, as a copy.
Tensor copied(const Tensor& from, DType dtype, Allocator& memory);
/// All of it as `dtype`; itself where it is that.
Tensor cast_to(const Tensor& from, DType dtype);
/// One number of a tensor of any number type.
double number_at(const Tensor& tensor, std::int64_t index);

}  // namespace kolo::keras::detail

#include <algorithm>
#include <cstring>
#include <vector>

#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/row_numbers.h>

namespace kolo {
namespace {

// The dimensions behind the first `prefix` ones.
std::vector<std::int64_t> row_dims(const Tensor& x, int prefix) {
  return {x.shape().dims().begin() + prefix, x.shape().dims().end()};
}

std::int64_t row_bytes(const Tensor& x, int prefix) {
  return Shape(row_dims(x, prefix)).elements() * static_cast<std::int64_t>(size_of(x.dtype()));
}

Tensor rows_like(const Tensor& x, int prefix, std::int64_t rows) {
  std::vector<std::int64_t> dims = row_dims(x, prefix);
  dims.insert(dims.begin(), rows);
  return Tensor(x.dtype(), Shape(std::move(dims)));
}

template <typename Number>
std::vector<std::int64_t> rows_of_parts(const Number* partitions, std::int64_t count, std::int64_t parts) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(parts));
  for (std::int64_t i = 0; i < count; ++i) {
    if (partitions[i] < 0 || partitions[i] >= parts)
      throw InvalidArgumentError("partitions[{}] = {} is not in [0, {})", i, partitions[i], parts);
    ++rows[static_cast<std::size_t>(partitions[i])];
  }
  return rows;
}

void dynamic_partition(KernelContext& context) {
  const Tensor &x = context.input(0), &partitions = context.input(1);
  const int prefix = partitions.shape().rank();
  const auto bytes = static_cast<std::size_t>(row_bytes(x, prefix));
  detail::with_numbers(partitions, [&](const auto* numbers) {
    const std::int64_t count = partitions.elements();
    const std::vector<std::int64_t> rows = rows_of_parts(numbers, count, context.num_outputs());
    std::vector<std::byte*> next;
    for (int k = 0; k < context.num_outputs(); ++k) {
      context.set_output(k, rows_like(x, prefix, rows[static_cast<std::size_t>(k)]));
      next.push_back(context.output(k).raw());
    }
    for (std::int64_t i = 0; bytes > 0 && i < count; ++i) {
      std::byte*& to = next[static_cast<std::size_t>(numbers[i])];
      std::memcpy(to, x.raw() + static_cast<std::size_t>(i) * bytes, bytes);
      to += bytes;
    }
  });
}

constexpr std::int64_t kMostStitchedRows = std::int64_t{1} << 48;  // of elements that any shape may have

std::int64_t rows_named(const KernelContext& context, int parts) {
  std::int64_t rows = 0;
  for (int k = 0; k < parts; ++k) {
    const std::int64_t count = context.input(parts + k).elements();
    detail::with_row_numbers(context.input(parts + k), kMostStitchedRows, [&](const auto* numbers) {
      for (std::int64_t i = 0; i < count; ++i)
        rows = std::max<std::int64_t>(rows, numbers[i] + std::int64_t{1});
    });
  }
  return rows;
}

void dynamic_stitch(KernelContext& context) {
  const int parts = context.num_inputs() / 2, prefix = context.input(parts).shape().rank();
  const auto bytes = static_cast<std::size_t>(row_bytes(context.input(0), prefix));
  const Tensor y = rows_like(context.input(0), prefix, rows_named(context, parts));
  if (y.bytes() > 0) std::memset(y.raw(), 0, y.bytes());
  for (int k = 0; bytes > 0 && k < parts; ++k)
    detail::with_numbers(context.input(parts + k), [&](const auto* numbers) {
      const std::byte* from = context.input(k).raw();
      for (std::int64_t i = 0; i < context.input(parts + k).elements(); ++i, from += bytes)
        std::memcpy(y.raw() + static_cast<std::size_t>(numbers[i]) * bytes, from, bytes);
    });
  context.set_output(0, y);
}

void dynamic_stitch_grad(KernelContext& context) {
  const Tensor& dy = context.input(0);
  const std::int64_t rows = dy.shape().dim(0);
  const auto bytes = static_cast<std::size_t>(row_bytes(dy, 1));
  std::vector<std::byte*> owners(static_cast<std::size_t>(rows));  // which row of the inputs each row of y is
  for (int k = 0; k < context.num_outputs(); ++k)
    detail::with_row_numbers(context.input(k + 1), rows, [&](const auto* numbers) {
      std::byte* to = context.output(k).raw();
      for (std::int64_t i = 0; bytes > 0 && i < context.input(k + 1).elements(); ++i, to += bytes) {
        std::byte*& owner = owners[static_cast<std::size_t>(numbers[i])];
        if (owner != nullptr) std::memset(owner, 0, bytes);
        owner = to;
        std::memcpy(to, dy.raw() + static_cast<std::size_t>(numbers[i]) * bytes, bytes);
      }
    });
}

const RegisterKernel partition_kernels[] = {
    {"DynamicPartition", "CPU", {}, dynamic_partition},
    {"DynamicStitch", "CPU", {}, dynamic_stitch},
    {"DynamicStitchGrad", "CPU", {}, dynamic_stitch_grad},
};

}  // namespace
}  // namespace kolo

#include <kolo/collectives/algorithms/communicator.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include <kolo/collectives/algorithms/stages.h>
#include <kolo/core/base/error.h>

namespace kolo {
namespace {

/// What is left of a reduction over one rank.
class Nothing final : public Collective {
 public:
  void start() override {}
  Progress progress() override { return Progress::finished; }
  bool needs_comm_thread() const override { return false; }
};

}  // namespace

std::shared_ptr<Collective> Communicator::allreduce(const TypedBuffer& buffer, const Reduction& reduction,
                                                    std::span<const std::int64_t> tensor_elements,
                                                    const Contributors& contributors) {
  check_reducible(reduction, buffer.dtype);
  std::shared_ptr<Collective> operation;
  if (size() == 1) operation = std::make_shared<Nothing>();
  else if (reduction.op == ReduceOp::adasum) operation = make_adasum(buffer, tensor_elements, contributors);
  else operation = make_allreduce(buffer, reduction.op, contributors.count > 0 ? contributors.count : size());
  return scaled(std::move(operation), buffer, buffer, reduction.prescale, reduction.postscale);
}

std::shared_ptr<Collective> Communicator::reduce_scatter(const TypedBuffer& buffer,
                                                         std::span<const std::int64_t> counts,
                                                         const Reduction& reduction) {
  check_reducible(reduction, buffer.dtype);
  if (reduction.op == ReduceOp::adasum)
    throw InvalidArgumentError("reduce_scatter: adasum needs whole tensors; use allreduce");
  const bool fits = static_cast<int>(counts.size()) == size() &&
                    std::all_of(counts.begin(), counts.end(), [](std::int64_t n) { return n >= 0; }) &&
                    std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) == buffer.elements;
  if (!fits)
    throw InvalidArgumentError("reduce_scatter of {} elements over {} ranks was given the counts [{}]",
                               buffer.elements, size(), fmt::join(counts, ","));
  auto operation =
      size() == 1 ? std::make_shared<Nothing>() : make_reduce_scatter(buffer, counts, reduction.op);
  const auto first = std::accumulate(counts.begin(), counts.begin() + rank(), std::int64_t{0});
  const TypedBuffer own{buffer.bytes + first * static_cast<std::int64_t>(size_of(buffer.dtype)),
                        counts[rank()], buffer.dtype};
  return scaled(std::move(operation), buffer, own, reduction.prescale, reduction.postscale);
}

}  // namespace kolo

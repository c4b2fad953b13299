#include <kolo/collectives/algorithms/adasum.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <kolo/collectives/algorithms/halving_doubling.h>
#include <kolo/collectives/algorithms/message_collectives.h>
#include <kolo/collectives/algorithms/recursive_doubling.h>
#include <kolo/collectives/algorithms/rounds.h>
#include <kolo/collectives/algorithms/stages.h>
#include <kolo/collectives/reduce/adasum_kernels.h>
#include <kolo/collectives/transport/point_to_point.h>
#include <kolo/core/base/error.h>

namespace kolo {
namespace {

class Adasum final : public Collective {
 public:
  Adasum(const AlgorithmContext& context, const TypedBuffer& buffer,
         std::span<const std::int64_t> tensor_elements)
      : buffer_(buffer),
        element_bytes_(static_cast<std::int64_t>(size_of(buffer.dtype))),
        rounds_(context.network, context.chunk_bytes) {
    std::int64_t begin = 0;
    for (const std::int64_t elements : tensor_elements) {
      tensors_.push_back({begin, begin + elements});
      begin += elements;
    }
    products_.resize(tensors_.size());
    partial_.resize(tensors_.size());
    const int rank = context.network.rank(), ranks = context.network.size();
    const Section all{0, buffer.elements};
    const std::int64_t received = takes_folded(rank, ranks) ? all.size() : (all.size() + 1) / 2;
    scratch_.resize(static_cast<std::size_t>(received * element_bytes_));
    const auto take = [&](int from) {
      rounds_.receive(from, bytes_of_scratch(all));
      rounds_.end_round([this, all] {
        multiply(all, /*comes_first=*/false);
        combine(all, /*comes_first=*/false);
      });
    };
    fold_around(rounds_, rank, ranks, bytes(all), take,
                [&](int power) { halve_and_double(rank, power, all); });
  }

  void start() override { rounds_.start(); }
  Progress progress() override { return rounds_.progress(); }

 private:
  // The vector of the rank whose bit is 0 is a.
  void halve_and_double(int rank, int power, Section range) {
    std::vector<Halves> halves;
    for (int distance = 1; distance < power; distance *= 2) {
      const bool is_lower = (rank & distance) == 0;
      halves.push_back(halve(range, rank, distance));
      range = halves.back().kept;
      rounds_.send(rank ^ distance, bytes(halves.back().given));
      rounds_.receive(rank ^ distance, bytes_of_scratch(range));
      rounds_.end_round([this, range, is_lower] { multiply(range, !is_lower); });
      // The vectors of this step are spread over 2 · distance ranks, their products are the sums over these.
      for (int d = 1; d <= distance; d *= 2) {
        rounds_.send(rank ^ d, std::as_bytes(std::span(products_)));
        rounds_.receive(rank ^ d, std::as_writable_bytes(std::span(partial_)));
        rounds_.end_round([this] { add_partial_products(); });
      }
      rounds_.end_round([this, range, is_lower] { combine(range, !is_lower); });
    }
    add_doubling(rounds_, rank, halves, [this](Section part) { return bytes(part); });
  }

  // Calls body(tensor, its part of the range's elements, where that begins in the range).
  template <class Body>
  void for_each_tensor_in(Section range, const Body& body) {
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      const Section part{std::max(range.begin, tensors_[t].begin), std::min(range.end, tensors_[t].end)};
      if (part.size() > 0) body(t, part, part.begin - range.begin);
    }
  }

  // scratch_ holds the other rank's elements of the range; they are a where they come first.
  void multiply(Section range, bool comes_first) {
    std::fill(products_.begin(), products_.end(), AdasumProducts{});
    for_each_tensor_in(range, [&](std::size_t t, Section part, std::int64_t offset) {
      const std::byte* own = bytes(part).data();
      const std::byte* other = scratch_.data() + offset * element_bytes_;
      add_products(products_[t], buffer_.dtype, comes_first ? other : own, comes_first ? own : other,
                   part.size());
    });
  }
  void combine(Section range, bool comes_first) {
    for_each_tensor_in(range, [&](std::size_t t, Section part, std::int64_t offset) {
      std::byte* own = bytes(part).data();
      const std::byte* other = scratch_.data() + offset * element_bytes_;
      adasum_combine(products_[t], buffer_.dtype, own, comes_first ? other : own, comes_first ? own : other,
                     part.size());
    });
  }
  void add_partial_products() {
    for (std::size_t t = 0; t < products_.size(); ++t) {
      products_[t].ab += partial_[t].ab;
      products_[t].aa += partial_[t].aa;
      products_[t].bb += partial_[t].bb;
    }
  }

  std::span<std::byte> bytes(Section range) const {
    return {buffer_.bytes + range.begin * element_bytes_,
            static_cast<std::size_t>(range.size() * element_bytes_)};
  }
  std::span<std::byte> bytes_of_scratch(Section range) {
    return std::span(scratch_).first(static_cast<std::size_t>(range.size() * element_bytes_));
  }

  const TypedBuffer buffer_;
  const std::int64_t element_bytes_;
  Rounds rounds_;
  std::vector<Section> tensors_;
  std::vector<AdasumProducts> products_, partial_;  // by tensor
  std::vector<std::byte> scratch_;
};

// A node's ranks average, its lowest rank takes part for them.
class HierarchicalAdasum final : public Collective {
 public:
  HierarchicalAdasum(const AlgorithmContext& context, const TypedBuffer& buffer,
                     std::span<const std::int64_t> tensor_elements, std::optional<bool> contributes)
      : buffer_(buffer),
        contributes_(contributes),
        node_(context.network, context.topology.ranks_of(context.topology.node_of(context.network.rank()))),
        node_topology_(Topology::one_node(node_.size())),
        leader_topology_(context.topology.of(leaders(context.topology))),
        node_context_{.network = node_, .topology = node_topology_, .chunk_bytes = context.chunk_bytes} {
    if (node_.rank() == 0) leaders_.emplace(context.network, leaders(context.topology));
    std::vector<Stage> steps;
    if (node_.size() > 1 && contributes) steps.emplace_back([this] { return count_contributors(); });
    if (node_.size() > 1)
      steps.emplace_back(
          [this, over_all = contributes ? nullptr : average()] { return over_all ? over_all : average(); });
    if (leaders_)
      steps.emplace_back(
          [operation = adasum_allreduce(
               {.network = *leaders_, .topology = leader_topology_, .chunk_bytes = context.chunk_bytes},
               buffer, tensor_elements)] { return operation; });
    if (node_.size() > 1) {
      const auto bytes = static_cast<std::size_t>(buffer.elements) * size_of(buffer.dtype);
      steps.emplace_back([operation = broadcast(node_, {buffer.bytes, bytes}, 0, context.chunk_bytes)] {
        return operation;
      });
    }
    steps_ = in_stages(std::move(steps));
  }

  void start() override { steps_->start(); }
  Progress progress() override { return steps_->progress(); }

 private:
  static std::vector<int> leaders(const Topology& topology) {
    std::vector<int> ranks;
    for (int node = 0; node < topology.nodes(); ++node) ranks.push_back(topology.ranks_of(node).front());
    return ranks;
  }

  std::shared_ptr<Collective> count_contributors() {
    contributors_ = *contributes_ ? 1 : 0;
    return recursive_doubling_allreduce(node_context_, TypedBuffer::of(std::span(&contributors_, 1)),
                                        ReduceOp::sum);
  }
  // Without contributors all elements are zeros.
  std::shared_ptr<Collective> average() {
    AlgorithmContext context = node_context_;
    if (contributes_) context.average_over = static_cast<double>(std::max<std::int64_t>(contributors_, 1));
    return halving_doubling_allreduce(context, buffer_, ReduceOp::average);
  }

  const TypedBuffer buffer_;
  const std::optional<bool> contributes_;
  std::int64_t contributors_ = 0;  // of the node
  SubNetwork node_;
  std::optional<SubNetwork> leaders_;  // the lowest rank of each node, if this is one
  const Topology node_topology_, leader_topology_;
  const AlgorithmContext node_context_;
  std::shared_ptr<Collective> steps_;
};

// One tensor if none is given.
std::vector<std::int64_t> checked_tensors(const TypedBuffer& buffer, std::span<const std::int64_t> elements) {
  check_reducible(ReduceOp::adasum, buffer.dtype);
  if (elements.empty()) return {buffer.elements};
  const std::int64_t sum = std::accumulate(elements.begin(), elements.end(), std::int64_t{0});
  if (sum != buffer.elements || *std::min_element(elements.begin(), elements.end()) < 0)
    throw InvalidArgumentError("adasum of a buffer of {} elements was given tensors of {} in all",
                               buffer.elements, sum);
  return {elements.begin(), elements.end()};
}

}  // namespace

std::shared_ptr<Collective> adasum_allreduce(const AlgorithmContext& context, const TypedBuffer& buffer,
                                             std::span<const std::int64_t> tensor_elements) {
  return std::make_shared<Adasum>(context, buffer, checked_tensors(buffer, tensor_elements));
}

std::shared_ptr<Collective> hierarchical_adasum(const AlgorithmContext& context, const TypedBuffer& buffer,
                                                std::span<const std::int64_t> tensor_elements,
                                                std::optional<bool> contributes) {
  return std::make_shared<HierarchicalAdasum>(context, buffer, checked_tensors(buffer, tensor_elements),
                                              contributes);
}

}  // namespace kolo

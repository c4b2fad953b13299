#include <kolo/collectives/algorithms/hierarchical.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <kolo/collectives/algorithms/allreduce_registry.h>
#include <kolo/collectives/algorithms/halving_doubling.h>
#include <kolo/collectives/algorithms/partial_results.h>
#include <kolo/collectives/algorithms/ring.h>
#include <kolo/collectives/reduce/reduce.h>
#include <kolo/collectives/transport/point_to_point.h>

namespace kolo {
namespace {

constexpr std::int64_t kMostPieces = 8;
// Of a piece, between two nodes: enough that its way is longer than the start of the next.
constexpr std::int64_t kLeastBytesPerMessage = std::int64_t{64} << 10;
// Pieces that are reduced in the node before the first one is gathered: what the wire has in store.
constexpr int kScattersAhead = 2;

/// Over the network, where nothing better is at hand.
class LocalRing final : public LocalCollectives {
 public:
  explicit LocalRing(const AlgorithmContext& context) : context_(context) {}
  std::shared_ptr<Collective> reduce_scatter(const TypedBuffer& buffer, std::span<const std::int64_t> counts,
                                             ReduceOp op, double divisor) override {
    AlgorithmContext context = context_;
    context.average_over = divisor;
    return ring_reduce_scatter(context, buffer, counts, op);
  }
  std::shared_ptr<Collective> allgather(std::span<const std::span<std::byte>> blocks) override {
    return ring_allgather(context_.network, blocks, context_.chunk_bytes);
  }

 private:
  const AlgorithmContext context_;
};

/// The division of an average where there is no second rank, and no collective whose last sum could divide.
class Division final : public Collective {
 public:
  Division(const TypedBuffer& buffer, double divisor) : buffer_(buffer), divisor_(divisor) {}
  void start() override {
    if (divisor_ != 1) divide(buffer_.dtype, buffer_.bytes, buffer_.elements, divisor_);
  }
  Progress progress() override { return Progress::finished; }

 private:
  const TypedBuffer buffer_;
  const double divisor_;
};

std::vector<int> one_rank_per_node(const Topology& topology, int local_rank) {
  std::vector<int> ranks;
  for (int node = 0; node < topology.nodes(); ++node) ranks.push_back(topology.ranks_of(node)[local_rank]);
  return ranks;
}

Topology separate_nodes(int nodes) {
  std::vector<int> leaders(nodes);
  std::iota(leaders.begin(), leaders.end(), 0);
  return Topology(leaders);
}

int smallest_node(const Topology& topology) {
  std::size_t ranks = topology.ranks_of(0).size();
  for (int node = 1; node < topology.nodes(); ++node) ranks = std::min(ranks, topology.ranks_of(node).size());
  return static_cast<int>(ranks);
}

int largest_node(const Topology& topology) {
  std::size_t ranks = 0;
  for (int node = 0; node < topology.nodes(); ++node) ranks = std::max(ranks, topology.ranks_of(node).size());
  return static_cast<int>(ranks);
}

// The node's ranks do their collectives in one order, `local_`: reduce-scatters a few pieces ahead of the
// all-gathers. A shard's allreduces follow each other as well, each once its piece is reduced here; the
// all-gather of a piece waits for it.
class Hierarchical final : public Collective {
 public:
  Hierarchical(const AlgorithmContext& context, const TypedBuffer& buffer, ReduceOp op)
      : op_(op),
        node_scale_(PartialResults(context, buffer, op).scale(largest_node(context.topology))),
        divisor_(op == ReduceOp::average ? context.divisor() / node_scale_ : 1),
        shards_(smallest_node(context.topology)),
        local_rank_(context.topology.local_rank(context.network.rank())),
        node_(context.network, context.topology.ranks_of(context.topology.node_of(context.network.rank()))),
        node_topology_(Topology::one_node(node_.size())),
        wire_topology_(separate_nodes(context.topology.nodes())),
        node_context_{.network = node_, .topology = node_topology_, .chunk_bytes = context.chunk_bytes},
        over_network_(node_context_) {
    if (local_rank_ < shards_)
      wire_.emplace(context.network, one_rank_per_node(context.topology, local_rank_));
    LocalCollectives& local = context.local != nullptr ? *context.local : over_network_;
    const auto element_bytes = static_cast<std::int64_t>(size_of(buffer.dtype));
    const std::int64_t least = kLeastBytesPerMessage / element_bytes * shards_ * wire_topology_.nodes();
    const std::int64_t piece = std::max((buffer.elements + kMostPieces - 1) / kMostPieces, least);
    std::vector<std::shared_ptr<Collective>> scatters, gathers;
    for (std::int64_t first = 0; first < buffer.elements; first += piece) {
      const TypedBuffer part{buffer.bytes + first * element_bytes, std::min(piece, buffer.elements - first),
                             buffer.dtype};
      add_piece(part, local, context.chunk_bytes, scatters, gathers);
    }
    order_local(scatters, gathers);
  }

  void start() override {
    next_local_ = reduced_ = next_shard_ = 0;
    local_runs_ = shard_runs_ = moved_ = false;
  }

  Progress progress() override {
    bool advanced = false;
    while (advance_shard() || advance_local()) advanced = true;
    if (next_local_ == local_.size() && next_shard_ == shard_.size()) return Progress::finished;
    return std::exchange(moved_, false) || advanced ? Progress::advanced : Progress::none;
  }

 private:
  struct Local {
    std::shared_ptr<Collective> operation;
    bool gathers;
    std::size_t piece;
  };

  void add_piece(const TypedBuffer& part, LocalCollectives& local, std::int64_t chunk_bytes,
                 std::vector<std::shared_ptr<Collective>>& scatters,
                 std::vector<std::shared_ptr<Collective>>& gathers) {
    const auto element_bytes = static_cast<std::int64_t>(size_of(part.dtype));
    std::vector<std::int64_t> counts(node_.size(), 0);
    std::vector<std::span<std::byte>> blocks(node_.size());
    std::byte* begin = part.bytes;
    for (int shard = 0; shard < shards_; ++shard) {
      counts[shard] = part.elements / shards_ + (shard < part.elements % shards_ ? 1 : 0);
      blocks[shard] = {begin, static_cast<std::size_t>(counts[shard] * element_bytes)};
      begin += counts[shard] * element_bytes;
    }
    if (node_.size() > 1) {
      // The wire's part of an average divides by the rest.
      const ReduceOp op = op_ != ReduceOp::average ? op_ : node_scale_ == 1 ? ReduceOp::sum : op_;
      scatters.push_back(local.reduce_scatter(part, counts, op, node_scale_));
      gathers.push_back(local.allgather(blocks));
    } else if (node_scale_ != 1) {
      scatters.push_back(std::make_shared<Division>(part, node_scale_));
    }
    if (wire_)
      shard_.push_back(
          make_shard({blocks[local_rank_].data(), counts[local_rank_], part.dtype}, chunk_bytes));
  }

  std::shared_ptr<Collective> make_shard(const TypedBuffer& shard, std::int64_t chunk_bytes) {
    if (wire_->size() == 1) return std::make_shared<Division>(shard, divisor_);
    const AlgorithmContext context{
        .network = *wire_, .topology = wire_topology_, .chunk_bytes = chunk_bytes, .average_over = divisor_};
    const std::int64_t bytes = shard.elements * static_cast<std::int64_t>(size_of(shard.dtype));
    return bytes / wire_->size() >= kLeastBytesPerMessage / 2
               ? ring_allreduce(context, shard, op_)
               : halving_doubling_allreduce(context, shard, op_);
  }

  void order_local(const std::vector<std::shared_ptr<Collective>>& scatters,
                   const std::vector<std::shared_ptr<Collective>>& gathers) {
    for (std::size_t k = 0; k < scatters.size() + kScattersAhead; ++k) {
      if (k < scatters.size()) local_.push_back({scatters[k], false, k});
      if (k >= kScattersAhead && k - kScattersAhead < gathers.size())
        local_.push_back({gathers[k - kScattersAhead], true, k - kScattersAhead});
    }
  }

  // True if one has finished.
  bool advance_shard() {
    if (next_shard_ == shard_.size()) return false;
    if (!shard_runs_) {
      if (!local_.empty() && reduced_ <= next_shard_) return false;
      shard_[next_shard_]->start();
      shard_runs_ = moved_ = true;
    }
    if (!finishes(*shard_[next_shard_])) return false;
    shard_runs_ = false;
    ++next_shard_;
    return true;
  }

  bool advance_local() {
    if (next_local_ == local_.size()) return false;
    const Local& local = local_[next_local_];
    if (!local_runs_) {
      if (local.gathers && wire_ && next_shard_ <= local.piece) return false;
      local.operation->start();
      local_runs_ = moved_ = true;
    }
    if (!finishes(*local.operation)) return false;
    local_runs_ = false;
    if (!local.gathers) ++reduced_;
    ++next_local_;
    return true;
  }

  bool finishes(Collective& operation) {
    const Progress progress = operation.progress();
    if (progress != Progress::none) moved_ = true;
    return progress == Progress::finished;
  }

  const ReduceOp op_;
  const double node_scale_;  // what a node's sum is divided by, the same on all nodes
  const double divisor_;     // of the nodes' sum
  const int shards_;
  const int local_rank_;
  SubNetwork node_;
  std::optional<SubNetwork> wire_;  // of the ranks that hold this rank's shard; none: it holds none
  const Topology node_topology_, wire_topology_;
  const AlgorithmContext node_context_;
  LocalRing over_network_;
  std::vector<Local> local_;
  std::vector<std::shared_ptr<Collective>> shard_;  // by piece
  std::size_t next_local_ = 0, reduced_ = 0, next_shard_ = 0;
  bool local_runs_ = false, shard_runs_ = false;
  bool moved_ = false;
};

const RegisterAllreduce hierarchical("hierarchical", hierarchical_allreduce);

}  // namespace

std::shared_ptr<Collective> hierarchical_allreduce(const AlgorithmContext& context, const TypedBuffer& buffer,
                                                   ReduceOp op) {
  check_reducible(op, buffer.dtype);
  return std::make_shared<Hierarchical>(context, buffer, op);
}

}  // namespace kolo

// Whether all ranks have the same text, as an operation.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include <kolo/collectives/algorithms/collective.h>
#include <kolo/collectives/transport/point_to_point.h>
#include <kolo/collectives/transport/topology.h>

namespace kolo {

/// Compares a hash of 128 bits: an allreduce along the binomial tree, whatever the options say, since they
/// are what is compared at the start. 2(n − 1) messages of 32 bytes in all, 2 · log₂ n at the root.
/// Connections are few, and the child makes each. `network` and `topology` outlive it. One thread at a time,
/// as every Collective.
class TextComparison final : public Collective {
 public:
  TextComparison(PointToPoint& network, const Topology& topology, const std::string& text);
  void start() override { reduction_->start(); }
  Progress progress() override { return reduction_->progress(); }
  /// The same on all ranks, once it has finished.
  bool is_same() const;

 private:
  // The two halves of the hash and their complements: the least of those is the complement of the greatest.
  std::array<std::int64_t, 4> numbers_;
  std::shared_ptr<Collective> reduction_;
};

}  // namespace kolo

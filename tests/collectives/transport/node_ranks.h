// Several ranks of a node as threads of one process, each with node memory and mappings of its own.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <kolo/collectives/algorithms/collective.h>
#include <kolo/collectives/transport/node_channel.h>
#include <kolo/collectives/transport/node_memory.h>

namespace kolo {

class NodeRanks {
 public:
  /// shared_addresses: all ranks see a memory at its owner's addresses, so that a thread sanitizer, which
  /// goes by addresses, can tell who meets whom.
  explicit NodeRanks(int ranks, bool shared_addresses = false) {
    for (int rank = 0; rank < ranks; ++rank)
      memories_.push_back(std::make_shared<NodeMemory>(std::int64_t{256} << 20));
    for (int rank = 0; rank < ranks; ++rank) views_.push_back(view(rank, shared_addresses));
  }

  int size() const { return static_cast<int>(memories_.size()); }
  NodeMemory& memory(int rank) const { return *memories_[rank]; }
  const NodeView& view(int rank) const { return views_[rank]; }

  /// One connected channel for each rank.
  std::vector<std::unique_ptr<NodeChannel>> channels() const {
    std::vector<std::unique_ptr<NodeChannel>> made;
    std::vector<std::int64_t> offsets;
    for (int rank = 0; rank < size(); ++rank) {
      made.push_back(std::make_unique<NodeChannel>(views_[rank]));
      offsets.push_back(made.back()->own_offset());
    }
    for (auto& channel : made) channel->connect(offsets);
    return made;
  }

  /// body(rank) on a thread for each rank; rethrows what one of them throws.
  void run(const std::function<void(int)>& body) const {
    std::vector<std::exception_ptr> errors(size());
    {
      std::vector<std::jthread> threads;
      for (int rank = 0; rank < size(); ++rank)
        threads.emplace_back([&, rank] {
          try {
            body(rank);
          } catch (...) {
            errors[rank] = std::current_exception();
          }
        });
    }
    for (const auto& error : errors)
      if (error) std::rethrow_exception(error);
  }

  static void finish(Collective& operation) {
    operation.start();
    while (operation.progress() != Progress::finished) std::this_thread::yield();
  }

 private:
  NodeView view(int rank, bool shared_addresses) const {
    std::vector<std::shared_ptr<const MemoryMapping>> peers(memories_.size());
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank) continue;
      peers[peer] = shared_addresses
                        ? std::shared_ptr<const MemoryMapping>(memories_[peer], &memories_[peer]->mapping())
                        : NodeView::map(memories_[peer]->address());
    }
    return {memories_[rank], rank, std::move(peers)};
  }

  std::vector<std::shared_ptr<NodeMemory>> memories_;
  std::vector<NodeView> views_;
};

}  // namespace kolo

// Where ranks that see each other's memory find the factors of each other's gradients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <kolo/collectives/algorithms/communicator.h>
#include <kolo/collectives/schedule/factors.h>
#include <kolo/collectives/schedule/slot_work.h>
#include <kolo/collectives/transport/node_memory.h>

namespace kolo::detail {

/// The ranks tell each other what they want to do with the factors of one gradient and where theirs lie: they
/// do it if all want the same. One short exchange. One thread at a time, as every Collective.
class FactorsWork final : public SlotWork {
 public:
  /// memory: of all ranks of the communicator, in their order.
  FactorsWork(int slot, std::shared_ptr<StepSlots> slots, std::shared_ptr<Communicator> communicator,
              NodeView memory, std::string label);

  /// Before each submission; a submission without wants nothing.
  void set_own(const OwnFactors& own) { own_ = own; }
  /// Once it has finished: the factors' memory on each rank, in their order; none: each rank for itself.
  std::span<const std::byte* const> memory_of_ranks() const { return memory_of_ranks_; }

  OperationDetails details() const override;
  bool needs_comm_thread() const override { return exchange_->needs_comm_thread(); }

 private:
  struct Header {
    std::int64_t use, rows, offset;
    FlagNumbers flags;
  };

  void start_voting(const StepFlags& own) override;
  Progress advance_voting() override { return exchange_->progress(); }
  StepFlags votes() const override;
  bool start_rest() override;
  void finish() override { own_ = {}; }

  const NodeView memory_;
  std::vector<Header> headers_;
  std::shared_ptr<Collective> exchange_;
  OwnFactors own_;
  std::vector<const std::byte*> memory_of_ranks_;
};

}  // namespace kolo::detail

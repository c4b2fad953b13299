// A schedule's part in the sharing of gradients' factors (factors.h).
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <kolo/collectives/schedule/schedule_internal.h>
#include <kolo/core/runtime/group.h>

namespace kolo {

// Another rank may make a gradient in another way, or share no memory with this one.
void Schedule::agree_on_factors() {
  const ReduceOp op = spec_.reduction.op;
  const bool sums = (op == ReduceOp::sum || op == ReduceOp::average) && !spec_.reduction.is_scaled();
  if (!core_->members.empty() || !spec_.shards.empty() || device() != nullptr || !sums ||
      core_->runtime->process().size > detail::kMostReaders || !core_->runtime->memory_of_all())
    return;
  std::string own(spec_.gradients.size(), '-');
  for (std::size_t i = 0; i < spec_.products.size(); ++i)
    if (spec_.products[i]) own[i] = 'x';
  const std::vector<std::string> all = world_group().allgather(own);
  for (std::size_t i = 0; i < own.size(); ++i)
    if (std::all_of(all.begin(), all.end(), [&](const std::string& rank) { return rank[i] == 'x'; }))
      factored_.push_back(static_cast<int>(i));
  core_->add_factors(static_cast<int>(factored_.size()));
}

bool Schedule::may_share_factors(int gradient) const {
  return std::count(factored_.begin(), factored_.end(), gradient) > 0;
}

std::shared_ptr<Buffer> Schedule::factors_memory(int gradient, std::size_t bytes) {
  const NodeMemory& own = core_->runtime->memory_of_all().own();
  const auto is_shared = [&](const Buffer& buffer) {
    return own.offset_of(buffer.data(), static_cast<std::int64_t>(buffer.bytes())).has_value();
  };
  if (!may_be_read(bucket_of(gradient)) || !is_shared(*memory(bucket_of(gradient)))) return nullptr;
  auto& factors = factors_memory_[{gradient, bytes}];
  if (factors == nullptr) factors = std::make_shared<Buffer>(bucket_allocator(), bytes);
  return is_shared(*factors) ? factors : nullptr;
}

bool Schedule::is_factors_memory(const std::shared_ptr<Buffer>& memory) const {
  return std::any_of(factors_memory_.begin(), factors_memory_.end(),
                     [&](const auto& entry) { return entry.second == memory; });
}

int Schedule::slot_of_factors(int gradient) const {
  return static_cast<int>(std::find(factored_.begin(), factored_.end(), gradient) - factored_.begin());
}

void Schedule::submit_factors(int gradient, const detail::OwnFactors& own, Done done) {
  const int slot = slot_of_factors(gradient);
  core_->factors.at(static_cast<std::size_t>(slot))->set_own(own);
  core_->submit(slot, std::move(done), /*to_read=*/true);
}

std::span<const std::byte* const> Schedule::factors_of_ranks(int gradient) const {
  return core_->factors.at(static_cast<std::size_t>(slot_of_factors(gradient)))->memory_of_ranks();
}

}  // namespace kolo

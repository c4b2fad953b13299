// A schedule's part in the sharing of gradients' factors (factors.h).
#include <kolo/collectives/schedule/schedule.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <hwy/targets.h>

#include <kolo/collectives/schedule/schedule_core.h>
#include <kolo/core/runtime/group.h>

namespace kolo {

// Another rank may make a gradient in another way, or have other instructions, whose products are rounded
// otherwise.
void Schedule::agree_on_factors() {
  const ReduceOp op = spec_.reduction.op;
  const bool sums = (op == ReduceOp::sum || op == ReduceOp::average) && !spec_.reduction.is_scaled();
  if (!core_->members.empty() || !sums || !core_->runtime->memory_of_all() ||
      std::none_of(buckets_.begin(), buckets_.end(), [](const BucketSlot& b) { return b.may_be_read(); }))
    return;
  std::string own(gradients_.size(), '-');
  for (std::size_t i = 0; i < spec_.products.size(); ++i)
    if (spec_.products[i] && gradients_[i].bucket->may_be_read()) own[i] = 'x';
  own += std::to_string(hwy::SupportedTargets());
  const std::vector<std::string> all = world_group().allgather(own);
  const auto instructions = [&](const std::string& rank) { return rank.substr(gradients_.size()); };
  if (std::any_of(all.begin(), all.end(),
                  [&](const std::string& rank) { return instructions(rank) != instructions(own); }))
    return;
  factors_.reserve(gradients_.size());
  for (std::size_t i = 0; i < gradients_.size(); ++i) {
    if (!std::all_of(all.begin(), all.end(), [&](const std::string& rank) { return rank[i] == 'x'; }))
      continue;
    factors_.push_back(FactorsSlot(*core_, *gradients_[i].bucket));
    gradients_[i].factors = &factors_.back();
  }
  core_->add_slots(static_cast<int>(factors_.size()));
}

void Schedule::make_factors_works() {
  for (std::size_t i = 0; i < gradients_.size(); ++i) {
    FactorsSlot* const factors = gradients_[i].factors;
    if (factors == nullptr) continue;
    factors->work_ = std::make_shared<detail::FactorsWork>(
        factors->turn(), core_->slots, core_->communicator, core_->runtime->memory_of_all(),
        fmt::format("factors of \"{}\" of the training step", spec_.gradients[i].name));
    core_->works[static_cast<std::size_t>(factors->turn())] = factors->work_;
  }
}

}  // namespace kolo

// A schedule's part in the sharing of gradients' factors (factors.h).
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <hwy/targets.h>

#include <kolo/collectives/schedule/schedule_internal.h>
#include <kolo/core/runtime/group.h>

namespace kolo {

// Another rank may make a gradient in another way, or have other instructions, whose products are rounded
// otherwise.
void Schedule::agree_on_factors() {
  const ReduceOp op = spec_.reduction.op;
  const bool sums = (op == ReduceOp::sum || op == ReduceOp::average) && !spec_.reduction.is_scaled();
  if (!core_->members.empty() || !sums || !core_->runtime->memory_of_all() ||
      std::count(readable_.begin(), readable_.end(), true) == 0)
    return;
  std::string own(spec_.gradients.size(), '-');
  for (std::size_t i = 0; i < spec_.products.size(); ++i)
    if (spec_.products[i] && may_be_read(bucket_of(static_cast<int>(i)))) own[i] = 'x';
  own += std::to_string(hwy::SupportedTargets());
  const std::vector<std::string> all = world_group().allgather(own);
  const auto instructions = [&](const std::string& rank) { return rank.substr(spec_.gradients.size()); };
  if (std::any_of(all.begin(), all.end(),
                  [&](const std::string& rank) { return instructions(rank) != instructions(own); }))
    return;
  for (std::size_t i = 0; i < spec_.gradients.size(); ++i)
    if (std::all_of(all.begin(), all.end(), [&](const std::string& rank) { return rank[i] == 'x'; }))
      factored_.push_back(static_cast<int>(i));
  core_->add_slots(static_cast<int>(factored_.size()));
}

// A bucket's factors stand before the bucket in front of it, so that ranks meet for them while they make that
// one's gradients; no further, as a bucket that is reduced has to wait for what stands before it.
void Schedule::order_slots() {
  int next = 0;
  core_->slots_of_factors.resize(factored_.size());
  const auto take_factors_of = [&](std::size_t bucket) {
    if (bucket >= buckets_.size()) return;
    for (const int gradient : buckets_[bucket].gradients)
      if (const auto f = std::find(factored_.begin(), factored_.end(), gradient); f != factored_.end())
        core_->slots_of_factors[static_cast<std::size_t>(f - factored_.begin())] = next++;
  };
  take_factors_of(0);
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    take_factors_of(b + 1);
    core_->slots_of_buckets.push_back(next++);
  }
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
  auto& factors = factors_memory_[gradient];
  if (factors == nullptr) factors = std::make_shared<Buffer>(bucket_allocator(), bytes);
  return is_shared(*factors) ? factors : nullptr;
}

bool Schedule::is_factors_memory(const std::shared_ptr<Buffer>& memory) const {
  return std::any_of(factors_memory_.begin(), factors_memory_.end(),
                     [&](const auto& entry) { return entry.second == memory; });
}

std::size_t Schedule::place_of_factors(int gradient) const {
  return static_cast<std::size_t>(std::find(factored_.begin(), factored_.end(), gradient) -
                                  factored_.begin());
}

int Schedule::slot_of_factors(int gradient) const {
  return core_->slots_of_factors.at(place_of_factors(gradient));
}

void Schedule::submit_factors(int gradient, const detail::OwnFactors& own, Done done) {
  core_->factors.at(place_of_factors(gradient))->set_own(own);
  core_->submit(slot_of_factors(gradient), std::move(done), /*to_read=*/true);
}

std::span<const std::byte* const> Schedule::factors_of_ranks(int gradient) const {
  return core_->factors.at(place_of_factors(gradient))->memory_of_ranks();
}

}  // namespace kolo

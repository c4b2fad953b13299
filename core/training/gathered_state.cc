#include <kolo/core/training/gathered_state.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/training/common_start.h>
#include <kolo/core/training/sharded_state.h>
#include <kolo/core/training/spread_state.h>

namespace kolo {
namespace {

bool has_step_of_all_ranks(Session& session) {
  const auto agreements = session.agreements();
  return std::any_of(agreements.begin(), agreements.end(),
                     [](const auto& agreement) { return agreement->ranks().empty(); });
}

// The whole tensor of a shard, or one tensor for each rank, by their names in a checkpoint; parts[r] is where
// rank r's own goes.
std::map<std::string, Tensor> make_tensors(const detail::SpreadTensor& tensor, std::vector<Tensor>& parts) {
  if (tensor.whole) {
    const Tensor whole(tensor.variable.dtype(), tensor.whole->shape);
    for (const detail::SpreadTensor::Part& part : tensor.parts)
      parts.push_back(detail::part_of(whole, part.first, part.elements));
    return {{tensor.whole->name, whole}};
  }
  std::map<std::string, Tensor> all;
  for (std::size_t rank = 0; rank < tensor.parts.size(); ++rank) {
    parts.emplace_back(tensor.variable.dtype(), tensor.variable.shape());
    all[detail::name_of_rank(tensor.variable.name(), static_cast<int>(rank))] = parts.back();
  }
  return all;
}

}  // namespace

bool is_spread_over_ranks(Session& session, const Group& group) {
  if (group.size() == 1) return false;
  if (!shards(session.graph()).empty()) return true;
  return !detail::spread_variables(session.graph()).empty() && has_step_of_all_ranks(session);
}

GatheredState::GatheredState(Session& session, Group& group) : session_(session) {
  if (!is_spread_over_ranks(session, group)) return;
  const std::vector<detail::SpreadTensor> layout =
      detail::compare_spread_state(group, session, {.must_be_initialized = true});
  const bool is_root = group.rank() == detail::kSpreadRoot;
  std::vector<std::vector<Tensor>> parts(layout.size());
  detail::share_failure(group, [&] {
    for (std::size_t i = 0; is_root && i < layout.size(); ++i)
      tensors_.merge(make_tensors(layout[i], parts[i]));
  });
  for (std::size_t i = 0; i < layout.size(); ++i)
    group.gather(session.variable(*layout[i].variable.ref().node).value, parts[i], detail::kSpreadRoot);
  session.set_gathered_tensors(&tensors_);
}

GatheredState::~GatheredState() {
  if (session_.gathered_tensors() == &tensors_) session_.set_gathered_tensors(nullptr);
}

void GatheredState::refuse(const std::string& text, Group& group) {
  if (group.size() > 1) detail::refuse_spread_state(group, text);
}

}  // namespace kolo

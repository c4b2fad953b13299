// Turns each GatherShards of a step into one node for each bucket of its group's schedule: the parts that
// the ranks have updated are written into the bucket's memory, where the gradients are no longer needed, and
// gathered there.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <kolo/collectives/graph/group_node.h>
#include <kolo/collectives/graph/sharding.h>
#include <kolo/collectives/schedule/bucket_nodes.h>
#include <kolo/collectives/schedule/schedule.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/process.h>
#include <kolo/core/device/device_set.h>
#include <kolo/core/passes/pipeline.h>
#include <kolo/core/passes/transfer.h>
#include <kolo/core/runtime/step_vote.h>

namespace kolo {
namespace {

using Numbers = std::vector<std::int64_t>;

// Whoever looks at what lies in `memory` does so before `node` writes there.
void run_after_readers(StepGraph& graph, int node, const std::shared_ptr<Buffer>& memory) {
  const auto lies_there = [&](StepValue value) {
    const auto placement = graph.placements.find(graph.memory_root(value));
    return placement != graph.placements.end() && placement->second.buffer == memory;
  };
  for (StepValue& fetch : graph.fetches)
    if (fetch.node >= 0 && lies_there(fetch)) {
      const StepNode& producer = graph.nodes[fetch.node];
      fetch = {graph.add(kCopyOp, producer.name + "/fetched", {fetch}, {}, producer.order + 1), 0};
    }
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const auto& inputs = graph.nodes[i].inputs;
    if (i != node && std::any_of(inputs.begin(), inputs.end(), lies_there))
      graph.nodes[node].after.push_back(i);
  }
}

int reduction_of_bucket(const StepGraph& graph, const Schedule& schedule, std::size_t bucket) {
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const StepNode& node = graph.nodes[i];
    const std::string& op = node.schema->name();
    if ((op == detail::kBucketAllReduceOp || op == detail::kBucketReduceScatterOp) &&
        node.resource.get() == &schedule && node.attrs.at(detail::kBucketAttr).get<std::size_t>() == bucket)
      return i;
  }
  throw InternalError("bucket {} of a sharded step is gathered, but not reduced", bucket);
}

struct Member {
  int input = 0;             // of the GatherShards node
  std::size_t gradient = 0;  // of the schedule
};

class Expansion {
 public:
  // host: the device whose memory buckets lie in.
  Expansion(StepGraph& graph, int gather, const Node& group, const std::shared_ptr<Schedule>& schedule,
            std::string host)
      : graph_(graph),
        gather_(gather),
        host_(std::move(host)),
        group_(group),
        schedule_(schedule),
        group_parts_(own_parts(group)),
        backward_(detail::backward_order(group)),
        sizes_(graph.nodes[gather].attrs.at("counts").get<Numbers>()) {}

  void run() {
    const auto inputs = graph_.nodes[gather_].attrs.at("gradients").get<Numbers>();
    std::map<const BucketSlot*, std::vector<Member>> by_bucket;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto at = std::find(backward_.begin(), backward_.end(), static_cast<int>(inputs[i]));
      const auto gradient = static_cast<std::size_t>(at - backward_.begin());
      by_bucket[schedule_->gradients()[gradient].bucket].push_back({static_cast<int>(i), gradient});
    }
    for (const auto& [bucket, members] : by_bucket) gather_bucket(*bucket, members);
    graph_.retire(gather_);
  }

 private:
  void gather_bucket(const BucketSlot& slot, const std::vector<Member>& members) {
    const auto bucket = static_cast<std::size_t>(&slot - schedule_->buckets().data());
    const auto offset_of = [&](const Member& member) {
      return slot.shards().offset(schedule_->gradients()[member.gradient].offset);
    };
    std::vector<StepValue> parts;
    Numbers offsets, counts;
    for (const Member& member : members) {
      parts.push_back(graph_.nodes[gather_].inputs[member.input]);
      const auto element = static_cast<std::int64_t>(size_of(graph_.dtype(parts.back())));
      offsets.push_back(offset_of(member) + group_parts_[backward_[member.gradient]].first * element);
      counts.push_back(sizes_[member.input]);
    }
    const int node = graph_.add(
        detail::kBucketAllGatherOp, fmt::format("{}/bucket_{}", graph_.nodes[gather_].name, bucket), parts,
        {{detail::kBucketAttr, static_cast<std::int64_t>(bucket)}, {"offsets", offsets}, {"counts", counts}},
        graph_.nodes[gather_].order);
    const auto& memory = slot.shards().memory();
    graph_.nodes[node].device = host_;
    graph_.nodes[node].resource = schedule_;
    graph_.nodes[node].control_inputs = conditions(bucket);
    run_after_readers(graph_, node, memory);
    for (std::size_t k = 0; k < members.size(); ++k) {
      const StepValue whole{node, static_cast<int>(k)};
      graph_.placements[whole] = {memory, static_cast<std::size_t>(offset_of(members[k]))};
      graph_.replace_uses({gather_, members[k].input}, whole);
    }
    graph_.nodes[gather_].control_inputs.push_back(node);
  }

  // Of the group, which has become its buckets, this one alone.
  std::vector<int> conditions(std::size_t bucket) const {
    std::vector<int> before;
    for (const int control : graph_.nodes[gather_].control_inputs)
      if (graph_.nodes[control].origin != &group_ && graph_.nodes[control].resource != schedule_)
        before.push_back(control);
    before.push_back(reduction_of_bucket(graph_, *schedule_, bucket));
    return before;
  }

  StepGraph& graph_;
  const int gather_;
  const std::string host_;
  const Node& group_;
  const std::shared_ptr<Schedule> schedule_;
  const std::vector<OwnedPart> group_parts_;
  const std::vector<int> backward_;
  const Numbers sizes_;
};

void expand_gathers(StepGraph& graph, PassContext& context) {
  const int count = static_cast<int>(graph.nodes.size());
  for (int i = 0; i < count; ++i) {
    if (graph.nodes[i].origin == nullptr || graph.nodes[i].schema->name() != detail::kGatherShardsOp)
      continue;
    const Node& group = detail::group_of_gather(*graph.nodes[i].origin);
    const auto schedule = std::dynamic_pointer_cast<Schedule>(context.vote(group));
    if (schedule != nullptr) {
      Expansion(graph, i, group, schedule, host_of(graph, context.devices())).run();
      continue;
    }
    // One rank, whose part is the whole.
    detail::check_built_for_this_rank(group);
    const auto parts = graph.nodes[i].inputs;
    for (std::size_t k = 0; k < parts.size(); ++k) graph.replace_uses({i, static_cast<int>(k)}, parts[k]);
    graph.retire(i);
  }
}

// Behind fuse_updates, which makes one reader of several: their number is final.
const RegisterPass gather_pass("gather_shards", expand_gathers);

}  // namespace
}  // namespace kolo

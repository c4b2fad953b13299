// Where updates alone read the reduced gradients of a bucket, they read the gradients of all ranks of the
// node where they lie, and add them up on the way: the bucket is not reduced, which saves writing the sums
// and reading them again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kolo/collectives/schedule/schedule.h>
#include <kolo/core/kernels/cpu/update_kernel.h>
#include <kolo/core/kernels/cpu/update_rules.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/ops/training.h>
#include <kolo/core/passes/pipeline.h>

namespace kolo {
namespace {

constexpr char kReduction[] = "BucketAllReduce";
constexpr char kFused[] = "Fused";
constexpr char kUpdateOfRanks[] = "UpdateOfRanks";

// What an update of ranks is made with: its op, and where its gradients come from.
struct GradientsOfRanks {
  std::shared_ptr<OpSchema> schema;
  const UpdateRuleOps* rule;
  std::shared_ptr<Schedule> schedule;
  int bucket;
  std::vector<std::int64_t> offsets;  // of the gradients in the bucket's memory, in bytes
};

template <typename T>
class UpdateOfRanksKernel final : public detail::UpdateKernel<T> {
 public:
  explicit UpdateOfRanksKernel(std::shared_ptr<GradientsOfRanks> gradients)
      : detail::UpdateKernel<T>(*gradients->rule, static_cast<int>(gradients->offsets.size())),
        gradients_(std::move(gradients)),
        ranges_(gradients_->offsets.size()) {}

  void compute(KernelContext& context) override {
    const auto ranks = gradients_->schedule->memory_of_ranks(gradients_->bucket);
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      const int index = static_cast<int>(i);
      detail::UpdatedRange<T>& range = ranges_[i];
      range = this->range(context, index);
      range.gradients[0] = context.input(this->behind_scalars() + index).template data<T>();
      if (ranks.empty()) continue;
      range.num_gradients = static_cast<int>(ranks.size());
      range.divisor = static_cast<T>(gradients_->schedule->divisor());
      for (std::size_t rank = 0; rank < ranks.size(); ++rank)
        range.gradients[rank] = reinterpret_cast<const T*>(ranks[rank] + gradients_->offsets[i]);
    }
    detail::apply_rule(this->rule(context), std::span<const detail::UpdatedRange<T>>(ranges_));
  }

 private:
  const std::shared_ptr<GradientsOfRanks> gradients_;
  std::vector<detail::UpdatedRange<T>> ranges_;
};

const RegisterKernel update_kernel(kUpdateOfRanks, "CPU", {}, KernelFactory([](KernelInit& init) {
                                     auto gradients = init.resource<GradientsOfRanks>();
                                     const DType dtype = init.input_dtype(init.num_inputs() - 1);
                                     std::unique_ptr<Kernel> kernel;
                                     if (dtype == DType::f32)
                                       kernel = std::make_unique<UpdateOfRanksKernel<float>>(gradients);
                                     else kernel = std::make_unique<UpdateOfRanksKernel<double>>(gradients);
                                     return kernel;
                                   }));

// The buckets may be written again.
const RegisterOp writable_op(OpSchema("BucketsWritable").stateful().made_by_pass());

class BucketsWritableKernel final : public AsyncKernel {
 public:
  explicit BucketsWritableKernel(std::shared_ptr<Schedule> schedule) : schedule_(std::move(schedule)) {}
  void start(KernelContext&, Completion done) override {
    done_ = done;
    schedule_->when_writable([this](std::exception_ptr error) { done_(std::move(error)); });
  }

 private:
  const std::shared_ptr<Schedule> schedule_;
  Completion done_;  // kept here: a closure that held it would be allocated at each step
};

const RegisterKernel writable_kernel("BucketsWritable", "CPU", {}, KernelFactory([](KernelInit& init) {
                                       return std::make_unique<BucketsWritableKernel>(
                                           init.resource<Schedule>());
                                     }));

const UpdateRuleOps* rule_of_update(const StepNode& node) {
  const std::string& op = node.schema->name();
  return find_update_rule(op.starts_with(kFused) ? op.substr(std::char_traits<char>::length(kFused)) : op);
}

class Rewrite {
 public:
  Rewrite(StepGraph& graph, int reduction)
      : graph_(graph),
        reduction_(reduction),
        schedule_(std::static_pointer_cast<Schedule>(graph.nodes[reduction].resource)),
        bucket_(graph.nodes[reduction].attrs.at("bucket").get<int>()) {}

  const std::shared_ptr<Schedule>& schedule() const { return schedule_; }
  bool may_be_read() const { return schedule_->may_be_read(bucket_); }

  // Whether all that read the bucket are updates, which read nothing else as a gradient.
  bool applies() {
    for (const StepValue fetch : graph_.fetches)
      if (is_reduced(fetch)) return false;
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      const StepNode& node = graph_.nodes[i];
      const auto reads =
          std::count_if(node.inputs.begin(), node.inputs.end(), [&](StepValue in) { return is_reduced(in); });
      if (reads == 0) continue;
      const UpdateRuleOps* const rule = rule_of_update(node);
      if (rule == nullptr) return false;
      const int gradients = variables_updated(*rule, static_cast<int>(node.inputs.size()));
      if (reads != gradients) return false;
      for (int k = 0; k < gradients; ++k)
        if (node.inputs[node.inputs.size() - static_cast<std::size_t>(gradients - k)].node != reduction_)
          return false;
      updates_.push_back(i);
    }
    return !updates_.empty();
  }

  void apply() {
    graph_.nodes[reduction_].attrs.insert_or_assign("to_read", true);
    for (const int update : updates_) {
      StepNode& node = graph_.nodes[update];
      auto gradients = std::make_shared<GradientsOfRanks>();
      gradients->rule = rule_of_update(node);
      gradients->schedule = schedule_;
      gradients->bucket = bucket_;
      const int count = variables_updated(*gradients->rule, static_cast<int>(node.inputs.size()));
      gradients->schema = schema_of_updates(kUpdateOfRanks, *gradients->rule, count);
      for (auto in = node.inputs.end() - count; in != node.inputs.end(); ++in)
        gradients->offsets.push_back(static_cast<std::int64_t>(graph_.placements.at(*in).offset));
      node.schema = gradients->schema.get();
      node.resource = std::move(gradients);
    }
  }

 private:
  bool is_reduced(StepValue value) const {
    return value.node >= 0 && graph_.memory_root(value).node == reduction_;
  }

  StepGraph& graph_;
  const int reduction_;
  const std::shared_ptr<Schedule> schedule_;
  const int bucket_;
  std::vector<int> updates_;
};

// Whatever the step does with the buckets: ranks may still be reading them as of the last one.
void wait_for_readers(StepGraph& graph, const std::shared_ptr<Schedule>& schedule,
                      const std::string& device) {
  const auto is_bucket = [&](const std::shared_ptr<Buffer>& memory) {
    for (int b = 0; b < static_cast<int>(schedule->buckets().size()); ++b)
      if (schedule->memory(b) == memory) return true;
    return false;
  };
  std::vector<int> writers;
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const auto& [value, placement] : graph.placements) {
    if (!is_bucket(placement.buffer) || graph.nodes[value.node].schema->name() == kReduction) continue;
    writers.push_back(value.node);
    first = std::min(first, graph.nodes[value.node].order);
  }
  const int writable = graph.add("BucketsWritable", "buckets_writable", {}, {}, first);
  graph.nodes[writable].resource = schedule;
  graph.nodes[writable].device = device;
  for (const int writer : writers) graph.nodes[writer].after.push_back(writable);
}

void read_in_place(StepGraph& graph, PassContext&) {
  std::map<std::shared_ptr<Schedule>, std::string> schedules;  // with the device of their reductions
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    if (graph.nodes[i].schema->name() != kReduction) continue;
    Rewrite rewrite(graph, i);
    if (!rewrite.may_be_read()) continue;
    schedules[rewrite.schedule()] = graph.nodes[i].device;
    if (rewrite.applies()) rewrite.apply();
  }
  for (const auto& [schedule, device] : schedules) wait_for_readers(graph, schedule, device);
}

const RegisterPass read_pass("read_in_place", read_in_place);

}  // namespace
}  // namespace kolo

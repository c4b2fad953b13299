// Where updates alone read the reduced gradients of a bucket, they read the gradients of all ranks of the
// node where they lie, and add them up on the way: the bucket is not reduced, which saves writing the sums
// and reading them again. Of dense layers the ranks share the factors, too (shared_factors.h).
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <kolo/collectives/graph/shared_factors.h>
#include <kolo/collectives/schedule/bucket_nodes.h>
#include <kolo/collectives/schedule/schedule.h>
#include <kolo/core/base/process.h>
#include <kolo/core/kernels/cpu/in_place_updates.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/ops/training.h>
#include <kolo/core/passes/pipeline.h>

namespace kolo {
namespace {

constexpr char kFused[] = "Fused";
constexpr char kUpdateOfRanks[] = "UpdateOfRanks";

// What an update of ranks is made with: its op, and where its gradients come from.
struct GradientsOfRanks {
  std::shared_ptr<OpSchema> schema;
  const UpdateRuleOps* rule;
  std::shared_ptr<Schedule> schedule;
  const BucketSlot* bucket;
  std::vector<std::int64_t> offsets;  // of the gradients in the bucket's memory, in bytes
  // Of the gradients that this rank would share the factors of; else nullptr.
  std::vector<std::shared_ptr<detail::SharedFactors>> factors;
};

template <typename T>
class UpdateOfRanksKernel final : public detail::UpdateKernel<T> {
 public:
  UpdateOfRanksKernel(std::shared_ptr<GradientsOfRanks> gradients, KernelInit& init)
      : detail::UpdateKernel<T>(*gradients->rule, static_cast<int>(gradients->offsets.size())),
        gradients_(std::move(gradients)),
        updates_(gradients_->offsets.size()) {
    ranges_.reserve(gradients_->offsets.size() * detail::kMaxGradients);
    std::size_t scratch = 0;
    for (std::size_t i = 0; i < updates_.size(); ++i) {
      const auto& factors = gradients_->factors[i];
      if (factors == nullptr || factors->own.use != detail::FactorsUse::whole) continue;
      updates_[i].emplace(detail::ThinGemm{factors->own.rows, factors->inputs, factors->outputs},
                          process().size, init.threads());
      scratch = std::max(scratch, updates_[i]->scratch_bytes());
    }
    if (scratch > 0) init.request_scratch(scratch);
  }

  void compute(KernelContext& context) override {
    const auto ranks = gradients_->bucket->memory_of_ranks();
    const detail::UpdateRule<T> rule = this->rule(context);
    ranges_.clear();
    for (std::size_t i = 0; i < updates_.size(); ++i) {
      const int index = static_cast<int>(i);
      detail::UpdatedRange<T> range = this->range(context, index);
      range.gradients[0] = context.input(this->behind_scalars() + index).template data<T>();
      if (!ranks.empty()) range.divisor = static_cast<T>(gradients_->schedule->divisor());
      const auto& factors = gradients_->factors[i];
      if (ranks.empty()) ranges_.push_back(range);
      else if (factors == nullptr || factors->of_ranks.empty()) add_sum(range, ranks, gradients_->offsets[i]);
      else if (factors->own.use == detail::FactorsUse::whole) apply_product(context, rule, range, i);
      else add_parts(range, ranks, gradients_->offsets[i], *factors);
    }
    detail::apply_rule(rule, std::span<const detail::UpdatedRange<T>>(ranges_));
  }

 private:
  using Ranks = std::span<const std::byte* const>;

  void add_sum(detail::UpdatedRange<T> range, Ranks ranks, std::int64_t offset) {
    range.num_gradients = static_cast<int>(ranks.size());
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      range.gradients[rank] = reinterpret_cast<const T*>(ranks[rank] + offset);
    ranges_.push_back(range);
  }

  // Each rank has made a part of the sum.
  void add_parts(const detail::UpdatedRange<T>& whole, Ranks ranks, std::int64_t offset,
                 const detail::SharedFactors& factors) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const detail::Part part(factors.inputs, static_cast<std::int64_t>(rank),
                              static_cast<std::int64_t>(ranks.size()));
      const std::int64_t first = part.first * factors.outputs;
      ranges_.push_back(whole.part(first, part.count * factors.outputs));
      ranges_.back().gradients[0] = reinterpret_cast<const T*>(ranks[rank] + offset) + first;
      ranges_.back().num_gradients = 1;
    }
  }

  void apply_product(KernelContext& context, const detail::UpdateRule<T>& rule,
                     const detail::UpdatedRange<T>& variable, std::size_t i) {
    if constexpr (std::is_same_v<T, float>) {
      std::array<detail::GradientFactors, detail::kMaxGradients> factors;
      const std::size_t ranks = gradients_->factors[i]->of_ranks.size();
      for (std::size_t rank = 0; rank < ranks; ++rank)
        factors[rank] = gradients_->factors[i]->of(static_cast<int>(rank));
      updates_[i]->run(rule, variable, std::span(factors).first(ranks),
                       reinterpret_cast<float*>(context.scratch()));
    }
  }

  const std::shared_ptr<GradientsOfRanks> gradients_;
  std::vector<std::optional<detail::UpdateOfProduct>> updates_;  // of products that are made whole
  std::vector<detail::UpdatedRange<T>> ranges_;
};

const RegisterKernel update_kernel(kUpdateOfRanks, "CPU", {}, KernelFactory([](KernelInit& init) {
                                     auto gradients = init.resource<GradientsOfRanks>();
                                     const DType dtype = init.input_dtype(init.num_inputs() - 1);
                                     std::unique_ptr<Kernel> kernel;
                                     if (dtype == DType::f32)
                                       kernel = std::make_unique<UpdateOfRanksKernel<float>>(gradients, init);
                                     else
                                       kernel =
                                           std::make_unique<UpdateOfRanksKernel<double>>(gradients, init);
                                     return kernel;
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
        bucket_(
            schedule_->buckets()[graph.nodes[reduction].attrs.at(detail::kBucketAttr).get<std::size_t>()]) {
    if (may_be_read()) applies_ = find_updates();
  }

  const std::shared_ptr<Schedule>& schedule() const { return schedule_; }
  bool may_be_read() const { return bucket_.may_be_read(); }

  // Of all gradients for which the ranks meet, whatever this step does with them.
  void share_factors() {
    const Bucket& bucket = bucket_.contents();
    const std::string device = graph_.nodes[reduction_].device;  // a copy: nodes are added
    for (std::size_t k = 0; k < bucket.gradients.size(); ++k) {
      const auto gradient = static_cast<std::size_t>(bucket.gradients[k]);
      FactorsSlot* const factors = schedule_->gradients()[gradient].factors;
      if (factors == nullptr) continue;
      const StepValue own = graph_.nodes[reduction_].inputs[k];
      factors_[bucket.offsets[k]] =
          detail::share_factors(graph_, schedule_, *factors, own.node, applies_, device);
    }
  }

  void apply() {
    if (!applies_) return;
    graph_.nodes[reduction_].attrs.insert_or_assign(detail::kToReadMark, true);
    for (const int update : updates_) {
      StepNode& node = graph_.nodes[update];
      auto gradients = std::make_shared<GradientsOfRanks>();
      gradients->rule = rule_of_update(node);
      gradients->schedule = schedule_;
      gradients->bucket = &bucket_;
      const int count = variables_updated(*gradients->rule, static_cast<int>(node.inputs.size()));
      gradients->schema = schema_of_updates(kUpdateOfRanks, *gradients->rule, count);
      for (auto in = node.inputs.end() - count; in != node.inputs.end(); ++in) {
        gradients->offsets.push_back(static_cast<std::int64_t>(graph_.placements.at(*in).offset));
        const auto shared = factors_.find(gradients->offsets.back());
        gradients->factors.push_back(shared == factors_.end() ? nullptr : shared->second);
      }
      node.schema = gradients->schema.get();
      node.resource = std::move(gradients);
    }
  }

 private:
  // Whether all that read the bucket are updates, which read nothing else as a gradient.
  bool find_updates() {
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

  bool is_reduced(StepValue value) const {
    return value.node >= 0 && graph_.memory_root(value).node == reduction_;
  }

  StepGraph& graph_;
  const int reduction_;
  const std::shared_ptr<Schedule> schedule_;
  const BucketSlot& bucket_;
  bool applies_ = false;
  std::vector<int> updates_;
  std::map<std::int64_t, std::shared_ptr<detail::SharedFactors>> factors_;  // by the gradient's offset
};

// Whatever the step does with the memory: ranks may still be reading it as of the last one.
void wait_for_readers(StepGraph& graph, const std::shared_ptr<Schedule>& schedule,
                      const std::string& device) {
  std::vector<int> writers;
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const auto& [value, placement] : graph.placements) {
    if (!schedule->holds(placement.buffer) ||
        graph.nodes[value.node].schema->name() == detail::kBucketAllReduceOp)
      continue;
    writers.push_back(value.node);
    first = std::min(first, graph.nodes[value.node].order);
  }
  const int writable = graph.add(detail::kBucketsWritableOp, "buckets_writable", {}, {}, first);
  graph.nodes[writable].resource = schedule;
  graph.nodes[writable].device = device;
  for (const int writer : writers) graph.nodes[writer].after.push_back(writable);
}

void read_in_place(StepGraph& graph, PassContext&) {
  std::map<std::shared_ptr<Schedule>, std::string> schedules;  // with the device of their reductions
  const int count = static_cast<int>(graph.nodes.size());      // what is added here are no reductions
  for (int i = 0; i < count; ++i) {
    if (graph.nodes[i].schema->name() != detail::kBucketAllReduceOp) continue;
    Rewrite rewrite(graph, i);
    rewrite.share_factors();
    rewrite.apply();
    if (rewrite.may_be_read()) schedules[rewrite.schedule()] = graph.nodes[i].device;
  }
  for (const auto& [schedule, device] : schedules) {
    wait_for_readers(graph, schedule, device);
    detail::order_by_slots(graph, schedule, device);
  }
}

const RegisterPass read_pass("read_in_place", read_in_place);

}  // namespace
}  // namespace kolo

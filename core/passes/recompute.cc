// A pass: what the backward pass needs of the forward pass is computed anew instead of kept. Contract:
// pipeline.h.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/ops/blocked.h>
#include <kolo/core/ops/training.h>
#include <kolo/core/passes/pipeline.h>
#include <kolo/core/passes/variable_uses.h>

namespace kolo {
namespace {

constexpr double kWorthIt = 0.95;     // of the bytes that the step needed: at most so many must be left
constexpr int kRounds = 4;            // once a peak is gone, another one is the highest
constexpr int kSmallestShare = 1024;  // of the peak: a smaller value is kept
constexpr int kShortestShare = 16;    // of the step's nodes: a value that is read again sooner is kept
constexpr int kExtraShare = 8;        // of the value's bytes: so many may have to be kept longer for it
constexpr int kDeepest = 4;           // nodes in a row, each of which nothing but the next reads at that time
constexpr std::int64_t kImpossible = std::numeric_limits<std::int64_t>::max();

// One pass over memory, from inputs that are there for other reasons.
bool is_cheap(const std::string& op) {
  return op == kBlockedBatchNormOp || op == kBlockedPadOp || op == kToBlockedOp || op == kToRowMajorOp ||
         op == "Pad";
}

class Recomputation {
 public:
  explicit Recomputation(StepGraph& graph)
      : graph_(graph), versions_(graph), skipped_(can_be_skipped(graph)) {
    measure();
  }

  std::int64_t peak_bytes() const { return live_.empty() ? 0 : live_[peak_]; }

  /// Returns how many values are computed anew, for what reads them behind the peak.
  int run() {
    // From the last to the first: what is computed anew may read, too, what is then computed anew before it.
    int count = 0;
    for (int p = peak_ - 1; p >= 0; --p) count += take(order_[p]);
    return count;
  }

 private:
  void measure() {
    order_ = topological_order(graph_);
    position_.resize(order_.size());
    for (std::size_t p = 0; p < order_.size(); ++p) position_[order_[p]] = static_cast<int>(p);
    users_ = graph_.users();
    last_use_.assign(order_.size(), {});
    for (const StepValue fetch : graph_.fetches)
      if (fetch.node >= 0) fetched_.insert(graph_.memory_root(fetch));
    for (const int n : order_) last_use_[n].assign(graph_.nodes[n].dtypes.size(), position_[n]);
    for (const int n : order_)
      for (const StepValue in : graph_.nodes[n].inputs) use(in, n);
    std::vector<std::int64_t> change(order_.size() + 1, 0);
    for (const int n : order_)
      for (int o = 0; o < static_cast<int>(last_use_[n].size()); ++o) {
        const StepValue v{n, o};
        if (!takes_memory(v)) continue;
        change[position_[n]] += bytes(v);
        change[last(v) + 1] -= bytes(v);
      }
    live_.clear();
    std::int64_t now = 0;
    for (std::size_t p = 0; p < order_.size(); ++p) live_.push_back(now += change[p]);
    peak_ = static_cast<int>(std::max_element(live_.begin(), live_.end()) - live_.begin());
  }

  void use(StepValue v, int reader) {
    const StepNode& node = graph_.nodes[reader];
    // Gradients go into the memory of a reduction, or their variable is updated at once.
    if (node.schema->is_expanded_by_pass() || find_update_rule(node.schema->name()) != nullptr) return;
    const StepValue root = graph_.memory_root(v);
    int& last = last_use_[root.node][root.output];
    last = std::max(last, position_[reader]);
  }

  bool takes_memory(StepValue v) const {
    return graph_.is_made_in_given_memory(v) && !graph_.nodes[v.node].schema->is_expanded_by_pass();
  }
  std::int64_t bytes(StepValue v) const {
    return graph_.shape(v).elements() * static_cast<std::int64_t>(size_of(graph_.dtype(v)));
  }
  int last(StepValue v) const {
    return fetched_.count(v) > 0 ? static_cast<int>(order_.size()) - 1 : last_use_[v.node][v.output];
  }

  // Those that read the value behind the peak; none where it is read in another way there, or soon after the
  // others.
  std::vector<int> late_readers(StepValue v) const {
    std::vector<int> late;
    int before = position_[v.node], first = static_cast<int>(order_.size());
    for (const int reader : users_[v.node]) {
      const StepNode& node = graph_.nodes[reader];
      if (std::find(node.inputs.begin(), node.inputs.end(), v) == node.inputs.end()) continue;
      if (graph_.memory_root({reader, 0}) == v) return {};
      const int at = position_[reader];
      if (at <= peak_) {
        before = std::max(before, at);
        continue;
      }
      if (node.device != graph_.nodes[v.node].device) return {};
      first = std::min(first, at);
      if (late.empty() || late.back() != reader) late.push_back(reader);
    }
    if (first - before < static_cast<int>(order_.size()) / kShortestShare) return {};
    return late;
  }

  int take(int n) {
    const StepValue v{n, 0};
    if (!can_be_again(n) || fetched_.count(v) > 0 || !takes_memory(v) ||
        bytes(v) < live_[peak_] / kSmallestShare)
      return 0;
    const std::vector<int> late = late_readers(v);
    if (late.empty()) return 0;
    const int reader = *std::min_element(late.begin(), late.end(),
                                         [&](int a, int b) { return position_[a] < position_[b]; });
    const Place place{graph_.nodes[reader].order - 1, position_[reader]};
    if (extra_bytes(n, place, kDeepest) > bytes(v) / kExtraShare) return 0;
    const int again = add(n, place, kDeepest, last(v));
    for (const int late_reader : late)
      for (StepValue& in : graph_.nodes[late_reader].inputs)
        if (in == v) in = {again, 0};
    std::erase_if(users_[n],
                  [&](int user) { return std::find(late.begin(), late.end(), user) != late.end(); });
    users_[again] = late;
    return 1;
  }

  bool can_be_again(int n) const {
    const StepNode& node = graph_.nodes[n];
    return is_cheap(node.schema->name()) && is_on_cpu(node) && node.control_inputs.empty() && !skipped_[n];
  }

  // What is read to compute output 0 of node `n` anew.
  std::vector<StepValue> inputs_of_again(int n) const {
    std::vector<StepValue> inputs = graph_.nodes[n].inputs;
    if (graph_.nodes[n].schema->name() == kBlockedBatchNormOp) inputs[3] = {n, 1}, inputs[4] = {n, 2};
    return inputs;
  }

  struct Place {
    std::int64_t order;
    int position;
  };
  bool is_gone(StepValue v, const Place& place) const {
    const StepValue root = graph_.memory_root(v);
    return takes_memory(root) && last(root) < place.position;
  }
  // Whether an input of what is computed anew is itself computed anew for it, and no more than `depth` in a
  // row.
  bool is_added_with_it(StepValue in, const Place& place, int depth) const {
    return depth > 1 && is_gone(in, place) && in.output == 0 && can_be_again(in.node);
  }

  // What would have to be kept longer in order to compute node `n` there; kImpossible where inputs do not
  // have the values that `n` has read.
  std::int64_t extra_bytes(int n, const Place& place, int depth) const {
    std::int64_t extra = 0;
    for (const StepValue in : inputs_of_again(n)) {
      if (versions_.seen_by(graph_, in, graph_.nodes[n].order) != versions_.seen_by(graph_, in, place.order))
        return kImpossible;
      if (is_added_with_it(in, place, depth)) {
        const std::int64_t of_input = extra_bytes(in.node, before(place), depth - 1);
        if (of_input == kImpossible) return kImpossible;
        extra += of_input;
      } else if (is_gone(in, place)) {
        extra += bytes(graph_.memory_root(in));
      }
    }
    return extra;
  }
  static Place before(const Place& place) { return {place.order - 1, place.position}; }

  // Returns the node that computes output 0 of node `n` anew, to be read until `last_use`.
  int add(int n, const Place& place, int depth, int last_use) {
    std::vector<StepValue> inputs = inputs_of_again(n);
    for (StepValue& in : inputs)
      if (is_added_with_it(in, place, depth))
        in = {add(in.node, before(place), depth - 1, place.position), 0};
    const bool is_norm = graph_.nodes[n].schema->name() == kBlockedBatchNormOp;
    AttrMap attrs = graph_.nodes[n].attrs;
    if (is_norm) attrs.erase("momentum");
    const std::string op = is_norm ? kBlockedBatchNormInferenceOp : graph_.nodes[n].schema->name();
    const int again = graph_.add(op, graph_.nodes[n].name + "/again", inputs, std::move(attrs), place.order);
    graph_.nodes[again].device = graph_.nodes[n].device;
    position_.push_back(place.position);
    users_.emplace_back();
    skipped_.push_back(false);
    last_use_.push_back({last_use});
    for (const StepValue in : inputs) {
      users_[in.node].push_back(again);
      use(in, again);
    }
    return again;
  }

  StepGraph& graph_;
  const VariableVersions versions_;
  std::vector<bool> skipped_;
  std::vector<int> order_;
  std::vector<int> position_;               // by node; of one that is added, that of its first reader
  std::vector<std::vector<int>> users_;     // by node
  std::vector<std::vector<int>> last_use_;  // by node and output: a position
  std::set<StepValue> fetched_;
  std::vector<std::int64_t> live_;  // bytes, by position
  int peak_ = 0;
};

}  // namespace

void recompute(StepGraph& graph, int) {
  for (int round = 0; round < kRounds; ++round) {
    StepGraph changed = graph;
    Recomputation recomputation(changed);
    const std::int64_t before = recomputation.peak_bytes();
    if (before < kSmallestRecomputedStep || recomputation.run() == 0) return;
    if (static_cast<double>(Recomputation(changed).peak_bytes()) > kWorthIt * static_cast<double>(before))
      return;
    graph = std::move(changed);
  }
}

}  // namespace kolo

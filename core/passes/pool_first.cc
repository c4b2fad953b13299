// A pass: max pooling goes before the bias and the rectifier that it follows, forward and backward. Contract:
// pipeline.h.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/ops/blocked.h>
#include <kolo/core/passes/pipeline.h>
#include <kolo/core/passes/variable_uses.h>

namespace kolo {
namespace {

class PoolFirst {
 public:
  explicit PoolFirst(StepGraph& graph)
      : graph_(graph),
        versions_(graph),
        users_(graph.users()),
        waited_for_(nodes_waited_for(graph)),
        fetched_(graph.fetches.begin(), graph.fetches.end()) {}

  void run() {
    for (const int n : topological_order(graph_))
      if (op(n) == kBlockedMaxPoolOp && graph_.nodes[n].attrs.at("block").get<std::int64_t>() > 0)
        go_first(n);
  }

 private:
  // The gradient of the pooling, and that of the rectifier which reads it.
  struct Gradient {
    int of_pool;
    int of_relu;
  };

  StepNode& node(int n) { return graph_.nodes[n]; }
  const std::string& op(int n) const { return graph_.nodes[n].schema->name(); }

  // Node `n` can be moved: nobody waits for it, it waits for nothing but its inputs, and it is where the
  // pooling is.
  bool can_move(int n, int pool) const {
    return waited_for_.count(n) == 0 && graph_.nodes[n].control_inputs.empty() &&
           graph_.nodes[n].after.empty() && graph_.nodes[n].device == graph_.nodes[pool].device;
  }
  bool only_reader_is(StepValue v, int reader) const {
    return fetched_.count(v) == 0 && std::all_of(users_[v.node].begin(), users_[v.node].end(),
                                                 [&](int user) { return user == reader; });
  }

  void go_first(int pool) {
    const int relu = node(pool).inputs[0].node;
    if (op(relu) != "Relu" || !can_move(relu, pool) || !can_move(pool, pool)) return;
    const Shape &images = graph_.shape({relu, 0}), &results = graph_.shape({pool, 0});
    if (!images.is_fully_known() || !results.is_fully_known() || results.elements() >= images.elements())
      return;
    int bias = node(relu).inputs[0].node;
    if (op(bias) == kBlockedBiasAddOp) {
      const StepValue added = node(bias).inputs[1];
      if (!can_move(bias, pool) || !only_reader_is({bias, 0}, relu) ||
          versions_.seen_by(graph_, added, node(bias).order) !=
              versions_.seen_by(graph_, added, node(relu).order))
        return;
    } else {
      // Normalization takes the rectifier into its own pass over memory: there it costs nothing.
      if (op(bias) == kBlockedBatchNormOp || op(bias) == kBlockedBatchNormInferenceOp) return;
      bias = -1;
    }
    std::vector<Gradient> gradients;
    if (!find_gradients(pool, relu, gradients)) return;
    for (const Gradient& gradient : gradients) swap_gradients(gradient);
    swap(pool, bias, relu);
    for (const Gradient& gradient : gradients) infer_outputs(graph_, gradient.of_relu);
    users_ = graph_.users();
  }

  // False if something else reads the rectified images, which then must be there.
  bool find_gradients(int pool, int relu, std::vector<Gradient>& gradients) const {
    const StepValue rectified{relu, 0}, cells{pool, 1};
    if (fetched_.count(rectified) > 0) return false;
    return std::all_of(users_[relu].begin(), users_[relu].end(), [&](int user) {
      if (user == pool) return true;
      const auto& inputs = graph_.nodes[user].inputs;
      if (op(user) != "ReluGrad" || inputs[0] == rectified) return false;
      const Gradient gradient{inputs[0].node, user};
      if (op(gradient.of_pool) != kBlockedMaxPoolGradOp ||
          graph_.nodes[gradient.of_pool].inputs[0] != cells || !only_reader_is(inputs[0], user) ||
          !can_move(gradient.of_pool, pool) || !can_move(user, pool))
        return false;
      gradients.push_back(gradient);
      return true;
    });
  }

  // dy → pooling's → rectifier's gradient becomes dy → rectifier's → pooling's. The bias's gradient, a sum
  // over all of an image, sums what is not 0 alone.
  void swap_gradients(const Gradient& gradient) {
    StepNode &of_pool = node(gradient.of_pool), &of_relu = node(gradient.of_relu);
    const StepValue masked{gradient.of_relu, 0}, scattered{gradient.of_pool, 0};
    of_relu.inputs[0] = of_pool.inputs[1];
    of_pool.inputs[1] = masked;
    std::swap(of_relu.order, of_pool.order);
    for (const int user : users_[gradient.of_relu])
      if (op(user) != kBlockedBiasAddGradOp)
        std::replace(node(user).inputs.begin(), node(user).inputs.end(), masked, scattered);
    std::replace(graph_.fetches.begin(), graph_.fetches.end(), masked, scattered);
    if (fetched_.count(masked) > 0) fetched_.insert(scattered);
  }

  // images → bias → relu → pool becomes images → pool → bias → relu.
  void swap(int pool, int bias, int relu) {
    const StepValue pooled{pool, 0}, rectified{relu, 0};
    const int first = bias >= 0 ? bias : relu;
    const StepValue images = node(first).inputs[0];
    node(pool).inputs[0] = images;
    graph_.replace_uses(pooled, rectified);
    node(first).inputs[0] = pooled;
    if (fetched_.count(pooled) > 0) fetched_.insert(rectified);
    std::swap(node(pool).order, node(first).order);
    if (bias >= 0) std::swap(node(bias).order, node(relu).order);
    for (const int n : {bias, relu})
      if (n >= 0) infer_outputs(graph_, n);
  }

  StepGraph& graph_;
  const VariableVersions versions_;
  std::vector<std::vector<int>> users_;
  const std::set<int> waited_for_;
  std::set<StepValue> fetched_;
};

}  // namespace

void pool_first(StepGraph& graph, int) { PoolFirst(graph).run(); }

}  // namespace kolo

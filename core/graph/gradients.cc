#include <kolo/core/graph/gradients.h>

#include <map>
#include <set>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/reached.h>

namespace kolo {
namespace {

using NodeSet = std::set<const Node*>;

// Nodes on some path from an x to a y: only those are differentiated.
NodeSet nodes_between(const Outputs& xs, const Outputs& ys) {
  // Ids are a topological order, so one sweep forward finds what is reached from the xs.
  NodeSet reached;
  NodeSet starts;
  for (const Output& x : xs) starts.insert(x.node);
  for (const auto& [id, node] : detail::ancestors_of(ys)) {
    bool from_x = starts.count(node) > 0;
    for (const Output& in : node->inputs()) from_x |= reached.count(in.node) > 0;
    if (from_x) reached.insert(node);
  }
  return reached;
}

class Backward {
 public:
  Backward(Scope& scope, const Outputs& ys, const Outputs& xs, const GradientsOptions& options)
      : scope_(scope.name_scope("gradients")),
        between_(nodes_between(xs, ys)),
        colocate_(options.colocate_with_ops) {
    for (const Output& stop : options.stop_gradients) stops_.insert({stop.node, stop.index});
  }

  void seed(const Output& y, Output grad_y) {
    if (!grad_y) grad_y = scope_.add("OnesLike", {y});
    add_partial(y, grad_y);
  }

  // From the newest node back: when a node's turn comes, all its consumers have given their partial
  // gradients.
  void run() {
    while (!pending_.empty()) {
      const auto newest = std::prev(pending_.end());
      const Node* node = newest->second;
      pending_.erase(newest);
      differentiate(*node);
    }
  }

  Output zeros_of(const Output& x) { return scope_.add("ZerosLike", {x}); }

  // Empty where nothing has flowed back.
  Output total(const Output& of) {
    const auto found = partials_.find({of.node, of.index});
    if (found == partials_.end()) return {};
    Outputs& parts = found->second;
    if (parts.size() > 1) {
      const Scope scope = scope_.in_branch(of.node->branch());
      parts = {sum(colocate_ ? scope.colocate_with(of.node) : scope, parts)};
    }
    return parts[0];
  }

 private:
  using Key = std::pair<const Node*, int>;

  static Output sum(const Scope& scope, const Outputs& parts) {
    std::vector<IndexedSlices> slices;
    for (const Output& part : parts)
      if (const auto one = indexed_slices(part)) slices.push_back(*one);
    if (slices.size() < parts.size()) return scope.add("AddN", parts);
    bool alike = true;
    for (const IndexedSlices& one : slices) alike &= one.indices.dtype() == slices[0].indices.dtype();
    Outputs values, indices;
    for (const IndexedSlices& one : slices) {
      values.push_back(one.values);
      indices.push_back(alike ? one.indices
                              : Output(scope.add("Cast", {one.indices}, {{"dtype", DType::i64}})));
    }
    return to_dense(scope, {.values = scope.add("Concat", values, {{"axis", 0}}),
                            .indices = scope.add("Concat", indices, {{"axis", 0}}),
                            .dense_shape = slices[0].dense_shape,
                            .like = slices[0].like});
  }

  static int depth(const Node* branch) {
    int depth = 0;
    for (; branch != nullptr; branch = branch->branch()) ++depth;
    return depth;
  }

  // What flows out of a branch is zeros where the branch was not taken, and what flows into one is skipped
  // there.
  Output between_branches(Output gradient, const Node* from, const Node* to, const Output& of) {
    if (depth(to) > depth(from)) return scope_.in_branch(to).add("Identity", {gradient});
    for (; depth(from) > depth(to); from = from->branch())
      gradient = scope_.in_branch(from->branch()).add("TakenOrZeros", {gradient, of});
    return gradient;
  }

  void add_partial(const Output& of, const Output& gradient) {
    if (!is_floating(of.dtype())) return;
    partials_[{of.node, of.index}].push_back(gradient);
    if (between_.count(of.node) > 0) pending_[of.node->id()] = of.node;
  }

  void differentiate(const Node& node) {
    const OpSchema& schema = node.schema();
    if (node.num_inputs() == 0) return;
    bool on_path = false;
    for (const Output& in : node.inputs()) on_path |= between_.count(in.node) > 0;
    if (!on_path) return;
    Outputs dy;
    bool flows = false;
    for (int i = 0; i < node.num_outputs(); ++i) {
      dy.push_back(stops_.count({&node, i}) > 0 ? Output() : total({&node, i}));
      flows |= bool(dy.back());
    }
    if (!flows) return;
    if (!schema.has_gradient())
      throw NotFoundError(
          "No gradient defined for operation '{}' (op type: {}); a schema with no_gradient() stops the "
          "gradient there",
          node.name(), node.op());
    if (!schema.gradient_function()) return;
    if (schema.differentiates_output_0_only() && !dy[0]) return;
    Scope scope = scope_.in_branch(node.branch()).name_scope(node.name() + "_grad");
    if (colocate_) scope = scope.colocate_with(&node);
    const Outputs dx = schema.gradient_function()(scope, node, dy);
    if (dx.size() != node.inputs().size())
      throw InternalError("the gradient of op {} gives {} tensors for {} inputs", node.op(), dx.size(),
                          node.num_inputs());
    for (std::size_t i = 0; i < dx.size(); ++i) {
      const Output& in = node.inputs()[i];
      if (dx[i] && is_floating(in.dtype()) &&
          (dx[i].dtype() != in.dtype() || !dx[i].shape().is_compatible_with(in.shape())))
        throw InternalError(
            "the gradient of op {} for its input {} is {} {}, but the input is {} {}; both must be alike",
            node.op(), i, dx[i].dtype(), dx[i].shape(), in.dtype(), in.shape());
      if (dx[i] && between_.count(in.node) > 0)
        add_partial(in, between_branches(dx[i], node.branch(), in.node->branch(), in));
    }
  }

  Scope scope_;
  NodeSet between_;
  std::set<Key> stops_;
  bool colocate_;
  std::map<Key, Outputs> partials_;
  std::map<int, const Node*> pending_;  // by id
};

// Before the first node is made, so that a refused call leaves the graph as it was.
void check_arguments(const Outputs& ys, const Outputs& xs, const Outputs& grad_ys, const Outputs& stops) {
  if (!grad_ys.empty() && grad_ys.size() != ys.size())
    throw InvalidArgumentError("gradients: {} grad_ys for {} ys; give one for each, or none", grad_ys.size(),
                               ys.size());
  for (const Output& x : xs)
    if (!x) throw InvalidArgumentError("gradients: one of the {} xs is empty", xs.size());
  for (const Output& stop : stops)
    if (!stop) throw InvalidArgumentError("gradients: one of the {} stop_gradients is empty", stops.size());
  for (std::size_t i = 0; i < ys.size(); ++i) {
    const Output& y = ys[i];
    if (!y) throw InvalidArgumentError("gradients: one of the {} ys is empty", ys.size());
    if (!is_floating(y.dtype()))
      throw InvalidArgumentError("gradients: {} is {}; only floating point tensors can be differentiated",
                                 y.name(), y.dtype());
    if (grad_ys.empty() || !grad_ys[i]) continue;
    const Output& grad_y = grad_ys[i];
    if (grad_y.dtype() != y.dtype() || !grad_y.shape().is_compatible_with(y.shape()))
      throw InvalidArgumentError("gradients: {} is {} {}, but the gradient given for it, {}, is {} {}",
                                 y.name(), y.dtype(), y.shape(), grad_y.name(), grad_y.dtype(),
                                 grad_y.shape());
  }
}

}  // namespace

Outputs gradients(Scope& s, const Outputs& ys, const Outputs& xs, const Outputs& grad_ys,
                  const GradientsOptions& options) {
  check_arguments(ys, xs, grad_ys, options.stop_gradients);
  Backward backward(s, ys, xs, options);
  for (std::size_t i = 0; i < ys.size(); ++i) backward.seed(ys[i], grad_ys.empty() ? Output() : grad_ys[i]);
  backward.run();
  Outputs results;
  for (const Output& x : xs) {
    results.push_back(backward.total(x));
    if (!results.back() && options.zeros_where_unreached) results.back() = backward.zeros_of(x);
  }
  return results;
}

}  // namespace kolo

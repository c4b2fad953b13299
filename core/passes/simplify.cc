// A pass: arithmetic that gives its input back, bit for bit. Contract: pipeline.h.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/passes/pipeline.h>
#include <kolo/core/passes/variable_uses.h>

namespace kolo {
namespace {

using Permutation = std::vector<std::int64_t>;

// Larger constants are not looked through.
constexpr std::int64_t kMostElements = 1024;

template <typename T>
bool all_are(const Tensor& tensor, double wanted) {
  const auto elements = tensor.span<T>();
  return std::all_of(elements.begin(), elements.end(), [&](T element) {
    const auto value = static_cast<double>(element);
    return value == wanted && (!std::is_floating_point_v<T> || std::signbit(value) == std::signbit(wanted));
  });
}

// True if every element is `wanted`, a small whole number with its sign: −0 is not 0 except as an integer.
bool is_constant(const StepNode& node, double wanted) {
  if (node.schema->name() == "Fill") {
    const double value = node.attrs.at("value").get<double>();
    return value == wanted && (!is_floating(node.dtypes[0]) || std::signbit(value) == std::signbit(wanted));
  }
  if (node.schema->name() != "Const") return false;
  const auto& value = std::get<Tensor>(node.attrs.at("value").value());
  if (value.elements() > kMostElements) return false;
  switch (value.dtype()) {
    case DType::f32: return all_are<float>(value, wanted);
    case DType::f64: return all_are<double>(value, wanted);
    case DType::i32: return all_are<std::int32_t>(value, wanted);
    case DType::i64: return all_are<std::int64_t>(value, wanted);
    default: return false;
  }
}

bool is_reshape(const StepNode& node) {
  static const std::set<std::string> ops = {"Reshape", "ReshapeLike", "ExpandDims", "Squeeze"};
  return ops.count(node.schema->name()) > 0 && node.shapes[0].is_fully_known();
}

class Simplifier {
 public:
  explicit Simplifier(StepGraph& graph) : graph_(graph), versions_(graph), replaced_(graph.nodes.size()) {}

  void run() {
    for (const int n : topological_order(graph_)) {
      for (StepValue& in : graph_.nodes[n].inputs) in = replacement(in);
      visit(n);
    }
  }

 private:
  StepValue replacement(StepValue value) const {
    const StepValue by = replaced_[value.node];
    return value.output == 0 && by.node >= 0 ? by : value;
  }

  const StepNode& producer(StepValue value) const { return graph_.nodes[value.node]; }
  const std::string& op(StepValue value) const { return producer(value).schema->name(); }

  void visit(int n) {
    const StepNode& node = graph_.nodes[n];
    const std::string& name = node.schema->name();
    if (gives_its_input(node)) read_instead(n, node.inputs[0]);
    else if (name == "Neg" && op(node.inputs[0]) == "Neg" && producer(node.inputs[0]).control_inputs.empty())
      read_instead(n, producer(node.inputs[0]).inputs[0]);
    else if (name == "Transpose") transpose(n);
    else if (is_reshape(node)) reshape(n);
    else if (node.inputs.size() == 2 && node.dtypes.size() == 1) binary(n);
  }

  bool gives_its_input(const StepNode& node) const {
    const std::string& name = node.schema->name();
    if (name == "AddN") return node.inputs.size() == 1;
    if (name == "SumLike") return node.shapes[0].is_fully_known();
    if (name == "Cast") return node.dtypes[0] == graph_.dtype(node.inputs[0]);
    if (name == "Relu" || name == "Abs" || name == "Floor") return op(node.inputs[0]) == name;
    // The read of a variable stays: it is what finds that the variable has no value, whoever reads it in
    // turn.
    return (name == "Identity" || name == "StopGradient") &&
           !producer(node.inputs[0]).schema->is_variable_storage();
  }

  void binary(int n) {
    const StepNode& node = graph_.nodes[n];
    const std::string& name = node.schema->name();
    const StepValue a = node.inputs[0], b = node.inputs[1];
    const auto is = [&](StepValue value, double wanted) { return is_constant(producer(value), wanted); };
    // x + −0 is x for every x, x + 0 is not: −0 + 0 is 0. x − 0 is again.
    const double neutral = is_floating(node.dtypes[0]) ? -0.0 : 0.0;
    const bool gives_a = ((name == "Mul" || name == "Div") && is(b, 1)) || (name == "Sub" && is(b, 0)) ||
                         (name == "Add" && is(b, neutral));
    const bool gives_b = (name == "Mul" && is(a, 1)) || (name == "Add" && is(a, neutral));
    if (gives_a || gives_b) read_instead(n, gives_a ? a : b);
  }

  void transpose(int n) {
    StepNode& node = graph_.nodes[n];
    auto perm = node.attrs.at("perm").get<Permutation>();
    const StepNode& inner = producer(node.inputs[0]);
    if (op(node.inputs[0]) == "Transpose" && may_read(node, inner, inner.inputs[0])) {
      const auto inner_perm = inner.attrs.at("perm").get<Permutation>();
      for (std::int64_t& axis : perm) axis = inner_perm.at(static_cast<std::size_t>(axis));
      node.attrs.insert_or_assign("perm", perm);
      node.inputs[0] = inner.inputs[0];
    }
    Permutation unchanged(perm.size());
    std::iota(unchanged.begin(), unchanged.end(), 0);
    if (perm == unchanged) read_instead(n, node.inputs[0]);
  }

  // Shapes are known: a reshape needs neither what it was like nor what was reshaped before.
  void reshape(int n) {
    StepNode& node = graph_.nodes[n];
    StepValue source = node.inputs[0];
    if (is_reshape(producer(source)) && producer(source).control_inputs.empty())
      source = producer(source).inputs[0];
    node.schema = &find_op("Reshape");
    node.attrs = {{"shape", node.shapes[0]}};
    node.inputs = {source};
    if (graph_.shape(source) == node.shapes[0]) read_instead(n, source);
  }

  // True if `node` may read `value` itself instead of through `between`, which read it before.
  bool may_read(const StepNode& node, const StepNode& between, StepValue value) const {
    return between.control_inputs.empty() &&
           versions_.seen_by(graph_, value, between.order) == versions_.seen_by(graph_, value, node.order);
  }

  // Readers of the node's value read `value`, which is the same, from now on. Fetches stay: when a fetched
  // variable is read follows from the node that is fetched.
  void read_instead(int n, StepValue value) {
    const StepNode& node = graph_.nodes[n];
    const bool same_type = graph_.dtype(value) == node.dtypes[0] && graph_.shape(value) == node.shapes[0];
    if (!same_type || !node.control_inputs.empty()) return;
    // What is computed from a variable keeps its value when the variable changes; a view of it does not.
    if (!node.schema->is_view() && versions_.changes(graph_, value)) return;
    replaced_[n] = value;
  }

  StepGraph& graph_;
  const VariableVersions versions_;
  std::vector<StepValue> replaced_;  // by node, what readers of its output 0 read instead; node −1: nothing
};

}  // namespace

void simplify(StepGraph& graph, int) { Simplifier(graph).run(); }

}  // namespace kolo

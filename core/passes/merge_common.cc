// A pass: equal nodes become one. Contract: pipeline.h.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include <kolo/core/base/crc32c.h>
#include <kolo/core/passes/pipeline.h>
#include <kolo/core/passes/variable_uses.h>

namespace kolo {
namespace {

// Larger constants are the same only if they share their memory.
constexpr std::size_t kComparedBytes = 4096;

void mix(std::size_t& hash, std::size_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15u + (hash >> 29); }

bool is_small(const Tensor& tensor) {
  return tensor.dtype() == DType::string || tensor.bytes() <= kComparedBytes;
}

std::size_t hash_of(const AttrValue& value) {
  struct {
    std::size_t operator()(bool v) const { return v; }
    std::size_t operator()(std::int64_t v) const { return static_cast<std::size_t>(v); }
    std::size_t operator()(double v) const { return std::bit_cast<std::uint64_t>(v); }
    std::size_t operator()(const std::string& v) const { return std::hash<std::string>()(v); }
    std::size_t operator()(DType v) const { return static_cast<std::size_t>(v); }
    std::size_t operator()(const Shape& v) const { return (*this)(v.dims()); }
    std::size_t operator()(const Tensor& v) const {
      std::size_t hash = (*this)(v.shape());
      if (v.dtype() != DType::string && is_small(v)) mix(hash, crc32c(v.raw(), v.bytes()));
      return hash;
    }
    std::size_t operator()(const std::vector<std::int64_t>& v) const {
      std::size_t hash = v.size();
      for (const std::int64_t number : v) mix(hash, static_cast<std::size_t>(number));
      return hash;
    }
    std::size_t operator()(const std::vector<std::string>& v) const {
      std::size_t hash = v.size();
      for (const std::string& text : v) mix(hash, (*this)(text));
      return hash;
    }
  } const visitor;
  return std::visit(visitor, value.value());
}

// 0 and −0 are equal numbers, but not equal constants.
bool same_bits(const AttrValue& a, const AttrValue& b) {
  const auto *x = std::get_if<double>(&a.value()), *y = std::get_if<double>(&b.value());
  if (x != nullptr && y != nullptr)
    return std::bit_cast<std::uint64_t>(*x) == std::bit_cast<std::uint64_t>(*y);
  const auto *t = std::get_if<Tensor>(&a.value()), *u = std::get_if<Tensor>(&b.value());
  if (t != nullptr && u != nullptr && !(is_small(*t) && is_small(*u)))
    return t->raw() == u->raw() && t->dtype() == u->dtype() && t->shape() == u->shape();
  return a == b;
}

// What makes a node's values: equal keys, equal values.
struct NodeKey {
  const StepNode* node = nullptr;
  std::vector<StepValue> inputs;
  std::vector<int> control_inputs;  // ascending
  std::vector<int> versions;        // of the inputs that are variables

  std::size_t hash() const {
    std::size_t hash = std::hash<const void*>()(node->schema);
    for (const StepValue in : inputs)
      mix(hash, static_cast<std::size_t>(in.node) * 64 + static_cast<std::size_t>(in.output));
    for (const int before : control_inputs) mix(hash, static_cast<std::size_t>(before));
    for (const auto& [name, value] : node->attrs) mix(hash, hash_of(value));
    return hash;
  }
  bool operator==(const NodeKey& other) const {
    return node->schema == other.node->schema && node->device == other.node->device &&
           inputs == other.inputs && control_inputs == other.control_inputs && versions == other.versions &&
           std::equal(node->attrs.begin(), node->attrs.end(), other.node->attrs.begin(),
                      other.node->attrs.end(), [](const auto& a, const auto& b) {
                        return a.first == b.first && same_bits(a.second, b.second);
                      });
  }
};

}  // namespace

void merge_common(StepGraph& graph, int) {
  const VariableVersions versions(graph);
  std::vector<int> merged(graph.nodes.size());  // into which node; itself where it stays
  std::unordered_map<std::size_t, std::vector<NodeKey>> seen;
  // In topological order inputs are merged before their readers; of equal nodes the first created stays.
  for (const int n : topological_order(graph)) {
    merged[n] = n;
    StepNode& node = graph.nodes[n];
    for (StepValue& in : node.inputs) in.node = merged[in.node];
    for (int& before : node.control_inputs) before = merged[before];
    std::sort(node.control_inputs.begin(), node.control_inputs.end());
    node.control_inputs.erase(std::unique(node.control_inputs.begin(), node.control_inputs.end()),
                              node.control_inputs.end());
    if (node.schema->is_stateful() || node.resource || node.dtypes.empty()) continue;
    NodeKey key{.node = &node, .inputs = node.inputs, .control_inputs = node.control_inputs, .versions = {}};
    for (const StepValue in : node.inputs) key.versions.push_back(versions.seen_by(graph, in, node.order));
    auto& candidates = seen[key.hash()];
    const auto found = std::find(candidates.begin(), candidates.end(), key);
    if (found == candidates.end()) candidates.push_back(std::move(key));
    else merged[n] = static_cast<int>(found->node - graph.nodes.data());
  }
  for (StepValue& fetch : graph.fetches)
    if (fetch.node >= 0) fetch.node = merged[fetch.node];
}

}  // namespace kolo

#include <kolo/core/passes/pipeline.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/registry.h>
#include <kolo/core/base/text.h>
#include <kolo/core/device/device_set.h>
#include <kolo/core/kernels/cpu/onednn/native_bf16.h>
#include <kolo/core/kernels/transfer.h>
#include <kolo/core/passes/fences.h>
#include <kolo/core/passes/transfer.h>
#include <kolo/core/passes/update_guards.h>

namespace kolo {
namespace {

// Whatever a kept node names is kept as well, so that only numbers change.
void drop_unneeded(StepGraph& graph) {
  std::vector<int> stack = graph.ends;
  for (const StepValue fetch : graph.fetches)
    if (fetch.node >= 0) stack.push_back(fetch.node);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].schema->is_stateful()) stack.push_back(static_cast<int>(i));
  std::vector<bool> needed(graph.nodes.size(), false);
  while (!stack.empty()) {
    const int n = stack.back();
    stack.pop_back();
    if (needed[n]) continue;
    needed[n] = true;
    for (const StepValue in : graph.nodes[n].inputs) stack.push_back(in.node);
    for (const int before : graph.nodes[n].control_inputs) stack.push_back(before);
  }
  graph.compact(needed);
}

// Nodes that passes have made of nothing go to the host; each copy learns of the two devices that it joins.
void join_devices(StepGraph& graph, const DeviceSet& devices) {
  const std::string host = host_of(graph, devices);
  for (StepNode& node : graph.nodes)
    if (node.device.empty()) node.device = host;
  insert_transfers(graph, host);
  for (StepNode& node : graph.nodes)
    if (node.schema->name() == kRecvOp)
      node.resource = std::make_shared<TransferEnds>(TransferEnds{
          devices.find(node.attrs.at("send_device").get<std::string>()), devices.find(node.device)});
}

enum class PassKind {
  always,
  optional,  // makes a step faster or smaller, no more: graph_options may disable it
  tidy,      // drops what those leave behind
  place,     // kept for a pass that another part of kolo registers; empty without it
};

struct Entry {
  const char* name;
  PassKind kind;
  Pass run = nullptr;
};

template <void (*kPass)(StepGraph& graph, int threads)>
void on_threads(StepGraph& graph, PassContext& context) {
  kPass(graph, context.intra_op_threads());
}

// Behind these come loops' plans, kernels and memory (runtime/compile.cc), which change no node.
constexpr Entry kPipeline[] = {
    {"place", PassKind::always, [](StepGraph& graph, PassContext& context) { context.place(graph); }},
    // From here on it does not matter through which views a node reads a variable.
    {"keep_read_values", PassKind::always, [](StepGraph& graph, PassContext&) { keep_read_values(graph); }},
    {"lower_precision", PassKind::always,
     [](StepGraph& graph, PassContext& context) {
       lower_precision(graph, context.graph_options().precision);
     }},
    // Constants show what can be simplified, what is simplified is equal more often, what is left gets an
    // order of elements, and where that is the same it is fused.
    {"fold_constants", PassKind::optional, on_threads<fold_constants>},
    {"simplify", PassKind::optional, on_threads<simplify>},
    {"merge_common", PassKind::optional, on_threads<merge_common>},
    // Or values would be reordered for readers that fell away, and not be fused with the one that is left.
    {"drop_simplified", PassKind::tidy, [](StepGraph& graph, PassContext&) { drop_unneeded(graph); }},
    {"fuse_losses", PassKind::optional, on_threads<fuse_losses>},
    {"add_rows", PassKind::optional, on_threads<add_rows>},
    {"layout", PassKind::optional, on_threads<layout>},
    {"pool_first", PassKind::optional, on_threads<pool_first>},
    // Before normalization takes the masks that convolutions do not.
    {"fuse_gradient_sums", PassKind::optional, on_threads<fuse_gradient_sums>},
    {"fuse_norms", PassKind::optional, on_threads<fuse_norms>},
    {"narrow_images", PassKind::optional, on_threads<narrow_images>},
    {"fuse_elementwise", PassKind::optional, on_threads<fuse_elementwise>},
    {"recompute", PassKind::optional, on_threads<recompute>},
    {"drop_unneeded", PassKind::tidy,
     [](StepGraph& graph, PassContext&) {
       drop_unneeded(graph);
       graph.ends.clear();  // later passes take nodes apart
     }},
    // A plain session compares at the first run that reaches a schedule; where it was done before, this costs
    // nothing.
    {"compare_ranks", PassKind::always,
     [](StepGraph& graph, PassContext& context) { context.compare_ranks(graph); }},
    {"bucket", PassKind::place},  // collectives: gradients into buckets
    // Updates whose gradients lie in one bucket are fused with one another alone: only now it is known.
    {"fuse_updates", PassKind::always, [](StepGraph& graph, PassContext&) { fuse_updates(graph); }},
    {"apply_products", PassKind::always, [](StepGraph& graph, PassContext&) { apply_products(graph); }},
    {"gather_shards", PassKind::place},  // collectives: behind the updates of a bucket's shards
    // What reads a variable for another device is the transfer: it is there before updates are ordered.
    {"insert_transfers", PassKind::always,
     [](StepGraph& graph, PassContext& context) { join_devices(graph, context.devices()); }},
    // collectives: updates read the gradients of all ranks of a node. What writes them is known now, and
    // waits.
    {"read_in_place", PassKind::place},
    {"order_updates", PassKind::always, [](StepGraph& graph, PassContext&) { order_updates(graph); }},
    {"guard_updates", PassKind::always, [](StepGraph& graph, PassContext&) { guard_updates(graph); }},
    {"update_early", PassKind::always, [](StepGraph& graph, PassContext&) { update_early(graph); }},
    {"insert_fences", PassKind::always,
     [](StepGraph& graph, PassContext& context) { insert_fences(graph, context.devices()); }},
};

Registry<Pass>& registry() {
  static Registry<Pass> passes("pass");
  return passes;
}

bool is_on(const Entry& entry, const GraphOptions& options) {
  if (entry.kind != PassKind::optional) return true;
  const auto& disabled = options.disabled_passes;
  return options.optimizer_level != OptimizerLevel::l0 &&
         std::find(disabled.begin(), disabled.end(), entry.name) == disabled.end();
}

}  // namespace

RegisterPass::RegisterPass(const std::string& place, Pass pass, SourceLine from) {
  const bool known = std::any_of(std::begin(kPipeline), std::end(kPipeline), [&](const Entry& entry) {
    return entry.kind == PassKind::place && entry.name == place;
  });
  if (!known)
    throw InternalError("the list of passes keeps no place \"{}\" for others; see core/passes/pipeline.cc",
                        place);
  registry().add(place, pass, from);
}

void rewrite_step(StepGraph& graph, PassContext& context) {
  const GraphOptions options = context.graph_options();
  for (const Entry& entry : kPipeline) {
    if (!is_on(entry, options)) continue;
    const Pass* const others = entry.kind == PassKind::place ? registry().find(entry.name) : nullptr;
    if (others != nullptr) (*others)(graph, context);
    else if (entry.run != nullptr) entry.run(graph, context);
  }
}

void run_graph_passes(StepGraph& graph, PassContext& context) {
  const GraphOptions options = context.graph_options();
  for (const Entry& entry : kPipeline)
    if ((entry.kind == PassKind::optional && is_on(entry, options)) || entry.kind == PassKind::tidy)
      entry.run(graph, context);
}

std::vector<std::string> graph_pass_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kPipeline)
    if (entry.kind == PassKind::optional) names.push_back(entry.name);
  return names;
}

void check_graph_options(const GraphOptions& options) {
  if (options.precision == Precision::bf16) detail::check_native_bf16();
  const auto names = graph_pass_names();
  for (const std::string& disabled : options.disabled_passes) {
    if (std::find(names.begin(), names.end(), disabled) != names.end()) continue;
    std::string known;
    for (const auto& name : names) known += (known.empty() ? "" : ", ") + name;
    throw InvalidArgumentError("graph_options.disabled_passes: there is no pass \"{}\"{}; there are {}",
                               disabled, did_you_mean(disabled, names), known);
  }
}

}  // namespace kolo

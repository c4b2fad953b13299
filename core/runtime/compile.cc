#include <kolo/core/runtime/compile.h>

#include <fmt/format.h>

#include <exception>
#include <string>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/passes/pipeline.h>
#include <kolo/core/passes/transfer.h>
#include <kolo/core/runtime/loops.h>

namespace kolo {
namespace {

// The session as the passes see it, and whom the ranks have to agree with in this step.
class Compilation final : public PassContext {
 public:
  explicit Compilation(PlanEnvironment& environment) : environment_(environment) {}

  GraphOptions graph_options() const override { return environment_.graph_options(); }
  int intra_op_threads() const override { return environment_.intra_op_threads(); }
  const DeviceSet& devices() const override { return environment_.devices(); }
  void place(StepGraph& graph) override { environment_.place(graph); }
  std::shared_ptr<StepVote> vote(const Node& node) override { return environment_.vote(node); }

  void compare_ranks(const StepGraph& graph) override {
    for (const StepNode& node : graph.nodes)
      if (node.origin != nullptr && vote_factory(node.schema->name()) != nullptr)
        if (auto vote = environment_.vote(*node.origin)) votes.push_back(std::move(vote));
    for (const auto& vote : votes) vote->compare();
  }

  StepVotes votes;

 private:
  PlanEnvironment& environment_;
};

// The node of which `node` has the handle, or that it is; null for all but the ops of queues and their like.
const Node* contained_node(const StepNode& node) {
  if (node.origin == nullptr) return nullptr;
  if (node.schema->is_contained()) return node.origin;
  if (node.inputs.empty() || node.schema->input_spec(0).handle_of.empty()) return nullptr;
  return node.origin->input(0).node;  // not of the step: a copy between devices may stand there
}

void bind_contained(StepNode& node, PlanEnvironment& environment) {
  const Node* const contained = contained_node(node);
  if (contained == nullptr) return;
  try {
    node.resource = environment.contained(*contained);
  } catch (const Error& error) {
    throw_error(error.code(),
                fmt::format("{} [node \"{}\", {}]", error.what(), node.name, node.schema->name()));
  }
}

std::unique_ptr<Plan> compile_as_placed(const StepSignature& signature, PlanEnvironment& environment) {
  StepGraph graph = prune(signature);
  Compilation compilation(environment);
  rewrite_step(graph, compilation);
  for (StepNode& node : graph.nodes)
    if (auto loop = compile_loop(graph, node, signature, [&](const StepSignature& iteration) {
          return compile_plan(iteration, environment);
        }))
      node.resource = std::move(loop);
  for (StepNode& node : graph.nodes) bind_contained(node, environment);
  const std::string host = host_of(graph, environment.devices());
  return std::make_unique<Plan>(std::move(graph), environment, std::move(compilation.votes), host);
}

}  // namespace

// What a kernel can take may depend on more than the placer asks for: shapes, say.
std::unique_ptr<Plan> compile_plan(const StepSignature& signature, PlanEnvironment& environment) {
  std::exception_ptr declined;
  while (true) {
    try {
      return compile_as_placed(signature, environment);
    } catch (const NoKernelError& error) {
      if (error.origin == nullptr || !environment.place_elsewhere(*error.origin, error.device_type)) throw;
      log_info("a node computes on another device than the placer has chosen: {}", error.what());
      declined = std::current_exception();
    } catch (const InvalidArgumentError&) {
      // No other device may have it; then that is not what is to be told.
      if (declined) std::rethrow_exception(declined);
      throw;
    }
  }
}

}  // namespace kolo

#include <kolo/core/runtime/loops.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/passed_outputs.h>
#include <kolo/core/runtime/executor.h>
#include <kolo/core/runtime/fetch.h>

namespace kolo {
namespace {

using Names = std::vector<std::string>;
using Values = std::vector<Tensor>;

// A plan that is run again and again, with its own results as the next feeds: two frames take turns, so that
// what is read and what is written are never one memory.
class RepeatedPlan {
 public:
  /// Result i may be feed first_fed_back + i of the next run, if there is such a feed.
  RepeatedPlan(Plan& plan, Feeds feeds, std::size_t first_fed_back, int intra_op_threads)
      : plan_(plan),
        feeds_(std::move(feeds)),
        options_{.pool = nullptr, .intra_op_threads = intra_op_threads} {
    for (auto& frame : frames_) frame = plan_.take_frame();
    for (std::size_t i = 0; i < plan.fetches().size(); ++i) {
      const bool copied = must_be_copied(i, static_cast<int>(first_fed_back));
      for (auto& copies : copies_) copies.push_back({.needed = copied, .value = Tensor()});
    }
  }
  ~RepeatedPlan() {
    for (auto& frame : frames_) plan_.give_back(std::move(frame));
  }
  RepeatedPlan(const RepeatedPlan&) = delete;
  RepeatedPlan& operator=(const RepeatedPlan&) = delete;

  void feed(std::size_t i, const Tensor& value) { feeds_[i].second = value; }
  /// Result i is valid until the run after the next.
  void run() {
    turn_ = 1 - turn_;
    plan_.bind_feeds(*frames_[turn_], [&](int i) -> const Tensor& { return feeds_[i].second; });
    run_step(plan_, *frames_[turn_], options_);
    for (std::size_t i = 0; i < copies_[turn_].size(); ++i) {
      Copy& copy = copies_[turn_][i];
      if (!copy.needed) continue;
      const Tensor& value = in_frame(i);
      if (copy.value && copy.value.shape() == value.shape()) copy.value.copy_from(value);
      else copy.value = value.clone();
    }
  }
  const Tensor& result(std::size_t i) const {
    const Copy& copy = copies_[turn_][i];
    return copy.needed ? copy.value : in_frame(i);
  }

 private:
  struct Copy {
    bool needed;
    Tensor value;
  };

  // What a run starts with must not lie in memory that it, or the next, writes: that of a variable, or of
  // what another result was. A result that is its own feed never changes; nor do feeds that are no results.
  bool must_be_copied(std::size_t i, int first_fed_back) const {
    if (plan_.memory_of_fetch(i) == ValueMemory::Kind::variable) return true;
    if (plan_.memory_of_fetch(i) != ValueMemory::Kind::feed) return false;
    const int feed = plan_.feed_of_fetch(i);
    return feed >= first_fed_back && feed < first_fed_back + static_cast<int>(plan_.fetches().size()) &&
           feed != first_fed_back + static_cast<int>(i);
  }
  const Tensor& in_frame(std::size_t i) const { return frames_[turn_]->values[plan_.fetches()[i]]; }

  Plan& plan_;
  Feeds feeds_;
  StepOptions options_;
  std::array<std::unique_ptr<Frame>, 2> frames_;
  std::array<std::vector<Copy>, 2> copies_;  // by result
  int turn_ = 0;
};

struct LoopPlans {
  std::unique_ptr<Plan> condition;
  std::unique_ptr<Plan> body;
  std::unique_ptr<Plan> backward;  // of a gradient's loop
  Outputs fed;                     // to condition and body: variables, captures
  Outputs fed_backward;            // variables, captures, gradients of the results, totals
  std::size_t variables = 0;
};

Feeds without_values(const Outputs& fed) {
  Feeds feeds;
  for (const Output& output : fed) feeds.push_back({output, Tensor()});
  return feeds;
}

Outputs named(const Graph& graph, const StepNode& node, const char* attr) {
  Outputs outputs;
  for (const std::string& name : node.attrs.at(attr).get<Names>()) outputs.push_back(graph.find_output(name));
  return outputs;
}

// A graph from a file may name tensors of other types than it feeds, or hands on to the next iteration.
void check_type(const Node& loop, const Output& tensor, DType wanted) {
  if (tensor.dtype() != wanted)
    throw InvalidArgumentError("loop \"{}\" names {}, which is {}; it must be {}", loop.name(), tensor.name(),
                               tensor.dtype(), wanted);
}
void check_types(const Node& loop, const Outputs& tensors, const Outputs& like) {
  for (std::size_t i = 0; i < tensors.size(); ++i) check_type(loop, tensors[i], like[i].dtype());
}

// A graph from a file may say that a loop is part of its own body.
void check_made_before(const Outputs& outputs, const Node& loop) {
  for (const Output& output : outputs)
    if (output.node->id() >= loop.id())
      throw InvalidArgumentError("loop \"{}\" names {}, which was made after it", loop.name(), output.name());
}

// Each level may compile the one inside it three times over.
constexpr int kMaxLoopDepth = 10;

void check_loop(const StepGraph& step, const StepNode& node, const LoopPlans& plans, int depth) {
  const Node& loop = *node.origin;
  if (depth >= kMaxLoopDepth)
    throw InvalidArgumentError("loop \"{}\" lies in {} others; at most {} are possible", loop.name(), depth,
                               kMaxLoopDepth - 1);
  for (std::size_t i = 0; i < plans.fed.size(); ++i) {
    check_type(loop, plans.fed[i], step.dtype(node.inputs[i]));
    // Their updates would find no variable.
    if (plans.fed[i].node->schema().is_variable_storage())
      throw InvalidArgumentError("loop \"{}\" feeds variable \"{}\"", loop.name(), plans.fed[i].node->name());
  }
}

// What an iteration computes, it computes anew: a value that the user gives for all of them would be lost
// without a word.
void check_not_fed(const StepSignature& signature, int first_node, const Node& loop) {
  if (signature.loop_depth > 0) return;
  for (const auto& [value, shape] : signature.fed)
    if (value.node->id() >= first_node && value.node->id() < loop.id())
      throw InvalidArgumentError(
          "Tensor {} may not be fed: it is of the body of loop \"{}\"; make it before the loop", value.name(),
          loop.name());
}

void append(Outputs& list, const Outputs& more) { list.insert(list.end(), more.begin(), more.end()); }

class LoopKernel : public Kernel {
 public:
  explicit LoopKernel(KernelInit& init)
      : plans_(init.resource<LoopPlans>()),
        max_iterations_(init.attr<std::int64_t>("max_iterations")),
        threads_(init.threads()),
        outputs_(init) {}

 protected:
  // Runs the loop from the kernel's inputs; calls visit(variables) at the start of each iteration. Returns
  // what the variables are at the end.
  template <typename Visit>
  Values repeat(const KernelContext& context, Visit visit) const {
    RepeatedPlan condition(*plans_->condition, without_values(plans_->fed), plans_->fed.size(), threads_);
    RepeatedPlan body(*plans_->body, without_values(plans_->fed), 0, threads_);
    const std::size_t variables = plans_->variables;
    Values current;
    for (std::size_t i = 0; i < plans_->fed.size(); ++i) {
      const Tensor& value = context.input(static_cast<int>(i));
      if (i < variables) current.push_back(value);
      condition.feed(i, value);
      body.feed(i, value);
    }
    for (std::int64_t done = 0; max_iterations_ < 0 || done < max_iterations_; ++done) {
      condition.run();
      if (!condition.result(0).value<bool>()) break;
      visit(current);
      body.run();
      for (std::size_t i = 0; i < variables; ++i) {
        if (body.result(i).shape() != current[i].shape())
          throw InvalidArgumentError(
              "variable {} of the loop is {}, but the body makes {} of it; shapes must not change", i,
              current[i].shape(), body.result(i).shape());
        current[i] = body.result(i);
        condition.feed(i, current[i]);
        body.feed(i, current[i]);
      }
    }
    for (Tensor& value : current) value = value.clone();  // their memory goes back with the frames
    return current;
  }

  std::shared_ptr<LoopPlans> plans_;
  std::int64_t max_iterations_;
  int threads_;
  PassedOutputs outputs_;
};

class WhileKernel final : public LoopKernel {
 public:
  using LoopKernel::LoopKernel;
  void compute(KernelContext& context) override {
    const Values finals = repeat(context, [](const Values&) {});
    for (std::size_t i = 0; i < finals.size(); ++i) outputs_.pass_on(context, static_cast<int>(i), finals[i]);
  }
};

class WhileGradientKernel final : public LoopKernel {
 public:
  using LoopKernel::LoopKernel;
  void compute(KernelContext& context) override {
    std::vector<Values> iterations;
    repeat(context, [&](const Values& variables) {
      iterations.emplace_back();
      for (const Tensor& value : variables) iterations.back().push_back(value.clone());
    });

    const std::size_t variables = plans_->variables, fixed = plans_->fed.size();
    const std::size_t all = plans_->fed_backward.size();
    RepeatedPlan backward(*plans_->backward, without_values(plans_->fed_backward), fixed, threads_);
    Values flowing;  // the gradients of the variables, then the totals of the captures
    std::vector<int> floating;
    for (std::size_t i = 0; i < fixed; ++i)
      if (is_floating(context.input(static_cast<int>(i)).dtype())) floating.push_back(static_cast<int>(i));
    for (std::size_t i = fixed; i < static_cast<std::size_t>(context.num_inputs()); ++i)
      flowing.push_back(context.input(static_cast<int>(i)));
    for (std::size_t i = flowing.size(); i < floating.size(); ++i) {
      const Tensor& like = context.input(floating[i]);
      flowing.push_back(Tensor::zeros(like.dtype(), like.shape()));
    }
    for (std::size_t i = variables; i < fixed; ++i) backward.feed(i, context.input(static_cast<int>(i)));
    for (std::size_t iteration = iterations.size(); iteration-- > 0;) {
      for (std::size_t i = 0; i < variables; ++i) backward.feed(i, iterations[iteration][i]);
      for (std::size_t i = fixed; i < all; ++i) backward.feed(i, flowing[i - fixed]);
      backward.run();
      for (std::size_t i = 0; i < flowing.size(); ++i) flowing[i] = backward.result(i);
    }
    for (std::size_t i = 0; i < flowing.size(); ++i) outputs_.pass_on(context, floating[i], flowing[i]);
  }
};

void outside_of_its_loop(KernelContext&) {
  throw InvalidArgumentError(
      "a value that changes with the iterations of a loop cannot be computed outside of it");
}

const RegisterKernel loop_variable("LoopVariable", "CPU", {}, outside_of_its_loop);
const RegisterKernel while_kernel("While", "CPU", {},
                                  [](KernelInit& init) { return std::make_unique<WhileKernel>(init); });
const RegisterKernel while_gradient("WhileGradient", "CPU", {}, [](KernelInit& init) {
  return std::make_unique<WhileGradientKernel>(init);
});

// A loop whose plans are being compiled.
struct LoopInStep {
  const StepGraph& step;
  const StepNode& node;
  const StepSignature& signature;  // of the step
  const CompileIteration& compile_iteration;

  // fed: the first variable of the loop first.
  std::unique_ptr<Plan> compile(const Outputs& fetched, const Outputs& fed,
                                const std::vector<Shape>& fed_shapes) const {
    StepSignature iteration{.fetched = fetched,
                            .targets = {},
                            .fed = {},
                            .first_node = fed[0].node->id(),
                            .loop_depth = signature.loop_depth + 1};
    for (const Output& output : fetched) iteration.targets.push_back(output.node);
    for (std::size_t i = 0; i < fed.size(); ++i) iteration.fed.push_back({fed[i], fed_shapes[i]});
    auto plan = compile_iteration(iteration);
    if (!plan->votes().empty())
      throw UnimplementedError(
          "loop \"{}\" reduces over the ranks in its body, which a step does once; reduce what the loop "
          "returns, or call run() in a loop of your own",
          node.name);
    return plan;
  }
};

// shapes: of the loop's inputs.
void compile_backward(const LoopInStep& loop, std::vector<Shape> shapes, LoopPlans& plans) {
  const StepNode& node = loop.node;
  const Graph& graph = node.origin->graph();
  plans.fed_backward = plans.fed;
  Outputs flowing = named(graph, node, "backward"), ends = named(graph, node, "next_backward"), floating;
  append(flowing, named(graph, node, "totals"));
  append(ends, named(graph, node, "next_totals"));
  for (std::size_t i = 0; i < plans.fed.size(); ++i) {
    if (!is_floating(plans.fed[i].dtype())) continue;
    floating.push_back(plans.fed[i]);
    if (i >= plans.variables) shapes.push_back(shapes[i]);
  }
  check_made_before(ends, *node.origin);
  check_types(*node.origin, flowing, floating);
  check_types(*node.origin, ends, floating);
  for (std::size_t i = plans.fed.size(); i < node.inputs.size(); ++i)
    check_type(*node.origin, floating[i - plans.fed.size()], loop.step.dtype(node.inputs[i]));
  append(plans.fed_backward, flowing);
  plans.backward = loop.compile(ends, plans.fed_backward, shapes);
}

}  // namespace

std::shared_ptr<void> compile_loop(const StepGraph& step, const StepNode& node,
                                   const StepSignature& signature,
                                   const CompileIteration& compile_iteration) {
  const bool is_gradient = node.schema->name() == "WhileGradient";
  if (node.schema->name() != "While" && !is_gradient) return nullptr;
  const Graph& graph = node.origin->graph();
  auto plans = std::make_shared<LoopPlans>();
  plans->fed = named(graph, node, "variables");
  plans->variables = plans->fed.size();
  append(plans->fed, named(graph, node, "captures"));
  check_loop(step, node, *plans, signature.loop_depth);
  const int first_node = plans->fed[0].node->id();
  if (!is_gradient) check_not_fed(signature, first_node, *node.origin);
  const Outputs results = named(graph, node, "results");
  const Output condition = graph.find_output(node.attrs.at("condition").get<std::string>());
  check_made_before(results, *node.origin);
  check_made_before({condition}, *node.origin);
  check_types(*node.origin, results, plans->fed);
  check_type(*node.origin, condition, DType::boolean);

  std::vector<Shape> shapes;  // as this step has them
  for (const StepValue in : node.inputs) shapes.push_back(step.shape(in));
  const LoopInStep loop{step, node, signature, compile_iteration};
  plans->condition = loop.compile({condition}, plans->fed, shapes);
  plans->body = loop.compile(results, plans->fed, shapes);
  if (is_gradient) compile_backward(loop, std::move(shapes), *plans);
  return plans;
}

}  // namespace kolo

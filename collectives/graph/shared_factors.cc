#include <kolo/collectives/graph/shared_factors.h>

#include <algorithm>
#include <exception>
#include <map>
#include <span>
#include <utility>

#include <kolo/collectives/graph/group_node.h>
#include <kolo/collectives/schedule/bucket_nodes.h>
#include <kolo/core/base/process.h>
#include <kolo/core/kernels/cpu/in_place_updates.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/parallel.h>
#include <kolo/core/ops/training.h>
#include <kolo/core/passes/gradient_product.h>
#include <kolo/core/tensor/allocator.h>

namespace kolo::detail {
namespace {

constexpr char kShare[] = "ShareFactors";
constexpr char kProduct[] = "ProductOfRanks";

// Elements of a gradient below which a meeting more costs what it saves: 1 MiB.
constexpr std::int64_t kFewestElements = 256 * 1024;

const RegisterOp share_op(OpSchema(kShare).stateful().made_by_pass());

const RegisterOp product_op(OpSchema(kProduct)
                                .input("x", {DType::f32})
                                .input("dy", {DType::f32})
                                .output("gradient")
                                .shape([](ShapeContext& c) {
                                  c.set_output(0, {c.input(0).dim(1), c.input(1).dim(1)});
                                })
                                .made_by_pass());

class ShareKernel final : public AsyncKernel {
 public:
  explicit ShareKernel(std::shared_ptr<SharedFactors> factors) : factors_(std::move(factors)) {
    factors_->of_ranks.reserve(static_cast<std::size_t>(process().size));
  }

  void start(KernelContext&, Completion done) override {
    done_ = done;
    factors_->of_ranks.clear();
    factors_->slot->submit(factors_->own, [this](std::exception_ptr error) {
      if (!error) {
        const auto all = factors_->slot->memory_of_ranks();
        factors_->of_ranks.assign(all.begin(), all.end());
      }
      done_(std::move(error));
    });
  }

 private:
  const std::shared_ptr<SharedFactors> factors_;
  Completion done_;  // kept here: a closure that held it would be allocated at each step
};

const RegisterKernel share_kernel(kShare, "CPU", {}, KernelFactory([](KernelInit& init) {
                                    return std::make_unique<ShareKernel>(init.resource<SharedFactors>());
                                  }));

// Its own gradient; or this rank's part of the sum of all, and nothing of it where the updates make it.
class ProductKernel final : public Kernel {
 public:
  ProductKernel(std::shared_ptr<SharedFactors> factors, KernelInit& init)
      : factors_(std::move(factors)),
        sum_(factors_->own.rows, factors_->inputs, factors_->outputs),
        all_(static_cast<std::size_t>(process().size)) {
    if (factors_->own.use == FactorsUse::whole) return;
    // For its own factors alone, too.
    std::size_t bytes = 0;
    for (int factors = 1; factors <= process().size; ++factors)
      bytes = std::max(bytes, sum_.scratch_bytes(factors));
    if (bytes > 0) init.request_scratch(bytes);
  }

  void compute(KernelContext& context) override {
    float* const gradient = context.output(0).data<float>();
    auto* const scratch = reinterpret_cast<float*>(context.scratch());
    const auto ranks = static_cast<int>(factors_->of_ranks.size());
    const bool is_thin = factors_->own.use == FactorsUse::whole;
    if (ranks == 0) {
      const GradientFactors own{context.input(0).data<float>(), context.input(1).data<float>()};
      if (is_thin) make_thin(own, gradient);
      else sum_.run(std::span(&own, 1), 0, factors_->inputs, gradient, scratch);
      return;
    }
    if (is_thin) return;
    for (int rank = 0; rank < ranks; ++rank) all_[static_cast<std::size_t>(rank)] = factors_->of(rank);
    const Part part(factors_->inputs, process().rank, ranks);
    sum_.run(all_, part.first, part.count, gradient, scratch);
  }

 private:
  void make_thin(const GradientFactors& own, float* gradient) const {
    constexpr std::int64_t kGrain = 64;
    const ThinGemm shape{factors_->own.rows, factors_->inputs, factors_->outputs};
    parallel_for(shape.inputs, kGrain, [&](std::int64_t begin, std::int64_t end) {
      shape.weight_gradient(own.x, own.dy, gradient, begin, end);
    });
  }

  const std::shared_ptr<SharedFactors> factors_;
  const ProductSum sum_;
  std::vector<GradientFactors> all_;
};

const RegisterKernel product_kernel(kProduct, "CPU", {DType::f32}, KernelFactory([](KernelInit& init) {
                                      return std::make_unique<ProductKernel>(init.resource<SharedFactors>(),
                                                                             init);
                                    }));

std::size_t aligned_bytes(std::int64_t floats) {
  const auto bytes = static_cast<std::size_t>(floats) * sizeof(float);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Terms that oneDNN adds up in one go: the sum of two such products is, to the bit, that of two gradients.
constexpr std::int64_t kMostTerms = 256;

// A gradient that is so many times as large as the rows it is made of: these are written where the others
// read them, and read by all. Two ranks, Xeon, family 6 model 167: 3136 × 1024 of 64 rows (12 times) make a
// step of lenet 2 % faster; 784 × 1024 and 1024 × 1024 of 128 rows (3.5 and 4 times) make mlp's no faster (14
// pairs of runs: 1.004 of the time).
constexpr std::int64_t kLeastRatio = 6;

// To make all ranks' gradients is more work than to make one's own, but where the rows are so few that what
// counts is the memory behind the variable. A part of their sum costs as much as one's own, and saves reading
// the others'.
std::int64_t most_rows(std::int64_t inputs, std::int64_t outputs) {
  const std::int64_t of_parts = std::min(kMostTerms, inputs * outputs / (kLeastRatio * (inputs + outputs)));
  return ThinGemm{1, inputs, outputs}.is_worth_it() ? std::max(ThinGemm::kMostRows, of_parts) : of_parts;
}

FactorsUse use_of(std::int64_t rows, std::int64_t inputs, std::int64_t outputs) {
  if (rows > most_rows(inputs, outputs)) return FactorsUse::none;
  return ThinGemm{rows, inputs, outputs}.is_worth_it() ? FactorsUse::whole : FactorsUse::in_parts;
}

// The rows that a step may have, with whatever number of them.
std::size_t bytes_of_x(std::int64_t inputs, std::int64_t outputs) {
  return aligned_bytes(most_rows(inputs, outputs) * inputs);
}
std::size_t bytes_of_dy(std::int64_t inputs, std::int64_t outputs) {
  return aligned_bytes(most_rows(inputs, outputs) * outputs);
}

// What the product sees of it depends on when it is computed.
bool reads_variable(const StepGraph& graph, int product) {
  const auto& factors = graph.nodes[product].inputs;
  return std::any_of(factors.begin(), factors.end(), [&](StepValue factor) {
    return graph.nodes[graph.memory_root(factor).node].schema->is_variable_storage();
  });
}

// Whoever writes the value may do so at another place: it is memory of the step's own, as large as what is
// read of it, and nobody gets it from the step.
bool can_be_placed(const StepGraph& graph, StepValue value) {
  const StepValue root = graph.memory_root(value);
  return is_on_cpu(graph.nodes[root.node]) && graph.is_made_in_given_memory(root) &&
         graph.shape(root).elements() == graph.shape(value).elements() &&
         std::none_of(graph.fetches.begin(), graph.fetches.end(),
                      [&](StepValue fetch) { return fetch.node >= 0 && graph.memory_root(fetch) == root; });
}

// The value, or a copy of it.
StepValue placed(StepGraph& graph, StepValue value, const Placement& place, const std::string& device) {
  if (can_be_placed(graph, value)) {
    graph.placements[graph.memory_root(value)] = place;
    return value;
  }
  const StepNode& producer = graph.nodes[value.node];
  const int copy = graph.add(kCopyOp, producer.name + "/for_other_ranks", {value}, {}, producer.order + 1);
  graph.nodes[copy].device = device;
  graph.placements[{copy, 0}] = place;
  return {copy, 0};
}

int add_sharing(StepGraph& graph, const std::shared_ptr<SharedFactors>& factors, const std::string& name,
                const std::vector<int>& before, const std::string& device) {
  std::int64_t order = 0;
  for (const int node : before) order = std::max(order, graph.nodes[node].order + 1);
  const int node = graph.add(kShare, name + "/share_factors", {}, {}, order);
  graph.nodes[node].control_inputs = before;
  graph.nodes[node].resource = factors;
  graph.nodes[node].device = device;
  return node;
}

// By input of the group: whether nothing but updates reads the result.
std::vector<bool> read_by_updates_alone(const Node& group) {
  std::vector<bool> alone(static_cast<std::size_t>(num_gradients(group)), true);
  const Graph& graph = group.graph();
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (find_update_rule(node.op()) != nullptr) continue;
    for (const Output& in : node.inputs())
      if (in.node == &group && in.index < static_cast<int>(alone.size()))
        alone[static_cast<std::size_t>(in.index)] = false;
  }
  return alone;
}

// Whether the node makes such a gradient, if it has few rows; how many may be known only in a step.
bool is_product_of_few_rows(const Node& node, const Shape& gradient) {
  if (node.op() != "MatMul" || !has_attrs_of_gradient(node.attrs()) || node.branch() != nullptr ||
      !node.control_inputs().empty() || node.output_dtype(0) != DType::f32 || gradient.rank() != 2 ||
      gradient.elements() < kFewestElements)
    return false;
  const Shape& x = node.input(0).shape();
  const std::int64_t rows = x.rank() == 2 ? std::max(x.dim(0), std::int64_t{1}) : 1;
  return use_of(rows, gradient.dim(0), gradient.dim(1)) != FactorsUse::none;
}

}  // namespace

GradientFactors SharedFactors::of(int rank) const {
  const std::byte* const x = of_ranks[static_cast<std::size_t>(rank)];
  return {reinterpret_cast<const float*>(x), reinterpret_cast<const float*>(x + bytes_of_x(inputs, outputs))};
}

std::vector<bool> products_of(const Node& group) {
  std::vector<bool> products;
  if (!group.control_inputs().empty() || group.branch() != nullptr) return products;
  const std::vector<bool> alone = read_by_updates_alone(group);
  for (const int i : backward_order(group))
    products.push_back(alone[static_cast<std::size_t>(i)] &&
                       is_product_of_few_rows(*group.input(i).node, group.output_shape(i)));
  return products;
}

std::shared_ptr<SharedFactors> share_factors(StepGraph& graph, const std::shared_ptr<Schedule>& schedule,
                                             FactorsSlot& slot, int product, bool wanted,
                                             const std::string& device) {
  auto factors = std::make_shared<SharedFactors>();
  factors->schedule = schedule;
  factors->slot = &slot;
  if (wanted && is_gradient_product(graph, graph.nodes[product]) && !reads_variable(graph, product)) {
    const StepValue x = graph.nodes[product].inputs[0], dy = graph.nodes[product].inputs[1];
    factors->own.rows = graph.shape(x).dim(0);
    factors->inputs = graph.shape(x).dim(1);
    factors->outputs = graph.shape(dy).dim(1);
    factors->own.use = use_of(factors->own.rows, factors->inputs, factors->outputs);
    if (factors->own.use != FactorsUse::none)
      factors->own.memory = slot.memory(bytes_of_x(factors->inputs, factors->outputs) +
                                        bytes_of_dy(factors->inputs, factors->outputs));
  }
  const std::string name = graph.nodes[product].name;
  if (factors->own.memory == nullptr) {
    // Not before this rank has something to contribute.
    factors->own = {};
    add_sharing(graph, factors, name, {product}, device);
    return nullptr;
  }
  const StepValue x = placed(graph, graph.nodes[product].inputs[0], {factors->own.memory, 0}, device);
  const StepValue dy = placed(graph, graph.nodes[product].inputs[1],
                              {factors->own.memory, bytes_of_x(factors->inputs, factors->outputs)}, device);
  const int sharing = add_sharing(graph, factors, name, {x.node, dy.node}, device);
  const int made = graph.add(kProduct, name + "/of_ranks", {x, dy}, {}, graph.nodes[product].order);
  graph.nodes[made].device = graph.nodes[product].device;
  graph.nodes[made].resource = factors;
  graph.nodes[made].control_inputs = graph.nodes[product].control_inputs;
  graph.nodes[made].control_inputs.push_back(sharing);
  graph.placements[{made, 0}] = graph.placements.at({product, 0});
  graph.placements.erase({product, 0});
  graph.replace_uses({product, 0}, {made, 0});
  graph.retire(product);
  graph.nodes[product].control_inputs.push_back(made);
  return factors;
}

void order_by_slots(StepGraph& graph, const std::shared_ptr<Schedule>& schedule, const std::string& device) {
  std::map<int, int> nodes;  // by slot
  bool some_share = false;
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const StepNode& node = graph.nodes[i];
    const std::string& op = node.schema->name();
    if (op == kShare) {
      const auto factors = std::static_pointer_cast<SharedFactors>(node.resource);
      if (factors->schedule != schedule) continue;
      nodes[factors->slot->turn()] = i;
      some_share = true;
    } else if (op == kBucketAllReduceOp && node.resource == schedule) {
      nodes[schedule->buckets()[node.attrs.at(kBucketAttr).get<std::size_t>()].turn()] = i;
    } else if (op == kGatherRowsOp && node.resource == schedule) {
      nodes[schedule->rows()[node.attrs.at(kGatherAttr).get<std::size_t>()].turn()] = i;
    }
  }
  if (!some_share) return;
  int gate = -1;  // behind all that earlier slots wait for
  for (const auto& [slot, n] : nodes) {
    std::vector<int> before = graph.nodes[n].control_inputs;
    for (const StepValue in : graph.nodes[n].inputs) before.push_back(in.node);
    if (gate >= 0) {
      before.push_back(gate);
      graph.nodes[n].after.push_back(gate);
    }
    gate = graph.add("NoOp", graph.nodes[n].name + "/behind", {}, {}, graph.nodes[n].order);
    graph.nodes[gate].after = std::move(before);
    graph.nodes[gate].device = device;
  }
}

}  // namespace kolo::detail

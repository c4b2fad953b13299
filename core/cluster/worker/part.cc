#include <kolo/core/cluster/worker/part.h>

#include <set>

#include <kolo/core/base/error.h>
#include <kolo/core/cluster/worker/net_ops.h>
#include <kolo/core/cluster/worker/transfer_key.h>
#include <kolo/core/graph/loop_nodes.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/compile.h>
#include <kolo/core/runtime/session_devices.h>

namespace kolo::detail {
namespace {

// Of what one message carries: the value is copied into it, and its memory free, when the sending node
// returns.
constexpr std::size_t kMostBytesAtOnce = std::size_t{32} << 10;
// A thread that sleeps takes 5 to 60 microseconds to wake, most on a virtual machine.
constexpr float kQuickUs = 50;

bool is_small(const Output& value) {
  if (value.dtype() == DType::string || !value.shape().is_fully_known()) return false;
  return static_cast<std::size_t>(value.shape().elements()) * size_of(value.dtype()) <= kMostBytesAtOnce;
}

// Whether a kernel that is not asynchronous may wait: that of a loop for what its body waits for, and that of
// an update until nobody copies the variable, which takes its time where it is large.
bool may_wait_inside(const Node& node) {
  if (is_loop(node)) return true;
  for (int i = 0; i < node.num_inputs(); ++i)
    if (node.schema().input_spec(i).updated && !is_small(node.input(i))) return true;
  return false;
}

}  // namespace

Part::Part(const PartRequest& request, const PartSurroundings& surroundings)
    : around_(surroundings),
      // Nodes have their devices; those inside of loops may leave the kind of device open.
      placer_(placer_of(surroundings.devices, surroundings.config, /*logs=*/false)) {
  import(request);
  // All of them, before anything is planned: one that does not fit leaves no trace.
  for (int i = 0; i < graph_.num_nodes(); ++i)
    if (graph_.node(i).schema().is_variable_storage()) variable(graph_.node(i));
  plan_ = compile_plan(signature_of(request), *this);
  find_transfers();
  waits_for_nobody_ = waits_for_nobody();
}

Part::~Part() = default;

void Part::import(const PartRequest& request) {
  // What is fed and needed by nothing stands at its task alone.
  if (request.fetches.empty() && request.targets.empty() && request.feeds.empty())
    throw InvalidArgumentError("a part with no feeds, fetches or targets came; it needs one of them");
  GraphDef graph = request.graph;
  for (NodeDef& node : graph.nodes) {
    const OpSchema& schema = find_op(node.op);
    if (schema.is_reducing_over_ranks())
      throw UnimplementedError("{} ({}) reduces over MPI ranks", node.name, node.op);
    if (schema.attrs().count("sender") > 0) node.attrs.insert_or_assign("sender", around_.master);
  }
  graph_.admit_transfers();
  import_graph_def(Scope(graph_), graph);
}

StepSignature Part::signature_of(const PartRequest& request) {
  StepSignature signature;
  for (const std::string& name : request.feeds) {
    feeds_.push_back(graph_.find_output(name));
    if (!is_placeholder(*feeds_.back().node))
      throw InvalidArgumentError("{} is fed; it must be a placeholder of the part", name);
    signature.fed.push_back({feeds_.back(), feeds_.back().shape()});
  }
  for (const std::string& name : request.fetches) {
    signature.fetched.push_back(graph_.find_output(name));
    signature.targets.push_back(signature.fetched.back().node);
  }
  for (const std::string& name : request.targets) {
    const Node* const node = graph_.find_node(name);
    if (node == nullptr) throw NotFoundError("target \"{}\" is not in the part", name);
    signature.fetched.push_back({});
    signature.targets.push_back(node);
  }
  return signature;
}

void Part::place(StepGraph& graph) {
  MutexLock lock(mutex_);
  kolo::place(graph, placer_, placements_);
}

VariableStorage& Part::variable(const Node& storage) {
  MutexLock lock(mutex_);
  return variable_locked(storage);
}

std::string Part::device_of(const Node& storage) {
  StepGraph alone = prune({.fetched = {Output()}, .targets = {&storage}, .fed = {}});
  kolo::place(alone, placer_, placements_);
  return alone.nodes[0].device;
}

VariableStorage& Part::variable_locked(const Node& storage) {
  const auto found = variables_.find(storage.id());
  if (found != variables_.end()) return *found->second;
  std::shared_ptr<VariableStorage> variable;
  const Node& whole = whole_storage(storage);
  if (&whole == &storage) {
    variable = around_.variables.find_or_make(TaskVariables::key_of(storage), storage.output_dtype(0),
                                              storage.output_shape(0), devices().find(device_of(storage)));
  } else {
    variable = part_of_variable(storage, variable_locked(whole));
  }
  return *variables_.emplace(storage.id(), std::move(variable)).first->second;
}

std::shared_ptr<StepVote> Part::vote(const Node& node) {
  throw UnimplementedError("{} ({}) reduces over MPI ranks", node.name(), node.op());
}

void Part::find_transfers() {
  const std::vector<PlanNode>& nodes = plan_->nodes();
  std::map<int, int> receiver_of_value;
  for (int p = 0; p < static_cast<int>(nodes.size()); ++p) {
    const PlanNode& node = nodes[p];
    if (node.op == kNetSendOp) senders_.push_back(p);
    if (node.op != kNetRecvOp && node.op != kNetRecvIfOp) continue;
    const auto key = graph_.find_node(node.name)->attr<std::string>("key");
    received_[task_of_device(parse_transfer_key(key).send_device)].push_back({key, p});
    receiver_of_value[node.first_value] = p;
  }
  std::set<int> taken;  // a second fetch of the same value is a copy
  for (const int value : plan_->fetches()) {
    const auto found = receiver_of_value.find(value);
    const bool is_own = found != receiver_of_value.end() && taken.insert(value).second;
    receivers_of_fetches_.push_back(is_own ? found->second : -1);
  }
}

bool Part::waits_for_nobody() const {
  if (!received_.empty() || !plan_->streams().empty()) return false;
  for (int i = 0; i < graph_.num_nodes(); ++i)
    if (may_wait_inside(graph_.node(i))) return false;
  for (int p = 0; p < plan_->table().size(); ++p) {
    if ((plan_->table()[p].flags & StepTable::kIsAsynchronous) == 0) continue;
    const PlanNode& node = plan_->nodes()[static_cast<std::size_t>(p)];
    if (node.op != kNetSendOp || !is_small(graph_.find_node(node.name)->input(0))) return false;
  }
  return true;
}

bool Part::is_quick(std::size_t asked) const {
  return waits_for_nobody_ && asked == senders_.size() && run_us_.load(std::memory_order_relaxed) <= kQuickUs;
}

void Part::note_run(std::chrono::duration<float, std::micro> took) {
  run_us_.store((run_us_.load(std::memory_order_relaxed) + took.count()) / 2, std::memory_order_relaxed);
}

}  // namespace kolo::detail

// A step compiled once for one signature: pruned, placed, ordered, its memory planned, its kernels made.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/device/device_set.h>
#include <kolo/core/kernels/containers.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/passes/graph_options.h>
#include <kolo/core/passes/memory.h>
#include <kolo/core/passes/prune.h>
#include <kolo/core/runtime/ready_set.h>
#include <kolo/core/runtime/segments.h>
#include <kolo/core/runtime/step_vote.h>
#include <kolo/core/runtime/stream_kernels.h>
#include <kolo/core/runtime/stream_waits.h>
#include <kolo/core/runtime/trace.h>

namespace kolo {

struct Frame;
struct PlanNode;

/// Made once for a plan, shared by all its runs.
class StepTable {
 public:
  enum Flags : std::uint8_t {
    kRunsKernel = 1,
    kIsAsynchronous = 2,
    kChecksVariables = 4,
    kIsConditional = 8,
    kIsOnStream = 16  // done when it stands in its device's stream
  };

  struct Node {
    int pending = 0;  // nodes that must finish before it
    int first_successor = 0;
    int num_successors = 0;
    std::uint8_t flags = 0;
    /// What its kernel is thought to cost. Kernels on the CPU start as expensive ones, at 1e8; views, kernels
    /// that only start something, and those on a GPU cost nothing here. Runs that update it at the same time
    /// may overwrite each other's: it is an estimate.
    mutable std::atomic<float> cycles{0};
  };

  /// leaders: by position, the node that stands for it; one that another stands for does not run.
  StepTable(const std::vector<PlanNode>& nodes, const Frame& frame, const std::vector<int>& leaders);

  int size() const { return size_; }
  /// Of those that run.
  int count() const { return count_; }
  const Node& operator[](int position) const { return nodes_[position]; }
  std::span<const int> successors(const Node& node) const {
    return {successors_.data() + node.first_successor, static_cast<std::size_t>(node.num_successors)};
  }
  std::span<const int> sources() const { return sources_; }

  /// TensorFlow's rule: an inexpensive node runs on the thread that made it ready. A kernel is inexpensive
  /// once its estimate, 0.9 · old + 0.1 · measured, is at most 5000 cycles; from then on it is not measured.
  static bool is_inexpensive(const Node& node) {
    return node.cycles.load(std::memory_order_relaxed) <= kInexpensiveCycles;
  }
  static void add_measurement(const Node& node, std::uint64_t cycles) {
    const float old = node.cycles.load(std::memory_order_relaxed);
    node.cycles.store(0.9f * old + 0.1f * static_cast<float>(cycles), std::memory_order_relaxed);
  }

 private:
  static constexpr float kInexpensiveCycles = 5000;

  int size_;
  int count_ = 0;
  std::unique_ptr<Node[]> nodes_;
  std::vector<int> successors_;
  std::vector<int> sources_;  // nodes that wait for nothing
};

/// What a run changes besides values: counters and ready nodes. Belongs to a frame, so that a step allocates
/// nothing.
struct StepMemory {
  explicit StepMemory(int nodes) : size(nodes), pending(new std::atomic<int>[nodes]), shared(nodes) {}

  /// One for each thread that takes part.
  struct alignas(64) Lane {
    Lane(int lane_number, int nodes) : number(lane_number), ready(nodes) {}
    int number;
    int finished = 0;  // nodes that it has run and not yet told of
    ReadySet ready;    // that it will run itself
  };
  void make_lanes(int count) {
    for (int i = static_cast<int>(lanes.size()); i < count; ++i)
      lanes.push_back(std::make_unique<Lane>(i, size));
  }

  int size;
  std::unique_ptr<std::atomic<int>[]> pending;  // by node; the last decrement acquires what others released
  SharedReadySet shared;                        // that any thread may run
  std::vector<std::unique_ptr<Lane>> lanes;
  std::vector<int> started;  // asynchronous nodes under way, in no order
};

/// What a plan needs of the session it is compiled for.
class PlanEnvironment {
 public:
  virtual ~PlanEnvironment() = default;
  virtual const DeviceSet& devices() const = 0;
  /// Gives each node of the step its device.
  virtual void place(StepGraph& graph) = 0;
  /// For a node whose kernels on that type of device have all declined it: false, unless it may have a place
  /// on another one. Its place is forgotten then.
  virtual bool place_elsewhere(const Node& node, const std::string& device_type) = 0;
  virtual int intra_op_threads() const = 0;
  virtual GraphOptions graph_options() const = 0;
  virtual VariableStorage& variable(const Node& storage) = 0;
  /// Whether other sessions use the variables, too: then they have VariableStorage::uses.
  virtual bool shares_variables() const { return false; }
  /// Behind `node`, of a contained() op.
  virtual std::shared_ptr<Contained> contained(const Node& node) = 0;
  virtual RandomState& random_state(const std::string& node, std::int64_t op_seed) = 0;
  /// See PassContext::vote.
  virtual std::shared_ptr<StepVote> vote(const Node& node) = 0;
};

/// The variable `storage`, which is a part of `whole`: in its memory.
std::unique_ptr<VariableStorage> part_of_variable(const Node& storage, const VariableStorage& whole);

/// Every kernel of the node's op and type, on the type of device where it is, has declined it.
class NoKernelError final : public UnimplementedError {
 public:
  NoKernelError(const std::string& message, const Node* origin, std::string device_type)
      : UnimplementedError("{}", message), origin(origin), device_type(std::move(device_type)) {}
  const Node* origin;  // null for a node that a pass has made
  std::string device_type;
};

/// Which of a node's kernels took it, and why not one that was asked before.
struct KernelOfNode {
  std::string place;          // "linalg.cc:84", where it is registered; "" where none runs
  std::string declined;       // "linalg.cc:80: …; linalg.cc:95: …"
  std::size_t alignment = 1;  // of its operands
};

/// The part of a plan's node that does not change from step to step. Nodes stand in the order in which one
/// thread runs them.
struct PlanNode {
  std::string name;
  std::string op;
  std::string device;
  int pending = 0;              // nodes that must finish before it
  std::vector<int> successors;  // nodes that wait for it, in order
  int first_value = 0;          // of its outputs, in Frame::values
  int num_outputs = 0;
  std::vector<int> inputs;   // indices into Frame::values
  bool runs_kernel = false;  // false for what is only a name for memory: views, variables, constants, feeds
  KernelOfNode kernel;
  std::string lane;  // in a trace, of an asynchronous kernel: "GPU:0 stream", "communication"
  std::vector<VariableStorage*> must_be_initialized;
  // Branches: a node that does not happen in a step is skipped (KernelContext::skipped).
  bool can_be_skipped = false;
  std::vector<int> skipped_with;  // is skipped where one of these is
  std::vector<int> joined;  // the producers of the inputs that it joins: is skipped where all of these are
  bool is_conditional() const { return !skipped_with.empty() || !joined.empty(); }
};

/// Everything one run of a plan changes. A plan has as many as there have been runs at one time, so that
/// concurrent runs share nothing.
struct Frame {
  std::vector<Tensor> values;
  std::vector<const Tensor*> input_pointers;  // backing store of the contexts
  std::vector<VariableStorage*> variable_pointers;
  std::vector<KernelContext> contexts;            // by node
  std::vector<std::unique_ptr<Kernel>> kernels;   // by node, null where none runs
  std::vector<AsyncKernel*> async_kernels;        // by node, null for synchronous ones
  std::vector<std::unique_ptr<Kernel>> segments;  // by node, of its segment's first; null elsewhere
  std::unique_ptr<StreamEnds> ends;               // where streams are used
  std::vector<std::shared_ptr<Buffer>> arenas;    // one for each device
  std::unique_ptr<bool[]> happened;               // backing store of the contexts
  std::shared_ptr<StreamErrors> stream_errors;    // of the run under way
  int uses = 0;                                   // how often it was taken
  bool lost = false;                              // a device does not say that it is done with this memory
  bool memory_is_checked = false;                 // see Plan::expect_planned_memory
  std::unique_ptr<StepMemory> memory;             // the executor's own
};

/// Whether the node at position `index`, which is_conditional(), happens in this run; notes it in its
/// context. To be asked when all that it waits for is done.
bool happens(const PlanNode& node, int index, Frame& frame);

/// Made by one thread, see compile.h. The rest: any thread.
class Plan {
 public:
  /// Of a graph that is placed, rewritten and complete. host: the CPU on which nodes of no device run. Throws
  /// what kernels throw that cannot be made.
  Plan(StepGraph graph, PlanEnvironment& environment, StepVotes votes, const std::string& host);

  const std::vector<PlanNode>& nodes() const { return nodes_; }
  /// The same nodes as the executor sees them.
  const StepTable& table() const { return *table_; }
  /// The same with each segment as one node; nullptr where there is none.
  const StepTable* replay_table() const { return replay_table_.get(); }
  /// The one for the frame's run under way. Its first run loads what its kernels need, so that nothing is
  /// kept of it; a traced one names each node.
  const StepTable& table_for(const Frame& frame, bool is_traced) const {
    return replay_table_ && frame.uses > 1 && !is_traced ? *replay_table_ : *table_;
  }
  const std::vector<Segment>& segments() const { return segments_; }
  const MemoryPlan& memory() const { return memory_; }
  /// The votes whose reductions are part of this step.
  const StepVotes& votes() const { return votes_; }
  /// Those in which nodes stand: a run is over when they are done.
  const std::vector<Stream*>& streams() const { return streams_; }
  /// Index into Frame::values for each fetch; −1 for an operation.
  const std::vector<int>& fetches() const { return fetches_; }
  /// Where fetch `i`, a value, lies: of Kind::feed in the tensor of feed_of_fetch(i), of Kind::variable in a
  /// variable's, else in memory of the frame or of the plan.
  ValueMemory::Kind memory_of_fetch(std::size_t i) const { return memory_of(i).kind; }
  int feed_of_fetch(std::size_t i) const;
  /// False where fetch `i` is a value of a branch that the frame's last run did not take.
  bool was_computed(const Frame& frame, std::size_t i) const;

  /// A frame that nobody else uses until it is given back. After its first use its memory on CPUs goes back
  /// to the system, to be taken anew by the second: many plans, those that initialize variables above all,
  /// run once.
  std::unique_ptr<Frame> take_frame() KOLO_EXCLUDES(mutex_);
  void give_back(std::unique_ptr<Frame> frame) KOLO_EXCLUDES(mutex_);
  /// After a frame's first run: throws InternalError for a kernel that has put its result elsewhere than the
  /// plan says. Whoever reads it there, as a reduction in a bucket, would have read something else.
  void expect_planned_memory(Frame& frame) const;
  /// Throws InternalError where an operand begins elsewhere than its kernel has asked (request_alignment). Of
  /// those whose place only a step tells nothing is known yet.
  void expect_alignment(const Frame& frame) const;
  /// Points the fed values, and what are views of them, to the caller's tensors: `feed(i)` is the one for the
  /// signature's feed `i`, with the shape that the signature says.
  template <typename FeedAt>
  void bind_feeds(Frame& frame, const FeedAt& feed) const {
    for (const FedValue& fed : fed_values_) {
      const Tensor& value = feed(fed.feed);
      if (value.shape() == fed.shape) frame.values[fed.value] = value;
      else frame.values[fed.value] = value.reshaped(fed.shape);
    }
  }

 private:
  /// One frame's, by index in graph_.
  struct Kernels {
    std::vector<std::unique_ptr<Kernel>> kernels;
    std::vector<std::size_t> scratch_bytes;
    std::vector<KernelOfNode> chosen;
    std::shared_ptr<StreamErrors> errors = std::make_shared<StreamErrors>();
  };
  /// Changes nothing of the plan: runs that need a frame of their own do it at once.
  Kernels make_kernels();
  void make_kernel(int index, Kernels& made);
  std::vector<VariableStorage*> shared_variables_of(int index) const;
  std::unique_ptr<Kernel> make_kernel_for(const StepNode& node, const std::vector<Shape>& input_shapes,
                                          const std::vector<Shape>& output_shapes, std::size_t& scratch_bytes,
                                          KernelOfNode& chosen);
  std::string lane(const StepNode& node, Kernel* kernel) const;
  void copy_constants();
  void build_nodes(const Kernels& made);
  void find_conditions(PlanNode& node, const StepNode& source);
  void order_streams(const Kernels& made);
  void put_busiest_stream_first();
  std::vector<bool> joined_streams() const;
  bool is_repeatable(int position, StreamKernel* on_stream) const;
  void make_segments(Frame& frame) const;
  // The memory of its device that the node writes.
  std::vector<const Tensor*> written_by(const Frame& frame, int position) const;
  void join_streams(Frame& frame, const std::vector<std::size_t>& scratch_bytes) const;
  std::unique_ptr<Frame> make_frame(Kernels made);
  void give_arenas_back(const Frame& frame) const;
  Tensor tensor_for(StepValue value, const Frame& frame);
  const ValueMemory& memory_of(std::size_t fetch) const {
    return memory_.values[graph_.fetches[fetch].node][graph_.fetches[fetch].output];
  }
  int value_index(StepValue v) const { return nodes_[position_[v.node]].first_value + v.output; }

  StepGraph graph_;
  PlanEnvironment& environment_;
  std::vector<int> order_;     // position → index in graph_
  std::vector<int> position_;  // index in graph_ → position
  MemoryPlan memory_;
  std::map<int, Tensor> device_constants_;  // of nodes on devices that do not see the host's memory
  std::vector<PlanNode> nodes_;             // by position
  std::unique_ptr<StepTable> table_, replay_table_;
  std::vector<Segment> segments_;
  StepVotes votes_;
  std::vector<Stream*> streams_;
  std::vector<OrderedNode> ordered_;  // by position; empty where no node stands in a stream
  std::vector<StreamWaits> waits_;    // by position
  std::vector<int> fetches_;
  std::vector<int> fetched_nodes_;  // their positions
  struct FedValue {
    int value;  // index into Frame::values
    int feed;
    Shape shape;
  };
  std::vector<FedValue> fed_values_;
  int num_values_ = 0;

  Mutex mutex_;
  std::vector<std::unique_ptr<Frame>> free_frames_ KOLO_GUARDED_BY(mutex_);
};

}  // namespace kolo

namespace kolo::detail {

/// After a run of `plan` in `frame`, before the frame is given back. Sorted by device. What was fed is the
/// caller's and does not count.
std::vector<DeviceMemory> memory_report(const Plan& plan, const Frame& frame);
std::vector<KernelChoice> kernel_choices(const Plan& plan);

}  // namespace kolo::detail

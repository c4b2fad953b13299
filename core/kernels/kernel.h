// What computes a node on a device. A kernel is made once for each compiled step, when types, shapes and
// threads are known, and then called once a step.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/base/source_line.h>
#include <kolo/core/graph/attr.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo {

class Device;

/// The memory of a variable; it lives as long as its session, at one address. Where the device has its own
/// memory the host reads and writes it through read_variable and write_variable (device_values.h) alone.
struct VariableStorage {
  std::string name;
  Tensor value;
  Device* device = nullptr;  // where it lies
  std::atomic<bool> initialized{false};
  /// Where sessions share it: held by who updates or copies it, of several those of lesser names first. Null
  /// in local sessions, whose plans order the uses.
  std::unique_ptr<Mutex> uses = {};
};

/// The position of a random op in its sequence of numbers; kept by the session, saved with a checkpoint.
class RandomState {
 public:
  RandomState(std::uint64_t seed, std::uint64_t op_seed) : seed_(seed), op_seed_(op_seed) {}
  std::uint64_t seed() const { return seed_; }
  std::uint64_t op_seed() const { return op_seed_; }
  /// Takes the next `count` numbers of the sequence; returns the position of the first. Any thread.
  std::uint64_t reserve(std::uint64_t count) { return next_.fetch_add(count); }
  std::uint64_t position() const { return next_.load(); }
  void set_position(std::uint64_t position) { next_.store(position); }

 private:
  std::uint64_t seed_;
  std::uint64_t op_seed_;
  std::atomic<std::uint64_t> next_{0};
};

class Kernel;

/// What a kernel is made from. Lives only while the kernel is being made.
class KernelInit {
 public:
  struct Value {
    DType dtype;
    Shape shape;  // known, except where it depends on the values of a step
  };
  KernelInit(std::string node, const AttrMap& attrs, std::vector<Value> inputs, std::vector<Value> outputs,
             int threads)
      : node_(std::move(node)),
        attrs_(attrs),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        threads_(threads) {}

  const std::string& node() const { return node_; }
  template <typename T>
  T attr(const std::string& name) const {
    return attrs_.at(name).get<T>();
  }
  /// Of the mark that a pass may have left beside the schema's attributes.
  bool is_marked(const std::string& name) const { return attrs_.count(name) > 0; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  DType input_dtype(int i) const { return inputs_.at(i).dtype; }
  DType output_dtype(int i) const { return outputs_.at(i).dtype; }
  const Shape& input_shape(int i) const { return inputs_.at(i).shape; }
  const Shape& output_shape(int i) const { return outputs_.at(i).shape; }
  /// What the pass that made the node left for its kernel; the Contained of an op on a queue; else null.
  template <typename T>
  std::shared_ptr<T> resource() const {
    return std::static_pointer_cast<T>(resource_);
  }
  void set_resource(std::shared_ptr<void> resource) { resource_ = std::move(resource); }
  /// That the node is placed on. A GPU's kernels take its libraries' handles from it.
  Device& device() const { return *device_; }
  void set_device(Device& device) { device_ = &device; }
  /// Threads that the kernel may use for one call.
  int threads() const { return threads_; }

  /// Asks for memory that the kernel may use during a call; it is planned into the step's arena.
  void request_scratch(std::size_t bytes) { scratch_bytes_ = bytes; }
  std::size_t scratch_bytes() const { return scratch_bytes_; }
  /// Asks that the memory of its inputs and outputs begins at multiples of `bytes`. The plan checks it once,
  /// of all whose place it knows; an InternalError names the node where it is not so.
  void request_alignment(std::size_t bytes) { alignment_ = bytes; }
  std::size_t alignment() const { return alignment_; }
  /// `return init.decline("…")`: this kernel cannot take the node; the next one is asked. The plan keeps the
  /// reason.
  std::unique_ptr<Kernel> decline(std::string reason);
  const std::string& decline_reason() const { return decline_reason_; }

 private:
  std::string node_;
  const AttrMap& attrs_;
  std::vector<Value> inputs_;
  std::vector<Value> outputs_;
  int threads_;
  std::shared_ptr<void> resource_;
  Device* device_ = nullptr;
  std::size_t scratch_bytes_ = 0;
  std::size_t alignment_ = 1;
  std::string decline_reason_;
};

/// What one call works on. The same tensors, at the same addresses, in every step, but for fed values.
class KernelContext {
 public:
  int num_inputs() const { return static_cast<int>(inputs.size()); }
  int num_outputs() const { return static_cast<int>(outputs.size()); }
  const Tensor& input(int i) const { return *inputs[i]; }
  /// Has the planned shape and memory. A kernel writes all of it. It may be the memory of an input that the
  /// op's schema lists as in_place.
  Tensor& output(int i) const { return outputs[i]; }
  /// For outputs whose shape depends on values: gives output `i` a tensor of the step's own.
  void set_output(int i, Tensor value) const { outputs[i] = std::move(value); }
  /// The storage behind input `i`, which is the output of a variable node.
  VariableStorage& variable(int i) const { return *variables[i]; }
  RandomState& random() const { return *random_state; }
  /// At least the bytes that were asked for, aligned to 64; to 256 in a GPU's memory.
  std::byte* scratch() const { return scratch_memory; }

  std::span<const Tensor* const> inputs;
  std::span<Tensor> outputs;
  std::span<VariableStorage* const> variables;  // one for each input, null where it is no variable
  RandomState* random_state = nullptr;
  std::byte* scratch_memory = nullptr;
  /// The queue of a GPU, as its maker's functions take it: the kernel puts its work there and returns, never
  /// waits. Null on CPUs.
  void* native_stream = nullptr;
  /// Of this step: the node did not happen, and its outputs mean nothing. The executor sets it for each node;
  /// the kernel of an op that guards a branch sets it where the branch is not taken.
  bool skipped = false;
  /// For ops that join branches, by input: whether it happened.
  std::span<bool> happened;
};

/// compute: one thread at a time for each kernel object. Throws kolo::Error (or std::bad_alloc); the executor
/// adds the node's name, op and device.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void compute(KernelContext& context) = 0;
};

/// How an asynchronous kernel reports its end, once, from any thread. Cheap to copy; allocates nothing.
struct Completion {
  void (*call)(void* step, int node, std::exception_ptr error) = nullptr;
  void* step = nullptr;
  int node = 0;
  void operator()(std::exception_ptr error = nullptr) const { call(step, node, std::move(error)); }
};

/// A kernel that waits for something (another rank, a device) without blocking a thread of the executor.
class AsyncKernel : public Kernel {
 public:
  /// Returns at once. The tensors of `context` stay valid until `done` is called.
  virtual void start(KernelContext& context, Completion done) = 0;
  void compute(KernelContext& context) final;
};

/// Returns nullptr after init.decline(…).
using KernelFactory = std::function<std::unique_ptr<Kernel>(KernelInit& init)>;
/// The factory of a kernel that declines no node.
template <typename K>
std::unique_ptr<Kernel> make_kernel(KernelInit& init) {
  return std::make_unique<K>(init);
}

/// A namespace-scope constant of a kernel's file. Among the kernels of an op and device that accept the
/// node's type (of its first input, or of output 0 if there is none), those of higher priority are asked
/// first.
struct RegisterKernel {
  /// types: empty for any.
  RegisterKernel(std::string op, std::string device_type, std::vector<DType> types, KernelFactory make,
                 int priority = 0, SourceLine place = SourceLine::here());
  /// A kernel without state of its own: a function of the context.
  RegisterKernel(std::string op, std::string device_type, std::vector<DType> types,
                 void (*compute)(KernelContext&), int priority = 0, SourceLine place = SourceLine::here());
};

/// One registered kernel, as the placer and the plan see it.
struct KernelEntry {
  std::string device_type;
  std::vector<DType> types;
  KernelFactory make;
  int priority;
  SourceLine place;  // where it is registered, and so its name
};
/// All kernels of an op, highest priority first, in the order of registration among equals.
const std::vector<KernelEntry>& kernels_of(const std::string& op);
/// The type by which a node's kernel is chosen. `has_type` is false for nodes with neither inputs nor
/// outputs.
bool accepts(const KernelEntry& entry, DType type, bool has_type);

}  // namespace kolo

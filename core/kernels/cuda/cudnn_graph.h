// Convolutions by cuDNN: what is asked for becomes a graph of one operation, of which cuDNN's heuristics
// choose an engine. Made once; run with as many pointers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/device/cuda/dnn_api.h>
#include <kolo/core/device/engine_book.h>

namespace kolo::cuda {

/// What of images [N,C,H,W], weights [K,C/groups,R,S] and results [N,K,H',W'] is made of the other two.
enum class ConvolutionPass { results, images, weights };

/// All f32, row-major, correlation. Groups follow from the two numbers of channels.
struct ConvolutionQuestion {
  ConvolutionPass pass;
  std::array<std::int64_t, 4> images;
  std::array<std::int64_t, 4> weights;
  std::array<std::int64_t, 4> results;
  std::array<std::int64_t, 2> strides;     // rows, columns
  std::array<std::int64_t, 2> pad_before;  // zeros
  std::array<std::int64_t, 2> pad_after;   // at least 0
  bool allow_tf32 = false;                 // products of 10 bits, on tensor cores; sums are f32 all the same
};

/// A descriptor of cuDNN's backend. Its functions throw as check_dnn.
class DnnDescriptor {
 public:
  DnnDescriptor(const DnnApi& api, cudnnBackendDescriptorType_t type);
  DnnDescriptor(DnnDescriptor&& other) noexcept
      : api_(other.api_), pointer_(std::exchange(other.pointer_, nullptr)) {}
  DnnDescriptor& operator=(DnnDescriptor&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(pointer_, other.pointer_);
    return *this;
  }
  ~DnnDescriptor();

  cudnnBackendDescriptor_t get() const { return pointer_; }
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
           const void* values);
  void set(cudnnBackendAttributeName_t name, const DnnDescriptor& other);
  /// After it nothing can be set.
  void finalize();

 private:
  const DnnApi* api_;
  cudnnBackendDescriptor_t pointer_ = nullptr;
};

/// What a plan is made for: a GPU by a handle of it, whose mutex is held; or one that is not there, by its
/// properties (see of_json).
struct DnnTarget {
  cudnnHandle_t handle = nullptr;
  cudnnBackendDescriptor_t properties = nullptr;

  /// json: cuDNN's text of a GPU's properties. Throws as check_dnn where cuDNN does not take it.
  static DnnDescriptor of_json(const DnnApi& api, const std::string& json);
};

class DnnPlan {
 public:
  /// The first of the engines that the heuristics name, and failing these of those that take everything,
  /// which computes in f32 throughout (no tensor cores, no inputs of fewer bits, unless TF32 is allowed),
  /// gives the same bits in each run, was compiled beforehand and works with at most `most_workspace` bytes.
  /// All this by its notes; `serves`, where given, is asked last, whether it is true: with the engine's place
  /// among those of such notes, the same whenever this is asked, and its plan.
  /// time: where given, of the first kMostTimed that serve the one is taken for which it is least.
  /// kept: the engine that was chosen before; where it stands at its place, and needs no more workspace than
  /// that, it is taken, and nothing else is asked.
  /// Nothing, and why, where there is none. Takes 30 to 100 ms and what `serves` takes, and throws what that
  /// throws.
  static constexpr std::size_t kMostTimed = 4;
  using Time = std::function<double(std::size_t place, DnnPlan& plan)>;
  using Serves = std::function<bool(std::size_t place, DnnPlan& plan)>;
  static std::optional<DnnPlan> make(const DnnApi& api, const DnnTarget& target,
                                     const ConvolutionQuestion& question, std::int64_t most_workspace,
                                     const Serves& serves, std::string& why, const Time& time = nullptr,
                                     const std::optional<EngineChoice>& kept = std::nullopt);

  std::int64_t workspace_bytes() const { return workspace_bytes_; }
  /// Its number, by which cuDNN's documentation and logs call it.
  std::int64_t engine() const { return engine_; }
  /// Among those that are asked.
  std::size_t place() const { return place_; }

  /// Enqueues it. All memory is aligned to kAlignment; what the pass makes is written. The handle's mutex is
  /// held. Throws as check_dnn.
  struct Operands {
    const void* images;
    const void* weights;
    const void* results;
    void* workspace;
    bool operator==(const Operands&) const = default;
  };
  static constexpr std::int64_t kAlignment = 16;  // bytes
  void run(DnnHandle& dnn, cudaStream_t stream, const Operands& operands);

  /// An engine with its settings.
  struct Candidate {
    DnnDescriptor configuration;
    std::int64_t engine;
  };

 private:
  // Nothing where the engine does not take the graph.
  static std::optional<DnnPlan> plan_of(const DnnApi& api, const DnnTarget& target,
                                        const Candidate& candidate, std::size_t place);
  DnnPlan(const DnnApi& api, DnnDescriptor plan, std::int64_t engine, std::size_t place,
          std::int64_t workspace_bytes)
      : api_(&api),
        plan_(std::move(plan)),
        engine_(engine),
        place_(place),
        workspace_bytes_(workspace_bytes) {}

  const DnnApi* api_;
  DnnDescriptor plan_;
  std::int64_t engine_;
  std::size_t place_;
  std::int64_t workspace_bytes_;
  // Addresses are the same in every step.
  std::optional<DnnDescriptor> pack_ = {};
  Operands packed_ = {};
};

}  // namespace kolo::cuda

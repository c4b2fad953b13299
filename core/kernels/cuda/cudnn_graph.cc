#include <kolo/core/kernels/cuda/cudnn_graph.h>

#include <fmt/format.h>

#include <algorithm>

#include <kolo/core/base/error.h>
#include <kolo/core/device/cuda/counts.h>

namespace kolo::cuda {
namespace {

// By which a plan's memory is named when it runs.
constexpr std::int64_t kImages = 1, kWeights = 2, kResults = 3;

template <typename T>
void set_list(DnnDescriptor& descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
              const T& values) {
  descriptor.set(name, type, static_cast<std::int64_t>(values.size()), values.data());
}
template <typename T>
void set_one(DnnDescriptor& descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
             const T& value) {
  descriptor.set(name, type, 1, &value);
}

DnnDescriptor tensor(const DnnApi& api, const std::array<std::int64_t, 4>& dims, std::int64_t id) {
  DnnDescriptor tensor(api, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const std::array<std::int64_t, 4> strides = {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1};
  set_one(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  set_list(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, dims);
  set_list(tensor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides);
  set_one(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
  set_one(tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, DnnPlan::kAlignment);
  tensor.finalize();
  return tensor;
}

DnnDescriptor window(const DnnApi& api, const ConvolutionQuestion& question) {
  DnnDescriptor window(api, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const std::array<std::int64_t, 2> dilations = {1, 1};
  set_one(window, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  set_one(window, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  set_one(window, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, std::int64_t{2});
  set_list(window, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, question.pad_before);
  set_list(window, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, question.pad_after);
  set_list(window, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, dilations);
  set_list(window, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, question.strides);
  window.finalize();
  return window;
}

// The names that the three operations give to the same things.
struct PassNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t window, images, weights, results, alpha, beta;
};
PassNames names_of(ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::results:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case ConvolutionPass::images:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case ConvolutionPass::weights: break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

// Only the heuristics and the plan read it; cuDNN keeps what it needs of the parts.
DnnDescriptor graph_of(const DnnApi& api, const DnnTarget& target, const ConvolutionQuestion& question) {
  const PassNames names = names_of(question.pass);
  DnnDescriptor operation(api, names.operation);
  const float one = 1, zero = 0;
  const DnnDescriptor images = tensor(api, question.images, kImages);
  const DnnDescriptor weights = tensor(api, question.weights, kWeights);
  const DnnDescriptor results = tensor(api, question.results, kResults);
  const DnnDescriptor slides = window(api, question);
  operation.set(names.window, slides);
  operation.set(names.images, images);
  operation.set(names.weights, weights);
  operation.set(names.results, results);
  set_one(operation, names.alpha, CUDNN_TYPE_FLOAT, one);
  set_one(operation, names.beta, CUDNN_TYPE_FLOAT, zero);
  operation.finalize();
  DnnDescriptor graph(api, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (target.handle != nullptr)
    set_one(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  graph.finalize();
  return graph;
}

// Engines with their settings, best first; none where the heuristics of this mode do not know the graph.
std::vector<DnnDescriptor> configurations(const DnnApi& api, const DnnTarget& target,
                                          const DnnDescriptor& graph, cudnnBackendHeurMode_t mode) {
  DnnDescriptor heuristics(api, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  set_one(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (target.properties != nullptr)
    set_one(heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, target.properties);
  if (api.backend_finalize(heuristics.get()) != CUDNN_STATUS_SUCCESS) return {};
  std::int64_t count = 0;
  check_dnn(api,
            api.backend_get_attribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
            "the number of engines");
  std::vector<DnnDescriptor> found;
  std::vector<cudnnBackendDescriptor_t> pointers;
  for (std::int64_t i = 0; i < count; ++i) {
    found.emplace_back(api, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    pointers.push_back(found.back().get());
  }
  check_dnn(api,
            api.backend_get_attribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, pointers.data()),
            "the engines");
  while (static_cast<std::int64_t>(found.size()) > count) found.pop_back();
  return found;
}

template <typename Note>
std::vector<Note> notes_of(const DnnApi& api, const DnnDescriptor& engine, cudnnBackendAttributeName_t name,
                           cudnnBackendAttributeType_t type, int most) {
  std::vector<Note> notes(static_cast<std::size_t>(most));
  std::int64_t count = 0;
  check_dnn(api, api.backend_get_attribute(engine.get(), name, type, most, &count, notes.data()),
            "the notes of an engine");
  notes.resize(static_cast<std::size_t>(std::min<std::int64_t>(count, most)));
  return notes;
}

// Its engines are numbered as the algorithms of the older interface were. Of the gradients' the documentation
// says that number 0, and 3 of the weights', add by atomics; not all of them carry the note.
bool is_known_to_vary(ConvolutionPass pass, std::int64_t engine) {
  return pass != ConvolutionPass::results &&
         (engine == 0 || (pass == ConvolutionPass::weights && engine == 3));
}

// The number of a configuration's engine, if that is exact, repeats and is compiled.
std::optional<std::int64_t> exact_and_ready(const DnnApi& api, const DnnDescriptor& configuration,
                                            const ConvolutionQuestion& question) {
  const DnnDescriptor engine(api, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t pointer = engine.get();
  std::int64_t count = 0, number = 0;
  check_dnn(api,
            api.backend_get_attribute(configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &pointer),
            "the engine of a configuration");
  check_dnn(api,
            api.backend_get_attribute(engine.get(), CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
                                      &count, &number),
            "the number of an engine");
  if (is_known_to_vary(question.pass, number)) return std::nullopt;
  const auto numbers =
      notes_of<cudnnBackendNumericalNote_t>(api, engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                            CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  for (const auto note : numbers) {
    const bool of_tf32 =
        note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE || note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
    if ((of_tf32 && !question.allow_tf32) || note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
        note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)
      return std::nullopt;
  }
  // These compile while a step is planned, by NVRTC, which the machine may lack.
  const auto behaviour = notes_of<cudnnBackendBehaviorNote_t>(
      api, engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
  const bool compiles_late = std::find(behaviour.begin(), behaviour.end(),
                                       CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) != behaviour.end();
  return compiles_late ? std::nullopt : std::optional(number);
}

constexpr std::int64_t kFft = 18, kSlow = 67;  // engines of weights' gradients

// The heuristics' order stands but for one pair of the weights' gradients: the slow one goes right behind
// that by FFT. Measured on an H100 with cuDNN 9.14 wherever both serve: 940 µs to 31 and 244 to 52 (LeNet),
// 89 to 32, 316 to 38, 1220 to 120 and 1235 to 95 (ResNet-20), 616 to 203 and 1522 to 242 (ResNet-50, batch
// 64).
void put_slow_behind(ConvolutionPass pass, std::vector<DnnPlan::Candidate>& candidates) {
  if (pass != ConvolutionPass::weights) return;
  const auto last =
      std::find_if(candidates.rbegin(), candidates.rend(),
                   [](const DnnPlan::Candidate& candidate) { return candidate.engine == kFft; });
  std::stable_partition(candidates.begin(), last.base(),
                        [](const DnnPlan::Candidate& candidate) { return candidate.engine != kSlow; });
}

}  // namespace

DnnDescriptor::DnnDescriptor(const DnnApi& api, cudnnBackendDescriptorType_t type) : api_(&api) {
  check_dnn(api, api.backend_create_descriptor(type, &pointer_), "cudnnBackendCreateDescriptor");
}

DnnDescriptor::~DnnDescriptor() {
  if (pointer_ != nullptr) api_->backend_destroy_descriptor(pointer_);
}

void DnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                        std::int64_t count, const void* values) {
  check_dnn(*api_, api_->backend_set_attribute(pointer_, name, type, count, values),
            "cudnnBackendSetAttribute");
}

void DnnDescriptor::set(cudnnBackendAttributeName_t name, const DnnDescriptor& other) {
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other.pointer_);
}

void DnnDescriptor::finalize() { check_dnn(*api_, api_->backend_finalize(pointer_), "cudnnBackendFinalize"); }

DnnDescriptor DnnTarget::of_json(const DnnApi& api, const std::string& json) {
  DnnDescriptor properties(api, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  set_list(properties, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, json);
  properties.finalize();
  return properties;
}

std::optional<DnnPlan> DnnPlan::make(const DnnApi& api, const DnnTarget& target,
                                     const ConvolutionQuestion& question, std::int64_t most_workspace,
                                     const Serves& serves, std::string& why, const Time& time,
                                     const std::optional<EngineChoice>& kept) {
  int engines = 0, too_large = 0, refused = 0, wrong = 0;
  std::vector<Candidate> candidates;
  try {
    const DnnDescriptor graph = graph_of(api, target, question);
    for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
      for (DnnDescriptor& configuration : configurations(api, target, graph, mode)) {
        ++engines;
        try {
          if (const auto engine = exact_and_ready(api, configuration, question))
            candidates.push_back({std::move(configuration), *engine});
        } catch (const Error&) {
          ++refused;  // by an engine that does not say what it is
        }
      }
  } catch (const Error& error) {
    why = error.what();
    return std::nullopt;
  }
  put_slow_behind(question.pass, candidates);
  if (kept && kept->place >= 0 && kept->place < static_cast<std::int64_t>(candidates.size())) {
    const auto place = static_cast<std::size_t>(kept->place);
    std::optional<DnnPlan> made;
    if (candidates[place].engine == kept->engine) made = plan_of(api, target, candidates[place], place);
    if (made && made->workspace_bytes() <= most_workspace) return made;
  }
  std::optional<DnnPlan> fastest;
  double least = 0;
  std::size_t timed = 0;
  for (std::size_t place = 0; place < candidates.size(); ++place) {
    std::optional<DnnPlan> made = plan_of(api, target, candidates[place], place);
    if (!made) ++refused;
    else if (made->workspace_bytes() > most_workspace) ++too_large;
    else if (serves && !serves(place, *made)) ++wrong;
    else if (!time) return made;
    else {
      const double took = time(place, *made);
      if (!fastest || took < least) least = took, fastest = std::move(made);
      if (++timed == kMostTimed) break;
    }
  }
  if (fastest) return fastest;
  why = fmt::format(
      "cuDNN has no engine for it that computes in f32 and repeats: of {} it names, {} refuse it, {} need "
      "more than {} MiB of workspace and {} are wrong, vary or cannot be measured",
      engines, refused, too_large, most_workspace >> 20, wrong);
  return std::nullopt;
}

std::optional<DnnPlan> DnnPlan::plan_of(const DnnApi& api, const DnnTarget& target,
                                        const Candidate& candidate, std::size_t place) {
  try {
    DnnDescriptor plan(api, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, candidate.configuration);
    if (target.handle != nullptr)
      set_one(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
    else
      set_one(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, target.properties);
    plan.finalize();
    std::int64_t bytes = 0, count = 0;
    check_dnn(api,
              api.backend_get_attribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                        CUDNN_TYPE_INT64, 1, &count, &bytes),
              "the workspace of a plan");
    return DnnPlan(api, std::move(plan), candidate.engine, place, bytes);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void DnnPlan::run(DnnHandle& dnn, cudaStream_t stream, const Operands& operands) {
  if (!pack_ || packed_ != operands) {
    const std::array<std::int64_t, 3> ids = {kImages, kWeights, kResults};
    const std::array<const void*, 3> pointers = {operands.images, operands.weights, operands.results};
    DnnDescriptor pack(*api_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    set_list(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids);
    set_list(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers);
    set_one(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, operands.workspace);
    pack.finalize();
    pack_ = std::move(pack);
    packed_ = operands;
  }
  if (dnn.stream != stream) {
    dnn.stream = nullptr;
    check_dnn(*api_, api_->set_stream(dnn.handle, stream), "cudnnSetStream");
    dnn.stream = stream;
  }
  ++launch_count();
  check_dnn(*api_, api_->backend_execute(dnn.handle, plan_.get(), pack_->get()), "cudnnBackendExecute");
}

}  // namespace kolo::cuda

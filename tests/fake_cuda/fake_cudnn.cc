// A libcudnn.so.9 whose backend plans convolutions and computes them with seven loops, in f32 or of operands
// rounded to TF32. Of its engines one is wrong and one varies, without a note of it, as real ones are.
//
// KOLO_FAKE_CUDNN_MS=20:0.5,1:2  how long events take these engines to run; 3 otherwise
#include <cudnn_graph.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "launches.h"
#include "products.h"
#include "tf32.h"

namespace kolo::fake_cuda {
namespace {

struct Engine {
  std::int64_t number;
  bool rounds = false;  // to TF32's 10 bits, and says so
  float off = 1;        // its results are so many times too large
  bool varies = false;
  std::int64_t workspace = 0;
};
constexpr Engine kEngines[] = {{.number = 5, .workspace = 200 << 20},
                               {.number = 9, .off = 1.01F},
                               {.number = 12, .varies = true},
                               {.number = 2, .rounds = true},
                               {.number = 1},
                               {.number = 20, .workspace = 1 << 20}};
constexpr Engine kFallback[] = {{.number = 30}, {.number = 31}};

// A descriptor: what was set, and others that were set, as they were then.
struct Node {
  cudnnBackendDescriptorType_t type;
  std::map<int, std::vector<std::byte>> values = {};
  std::map<int, std::shared_ptr<Node>> parts = {};
  const Engine* engine = nullptr;

  template <typename T>
  std::vector<T> list(int name) const {
    const auto found = values.find(name);
    if (found == values.end())
      report("attribute {} of a descriptor of kind {} was never set", name, static_cast<int>(type));
    std::vector<T> all(found->second.size() / sizeof(T));
    std::memcpy(all.data(), found->second.data(), all.size() * sizeof(T));
    return all;
  }
  const Node& part(int name) const {
    const auto found = parts.find(name);
    if (found == parts.end())
      report("part {} of a descriptor of kind {} was never set", name, static_cast<int>(type));
    return *found->second;
  }
};

std::map<void*, std::shared_ptr<Node>>& nodes() {
  static auto* const all = new std::map<void*, std::shared_ptr<Node>>;
  return *all;
}
std::shared_ptr<Node> node_of(void* descriptor) {
  const auto found = nodes().find(descriptor);
  if (found == nodes().end()) report("{} is no descriptor", descriptor);
  return found->second;
}

std::size_t size_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_INT64: return sizeof(std::int64_t);
    case CUDNN_TYPE_FLOAT: return sizeof(float);
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR: return sizeof(void*);
    default: return sizeof(int);  // enumerations
  }
}

// The descriptor of the one operation, and what its parts are called.
struct Names {
  int window, images, weights, results;
};
Names names_of(const Node& operation) {
  switch (operation.type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
    default: report("an operation of kind {} is unknown to the fake", static_cast<int>(operation.type));
  }
}

using Four = std::array<std::int64_t, 4>;
struct Operand {
  Four dims, strides;
  std::int64_t id = 0;

  explicit Operand(const Node& tensor) {
    const auto sizes = tensor.list<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
               steps = tensor.list<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
    if (sizes.size() != 4 || steps.size() != 4) report("a tensor has {} dimensions", sizes.size());
    std::copy_n(sizes.begin(), 4, dims.begin());
    std::copy_n(steps.begin(), 4, strides.begin());
    id = tensor.list<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID).at(0);
  }
  std::int64_t at(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) const {
    return a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3];
  }
  std::int64_t extent() const { return at(dims[0] - 1, dims[1] - 1, dims[2] - 1, dims[3] - 1) + 1; }
};

struct Problem {
  cudnnBackendDescriptorType_t pass;
  Operand images, weights, results;
  std::vector<std::int64_t> strides, before;

  explicit Problem(const Node& operation)
      : pass(operation.type),
        images(operation.part(names_of(operation).images)),
        weights(operation.part(names_of(operation).weights)),
        results(operation.part(names_of(operation).results)) {
    const Node& window = operation.part(names_of(operation).window);
    strides = window.list<std::int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    before = window.list<std::int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
    const auto after = window.list<std::int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
    for (std::size_t side = 0; side < 2; ++side) {
      const std::int64_t room = images.dims[2 + side] + before[side] + after[side] - weights.dims[2 + side];
      if (room / strides[side] + 1 != results.dims[2 + side])
        report("results of a convolution have other sizes");
    }
    if (images.dims[0] != results.dims[0] || weights.dims[0] != results.dims[1] ||
        images.dims[1] % weights.dims[1] != 0)
      report("the operands of a convolution do not fit together");
  }
  const Operand& made() const {
    if (pass == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR) return results;
    return pass == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? images : weights;
  }
  // visit(places in images, weights and results, count, steps in images and results) of runs of products
  // along a row: one at a time this was nearly all that tests of convolutions computed.
  template <typename Visit>
  void for_rows(const Visit& visit) const {
    const std::int64_t groups = images.dims[1] / weights.dims[1], filters = weights.dims[0] / groups;
    const std::int64_t step = strides[1];
    for (std::int64_t n = 0; n < images.dims[0]; ++n)
      for (std::int64_t k = 0; k < weights.dims[0]; ++k)
        for (std::int64_t c = 0; c < weights.dims[1]; ++c)
          for (std::int64_t r = 0; r < weights.dims[2]; ++r)
            for (std::int64_t s = 0; s < weights.dims[3]; ++s) {
              const std::int64_t shift = s - before[1];  // column p · step + shift of the images
              const std::int64_t first = shift < 0 ? (step - 1 - shift) / step : 0;
              const std::int64_t behind = images.dims[3] - 1 - shift;
              const std::int64_t end = behind < 0 ? 0 : std::min(results.dims[3], behind / step + 1);
              for (std::int64_t o = 0; o < results.dims[2] && first < end; ++o) {
                const std::int64_t row = o * strides[0] - before[0] + r;
                if (row < 0 || row >= images.dims[2]) continue;
                visit(images.at(n, k / filters * weights.dims[1] + c, row, first * step + shift),
                      weights.at(k, c, r, s), results.at(n, k, o, first), end - first,
                      images.strides[3] * step, results.strides[3]);
              }
            }
  }
};

std::vector<double> factors(const float* from, const Operand& operand, bool rounds) {
  std::vector<double> all(static_cast<std::size_t>(operand.extent()));
  std::transform(from, from + operand.extent(), all.begin(),
                 [rounds](float x) { return rounds ? to_tf32(x) : x; });
  return all;
}

// to[i · to_step] += from[i · from_step] · factor
void add_run(double* to, std::int64_t to_step, const double* from, std::int64_t from_step, double factor,
             std::int64_t count) {
  if (to_step == 1 && from_step == 1) return add_multiple(to, from, factor, count);
  for (std::int64_t i = 0; i < count; ++i) to[i * to_step] += from[i * from_step] * factor;
}
double dot_of_runs(const double* x, std::int64_t x_step, const double* y, std::int64_t y_step,
                   std::int64_t count) {
  if (x_step == 1 && y_step == 1) return dot(x, y, count);
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += x[i * x_step] * y[i * y_step];
  return sum;
}

void compute(const Problem& problem, const Engine& engine, float* images, float* weights, float* results) {
  static int runs = 0;
  const float factor = engine.off + (engine.varies ? 1e-6F * static_cast<float>(++runs % 2) : 0);
  const auto x = factors(images, problem.images, engine.rounds),
             f = factors(weights, problem.weights, engine.rounds),
             z = factors(results, problem.results, engine.rounds);
  std::vector<double> sum(static_cast<std::size_t>(problem.made().extent()));
  using Int = std::int64_t;
  if (&problem.made() == &problem.results)
    problem.for_rows([&](Int i, Int w, Int y, Int count, Int i_step, Int y_step) {
      add_run(&sum[y], y_step, &x[i], i_step, f[w], count);
    });
  else if (&problem.made() == &problem.images)
    problem.for_rows([&](Int i, Int w, Int y, Int count, Int i_step, Int y_step) {
      add_run(&sum[i], i_step, &z[y], y_step, f[w], count);
    });
  else
    problem.for_rows([&](Int i, Int w, Int y, Int count, Int i_step, Int y_step) {
      sum[w] += dot_of_runs(&x[i], i_step, &z[y], y_step, count);
    });
  float* const made = &problem.made() == &problem.results  ? results
                      : &problem.made() == &problem.images ? images
                                                           : weights;
  for (std::size_t i = 0; i < sum.size(); ++i) made[i] = static_cast<float>(sum[i]) * factor;
}

template <typename Body>
cudnnStatus_t dnn_call(const char* name, const Body& body) {
  MutexLock lock(state_mutex());
  if (begins_failing(name)) return CUDNN_STATUS_EXECUTION_FAILED;
  body();
  return CUDNN_STATUS_SUCCESS;
}

template <typename T>
void answer(const std::vector<T>& values, std::int64_t asked, std::int64_t* count, void* to) {
  *count = static_cast<std::int64_t>(values.size());
  if (to != nullptr)
    std::memcpy(to, values.data(), sizeof(T) * static_cast<std::size_t>(std::min(asked, *count)));
}

// The descriptors to fill in are the caller's.
void answer_engines(const Node& heuristics, std::int64_t asked, std::int64_t* count, void* to) {
  const bool is_fallback = heuristics.list<int>(CUDNN_ATTR_ENGINEHEUR_MODE).at(0) == CUDNN_HEUR_MODE_FALLBACK;
  std::vector<const Engine*> engines;
  if (is_fallback)
    for (const Engine& engine : kFallback) engines.push_back(&engine);
  else
    for (const Engine& engine : kEngines) engines.push_back(&engine);
  *count = static_cast<std::int64_t>(engines.size());
  for (std::int64_t i = 0; to != nullptr && i < std::min(asked, *count); ++i) {
    Node& configuration = *node_of(static_cast<cudnnBackendDescriptor_t*>(to)[i]);
    configuration.engine = engines[i];
    configuration.parts[CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH] =
        heuristics.parts.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  }
}

void answer_attribute(const Node& node, int name, std::int64_t asked, std::int64_t* count, void* to) {
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: return answer_engines(node, asked, count, to);
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      node_of(*static_cast<cudnnBackendDescriptor_t*>(to))->engine = node.engine;
      *count = 1;
      return;
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX: return answer(std::vector{node.engine->number}, asked, count, to);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: {
      std::vector<cudnnBackendNumericalNote_t> notes;
      if (node.engine->rounds)
        notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS};
      return answer(notes, asked, count, to);
    }
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
      return answer(std::vector<cudnnBackendBehaviorNote_t>(), asked, count, to);
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      return answer(std::vector{node.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).engine->workspace}, asked,
                    count, to);
    default: report("attribute {} is unknown to the fake", name);
  }
}

struct DnnHandle {
  int gpu;
  cudaStream_t stream = nullptr;
};

void execute(const DnnHandle& handle, const Node& plan, const Node& pack) {
  if (handle.gpu != current_gpu()) report("the handle is of GPU {}", handle.gpu);
  const Node& configuration = plan.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const Engine& engine = *configuration.engine;
  const Problem problem(
      configuration.part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).part(CUDNN_ATTR_OPERATIONGRAPH_OPS));
  const auto ids = pack.list<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = pack.list<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  const auto memory = [&](const Operand& operand) {
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (ids[i] == operand.id)
        return reinterpret_cast<float*>(
            on_host(handle.gpu, pointers[i], static_cast<std::size_t>(operand.extent()) * sizeof(float), 16));
    report("no memory is given for tensor {}", operand.id);
  };
  float *const images = memory(problem.images), *const weights = memory(problem.weights),
               *const results = memory(problem.results);
  const auto workspace = static_cast<std::size_t>(engine.workspace);
  std::byte* const scratch =
      workspace == 0
          ? nullptr
          : on_host(handle.gpu, pack.list<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE).at(0), workspace, 16);
  elapsed_milliseconds() = milliseconds_of("KOLO_FAKE_CUDNN_MS", engine.number);
  enqueue(handle.stream, [=] {
    if (workspace > 0) std::memset(scratch, 0xee, workspace);  // nobody else's meanwhile
    compute(problem, engine, images, weights, results);
  });
}

}  // namespace
}  // namespace kolo::fake_cuda

using namespace kolo::fake_cuda;

extern "C" {

std::size_t cudnnGetVersion() { return std::getenv("KOLO_FAKE_CUDNN_VERSION") ? 91400 : 91900; }
std::size_t cudnnGetCudartVersion() { return CUDART_VERSION; }
void cudnnGetLastErrorString(char* text, std::size_t bytes) { std::strncpy(text, "the fake's", bytes); }

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  return dnn_call("cudnnCreate", [&] {
    // kolo keeps them to the end of the process.
    *handle = reinterpret_cast<cudnnHandle_t>(new kolo::fake_cuda::DnnHandle{current_gpu()});
    static auto* const kept = new std::vector<void*>;
    kept->push_back(*handle);
  });
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return dnn_call("cudnnSetStream",
                  [&] { reinterpret_cast<kolo::fake_cuda::DnnHandle*>(handle)->stream = stream; });
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* made) {
  return dnn_call("cudnnBackendCreateDescriptor", [&] {
    auto node = std::make_shared<Node>(Node{type});
    *made = node.get();
    nodes()[node.get()] = std::move(node);
    count_object(1);
  });
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  kolo::MutexLock lock(state_mutex());
  if (nodes().erase(descriptor) == 0) report("{} has been given back before", descriptor);
  count_object(-1);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count,
                                       const void* values) {
  return dnn_call("cudnnBackendSetAttribute", [&] {
    const auto node = node_of(descriptor);
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
      node->parts[name] = node_of(*static_cast<const cudnnBackendDescriptor_t*>(values));
      return;
    }
    const auto* const bytes = static_cast<const std::byte*>(values);
    node->values[name].assign(bytes, bytes + size_of(type) * static_cast<std::size_t>(count));
  });
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return dnn_call("cudnnBackendFinalize", [&] {
    const auto node = node_of(descriptor);
    if (node->type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)
      Problem(node->part(CUDNN_ATTR_OPERATIONGRAPH_OPS));
  });
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, std::int64_t asked, std::int64_t* count,
                                       void* values) {
  return dnn_call("cudnnBackendGetAttribute",
                  [&] { answer_attribute(*node_of(descriptor), name, asked, count, values); });
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  return dnn_call("cudnnBackendExecute", [&] {
    execute(*reinterpret_cast<kolo::fake_cuda::DnnHandle*>(handle), *node_of(plan), *node_of(pack));
  });
}
}

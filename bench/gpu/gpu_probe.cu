// gpu_probe asks one NVIDIA GPU what no header answers; --help lists the questions. It uses nothing of kolo's
// and links nothing but cudart_static, so that nvcc and the headers of cuDNN and NCCL are enough to build it.
// Each question has a process with a deadline of its own: one that hangs or crashes costs its own rows only,
// and nothing needs to be freed.
#include <cublasLt.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <nccl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <functional>
#include <future>
#include <tuple>

namespace {

std::string question;
struct Skip : std::runtime_error {
  using std::runtime_error::runtime_error;
};  // it cannot be asked here

template <class... Values>
std::string text(const char* format, Values... values) {
  std::string buffer(8000, '\0');
  buffer.resize(
      std::min<size_t>(snprintf(buffer.data(), buffer.size(), format, values...), buffer.size() - 1));
  return buffer;
}

void row(const std::string& test, const char* status, double value, const char* unit,
         const std::string& detail) {
  std::string quoted;
  for (const char c : detail)
    quoted += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c < ' ' && c >= 0 ? ' ' : c);
  const std::string number = std::isfinite(value) ? text("%.12g", value) : "null";
  printf("{\"test\":\"%s\",\"status\":\"%s\",\"value\":%s,\"unit\":\"%s\",\"detail\":\"%s\"}\n",
         (question + test).c_str(), status, number.c_str(), unit, quoted.c_str());
  fflush(stdout);  // the row stands even if the next call kills the process
}

// What a part throws is a row of its own; the parts behind it are still asked.
void ask(const std::string& test, const std::function<void()>& part) {
  try {
    part();
  } catch (const std::exception& e) {
    row(test, dynamic_cast<const Skip*>(&e) ? "skipped" : "failed", NAN, "", e.what());
  }
}

template <class Code>
void check(Code code, const char* call, const char* words = "") {
  if constexpr (std::is_same_v<Code, cudaError_t>) words = cudaGetErrorString(code);
  if (code) throw std::runtime_error(text("%.60s: %d %s", call, int(code), words));
}
#define KOLO_CHECK(call) check(call, #call)

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// $KOLO_CUDA_LIBRARIES, the loader's search, the toolkit's folder, pip's: the shell lists them, the first
// that opens is taken. A library whose `cudart_version` says that it was built for another CUDA major is
// passed over: the soname does not tell.
void* open_library(const std::string& name, const char* cudart_version = nullptr) {
  FILE* paths =
      popen(text("IFS=:; for d in $KOLO_CUDA_LIBRARIES; do echo $d/%1$s; done; echo %1$s; echo "
                 "/usr/local/cuda/lib64/%1$s; "
                 "python3 -c \"import glob, sys; print(*(f for p in sys.path for f in glob.glob(p + "
                 "'/nvidia/*/lib/%1$s')), sep='\\n')\"",
                 name.c_str())
                .c_str(),
            "r");
  std::string tried;
  for (char path[4096]; paths && fscanf(paths, "%4095[^\n]\n", path) == 1;) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const auto version =
        reinterpret_cast<size_t (*)()>(library && cudart_version ? dlsym(library, cudart_version) : nullptr);
    if (library && (!version || version() / 1000 == CUDART_VERSION / 1000)) return library;
    tried += text("%s: %s; ", path, library ? "for another CUDA" : dlerror());
  }
  throw Skip(tried);
}

void* find_symbol(void* library, const char* name) {
  if (void* symbol = dlsym(library, name)) return symbol;
  throw Skip(text("%s is missing", name));
}
// A library's function with the type that the header declares, so that a wrong argument does not compile.
#define KOLO_IN(library, name) reinterpret_cast<decltype(&name)>(find_symbol(library, #name))

void library_row(double version, void* symbol) {
  Dl_info place{};
  row("/library", "ok", version, "version", dladdr(symbol, &place) ? place.dli_fname : "");
}

// ---- The device: one stream, nothing that waits but wait()
__device__ int64_t thread_index() { return int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }

__global__ void fill_random(float* out, int64_t count, uint64_t seed) {  // uniform in [-1, 1), splitmix64
  const int64_t i = thread_index();
  uint64_t z = (i + (seed << 40)) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  if (i < count) out[i] = static_cast<float>(z >> 40) * 0x1p-23f - 1.0f;
}

__global__ void count_different(const unsigned* a, const unsigned* b, int64_t count, unsigned* different) {
  const int64_t i = thread_index();
  if (i < count && a[i] != b[i]) atomicAdd(different, 1u);
}

// The largest |out - sum ab| / sum |ab|, as bits: those of positive doubles are in order, and a NaN is above
// them all.
template <class Sum>
__global__ void largest_error(Sum sum, const float* out, int64_t count, unsigned long long* error) {
  const int64_t i = thread_index();
  if (i >= count) return;
  double magnitude = 1e-30;
  const double difference = out[i] - sum(i, &magnitude);
  atomicMax(error, static_cast<unsigned long long>(__double_as_longlong(fabs(difference / magnitude))));
}

struct Gpu {
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
  static constexpr size_t kWorkspaceBytes = size_t{256} << 20;

  Gpu() {
    // Asked first: no driver and a driver too old have the same code, 35.
    if (!dlopen("libcuda.so.1", RTLD_NOW)) throw Skip("no CUDA device");
    int devices = 0;
    const cudaError_t code = cudaGetDeviceCount(&devices);
    if (code == cudaErrorNoDevice || code == cudaErrorStubLibrary) throw Skip("no CUDA device");
    check(code, "cudaGetDeviceCount");
    KOLO_CHECK(cudaSetDevice(0));
    KOLO_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    KOLO_CHECK(cudaMalloc(&workspace, kWorkspaceBytes));
  }
  void wait() { KOLO_CHECK(cudaStreamSynchronize(stream)); }
  template <class T>
  T* array(int64_t count, bool pinned = false) {
    void* memory = nullptr;
    if (pinned) KOLO_CHECK(cudaHostAlloc(&memory, count * sizeof(T), cudaHostAllocMapped));
    else KOLO_CHECK(cudaMalloc(&memory, count * sizeof(T)));
    return static_cast<T*>(memory);
  }
  template <class... Parameters, class... Arguments>
  void launch(int64_t threads, void (*kernel)(Parameters...), Arguments... arguments) {
    kernel<<<static_cast<unsigned>((threads + 255) / 256), 256, 0, stream>>>(arguments...);
    check(cudaGetLastError(), "launch");
  }
  float* random(int64_t count, uint64_t seed) {
    float* values = array<float>(count);
    launch(count, fill_random, values, count, seed);
    return values;
  }
  void copy(void* dst, const void* src, size_t bytes) {
    KOLO_CHECK(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, stream));
  }
  void fill(void* dst, int byte, size_t bytes) { KOLO_CHECK(cudaMemsetAsync(dst, byte, bytes, stream)); }
  // Microseconds of each of `times` back to back, until the device has done the last.
  double microseconds(int times, const std::function<void()>& work) {
    wait();
    const double begin = now();
    for (int i = 0; i < times; ++i) work();
    wait();
    return (now() - begin) / times * 1e6;
  }
  // The row of one product of a library's: its time, whether 20 repeats give the same bits, its error beside
  // a plain kernel's f64 sum. Output and workspace are poisoned first: what `run` leaves out, or reads before
  // it writes it, shows.
  template <class Sum>
  void judge(const std::string& test, float* out, int64_t count, size_t workspace_bytes, Sum sum,
             double limit, const std::string& detail, const std::function<void()>& run) {
    unsigned *first = array<unsigned>(count), *out_bits = reinterpret_cast<unsigned*>(out),
             *device_counts = array<unsigned>(20), counts[20];
    auto* device_error = array<unsigned long long>(1);
    double error = 0;
    fill(device_counts, 0, sizeof counts);
    fill(device_error, 0, sizeof error);
    for (int i = 0; i < 20; ++i) {
      fill(out, 0xFF, count * sizeof(float));
      fill(workspace, i * 37, workspace_bytes);
      run();
      if (i == 0) copy(first, out, count * sizeof(float));
      launch(count, count_different, first, out_bits, count, device_counts + i);
    }
    launch(count, largest_error<Sum>, sum, out, count, device_error);
    copy(counts, device_counts, sizeof counts);
    copy(&error, device_error, sizeof error);
    const double time = microseconds(100, run);
    const int differing = 20 - int(std::count(counts, counts + 20, 0u));
    row(test, differing == 0 && error <= limit ? "ok" : "failed", time, "us",
        text("%s; %d of 20 repeats differ; error %.1e of sum|ab|; workspace %.3f MiB", detail.c_str(),
             differing, error, double(workspace_bytes) / (1 << 20)));
  }
};

// ---- cuDNN: f32 convolutions without tensor cores
const char* kDeviceJson =  // probes/dp.json, from data sheets
    R"({"maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64])"
    R"(, "regsPerBlock": 65536, "multiProcessorCount": 132, "warpSize": 32)"
    R"(, "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448)"
    R"(, "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "maxCtasPerSM": 32)"
    R"(, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 0, "isTccDriver": 0)"
    R"(, "supportCoopLaunch": 1, "totalGlobalMem": 150110011392, "smClockRateKHz": 1980000)"
    R"(, "memClockRateKHz": 3201000, "l2CacheSize": 62914560, "cudaDeviceId": 0, "deviceVer": 900)"
    R"(, "driverVer": 13000, "deviceName": "NVIDIA H200"})";

using Descriptor = cudnnBackendDescriptor_t;
struct Attribute {
  int name;  // cudnnBackendAttributeName_t
  cudnnBackendAttributeType_t type;
  int64_t count;
  const void* values;
};
Attribute descriptor(int name, const Descriptor* value) {
  return {name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, value};
}
Attribute integers(int name, std::initializer_list<int64_t> values) {  // kept for the life of the process
  return {name, CUDNN_TYPE_INT64, int64_t(values.size()), (new std::vector<int64_t>(values))->data()};
}

struct Plan {
  Descriptor descriptor;
  int64_t workspace_bytes;
  std::string label;  // engine and numerical notes
};

struct Cudnn {
  void* library = open_library("libcudnn.so.9", "cudnnGetCudartVersion");
  cudnnHandle_t handle = nullptr;  // null: plans are made for `properties`, without a GPU
  Descriptor properties = nullptr;

  void check(cudnnStatus_t code, const char* call) {
    char words[1000] = "";
    if (code) KOLO_IN(library, cudnnGetLastErrorString)(words, sizeof words);
    (::check)(code, call, words);
  }
  Descriptor make(cudnnBackendDescriptorType_t type, const std::vector<Attribute>& attributes) {
    Descriptor made = nullptr;
    KOLO_CHECK(KOLO_IN(library, cudnnBackendCreateDescriptor)(type, &made));
    for (const Attribute& a : attributes)
      KOLO_CHECK(KOLO_IN(library, cudnnBackendSetAttribute)(made, cudnnBackendAttributeName_t(a.name), a.type,
                                                            a.count, a.values));
    if (!attributes.empty()) KOLO_CHECK(KOLO_IN(library, cudnnBackendFinalize)(made));
    return made;
  }
  template <class T>
  std::vector<T> get(Descriptor from, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                     std::vector<T> values) {
    int64_t count = 0;
    KOLO_CHECK(
        KOLO_IN(library, cudnnBackendGetAttribute)(from, name, type, values.size(), &count, values.data()));
    values.resize(std::min<int64_t>(count, values.size()));
    return values;
  }
  Descriptor tensor(int64_t id, int64_t n, int64_t c, int64_t h, int64_t w) {  // f32, dense, NCHW
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    return make(CUDNN_BACKEND_TENSOR_DESCRIPTOR,
                {{CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type},
                 integers(CUDNN_ATTR_TENSOR_DIMENSIONS, {n, c, h, w}),
                 integers(CUDNN_ATTR_TENSOR_STRIDES, {c * h * w, h * w, w, 1}),
                 integers(CUDNN_ATTR_TENSOR_UNIQUE_ID, {id}),
                 integers(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, {16})});
  }
  // A convolution 5x5 with SAME padding: 0 forward, 1 data gradient, 2 filter gradient.
  Descriptor convolution(int direction, int64_t n, int64_t c, int64_t k, int64_t side) {
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const float one = 1, zero = 0;
    const Descriptor w = tensor(1, k, c, 5, 5), x = tensor(2, n, c, side, side),
                     y = tensor(3, n, k, side, side);
    const Descriptor shape = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
                                  {{CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type},
                                   {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode},
                                   integers(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, {2}),
                                   integers(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {2, 2}),
                                   integers(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, {2, 2}),
                                   integers(CUDNN_ATTR_CONVOLUTION_DILATIONS, {1, 1}),
                                   integers(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {1, 1})});
    const cudnnBackendDescriptorType_t types[] = {
        CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR};
    // Each direction's six attributes follow each other as alpha, beta, convolution, w, x, y.
    const int at = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA + 6 * direction;
    return make(types[direction], {{at, CUDNN_TYPE_FLOAT, 1, &one},
                                   {at + 1, CUDNN_TYPE_FLOAT, 1, &zero},
                                   descriptor(at + 2, &shape),
                                   descriptor(at + 3, &w),
                                   descriptor(at + 4, &x),
                                   descriptor(at + 5, &y)});
  }
  // Whether f32 may take the engine of a configuration: precompiled, no tensor cores, no rounded inputs, the
  // same bits in each run.
  bool suits(Descriptor configuration, std::string& label) {
    std::vector<Descriptor> engine{make(CUDNN_BACKEND_ENGINE_DESCRIPTOR, {})};
    engine = get(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, engine);
    std::vector<int64_t> index(1);
    std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
    std::vector<cudnnBackendBehaviorNote_t> behavior(CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
    index = get(engine.at(0), CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, index);
    notes = get(engine[0], CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, notes);
    behavior = get(engine[0], CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, behavior);
    label = text("engine %d", int(index.at(0)));
    for (const auto note : notes) label += text(" note %d", int(note));
    return std::count(notes.begin(), notes.end(), CUDNN_NUMERICAL_NOTE_TENSOR_CORE) == 0 &&
           std::count(notes.begin(), notes.end(), CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) == 0 &&
           std::count(notes.begin(), notes.end(), CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) == 0 &&
           std::count(behavior.begin(), behavior.end(), CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) == 0;
  }
  // The plans that suit, in the heuristic's order, for `handle` or else for `properties`.
  std::vector<Plan> plans(Descriptor operation, std::string& left_out) {
    std::vector<Attribute> of_graph{descriptor(CUDNN_ATTR_OPERATIONGRAPH_OPS, &operation)};
    if (handle) of_graph.push_back({CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle});
    const Descriptor graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, of_graph);
    std::vector<Plan> found;
    size_t configurations = 0, noted = 0, refused = 0;
    std::string label;
    for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
      std::vector<Attribute> of_heuristic{descriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, &graph)};
      of_heuristic.push_back({CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode});
      if (!handle) of_heuristic.push_back(descriptor(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, &properties));
      const Descriptor heuristic = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, of_heuristic);
      std::vector<Descriptor> offered(100);
      for (Descriptor& place : offered) place = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, {});
      offered = get(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, offered);
      configurations += offered.size();
      for (const Descriptor configuration : offered) {
        if (!suits(configuration, label) && ++noted) continue;
        std::vector<Attribute> of_plan{descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, &configuration)};
        if (handle) of_plan.push_back({CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle});
        else of_plan.push_back(descriptor(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, &properties));
        try {
          const Descriptor plan = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, of_plan);
          std::vector<int64_t> bytes(1);
          bytes = get(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, bytes);
          if (bytes.at(0) <= int64_t(Gpu::kWorkspaceBytes)) found.push_back({plan, bytes[0], label});
          else ++refused;
        } catch (const std::runtime_error&) {
          ++refused;
        }
      }
    }
    left_out = text("of %zu configurations %zu are left out by their notes, %zu refused or too large",
                    configurations, noted, refused);
    return found;
  }
};

struct ConvolutionSum {  // the plain convolution: one element of y, dx or dw, as cuDNN's directions 0, 1, 2
  int direction, n, c, k, side;
  const float *w, *x, *y;
  __device__ double operator()(int64_t i, double* magnitude) const {
    double sum = 0;
    const auto add = [&](const float* image, int row, int column, float factor) {
      if (row < 0 || row >= side || column < 0 || column >= side) return;
      const double product = double(image[row * side + column]) * factor;
      sum += product;
      *magnitude += fabs(product);
    };
    const int area = side * side;
    if (direction == 2) {
      const int q = i % 5 - 2, r = i / 5 % 5 - 2, channel = i / 25 % c, filter = i / 25 / c;
      for (int image = 0; image < n; ++image)
        for (int at = 0; at < area; ++at)
          add(x + (image * c + channel) * area, at / side + r, at % side + q,
              y[(image * k + filter) * area + at]);
      return sum;
    }
    const int inner = direction == 0 ? c : k, outer = direction == 0 ? k : c, sign = direction == 0 ? 1 : -1;
    const int column = i % side, row = i / side % side, to = i / area % outer, image = i / area / outer;
    for (int from = 0; from < inner; ++from)
      for (int tap = 0; tap < 25; ++tap)
        add((direction == 0 ? x : y) + (image * inner + from) * area, row + sign * (tap / 5 - 2),
            column + sign * (tap % 5 - 2), w[(direction == 0 ? to * c + from : from * c + to) * 25 + tap]);
    return sum;
  }
};

// Every plan of LeNet's two convolutions: what the device JSON promises and, with `gpu`, what is here and how
// it runs.
void convolutions(Gpu* gpu) {
  Cudnn dnn;
  library_row(double(KOLO_IN(dnn.library, cudnnGetVersion)()), dlsym(dnn.library, "cudnnGetVersion"));
  dnn.properties = dnn.make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR,
                            {{CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                              int64_t(strlen(kDeviceJson)), kDeviceJson}});
  cudnnHandle_t handle = nullptr;
  if (gpu) dnn.check(KOLO_IN(dnn.library, cudnnCreate)(&handle), "cudnnCreate");
  if (gpu) dnn.check(KOLO_IN(dnn.library, cudnnSetStream)(handle, gpu->stream), "cudnnSetStream");
  const auto execute = KOLO_IN(dnn.library, cudnnBackendExecute);
  const auto convolution = [&](const std::string& test, int direction, int n, int c, int k, int side) {
    const Descriptor operation = dnn.convolution(direction, n, c, k, side);
    const auto list = [&](const std::string& name, cudnnHandle_t for_handle) {
      std::string left_out, labels;
      dnn.handle = for_handle;
      const auto plans = dnn.plans(operation, left_out);
      for (const Plan& plan : plans)
        labels += text("%s %.2f MiB; ", plan.label.c_str(), double(plan.workspace_bytes) / (1 << 20));
      row(test + name, plans.empty() ? "failed" : "ok", double(plans.size()), "plans", labels + left_out);
      return plans;
    };
    list("/promised_by_json", nullptr);
    if (!gpu) return;
    const auto plans = list("/here", handle);
    const int64_t area = side * side, sizes[] = {int64_t{k} * c * 25, n * c * area, n * k * area};
    float* tensors[3];  // w, x, y; the sum does not read the one that the direction writes
    for (int t = 0; t < 3; ++t) tensors[t] = gpu->random(sizes[t], t + 1);
    const ConvolutionSum sum{direction, n, c, k, side, tensors[0], tensors[1], tensors[2]};
    const Descriptor pack =
        dnn.make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
                 {integers(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, {1, 2, 3}),
                  {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, tensors},
                  {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &gpu->workspace}});
    for (size_t i = 0; i < plans.size(); ++i) {
      const std::string name = test + text("/plan%zu", i);
      const auto run = [&] { dnn.check(execute(handle, plans[i].descriptor, pack), "cudnnBackendExecute"); };
      ask(name, [&] {
        gpu->judge(name, tensors[2 - direction], sizes[2 - direction], plans[i].workspace_bytes, sum, 1e-5,
                   plans[i].label, run);
      });
    }
  };
  const char* directions[] = {"forward", "data_gradient", "filter_gradient"};
  for (int direction = 0; direction < 3; ++direction) {
    const std::string one = std::string("/conv1/") + directions[direction],
                      two = std::string("/conv2/") + directions[direction];
    ask(one, [&] { convolution(one, direction, 64, 1, 32, 28); });
    ask(two, [&] { convolution(two, direction, 64, 32, 64, 14); });
  }
}
void ask_convolution() {
  Gpu gpu;
  convolutions(&gpu);
}
void ask_plans() { convolutions(nullptr); }

// ---- The device, beside the JSON that plans are made from without it
std::string json_member(const std::string& json, const std::string& name) {
  const size_t at = json.find(name + ": ") + name.size() + 2;
  return json.substr(at, json[at] == '[' ? json.find(']', at) + 1 - at : json.find_first_of(",}", at) - at);
}

void ask_device() {
  Gpu gpu;
  cudaDeviceProp p;
  int driver = 0, runtime = 0, clock = 0, memory_clock = 0;
  size_t free_bytes = 0, total_bytes = 0;
  KOLO_CHECK(cudaGetDeviceProperties(&p, 0));
  KOLO_CHECK(cudaDriverGetVersion(&driver));
  KOLO_CHECK(cudaRuntimeGetVersion(&runtime));
  KOLO_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
  KOLO_CHECK(cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, 0));  // kHz; CUDA 13's properties lack both
  KOLO_CHECK(cudaDeviceGetAttribute(&memory_clock, cudaDevAttrMemoryClockRate, 0));
  row("/name", "ok", p.major * 10 + p.minor, "capability", p.name);
  row("/driver", "ok", driver, "version", text("runtime %d", runtime));
  row("/free_memory", "ok", double(free_bytes), "B", text("of %zu", total_bytes));
  const std::string here = text(
      R"({"maxGridSize": [%d, %d, %d], "maxBlockSize": [%d, %d, %d], "regsPerBlock": %d, )"
      R"("multiProcessorCount": %d, "warpSize": %d, "maxSharedMemoryPerBlock": %zu, )"
      R"("maxSharedMemoryPerBlockOptin": %zu, "reservedSharedMemoryPerBlock": %zu, "maxRegistersPerSM": %d, )"
      R"("maxCtasPerSM": %d, "maxThreadsPerBlock": %d, "maxThreadsPerSM": %d, "pciDeviceId": %d, )"
      R"("isTccDriver": %d, "supportCoopLaunch": %d, "totalGlobalMem": %zu, "smClockRateKHz": %d, )"
      R"("memClockRateKHz": %d, "l2CacheSize": %d, "cudaDeviceId": 0, "deviceVer": %d, "driverVer": %d, )"
      R"("deviceName": "%s"})",
      p.maxGridSize[0], p.maxGridSize[1], p.maxGridSize[2], p.maxThreadsDim[0], p.maxThreadsDim[1],
      p.maxThreadsDim[2], p.regsPerBlock, p.multiProcessorCount, p.warpSize, p.sharedMemPerBlock,
      p.sharedMemPerBlockOptin, p.reservedSharedMemPerBlock, p.regsPerMultiprocessor,
      p.maxBlocksPerMultiProcessor, p.maxThreadsPerBlock, p.maxThreadsPerMultiProcessor, p.pciDeviceID,
      p.tccDriver, p.cooperativeLaunch, p.totalGlobalMem, clock, memory_clock, p.l2CacheSize,
      p.major * 100 + p.minor * 10, driver, p.name);
  row("/json", "ok", NAN, "", here);
  const std::string promised = kDeviceJson;
  for (size_t at = 0, end; (at = promised.find('"', at)) != promised.npos;
       at = end + 2) {  // each `"name": `, or the last value
    end = promised.find('"', at + 1);
    const std::string name = promised.substr(at, end + 1 - at);
    if (promised[end + 1] != ':') break;
    const std::string mine = json_member(here, name), other = json_member(promised, name);
    row("/json/" + name.substr(1, name.size() - 2), "ok", isdigit(mine[0]) ? std::stod(mine) : NAN, "",
        "here " + mine + ", promised " + other + (mine == other ? "" : ": another GPU or driver"));
  }
  ask("/json_of_cudnn", [&] {
    Cudnn dnn;
    std::vector<char> json(65536);
    dnn.check(KOLO_IN(dnn.library, cudnnCreate)(&dnn.handle), "cudnnCreate");
    const Attribute of_handle{CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE, 1, &dnn.handle};
    const Descriptor device = dnn.make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, {of_handle});
    json = dnn.get(device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, json);
    row("/json_of_cudnn", "ok", NAN, "", std::string(json.begin(), json.end()).c_str());
  });
}

// ---- NCCL with one rank
__global__ void hang(volatile int* started, volatile int* release, long long nanoseconds) {
  long long begin, at;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  *started = 1;
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(at));
  while (*release == 0 && at - begin < nanoseconds);
}

void ask_nccl() {
  Gpu gpu;
  void* library = open_library("libnccl.so.2");
  ncclComm_t comm = nullptr;
  // blocking = 0: each call may say ncclInProgress, and nothing else may be asked of the communicator until
  // that ends.
  const auto settle = [&](ncclResult_t code, const char* call) {
    for (const double end = now() + 20; code == ncclInProgress && now() < end; sched_yield())
      if (const ncclResult_t asked = KOLO_IN(library, ncclCommGetAsyncError)(comm, &code)) code = asked;
    check(code, call, KOLO_IN(library, ncclGetErrorString)(code));
  };
  int version = 0;
  settle(KOLO_IN(library, ncclGetVersion)(&version), "ncclGetVersion");
  library_row(version, dlsym(library, "ncclGetVersion"));
  ncclUniqueId id;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const double begin = now();
  settle(KOLO_IN(library, ncclGetUniqueId)(&id), "ncclGetUniqueId");
  const ncclResult_t first = KOLO_IN(library, ncclCommInitRankConfig)(&comm, 1, id, 0, &config);
  settle(first, "ncclCommInitRankConfig");
  row("/init", "ok", now() - begin, "s", text("the call said %d, polled to the end", int(first)));

  const int64_t count = 1 << 18;
  const float* pattern = gpu.random(count, 1);
  float* sum = gpu.array<float>(count);
  unsigned *device_different = gpu.array<unsigned>(1), different = 0;
  const auto all_reduce = [&] {
    settle(KOLO_IN(library, ncclAllReduce)(pattern, sum, count, ncclFloat, ncclSum, comm, gpu.stream),
           "ncclAllReduce");
  };
  gpu.fill(sum, 0xFF, count * sizeof(float));
  gpu.fill(device_different, 0, sizeof different);
  all_reduce();
  gpu.launch(count, count_different, reinterpret_cast<const unsigned*>(pattern),
             reinterpret_cast<const unsigned*>(sum), count, device_different);
  gpu.copy(&different, device_different, sizeof different);
  gpu.wait();
  row("/all_reduce", different == 0 ? "ok" : "failed", gpu.microseconds(100, all_reduce), "us",
      text("1 MiB, %u of %d words differ from the pattern", different, int(count)));

  int* flags = gpu.array<int>(2, true);  // started, release
  flags[0] = flags[1] = 0;
  gpu.launch(1, hang, flags, flags + 1, 5'000'000'000);
  for (const double end = now() + 3; std::atomic_ref(flags[0]) == 0 && now() < end;) sched_yield();
  all_reduce();
  auto abort = std::async(std::launch::async, [&] {
    const double asked = now();
    KOLO_CHECK(cudaSetDevice(0));
    const int code = KOLO_IN(library, ncclCommAbort)(comm);
    return std::pair{now() - asked, code};
  });
  if (abort.wait_for(std::chrono::seconds(10)) != std::future_status::ready) {
    row("/abort_while_a_kernel_hangs", "failed", NAN, "s", "did not return in 10 s, the kernel ends after 5");
    _exit(0);  // the future would wait for it
  }
  const auto [seconds, code] = abort.get();
  const bool hangs = flags[0] != 0 && cudaStreamQuery(gpu.stream) == cudaErrorNotReady;
  row("/abort_while_a_kernel_hangs", hangs && code == 0 ? "ok" : "failed", seconds, "s",
      text("code %d; the kernel %s", code,
           !flags[0] ? "never began"
           : hangs   ? "still hung"
                     : "had ended (after 5 s)"));
  std::atomic_ref(flags[1]) = 1;
  gpu.wait();
  gpu.launch(count, fill_random, sum, count, 2);
  gpu.wait();
  row("/device_after_abort", "ok", NAN, "", "the stream ran to its end and a kernel behind it");
}

// ---- Two processes on one GPU
struct Shared {  // between two forked workers; each count is raised by one and waited for by the other
  std::atomic<int> arrived[3];
  std::atomic<bool> failed;
};

__global__ void advance(uint64_t* words, int64_t count, uint64_t first) {  // first != 0: begin with it
  const int64_t i = thread_index();
  if (i < count) words[i] = first ? first + i : words[i] * 6364136223846793005u + 1442695040888963407u;
}
__global__ void count_wrong(const uint64_t* words, int64_t count, uint64_t first, int passes,
                            unsigned* wrong) {
  const int64_t i = thread_index();
  uint64_t expected = first + i;
  for (int pass = 0; pass < passes; ++pass) expected = expected * 6364136223846793005u + 1442695040888963407u;
  if (i < count && words[i] != expected) atomicAdd(wrong, 1u);
}

void share(Shared& shared, int worker) {
  const auto meet = [&](int place) {
    ++shared.arrived[place];
    for (const double end = now() + 20; shared.arrived[place] < 2; sched_yield())
      if (shared.failed || now() > end)
        throw std::runtime_error(text("the other process did not come to place %d", place));
  };
  Gpu gpu;
  size_t free_bytes = 0, total_bytes = 0;
  KOLO_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
  const int64_t count = int64_t(0.45 * double(total_bytes)) / 8;
  const uint64_t first = uint64_t(worker + 1) << 60;
  uint64_t* words = gpu.array<uint64_t>(count);
  unsigned *device_wrong = gpu.array<unsigned>(1), wrong = 0;
  gpu.fill(device_wrong, 0, sizeof wrong);
  gpu.launch(count, advance, words, count, first);
  gpu.wait();
  row(text("/memory%d", worker), "ok", double(count) * 8, "B",
      text("0.45 of %zu, free before %zu", total_bytes, free_bytes));
  meet(0);  // both hold their memory, written
  int passes = 0;
  const double begin = now();
  for (; now() < begin + 2; ++passes, gpu.wait()) gpu.launch(count, advance, words, count, uint64_t{0});
  const double rate = passes * double(count) * 16 / (now() - begin) * 1e-9;
  meet(1);
  gpu.launch(count, count_wrong, words, count, first, passes, device_wrong);
  gpu.copy(&wrong, device_wrong, sizeof wrong);
  gpu.wait();
  row(text("/compute%d", worker), wrong == 0 ? "ok" : "failed", rate, "GB/s",
      text("%d passes, %u wrong words", passes, wrong));
  meet(2);  // neither frees before the other has looked
}

void ask_share() {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("mmap");
  auto& shared = *new (memory) Shared{};
  for (int worker = 0; worker < 2; ++worker)
    if (fork() == 0) {  // before any CUDA call, which a forked process could not use
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      alarm(50);
      ask(text("/process%d", worker), [&] {
        try {
          share(shared, worker);
        } catch (...) {
          shared.failed = true;
          throw;
        }
      });
      _exit(0);
    }
  for (int status = 0, worker = 0; worker < 2 && wait(&status) > 0; ++worker)
    if (status)
      shared.failed = true,
      row("/process", "failed", NAN, "", text("a process ended with status %d", status));
}

// ---- Launches and copies
__global__ void nothing() {}
__global__ void scale(float* values, int64_t count) {
  const int64_t i = thread_index();
  if (i < count) values[i] = values[i] * 0.5f + 1.0f;
}

// The elements that a step of LeNet's writes, kernel for kernel: forward, backward, one update a variable.
constexpr int64_t kLenetStep[] = {1605632, 1605632, 1605632, 401408, 802816,  802816,  802816, 200704,
                                  65536,   65536,   65536,   640,    640,     640,     64,     640,
                                  10,      10240,   65536,   65536,  1024,    3211264, 200704, 802816,
                                  802816,  64,      51200,   401408, 1605632, 1605632, 32,     800,
                                  800,     32,      51200,   64,     3211264, 1024,    10240,  10};
static_assert(std::size(kLenetStep) == 40);

void ask_launches() {
  Gpu gpu;
  float* values = gpu.random(3211264, 1);
  const auto measure = [&](const std::string& test, const std::function<void()>& run) {
    std::vector<double> host, whole;
    for (int i = 0; i < 220; ++i) {
      const double begin = now();
      run();
      const double returned = now();
      gpu.wait();
      if (i >= 20) host.push_back((returned - begin) * 1e6), whole.push_back((now() - begin) * 1e6);
    }
    std::sort(host.begin(), host.end()), std::sort(whole.begin(), whole.end());
    row(test + "/host", "ok", host[100], "us",
        text("median of 200, least %.2f: until the call returns", host[0]));
    row(test + "/whole", "ok", whole[100], "us",
        text("median of 200, least %.2f: until the device is done", whole[0]));
    row(test + "/back_to_back", "ok", gpu.microseconds(500, run), "us", "each of 500, one wait at the end");
  };
  const auto step = [&] {
    for (const int64_t count : kLenetStep) gpu.launch(count, scale, values, count);
  };
  measure("/empty_launch", [&] { gpu.launch(1, nothing); });
  measure("/lenet_eager", step);
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  KOLO_CHECK(cudaStreamBeginCapture(gpu.stream, cudaStreamCaptureModeThreadLocal));
  step();
  KOLO_CHECK(cudaStreamEndCapture(gpu.stream, &graph));
  KOLO_CHECK(cudaGraphInstantiate(&executable, graph, 0));
  measure("/lenet_graph", [&] { KOLO_CHECK(cudaGraphLaunch(executable, gpu.stream)); });

  const size_t bytes = size_t{256} << 20, large = size_t{4} << 30;
  char *pinned = gpu.array<char>(bytes, true), *src = gpu.array<char>(large), *dst = gpu.array<char>(large);
  gpu.fill(src, 1, large);
  const auto rate = [&](const char* test, double moved, void* to, const void* from, size_t copied) {
    gpu.copy(to, from, copied);
    row(test, "ok", moved / gpu.microseconds(10, [&] { gpu.copy(to, from, copied); }) * 1e-3, "GB/s",
        text("%zu bytes a copy", copied));
  };
  rate("/pinned_to_device", bytes, src, pinned, bytes);
  rate("/device_to_pinned", bytes, pinned, src, bytes);
  rate("/device_copy", 2.0 * large, dst, src, large);  // read and written
}

// ---- cuBLASLt: LeNet's dense layers, row-major
struct MatmulSum {  // one element of the plain product; a is k x m in memory if `ta`, b is n x k if `tb`
  int m, n, k;
  bool ta, tb;
  const float *a, *b;
  __device__ double operator()(int64_t i, double* magnitude) const {
    const int64_t row = i / n, column = i % n;
    double sum = 0;
    for (int64_t j = 0; j < k; ++j) {
      const double product =
          double(a[ta ? j * m + row : row * k + j]) * b[tb ? column * k + j : j * n + column];
      sum += product;
      *magnitude += fabs(product);
    }
    return sum;
  }
};

void ask_matmul() {
  Gpu gpu;
  void* lt = open_library(text("libcublasLt.so.%d", CUDART_VERSION / 1000));
  library_row(double(KOLO_IN(lt, cublasLtGetVersion)()), dlsym(lt, "cublasLtGetVersion"));
  cublasLtHandle_t handle;
  KOLO_CHECK(KOLO_IN(lt, cublasLtCreate)(&handle));
  const auto multiply = KOLO_IN(lt, cublasLtMatmul);
  const auto layout = [&](int rows, int columns) {  // column-major, dense
    cublasLtMatrixLayout_t made;
    KOLO_CHECK(KOLO_IN(lt, cublasLtMatrixLayoutCreate)(&made, CUDA_R_32F, rows, columns, rows));
    return made;
  };
  const auto judge = [&](const std::string& test, bool tf32, int m, int n, int k, bool ta, bool tb) {
    const float *a = gpu.random(int64_t{m} * k, 1), *b = gpu.random(int64_t{k} * n, 2), one = 1, zero = 0;
    float* c = gpu.array<float>(int64_t{m} * n);
    // Column-major memory is the transposed of row-major: c' = b' a'.
    const cublasOperation_t transpose[] = {tb ? CUBLAS_OP_T : CUBLAS_OP_N, ta ? CUBLAS_OP_T : CUBLAS_OP_N};
    const cublasLtMatrixLayout_t left = layout(tb ? k : n, tb ? n : k),
                                 right = layout(ta ? m : k, ta ? k : m), result = layout(n, m);
    cublasLtMatmulDesc_t product;
    KOLO_CHECK(KOLO_IN(lt, cublasLtMatmulDescCreate)(
        &product, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
    const auto set_product = KOLO_IN(lt, cublasLtMatmulDescSetAttribute);
    KOLO_CHECK(set_product(product, CUBLASLT_MATMUL_DESC_TRANSA, &transpose[0], sizeof transpose[0]));
    KOLO_CHECK(set_product(product, CUBLASLT_MATMUL_DESC_TRANSB, &transpose[1], sizeof transpose[1]));
    // INPLACE is left out: its counters make the order of the sum a matter of luck.
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    const uint64_t most_bytes = 32 << 20;
    cublasLtMatmulPreference_t wish;
    KOLO_CHECK(KOLO_IN(lt, cublasLtMatmulPreferenceCreate)(&wish));
    const auto set_wish = KOLO_IN(lt, cublasLtMatmulPreferenceSetAttribute);
    KOLO_CHECK(set_wish(wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes));
    KOLO_CHECK(set_wish(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most_bytes, sizeof most_bytes));
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0, algorithm = 0, split = 0;
    uint32_t scheme = 0;
    KOLO_CHECK(KOLO_IN(lt, cublasLtMatmulAlgoGetHeuristic)(handle, product, left, right, result, result, wish,
                                                           1, &best, &found));
    if (found == 0) throw std::runtime_error("the heuristic has no algorithm");
    KOLO_CHECK(best.state);
    const auto get = KOLO_IN(lt, cublasLtMatmulAlgoConfigGetAttribute);
    KOLO_CHECK(get(&best.algo, CUBLASLT_ALGO_CONFIG_ID, &algorithm, sizeof algorithm, nullptr));
    KOLO_CHECK(get(&best.algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &split, sizeof split, nullptr));
    KOLO_CHECK(get(&best.algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme, sizeof scheme, nullptr));
    const auto run = [&] {
      check(multiply(handle, product, &one, b, left, a, right, &zero, c, result, c, result, &best.algo,
                     gpu.workspace, best.workspaceSize, gpu.stream),
            "cublasLtMatmul");
    };
    gpu.judge(test, c, int64_t{m} * n, best.workspaceSize, MatmulSum{m, n, k, ta, tb, a, b},
              tf32 ? 2e-3 : 1e-5, text("algorithm %d, split %d, scheme %u", algorithm, split, scheme), run);
  };
  for (const bool tf32 : {false, true})
    for (const auto& [name, inputs, outputs] :
         {std::tuple{"/fc1/", 3136, 1024}, std::tuple{"/fc2/", 1024, 10}}) {
      const auto of = [&, layer = std::string(name)](const char* direction, int m, int n, int k, bool ta,
                                                     bool tb) {
        const std::string test = layer + direction + (tf32 ? "/tf32" : "/f32");
        ask(test, [&] { judge(test, tf32, m, n, k, ta, tb); });
      };
      of("forward", 64, outputs, inputs, false, false);
      of("weight_gradient", inputs, outputs, 64, true, false);
      of("data_gradient", 64, inputs, outputs, false, true);
    }
}

// ---- The program
const struct Question {
  const char* name;
  void (*ask)();
  const char* help;
} kQuestions[] = {
    {"device", ask_device,
     "name, versions, free memory; each member of the JSON that cuDNN plans are made from without a GPU"},
    {"convolution", ask_convolution,
     "cuDNN's f32 plans without tensor cores for LeNet: do they exist, time, error, same bits in 20 runs"},
    {"share", ask_share, "two processes take 0.45 of the memory each and compute at the same time"},
    {"launches", ask_launches, "an empty launch, LeNet's 40 launches eager and as a graph, copies"},
    {"matmul", ask_matmul,
     "cuBLASLt on LeNet's dense layers in f32 and TF32: time, error, same bits in 20 runs"},
    {"nccl", ask_nccl, "one rank: non-blocking init, all-reduce of a pattern, abort while a kernel hangs"},
    {"plans", ask_plans, "needs no GPU, asked with --only alone: the plans that cuDNN promises for an H200"}};
constexpr unsigned kDeadlineSeconds = 40;

// Asks in a process of its own. What a library prints beside the rows goes to stderr. True if no row says
// "failed".
bool ask_in_child(const char* name) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC)) throw std::runtime_error("pipe2");
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(ends[1], STDOUT_FILENO);
    alarm(kDeadlineSeconds);  // lasts through exec
    execl("/proc/self/exe", "gpu_probe", "--child", name, nullptr);
    _exit(127);
  }
  close(ends[1]);
  bool good = true;
  char* line = nullptr;
  size_t capacity = 0;
  for (FILE* rows = fdopen(ends[0], "r"); getline(&line, &capacity, rows) > 0;) {
    const bool is_row = strncmp(line, "{\"test\":", 8) == 0 && strchr(line, '\n');
    good = good && !(is_row && strstr(line, "\"status\":\"failed\""));
    fputs(line, is_row ? stdout : stderr);
    fflush(stdout);
  }
  int status = 0;
  waitpid(child, &status, 0);
  question = name;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
    row("", "failed", kDeadlineSeconds, "s", "deadline");
  else if (status) row("", "failed", NAN, "", text("the process ended with status %d", status));
  return good && status == 0;
}

int main_program(int argc, char** argv) {
  const std::string option = argc > 1 ? argv[1] : "", name = argc > 2 ? argv[2] : "";
  const Question* chosen = std::find_if(std::begin(kQuestions), std::end(kQuestions),
                                        [&](const Question& q) { return name == q.name; });
  if (option == "--child" && chosen != std::end(kQuestions)) {
    question = name;
    ask("", chosen->ask);
    _exit(0);  // exit handlers of the libraries could wait for a lost device
  }
  if (option == "--only" && argc == 3 && chosen != std::end(kQuestions))
    return ask_in_child(chosen->name) ? 0 : 1;
  if (argc == 1) {
    bool good = true;
    for (const Question& q : kQuestions) good = (q.ask == ask_plans || ask_in_child(q.name)) && good;
    return good ? 0 : 1;
  }
  FILE* to = option == "--help" ? stdout : stderr;
  fprintf(to,
          "usage: gpu_probe [--only NAME]\n\n"
          "Asks one NVIDIA GPU (the first visible) what kolo's plug-in wants to know before it is built for "
          "it. Each row of\n"
          "stdout is a JSON object {test, status: ok|failed|skipped, value, unit, detail}. Each question has "
          "a process and\n"
          "%u s of its own. Without a driver every row is skipped, \"no CUDA device\". cuDNN, NCCL and "
          "cuBLASLt are opened\n"
          "from $KOLO_CUDA_LIBRARIES (folders, separated by ':'), the loader's search, /usr/local/cuda/lib64 "
          "or the\n"
          "nvidia/*/lib of python3's packages; one that is missing skips its rows.\n\n",
          kDeadlineSeconds);
  for (const Question& q : kQuestions) fprintf(to, "  %-12s %s\n", q.name, q.help);
  fprintf(to, "\nExit: 0 no row failed, 1 some did, 2 wrong options.\n");
  return option == "--help" ? 0 : 2;
}

}  // namespace

int main(int argc, char** argv) { return main_program(argc, argv); }

// The table: devices whose memory is the host's, and whose streams wait until they are asked.
#include <kolo/core/device/cuda/api.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "calls.h"
#include "graphs.h"
#include "launches.h"
#include "memory.h"
#include "streams.h"

namespace kolo {
namespace fake_cuda {
namespace {

bool exists(int gpu) { return gpu >= 0 && gpu < gpus(); }

cudaError_t describe(cudaDeviceProp* found, int gpu) {
  if (!exists(gpu)) return cudaErrorInvalidDevice;
  *found = {};
  std::strcpy(found->name, "Fake");
  const char* const capability = std::getenv("KOLO_FAKE_CUDA_CAPABILITY");  // 9, its first number
  found->major = capability == nullptr ? 9 : std::atoi(capability);
  found->totalGlobalMem = kBytesOfGpu;
  found->multiProcessorCount = 132;
  found->warpSize = 32;
  found->maxThreadsPerBlock = 1024;
  found->uuid.bytes[0] = static_cast<char>(number_in_machine(gpu));
  return cudaSuccess;
}

cudaError_t attribute(int* value, cudaDeviceAttr attribute, int gpu) {
  if (!exists(gpu)) return cudaErrorInvalidDevice;
  switch (attribute) {
    case cudaDevAttrMemoryClockRate: *value = 2'619'000; return cudaSuccess;
    case cudaDevAttrMultiProcessorCount: *value = 132; return cudaSuccess;
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t pointer_attributes(cudaPointerAttributes* attributes, const void* memory) {
  const Found found = find_memory(memory, 0);
  *attributes = {};
  attributes->type = found.place == Place::device                       ? cudaMemoryTypeDevice
                     : found.place == Place::pinned || breaks("staged") ? cudaMemoryTypeHost
                                                                        : cudaMemoryTypeUnregistered;
  attributes->device = found.gpu;
  return cudaSuccess;
}

// Of a copy's end that must be the host's.
void check_host(const void* memory, std::size_t bytes, const char* end) {
  if (find_memory(memory, bytes).place == Place::device)
    report("the {} is device memory, not the host's", end);
}

// KOLO_FAKE_CUDA_REFUSE, all but the first behind four kept steps:
//   pageable  a copy to the host that stops it, in a step or beside it
//   feeds     a copy to the GPU from memory that is not pinned, but for what CUDA takes into the call
//   batches   a copy of more than 4 KiB to the GPU by a thread that launches steps: it could have been there
//   waits     a thread that has launched a step waits before it knows of the step's end
int& kept_steps() {  // by state_mutex(): launches of graphs
  static int steps = 0;
  return steps;
}
bool refuses_by_now(std::string_view what) { return kept_steps() > 4 && refuses(what); }

std::set<std::thread::id>& launching() {  // by state_mutex(): threads that have launched kept steps
  static std::set<std::thread::id> threads;
  return threads;
}
std::thread::id& in_step() {  // by state_mutex(): the thread whose step may go on
  static std::thread::id thread;
  return thread;
}
void check_no_step() {
  if (in_step() == std::this_thread::get_id() && refuses_by_now("waits"))
    report("the thread that has launched a step waits before the step's end");
}

// What a graph copies must lie where it lay: CUDA refuses to keep a copy of memory that is not pinned.
void check_kept_copy(const void* host, std::size_t bytes, cudaStream_t stream) {
  if (is_capturing(stream) && find_memory(host, bytes).place == Place::pageable)
    report("a copy of memory that is not pinned, while the stream captures");
}

void to_device(std::byte* target, const void* source, std::size_t bytes, cudaStream_t stream) {
  check_host(source, bytes, "source");
  check_kept_copy(source, bytes, stream);
  const bool is_pinned = find_memory(source, bytes).place == Place::pinned;
  if (!is_pinned && bytes > (64U << 10) && refuses_by_now("feeds"))
    report("a copy of {} bytes from memory that is not pinned: the host stages it", bytes);
  if (bytes > 4096 && launching().count(std::this_thread::get_id()) > 0 && refuses_by_now("batches"))
    report("a copy of {} bytes to the GPU in a step", bytes);
  if (is_pinned)  // is read when its turn comes
    return enqueue(stream, [=] { std::memcpy(target, source, bytes); });
  const auto* const from = static_cast<const std::byte*>(source);
  enqueue(stream, [target, staged = std::vector<std::byte>(from, from + bytes)] {
    std::memcpy(target, staged.data(), staged.size());
  });
}

// CUDA itself would wait where the target is not pinned; kolo shall not count on it. Pinned memory may be
// what the stream has still to read.
void to_host(void* target, const std::byte* source, std::size_t bytes, cudaStream_t stream) {
  check_host(target, bytes, "target");
  check_kept_copy(target, bytes, stream);
  if (find_memory(target, bytes).place == Place::pageable || breaks("pinned")) {
    if (refuses("pageable"))
      report("a copy of {} bytes to memory that is not pinned would stop the host", bytes);
    rename_call("cudaMemcpyAsync that stops the host");
    std::memset(target, 0xff, bytes);
  }
  enqueue(stream, [=] { std::memcpy(target, source, bytes); });
}

// KOLO_FAKE_CUDA_PEERS=1: each GPU reaches the others' memory, once that is enabled in both directions.
bool has_peers() {
  static const bool has = std::getenv("KOLO_FAKE_CUDA_PEERS") != nullptr;
  return has;
}
std::set<std::pair<int, int>>& enabled_peers() {  // by state_mutex()
  static std::set<std::pair<int, int>> pairs;
  return pairs;
}
cudaError_t enable_peer(int gpu, int peer) {
  if (!has_peers() || gpu == peer) return cudaErrorPeerAccessUnsupported;
  return enabled_peers().emplace(gpu, peer).second ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled;
}
void check_peers(int target, int source) {
  if (has_peers() && target != source &&
      (enabled_peers().count({target, source}) == 0 || enabled_peers().count({source, target}) == 0))
    report("a copy from GPU {} to GPU {}, which reach each other, without peer access: the driver stages it",
           source, target);
}

void within_device(std::byte* target, const std::byte* source, std::size_t bytes, cudaStream_t stream) {
  if (target < source + bytes && source < target + bytes) report("source and target overlap");
  enqueue(stream, [=] { std::memcpy(target, source, bytes); });
}

cudaError_t copy(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind,
                 cudaStream_t stream) {
  const int gpu = current_gpu();
  check_stream(stream);
  switch (kind) {
    case cudaMemcpyHostToDevice: to_device(on_host(gpu, target, bytes), source, bytes, stream); break;
    case cudaMemcpyDeviceToHost: to_host(target, on_host(gpu, source, bytes), bytes, stream); break;
    case cudaMemcpyDeviceToDevice:
      within_device(on_host(gpu, target, bytes), on_host(gpu, source, bytes), bytes, stream);
      break;
    default: report("a copy of kind {}; kolo always says from where to where", static_cast<int>(kind));
  }
  return cudaSuccess;
}

cudaError_t create_stream(cudaStream_t* stream, unsigned flags) {
  if (flags != cudaStreamNonBlocking) report("a stream that waits for the default stream");
  *stream = make_stream(current_gpu());
  return cudaSuccess;
}

// What is not done is told once and then done, if it can be. CUDA keeps that answer as an error, too.
template <typename Handle>
cudaError_t ask(Handle handle, bool (*is_done)(Handle), void (*advance)(Handle)) {
  if (is_done(handle)) return cudaSuccess;
  advance(handle);
  return cudaErrorNotReady;
}

CudaApi make_api() {
  CudaApi api = {};
  api.driver_get_version = [](int* version) {
    return call("cudaDriverGetVersion", [&] { return *version = CUDART_VERSION, cudaSuccess; });
  };
  api.runtime_get_version = [](int* version) {
    return call("cudaRuntimeGetVersion", [&] { return *version = CUDART_VERSION, cudaSuccess; });
  };
  api.get_device_count = [](int* count) {
    return call("cudaGetDeviceCount",
                [&] { return gpus() == 0 ? cudaErrorNoDevice : (*count = gpus(), cudaSuccess); });
  };
  api.get_device_properties = [](cudaDeviceProp* found, int gpu) {
    return call("cudaGetDeviceProperties", [&] { return describe(found, gpu); });
  };
  api.device_get_attribute = [](int* value, cudaDeviceAttr wanted, int gpu) {
    return call("cudaDeviceGetAttribute", [&] { return attribute(value, wanted, gpu); });
  };
  api.device_get_pci_bus_id = [](char* text, int bytes, int gpu) {
    return call("cudaDeviceGetPCIBusId", [&] {
      if (!exists(gpu)) return cudaErrorInvalidValue;
      const std::string id =
          fmt::format("0000:{:02X}:00.0", 0x3b + (are_slices() ? 0 : number_in_machine(gpu)));
      if (static_cast<std::size_t>(bytes) <= id.size()) return cudaErrorInvalidValue;
      return std::strcpy(text, id.c_str()), cudaSuccess;
    });
  };
  api.device_can_access_peer = [](int* can, int, int) {
    return call("cudaDeviceCanAccessPeer", [&] { return *can = has_peers() ? 1 : 0, cudaSuccess; });
  };
  api.set_device = [](int gpu) {
    return call("cudaSetDevice", [&] {
      if (!exists(gpu)) return cudaErrorInvalidDevice;
      if (!breaks("current")) set_current_gpu(gpu);
      return cudaSuccess;
    });
  };
  api.get_device = [](int* gpu) {
    return call("cudaGetDevice", [&] { return *gpu = current_gpu(), cudaSuccess; });
  };
  api.device_enable_peer_access = [](int peer, unsigned) {
    return call("cudaDeviceEnablePeerAccess", [&] { return enable_peer(current_gpu(), peer); });
  };
  api.get_last_error = take_last_error;

  api.mem_get_info = [](std::size_t* free, std::size_t* total) {
    return call("cudaMemGetInfo",
                [&] { return *free = free_bytes(current_gpu()), *total = kBytesOfGpu, cudaSuccess; });
  };
  api.malloc = [](void** memory, std::size_t bytes) {
    return call("cudaMalloc", [&] {
      check_not_capturing();
      void* const taken = take_memory(current_gpu(), bytes);
      if (taken == nullptr) return cudaErrorMemoryAllocation;
      return *memory = taken, cudaSuccess;
    });
  };
  api.free = [](void* memory) {
    return giving_back("cudaFree", [&] {
      check_not_capturing();
      finish_all(current_gpu());  // it waits for the device
      check_no_graph_names(memory);
      give_back_memory(current_gpu(), memory);
    });
  };
  api.host_alloc = [](void** memory, std::size_t bytes, unsigned) {
    return call("cudaHostAlloc", [&] {
      check_not_capturing();
      current_gpu();  // it makes a context
      *memory = take_pinned(bytes);
      return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
    });
  };
  api.free_host = [](void* memory) {
    return giving_back("cudaFreeHost", [&] {
      check_not_capturing();
      current_gpu();
      for (int gpu = 0; gpu < gpus(); ++gpu) finish_all(gpu);
      check_no_graph_names(memory);
      give_back_pinned(memory);
    });
  };
  api.pointer_get_attributes = [](cudaPointerAttributes* attributes, const void* memory) {
    return call("cudaPointerGetAttributes", [&] { return pointer_attributes(attributes, memory); });
  };
  api.memcpy_async = [](void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind,
                        cudaStream_t stream) {
    return call("cudaMemcpyAsync", [&] { return copy(target, source, bytes, kind, stream); });
  };
  api.memcpy_peer_async = [](void* target, int target_gpu, const void* source, int source_gpu,
                             std::size_t bytes, cudaStream_t stream) {
    return call("cudaMemcpyPeerAsync", [&] {
      check_peers(target_gpu, source_gpu);
      within_device(on_host(target_gpu, target, bytes), on_host(source_gpu, source, bytes), bytes, stream);
      return cudaSuccess;
    });
  };
  api.memset_async = [](void* memory, int byte, std::size_t bytes, cudaStream_t stream) {
    return call("cudaMemsetAsync", [&] {
      std::byte* const host = on_host(current_gpu(), memory, bytes);
      enqueue(stream, [=] { std::fill_n(host, bytes, std::byte(byte)); });  // of no bytes, too
      return cudaSuccess;
    });
  };

  api.stream_create_with_flags = [](cudaStream_t* stream, unsigned flags) {
    return call("cudaStreamCreateWithFlags", [&] { return create_stream(stream, flags); });
  };
  api.stream_create_with_priority = [](cudaStream_t* stream, unsigned flags, int priority) {
    return call("cudaStreamCreateWithPriority", [&] {
      if (priority >= 0)
        report("priority {} comes before no other; the highest are the least numbers", priority);
      return create_stream(stream, flags);
    });
  };
  api.stream_destroy = [](cudaStream_t stream) {
    return giving_back("cudaStreamDestroy", [&] { end_stream(stream); });
  };
  api.stream_query = [](cudaStream_t stream) {
    return call("cudaStreamQuery", [&] {
      check_not_capturing();
      return ask(stream, is_idle, advance);
    });
  };
  api.stream_synchronize = [](cudaStream_t stream) {
    return call("cudaStreamSynchronize", [&] {
      check_not_capturing();
      check_no_step();
      return finish(stream), cudaSuccess;
    });
  };
  api.stream_wait_event = [](cudaStream_t stream, cudaEvent_t event, unsigned) {
    return call("cudaStreamWaitEvent", [&] { return wait_for(stream, event), cudaSuccess; });
  };
  api.event_create_with_flags = [](cudaEvent_t* event, unsigned flags) {
    return call("cudaEventCreateWithFlags", [&] {
      return *event = make_event(current_gpu(), (flags & cudaEventDisableTiming) == 0), cudaSuccess;
    });
  };
  api.event_destroy = [](cudaEvent_t event) {
    return giving_back("cudaEventDestroy", [&] { end_event(event); });
  };
  api.event_record = [](cudaEvent_t event, cudaStream_t stream) {
    return call("cudaEventRecord", [&] { return record(event, stream), cudaSuccess; });
  };
  api.event_query = [](cudaEvent_t event) {
    return call("cudaEventQuery", [&] {
      check_not_capturing();
      const cudaError_t told = ask(event, has_passed, advance_to);
      if (told == cudaSuccess && in_step() == std::this_thread::get_id()) in_step() = {};
      return told;
    });
  };
  api.event_synchronize = [](cudaEvent_t event) {
    return call("cudaEventSynchronize", [&] {
      check_not_capturing();
      check_no_step();
      return finish_event(event), cudaSuccess;
    });
  };
  api.event_elapsed_time = [](float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
    return call("cudaEventElapsedTime", [&] {
      check_not_capturing();
      for (cudaEvent_t const event : {begin, end}) {
        check_timed(event);
        advance_to(event);  // a GPU has come that far long ago
        if (!has_passed(event)) return cudaErrorNotReady;
      }
      return *milliseconds = elapsed_milliseconds(), cudaSuccess;
    });
  };

  api.stream_begin_capture = [](cudaStream_t stream, cudaStreamCaptureMode mode) {
    return call("cudaStreamBeginCapture", [&] {
      if (mode != cudaStreamCaptureModeThreadLocal) report("a capture that forbids other threads' calls");
      begin_naming();
      return begin_capture(stream), cudaSuccess;
    });
  };
  api.stream_end_capture = [](cudaStream_t stream, cudaGraph_t* graph) {
    MutexLock lock(state_mutex());
    const bool fails = begins_failing("cudaStreamEndCapture");
    Work work = end_capture(stream);  // which has ended all the same
    std::vector<const void*> memory = end_naming();
    if (fails || context_is_lost()) return remembered(code_of_failure());
    *graph = make_graph(current_gpu(), std::move(work), std::move(memory));
    return cudaSuccess;
  };
  api.graph_instantiate = [](cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
    return call("cudaGraphInstantiate", [&] {
      check_not_capturing();
      return *made = make_executable(graph), cudaSuccess;
    });
  };
  api.graph_upload = [](cudaGraphExec_t graph, cudaStream_t stream) {
    return call("cudaGraphUpload", [&] {
      check_executable(graph);
      return check_stream(stream), cudaSuccess;
    });
  };
  api.graph_launch = [](cudaGraphExec_t graph, cudaStream_t stream) {
    return call("cudaGraphLaunch", [&] {
      // KOLO_FAKE_CUDA_BREAK=hang: from the third launch on the stream does nothing more.
      if (++kept_steps() == 3 && breaks("hang")) enqueue_until(stream, [] { return false; });
      in_step() = std::this_thread::get_id();
      launching().insert(in_step());
      return launch_graph(graph, stream), cudaSuccess;
    });
  };
  api.graph_exec_destroy = [](cudaGraphExec_t graph) {
    return giving_back("cudaGraphExecDestroy", [&] { end_executable(graph); });
  };
  api.graph_destroy = [](cudaGraph_t graph) {
    return giving_back("cudaGraphDestroy", [&] { end_graph(graph); });
  };
  api.graph_get_nodes = [](cudaGraph_t graph, cudaGraphNode_t*, std::size_t* count) {
    return call("cudaGraphGetNodes", [&] { return *count = nodes_of(graph), cudaSuccess; });
  };
  return api;
}

}  // namespace

float& elapsed_milliseconds() {
  static float milliseconds = 1;
  return milliseconds;
}

float milliseconds_of(const char* variable, std::int64_t number) {
  const char* const text = std::getenv(variable);
  std::istringstream entries(text == nullptr ? "" : text);
  for (std::string entry; std::getline(entries, entry, ',');)
    if (entry.starts_with(std::to_string(number) + ":")) return std::stof(entry.substr(entry.find(':') + 1));
  return 3;
}

cudaError_t launch(const char* name, cudaStream_t stream, std::function<void()> work) {
  ++launch_count();
  const cudaError_t code = call(name, [&] { return enqueue(stream, std::move(work)), cudaSuccess; });
  const cudaError_t last = take_last_error();
  return code != cudaSuccess ? code : last;
}

}  // namespace fake_cuda

std::atomic<std::int64_t>& launch_count() {
  static std::atomic<std::int64_t> count{0};
  return count;
}

const CudaApi& cuda_api() {
  static const CudaApi api = fake_cuda::make_api();
  return api;
}

}  // namespace kolo

// The few functions that are called outside of the table. There is no other of CUDA's runtime in here: a call
// past the table does not link.
extern "C" {

cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }

const char* cudaGetErrorName(cudaError_t code) {
  switch (code) {
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorDevicesUnavailable: return "cudaErrorDevicesUnavailable";
    case cudaErrorSystemNotReady: return "cudaErrorSystemNotReady";
    case cudaErrorSystemDriverMismatch: return "cudaErrorSystemDriverMismatch";
    case cudaErrorUnknown: return "cudaErrorUnknown";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
    default: return "cudaErrorOfSomeKind";
  }
}

const char* cudaGetErrorString(cudaError_t) { return "a fake error"; }

cudaError_t cudaGetLastError() { return kolo::fake_cuda::take_last_error(); }
}

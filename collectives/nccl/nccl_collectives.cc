// Reductions of gradients by NCCL: one ncclAllReduce a bucket, flags behind the gradients.
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <kolo/collectives/nccl/nccl_communicator.h>
#include <kolo/core/base/error.h>
#include <kolo/core/device/cuda/cuda_platform.h>
#include <kolo/core/device/device_values.h>
#include <kolo/core/device/order_log.h>
#include <kolo/core/kernels/cuda/cuda_kernel.h>
#include <kolo/core/kernels/cuda/launch_elementwise.h>

namespace kolo {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::int64_t kBytes = sizeof(float);
constexpr std::int64_t kPatternElements = (std::int64_t{1} << 20) / kBytes;

/// Memory of the host that a GPU reads and writes while the host goes on.
class PinnedMemory {
 public:
  PinnedMemory(const CudaApi& api, std::size_t bytes) : api_(api) {
    check_cuda(api.host_alloc(&memory_, bytes, cudaHostAllocDefault), "cudaHostAlloc");
  }
  ~PinnedMemory() { api_.free_host(memory_); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(memory_); }

 private:
  const CudaApi& api_;
  void* memory_ = nullptr;
};

// With the GPU whose allocator it is of.
struct MemoryOnGpu {
  MemoryOnGpu(std::shared_ptr<PhysicalGpu> of, std::int64_t elements)
      : gpu(std::move(of)), buffer(gpu->allocator, static_cast<std::size_t>(elements * kBytes)) {}
  const std::shared_ptr<PhysicalGpu> gpu;
  Buffer buffer;
};
std::shared_ptr<Buffer> memory_on(const std::shared_ptr<PhysicalGpu>& gpu, std::int64_t elements) {
  const auto memory = std::make_shared<MemoryOnGpu>(gpu, elements);
  return {memory, &memory->buffer};
}

// A division, as the CPU's: ncclAvg multiplies by 1/R, which gives other bits for most R.
void divide(cudaStream_t stream, void* values, std::int64_t count, const void* divisor) {
  check_cuda(cuda::launch_binary(stream, {.op = cuda::BinaryOps::index("Div"),
                                          .type = cuda::ElementType::f32,
                                          .a = values,
                                          .b = divisor,
                                          .y = values,
                                          .walk = {.rank = 1, .dims = {count}, .strides = {{1}, {0}}},
                                          .elements = count}),
             "the division of a bucket");
}

class NcclReduction final : public DeviceReduction {
 public:
  // divisor: in the GPU's memory; nullptr: none.
  NcclReduction(std::shared_ptr<NcclCommunicator> communicator, std::int64_t elements, std::int64_t tail,
                std::shared_ptr<Buffer> divisor)
      : communicator_(std::move(communicator)),
        gpu_(communicator_->gpu()),
        elements_(elements),
        tail_elements_(tail),
        divisor_(std::move(divisor)) {
    make_current(gpu_.api, gpu_.gpu);
    memory_ = memory_on(communicator_->shared_gpu(), elements + tail);
    of_gpu_.emplace(gpu_.api, static_cast<std::size_t>(tail * kBytes));
    clear();
  }
  // Events and pinned memory are given back where their GPU is current.
  ~NcclReduction() override { gpu_.api.set_device(gpu_.gpu); }

  const std::shared_ptr<Buffer>& memory() const override { return memory_; }
  std::byte* tail() const override { return of_gpu_->tail.data(); }

  void mark_written() override {
    gpu_.compute.enqueue([this] {
      if (!of_gpu_) return;
      check_cuda(gpu_.api.event_record(of_gpu_->written.get(), compute_stream()), "cudaEventRecord");
      if (OrderLog* const log = OrderLog::active()) log->record(gpu_.compute.name(), token("written"));
    });
    is_marked_ = true;
  }
  void clear() override {
    gpu_.compute.enqueue([this] {
      check_cuda(gpu_.api.memset_async(memory_->data(), 0, static_cast<std::size_t>(elements_ * kBytes),
                                       compute_stream()),
                 "cudaMemsetAsync");
      if (OrderLog* const log = OrderLog::active()) log->use(gpu_.compute.name(), "clear", {}, {range()});
    });
    wait_until_done(gpu_.compute);  // before any other stream of the GPU is given something of it
    is_marked_ = false;
  }

  void start() override {
    make_current(gpu_.api, gpu_.gpu);
    started_ = Clock::now();
    stage_ = Stage::accepting;
    if (is_marked_)
      check_cuda(gpu_.api.stream_wait_event(stream(), of_gpu_->written.get(), 0), "cudaStreamWaitEvent");
    if (OrderLog* const log = OrderLog::active()) {
      if (is_marked_) log->wait(actor(), token("written"));
      log->use(actor(), "NCCL", {}, {range()});
      log->record(actor(), token("done"));
    }
    copy_tail(tail_in_memory(), tail(), cudaMemcpyHostToDevice);
    communicator_->sum(memory_->data(), static_cast<std::size_t>(elements_ + tail_elements_));
  }

  // The stream is NCCL's until it has accepted what it was given: nothing may be put behind it before.
  Progress progress() override {
    make_current(gpu_.api, gpu_.gpu);
    const bool is_settled = communicator_->is_settled();
    if (stage_ == Stage::accepting && is_settled) {
      put_rest();
      stage_ = Stage::running;
      return Progress::advanced;
    }
    if (stage_ == Stage::running && has_ended()) {
      stage_ = Stage::idle;
      return Progress::finished;
    }
    const std::chrono::duration<double> waited = Clock::now() - started_, limit = communicator_->limit();
    if (limit.count() > 0 && waited > limit)
      throw DeadlineExceededError(
          "NCCL has not finished after {:.1f} s, though all ranks have come to it; KOLO_STALL_ABORT_S says "
          "for how "
          "long to wait",
          waited.count());
    return Progress::none;
  }

  // Afterwards nothing is on its way that refers to it.
  bool abort(const std::exception_ptr& error) override {
    communicator_->abort(error);
    gpu_.api.set_device(gpu_.gpu);
    of_gpu_.reset();
    return true;
  }

 private:
  enum class Stage { idle, accepting, running };
  struct OfGpu {
    OfGpu(const CudaApi& api, std::size_t tail_bytes) : written(api), done(api), tail(api, tail_bytes) {}
    CudaEvent written, done;
    PinnedMemory tail;
  };

  cudaStream_t stream() const { return communicator_->stream(); }
  cudaStream_t compute_stream() const { return static_cast<cudaStream_t>(gpu_.compute.native()); }
  std::byte* tail_in_memory() const { return memory_->data() + elements_ * kBytes; }

  // Of the order checker's log.
  std::string actor() const { return fmt::format("GPU {} NCCL", gpu_.gpu); }
  std::string token(const char* what) const { return fmt::format("{}:{}", what, fmt::ptr(this)); }
  OrderLog::Range range() const { return {memory_->data(), memory_->bytes()}; }

  void copy_tail(std::byte* to, const std::byte* from, cudaMemcpyKind kind) {
    check_cuda(
        gpu_.api.memcpy_async(to, from, static_cast<std::size_t>(tail_elements_ * kBytes), kind, stream()),
        "cudaMemcpyAsync");
  }

  void put_rest() {
    if (divisor_ && elements_ > 0) divide(stream(), memory_->data(), elements_, divisor_->data());
    copy_tail(tail(), tail_in_memory(), cudaMemcpyDeviceToHost);
    check_cuda(gpu_.api.event_record(of_gpu_->done.get(), stream()), "cudaEventRecord");
  }

  bool has_ended() {
    const cudaError_t code = gpu_.api.event_query(of_gpu_->done.get());
    if (code == cudaErrorNotReady) {
      gpu_.api.get_last_error();  // else the next launch would report it as its own
      return false;
    }
    check_cuda(code, "cudaEventQuery");
    if (OrderLog* const log = OrderLog::active()) log->wait(OrderLog::this_thread(), token("done"));
    return true;
  }

  const std::shared_ptr<NcclCommunicator> communicator_;
  PhysicalGpu& gpu_;
  const std::int64_t elements_, tail_elements_;
  const std::shared_ptr<Buffer> divisor_;
  std::shared_ptr<Buffer> memory_;
  std::optional<OfGpu> of_gpu_;  // until it is given up
  bool is_marked_ = false;       // else nothing was written since it was cleared
  Stage stage_ = Stage::idle;
  Clock::time_point started_;
};

// What rank gives at a place, small enough for sums without rounding.
float pattern(std::int64_t rank, std::int64_t place) {
  return static_cast<float>((rank % 16 + 1) * (place % 97 + 1));
}

class NcclCollectives final : public DeviceCollectives {
 public:
  NcclCollectives(const NcclApi& api, const std::shared_ptr<PhysicalGpu>& gpu, const DeviceJoin& join)
      : deadline_(Clock::now() + std::chrono::duration_cast<Clock::duration>(join.timeout)),
        communicator_(std::make_shared<NcclCommunicator>(api, gpu, join)),
        ranks_(static_cast<float>(join.size)),
        divisor_(memory_on(gpu, 1)),
        spare_(memory_on(gpu, 1)) {
    prepare_division();
    NcclReduction first(communicator_, 0, kPatternElements, nullptr);
    try {
      check_pattern(first, join);
    } catch (...) {
      first.abort(std::current_exception());  // before anything of it is freed
      throw;
    }
  }

  std::shared_ptr<DeviceReduction> make_reduction(std::int64_t elements, std::int64_t tail,
                                                  bool average) override {
    return std::make_shared<NcclReduction>(communicator_, elements, tail, average ? divisor_ : nullptr);
  }

 private:
  // The first launch loads the kernel, for which CUDA may wait until the GPU has nothing to do: never, where
  // a sum waits for a rank that is gone.
  void prepare_division() {
    const PhysicalGpu& gpu = communicator_->gpu();
    make_current(gpu.api, gpu.gpu);
    check_cuda(gpu.api.memcpy_async(divisor_->data(), &ranks_, sizeof ranks_, cudaMemcpyHostToDevice,
                                    communicator_->stream()),
               "cudaMemcpyAsync");
    check_cuda(gpu.api.memset_async(spare_->data(), 0, sizeof ranks_, communicator_->stream()),
               "cudaMemsetAsync");
    divide(communicator_->stream(), spare_->data(), 1, divisor_->data());
  }

  // The first reduction makes the connections, and shows whether GPUs really reach each other's memory.
  void check_pattern(NcclReduction& sum, const DeviceJoin& join) {
    auto* const values = reinterpret_cast<float*>(sum.tail());
    for (std::int64_t i = 0; i < kPatternElements; ++i) values[i] = pattern(join.rank, i);
    sum.start();
    communicator_->wait_for([&] { return sum.progress() == Progress::finished; }, join, deadline_,
                            "a first sum has not come");
    std::int64_t factor = 0;
    for (int rank = 0; rank < join.size; ++rank) factor += rank % 16 + 1;
    for (std::int64_t i = 0; i < kPatternElements; ++i)
      if (const float right = static_cast<float>(factor) * pattern(0, i); values[i] != right)
        throw UnavailableError("a first sum is wrong: element {} is {} instead of {}", i, values[i], right);
  }

  const Clock::time_point deadline_;
  const std::shared_ptr<NcclCommunicator> communicator_;
  const float ranks_;
  const std::shared_ptr<Buffer> divisor_, spare_;
};

class Nccl final : public DeviceLibrary {
 public:
  std::string name() const override { return "NCCL"; }

  DevicePlace describe(Device& device) const override {
    const NcclLibrary& library = nccl_library();
    if (!library.why_not.empty()) return {.why_not = library.why_not};
    const PhysicalGpu& gpu = static_cast<CudaDevice&>(device).physical();
    cudaDeviceProp found;
    check_cuda(gpu.api.get_device_properties(&found, gpu.gpu), "cudaGetDeviceProperties");
    char slot[32] = "";
    check_cuda(gpu.api.device_get_pci_bus_id(slot, sizeof slot, gpu.gpu), "cudaDeviceGetPCIBusId");
    return {.gpu = uuid_text(found.uuid), .slot = slot, .version = library.version};
  }

  std::string make_id() const override {
    const NcclApi& api = nccl_library().api;
    ncclUniqueId id;
    check_nccl(api, api.get_unique_id(&id), "ncclGetUniqueId");
    return {id.internal, sizeof id.internal};
  }

  std::shared_ptr<DeviceCollectives> join(Device& device, const DeviceJoin& join) const override {
    return std::make_shared<NcclCollectives>(nccl_library().api, static_cast<CudaDevice&>(device).shared(),
                                             join);
  }
};

const cuda::RegisterWithKernels registration([] {
  static const Nccl nccl;
  set_device_library(&nccl);
});

}  // namespace
}  // namespace kolo

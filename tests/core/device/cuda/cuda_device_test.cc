// CudaDevice over a table whose memory is the host's and whose streams do everything at once.
#include <kolo/core/device/cuda/cuda_device.h>

#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>

#include <kolo/core/base/error.h>
#include <kolo/core/device/cuda/cuda_platform.h>
#include <kolo/core/device/device_values.h>

namespace kolo {
namespace {

using ::testing::ElementsAre;

constexpr std::size_t kMemory = std::size_t{1} << 20;
cudaError_t malloc_code, wait_code;  // what the next calls return
int cleared_errors, waits;

CudaApi make_fake_api() {
  CudaApi api = {};
  api.driver_get_version = [](int* version) { return *version = CUDART_VERSION, cudaSuccess; };
  api.get_device_count = [](int* count) { return *count = 2, cudaSuccess; };
  api.get_device_properties = [](cudaDeviceProp* found, int) {
    *found = {};
    std::strcpy(found->name, "Fake");
    found->major = 9;
    return cudaSuccess;
  };
  api.device_get_pci_bus_id = [](char* text, int, int) {
    return std::strcpy(text, "0000:3B:00.0"), cudaSuccess;
  };
  api.set_device = [](int) { return cudaSuccess; };
  api.get_last_error = [] { return ++cleared_errors, cudaErrorMemoryAllocation; };
  api.mem_get_info = [](std::size_t* free, std::size_t* total) {
    return *free = *total = kMemory, cudaSuccess;
  };
  api.malloc = [](void** memory, std::size_t bytes) {
    if (malloc_code == cudaSuccess) *memory = std::aligned_alloc(256, bytes);
    return malloc_code;
  };
  api.free = [](void* memory) { return std::free(memory), cudaSuccess; };
  api.memcpy_async = [](void* target, const void* source, std::size_t bytes, cudaMemcpyKind, cudaStream_t) {
    return bytes == 0 ? cudaErrorInvalidValue : (std::memcpy(target, source, bytes), cudaSuccess);
  };
  api.stream_create_with_flags = [](cudaStream_t*, unsigned) { return cudaSuccess; };
  api.stream_query = [](cudaStream_t) { return cudaSuccess; };
  api.event_create_with_flags = [](cudaEvent_t*, unsigned) { return cudaSuccess; };
  api.event_record = [](cudaEvent_t, cudaStream_t) { return cudaSuccess; };
  api.stream_wait_event = [](cudaStream_t, cudaEvent_t, unsigned) { return ++waits, cudaSuccess; };
  api.event_synchronize = [](cudaEvent_t) { return wait_code; };
  return api;
}

const CudaApi& fake_api() {
  static const CudaApi api = make_fake_api();
  return api;
}

class CudaDeviceTest : public ::testing::Test {
 protected:
  CudaDeviceTest() { malloc_code = wait_code = cudaSuccess, cleared_errors = waits = 0; }
  std::unique_ptr<Device> device() {
    return make_cuda_platform(fake_api())
        ->make_device(0, local_device_name("GPU", 0), {.per_process_gpu_memory_fraction = 1});
  }
};

TEST_F(CudaDeviceTest, CopiesToTheGpuAndBack) {
  const auto gpu = device();
  const Tensor there = copy_to_device(Tensor::of<float>({3}, {1, 2, 3}), *gpu);
  EXPECT_THAT(read_from_device(there, *gpu).span<float>(), ElementsAre(1, 2, 3));
}

TEST_F(CudaDeviceTest, ReportsAnErrorThatCameWhileACopyWasWaitedFor) {
  const auto gpu = device();
  const Tensor source = Tensor::of<float>({1}, {1});
  const Tensor there(DType::f32, {1}, gpu->allocator());
  wait_code = cudaErrorIllegalAddress;
  EXPECT_THROW(write_to_device(source, there, *gpu), InternalError);
}

TEST_F(CudaDeviceTest, HandsNothingOfAnEmptyTensorToCuda) {
  const auto gpu = device();
  EXPECT_EQ(read_from_device(copy_to_device(Tensor::zeros(DType::f32, {0}), *gpu), *gpu).elements(), 0);
}

TEST_F(CudaDeviceTest, LetsAStreamWaitForAnEventOfAnother) {
  const auto gpu = device();
  Stream &in = *gpu->stream(StreamKind::in), &compute = *gpu->stream(StreamKind::compute);
  const auto event = in.make_event();
  StreamEvent* const events[] = {event.get()};
  compute.wait_for(events);
  EXPECT_EQ(waits, 0) << "it was never recorded";
  in.record(*event);
  compute.wait_for(events);
  EXPECT_EQ(waits, 1);
}

TEST_F(CudaDeviceTest, TakesMemoryThatIsShortForAnAnswerAndClearsTheError) {
  const auto gpu = device();
  malloc_code = cudaErrorMemoryAllocation;
  EXPECT_THROW(Tensor(DType::u8, {kMemory / 2}, gpu->allocator()), ResourceExhaustedError);
  EXPECT_GT(cleared_errors, 0);
}

TEST_F(CudaDeviceTest, DescribesItselfAsTensorFlowDoes) {
  EXPECT_EQ(device()->physical_description(),
            "device: 0, name: Fake, pci bus id: 0000:3b:00.0, compute capability: 9.0");
}

TEST(AskDriver, CountsGpusInTheOrderOfTheirSlotsUnlessToldOtherwise) {
  unsetenv("CUDA_DEVICE_ORDER");
  EXPECT_EQ(ask_driver(fake_api()).gpus, 2);
  EXPECT_STREQ(getenv("CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
  setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST", 1);
  ask_driver(fake_api());
  EXPECT_STREQ(getenv("CUDA_DEVICE_ORDER"), "FASTEST_FIRST");
}

}  // namespace
}  // namespace kolo

// The checker itself: what is wrong is reported, what is right is not.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <thread>
#include <vector>

#include <kolo/core/device/cuda/api.h>

#include "launches.h"

namespace kolo::fake_cuda {
namespace {

using ::testing::ExitedWithCode;

constexpr int kReported = 70;
const int two_gpus = setenv("KOLO_FAKE_CUDA_GPUS", "2", 1);

// GPU 0 is current, with a stream, an event and 16 bytes on it.
class CheckerTest : public ::testing::Test {
 protected:
  CheckerTest() {
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";  // each begins a process of its own
    api.set_device(0);
    api.stream_create_with_flags(&stream, cudaStreamNonBlocking);
    api.event_create_with_flags(&event, cudaEventDisableTiming);
    void* memory = nullptr;
    api.malloc(&memory, sizeof host);
    device = static_cast<char*>(memory);
  }
  ~CheckerTest() override {
    api.free(device);
    api.event_destroy(event);
    api.stream_destroy(stream);
  }
  void write(void* target, std::size_t bytes) const {
    api.memcpy_async(target, host, bytes, cudaMemcpyHostToDevice, stream);
  }

  const CudaApi& api = cuda_api();
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  char* device = nullptr;
  char host[16] = "fifteen letters";
};
using CheckerDeathTest = CheckerTest;

TEST_F(CheckerDeathTest, ReportsAStreamOfAnotherGpuThanTheCurrentOne) {
  api.set_device(1);
  EXPECT_EXIT(write(device, 1), ExitedWithCode(kReported), "cudaMemcpyAsync: .*GPU 0, .*GPU 1");
  api.set_device(0);
}

TEST_F(CheckerDeathTest, ReportsAThreadThatMadeNoDeviceCurrent) {
  const auto forgets = [&] {
    std::thread([&] {
      void* memory = nullptr;
      api.malloc(&memory, 1);
    }).join();
  };
  EXPECT_EXIT(forgets(), ExitedWithCode(kReported), "cudaMalloc: this thread has made no device current");
}

TEST_F(CheckerDeathTest, ReportsMemoryThatWasGivenBack) {
  const auto uses_freed = [&] {
    api.free(device);
    write(device, 1);
  };
  EXPECT_EXIT(uses_freed(), ExitedWithCode(kReported), "cudaMemcpyAsync: .* was given back");
  const auto frees_twice = [&] { api.free(device), api.free(device); };
  EXPECT_EXIT(frees_twice(), ExitedWithCode(kReported), "cudaFree: .* given back before");
}

TEST_F(CheckerDeathTest, ReportsWhatReachesBeyondAnAllocation) {
  EXPECT_EXIT(write(device + 8, 9), ExitedWithCode(kReported), "reach 1 bytes beyond the allocation");
  EXPECT_EXIT(device_read<char>(device, 17), ExitedWithCode(kReported),
              "reach 1 bytes beyond the allocation");
}

TEST_F(CheckerDeathTest, ReportsAddressesOfTheWrongSide) {
  EXPECT_EXIT(write(host, 1), ExitedWithCode(kReported), "is an address of the host");
  EXPECT_EXIT(device_write<char>(host, 1), ExitedWithCode(kReported), "is an address of the host");
  EXPECT_EXIT(api.memcpy_async(device, device, 1, cudaMemcpyHostToDevice, stream), ExitedWithCode(kReported),
              "the source is device memory");
}

TEST_F(CheckerDeathTest, ReportsElementsThatAreNotAligned) {
  EXPECT_EXIT(device_read<float>(device + 2, 1), ExitedWithCode(kReported), "not aligned to 4 bytes");
}

TEST_F(CheckerDeathTest, ReportsAHostThatReadsDeviceMemoryItself) {
  EXPECT_EXIT(const_cast<volatile char*>(device)[0], ExitedWithCode(kReported),
              "the host itself reads or writes");
}

TEST_F(CheckerDeathTest, ReportsAWaitForAnEventThatWasNeverRecorded) {
  EXPECT_EXIT(api.event_synchronize(event), ExitedWithCode(kReported), "never recorded");
  EXPECT_EXIT(api.stream_wait_event(stream, event, 0), ExitedWithCode(kReported), "never recorded");
}

TEST_F(CheckerDeathTest, ReportsHandlesThatWereDestroyed) {
  const auto uses_it = [&] {
    api.event_destroy(event);
    api.event_record(event, stream);
  };
  EXPECT_EXIT(uses_it(), ExitedWithCode(kReported), "the event has been destroyed before");
}

TEST_F(CheckerDeathTest, ReportsWhatIsNotGivenBackByTheEnd) {
  EXPECT_EXIT(std::exit(0), ExitedWithCode(kReported),
              "not given back: 16 bytes of GPU 0 1 streams, 1 events");
}

TEST_F(CheckerDeathTest, ReportsTimesOfEventsThatHaveNone) {
  float milliseconds = 0;
  const auto asks = [&] {
    api.event_record(event, stream);
    api.event_elapsed_time(&milliseconds, event, event);
  };
  EXPECT_EXIT(asks(), ExitedWithCode(kReported), "cudaEventElapsedTime: the event was made without a time");
  const auto asks_too_early = [&] {
    cudaEvent_t timed = nullptr;
    api.event_create_with_flags(&timed, cudaEventDefault);
    api.event_elapsed_time(&milliseconds, timed, timed);
  };
  EXPECT_EXIT(asks_too_early(), ExitedWithCode(kReported), "cudaEventElapsedTime: .*never recorded");
}

// While the stream captures a launch that names the memory.
class CaptureDeathTest : public CheckerTest {
 protected:
  void begin() const {
    api.stream_begin_capture(stream, cudaStreamCaptureModeThreadLocal);
    float* const first = device_write<float>(device, 1);
    launch("one more", stream, [first] { *first += 1; });
  }
  cudaGraphExec_t capture() const {
    begin();
    cudaGraph_t captured = nullptr;
    cudaGraphExec_t made = nullptr;
    api.stream_end_capture(stream, &captured);
    api.graph_instantiate(&made, captured, 0);
    api.graph_destroy(captured);
    return made;
  }
  template <typename Call>
  void expect_reported(const Call& call, const char* words) const {
    EXPECT_EXIT((begin(), call()), ExitedWithCode(kReported), words);
  }
};

TEST_F(CaptureDeathTest, ReportsCallsThatWaitOrTakeMemory) {
  void* memory = nullptr;
  expect_reported([&] { api.malloc(&memory, 1); }, "cudaMalloc: the call is not allowed");
  expect_reported([&] { api.free(device); }, "cudaFree: the call is not allowed");
  expect_reported([&] { api.host_alloc(&memory, 1, 0); }, "cudaHostAlloc: the call is not allowed");
  expect_reported([&] { api.free_host(memory); }, "cudaFreeHost: the call is not allowed");
  expect_reported([&] { api.stream_synchronize(stream); }, "cudaStreamSynchronize: the call is not allowed");
  expect_reported([&] { api.stream_query(stream); }, "cudaStreamQuery: the call is not allowed");
  expect_reported([&] { api.event_synchronize(event); }, "cudaEventSynchronize: the call is not allowed");
  expect_reported([&] { api.event_query(event); }, "cudaEventQuery: the call is not allowed");
}

TEST_F(CaptureDeathTest, ReportsEventsOfOutsideAndCopiesOfOrdinaryMemory) {
  expect_reported([&] { api.event_record(event, stream); }, "recorded in a stream that captures");
  const auto waits = [&] {
    api.event_record(event, stream);
    begin();
    api.stream_wait_event(stream, event, 0);
  };
  EXPECT_EXIT(waits(), ExitedWithCode(kReported), "waits for an event of outside");
  expect_reported([&] { write(device, 1); }, "cudaMemcpyAsync: a copy of memory that is not pinned");
}

TEST_F(CaptureDeathTest, ReportsMemoryThatAGraphNames) {
  EXPECT_EXIT((capture(), api.free(device)), ExitedWithCode(kReported),
              "cudaFree: a graph that can still be launched names the memory");
}

TEST_F(CaptureDeathTest, ReportsGraphsThatAreGone) {
  const auto launches = [&] {
    cudaGraphExec_t const graph = capture();
    api.graph_exec_destroy(graph);
    api.graph_launch(graph, stream);
  };
  EXPECT_EXIT(launches(), ExitedWithCode(kReported), "cudaGraphLaunch: the graph has been destroyed before");
  EXPECT_EXIT((capture(), std::exit(0)), ExitedWithCode(kReported), "not given back: 1 objects of libraries");
}

TEST_F(CaptureDeathTest, AGraphDoesItsWorkAtEachLaunchAndNotBefore) {
  cudaGraphExec_t const graph = capture();
  api.memset_async(device, 0, sizeof(float), stream);
  for (int i = 0; i < 3; ++i) api.graph_launch(graph, stream);
  float sum = 0;
  api.memcpy_async(&sum, device, sizeof sum, cudaMemcpyDeviceToHost, stream);
  api.stream_synchronize(stream);
  EXPECT_EQ(sum, 3);
  api.graph_exec_destroy(graph);
}

// What KOLO_FAKE_CUDA_REFUSE asks for is looked at behind four kept steps.
class RefusedDeathTest : public CaptureDeathTest {
 protected:
  RefusedDeathTest() {
    void* memory = nullptr;
    api.malloc(&memory, kBatch);
    batch = static_cast<char*>(memory);
    api.host_alloc(&memory, kBatch, 0);
    pinned = static_cast<char*>(memory);
  }
  ~RefusedDeathTest() override {
    api.free(batch);
    api.free_host(pinned);
  }
  void step(const char* refused, int count = 5) {
    setenv("KOLO_FAKE_CUDA_REFUSE", refused, 1);
    cudaGraphExec_t const graph = capture();
    for (int i = 0; i < count; ++i) api.graph_launch(graph, stream);
    api.event_record(event, stream);
  }
  // As the end of a step is looked for.
  void see_the_end() const {
    while (api.event_query(event) != cudaSuccess) {
    }
  }
  void copy(std::size_t bytes, const void* from) const {
    api.memcpy_async(batch, from, bytes, cudaMemcpyHostToDevice, stream);
  }
  template <typename Call>
  void expect_refused(const char* refused, const Call& call, const char* words) {
    EXPECT_EXIT((step(refused), call()), ExitedWithCode(kReported), words);
  }
  template <typename Call>
  void expect_allowed(const char* refused, const Call& call, int count = 5) {
    EXPECT_EXIT((step(refused, count), call(), _exit(0)), ExitedWithCode(0), "");
  }

  static constexpr std::size_t kBatch = std::size_t{65} << 10;
  char *batch = nullptr, *pinned = nullptr;
  std::vector<char> pageable = std::vector<char>(kBatch);
};

TEST_F(RefusedDeathTest, ReportsABatchThatTheStepItselfCopies) {
  const auto copies = [&](std::size_t bytes) { return [this, bytes] { copy(bytes, pinned); }; };
  expect_refused("batches", copies(4097), "cudaMemcpyAsync: a copy of 4097 bytes to the GPU in a step");
  expect_refused("waits,batches", copies(4097), "a copy of 4097 bytes to the GPU in a step");
  expect_allowed("batches", copies(4096));  // numbers, not a batch
  expect_allowed("waits", copies(4097));
  expect_allowed("batches", copies(4097), 4);
  // Another thread copies it ahead of its step.
  expect_allowed("batches", [&] {
    std::thread([&] {
      api.set_device(0);
      copy(kBatch, pinned);
    }).join();
  });
}

TEST_F(RefusedDeathTest, ReportsAWaitBeforeTheStepsEndIsKnown) {
  const auto waits_for_stream = [&] { api.stream_synchronize(stream); };
  const auto waits_for_event = [&] { api.event_synchronize(event); };
  expect_refused("waits", waits_for_stream,
                 "cudaStreamSynchronize: the thread that has launched a step waits");
  expect_refused("waits", waits_for_event, "cudaEventSynchronize: the thread that has launched a step waits");
  expect_allowed("batches", waits_for_stream);
  expect_allowed("waits", waits_for_stream, 4);
  expect_allowed("waits", [&] { see_the_end(), api.stream_synchronize(stream); });
  expect_allowed("waits", [&] {
    std::thread([&] {
      api.set_device(0);
      api.event_synchronize(event);
    }).join();
  });
}

TEST_F(RefusedDeathTest, ReportsCopiesThatStopTheHost) {
  expect_refused(
      "feeds", [&] { copy(kBatch, pageable.data()); }, "from memory that is not pinned");
  expect_allowed("feeds", [&] { copy(kBatch - 1024, pageable.data()); });  // CUDA takes it into the call
  expect_allowed("feeds", [&] { copy(kBatch, pinned); });
  const auto fetches = [&](char* to) {
    return [this, to] { api.memcpy_async(to, batch, 1, cudaMemcpyDeviceToHost, stream); };
  };
  expect_refused("pageable", fetches(pageable.data()), "a copy of 1 bytes .* would stop the host");
  expect_allowed("pageable", fetches(pinned));
}

TEST_F(CheckerTest, DoesNothingBeforeItIsAskedFor) {
  char back[] = "as it was before";
  write(device, 16);
  api.memcpy_async(back, device, 16, cudaMemcpyDeviceToHost, stream);
  api.event_record(event, stream);
  EXPECT_EQ(back[0], '\xff') << "a reader that does not wait must find no result";
  EXPECT_EQ(api.event_query(event), cudaErrorNotReady);
  EXPECT_EQ(api.get_last_error(), cudaErrorNotReady);
  EXPECT_EQ(api.event_query(event), cudaSuccess);
  EXPECT_STREQ(back, host);
}

TEST_F(CheckerTest, WaitsForWhatAnEventWasRecordedForLastWhenTheWaitWasMade) {
  cudaStream_t other = nullptr;
  ASSERT_EQ(api.stream_create_with_flags(&other, cudaStreamNonBlocking), cudaSuccess);
  int done = 0;
  launch("first", stream, [&] { done = 1; });
  api.event_record(event, stream);
  api.stream_wait_event(other, event, 0);
  launch("second", stream, [&] { done = 2; });
  api.event_record(event, stream);
  api.stream_synchronize(other);
  EXPECT_EQ(done, 1);
  api.event_synchronize(event);
  EXPECT_EQ(done, 2);
  api.stream_destroy(other);
}

TEST_F(CheckerTest, ReadsPageableMemoryWhenTheCopyIsAskedForAndPinnedMemoryLater) {
  void* pinned = nullptr;
  ASSERT_EQ(api.host_alloc(&pinned, 1, 0), cudaSuccess);
  char pageable[1] = {'a'}, back[2] = {};
  *static_cast<char*>(pinned) = 'a';
  api.memcpy_async(device, pageable, 1, cudaMemcpyHostToDevice, stream);
  api.memcpy_async(device + 1, pinned, 1, cudaMemcpyHostToDevice, stream);
  pageable[0] = *static_cast<char*>(pinned) = 'b';
  api.memcpy_async(back, device, 2, cudaMemcpyDeviceToHost, stream);
  api.stream_synchronize(stream);
  EXPECT_EQ(back[0], 'a');
  EXPECT_EQ(back[1], 'b');
  api.free_host(pinned);
}

TEST_F(CheckerTest, ALaunchTellsTheErrorThatAnEarlierCallHasLeftBehind) {
  void* memory = nullptr;
  EXPECT_EQ(api.malloc(&memory, 2 * kBytesOfGpu), cudaErrorMemoryAllocation);
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(launch("any", stream, [] {}), cudaErrorMemoryAllocation);
  EXPECT_EQ(launch("any", stream, [] {}), cudaSuccess);
}

}  // namespace
}  // namespace kolo::fake_cuda

// A libnccl.so.2 for the fake GPUs of several processes of one machine: sums through shared memory, and what
// the real one leaves to luck is compared between the ranks: order, sizes, communicator.
//
// KOLO_FAKE_NCCL=<what>:<rank>[:<k>]  what goes wrong on that rank of mpirun (-1: on all), from its k-th sum
// on;
//                                     the first is kolo's check of the connections. See `wished`.
#include <fcntl.h>
#include <nccl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "calls.h"
#include "memory.h"
#include "streams.h"

namespace kolo::fake_cuda {
namespace {

const char kVersionLine[] __attribute__((used)) = "NCCL version 2.28.9+cuda" FAKE_NCCL_CUDA;
constexpr int kRanks = 8;
constexpr std::size_t kBytes = std::size_t{64} << 20;  // of the largest sum; sparse

struct OfRank {
  std::atomic<int> gpu{0};  // its number in the machine, from 1: the rank has come
  std::atomic<std::uint64_t> given{0}, taken{0};
  std::size_t count = 0;  // of the sum that was given last
};
struct Shared {
  OfRank ranks[kRanks];
  std::byte* slot(int rank) {
    return reinterpret_cast<std::byte*>(this) + (std::size_t{1} << 16) +
           static_cast<std::size_t>(rank) * kBytes;
  }
};
constexpr std::size_t kSharedBytes = (std::size_t{1} << 16) + kRanks * kBytes;

// kill_at_load, kill_in_init, kill (in a sum); hang_in_init, hang; error; wrong; abort_hang; version; slow.
bool wished(const std::string& what, int sum = 0) {
  static const char* const wishes = std::getenv("KOLO_FAKE_NCCL");
  static const char* const own = std::getenv("OMPI_COMM_WORLD_RANK");
  std::istringstream all(wishes == nullptr ? "" : wishes);
  for (std::string wish; std::getline(all, wish, ',');) {
    char name[32] = "";
    int rank = 0, first = 0;
    if (std::sscanf(wish.c_str(), "%31[^:]:%d:%d", name, &rank, &first) < 2 || name != what) continue;
    if ((rank < 0 || (own != nullptr && rank == std::atoi(own))) && sum >= first) return true;
  }
  return false;
}
void die_where(const std::string& what, int sum = 0) {
  if (wished(what, sum)) std::raise(SIGKILL);
}

Shared* map(const char* path) {
  const int file = open(path, O_RDWR | O_CLOEXEC);
  void* const memory =
      file < 0 ? MAP_FAILED : mmap(nullptr, kSharedBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<Shared*>(memory);
}

template <typename Body>
ncclResult_t nccl_call(const char* name, const Body& body) {
  MutexLock lock(state_mutex());
  return begins_failing(name) ? ncclUnhandledCudaError : body();
}

}  // namespace
}  // namespace kolo::fake_cuda

using namespace kolo::fake_cuda;

struct ncclComm {
  Shared* shared;
  int rank, size, gpu;
  int sums = 0, polls = 0;
  std::atomic<bool> aborted{false};

  bool all_have_come() const {
    return std::all_of(shared->ranks, shared->ranks + size, [](const OfRank& r) { return r.gpu > 0; });
  }
  bool is_alone_on_its_gpu() const {
    return std::count_if(shared->ranks, shared->ranks + size,
                         [&](const OfRank& r) { return r.gpu == number_in_machine(gpu) + 1; }) == 1;
  }
  // What is to be done of sum `number`: this rank's part is copied in when all have taken the one before, and
  // the sum is taken when all parts are there. In the order of the ranks: the same bits on all of them.
  bool advance(float* elements, std::size_t count, int number) {
    if (aborted) return true;
    if (wished("hang", number)) return false;
    const auto n = static_cast<std::uint64_t>(number);
    OfRank& own = shared->ranks[rank];
    const auto all = [&](const auto& is_ready) {
      return std::all_of(shared->ranks, shared->ranks + size, is_ready);
    };
    if (own.given < n) {
      if (!all([&](const OfRank& r) { return r.taken >= n - 1; })) return false;
      std::memcpy(shared->slot(rank), elements, count * sizeof(float));
      own.count = count;
      own.given = n;
    }
    if (!all([&](const OfRank& r) { return r.given >= n; })) return false;
    for (int r = 0; r < size; ++r)
      if (shared->ranks[r].count != count)
        report("sum {} has {} elements on rank {} and {} on rank {}: another order", number, count, rank,
               shared->ranks[r].count, r);
    std::fill(elements, elements + count, wished("wrong") ? 1.0F : 0.0F);
    for (int r = 0; r < size; ++r) {
      const auto* const theirs = reinterpret_cast<const float*>(shared->slot(r));
      for (std::size_t i = 0; i < count; ++i) elements[i] += theirs[i];
    }
    own.taken = n;
    return true;
  }
};

namespace {
// Kept until the process ends: the streams of what was aborted still hold it.
std::vector<ncclComm_t>& ended() {
  static auto& all = *new std::vector<ncclComm_t>;
  return all;
}

ncclResult_t end(const char* name, ncclComm_t comm) {
  if (name == std::string_view("ncclCommAbort") && wished("abort_hang"))
    while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
  return nccl_call(name, [&] {
    if (comm->aborted.exchange(true)) report("the communicator was given back before");
    count_object(-1);
    ended().push_back(comm);
    return ncclSuccess;
  });
}
}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  die_where("kill_at_load");
  *version = wished("version") ? 22703 : 22809;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t code) {
  return code == ncclRemoteError ? "remote process exited or there was a network error"
                                 : "a fake error of NCCL";
}
const char* ncclGetLastError(ncclComm_t) { return ""; }

// The memory has no name that could outlive the job: it is found by way of the process that made it.
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return nccl_call("ncclGetUniqueId", [&] {
    const int file = memfd_create("fake_nccl", 0);
    if (file < 0 || ftruncate(file, kSharedBytes) != 0) return ncclSystemError;
    *id = {};
    fmt::format_to_n(id->internal, sizeof id->internal - 1, "/proc/{}/fd/{}", getpid(), file);
    return ncclSuccess;
  });
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  die_where("kill_in_init");
  return nccl_call("ncclCommInitRankConfig", [&] {
    if (config->blocking != 0) report("a communicator whose calls wait");
    Shared* const shared = map(id.internal);
    if (shared == nullptr || ranks > kRanks) return ncclSystemError;
    *comm = new ncclComm{.shared = shared, .rank = rank, .size = ranks, .gpu = current_gpu()};
    count_object(1);
    if (!wished("hang_in_init")) shared->ranks[rank].gpu = number_in_machine(current_gpu()) + 1;
    return ncclInProgress;
  });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  kolo::MutexLock lock(state_mutex());
  if (comm->aborted) report("asked after the communicator was given back");
  *state = ncclSuccess;
  if (!comm->all_have_come() || (wished("slow") && ++comm->polls % 4 != 0)) *state = ncclInProgress;
  else if (!comm->is_alone_on_its_gpu()) *state = ncclInvalidUsage;  // "Duplicate GPU detected"
  else if (wished("error", comm->sums)) *state = ncclRemoteError;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  die_where("kill", comm->sums + 1);
  return nccl_call("ncclAllReduce", [&] {
    if (comm->aborted) report("a sum after the communicator was given back");
    if (from != to || type != ncclFloat32 || op != ncclSum) report("not a sum in place of f32");
    auto* const elements =
        reinterpret_cast<float*>(on_host(comm->gpu, to, count * sizeof(float), sizeof(float)));
    if (count * sizeof(float) > kBytes) return ncclInvalidArgument;
    enqueue_until(stream, [=, number = ++comm->sums] { return comm->advance(elements, count, number); });
    return wished("slow") ? ncclInProgress : ncclSuccess;
  });
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return nccl_call("ncclCommFinalize", [&] { return comm->aborted ? ncclInvalidUsage : ncclSuccess; });
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) { return end("ncclCommDestroy", comm); }
ncclResult_t ncclCommAbort(ncclComm_t comm) { return end("ncclCommAbort", comm); }
}

#include <kolo/collectives/nccl/nccl_communicator.h>

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <future>
#include <thread>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/text.h>

namespace kolo {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// How long NCCL may take to give a communicator back.
constexpr auto kAbortWithin = 3s;
// How long a rank that is done waits for the others to be. Shorter than the above.
constexpr auto kFinishWithin = 1s;
// There is nothing to wait for but the answer of a function.
constexpr auto kAskEvery = 1ms;

CudaStream stream_on(const PhysicalGpu& gpu) {
  make_current(gpu.api, gpu.gpu);
  return CudaStream::of_highest_priority(gpu.api);
}

// False where `work` has not returned by then: its thread is left to itself, as nobody can end it.
template <typename Work>
bool returns_within(Clock::duration limit, Work work) {
  std::promise<void> promise;
  const auto returned = promise.get_future();
  auto helper = std::make_unique<std::jthread>([work, promise = std::move(promise)]() mutable {
    work();
    promise.set_value();
  });
  if (returned.wait_for(limit) == std::future_status::ready) return true;
  static_cast<void>(helper.release());
  return false;
}

// Its end is agreed on by all ranks; one that does not come is not waited for.
void finish(const NcclApi& api, ncclComm_t comm) {
  const auto deadline = Clock::now() + kFinishWithin;
  ncclResult_t code = api.comm_finalize(comm);
  while (code == ncclInProgress && Clock::now() < deadline) {
    std::this_thread::sleep_for(kAskEvery);
    if (api.comm_get_async_error(comm, &code) != ncclSuccess) break;
  }
  if (code == ncclSuccess) api.comm_destroy(comm);
  else api.comm_abort(comm);
}

}  // namespace

NcclCommunicator::NcclCommunicator(const NcclApi& api, std::shared_ptr<PhysicalGpu> gpu,
                                   const DeviceJoin& join)
    : api_(api),
      gpu_(std::move(gpu)),
      rank_(join.rank),
      size_(join.size),
      limit_(join.limit),
      stream_(stream_on(*gpu_)) {
  ncclUniqueId id;
  if (join.id.size() != sizeof id.internal) throw InternalError("an id of NCCL has {} bytes", join.id.size());
  std::memcpy(id.internal, join.id.data(), sizeof id.internal);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(join.timeout);
  try {
    accepted_ = api_.comm_init_rank_config(&comm_, size_, id, rank_, &config);
    if (accepted_ != ncclInProgress) check_nccl(api_, accepted_, "ncclCommInitRankConfig");
    wait_for([this] { return is_settled(); }, join, deadline, "no connection");
  } catch (...) {
    abort(std::current_exception());
    throw;
  }
}

NcclCommunicator::~NcclCommunicator() {
  const ncclComm_t comm = std::exchange(comm_, nullptr);
  if (comm == nullptr) return;
  const bool left = returns_within(kAbortWithin, [&api = api_, &cuda = gpu_->api, gpu = gpu_->gpu, comm] {
    cuda.set_device(gpu);
    finish(api, comm);
  });
  if (!left) log_warning("NCCL has not given its communicator back within {} s", kAbortWithin.count());
}

void NcclCommunicator::sum(void* elements, std::size_t count) {
  accepted_ = api_.all_reduce(elements, elements, count, ncclFloat32, ncclSum, comm_, stream_.get());
  if (accepted_ != ncclInProgress) check_nccl(api_, accepted_, "ncclAllReduce");
}

bool NcclCommunicator::is_settled() {
  if (comm_ == nullptr) throw UnavailableError("NCCL's communicator has been given up");
  ncclResult_t state = ncclSuccess;
  check_nccl(api_, api_.comm_get_async_error(comm_, &state), "ncclCommGetAsyncError");
  if (state == ncclInProgress) return false;
  check_nccl(api_, state, "NCCL");
  return true;
}

void NcclCommunicator::wait_for(const std::function<bool()>& is_done, const DeviceJoin& join,
                                Clock::time_point deadline, const char* what) {
  while (!is_done()) {
    if (Clock::now() > deadline)
      throw DeadlineExceededError("{} within {} s (KOLO_NCCL_INIT_TIMEOUT_S)", what, join.timeout.count());
    join.check_ranks();
    std::this_thread::sleep_for(kAskEvery);
  }
}

void NcclCommunicator::abort(const std::exception_ptr& because) {
  const ncclComm_t comm = std::exchange(comm_, nullptr);
  if (comm == nullptr) return;
  const bool aborted = returns_within(kAbortWithin, [&api = api_, &cuda = gpu_->api, gpu = gpu_->gpu, comm] {
    cuda.set_device(gpu);
    api.comm_abort(comm);
  });
  if (aborted) return;
  log_error(
      "rank {}: {}; ncclCommAbort has not returned within {} s, so the GPU counts as lost: nothing can be "
      "saved, and this process ends",
      rank_, message_of(because), kAbortWithin.count());
  _exit(1);
}

}  // namespace kolo

// One communicator of NCCL and the stream of its reductions, taken down within a limit whatever happens.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include <kolo/collectives/algorithms/device_collectives.h>
#include <kolo/collectives/nccl/nccl_api.h>
#include <kolo/core/device/cuda/cuda_device.h>

namespace kolo {

/// One thread at a time.
class NcclCommunicator {
 public:
  /// Collective. Throws DeadlineExceededError after join.timeout, what join.check_ranks throws,
  /// UnavailableError for NCCL's own errors; what there is of a communicator is aborted then.
  NcclCommunicator(const NcclApi& api, std::shared_ptr<PhysicalGpu> gpu, const DeviceJoin& join);
  /// Leaves in peace where nothing went wrong; else as abort().
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  PhysicalGpu& gpu() const { return *gpu_; }
  const std::shared_ptr<PhysicalGpu>& shared_gpu() const { return gpu_; }
  cudaStream_t stream() const { return stream_.get(); }
  int size() const { return size_; }
  std::chrono::duration<double> limit() const { return limit_; }

  /// Puts a sum on the stream, in place, of f32. It has been accepted when is_settled() says so.
  void sum(void* elements, std::size_t count);
  /// False while NCCL still works on the last call. Throws UnavailableError for an error of this rank or of
  /// its connections.
  bool is_settled();
  /// Polls until `is_done` says so. Throws as the constructor.
  void wait_for(const std::function<bool()>& is_done, const DeviceJoin& join,
                std::chrono::steady_clock::time_point deadline, const char* what);
  /// What stands on the stream is given up. Returns when it is, or ends the process with exit code 1 if NCCL
  /// has not returned after 3 s: it may wait for memory that a kernel holds, and so would all that frees
  /// something.
  void abort(const std::exception_ptr& because);

 private:
  const NcclApi& api_;
  const std::shared_ptr<PhysicalGpu> gpu_;
  const int rank_, size_;
  const std::chrono::duration<double> limit_;
  const CudaStream stream_;
  ncclComm_t comm_ = nullptr;
  ncclResult_t accepted_ = ncclSuccess;  // the last call on the stream
};

}  // namespace kolo

// What GPUs reduce among themselves, without the host's memory between: by NCCL. The plug-in of the GPUs
// brings it; the schedule sees this face of it alone.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include <kolo/collectives/algorithms/collective.h>
#include <kolo/core/tensor/allocator.h>

namespace kolo {

class Device;

/// Elements in a GPU's memory that are summed over all ranks, in place, once a step.
class DeviceReduction : public Collective {
 public:
  /// The elements and, behind them, the tail's. Zeros at first. It outlives the session's devices.
  virtual const std::shared_ptr<Buffer>& memory() const = 0;
  /// In the host's memory: what start() adds behind the elements and, once it has finished, their sums.
  virtual std::byte* tail() const = 0;
  /// What the GPU's compute stream has been given so far comes before what the next start() reduces. Any
  /// thread.
  virtual void mark_written() = 0;
  /// Zeros in the place of the elements. Returns when they are there.
  virtual void clear() = 0;
};

/// Of all ranks, each with a GPU of its own.
class DeviceCollectives {
 public:
  virtual ~DeviceCollectives() = default;
  /// Elements are f32. Their sums are divided by the number of ranks where `average` is asked for; the tail's
  /// are not. All ranks make the same reductions, and start them in the same order, one after the other.
  virtual std::shared_ptr<DeviceReduction> make_reduction(std::int64_t elements, std::int64_t tail,
                                                          bool average) = 0;
};

/// Where a rank would reduce: what the others must know before they join it.
struct DevicePlace {
  std::string host = {};
  std::string gpu = {};      // the GPU's UUID, or that of a slice of it (MIG)
  std::string slot = {};     // its PCI bus id: slices of one GPU have the same
  std::string version = {};  // of the library
  std::string why_not = {};  // "" where this rank can
  bool busy = false;         // another schedule of this process has them
};

struct DeviceJoin {
  int rank = 0, size = 1;
  std::string id = {};                        // rank 0's make_id()
  std::chrono::duration<double> timeout{60};  // for all of join()
  std::chrono::duration<double> limit{600};   // for one reduction; 0: none
  std::function<void()> check_ranks = [] {};  // throws where a rank is gone; asked while join() waits
};

/// A library of collectives for a kind of GPU. Any thread.
class DeviceLibrary {
 public:
  virtual ~DeviceLibrary() = default;
  virtual std::string name() const = 0;  // "NCCL"
  /// gpu, slot, version, or why_not. Opens the library.
  virtual DevicePlace describe(Device& device) const = 0;
  virtual std::string make_id() const = 0;
  /// Collective, with one id on all ranks: connects them and reduces 1 MiB, whose sums it checks. Throws
  /// DeadlineExceededError, or UnavailableError where the library fails; nothing is left behind then.
  virtual std::shared_ptr<DeviceCollectives> join(Device& device, const DeviceJoin& join) const = 0;
};

/// The one that the plug-in has brought, with its kernels; nullptr where it has not.
const DeviceLibrary* device_library();
void set_device_library(const DeviceLibrary* library);

/// Why the GPUs of the ranks, by rank, cannot reduce among themselves, in half a sentence; "" where they can.
/// The same on all ranks. Throws FailedPreconditionError where they have different versions of `library`.
std::string why_not_together(const std::string& library, std::span<const DevicePlace> places);

}  // namespace kolo

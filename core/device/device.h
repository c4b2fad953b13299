// What runs nodes: a CPU, a GPU, a virtual GPU. The placer sees its name, the plan its memory and its
// streams.
#pragma once

#include <cstddef>
#include <string>

#include <kolo/core/device/device_attributes.h>
#include <kolo/core/device/device_name.h>
#include <kolo/core/device/stream.h>
#include <kolo/core/tensor/allocator.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo {

inline constexpr int kCpuPriority = 60;
inline constexpr int kGpuPriority = 210;

/// The queues of a device that runs ahead of the host: its kernels, copies to it, copies from it to the host.
enum class StreamKind { compute, in, out };

/// Lives as long as its session, or longer. Any thread.
class Device {
 public:
  /// name: full. Throws InvalidArgumentError otherwise.
  Device(const std::string& name, int priority);
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const std::string& name() const { return name_; }
  const DeviceSpec& spec() const { return spec_; }
  const std::string& type() const { return *spec_.type; }
  /// The placer prefers the higher of two.
  int priority() const { return priority_; }
  /// "GPU:2".
  std::string local_name() const;
  /// `device: 5, name: virtual GPU, pci bus id: 0000:05:00.0`; "" for a CPU.
  virtual std::string physical_description() const { return ""; }

  /// incarnation: of the server that has made it; 0 without one.
  DeviceAttributes attributes(std::uint64_t incarnation = 0) const {
    return {.name = name_,
            .type = type(),
            .incarnation = incarnation,
            .description = physical_description(),
            .is_virtual = type() == "GPU" && runs_cpu_kernels()};
  }

  /// Where values of its nodes lie.
  virtual Allocator& allocator() = 0;
  /// Memory of the host that the device copies to and from without help, behind the host's back.
  virtual Allocator& host_allocator() { return cpu_allocator(); }
  /// Whether the host can read and write what the allocator gives, so that CPUs share it without a copy.
  virtual bool has_host_memory() const = 0;
  /// What is put there is done in order, while the host goes on; nullptr: its nodes run on the threads of the
  /// executor.
  virtual Stream* stream(StreamKind) { return nullptr; }
  /// Whether its nodes are computed by the kernels that are registered for CPUs.
  virtual bool runs_cpu_kernels() const = 0;

  /// Where kernels that are registered for CPUs find what lies at `address`, a range of the device's memory:
  /// through an alias that can be written only if asked for. nullptr: it lies elsewhere.
  virtual std::byte* alias(const void* /*address*/, std::size_t /*bytes*/, bool /*writable*/) {
    return nullptr;
  }

  /// Copies `source`, of `from`'s memory, to `target`, of this device's: called by work of copy_stream(), if
  /// there is one, and with native() done when the stream comes to it. Throws what the copy fails with.
  virtual void copy_from(Device& from, const Tensor& source, const Tensor& target) = 0;
  /// The same in the other direction, for a host as the receiver. Called by CPU devices alone.
  virtual void copy_to_host(const Tensor& source, const Tensor& target) = 0;

 private:
  std::string name_;
  DeviceSpec spec_;
  int priority_;
};

/// The host's cores and memory. Several of them share both. Any thread.
class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const std::string& name) : Device(name, kCpuPriority) {}
  Allocator& allocator() override { return cpu_allocator(); }
  bool has_host_memory() const override { return true; }
  bool runs_cpu_kernels() const override { return true; }
  void copy_from(Device& from, const Tensor& source, const Tensor& target) override {
    from.copy_to_host(source, target);
  }
  void copy_to_host(const Tensor& source, const Tensor& target) override { target.copy_from(source); }
};

/// Where copies between the two stand; nullptr where both are CPUs.
inline Stream* copy_stream(Device& from, Device& to) {
  Stream* const in = to.stream(StreamKind::in);
  return in != nullptr ? in : from.stream(StreamKind::out);
}

}  // namespace kolo

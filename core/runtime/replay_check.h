// Whether work that a stream has kept makes the bits of the same work put there piece by piece.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kolo/core/device/device.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo {

/// Memory of the device that a node of the work writes.
struct WrittenMemory {
  const Tensor* tensor;
  const std::string* node;  // its name
};

/// One thread. Takes twice the memory of the host.
class ReplayCheck {
 public:
  /// device: whose compute stream does the work. host: a CPU. written: in the order of the nodes; the tensors
  /// outlive it.
  ReplayCheck(Device& device, Device& host, std::vector<WrittenMemory> written);

  /// Both put the same work on the stream, all of which reads what comes before it: `replay`, and from the
  /// same memory `piece_by_piece`, whose results stay. Waits for the device. Throws InternalError that names
  /// the node whose memory has other bits, and what the device throws.
  void compare(const std::function<void()>& replay, const std::function<void()>& piece_by_piece);

 private:
  std::vector<Tensor> read() const;
  void restore(const std::vector<Tensor>& before, const std::vector<Tensor>& after) const;
  void wait(Stream& stream) const;

  Device& device_;
  Device& host_;
  const std::vector<WrittenMemory> written_;  // each piece of memory once, by who writes it last
};

}  // namespace kolo

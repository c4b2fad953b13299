// For kernels of devices that run ahead of the host.
#pragma once

namespace kolo {

/// What a kernel is besides where it meets values that it cannot take: when it could throw, it has not seen
/// them yet.
class DeferredCheck {
 public:
  virtual ~DeferredCheck() = default;
  /// Throws what the CPU's kernel would have thrown, once for each run, as far as that run has come. Any
  /// thread, one at a time.
  virtual void check() = 0;
};

}  // namespace kolo

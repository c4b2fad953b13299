// The ops at both ends of an edge between two tasks.
#pragma once

#include <exception>
#include <string>

#include <kolo/core/tensor/tensor.h>

namespace kolo::detail {

/// Hands its input to who asks for the key, a flag where the input was skipped; done when its memory is not
/// needed any more. A second input is one that always happens: so it runs in any case.
inline constexpr char kNetSendOp[] = "_NetSend";
/// The value that another task sends under the key.
inline constexpr char kNetRecvOp[] = "_NetRecv";
/// The same where the sender may skip it; what reads it is skipped then.
inline constexpr char kNetRecvIfOp[] = "_NetRecvIf";

class StepExchange;

/// The kernel of a _NetSend, as who runs the step sees it.
class NetSender {
 public:
  virtual ~NetSender() = default;
  /// Before each run. exchange: of the step, outlives it.
  virtual void bind(StepExchange& exchange) = 0;
};

/// The kernel of a _NetRecv. Its memory is used again from step to step.
class NetReceiver {
 public:
  virtual ~NetReceiver() = default;
  virtual const std::string& key() const = 0;
  /// Before each run.
  virtual void prepare() = 0;
  // During a run, from any thread, in this order, before or after the kernel starts.
  /// Throws InvalidArgumentError for another type or shape than the graph has.
  virtual Tensor memory_for(DType dtype, const Shape& shape) = 0;
  virtual void arrived(Tensor value, bool dead) = 0;
  /// After a run: somebody else has the memory, or may still write there; the next step takes new one.
  virtual void give_up_memory() = 0;
};

}  // namespace kolo::detail

// Brings values from one task to another of the same process.
#pragma once

#include <memory>

#include <kolo/core/cluster/worker/tensor_sink.h>

namespace kolo::detail {

/// Copies what it is given into the receiver's memory.
std::shared_ptr<TensorSink> make_copy_sink(std::shared_ptr<TensorReceiver> receiver);

}  // namespace kolo::detail

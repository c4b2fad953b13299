// What the plan tells the kernel of a value's copy from one device to another.
#pragma once

#include <kolo/core/device/device.h>

namespace kolo {

/// The resource of a _Recv node. The devices outlive the plan.
struct TransferEnds {
  Device& from;
  Device& to;
};

}  // namespace kolo

// What all ranks do, or fail to do, together.
#pragma once

#include <functional>

#include <kolo/core/runtime/group.h>

namespace kolo::detail {

/// Does `work` on this rank; throws on every rank if it throws on any. Collective.
void share_failure(Group& group, const std::function<void()>& work);

}  // namespace kolo::detail

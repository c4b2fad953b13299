// Values of any type, strings too, from one rank to all.
#pragma once

#include <vector>

#include <kolo/core/runtime/group.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo::detail {

/// Group::broadcast, of tensors among which some may be of strings. Collective.
void broadcast_values(Group& group, const std::vector<Tensor>& values, int root);

}  // namespace kolo::detail

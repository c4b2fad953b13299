// Two hidden layers: the smallest model of the zoo, and the one whose time is all matrix products.
#pragma once

#include <cstdint>

#include <kolo/core/graph/scope.h>

namespace kolo::models {

/// x [N,…] → logits [N,classes] by two dense layers of 1024 with relu and a third: 784-1024-1024-10 for
/// digits [N,784] or [N,1,28,28], 1,863,690 parameters in fc1, fc2, fc3. Throws InvalidArgumentError unless
/// all but x's first dimension are known.
Output mlp(Scope& s, Output x, std::int64_t classes = 10);

}  // namespace kolo::models

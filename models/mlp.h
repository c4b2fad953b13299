// Two hidden layers: the smallest model of the zoo, and the one whose time is all matrix products.
#pragma once

#include <kolo/core/graph/scope.h>

namespace kolo::models {

/// 784-1024-1024-10 with relu, for digits x [N,784] or [N,1,28,28] → logits [N,10]; 1,863,690 parameters in
/// fc1, fc2, fc3. Throws InvalidArgumentError for another x.
Output mlp(Scope& s, Output x);

}  // namespace kolo::models

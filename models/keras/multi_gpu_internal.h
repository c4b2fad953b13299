// Contexts of compile as the GPUs of a session.
#pragma once

#include <vector>

#include <kolo/models/keras/compile.h>
#include <kolo/models/keras/multi_gpu.h>

namespace kolo::keras::detail {

/// Those of several contexts; none of one or no context. Throws InvalidArgumentError for contexts that do not
/// go together, and for devices that the session does not have.
std::vector<int> gpus_of(Workspace& workspace, const std::vector<Context>& context);

}  // namespace kolo::keras::detail

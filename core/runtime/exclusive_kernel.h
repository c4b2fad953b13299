// Keeps the steps of several sessions apart where they change or copy one variable.
#pragma once

#include <memory>
#include <vector>

#include <kolo/core/kernels/kernel.h>

namespace kolo {

/// `kernel`, run while VariableStorage::uses of all of `variables` is held; the kernel itself where there are
/// none. A variable may be named more than once.
std::unique_ptr<Kernel> while_nobody_else_uses(std::unique_ptr<Kernel> kernel,
                                               std::vector<VariableStorage*> variables);

}  // namespace kolo

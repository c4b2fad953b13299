#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

// Output 0 is input 0's memory already.
void nothing(KernelContext&) {}

const RegisterKernel views[] = {
    {"Reshape", "CPU", {}, nothing},
    {"ReshapeLike", "CPU", {}, nothing},
    {"ExpandDims", "CPU", {}, nothing},
    {"Squeeze", "CPU", {}, nothing},
};

}  // namespace
}  // namespace kolo

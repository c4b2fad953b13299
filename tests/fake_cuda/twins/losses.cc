#include "../run.h"

#include <kolo/core/kernels/cuda/losses.cu>

#include "../run.h"

#include <kolo/core/kernels/cuda/elementwise.cu>

#include "../run.h"

#include <kolo/core/kernels/cuda/random.cu>

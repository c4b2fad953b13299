#include "../run.h"

#include <kolo/core/kernels/cuda/attention.cu>

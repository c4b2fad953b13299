#include "../run.h"

#include <kolo/core/kernels/cuda/reductions.cu>

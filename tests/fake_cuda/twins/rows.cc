#include "../run.h"

#include <kolo/core/kernels/cuda/rows.cu>

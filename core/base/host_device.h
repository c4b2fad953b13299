// For functions that the host and a GPU run alike: nvcc compiles them for both, any other compiler for the
// host.
#pragma once

#if defined(__CUDACC__)
#define KOLO_HOST_DEVICE __host__ __device__
#else
#define KOLO_HOST_DEVICE
#endif

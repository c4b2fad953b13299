// Graphs of the fake GPUs: what a stream has captured, and what can be launched again and again.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

#include "streams.h"

namespace kolo::fake_cuda {

// All are called under state_mutex(), and report a graph that is none, that has been destroyed, or that is of
// the other kind.

/// memory: the allocations that its work names.
cudaGraph_t make_graph(int gpu, Work work, std::vector<const void*> memory);
std::size_t nodes_of(cudaGraph_t graph);
void end_graph(cudaGraph_t graph);

cudaGraphExec_t make_executable(cudaGraph_t graph);
void check_executable(cudaGraphExec_t graph);
void end_executable(cudaGraphExec_t graph);
/// Reported where the graph is not of the current GPU, or names memory that was given back.
/// KOLO_FAKE_CUDA_BREAK=frame: another one.
void launch_graph(cudaGraphExec_t graph, cudaStream_t stream);
/// Memory that is about to be given back: reported where a graph that can be launched names it.
void check_no_graph_names(const void* memory);

}  // namespace kolo::fake_cuda

#include "graphs.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "calls.h"
#include "memory.h"

namespace kolo::fake_cuda {
namespace {

// Those that have ended are kept: their address shall not be another's, so that later use is seen.
struct Graph {
  int gpu = 0;
  Work work = {};
  std::vector<const void*> memory = {};
  bool is_executable = false, alive = true;
  int launches = 0;
};
std::vector<std::unique_ptr<Graph>>& graphs() {
  static auto* const all = new std::vector<std::unique_ptr<Graph>>;
  return *all;
}

void* add(Graph graph) {
  count_object(1);
  return graphs().emplace_back(std::make_unique<Graph>(std::move(graph))).get();
}

Graph& known(const void* handle, bool is_executable) {
  for (const auto& graph : graphs()) {
    if (graph.get() != handle) continue;
    if (graph->is_executable != is_executable) report("the graph is of the other kind");
    if (!graph->alive) report("the graph has been destroyed before");
    return *graph;
  }
  report("{} is no graph", handle);
}

void end(Graph& graph) {
  count_object(-1);
  graph.alive = false;
  graph.work.clear();
}

Graph& to_launch(cudaGraphExec_t handle) {
  Graph& asked = known(handle, true);
  if (!breaks("frame")) return asked;
  for (const auto& other : graphs())
    if (other->alive && other->is_executable && other->gpu == asked.gpu &&
        other->work.size() == asked.work.size())
      return *other;
  return asked;
}

}  // namespace

cudaGraph_t make_graph(int gpu, Work work, std::vector<const void*> memory) {
  return reinterpret_cast<cudaGraph_t>(
      add({.gpu = gpu, .work = std::move(work), .memory = std::move(memory)}));
}
std::size_t nodes_of(cudaGraph_t graph) { return known(graph, false).work.size(); }
void end_graph(cudaGraph_t graph) { end(known(graph, false)); }

cudaGraphExec_t make_executable(cudaGraph_t graph) {
  Graph copy = known(graph, false);
  copy.is_executable = true;
  return reinterpret_cast<cudaGraphExec_t>(add(std::move(copy)));
}
void check_executable(cudaGraphExec_t graph) { known(graph, true); }
void end_executable(cudaGraphExec_t graph) { end(known(graph, true)); }

void launch_graph(cudaGraphExec_t handle, cudaStream_t stream) {
  Graph& graph = to_launch(handle);
  if (++graph.launches == 50 && breaks("late")) graph.work.pop_back();
  if (graph.gpu != current_gpu()) report("the graph is of GPU {}", graph.gpu);
  for (const void* const memory : graph.memory) find_memory(memory, 1);
  for (const auto& work : graph.work) enqueue(stream, work);
}

void check_no_graph_names(const void* memory) {
  for (const auto& graph : graphs())
    if (graph->alive && graph->is_executable &&
        std::find(graph->memory.begin(), graph->memory.end(), memory) != graph->memory.end())
      report("a graph that can still be launched names the memory at {}", memory);
}

}  // namespace kolo::fake_cuda

// What the nodes of a step have to do by the definitions of their ops: what the times of a trace are held
// against.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <kolo/core/graph/graph.h>
#include <kolo/core/runtime/fetch.h>

namespace kolo::models {

struct NodeWork {
  double flops = 0;  // multiplications and additions of products, convolutions, attention; 0 for other ops
  double bytes = 0;  // of what it reads and writes, each tensor once
};

/// Of the nodes that such a run needs, by name, as the graph was built: a step may have fused some. Values
/// whose shapes only a step tells count nothing. Throws as Session::run does for what does not fit the graph.
std::map<std::string, NodeWork> step_work(const Graph& graph, const std::vector<Fetch>& fetches,
                                          const Feeds& feeds);

}  // namespace kolo::models

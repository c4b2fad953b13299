// Three sessions at work at once, two of which share a pool of threads by its name: shared_pools [STEPS]
//
// Each adds up 1 … STEPS in a variable of its own. A pool is a matter of speed alone: the sums are the same
// whoever computes them.
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <kolo/kolo.h>

using namespace kolo;

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::stoi(argv[1]) : 100;

  Graph graph;
  Scope s(graph);
  auto next = placeholder(s, DType::f32, {});
  Variable sum(s.named("sum"), constant(s, 0.0f));
  auto add = assign_add(s, sum, next);

  SessionConfig shared;
  shared.session_inter_op_thread_pool = {{.num_threads = 2, .global_name = "workers"}};
  SessionConfig own;
  own.inter_op_parallelism_threads = 2;
  own.use_per_session_threads = true;
  Session sessions[] = {Session(graph, shared), Session(graph, shared), Session(graph, own)};

  std::vector<std::thread> threads;
  for (Session& session : sessions)
    threads.emplace_back([&] {
      session.run(sum.initializer());
      const Callable step = session.make_callable({.feeds = {next}, .targets = {Operation(add)}});
      for (int i = 1; i <= steps; ++i) step({Tensor::scalar(static_cast<float>(i))});
    });
  for (auto& thread : threads) thread.join();

  const char* names[] = {"shares \"workers\"", "shares \"workers\"", "has its own"};
  for (int i = 0; i < 3; ++i)
    std::printf("session %d %s: %d threads, sum %.0f\n", i, names[i], sessions[i].inter_op_threads(),
                sessions[i].run(sum).value<float>());
}

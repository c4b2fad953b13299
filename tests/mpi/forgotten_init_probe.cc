// A program that forgets init(): argument "session" or "optimizer", what it uses of a training.
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include <kolo/core/ops/basic.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/rules.h>

int main(int, char** argv) {
  using namespace kolo;
  try {
    if (argv[1] == std::string("optimizer"))
      DistributedOptimizer optimizer(std::make_unique<GradientDescentOptimizer>(1.0f));
    Graph graph;
    Scope s(graph);
    const Variable w(s.named("w"), zeros(s, DType::f32, {2}));
    if (argv[1] == std::string("session")) MonitoredTrainingSession session(graph);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::puts("trained");
}

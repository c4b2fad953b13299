// What is made under control dependencies waits for them, whether or not it reads them.
#include <cstdio>

#include <kolo/kolo.h>

using namespace kolo;

int main() {
  Graph graph;
  Scope s(graph);
  auto a = constant(s.named("a"), 1.0f);
  auto b = add(s.named("b"), a, constant(s.named("two"), 2.0f));

  Scope after = s.control_dependencies({a, b});
  auto x = constant(after.named("x"), 3.0f), y = constant(after.named("y"), 4.0f);
  auto z = add(after.named("z"), x, y);

  StepTrace trace;
  Session session(graph);
  const Tensor result = session.run({z}, {}, &trace)[0];
  for (const TraceEvent& event : trace.events) std::printf("%s ran\n", event.name.c_str());
  std::printf("%g\n", result.value<float>());
}

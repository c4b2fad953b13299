// What is made under control dependencies waits for them, whether or not it reads them.
#include <cstdio>

#include <kolo/kolo.h>

using namespace kolo;

int main() {
  Graph graph;
  Scope s(graph);
  Variable count(s.named("count"), constant(s.named("zero"), 0.0f));
  auto a = constant(s.named("a"), 1.0f);
  auto b = assign_add(s.named("b"), count, a);

  Scope after = s.control_dependencies({a, b});
  auto x = constant(after.named("x"), 3.0f), y = constant(after.named("y"), 4.0f);
  auto z = add(after.named("z"), x, y);

  Session session(graph);
  session.run(count.initializer());
  for (int run = 1; run <= 2; ++run) {
    std::printf("z is %g\n", session.run(z).value<float>());
    std::printf("b has run %g times\n", session.run(count.read()).value<float>());
  }
}

// A session on another process's server: remote_session [TARGET]
//
// Without a target it makes a server of its own. Variables live there: they outlive the sessions.
#include <cstdio>
#include <optional>
#include <string>

#include <kolo/cluster.h>
#include <kolo/kolo.h>

using namespace kolo;

int main(int argc, char** argv) {
  std::optional<Server> own;
  if (argc == 1) own.emplace(Server::create_local_server());
  const std::string target = own ? own->target() : argv[1];

  Graph graph;
  Scope s(graph);
  const Variable visits(s.named("visits"), constant(s, 0.0f));
  const Output visit = assign_add(s, visits, constant(s, 1.0f));

  for (int i = 0; i < 3; ++i) {
    Session session(graph, target);
    if (report_uninitialized_variables(session).size() == 1) session.run(visits.initializer());
    std::printf("visit %.0f of %s\n", session.run(visit).value<float>(),
                session.list_devices()[0].name.c_str());
  }  // the session goes, the variable stays
}

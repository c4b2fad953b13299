// A program of a cluster.
#include <cstdio>

#include <kolo/cluster.h>

int main() {
  const kolo::ClusterSpec cluster({{"ps", {"p:1"}}});
  std::printf("%s\n", kolo::ClusterSpec::from_wire_form(cluster.wire_form()).to_string().c_str());
}

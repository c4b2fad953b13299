// kolo-network-probe GRADIENT_BYTES STEP_MS: what kolorun --check-network starts on the hosts of a job, with
// the job's ranks. One rank of each host measures with its neighbour on the next host and, where there is
// one, with a second rank of its own host. Rank 0 prints one line of JSON (network_report.h).
#include <fmt/core.h>
#include <ifaddrs.h>
#include <mpi.h>
#include <net/if.h>
#include <netinet/in.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <bench/network/network_devices.h>
#include <bench/network/network_report.h>

#include <kolo/collectives/algorithms/measure_costs.h>
#include <kolo/collectives/transport/mpi.h>
#include <kolo/core/base/process.h>
#include <kolo/core/base/text.h>

namespace kolo::bench {
namespace {

using namespace std::chrono_literals;

constexpr const char* kDev = "/proc/net/dev";
constexpr const char* kNet = "/sys/class/net";
constexpr const char* kInfiniband = "/sys/class/infiniband";

NetworkLink measure(MPI_Comm comm, int peer, bool leads, const std::string& peer_host) {
  detail::MpiPointToPoint network(comm);
  const auto before = sent_bytes(kDev, kInfiniband);
  const MeasuredLink measured = measure_link(network, peer, leads);
  NetworkLink link{process().hostname, peer_host, measured.cost, measured.sent_bytes, {}};
  for (const auto& [name, bytes] : sent_bytes(kDev, kInfiniband)) {
    const auto found = before.find(name);
    if (found != before.end() && bytes > found->second) link.counted[name] = bytes - found->second;
  }
  return link;
}

// Waits for all without taking a core from those that measure.
void wait_for_all(MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(comm, &request);
  for (int done = 0; done == 0; MPI_Test(&request, &done, MPI_STATUS_IGNORE))
    std::this_thread::sleep_for(500us);
}

std::set<std::string> interfaces_with_address() {
  std::set<std::string> names;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return names;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const bool v4 = entry->ifa_addr->sa_family == AF_INET;
    const bool v6 =
        entry->ifa_addr->sa_family == AF_INET6 &&
        !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr)->sin6_addr);
    if (v4 || v6) names.insert(entry->ifa_name);
  }
  freeifaddrs(list);
  return names;
}

NetworkHost describe_host(int ranks) {
  NetworkHost host{process().hostname, ranks, {}, find_rdma_devices(kInfiniband)};
  const auto with_address = interfaces_with_address();
  for (const auto& interface : find_interfaces(kNet))
    if (with_address.count(interface.name) > 0) host.interfaces.push_back(interface);
  return host;
}

struct Place {
  MPI_Comm host = MPI_COMM_NULL, leaders = MPI_COMM_NULL;
  int local = 0, local_size = 1;
  int node = 0, nodes = 1;  // of a leader
};

Place find_place() {
  Place place;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &place.host);
  MPI_Comm_rank(place.host, &place.local);
  MPI_Comm_size(place.host, &place.local_size);
  MPI_Comm_split(MPI_COMM_WORLD, place.local == 0 ? 0 : MPI_UNDEFINED, rank, &place.leaders);
  if (place.local != 0) return place;
  MPI_Comm_rank(place.leaders, &place.node);
  MPI_Comm_size(place.leaders, &place.nodes);
  return place;
}

std::vector<std::string> names_of_hosts(const Place& place) {
  constexpr int kBytes = 256;
  std::string own = process().hostname;
  own.resize(kBytes, '\0');
  std::string all(static_cast<size_t>(kBytes) * place.nodes, '\0');
  MPI_Allgather(own.data(), kBytes, MPI_BYTE, all.data(), kBytes, MPI_BYTE, place.leaders);
  std::vector<std::string> names;
  for (int node = 0; node < place.nodes; ++node)
    names.emplace_back(all.c_str() + static_cast<size_t>(kBytes) * node);
  return names;
}

// The links i → i+1 of the ring of hosts in three turns, so that nobody measures two at once: those with even
// i, those with odd i, and the one that closes a ring of an odd number of hosts.
int turn_of(int link, int nodes) { return link == nodes - 1 && nodes % 2 == 1 ? 2 : link % 2; }

void measure_between_hosts(const Place& place, int turn, const std::vector<std::string>& names,
                           std::vector<NetworkLink>& measured) {
  const int links = place.nodes == 2 ? 1 : place.nodes;
  for (int link = 0; link < links && place.nodes > 1; ++link) {
    const int next = (link + 1) % place.nodes;
    if (turn_of(link, place.nodes) != turn || (place.node != link && place.node != next)) continue;
    const bool leads = place.node == link;
    const int peer = leads ? next : link;
    const NetworkLink found = measure(place.leaders, peer, leads, names[static_cast<size_t>(peer)]);
    if (leads) measured.push_back(found);
  }
}

// The hosts' texts on rank 0, in the order of the hosts.
void print_report(const Place& place, const std::string& own, const ScalingQuestion& question) {
  if (place.node != 0) {
    MPI_Send(own.data(), static_cast<int>(own.size()), MPI_BYTE, 0, 1, place.leaders);
    return;
  }
  NetworkReport report;
  report.seconds_per_reduced_byte = measure_reduction();
  add_host(report, own);
  for (int node = 1; node < place.nodes; ++node) {
    MPI_Status status;
    int bytes = 0;
    MPI_Probe(node, 1, place.leaders, &status);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    std::string text(static_cast<size_t>(bytes), '\0');
    MPI_Recv(text.data(), bytes, MPI_BYTE, node, 1, place.leaders, MPI_STATUS_IGNORE);
    add_host(report, text);
  }
  std::puts(network_json(report, question).c_str());
  std::fflush(stdout);
}

void measure_all(const ScalingQuestion& question) {
  const Place place = find_place();
  const auto names = place.local == 0 ? names_of_hosts(place) : std::vector<std::string>{};
  std::vector<NetworkLink> measured;
  for (int turn = 0; turn < 3; ++turn) {
    wait_for_all(MPI_COMM_WORLD);
    if (place.local == 0) measure_between_hosts(place, turn, names, measured);
  }
  wait_for_all(MPI_COMM_WORLD);
  if (place.local_size > 1 && place.local < 2) {
    const bool leads = place.local == 0;
    const NetworkLink inside = measure(place.host, 1 - place.local, leads, process().hostname);
    if (leads) measured.push_back(inside);
  }
  wait_for_all(MPI_COMM_WORLD);
  if (place.local == 0) print_report(place, host_text(describe_host(place.local_size), measured), question);
  wait_for_all(MPI_COMM_WORLD);
}

// Only kolorun starts it.
int answer(std::string_view word) {
  if (word == "--help" || word == "-h")
    return fmt::print(
               "kolo-network-probe measures the links between the hosts of a job. kolorun starts it as the "
               "job's ranks:\n\n  kolorun --check-network --host node1:2,node2:2\n\n"
               "Rank 0 prints one line of JSON, which kolorun reads.\n"
               "  -h [ --help ]   print this\n  --version       print the version\n"),
           0;
  if (word == "--version") return fmt::print("kolo-network-probe {}\n", KOLO_VERSION), 0;
  fmt::print(stderr, "kolo-network-probe: unknown word \"{}\" (kolo-network-probe --help says more)\n", word);
  return 2;
}

}  // namespace
}  // namespace kolo::bench

int main(int argc, char** argv) {
  using namespace kolo;
  if (argc < 2) return bench::answer("--help");
  const auto bytes = parse_int64(argv[1]);
  const auto step_ms = argc == 3 ? parse_double(argv[2]) : std::nullopt;
  if (!bytes || !step_ms) return bench::answer(argv[1]);
  // Open MPI's ranks that wait would keep a core from those that work, where ranks are more than cores.
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  MPI_Init(&argc, &argv);
  try {
    bench::measure_all({.gradient_bytes = *bytes, .step_ms = *step_ms});
  } catch (const std::exception& error) {
    fmt::print(stderr, "kolo-network-probe: {}\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}

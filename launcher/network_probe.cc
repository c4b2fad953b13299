// kolo-network-probe: what kolorun --check-network starts on the hosts of a job, with the job's ranks. One
// rank of each host measures with its neighbour on the next host and, where there is one, with a second rank
// of its own host. Each host prints a line of JSON, which launcher/network_report.h reads.
#include <fmt/core.h>
#include <ifaddrs.h>
#include <mpi.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <kolo/core/base/json_text.h>
#include <kolo/core/base/process.h>
#include <kolo/launcher/network_devices.h>

namespace kolo::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;
using namespace std::chrono_literals;
using nlohmann::json;

constexpr Seconds kLatencyTime = 30ms;
constexpr size_t kLeastTrips = 20;
constexpr Seconds kBandwidthTime = 250ms;
constexpr size_t kLeastMessages = 4;
constexpr Seconds kMostTime = 1s;      // for either: a link that takes so long needs no better number
constexpr Seconds kLongEnough = 10ms;  // for one message
constexpr int kFirstBytes = 64 << 10;
constexpr int kMostBytes = 4 << 20;
constexpr const char* kDev = "/proc/net/dev";
constexpr const char* kNet = "/sys/class/net";
constexpr const char* kInfiniband = "/sys/class/infiniband";

// A machine that does other things at the same time makes single measurements worse, never better.
double shortest(const std::vector<double>& seconds) {
  return *std::min_element(seconds.begin(), seconds.end());
}

double upper_quartile(std::vector<double> rates) {
  std::sort(rates.begin(), rates.end());
  return rates[rates.size() * 3 / 4];
}

// Two ranks; `leads` is true on one of them, which decides when it is enough.
class Pair {
 public:
  Pair(MPI_Comm comm, int peer, bool leads) : comm_(comm), peer_(peer), leads_(leads) {}

  json measure(const std::string& peer_host) {
    const double latency_s = latency();
    const auto before = sent_bytes(kDev, kInfiniband);
    const double rate = bandwidth();
    json counted = json::object();
    for (const auto& [name, bytes] : sent_bytes(kDev, kInfiniband)) {
      const auto found = before.find(name);
      if (found != before.end() && bytes > found->second) counted[name] = bytes - found->second;
    }
    return {{"to", peer_host},
            {"latency_us", latency_s * 1e6},
            {"bytes_per_s", rate},
            {"sent", sent_},
            {"counted", counted}};
  }

 private:
  static bool is_enough(Seconds elapsed, Seconds time, bool has_enough) {
    return elapsed > kMostTime || (elapsed > time && has_enough);
  }

  // The leader's word; the other hears it.
  int agree(int value) {
    if (leads_) MPI_Send(&value, 1, MPI_INT, peer_, 0, comm_);
    else MPI_Recv(&value, 1, MPI_INT, peer_, 0, comm_, MPI_STATUS_IGNORE);
    return value;
  }

  // Half of a round trip of the leader's word.
  double latency() {
    std::vector<double> trips;
    const auto start = Clock::now();
    for (int go = 1; go != 0;) {
      const auto begin = Clock::now();
      go = agree(is_enough(begin - start, kLatencyTime, trips.size() >= kLeastTrips) ? 0 : 1);
      int back = go;
      if (leads_) MPI_Recv(&back, 1, MPI_INT, peer_, 0, comm_, MPI_STATUS_IGNORE);
      else MPI_Send(&back, 1, MPI_INT, peer_, 0, comm_);
      trips.push_back(Seconds(Clock::now() - begin).count() / 2);
    }
    return shortest(trips);
  }

  // Messages in both directions at once, as a ring sends them; longer ones until one takes long enough.
  double bandwidth() {
    std::vector<std::byte> out(kMostBytes), in(kMostBytes);
    std::vector<double> rates;
    const auto begin = Clock::now();
    for (int bytes = kFirstBytes; (bytes = agree(bytes)) != 0;) {
      const auto start = Clock::now();
      MPI_Sendrecv(out.data(), bytes, MPI_BYTE, peer_, 0, in.data(), bytes, MPI_BYTE, peer_, 0, comm_,
                   MPI_STATUS_IGNORE);
      const auto now = Clock::now();
      const Seconds took = now - start;
      sent_ += bytes;
      const bool grows = took < kLongEnough && bytes < kMostBytes;
      // Where the time runs out while they still grow, the last ones must do.
      if (!grows || now - begin > kBandwidthTime) rates.push_back(bytes / took.count());
      if (grows) bytes *= 2;
      if (is_enough(now - begin, kBandwidthTime, rates.size() >= kLeastMessages)) bytes = 0;
    }
    return rates.empty() ? 0 : upper_quartile(rates);
  }

  MPI_Comm comm_;
  int peer_;
  bool leads_;
  std::int64_t sent_ = 0;
};

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

json describe_host(int ranks) {
  json interfaces = json::array(), rdma = json::array();
  const auto with_address = interfaces_with_address();
  for (const auto& interface : find_interfaces(kNet))
    if (with_address.count(interface.name) > 0)
      interfaces.push_back({{"name", interface.name}, {"mbit_per_s", interface.mbit_per_s}});
  for (const auto& device : find_rdma_devices(kInfiniband))
    rdma.push_back({{"name", device.name}, {"link_layer", device.link_layer}, {"rate", device.rate}});
  return {{"host", process().hostname},
          {"ranks", ranks},
          {"interfaces", interfaces},
          {"rdma", rdma},
          {"links", json::array()}};
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
                           json& report) {
  const int links = place.nodes == 2 ? 1 : place.nodes;
  for (int link = 0; link < links && place.nodes > 1; ++link) {
    const int next = (link + 1) % place.nodes;
    if (turn_of(link, place.nodes) != turn || (place.node != link && place.node != next)) continue;
    const bool leads = place.node == link;
    const json measured = Pair(place.leaders, leads ? next : link, leads).measure(names[leads ? next : link]);
    if (leads) report["links"].push_back(measured);
  }
}

// Rank 0 prints all, in the order of the hosts.
void print_reports(const Place& place, const std::string& own) {
  if (place.node != 0) {
    MPI_Send(own.data(), static_cast<int>(own.size()), MPI_BYTE, 0, 1, place.leaders);
    return;
  }
  std::puts(own.c_str());
  for (int node = 1; node < place.nodes; ++node) {
    MPI_Status status;
    int bytes = 0;
    MPI_Probe(node, 1, place.leaders, &status);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    std::string text(bytes, '\0');
    MPI_Recv(text.data(), bytes, MPI_BYTE, node, 1, place.leaders, MPI_STATUS_IGNORE);
    std::puts(text.c_str());
  }
  std::fflush(stdout);
}

void measure() {
  const Place place = find_place();
  json report = describe_host(place.local_size);
  const auto names = place.local == 0 ? names_of_hosts(place) : std::vector<std::string>{};
  for (int turn = 0; turn < 3; ++turn) {
    wait_for_all(MPI_COMM_WORLD);
    if (place.local == 0) measure_between_hosts(place, turn, names, report);
  }
  wait_for_all(MPI_COMM_WORLD);
  if (place.local_size > 1 && place.local < 2) {
    const json measured = Pair(place.host, 1 - place.local, place.local == 0).measure(process().hostname);
    if (place.local == 0) report["links"].push_back(measured);
  }
  wait_for_all(MPI_COMM_WORLD);
  if (place.local == 0) print_reports(place, json_text(report));
  wait_for_all(MPI_COMM_WORLD);
}

// It takes no argument but these two: kolorun starts it with none.
int answer(std::string_view word) {
  if (word == "--help" || word == "-h")
    return fmt::print(
               "kolo-network-probe measures the links between the hosts of a job. kolorun starts it as the "
               "job's ranks:\n\n  kolorun --check-network --host node1:2,node2:2\n\n"
               "Each host prints one line of JSON, which kolorun reads.\n"
               "  -h [ --help ]   print this\n  --version       print the version\n"),
           0;
  if (word == "--version") return fmt::print("kolo-network-probe {}\n", KOLO_VERSION), 0;
  fmt::print(stderr, "kolo-network-probe: unknown word \"{}\" (kolo-network-probe --help says more)\n", word);
  return 2;
}

}  // namespace
}  // namespace kolo::launcher

int main(int argc, char** argv) {
  if (argc > 1) return kolo::launcher::answer(argv[1]);
  // Open MPI's ranks that wait would keep a core from those that work, where ranks are more than cores.
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  MPI_Init(&argc, &argv);
  kolo::launcher::measure();
  MPI_Finalize();
  return 0;
}

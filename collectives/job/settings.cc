#include <kolo/collectives/job/settings.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include <kolo/collectives/algorithms/measure_costs.h>
#include <kolo/collectives/algorithms/message_collectives.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/input_file.h>
#include <kolo/core/base/log.h>

namespace kolo::detail {
namespace {

// Open MPI keeps some dozens of buffers of this size for what arrives.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 20;
constexpr std::int64_t kOpenMpiDefault = std::int64_t{64} << 10;
constexpr std::int64_t kHeaderBytes = 1024;  // and more than that
// The second bounds what the receiver takes in at a time.
constexpr std::array kEagerSettings = {"OMPI_MCA_btl_tcp_eager_limit", "OMPI_MCA_btl_tcp_max_send_size"};

}  // namespace

void send_chunks_at_once(std::int64_t chunk_bytes) {
  const std::int64_t bytes = std::min(chunk_bytes, kMostBytes) + kHeaderBytes;
  const bool is_chosen = std::any_of(kEagerSettings.begin(), kEagerSettings.end(),
                                     [](const char* name) { return std::getenv(name) != nullptr; });
  if (is_chosen || bytes <= kOpenMpiDefault) return;
  for (const char* name : kEagerSettings) setenv(name, std::to_string(bytes).c_str(), /*replace=*/0);
}

namespace {

constexpr std::int64_t kChunkBytes = std::int64_t{64} << 10;

// Right after the ranks have met: nobody is late.
void broadcast_from_0(PointToPoint& network, std::span<std::byte> bytes) {
  const auto operation = broadcast(network, bytes, 0, kChunkBytes);
  operation->start();
  while (operation->progress() != Progress::finished) {
  }
}

// rank 0's file on every rank; empty if it cannot be read.
std::string shared_text(const std::string& file, PointToPoint& network) {
  constexpr std::uint64_t kMost = 16 << 20;
  std::string text = network.rank() == 0 ? text_or_nothing(file, kMost) : "";
  auto bytes = static_cast<std::int64_t>(text.size());
  broadcast_from_0(network, std::as_writable_bytes(std::span(&bytes, 1)));
  text.resize(static_cast<std::size_t>(bytes));
  broadcast_from_0(network, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace

CostModel decide_costs(const EngineOptions& options, PointToPoint& network, const Topology& topology) {
  CostModel costs;
  if (!options.cost_table.empty()) {
    const std::string text = shared_text(options.cost_table, network);
    if (text.empty())
      throw InvalidArgumentError("KOLO_AUTOTUNE=\"{}\": rank 0 cannot read this file, or it is empty",
                                 options.cost_table);
    costs = CostModel::from_json(text);
  } else if (options.autotune) {
    costs = measure_costs(network, topology);
  } else {
    return costs;
  }
  if (network.rank() == 0 && !options.autotune_log.empty()) {
    std::ofstream log(options.autotune_log, std::ios::app);
    log << "# " << costs.to_json() << "\n";
    if (!log) log_warning("KOLO_AUTOTUNE_LOG: {} cannot be written", options.autotune_log);
  }
  return costs;
}

}  // namespace kolo::detail

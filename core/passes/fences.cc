#include <kolo/core/passes/fences.h>

#include <fmt/format.h>

#include <algorithm>
#include <boost/dynamic_bitset.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/device/device.h>
#include <kolo/core/passes/transfer.h>

namespace kolo {
namespace {

const RegisterOp fence_op(OpSchema(kFenceOp).stateful().no_gradient().made_by_pass());

struct ByName {
  bool operator()(const Stream* a, const Stream* b) const { return a->name() < b->name(); }
};
using Streams = std::set<Stream*, ByName>;

class Fences {
 public:
  Fences(StepGraph& graph, const DeviceSet& devices)
      : graph_(graph),
        devices_(devices),
        skipped_(can_be_skipped(graph)),
        behind_(graph.nodes.size()),
        earlier_(graph.nodes.size()) {}

  void run() {
    const std::vector<int> order = topological_order(graph_);
    for (const int n : order) {
      Stream* const own = stream_of(graph_.nodes[n], devices_);
      Waits waits;
      find_earlier(n);
      if (is_there_before(n)) continue;
      if (own == nullptr) {
        for_each_before(n, [&](int before) { add(waits, before, nullptr); });
      } else if (graph_.nodes[n].schema->is_view()) {
        pass_on(n);
      } else {
        for (std::size_t i = 0; i < graph_.nodes[n].inputs.size(); ++i)
          if (graph_.nodes[n].schema->is_host_input(static_cast<int>(i)))
            add(waits, graph_.nodes[n].inputs[i].node, own);
        behind_[n].insert(own);
      }
      leave_out_implied(n, waits);
      for (auto& [stream, nodes] : waits) {
        const int before = fence(stream, std::move(nodes));  // nodes move when one is added
        graph_.nodes[n].after.push_back(before);
      }
    }
  }

 private:
  using Waits = std::map<Stream*, std::set<int>, ByName>;

  // Memory that is there before the step begins is waited for by nobody.
  bool is_there_before(int n) const {
    const OpSchema& schema = *graph_.nodes[n].schema;
    return schema.is_variable_storage() || schema.name() == "Const" || schema.name() == kFeedOp;
  }

  template <typename Visit>
  void for_each_before(int n, const Visit& visit) const {
    for (const StepValue in : graph_.nodes[n].inputs) visit(in.node);
    for (const int before : graph_.nodes[n].control_inputs) visit(before);
    for (const int before : graph_.nodes[n].after) visit(before);
  }

  void find_earlier(int n) {
    earlier_[n].resize(earlier_.size());
    for_each_before(n, [&](int before) { earlier_[n].set(before), earlier_[n] |= earlier_[before]; });
  }

  // A node that comes behind another, in whichever streams the two are or on the host, is done after it.
  void leave_out_implied(int n, Waits& waits) const {
    std::set<int> all;
    for_each_before(n, [&](int before) {
      if (stream_of(graph_.nodes[before], devices_) == nullptr) all.insert(before);
    });
    for (const auto& [stream, nodes] : waits) all.insert(nodes.begin(), nodes.end());
    for (auto& [stream, nodes] : waits)
      std::erase_if(nodes, [&](int b) {
        return std::any_of(all.begin(), all.end(),
                           [&](int other) { return !skipped_[other] && earlier_[other].test(b); });
      });
    std::erase_if(waits, [](const auto& wait) { return wait.second.empty(); });
  }

  void add(Waits& waits, int before, const Stream* own) const {
    for (Stream* const stream : behind_[before])
      if (stream != own) waits[stream].insert(before);
  }

  // A view of a GPU's is done with what it waits for.
  void pass_on(int n) {
    for_each_before(n,
                    [&](int before) { behind_[n].insert(behind_[before].begin(), behind_[before].end()); });
  }

  int fence(Stream* stream, std::set<int> nodes) {
    const auto [found, is_new] = fences_.try_emplace({stream, std::move(nodes)});
    if (!is_new) return found->second;
    const std::set<int>& before = found->first.second;
    std::int64_t last = 0;
    for (const int b : before) last = std::max(last, graph_.nodes[b].order);
    const int fence =
        graph_.add(kFenceOp, fmt::format("{}/_Fence{}", graph_.nodes[*before.begin()].name, fences_.size()),
                   {}, {}, last + 1);
    graph_.nodes[fence].device = host_of(graph_, devices_);
    graph_.nodes[fence].after.assign(before.begin(), before.end());
    graph_.nodes[fence].resource = std::shared_ptr<void>(std::shared_ptr<void>(), stream);  // the device's
    return found->second = fence;
  }

  StepGraph& graph_;
  const DeviceSet& devices_;
  const std::vector<bool> skipped_;
  std::vector<Streams> behind_;                   // by node: what its readers on the host have to wait for
  std::vector<boost::dynamic_bitset<>> earlier_;  // by node: what it comes behind, however indirectly
  std::map<std::pair<Stream*, std::set<int>>, int> fences_;
};

}  // namespace

Stream* stream_of(const StepNode& node, const DeviceSet& devices) {
  if (node.schema->name() != kRecvOp) return devices.find(node.device).stream(StreamKind::compute);
  return copy_stream(devices.find(node.attrs.at("send_device").get<std::string>()),
                     devices.find(node.device));
}

void insert_fences(StepGraph& graph, const DeviceSet& devices) {
  const bool needed = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                  [&](const StepNode& node) { return stream_of(node, devices) != nullptr; });
  if (needed) Fences(graph, devices).run();
}

}  // namespace kolo

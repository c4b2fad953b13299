#include <kolo/core/passes/memory.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <kolo/core/passes/transfer.h>
#include <kolo/core/tensor/allocator.h>

namespace kolo {
namespace {

using Kind = ValueMemory::Kind;

// Smaller buffers keep their place for the whole step: reusing them saves little and costs edges.
constexpr std::size_t kSmallestReused = 4096;

// GPUs' libraries take the fast way where memory begins at a multiple of this.
constexpr std::size_t kGpuAlignment = 256;

std::size_t aligned(std::size_t bytes, const std::string& device) {
  const std::size_t alignment = is_cpu(device) ? kAlignment : kGpuAlignment;
  return (bytes + alignment - 1) / alignment * alignment;
}

// One stretch of an arena: a value with all its views and in-place successors, or a kernel's scratch.
struct Block {
  std::size_t bytes = 0;
  int first = 0;           // position of its first writer in the order
  int last = 0;            // position of its last user
  std::vector<int> users;  // nodes that use the value that it holds last, its writer included
  int writer = 0;          // the node that first writes it
  int arena = 0;
  std::size_t offset = 0;
  std::size_t end() const { return offset + bytes; }
};

class Planner {
 public:
  Planner(StepGraph& graph, const std::vector<int>& order, const std::vector<std::size_t>& scratch_bytes,
          const std::string& host)
      : graph_(graph), order_(order), scratch_bytes_(scratch_bytes), host_(host), position_(order.size()) {
    for (std::size_t i = 0; i < order.size(); ++i) position_[order[i]] = static_cast<int>(i);
  }

  MemoryPlan run() {
    classify();
    find_last_uses();
    make_blocks();
    assign_offsets();
    add_reuse_edges();
    return finish();
  }

 private:
  void classify() {
    plan_.values.resize(graph_.nodes.size());
    for (const int n : order_) {
      const StepNode& node = graph_.nodes[n];
      plan_.values[n].resize(node.dtypes.size());
      for (int o = 0; o < static_cast<int>(node.dtypes.size()); ++o) plan_.values[n][o] = kind_of({n, o});
    }
  }

  ValueMemory kind_of(StepValue v) const {
    const StepValue root = graph_.memory_root(v);
    const StepNode& node = graph_.nodes[root.node];
    if (root != v) return {memory(root).kind, root};
    if (graph_.placements.count(v) > 0) return {Kind::placed, v};
    if (node.schema->is_variable_storage()) return {Kind::variable, v};
    if (node.schema->name() == "Const") return {Kind::constant, v};
    if (node.schema->name() == kFeedOp) return {Kind::feed, v};
    const bool known = node.shapes[v.output].is_fully_known() && node.dtypes[v.output] != DType::string &&
                       !node.schema->is_owner_of_outputs();
    return {known ? Kind::arena : Kind::dynamic, v};
  }

  int arena_on(const std::string& device, const std::string& pinned_for = "") {
    const auto [found, is_new] =
        arenas_.emplace(std::pair(device, pinned_for), static_cast<int>(plan_.arenas.size()));
    if (is_new) plan_.arenas.push_back({.device = device, .pinned_for = pinned_for});
    return found->second;
  }

  int arena_of(StepValue root) {
    const StepNode& node = graph_.nodes[root.node];
    const bool on_host = node.schema->is_host_output(root.output, node.dtypes[root.output]);
    const std::string& device = on_host ? host_ : node.device;
    return arena_on(device, is_cpu(device) ? copied_by(root) : "");
  }

  // Of a value in the host's memory: the GPU that copies it; "" where none does.
  std::string copied_by(StepValue root) const {
    const StepNode& node = graph_.nodes[root.node];
    if (node.schema->name() == kRecvOp) {
      const auto from = node.attrs.find("send_device");
      if (from != node.attrs.end() && !is_cpu(from->second.get<std::string>()))
        return from->second.get<std::string>();
    }
    const auto readers = users_.find(root);
    if (readers == users_.end()) return "";
    for (const int user : readers->second) {
      const StepNode& reader = graph_.nodes[user];
      if (reader.schema->name() == kRecvOp && !is_cpu(reader.device)) return reader.device;
    }
    return "";
  }

  const ValueMemory& memory(StepValue v) const { return plan_.values[v.node][v.output]; }
  bool in_arena(StepValue root) const { return memory(root).kind == Kind::arena; }

  void find_last_uses() {
    for (const int n : order_)
      for (const StepValue in : graph_.nodes[n].inputs) users_[graph_.memory_root(in)].push_back(n);
    for (const StepValue fetch : graph_.fetches)
      if (fetch.node >= 0) fetched_.insert(graph_.memory_root(fetch));
  }

  void make_blocks() {
    for (const int n : order_) {
      const StepNode& node = graph_.nodes[n];
      for (int o = 0; o < static_cast<int>(node.dtypes.size()); ++o) {
        const StepValue v{n, o};
        if (memory(v).root != v || !in_arena(v)) continue;
        const std::size_t bytes =
            aligned(static_cast<std::size_t>(graph_.shape(v).elements()) * size_of(graph_.dtype(v)),
                    plan_.arenas[arena_of(v)].device);
        count_unplanned(arena_of(v), bytes);
        const int reused = o == 0 ? block_to_overwrite(n, bytes) : -1;
        if (reused >= 0) extend(reused, v);
        else add_block(v, bytes);
      }
      scratch_block_.push_back(-1);
      if (scratch_bytes_[n] > 0) {
        scratch_block_.back() = static_cast<int>(blocks_.size());
        const std::size_t bytes = aligned(scratch_bytes_[n], node.device);
        count_unplanned(arena_on(node.device), bytes);
        blocks_.push_back({.bytes = bytes,
                           .first = position_[n],
                           .last = position_[n],
                           .users = {n},
                           .writer = n,
                           .arena = arena_on(node.device)});
      }
    }
  }

  void count_unplanned(int arena, std::size_t bytes) {
    plan_.unplanned_bytes += bytes;
    plan_.arenas[arena].unplanned_bytes += bytes;
  }

  void add_block(StepValue v, std::size_t bytes) {
    block_of_[v] = static_cast<int>(blocks_.size());
    blocks_.push_back({.bytes = bytes,
                       .first = position_[v.node],
                       .last = position_[v.node],
                       .users = {},
                       .writer = v.node,
                       .arena = arena_of(v)});
    extend(block_of_[v], v);
  }

  // `v` lives in the block from its writing to its last use.
  void extend(int block, StepValue v) {
    Block& b = blocks_[block];
    block_of_[v] = block;
    b.users.push_back(v.node);
    b.last = std::max(b.last, position_[v.node]);
    for (const int user : users_[v]) b.users.push_back(user), b.last = std::max(b.last, position_[user]);
    if (fetched_.count(v) > 0 || is_sent(users_[v], plan_.arenas[b.arena].device))
      b.last = static_cast<int>(order_.size());
  }

  // Copies to a GPU count as done before they have read the host's memory, and who writes there in this step
  // does not wait for streams.
  bool is_sent(const std::vector<int>& users, const std::string& device) const {
    return is_cpu(device) && std::any_of(users.begin(), users.end(), [&](int user) {
             return graph_.nodes[user].schema->name() == kRecvOp && !is_cpu(graph_.nodes[user].device);
           });
  }

  // The block of an input that node `n` may write its output over: nobody reads it later, so the others that
  // read it come before `n`, now also by an edge.
  int block_to_overwrite(int n, std::size_t bytes) {
    const StepNode& node = graph_.nodes[n];
    for (const int i : node.schema->in_place_inputs()) {
      if (i >= static_cast<int>(node.inputs.size())) continue;
      const auto found = block_of_.find(graph_.memory_root(node.inputs[i]));
      if (found == block_of_.end()) continue;
      const Block& block = blocks_[found->second];
      if (block.bytes != bytes || block.last != position_[n] || block.arena != arena_of({n, 0})) continue;
      // Blocks are rounded up: an input that is broadcast, or summed, may fill as many bytes as the output.
      // Its elements are read after others have been written.
      if (graph_.shape(node.inputs[i]).elements() != graph_.shape({n, 0}).elements()) continue;
      // Another input in the same memory would be overwritten while it is read.
      int inputs_in_block = 0;
      for (const StepValue in : node.inputs) {
        const auto other = block_of_.find(graph_.memory_root(in));
        inputs_in_block += other != block_of_.end() && other->second == found->second;
      }
      if (inputs_in_block > 1) continue;
      for (const int user : block.users) add_edge(user, n);
      // Whoever waits for the block's later users waits for these through `n`.
      blocks_[found->second].users.clear();
      return found->second;
    }
    return -1;
  }

  // Largest first, each at the lowest place that is free during its whole life: a greedy rule that comes
  // close to the optimum on networks, where few large buffers dominate (Pisarchyk and Lee, 2020,
  // arXiv:2001.03288).
  void assign_offsets() {
    std::vector<int> by_size(blocks_.size());
    for (std::size_t i = 0; i < by_size.size(); ++i) by_size[i] = static_cast<int>(i);
    std::stable_sort(by_size.begin(), by_size.end(),
                     [&](int a, int b) { return blocks_[a].bytes > blocks_[b].bytes; });
    std::vector<int> placed;  // by offset
    for (const int i : by_size) {
      Block& block = blocks_[i];
      if (block.bytes < kSmallestReused) continue;
      std::size_t offset = 0;
      for (const int other : placed) {
        const Block& b = blocks_[other];
        if (b.arena != block.arena || b.last < block.first || b.first > block.last) continue;
        if (offset + block.bytes <= b.offset) break;
        offset = std::max(offset, b.end());
      }
      block.offset = offset;
      const auto at = std::upper_bound(placed.begin(), placed.end(), offset,
                                       [&](std::size_t o, int b) { return o < blocks_[b].offset; });
      placed.insert(at, i);
      std::size_t& bytes = plan_.arenas[block.arena].bytes;
      bytes = std::max(bytes, block.end());
    }
    for (Block& block : blocks_) {
      if (block.bytes >= kSmallestReused) continue;
      std::size_t& bytes = plan_.arenas[block.arena].bytes;
      block.offset = bytes;
      bytes += block.bytes;
    }
    for (const Arena& arena : plan_.arenas) plan_.arena_bytes += arena.bytes;
  }

  void add_reuse_edges() {
    std::vector<const Block*> large;
    for (const Block& block : blocks_)
      if (block.bytes >= kSmallestReused) large.push_back(&block);
    std::sort(large.begin(), large.end(), [](const Block* a, const Block* b) { return a->last > b->last; });
    for (const Block* block : large) {
      // From the latest predecessor back: one whose place later predecessors have wholly taken is ordered
      // through them.
      std::vector<std::pair<std::size_t, std::size_t>> open = {{block->offset, block->end()}};
      for (const Block* before : large) {
        if (open.empty()) break;
        if (before->arena != block->arena || before->last >= block->first || before->end() <= block->offset ||
            before->offset >= block->end())
          continue;
        if (!subtract(open, before->offset, before->end())) continue;
        for (const int user : before->users) add_edge(user, block->writer);
      }
    }
  }

  // Takes [begin, end) out of the intervals; false if nothing of it was in them.
  static bool subtract(std::vector<std::pair<std::size_t, std::size_t>>& intervals, std::size_t begin,
                       std::size_t end) {
    std::vector<std::pair<std::size_t, std::size_t>> left;
    bool touched = false;
    for (const auto& [from, to] : intervals) {
      touched |= from < end && begin < to;
      if (from < std::min(to, begin)) left.push_back({from, std::min(to, begin)});
      if (std::max(from, end) < to) left.push_back({std::max(from, end), to});
    }
    intervals = std::move(left);
    return touched;
  }

  void add_edge(int before, int after) {
    if (before == after) return;
    auto& edges = graph_.nodes[after].after;
    for (const StepValue in : graph_.nodes[after].inputs)
      if (in.node == before) return;
    if (std::find(edges.begin(), edges.end(), before) == edges.end()) edges.push_back(before);
  }

  MemoryPlan finish() {
    for (const auto& [value, block] : block_of_) {
      plan_.values[value.node][value.output].arena = blocks_[block].arena;
      plan_.values[value.node][value.output].offset = blocks_[block].offset;
    }
    for (const int n : order_)
      for (ValueMemory& value : plan_.values[n])
        if (value.kind == Kind::arena) {
          value.arena = memory(value.root).arena;
          value.offset = memory(value.root).offset;
        }
    plan_.scratch_offsets.resize(graph_.nodes.size());
    plan_.scratch_arenas.assign(graph_.nodes.size(), -1);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (scratch_block_[i] < 0) continue;
      plan_.scratch_offsets[order_[i]] = blocks_[scratch_block_[i]].offset;
      plan_.scratch_arenas[order_[i]] = blocks_[scratch_block_[i]].arena;
    }
    return std::move(plan_);
  }

  StepGraph& graph_;
  const std::vector<int>& order_;
  const std::vector<std::size_t>& scratch_bytes_;
  const std::string& host_;
  std::map<std::pair<std::string, std::string>, int> arenas_;  // by device and pinned_for
  std::vector<int> position_;
  std::map<StepValue, std::vector<int>> users_;
  std::set<StepValue> fetched_;
  std::map<StepValue, int> block_of_;
  std::vector<Block> blocks_;
  std::vector<int> scratch_block_;  // by position
  MemoryPlan plan_;
};

}  // namespace

MemoryPlan plan_memory(StepGraph& graph, const std::vector<int>& order,
                       const std::vector<std::size_t>& scratch_bytes, const std::string& host) {
  return Planner(graph, order, scratch_bytes, host).run();
}

}  // namespace kolo

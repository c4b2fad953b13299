#include <kolo/models/programs/step_profile.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include <kolo/core/base/median.h>

namespace kolo::models {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;
constexpr std::size_t kFurthest = 3;
constexpr std::size_t kMostLines = 20;  // of a table that people read

void add(ProfileRow& sum, const ProfileRow& row) {
  sum.ms += row.ms;
  sum.work.flops += row.work.flops;
  sum.work.bytes += row.work.bytes;
  sum.known_ms += row.known_ms;
  sum.bound_ms += row.bound_ms;
}

std::vector<ProfileRow> longest_first(std::map<std::string, ProfileRow> rows) {
  std::vector<ProfileRow> sorted;
  for (auto& [name, row] : rows) {
    row.name = name;
    sorted.push_back(std::move(row));
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.ms > b.ms; });
  return sorted;
}

double lost_ms(const ProfileRow& node) { return node.known_ms - node.bound_ms; }
double gflops(const ProfileRow& row) { return row.known_ms > 0 ? row.work.flops / row.known_ms / 1e6 : 0; }
double gbytes(const ProfileRow& row) { return row.known_ms > 0 ? row.work.bytes / row.known_ms / 1e6 : 0; }
double of_bound(const ProfileRow& row) { return row.known_ms > 0 ? row.bound_ms / row.known_ms : 0; }

// Gradients are named after the node whose gradient they are: "gradients/fc1/MatMul_grad/MatMul_1".
std::string forward_name(const std::string& node) {
  const std::string prefix = "gradients/", suffix = "_grad/";
  if (node.rfind(prefix, 0) != 0) return node;
  const auto end = node.find(suffix);
  return node.substr(prefix.size(), end == std::string::npos ? end : end - prefix.size());
}

std::string line_of(const ProfileRow& row, double step_ms) {
  std::string line = fmt::format("{:6.1f} % {:10.3f} ms", 100 * row.ms / step_ms, row.ms);
  line += row.work.flops > 0 ? fmt::format(" {:8.1f} GFLOP/s", gflops(row)) : std::string(17, ' ');
  line += row.known_ms > 0
              ? fmt::format(" {:7.1f} GB/s {:4.0f} % of its bound", gbytes(row), 100 * of_bound(row))
              : std::string(30, ' ');
  return line + "  " + row.name + "\n";
}

std::string table(const char* title, const std::vector<ProfileRow>& rows, double step_ms) {
  std::string text = fmt::format("{}\n", title);
  ProfileRow rest;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i < kMostLines) text += line_of(rows[i], step_ms);
    else add(rest, rows[i]);
  }
  if (rows.size() > kMostLines) {
    rest.name = fmt::format("{} more", rows.size() - kMostLines);
    text += line_of(rest, step_ms);
  }
  return text;
}

nlohmann::ordered_json rows_as_json(const std::vector<ProfileRow>& rows, double step_ms) {
  auto list = nlohmann::ordered_json::array();
  for (const ProfileRow& row : rows)
    list.push_back({{"name", row.name},
                    {"ms", rounded(row.ms, 4)},
                    {"share", rounded(row.ms / step_ms, 4)},
                    {"GFLOPs", rounded(gflops(row), 4)},
                    {"GBps", rounded(gbytes(row), 4)},
                    {"of_bound", rounded(of_bound(row), 4)}});
  return list;
}

}  // namespace

void StepProfiler::add(const StepTrace& step) {
  if (step.events.empty()) return;
  auto begin = step.events.front().start, end = step.events.front().end;
  std::map<std::string, double> in_step;  // a node of a loop runs more than once
  for (const TraceEvent& event : step.events) {
    begin = std::min(begin, event.start);
    end = std::max(end, event.end);
    Node& node = nodes_[event.name];
    node.op = event.category;
    node.only_put_there = event.only_put_there;
    in_step[event.name] += Milliseconds(event.end - event.start).count();
  }
  for (const auto& [name, ms] : in_step) nodes_[name].ms.push_back(ms);
  step_ms_.push_back(Milliseconds(end - begin).count());
}

Profile StepProfiler::profile(const std::map<std::string, NodeWork>& work, const CorePeak& peak) const {
  Profile result{.steps = steps(), .peak = peak};
  if (step_ms_.empty()) return result;
  result.step_ms = median(step_ms_);
  std::map<std::string, ProfileRow> ops, layers;
  for (const auto& [name, node] : nodes_) {
    ProfileRow row{.name = name, .ms = median(node.ms)};
    // What was fused, "fc1/BiasAdd + Relu", reads and writes as much as its first op. A pass may have left
    // nothing of an op.
    const auto found = work.find(name.substr(0, name.find(" + ")));
    result.has_gpu |= node.only_put_there;
    if (found != work.end() && node.op != "NoOp" && !node.only_put_there) {
      row.work = found->second;
      row.known_ms = row.ms;
      // What lies in a cache is faster than memory.
      row.bound_ms =
          std::min(row.ms, std::max(row.work.flops / peak.gflops, row.work.bytes / peak.GBps) / 1e6);
    }
    models::add(ops[node.op], row);
    models::add(layers[layer_of(name, node.op)], row);
    if (row.known_ms > 0) result.furthest.push_back(std::move(row));
  }
  result.ops = longest_first(std::move(ops));
  result.layers = longest_first(std::move(layers));
  std::stable_sort(result.furthest.begin(), result.furthest.end(),
                   [](const auto& a, const auto& b) { return lost_ms(a) > lost_ms(b); });
  result.furthest.resize(std::min(result.furthest.size(), kFurthest));
  return result;
}

std::string layer_of(const std::string& node, const std::string& op) {
  if (op.rfind("Apply", 0) == 0 || op.rfind("FusedApply", 0) == 0) return "(update)";
  const std::string name = forward_name(node);
  const auto end = name.substr(0, name.find(" + ")).rfind('/');
  return end == std::string::npos ? "(others)" : name.substr(0, end);
}

std::string to_text(const Profile& profile) {
  if (profile.steps == 0) return "profile: no step was made\n";
  std::string text =
      fmt::format("profile: {:.2f} ms a step (median of {}); the processor: {:.0f} GFLOP/s, {:.1f} GB/s\n",
                  profile.step_ms, profile.steps, profile.peak.gflops, profile.peak.GBps);
  if (profile.has_gpu)
    text += "the times are the host's: of a node on a GPU, to put it there, without a bound\n";
  text += table("by op", profile.ops, profile.step_ms);
  text += table("by layer", profile.layers, profile.step_ms);
  text += table("furthest from their bound", profile.furthest, profile.step_ms);
  return text;
}

nlohmann::ordered_json to_json(const Profile& profile) {
  return {{"steps", profile.steps},
          {"step_ms", profile.step_ms},
          {"peak_GFLOPs", profile.peak.gflops},
          {"peak_GBps", profile.peak.GBps},
          {"ops", rows_as_json(profile.ops, profile.step_ms)},
          {"layers", rows_as_json(profile.layers, profile.step_ms)},
          {"furthest", rows_as_json(profile.furthest, profile.step_ms)}};
}

}  // namespace kolo::models

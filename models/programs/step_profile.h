// Where the time of training steps goes, and how far their ops are from what the processor can do.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <kolo/core/kernels/cpu/peak.h>
#include <kolo/core/runtime/trace.h>
#include <kolo/models/programs/step_work.h>

namespace kolo::models {

/// What the nodes of one op, the nodes of one layer, or one node took of a step.
struct ProfileRow {
  std::string name = {};
  double ms = 0;
  NodeWork work = {};   // of those whose work is known
  double known_ms = 0;  // that these took
  double bound_ms = 0;  // what they would take where nothing but multiply-adds or memory held them up
};

struct Profile {
  std::int64_t steps = 0;
  double step_ms = 0;    // from the start of the first node to the end of the last
  CorePeak peak;         // of all threads
  bool has_gpu = false;  // whose nodes have the time that the host took to put them there
  std::vector<ProfileRow> ops = {}, layers = {};  // the longest first
  std::vector<ProfileRow> furthest = {};  // the nodes that lose most time to their bound, three at most
};

/// Takes the traces of steps. One thread.
class StepProfiler {
 public:
  void add(const StepTrace& step);
  std::int64_t steps() const { return static_cast<std::int64_t>(step_ms_.size()); }
  /// Medians over the steps. peak: of all threads.
  Profile profile(const std::map<std::string, NodeWork>& work, const CorePeak& peak) const;

 private:
  struct Node {
    std::string op;
    bool only_put_there = false;
    std::vector<double> ms;
  };
  std::map<std::string, Node> nodes_;
  std::vector<double> step_ms_;
};

/// The layer of a node: the scope that it stands in, without the "gradients/…_grad" around it; "(update)" for
/// what an optimizer does, "(others)" where there is no scope.
std::string layer_of(const std::string& node, const std::string& op);

std::string to_text(const Profile& profile);
/// {"steps":…,"ops":[…],…}
nlohmann::ordered_json to_json(const Profile& profile);

}  // namespace kolo::models

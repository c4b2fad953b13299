// Where Keras-like models live: one graph, one session, and what all their layers share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/graph/scope.h>
#include <kolo/core/runtime/session.h>

namespace kolo::keras {

class Layer;
namespace detail {
class LayerImpl;
class ReplicaPlace;
}  // namespace detail

/// The session, the data format and the seed of a Workspace.
struct WorkspaceOptions {
  SessionConfig config = SessionConfig();  // in full: with {} g++ 12 warns of an uninitialised string
  std::uint64_t seed = 1;  // of first weights, dropout (with the rank) and the order of samples
  std::string data_format = "channels_first";  // images are [N,C,H,W]; "channels_last": [N,H,W,C]
};

/// Layers, models and optimizers of one workspace may be mixed; those of another one may not. It must outlive
/// them. One thread builds; training and prediction are calls of the same thread.
class Workspace {
 public:
  /// Throws InvalidArgumentError for another data format.
  explicit Workspace(WorkspaceOptions options = {});
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  Graph& graph() { return graph_; }
  /// Made at the first call. Throws InvalidArgumentError for a configuration that cannot be.
  Session& session();
  const WorkspaceOptions& options() const { return options_; }
  bool channels_last() const { return options_.data_format == "channels_last"; }

  /// While it lives, what is built goes to its device and stays there; inner ones win.
  class DeviceScope {
   public:
    DeviceScope(Workspace& workspace, std::string device);
    ~DeviceScope();
    DeviceScope(const DeviceScope&) = delete;
    DeviceScope& operator=(const DeviceScope&) = delete;

   private:
    Workspace* workspace_;
  };
  [[nodiscard]] DeviceScope device(const std::string& spec) { return {*this, spec}; }
  /// The top of the graph on the device asked for.
  Scope scope();

  /// Of products, in all that the session computes. Throws FailedPreconditionError if the session is there
  /// and has another precision.
  void set_precision(Precision precision);

  /// Gives all variables of the graph that have none yet their first values.
  void initialize_variables();

 private:
  friend class detail::LayerImpl;
  friend class detail::ReplicaPlace;
  std::string unique_layer_name(const std::string& class_name);

  WorkspaceOptions options_;
  Graph graph_;
  std::unique_ptr<Session> session_;
  std::vector<std::string> devices_;
  std::string name_scope_;  // of a replica
  std::map<std::string, int> layers_of_class_;
  std::vector<std::shared_ptr<detail::LayerImpl>> layers_;
  std::size_t initialized_ = 0;  // so many of the graph's variables have a value
};

}  // namespace kolo::keras

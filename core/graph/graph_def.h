// A graph as a value: what is saved, sent to other processes, and imported into another graph; as bytes, text
// and files it is protobuf, see graph_def.proto.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kolo/core/graph/scope.h>

namespace kolo {

/// The version of what is written here; a file may ask for a newer reader.
inline constexpr int kGraphDefVersion = 1;

/// A node of a GraphDef.
struct NodeDef {
  std::string name;
  std::string op;
  std::vector<std::string> inputs;             // "x" (its output 0) or "x:1"; after all of them "^y"
  std::string device;                          // as asked for; "" where nothing was
  std::vector<std::string> colocation_groups;  // "loc:@x"
  AttrMap attrs;
  std::vector<Shape> output_shapes;  // none, or one for each output

  bool operator==(const NodeDef&) const = default;
};

/// A graph as plain values, in the order in which its nodes were created.
struct GraphDef {
  int producer = kGraphDefVersion;      // the version that wrote it
  int min_consumer = kGraphDefVersion;  // the oldest version that can read it
  std::vector<NodeDef> nodes;           // inputs may come before or after their consumers
  std::optional<std::int64_t> seed;     // Graph::seed()
  std::map<std::string, std::vector<std::string>> collections;  // names of nodes

  bool operator==(const GraphDef&) const = default;
};

/// Of to_graph_def.
struct GraphDefOptions {
  bool output_shapes = false;  // writes down what is known of them; readers compare it with what they infer
};

/// The whole graph, nodes in the order of their creation. Device functions are gone: what they chose is
/// written down. Tensors in attributes are shared, not copied.
GraphDef to_graph_def(const Graph& graph, const GraphDefOptions& options = {});

/// Where import_graph_def puts the nodes, and what replaces some of their inputs.
struct ImportOptions {
  /// The nodes go into this name scope, made unique with _1, _2, …; "": straight into the scope given.
  std::string prefix = {};
  /// Tensors of the definition ("x" or "x:1") whose readers read these of the graph instead.
  std::map<std::string, Output> input_map = {};
};

/// Adds all nodes of `definition`, in its order (or, where an input comes after its reader, in the nearest
/// order that works), and appends to the collections. Device, colocation and control-dependency scopes of `s`
/// apply as to new nodes. A graph without a seed takes the definition's. Random ops without a seed of their
/// own draw by name: with a prefix they draw other numbers.
/// Returns what stands before the names now: "" or "outer/prefix/"; find nodes with it.
/// Checks everything before it adds anything. Throws NotFoundError for an op that there is not,
/// AlreadyExistsError for a name that the graph has, FailedPreconditionError for a finalized graph or a
/// definition that needs a newer kolo, InvalidArgumentError for all else that does not fit (duplicate names,
/// missing inputs, cycles, attributes, types, shapes); all name the node. Time grows with nodes × log(nodes).
std::string import_graph_def(const Scope& s, const GraphDef& definition, const ImportOptions& options = {});

/// The most nodes and the most dimensions of a tensor that a definition from outside may have.
inline constexpr std::int64_t kMaxGraphDefNodes = 1'000'000;
inline constexpr int kMaxGraphDefRank = 254;

/// Equal definitions give equal bytes; a checksum ends them. Throws InvalidArgumentError beyond 2 GiB.
std::string encode_graph_def(const GraphDef& definition);
/// Bytes may be damaged or hostile: throws DataLossError that says what is wrong, and no memory is taken
/// beyond a small multiple of their size. Whether the nodes fit together, import_graph_def tells.
GraphDef decode_graph_def(std::string_view bytes);

/// For people, and for diff: protobuf's text form. Numbers keep their exact value.
std::string graph_def_text(const GraphDef& definition);
/// Throws InvalidArgumentError with line and column, otherwise as decode_graph_def.
GraphDef graph_def_from_text(std::string_view text);

/// The file appears whole or not at all, and is on the disk when it returns. A path that ends in .pbtxt gets
/// text, others bytes. Throws FailedPreconditionError where the file cannot be written,
/// ResourceExhaustedError for a full disk.
void write_graph_def(const GraphDef& definition, const std::string& path);
void write_graph(const Graph& graph, const std::string& path);
/// Throws NotFoundError if there is no such file; what decode_graph_def and graph_def_from_text throw, with
/// the path.
GraphDef read_graph_def(const std::string& path);

}  // namespace kolo

// Graph definitions as bytes, text and files: protobuf, see graph_def.proto.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <kolo/core/graph/graph_def.h>

namespace kolo {

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

/// The file appears whole or not at all. A path that ends in .pbtxt gets text, others bytes. Throws
/// FailedPreconditionError where the file cannot be written.
void write_graph_def(const GraphDef& definition, const std::string& path);
void write_graph(const Graph& graph, const std::string& path);
/// Throws NotFoundError if there is no such file; what decode_graph_def and graph_def_from_text throw, with
/// the path.
GraphDef read_graph_def(const std::string& path);

}  // namespace kolo

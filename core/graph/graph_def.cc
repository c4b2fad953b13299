#include <kolo/core/graph/graph_def.h>

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include <kolo/core/base/crc32c.h>
#include <kolo/core/base/durable_file.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/input_file.h>
#include <kolo/core/graph/graph_def_internal.h>

namespace kolo {
namespace {

std::string input_name(const Output& in) { return in.index == 0 ? in.node->name() : in.name(); }

NodeDef definition_of(const Node& node, const GraphDefOptions& options) {
  NodeDef definition{.name = node.name(),
                     .op = node.op(),
                     .inputs = {},
                     .device = node.requested_device(),
                     .colocation_groups = node.colocation_groups(),
                     .attrs = node.attrs(),
                     .output_shapes = {}};
  for (const Output& in : node.inputs()) definition.inputs.push_back(input_name(in));
  for (const Node* before : node.control_inputs()) definition.inputs.push_back("^" + before->name());
  if (options.output_shapes)
    for (int i = 0; i < node.num_outputs(); ++i) definition.output_shapes.push_back(node.output_shape(i));
  return definition;
}

}  // namespace

GraphDef to_graph_def(const Graph& graph, const GraphDefOptions& options) {
  GraphDef definition;
  definition.seed = graph.seed();
  for (int id = 0; id < graph.num_nodes(); ++id)
    definition.nodes.push_back(definition_of(graph.node(id), options));
  for (const auto& [name, nodes] : graph.collections())
    for (const Node* node : nodes) definition.collections[name].push_back(node->name());
  return definition;
}

namespace {

namespace pb = google::protobuf;

constexpr char kTextEnding[] = ".pbtxt";
constexpr std::size_t kMaxBytes = std::numeric_limits<int>::max();  // protobuf's own limit
// The last field of the message, written by hand because it is the sum of all that stands before it.
constexpr std::uint8_t kChecksumTag =
    proto::GraphDef::kCrc32CFieldNumber << 3 | pb::internal::WireFormatLite::WIRETYPE_FIXED32;
constexpr std::size_t kChecksumBytes = 1 + sizeof(std::uint32_t);

// Protobuf writes about damaged input to stderr; here it becomes an exception.
using Silence = pb::LogSilencer;

void check_checksum(std::string_view bytes) {
  if (bytes.size() < kChecksumBytes ||
      static_cast<std::uint8_t>(bytes[bytes.size() - kChecksumBytes]) != kChecksumTag)
    throw DataLossError("there is no checksum at the end: it is cut short, or no graph definition");
  const std::size_t summed = bytes.size() - kChecksumBytes;
  std::uint32_t written = 0;
  std::memcpy(&written, bytes.data() + summed + 1, sizeof written);
  if (const std::uint32_t sum = crc32c(bytes.data(), summed); sum != written)
    throw DataLossError("the sum of its bytes is {:08x}, not {:08x} as when it was written: it is damaged",
                        sum, written);
}

// Before the message is built: each node costs it far more memory than the two bytes that may stand for one.
void check_number_of_nodes(std::string_view bytes) {
  using Wire = pb::internal::WireFormatLite;
  pb::io::ArrayInputStream memory(bytes.data(), static_cast<int>(bytes.size()));
  pb::io::CodedInputStream stream(&memory);
  std::int64_t nodes = 0;
  while (const std::uint32_t tag = stream.ReadTag()) {
    nodes += Wire::GetTagFieldNumber(tag) == proto::GraphDef::kNodeFieldNumber;
    if (nodes > kMaxGraphDefNodes)
      throw DataLossError("it has more than {} nodes, the most that are taken", kMaxGraphDefNodes);
    if (!Wire::SkipField(&stream, tag)) return;  // the parser refuses it
  }
}

// Keeps the first thing that protobuf's text parser says.
class FirstError final : public pb::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty()) text_ = fmt::format("line {}, column {}: {}", line + 1, column + 1, message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string contents_of(const std::string& path) { return InputFile(path).read_all(kMaxBytes); }

}  // namespace

std::string encode_graph_def(const GraphDef& definition) {
  const proto::GraphDef message = detail::to_proto(definition);
  if (const std::size_t bytes = message.ByteSizeLong(); bytes > kMaxBytes - kChecksumBytes)
    throw InvalidArgumentError(
        "the graph definition takes {} bytes; at most {} can be read again. Its constants are too large",
        bytes, kMaxBytes - kChecksumBytes);
  std::string bytes;
  {
    pb::io::StringOutputStream memory(&bytes);
    pb::io::CodedOutputStream stream(&memory);
    stream.SetSerializationDeterministic(true);  // attributes in the order of their names
    message.SerializeWithCachedSizes(&stream);
  }
  const std::uint32_t sum = crc32c(bytes.data(), bytes.size());
  bytes.push_back(static_cast<char>(kChecksumTag));
  bytes.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  return bytes;
}

GraphDef decode_graph_def(std::string_view bytes) {
  if (bytes.size() > kMaxBytes)
    throw DataLossError("it has {} bytes; a graph definition has at most {}", bytes.size(), kMaxBytes);
  check_checksum(bytes);
  check_number_of_nodes(bytes);
  const Silence silence;
  proto::GraphDef message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    throw DataLossError("it is no graph definition: protobuf cannot read it");
  return detail::from_proto(message);
}

std::string graph_def_text(const GraphDef& definition) {
  std::string text;
  if (!pb::TextFormat::PrintToString(detail::to_proto(definition), &text))
    throw InternalError("protobuf cannot print a graph definition");
  return text;
}

GraphDef graph_def_from_text(std::string_view text) {
  if (text.size() > kMaxBytes)
    throw DataLossError("it has {} bytes; a graph definition has at most {}", text.size(), kMaxBytes);
  const Silence silence;
  FirstError error;
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  pb::io::ArrayInputStream memory(text.data(), static_cast<int>(text.size()));
  proto::GraphDef message;
  if (!parser.Parse(&memory, &message)) throw InvalidArgumentError("{}", error.text());
  if (message.node_size() > kMaxGraphDefNodes)
    throw DataLossError("it has {} nodes; at most {} are taken", message.node_size(), kMaxGraphDefNodes);
  return detail::from_proto(message);
}

void write_graph_def(const GraphDef& definition, const std::string& path) {
  const std::string bytes =
      path.ends_with(kTextEnding) ? graph_def_text(definition) : encode_graph_def(definition);
  write_durable_file(path, bytes);
}

void write_graph(const Graph& graph, const std::string& path) { write_graph_def(to_graph_def(graph), path); }

GraphDef read_graph_def(const std::string& path) {
  const std::string contents = contents_of(path);
  try {
    return path.ends_with(kTextEnding) ? graph_def_from_text(contents) : decode_graph_def(contents);
  } catch (const Error& error) {
    throw_error(error.code(), fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace kolo

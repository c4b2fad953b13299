// Graph definitions from outside: what is read is written again as it was, and what is imported gives the
// same graph when it is saved and imported once more. All else is a kolo::Error.
#include <cstdint>
#include <cstdlib>
#include <string>

#include <kolo/core/base/crc32c.h>
#include <kolo/core/base/error.h>
#include <kolo/core/graph/graph_def.h>

namespace {

// The input with the checksum that belongs to it: the fuzzer would never find one.
std::string summed(const std::uint8_t* bytes, std::size_t size) {
  const std::uint32_t sum = kolo::crc32c(bytes, size);
  std::string file(reinterpret_cast<const char*>(bytes), size);
  file.push_back('\x7d');
  file.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  return file;
}

void require(bool true_for_every_input) {
  if (!true_for_every_input) std::abort();
}

std::string imported_and_saved(const kolo::GraphDef& definition) {
  kolo::Graph graph;
  import_graph_def(kolo::Scope(graph), definition);
  return encode_graph_def(to_graph_def(graph, {.output_shapes = true}));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  try {
    const kolo::GraphDef definition = kolo::decode_graph_def(summed(bytes, size));
    const std::string written = encode_graph_def(definition);
    require(encode_graph_def(kolo::decode_graph_def(written)) == written);
    const std::string saved = imported_and_saved(definition);
    require(imported_and_saved(kolo::decode_graph_def(saved)) == saved);
  } catch (const kolo::Error&) {
  }
  return 0;
}

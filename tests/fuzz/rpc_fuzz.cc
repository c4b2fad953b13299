// Everything that a task parses of what comes over the wire: the first byte says which parser.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <kolo/core/base/error.h>
#include <kolo/core/cluster/rpc/messages_internal.h>
#include <kolo/core/cluster/rpc/payload.h>
#include <kolo/core/cluster/rpc/shard_messages_internal.h>

namespace {

using namespace kolo::detail;  // all that is fuzzed is there
namespace def = kolo::cluster;

class Dropped final : public PayloadTarget {
 public:
  kolo::Tensor memory_for(std::size_t, kolo::DType dtype, const kolo::Shape& shape) override {
    return {dtype, shape};
  }
  void on_tensor(std::size_t, kolo::Tensor, bool, bool) override {}
  void on_bytes(PayloadKind, std::string) override {}
};

// Messages of as many bytes as the byte before each says, in two pieces.
void read_payloads(std::string_view bytes) {
  Dropped dropped;
  const RpcLimits limits{.graph_bytes = 1 << 16, .graph_nodes = 100, .tensor_bytes = 1 << 16};
  PayloadReader reader(dropped, limits);
  while (!bytes.empty()) {
    const auto message = bytes.substr(1, static_cast<unsigned char>(bytes[0]));
    bytes.remove_prefix(1 + message.size());
    const std::array pieces{message.substr(0, message.size() / 2), message.substr(message.size() / 2)};
    reader.read(pieces);
  }
}

void parse(unsigned parser, std::string_view bytes) {
  switch (parser % 20) {
    case 0: return read_payloads(bytes);
    case 1: from_def(parsed<def::TaskStatusDef>(bytes)); return;
    case 2: from_def(parsed<def::WorkerSessionRequestDef>(bytes).config()); return;
    case 3: checked_names(parsed<def::RegisterGraphRequestDef>(bytes).feeds(), "feed"); return;
    case 4: trace_level_of(parsed<def::RunGraphRequestDef>(bytes).trace_level()); return;
    case 5: checked_names(parsed<def::RecvTensorsRequestDef>(bytes).keys(), "key"); return;
    case 6: keys_of(parsed<def::VariablesRequestDef>(bytes)); return;
    case 7: decode_metadata(bytes); return;
    case 8: decode_error(bytes); return;
    case 9: from_def(parsed<def::RunStepRequestDef>(bytes).names()); return;
    case 10: from_def(parsed<def::CreateSessionRequestDef>(bytes).config()); return;
    case 11: checked_handle(parsed<def::SessionRequestDef>(bytes).session()); return;
    case 12: checked_names(parsed<def::ContainersRequestDef>(bytes).containers(), "container"); return;
    case 13: {
      const auto devices = parsed<def::DevicesDef>(bytes);
      for (const auto& device : devices.devices()) from_def(device);
      return;
    }
    case 14: parsed<def::RunResponseDef>(bytes); return;
    case 15: place_from(parsed<def::WriteShardRequestDef>(bytes)); return;
    case 16: from_def(parsed<def::WriteShardResponseDef>(bytes), 2, true); return;
    case 17: positions_from(parsed<def::RandomPositionsDef>(bytes)); return;
    case 18: {
      const auto request = parsed<def::ReadShardRequestDef>(bytes);
      variables_from(request.variables());
      keys_from(request.variables());
      return;
    }
    default: kolo::decode_graph_def(bytes); return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  try {
    parse(bytes[0], {reinterpret_cast<const char*>(bytes) + 1, size - 1});
  } catch (const kolo::Error&) {
  }
  return 0;
}

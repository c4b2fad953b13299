// Graph definitions to and from their protobuf messages.
#pragma once

#include <kolo/core/graph/graph_def.h>

#include "core/graph/graph_def.pb.h"

namespace kolo::detail {

/// Without the checksum.
proto::GraphDef to_proto(const GraphDef& definition);
/// Throws DataLossError that names the node for whatever is no definition.
GraphDef from_proto(const proto::GraphDef& message);

}  // namespace kolo::detail

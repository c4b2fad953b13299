// Handwritten digits as samples.
#pragma once

#include <optional>
#include <string>

#include <kolo/models/keras/data.h>
#include <kolo/models/keras/workspace.h>
#include <kolo/models/samples.h>

namespace kolo::keras {

/// x: f32, 0 … 1, [N,1,28,28] or, in a workspace of "channels_last", [N,28,28,1]; y: i32 [N], the digits.
/// data: as kolo-train's --data. Throws as models::load_digits, and NotFoundError where the split is missing.
Samples load_mnist(const Workspace& workspace, models::Split split,
                   const std::optional<std::string>& data = {});

}  // namespace kolo::keras

// Samples for testing that stand in the training's part of the same data, too.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <kolo/models/seen_samples.h>

namespace kolo::models::detail {

/// Of a part for testing beside that of the training: how many of its samples stand there, too, where these
/// are more than coincide by chance and more than one in a hundred; else "". Of pictures an estimate by 64 of
/// them. test_name, train_name: of the parts.
std::string warning_of_shared(const SampleContents& train, const std::string& train_name,
                              const SampleContents& test, const std::string& test_name);

/// Of rows that were drawn from one table: `31 of these stand in the training, too`, where they are more than
/// a tenth of them; else "". Tables of few different values hold such rows, so that it is no warning.
std::string note_of_shared(const std::vector<std::int64_t>& drawn, const SampleContents& contents);

}  // namespace kolo::models::detail

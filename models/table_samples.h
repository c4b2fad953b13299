// Tables as samples: which rows train, and which test.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <kolo/models/data.h>

namespace kolo::models::detail {

/// Which splits are asked for.
struct Wanted {
  bool train = false, test = false;
};

/// The files of a folder that are tables, sorted.
std::vector<std::filesystem::path> tables_in(const std::filesystem::path& folder);

/// True for a folder of tables: train.csv, test.csv, or others.
bool is_table_folder(const std::filesystem::path& folder);

/// A file, or a folder of them. Files are read once, whatever is wanted of them.
DataSplits table_samples(const std::filesystem::path& path, const DataRequest& request, Wanted wanted);

/// The places of the samples for testing, sorted: about one in ten, drawn by the seed, none of fewer than
/// ten. Whether a sample is drawn depends on its key alone, so that one that is added later moves no other
/// from training to testing; but at least one is drawn, and of each class one stays in training: a drawn one
/// that is the only one of its class stays until another is added. labels: the classes of the samples; empty:
/// they have none.
std::vector<std::int64_t> drawn_for_testing(std::span<const std::uint64_t> keys, std::uint64_t seed,
                                            std::span<const std::int32_t> labels = {});
/// The numbers below `count` that are not among `drawn`.
std::vector<std::int64_t> others_than(const std::vector<std::int64_t>& drawn, std::int64_t count);

/// Throws InvalidArgumentError where all labels are alike: what a model cannot learn from would end with a
/// loss of 0, as if it were trained. note: what the file's columns were taken for. names: of the classes,
/// where they have some.
void check_labels(const Tensor& y, const std::filesystem::path& path, const std::string& note,
                  const std::vector<std::string>& names = {});

}  // namespace kolo::models::detail

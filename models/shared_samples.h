// Samples for testing that stand in the training's part of the same data, too.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <kolo/models/seen_samples.h>

namespace kolo::models::detail {

/// Of data with a part for testing of its own: the training's part, where it is read, and what is to be said
/// of the other one.
class LearntPart {
 public:
  /// request: outlives this.
  explicit LearntPart(const DataRequest& request) : request_(request) {}
  /// name: of the part, for warnings.
  void learn(SampleContents contents, std::string name);
  /// Of a part for testing: how many of its samples stand in the training's, too, where these are three at
  /// least and more than coincide by chance; and that earlier starts, or the weights that --init-from names,
  /// have learnt from them.
  std::vector<std::string> warnings_of(const SampleContents& test, const std::string& name) const;
  /// As DataSplits has it; empty where no part was learnt.
  std::function<SampleDigests()> digests() const;

 private:
  const DataRequest& request_;
  SampleContents learnt_;
  std::string name_;
};

/// Of rows that were drawn from one table: `31 of these stand in the training, too`, where they are more than
/// a tenth of them and more than coincide by chance; else "".
std::string note_of_shared(const std::vector<std::int64_t>& drawn, const SampleContents& contents);
/// The same of pictures, where they are three at least, or all that were drawn; only those that may be copies
/// are read. of_drawn: the drawn ones alone.
std::string note_of_copies(const std::vector<std::int64_t>& drawn, const SampleContents& contents,
                           const SampleContents& of_drawn);

}  // namespace kolo::models::detail

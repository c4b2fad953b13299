// Samples as models take them: tensors whose rows are samples.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/tensor/tensor.h>
#include <kolo/models/batches.h>
#include <kolo/models/keras/workspace.h>
#include <kolo/models/samples.h>

namespace kolo::keras {

/// One tensor, one for each input or output, or by name. [N] counts as [N,1]; any number type: it is cast to
/// the model's.
struct Arrays {
  Arrays() = default;
  Arrays(Tensor tensor) : list{std::move(tensor)} {}
  Arrays(std::vector<Tensor> tensors) : list(std::move(tensors)) {}
  Arrays(std::initializer_list<Tensor> tensors) : list(tensors) {}
  Arrays(std::map<std::string, Tensor> tensors) : by_name(std::move(tensors)) {}
  bool empty() const { return list.empty() && by_name.empty(); }
  /// The only tensor. Throws InvalidArgumentError where there are several.
  const Tensor& tensor() const;

  std::vector<Tensor> list;
  std::map<std::string, Tensor> by_name;
};

/// Samples with targets and weights; the first dimension of each array is N.
struct Samples {
  Arrays x = {};
  Arrays y = {};
  Arrays weights = {};  // [N] for each output; none: 1
};

/// Batches in order, where the samples do not all lie in memory. One thread at a time: fit reads two batches
/// of an epoch ahead with a thread of its own, also where it is then stopped.
class Source {
 public:
  virtual ~Source() = default;
  /// Fills in the next batch, of any number of samples; false at the end.
  virtual bool next(Samples& batch) = 0;
  /// Where the next batch begins, as a checkpoint of fit keeps it. "": nobody can go there, and a fit that
  /// goes on draws the batches before it.
  virtual std::string position() const { return {}; }
  /// Goes where position() was.
  virtual void seek(const std::string& /*position*/) {}
};

/// Batches of digits, without an end: images, and classes as [B,1]. Where the ranks' parts of a step differ
/// in size, their samples have Batch::weight. A fit that goes on does so at the next sample, on any number of
/// ranks.
class BatchesOf : public Source {
 public:
  /// Borrows it.
  explicit BatchesOf(models::BatchSource& batches) : batches_(&batches) {}
  bool next(Samples& batch) override;
  std::string position() const override;
  void seek(const std::string& position) override;

 private:
  models::BatchSource* batches_;
};

/// A vector of `classes` numbers, 1 at the class, for each of the whole numbers in y. Throws
/// InvalidArgumentError for a class outside [0, classes).
Tensor to_categorical(const Tensor& y, std::int64_t classes);

/// Handwritten digits. x: f32, 0 … 1, [N,1,28,28] or, in a workspace of "channels_last", [N,28,28,1]; y: i32
/// [N], the digits. data: as kolo-train's --data. Throws as models::load_digits, and NotFoundError where the
/// split is missing.
Samples load_mnist(const Workspace& workspace, models::Split split,
                   const std::optional<std::string>& data = {});

}  // namespace kolo::keras

// Weights that a training begins with, and their names in other programs' files.
#pragma once

#include <map>
#include <string>

#include <kolo/core/runtime/session.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo {

// Weights under the names and in the layout that another program has for them.

/// By variable, the other program's tensor: "fc.weight", or "fc.weight.T" for the transpose of that matrix,
/// as PyTorch's Linear holds it; "": none. A variable that is not in it has its own name there. (Kernels of
/// convolutions are [out,in,rows,cols], and of transposed ones [in,out,rows,cols], in kolo as in PyTorch.)
using WeightNames = std::map<std::string, std::string>;

/// The other program's tensors from kolo's, which are copied only where they are transposed. Throws
/// InvalidArgumentError where two variables become one tensor, or one that is no matrix is to be transposed.
std::map<std::string, Tensor> to_weight_names(const std::map<std::string, Tensor>& variables,
                                              const WeightNames& names);
/// The way back; a tensor that no variable takes keeps its name. Throws NotFoundError for a tensor that is
/// not there, InvalidArgumentError where two tensors become one variable, or one that is no matrix is to be
/// transposed.
std::map<std::string, Tensor> from_weight_names(const std::map<std::string, Tensor>& tensors,
                                                const WeightNames& names);

namespace detail {

/// A tensor, or the transpose of one.
struct WeightSource {
  std::string tensor;
  bool transposed = false;
};
/// What a name of WeightNames means. is_held: whether there is a tensor of exactly that name, ".T" and all.
WeightSource weight_source(const std::string& name, bool is_held);
/// `into` becomes the transpose of the matrix `from`.
void transpose_matrix(const Tensor& from, const Tensor& into);

}  // namespace detail

// A training that begins with the weights of another one, or of another program.

/// Where a training that finds no checkpoint takes its first weights from. The weights are the variables that
/// belong to the model: not the global step, nor an optimizer's state, which begin anew.
struct InitialWeights {
  /// A folder of checkpoints (the newest intact one is taken), a checkpoint `…/model.ckpt-200`, or any
  /// safetensors file; "": the variables' own initialisers.
  std::string path = {};
  /// What the file calls them; a variable without a tensor keeps what its initialiser gave it.
  WeightNames names = {};
};

/// Gives the weights their values; all must be in the file, with type and shape of the variable. Checks all
/// before it changes any. Throws NotFoundError for a path that is not there and for weights that the file
/// lacks, InvalidArgumentError for those of another type or shape and for names of no weight, what
/// SafetensorsReader and CheckpointReader throw.
void load_initial_weights(Session& session, const InitialWeights& from);

}  // namespace kolo

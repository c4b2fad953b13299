// What an op is: its inputs, attributes and outputs, how shapes follow from shapes, and its gradient. An op
// is one file in core/ops that registers its schema; see CONTRIBUTING.md.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <kolo/core/base/source_line.h>
#include <kolo/core/graph/attr.h>
#include <kolo/core/graph/output.h>

namespace kolo {

class Scope;

/// What a shape function sees: the shapes of the inputs, as far as they are known, and the attributes.
/// Lives for one call, on the thread that makes it.
class ShapeContext {
 public:
  ShapeContext(std::vector<Shape> inputs, std::vector<DType> dtypes, const AttrMap& attrs, int outputs)
      : inputs_(std::move(inputs)),
        dtypes_(std::move(dtypes)),
        attrs_(attrs),
        outputs_(outputs, Shape::unknown_rank()) {}

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  const Shape& input(int i) const { return inputs_.at(i); }
  DType dtype(int i) const { return dtypes_.at(i); }
  template <typename T>
  T attr(const std::string& name) const {
    return attrs_.at(name).get<T>();
  }
  void set_output(int i, Shape shape) { outputs_.at(i) = std::move(shape); }
  const std::vector<Shape>& outputs() const { return outputs_; }

 private:
  std::vector<Shape> inputs_;
  std::vector<DType> dtypes_;
  const AttrMap& attrs_;
  std::vector<Shape> outputs_;
};

using ShapeFunction = std::function<void(ShapeContext&)>;
/// Gradients with respect to each input, empty where there is none; `dy` holds one for each output, empty
/// where nothing depends on it.
using GradientFunction = std::function<Outputs(Scope&, const Node& op, const Outputs& dy)>;

/// Built once by the file that registers the op, by chained calls; then read only, by any thread.
class OpSchema {
 public:
  explicit OpSchema(std::string name) : name_(std::move(name)) {}

  /// A tensor of one of `allowed` (empty: any type).
  OpSchema& input(std::string name, std::vector<DType> allowed = {});
  /// A tensor of the same type as input `like`.
  OpSchema& input(std::string name, const char* like);
  /// The rest of the inputs, any number: of one of `allowed`, and, unless `mixed`, all of one type.
  OpSchema& variadic(std::string name, std::vector<DType> allowed = {}, bool mixed = false);
  /// The last input added is a variable that the op updates in place (its output 0 is then that variable's
  /// new value).
  OpSchema& updates();
  /// With updates(): the op may be the first to write the variable.
  OpSchema& initializes();
  /// The last input added is the handle of a node of one of `ops`, which are contained().
  OpSchema& handle_of(std::vector<std::string> ops);

  /// An attribute that must be given, of the kind of `example`; or one with a default.
  OpSchema& required_attr(std::string name, AttrValue example);
  OpSchema& attr(std::string name, AttrValue fallback);

  /// An output with the type of the first input; of a fixed type; or of the input or DType attribute named
  /// `like`. Where `like` is a whole number's attribute: so many outputs, of the first input's type; where it
  /// is a list of texts, names of types: one output of each.
  OpSchema& output(std::string name);
  OpSchema& output(std::string name, DType dtype);
  OpSchema& output(std::string name, const char* like);
  /// As many outputs as there are variadic inputs, each of its input's type.
  OpSchema& output_per_input();

  /// Output shapes from input shapes. Without one every output has the shape of the first input.
  OpSchema& shape(ShapeFunction function);
  /// Either [](Scope& s, const Node& op, Output dy) for an op whose output 0 alone matters (nothing flows
  /// back from its other outputs), or the full GradientFunction.
  template <typename Function>
  OpSchema& gradient(Function function) {
    if constexpr (std::is_invocable_v<Function, Scope&, const Node&, Output>)
      gradient_ = [function](Scope& s, const Node& op, const Outputs& dy) {
        return function(s, op, dy.at(0));
      };
    else gradient_ = function;
    differentiates_output_0_only_ = std::is_invocable_v<Function, Scope&, const Node&, Output>;
    return *this;
  }
  /// Nothing flows back through the op: its inputs get no gradient, and that is no error.
  OpSchema& no_gradient();

  /// Has an effect or a state beyond its outputs: never folded, merged with its like or dropped when asked
  /// for.
  OpSchema& stateful();
  /// Output 0 is input 0's memory, seen with another shape perhaps (identity, reshape).
  OpSchema& view();
  /// Output 0 may be written over input `i` where nobody reads that any more (element-wise ops).
  OpSchema& in_place(int i);
  /// Holds a variable's storage: its output is a reference to it.
  OpSchema& variable_storage();
  /// Holds what keeps another state from run to run than a variable's (a queue, an accumulator), in a
  /// container: see core/kernels/containers.h. Adds the attributes container and shared_name, and the output
  /// "handle", by which ops name it.
  OpSchema& contained();
  /// A registered pass replaces the op before a step runs: it needs no kernel and goes where its first input
  /// is.
  OpSchema& expanded_by_pass();
  /// The attribute, a text or a list of texts, names tensors of the same graph: who copies the nodes under
  /// other names changes it, too.
  OpSchema& names_tensors(std::string attr);
  /// Only passes make nodes of the op: Graph::add_node refuses it.
  OpSchema& made_by_pass();
  /// The same, but for the graph of a part of a step (Graph::admit_transfers).
  OpSchema& joins_tasks();
  /// Gives each output a tensor of its own with set_output, even where the shape is known: memory that holds
  /// its value from the step's start on.
  OpSchema& owns_outputs();
  /// Waits for the other ranks of the MPI job.
  OpSchema& reduces_over_ranks();
  /// A value that a session refuses to be fed.
  OpSchema& unfeedable();
  /// Its kernel decides in each step whether what waits for the node happens: KernelContext::skipped.
  OpSchema& guards_branch();
  /// Waits for all its inputs and happens if at least one of them did. Other ops happen only if all that they
  /// wait for did.
  OpSchema& joins_branches();

  /// No device but a CPU runs the op (texts, files, summaries).
  OpSchema& cpu_only();
  /// A GPU runs the op for these types of a node (of its first input, else of output 0). Without: for all but
  /// strings.
  OpSchema& gpu_types(std::vector<DType> types);
  /// On a GPU, output `i` still lies in host memory (shapes, counts); with `types`, where it has one of them.
  OpSchema& host_output(int i, std::vector<DType> types = {});
  /// On a GPU, input `i` is read in host memory (positions, what decides of a branch).
  OpSchema& host_input(int i);
  /// Tells of its input's shape alone (Shape, Size, Rank): goes where its input is.
  OpSchema& metadata();

  struct InputSpec {
    std::string name;
    std::vector<DType> allowed;  // empty: any
    std::string like;            // name of the input whose type it shares, or ""
    bool variadic = false;
    bool mixed = false;
    bool updated = false;
    bool initialized_by_op = false;
    std::vector<std::string> handle_of = {};  // ops whose handle it must be; empty: it is a value
  };
  struct OutputSpec {
    std::string name;
    std::optional<DType> dtype;
    std::string like;  // "" with no dtype: the first input's
  };
  struct AttrSpec {
    AttrValue value;
    bool required;
  };

  const std::string& name() const { return name_; }
  const std::vector<InputSpec>& inputs() const { return inputs_; }
  const std::vector<OutputSpec>& outputs() const { return outputs_; }
  const std::map<std::string, AttrSpec>& attrs() const { return attrs_; }
  const ShapeFunction& shape_function() const { return shape_; }
  const GradientFunction& gradient_function() const { return gradient_; }
  bool has_gradient() const { return gradient_ != nullptr || no_gradient_; }
  bool differentiates_output_0_only() const { return differentiates_output_0_only_; }
  bool is_stateful() const { return stateful_; }
  bool is_view() const { return view_; }
  const std::vector<int>& in_place_inputs() const { return in_place_; }
  bool is_variable_storage() const { return variable_storage_; }
  bool is_contained() const { return contained_; }
  bool is_expanded_by_pass() const { return expanded_by_pass_; }
  const std::vector<std::string>& attrs_naming_tensors() const { return attrs_naming_tensors_; }
  bool is_made_by_pass() const { return made_by_pass_; }
  bool is_joining_tasks() const { return joins_tasks_; }
  bool is_owner_of_outputs() const { return owns_outputs_; }
  bool is_reducing_over_ranks() const { return reduces_over_ranks_; }
  bool is_feedable() const { return feedable_; }
  bool is_branch_guard() const { return branch_guard_; }
  bool is_branch_join() const { return branch_join_; }
  bool has_output_per_input() const { return output_per_input_; }
  bool is_cpu_only() const { return cpu_only_; }
  /// Nothing: all but strings.
  const std::optional<std::vector<DType>>& types_on_gpu() const { return gpu_types_; }
  bool is_host_output(int i, DType dtype) const;
  bool is_host_input(int i) const;
  bool is_metadata() const { return metadata_; }
  /// The spec of input `i` of a node, which for a variadic op lies beyond the list.
  const InputSpec& input_spec(int i) const;

 private:
  std::string name_;
  std::vector<InputSpec> inputs_;
  std::vector<OutputSpec> outputs_;
  std::map<std::string, AttrSpec> attrs_;
  ShapeFunction shape_;
  GradientFunction gradient_;
  bool differentiates_output_0_only_ = false;
  bool no_gradient_ = false;
  bool stateful_ = false;
  bool view_ = false;
  bool variable_storage_ = false;
  bool contained_ = false;
  bool expanded_by_pass_ = false;
  bool made_by_pass_ = false;
  bool joins_tasks_ = false;
  bool owns_outputs_ = false;
  bool reduces_over_ranks_ = false;
  std::vector<std::string> attrs_naming_tensors_;
  bool feedable_ = true;
  bool branch_guard_ = false;
  bool branch_join_ = false;
  bool output_per_input_ = false;
  bool cpu_only_ = false;
  bool metadata_ = false;
  std::vector<int> in_place_;
  std::optional<std::vector<DType>> gpu_types_;
  std::map<int, std::vector<DType>> host_outputs_;  // by output: the types, none for all
  std::vector<int> host_inputs_;
};

/// Calls the schema's shape function, or applies the default rule: the first (or the own variadic) input's.
/// Throws what that throws, and InvalidArgumentError for an output beyond 254 dimensions or 2^48 elements.
void infer_shapes(const OpSchema& schema, ShapeContext& context);

/// A namespace-scope constant of an op's file: registers when the library is loaded.
/// A second op of one name is an InternalError at start-up.
struct RegisterOp {
  RegisterOp(OpSchema schema, SourceLine place = SourceLine::here());
};

/// Throws NotFoundError naming the nearest op.
const OpSchema& find_op(const std::string& name);
/// Sorted.
std::vector<std::string> registered_ops();

}  // namespace kolo

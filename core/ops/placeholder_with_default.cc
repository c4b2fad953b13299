#include <kolo/core/ops/placeholder_with_default.h>

#include <utility>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

// Within a step the default's own shape is known (prune makes the node an Identity); in the graph another
// may be fed.
const RegisterOp placeholder_with_default_op(
    OpSchema("PlaceholderWithDefault")
        .input("input")
        .attr("shape", Shape::unknown_rank())
        .output("output")
        .shape([](ShapeContext& c) {
          const auto shape = c.attr<Shape>("shape");
          if (!c.input(0).is_compatible_with(shape))
            throw InvalidArgumentError("placeholder_with_default: the default is {}, which does not fit {}",
                                       c.input(0), shape);
          c.set_output(0, shape);
        })
        .gradient([](Scope&, const Node&, Output dy) { return Outputs{dy}; }));

}  // namespace

Output placeholder_with_default(const Scope& s, Output input, Shape shape) {
  return s.add("PlaceholderWithDefault", {input}, {{"shape", std::move(shape)}});
}

}  // namespace kolo

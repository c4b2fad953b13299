#include <kolo/core/cluster/worker/client_iterator.h>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/op_schema.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo::detail {
namespace {

constexpr std::int64_t kUnknownRank = -1;

const RegisterOp client_iterator_op(OpSchema(kClientIteratorOp)
                                        .variadic("types", {}, true)
                                        .required_attr("shapes", std::vector<std::int64_t>())
                                        .output_per_input()
                                        .shape([](ShapeContext& c) {
                                          const auto shapes =
                                              decode_shapes(c.attr<std::vector<std::int64_t>>("shapes"));
                                          if (static_cast<int>(shapes.size()) != c.num_inputs())
                                            throw InvalidArgumentError(
                                                "an iterator has {} components and {} shapes", c.num_inputs(),
                                                shapes.size());
                                          for (int i = 0; i < c.num_inputs(); ++i)
                                            c.set_output(i, shapes[static_cast<std::size_t>(i)]);
                                        })
                                        .cpu_only()
                                        .stateful()
                                        .no_gradient());

// So that the step is placed, and partition() can say what is wrong. Who sends a part of it by hand gets
// here.
class ClientIterator final : public Kernel {
 public:
  explicit ClientIterator(const KernelInit& init) {
    throw InvalidArgumentError("{} (IteratorNext) reads from the client's process; feed its values",
                               init.node());
  }
  void compute(KernelContext& /*context*/) override {}
};

const RegisterKernel client_iterator(kClientIteratorOp, "CPU", {}, make_kernel<ClientIterator>);

}  // namespace

std::vector<std::int64_t> encode_shapes(const std::vector<Shape>& shapes) {
  std::vector<std::int64_t> numbers;
  for (const Shape& shape : shapes) {
    numbers.push_back(shape.has_rank() ? shape.rank() : kUnknownRank);
    if (shape.has_rank()) numbers.insert(numbers.end(), shape.dims().begin(), shape.dims().end());
  }
  return numbers;
}

std::vector<Shape> decode_shapes(const std::vector<std::int64_t>& numbers) {
  std::vector<Shape> shapes;
  for (auto at = numbers.begin(); at != numbers.end();) {
    const std::int64_t rank = *at++;
    if (rank == kUnknownRank) {
      shapes.push_back(Shape::unknown_rank());
      continue;
    }
    if (rank < 0 || rank > numbers.end() - at)
      throw InvalidArgumentError("the shapes of an iterator's components end within a shape");
    shapes.emplace_back(std::vector<std::int64_t>(at, at + rank));
    at += rank;
  }
  return shapes;
}

}  // namespace kolo::detail

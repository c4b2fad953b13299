#include <kolo/core/kernels/own_kernels.h>

#include <gmock/gmock.h>

#include <cmath>
#include <string>

#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/random.h>
#include <kolo/core/runtime/session.h>

#include "tests/core/kernels_of.h"

namespace kolo::detail {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(OwnKernels, AreTakenWhereTheyWereMeasuredToWin) {
  const Processor zen5{"AuthenticAMD", 26, 2}, zen5_too{"AuthenticAMD", 26, 68}, xeon{"GenuineIntel", 6, 167};
  EXPECT_FALSE(table_prefers_own(OwnKernel::packed_product, zen5));
  EXPECT_TRUE(table_prefers_own(OwnKernel::winograd_for_bf16, zen5));
  EXPECT_FALSE(table_prefers_own(OwnKernel::packed_product, zen5_too)) << "a family of AMD's has one row";
  EXPECT_TRUE(table_prefers_own(OwnKernel::packed_product, xeon));
  EXPECT_FALSE(table_prefers_own(OwnKernel::winograd_for_bf16, xeon)) << "AMX is faster";
}

TEST(OwnKernels, AreLeftToTheLibraryOnAnUnknownProcessorUnlessEachGainedClearly) {
  for (const Processor& unknown : {Processor{"GenuineIntel", 6, 200}, Processor{"", 0, 0}}) {
    EXPECT_FALSE(table_prefers_own(OwnKernel::packed_product, unknown)) << unknown.vendor;
    EXPECT_FALSE(table_prefers_own(OwnKernel::pointwise, unknown)) << unknown.vendor;
    EXPECT_TRUE(table_prefers_own(OwnKernel::winograd, unknown)) << unknown.vendor;
  }
}

// A product that the packed kernel takes where the processor has AVX-512.
struct PackedProductBy : ::testing::Test {
  struct Found {
    std::string declined;
    Tensor y;
  };
  Found by(KernelSource source) {
    const KernelsOf chosen(source);
    Graph graph;
    graph.set_seed(1);
    Scope s(graph);
    const Output y =
        matmul(s, random_normal(s, DType::f32, {512, 256}), random_normal(s, DType::f32, {256, 64}));
    SessionConfig config;
    config.intra_op_parallelism_threads = 1;
    Session session(graph, config);
    Found found;
    for (const KernelChoice& choice : session.kernels({y}))
      if (choice.op == "MatMul") found.declined = choice.declined;
    found.y = session.run(y);
    return found;
  }
};

TEST_F(PackedProductBy, TheLibraryOrByItselfIsTheSameUpToRounding) {
  if (!__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "the packed product needs AVX-512";
  const Found own = by(KernelSource::own), library = by(KernelSource::library);
  EXPECT_THAT(own.declined, Not(HasSubstr("packed_product")));
  EXPECT_THAT(library.declined, HasSubstr("packed_product: KOLO_KERNELS=library"));
  for (std::int64_t i = 0; i < own.y.elements(); ++i)
    ASSERT_NEAR(own.y.data<float>()[i], library.y.data<float>()[i], 1e-4) << i;
}

TEST_F(PackedProductBy, TheTableIsOneOfTheTwoAndTheSameEachTime) {
  const auto bits = [](const Tensor& y) {
    return std::string(reinterpret_cast<const char*>(y.data<float>()), y.bytes());
  };
  const std::string table = bits(by(KernelSource::table).y);
  EXPECT_EQ(table, bits(by(KernelSource::table).y));
  const bool takes_own = table_prefers_own(OwnKernel::packed_product, this_processor());
  EXPECT_EQ(table, bits(by(takes_own ? KernelSource::own : KernelSource::library).y));
}

}  // namespace
}  // namespace kolo::detail

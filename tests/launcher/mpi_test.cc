#include <kolo/launcher/mpi.h>

#include <gtest/gtest.h>

namespace kolo::launcher {
namespace {

const Mpi kOpenMpi4 = {MpiKind::open_mpi, "4.1.4"}, kMpich = {MpiKind::mpich, "4.0.2"};

// From `mpirun --version`. Those of Debian 12 run here; the others are written from their manuals.
TEST(Mpi, IsKnownByTheVersionOfItsLauncher) {
  EXPECT_EQ(parse_mpi("mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n"),
            kOpenMpi4);
  EXPECT_EQ(
      parse_mpi("HYDRA build details:\n    Version:                                 4.0.2\n    Release"),
      kMpich);
  EXPECT_EQ(parse_mpi("mpirun (Open MPI) 5.0.3\n"), (Mpi{MpiKind::open_mpi, "5.0.3"}));
  EXPECT_EQ(parse_mpi("prterun (PRRTE) 3.0.1\n"), (Mpi{MpiKind::open_mpi, "5"}));
  EXPECT_EQ(parse_mpi("Intel(R) MPI Library for Linux* OS, Version 2021.11 Build 20231005 (id: 74c4a23)\n"),
            (Mpi{MpiKind::intel, "2021.11"}));
  EXPECT_EQ(parse_mpi("usage: mpirun"), Mpi());
  EXPECT_EQ(parse_mpi(""), Mpi());
}

TEST(Mpi, IsWrittenAsItIsRead) {
  for (const Mpi& mpi : {kOpenMpi4, kMpich, Mpi{MpiKind::intel, "2021.11"}})
    EXPECT_EQ(parse_mpi(mpi.text()), mpi);
  EXPECT_EQ(kMpich.text(), "MPICH 4.0.2");
}

TEST(Mpi, TellsWhoStartsItsRanks) {
  EXPECT_FALSE(kOpenMpi4.has_prte());
  EXPECT_TRUE((Mpi{MpiKind::open_mpi, "5.0.3"}).has_prte());
  EXPECT_FALSE((Mpi{MpiKind::mpich, "5.0"}).has_prte());
  EXPECT_TRUE(kMpich.has_hydra());
}

TEST(Mpi, CannotStartProgramsOfAnotherKind) {
  EXPECT_FALSE(can_start(kMpich, kOpenMpi4));
  EXPECT_FALSE(can_start(kOpenMpi4, kMpich));
  EXPECT_TRUE(can_start({MpiKind::open_mpi, "5.0.3"}, kOpenMpi4)) << "the library has the same name";
  EXPECT_TRUE(can_start({MpiKind::intel, "2021"}, kMpich)) << "both are started over PMI";
  EXPECT_TRUE(can_start(Mpi(), kOpenMpi4));
}

TEST(OwnMpi, IsTheOneThatKoloWasBuiltWith) { EXPECT_NE(own_mpi().kind, MpiKind::unknown); }

}  // namespace
}  // namespace kolo::launcher

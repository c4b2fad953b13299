#include <kolo/launcher/check_build.h>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <map>

namespace kolo::launcher {
namespace {

Ask answering(std::map<std::string, std::string> answers) {
  return
      [answers = std::move(answers)](const std::vector<std::string>& command) -> std::optional<std::string> {
        const auto found = answers.find(fmt::format("{}", fmt::join(command, " ")));
        return found == answers.end() ? std::nullopt : std::optional(found->second);
      };
}

// From Debian 12's Open MPI 4.1.4 and Slurm 22.05.8.
const std::string kInfo =
    "mca:pmix:ext3x:version:\"mca:2.1.0\"\nmca:pmix:ext3x:version:\"api:2.0.0\"\n"
    "mca:pmix:flux:version:\"mca:2.1.0\"\nmca:plm:slurm:version:\"mca:2.1.0\"\n"
    "mca:plm:rsh:version:\"mca:2.1.0\"\nmca:ras:slurm:version:\"mca:2.1.0\"\n"
    "mca:ras:gridengine:version:\"component:4.1.4\"\n";
const std::string kList =
    "MPI plugin types are...\n\tpmix\n\tnone\n\tcray_shasta\n\tpmi2\nspecific pmix plugin versions "
    "available: "
    "pmix_v4\n";

TEST(CheckBuild, ListsBatchSystemsAndPmis) {
  EXPECT_EQ(batch_system_lines({MpiKind::open_mpi, "4.1.4"},
                               answering({{"ompi_info --parsable", kInfo}, {"srun --mpi=list", kList}})),
            "mpirun reads the hosts of: slurm, gridengine\n"
            "mpirun starts its daemons by: slurm, rsh\n"
            "PMIx of Open MPI: ext3x, flux\n"
            "srun: speaks pmix, cray_shasta, pmi2\n");
}

TEST(CheckBuild, AsksWhatStartsTheRanksOfOpenMpi5) {
  const std::string lines =
      batch_system_lines({MpiKind::open_mpi, "5.0.3"},
                         answering({{"ompi_info --parsable", ""},
                                    {"prte_info --parsable", "mca:ras:pbs:version:\"mca:2.1.0\"\n"}}));
  EXPECT_EQ(lines,
            "mpirun reads the hosts of: pbs\nmpirun starts its daemons by: none\nPMIx of Open MPI: none\n"
            "srun: not here, or does not answer\n");
}

TEST(CheckBuild, SaysWhatIsNotKnown) {
  EXPECT_EQ(batch_system_lines({MpiKind::open_mpi, "4.1.4"}, answering({})),
            "mpirun's batch systems: not known, since ompi_info does not tell\n"
            "srun: not here, or does not answer\n");
  EXPECT_EQ(batch_system_lines({MpiKind::mpich, "4.0.2"}, answering({})),
            "srun: not here, or does not answer\n");
}

}  // namespace
}  // namespace kolo::launcher

"""scripts/check_layers on small trees with one planted fault each, and on the checkout itself."""
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))

SOUND = {
    "CMakeLists.txt": "project(kolo)\nadd_subdirectory(core)\nadd_subdirectory(collectives)\nadd_subdirectory(launcher)\n",
    "core/CMakeLists.txt": "add_subdirectory(graph)\n",
    "core/graph/CMakeLists.txt": "kolo_library(graph SOURCES graph.cc PUBLIC graph.h DEPENDS kolo_tensor)\n",
    "core/tensor/CMakeLists.txt": "kolo_library(tensor PUBLIC shape.h DEPENDS kolo_base)\n",
    "core/base/CMakeLists.txt": "kolo_library(base PUBLIC error.h)\n",
    "core/runtime/CMakeLists.txt": "kolo_library(runtime PUBLIC session.h DEPENDS kolo_passes)\n",
    "core/graph/graph.h": "#include <fmt/core.h>\n#include <vector>\n#include <kolo/core/tensor/shape.h>\n",
    "core/graph/graph.cc": "#include <kolo/core/graph/graph.h>\n#include <kolo/core/graph/index.h>\n",
    "core/graph/index.h": "#include <xxhash.h>\n",
    "core/tensor/shape.h": "#include <kolo/core/base/error.h>\n",
    "core/base/error.h": "#include <stdexcept>\n",
    "core/runtime/session.h": "#include <vector>\n",
    "core/passes/prune.h": "#include <kolo/core/graph/graph.h>\n",
    "collectives/CMakeLists.txt": "kolo_library(collectives SOURCES algorithms/ring.cc PUBLIC algorithms/ring.h APART job/mpi_interop.h DEPENDS kolo_runtime)\n",
    "collectives/algorithms/ring.cc": "#include <mpi.h>\n#include <kolo/core/runtime/session.h>\n",
    "collectives/algorithms/ring.h": "",
    "collectives/job/mpi_interop.h": "#include <mpi.h>\n",
    "launcher/CMakeLists.txt": "kolo_program(kolorun SOURCES kolorun.cc)\nkolo_program(kolo-inspect SOURCES kolo_inspect.cc)\n",
    "launcher/kolorun.cc": "#include <kolo/core/base/error.h>\n",
    "launcher/kolo_inspect.cc": "#include <kolo/core/runtime/session.h>\n",
}


def check(root):
    done = subprocess.run([sys.executable, os.path.join(ROOT, "scripts", "check_layers"), root],
                          capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


class CheckLayers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        for path, text in SOUND.items():
            self.write(path, text)

    def write(self, path, text):
        path = os.path.join(self.folder.name, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def expect_finding(self, *words):
        code, output = check(self.folder.name)
        self.assertEqual(code, 1, output)
        self.assertIn(", 1 findings", output)
        for word in words:
            self.assertIn(word, output)

    def test_finds_numbers_that_a_locale_changes_and_json_that_may_throw(self):
        for line in ("x = std::strtod(t, &end);", "x = std::stod(t);", 'fmt::format("{:a}", x);', "text = json.dump();",
                     "text = json->dump();"):
            self.write("core/graph/graph.cc", SOUND["core/graph/graph.cc"] + line + "\n")
            self.expect_finding("core/graph/graph.cc:3")

    def test_finds_python_that_includes_what_is_not_installed(self):
        self.write("CMakeLists.txt", SOUND["CMakeLists.txt"] + "add_subdirectory(python)\n")
        self.write("python/CMakeLists.txt", "add_library(kolo_python MODULE binding/module.cc)\n")
        self.write("python/binding/binding.h", "")
        self.write("python/binding/module.cc", '#include <kolo/core/graph/graph.h>\n#include "binding.h"\n'
                                               "#include <kolo/core/graph/index.h>\n")
        self.expect_finding("python/binding/module.cc:3", "python sees the public face alone")

    def test_accepts_a_tree_that_follows_the_arrows(self):
        code, output = check(self.folder.name)
        self.assertEqual(code, 0, output)

    def test_finds_graph_including_runtime(self):
        self.write("core/graph/graph.cc", "\n#include <kolo/core/runtime/session.h>\n")
        self.expect_finding("core/graph/graph.cc:2", "<kolo/core/runtime/session.h>", "against the arrows")

    def test_finds_core_including_collectives(self):
        self.write("core/runtime/session.h", "#include <kolo/collectives/job/mpi_interop.h>\n")
        self.expect_finding("core/runtime/session.h:1", "against the arrows")

    def test_finds_a_room_of_collectives_including_one_above_it(self):
        self.write("collectives/algorithms/ring.cc", "#include <kolo/collectives/job/mpi_interop.h>\n")
        self.expect_finding("collectives/algorithms/ring.cc:1", "collectives/algorithms")

    def test_finds_a_room_including_the_other_of_its_floor(self):
        self.write("collectives/transport/copy.h", "#include <kolo/collectives/reduce/reduce.h>\n")
        self.write("collectives/reduce/reduce.h", "")
        self.expect_finding("collectives/transport/copy.h:1")

    def test_finds_the_library_including_the_room_above_it(self):
        self.write("core/cluster/server.h", "")
        self.write("optimizer/sync.h", "#include <kolo/core/cluster/server.h>\n")
        self.expect_finding("optimizer/sync.h:1", "<kolo/core/cluster/server.h>", "against the arrows")

    def test_finds_a_room_that_has_no_floor(self):
        self.write("collectives/ring.h", "#include <kolo/collectives/algorithms/ring.h>\n")
        self.expect_finding("collectives/ring.h:1")

    def write_kernels(self, path, included):
        self.write("core/kernels/kernel.h", "")
        self.write("core/kernels/elements/binary.h", "")
        for header in ("loops/update_rules.h", "onednn/onednn.h", "gemm/thin_gemm.h", "conv/winograd.h", "broadcast_kernel.h",
                       "in_place_updates.h"):
            self.write("core/kernels/cpu/" + header, "")
        self.write(path, f"#include <kolo/{included}>\n")

    def test_accepts_kernels_that_follow_the_arrows(self):
        for path, included in (("core/kernels/cpu/linalg.h", "core/kernels/cpu/conv/winograd.h"),
                               ("core/kernels/cpu/conv/block_tiles-inl.h", "core/kernels/cpu/gemm/thin_gemm.h"),
                               ("core/kernels/cpu/gemm/product_sum.h", "core/kernels/cpu/onednn/onednn.h"),
                               ("core/kernels/cpu/gemm/packed_gemm.h", "core/kernels/cpu/loops/update_rules.h"),
                               ("core/kernels/cpu/loops/element_loops.h", "core/kernels/elements/binary.h"),
                               ("core/kernels/cpu/loops/pooling_loops.h", "core/kernels/kernel.h"),
                               ("collectives/graph/read.h", "core/kernels/cpu/in_place_updates.h"),
                               ("optimizer/schedules.h", "core/kernels/kernel.h")):
            self.write_kernels(path, included)
        code, output = check(self.folder.name)
        self.assertEqual(code, 0, output)

    def test_finds_rooms_of_kernels_including_those_above_them(self):
        for room, above in (("loops", "gemm/thin_gemm.h"), ("onednn", "gemm/thin_gemm.h"), ("onednn", "loops/update_rules.h"),
                            ("gemm", "conv/winograd.h"), ("loops", "broadcast_kernel.h"), ("conv", "broadcast_kernel.h")):
            with self.subTest(room=room, above=above):
                self.write_kernels(f"core/kernels/cpu/{room}/other.h", "core/kernels/cpu/" + above)
                self.expect_finding(f"core/kernels/cpu/{room}/other.h:1", f"<kolo/core/kernels/cpu/{above}>", "against the arrows")
                self.write(f"core/kernels/cpu/{room}/other.h", "")

    def test_finds_the_face_of_kernels_including_what_is_behind_it(self):
        self.write_kernels("core/kernels/queue.h", "core/kernels/cpu/broadcast_kernel.h")
        self.expect_finding("core/kernels/queue.h:1", "core/kernels/*.h")

    def test_finds_who_includes_a_kernels_internal_header_from_above(self):
        for path in ("core/training/saver.h", "collectives/graph/read.h", "optimizer/rules.h", "models/layers.h"):
            with self.subTest(path=path):
                self.write_kernels(path, "core/kernels/cpu/loops/update_rules.h")
                self.expect_finding(path + ":1", "core/kernels/*.h")
                self.write(path, "")

    def test_finds_a_library_file_including_the_header_that_brings_all(self):
        self.write("collectives/algorithms/ring.cc", "#include <kolo/kolo.h>\n")
        self.expect_finding("collectives/algorithms/ring.cc:1")

    def test_finds_a_quoted_relative_include_against_the_arrows(self):
        self.write("core/graph/options.h", "")
        self.write("core/tensor/dtype.h", '#include "../graph/options.h"\n')
        self.expect_finding("core/tensor/dtype.h:1")

    def test_finds_kolorun_including_more_of_core_than_base(self):
        self.write("launcher/kolorun.cc", "#include <kolo/core/tensor/shape.h>\n")
        self.expect_finding("launcher/kolorun.cc:1", "core/base, launcher")

    def test_finds_mpi_in_a_public_header(self):
        self.write("collectives/algorithms/ring.h", "#include <mpi.h>\n")
        self.expect_finding("collectives/algorithms/ring.h:1", "public header")

    def test_finds_a_system_header_in_a_public_header(self):
        self.write("core/base/error.h", "#include <unistd.h>\n")
        self.expect_finding("core/base/error.h:1", "public header")

    def test_finds_an_internal_header_in_a_public_header(self):
        self.write("core/graph/graph.h", "#include <kolo/core/graph/index.h>\n")
        self.expect_finding("core/graph/graph.h:1", "not installed")

    def test_takes_a_name_in_a_comment_for_no_public_header(self):
        self.write("core/tensor/CMakeLists.txt", "kolo_library(tensor DEPENDS kolo_base)  # PUBLIC shape.h\n")
        self.expect_finding("core/graph/graph.h:3", "not installed")

    def test_finds_a_public_header_that_is_not_there(self):
        self.write("core/base/CMakeLists.txt", "kolo_library(base PUBLIC error.h gone.h)\n")
        self.expect_finding("core/base/gone.h", "no such file")

    def write_the_plug_in(self, kernel):
        self.write("CMakeLists.txt", SOUND["CMakeLists.txt"] + "add_subdirectory(core/kernels/cuda)\n")
        self.write("core/kernels/cuda/CMakeLists.txt", "target_sources(kolo_cuda PRIVATE math.cu)\n")
        self.write("core/kernels/cuda/launch.h", "#include <cuda_runtime_api.h>\n")
        self.write("core/kernels/elements/binary.h", "")
        self.write("core/kernels/cuda/math.cu", kernel)

    def test_accepts_a_kernel_of_functors(self):
        self.write_the_plug_in("#include <kolo/core/kernels/cuda/launch.h>\n#include <kolo/core/kernels/elements/binary.h>\n")
        code, output = check(self.folder.name)
        self.assertEqual(code, 0, output)

    def test_finds_a_kernel_that_sees_more_of_kolo(self):
        self.write_the_plug_in("#include <kolo/core/base/error.h>\n")
        self.expect_finding("core/kernels/cuda/math.cu:1", "functors and launch.h")

    def test_finds_cuda_outside_the_plug_in(self):
        self.write("core/graph/graph.cc", "#include <cuda_runtime_api.h>\n")
        self.expect_finding("core/graph/graph.cc:1", "name CUDA")

    def test_finds_a_name_of_cuda_outside_the_plug_in_but_not_in_words(self):
        self.write("core/graph/graph.cc", 'const char* text = "cudaMalloc";  // cudaFree is elsewhere\n')
        self.assertEqual(check(self.folder.name)[0], 0)
        self.write("core/graph/graph.cc", "void f() { cudnnCreate(nullptr); }\n")
        self.expect_finding("core/graph/graph.cc:1", "uses cudnnCreate")

    def test_finds_the_library_including_the_plug_in(self):
        self.write_the_plug_in("")
        self.write("core/passes/prune.h", "#include <kolo/core/kernels/cuda/launch.h>\n")
        self.expect_finding("core/passes/prune.h:1", "room of the plug-in")

    def test_finds_a_circle_of_units(self):
        self.write("core/graph/node.h", "#include <kolo/core/graph/scope.h>\n")
        self.write("core/graph/scope.h", "")
        self.write("core/graph/scope_internal.h", "#include <kolo/core/graph/node.h>\n")
        self.expect_finding("core/graph/scope > core/graph/node > core/graph/scope")

    def test_takes_an_internal_header_for_a_part_of_its_unit(self):
        self.write("core/graph/graph_internal.h", "#include <kolo/core/graph/graph.h>\n")
        code, output = check(self.folder.name)
        self.assertEqual(code, 0, output)

    def test_finds_a_source_that_no_list_names(self):
        self.write("core/graph/forgotten.cc", "")
        self.expect_finding("core/graph/forgotten.cc: no target builds it")

    def test_does_not_take_a_comment_for_a_source_list(self):
        self.write("core/graph/forgotten.cc", "")
        self.write("core/graph/CMakeLists.txt", "kolo_library(graph SOURCES graph.cc PUBLIC graph.h)  # forgotten.cc\n")
        self.expect_finding("core/graph/forgotten.cc")

    def test_finds_a_source_whose_folder_the_root_does_not_reach(self):
        self.write("core/CMakeLists.txt", "")
        self.expect_finding("core/graph/graph.cc: no target builds it")

    def test_accepts_a_source_that_a_function_of_the_build_names(self):
        self.write("cmake/targets.cmake", "target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/core/graph/extra.cc)\n")
        self.write("core/graph/extra.cc", "")
        code, output = check(self.folder.name)
        self.assertEqual(code, 0, output)

    def test_accepts_a_source_of_an_outside_project(self):
        self.write("tests/package/CMakeLists.txt", "project(outside CXX)\nadd_executable(outside main.cc)\n")
        self.write("tests/package/main.cc", "#include <kolo/core/graph/graph.h>\n")
        code, output = check(self.folder.name)
        self.assertEqual(code, 0, output)

    def test_refuses_a_folder_without_sources(self):
        with tempfile.TemporaryDirectory() as empty:
            code, output = check(empty)
        self.assertEqual(code, 2, output)


if __name__ == "__main__":
    unittest.main()

"""Each kernel of a .cu file fits into a GPU's registers: nvcc's report on it names no spill and no local memory.

Usage: ptxas_test.py NVCC SOURCE_FOLDER INCLUDE_FOLDER ARCHITECTURE…
"""
import glob
import os
import re
import subprocess
import sys
import unittest

NVCC, ROOT, INCLUDE, *ARCHITECTURES = sys.argv[1:]
# A multiprocessor has 65536 of them: with 40 a thread it holds 1536 threads, which hides the latency of memory.
MOST_REGISTERS = 40
# Kernels that compute more than they load, or that nobody runs where there is a library.
MORE_REGISTERS = {"attention.cu": 80, "attention_tiles.cu": 128, "convolution.cu": 64, "elementwise.cu": 48, "layer_norm.cu": 80, "losses.cu": 48, "matmul.cu": 80, "movement.cu": 48, "pooling.cu": 64, "reductions.cu": 56, "row_updates.cu": 64, "rows.cu": 64}


def without_fma():
    """The sources that the build compiles with --fmad=false, from its own list."""
    with open(os.path.join(ROOT, "core", "kernels", "cuda", "CMakeLists.txt"), encoding="utf-8") as file:
        listed = re.search(r"set_source_files_properties\(([^)]*?)TARGET_DIRECTORY kolo_cuda PROPERTIES COMPILE_OPTIONS --fmad=false\)", file.read())
    return set(listed[1].split())


WITHOUT_FMA = without_fma()


def flags_of(source):
    return ["--fmad=false"] if os.path.basename(source) in WITHOUT_FMA else []


class Ptxas(unittest.TestCase):
    def test_kernels_use_registers_alone(self):
        sources = sorted(glob.glob(os.path.join(ROOT, "core", "kernels", "cuda", "*.cu")))
        self.assertTrue(sources)
        for source in sources:
            for architecture in ARCHITECTURES:
                with self.subTest(source=os.path.relpath(source, ROOT), architecture=architecture):
                    self.check(source, architecture)

    def test_rows_of_layer_norm_are_read_and_written_by_16_bytes(self):
        source = os.path.join(ROOT, "core", "kernels", "cuda", "layer_norm.cu")
        done = subprocess.run([NVCC, "-std=c++20", "-O3", "--expt-relaxed-constexpr", *flags_of(source), "-I", INCLUDE, f"-arch=sm_{ARCHITECTURES[0]}", "-ptx", "-o", "-", source],
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        kernels = {name: body for name, body in re.findall(r"\.entry (\S+)\((.*?)\n\}", done.stdout, re.S)
                   if re.search(r"(HeldNorm|LongNorm|RunOfRows)WorkILi4E", name)}
        self.assertEqual(len(kernels), 5)
        for name, body in kernels.items():
            with self.subTest(kernel=name):
                self.assertIn("ld.global.v4", body)
                self.assertIn("st.global.v4", body)
                # What is left is of a row or a column: its mean and its deviation.
                self.assertLessEqual(len(re.findall(r"ld\.global\.f32", body)), 2)

    @staticmethod
    def is_ours(kernel):
        """CUB's own choose their registers for each GPU."""
        return "3cub" not in kernel

    @staticmethod
    def is_known(kernel, frame, *spilled):
        """CUDA's sine and cosine of more than 105,615 multiply by 2/pi in words that they index. In the rules for rows ptxas
        stops at 48 registers and puts a word or two aside, in other rules for each GPU and each way to write the loop."""
        if "RowUpdateWork" in kernel:
            return max(map(int, (frame, *spilled))) <= 8
        return bool(re.search(r"8elements3(Sin|Cos)E", kernel)) and (frame, *spilled) == ("32", "0", "0")

    def check(self, source, architecture):
        command = [NVCC, "-std=c++20", "-O3", "--expt-relaxed-constexpr", *flags_of(source), "-I", INCLUDE, "-Xptxas=-v", f"-arch=sm_{architecture}", "-cubin", "-o", os.devnull, source]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = done.stdout + done.stderr
        frames = re.findall(r"Function properties for (\S+)\n *(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", report)
        registers = [int(number) for number in re.findall(r"Used (\d+) registers", report)]
        self.assertTrue(frames and len(frames) == len(registers), report)
        ours = [(frame, used) for frame, used in zip(frames, registers) if self.is_ours(frame[0])]
        self.assertEqual([frame for frame, _ in ours if frame[1:] != ("0", "0", "0") and not self.is_known(*frame)], [])
        most = MORE_REGISTERS.get(os.path.basename(source), MOST_REGISTERS)
        self.assertLessEqual(max([used for _, used in ours], default=0), most, report)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

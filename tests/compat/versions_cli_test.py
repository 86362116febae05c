#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans of one version in the libraries of others: this one, and the next two, which cmake/versions.cmake links. The next reads this one's
version-compatible plans, the one after it has other formats of records, and leaves them to the runtime that they bring, or that it is given.
Each answer has the bits of that of the plan's own version. Plans for GPUs run on the stand-in for one, or, with LATHE_TEST_DEVICE=cuda:0,
on the real one."""
import itertools
import json
import os
import pathlib
import re
import resource
import shutil
import struct
import subprocess
import tempfile
import time
import unittest
import zlib

import numpy as np

from make_archive import stand_in_for_gpu

BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"])
CACHE = (BUILD / "CMakeCache.txt").read_text()
ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples/digits/digits.onnx"
SHAPES = [f"--{which}Shapes=image:4x1x8x8" for which in ("min", "opt", "max")]
MINOR = int(re.search(r"^CMAKE_PROJECT_VERSION:STATIC=0\.(\d+)\.0$", CACHE, re.MULTILINE).group(1))
NOW, NEXT, LATER = (f"0.{MINOR + further}" for further in range(3))
FOLDERS = {NOW: BUILD / "lib", NEXT: BUILD / "lib/versions/next", LATER: BUILD / "lib/versions/later"}
DEVICES = {"cpu": {}, "cuda": {} if os.environ.get("LATHE_TEST_DEVICE") == "cuda:0" else stand_in_for_gpu(BUILD)}


def run(*command, **variables):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, env=os.environ | variables)


IS_RELEASE = "CMAKE_BUILD_TYPE:STRING=Release\n" in CACHE


def library(version, kind):
    return FOLDERS[version] / f"lib{kind}.so.0"


class Versions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.folder = pathlib.Path(holder.name)
        cls.given = cls.folder / "given"
        cls.given.mkdir()
        np.random.default_rng(3).standard_normal((4, 1, 8, 8), np.float32).tofile(cls.given / "image")
        cls.plans, cls.answers = {}, {}
        for version in FOLDERS:
            for device in DEVICES:
                for kind, options in {"plain": [], "held": ["--versionCompatible"],
                                      "bare": ["--versionCompatible", "--excludeLeanRuntime"]}.items():
                    cls.plans[version, device, kind] = cls.build(version, device, kind, *options)
                done = cls.run_plan(library(version, "lathe"), cls.plans[version, device, "plain"], device)
                if done.returncode != 0:
                    raise AssertionError(f"{version} {device}: {done.stderr}")
                cls.answers[version, device] = cls.answer()

    @classmethod
    def build(cls, version, device, kind, *options):
        plan = cls.folder / f"{version}_{device}_{kind}.engine"
        done = run(BUILD / "bin/lathe", "build", DIGITS, "-o", plan, "--buildBudget=0", f"--target={device}", *SHAPES, *options,
                   LD_LIBRARY_PATH=str(FOLDERS[version]), LATHE_CACHE_DIR=str(cls.folder / "cache"), **DEVICES[device])
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return plan

    @classmethod
    def run_plan(cls, runtime, plan, device, *options, runner="version_runner", **variables):
        shutil.rmtree(cls.folder / "out", ignore_errors=True)
        (cls.folder / "out").mkdir()
        return run(BUILD / "bin" / runner, runtime, plan, cls.given, cls.folder / "out", *options,
                   **DEVICES[device], **variables)

    @classmethod
    def answer(cls):
        return (cls.folder / "out/probabilities").read_bytes()

    def check_answer(self, done, version, device):
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.answer()), 4 * 10 * 4)
        self.assertEqual(self.answer(), self.answers[version, device])

    def check_refusal(self, done, *words):
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("1 reports", done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def mapped(self, done):
        return [int(word) for word in re.search(r"mapped (\d+) (\d+) (\d+)", done.stdout).groups()]

    # S10, S11, S18, S47.
    def test_what_a_plan_holds(self):
        for device in DEVICES:
            sizes = {kind: self.plans[NOW, device, kind].stat().st_size for kind in ("plain", "held", "bare")}
            self.assertEqual(sizes["plain"], sizes["bare"])
            stripped = self.folder / "stripped.so"
            subprocess.run(["strip", "-o", stripped, library(NOW, "lathe_lean")], check=True)
            self.assertLess(sizes["held"] - sizes["bare"], stripped.stat().st_size)
            self.assertGreater(sizes["held"] - sizes["bare"], stripped.stat().st_size / 4)
            done = run(BUILD / "bin/lathe", "inspect", self.plans[NOW, device, "held"], "--json", self.folder / "held.json")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("later versions run it, too", done.stdout)
            report = json.loads((self.folder / "held.json").read_text())
            section = {section["name"]: section for section in report["sections"]}["lean_runtime"]
            self.assertEqual(section["trust"], "host code")
            self.assertEqual(section["bytes"] + 64 >= sizes["held"] - sizes["bare"] >= section["bytes"], True)
            self.assertRegex(section["digest"], "^[0-9a-f]{64}$")
            self.assertEqual((report["version"], report["version_compatible"]), (f"{NOW}.0.0", True))
            kinds = [struct.unpack_from("<I", self.plans[NOW, device, kind].read_bytes(), 256)[0] for kind in
                     ("plain", "held", "bare")]
            self.assertEqual(kinds, [0, 1, 1])

    # S2, S3, S12, S17, S19, S20, S21, S178, S179, S180, S186: every version, kind of library and route to a plan of it or before.
    def test_old_plans_in_new_libraries(self):
        ran = 0
        for device, kind in itertools.product(DEVICES, ("lathe", "lathe_lean", "lathe_dispatch")):
            for written, version in itertools.combinations_with_replacement(FOLDERS, 2):
                with self.subTest(device=device, kind=kind, written=written, version=version):
                    ran += self.check_routes(device, kind, written, version)
        self.assertEqual(ran, 2 * 3 * (6 * 3 + 3))

    def check_routes(self, device, kind, written, version):
        """How many routes gave the answer: by the runtime in the plan, by a runtime that is given, directly, and as a plain plan."""
        plans = {content: self.plans[written, device, content] for content in ("plain", "held", "bare")}
        runtime = library(version, kind)
        others = version == LATER != written  # which has other formats
        done = self.run_plan(runtime, plans["held"], device, "--allow")
        self.check_answer(done, written, device)
        before, during, after = self.mapped(done)
        # Who reads the plan alone maps nothing; the dispatching library has the one beside it do so.
        guests = 1 if others or kind == "lathe_dispatch" else 0
        self.assertEqual((during - before, after - before), (guests, 0))
        self.check_answer(self.run_plan(runtime, plans["bare"], device, f"--lean={library(written, 'lathe_lean')}"), written, device)
        done = self.run_plan(runtime, plans["bare"], device)
        if others:
            self.check_refusal(done, "LATHE-4002", f"{written}.0.0", "loadRuntime()")
        else:
            self.check_answer(done, written, device)
        if written == version:
            self.check_answer(self.run_plan(runtime, plans["plain"], device), written, device)
        return 3 + (written == version)

    # S177: the kernels of each level, which are packed in the lean runtime, and linked in the whole library.
    @unittest.skipUnless(" lathe_packed_kernels\n" in run("nm", library(NOW, "lathe_lean")).stdout, "kernels are not packed")
    def test_packed_kernels(self):
        for level in ("baseline", "avx2", "avx512"):
            plan = self.folder / f"{level}.engine"
            done = run(BUILD / "bin/lathe", "build", DIGITS, "-o", plan, "--buildBudget=0", "--target=cpu", *SHAPES, LATHE_CPU_ISA=level)
            self.assertEqual(done.returncode, 0, done.stderr)
            answers = set()
            for kind, options in (("lathe", []), ("lathe_lean", []), ("lathe_lean", ["--no-memfd"])):
                done = self.run_plan(library(NOW, kind), plan, "cpu", *options, LATHE_CPU_ISA=level)
                self.assertEqual(done.returncode, 0, done.stderr)
                answers.add(self.answer())
            self.assertEqual(len(answers), 1)
        plan = self.plans[NOW, "cpu", "plain"]
        self.check_refusal(self.run_plan(library(NOW, "lathe_lean"), plan, "cpu", "--no-code"), "packed code", "cannot be mapped")
        self.check_answer(self.run_plan(library(NOW, "lathe"), plan, "cpu", "--no-code"), NOW, "cpu")

    # S5: processor time of loading and running once, each the least of several processes. What shares the processor's caches and
    # threads can only add to it: where the first ones are too slow, further ones tell whether they always are.
    @unittest.skipUnless(IS_RELEASE, "instrumented code takes longer")
    def test_what_an_embedded_runtime_takes(self):
        def seconds(plan, *options):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.assertEqual(self.run_plan(library(LATER, "lathe"), plan, "cpu", *options).returncode, 0)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

        packed = zlib.compress(library(NOW, "lathe_lean").read_bytes())

        def inflating():
            before = time.process_time()
            zlib.decompress(packed)
            return time.process_time() - before
        plain, held = self.plans[LATER, "cpu", "plain"], self.plans[NOW, "cpu", "held"]
        usual, own, inflated = [], [], []

        # 30 ms; on slow or busy processors 2.2 times what zlib takes for the library, which is 4 MB.
        def is_quick():
            return min(own) - min(usual) < max(0.030, 2.2 * min(inflated))
        while len(own) < 8 or (not is_quick() and len(own) < 60):
            usual.append(seconds(plain))
            own.append(seconds(held, "--allow"))
            inflated.append(inflating())
        print(f"loading and running once: {min(usual) * 1e3:.1f} ms, by the plan's own runtime {min(own) * 1e3:.1f} ms; "
              f"inflating 4 MB: {min(inflated) * 1e3:.1f} ms ({len(own)} times)")
        self.assertTrue(is_quick())

    # S1, S4, S19, S22, S46, S180, S181: plans of one version, and plans of newer ones.
    def test_what_is_refused(self):
        for device in DEVICES:
            for kind in ("lathe", "lathe_lean", "lathe_dispatch"):
                done = self.run_plan(library(NEXT, kind), self.plans[NOW, device, "plain"], device, "--allow")
                self.check_refusal(done, "LATHE-4002", f"{NOW}.0.0", f"{NEXT}.0.0", "kVERSION_COMPATIBLE")
                for newer in (NEXT, LATER):
                    for plan in ("held", "bare"):
                        done = self.run_plan(library(NOW, kind), self.plans[newer, device, plan], device, "--allow",
                                             f"--then={self.plans[NOW, device, 'held']}")
                        self.check_refusal(done, "LATHE-4002", f"{newer}.0.0", f"newer than this Lathe {NOW}.0.0")
                        if kind != "lathe_dispatch":  # whose runtime stays as long as the thread that it told of a failure
                            self.assertEqual(len(set(self.mapped(done))), 1)

    # S14, S15, S72: before any of it is mapped.
    def test_host_code_needs_leave(self):
        for kind in ("lathe", "lathe_lean", "lathe_dispatch"):
            for version in FOLDERS:
                done = self.run_plan(library(version, kind), self.plans[NOW, "cpu", "held"], "cpu")
                self.check_refusal(done, "LATHE-4006", "lean_runtime", "setEngineHostCodeAllowed(true)", "trust.md")
                self.assertEqual(len(set(self.mapped(done))), 1)

    # S13, S20: whatever dies last.
    def test_orders_of_death(self):
        held, bare = self.plans[NOW, "cpu", "held"], self.plans[NOW, "cpu", "bare"]
        for order in ("RECI", "ICER", "ERIC", "CREI", "IREC"):
            done = self.run_plan(library(LATER, "lathe"), held, "cpu", "--allow", f"--order={order}")
            self.check_answer(done, NOW, "cpu")
            before, during, after = self.mapped(done)
            self.assertEqual((during, after), (before + 1, before))
        for order in ("RLECI", "LRCIE", "ECILR", "RECIL"):
            done = self.run_plan(library(LATER, "lathe"), bare, "cpu", f"--lean={library(NOW, 'lathe_lean')}",
                                 f"--order={order}")
            self.check_answer(done, NOW, "cpu")
            self.assertEqual(self.mapped(done)[2], self.mapped(done)[0])

    # S24, S25, S26.
    def test_where_the_runtime_is_loaded_from(self):
        held, full = self.plans[NOW, "cpu", "held"], library(LATER, "lathe")
        there = self.folder / "there"
        there.mkdir()
        for options in (["--files=no"], ["--memory=no"], ["--no-memfd"]):
            done = self.run_plan(full, held, "cpu", "--allow", f"--directory={there}", *options)
            self.check_answer(done, NOW, "cpu")
            self.assertEqual(self.mapped(done)[2], self.mapped(done)[0])
            self.assertEqual(list(there.iterdir()), [])
        for options, words in ((["--files=no", "--memory=no"], "TempfileControlFlags"),
                               (["--files=no", "--no-memfd"], "the kernel gives no file in memory")):
            self.check_refusal(self.run_plan(full, held, "cpu", "--allow", *options), "LATHE-4101", words)
        done = self.run_plan(full, held, "cpu", "--allow", "--memory=no", TMPDIR="/no/such/folder")
        self.check_refusal(done, "LATHE-1002", "/no/such/folder")
        done = self.run_plan(full, held, "cpu", "--allow", "--directory=/no/such/folder")
        self.assertIn("'/no/such/folder'", done.stderr)

    # S6, S20.
    def test_libraries_that_are_refused(self):
        bare, full = self.plans[NOW, "cpu", "bare"], library(NEXT, "lathe")
        text = self.folder / "text.so"
        text.write_text("no library")
        cut = self.folder / "cut.so"
        image = library(NOW, "lathe_lean").read_bytes()
        cut.write_bytes(image[:5000])
        note = struct.pack("<III8s4I", 6, 24, 1, b"Lathe", 0, MINOR, 0, 0)
        self.assertEqual(image.count(note + struct.pack("<I", 11)), 1)
        unknown = self.folder / "unknown.so"
        unknown.write_bytes(image.replace(note + struct.pack("<I", 11), note + struct.pack("<I", 12)))
        for path, words in (("/no/such.so", "LATHE-1001"), (text, "not a shared library"), (cut, "truncated"),
                            ("x" * 5000, "path of the runtime library"), (library(LATER, "lathe_lean"), "newer than this"),
                            (unknown, f"with interface 12, and this Lathe {NEXT}.0.0 knows 10 and 11"),
                            (BUILD / "fake_cuda/libfake_cuda_driver.so", "none of Lathe's")):
            done = self.run_plan(full, bare, "cpu", f"--lean={path}")
            self.assertEqual(done.returncode, 3, path)
            self.assertEqual(done.stderr.count("recorded: "), 1, done.stderr)
            self.assertIn(words, done.stderr)

    # S178.
    def test_dispatch_without_a_lean_runtime(self):
        alone = self.folder / "alone"
        alone.mkdir()
        shutil.copy(library(NOW, "lathe_dispatch"), alone)
        done = self.run_plan(alone / "liblathe_dispatch.so.0", self.plans[NOW, "cpu", "bare"], "cpu")
        self.check_refusal(done, "LATHE-4101", "liblathe_lean.so.0", "LATHE_LEAN_RUNTIME")
        done = self.run_plan(alone / "liblathe_dispatch.so.0", self.plans[NOW, "cpu", "bare"], "cpu",
                             LATHE_LEAN_RUNTIME=str(library(NOW, "lathe_lean")))
        self.check_answer(done, NOW, "cpu")

    # S3, S179: formats have no generation, whatever a program was compiled for.
    def test_the_other_generation(self):
        bare, held = self.plans[NOW, "cpu", "bare"], self.plans[NOW, "cpu", "held"]
        lean = library(NOW, "lathe_lean_10")
        for kind in ("lathe_lean_10", "lathe_dispatch_10"):
            for plan, options in ((bare, []), (held, ["--allow"]), (bare, [f"--lean={lean}"])):
                done = self.run_plan(library(NOW, kind), plan, "cpu", *options, "--order=RLECI", runner="version_runner_10")
                self.check_answer(done, NOW, "cpu")
                self.assertEqual(self.mapped(done)[0], self.mapped(done)[2])

    # S20, S179: a runtime of one generation in programs of the other: one that they load, and that of a plan.
    def test_runtimes_of_the_other_generation(self):
        for device in DEVICES:
            held_10 = self.folder / f"{device}_10.engine"
            done = run(BUILD / "bin/source_client_10", "compile", held_10, DIGITS, LATHE_TARGET=device,
                       LATHE_CACHE_DIR=str(self.folder / "cache"), **DEVICES[device])
            self.assertEqual(done.returncode, 0, done.stdout)
            done = self.run_plan(library(NOW, "lathe_lean_10"), held_10, device, "--allow", runner="version_runner_10")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.answers["10", device] = self.answer()
            for kind in ("lathe", "lathe_lean", "lathe_dispatch"):
                self.check_other_generation(device, kind, "version_runner", "lathe_lean_10", held_10, "10", ("CIELR", "LRECI"))
                self.check_other_generation(device, f"{kind}_10", "version_runner_10", "lathe_lean", self.plans[NOW, device, "held"],
                                            NOW, ("RLICE", "ERLCI"))

    def check_other_generation(self, device, kind, runner, lean, held, written, orders):
        for order in orders:
            with self.subTest(device=device, kind=kind, order=order):
                done = self.run_plan(library(NOW, kind), self.plans[NOW, device, "bare"], device, f"--order={order}",
                                     f"--lean={library(NOW, lean)}", runner=runner)
                self.check_answer(done, NOW, device)
                self.assertEqual(self.mapped(done)[0], self.mapped(done)[2])
                if kind == "lathe_10":  # of this version alone, which reads the plan itself
                    continue
                done = self.run_plan(library(LATER, kind), held, device, "--allow", f"--order={order}", runner=runner)
                self.check_answer(done, written, device)
                before, during, after = self.mapped(done)
                self.assertEqual((during, after), (before + 1, before))

    # S18, S180: the command line, as this version's program and with the library of a later one.
    def test_the_command_line(self):
        held, bare, lean = self.plans[NOW, "cpu", "held"], self.plans[NOW, "cpu", "bare"], library(NOW, "lathe_lean")
        image = self.folder / "image.npy"
        np.save(image, np.fromfile(self.given / "image", np.float32).reshape(4, 1, 8, 8))
        wanted = np.frombuffer(self.answers[NOW, "cpu"], np.float32).reshape(4, 10)
        for version, plan, options, words in (
                (NOW, bare, [], ""), (NOW, bare, ["--useRuntime=lean"], ""), (NOW, bare, ["--useRuntime=dispatch"], ""),
                (NOW, bare, [f"--leanDLLPath={lean}"], ""), (NOW, held, ["--allowHostCode"], ""), (NOW, held, [], "LATHE-4006"),
                (LATER, held, ["--allowHostCode"], ""), (LATER, held, ["--allowHostCode", "--useRuntime=dispatch"], ""),
                (LATER, bare, [f"--leanDLLPath={lean}"], ""), (LATER, bare, ["--useRuntime=dispatch", f"--leanDLLPath={lean}"], ""),
                (LATER, bare, [], "loadRuntime()"), (NOW, bare, ["--useRuntime=lean", "--threads=1"], "--threads is for"),
                (NOW, DIGITS, ["--useRuntime=lean"], "build the model first"), (NOW, bare, ["--leanDLLPath=/no"], "LATHE-1001")):
            with self.subTest(version=version, plan=plan.name, options=options):
                out = self.folder / "shown"
                shutil.rmtree(out, ignore_errors=True)
                done = run(BUILD / "bin/lathe", "run", plan, f"--loadInputs=image:{image}", "--exportOutput", out, *options,
                           LD_LIBRARY_PATH=str(FOLDERS[version]))
                if words:
                    self.assertNotEqual(done.returncode, 0)
                    self.assertIn(words, done.stderr)
                else:
                    self.assertEqual(done.returncode, 0, done.stderr)
                    np.testing.assert_array_equal(np.load(out / "probabilities.npy"), wanted)
        done = run(BUILD / "bin/lathe", "build", DIGITS, "-o", self.folder / "none", "--excludeLeanRuntime")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--versionCompatible", done.stderr + done.stdout)

    # S68, S71: no byte of the runtime can be changed, nor left out.
    def test_damaged_runtimes(self):
        plan = bytearray(self.plans[NOW, "cpu", "held"].read_bytes())
        damaged = self.folder / "damaged.engine"
        for place in (len(plan) - 1, len(plan) - 200_000, len(plan) - 1_000_000):
            plan[place] ^= 1
            damaged.write_bytes(plan)
            plan[place] ^= 1
            for version in (NOW, LATER):
                self.check_refusal(self.run_plan(library(version, "lathe"), damaged, "cpu", "--allow"), "LATHE-4004")

    # S176, S177, S178, S182.
    def test_what_the_libraries_export(self):
        names = {}
        for kind in ("lathe", "lathe_lean", "lathe_dispatch"):
            lines = subprocess.run(["nm", "-D", "--defined-only", library(NOW, kind)], capture_output=True, text=True,
                                   check=True).stdout.splitlines()
            names[kind] = {line.split()[2] for line in lines if line.split()[1] == "T"}
        self.assertIn("createInferRuntime_INTERNAL", names["lathe_dispatch"])
        self.assertEqual(names["lathe_dispatch"] - names["lathe_lean"], set())
        self.assertEqual(names["lathe_lean"] - names["lathe"], set())
        self.assertNotIn("createInferBuilder_INTERNAL", names["lathe_lean"])
        if IS_RELEASE:
            for kind in ("lathe_dispatch", "lathe_dispatch_10"):
                stripped = self.folder / "stripped_dispatch.so"
                subprocess.run(["strip", "-o", stripped, library(NOW, kind)], check=True)
                self.assertLessEqual(stripped.stat().st_size, 200_000, kind)


if __name__ == "__main__":
    unittest.main()

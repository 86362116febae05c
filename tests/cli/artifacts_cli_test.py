#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Engines that are kept beside their models: when one is used and when it is built, by one process or by many."""
import fcntl
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"])
LATHE = BUILD / "bin/lathe"


def write_model(path, scale=1.0, external=False):
    """y = x w, the batch open; with external data in a file beside it."""
    weights = numpy_helper.from_array(np.full((64, 64), scale, np.float32), "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "product",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 64])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 64])], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    onnx.save(model, path, save_as_external_data=external, location="weights.bin", size_threshold=0)


class Artifacts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = self.folder / "net.onnx"
        write_model(self.model)

    def start(self, *arguments):
        return subprocess.Popen([LATHE, "cache", *map(str, arguments)], text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, cwd=self.folder)

    def lathe(self, *arguments, status=0):
        process = self.start(*arguments)
        output, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, status, output + errors)
        return output + errors

    def get(self, *options):
        return self.lathe("get", self.model, "--target=cpu", "--budget=0", *options)

    def explain(self, *options, status):
        return self.lathe("explain", self.model, "--target=cpu", *options, status=status)

    def engine(self, precision="fp32", batch=1):
        return self.folder / precision / f"bs{batch}" / "net.engine"

    def note(self):
        return json.loads(pathlib.Path(f"{self.engine()}.json").read_text())

    # S245, S246, S247.
    def test_an_engine_is_used_until_something_changes(self):
        self.assertIn("is not there yet", self.get())
        self.assertIn("is used", self.get())
        self.assertIn("would be used", self.explain(status=0))
        files = sorted(path.name for path in self.engine().parent.iterdir())
        self.assertEqual(files, ["net.engine", "net.engine.json", "net.engine.lock"])
        self.get("--precision=fp16")
        self.get("--batch=8")
        self.assertTrue(all(path.exists() for path in (self.engine("fp16"), self.engine(batch=8))))
        self.assertIn("is used", self.get())

    # S244, S252, S253, S255.
    def test_the_note_says_all_that_it_depends_on(self):
        self.get()
        note = self.note()
        key = note["key"]
        for part in ("library", "cuda", "gpu", "compute_capability", "driver", "framework", "os", "target", "precision", "batch",
                     "profiles", "tf32", "plugins", "external_data"):
            self.assertIn(part, key)
        self.assertIsNone(key["framework"])
        self.assertEqual(key["onnx_md5"], hashlib.md5(self.model.read_bytes()).hexdigest())
        self.assertEqual(key["onnx_bytes"], self.model.stat().st_size)
        self.assertEqual(note["profiles"], [{"x": {"min": [1, 64], "opt": [1, 64], "max": [1, 64]}}])
        self.assertEqual(note["plan"]["bytes"], self.engine().stat().st_size)
        self.assertEqual(note["parser"], [])

    # S245: each part, changed by itself, is named, and builds the engine again.
    def test_each_part_counts(self):
        self.get()
        before = self.note()
        for part in before["key"]:
            changed = json.loads(json.dumps(before))
            changed["key"][part] = "something else"
            pathlib.Path(f"{self.engine()}.json").write_text(json.dumps(changed))
            self.assertIn(f"  {part}: was \"something else\"", self.explain(status=1))
            missing = json.loads(json.dumps(before))
            del missing["key"][part]
            pathlib.Path(f"{self.engine()}.json").write_text(json.dumps(missing))
            self.assertIn(f"  {part}: was null", self.explain(status=1))
        self.assertIn("is built again", self.get())
        self.assertEqual(self.note(), before)

    # S253.
    def test_weights_count_wherever_they_are(self):
        self.get()
        write_model(self.model, scale=2)
        self.assertIn("onnx_md5", self.get())
        write_model(self.model, external=True)
        self.get()
        data = bytearray((self.folder / "weights.bin").read_bytes())
        data[3] ^= 1
        (self.folder / "weights.bin").write_bytes(data)
        said = self.get()
        self.assertIn("external_data", said)
        self.assertNotIn("onnx_md5", said)

    # S247: what is damaged or half written is built again, and no error.
    def test_damaged_files_are_built_again(self):
        self.get()
        note, engine = pathlib.Path(f"{self.engine()}.json"), self.engine()
        good = engine.read_bytes()

        def flip():
            engine.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))

        def deepen():
            note.write_text('{"key": {"target": ' + "[" * 300000 + "]" * 300000 + '}, "plan": {"bytes": 0}}')

        for damage in (note.unlink, lambda: note.write_text(""), lambda: note.write_text('{"key": 3}'), engine.unlink, flip,
                       lambda: engine.write_bytes(good[:100]), lambda: note.write_bytes(note.read_bytes()[:50]), deepen,
                       lambda: note.write_text(json.dumps({**json.loads(note.read_text()), "key": [1]}))):
            damage()
            problem = self.lathe("verify", self.folder, status=1).splitlines()[0].split(": ", 1)[1]
            self.assertIn(f"\n  {problem}\n", self.explain(status=1))
            self.assertIn("is built again" if engine.exists() or note.exists() else "is not there yet", self.get())
            self.assertIn("1 engines, 0 of no use", self.lathe("verify", self.folder))

    def test_of_many_processes_one_builds(self):
        running = [self.start("get", self.model, "--target=cpu", "--budget=0") for _ in range(8)]
        said = [process.communicate(timeout=240) for process in running]
        self.assertEqual([process.returncode for process in running], [0] * 8, said)
        built = sum("is not there yet" in errors for _, errors in said)
        used = sum("is used" in errors for _, errors in said)
        self.assertEqual((built, used), (1, 7))

    def test_who_waits_says_so(self):
        self.engine().parent.mkdir(parents=True)
        with open(f"{self.engine()}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            waiting = self.start("get", self.model, "--target=cpu", "--budget=0")
            self.assertIn("is being built by another process", waiting.stderr.readline())
        self.assertIn("is not there yet", waiting.communicate(timeout=120)[1])
        self.assertEqual(waiting.returncode, 0)

    def test_a_builder_that_is_killed_leaves_nothing(self):
        killed = 0
        for batch, pause in enumerate((0.02, 0.05, 0.1, 0.2, 0.3), 1):
            engine = self.engine(batch=batch)
            note = pathlib.Path(f"{engine}.json")
            process = self.start("get", self.model, "--target=cpu", f"--batch={batch}")
            time.sleep(pause)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            if note.exists():  # it had been quicker
                self.assertIn("is used", self.get(f"--batch={batch}"))
                continue
            killed += 1
            engine.parent.mkdir(parents=True, exist_ok=True)
            pathlib.Path(f"{engine}.1.1.tmp").write_text("of one that was killed while writing")
            self.assertNotIn("is used", self.get(f"--batch={batch}"))
            self.assertEqual(sorted(path.name for path in engine.parent.iterdir()),
                             ["net.engine", "net.engine.json", "net.engine.lock"])
        self.assertGreater(killed, 0)

    def test_what_was_not_used_for_longest_goes(self):
        for batch in (1, 2, 3):
            self.get(f"--batch={batch}")
            note = pathlib.Path(f"{self.engine(batch=batch)}.json")
            os.utime(note, (time.time() - 1000 + batch, time.time() - 1000 + batch))
        self.get("--batch=1")  # used now
        (self.folder / "notes.engine").write_text("none of ours")
        size = self.engine().stat().st_size + pathlib.Path(f"{self.engine()}.json").stat().st_size
        self.lathe("prune", self.folder, f"--mostBytes={int(2.5 * size)}")
        left = [batch for batch in (1, 2, 3) if self.engine(batch=batch).exists()]
        self.assertEqual(left, [1, 3])
        self.assertEqual(self.lathe("ls", self.folder).count("net.engine"), 2)
        self.lathe("prune", self.folder, "--mostBytes=0")
        self.assertEqual(self.lathe("ls", self.folder), "")
        self.assertTrue((self.folder / "notes.engine").exists())
        self.get("--batch=4", f"--mostBytes={size // 2}")
        self.assertTrue(self.engine(batch=4).exists(), "the one that is wanted stays")

    def test_paths_below_the_current_folder(self):
        for batch in (1, 2):
            self.lathe("get", "net.onnx", "--target=cpu", "--budget=0", f"--batch={batch}", "--mostBytes=1")
        self.assertFalse(self.engine(batch=1).exists(), "it was not used for longest")
        self.assertTrue(self.engine(batch=2).exists(), "the one that is wanted stays")

    def test_sizes_that_are_left_out_are_those_that_are_given(self):
        self.get("--optShapes=x:4x64", "--maxShapes=x:8x64")
        self.assertEqual(self.note()["profiles"], [{"x": {"min": [4, 64], "opt": [4, 64], "max": [8, 64]}}])
        nine = "--minShapes=x:" + "x".join("123456789")
        self.assertIn("\"profiles\" of the request", self.lathe("get", self.model, "--target=cpu", nine, status=1))

    # S254.
    def test_what_the_parser_says_is_kept(self):
        graph = helper.make_graph([helper.make_node("Frobnicate", ["x"], ["y"], name="strange")], "g",
                                  [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), self.model)
        said = self.lathe("get", self.model, "--target=cpu", status=1)
        self.assertIn("strange", said)
        self.assertFalse(self.engine().exists())
        kept = json.loads(pathlib.Path(f"{self.engine()}.json").read_text())
        self.assertTrue(any("strange" in line["message"] for line in kept["parser"]), kept)

    def test_requests_that_make_no_sense(self):
        self.assertIn("precision", self.lathe("get", self.model, "--precision=fp7", status=1))
        self.assertIn("batch", self.lathe("get", self.model, "--batch=0", status=1))
        self.assertIn("not known", self.lathe("get", self.model, "--target=abacus", status=1))
        for value in ("-1", "nan", "inf", "x"):
            self.assertIn(f"'{value}' is no number from 0 on", self.lathe("get", self.model, f"--budget={value}", status=2))
        self.lathe("get", self.folder / "missing.onnx", status=1)
        self.lathe("ls", self.folder / "missing", status=1)


if __name__ == "__main__":
    sys.exit(unittest.main())

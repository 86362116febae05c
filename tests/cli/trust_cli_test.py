#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Signing as docs/trust.md tells it: keys are made, an engine is signed, checked and run, and what is not signed is refused by every
library."""
import os
import pathlib
import stat
import subprocess
import tempfile
import unittest

import numpy as np

BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"])
DIGITS = pathlib.Path(__file__).resolve().parents[2] / "examples/digits"
LATHE = BUILD / "bin/lathe"


class Trust(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.kept.name)
        cls.lathe("build", DIGITS / "digits.onnx", "-o", cls.path("plain.engine"), "--buildBudget=0")
        cls.lathe("build", DIGITS / "digits.onnx", "-o", cls.path("compatible.engine"), "--buildBudget=0",
                  "--versionCompatible")
        np.save(cls.path("image.npy"), np.zeros((1, 1, 8, 8), np.float32))
        for name in ("ours", "theirs"):
            cls.lathe("key", "new", cls.path(name))
        for engine in ("plain", "compatible"):
            for name in ("ours", "theirs"):
                cls.lathe("sign", cls.path(f"{engine}.engine"), "--key", cls.path(f"{name}.key"), "-o",
                          cls.path(f"{engine}_{name}.engine"))

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()

    @classmethod
    def path(cls, name):
        return cls.folder / name

    @classmethod
    def lathe(cls, *words, status=0, **variables):
        result = subprocess.run([str(word) for word in (LATHE, *words)], capture_output=True, text=True,
                                env=os.environ | {key: str(value) for key, value in variables.items()})
        if result.returncode != status:
            raise AssertionError(f"{words}: {result.returncode}\n{result.stdout}{result.stderr}")
        return result.stdout + result.stderr

    def run_engine(self, engine, *options, **how):
        return self.lathe("run", self.path(engine), f"--loadInputs=image:{self.path('image.npy')}", *options, **how)

    # S69.
    def test_keys(self):
        self.assertEqual(stat.S_IMODE(self.path("ours.key").stat().st_mode), 0o600)
        self.assertRegex(self.path("ours.pub").read_text(), r"^ed25519:[0-9a-f]{64}\n$")
        self.assertIn("cannot create", self.lathe("key", "new", self.path("ours"), status=1))
        self.assertIn("no secret key", self.lathe("sign", self.path("plain.engine"), "--key", self.path("ours.pub"), status=1))

    # S69, S71.
    def test_verify(self):
        ours = f"--trustedKeys={self.path('ours.pub')}"
        key = self.path("ours.pub").read_text().strip()
        self.assertIn(key, self.lathe("verify", self.path("plain_ours.engine"), ours))
        self.assertIn(key, self.lathe("verify", self.path("plain_ours.engine"), LATHE_TRUSTED_KEYS=key))
        self.assertIn("LATHE-4005", self.lathe("verify", self.path("plain.engine"), ours, status=1))
        self.assertIn("LATHE-4005", self.lathe("verify", self.path("plain_theirs.engine"), ours, status=1))
        self.assertIn("--trustedKeys", self.lathe("verify", self.path("plain_ours.engine"), status=2))
        damaged = bytearray(self.path("plain_ours.engine").read_bytes())
        damaged[5000] ^= 1
        self.path("damaged.engine").write_bytes(damaged)
        self.assertIn("LATHE-4004", self.lathe("verify", self.path("damaged.engine"), ours, status=1))
        self.assertIn("LATHE-4004", self.lathe("sign", self.path("damaged.engine"), "--key", self.path("ours.key"), status=1))

    # S69, S180: in place, and by each library; S72, S186: also of plans with a runtime.
    def test_runs_under_a_policy(self):
        both = self.path("ours.pub")
        for library in ("full", "lean", "dispatch"):
            for engine, leave in (("plain", ()), ("compatible", ("--allowHostCode",))):
                how = (f"--useRuntime={library}", *leave)
                self.run_engine(f"{engine}.engine", *how)
                self.run_engine(f"{engine}_ours.engine", *how, LATHE_TRUSTED_KEYS=both)
                for refused in (f"{engine}.engine", f"{engine}_theirs.engine"):
                    self.assertIn("LATHE-4005", self.run_engine(refused, *how, status=1, LATHE_TRUSTED_KEYS=both))
        self.run_engine("plain_theirs.engine", f"--trustedKeys={self.path('ours.pub')},{self.path('theirs.pub')}")
        self.assertIn("LATHE-4005", self.run_engine("plain_theirs.engine", f"--trustedKeys={both}", status=1))
        # A signature is no leave to run code of the host.
        self.assertIn("LATHE-4006", self.run_engine("compatible_ours.engine", status=1, LATHE_TRUSTED_KEYS=both))

    # S69: a runtime that another one loads has its keys.
    def test_loaded_runtimes(self):
        lean = f"--leanDLLPath={BUILD / 'lib/liblathe_lean.so'}"
        ours = f"--trustedKeys={self.path('ours.pub')}"
        self.run_engine("plain_ours.engine", lean, ours)
        self.assertIn("LATHE-4005", self.run_engine("plain.engine", lean, ours, status=1))

    # S69: a typing error lets nothing through.
    def test_broken_lists(self):
        for keys in ("", "ed25519:12", "/nowhere.pub"):
            self.assertIn("LATHE_TRUSTED_KEYS", self.run_engine("plain_ours.engine", status=1, LATHE_TRUSTED_KEYS=keys))
        self.run_engine("plain_ours.engine", "--trustedKeys=nothing", status=2)


if __name__ == "__main__":
    unittest.main()

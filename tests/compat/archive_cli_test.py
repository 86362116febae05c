#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every plan of every release (make_archive.py) gives the right answer in this version, with each of its libraries."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np

from make_archive import stand_in_for_gpu

BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"])
ARCHIVE = pathlib.Path(__file__).resolve().parent / "archive"


class Archive(unittest.TestCase):
    # S2, S3.
    def test_every_plan_of_every_release(self):
        releases = sorted(folder for folder in ARCHIVE.iterdir() if folder.is_dir())
        lines = (ARCHIVE.parent / "releases.txt").read_text().splitlines()
        listed = {line.split()[0] for line in lines if not line.startswith("#")}
        self.assertIn("0.1.0", listed)
        self.assertEqual(listed - {folder.name for folder in releases}, set())
        for release in releases:
            plans = sorted(release.glob("*.plan"))
            self.assertGreaterEqual(len(plans), 9, release)
            for plan in plans:
                network, device, _ = plan.name.split(".")
                data = np.load(release / f"{network}.npz")
                for library in ("lathe", "lathe_lean", "lathe_dispatch"):
                    with self.subTest(plan=plan.name, release=release.name, library=library):
                        self.check(plan, data, library, stand_in_for_gpu(BUILD) if device == "cuda" else {})

    def check(self, plan, data, library, variables):
        with tempfile.TemporaryDirectory() as there:
            folder = pathlib.Path(there)
            for name in ("given", "made"):
                (folder / name).mkdir()
            for key in data.files:
                if key.startswith("in:"):
                    data[key].tofile(folder / "given" / key[3:])
            done = subprocess.run([BUILD / "bin/version_runner", BUILD / f"lib/lib{library}.so", plan, folder / "given",
                                   folder / "made"], capture_output=True, text=True, env=os.environ | variables)
            self.assertEqual(done.returncode, 0, done.stderr)
            outputs = [key for key in data.files if key.startswith("out:")]
            self.assertTrue(outputs)
            for key in outputs:
                made = np.fromfile(folder / "made" / key[4:], data[key].dtype)
                np.testing.assert_allclose(made, data[key].ravel(), rtol=1e-4, atol=1e-5, err_msg=key)


if __name__ == "__main__":
    unittest.main()

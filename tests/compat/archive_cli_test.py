#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every plan of every release (make_archive.py) gives the right answer in this version, with each of its libraries. So do plans of the
oldest release with the runtime in them, which a later version runs them by."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import numpy as np

from make_archive import ARCHIVE, ROOT, RUNTIME, stand_in_for_gpu

BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"])
LIBRARIES = ("lathe", "lathe_lean", "lathe_dispatch")
LATER = BUILD / "lib/versions/later"  # cmake/versions.cmake: it reads none of the formats of before
OLDEST = re.search(r"kOldestCompatible = \{(\d+), (\d+), (\d+), 0\}", (ROOT / "src/base/version.h").read_text())


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
                for library in LIBRARIES:
                    with self.subTest(plan=plan.name, release=release.name, library=library):
                        self.check(plan.read_bytes(), plan, BUILD / f"lib/lib{library}.so")

    # S3, S12, S13: as the release wrote them, to the byte, which their digests tell.
    def test_plans_with_the_runtime_of_the_oldest_release(self):
        oldest = ARCHIVE / ".".join(OLDEST.groups())
        self.assertEqual(list(ARCHIVE.glob(f"*/{RUNTIME}")), [oldest / RUNTIME])
        held = sorted(oldest.glob("*.held"))
        self.assertEqual([path.name.split(".")[1] for path in held], ["cpu", "cuda"])
        for path in held:
            plan = path.read_bytes() + (oldest / RUNTIME).read_bytes()
            for library in LIBRARIES:
                with self.subTest(plan=path.name, library=library):
                    before, during, after = self.check(plan, path, LATER / f"lib{library}.so.0", "--allow")
                    self.assertEqual((during, after), (before + 1, before))
                    self.check(plan, path, BUILD / f"lib/lib{library}.so", "--allow")

    def check(self, plan, path, library, *options):
        """How many of Lathe's libraries were mapped before, while the plan was there, and after."""
        network, device, _ = path.name.split(".")
        data = np.load(path.parent / f"{network}.npz")
        with tempfile.TemporaryDirectory() as there:
            folder = pathlib.Path(there)
            (folder / "plan").write_bytes(plan)
            for name in ("given", "made"):
                (folder / name).mkdir()
            for key in data.files:
                if key.startswith("in:"):
                    data[key].tofile(folder / "given" / key[3:])
            done = subprocess.run([BUILD / "bin/version_runner", library, folder / "plan", folder / "given", folder / "made", *options],
                                  capture_output=True, text=True,
                                  env=os.environ | (stand_in_for_gpu(BUILD) if device == "cuda" else {}))
            self.assertEqual(done.returncode, 0, done.stderr)
            outputs = [key for key in data.files if key.startswith("out:")]
            self.assertTrue(outputs)
            for key in outputs:
                made = np.fromfile(folder / "made" / key[4:], data[key].dtype)
                np.testing.assert_allclose(made, data[key].ravel(), rtol=1e-4, atol=1e-5, err_msg=key)
        return [int(word) for word in re.search(r"mapped (\d+) (\d+) (\d+)", done.stdout).groups()]


if __name__ == "__main__":
    unittest.main()

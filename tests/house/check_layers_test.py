#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The layer check finds each kind of violation in a small planted tree, and nothing in a clean one."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parents[2] / "cmake/check_layers.py"
LAYERS = """
base:
ops: base
kernels: base
kernels/*_tactic: base ops kernels
api: base ops include
"""
CLEAN = {
    "cmake/layers.txt": LAYERS,
    "include/Public.h": "",
    "src/base/result.h": "#include <vector>\n",
    "src/ops/op.h": '#include "base/result.h"\n',
    "src/kernels/cpu/gemm/gemm.h": '#include "base/result.h"\n#include "kernels/cpu/isa/isa.h"\n',
    "src/kernels/cpu/isa/isa.h": "",
    "src/kernels/cpu/gemm/gemm_tactic.cpp": '#include "kernels/cpu/gemm/gemm.h"\n#include "ops/op.h"\n',
    "src/api/builder.cpp": '#include "Public.h"\n#include "ops/op.h"\n',
    "tools/cli/main.cpp": "#include <Public.h>\n",
}


def check(changes):
    """Exit status and text of the check on the clean tree with some files added or replaced."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**CLEAN, **changes}.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        result = subprocess.run([sys.executable, CHECK, "--root", folder], capture_output=True, text=True)
        return result.returncode, result.stdout


class CheckLayers(unittest.TestCase):
    def refused(self, changes, text):
        status, output = check(changes)
        self.assertEqual(status, 1, output)
        self.assertIn(text, output)

    def test_clean_tree_passes(self):
        status, output = check({})
        self.assertEqual(status, 0, output)

    def test_include_against_the_arrow(self):
        self.refused({"src/base/result.h": '#include "ops/op.h"\n'}, "'base' may not include ops/op.h")

    def test_run_half_of_a_kernel_sees_less_than_its_tactic(self):
        self.refused({"src/kernels/cpu/gemm/gemm.cpp": '#include "ops/op.h"\n'}, "'kernels' may not include ops/op.h")

    def test_kinds_of_devices_are_known_in_their_own_folders_alone(self):
        families = {"src/device/families.def": "// devices\nLATHE_DEVICE(cpu)\nLATHE_DEVICE(cuda)\n",
                    "cmake/layers.txt": LAYERS + "device: base\nlowering: base device kernels\nworker: base device\n",
                    "src/device/cuda/family.h": "", "src/kernels/cpu/gemm/gemm.h": ""}
        for path in ("src/device/cuda/family.cpp", "src/worker/main.cpp"):
            self.assertEqual(check({**families, path: '#include "device/cuda/family.h"\n'})[0], 0)
        for header in ("device/cuda/family.h", "kernels/cpu/gemm/gemm.h"):
            self.refused({**families, "src/lowering/build.cpp": f'#include "{header}"\n'},
                         f"src/lowering/build.cpp: is for all devices and may not include {header}")

    def test_no_kind_of_devices_includes_another(self):
        families = {"src/device/families.def": "LATHE_DEVICE(cpu)\nLATHE_DEVICE(cuda)\n",
                    "cmake/layers.txt": LAYERS + "device: base\n", "src/kernels/resize.h": "",
                    "src/kernels/cuda/resize/resize.h": '#include "kernels/resize.h"\n'}
        self.assertEqual(check(families)[0], 0)
        for own, header in (("cuda", "kernels/cpu/gemm/gemm.h"), ("cpu", "kernels/cuda/resize/resize.h")):
            self.refused({**families, f"src/kernels/{own}/copy/copy_tactic.cpp": f'#include "{header}"\n'},
                         f"src/kernels/{own}/copy/copy_tactic.cpp: is for {own} and may not include {header}")

    def test_public_header_inside(self):
        self.refused({"src/ops/op.h": "#include <Public.h>\n"}, "'ops' may not include the public header Public.h")

    def test_folder_without_a_row(self):
        self.refused({"src/extra/extra.h": ""}, "no row of cmake/layers.txt covers")

    def test_circle_within_a_row(self):
        self.refused({"src/kernels/cpu/isa/isa.h": '#include "kernels/cpu/gemm/gemm.h"\n'}, "in a circle")

    def test_tools_see_only_public_headers(self):
        self.refused({"tools/cli/main.cpp": '#include "ops/op.h"\n'}, "only include/ may be seen here")
        self.refused({"tools/cli/main.cpp": '#include "../../src/ops/op.h"\n'}, "only include/ may be seen here")

    def test_folder_that_names_nothing(self):
        self.refused({"src/base/utils/x.h": ""}, "a folder's name must say what is in it")


if __name__ == "__main__":
    unittest.main()

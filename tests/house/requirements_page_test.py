#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/requirements.md names the tests that prove each promise; what they say is tools/requirements.py's, after a run."""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import requirements  # noqa: E402

NUMBERS = range(1, 187)


class RequirementsPage(unittest.TestCase):
    def test_the_page_is_what_tests_name(self):
        rows = re.findall(r"^\| S(\d+) \| (.*?) \| (.*?) \| (.*?) \|$", requirements.PAGE.read_text(), re.MULTILINE)
        told = {int(number): (what, [name for name in proofs.split(", ") if name]) for number, what, proofs, _ in rows}
        wanted = {number: (what, proofs) for number, (what, proofs, _) in requirements.mapping().items()}
        self.assertEqual(told, wanted, "run tools/requirements.py build/test_results --write")

    def test_every_number_is_there_once(self):
        lines = [line for line in requirements.TABLE.read_text().splitlines() if not line.startswith("#")]
        numbers = [int(line.split(" ")[0][1:]) for line in lines]
        self.assertEqual(numbers[:len(NUMBERS)], list(NUMBERS))
        self.assertEqual(numbers, sorted(set(numbers)), "later ones are there where something proves them")

    def test_no_number_points_at_nothing(self):
        promised, found = requirements.promises(), requirements.ties()
        self.assertEqual(set(found) - set(promised), set(), "named by tests, and not promised")
        for number, (_, why) in promised.items():
            if found[number]:
                self.assertRegex(why, r"^(in part: .+)?$", f"S{number} is proven")
            else:
                self.assertRegex(why, r"^(needs|not done:) .+", f"nothing proves S{number}, and nothing says why")

    def test_ties_are_found(self):
        for text, pattern, wanted in (("// N59: so.\nTEST_F(A, B) {\n  // N60\n}\n", requirements.CPP_TEST, [59, 60]),
                                      ("    # N61.\n    def test_it(self):\n        pass  # N62\n",
                                       requirements.PYTHON_TEST, [61, 62])):
            self.assertEqual(requirements.numbers(pattern.findall(text.replace("N", "S"))[0]), wanted)

    # S73.
    def test_pages_that_load_plans_speak_of_trust(self):
        for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
            text = path.read_text()
            if path.name not in ("api_support.md", "operating.md", "trust.md") and "deserializeCudaEngine(" in text:
                self.assertRegex(text, r"operating\.md#plans-and-trust|trust\.md", path.name)

    # S73.
    def test_every_function_that_loads_plans_points_to_what_is_said_of_trust(self):
        found = 0
        for path in sorted((ROOT / "include").rglob("*.h")):
            for comment, name in re.findall(r"((?:^ *//[^\n]*\n)+)[^\n;{}]*ICudaEngine\* (deserializeCudaEngine|loadEngineFile)\(",
                                            path.read_text(), re.MULTILINE):
                self.assertIn("docs/trust.md", comment, f"{path.name}: {name}")
                found += 1
        self.assertEqual(found, 4)

    # S86.
    def test_nothing_resets_a_device(self):
        for path in sorted((ROOT / "src").rglob("*")):
            if path.is_file():
                self.assertNotRegex(path.read_text(errors="replace"), r"\bcuDevicePrimaryCtxReset", path.name)


if __name__ == "__main__":
    unittest.main()

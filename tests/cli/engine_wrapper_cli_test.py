#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What docs/engine_wrapper.md tells to type: an engine that becomes a record, and is made of it again."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"]).resolve()


class EngineWrapperPage(unittest.TestCase):
    # S206: what can be seen from outside: an answer, and the same from what was stored. S208, S217.
    def test_the_program_of_the_page(self):
        page = (ROOT / "docs/engine_wrapper.md").read_text()
        commands = re.search(r"```sh\n(.*?)```", page, re.DOTALL)[1].strip().splitlines()
        said = []
        with tempfile.TemporaryDirectory() as folder:
            for command in commands:
                program, *words = command.split()
                words = [str(ROOT / word) if word.startswith("examples/") else word for word in words]
                done = subprocess.run([BUILD / program.removeprefix("build/"), *words], capture_output=True, text=True,
                                      cwd=folder)
                self.assertEqual(done.returncode, 0, done.stderr)
                said.append(done.stdout.splitlines())
        self.assertEqual([lines[0] for lines in said], ["from the model: digit: 7", "from the record: digit: 7"])
        self.assertEqual(said[0][1:], said[1][1:])
        self.assertEqual(len(said[0]), 17)
        slots = re.findall(r"^\| \d+(?:, \d+)? \| (.*?) \|", page, re.MULTILINE)
        named = [name for cell in slots for name in re.findall(r"`(\w+_IDX)`", cell)]
        self.assertEqual([line.split(":")[0] for line in said[0][1:]], named)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""What the headers mark as deprecated warns when it is used: functions by themselves, values when they are set."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HEADERS = sorted((ROOT / "include").rglob("*.h"))
# What applications implement, and objects of no application's.
THEIRS = {"IGpuAllocator", "IGpuAsyncAllocator", "IOutputAllocator"}
# Values of plugins' own, which name the class they are of, and a second name of kSTRIP_PLAN.
NO_SETTINGS = {"kV1", "kV2", "kV2_EXT", "kV2_IOEXT", "kV2_DYNAMICEXT", "kV1_PYTHON", "kV2_DYNAMICEXT_PYTHON", "kWEIGHTLESS"}


def functions():
    """(class, function) of each."""
    found = set()
    for header in HEADERS:
        owner = None
        for line in header.read_text().splitlines():
            if match := re.match(r"(?:class|struct) (?:TRT_DEPRECATED )?(\w+)[^;]*\{", line):
                owner = match[1]
            if match := re.match(r"\s+TRT_DEPRECATED (?:virtual )?[\w:*&<> ]*?(\w+)\(", line):
                found.add((owner, match[1]))
    return found


def rows(effect):
    """Names in the tables of settings."""
    text = "".join((ROOT / "src/api" / name).read_text() for name in ("settings.def", "settings_10_16.def"))
    return {(match[1], match[2]) for match in re.finditer(r"LATHE_(?:VALUE|SETTER)\((\w+), (\w+), (\w+)", text) if match[3] in effect}


class Deprecated(unittest.TestCase):
    # S9.
    def test_functions_warn(self):
        all_functions = functions()
        self.assertGreater(len(all_functions), 50)
        sources = "".join(path.read_text() for path in (ROOT / "src").rglob("*.cpp"))
        told = set(re.findall(r"Deprecation deprecation\(\s*\"(\w+)::(\w+)", sources))
        silent = rows({"no_effect", "refused"}) | {("ITensor", "setLocation")}  # by values; they say that they do nothing
        for owner, name in sorted(all_functions - told - silent):
            if owner in THEIRS:
                continue
            # What tells or takes back what another deprecated function has set, of which the warning came then.
            of = re.sub(r"^(get|reset)|IsSet$|^(set|clear)(?=QuantizationFlag$)", "", name)
            setter = "set" + {"getTensorsWithDynamicRange": "DynamicRange"}.get(name, re.sub(r"(Min|Max)$", "", of[0].upper() + of[1:]))
            answered = setter in (n for o, n in all_functions if o == owner) or setter + "s" in (n for o, n in all_functions if o == owner)
            self.assertTrue(answered or name == "hasImplicitBatchDimension", f"{owner}::{name} is deprecated and does not warn")

    # S9.
    def test_values_warn(self):
        values = {match[1] for header in HEADERS for match in re.finditer(r"^ +(\w+) TRT_DEPRECATED_ENUM", header.read_text(), re.MULTILINE)}
        self.assertGreater(len(values), 15)
        told = set(re.findall(r"^LATHE_DEPRECATED\(\w+, (\w+),", (ROOT / "src/api/deprecated_values.def").read_text(), re.MULTILINE))
        self.assertEqual(values - told - NO_SETTINGS - {name for _, name in rows({"refused"})}, set())
        self.assertLessEqual(told, values)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a test suite, or every N-th of its tests, and ends it when it has used up its processor time.

  limited.py [--seconds S] [--part I/N] [--results FILE] COMMAND...

The limit counts the processor time of the suite and of all that it starts, so that a busy machine makes no test fail:
one that waits for its turn spends nothing. Exit status 124 after the limit, else the suite's own. A part is dealt out
by GoogleTest's own sharding, and in Python suites by their list of tests; a part without any test fails. FILE gets what
each test said, in GoogleTest's XML.
"""
import argparse
import importlib.util
import os
import pathlib
import resource
import signal
import subprocess
import sys
import threading
import unittest
import xml.etree.ElementTree as ElementTree

TICKS = os.sysconf("SC_CLK_TCK")


def processes():
    """Parent and processor seconds of each process; those of children that it has waited for are among the latter."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()  # what follows the name
            except OSError:
                continue  # it has ended
            found[int(entry.name)] = int(fields[1]), sum(map(int, fields[11:15])) / TICKS
    return found


def family(root, table):
    """The process and all that descend from it."""
    members, before = {root}, 0
    while len(members) > before:
        before = len(members)
        members |= {pid for pid, (parent, _) in table.items() if parent in members}
    return members & table.keys()


def spent(root):
    table = processes()
    return sum(table[pid][1] for pid in family(root, table))


def kill_all(root):
    for pid in family(root, processes()):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def watch(child, seconds, ended, stopped):
    while not ended.wait(min(2, seconds / 4)):  # looking at every process takes as long as starting a small one
        used = spent(child.pid)
        if used > seconds:
            stopped.append(used)
            kill_all(child.pid)
            return


def run(command, seconds, environment):
    child = subprocess.Popen(command, env=environment)
    ended, stopped = threading.Event(), []
    watcher = threading.Thread(target=watch, args=(child, seconds, ended, stopped))
    watcher.start()
    status = child.wait()
    ended.set()
    watcher.join()
    if stopped:
        print(f"{pathlib.Path(command[0]).name}: stopped after {stopped[0]:.0f} s of processor time, its limit is "
              f"{seconds:g} s", flush=True)
        return 124
    if status < 0:  # end as it did, so that ctest names the signal; the core dump is its own
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


def tests_of(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_of(test)
        else:
            yield test


def write_results(path, suite, tests, result):
    root = ElementTree.Element("testsuites")
    cases = {}
    for test in tests:
        _, _, name = test.id().rpartition(".")
        cases[test.id()] = ElementTree.SubElement(root, "testcase", classname=suite, name=name)
    for kind, found in (("failure", result.failures), ("failure", result.errors), ("skipped", result.skipped)):
        for test, why in found:
            test = getattr(test, "test_case", test)  # of a sub-test
            if test.id() in cases:
                ElementTree.SubElement(cases[test.id()], kind, message=why)
    ElementTree.ElementTree(root).write(path)


def run_part_of_python(path, index, count, results):
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)  # where pickle finds its classes
    try:
        spec.loader.exec_module(module)
    except unittest.SkipTest as why:  # of what all of its tests need
        print(f"{path.name} is skipped: {why}")
        return 0
    tests = list(tests_of(unittest.defaultTestLoader.loadTestsFromModule(module)))[index::count]
    if not tests:
        sys.exit(f"{path.name}: part {index} of {count} has no tests")
    result = unittest.TextTestRunner(verbosity=2).run(unittest.TestSuite(tests))
    if results:
        write_results(results, path.stem, tests, result)
    return 0 if result.wasSuccessful() else 1


def part(text):
    index, count = map(int, text.split("/"))
    if not 0 <= index < count:
        raise ValueError(text)
    return index, count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--part", type=part, default=(0, 1), metavar="I/N", help="counted from 0")
    parser.add_argument("--results", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)  # a part of a Python suite, unlimited
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    command, (index, count), environment = arguments.command, arguments.part, dict(os.environ)
    if arguments.here:
        return run_part_of_python(pathlib.Path(command[-1]), index, count, arguments.results)
    if (count > 1 or arguments.results) and command[-1].endswith(".py"):
        results = [f"--results={arguments.results}"] if arguments.results else []
        command = [command[0], __file__, "--here", f"--part={index}/{count}", *results, command[-1]]
    elif count > 1:
        environment |= {"GTEST_SHARD_INDEX": str(index), "GTEST_TOTAL_SHARDS": str(count)}
    if arguments.results:
        environment["GTEST_OUTPUT"] = f"xml:{arguments.results}"
    return run(command, arguments.seconds, environment)


if __name__ == "__main__":
    sys.exit(main())

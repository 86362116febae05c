#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs functions of a library with constants of theirs: they are compressed in its file, and unpacked to their own addresses before
the first is called.

  pack_code.py mark --compiler c++ --out marked.o object... --others object...
      makes one object file of the first, whose functions are in section lathe_packed; code of the others must not call them but
      by pointers that tables hold, which are not followed before they are there. So are texts and numbers that these functions alone read
  pack_code.py pack LIBRARY
      compresses that section of the library that was linked with it

Everything else of these objects stays where it is: tables with pointers, other constants and what unwinds, so that exceptions pass through packed
functions, and debuggers know them. Functions that other objects may define as well (inline ones, templates) are not packed, for
the linker keeps one of each. What is unpacked has no relocations: code that may lie at any address needs none. Calls have their targets
while it is compressed, so that those of one function are equal bytes. src/base/packed_code.cpp unpacks it.
"""
import argparse
import collections
import pathlib
import re
import struct
import subprocess
import tempfile

from deflate import deflated

PAGE, SECTION, AT_START, CALL = 4096, "lathe_packed", (".text.startup", ".text.exit"), 0xE8
PT_LOAD, PT_PHDR, PF_R, SHT_NOBITS, SHF_ALLOC = 1, 6, 4, 8, 2
HEADER, SEGMENT, SECTION_ROW = struct.Struct("<16s2HI3QI6H"), struct.Struct("<2I6Q"), struct.Struct("<2I4Q2I2Q")


def run(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def sections_of(path):
    """Number, name, type, size and flags of each."""
    for line in run("readelf", "-SW", path).splitlines():
        row = re.match(r"\s*\[\s*(\d+)\]\s+(\S+)\s+(\S+)\s+\w+\s+\w+\s+(\w+)\s+\w+\s+(\w+)\s", line)
        if row:
            yield int(row[1]), row[2], row[3], int(row[4], 16), row[5]


def own_functions(path):
    """Sections of functions that this object alone defines. None may run while the library is loaded."""
    for _, name, kind, size, flags in sections_of(path):
        if name.startswith((".init_array", ".fini_array", *AT_START)) and size:
            raise SystemExit(f"{path}: {name} is run before anything is unpacked")
        if kind == "PROGBITS" and flags == "AX" and name.startswith(".text"):
            yield name


def own_constants(path, functions):
    """Sections of texts and numbers that the code in these sections alone refers to."""
    sections = list(sections_of(path))
    by_number = {number: name for number, name, *_ in sections}
    times = collections.Counter(by_number.values())
    found = {name for _, name, kind, size, flags in sections if kind == "PROGBITS" and flags in ("A", "AM", "AMS") and size and
             name.startswith(".rodata") and times[name] == 1}
    holders = {}  # of symbols that are not seen elsewhere
    for line in run("readelf", "-sW", path).splitlines():
        words = line.split()
        if len(words) > 6 and words[6].isdigit():
            holders[int(words[0].rstrip(":"))] = by_number[int(words[6])]
            if words[4] != "LOCAL":
                found.discard(by_number[int(words[6])])
    where = ""
    for line in run("readelf", "-rW", path).splitlines():
        words = line.split()
        if line.startswith("Relocation section"):
            where = words[2].strip("'").removeprefix(".rela")
        elif re.match(r"[0-9a-f]{16} +[0-9a-f]{16} ", line):
            if where not in functions:
                found.discard(where)
                found.discard(holders.get(int(words[1][:8], 16)))
    return found


def names(kinds, path):
    return {line.split()[-1] for line in run("nm", path).splitlines() if line.split()[-2] in kinds}


def check_calls(objects, others):
    """What runs when the library is loaded may fill tables, and is not looked at. Programs call none that is packed, either."""
    packed = set().union(*(names("T", path) for path in objects))
    for path in objects:
        if exported := re.search(r"FUNC +GLOBAL +DEFAULT +\d+ (.*)", run("readelf", "-sW", path)):
            raise SystemExit(f"{path}: {exported[1]} is of the library's interface, and packed")
    for path in others:
        if path.suffix not in (".o", ".obj") or not packed & names("U", path):  # it may be a precompiled header
            continue
        section = ""
        for line in run("readelf", "-rW", path).splitlines():
            words = line.split()
            if line.startswith("Relocation section"):
                section = words[2].strip("'").removeprefix(".rela")
            elif len(words) > 4 and words[4] in packed and section.startswith(".text") and not section.startswith(AT_START):
                raise SystemExit(f"{path}: {section} calls {words[4]}, which is packed")


def mark(compiler, out, objects, others):
    check_calls(objects, others)
    with tempfile.TemporaryDirectory() as folder:
        renamed = []
        for i, path in enumerate(objects):
            renamed.append(pathlib.Path(folder) / f"{i}.o")
            words = pathlib.Path(folder) / "words"
            functions = set(own_functions(path))
            words.write_text("\n".join([f"--rename-section {name}={SECTION}" for name in sorted(functions)] + [
                f"--rename-section {name}={SECTION},alloc,load,readonly,code,contents" for name in sorted(own_constants(path, functions))]))
            run("objcopy", f"@{words}", path, renamed[-1])
        run(compiler, "-r", "-nostdlib", "-fuse-ld=bfd", "-o", out, *renamed)
        run("objcopy", "--set-section-alignment", f"{SECTION}={PAGE}", out)


def with_targets(code):
    """The four bytes behind each byte E8, a call's distance mostly, as the place in the section that is called, highest byte first."""
    result, at = bytearray(code), code.find(CALL)
    while 0 <= at <= len(code) - 5:
        distance, = struct.unpack_from("<I", code, at + 1)
        struct.pack_into(">I", result, at + 1, (at + 5 + distance) % (1 << 32))
        at = code.find(CALL, at + 5)
    return bytes(result)


class Library:
    def __init__(self, path):
        self.bytes = path.read_bytes()
        self.header = list(HEADER.unpack_from(self.bytes))
        self.segments = self.table(SEGMENT, self.header[5], self.header[10])
        self.sections = self.table(SECTION_ROW, self.header[6], self.header[12])
        names_at = self.sections[self.header[13]][4]
        self.names = [self.bytes[names_at + row[0]:self.bytes.index(0, names_at + row[0])].decode() for row in self.sections]

    def table(self, row, offset, count):
        return [list(row.unpack_from(self.bytes, offset + i * row.size)) for i in range(count)]

    def packed(self):
        """The library as it is to be: pages of the section that are not needed any more are cut out of the file."""
        section = self.sections[self.names.index(SECTION)]
        offset, address, size = section[4], section[3], section[5]
        code = self.bytes[offset:offset + size]
        content = deflated(with_targets(code))
        content += bytes(-len(content) % PAGE)
        holder = next(row for row in self.segments if row[0] == PT_LOAD and row[3] <= address < row[3] + row[6])
        if address % PAGE or offset % PAGE or holder[3] + holder[6] != address + size or self.segments[0][0] != PT_PHDR:
            raise SystemExit(f"{SECTION} does not end a segment: another linker, or another order of sections")
        cut = (size - len(content)) // PAGE * PAGE
        if cut <= 0:
            raise SystemExit(f"{SECTION} is too small to be packed")
        holder[5] = holder[6] = offset - holder[2]
        # What is written over must not be executed before, nor is it: a segment of its own, that is read alone. It takes the
        # place of the one that says where the table is, which programs have for themselves.
        place = self.segments.index(holder)
        self.segments = self.segments[1:place + 1] + [
            [PT_LOAD, PF_R, offset, address, address, len(content), size, PAGE]] + self.segments[place + 1:]
        section[2], section[5] = SHF_ALLOC, len(content)
        rest = [section[0], SHT_NOBITS, SHF_ALLOC, address + len(content), offset + len(content), size - len(content), 0, 0, 1, 0]
        self.sections.append(rest)
        for row, at in [(row, 2) for row in self.segments] + [(row, 4) for row in self.sections]:
            if row[at] > offset + len(content):
                row[at] -= cut
        left = bytes(size - len(content) - cut)
        return self.written(self.bytes[:offset] + content + left + self.bytes[offset + size:self.header[6]])

    def written(self, content):
        """With its tables: that of sections is the last in the file."""
        if self.header[6] + SECTION_ROW.size * self.header[12] != len(self.bytes):
            raise SystemExit("the table of sections is not the last in the file")
        result = bytearray(content + bytes(-len(content) % 8))
        self.header[6], self.header[12] = len(result), len(self.sections)
        for row in self.sections:
            result += SECTION_ROW.pack(*row)
        for i, row in enumerate(self.segments):
            SEGMENT.pack_into(result, self.header[5] + i * SEGMENT.size, *row)
        HEADER.pack_into(result, 0, *self.header)
        return bytes(result)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    marks = commands.add_parser("mark")
    marks.add_argument("--compiler", required=True)
    marks.add_argument("--out", type=pathlib.Path, required=True)
    marks.add_argument("objects", nargs="+", type=pathlib.Path)
    marks.add_argument("--others", nargs="+", type=pathlib.Path, default=[])
    commands.add_parser("pack").add_argument("library", type=pathlib.Path)
    options = parser.parse_args()
    if options.command == "mark":
        mark(options.compiler, options.out, options.objects, options.others)
    else:
        options.library.write_bytes(Library(options.library).packed())


if __name__ == "__main__":
    main()

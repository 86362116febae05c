#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tables for unwinding (.eh_frame) say what holds at calls, and nothing of other instructions, nor of functions that call none.

  trim_unwind.py --archive FILE.a                                 those of the objects in a static library
  trim_unwind.py --compiler c++ --out FILE.o object...            makes one object of several, and leaves them as they are
  trim_unwind.py --compiler c++ --out FILE.o --whole object...    the same of objects that g++ is to compile together (-flto)

Exceptions leave functions at calls alone. What compilers write tells how each push of a prologue and each pop of an epilogue
changes the stack, for who looks between them: that is a third of the table. A function without calls, jumps to others aside, is never
left by an exception, and needs no entry. Rules that are not understood stay as they are.
"""
import argparse
import pathlib
import re
import struct
import subprocess
import tempfile

# To code that is trimmed, of objects that hold none yet. Objects with code are trimmed before they are joined.
OPTIMISATION = ("-flto", "-flto-partition=none", "-flinker-output=nolto-rel", "-Oz", "-fPIC", "-ffunction-sections", "-fdata-sections")

RELA, SECTION = struct.Struct("<QQq"), struct.Struct("<2I4Q2I2Q")
ADVANCE, OFFSET, RESTORE = 0x40, 0x80, 0xC0
NOP, ADVANCE1, ADVANCE2, ADVANCE4, REMEMBER, RECALL, DEF_CFA, DEF_CFA_REGISTER, DEF_CFA_OFFSET = 0, 2, 3, 4, 10, 11, 12, 13, 14


def run(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def uleb(value):
    result = bytearray()
    while True:
        value, low = value >> 7, value & 127
        result.append(low | (128 if value else 0))
        if not value:
            return bytes(result)


class NotUnderstood(Exception):
    pass


class Rules:
    """The rows that a program of call frame instructions makes: (first address, (CFA's register, offset, saved registers))."""

    def __init__(self, first, state):
        self.rows, self.state, self.kept, self.at = [], state, [], 0
        self.begun = first

    def run(self, code):
        i = 0

        def number():
            nonlocal i
            value = shift = 0
            while True:
                byte = code[i]
                i += 1
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    return value

        while i < len(code):
            op, low = code[i] & 0xC0, code[i] & 0x3F
            i += 1
            register, offset, saved = self.state
            if op == ADVANCE:
                self.advance(low)
            elif op == OFFSET:
                self.state = register, offset, saved | {low: number()}
            elif op == RESTORE:
                self.state = register, offset, {key: value for key, value in saved.items() if key != low}
            elif low in (ADVANCE1, ADVANCE2, ADVANCE4):
                size = 1 << low - ADVANCE1
                self.advance(int.from_bytes(code[i:i + size], "little"))
                i += size
            elif low == REMEMBER:
                self.kept.append(self.state)
            elif low == RECALL:
                self.state = self.kept.pop()
            elif low == DEF_CFA:
                self.state = number(), number(), saved
            elif low == DEF_CFA_REGISTER:
                self.state = number(), offset, saved
            elif low == DEF_CFA_OFFSET:
                self.state = register, number(), saved
            elif low != NOP:
                raise NotUnderstood
        self.rows.append((self.at, self.state))
        return self.state

    def advance(self, by):
        self.rows.append((self.at, self.state))
        self.at += by

    def holding(self, address):
        return next(row for row in reversed(self.rows) if row[0] <= address)


def change(old, new):
    """Instructions from one state to another."""
    result = b""
    if old[0] != new[0]:
        result += bytes([DEF_CFA]) + uleb(new[0]) + uleb(new[1])
    elif old[1] != new[1]:
        result += bytes([DEF_CFA_OFFSET]) + uleb(new[1])
    for register, at in new[2].items():
        if old[2].get(register) != at:
            result += bytes([OFFSET | register]) + uleb(at)
    return result + bytes(RESTORE | register for register in old[2] if register not in new[2])


def advance(by):
    if by < 64:
        return bytes([ADVANCE | by])
    size = 1 if by < 1 << 8 else 2 if by < 1 << 16 else 4
    return bytes([ADVANCE1 + size.bit_length() - 1]) + by.to_bytes(size, "little")


def at_calls(first, code, calls):
    """The program that has at each call what `code` has there, after the state `first`."""
    rules = Rules(0, first)
    rules.run(code)
    result, now, at = b"", first, 0
    for call in calls:
        begin, state = rules.holding(call)
        if state != now:
            result += advance(begin - at) + change(now, state) if begin > at else change(now, state)
            now, at = state, max(begin, at)
    return result


class Object:
    def __init__(self, path):
        self.path, self.bytes = path, bytearray(path.read_bytes())
        if struct.unpack_from("<H", self.bytes, 18)[0] != 62:
            raise SystemExit(f"{path}: calls are known of code for x86-64 alone; build with -DLATHE_PACKED_KERNELS=OFF")
        self.sections_at, = struct.unpack_from("<Q", self.bytes, 40)
        count, names = struct.unpack_from("<2H", self.bytes, 60)
        self.rows = [list(SECTION.unpack_from(self.bytes, self.sections_at + i * SECTION.size)) for i in range(count)]
        at = self.rows[names][4]
        self.names = [self.bytes[at + row[0]:self.bytes.index(0, at + row[0])].decode() for row in self.rows]

    def content(self, index):
        return self.bytes[self.rows[index][4]:self.rows[index][4] + self.rows[index][5]]

    def put(self, index, content):
        self.bytes[self.rows[index][4]:self.rows[index][4] + len(content)] = content
        self.rows[index][5] = len(content)
        SECTION.pack_into(self.bytes, self.sections_at + index * SECTION.size, *self.rows[index])

    def calls(self):
        """Per section the addresses of calls."""
        result, calls = {}, []
        for line in run("objdump", "-dw", "--no-show-raw-insn", self.path).splitlines():
            if line.startswith("Disassembly of section "):
                calls = result.setdefault(line[23:].rstrip(":"), [])
            elif match := re.match(r"\s*([0-9a-f]+):\s+(?:[\w.]+ )*call", line):
                calls.append(int(match[1], 16))
        return result

    def trim(self):
        if ".eh_frame" not in self.names or ".rela.eh_frame" not in self.names:
            return
        index, relocations = self.names.index(".eh_frame"), self.names.index(".rela.eh_frame")
        table = self.content(index)
        rela = sorted(RELA.iter_unpack(self.content(relocations)))
        symbols = self.rows[self.rows[relocations][6]]
        calls = self.calls()
        result, moved, states, at, next_rela, places = bytearray(), [], {}, 0, 0, {}
        while at < len(table):
            size, = struct.unpack_from("<I", table, at)
            if size in (0, 0xFFFFFFFF):
                raise SystemExit(f"{self.path}: .eh_frame has an entry of length {size:#x}")
            entry, id_at = table[at:at + 4 + size], at + 4
            mine = []
            while next_rela < len(rela) and rela[next_rela][0] < at + 4 + size:
                mine.append(rela[next_rela])
                next_rela += 1
            back, = struct.unpack_from("<I", table, id_at)
            places[at] = len(result)
            if back == 0:
                states[at] = self.common(entry)
            elif entry := self.trimmed(entry, states[id_at - back], mine, symbols, calls):
                struct.pack_into("<I", entry, 4, len(result) + 4 - places[id_at - back])
            if entry:
                moved += [(row[0] - at + len(result), *row[1:]) for row in mine]
                result += entry
            at += 4 + size
        self.put(index, result)
        self.put(relocations, b"".join(RELA.pack(*row) for row in moved))

    def common(self, entry):
        """(state at the start of functions, bytes of an FDE before its augmentation's length) of a CIE."""
        text = entry[9:entry.index(0, 9)].decode()
        if not text.startswith("z"):
            return None
        i = 9 + len(text) + 1 + 3  # factors of code and data, and the return address, have a byte each
        if entry[i - 3:i] != b"\x01\x78\x10":
            return None
        i += 1 + entry[i]
        try:
            return Rules(0, (None, 0, {})).run(entry[i:])
        except NotUnderstood:
            return None

    def trimmed(self, entry, state, relocations, symbols, calls):
        """An FDE that says no more than is needed; none for a function without calls."""
        _, info, addend = relocations[0]
        section, value = struct.unpack_from("<H", self.bytes, symbols[4] + (info >> 32) * 24 + 6)[0], struct.unpack_from(
            "<Q", self.bytes, symbols[4] + (info >> 32) * 24 + 8)[0]
        size, = struct.unpack_from("<I", entry, 12)
        begin = value + addend
        inside = [call - begin for call in calls.get(self.names[section], []) if begin <= call < begin + size]
        code_at = 17 + entry[16]
        if not inside:
            return None
        if state is None or entry[16] > 127:
            return entry
        try:
            result = entry[:code_at] + at_calls(state, bytes(entry[code_at:]), inside)
        except NotUnderstood:
            return entry
        struct.pack_into("<I", result, 0, len(result) - 4)
        return result if len(result) < len(entry) else entry


def members(archive):
    """Contents of the objects in a static library."""
    content, at = archive.read_bytes(), 8
    while at < len(content):
        name, size = content[at:at + 16].decode().strip(), int(content[at + 48:at + 58])
        if name not in ("/", "//"):
            yield content[at + 60:at + 60 + size]
        at += 60 + size + size % 2


def trim_file(path):
    made = Object(path)
    made.trim()
    path.write_bytes(made.bytes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--archive", type=pathlib.Path)
    parser.add_argument("--compiler")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("objects", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    if options.whole:
        run(options.compiler, "-r", "-nostdlib", "-fuse-ld=bfd", *OPTIMISATION, "-o", options.out, *options.objects)
        return trim_file(options.out)
    given = members(options.archive) if options.archive else (path.read_bytes() for path in options.objects)
    with tempfile.TemporaryDirectory() as folder:
        copies = []
        for content in given:
            copies.append(pathlib.Path(folder) / f"{len(copies)}.o")
            copies[-1].write_bytes(content)
            trim_file(copies[-1])
        if options.archive:
            options.archive.unlink()
            run("ar", "qcs", options.archive, *copies)
        else:
            run(options.compiler, "-r", "-nostdlib", "-fuse-ld=bfd", "-o", options.out, *copies)


if __name__ == "__main__":
    main()

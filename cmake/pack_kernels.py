#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs the CPU kernels of each level: writes an object file that stands in for those of all levels in a library.

  pack_kernels.py --compiler c++ --out packed.o LEVEL=object,... LEVEL=object,...

A level's objects are linked to an image: bytes for consecutive pages, first those that are executed and read, then those that are
written. It is compressed, for one level alone is needed on a machine (src/kernels/cpu/packed_kernels.cpp maps it). The object file
has the images, and for each function that the levels have a jump to it, under its names in all of them: a process has one level.
What the kernels call is called by jumps, too, through a table that is filled when the image is mapped.
"""
import argparse
import pathlib
import re
import struct
import subprocess
import tempfile

from deflate import deflated

PAGE = 4096
R_X86_64_RELATIVE, PT_LOAD, SHT_RELA = 8, 1, 4
TABLES = ".section .data.rel.ro,\"aw\"\n.balign 8\n"


def run(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def without_level(name, level):
    return name.replace(f"3cpu{len(level)}{level}", "3cpu", 1)


def symbols(objects, level):
    """(functions that others may call, in an order that all levels have; names that are not defined)"""
    defined, missing = set(), set()
    for line in run("nm", *objects).splitlines():
        words = line.split()
        if words[-2:-1] == ["U"]:
            missing.add(words[-1])
        elif len(words) == 3 and words[1] == "T":
            defined.add(words[2])
    return (sorted(defined, key=lambda name: without_level(name, level)),
            sorted(missing - defined - {"_GLOBAL_OFFSET_TABLE_"}))


def jumps(names, table):
    """A function for each row: the names that it has, and where it goes."""
    lines = []
    for i, row in enumerate(names):
        for name in row:
            lines.append(f".globl {name}\n.hidden {name}\n.type {name}, @function\n{name}:")
        lines.append(f"movq {table}(%rip), %r11\njmp *{8 * i}(%r11)" if table else f"jmp *lathe_imports+{8 * i}(%rip)")
    return ".text\n" + "\n".join(lines) + "\n"


class Image:
    def __init__(self, compiler, folder, level, objects):
        self.level = level
        self.functions, self.missing = symbols(objects, level)
        source, linked = folder / f"{level}.s", folder / f"{level}.so"
        entries = "".join(f".quad {name}\n" for name in self.functions)
        source.write_text(jumps([[name] for name in self.missing], "") +
                          f".section .data\n.balign 8\n.globl lathe_imports, lathe_entries\n.hidden lathe_imports\n"
                          f"lathe_imports:\n.zero {8 * len(self.missing)}\nlathe_entries:\n{entries}"
                          ".section .note.GNU-stack,\"\",@progbits\n")
        # Nothing unwinds through kernels: they call no function of ours, and throw nothing.
        bare = [folder / f"{level}_{i}.o" for i in range(len(objects))]
        for path, copy in zip(objects, bare):
            run("objcopy", "--remove-section=.eh_frame", "--remove-section=.rela.eh_frame", path, copy)
        run(compiler, "-shared", "-nostdlib", "-fuse-ld=bfd", "-Wl,--gc-sections", "-Wl,-z,noseparate-code", "-Wl,-z,norelro",
            "-Wl,--build-id=none", "-Wl,--no-undefined", f"-Wl,-z,max-page-size={PAGE}", "-o", linked, source, *bare)
        self.read(linked)
        where = {line.split()[2]: int(line.split()[0], 16) for line in run("nm", linked).splitlines() if len(line.split()) == 3}
        self.entries, self.imports = where["lathe_entries"], where["lathe_imports"]

    def read(self, path):
        elf = path.read_bytes()
        segments_at, = struct.unpack_from("<Q", elf, 32)
        sections_at, = struct.unpack_from("<Q", elf, 40)
        size, count, section_size, sections = struct.unpack_from("<4H", elf, 54)
        image, self.executable = bytearray(), 0
        for i in range(count):
            kind, flags, offset, address, _, in_file, in_memory, _ = struct.unpack_from("<2I6Q", elf, segments_at + i * size)
            if kind != PT_LOAD:
                continue
            image.extend(bytes(address + in_memory - len(image)))
            image[address:address + in_file] = elf[offset:offset + in_file]
            if flags & 2:  # written: relocations and variables
                self.executable = self.executable or address // PAGE * PAGE
        self.places = []
        for i in range(sections):
            kind, _, _, offset, bytes_of = struct.unpack_from("<I4Q", elf, sections_at + i * section_size + 4)
            if kind != SHT_RELA:
                continue
            for at, info, addend in struct.iter_unpack("<2Qq", elf[offset:offset + bytes_of]):
                if info != R_X86_64_RELATIVE:
                    raise SystemExit(f"{path}: relocation {info & 0xffffffff} is none that the library can do")
                struct.pack_into("<q", image, at, addend)
                self.places.append(at)
        image.extend(bytes(-len(image) % PAGE))
        self.image = bytes(image)

    def packed(self):
        content = struct.pack(f"<{len(self.places)}I", *self.places) + self.image
        return deflated(content)


def assembly(images, folder):
    names = list(zip(*(image.functions for image in images)))
    for row in names:
        if len({without_level(name, image.level) for name, image in zip(row, images)}) != 1:
            raise SystemExit(f"the levels have different functions: {row}")
    if len({len(image.functions) for image in images}) != 1:
        raise SystemExit("a level has more functions than another")
    missing = sorted({name for image in images for name in image.missing})
    text = jumps(names, "lathe_kernel_entries")
    rows = ""
    for image in images:
        (folder / f"{image.level}.z").write_bytes(image.packed())
        imports = "".join(f".quad {name}\n" for name in image.missing)
        text += (f"{TABLES}imports_{image.level}:\n{imports}.section .rodata\n.balign 8\npacked_{image.level}:\n"
                 f".incbin \"{folder / image.level}.z\"\nend_{image.level}:\n")
        rows += (f".quad packed_{image.level}, end_{image.level}, imports_{image.level}\n.long {len(image.missing)}, "
                 f"{len(image.places)}, {len(image.image)}, {image.executable}, {image.entries}, {image.imports}\n")
    return (text + f"{TABLES}.globl lathe_packed_kernels\n.hidden lathe_packed_kernels\nlathe_packed_kernels:\n{rows}" +
            "".join(f".hidden {name}\n" for name in missing if name.startswith("_ZN5lathe")) +
            ".section .note.GNU-stack,\"\",@progbits\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("levels", nargs="+", metavar="LEVEL=object,...", help="in the order of IsaLevel")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        images = [Image(options.compiler, folder, level, objects.split(","))
                  for level, objects in (row.split("=", 1) for row in options.levels)]
        source = folder / "packed.s"
        source.write_text(assembly(images, folder))
        run(options.compiler, "-c", source, "-o", options.out)


if __name__ == "__main__":
    main()

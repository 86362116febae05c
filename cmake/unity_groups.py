#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Says which sources may be compiled together, as one translation unit: most of what a source costs is what its headers
instantiate, and sources of one folder share that.

Reads `target|path` of sources, one a line, and prints `group|path` for each that gets company; the others compile alone. Two
sources share a group only if that cannot change what either means: what one defines for itself (names in anonymous
namespaces, static functions, types, aliases, using declarations, macros) must not occur in the other by that name, nor be
declared by a header that only the other includes. So nobody needs to choose names with an eye on neighbours.
"""
import argparse
import functools
import itertools
import pathlib
import re
import sys

import cpp_text

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
MACRO = re.compile(r"^\s*#\s*define\s+(\w+)", re.MULTILINE)
UNDEFINED = re.compile(r"^\s*#\s*undef\s+(\w+)", re.MULTILINE)
# What a name stands before where it is declared; and words, unless they are members or qualified.
TYPE = re.compile(r"(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+(?:alignas\([^)]*\)\s*)?([\w:]+)")
USING = re.compile(r"using\s+(?:enum\s+)?(?:[\w:]*::)?(?P<name>\w+)|namespace\s+(?P<alias>\w+)\s*=\s*[\w:]+")
# Enumerators are names of the scope around them, but for those of an enum class.
ENUMERATORS = re.compile(r"enum\s+(?!class\b|struct\b)\w*\s*(?::[^{]*)?\{(.*)\}", re.DOTALL)
HIDDEN = re.compile(r"(?:inline\s+)?(?:static|constexpr|const|constinit)\b")
DECLARED = re.compile(r"(?<![\w:~])([A-Za-z_]\w*)\s*(?=[(\[={;]|$)")
QUALIFIED = re.compile(r"(?<!\w)(?<!\.)(?<!->)(?<!std::)[A-Za-z_]\w*")
CALLED = re.compile(r"(?<![\w.])(?<!->)(?<!std::)([a-z][a-z0-9_]*)\s*(?:[(<]|::)")
WORD = re.compile(r"(?<!\w)(?<!::)(?<!\.)(?<!->)[A-Za-z_]\w*")
NOT_NAMES = {"operator", "decltype", "requires", "alignas", "noexcept", "__attribute__", "sizeof", "default", "template",
             "const", "override", "final", "auto", "void", "bool", "char", "int", "float", "double", "size_t", "ptrdiff_t",
             *(f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)),
             *(f"{kind}TEST{suffix}" for kind in ("", "TYPED_") for suffix in ("", "_F", "_P")),
             "TYPED_TEST_SUITE", "INSTANTIATE_TEST_SUITE_P"}


KEYWORDS = {"class", "struct", "enum", "this", "true", "false", "nullptr"}


def using_name(statement):
    match = USING.fullmatch(statement)
    return match["name"] or match["alias"]


class Text:
    """What a file says at namespace scope."""

    def __init__(self, text):
        self.includes = INCLUDE.findall(text)
        # What is undefined again is no name of the file's: so are tables read, #define ROW(x) x, #include "rows.def".
        self.macros = set(MACRO.findall(text)) - set(UNDEFINED.findall(text))
        # A macro that is set before an #include may be meant for that header.
        includes = [match.start() for match in INCLUDE.finditer(text)]
        self.prepares_header = bool(includes) and any(match.start() < includes[-1] for match in MACRO.finditer(text)
                                                      if match.group(1) in self.macros)
        code = cpp_text.code_of(text)
        self.words = set(WORD.findall(code)) | set(re.findall(r"\w+", " ".join(cpp_text.DIRECTIVE.findall(text))))
        self.directives = set(re.findall(r"^using namespace [\w:]+", code, re.MULTILINE))
        self.named = set(CALLED.findall(code)) | {word for word in QUALIFIED.findall(code) if not word.islower()}
        self.own, self.declared, self.defined, self.usings = set(), set(), set(), set()
        self.functions = set()  # with a body, which another source may give the same function instead
        for declaration in cpp_text.declarations(code, into_classes=False):
            if declaration.has_body and "(" in declaration.head and "" not in declaration.scopes:
                self.functions.add((declaration.scopes, declaration.head))
            if (kind := TYPE.match(declaration.head)) and "{" in declaration.head:
                self.defined.add(kind.group(1))
            self._declare(re.sub(r"\{.*", "{", declaration.head, flags=re.DOTALL), "" in declaration.scopes)
            if enumeration := ENUMERATORS.match(declaration.head):
                names = set(re.findall(r"(?:^|,)\s*(\w+)", enumeration.group(1)))
                self.declared |= names
                self.own |= names
        self.own |= self.macros

    def _declare(self, statement, hidden):
        if statement.startswith(("using namespace", "static_assert")):
            return
        if USING.fullmatch(statement):
            self.usings.add(statement)
            self.own.add(using_name(statement))
            return
        hidden = hidden or HIDDEN.match(statement) is not None
        if kind := TYPE.match(statement):
            names, hidden = {kind.group(1)} if "::" not in kind.group(1) else set(), True
        elif alias := re.match(r"using\s+(\w+)\s*=", statement):
            names, hidden = {alias.group(1)}, True
        else:
            names = set(DECLARED.findall(statement)) - NOT_NAMES
        self.declared |= names
        if hidden:
            self.own |= names


class Tree:
    def __init__(self, roots):
        self.roots = roots
        self.declaring = {}  # {name: files read so far that declare it}

    @functools.cache
    def text(self, path):
        text = Text(path.read_text(errors="replace"))
        for name in text.declared:
            self.declaring.setdefault(name, set()).add(path)
        return text

    @functools.cache
    def includes(self, path):
        """Files of ours that `path` includes itself."""
        candidates = ((root / name for root in (path.parent, *self.roots)) for _, name in self.text(path).includes)
        found = (next((c for c in names if c.is_file()), None) for names in candidates)
        return frozenset(file for file in found if file)

    @functools.cache
    def headers(self, path):
        """All files of ours that `path` includes, directly or not."""
        seen, todo = set(), [path]
        while todo:
            for file in self.includes(todo.pop()):
                if file not in seen:
                    seen.add(file)
                    todo.append(file)
        return frozenset(seen)

    def changes_meaning(self, one, other):
        """Whether what `one` defines for itself would be seen where `other` means something else, or the reverse."""
        own, shared = self.text(one).own, self.text(one).usings & self.text(other).usings
        if shared:
            own = own - {using_name(using) for using in shared}
        if not own.isdisjoint(self.text(other).words):
            return True
        foreign = self.headers(other) - self.headers(one)  # which reads all of them
        return any(not foreign.isdisjoint(self.declaring.get(name, ())) for name in own)

    def may_share(self, one, other):
        return (self.text(one).directives == self.text(other).directives
                and not self.text(one).functions & self.text(other).functions
                and not self.changes_meaning(one, other) and not self.changes_meaning(other, one))

    def names(self, paths):
        """What these files of ours declare, and which types they define. Rows of tables declare nothing by themselves."""
        texts = [self.text(path) for path in paths if path.suffix != ".def"]
        return (set().union(*(text.declared | text.macros for text in texts)) - KEYWORDS,
                set().union(*(text.defined for text in texts)))

    def may_lack(self, path, others):
        """Whether `path` may compile only because these sources come before it: it mentions what their headers declare, or
        define, and its own do not. A name in small letters counts where it is called or qualifies; else it is some local's.
        What its own headers mention besides is taken for what they declare: a member, mostly, of that name."""
        own = self.headers(path) | {path}
        declared, defined = self.names(own)
        more_declared, more_defined = self.names(set().union(*(self.headers(other) | {other} for other in others)) - own)
        mentioned = set().union(declared, *(self.text(header).words for header in own - {path}))
        return bool(self.text(path).named & ((more_declared - mentioned) | (more_defined - defined)))

    def groups(self, paths, most):
        """Few groups: those with the most sources that they cannot share with choose first (Welsh and Powell's colouring)."""
        enemies = {path: set() for path in paths}
        for one, other in itertools.combinations(paths, 2):
            if not self.may_share(one, other):
                enemies[one].add(other)
                enemies[other].add(one)
        groups = []
        for path in sorted(paths, key=lambda path: (-len(enemies[path]), path)):
            group = next((g for g in groups if len(g) < most and not enemies[path].intersection(g)), None)
            if group is None:
                groups.append(group := [])
            group.append(path)
        return groups


def folder_of(path, roots):
    """Whose sources may be grouped with this one: src/ir, src/kernels/cuda; subfolders included."""
    parts = path.relative_to(next(root for root in roots if path.is_relative_to(root))).parts[:-1]
    return "_".join(parts[:2] if parts[0] in ("kernels", "device", "api") else parts[:1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, action="append", required=True, help="where names in #include start")
    parser.add_argument("--most", type=int, default=24, help="sources in a group")
    arguments = parser.parse_args()
    tree, pools = Tree(arguments.root), {}
    for target, name in sorted(line.rstrip("\n").split("|") for line in sys.stdin):
        path = pathlib.Path(name)
        if not tree.text(path).prepares_header:
            pools.setdefault((target, folder_of(path, arguments.root)), []).append(path)
    for (_, folder), paths in pools.items():
        number = 0
        for group in tree.groups(paths, arguments.most):
            if len(group) > 1:
                for path in sorted(group):
                    print(f"{folder}_{number}|{path}")
                number += 1


if __name__ == "__main__":
    main()

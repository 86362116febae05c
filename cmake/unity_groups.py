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
import hashlib
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
    """What a file says at namespace scope; the tables that it reads undefine these macros."""

    def __init__(self, text, undefined=frozenset()):
        self.includes = INCLUDE.findall(text)
        # What is undefined again is no name of the file's: so are tables read, #define ROW(x) x, #include "rows.def".
        self.undefined = set(UNDEFINED.findall(text))
        self.macros = set(MACRO.findall(text)) - self.undefined - undefined
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


DECLARES, MENTIONS = 0, 1


class Tree:
    def __init__(self, roots):
        self.roots = roots
        self.declaring, self.mentioning = {}, {}  # {name: files read so far that declare it, that mention it}
        self.files = {}  # one object for each: sets compare those by address, which is quicker

    @functools.cache
    def text(self, path):
        source = path.read_text(errors="replace")
        tables = (table for table in self.found(path, INCLUDE.findall(source)) if table.suffix == ".def")
        text = Text(source, set().union(*(self.text(table).undefined for table in tables)))
        for names, files in ((text.declared, self.declaring), (text.words, self.mentioning)):
            for name in names:
                files.setdefault(name, set()).add(path)
        return text

    def found(self, path, includes):
        """Files of ours among what `path` includes."""
        candidates = ((root / name for root in (path.parent, *self.roots)) for _, name in includes)
        found = (next((c for c in names if c.is_file()), None) for names in candidates)
        return frozenset(self.files.setdefault(file, file) for file in found if file)

    @functools.cache
    def includes(self, path):
        """Files of ours that `path` includes itself."""
        return self.found(path, self.text(path).includes)

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

    @functools.cache
    def claims(self, path, read):
        """Files that declare, and those that mention, what `path` defines for itself, but for its headers; of so many read."""
        assert read == len(self.files)
        return tuple(set().union(*(files.get(name, ()) for name in self.text(path).own)) - self.headers(path)
                     for files in (self.declaring, self.mentioning))

    def header_knows(self, other, one, which):
        """Whether a header of `other` that `one` lacks declares, or mentions, what `one` defines for itself."""
        if not (shared := self.text(one).usings & self.text(other).usings):
            return not self.headers(other).isdisjoint(self.claims(one, len(self.files))[which])
        files = (self.declaring, self.mentioning)[which]
        names = self.text(one).own - {using_name(using) for using in shared}
        foreign = self.headers(other) - self.headers(one)
        return any(not foreign.isdisjoint(files.get(name, ())) for name in names)

    def mentions(self, other, one):
        """Whether `other` itself mentions what `one` defines for itself."""
        own, shared = self.text(one).own, self.text(one).usings & self.text(other).usings
        own = own - {using_name(using) for using in shared} if shared else own
        return not own.isdisjoint(self.text(other).words)

    def are_apart(self, one, other):
        return (not self.text(one).functions.isdisjoint(self.text(other).functions)
                or self.header_knows(one, other, DECLARES) or self.header_knows(other, one, DECLARES))

    def may_share(self, one, other):
        """In whatever order."""
        return (self.text(one).directives == self.text(other).directives and not self.mentions(one, other)
                and not self.mentions(other, one) and not self.are_apart(one, other))

    def may_precede(self, one, other):
        """Whether what only reads them may find `one` before `other`: what `other` defines for itself comes too late for `one`."""
        return (self.text(one).directives <= self.text(other).directives and not self.text(other).prepares_header
                and not self.mentions(other, one) and not self.header_knows(other, one, MENTIONS)
                and not self.are_apart(one, other))

    @functools.cache
    def unexplained(self, path):
        """What the file mentions that its headers do not: neither declare nor mention, and do not define. A name in small
        letters counts where it is called or qualifies; else it is some local's. What headers mention is taken for what they
        declare: a member, mostly, of that name."""
        headers = [self.text(header) for header in self.headers(path)]
        text = self.text(path)
        mentioned = text.declared.union(text.macros, *(header.words | header.declared | header.macros for header in headers))
        return text.named - KEYWORDS - mentioned, text.named - text.defined.union(*(header.defined for header in headers))

    def may_lack(self, path, others):
        """Whether `path` may compile only because these sources come before it: it mentions what their headers declare, or
        define, and its own do not. Rows of tables declare nothing by themselves."""
        undeclared, undefined = self.unexplained(path)
        before = set().union(*(self.headers(other) | {other} for other in others)) - self.headers(path) - {path}
        texts = [self.text(file) for file in before if file.suffix != ".def"]
        return any(not undeclared.isdisjoint(text.declared) or not undeclared.isdisjoint(text.macros)
                   or not undefined.isdisjoint(text.defined) for text in texts)

    def groups(self, paths, most, may_precede=None):
        """Few groups, each in an order in which any may precede those after it: those with the most sources that they cannot
        share with choose first (Welsh and Powell's colouring)."""
        may_precede = may_precede or self.may_share
        for path in paths:
            self.headers(path)  # read now, for claims()
        orders = {(one, other) for one, other in itertools.permutations(paths, 2) if may_precede(one, other)}
        enemies = {path: {other for other in paths if not {(path, other), (other, path)} & orders} - {path} for path in paths}
        groups = []
        for path in sorted(paths, key=lambda path: (-len(enemies[path]), path)):
            for group in groups:
                begin = max((i + 1 for i, other in enumerate(group) if (path, other) not in orders), default=0)
                end = min((i for i, other in enumerate(group) if (other, path) not in orders), default=len(group))
                if begin <= end and len(group) < most:
                    group.insert(end, path)
                    break
            else:
                groups.append([path])
        return groups


def folder_of(path, roots):
    """Whose sources may be grouped with this one: src/ir, src/kernels/cuda; subfolders included."""
    parts = path.relative_to(next(root for root in roots if path.is_relative_to(root))).parts[:-1]
    return "_".join(parts[:2] if parts[0] in ("kernels", "device", "api") else parts[:1])


def digest_of(roots, words):
    """Of these words, this program and all sources below the roots."""
    here = pathlib.Path(__file__)
    files = (file for root in roots for file in root.rglob("*") if file.suffix in (".cpp", ".h", ".def", ".inc"))
    digest = hashlib.sha256(repr(words).encode())
    for file in (here, here.with_name("cpp_text.py"), *sorted(files)):
        digest.update(f"{file}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def rows_of(roots, most, lines):
    tree, pools, rows = Tree(roots), {}, []
    for target, name in sorted(line.split("|") for line in lines):
        path = pathlib.Path(name)
        if not tree.text(path).prepares_header:
            pools.setdefault((target, folder_of(path, roots)), []).append(path)
    for (_, folder), paths in pools.items():
        groups = [group for group in tree.groups(paths, most) if len(group) > 1]
        rows += [f"{folder}_{number}|{path}" for number, group in enumerate(groups) for path in sorted(group)]
    return "".join(f"{row}\n" for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, action="append", required=True, help="where names in #include start")
    parser.add_argument("--most", type=int, default=24, help="sources in a group")
    parser.add_argument("--kept", type=pathlib.Path, help="a file that keeps what is printed until a source changes")
    arguments = parser.parse_args()
    lines = sys.stdin.read().splitlines()
    digest = arguments.kept and digest_of(arguments.root, [arguments.most, lines])
    if digest and arguments.kept.is_file():
        kept, _, rows = arguments.kept.read_text().partition("\n")
        if kept == digest:
            sys.stdout.write(rows)
            return
    rows = rows_of(arguments.root, arguments.most, lines)
    sys.stdout.write(rows)
    if digest:
        arguments.kept.write_text(f"{digest}\n{rows}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""C++ source as text, for checks that need no compiler. The code builds and is formatted, which makes this simple."""
import dataclasses
import re

STRING_OR_COMMENT = re.compile(
    r'R"(?P<end>[^(\s]*)\(.*?\)(?P=end)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/',
    re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.)*", re.MULTILINE | re.DOTALL)
NAMESPACE = re.compile(r"(?:inline\s+)?namespace\b\s*(?P<name>[\w:]*)(?:\s+__attribute__\S+)?|extern\s+0")
CLASS = re.compile(r"(?:typedef\s+)?(?:class|struct|union)\b")
ACCESS = re.compile(r"(?:(?:public|private|protected)\s*:\s*)+")
# After a block, what says that the statement goes on: `int a{1}, b;`, `X::X() : a{1} {`.
CONTINUES = re.compile(r"[ \t]*[;,)\w=({.]")


@dataclasses.dataclass
class Declaration:
    head: str  # what stands before the body, or before the semicolon
    begin: int
    end: int
    scopes: tuple  # names of the namespaces around it, "" for an anonymous one, None for a class
    has_body: bool


def _blank(match):
    text = match.group()
    return (" " if text.startswith("/") else "0") + "\n" * text.count("\n")


def code_of(text):
    """The text without comments and directives, with 0 for each literal; lines keep their numbers."""
    return DIRECTIVE.sub(lambda match: "\n" * match.group().count("\n"), STRING_OR_COMMENT.sub(_blank, text))


def end_of_block(code, position):
    """The place after the brace that closes the one before `position`."""
    depth = 1
    for match in re.compile(r"[{}]").finditer(code, position):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return match.end()
    return len(code)


def without_template_head(statement):
    """The declaration after `template <...>`, of which there may be several."""
    while match := re.match(r"template\s*<", statement):
        depth, end = 1, match.end()
        while depth and end < len(statement):
            depth += {"<": 1, ">": -1}.get(statement[end], 0)
            end += 1
        statement = statement[end:].strip()
    return statement


def declarations(code, into_classes):
    """What is declared at namespace scope, and in classes if asked for. Bodies of functions are stepped over."""
    scopes, begin, position, token = [], 0, 0, re.compile(r"[{};]")
    while match := token.search(code, position):
        position = match.end()
        statement = code[begin:match.start()]
        begin += len(statement) - len(statement.lstrip())
        if access := ACCESS.match(code, begin):
            begin = access.end()
        head = without_template_head(code[begin:match.start()].strip())
        if match.group() == "}":
            if scopes:
                scopes.pop()
        elif match.group() == ";":
            if head:
                yield Declaration(head, begin, position, tuple(scopes), False)
        elif namespace := NAMESPACE.fullmatch(head):
            scopes.append(namespace["name"] or "")
        elif into_classes and CLASS.match(head):
            scopes.append(None)
        else:
            position = end_of_block(code, position)
            if CONTINUES.match(code, position):
                continue
            yield Declaration(head, begin, position, tuple(scopes), True)
        begin = position

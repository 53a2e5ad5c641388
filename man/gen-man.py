#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Make one section 3 page per public function from the docstrings in rcclx.h.

usage: gen-man.py [--strict] rcclx.h OUTDIR   write the pages
       gen-man.py --list rcclx.h              print the names of the functions

A docstring has a line "name() - what it does", lines "@arg: text", paragraphs, and the paragraphs
"Thread safety:", "Return:" and "Since:". With --strict a docstring that lacks one of these, or an
argument of the function, is an error; so is a public function without a docstring.
"""
import os
import re
import sys

DOC = re.compile(r"/\*\*\n(.*?)\n \*/\n(RCCLX_API .*?;)", re.S)
HEAD = re.compile(r"^(rcclx_\w+)\(\) - (.*)$")
LABEL = re.compile(r"^(Thread safety(?:, Return)?|Return|Since): *(.*)$")
TITLES = {
    "Thread safety": "THREAD SAFETY",
    "Return": "RETURN VALUES",
    "Since": "HISTORY",
    "Thread safety, Return": "THREAD SAFETY AND RETURN VALUES",
}


def parse(header):
    """Yield (name, brief, args, paragraphs, labels, prototype) for each documented function."""
    with open(header, encoding="utf-8") as f:
        text = f.read()
    for body, prototype in DOC.findall(text):
        lines = [re.sub(r"^ \* ?", "", line) for line in body.split("\n")]
        head = HEAD.match(lines[0])
        if not head:
            sys.exit(f"{header}: docstring does not start with 'name() - text': {lines[0]}")
        args, paragraphs, labels = [], [[]], []
        into = None
        for line in lines[1:]:
            arg = re.match(r"^@(\w+): *(.*)$", line)
            label = LABEL.match(line)
            if arg:
                into = [arg.group(2)]
                args.append((arg.group(1), into))
            elif label:
                into = [label.group(2)]
                labels.append((label.group(1), into))
            elif not line.strip():
                into = None
                paragraphs.append([])
            elif into is not None and line.startswith(" "):
                into.append(line.strip())
            else:
                into = None
                paragraphs[-1].append(line)
        yield head.group(1), head.group(2), args, [p for p in paragraphs if p], labels, prototype


def complaints(header):
    """What is wrong with docstrings, one sentence each."""
    with open(header, encoding="utf-8") as f:
        declared = re.findall(r"^RCCLX_API [^(]*?(\w+)\(", f.read(), re.M)
    documented = set()
    for name, _, args, _, labels, prototype in parse(header):
        documented.add(name)
        if not re.search(rf"\b{name}\(", prototype):
            yield f"{name}: stands above another function: {prototype}"
        have = ", ".join(label for label, _ in labels)
        for label in ("Thread safety", "Return", "Since"):
            if label not in have:
                yield f"{name}: no paragraph '{label}:'"
        described = {arg for arg, _ in args}
        if described:
            inside = prototype[prototype.index("(") + 1:prototype.rindex(")")]
            for arg in re.findall(r"(\w+)(?:,|$)", re.sub(r"\s+", " ", inside)):
                if arg != "void" and arg not in described:
                    yield f"{name}: argument {arg} is not described"
            for arg in sorted(described - set(re.findall(r"\w+", inside))):
                yield f"{name}: has no argument {arg}"
    for name in declared:
        if name not in documented:
            yield f"{name}: no docstring"


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = re.sub(r"@(\w+)", r"\\fI\1\\fR", text)
    return "\\&" + text if text.startswith((".", "'")) else text


def emit(lines):
    """Sentences on lines of their own, as man pages have them."""
    text = escape(" ".join(lines))
    return [s if not s.startswith((".", "'")) else "\\&" + s for s in re.split(r"(?<=\.) +(?=[A-Z])", text)]


def page(name, brief, args, paragraphs, labels, prototype):
    out = [
        f'.TH {name.upper()} 3 2026-12-01 rcclxd "RCCLX Programmer\'s Manual"',
        ".SH NAME",
        f"{name} \\- {escape(brief)}",
        ".SH SYNOPSIS",
        ".nf",
        ".B #include <rcclx.h>",
        ".PP",
    ]
    for line in prototype.replace("RCCLX_API ", "", 1).split("\n"):
        out.append(".B \"" + line.replace("\t", "    ").replace('"', '""').rstrip() + '"')
    out += [".fi", ".PP", "Link with \\fI\\-lrcclx\\fR.", ".SH DESCRIPTION"]
    for i, paragraph in enumerate(paragraphs):
        out += ([".PP"] if i else []) + emit(paragraph)
    if not paragraphs:
        out.append(escape(brief[0].upper() + brief[1:]) + ".")
    if args:
        out.append(".SH ARGUMENTS")
        for arg, text in args:
            out += [".TP", f".I {arg}"] + emit(text)
    for label, text in labels:
        out.append(f".SH {TITLES[label]}")
        out += emit(text)
    out += [".SH SEE ALSO", ".BR librcclx (3),", ".BR rcclxd (8)"]
    return "\n".join(out) + "\n"


def main():
    strict = "--strict" in sys.argv
    if strict:
        sys.argv.remove("--strict")
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    if sys.argv[1] == "--list":
        print("\n".join(name for name, *_ in parse(sys.argv[2])))
        return
    os.makedirs(sys.argv[2], exist_ok=True)
    for function in parse(sys.argv[1]):
        with open(os.path.join(sys.argv[2], function[0] + ".3"), "w", encoding="utf-8") as f:
            f.write(page(*function))
    if strict and (wrong := list(complaints(sys.argv[1]))):
        sys.exit("\n".join(f"{sys.argv[1]}: {line}" for line in wrong))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks a copy of the tree in each way that tree.py must catch."""
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from tree import Tree  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def append(text):
    return lambda path: path.write_text(path.read_text() + text)


def create(text="// SPDX-License-Identifier: Apache-2.0\n"):
    def write(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return write


def crowd(folder):
    for number in range(41):
        create("// SPDX-License-Identifier: Apache-2.0\n#pragma once\n")(folder / f"thing{number}.h")


BREAKS = [  # what, file, how, what the complaint says
    ("an upward include", "lockstep/base/text.cpp", append('#include "lockstep/spec/job.h"\n'), "which stands above it"),
    ("a room that uses a verb", "lockstep/base/text.cpp", append('#include "lockstep/verbs/verb.h"\n'), "verb"),
    ("a third-party header outside its door", "lockstep/base/text.cpp", append("#include <jpeglib.h>\n"),
     "third-party header <jpeglib.h> outside its door"),
    ("torch in a core room", "lockstep/spec/job.h", append("#include <ATen/core/Tensor.h>\n"), "outside its door"),
    ("a verb without a folder", "lockstep/verbs/verbs.def", append('VERB(fly, core, "x")\n'), "has no folder"),
    ("a folder without a verb", "lockstep/verbs/fly/command.cpp", create(), "has no row"),
    ("a verb that the front page leaves out", "README.md",
     lambda path: path.write_text(path.read_text().replace("| `doctor` |", "| doctor |")), "no table has a row of the verb"),
    ("a room outside the table", "lockstep/attic/x.h",
     create('// SPDX-License-Identifier: Apache-2.0\n#include "lockstep/base/text.h"\n'), "not in lockstep/ROOMS"),
    ("a verb that uses another", "lockstep/verbs/report/report.cpp",
     append('#include "lockstep/verbs/get/get.h"\n'), "the verb 'report' includes the verb 'get'"),
    ("a plug-in's header outside its door", "lockstep/step/step.cpp", append('#include "plugins/cuda/cuda_plugin.h"\n'),
     "plug-in header <plugins/cuda/cuda_plugin.h> outside its door"),
    ("a second level without a row", "lockstep/loader/attic/x.h",
     create("// SPDX-License-Identifier: Apache-2.0\n#pragma once\n"), "is a folder or a row alone"),
    ("a folder that nobody can look over", "lockstep/objective", crowd, "things in one folder"),
    ("a file without its test", "lockstep/base/orphan.cpp", create(), "no test beside it"),
    ("a junk-drawer name", "lockstep/base/string_utils.h", create(), "junk-drawer"),
    ("a command with a bare path", "lockstep/base/text.cpp", append('auto x = text("start over: rm -r ", path);\n'),
     "`rm -r` with words as they are"),
    ("a folder that is only looked at", "lockstep/base/text.cpp", append('auto x = text("is it there? ls ", path);\n'),
     "`ls` with words as they are"),
    ("the second path of a command", "lockstep/base/text.cpp",
     append('auto x = text("tar -xzf ", base::shell_path(file), " -C ", path);\n'), "` -C` with words as they are"),
    ("a right by its letter", "lockstep/base/text.cpp", append('auto x = text("ask for: chmod a+r ", path);\n'),
     "`chmod a+r` with words as they are"),
    ("a setting of somebody else's document", "lockstep/base/text.cpp", append('auto x = text("train it: --set ", key, value);\n'),
     "`--set` with words as they are"),
    ("quotes by hand", "lockstep/base/text.cpp", append("auto x = text(\" --set '\", change, \"'\");\n"),
     "`--set` with words as they are"),
    ("a name that another file of the room hides", "lockstep/base/text.cpp",
     append("namespace {\ndouble padded(int x) {\n  return x;\n}\n}  // namespace\n"),
     "'padded' is in an anonymous namespace of table.cpp too"),
    ("a function that another test of the room has", "lockstep/base/text_test.cpp",
     append("namespace {\nstd::string complaint(std::string_view it, const JsonLimits& bounds) {\n  return {};\n}\n}  // namespace\n"),
     "'complaint' is in an anonymous namespace of json_reading_test.cpp too"),
    ("a missing licence line", "lockstep/base/bare.h", create("#pragma once\n"), "no licence line"),
]


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        clean = pathlib.Path(folder) / "clean"
        for part in ("lockstep", "plugins", "tests"):
            if (ROOT / part).exists():
                shutil.copytree(ROOT / part, clean / part)
        shutil.copy(ROOT / "README.md", clean)
        baseline = set(Tree(clean).check())
        for number, (what, file, breaks, says) in enumerate(BREAKS):
            copy = pathlib.Path(folder) / str(number)
            shutil.copytree(clean, copy)
            breaks(copy / file)
            news = [w for w in Tree(copy).check() if w not in baseline]
            caught = any(says in complaint for complaint in news)
            failed += 0 if caught else 1
            print(f"{'caught' if caught else 'MISSED'}: {what}")
    print(f"tree_test: {len(BREAKS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

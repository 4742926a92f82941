#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the tree to its architecture: tree.py [ROOT]. Prints what is wrong with file and line, and the size per room.

lockstep/ROOMS gives the rooms in include order, their folders of a second level, their library and the doors of
third-party and plug-in headers; lockstep/verbs/verbs.def the verbs; tests/tree/exceptions.txt the files that need no test, each with its reason.
"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')
TORCH = ("ATen/", "c10/", "torch/")
# A declaration at the left margin inside an anonymous namespace: a type, or a function or constant with its name.
ANONYMOUS_TYPE = re.compile(r"(?:struct|class|enum class|enum|union) (\w+)(?:[^;]*$|.*\{.*\};$)")
ANONYMOUS_NAME = re.compile(r"[\w:<>,&* \[\]]*?(?:[\w>\]&*] |[&*])(\w+) ?[(={\[;]")
MOST_THINGS = 40  # of a folder: more are hard to look over
JUNK = re.compile(r"(^|_)(utils?|helpers?|common|misc|managers?|stuff|tools?)(_|\.|$)")
CXX = set("""algorithm any array atomic barrier bit bitset cassert cctype cerrno cfloat charconv chrono cinttypes climits
cmath compare complex concepts condition_variable coroutine csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib cstring
ctime deque exception execution filesystem fstream functional future initializer_list iomanip ios iosfwd iostream istream
iterator latch limits list map memory memory_resource mutex new numbers numeric optional ostream queue random ranges ratio
regex semaphore set shared_mutex span sstream stack stdexcept stop_token streambuf string string_view system_error thread
tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant vector version""".split())
POSIX = set("""dirent.h dlfcn.h fcntl.h ftw.h glob.h grp.h immintrin.h nmmintrin.h cpuid.h netdb.h poll.h pthread.h pwd.h
malloc.h sched.h setjmp.h signal.h spawn.h stdio.h stdlib.h string.h strings.h termios.h time.h unistd.h utime.h cxxabi.h link.h
x86intrin.h""".split())

# A command in a message, with what stands behind it: people paste it, so that must be quoted.
COMMAND = re.compile(
    r'''(\b(?:rm -r|cp -rL|ls(?: -ld?)?(?: --)?|df -[hi]|mkdir -p|tar -\w+|chmod [\w+=,-]+|curl -\w+|lockstep (?:eval|explain|get|plan|predict|'''
    r'''prep|report|store \w+|submit|train|tune|watch|workflow \w+)(?: --[a-z]+)?)| -C|--set) '?"(?:,|\s*\+|\s*<<)(?!\s*(?:base::|site::)?shell_)''')

# What a plug-in is there for; the MPI one is compiled by sites from its folder alone.
PLUGIN_DOORS = {"mpi": ("mpi.h", "mpi_plugin.h"), "cuda": ("ATen/", "c10/", "torch/library.h", "cuda_runtime_api.h", "cupti.h", "torch/csrc/distributed/c10d/"),
                "hdf5": ("hdf5.h",)}


def parameter_types(line):
    """Of a function whose declaration begins in this line, as far as it has them; None of what is no function."""
    found = re.search(r"\w ?\((.*?)(?:\)|$)", line)
    if not found or ANONYMOUS_TYPE.match(line):
        return None
    return tuple(re.sub(r"(?<=[\s&*>])\w+$", "", part.split("=")[0].strip()).strip() for part in found.group(1).split(","))


def is_platform(header):
    return header in CXX or header in POSIX or header.startswith(("sys/", "linux/", "bits/", "arpa/", "netinet/"))


class Tree:
    def __init__(self, root):
        self.root = root
        self.wrong = []
        self.rooms, self.library, self.doors = [], {}, {}
        self.folders = {}  # of a second level: room -> names
        for line in (root / "lockstep/ROOMS").read_text().splitlines():
            if line.strip() and not line.startswith("#"):
                folder, library, *doors = line.split()
                room, _, below = folder.partition("/")
                if below:
                    self.folders.setdefault(room, set()).add(below)
                    if library != self.library.get(room):
                        self.complain(root / "lockstep/ROOMS", 1, f"{folder} is not in the library of its room",
                                      "write it below the room's own row, with the same library")
                else:
                    self.rooms.append(room)
                    self.library[room] = library
                self.doors.setdefault(room, []).extend(doors)
        verbs = (root / "lockstep/verbs/verbs.def").read_text()
        self.verbs = dict(re.findall(r"^VERB\((\w+), (\w+),", verbs, re.M))
        self.exceptions = {}
        for line in (root / "tests/tree/exceptions.txt").read_text().splitlines():
            if line.strip() and not line.startswith("#"):
                name, _, reason = line.partition(" ")
                self.exceptions[name] = reason.strip()

    def complain(self, path, line, what, fix):
        self.wrong.append(f"{path.relative_to(self.root)}:{line}: {what}\n  fix: {fix}")

    def sources(self, *suffixes):
        for top in ("lockstep", "plugins"):
            for path in sorted((self.root / top).rglob("*")):
                if path.suffix in suffixes and path.is_file():
                    yield path

    def room_of(self, path):
        """('room', name), ('verb', name), or ('top', '') for main.cpp and the plug-ins."""
        parts = path.relative_to(self.root).parts
        if parts[0] == "plugins" or len(parts) == 2:
            return "top", parts[0]
        if parts[1] == "verbs":
            return "verb", parts[2] if len(parts) > 3 else ""
        return "room", parts[1]

    def check_rooms(self):
        folders = {p.name for p in (self.root / "lockstep").iterdir() if p.is_dir()} - {"verbs"}
        for name in sorted(folders - set(self.rooms)):
            self.complain(self.root / "lockstep" / name, 1, f"the room '{name}' is not in lockstep/ROOMS",
                          "add its row at the right height")
        for name in sorted(set(self.rooms) - folders):
            self.complain(self.root / "lockstep/ROOMS", 1, f"the room '{name}' has no folder", "remove its row")
        for name in sorted(set(self.rooms) & folders):
            below = {p.name for p in (self.root / "lockstep" / name).iterdir()
                     if p.is_dir() and any(s.suffix in (".h", ".cpp") for s in p.rglob("*"))}
            for folder in sorted(below ^ self.folders.get(name, set())):
                self.complain(self.root / "lockstep" / name / folder, 1, f"{name}/{folder} is a folder or a row alone",
                              "a folder of a second level has sources and a row in lockstep/ROOMS")

    def check_sizes(self):
        """A thing is x.h with x.cpp and x_test.cpp; what it reads in other languages counts too."""
        for folder in sorted({p.parent for p in (self.root / "lockstep").rglob("*") if p.is_file()}):
            things = {re.sub(r"(_test)?\.\w+$", "", p.name) for p in folder.iterdir() if p.is_file()}
            if len(things) > MOST_THINGS:
                self.complain(folder, 1, f"{len(things)} things in one folder, more than {MOST_THINGS}",
                              "give the room a second level, or part it")

    def check_verbs(self):
        table = self.root / "lockstep/verbs/verbs.def"
        folders = {p.name for p in (self.root / "lockstep/verbs").iterdir() if p.is_dir()}
        for name in sorted(set(self.verbs) - folders):
            self.complain(table, 1, f"the verb '{name}' has no folder", f"make lockstep/verbs/{name}/command.cpp")
        for name in sorted(folders - set(self.verbs)):
            self.complain(table, 1, f"the folder verbs/{name} has no row", "add VERB(...) to verbs.def")
        scenarios = "".join(p.read_text() for p in (self.root / "tests/scenarios").glob("*.txt"))
        for name in sorted(set(self.verbs) & folders):
            if not re.search(rf"\blockstep {name}\b", scenarios):
                self.complain(table, 1, f"no scenario runs `lockstep {name}`", "add one under tests/scenarios")
        page = self.root / "README.md"
        first_cells = "".join(re.findall(r"^\|([^|]*)\|", page.read_text(), re.M))
        for name in sorted(self.verbs):
            if f"`{name}`" not in first_cells:
                self.complain(page, 1, f"no table has a row of the verb '{name}'", "add one to the table of the verbs")

    def check_includes(self):
        for path in self.sources(".h", ".cpp"):
            kind, room = self.room_of(path)
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                found = INCLUDE.match(line)
                if not found:
                    continue
                header = found.group(2)
                if header.startswith("lockstep/"):
                    self.check_own(path, number, kind, room, header)
                elif not is_platform(header):
                    self.check_foreign(path, number, kind, room, header)

    def check_own(self, path, number, kind, room, header):
        parts = header.split("/")
        if not (self.root / header).exists():
            self.complain(path, number, f"{header} does not exist", "correct the name")
        elif parts[1] == "verbs" and len(parts) > 3:
            if kind == "room":
                self.complain(path, number, f"the room '{room}' includes the verb '{parts[2]}'",
                              "nouns never use verbs: move what is shared down")
            elif kind == "verb" and parts[2] != room:
                self.complain(path, number, f"the verb '{room}' includes the verb '{parts[2]}'",
                              "move what both need into a room")
        elif kind == "room" and len(parts) > 2 and {room, parts[1]} <= set(self.rooms):
            if self.rooms.index(parts[1]) > self.rooms.index(room):
                self.complain(path, number, f"the room '{room}' includes '{parts[1]}', which stands above it",
                              "move the shared part down, or hand it in as an argument")
        elif kind == "room" and parts[1] == "verbs":
            self.complain(path, number, "a room includes the verb table", "nouns never use verbs")

    def check_foreign(self, path, number, kind, room, header):
        test = path.name.endswith("_test.cpp")
        if test and header.startswith(("gtest/", "gmock/")):
            return
        own = (f"plugins/{path.parent.name}/",)
        if kind == "top" and room == "plugins" and header.startswith(PLUGIN_DOORS.get(path.parent.name, ()) + own):
            return
        torch_ok = kind in ("room", "verb") and (self.library if kind == "room" else self.verbs).get(room) == "torch"
        if header.startswith(TORCH) and torch_ok:
            return
        for door in self.doors.get(room, []) if kind == "room" else []:
            name, _, file = door.partition(":")
            if name == header and path.name in (file, file.replace(".cpp", "_test.cpp")):
                return
        self.complain(path, number, f"{'plug-in' if header.startswith('plugins/') else 'third-party'} header <{header}> outside its door",
                      "include it in the door's file only (lockstep/ROOMS), or add the door there with a reason")

    def check_tests(self):
        for path in self.sources(".cpp"):
            name = path.relative_to(self.root).as_posix()
            if name.endswith("_test.cpp") or path.name == "command.cpp" or name.endswith("_command.cpp"):
                continue  # commands are tested by scenarios: check_verbs
            has_test = path.with_name(path.stem + "_test.cpp").exists()
            if not has_test and not self.exceptions.get(name):
                self.complain(path, 1, "no test beside it",
                              f"write {path.stem}_test.cpp, or list it with a reason in tests/tree/exceptions.txt")
            if has_test and name in self.exceptions:
                self.complain(path, 1, "has a test and an exception", "remove the row in tests/tree/exceptions.txt")
        for name in self.exceptions:
            if not (self.root / name).exists():
                self.complain(self.root / "tests/tree/exceptions.txt", 1, f"{name} does not exist", "remove the row")

    def check_anonymous(self):
        """A room is compiled as one unit, which makes its anonymous namespaces one: a second function of a name is an
        overload that calls in the other file may choose. Its tests are another unit; there a second one of the same
        parameters, which does not compile, is wrong alone."""
        first = {}
        for path in self.sources(".cpp"):
            if self.room_of(path)[0] == "top":
                continue
            is_test, inside = path.name.endswith("_test.cpp"), False
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                if line in ("namespace {", "}  // namespace"):
                    inside = line == "namespace {"
                elif inside and line[:1].isalpha() and not line.startswith(("using ", "template", "namespace ")):
                    found = ANONYMOUS_TYPE.match(line) or ANONYMOUS_NAME.match(line)
                    alike = (is_test, parameter_types(line) if is_test else None)
                    there = found and first.setdefault((path.parent, found.group(1), alike), path)
                    if found and there != path:
                        self.complain(path, number, f"'{found.group(1)}' is in an anonymous namespace of {there.name} too",
                                      "rename one: the room is compiled as one unit")

    def check_files(self):
        for path in self.sources(".h", ".cpp"):
            content = path.read_text(errors="replace")
            if JUNK.search(path.name):
                self.complain(path, 1, "a junk-drawer name", "name the file after its noun")
            if not content.startswith("// SPDX-License-Identifier: Apache-2.0\n"):
                self.complain(path, 1, "no licence line", "start with // SPDX-License-Identifier: Apache-2.0")
            if path.suffix == ".h" and "#pragma once" not in content:
                self.complain(path, 1, "no #pragma once", "add it below the licence line")
            if not content.isascii():
                bad = next(i for i, line in enumerate(content.splitlines(), 1) if not line.isascii())
                self.complain(path, bad, "not ASCII", "use an escape")

    def check_commands(self):
        for path in self.sources(".h", ".cpp"):
            if path.name.endswith("_test.cpp"):
                continue
            content = path.read_text(errors="replace")
            for found in COMMAND.finditer(content):
                self.complain(path, content.count("\n", 0, found.start()) + 1, f"`{found.group(1)}` with words as they are",
                              "quote them: base::shell_path(), base::shell_words()")

    def print_sizes(self):
        sizes = {}
        for path in self.sources(".h", ".cpp"):
            kind, room = self.room_of(path)
            key = room if kind != "verb" else f"verbs/{room}"
            lines, tests = sizes.get(key, (0, 0))
            count = len(path.read_text(errors="replace").splitlines())
            is_test = path.name.endswith("_test.cpp")
            sizes[key] = (lines + (0 if is_test else count), tests + (count if is_test else 0))
        print("  ".join(f"{room} {lines}+{tests}" for room, (lines, tests) in sorted(sizes.items())))
        print(f"lines (source + tests): {sum(s for s, _ in sizes.values())} + {sum(t for _, t in sizes.values())}")

    def check(self):
        self.check_rooms()
        self.check_sizes()
        self.check_verbs()
        self.check_includes()
        self.check_tests()
        self.check_anonymous()
        self.check_files()
        self.check_commands()
        return self.wrong


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent.parent).resolve()
    tree = Tree(root)
    wrong = tree.check()
    print("\n".join(wrong))
    tree.print_sizes()
    print(f"tree: {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

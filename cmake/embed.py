#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a C++ file that holds the given files: embed.py ROOT OUT FILE..."""
import pathlib
import sys

root, out, files = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sorted(sys.argv[3:])
rows = []
for name in files:
    data = pathlib.Path(name).read_bytes()
    literal = "".join(f"\\{byte:03o}" if byte < 32 or byte > 126 or byte in b'"\\?' else chr(byte) for byte in data)
    chunks = [literal[i:i + 4000] for i in range(0, len(literal), 4000)]
    # An octal escape cut in two would change meaning: cut only at its end.
    fixed, carry = [], ""
    for chunk in chunks:
        chunk = carry + chunk
        cut = chunk.rfind("\\", max(0, len(chunk) - 3))
        carry = chunk[cut:] if cut >= 0 else ""
        fixed.append(chunk[:cut] if cut >= 0 else chunk)
    fixed.append(carry)
    body = "\n".join(f'     "{part}"' for part in fixed if part) or '     ""'
    rows.append(f'    {{"{pathlib.Path(name).relative_to(root).as_posix()}", {len(data)},\n{body}}},')
out.parent.mkdir(parents=True, exist_ok=True)
out.write_text(f"""// Made by cmake/embed.py.
#include "lockstep/base/embedded.h"

namespace lockstep::base {{
namespace {{
struct Row {{
  const char* name;
  size_t size;
  const char* data;
}};
const Row kRows[] = {{
{chr(10).join(rows)}
    {{"", 0, ""}}}};
}}  // namespace

std::vector<Embedded> embedded_files() {{
  std::vector<Embedded> all;
  for (const Row& row : kRows) {{
    if (row.name[0] != 0) all.push_back({{row.name, {{row.data, row.size}}}});
  }}
  return all;
}}
}}  // namespace lockstep::base
""")

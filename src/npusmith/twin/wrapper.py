"""The translation unit that compiles a user's kernel file: prelude, the user's text, the way in.

The user's text stands in it unchanged but for the entry's name and what launchsyntax rewrites, and
`#line` makes every message and every finding name the user's file and line.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from npusmith.errors import Place, TwinError
from npusmith.ir.dtypes import DType
from npusmith.twin import accept, conditions, launchsyntax, opdef, scan, template, tiling
from npusmith.twin.project import Project

# The numbers behind ORIG_DTYPE_X and FORMAT_X, which kernels compare in #if (as in graph/types.h).
_TYPES = {
    "DT_FLOAT": 0,
    "DT_FLOAT16": 1,
    "DT_INT8": 2,
    "DT_INT32": 3,
    "DT_UINT8": 4,
    "DT_INT16": 6,
    "DT_UINT16": 7,
    "DT_UINT32": 8,
    "DT_INT64": 9,
    "DT_UINT64": 10,
    "DT_DOUBLE": 11,
    "DT_BOOL": 12,
    "DT_COMPLEX64": 16,
    "DT_COMPLEX128": 17,
    "DT_BF16": 27,
    "DT_INT4": 29,
    "DT_UINT1": 30,
    "DT_INT2": 31,
    "DT_COMPLEX32": 33,
    # of other chips; a name that #if does not know would be 0, which is DT_FLOAT
    "DT_HIFLOAT8": 34,
    "DT_FLOAT8_E5M2": 35,
    "DT_FLOAT8_E4M3FN": 36,
    "DT_FLOAT8_E8M0": 37,
    "DT_FLOAT6_E3M2": 38,
    "DT_FLOAT6_E2M3": 39,
    "DT_FLOAT4_E2M1": 40,
    "DT_FLOAT4_E1M2": 41,
}
_VISIBLE = '__attribute__((visibility("default")))'
ENTRY = "twin_entry"  # the function by which the runner enters an operator's kernel
_DEFAULT_TILING = re.compile(r"\bGET_TILING_DATA(?:_MEMBER)?\s*\(|\bTwinTilingDefault\b")
_ASSERT = re.compile(r"(\w+|\])(?=\s+ASSERT\s*\()")
_FORMATS = {
    "FORMAT_NCHW": 0,
    "FORMAT_NHWC": 1,
    "FORMAT_ND": 2,
    "FORMAT_NC1HWC0": 3,
    "FORMAT_FRACTAL_Z": 4,
    "FORMAT_NDHWC": 27,
    "FORMAT_FRACTAL_NZ": 29,
    "FORMAT_NCDHW": 30,
    "FORMAT_NDC1HWC0": 32,
    "FORMAT_FRACTAL_Z_3D": 33,
    "FORMAT_NCL": 47,
}


def type_number(dtype: DType) -> int:
    """The ge::DataType number of an element type."""
    return _TYPES[dtype.ge]


def kernel_unit(project: Project, dtypes: tuple[DType, ...]) -> str:
    """The whole translation unit for a project's kernel."""
    text = project.texts[project.kernel]
    parts = [
        '#line 1 "npusmith types"',
        *_type_macros(project.op, dtypes),
        *(f"#define {' '.join(text.split('=', 1))}" for text in project.kernel_defines),
        *_other_chips(project),
        '#line 1 "npusmith tiling"',
        *_tiling_prelude(project),
        _line(project.kernel),
        rename_entries(text, str(project.kernel), project.entry.name),
        '\n#line 1 "npusmith entry"',
        *_way_in(project, dtypes),
    ]
    return "\n".join(parts) + "\n"


def _other_chips(project: Project) -> list[str]:
    """Region proposals compile, each call a finding, where the OpDef names a chip with them."""
    hosts = (text for file, text in project.texts.items() if file in project.hosts)
    config = re.compile(r'\bAddConfig\s*\(\s*"ascend(?:310p|910)"')
    if not any(map(config.search, hosts)):
        return []
    flag = "RegionProposals"
    return [
        f"namespace twin {{ template <int> struct {flag}; template <> struct {flag}<0> {{}}; }}"
    ]


def file_unit(path: Path, text: str, *, direct: bool = False) -> str:
    """The translation unit for one source file by itself; DTYPE_ macros count as float.

    `direct`: it has host code that launches kernels, or could.
    """
    code = scan.blank(text)
    if re.search(r"\bGET_TILING_DATA\s*\(", code) and "REGISTER_TILING_DEFAULT" not in code:
        raise TwinError(
            "tiling-unknown",
            "GET_TILING_DATA needs the host's tiling class, which this file alone does not show",
            Place(str(path)),
        )
    lines = [f"#define {name} {number}" for name, number in (_TYPES | _FORMATS).items()]
    if direct or launchsyntax.has_launch(text):
        lines = ['#include "twin/direct.h"']  # a direct-launch file may use host headers: no macros
    for name in sorted(set(re.findall(r"\bDTYPE_(\w+)", code))):
        lines += [f"#define DTYPE_{name} float", f"#define ORIG_DTYPE_{name} DT_FLOAT"]
        lines += [f"#define FORMAT_{name} FORMAT_ND"]
    rewritten = launchsyntax.rewrite(accept.rewrite(text), str(path))
    return "\n".join(['#line 1 "npusmith types"', *lines, _line(path), rewritten]) + "\n"


def direct_unit(path: Path, text: str, function: str) -> str:
    """The unit of a direct-launch source, with a way in to its launcher function."""
    export = f'extern "C" {_VISIBLE}'
    lines = [
        '#line 1 "npusmith entry"',
        f"{export} const unsigned long twin_params = ::twin::LauncherOf(&{function}).kParams;",
        f"{export} void twin_direct(unsigned blocks, void **args) {{",
        f"  ::twin::LauncherOf(&{function}).Call(blocks, args);",
        "}",
    ]
    return file_unit(path, text, direct=True) + "\n".join(lines) + "\n"


def program_unit(path: Path, text: str, macros: tuple[str, ...] = ()) -> str:
    """The unit of a source with a main function of its own, with a way in to it.

    `macros`: NAME or NAME=VALUE, as behind -D.
    """
    export = f'extern "C" {_VISIBLE}'
    lines = [
        '#line 1 "npusmith entry"',
        f"{export} const unsigned long twin_params = 0;",
        f"{export} int twin_main(int count, char **arguments) {{",
        "  return ::twin::CallMain(&::main, count, arguments);",
        "}",
    ]
    return "\n".join([part_unit(path, text, macros), *lines]) + "\n"


def part_unit(path: Path, text: str, macros: tuple[str, ...] = (), *, direct: bool = True) -> str:
    """The unit of a source that is one of several of a program, or with `direct` false of one by
    itself."""
    defined = ['#line 1 "npusmith macros"', *map(_define, macros)]
    names = {macro.partition("=")[0] for macro in macros}
    if "HAVE_WORKSPACE" in names:
        text = launchsyntax.mark_workspaces(text, "HAVE_TILING" in names)
    return "\n".join([*defined, file_unit(path, text, direct=direct)])


def _define(macro: str) -> str:
    name, sign, value = macro.partition("=")
    return f"#define {name} {value if sign else 1}".replace("\n", " ")


def rename_entries(text: str, file: str = "", only: str = "") -> str:
    """Entries get a prefix: one called sqrt is not the C library's. Launches go.

    `only`: the one of this name; another one may be called by it.
    """
    for entry in reversed(scan.find_entries(conditions.active(scan.blank(text)))):
        if not entry.template and only in ("", entry.name):
            text = text[: entry.offset] + _renamed("") + text[entry.offset :]
    return launchsyntax.rewrite(accept.rewrite(close_statements(text)), file, drop=True)


def close_statements(text: str) -> str:
    """The semicolon that a published kernel leaves out before ASSERT, which is nothing on a chip:
    `uint32_t n = p.n ASSERT(n != 0)` must not read n before it has its value."""
    code = scan.blank(text)
    for match in reversed(list(_ASSERT.finditer(code))):
        if match.group(1) not in ("else", "do", "return"):
            text = text[: match.end(1)] + ";" + text[match.end(1) :]
    return text


def _renamed(name: str) -> str:
    return f"twin_kernel_{name}"


def _line(file: Path) -> str:
    return f"#line 1 {json.dumps(str(file))}"


def port_macros(op: opdef.OpText) -> list[str]:
    """The macro name of each port: upper case, and _REF for an output that shares an input."""
    names = [port.name.upper() for port in op.inputs]
    return names + [p.name.upper() + ("_REF" if op.is_ref(p) else "") for p in op.outputs]


def _type_macros(op: opdef.OpText, dtypes: tuple[DType, ...]) -> list[str]:
    if len(dtypes) != len(op.ports):
        raise TwinError(
            "dtypes-mismatch",
            f"{op.type} has {len(op.ports)} inputs and outputs, {len(dtypes)} types were given",
            seen=", ".join(port.name for port in op.ports),
        )
    lines = [f"#define {name} {number}" for name, number in (_TYPES | _FORMATS).items()]
    for name, dtype in zip(port_macros(op), dtypes, strict=True):
        lines.append(f"#define DTYPE_{name} {'bool' if dtype is DType.BOOL else dtype.cpp}")
        lines.append(f"#define ORIG_DTYPE_{name} {dtype.ge}")
        lines.append(f"#define FORMAT_{name} FORMAT_ND")
    return lines


def _macro_numbers(op: opdef.OpText, dtypes: tuple[DType, ...]) -> dict[str, int]:
    """The macros of `_type_macros` that are numbers."""
    numbers = {**_TYPES, **_FORMATS}
    for name, dtype in zip(port_macros(op), dtypes, strict=True):
        numbers[f"ORIG_DTYPE_{name}"] = type_number(dtype)
        numbers[f"FORMAT_{name}"] = _FORMATS["FORMAT_ND"]
    return numbers


def _tiling_prelude(project: Project) -> list[str]:
    """Kernel-side definitions of the host's macro classes that the kernel itself does not give."""
    check_tiling(project)
    both = {**project.kernel_structs, **project.structs}
    classes = {name: struct for name, struct in both.items() if struct.macro}
    plain = {name for name, struct in project.kernel_structs.items() if not struct.macro}
    lines = [tiling.emit_struct(struct) for struct in classes.values() if struct.name not in plain]
    default = project.structs.get(project.host_struct) or classes.get(project.host_struct)
    asks = any(_DEFAULT_TILING.search(text) for text in project.kernel_texts.values())
    if default is not None and default.macro and asks:
        if default.name in plain:
            lines.append(f"struct {default.name};")
        lines.append(f"using TwinTilingDefault = {default.name};")
    return lines


def check_tiling(project: Project) -> None:
    """TwinError tiling-mismatch when host and kernel lay the same data out differently."""
    host = project.structs.get(project.host_struct)
    kernel = project.kernel_structs.get(project.kernel_struct)
    if host is None or kernel is None:
        return
    said = tiling.differences(host, kernel)
    if said:
        raise TwinError(
            "tiling-mismatch",
            f"host struct {host.name} and kernel struct {kernel.name} differ",
            Place(str(kernel.file), kernel.line),
            seen="; ".join(said[:4]),
        )


def _template_way_in(project: Project, dtypes: tuple[DType, ...]) -> list[str]:
    """The instance whose values the tiling key encodes."""
    known = _macro_numbers(project.op, dtypes)
    texts = project.kernel_texts.values()
    code = "\n".join(conditions.active(scan.blank(text), known) for text in texts)
    instances = template.find_instances(code)
    names = [f"::{project.entry.name}<{', '.join(item.arguments)}>" for item in instances]
    export = f'extern "C" {_VISIBLE}'
    lines = [
        f"{export} const unsigned long twin_params = ::twin::CountParams({names[0]});",
        f"{export} void {ENTRY}(void **args) {{",
        *(f"  using namespace {name};" for name in template.namespaces(code)),
        "  ::twin::SetWorkspace(args[twin_params - 2]);",
    ]
    for name, item in zip(names, instances, strict=True):
        key = f"GET_TPL_TILING_KEY({', '.join(item.values)})"
        lines.append(
            f"  if (::twin::TilingKey() == {key}) return ::twin::EntryOf({name}).Call(args);"
        )
    unknown = '"ASCENDC_TPL_SEL has an instance for the tiling key", ""'
    lines.append(f'  ::twin::AssertFailed({{"GET_TPL_TILING_KEY", ::twin::Here()}}, {unknown});')
    return [*lines, "}"]


def _way_in(project: Project, dtypes: tuple[DType, ...]) -> list[str]:
    if project.entry.template:
        return _template_way_in(project, dtypes)
    name = f"::{_renamed(project.entry.name)}"
    export = f'extern "C" {_VISIBLE}'
    return [
        f"{export} const unsigned long twin_params = ::twin::CountParams({name});",
        f"{export} void {ENTRY}(void **args) {{",
        "  ::twin::SetWorkspace(args[twin_params - 2]);",
        f"  ::twin::EntryOf({name}).Call(args);",
        "}",
    ]

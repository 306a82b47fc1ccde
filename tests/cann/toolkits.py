"""A CANN toolkit of stub programs: they record how they were called and leave what is documented.

Nothing here compiles anything. What msopgen leaves is the tree of its manual (8.1): sources of its
own in op_host/ and op_kernel/, a framework plugin, CMakePresets.json, build.sh.
"""

from __future__ import annotations

from pathlib import Path

# What a package's installer does: --install-path=DIR gets vendors/customize.
INSTALLER = """#!/bin/bash
echo "installer $*" >> "$CALLS"
for word in "$@"; do case "$word" in --install-path=*) to="${word#*=}";; esac; done
mkdir -p "$to/vendors/customize/op_api/lib"
touch "$to/vendors/customize/op_api/lib/libcust_opapi.so"
"""
CMAKE = f"""#!/bin/bash
echo "cmake $*" >> "$CALLS"
[ "$1" = --build ] || exit 0
if [ -n "${{COMPILER_SAYS:-}}" ]; then echo "$COMPILER_SAYS" >&2; exit 2; fi
[ -n "${{NO_PACKAGE:-}}" ] && exit 0
cat > "$2/custom_opp_ubuntu_x86_64.run" <<'END'
{INSTALLER}END
chmod +x "$2/custom_opp_ubuntu_x86_64.run"
"""
MSOPGEN = """#!/bin/bash
echo "msopgen $*" >> "$CALLS"
while [ $# -gt 0 ]; do case "$1" in -out) out="$2";; esac; shift; done
mkdir -p "$out"/{op_host,op_kernel,framework/tf_plugin,cmake,scripts}
touch "$out"/op_host/{add_custom.cpp,add_custom_tiling.h,CMakeLists.txt}
touch "$out"/op_kernel/{add2_custom.cpp,CMakeLists.txt}
cat > "$out/CMakePresets.json" <<'END'
{
    "vendor_name": {
        "type": "STRING",
        "value": "customize"
    },
    "ASCEND_CANN_PACKAGE_PATH": {
        "type": "PATH",
        "value": "/usr/local/Ascend/latest"
    },
    "ASCEND_PYTHON_EXECUTABLE": {
        "type": "STRING",
        "value": "python3"
    }
}
END
cat > "$out/build.sh" <<'END'
#!/bin/bash
echo "build.sh $(ls -d op_host/* op_kernel/* framework 2>/dev/null | xargs)" >> "$CALLS"
mkdir -p build_out
cmake --build build_out
END
"""


def make_toolkit(root: Path, *, asc: bool = False, msopgen: bool = False) -> Path:
    """The folder of a toolkit; its programs lie in bin/, for PATH."""
    home = root / "cann"
    programs = home / "bin"
    programs.mkdir(parents=True)
    _program(programs / "cmake", CMAKE)
    if asc:
        modules = home / "compiler" / "tikcpp" / "ascendc_kernel_cmake" / "fwk_modules"
        modules.mkdir(parents=True)
        (modules / "func.cmake").write_text("function(npu_op_package target)\nendfunction()\n")
    if msopgen:
        tools = home / "python" / "site-packages" / "bin"
        tools.mkdir(parents=True)
        _program(tools / "msopgen", MSOPGEN)
    return home


def environment(home: Path | None, calls: Path, **more: str) -> dict[str, str]:
    """With this toolkit and no other one."""
    path = "/usr/bin:/bin" if home is None else f"{home / 'bin'}:/usr/bin:/bin"
    given = {"PATH": path, "HOME": str(calls.parent), "CALLS": str(calls)}
    return given | ({} if home is None else {"ASCEND_HOME_PATH": str(home)}) | more


def _program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)

# Recipes for daily work; `just` alone lists them.

default:
    @just --list

# Install for development; the constraint keeps torch on one version
install:
    PIP_CONSTRAINT=.ci/constraints.txt python -m pip install -e ".[test]"

# Run the tests
test *args:
    python -m pytest -n 2 {{args}}

# Lint, format and types
lint:
    ruff check .
    ruff format --check .
    mypy

# Mend what a tool can mend
format:
    ruff check --fix .
    ruff format .

# Lay out the C++ headers and the runtime
format-cpp:
    find src/npusmith/twin -name '*.h' -o -name '*.cpp' | xargs clang-format -i

# Say where the C++ layout differs
lint-cpp:
    find src/npusmith/twin -name '*.h' -o -name '*.cpp' | xargs clang-format --dry-run -Werror

# Write the generated pages of docs/
docs:
    npusmith docs

# The documentation as a site in build/site, with a search that needs no network: pip install -e ".[docs]"
docs-site:
    mkdocs build --strict

# The main job on an example
example name="softmax":
    npusmith generate examples/{{name}}.py

# All that must hold before a change lands
ci:
    .ci/run

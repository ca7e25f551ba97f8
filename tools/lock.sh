#!/bin/sh
# Renews requirements/*.lock from pyproject.toml, for Python 3.10 and newer on every platform.
# torch is left out (see [tool.uv]): which wheel is right depends on the machine.
set -eu
compile() { "${UV:-.venv/bin/uv}" pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-header --no-emit-package torch "$@"; }
compile requirements/build.in -o requirements/build.lock
compile pyproject.toml -o requirements/base.lock
compile pyproject.toml --extra dev --extra bench --extra embed --extra train --extra ray \
    --extra serve --extra experiments --extra lm --extra documents --extra lsp --extra mcp \
    -c requirements/base.lock -o requirements/dev.lock
compile pyproject.toml --extra docs -c requirements/base.lock -c requirements/dev.lock \
    -o requirements/docs.lock
sed -i.bak '/^ *# *-c requirements/d' requirements/*.lock
rm -f requirements/*.bak

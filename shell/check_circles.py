"""Refuse modules of the report's TypeScript that import each other in a circle: `make lint` runs this."""

import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

SOURCES = Path(__file__).parent.parent / "footprint" / "html" / "app" / "src"
IMPORT = re.compile(r'^(?:import|export)\b[^;]*?from "\./(\w+)"', re.MULTILINE)

imports = {path.stem: IMPORT.findall(path.read_text()) for path in SOURCES.glob("*.ts")}
try:
    TopologicalSorter(imports).prepare()
except CycleError as error:
    sys.exit(f"modules of {SOURCES.name} import each other: {' <- '.join(error.args[1])}")

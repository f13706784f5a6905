"""Makes the modules of this folder, and of the two that it builds on, importable by its tests."""

import sys
from pathlib import Path

for folder in ("mobile", "integration", "credential"):
    sys.path.insert(0, str(Path(__file__).parents[1] / folder))

"""Times `evaluate_all` of the public package on prefixes of one run: `reference.py STEPS.json LENGTH...`."""

import importlib.util
import json
import sys
import time
import types

# The package's __init__ imports an HTTP client; the suite needs no dependency, so it is loaded without it.
found = importlib.util.find_spec("reasonblocks")
package = types.ModuleType("reasonblocks")
package.__path__ = list(found.submodule_search_locations)
sys.modules["reasonblocks"] = package

from reasonblocks.monitors.suite import evaluate_all  # noqa: E402

with open(sys.argv[1], encoding="utf-8") as file:
    steps = json.load(file)
for length in map(int, sys.argv[2:]):
    fastest = float("inf")
    for _ in range(5):
        started = time.perf_counter()
        evaluate_all(steps[:length])
        fastest = min(fastest, time.perf_counter() - started)
    print(fastest)

"""Times the heuristic suite of the public package on prefixes of one run, whenever it is asked.

The first line of standard input holds the steps as a list. Each further line is a length; the answer is one line with
the seconds of one call on so many steps, and what the suite said.
"""

import importlib.util
import json
import sys
import time
import types

# The package's own __init__ imports an HTTP client; the suite needs nothing, so it is loaded without it.
found = importlib.util.find_spec("reasonblocks")
package = types.ModuleType("reasonblocks")
package.__path__ = list(found.submodule_search_locations)
sys.modules["reasonblocks"] = package

from reasonblocks.monitors.suite import evaluate_all  # noqa: E402

version = ".".join(str(part) for part in sys.version_info[:3])
steps = json.loads(sys.stdin.readline())
for line in sys.stdin:
    prefix = steps[: int(line)]
    begun = time.perf_counter()
    result = evaluate_all(prefix)
    seconds = time.perf_counter() - begun
    scores = [result["scores"][name] for name in result["weights"]]
    answer = {"python": version, "seconds": seconds, "scores": scores, "total": result["total"]}
    print(json.dumps(answer), flush=True)

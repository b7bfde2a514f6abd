"""Times the heuristic suite of the public package on prefixes of one run.

Reads {"steps": [...], "lengths": [...], "repeats": [...]} from standard input and prints, for each length, the
seconds of every call and what the suite said.
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

job = json.load(sys.stdin)
answers = []
for length, repeats in zip(job["lengths"], job["repeats"]):
    prefix = job["steps"][:length]
    evaluate_all(prefix)  # warm up
    seconds = []
    for _ in range(repeats):
        begun = time.perf_counter()
        result = evaluate_all(prefix)
        seconds.append(time.perf_counter() - begun)
    scores = [result["scores"][name] for name in result["weights"]]
    answers.append({"seconds": seconds, "scores": scores, "total": result["total"]})
version = ".".join(str(part) for part in sys.version_info[:3])
print(json.dumps({"python": version, "answers": answers}))

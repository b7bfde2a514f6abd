"""Evaluates pickled runs with the public package 0.1.0 and measures the time.

The `__init__` of the package needs an HTTP client; the suite does not, so it is loaded without it.
"""

import importlib.util
import pickle
import sys
import time
import types

found = importlib.util.find_spec("reasonblocks")
package = types.ModuleType("reasonblocks")
package.__path__ = list(found.submodule_search_locations)
sys.modules["reasonblocks"] = package

from reasonblocks.monitors.suite import evaluate_all  # noqa: E402


def evaluated(steps, options):
    try:
        return evaluate_all(steps, **options)
    except Exception as error:
        return type(error).__name__


cases, timed = pickle.load(sys.stdin.buffer)
results = [evaluated(steps, options) for steps, options in cases]
seconds = []
for steps in timed:
    best = float("inf")
    for _ in range(30):
        begun = time.perf_counter()
        evaluate_all(steps)
        best = min(best, time.perf_counter() - begun)
    seconds.append(best)
pickle.dump((results, seconds, sys.version_info[:2]), sys.stdout.buffer)

"""A minimal FastAPI server around the public 0.1.0 suite: what one would write without us."""

import importlib.util
import sys
import types

from fastapi import FastAPI, Request

# The package's own __init__ imports frameworks; the suite needs nothing, so it is loaded without them.
found = importlib.util.find_spec("reasonblocks")
package = types.ModuleType("reasonblocks")
package.__path__ = list(found.submodule_search_locations)
sys.modules["reasonblocks"] = package

from reasonblocks.monitors.suite import evaluate_all  # noqa: E402

app = FastAPI()


@app.get("/health")
def health():
    return {"status": "ok"}


@app.post("/monitors/evaluate")
async def evaluate(request: Request):
    body = await request.json()
    result = evaluate_all(body["steps"])
    return {
        "inject": bool(result["fired"]),
        "fired": result["fired"],
        "scores": result["scores"],
        "composite": result["total"],
    }

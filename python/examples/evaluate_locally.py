"""Evaluate recorded steps with the heuristic suite, without a server, a key or a framework."""

from reasonblocks.monitors.suite import DEFAULT_FIRE_THRESHOLD, DEFAULT_WEIGHTS, evaluate_all

steps = [
    {"step_index": 0, "action": "read_file", "thought": "Let me look at this", "observation": "..."},
    {"step_index": 1, "action": "read_file", "thought": "Hmm, not sure", "observation": "..."},
    {"step_index": 2, "action": "read_file", "thought": "Maybe I missed something", "observation": "..."},
]

result = evaluate_all(steps)
print("composite", result["total"], "fired", result["fired"], f"(at {DEFAULT_FIRE_THRESHOLD} or above)")
for name, score in result["scores"].items():
    print(f"{name:12} {score:.2f} x {DEFAULT_WEIGHTS[name]:.2f}")

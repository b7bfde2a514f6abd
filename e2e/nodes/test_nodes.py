"""Three nodes on one PostgreSQL decide as one node, and lose no acknowledged step."""

from __future__ import annotations

import http.client
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cluster import Link, Node, Postgres, Wire

NODES = 3
WRITERS = 6
STEPS = 40


def three(url: str, tmp_path: Path) -> list[Node]:
    """Starts all nodes at once on an empty database."""
    nodes = [Node(url, tmp_path / str(at)).spawn() for at in range(NODES)]
    return [node.ready() for node in nodes]


def scripted(index: int) -> dict:
    """A scripted agent that loops, doubts, claims to be done, and sometimes recovers."""
    if index == 0:
        return {"step_index": 0, "task": "Repair the parser", "model": "claude-sonnet-4", "task_profile": "coding"}
    kind = index % 10
    if kind < 6:
        thought, action, seen = "Let me run the tests again.", "bash", "1 failed: test_parser. Error: unexpected token"
    elif kind < 8:
        thought, action, seen = "Maybe the cache is broken, not sure, perhaps I am wrong.", "edit", "file written"
    elif kind == 8:
        thought, action, seen = "Done, everything works now.", "", ""
    else:
        thought, action, seen = f"A new idea, number {index}: the lexer drops a byte.", f"read_{index}", "def lex():"
    return {"step_index": index, "thought": thought, "action": action or None, "observation": seen,
            "action_input": {"cmd": f"pytest {index // 10}"}, "tokens": 100, "model": "claude-sonnet-4"}


def walked(reply: tuple[int, dict]) -> dict:
    status, body = reply
    assert status == 200, body
    return {name: value for name, value in body.items() if name not in ("run_id", "repeated")}


def test_run_on_random_nodes_equals_one_node(postgres: Postgres, tmp_path: Path) -> None:
    alone = Node("", tmp_path / "alone").start()
    nodes = three(postgres.database("steered"), tmp_path)
    choice = random.Random(7)
    steered = 0
    with ThreadPoolExecutor(4) as pool:
        for run in range(3):
            for index in range(STEPS):
                step = scripted(index)
                path = f"/v1/monitor/runs/run-{run}/walk"
                expected = walked(alone.call("POST", path, step))
                # Two nodes receive every step at once, as after a client timeout.
                posts = [pool.submit(node.call, "POST", path, step) for node in choice.sample(nodes, 2)]
                for post in posts:
                    assert walked(post.result()) == expected, f"step {index} of run {run}"
                steered += expected["decision"] == "steer"
            path = f"/v1/monitor/runs/run-{run}"
            (_, one), (_, many) = alone.call("GET", path), choice.choice(nodes).call("GET", path)
            injected = [[step["injections"] for step in reply["steps"]] for reply in (one, many)]
            assert injected[0] == injected[1]
    print(f"{3 * STEPS} steps on {NODES} nodes, {steered} of them steered, all as on one")
    assert steered > 3, "no guidance was decided"
    for node in [alone, *nodes]:
        node.stop()


def test_events_and_keys_reach_every_node_within_a_second(postgres: Postgres, tmp_path: Path) -> None:
    nodes = three(postgres.database("heard"), tmp_path)
    stream = http.client.HTTPConnection("127.0.0.1", nodes[2].port, timeout=10)
    stream.request("GET", "/v1/monitor/stream")
    reply = stream.getresponse()
    while b"ready" not in reply.fp.readline():
        pass
    time.sleep(1.5)  # wait for the subscription of the node
    for index, node in enumerate(nodes):
        begun = time.monotonic()
        step = {"step_index": index, "thought": "Look.", "action": "ls"}
        assert node.call("POST", "/v1/monitor/runs/seen/steps", step)[0] == 200
        while f'"step_index":{index}'.encode() not in reply.fp.readline():
            pass
        taken = time.monotonic() - begun
        print(f"a step stored by node {index} was seen at node 2 after {taken * 1000:.0f} ms")
        assert taken < 2
    stream.close()
    # The first key makes keys required on all nodes.
    status, reply = nodes[0].call("POST", "/v1/keys", {"name": "ci"})
    assert status in (200, 201), reply
    begun = time.monotonic()
    while any(node.call("GET", "/v1/monitor/runs")[0] != 401 for node in nodes):
        assert time.monotonic() - begun < 3, "a node did not receive the key"
        time.sleep(0.05)
    print(f"a key was known to every node after {(time.monotonic() - begun) * 1000:.0f} ms")
    for node in nodes:
        node.stop()


class Load:
    """Agents that send steps to any responding node and record the acknowledged ones."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self.answered: dict[str, list[int]] = {f"run-{writer}": [] for writer in range(WRITERS)}
        self.times: list[float] = []
        self.faults: list[str] = []
        self.is_over = threading.Event()
        self.threads = [threading.Thread(target=self.write, args=(run,)) for run in self.answered]
        for thread in self.threads:
            thread.start()

    def write(self, run: str) -> None:
        choice, index = random.Random(run), 0
        while not self.is_over.is_set():
            step = {"step_index": index, "thought": f"Step {index}. " + "x" * 500, "action": "ls", "observation": "a"}
            try:
                status, reply = choice.choice(self.nodes).call("POST", f"/v1/monitor/runs/{run}/steps", step)
            except (OSError, http.client.HTTPException):
                continue  # killed before it responded: send the step to another node
            if status == 200:
                self.answered[run].append(index)
                self.times.append(time.monotonic())
                index += 1
            elif status == 503:
                time.sleep(0.02)
            else:
                self.faults.append(f"{status}: {reply}")
                return

    def wait_for(self, steps: int, within_s: float = 60) -> float:
        """Returns the time until this many more steps are acknowledged."""
        begun, before = time.monotonic(), len(self.times)
        while len(self.times) < before + steps:
            assert time.monotonic() - begun < within_s, f"stuck; faults: {self.faults}"
            time.sleep(0.01)
        return time.monotonic() - begun

    def settled(self, within_s: float = 60) -> float:
        """Returns the time until all backlogs are empty."""
        begun = time.monotonic()
        while any(node.call("GET", "/health")[1].get("status") != "ok" for node in self.nodes):
            assert time.monotonic() - begun < within_s, "a backlog is not empty"
            time.sleep(0.02)
        return time.monotonic() - begun

    def end(self, reader: Node) -> int:
        self.is_over.set()
        for thread in self.threads:
            thread.join()
        assert not self.faults, self.faults
        self.settled()
        for run, indexes in self.answered.items():
            status, reply = reader.call("GET", f"/v1/monitor/runs/{run}")
            assert status == 200, reply
            stored = [step["step_index"] for step in reply["steps"]]
            assert stored == sorted(set(stored)), f"{run} is out of order"
            assert set(indexes) <= set(stored), f"{run} lost {sorted(set(indexes) - set(stored))}"
            # Every run can continue and finish.
            step = {"step_index": len(indexes) + 1, "thought": "Go on.", "action": "ls"}
            assert reader.call("POST", f"/v1/monitor/runs/{run}/steps", step)[0] == 200
            assert reader.call("POST", f"/v1/monitor/runs/{run}/finish", {"outcome": "success"})[0] == 200
        return len(self.times)


def test_killed_node_loses_no_step(postgres: Postgres, tmp_path: Path) -> None:
    nodes = three(postgres.database("node_killed"), tmp_path)
    load = Load(nodes)
    load.wait_for(50)
    nodes[1].kill()
    recovery = load.wait_for(5)
    nodes[1].start()
    load.wait_for(50)
    answered = load.end(nodes[1])
    print(f"a node killed: answered again after {recovery * 1000:.0f} ms; {answered} steps answered, none lost")
    for node in nodes:
        node.stop()


def test_steps_without_a_database_are_kept_in_the_backlog(postgres: Postgres, tmp_path: Path) -> None:
    nodes = three(postgres.database("database_killed"), tmp_path)
    load = Load(nodes)
    load.wait_for(50)
    postgres.kill()
    load.wait_for(50)  # continues without the database
    states = [node.call("GET", "/health") for node in nodes]
    assert [(status, reply["status"]) for status, reply in states] == [(200, "degraded")] * NODES, states
    assert "reasonblocks_store_away 1" in nodes[0].send("GET", "/metrics")[1].decode()
    # A run that starts now, on a node that is killed with a non-empty backlog.
    started = {"run_id": "begun without", "agent_name": "late"}
    assert nodes[1].call("POST", "/v1/monitor/runs", started)[0] == 201
    for index in range(5):
        step = {"step_index": index, "thought": f"Step {index}.", "action": "ls"}
        assert nodes[1].call("POST", "/v1/monitor/runs/begun%20without/steps", step)[0] == 200
    nodes[1].kill()
    postgres.start()
    begun = time.monotonic()
    nodes[1].start()
    recovery = load.settled()
    load.wait_for(50)
    answered = load.end(nodes[2])
    late = nodes[0].run("begun%20without", steps=5)
    assert late["agent_name"] == "late"
    print(f"database killed: steps were accepted without it; all nodes had written their backlog {recovery * 1000:.0f} ms "
          f"after it was back ({time.monotonic() - begun:.1f} s with a node that started again); "
          f"{answered} steps answered, none lost")
    for node in nodes:
        node.stop()


@pytest.mark.parametrize("how", ["namespace", "relay"])
def test_cut_network_loses_no_step(how: str, postgres: Postgres, tmp_path: Path) -> None:
    apart = None
    if how == "namespace":
        try:
            link = Link()
        except PermissionError as error:
            pytest.skip(f"no network of our own can be made here: {error}")
        apart = Postgres(link)
        url = apart.database("cut")
    else:
        link = Wire(postgres.port)
        url = postgres.database("cut").replace(f":{postgres.port}/", f":{link.port}/")
    nodes = three(url, tmp_path)
    load = Load(nodes)
    load.wait_for(50)
    link.cut()
    time.sleep(3.5)
    link.mend()
    recovery = load.wait_for(5)
    whole = load.settled()
    load.wait_for(50)
    answered = load.end(nodes[0])
    print(f"the network cut for 3.5 s ({how}): answered again {recovery * 1000:.0f} ms after it was restored, backlog written "
          f"after {(recovery + whole) * 1000:.0f} ms; {answered} steps answered, none lost")
    for node in nodes:
        node.stop()
    if apart:
        apart.stop()
        link.remove()

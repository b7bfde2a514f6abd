//! The `FastAPI` server beside ours.

use anyhow::Result;

use crate::bench::process::{Server, free_address};
use crate::python::Environment;

/// `FastAPI`, with the suite it serves.
const PEER: Environment = Environment {
    name: "bench-server",
    requirements: "xtask/src/bench/server/requirements.txt",
    pip: &[],
};

pub(super) fn fastapi() -> Result<Server> {
    let address = free_address()?;
    let mut command = PEER.module("uvicorn")?;
    command
        .args(["peer:app", "--app-dir", "xtask/src/bench/server", "--log-level", "warning"])
        .args(["--port", &address.port().to_string()]);
    Server::start(command, address, None, "/health")
}

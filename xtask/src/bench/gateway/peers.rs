//! What stands beside our gateway: nginx as a plain reverse proxy and `LiteLLM`'s proxy, one worker each.

use std::net::SocketAddr;

use anyhow::{Context as _, Result};

use super::before;
use super::upstream::{HELD, PACED, PLAIN};
use crate::bench::process::{Server, free_address, fresh_folder};
use crate::python::{self, Environment};
use crate::shell;

/// The model of `LiteLLM` behind which the provider speaks Chat Completions.
pub(super) const COMPLETIONS: &str = "claude-sonnet-4-5-completions";

const LITELLM: Environment = Environment {
    name: "bench-gateway",
    requirements: "xtask/src/bench/gateway/requirements.txt",
    pip: &[],
};

/// `rb serve` in front of the provider.
pub(super) fn ours(upstream: SocketAddr) -> Result<Server> {
    Server::ours(&before(upstream))
}

/// nginx with one worker, in the very process that ends with the benchmark; connections to the provider are kept open,
/// nothing is buffered to disk and nothing logged.
pub(super) fn nginx(upstream: SocketAddr) -> Result<Server> {
    if !shell::succeeds(shell::program("nginx")?.arg("-v")) {
        python::apt(&["nginx-light"])?;
    }
    let (folder, address) = (fresh_folder("bench-nginx")?, free_address()?);
    let settings = format!(
        "daemon off; master_process off; worker_processes 1; pid {at}/pid; error_log stderr crit;\n\
         events {{ worker_connections 4096; }}\n\
         http {{\n  access_log off; client_max_body_size 100m; client_body_buffer_size 4m;\n  \
         client_body_temp_path {at}/body; proxy_temp_path {at}/proxy; fastcgi_temp_path {at}/f; uwsgi_temp_path {at}/u; scgi_temp_path {at}/s;\n  \
         upstream provider {{ server {upstream}; keepalive 256; keepalive_requests 100000000; }}\n  \
         server {{\n    listen {address}; keepalive_requests 100000000;\n    \
         location = /health {{ return 200 'ok'; }}\n    \
         location / {{ proxy_pass http://provider; proxy_http_version 1.1; proxy_set_header Connection ''; proxy_buffering off; }}\n  }}\n}}\n",
        at = folder.display(),
    );
    let path = folder.join("nginx.conf");
    std::fs::write(&path, settings)?;
    let mut command = shell::program("nginx")?;
    command.arg("-p").arg(&folder).arg("-c").arg(&path);
    Server::start(command, address, Some(folder), "/health").context("nginx")
}

/// `LiteLLM`'s proxy with one worker, without a database.
pub(super) fn litellm(upstream: SocketAddr) -> Result<Server> {
    let (folder, address) = (fresh_folder("bench-litellm")?, free_address()?);
    let models = [PLAIN, PACED, HELD].map(|model| (model, format!("anthropic/{model}"), ""));
    let models = models.into_iter().chain([(COMPLETIONS, format!("openai/{PLAIN}"), "/v1")]);
    let models: Vec<String> = models
        .map(|(name, model, path)| {
            format!(
                "  - model_name: {name}\n    litellm_params:\n      model: {model}\n      \
                 api_base: http://{upstream}{path}\n      api_key: operator\n"
            )
        })
        .collect();
    let settings = format!(
        "model_list:\n{}general_settings:\n  master_key: operator\nlitellm_settings:\n  telemetry: false\n",
        models.concat()
    );
    let path = folder.join("config.yaml");
    std::fs::write(&path, settings)?;
    let python = LITELLM.install()?;
    let mut command = shell::program(python.with_file_name("litellm"))?;
    command
        .arg("--config")
        .arg(&path)
        .args(["--host", "127.0.0.1", "--num_workers", "1", "--port"])
        .arg(address.port().to_string())
        .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        .env("LITELLM_LOG", "ERROR")
        .stderr(std::process::Stdio::null());
    Server::start(command, address, Some(folder), "/health/liveliness").context("LiteLLM")
}

//! Load on loopback: a few threads, each with one connection that is kept open, sending requests made beforehand.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// Nobody waits longer for a reply.
const REPLY_WITHIN: Duration = Duration::from_mins(1);

/// What the requests of one connection are, one after the other; `None` ends it.
pub(super) type Requests = Box<dyn FnMut() -> Option<Vec<u8>> + Send>;

/// How many requests were answered in which time.
pub(super) struct Load {
    pub(super) seconds: f64,
    /// Of each request, in seconds, sorted.
    pub(super) latencies: Vec<f64>,
}

impl Load {
    pub(super) fn per_second(&self) -> f64 {
        let count = u32::try_from(self.latencies.len()).unwrap_or(u32::MAX);
        f64::from(count) / self.seconds
    }

    /// The latency that so many of a hundred requests stayed below.
    pub(super) fn percentile(&self, percent: usize) -> f64 {
        self.latencies.get(self.latencies.len() * percent / 100).copied().unwrap_or(f64::NAN)
    }
}

/// Sends requests on all connections at once for `duration`: as fast as they are answered, or one every `pace`.
pub(super) fn run(
    server: SocketAddr,
    connections: Vec<Requests>,
    duration: Duration,
    pace: Option<Duration>,
) -> Result<Load> {
    let is_over = AtomicBool::new(false);
    let begun = Instant::now();
    let latencies = thread::scope(|scope| {
        let workers: Vec<_> = connections
            .into_iter()
            .map(|requests| {
                let is_over = &is_over;
                scope.spawn(move || one(server, requests, is_over, pace))
            })
            .collect();
        thread::sleep(duration);
        is_over.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        for worker in workers {
            match worker.join() {
                Ok(latencies) => all.extend(latencies?),
                Err(_) => bail!("a connection of the load ended in a panic"),
            }
        }
        Ok(all)
    });
    let mut latencies = latencies?;
    let seconds = begun.elapsed().as_secs_f64();
    latencies.sort_by(f64::total_cmp);
    Ok(Load { seconds, latencies })
}

fn one(
    server: SocketAddr,
    mut requests: Requests,
    is_over: &AtomicBool,
    pace: Option<Duration>,
) -> Result<Vec<f64>> {
    let mut connection = Connection::open(server)?;
    let mut latencies = Vec::new();
    let mut due = Instant::now();
    while !is_over.load(Ordering::Relaxed) {
        let Some(request) = requests() else { break };
        if let Some(pace) = pace {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            due += pace;
        }
        let begun = Instant::now();
        let (status, body) = connection.call(&request)?;
        latencies.push(begun.elapsed().as_secs_f64());
        if status / 100 != 2 {
            bail!("the server answered {status}: {}", String::from_utf8_lossy(&body));
        }
    }
    Ok(latencies)
}

/// One connection that is kept open.
pub(super) struct Connection {
    stream: BufReader<TcpStream>,
    line: String,
}

impl Connection {
    pub(super) fn open(server: SocketAddr) -> Result<Self> {
        let stream =
            TcpStream::connect(server).with_context(|| format!("cannot reach {server}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REPLY_WITHIN))?;
        Ok(Self { stream: BufReader::new(stream), line: String::new() })
    }

    /// Sends a request and gives the status and the body of the reply, which must have a length.
    pub(super) fn call(&mut self, request: &[u8]) -> Result<(u16, Vec<u8>)> {
        self.stream.get_mut().write_all(request)?;
        let status = self.next_line()?.split(' ').nth(1).and_then(|status| status.parse().ok());
        let mut length = 0;
        loop {
            let line = self.next_line()?;
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().context("the length of the reply")?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((status.context("the status of the reply")?, body))
    }

    fn next_line(&mut self) -> Result<&str> {
        self.line.clear();
        if self.stream.read_line(&mut self.line)? == 0 {
            bail!("the server closed the connection");
        }
        Ok(self.line.trim_end())
    }
}

/// A request with a JSON body.
pub(super) fn post(path: &str, body: &str) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer operator\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

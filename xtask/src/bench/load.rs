//! Load on loopback: a few threads, each with one connection that is kept open, sending requests made beforehand.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::quiet::Clock;

/// Nobody waits longer for a reply.
const REPLY_WITHIN: Duration = Duration::from_mins(1);

/// What the requests of one connection are, one after the other; `None` ends it.
pub(super) type Requests = Box<dyn FnMut() -> Option<Vec<u8>> + Send>;

/// How many requests were answered in which time.
#[derive(Default)]
pub(super) struct Load {
    pub(super) seconds: f64,
    /// The share of the processors' time that others had meanwhile.
    pub(super) stolen: f64,
    /// The processor time of the server, in seconds, where somebody has measured it.
    pub(super) processor_seconds: f64,
    /// Of each request, in seconds, sorted.
    pub(super) latencies: Vec<f64>,
    /// Until the first byte of each answer's body, in seconds, sorted.
    pub(super) first_bytes: Vec<f64>,
    /// Between the chunks of answers that come in chunks, in seconds, sorted.
    pub(super) gaps: Vec<f64>,
}

impl Load {
    pub(super) fn per_second(&self) -> f64 {
        let count = u32::try_from(self.latencies.len()).unwrap_or(u32::MAX);
        f64::from(count) / self.seconds
    }

    /// The processor time that the server took for one request, in seconds.
    pub(super) fn processor_seconds_each(&self) -> f64 {
        self.processor_seconds / (self.per_second() * self.seconds)
    }

    /// The latency that so many of a hundred requests stayed below.
    pub(super) fn percentile(&self, percent: usize) -> f64 {
        percentile(&self.latencies, percent)
    }
}

/// The number that so many of a hundred stay below.
pub(super) fn percentile(sorted: &[f64], percent: usize) -> f64 {
    sorted.get(sorted.len() * percent / 100).copied().unwrap_or(f64::NAN)
}

/// What one connection saw.
#[derive(Default)]
struct Seen {
    latencies: Vec<f64>,
    first_bytes: Vec<f64>,
    gaps: Vec<f64>,
}

impl Seen {
    fn add(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.first_bytes.extend(other.first_bytes);
        self.gaps.extend(other.gaps);
    }

    fn sorted(mut self) -> Self {
        for list in [&mut self.latencies, &mut self.first_bytes, &mut self.gaps] {
            list.sort_by(f64::total_cmp);
        }
        self
    }
}

/// Sends requests on all connections at once for `duration`: as fast as they are answered, or one every `pace`. Where
/// there is a pace, the connections begin one after the other: agents do not all call in the same moment. Nor do all
/// runs begin in the same moment, so the first request of each connection is answered before the clock starts.
pub(super) fn run(
    server: SocketAddr,
    connections: Vec<Requests>,
    duration: Duration,
    pace: Option<Duration>,
) -> Result<Load> {
    let is_over = AtomicBool::new(false);
    let are_ready = Barrier::new(connections.len() + 1);
    let (mut begun, mut clock) = (Instant::now(), Clock::default());
    let seen = thread::scope(|scope| {
        let count = u32::try_from(connections.len()).unwrap_or(u32::MAX).max(1);
        let workers: Vec<_> = (0..count)
            .zip(connections)
            .map(|(at, mut requests)| {
                let (is_over, are_ready) = (&is_over, &are_ready);
                scope.spawn(move || {
                    let opened = open(server, &mut requests);
                    are_ready.wait();
                    let pace = pace.map(|pace| (Instant::now() + pace * at / count, pace));
                    one(opened?, requests, is_over, pace)
                })
            })
            .collect();
        are_ready.wait();
        (begun, clock) = (Instant::now(), Clock::now());
        let ends = begun + duration;
        while Instant::now() < ends && !workers.iter().all(thread::ScopedJoinHandle::is_finished) {
            thread::sleep(Duration::from_millis(10));
        }
        is_over.store(true, Ordering::Relaxed);
        let mut all = Seen::default();
        for worker in workers {
            match worker.join() {
                Ok(seen) => all.add(seen?),
                Err(_) => bail!("a connection of the load ended in a panic"),
            }
        }
        Ok(all)
    });
    let seconds = begun.elapsed().as_secs_f64();
    let Seen { latencies, first_bytes, gaps } = seen?.sorted();
    let stolen = Clock::now().stolen_since(clock);
    Ok(Load { seconds, stolen, latencies, first_bytes, gaps, ..Load::default() })
}

/// A connection on which the first request was answered.
fn open(server: SocketAddr, requests: &mut Requests) -> Result<Connection> {
    let mut connection = Connection::open(server)?;
    if let Some(request) = requests() {
        connection.ask(&request)?.check()?;
    }
    Ok(connection)
}

fn one(
    mut connection: Connection,
    mut requests: Requests,
    is_over: &AtomicBool,
    mut pace: Option<(Instant, Duration)>,
) -> Result<Seen> {
    let mut seen = Seen::default();
    while !is_over.load(Ordering::Relaxed) {
        let Some(request) = requests() else { break };
        if let Some((due, every)) = &mut pace {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            *due += *every;
        }
        let begun = Instant::now();
        let reply = connection.ask(&request)?;
        let since = |moment: Instant| moment.duration_since(begun).as_secs_f64();
        seen.latencies.push(begun.elapsed().as_secs_f64());
        seen.first_bytes.extend(reply.chunks.first().copied().map(since));
        let gap = |pair: &[Instant]| pair[1].duration_since(pair[0]).as_secs_f64();
        seen.gaps.extend(reply.chunks.windows(2).map(gap));
        reply.check()?;
    }
    Ok(seen)
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

    /// Sends a request and gives the status and the body of the reply.
    pub(super) fn call(&mut self, request: &[u8]) -> Result<(u16, Vec<u8>)> {
        self.ask(request).map(|reply| (reply.status, reply.body))
    }

    /// Sends a request and reads the reply, noting when each part of it came.
    pub(super) fn ask(&mut self, request: &[u8]) -> Result<Reply> {
        self.stream.get_mut().write_all(request)?;
        let (status, length) = self.head()?;
        let mut reply = Reply { status, body: Vec::new(), chunks: Vec::new() };
        match length {
            Length::Known(length) => {
                self.stream.fill_buf()?;
                reply.chunks.push(Instant::now());
                reply.body.resize(length, 0);
                self.stream.read_exact(&mut reply.body)?;
            }
            Length::Chunks => while self.chunk(&mut reply)? {},
        }
        Ok(reply)
    }

    /// The status of a reply, and how its end is told.
    pub(super) fn head(&mut self) -> Result<(u16, Length)> {
        let status = self.next_line()?.split(' ').nth(1).and_then(|status| status.parse().ok());
        let mut length = Length::Known(0);
        loop {
            let line = self.next_line()?;
            if line.is_empty() {
                break;
            }
            let Some((name, value)) = line.split_once(':') else { continue };
            if name.eq_ignore_ascii_case("content-length") {
                length = Length::Known(value.trim().parse().context("the length of the reply")?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                length = Length::Chunks;
            }
        }
        Ok((status.context("the status of the reply")?, length))
    }

    /// Reads one chunk; `false` at the last.
    fn chunk(&mut self, reply: &mut Reply) -> Result<bool> {
        let line = self.next_line()?;
        let length = usize::from_str_radix(line, 16).context("the length of a chunk")?;
        if length > 0 {
            reply.chunks.push(Instant::now());
        }
        let start = reply.body.len();
        reply.body.resize(start + length + 2, 0);
        self.stream.read_exact(&mut reply.body[start..])?;
        reply.body.truncate(start + length);
        Ok(length > 0)
    }

    fn next_line(&mut self) -> Result<&str> {
        self.line.clear();
        if self.stream.read_line(&mut self.line)? == 0 {
            bail!("the server closed the connection");
        }
        Ok(self.line.trim_end())
    }
}

/// How the end of a reply is told.
pub(super) enum Length {
    Known(usize),
    Chunks,
}

/// A reply, and when its parts came.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    chunks: Vec<Instant>,
}

impl Reply {
    fn check(&self) -> Result<()> {
        if self.status / 100 != 2 {
            bail!("the server answered {}: {}", self.status, String::from_utf8_lossy(&self.body));
        }
        Ok(())
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

//! A child as its parent sees it: pipes with bounded frames, limits that are set from outside, and how it ended.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use serde::Serialize;
use servo_adapter::Usage;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{self, ChildStderr, ChildStdin, ChildStdout};

use crate::limits::{self, Resource};
use crate::protocol::{ChildUsage, FROM_CHILD_BYTES_MAX, FromChild, PREFIX_BYTES, encode, lengths};
use crate::spawner::Spawner;
use crate::worker::last_words::CPU_US;

/// How long a child may take until it is ready; a machine under load takes its time to start a process.
const READY: Duration = Duration::from_secs(30);
/// How long the end of a process is waited for whose pipes are closed.
const LAST_WORDS: Duration = Duration::from_secs(2);
const LAST_WORDS_BYTES: u64 = 8 * 1024;
/// What the interpreter itself needs for a call, beside what the program may have.
const OVERHEAD_BYTES: u64 = 8 * 1024 * 1024;
/// A body below this size is copied behind its head, to be one write with it.
const BODY_WITH_HEAD_MAX: usize = 64 * 1024;
/// What an allocator may have in store when a child is ready. The limit counts what is asked of the system, so a program has this
/// much more; with an allocator that reserves a gigabyte, the limit would mean nothing.
const STORE_BYTES_MAX: u64 = 16 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Child {
    process: process::Child,
    pid: libc::pid_t,
    input: ChildStdin,
    /// Most frames are small: one read brings them whole.
    output: BufReader<ChildStdout>,
    errors: ChildStderr,
    /// Of the address space before any user code ran.
    vm_bytes: u64,
    /// What this process may set at most, for memory and CPU time: the limits it has itself.
    ceilings: [u64; 2],
    /// What is set now.
    limits: Option<[u64; 2]>,
    pub(crate) usage: ChildUsage,
    pub(crate) calls: u64,
    pub(crate) is_loaded: bool,
    _alive: Alive,
}

/// Counts the children that exist.
#[derive(Debug)]
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn one(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count.clone())
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Once: it is so for every child.
fn tell_of_namespaces() {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        tracing::info!(
            "the system gives Starlark's children no namespaces of their own; their other limits hold as ever"
        );
    });
}

/// How a process ended, as far as it can be told.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) signal: Option<i32>,
    pub(crate) last_words: String,
    /// Of the call that ended it, as far as it could still say.
    pub(crate) usage: Usage,
}

impl Child {
    /// In a box, as it goes from hand to hand.
    pub(crate) async fn start(spawner: &Spawner, alive: &Arc<AtomicUsize>) -> io::Result<Box<Self>> {
        let alive = Alive::one(alive);
        let mut process = spawner.spawn().await?;
        let missing = || io::Error::other("a child has no pipes");
        let pid = process.id().and_then(|pid| libc::pid_t::try_from(pid).ok()).ok_or_else(missing)?;
        let input = process.stdin.take().ok_or_else(missing)?;
        let output = BufReader::new(process.stdout.take().ok_or_else(missing)?);
        let errors = process.stderr.take().ok_or_else(missing)?;
        let mut child = Box::new(Self {
            process,
            pid,
            input,
            output,
            errors,
            vm_bytes: 0,
            ceilings: [limits::hard(pid, Resource::Memory)?, limits::hard(pid, Resource::CpuSeconds)?],
            limits: None,
            usage: ChildUsage::default(),
            calls: 0,
            is_loaded: false,
            _alive: alive,
        });
        match tokio::time::timeout(READY, child.receive()).await {
            Ok(Ok((FromChild::Ready { store_bytes, .. }, _))) if store_bytes > STORE_BYTES_MAX => {
                let (store, max) = (store_bytes / 1024 / 1024, STORE_BYTES_MAX / 1024 / 1024);
                return Err(io::Error::other(format!(
                    "a child has {store} MB of memory in store that no limit would count, over {max} MB; its environment must \
                     tell its allocator to reserve none"
                )));
            }
            Ok(Ok((FromChild::Ready { vm_bytes, cpu_us, is_apart, .. }, _))) => {
                if !is_apart {
                    tell_of_namespaces();
                }
                child.vm_bytes = vm_bytes;
                child.usage.cpu_total_us = cpu_us;
            }
            Ok(Ok(_)) => return Err(io::Error::other("a child began with something else than that it is ready")),
            Ok(Err(_)) => {
                let ended = child.end().await;
                return Err(io::Error::other(format!("a child ended before it was ready: {}", ended.last_words)));
            }
            Err(_) => return Err(io::Error::other("a child was not ready in time")),
        }
        Ok(child)
    }

    /// Memory above what the child had before any user code, and CPU time above what it has used so far.
    pub(crate) fn limit(&mut self, memory_mb: u64, cpu_ms: u64) -> io::Result<()> {
        let allowed = memory_mb.saturating_mul(1024 * 1024).saturating_add(OVERHEAD_BYTES);
        let memory = self.vm_bytes.saturating_add(allowed);
        // The child's own timer is exact and comes first; this one counts whole seconds and cannot be stopped from inside.
        let seconds = (self.usage.cpu_total_us / 1_000).saturating_add(cpu_ms) / 1_000 + 2;
        // Mostly as the last call had them.
        if self.limits == Some([memory, seconds]) {
            return Ok(());
        }
        let [memory_max, seconds_max] = self.ceilings;
        limits::set(self.pid, Resource::Memory, memory, memory_max)?;
        limits::set(self.pid, Resource::CpuSeconds, seconds, seconds_max)?;
        self.limits = Some([memory, seconds]);
        Ok(())
    }

    /// What a call has used that has not ended. Nothing is known of a process that is gone.
    pub(crate) fn used_so_far(&self) -> Usage {
        let read = |what: &str| std::fs::read_to_string(format!("/proc/{}/{what}", self.pid)).unwrap_or_default();
        let (stat, status) = (read("stat"), read("status"));
        // After the name, which may hold anything: user and system time are the 12th and 13th field, in hundredths.
        let times = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().skip(11).take(2));
        let ticks: Option<u64> = times.map(|times| times.filter_map(|ticks| ticks.parse::<u64>().ok()).sum());
        used(ticks.map(|ticks| ticks * 10_000), &status, self.usage.cpu_total_us)
    }

    /// Whether earlier calls have left so much behind that the next one would miss it.
    pub(crate) fn has_grown(&self, memory_mb: u64) -> bool {
        let left = self.usage.vm_bytes.saturating_sub(self.vm_bytes);
        left > OVERHEAD_BYTES / 2 + memory_mb.saturating_mul(1024 * 1024) / 4
    }

    pub(crate) async fn send<T: Serialize>(&mut self, head: &T, body: &[u8]) -> io::Result<()> {
        let mut frame = encode(head, body.len()).map_err(io::Error::other)?;
        if body.len() < BODY_WITH_HEAD_MAX {
            frame.extend_from_slice(body);
            return self.input.write_all(&frame).await;
        }
        self.input.write_all(&frame).await?;
        self.input.write_all(body).await
    }

    /// Waits for the next frame without reading it. Whoever stops waiting has lost nothing.
    pub(crate) async fn has_more(&mut self) -> io::Result<()> {
        if self.output.fill_buf().await?.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    /// The next frame. Most come whole, and their heads are read where they are.
    pub(crate) async fn receive(&mut self) -> io::Result<(FromChild, Vec<u8>)> {
        let arrived = self.output.fill_buf().await?;
        if let Some(prefix) = arrived.first_chunk() {
            let (head_len, body_len) = frame_lengths(*prefix)?;
            let end = PREFIX_BYTES + head_len + body_len;
            if let Some(frame) = arrived.get(PREFIX_BYTES..end) {
                let (head, body) = frame.split_at(head_len);
                let read = (read_head(head)?, body.to_vec());
                self.output.consume(end);
                return Ok(read);
            }
        }
        Box::pin(self.receive_pieces()).await
    }

    /// Reads no more than a frame may have, and takes memory only for what has arrived.
    async fn receive_pieces(&mut self) -> io::Result<(FromChild, Vec<u8>)> {
        let mut prefix = [0; PREFIX_BYTES];
        self.output.read_exact(&mut prefix).await?;
        let (head_len, body_len) = frame_lengths(prefix)?;
        let mut head = Vec::new();
        let mut body = Vec::new();
        (&mut self.output).take(head_len as u64).read_to_end(&mut head).await?;
        (&mut self.output).take(body_len as u64).read_to_end(&mut body).await?;
        if head.len() < head_len || body.len() < body_len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok((read_head(&head)?, body))
    }

    /// Waits for the process to end, kills it if it does not, and hears what it had to say.
    pub(crate) async fn end(mut self: Box<Self>) -> Ended {
        drop(self.input);
        let status = match tokio::time::timeout(LAST_WORDS, self.process.wait()).await {
            Ok(status) => status.ok(),
            Err(_) => {
                // Fails only if it ended in this moment.
                drop(self.process.start_kill());
                None
            }
        };
        let mut said = Vec::new();
        let mut errors = self.errors.take(LAST_WORDS_BYTES);
        drop(tokio::time::timeout(LAST_WORDS, errors.read_to_end(&mut said)).await);
        let last_words = String::from_utf8_lossy(&said).into_owned();
        let cpu_us = last_words.lines().find_map(|line| line.strip_prefix(CPU_US)?.parse().ok());
        let usage = used(cpu_us, &last_words, self.usage.cpu_total_us);
        Ended { signal: status.and_then(|status| status.signal()), last_words, usage }
    }
}

fn frame_lengths(prefix: [u8; PREFIX_BYTES]) -> io::Result<(usize, usize)> {
    let too_large = || io::Error::new(io::ErrorKind::InvalidData, "a frame is too large");
    lengths(prefix, FROM_CHILD_BYTES_MAX).ok_or_else(too_large)
}

fn read_head(head: &[u8]) -> io::Result<FromChild> {
    serde_json::from_slice(head).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// What one call used of CPU time, of which the child had used some before, and of memory, by the lines of `/proc/…/status`.
fn used(cpu_total_us: Option<u64>, status: &str, cpu_before_us: u64) -> Usage {
    let cpu_us = cpu_total_us.map(|total| total.saturating_sub(cpu_before_us));
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak_kb = peak.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    let up = |value: Option<u64>, unit: u64| value.and_then(|value| u32::try_from(value.div_ceil(unit)).ok());
    Usage { cpu_ms: up(cpu_us, 1_000), memory_mb: up(peak_kb, 1_024), ..Usage::default() }
}

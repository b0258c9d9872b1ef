//! A program that is measured: started, asked by lines, watched in `/proc`, ended by its id. Dropping it ends it.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

const LINE_WITHIN: Duration = Duration::from_secs(60);
const STOP_WITHIN: Duration = Duration::from_secs(20);
/// Ticks of `/proc/PID/stat` per second: fixed in Linux's interface.
const TICKS: f64 = 100.0;
const LINES_WAITING_MAX: usize = 1_000;

#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Process {
    /// What it writes to standard error goes to `log`.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Result<Self> {
        let log = std::fs::File::options().create(true).append(true).open(log)?;
        let program = command.get_program().to_owned();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .with_context(|| format!("start {}", program.display()))?;
        let (sender, lines) = sync_channel(LINES_WAITING_MAX);
        let stdout = child.stdout.take().context("standard output is piped")?;
        std::thread::spawn(move || {
            // Read to the end, also when nobody listens: a full pipe would stop the program.
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.try_send(line);
            }
        });
        Ok(Self { input: child.stdin.take(), child, lines })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line, which is JSON.
    pub(crate) fn line(&self) -> Result<Value> {
        let line = self.lines.recv_timeout(LINE_WITHIN).context("the program ended or said nothing for a minute")?;
        serde_json::from_str(&line).with_context(|| format!("not JSON: {line:?}"))
    }

    pub(crate) fn ask(&mut self, command: &str) -> Result<Value> {
        let input = self.input.as_mut().context("standard input is piped")?;
        writeln!(input, "{command}")?;
        input.flush()?;
        self.line()
    }

    /// Of it and of what it started, in seconds.
    pub(crate) fn cpu(&self) -> Result<f64> {
        Ok(tree_seconds(&all()?, self.id()))
    }

    /// Megabytes that are in memory, of it alone.
    pub(crate) fn resident_mb(&self) -> Result<f64> {
        resident_mb(self.id())
    }

    /// Without warning, as a power cut or the OOM killer would.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    pub(crate) fn stop(&mut self) -> Result<()> {
        self.input = None;
        let pid = self.id().to_string();
        Command::new("kill").args(["-TERM", &pid]).stderr(Stdio::null()).status()?;
        let from = Instant::now();
        while self.child.try_wait()?.is_none() {
            if from.elapsed() > STOP_WITHIN {
                return self.kill();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.kill();
        }
    }
}

/// Megabytes of a process that are in memory.
pub(crate) fn resident_mb(id: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse::<f64>()? / 1_024.0)
}

/// All processes by id, each with its parent and its ticks.
pub(crate) fn all() -> Result<BTreeMap<u32, (u32, u64)>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // Processes come and go while we look.
        if let Some(stat) = std::fs::read_to_string(entry.path().join("stat")).ok().as_deref().and_then(parent_and_cpu)
        {
            all.insert(id, stat);
        }
    }
    Ok(all)
}

/// Processor time of a process and of what it started, in seconds.
pub(crate) fn tree_seconds(all: &BTreeMap<u32, (u32, u64)>, root: u32) -> f64 {
    tree_cpu(all, root) / TICKS
}

/// From a line of `/proc/PID/stat`: the name before the fields may hold anything, brackets too.
fn parent_and_cpu(stat: &str) -> Option<(u32, u64)> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some((fields.get(1)?.parse().ok()?, number(11)? + number(12)?))
}

fn tree_cpu(all: &BTreeMap<u32, (u32, u64)>, root: u32) -> f64 {
    let own = all.get(&root).map_or(0.0, |(_, ticks)| *ticks as f64);
    let children = all.iter().filter(|(_, (parent, _))| *parent == root);
    own + children.map(|(child, _)| tree_cpu(all, *child)).sum::<f64>()
}

/// Free at this moment. Programs that must come back at the same address after a kill cannot ask for port 0.
pub(crate) fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// Asks until the answer is yes.
pub(crate) async fn until<T>(
    what: &str,
    within: Duration,
    mut look: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let from = Instant::now();
    loop {
        let last = match look().await {
            Ok(Some(value)) => return Ok(value),
            Ok(None) => String::new(),
            Err(error) => format!(": {error:#}"),
        };
        if from.elapsed() > within {
            bail!("{what}: not within {} s{last}", within.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_that_of_the_whole_tree() {
        let stat = |id: u32, parent: u32, user: u64, system: u64| {
            let line = format!("{id} (a) b) S {parent} 1 1 0 -1 4194304 1 2 3 4 {user} {system} 9 9 20 0");
            (id, parent_and_cpu(&line).unwrap())
        };
        let all = BTreeMap::from([stat(1, 0, 100, 0), stat(2, 1, 5, 7), stat(3, 2, 1, 1), stat(4, 1, 50, 0)]);
        assert!((tree_cpu(&all, 2) - 14.0).abs() < 1e-9);
        assert_eq!(parent_and_cpu("nonsense"), None);
    }
}

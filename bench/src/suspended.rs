//! What suspended executions cost a server in memory: it starts them, each records a wait of a day, and then it has nothing
//! to do.

use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::runtime::Runtime;

use crate::Args;
use crate::compare::load::{self, Until};
use crate::compare::process::until;
use crate::compare::servo;

const SUSPENDED: usize = 100_000;
const LANES: usize = 64;
const WITHIN: Duration = Duration::from_secs(300);
/// A server that takes no time of the processor for so long has done everything.
const QUIET_FOR: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &Args, runtime: &Runtime) -> Result<()> {
    let dir = args.dir.canonicalize()?;
    let (before, after, seconds) = runtime.block_on(async {
        let mut subject = servo::start(&dir).await?;
        let before = subject.server.resident_mb()?;
        let from = Instant::now();
        load::run(subject.address, &servo::wait_send(), LANES, Until::Calls(SUSPENDED)).await?;
        let all = SUSPENDED as u64;
        until("all of them", WITHIN, async || Ok((subject.count("begun")? >= all).then_some(()))).await?;
        let seconds = from.elapsed().as_secs_f64();
        let (mut used, mut since) = (subject.server.cpu()?, Instant::now());
        until("the server is quiet", WITHIN, async || {
            let now = subject.server.cpu()?;
            // Its own upkeep takes some of it.
            if now - used > 0.05 {
                (used, since) = (now, Instant::now());
            }
            Ok((since.elapsed() > QUIET_FOR).then_some(()))
        })
        .await?;
        let open = subject.open().await?;
        anyhow::ensure!(open == all, "{open} of {all} executions are open");
        let after = subject.server.resident_mb()?;
        subject.stop()?;
        anyhow::Ok((before, after, seconds))
    })?;
    println!("## Suspended executions (SQLite, the server)\n");
    println!("| {SUSPENDED} suspended executions | |\n|---|---|");
    println!("| resident memory of the server before / with them, MB (goal ≤ 150) | {before:.0} / {after:.0} |");
    println!("| started and suspended per second | {:.0} |\n", SUSPENDED as f64 / seconds);
    Ok(())
}

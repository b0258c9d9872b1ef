//! Appending to a long run costs what appending to a short one costs.

use std::time::Instant;

use anyhow::Result;
use servo_store::{AdminStore as _, LogStore as _};
use tokio::runtime::Runtime;

use crate::stats::median;
use crate::{Args, rows, sqlite};

const LONG: u64 = 100_000;
const SHORT: u64 = 10;

pub(crate) fn run(args: &Args, runtime: &Runtime) -> Result<()> {
    let dir = tempfile::tempdir_in(&args.dir)?;
    let store = sqlite::open(dir.path())?;
    let (short, long) = runtime.block_on(async {
        for run in 0..2 {
            store.append(rows::create(run)).await?;
        }
        grow(&store, 0, SHORT).await?;
        grow(&store, 1, LONG).await?;
        let (mut short, mut long) = (Vec::new(), Vec::new());
        let start = Instant::now();
        let mut extra = 0;
        // In turn, so that both meet the same state of the disk.
        while start.elapsed().as_secs_f64() < args.seconds * 2.0 {
            for (run, base, times) in [(0, SHORT, &mut short), (1, LONG, &mut long)] {
                let one = Instant::now();
                store.append(rows::append(run, base + extra)).await?;
                times.push(one.elapsed().as_secs_f64() * 1e6);
            }
            extra += 1;
        }
        store.close().await?;
        anyhow::Ok((median(&short), median(&long)))
    })?;
    println!("## Long histories (SQLite)\n");
    println!("| append to a run with | p50 µs |\n|---|---|");
    println!("| {SHORT} events | {short:.0} |\n| {LONG} events | {long:.0} |");
    println!("| ratio (goal ≤ 1.20) | {:.2} |\n", long / short);
    Ok(())
}

async fn grow(store: &servo_store_sqlite::SqliteStore, run: usize, until: u64) -> Result<()> {
    let mut seq = 1;
    while seq < until {
        let mut append = rows::append(run, seq);
        if let Some(stream) = append.streams.first_mut() {
            let last = (seq + 1_000).min(until);
            stream.events = (seq + 1..=last).map(|number| rows::event(run, number)).collect();
            seq = last;
        }
        store.append(append).await?;
    }
    Ok(())
}

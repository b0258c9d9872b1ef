//! What the machine itself can do: printed beside every table, because figures mean nothing without it.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use anyhow::Result;

use crate::Args;
use crate::stats::{median, percentile};

pub(crate) fn print(args: &Args) -> Result<()> {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(": unknown");
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let (sync_p50, sync_p99) = fdatasync(&args.dir)?;
    let loopback = loopback()?;
    println!("## Machine\n");
    println!("| | |\n|---|---|");
    println!("| processor | {} cores,{} |", cores, model.trim_start_matches([' ', '\t', ':']).replace("  ", " "));
    println!("| fdatasync of 4 KiB, p50 / p99 | {sync_p50:.0} / {sync_p99:.0} µs |");
    println!("| loopback TCP round trip, p50 | {loopback:.0} µs |\n");
    Ok(())
}

pub(crate) fn fdatasync(dir: &std::path::Path) -> Result<(f64, f64)> {
    let path = dir.join("fsync-probe");
    let mut file = std::fs::File::create(&path)?;
    let block = [7u8; 4096];
    let mut times = Vec::new();
    for _ in 0..500 {
        let start = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    std::fs::remove_file(path)?;
    Ok((median(&times), percentile(&times, 0.99)))
}

fn loopback() -> Result<f64> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let echo = std::thread::spawn(move || -> std::io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut byte = [0u8; 1];
        while stream.read(&mut byte)? == 1 {
            stream.write_all(&byte)?;
        }
        Ok(())
    });
    let mut times = Vec::new();
    {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let mut byte = [1u8; 1];
        for _ in 0..2_000 {
            let start = Instant::now();
            stream.write_all(&byte)?;
            stream.read_exact(&mut byte)?;
            times.push(start.elapsed().as_secs_f64() * 1e6);
        }
    }
    let _ = echo.join();
    Ok(median(&times))
}

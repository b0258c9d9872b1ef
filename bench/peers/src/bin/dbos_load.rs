//! Workflows of ten steps on dbos, in the program that calls them: `dbos_load URL LANES SECONDS CONNECTIONS`. Prints one
//! line of JSON: workflows per second and the median time of one.

use std::time::{Duration, Instant};

use dbos::{Config, DBOS};

const STEPS: u32 = 10;
const RESULT_BYTES: usize = 100;
const WARM_UP: Duration = Duration::from_millis(700);

async fn workflow(steps: u32) -> dbos::Result<u64> {
    let mut bytes = 0;
    for _ in 0..steps {
        let result: String = dbos::step("step", || async { dbos::Result::Ok("x".repeat(RESULT_BYTES)) }).await?;
        bytes += result.len() as u64;
    }
    Ok(bytes)
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, lanes, seconds, connections] = arguments.as_slice() else {
        return Err("usage: dbos_load URL LANES SECONDS CONNECTIONS".into());
    };
    let (lanes, length): (usize, f64) = (lanes.parse()?, seconds.parse()?);
    let config = Config {
        app_version: Some("1".to_owned()),
        max_connections: connections.parse()?,
        ..Config::new("servo-bench", url)
    };
    let dbos = DBOS::new(config);
    let workflow = dbos.register_workflow("bench", workflow)?;
    dbos.launch().await?;
    let run = async |length: Duration| -> Result<(f64, Vec<f64>), Failure> {
        let from = Instant::now();
        let mut tasks = Vec::new();
        for _ in 0..lanes {
            let workflow = workflow.clone();
            tasks.push(tokio::spawn(async move {
                let mut times = Vec::new();
                while from.elapsed() < length {
                    let one = Instant::now();
                    workflow.run(STEPS).await?;
                    times.push(one.elapsed().as_secs_f64() * 1e6);
                }
                Ok::<_, dbos::Error>(times)
            }));
        }
        let mut times = Vec::new();
        for task in tasks {
            times.extend(task.await??);
        }
        Ok((times.len() as f64 / from.elapsed().as_secs_f64(), times))
    };
    run(WARM_UP).await?;
    let (rate, mut times) = run(Duration::from_secs_f64(length)).await?;
    times.sort_by(f64::total_cmp);
    let median = times.get(times.len() / 2).copied().unwrap_or(f64::NAN);
    println!("{}", serde_json::json!({"perSecond": rate, "p50Us": median}));
    dbos.shutdown().await;
    Ok(())
}

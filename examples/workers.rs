//! Workers on several hosts share the jobs in a folder: each file is a job, which is removed when it is done. At most three are
//! done at a time, however many workers there are: all hosts share the permits of a semaphore.
//!
//! ```sh
//! export RINGFENCE_REDIS=redis://localhost                             # after `ringfence ring init`
//! mkdir jobs; touch jobs/{1..20}
//! cargo run --example workers -- host-1 jobs &
//! cargo run --example workers -- host-2 jobs
//! ```

use std::{env, error::Error, fs, path::Path, time::Duration, time::SystemTime};

use ringfence::{AcquireError, Client};
use tokio::{task::JoinSet, time::sleep};

const WORKERS: usize = 4;
const AT_A_TIME: u32 = 3;

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [host, folder] = &arguments[..] else {
        return Err("usage: workers HOST FOLDER".into());
    };
    let seeds = env::var("RINGFENCE_REDIS")?;
    let client = Client::builder().redis(seeds.split(',')).build().await?;
    let all = async {
        let mut workers = JoinSet::new();
        for _ in 0..WORKERS {
            workers.spawn(work(client.clone(), host.clone(), folder.clone()));
        }
        while let Some(worker) = workers.join_next().await {
            println!("a worker of {host} did {} jobs", worker??);
        }
        Ok(())
    };
    // At Ctrl-C and SIGTERM, the workers end, and other hosts get their permits and jobs at once.
    client.until_signal(all).await?.unwrap_or(Ok(()))
}

/// Does the jobs that no other worker has.
async fn work(client: Client, host: String, folder: String) -> Result<u32, Failure> {
    let semaphore = client.semaphore("conversions", AT_A_TIME);
    let mut done = 0;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // First the permit: a worker that waits for one keeps no job from the others.
        let permit = semaphore.permit().label(&host).acquire().await?;
        let key = format!("job/{}", path.display());
        let job = match client.lock(key).label(&host).try_acquire().await {
            Ok(job) => job,
            Err(AcquireError::Held { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        // Another worker may have done it before this one had the lock.
        if path.exists() {
            let convert = job.run_while_held(convert(&host, &path));
            permit.run_while_held(convert).await???; // ends when the permit or the lock is lost
            done += 1;
        }
        job.release().await;
        permit.release().await;
    }
    Ok(done)
}

/// The job. Its lines begin with the time, in µs since 1970.
async fn convert(host: &str, path: &Path) -> Result<(), Failure> {
    let now = || SystemTime::UNIX_EPOCH.elapsed().map(|it| it.as_micros());
    println!("{} {host} begins {}", now()?, path.display());
    sleep(Duration::from_millis(50)).await;
    println!("{} {host} ends {}", now()?, path.display());
    Ok(fs::remove_file(path)?)
}

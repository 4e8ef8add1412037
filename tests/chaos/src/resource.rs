//! What the locks protect: it takes writes in one order, and refuses a token smaller than one it has
//! accepted of a share that excludes it. It is never stopped or killed.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::{
        UnixListener, UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::JoinSet,
};

use crate::history::{Answer, Deed, Kind, Phase, Recorder, Share, Token};

/// The resource's own side.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    ledger: Arc<Ledger>,
    /// Ends the tasks when it is dropped.
    _tasks: JoinSet<()>,
}

/// What was accepted, in one order.
#[derive(Debug)]
struct Ledger {
    recorder: Recorder,
    accepted: Mutex<Accepted>,
}

#[derive(Debug, Default)]
struct Accepted {
    serial: u64,
    /// For each key and share of it, the greatest token accepted, and when the latest was asked for.
    greatest: HashMap<String, HashMap<Share, (Token, u64)>>,
}

impl Server {
    /// Listens at `path`, and writes what it decides to `recorder`.
    ///
    /// # Errors
    ///
    /// The socket cannot be made.
    pub fn start(path: &Path, recorder: Recorder) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        let ledger = Arc::new(Ledger {
            recorder,
            accepted: Mutex::default(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, ledger.clone()));
        Ok(Self {
            path: path.to_owned(),
            ledger,
            _tasks: tasks,
        })
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a write to `key` was accepted under a lock requested after `t_ns`.
    pub fn granted_since(&self, key: &str, t_ns: u64) -> bool {
        let accepted = self.ledger.accepted.lock();
        let of_key = accepted.greatest.get(key);
        of_key.is_some_and(|of_key| of_key.values().any(|(_, asked)| *asked > t_ns))
    }
}

async fn accept(listener: UnixListener, ledger: Arc<Ledger>) {
    let mut writers = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let ledger = ledger.clone();
        writers.spawn(async move {
            let (read, mut write) = stream.into_split();
            let mut writes = BufReader::new(read).lines();
            while let Ok(Some(line)) = writes.next_line().await {
                let Ok(asked) = serde_json::from_str(&line) else {
                    return;
                };
                let answer = ledger.decide(asked);
                let answer = serde_json::to_string(&answer).expect("a word");
                if write
                    .write_all(format!("{answer}\n").as_bytes())
                    .await
                    .is_err()
                {
                    return;
                }
            }
        });
        while writers.try_join_next().is_some() {}
    }
}

impl Ledger {
    /// Decides and records in one step, so that the history has its order.
    fn decide(&self, asked: Deed) -> Answer {
        let (key, token) = (asked.key.clone().unwrap_or_default(), asked.token);
        let mut accepted = self.accepted.lock();
        accepted.serial += 1;
        let of_key = accepted.greatest.entry(key).or_default();
        let excluded = of_key
            .iter()
            .filter(|(share, _)| share.excludes(asked.share));
        let greatest = excluded.map(|(_, (token, _))| *token).max();
        let now = self.recorder.now();
        let answer = match token {
            Some(token) if greatest <= Some(token) => {
                let alike = of_key.entry(asked.share).or_insert((token, 0));
                let sent = asked.sent_ns.unwrap_or_default();
                *alike = (alike.0.max(token), alike.1.max(sent));
                Answer::Accepted
            }
            _ => Answer::Rejected,
        };
        let applied = Deed {
            op: accepted.serial,
            kind: Kind::Apply,
            phase: Phase::Ok,
            answer: Some(answer),
            serial: Some(accepted.serial),
            ..asked
        };
        self.recorder.record_at(now, applied);
        answer
    }
}

/// A writer's side.
#[derive(Debug)]
pub struct Resource {
    answers: Lines<BufReader<OwnedReadHalf>>,
    writes: OwnedWriteHalf,
}

impl Resource {
    /// Connects to the resource at `path`.
    ///
    /// # Errors
    ///
    /// Nobody listens there.
    pub async fn connect(path: &Path) -> io::Result<Self> {
        let (read, writes) = UnixStream::connect(path).await?.into_split();
        let answers = BufReader::new(read).lines();
        Ok(Self { answers, writes })
    }

    /// Has it decide about `write`.
    ///
    /// # Errors
    ///
    /// It is gone.
    ///
    /// # Cancel safety
    ///
    /// None: the next write would get this one's answer.
    pub async fn write(&mut self, write: &Deed) -> io::Result<Answer> {
        let mut line = serde_json::to_vec(write)?;
        line.push(b'\n');
        self.writes.write_all(&line).await?;
        let answer = self.answers.next_line().await?;
        let answer = answer.ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(serde_json::from_str(&answer)?)
    }
}

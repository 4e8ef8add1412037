//! One connection through the proxy.

use std::{
    collections::VecDeque,
    future::pending,
    sync::{Arc, Once},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, sleep_until},
};

use super::{
    frame::{Frame, Framer},
    rules::Flow,
    state::{End, Shared, Verdict, Way},
};

const READ_BYTES: usize = 16 * 1024;

/// Connects `client` to the server of now, and forwards until either ends it, or the proxy does.
pub(super) async fn serve(shared: Arc<Shared>, line: usize, mut client: TcpStream) {
    let port = shared.look(|state| state.upstream);
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await else {
        return reset(client);
    };
    // Without it small frames would wait for each other's acknowledgement.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let ended = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let pump = |way| Pump {
            shared: &shared,
            line,
            way,
            frames: match shared.is_raw {
                true => Framer::raw(),
                false => Framer::default(),
            },
            waiting: VecDeque::new(),
        };
        let requests = pump(Way::Requests).run(from_client, to_server);
        let replies = pump(Way::Replies).run(from_server, to_client);
        tokio::select! {
            biased;
            end = told(&shared, line, |_| true) => Err(end),
            ended = async { tokio::try_join!(requests, replies) } => ended,
        }
    };
    match ended {
        Ok(_) => {}
        Err(End::Cut) => {
            reset(server);
            reset(client);
        }
        Err(End::HalfOpen) => {
            drop(server);
            told(&shared, line, |end| end == End::Cut).await;
            reset(client);
        }
    }
}

/// Ends `stream` at once: data in transit is lost.
pub(super) fn reset(stream: TcpStream) {
    // It can only fail on a socket that is reset already.
    let _ = stream.set_zero_linger();
}

/// Waits until this connection is told to end in one of the ways that `counts`.
async fn told(shared: &Shared, line: usize, counts: impl Fn(End) -> bool) -> End {
    let mut changes = shared.changes();
    loop {
        let told = shared.look(|state| state.lines[line].end);
        match told {
            Some(end) if counts(end) => return end,
            _ => drop(changes.changed().await),
        }
    }
}

/// Forwards one way.
struct Pump<'a> {
    shared: &'a Shared,
    line: usize,
    way: Way,
    frames: Framer,
    /// Frames in their order, and when each may be forwarded.
    waiting: VecDeque<(Instant, Frame)>,
}

impl Pump<'_> {
    /// Runs until `from` has ended and all it sent was forwarded.
    async fn run(
        mut self,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
    ) -> Result<(), End> {
        let mut changes = self.shared.changes();
        let mut bytes = vec![0; READ_BYTES];
        let mut ended = false;
        loop {
            if self.shared.flow(self.line, self.way) == Flow::Hold {
                let _ = changes.changed().await;
                continue;
            }
            self.forward_due(&mut to).await?;
            let next = self.waiting.front().map(|(due, _)| *due);
            if ended && next.is_none() {
                return self.end(to).await;
            }
            tokio::select! {
                biased;
                _ = changes.changed() => {}
                () = until(next) => {}
                read = from.read(&mut bytes), if !ended => match read {
                    Ok(0) => ended = true,
                    Ok(length) => self.take(&bytes[..length])?,
                    // A reset, like any end, is not told where nothing else is.
                    Err(_) if self.shared.has_lost(self.line, self.way) => ended = true,
                    Err(_) => return Err(End::Cut),
                },
            }
        }
    }

    /// Cuts `bytes` into frames, each to be forwarded after its delay, and after its predecessors.
    fn take(&mut self, bytes: &[u8]) -> Result<(), End> {
        self.frames.feed(bytes);
        loop {
            match self.frames.next_frame() {
                Ok(Some(frame)) => {
                    let due = Instant::now() + self.shared.delay(self.line, self.way);
                    self.waiting.push_back((due, frame));
                    self.shared.read(self.line, self.way);
                }
                Ok(None) => return Ok(()),
                Err(error) => {
                    // A process that finds out what a server speaks tries other protocols, again and again.
                    static TOLD: Once = Once::new();
                    TOLD.call_once(|| {
                        eprintln!(
                            "proxy: connection cut: {:?}: {error}; later ones are not told",
                            self.way
                        );
                    });
                    return Err(End::Cut);
                }
            }
        }
    }

    async fn forward_due(&mut self, to: &mut (impl AsyncWrite + Unpin)) -> Result<(), End> {
        let now = Instant::now();
        while self.waiting.front().is_some_and(|(due, _)| *due <= now) {
            let (_, frame) = self.waiting.pop_front().expect("just seen");
            let (length, end) = match self.shared.judge(self.line, self.way, &frame) {
                Verdict::Forward => (frame.bytes().len(), None),
                Verdict::Part(length, end) => (length, Some(end)),
                Verdict::Lose => continue,
            };
            let sent = to.write_all(&frame.bytes()[..length]).await;
            match (sent, end) {
                (Err(_), None) => return Err(End::Cut),
                (_, Some(end)) => return Err(end),
                (Ok(()), None) => self.shared.forwarded(self.line, self.way, &frame),
            }
        }
        Ok(())
    }

    /// Tells `to` that nothing more comes.
    async fn end(&self, mut to: impl AsyncWrite + Unpin) -> Result<(), End> {
        if self.shared.has_lost(self.line, self.way) {
            pending().await
        }
        to.shutdown().await.map_err(|_| End::Cut)
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}

//! The links between the nodes of a cluster of etcd.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

/// The longest head of a request.
const HEAD_MAX: usize = 16 << 10;

/// A relay in front of each node, by which the others reach it, and by which one can be cut off from the others.
pub(super) struct Links {
    cut_off: watch::Sender<Option<CutOff>>,
    /// Their tasks end with this value.
    relays: JoinSet<()>,
}

/// The node without links.
#[derive(Clone)]
pub(super) struct CutOff {
    pub(super) place: usize,
    /// As the node calls itself in its requests.
    pub(super) id: String,
}

impl Links {
    pub(super) fn new() -> Self {
        Self {
            cut_off: watch::Sender::new(None),
            relays: JoinSet::new(),
        }
    }

    /// The port of a relay to the node at `place`, which listens on 127.0.0.1:`port`.
    pub(super) async fn to(&mut self, place: usize, port: u16) -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let own = listener.local_addr().unwrap().port();
        let node = SocketAddr::from(([127, 0, 0, 1], port));
        let cut_off = self.cut_off.subscribe();
        self.relays.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((peer, _)) = listener.accept().await {
                connections.spawn(relay(peer, (place, node), cut_off.clone()));
                while connections.try_join_next().is_some() {}
            }
        });
        own
    }

    /// Cuts one node off from the others; `None`: none.
    pub(super) fn cut_off(&self, node: Option<CutOff>) {
        self.cut_off.send_replace(node);
    }
}

/// Relays what one peer says to the node at a place, unless one of them is cut off.
async fn relay(
    mut peer: TcpStream,
    (place, node): (usize, SocketAddr),
    mut cut_off: watch::Receiver<Option<CutOff>>,
) {
    let Some((head, from)) = head(&mut peer).await else {
        return;
    };
    let is_cut = |now: &Option<CutOff>| match (now, &from) {
        (Some(cut), Some(from)) => (cut.place == place) != (cut.id == *from),
        // It may be from any node. Peers connect again where it is from another one.
        (Some(_), None) => true,
        (None, _) => false,
    };
    if is_cut(&cut_off.borrow()) {
        return;
    }
    let Ok(mut node) = TcpStream::connect(node).await else {
        return;
    };
    let relayed = async {
        node.write_all(&head).await?;
        copy_bidirectional(&mut peer, &mut node).await
    };
    tokio::select! {
        _ = cut_off.wait_for(is_cut) => {}
        _ = relayed => {}
    }
}

/// The head of a connection's first request, with what was read behind it; and the id of the node that sends it, if it says so.
async fn head(peer: &mut TcpStream) -> Option<(Vec<u8>, Option<String>)> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > HEAD_MAX || peer.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let text = String::from_utf8_lossy(&head);
    let from = text.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("X-Server-From")
            .then(|| value.to_owned())
    });
    Some((head, from))
}

//! Handles: all that a coordinator needs to go on with a caller's lock, sealed with a secret that
//! coordinators share.
//!
//! ```text
//! version (1 byte) │ HMAC-SHA256 (32 bytes) of version, principal, content │ content
//! ```

use std::{sync::Arc, time::Duration};

use hmac::{Hmac, KeyInit, Mac};
use parking_lot::RwLock;
use prost::Message;
use ringfence_api::{Error, v1};
use ringfence_client::{Client, ClientId, Label, LeaseRef, LockMode, Nonce, Token};
use ringfence_coordinator::{
    clock::{BootClock, Clock},
    random::Random,
};
use sha2::Sha256;

use crate::access::Caller;

/// The version of the layout.
const VERSION: u8 = 1;
const MAC_BYTES: usize = 32;

/// Makes handles, and opens them.
pub(crate) struct Handles(RwLock<Arc<Sealers>>);

struct Sealers {
    first: Hmac<Sha256>,
    /// Those that handles are also opened with.
    others: Vec<Hmac<Sha256>>,
}

/// The content of a handle.
#[derive(Clone, PartialEq, Message)]
struct Content {
    #[prost(string, tag = "1")]
    namespace: String,
    #[prost(bytes = "vec", tag = "2")]
    key: Vec<u8>,
    /// The client of the nonce: 16 bytes.
    #[prost(bytes = "vec", tag = "3")]
    client: Vec<u8>,
    #[prost(uint64, tag = "4")]
    sequence: u64,
    #[prost(uint64, tag = "5")]
    token: u64,
    #[prost(string, tag = "6")]
    label: String,
    /// In microseconds.
    #[prost(uint64, tag = "7")]
    lease_us: u64,
    /// The end of a fixed hold, in ms since 1970. 0: there is none.
    #[prost(uint64, tag = "8")]
    ends_at_ms: u64,
    #[prost(enumeration = "v1::LockMode", tag = "9")]
    mode: i32,
    #[prost(uint32, tag = "10")]
    permits: u32,
    #[prost(uint32, tag = "11")]
    capacity: u32,
    #[prost(uint32, tag = "12")]
    tokens: u32,
    /// The nonces at the replicas: of each the client, 16 bytes, and the sequence, 8 bytes.
    #[prost(bytes = "vec", tag = "13")]
    replicas: Vec<u8>,
}

impl Sealers {
    fn new(secrets: &[String]) -> Self {
        let sealer =
            |secret: &[u8]| Hmac::new_from_slice(secret).expect("HMAC takes keys of every length");
        let random = || {
            let random = Random::from_os();
            sealer(&[random.id().to_be_bytes(), random.id().to_be_bytes()].concat())
        };
        let mut sealers = secrets.iter().map(|secret| sealer(secret.as_bytes()));
        Self {
            first: sealers.next().unwrap_or_else(random),
            others: sealers.collect(),
        }
    }
}

impl Handles {
    /// Sealed with the first of `secrets`; by default, with one that only this process has.
    pub(crate) fn new(secrets: &[String]) -> Self {
        Self(RwLock::new(Arc::new(Sealers::new(secrets))))
    }

    /// From now on, handles are sealed and opened with these `secrets`.
    pub(crate) fn replace(&self, secrets: &[String]) {
        *self.0.write() = Arc::new(Sealers::new(secrets));
    }

    fn sealers(&self) -> Arc<Sealers> {
        self.0.read().clone()
    }

    /// The handle of `lease`, for the principal `caller` only.
    pub(crate) fn seal(&self, lease: &LeaseRef, caller: Option<&str>) -> Vec<u8> {
        let ends_at = lease.hold_for.map(|hold_for| unix_now() + hold_for);
        let (mode, permits, capacity) = match lease.mode {
            LockMode::Exclusive => (v1::LockMode::Exclusive, 0, 0),
            LockMode::Read => (v1::LockMode::Read, 0, 0),
            LockMode::Write => (v1::LockMode::Write, 0, 0),
            LockMode::Permits { count, capacity } => (v1::LockMode::Permits, count, capacity),
        };
        let content = Content {
            namespace: lease.key.namespace().to_owned(),
            key: lease.key.key().to_vec(),
            client: lease.nonce.client.0.to_be_bytes().to_vec(),
            sequence: lease.nonce.sequence,
            token: lease.token.get(),
            label: lease.label.as_str().to_owned(),
            lease_us: lease.lease.as_micros() as u64,
            ends_at_ms: ends_at.map_or(0, |ends_at| ends_at.as_millis() as u64),
            mode: mode.into(),
            permits,
            capacity,
            tokens: lease.tokens,
            replicas: lease
                .replicas
                .iter()
                .flat_map(|nonce| bytes_of(*nonce))
                .collect(),
        };
        let content = content.encode_to_vec();
        let sealers = self.sealers();
        let mac = mac(&sealers.first, caller, &content)
            .finalize()
            .into_bytes();
        [&[VERSION], &mac[..], &content].concat()
    }

    /// The lock of `handle`, if it was sealed with one of the secrets for `caller`. Otherwise the call counts against the
    /// caller's rate.
    pub(crate) fn open(
        &self,
        handle: &[u8],
        caller: &Caller,
        client: &Client,
    ) -> Result<LeaseRef, Error> {
        let lease = self.opened(handle, caller.name(), client);
        lease.map_err(|error| caller.count(1).err().unwrap_or(error))
    }

    fn opened(
        &self,
        handle: &[u8],
        caller: Option<&str>,
        client: &Client,
    ) -> Result<LeaseRef, Error> {
        let sealers = self.sealers();
        let Sealers { first, others } = &*sealers;
        let opened = handle.split_at_checked(1 + MAC_BYTES);
        let opened = opened.filter(|(head, content)| {
            let mut sealers = std::iter::once(first).chain(others);
            let is_sealed_by = |sealer| {
                mac(sealer, caller, content)
                    .verify_slice(&head[1..])
                    .is_ok()
            };
            head[0] == VERSION && sealers.any(is_sealed_by)
        });
        let content = opened.and_then(|(_, content)| Content::decode(content).ok());
        let lease = content.and_then(|content| lease(&content, client));
        lease.ok_or_else(|| {
            let value = format!("{} bytes that are no handle of yours", handle.len());
            let limit = "the handle of a grant to this principal, by a coordinator with the same \
                         handle_secret";
            Error::invalid("handle", value, limit)
        })
    }
}

fn mac(sealer: &Hmac<Sha256>, caller: Option<&str>, content: &[u8]) -> Hmac<Sha256> {
    let mac = sealer.clone().chain_update([VERSION]);
    let mac = match caller {
        None => mac.chain_update([0]),
        // The length tells where the name ends.
        Some(name) => mac
            .chain_update([1])
            .chain_update((name.len() as u64).to_be_bytes())
            .chain_update(name),
    };
    mac.chain_update(content)
}

fn lease(content: &Content, client: &Client) -> Option<LeaseRef> {
    let bytes = content.client.as_slice().try_into().ok()?;
    let ends_at = (content.ends_at_ms > 0).then(|| Duration::from_millis(content.ends_at_ms));
    Some(LeaseRef {
        key: client.key(&content.namespace, &content.key).ok()?,
        nonce: Nonce {
            client: ClientId(u128::from_be_bytes(bytes)),
            sequence: content.sequence,
        },
        replicas: nonces(&content.replicas)?,
        token: Token::from_number(content.token),
        tokens: content.tokens.max(1),
        mode: match content.mode() {
            v1::LockMode::Read => LockMode::Read,
            v1::LockMode::Write => LockMode::Write,
            v1::LockMode::Permits => LockMode::Permits {
                count: content.permits,
                capacity: content.capacity,
            },
            v1::LockMode::Exclusive | v1::LockMode::Unspecified => LockMode::Exclusive,
        },
        label: Label::new(&content.label),
        lease: Duration::from_micros(content.lease_us),
        hold_for: ends_at.map(|ends_at| ends_at.saturating_sub(unix_now())),
    })
}

fn bytes_of(nonce: Nonce) -> impl Iterator<Item = u8> {
    let (client, sequence) = (nonce.client.0.to_be_bytes(), nonce.sequence.to_be_bytes());
    client.into_iter().chain(sequence)
}

fn nonces(bytes: &[u8]) -> Option<Vec<Nonce>> {
    let nonces = bytes.chunks(16 + 8).map(|nonce| {
        let (client, sequence) = nonce.split_at_checked(16)?;
        Some(Nonce {
            client: ClientId(u128::from_be_bytes(client.try_into().ok()?)),
            sequence: u64::from_be_bytes(sequence.try_into().ok()?),
        })
    });
    nonces.collect()
}

/// The time since 1970. Only the end of a fixed hold, which coordinators have in common, goes by it.
fn unix_now() -> Duration {
    BootClock.unix()
}

//! The data stored on servers, as text.

use std::fmt;

use crate::topology::{Status, Topology, Version};

/// A member's knowledge of its topology: the server to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pointer {
    /// The topology's id.
    pub(super) id: String,
    /// Its home's address, without credentials.
    pub(super) home: String,
}

impl Pointer {
    /// The pointer of a member of `topology`.
    pub(super) fn to(topology: &Topology) -> Self {
        Self {
            id: topology.id.clone(),
            home: topology.home.address.clone(),
        }
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let malformed = || format!("pointer {text:?}: a topology id, a space, an address");
        let (id, home) = text.split_once(' ').ok_or_else(malformed)?;
        Ok(Self {
            id: id.to_owned(),
            home: home.to_owned(),
        })
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.id, self.home)
    }
}

/// A record's first line, which the scripts read: `n version life status id`.
pub(super) fn header(topology: &Topology) -> String {
    let Topology {
        id,
        incarnation,
        version,
        status,
        home,
        ..
    } = topology;
    let status = match status {
        Status::Creating => "creating",
        Status::Active => "active",
    };
    format!("{incarnation} {version} {} {status} {id}", home.life)
}

/// The parts of a record's first line.
#[derive(Debug)]
pub(super) struct Header<'a> {
    pub(super) line: &'a str,
    pub(super) version: Version,
    pub(super) life: &'a str,
    status: &'a str,
    pub(super) id: &'a str,
}

impl<'a> Header<'a> {
    /// `None`: the text is not a record.
    pub(super) fn parse(record: &'a str) -> Option<Self> {
        let (line, _) = record.split_once('\n')?;
        let words: Vec<_> = line.split(' ').collect();
        let &[n, version, life, status, id] = &words[..] else {
            return None;
        };
        Some(Self {
            line,
            version: (n.parse().ok()?, version.parse().ok()?),
            life,
            status,
            id,
        })
    }

    /// Whether its topology is not in use yet.
    pub(super) fn is_creating(&self) -> bool {
        self.status == "creating"
    }
}

/// A record as its home stores it: the header, and on the next line the record itself.
pub(super) fn write_record(topology: &Topology) -> String {
    format!("{}\n{}", header(topology), topology.encode())
}

/// Reads [`write_record`]'s text.
pub(super) fn read_record(text: &str) -> Result<Topology, String> {
    let (first, record) = text.split_once('\n').ok_or("topology record: no header")?;
    let topology = Topology::decode(record)?;
    if first == header(&topology) {
        Ok(topology)
    } else {
        Err(format!(
            "topology record: header {first:?} is another record's"
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ringfence_ring::{ShardId, SlotCount, Weight};

    use super::*;
    use crate::{
        ids::{ClientId, Epoch, Life},
        topology::{Blueprint, Constants, Founder, Home, Namespaces},
    };

    fn topology() -> Topology {
        let life = Life::new("run:replid");
        let founder = Founder {
            id: ShardId::new("a").unwrap(),
            address: "redis://a:1/0".into(),
            life: life.clone(),
            weight: Weight::ONE,
            zone: None,
        };
        Topology::found(Blueprint {
            id: 0xfeed,
            engine: ClientId(3),
            unix: Duration::ZERO,
            after: Epoch::default(),
            constants: Constants::default(),
            slots: SlotCount::default(),
            namespaces: Namespaces::default(),
            home: Home {
                address: "redis://a:1/0".into(),
                life,
            },
            founders: vec![founder],
        })
        .unwrap()
    }

    #[test]
    fn a_record_comes_back_as_it_was_stored() {
        assert_eq!(read_record(&write_record(&topology())), Ok(topology()));
        assert_eq!(
            Pointer::parse(&Pointer::to(&topology()).to_string()),
            Ok(Pointer::to(&topology()))
        );
    }

    #[test]
    fn a_record_under_another_ones_header_is_refused() {
        let text = write_record(&topology()).replacen(" 1 ", " 2 ", 1);
        assert!(read_record(&text).unwrap_err().contains("header"), "{text}");
    }
}
